//! EXPLAIN of `Quad Scan`: the order walked, the conditions its key range enforces, and with ANALYZE what it cost.

use super::exec::QuadScan;
use crate::nodes::custom::{self, explain_text as text};
use crate::pg::list::list_iter;
use pgrx::pg_sys;

/// Shows a node.
///
/// # Safety
/// `scan` is the own part of `node`, begun; the rest is EXPLAIN's own.
pub unsafe fn explain(
    scan: &QuadScan,
    node: *mut pg_sys::CustomScanState,
    ancestors: *mut pg_sys::List,
    es: *mut pg_sys::ExplainState,
) {
    // SAFETY: the caller's promise.
    unsafe {
        let way = if scan.backward { " backward" } else { "" };
        text("Index Order", &format!("{}{way}", scan.order), es);
        let plan = (*node).ss.ps.plan.cast::<pg_sys::CustomScan>();
        // The values of the conditions are followed by the conditions.
        let exprs: Vec<*mut pg_sys::Node> = list_iter((*plan).custom_exprs).collect();
        let shown = custom::deparse(node, &exprs[exprs.len() / 2..], ancestors, es);
        if !shown.is_empty() {
            text("Index Cond", &shown.join(" AND "), es);
        }
        if (*es).analyze {
            let counters = scan.counters;
            for (label, value) in [(c"Probes", counters.probes), (c"Leaves", counters.leaves)] {
                custom::explain_integer(label, value as i64, es);
            }
            if let Some(traffic) = scan.traffic() {
                custom::explain_traffic(&traffic, es);
            }
        }
    }
}
