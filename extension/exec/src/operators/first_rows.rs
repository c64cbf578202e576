//! The first rows of an order (ORDER BY .. LIMIT): a participant keeps no more than are asked for, so that no others
//! have to be sent.

use std::cmp::Ordering;

use crate::bindings::Bindings;
use crate::operators::extremes::TermOrder;
use crate::plan::Slot;

/// Rows that are collected beyond those asked for before they are sorted, at least.
const MIN_COLLECTED_ROWS: usize = 512;

/// What rows are sorted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SortKey {
    /// Place of the variable in the answer.
    pub place: usize,
    /// By its term, not by its id.
    pub by_term: bool,
    /// The greatest comes first.
    pub descending: bool,
    /// Rows in which it is unbound come first.
    pub nulls_first: bool,
}

/// The first rows so far.
pub struct FirstRows {
    keys: Vec<SortKey>,
    most: usize,
    terms: TermOrder,
    rows: Vec<Vec<Option<u64>>>,
    /// The last of the first rows, once there are as many: what does not come before it is none of them.
    last: Option<Vec<Option<u64>>>,
}

/// Rows of an answer that have the same variables bound: how many, and the values of each variable that is.
pub type AnswerRows = (usize, Vec<Option<Vec<u64>>>);

impl FirstRows {
    /// For so many rows.
    pub fn new(keys: Vec<SortKey>, most: usize, terms: TermOrder) -> Self {
        Self {
            keys,
            most,
            terms,
            rows: Vec::new(),
            last: None,
        }
    }

    /// Variables that are compared by their terms.
    pub fn term_places(&self) -> impl Iterator<Item = usize> + '_ {
        self.keys.iter().filter(|k| k.by_term).map(|k| k.place)
    }

    /// Takes rows with these variables.
    pub fn add(&mut self, rows: &Bindings, variables: &[Slot]) {
        let columns: Vec<Option<&[u64]>> = variables.iter().map(|&slot| rows.ids(slot)).collect();
        let mut row = Vec::with_capacity(columns.len());
        for number in 0..rows.len {
            row.clear();
            row.extend(columns.iter().map(|column| column.map(|ids| ids[number])));
            let is_behind = |last: &Vec<Option<u64>>| self.compare(&row, last).is_ge();
            if self.last.as_ref().is_some_and(is_behind) {
                continue;
            }
            self.rows.push(row.clone());
            if self.rows.len() >= self.most + self.most.max(MIN_COLLECTED_ROWS) {
                self.cut();
            }
        }
    }

    /// The first rows.
    pub fn finish(&mut self) -> Vec<AnswerRows> {
        self.cut();
        let mut parts: Vec<AnswerRows> = Vec::new();
        for row in self.rows.drain(..) {
            let is_like = |part: &&mut AnswerRows| {
                let mut pairs = part.1.iter().zip(&row);
                pairs.all(|(column, value)| column.is_some() == value.is_some())
            };
            let at = parts.iter_mut().find(is_like);
            let part = match at {
                Some(part) => part,
                None => {
                    let columns = row.iter().map(|value| value.map(|_| Vec::new()));
                    parts.push((0, columns.collect()));
                    let last = parts.len() - 1;
                    &mut parts[last]
                }
            };
            part.0 += 1;
            for (column, value) in part.1.iter_mut().zip(row) {
                if let (Some(column), Some(value)) = (column, value) {
                    column.push(value);
                }
            }
        }
        parts
    }

    /// Drops all but the first rows.
    fn cut(&mut self) {
        let mut rows = std::mem::take(&mut self.rows);
        rows.sort_by(|a, b| self.compare(a, b));
        rows.truncate(self.most);
        if rows.len() == self.most {
            self.last = rows.last().cloned();
        }
        self.rows = rows;
    }

    fn compare(&self, a: &[Option<u64>], b: &[Option<u64>]) -> Ordering {
        let of_key = |key: &SortKey| match (a[key.place], b[key.place]) {
            (Some(a), Some(b)) => {
                let order = match key.by_term {
                    _ if a == b => Ordering::Equal,
                    true => (self.terms)(a, b),
                    false => a.cmp(&b),
                };
                if key.descending {
                    order.reverse()
                } else {
                    order
                }
            }
            (None, None) => Ordering::Equal,
            (None, Some(_)) if key.nulls_first => Ordering::Less,
            (Some(_), None) if !key.nulls_first => Ordering::Less,
            _ => Ordering::Greater,
        };
        let orders = self.keys.iter().map(of_key);
        orders
            .into_iter()
            .find(|order| order.is_ne())
            .unwrap_or(Ordering::Equal)
    }
}
