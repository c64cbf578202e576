//! Which shards a read of key ranges concerns.

use crate::placement::Placement;
use pgquad_btree::{Key, SIGN};

/// The shard that holds all quads of a range, where there is one. There is one where the range has a single value in
/// the column by which rows are placed (column `place` of the key), and in all columns before it.
#[inline]
#[must_use]
pub fn shard_of_range(placement: &Placement, place: usize, range: &(Key, Key)) -> Option<usize> {
    let (low, high) = range;
    (low[..=place] == high[..=place]).then(|| placement.shard_of((low[place] ^ SIGN) as i64))
}

/// What one shard is to be asked for: a part of the lists of a [`Deal`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardRanges {
    /// The place of the shard in [`Placement::shards`].
    pub shard: usize,
    /// Its part of [`Deal::ranges`] and [`Deal::numbers`].
    pub part: std::ops::Range<usize>,
}

/// A list of ranges dealt out to shards.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Deal {
    /// The shards that are concerned, ascending.
    pub shards: Vec<ShardRanges>,
    /// The ranges, shard by shard, those of a shard in the order of the list that was dealt out.
    pub ranges: Vec<(Key, Key)>,
    /// The number of each in that list.
    pub numbers: Vec<u32>,
    /// Each group of ranges is with one shard as a whole.
    pub aligned: bool,
}

/// A range that may have quads in any shard.
pub(crate) const ALL: u32 = u32::MAX;

impl Deal {
    /// Deals out `ranges`, numbered from `first` on, of which each `size` in a row are a group. A range that may have
    /// quads in any shard goes to all of them.
    #[must_use]
    pub fn new(
        placement: &Placement,
        place: usize,
        ranges: &[(Key, Key)],
        first: usize,
        size: usize,
    ) -> Self {
        let (of_range, aligned) = shards_of(placement, place, ranges, size);
        if of_range.iter().all(|&shard| shard == ALL) {
            return Self::to_all(placement, ranges, first, aligned);
        }
        // Where the ranges of each shard begin.
        let count = placement.shards().len();
        let to_all = of_range.iter().filter(|&&shard| shard == ALL).count();
        let mut next = vec![to_all; count];
        for &shard in of_range.iter().filter(|&&shard| shard != ALL) {
            next[shard as usize] += 1;
        }
        let mut end = 0;
        let mut shards = Vec::new();
        for (shard, next) in next.iter_mut().enumerate() {
            let start = end;
            end += *next;
            if end > start {
                let part = start..end;
                shards.push(ShardRanges { shard, part });
            }
            *next = start;
        }
        let mut dealt = Self {
            shards,
            ranges: vec![([0; 4], [0; 4]); end],
            numbers: vec![0; end],
            aligned,
        };
        let mut put = |next: &mut usize, n: usize| {
            dealt.ranges[*next] = ranges[n];
            dealt.numbers[*next] = (first + n) as u32;
            *next += 1;
        };
        for (n, &shard) in of_range.iter().enumerate() {
            match shard {
                ALL => next.iter_mut().for_each(|next| put(next, n)),
                shard => put(&mut next[shard as usize], n),
            }
        }
        dealt
    }

    /// Ranges that every shard may have quads of: all have the same list.
    fn to_all(placement: &Placement, ranges: &[(Key, Key)], first: usize, aligned: bool) -> Self {
        let all = 0..ranges.len();
        let shards = 0..if ranges.is_empty() {
            0
        } else {
            placement.shards().len()
        };
        Self {
            shards: shards
                .map(|shard| ShardRanges {
                    shard,
                    part: all.clone(),
                })
                .collect(),
            ranges: ranges.to_vec(),
            numbers: all.map(|n| (first + n) as u32).collect(),
            aligned,
        }
    }
}

/// The shard of each range ([`ALL`]: any), and whether each group of `size` in a row is with one shard as a whole.
pub(crate) fn shards_of(
    placement: &Placement,
    place: usize,
    ranges: &[(Key, Key)],
    size: usize,
) -> (Vec<u32>, bool) {
    let mut shards: Vec<u32> = Vec::with_capacity(ranges.len());
    let mut aligned = true;
    let mut of_group = ALL;
    for (n, range) in ranges.iter().enumerate() {
        let begins = n.is_multiple_of(size);
        // Ranges of one key, as a star's, need no second look at its hash.
        let same = |before: &(Key, Key)| {
            range.0[..=place] == before.0[..=place] && range.1[..=place] == before.1[..=place]
        };
        let shard = match n.checked_sub(1).filter(|&n| !begins && same(&ranges[n])) {
            Some(before) => shards[before],
            None => shard_of_range(placement, place, range).map_or(ALL, |shard| shard as u32),
        };
        if begins {
            of_group = shard;
        }
        aligned &= shard != ALL && shard == of_group;
        shards.push(shard);
    }
    (shards, aligned || size == 1)
}
