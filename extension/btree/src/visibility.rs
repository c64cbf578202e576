//! Which versions a snapshot sees.

use crate::leaf::Entry;
use crate::page::{FROZEN_XID, NO_XID};
use crate::store::Snapshot;

/// Whether the snapshot sees the version.
#[inline]
pub(crate) fn sees(snapshot: &dyn Snapshot, e: &Entry) -> bool {
    (e.xmin == FROZEN_XID || snapshot.sees_insert(e.xmin, e.cmin))
        && (e.xmax == NO_XID || e.lock_only || !snapshot.sees_delete(e.xmax, e.cmax))
}
