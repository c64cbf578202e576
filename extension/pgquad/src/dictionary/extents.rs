//! Extents: runs of numbers that share their upper bits. All terms of an extent are in one shard of a distributed
//! dictionary, and no block of terms reaches from one extent into the next.
//!
//! A shard takes the numbers of its new terms from the extents that belong to it (by their hash, as Citus places rows).
//! Table `quad.term_extents`, which moves with the shard, says which of them were begun and how far. So no two nodes
//! ever need to agree on a number, and what a transaction that fails has taken is free again.

use std::ops::Range;

use pgquad_term::id::MAX_LANGUAGE_STRING_NUMBER;
use pgrx::{pg_sys, PgSqlErrorCode};

use super::relation::{self, IndexScan, Inserter, Relation};
use super::tables::Tables;
use crate::pg::error::raise;

/// Numbers in an extent. It is small, so that the shards of a distributed dictionary together use few more numbers than
/// they have terms. The closer ids are, the better the trees of quads pack them. It is large against the 255 terms of a
/// block.
pub const EXTENT: u64 = 1 << 13;

/// The last extent: ids of language strings have no room for larger numbers.
const LAST_EXTENT: u64 = MAX_LANGUAGE_STRING_NUMBER / EXTENT;

/// The extent that a number belongs to.
pub fn extent_of(number: u64) -> u64 {
    number / EXTENT
}

/// The numbers of an extent. Number 0 stands for the default graph, so nobody gets it.
fn numbers_of(extent: u64) -> Range<u64> {
    (extent * EXTENT).max(1)..(extent + 1) * EXTENT
}

/// The last extent in the table with the first number in it that is free, and where the row is.
struct Last {
    extent: u64,
    next: u64,
    place: pg_sys::ItemPointerData,
}

fn last(table: &Relation) -> Option<Last> {
    let mut scan = IndexScan::new(table);
    let row = scan.last_within(0, i64::MAX)?;
    Some(Last {
        extent: row.bigint(1) as u64,
        next: row.bigint(2) as u64,
        place: row.place(),
    })
}

/// The first number behind all extents in the table.
pub fn end(tables: &Tables) -> u64 {
    let table = Relation::open(tables.extents, pg_sys::AccessShareLock);
    last(&table).map_or(0, |last| numbers_of(last.extent).end)
}

/// Numbers that a shard has taken.
#[derive(Default)]
pub struct Taken {
    /// The first number of each run.
    pub runs: Vec<u64>,
    /// The single ones, in ascending ranges.
    pub single: Vec<Range<u64>>,
}

/// Takes `count` numbers from the extents that are `own`: ranges in ascending order. The caller holds the lock that
/// keeps others from taking numbers from this shard.
pub fn take(tables: &Tables, count: u64, own: impl Fn(u64) -> bool) -> Vec<Range<u64>> {
    take_runs(tables, &[], count, own).single
}

/// The same, and before them runs of so many numbers that follow each other in one extent: no more than a block has
/// terms. What an extent has left that is too short for the next run stays unused.
pub fn take_runs(tables: &Tables, runs: &[u64], count: u64, own: impl Fn(u64) -> bool) -> Taken {
    let mut taken = Taken::default();
    if runs.is_empty() && count == 0 {
        return taken;
    }
    let table = Relation::open(tables.extents, pg_sys::RowExclusiveLock);
    let last = last(&table);
    let mut begun = Begun {
        own,
        extents: last.iter().map(|last| (last.extent, last.next)).collect(),
    };
    taken.runs = runs.iter().map(|&length| begun.run(length)).collect();
    let mut missing = count;
    while missing > 0 {
        let range = begun.at_most(missing);
        missing -= range.end - range.start;
        match taken.single.last_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            _ => taken.single.push(range),
        }
    }
    let known = usize::from(last.is_some());
    if let Some((last, &(extent, next))) = last.zip(begun.extents.first()) {
        if next != last.next {
            relation::update(&table, last.place, &mut row(extent, next));
        }
    }
    let rows = Inserter::new(table);
    for &(extent, next) in &begun.extents[known..] {
        rows.insert(&mut row(extent, next));
    }
    taken
}

/// Extents that numbers are taken from, in ascending order, each with the first number that is free.
struct Begun<F> {
    extents: Vec<(u64, u64)>,
    own: F,
}

impl<F: Fn(u64) -> bool> Begun<F> {
    /// Numbers that the last extent has left.
    fn room(&self) -> u64 {
        let last = self.extents.last();
        last.map_or(0, |&(extent, next)| numbers_of(extent).end - next)
    }

    /// The first of `length` numbers of one extent.
    fn run(&mut self, length: u64) -> u64 {
        debug_assert!(length <= EXTENT, "a run fits in an extent");
        loop {
            let room = self.room();
            if let Some((_, next)) = self.extents.last_mut().filter(|_| room >= length) {
                let first = *next;
                *next += length;
                return first;
            }
            self.begin();
        }
    }

    /// The next numbers of one extent: as many as it has, and no more than `count`, which is at least one.
    fn at_most(&mut self, count: u64) -> Range<u64> {
        if self.room() == 0 {
            self.begin();
        }
        let length = count.min(self.room());
        let first = self.run(length);
        first..first + length
    }

    fn begin(&mut self) {
        let candidate = self.extents.last().map_or(0, |&(extent, _)| extent + 1);
        let Some(extent) = (candidate..=LAST_EXTENT).find(|&extent| (self.own)(extent)) else {
            raise(
                PgSqlErrorCode::ERRCODE_PROGRAM_LIMIT_EXCEEDED,
                "the numbers of a shard of the dictionary are used up",
            )
        };
        self.extents.push((extent, numbers_of(extent).start));
    }
}

fn row(extent: u64, next: u64) -> [pg_sys::Datum; 2] {
    [extent, next].map(|number| pg_sys::Datum::from(number as i64))
}
