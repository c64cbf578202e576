//! Numbers of terms and blank nodes that this backend has taken and not used yet: from the sequence
//! `quad.term_numbers`, or from the shards of a distributed dictionary.

use std::collections::VecDeque;
use std::ops::Range;

use pgrx::{pg_sys, PgSqlErrorCode};

use super::extents;
use super::lock;
use super::tables::Tables;
use crate::cluster::as_superuser;
use crate::pg::error::raise;

/// Numbers that one call of the sequence hands out: its increment.
const SEQUENCE_INCREMENT: u64 = 64;

unsafe extern "C-unwind" {
    /// `nextval` of PostgreSQL without its check of rights: whoever may write may number terms.
    fn nextval_internal(relation: pg_sys::Oid, check_permissions: bool) -> i64;
}

/// Numbers in stock. They stay this backend's own whatever happens to the transaction, so a number is used once at
/// most.
#[derive(Default)]
pub struct Numbers {
    stock: VecDeque<Range<u64>>,
}

impl Numbers {
    /// Takes `count` numbers of a dictionary that is not distributed: ranges in ascending order, as few as the sequence
    /// allows.
    pub fn take(&mut self, tables: &Tables, count: usize) -> Vec<Range<u64>> {
        let mut ranges = self.take_from_stock(count);
        let mut missing = count as u64 - length(&ranges);
        let mut first_free = None;
        while missing > 0 {
            let first_free = *first_free.get_or_insert_with(|| extents::end(tables));
            let first = next_from(tables, first_free);
            let taken = first..first + SEQUENCE_INCREMENT.min(missing);
            if taken.end < first + SEQUENCE_INCREMENT {
                self.stock.push_back(taken.end..first + SEQUENCE_INCREMENT);
            }
            missing -= taken.end - taken.start;
            push(&mut ranges, taken);
        }
        ranges
    }

    /// Takes at most `count` numbers that are in stock.
    pub fn take_from_stock(&mut self, count: usize) -> Vec<Range<u64>> {
        let mut ranges = Vec::new();
        let mut missing = count as u64;
        while let Some(first) = self.stock.front_mut().filter(|_| missing > 0) {
            let taken = first.start..first.end.min(first.start + missing);
            first.start = taken.end;
            missing -= taken.end - taken.start;
            if first.is_empty() {
                self.stock.pop_front();
            }
            push(&mut ranges, taken);
        }
        ranges
    }

    /// Puts numbers into the stock that nobody else has.
    pub fn put(&mut self, ranges: Vec<Range<u64>>) {
        self.stock.extend(ranges);
    }
}

/// How many numbers ranges have.
pub fn length(ranges: &[Range<u64>]) -> u64 {
    ranges.iter().map(|range| range.end - range.start).sum()
}

fn push(ranges: &mut Vec<Range<u64>>, taken: Range<u64>) {
    match ranges.last_mut() {
        Some(last) if last.end == taken.start => last.end = taken.end,
        _ => ranges.push(taken),
    }
}

/// The first of the next [`SEQUENCE_INCREMENT`] numbers of the sequence, none below `first_free`.
fn next_from(tables: &Tables, first_free: u64) -> u64 {
    let first = next(tables);
    if first >= first_free {
        return first;
    }
    // The tables come from a distributed dictionary, by pg_dump, and the sequence does not know of its numbers.
    let lock = lock::Held::all_numbers();
    let first = next(tables);
    if first >= first_free {
        return first;
    }
    // SAFETY: sets a sequence of this extension; nobody else does so while the lock is held.
    as_superuser(|| unsafe {
        pg_sys::OidFunctionCall3Coll(
            pg_sys::Oid::from(pg_sys::F_SETVAL_REGCLASS_INT8_BOOL),
            pg_sys::InvalidOid,
            pg_sys::Datum::from(tables.numbers),
            pg_sys::Datum::from(first_free as i64),
            pg_sys::Datum::from(false),
        )
    });
    let first = next(tables);
    lock.release();
    first
}

fn next(tables: &Tables) -> u64 {
    // SAFETY: a sequence of this extension; raises an error when it is used up or the transaction may not write.
    let first =
        unsafe { pg_sys::ffi::pg_guard_ffi_boundary(|| nextval_internal(tables.numbers, false)) };
    u64::try_from(first).unwrap_or_else(|_| {
        raise(
            PgSqlErrorCode::ERRCODE_DATA_CORRUPTED,
            "sequence \"quad.term_numbers\" has been altered",
        )
    })
}
