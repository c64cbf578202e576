//! Terms by dictionary number, from table `quad.terms`.

use std::cell::Cell;
use std::rc::Rc;

use pgquad_term::block::{self, Block, BlockError, MAX_TERMS};
use pgquad_term::{TermBuf, TermId};
use pgrx::{check_for_interrupts, pg_sys, PgSqlErrorCode};

use super::blocks::CachedBlock;
use super::relation::{IndexScan, Relation};
use super::state::{term_bytes, State};
use crate::error::raise;

/// Reads blocks of `quad.terms`, which is opened when the first block is not in memory.
#[derive(Default)]
pub struct Reader {
    // Closed in this order.
    scan: Option<IndexScan>,
    table: Option<Relation>,
}

impl Reader {
    /// The term with this number, which goes into the cache; `None` when there is none.
    pub fn term(&mut self, state: &mut State, number: u64) -> Option<TermBuf> {
        let term = self.look(state, number)?;
        state.terms.put(number, term.clone(), term_bytes(&term));
        Some(term)
    }

    /// The term with this number, which will not be wanted again; `None` when there is none.
    pub fn look(&mut self, state: &mut State, number: u64) -> Option<TermBuf> {
        let block = match state.blocks.get(number) {
            Some(block) => block,
            None => self.read(state, number)?,
        };
        let encoded = block
            .get(number)
            .unwrap_or_else(|error| damaged(number, &error));
        let term = TermBuf::from_encoded(encoded)
            .unwrap_or_else(|| damaged(number, &BlockError::Invalid("term")));
        Some(term)
    }

    fn read(&mut self, state: &mut State, number: u64) -> Option<Rc<CachedBlock>> {
        check_for_interrupts!();
        let tables = state.layout.tables;
        let table = self
            .table
            .get_or_insert_with(|| Relation::open(tables.terms, pg_sys::AccessShareLock));
        let scan = self.scan.get_or_insert_with(|| IndexScan::new(table));
        // No block that begins further down reaches the number.
        let lowest = number.saturating_sub(MAX_TERMS as u64 - 1);
        let row = scan.last_within(lowest as i64, number as i64)?;
        let first = row.bigint(2) as u64;
        count_block();
        let block = row
            .with_bytes(3, |bytes| {
                let symbols = state.symbols.get(&tables, block::table_of(bytes)?);
                let block = Block::open(bytes, &symbols)?;
                Ok(Rc::new(CachedBlock::new(first, block, symbols)))
            })
            .unwrap_or_else(|error: BlockError| damaged(first, &error));
        state.blocks.put(block.clone());
        block.holds(number).then_some(block)
    }
}

thread_local! {
    /// Blocks that this backend has read from the table.
    static BLOCKS: Cell<u64> = const { Cell::new(0) };
}

/// Counts a block that is read from the table.
pub fn count_block() {
    BLOCKS.set(BLOCKS.get() + 1);
}

/// Blocks read from the table so far.
pub fn blocks() -> u64 {
    BLOCKS.get()
}

/// An error about a block that cannot be read.
pub fn damaged(number: u64, error: &BlockError) -> ! {
    raise(
        PgSqlErrorCode::ERRCODE_DATA_CORRUPTED,
        format!("quad.terms, block of number {number}: {error}"),
    )
}

/// An error about an id that is in no store of this database.
pub fn unknown_id(id: TermId) -> ! {
    raise(
        PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
        format!("term id {} is not in the dictionary", id.to_i64()),
    )
}
