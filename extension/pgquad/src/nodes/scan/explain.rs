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
        let direction = if scan.backward { " backward" } else { "" };
        text("Index Order", &format!("{}{direction}", scan.way.order), es);
        if let Some(other) = &scan.other {
            text("Other Index Order", &other.order.to_string(), es);
        }
        let plan = (*node).ss.ps.plan.cast::<pg_sys::CustomScan>();
        // The values of the conditions are followed by the conditions.
        let exprs: Vec<*mut pg_sys::Node> = list_iter((*plan).custom_exprs).collect();
        let shown = custom::deparse(node, &exprs[exprs.len() / 2..], ancestors, es);
        let (mut enforced, mut tested) = (Vec::new(), Vec::new());
        for (i, condition) in shown.into_iter().enumerate() {
            match scan.way.used.contains(&i) {
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
            if let Some(traffic) = scan.traffic() {
                custom::explain_traffic(&traffic, es);
            }
        }
    }
}
