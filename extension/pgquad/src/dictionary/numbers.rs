//! Numbers of terms and blank nodes, from the sequence `quad.term_numbers`.

use std::ops::Range;

use pgrx::{pg_sys, PgSqlErrorCode};

use super::tables::Tables;
use crate::error::raise;

/// Numbers that one call of the sequence hands out: its increment.
const STEP: u64 = 64;

unsafe extern "C-unwind" {
    /// `nextval` of PostgreSQL without its check of rights: whoever may write may number terms.
    fn nextval_internal(relation: pg_sys::Oid, check_permissions: bool) -> i64;
}

/// Numbers this backend has taken from the sequence and not used yet. They stay its own whatever happens to the transaction, so a
/// number is used once at most.
#[derive(Default)]
pub struct Numbers {
    rest: Range<u64>,
}

impl Numbers {
    /// Takes `count` numbers: ranges in ascending order, as few as the sequence allows.
    pub fn take(&mut self, tables: &Tables, count: usize) -> Vec<Range<u64>> {
        let mut ranges: Vec<Range<u64>> = Vec::new();
        let mut missing = count as u64;
        while missing > 0 {
            if self.rest.is_empty() {
                // SAFETY: a sequence of this extension; raises an error when it is used up or the transaction may not write.
                let first = unsafe {
                    pg_sys::ffi::pg_guard_ffi_boundary(|| nextval_internal(tables.numbers, false))
                };
                let first = u64::try_from(first).unwrap_or_else(|_| {
                    raise(
                        PgSqlErrorCode::ERRCODE_DATA_CORRUPTED,
                        "sequence \"quad.term_numbers\" has been altered",
                    )
                });
                self.rest = first..first + STEP;
            }
            let end = self.rest.end.min(self.rest.start + missing);
            let taken = self.rest.start..end;
            self.rest.start = end;
            missing -= taken.end - taken.start;
            match ranges.last_mut() {
                Some(last) if last.end == taken.start => last.end = taken.end,
                _ => ranges.push(taken),
            }
        }
        ranges
    }
}
