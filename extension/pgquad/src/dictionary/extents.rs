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

/// Takes `count` numbers from the extents that are `own`: ranges in ascending order. The caller holds the lock that
/// keeps others from taking numbers from this shard.
pub fn take(tables: &Tables, count: u64, own: impl Fn(u64) -> bool) -> Vec<Range<u64>> {
    let mut ranges: Vec<Range<u64>> = Vec::new();
    let mut missing = count;
    if missing == 0 {
        return ranges;
    }
    let table = Relation::open(tables.extents, pg_sys::RowExclusiveLock);
    let mut candidate = 0;
    if let Some(last) = last(&table) {
        candidate = last.extent + 1;
        let end = numbers_of(last.extent).end;
        let taken = last.next..end.min(last.next + missing);
        if !taken.is_empty() {
            missing -= taken.end - taken.start;
            relation::update(&table, last.place, &mut row(last.extent, taken.end));
            ranges.push(taken);
        }
    }
    if missing == 0 {
        return ranges;
    }
    let rows = Inserter::new(table);
    while missing > 0 {
        let Some(extent) = (candidate..=LAST_EXTENT).find(|&extent| own(extent)) else {
            raise(
                PgSqlErrorCode::ERRCODE_PROGRAM_LIMIT_EXCEEDED,
                "the numbers of a shard of the dictionary are used up",
            )
        };
        candidate = extent + 1;
        let all = numbers_of(extent);
        let taken = all.start..all.end.min(all.start + missing);
        missing -= taken.end - taken.start;
        rows.insert(&mut row(extent, taken.end));
        match ranges.last_mut() {
            Some(last) if last.end == taken.start => last.end = taken.end,
            _ => ranges.push(taken),
        }
    }
    ranges
}

fn row(extent: u64, next: u64) -> [pg_sys::Datum; 2] {
    [extent, next].map(|number| pg_sys::Datum::from(number as i64))
}
