//! Rows on their way.

use crate::wire::{Damaged, Reader, Result, Writer};

/// Most rows that one batch may have; a reader believes no more.
pub const MAX_ROWS: usize = 1 << 24;

/// Most columns that rows may have.
const MAX_COLUMNS: usize = 1 << 16;

/// Rows in columns.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Rows {
    /// Number of rows; there may be no columns.
    pub len: usize,
    /// A value for each row, by column.
    pub columns: Vec<Vec<u64>>,
}

impl Rows {
    /// No rows of so many columns.
    #[must_use]
    pub fn new(columns: usize) -> Self {
        Self {
            len: 0,
            columns: vec![Vec::new(); columns],
        }
    }

    /// Bytes of rows of so many columns. A row without columns counts as one with one, so that any number of them has
    /// an end.
    pub(super) fn bytes_of(len: usize, columns: usize) -> usize {
        len * columns.max(1) * size_of::<u64>()
    }

    /// Bytes of the rows.
    pub(super) fn bytes(&self) -> usize {
        Self::bytes_of(self.len, self.columns.len())
    }

    /// Makes room for so many more rows. Columns grow by a quarter, not to twice their length: they are as large as
    /// memory allows.
    pub(super) fn reserve(&mut self, more: usize) {
        for column in &mut self.columns {
            if column.capacity() - column.len() < more {
                column.reserve_exact(more.max(column.len() / 4));
            }
        }
    }

    /// Puts the rows `from..to` of others behind these.
    pub(super) fn extend(&mut self, others: &Self, from: usize, to: usize) {
        for (column, other) in self.columns.iter_mut().zip(&others.columns) {
            column.extend_from_slice(&other[from..to]);
        }
        self.len += to - from;
    }

    /// Takes the rows from number `at` on away.
    pub(super) fn split_off(&mut self, at: usize) -> Self {
        let columns = self.columns.iter_mut().map(|c| c.split_off(at)).collect();
        let len = self.len - at;
        self.len = at;
        Self { len, columns }
    }

    /// Writes them.
    pub(super) fn write(&self, writer: &mut Writer) {
        writer.u32(self.len as u32);
        writer.u32(self.columns.len() as u32);
        for column in &self.columns {
            writer.column(column);
        }
    }

    /// What [`Self::write`] wrote.
    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self> {
        let len = reader.u32()? as usize;
        let columns = reader.count(size_of::<u32>())?;
        if len > MAX_ROWS || columns > MAX_COLUMNS {
            return Err(Damaged);
        }
        let mut rows = Self::new(columns);
        for column in &mut rows.columns {
            reader.column(column, len)?;
            if column.len() != len {
                return Err(Damaged);
            }
        }
        rows.len = len;
        Ok(rows)
    }
}
