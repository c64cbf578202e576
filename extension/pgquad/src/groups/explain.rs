//! EXPLAIN of `Quad Groups`: the order read, the columns grouped by, what conditions do, and with ANALYZE how many leaves were read and how
//! many were counted without.

use super::exec::QuadGroups;
use crate::custom;
use pgrx::pg_sys;
use pgrx::prelude::*;
use std::ffi::CString;

const COLUMNS: [&str; 4] = ["s", "p", "o", "g"];

/// The ExplainCustomScan callback.
#[pg_guard]
pub unsafe extern "C-unwind" fn explain(
    node: *mut pg_sys::CustomScanState,
    _ancestors: *mut pg_sys::List,
    es: *mut pg_sys::ExplainState,
) {
    // SAFETY: EXPLAIN passes a begun node of ours and its own state.
    unsafe {
        let groups = &*custom::own::<QuadGroups, _>(node);
        let plan = &groups.plan;
        let order = groups.reader.orders()[plan.order];
        let names = |columns: &[u8]| {
            let names: Vec<&str> = columns.iter().map(|&c| COLUMNS[usize::from(c)]).collect();
            names.join(", ")
        };
        text("Order", &names(&order).replace(", ", ""), es);
        if let Some(column) = plan.scattered {
            text("Scattered Groups", COLUMNS[column], es);
        } else if plan.grouped {
            text("Groups", &names(&order[..plan.depth]), es);
        }
        if plan.inner_depth > plan.depth {
            text("Distinct", &names(&order[plan.depth..plan.inner_depth]), es);
        }
        let (bounds, tests) = plan.compared.split_at(plan.bounds);
        for (label, conditions) in [("Quad Cond", bounds), ("Tested", tests)] {
            let mut columns: Vec<u8> = conditions.iter().map(|c| c.column as u8).collect();
            columns.dedup();
            if !columns.is_empty() {
                text(label, &names(&columns), es);
            }
        }
        if (*es).analyze {
            for (label, value) in [
                (c"Leaves", groups.work.leaves),
                (c"Leaves Skipped", groups.work.skipped),
            ] {
                pg_sys::ExplainPropertyInteger(label.as_ptr(), std::ptr::null(), value as i64, es);
            }
        }
    }
}

unsafe fn text(label: &str, value: &str, es: *mut pg_sys::ExplainState) {
    let label = CString::new(label).unwrap_or_default();
    let value = CString::new(value).unwrap_or_default();
    // SAFETY: both strings live during the call.
    unsafe { pg_sys::ExplainPropertyText(label.as_ptr(), value.as_ptr(), es) }
}
