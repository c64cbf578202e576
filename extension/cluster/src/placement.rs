//! Where the shards of a table are: ranges of hash values, each with a shard and the node that holds it (Citus'
//! `pg_dist_shard` and `pg_dist_placement`).

use crate::hash::hash_bigint;

/// One shard of a hash-distributed table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shard {
    /// Citus' number of the shard.
    pub id: u64,
    /// The least hash that belongs to it.
    pub low: i32,
    /// The greatest hash that belongs to it.
    pub high: i32,
    /// Citus' number of the group of nodes that holds it.
    pub group: i32,
}

/// The shards of a table, in the order of their hashes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Placement {
    shards: Vec<Shard>,
    /// Hash values from one shard to the next where all shards have as many, as in new tables of Citus.
    step: Option<u64>,
}

impl Placement {
    /// `None` where the shards do not cover all hash values, each once.
    #[must_use]
    pub fn new(mut shards: Vec<Shard>) -> Option<Self> {
        shards.sort_unstable_by_key(|shard| shard.low);
        let (first, last) = (shards.first()?, shards.last()?);
        let follows = |pair: &[Shard]| i64::from(pair[0].high) + 1 == i64::from(pair[1].low);
        let covers = first.low == i32::MIN
            && last.high == i32::MAX
            && shards.iter().all(|shard| shard.low <= shard.high)
            && shards.windows(2).all(follows);
        if !covers {
            return None;
        }
        let step = (1u64 << 32) / shards.len() as u64;
        let regular = shards
            .iter()
            .zip(0..)
            .all(|(shard, n)| distance(shard.low) == n * step);
        Some(Self {
            step: regular.then_some(step),
            shards,
        })
    }

    /// All shards, by hash.
    #[must_use]
    pub fn shards(&self) -> &[Shard] {
        &self.shards
    }

    /// The place in [`Self::shards`] of the shard that holds the rows with this value.
    #[inline]
    #[must_use]
    pub fn shard_of(&self, value: i64) -> usize {
        let hash = hash_bigint(value);
        match self.step {
            Some(step) => ((distance(hash) / step) as usize).min(self.shards.len() - 1),
            None => self.shards.partition_point(|shard| shard.low <= hash) - 1,
        }
    }
}

/// The shards of keys that come sorted: a key that repeats the one before is not hashed again.
pub struct SortedKeys {
    placement: Placement,
    last: Option<(i64, usize)>,
}

impl SortedKeys {
    /// Before the first key.
    #[must_use]
    pub fn new(placement: Placement) -> Self {
        Self {
            placement,
            last: None,
        }
    }

    /// As [`Placement::shard_of`].
    #[inline]
    pub fn shard_of(&mut self, key: i64) -> usize {
        match self.last {
            Some((same, shard)) if same == key => shard,
            _ => {
                let shard = self.placement.shard_of(key);
                self.last = Some((key, shard));
                shard
            }
        }
    }
}

/// How far a hash is from the least one.
fn distance(hash: i32) -> u64 {
    (i64::from(hash) - i64::from(i32::MIN)) as u64
}

/// Groups of nodes, each once, ascending.
#[must_use]
pub fn each_once(groups: impl Iterator<Item = i32>) -> Vec<i32> {
    let mut groups: Vec<i32> = groups.collect();
    groups.sort_unstable();
    groups.dedup();
    groups
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn regular(count: u32) -> Vec<Shard> {
        let step = (1i64 << 32) / i64::from(count);
        let shard = |n: u32| {
            let low = i64::from(i32::MIN) + i64::from(n) * step;
            let high = if n + 1 == count {
                i64::from(i32::MAX)
            } else {
                low + step - 1
            };
            Shard {
                id: u64::from(n),
                low: low as i32,
                high: high as i32,
                group: 0,
            }
        };
        (0..count).map(shard).collect()
    }

    #[test]
    fn gaps_and_overlaps_are_refused() {
        let mut shards = regular(4);
        shards.remove(1);
        assert!(Placement::new(shards).is_none());
        let mut shards = regular(4);
        shards[1].low -= 1;
        assert!(Placement::new(shards).is_none());
        assert!(Placement::new(Vec::new()).is_none());
    }

    proptest! {
        /// A value's shard is the one whose range holds its hash, whether the ranges are regular or split by hand.
        #[test]
        fn a_value_has_one_shard(count in 1u32..100, cuts in prop::collection::btree_set(any::<i32>(), 0..6), value in any::<i64>()) {
            let mut shards = regular(count);
            for cut in cuts {
                let at = shards.iter().position(|s| s.low < cut && cut <= s.high);
                if let Some(at) = at {
                    let upper = Shard { low: cut, ..shards[at] };
                    shards[at].high = cut - 1;
                    shards.insert(at + 1, upper);
                }
            }
            let placement = Placement::new(shards).unwrap();
            let shard = placement.shards()[placement.shard_of(value)];
            let hash = hash_bigint(value);
            prop_assert!(shard.low <= hash && hash <= shard.high);
        }
    }
}
