//! Terms by dictionary number, from table `quad.terms`.

use pgquad_term::block::{Block, BlockError};
use pgquad_term::{TermBuf, TermId};
use pgrx::{check_for_interrupts, pg_sys, PgSqlErrorCode};

use super::relation::{IndexScan, Relation};
use super::state::{term_bytes, State};
use crate::error::raise;

/// Reads the terms with these numbers, ascending and without repetition, into the cache and hands each to `found`.
///
/// Numbers that no term has are passed over.
pub fn read_terms(state: &mut State, numbers: &[u64], mut found: impl FnMut(u64, TermBuf)) {
    let table = Relation::open(state.tables.terms, pg_sys::AccessShareLock);
    let mut scan = IndexScan::new(&table, state.tables.terms_key);
    let mut rest = numbers;
    while let Some(&number) = rest.first() {
        check_for_interrupts!();
        rest = &rest[1..];
        let Some(row) = scan.last_up_to(number as i64) else {
            continue;
        };
        let first = row.bigint(1) as u64;
        let read = row.with_bytes(2, |bytes| -> Result<(), BlockError> {
            let block = Block::open(bytes)?;
            let end = first + block.len() as u64;
            if number >= end {
                return Ok(());
            }
            let symbols = state.symbols.get(&state.tables, block.table());
            let mut next = Some(number);
            while let Some(number) = next {
                let encoded = block.get((number - first) as usize, &symbols)?;
                let term = TermBuf::from_encoded(encoded).ok_or(BlockError::Invalid("term"))?;
                state.terms.put(number, term.clone(), term_bytes(&term));
                found(number, term);
                next = rest.first().copied().filter(|number| *number < end);
                if next.is_some() {
                    rest = &rest[1..];
                }
            }
            Ok(())
        });
        if let Err(error) = read {
            raise(
                PgSqlErrorCode::ERRCODE_DATA_CORRUPTED,
                format!("quad.terms, block {first}: {error}"),
            );
        }
    }
}

/// An error about an id that is in no store of this database.
pub fn unknown_id(id: TermId) -> ! {
    raise(
        PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
        format!("term id {} is not in the dictionary", id.to_i64()),
    )
}
