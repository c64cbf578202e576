//! Quads on their way into the shards of a table, many in one row.
//!
//! Citus routes and copies row by row, at a microsecond each. So a load of a distributed store hands it rows of some
//! thousand quads: a key that leads to the shard, and the quads as bytes. Where the shard is,
//! `extension/pgquad/src/am/modify.rs` takes them apart. A row without quads says that there will be no more.

use pgquad_btree::{Quad, SIGN};

use crate::wire::{Damaged, Reader, Result, Writer};
use crate::{Placement, SortedKeys};

/// Version of the bytes of a row.
const VERSION: u8 = 1;
/// Quads in a row at most, so that what Citus does for a row is shared by thousands. A row takes up to 128 kB.
const MAX_QUADS: usize = 4096;
/// Quads that are collected for all shards at most (4 MB).
const MAX_COLLECTED_QUADS: usize = 128 * 1024;
/// A shard that gets so many quads is told when it has all of them.
const MIN_TOLD_QUADS: usize = 64 * 1024;
/// Rows that COPY collects before it inserts them: `MAX_BUFFERED_TUPLES` of PostgreSQL's `commands/copyfrom.c`.
const COPY_ROWS: usize = 1000;
/// Rows of 76 bytes in a message: more than libpq keeps back until the end of a COPY, even where all that was sent is
/// taken (8 kB, `pqPutMsgEnd` of `fe-misc.c`).
const KEPT_BACK_ROWS: usize = 256;

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
///
/// Rows without quads come last. They tell a shard that it has got all of its quads, so that it need not wait for the
/// end of its COPY to build its trees. Citus ends the COPYs of a statement one after the other and waits for each, so
/// that one shard would be built after the other. There are enough of them that COPY inserts the last quads before it
/// reads its end.
pub struct QuadBatches<I> {
    quads: I,
    shards: SortedKeys,
    /// Column of the key, of s, p, o, g.
    place: usize,
    /// What each shard gets.
    targets: Vec<Target>,
    /// Quads of a row.
    most: usize,
    /// Quads from which on a shard is told that it has all of them.
    min_told: usize,
    /// The shard to look at next, once there are no more quads.
    turn: usize,
    stage: Stage,
}

#[derive(Default)]
struct Target {
    collected: Vec<Quad>,
    /// A key that leads here.
    key: i64,
    /// Rows that were made, and the quads in them.
    rows_made: usize,
    quads_made: usize,
    /// Rows without quads that are left to be made.
    ends_left: usize,
}

/// What the next rows come from.
enum Stage {
    Quads,
    /// What was collected when there were no more quads.
    Rest,
    /// Rows without quads.
    Ends,
}

impl<I: Iterator<Item = Quad>> QuadBatches<I> {
    /// Rows of `quads` for the shards of a table that is distributed by the column at `place`.
    pub fn new(quads: I, placement: Placement, place: usize) -> Self {
        let shards = placement.shards().len();
        Self {
            quads,
            place,
            targets: (0..shards).map(|_| Target::default()).collect(),
            most: (MAX_COLLECTED_QUADS / shards).clamp(1, MAX_QUADS),
            min_told: MIN_TOLD_QUADS,
            turn: 0,
            stage: Stage::Quads,
            shards: SortedKeys::new(placement),
        }
    }

    fn row(&mut self, shard: usize) -> (i64, Vec<u8>) {
        let target = &mut self.targets[shard];
        let quads = &target.collected;
        target.key = quads[0][self.place];
        target.rows_made += 1;
        target.quads_made += quads.len();
        let row = (target.key, encode(quads));
        target.collected.clear();
        row
    }

    /// The next row that is full.
    fn full(&mut self) -> Option<(i64, Vec<u8>)> {
        while let Some(quad) = self.quads.next() {
            let shard = self.shards.shard_of(quad[self.place]);
            let collected = &mut self.targets[shard].collected;
            collected.push(quad);
            if collected.len() >= self.most {
                return Some(self.row(shard));
            }
        }
        None
    }

    /// The next row of what was left.
    fn rest(&mut self) -> Option<(i64, Vec<u8>)> {
        let rest = &self.targets[self.turn..];
        let next = rest
            .iter()
            .position(|target| !target.collected.is_empty())?;
        self.turn += next + 1;
        Some(self.row(self.turn - 1))
    }

    /// Counts the rows without quads.
    fn count_ends(&mut self) {
        for target in &mut self.targets {
            if target.quads_made >= self.min_told.max(1) {
                target.ends_left = COPY_ROWS - target.rows_made % COPY_ROWS + KEPT_BACK_ROWS;
            }
        }
    }

    /// The next row without quads. The shards take turns, so that none waits until others have got all of theirs.
    fn end(&mut self) -> Option<(i64, Vec<u8>)> {
        let count = self.targets.len();
        let mut turns = (0..count).map(|n| (self.turn + n) % count);
        let next = turns.find(|&n| self.targets[n].ends_left > 0)?;
        self.turn = next + 1;
        let target = &mut self.targets[next];
        target.ends_left -= 1;
        Some((target.key, encode(&[])))
    }
}

impl<I: Iterator<Item = Quad>> Iterator for QuadBatches<I> {
    type Item = (i64, Vec<u8>);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.stage {
                Stage::Quads => match self.full() {
                    None => self.stage = Stage::Rest,
                    row => return row,
                },
                Stage::Rest => match self.rest() {
                    None => {
                        self.count_ends();
                        self.stage = Stage::Ends;
                    }
                    row => return row,
                },
                Stage::Ends => return self.end(),
            }
        }
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
        /// Rows without quads follow, so that COPY inserts the quads before the end.
        #[test]
        fn quads_arrive_at_their_shards(
            quads in quads(),
            shards in 1u32..9,
            place in prop_oneof![Just(0usize), Just(2)],
            most in 1usize..50,
            min_told in 0usize..60,
        ) {
            let placement = placement(shards);
            let mut batches = QuadBatches::new(quads.iter().copied(), placement.clone(), place);
            batches.most = most;
            batches.min_told = min_told;
            let mut arrived = vec![Vec::new(); shards as usize];
            let (mut rows, mut ends) = (vec![0; shards as usize], vec![0; shards as usize]);
            for (key, bytes) in batches {
                let row = decode(&bytes).unwrap();
                prop_assert!(row.len() <= most);
                let shard = placement.shard_of(key);
                if row.is_empty() {
                    ends[shard] += 1;
                } else {
                    prop_assert_eq!(ends[shard], 0);
                    rows[shard] += 1;
                }
                arrived[shard].extend(row);
            }
            for (shard, arrived) in arrived.into_iter().enumerate() {
                let own: Vec<Quad> = quads.iter().copied().filter(|quad| placement.shard_of(quad[place]) == shard).collect();
                let told = !own.is_empty() && own.len() >= min_told;
                prop_assert_eq!(ends[shard] > 0, told);
                // COPY inserts when it has collected enough rows, the first of the last ones among them.
                let inserted = (rows[shard] + ends[shard] - KEPT_BACK_ROWS * usize::from(told)) / COPY_ROWS * COPY_ROWS;
                prop_assert!(!told || inserted > rows[shard]);
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
