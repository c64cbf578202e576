//! What a participant does with its own share and with the rows that peers deal to it.

use super::{Dealt, Rows};

/// What one unit of work has come to.
#[derive(Debug)]
pub enum Ran<R> {
    /// There is more to do.
    More,
    /// A part of the answer; there may be more to do.
    Result(R),
    /// The own share and all that has been taken are done.
    Idle,
}

/// The join of one participant.
///
/// A *state* says what is left to do for rows: bytes that mean the same to all participants, opaque to the exchange.
/// All rows of one state have the same number of columns.
///
/// The work is a stack: the own share at the bottom, above it what has been taken, worked off from the top. The
/// exchange puts rows of a deeper state on top of rows of a shallower one. So there are never more open batches than
/// depths.
pub trait Work {
    /// A part of the answer.
    type Result;
    /// An error of the work itself.
    type Error;

    /// Puts the participant's own share on the stack; called once, before anything else.
    ///
    /// # Errors
    /// Those of the work.
    fn start(&mut self, dealt: &mut Dealt) -> Result<(), Self::Error>;

    /// How far rows in a state have come, e.g. the number of patterns that they are joined with. Rows that come from
    /// [`Self::run`] have come farther than those it ran on. A state that makes no sense may get any number, and is
    /// refused by [`Self::take`].
    fn depth(&self, state: &[u8]) -> u32;

    /// How many of the batches that were taken are not worked off.
    fn open(&self) -> usize;

    /// Puts rows on top of the stack.
    ///
    /// # Errors
    /// The state or the number of columns makes no sense; those of the work.
    fn take(&mut self, state: &[u8], rows: Rows) -> Result<(), Self::Error>;

    /// Does one unit of work, that of a batch in a step. Rows that are to go on elsewhere are put into `dealt`.
    ///
    /// # Errors
    /// Those of the work.
    fn run(&mut self, dealt: &mut Dealt) -> Result<Ran<Self::Result>, Self::Error>;
}
