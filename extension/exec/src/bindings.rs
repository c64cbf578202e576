//! Batches of rows: one column of ids per variable.

use crate::plan::{Slot, SlotSet};

/// The values of one variable.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum Column {
    /// Not known, or not needed any more.
    #[default]
    Absent,
    /// Unbound in every row. Rows in which an optional group matched and those in which it did not go in separate
    /// batches.
    Null,
    /// A value for each row, in the unsigned form of keys.
    Ids(Vec<u64>),
}

impl Column {
    /// The values, if there are any.
    #[inline]
    pub fn ids(&self) -> Option<&[u64]> {
        match self {
            Self::Ids(ids) => Some(ids),
            _ => None,
        }
    }

    /// The values of the chosen rows.
    pub(crate) fn gather(&self, rows: &[u32]) -> Self {
        match self {
            Self::Ids(ids) => Self::Ids(rows.iter().map(|&r| ids[r as usize]).collect()),
            other => other.clone(),
        }
    }
}

/// A batch of rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bindings {
    /// Number of rows.
    pub len: usize,
    /// The columns, by variable.
    pub columns: Vec<Column>,
}

impl Bindings {
    /// One row in which nothing is bound.
    pub fn one_row(slots: usize) -> Self {
        Self {
            len: 1,
            columns: vec![Column::Absent; slots],
        }
    }

    /// The values of a variable, if it is bound.
    #[inline]
    pub fn ids(&self, slot: Slot) -> Option<&[u64]> {
        self.columns[slot.index()].ids()
    }

    /// The variables that have a column, be it one without values.
    pub fn known(&self) -> SlotSet {
        let known = self
            .columns
            .iter()
            .enumerate()
            .filter(|(_, c)| **c != Column::Absent);
        known.map(|(slot, _)| Slot::from_index(slot)).collect()
    }

    /// The chosen rows (in that order, repeated as often as they are named), only the variables of `live`.
    pub fn gather(&self, rows: &[u32], live: &SlotSet) -> Self {
        let columns = self
            .columns
            .iter()
            .enumerate()
            .map(|(slot, column)| {
                if live.has(Slot::from_index(slot)) {
                    column.gather(rows)
                } else {
                    Column::Absent
                }
            })
            .collect();
        Self {
            len: rows.len(),
            columns,
        }
    }

    /// Drops all columns but those of `live`.
    pub fn keep_columns(&mut self, live: &SlotSet) {
        for (slot, column) in self.columns.iter_mut().enumerate() {
            if !live.has(Slot::from_index(slot)) {
                *column = Column::Absent;
            }
        }
    }

    /// Keeps the rows for which `keep` is true.
    pub fn retain(&mut self, keep: &[bool]) {
        debug_assert_eq!(keep.len(), self.len);
        for column in &mut self.columns {
            if let Column::Ids(ids) = column {
                let mut row = 0;
                ids.retain(|_| {
                    row += 1;
                    keep[row - 1]
                });
            }
        }
        self.len = keep.iter().filter(|k| **k).count();
    }
}
