//! EXPLAIN of `Quad Scan`: the order walked, the conditions its key range enforces, and with ANALYZE what it cost.

use crate::nodes::custom::{self, explain_text as text};
use crate::pg::list::list_iter;
use pgquad_btree::Order;
use pgquad_cluster::Traffic;
use pgrx::pg_sys;

/// Counters shown by EXPLAIN ANALYZE.
#[derive(Default, Clone, Copy)]
pub struct Counters {
    /// Key ranges walked.
    pub probes: u64,
    /// Leaves (batches) read.
    pub leaves: u64,
    /// Rows that have not passed the conditions which the key ranges do not enforce.
    pub removed: u64,
}

/// What is shown of a node.
pub struct Shown<'a> {
    /// The order that is walked.
    pub order: Order,
    /// The order that may be walked instead.
    pub other: Option<Order>,
    /// Whether quads come in descending order.
    pub backward: bool,
    /// The conditions that its key ranges enforce, by number.
    pub enforced: &'a [usize],
    /// Totals over all rescans.
    pub counters: Counters,
    /// What has gone over the wire, where the quads are in shards.
    pub traffic: Option<Traffic>,
}

/// Shows a node.
///
/// # Safety
/// `scan` is of `node`, begun; the rest is EXPLAIN's own.
pub unsafe fn explain(
    scan: Shown<'_>,
    node: *mut pg_sys::CustomScanState,
    ancestors: *mut pg_sys::List,
    es: *mut pg_sys::ExplainState,
) {
    // SAFETY: the caller's promise.
    unsafe {
        text("Index Order", &scan.order.to_string(), es);
        // As PostgreSQL says it of an index scan: text has no word for the usual direction.
        let is_text = (*es).format == pg_sys::ExplainFormat::EXPLAIN_FORMAT_TEXT;
        if scan.backward || !is_text {
            let direction = if scan.backward { "Backward" } else { "Forward" };
            text("Scan Direction", direction, es);
        }
        if let Some(other) = &scan.other {
            text("Other Index Order", &other.to_string(), es);
        }
        let plan = (*node).ss.ps.plan.cast::<pg_sys::CustomScan>();
        // The values of the conditions are followed by the conditions.
        let exprs: Vec<*mut pg_sys::Node> = list_iter((*plan).custom_exprs).collect();
        let shown = custom::deparse(node, &exprs[exprs.len() / 2..], ancestors, es);
        let (mut enforced, mut tested) = (Vec::new(), Vec::new());
        for (i, condition) in shown.into_iter().enumerate() {
            match scan.enforced.contains(&i) {
                true => enforced.push(condition),
                false => tested.push(condition),
            }
        }
        for (label, conditions) in [("Index Cond", &enforced), ("Filter on Ids", &tested)] {
            if !conditions.is_empty() {
                text(label, &conditions.join(" AND "), es);
            }
        }
        if (*es).analyze {
            let counters = scan.counters;
            for (label, value) in [(c"Probes", counters.probes), (c"Leaves", counters.leaves)] {
                custom::explain_integer(label, value as i64, es);
            }
            if !tested.is_empty() {
                let removed = counters.removed as i64;
                custom::explain_integer(c"Rows Removed by Filter on Ids", removed, es);
            }
            if let Some(traffic) = scan.traffic {
                custom::explain_traffic(&traffic, es);
            }
        }
    }
}
