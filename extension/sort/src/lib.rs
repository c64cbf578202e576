//! External merge sort of quads in several orders at once, and the bulk build of a table from it, on threads.
//!
//! [`Sorter`] takes quads in any order. Worker threads sort full chunks of them in every order and encode them as runs,
//! which the caller's thread writes to temporary files. [`build()`] merges the runs of each order and packs its leaf
//! pages on a thread of its own. Meanwhile the caller's thread writes and logs the pages of all orders side by side.
//! For example, a load of 10 million quads in three orders sorts 12 chunks into 36 runs, and ends with three threads
//! that merge 12 runs each. Knows nothing of PostgreSQL: see [`Host`].

mod build;
mod chunks;
mod error;
mod host;
mod merge;
mod resort;
mod run;
mod sorter;
mod stream;

pub use build::{build, build_arriving};
pub use chunks::Chunks;
pub use error::Error;
pub use host::Host;
pub use merge::{Merge, Source};
pub use run::{encode, Block, Piece, RunReader};
pub use sorter::{Sorted, Sorter};
pub use stream::Stream;
