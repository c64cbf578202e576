//! Many terms in the order of their numbers. A block of which few terms are wanted is read where it lies and not kept.
//! So one pass over a language does not push out what is used again. The next block is mostly the next row of the
//! table.

use std::rc::Rc;

use pgquad_term::block::{self, Block, BlockError, View, MAX_TERMS};
use pgquad_term::TermId;
use pgrx::{check_for_interrupts, pg_sys};

use super::blocks::CachedBlock;
use super::read::{count_block, damaged, Reader};
use super::relation::{IndexScan, Relation};
use super::state::State;
use super::tables::Tables;
use super::texts::Texts;
use super::{ahead, distribute, shared_cache};

/// A block of which less than one term in so many is wanted is not kept.
const SPARSE_TERMS: usize = 8;
/// Rows that are looked at before the index is searched again.
const NEXT_ROWS: usize = 3;

/// Reads the terms with these numbers, which ascend, until one is not there or there are `enough` bytes. They are in
/// these tables.
fn read(state: &mut State, tables: &Tables, numbers: &[u64], enough: usize) -> Texts {
    let mut texts = Texts::default();
    texts.bytes.reserve(numbers.len() * 32);
    texts.ends.reserve(numbers.len());
    let mut table = None;
    while let Some(&number) = numbers.get(texts.ends.len()) {
        if texts.bytes.len() >= enough {
            break;
        }
        if let Some(block) = state.blocks.get(number) {
            let rest = &numbers[texts.ends.len()..];
            for &number in rest.iter().take_while(|&&number| block.holds(number)) {
                let appended = block.append(number, &mut texts.bytes);
                appended.unwrap_or_else(|error| damaged(number, &error));
                texts.ends.push(texts.bytes.len());
            }
            continue;
        }
        let table = table.get_or_insert_with(|| Table::open(tables, numbers));
        if !table.append(state, numbers, &mut texts) {
            break;
        }
    }
    texts
}

/// The encoded terms with these numbers, as far as tables of this node have them, and the places of those that are on
/// other nodes. More than a few are a pass over many blocks, most of them read for one term: such a block is not kept.
pub fn texts_here(state: &mut State, numbers: &[u64]) -> (Vec<Option<String>>, Vec<usize>) {
    let (mut found, mut elsewhere) = (vec![None; numbers.len()], Vec::new());
    if numbers.len() > shared_cache::MAX_TERMS_AT_ONCE {
        let each = |n: usize, text: &str| found[n] = Some(text.to_owned());
        read_tables(state, numbers, &mut elsewhere, each);
        return (found, elsewhere);
    }
    let mut reader = Reader::default();
    for (n, &number) in numbers.iter().enumerate() {
        match state.layout.holding(number) {
            Some(_) => found[n] = reader.text(state, number),
            None => elsewhere.push(n),
        }
    }
    (found, elsewhere)
}

/// Calls `each` with the place of each number that tables of this node have a term for, and its encoded form.
/// `elsewhere` receives the places of those that are on other nodes.
fn read_tables(
    state: &mut State,
    numbers: &[u64],
    elsewhere: &mut Vec<usize>,
    mut each: impl FnMut(usize, &str),
) {
    let mut all: Vec<(Tables, Vec<(u64, usize)>)> = Vec::new();
    for (place, &number) in numbers.iter().enumerate() {
        let Some(tables) = state.layout.holding(number) else {
            elsewhere.push(place);
            continue;
        };
        match all.iter_mut().find(|(of, _)| of == tables) {
            Some((_, wanted)) => wanted.push((number, place)),
            None => all.push((*tables, vec![(number, place)])),
        }
    }
    if !all.is_empty() {
        distribute::check_committed();
    }
    for (tables, mut wanted) in all {
        wanted.sort_unstable();
        let numbers: Vec<u64> = wanted.iter().map(|&(number, _)| number).collect();
        let mut start = 0;
        while start < numbers.len() {
            let texts = read(state, &tables, &numbers[start..], ahead::CHUNK_BYTES);
            for n in 0..texts.ends.len() {
                each(wanted[start + n].1, texts.get(n));
            }
            // Nothing has the number that stopped it.
            start += texts.ends.len().max(1);
        }
    }
}

/// Makes a chunk that begins with this id, if a column that was offered has it.
pub fn fetch_ahead(state: &mut State, id: TermId) -> bool {
    let Some(rows) = ahead::offered(id) else {
        return false;
    };
    let mut numbers = rows.numbers();
    let tables = state.layout.tables;
    let texts = read(state, &tables, &numbers, ahead::CHUNK_BYTES);
    numbers.truncate(texts.ends.len());
    state.ahead.put(rows, numbers, texts);
    true
}

/// A table of blocks, read upwards.
struct Table {
    tables: Tables,
    // Closed in this order.
    scan: IndexScan,
    _table: Relation,
    last: i64,
    started: bool,
}

impl Table {
    fn open(tables: &Tables, numbers: &[u64]) -> Self {
        let table = Relation::open(tables.terms, pg_sys::AccessShareLock);
        Self {
            tables: *tables,
            scan: IndexScan::new(&table),
            _table: table,
            last: numbers.last().map_or(0, |&last| last as i64),
            started: false,
        }
    }

    /// Appends terms of the block that holds the first missing number; false when there is no such block.
    fn append(&mut self, state: &mut State, numbers: &[u64], texts: &mut Texts) -> bool {
        check_for_interrupts!();
        let rest = &numbers[texts.ends.len()..];
        let number = rest[0];
        let mut steps = if self.started { 0 } else { NEXT_ROWS };
        loop {
            if steps == NEXT_ROWS {
                // No block that begins further down reaches the number.
                let lowest = number.saturating_sub(MAX_TERMS as u64 - 1);
                self.scan.seek(lowest as i64, self.last);
                self.started = true;
            } else if steps > NEXT_ROWS + MAX_TERMS {
                return false;
            }
            steps += 1;
            let Some(row) = self.scan.next() else {
                return false;
            };
            let first = row.bigint(2) as u64;
            if first > number {
                return false;
            }
            let block = row.with_bytes(3, |bytes| -> Result<bool, BlockError> {
                let view = View::new(bytes)?;
                let end = first + view.len() as u64;
                if number >= end {
                    return Ok(false);
                }
                let here = rest.iter().take_while(|&&number| number < end);
                let places = here.map(|&number| (number - first) as usize);
                let symbols = state.symbols.get(&self.tables, block::table_of(bytes)?);
                count_block();
                view.append(places.clone(), &symbols, &mut texts.bytes, &mut texts.ends)?;
                if places.count() * SPARSE_TERMS >= view.len() {
                    let block = Block::of_view(&view, &symbols)?;
                    state
                        .blocks
                        .put(Rc::new(CachedBlock::new(first, block, symbols)));
                }
                Ok(true)
            });
            if block.unwrap_or_else(|error| damaged(first, &error)) {
                return true;
            }
        }
    }
}
