//! What one of several participants of a join knows of its role, and what it has for the others. Example: participant 1
//! of 3 reads its part of the first pattern, and keeps the rows whose next quads participant 2 has in a [`Parcel`].

use crate::plan::{ColumnNumber, TableNumber};

/// Rows for another participant.
#[derive(Debug)]
pub struct Parcel {
    /// Number of the participant.
    pub to: usize,
    /// What is left to do for them, as [`take`](crate::Pipeline::take) reads it. The first byte is the number of steps
    /// that are done, 255 at most.
    pub state: Vec<u8>,
    /// Number of rows.
    pub rows: usize,
    /// The variables that are bound, in ascending order of their numbers.
    pub columns: Vec<Vec<u64>>,
}

/// What a participant knows of its role.
pub(crate) struct Role {
    /// Its number.
    pub me: u16,
    /// Smaller batches are joined where they are.
    pub least: usize,
    /// Rows to be given away.
    pub parcels: Vec<Parcel>,
}

/// The pattern of the outermost group that all participants start with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FirstPattern {
    /// Its number in the group.
    pub pattern: usize,
    /// The column, subject or object, by which its quads are shared out, where they are.
    pub column: ColumnNumber,
}

/// How the first pattern is read.
pub(crate) enum Share {
    /// As always.
    All,
    /// A part of its table.
    Part(TableNumber),
}
