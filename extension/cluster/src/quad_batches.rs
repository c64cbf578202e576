//! Quads on their way into the shards of a table, many in one row.
//!
//! Citus routes and copies row by row, at a microsecond each. So a load of a distributed store hands it rows of some
//! thousand quads: a key that leads to the shard, and the quads as bytes. Where the shard is,
//! `extension/pgquad/src/am/modify.rs` takes them apart.

use pgquad_btree::{Quad, SIGN};

use crate::wire::{Damaged, Reader, Result, Writer};
use crate::{Placement, SortedKeys};

/// Version of the bytes of a row.
const VERSION: u8 = 1;
/// Quads in a row at most, so that what Citus does for a row is shared by thousands. A row takes up to 128 kB.
const MAX_QUADS: usize = 4096;
/// Quads that are collected for all shards at most (4 MB).
const MAX_COLLECTED_QUADS: usize = 128 * 1024;

/// The bytes of some quads.
#[must_use]
pub fn encode(quads: &[Quad]) -> Vec<u8> {
    let mut writer = Writer::new();
    writer.u8(VERSION);
    let mut values = Vec::with_capacity(quads.len());
    for place in 0..4 {
        values.clear();
        values.extend(quads.iter().map(|quad| quad[place] as u64 ^ SIGN));
        writer.column(&values);
    }
    writer.finish()
}

/// The quads in the bytes of a row.
///
/// # Errors
/// These are not bytes that [`encode`] makes.
pub fn decode(bytes: &[u8]) -> Result<Vec<Quad>> {
    let mut reader = Reader::new(bytes);
    if reader.u8()? != VERSION {
        return Err(Damaged);
    }
    let mut quads = Vec::new();
    let mut values = Vec::new();
    for place in 0..4 {
        values.clear();
        reader.column(&mut values, MAX_QUADS)?;
        if place == 0 {
            quads.resize(values.len(), [0; 4]);
        }
        if values.len() != quads.len() {
            return Err(Damaged);
        }
        for (quad, value) in quads.iter_mut().zip(&values) {
            quad[place] = (value ^ SIGN) as i64;
        }
    }
    reader.end()?;
    Ok(quads)
}

/// Makes rows of quads: each is a key whose shard holds all of its quads, and their bytes.
pub struct QuadBatches<I> {
    quads: I,
    shards: SortedKeys,
    /// Column of the key, of s, p, o, g.
    place: usize,
    /// What is collected for each shard.
    collected: Vec<Vec<Quad>>,
    /// Quads of a row.
    most: usize,
    /// The shard to look at next, once there are no more quads.
    rest: usize,
}

impl<I: Iterator<Item = Quad>> QuadBatches<I> {
    /// Rows of `quads` for the shards of a table that is distributed by the column at `place`.
    pub fn new(quads: I, placement: Placement, place: usize) -> Self {
        let shards = placement.shards().len();
        Self {
            quads,
            place,
            collected: vec![Vec::new(); shards],
            most: (MAX_COLLECTED_QUADS / shards).clamp(1, MAX_QUADS),
            rest: 0,
            shards: SortedKeys::new(placement),
        }
    }

    fn row(&mut self, shard: usize) -> (i64, Vec<u8>) {
        let quads = &mut self.collected[shard];
        let row = (quads[0][self.place], encode(quads));
        quads.clear();
        row
    }
}

impl<I: Iterator<Item = Quad>> Iterator for QuadBatches<I> {
    type Item = (i64, Vec<u8>);

    fn next(&mut self) -> Option<Self::Item> {
        while let Some(quad) = self.quads.next() {
            let shard = self.shards.shard_of(quad[self.place]);
            self.collected[shard].push(quad);
            if self.collected[shard].len() >= self.most {
                return Some(self.row(shard));
            }
        }
        while self.rest < self.collected.len() {
            self.rest += 1;
            if !self.collected[self.rest - 1].is_empty() {
                return Some(self.row(self.rest - 1));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Shard;
    use proptest::prelude::*;

    fn placement(shards: u32) -> Placement {
        let step = (1i64 << 32) / i64::from(shards);
        let low = |n: u32| i64::from(i32::MIN) + i64::from(n) * step;
        let shard = |n: u32| Shard {
            id: u64::from(n),
            low: low(n) as i32,
            high: if n + 1 == shards {
                i32::MAX
            } else {
                (low(n + 1) - 1) as i32
            },
            group: 0,
        };
        Placement::new((0..shards).map(shard).collect()).unwrap()
    }

    fn quads() -> impl Strategy<Value = Vec<Quad>> {
        let id = || prop_oneof![(0i64..20).boxed(), any::<i64>().boxed()];
        prop::collection::vec(
            (id(), 0i64..4, id()).prop_map(|(s, p, o)| [s, p, o, 0]),
            0..300,
        )
    }

    proptest! {
        /// All quads arrive, each in a row whose key leads to the shard of the quad, in the order in which they came.
        #[test]
        fn quads_arrive_at_their_shards(quads in quads(), shards in 1u32..9, place in prop_oneof![Just(0usize), Just(2)], most in 1usize..50) {
            let placement = placement(shards);
            let mut batches = QuadBatches::new(quads.iter().copied(), placement.clone(), place);
            batches.most = most;
            let mut arrived = vec![Vec::new(); shards as usize];
            for (key, bytes) in batches {
                let row = decode(&bytes).unwrap();
                prop_assert!((1..=most).contains(&row.len()));
                arrived[placement.shard_of(key)].extend(row);
            }
            for (shard, arrived) in arrived.into_iter().enumerate() {
                let own: Vec<Quad> = quads.iter().copied().filter(|quad| placement.shard_of(quad[place]) == shard).collect();
                prop_assert_eq!(arrived, own);
            }
        }

        /// Bytes that are cut off are refused; damaged ones are refused or other quads, never more than a row has.
        #[test]
        fn damage_is_refused(quads in quads(), at in any::<prop::sample::Index>(), byte in any::<u8>(), cut in any::<bool>()) {
            let mut bytes = encode(&quads);
            let place = at.index(bytes.len());
            if cut { bytes.truncate(place) } else { bytes[place] = byte }
            let got = decode(&bytes);
            prop_assert!(!(cut && got.is_ok()));
            prop_assert!(got.map_or(0, |quads| quads.len()) <= MAX_QUADS);
        }
    }
}
