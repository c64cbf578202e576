//! Terms by dictionary number, from table `quad.terms`.

use std::cell::Cell;
use std::rc::Rc;

use pgquad_term::block::{self, Block, BlockError, MAX_TERMS};
use pgquad_term::{TermBuf, TermId};
use pgrx::{check_for_interrupts, pg_sys, PgSqlErrorCode};

use super::blocks::CachedBlock;
use super::distribute;
use super::relation::{IndexScan, Relation};
use super::state::{term_bytes, State};
use crate::pg::error::raise;

/// Reads blocks of `quad.terms`, or of its shards on this node. A table is opened when its first block is not in
/// memory.
#[derive(Default)]
pub struct Reader {
    open: Option<Open>,
}

/// The table read last.
struct Open {
    // Closed in this order.
    scan: IndexScan,
    _table: Relation,
    oid: pg_sys::Oid,
}

impl Open {
    fn new(oid: pg_sys::Oid) -> Self {
        let table = Relation::open(oid, pg_sys::AccessShareLock);
        Open {
            scan: IndexScan::new(&table),
            _table: table,
            oid,
        }
    }
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
        Some(term_in(&*self.block(state, number)?, number))
    }

    /// The encoded form of the term with this number; `None` when there is none.
    pub fn text(&mut self, state: &mut State, number: u64) -> Option<String> {
        let text = self.block(state, number)?.text(number);
        Some(text.unwrap_or_else(|error| damaged(number, &error)))
    }

    /// The block that holds the term with this number; `None` when there is none.
    pub fn block(&mut self, state: &mut State, number: u64) -> Option<Rc<CachedBlock>> {
        match state.blocks.get(number) {
            Some(block) => Some(block),
            None => self.read(state, number),
        }
    }

    fn read(&mut self, state: &mut State, number: u64) -> Option<Rc<CachedBlock>> {
        check_for_interrupts!();
        let tables = *state.layout.holding(number)?;
        distribute::check_committed();
        if self
            .open
            .as_ref()
            .is_none_or(|open| open.oid != tables.terms)
        {
            self.open = Some(Open::new(tables.terms));
        }
        let scan = &mut self.open.as_mut()?.scan;
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

/// The term with this number, which the block holds.
pub fn term_in(block: &CachedBlock, number: u64) -> TermBuf {
    block
        .term(number)
        .unwrap_or_else(|error| damaged(number, &error))
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
