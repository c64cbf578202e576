//! Parts of tables: in a repartitioned join the number of a table may stand for the quads that this participant holds.

use crate::plan::numbers::{ColumnNumber, TableNumber};

/// Set in the number of a table that stands for a part.
const BY_SUBJECT: u16 = 1 << 15;
const BY_OBJECT: u16 = 1 << 14;

/// A part of a table: the quads that this participant holds by a column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TablePart {
    /// By their subjects.
    BySubject,
    /// By their objects.
    ByObject,
}

impl TablePart {
    /// The part by a column, subject or object.
    pub(crate) fn by(column: ColumnNumber) -> Self {
        match column {
            ColumnNumber::SUBJECT => Self::BySubject,
            _ => Self::ByObject,
        }
    }
}

impl TableNumber {
    /// The table that the number stands for, or a part of.
    #[inline]
    #[must_use]
    pub fn whole(self) -> Self {
        Self::new(self.number() & !(BY_SUBJECT | BY_OBJECT))
    }

    /// The part of the table that the number stands for; `None` for a whole table.
    #[inline]
    #[must_use]
    pub fn part(self) -> Option<TablePart> {
        match self.number() & (BY_SUBJECT | BY_OBJECT) {
            0 => None,
            BY_SUBJECT => Some(TablePart::BySubject),
            _ => Some(TablePart::ByObject),
        }
    }

    /// The number that stands for a part of this whole table.
    #[must_use]
    pub fn in_part(self, part: TablePart) -> Self {
        let bit = match part {
            TablePart::BySubject => BY_SUBJECT,
            TablePart::ByObject => BY_OBJECT,
        };
        Self::new(self.number() | bit)
    }
}
