//! EXPLAIN of `Quad Scan`: the order walked, the conditions its key range enforces, and with ANALYZE what it cost.

use super::conditions::list_node;
use super::exec::QuadScan;
use crate::custom::{self, explain_text as text};
use pgrx::pg_sys;
use pgrx::prelude::*;

/// The ExplainCustomScan callback.
#[pg_guard]
pub unsafe extern "C-unwind" fn explain(
    node: *mut pg_sys::CustomScanState,
    ancestors: *mut pg_sys::List,
    es: *mut pg_sys::ExplainState,
) {
    // SAFETY: EXPLAIN passes a begun node of ours and its own state.
    unsafe {
        let scan = &*custom::own::<QuadScan, _>(node);
        let way = if scan.backward { " backward" } else { "" };
        text("Order", &format!("{}{way}", scan.order), es);
        let plan = (*node).ss.ps.plan.cast::<pg_sys::CustomScan>();
        let exprs = (*plan).custom_exprs;
        let count = if exprs.is_null() {
            0
        } else {
            (*exprs).length as usize / 2
        };
        if count > 0 {
            let context =
                pg_sys::set_deparse_context_plan((*es).deparse_cxt, plan.cast(), ancestors);
            let shown: Vec<String> = (count..2 * count)
                .map(|i| {
                    let text = pg_sys::deparse_expression(
                        list_node(exprs, i),
                        context,
                        pg_sys::list_length((*es).rtable) > 1 || (*es).verbose,
                        false,
                    );
                    std::ffi::CStr::from_ptr(text)
                        .to_string_lossy()
                        .into_owned()
                })
                .collect();
            text("Quad Cond", &shown.join(" AND "), es);
        }
        if (*es).analyze {
            let counters = scan.counters;
            for (label, value) in [(c"Probes", counters.probes), (c"Leaves", counters.leaves)] {
                custom::explain_integer(label, value as i64, es);
            }
        }
    }
}
