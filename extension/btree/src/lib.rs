//! B-link trees of quads with multi-version entries, over a page store supplied by the caller.
//!
//! One file of [`PAGE_SIZE`] pages holds a metapage and one tree per *order* (a permutation of
//! subject, predicate, object and graph). The crate knows nothing of PostgreSQL: pages come from a
//! [`PageStore`], transaction states from a [`TxnStatus`] and visibility from a [`Snapshot`].
//! See `README.md` for the page layout, the locking rules and the invariants.

mod block;
mod build;
mod cached_descent;
mod count;
mod delete;
mod descend;
mod equal_keys;
mod error;
mod filter;
mod gap;
mod groups;
mod inner;
mod inner_page_cache;
mod insert;
mod key;
mod leaf;
pub mod mem;
mod meta;
mod order;
mod pack;
mod packed;
mod page;
mod prune_and_freeze;
mod quads;
mod record;
mod scan;
mod split;
mod stats;
mod store;
mod tree;
mod vacuum;
mod values;
mod verify;
mod versions;
mod visibility;
mod visibility_marks;
mod wal_delta;

pub use block::{BlockNo, NO_BLOCK};
pub use build::{Build, Leaves, NewLeaf};
pub use count::Work;
pub use delete::Deletion;
pub use error::{Error, Problem, Result};
pub use filter::Filter;
pub use groups::{GroupCursor, Groups};
pub use inner_page_cache::{CacheBudget, InnerPageCache};
pub use insert::{Mode, Writer};
pub use key::{cmp, prefix_range, Key, Quad, GRAPH, KEY_MAX, KEY_MIN, SIGN};
pub use leaf::Entry;
pub use meta::{initial_pages, Meta, Options, OrderMeta, OrderOptions, MAX_ORDERS};
pub use order::{key_of, quad_of, Order, DEFAULT_ORDERS};
pub use page::{Page, FROZEN_XID, NO_XID, PAGE_SIZE};
pub use quads::Quads;
pub use record::{record_info, unreadable_format, RECORD_FORMAT};
pub use scan::{Batch, Cursor, Direction, Probe, Span, ALL_COLUMNS, COUNTS};
pub use stats::Stats;
pub use store::{
    Change, PageStore, Snapshot, TxnStatus, XidStatus, MAX_APPENDED_PAGES, MAX_ATOMIC_PAGES,
};
pub use tree::Tree;
pub use vacuum::VacuumStats;
pub use verify::Verified;
pub use wal_delta::{redo, PAGE_STAMP_BYTES};
