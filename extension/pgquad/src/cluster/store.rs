//! Which relations are stores on many nodes.

use pgrx::pg_sys;

/// The two tables of Citus that hold the quads of a distributed store, each all of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sides {
    /// Distributed by subject, orders spog and psog.
    pub by_subject: pg_sys::Oid,
    /// Distributed by object, orders ospg and posg.
    pub by_object: pg_sys::Oid,
}

/// The tables behind an open relation of a store, `None` where the relation holds its quads itself.
///
/// # Safety
/// `rel` is open.
pub unsafe fn sides_of(_rel: pg_sys::Relation) -> Option<Sides> {
    None
}

/// Whether this transaction has written to a distributed store, so that it reads its own writes through Citus.
pub fn has_written() -> bool {
    false
}
