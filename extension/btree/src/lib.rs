//! B-link trees of quads with multi-version entries, over a page store supplied by the caller.
//!
//! One file of [`PAGE_SIZE`] pages holds a metapage and one tree per *order* (a permutation of
//! subject, predicate, object and graph). The crate knows nothing of PostgreSQL: pages come from a
//! [`PageStore`], transaction states from a [`TxnStatus`] and visibility from a [`Snapshot`].
//! See `README.md` for the page layout, the locking rules and the invariants.

mod error;
mod inner;
mod key;
mod leaf;
mod meta;
mod packed;
mod page;
mod store;

pub use error::{Error, Problem, Result};
pub use inner::{Child, InnerView};
pub use key::{key_of, prefix_range, quad_of, Key, Order, Quad, DEFAULT_ORDERS, KEY_MAX, KEY_MIN};
pub use leaf::{Entry, LeafView};
pub use meta::{initial_pages, Meta, Options, OrderMeta, OrderOptions, MAX_ORDERS};
pub use page::{BlockNo, Page, PageKind, FROZEN_XID, NO_BLOCK, NO_XID, PAGE_SIZE};
pub use store::{Change, PageStore, Snapshot, TxnStatus, XidStatus, MAX_ATOMIC_PAGES};
