//! Rows of an answer: ids as the SQL gives them, decoded a batch at a time, each id once.

use pgquad_sparql::{Output, Param};
use pgquad_term::{Term, TermBuf, TermId};
use pgrx::{pg_sys, FromDatum};

use super::parameters::parse_term;
use crate::dictionary::{self, no_term_id};
use crate::term::TermOut;

/// A value of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cell {
    /// No value.
    Unbound,
    /// An id, or minus the number of a parameter, whose term has no id.
    Id(i64),
    /// A term that the SQL computed: its place in the list of the batch.
    Computed(usize),
}

/// Rows that are not decoded yet.
#[derive(Default)]
pub struct Batch {
    outputs: Vec<Output>,
    cells: Vec<Cell>,
    computed: Vec<TermBuf>,
    rows: usize,
}

impl Batch {
    /// No rows, of columns that are read so.
    pub fn new(outputs: &[Output]) -> Self {
        Self {
            outputs: outputs.to_vec(),
            ..Self::default()
        }
    }

    /// Adds a row: `datum` gives the datum of a column, `None` for NULL.
    pub fn push(&mut self, datum: impl Fn(usize) -> Option<pg_sys::Datum>) {
        for (place, output) in self.outputs.iter().enumerate() {
            let cell = match (datum(place), output) {
                (None, _) => Cell::Unbound,
                (Some(datum), Output::Id) => Cell::Id(datum.value() as i64),
                (Some(datum), Output::Term) => {
                    // SAFETY: the column is of type quad.term, and the datum lives until the row is read.
                    let term = unsafe { TermOut::from_datum(datum, false) };
                    match term {
                        Some(TermOut(term)) => {
                            self.computed.push(term);
                            Cell::Computed(self.computed.len() - 1)
                        }
                        None => Cell::Unbound,
                    }
                }
            };
            self.cells.push(cell);
        }
        self.rows += 1;
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.rows
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Takes the rows away.
    pub fn clear(&mut self) {
        self.cells.clear();
        self.computed.clear();
        self.rows = 0;
    }

    /// All values, row after row.
    pub fn cells(&self) -> &[Cell] {
        &self.cells
    }

    /// The values of the rows.
    pub fn rows(&self) -> impl Iterator<Item = &[Cell]> {
        let width = self.outputs.len();
        (0..self.rows).map(move |row| &self.cells[row * width..(row + 1) * width])
    }

    /// The term at this place of the list of computed ones.
    pub fn computed(&self, place: usize) -> Term<'_> {
        self.computed[place].as_term()
    }

    /// Decodes the rows and calls `read` with each. `params` are the parameters that the query ran with.
    pub fn read<T>(&self, params: &[Param], mut read: impl FnMut(&Row<'_>) -> T) -> Vec<T> {
        let ids = self.cells.iter().filter_map(|cell| match cell {
            Cell::Id(id) => Some(*id),
            _ => None,
        });
        let decoded = Decoded::new(ids.collect(), params);
        self.rows()
            .map(|cells| {
                read(&Row {
                    batch: self,
                    decoded: &decoded,
                    cells,
                })
            })
            .collect()
    }
}

/// A decoded row.
pub struct Row<'b> {
    batch: &'b Batch,
    decoded: &'b Decoded,
    cells: &'b [Cell],
}

impl Row<'_> {
    /// Number of columns.
    pub fn len(&self) -> usize {
        self.cells.len()
    }

    /// Calls `read` with the term of column `place`; `None` for an unbound variable.
    pub fn term<T>(&self, place: usize, read: impl FnOnce(&Term<'_>) -> T) -> Option<T> {
        match self.cells[place] {
            Cell::Unbound => None,
            Cell::Id(id) => self.decoded.get(id).map(|term| read(&term)),
            Cell::Computed(place) => Some(read(&self.batch.computed(place))),
        }
    }
}

/// The term of minus the number of a parameter.
pub fn constant(id: i64, params: &[Param]) -> TermBuf {
    let place = id.checked_neg().and_then(|id| usize::try_from(id - 1).ok());
    match place.and_then(|place| params.get(place)) {
        Some(param) => parse_term(&param.text),
        // A quad table takes any number from those who may write bare ids.
        None => no_term_id(id),
    }
}

/// Terms by id.
struct Decoded {
    /// In ascending order.
    ids: Vec<i64>,
    /// `None` for the default graph.
    terms: Vec<Option<TermBuf>>,
}

impl Decoded {
    /// The terms of ids and of minus the numbers of parameters.
    fn new(mut ids: Vec<i64>, params: &[Param]) -> Self {
        ids.sort_unstable();
        ids.dedup();
        let constants = ids.partition_point(|id| *id < 0);
        let known: Vec<TermId> = ids[constants..]
            .iter()
            .map(|id| dictionary::term_id(*id))
            .collect();
        let constants = ids[..constants].iter();
        let terms = constants
            .map(|id| Some(constant(*id, params)))
            .chain(dictionary::decode_many(&known))
            .collect();
        Self { ids, terms }
    }

    /// The term of an id.
    fn get(&self, id: i64) -> Option<Term<'_>> {
        let place = self.ids.binary_search(&id).ok()?;
        self.terms[place].as_ref().map(TermBuf::as_term)
    }
}
