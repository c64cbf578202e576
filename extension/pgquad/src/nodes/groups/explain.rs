//! EXPLAIN of `Quad Groups`: the order read, the columns grouped by, and what conditions do. With ANALYZE also how many
//! leaves were read, and how many were counted without being read.

use super::decoded::Decoded;
use crate::am::shape::COLUMNS;
use crate::nodes::custom::{self, explain_text as text};
use crate::nodes::scan::compared::Compared;
use crate::pg::list::list_iter;
use crate::table::TableReader;
use pgquad_btree::Work;
use pgquad_exec::Bound;
use pgrx::pg_sys;

/// What is shown of a node.
pub struct Shown<'a> {
    /// The plan, decoded.
    pub plan: &'a Decoded,
    /// What it reads from.
    pub reader: &'a TableReader,
    /// Pages read and skipped, over all rescans.
    pub work: &'a Work,
}

/// Shows a node.
///
/// # Safety
/// `groups` is of `node`, begun; the rest is EXPLAIN's own.
pub unsafe fn explain(
    groups: Shown<'_>,
    node: *mut pg_sys::CustomScanState,
    ancestors: *mut pg_sys::List,
    es: *mut pg_sys::ExplainState,
) {
    // SAFETY: the caller's promise.
    unsafe {
        let plan = groups.plan;
        let order = groups.reader.orders()[plan.order];
        let columns = order.columns();
        let names = |columns: &[u8]| {
            let names: Vec<&str> = columns.iter().map(|&c| COLUMNS[usize::from(c)]).collect();
            names.join(", ")
        };
        text("Index Order", &order.to_string(), es);
        if let Some(column) = plan.scattered {
            text("Scattered Groups", COLUMNS[column], es);
        } else if plan.grouped {
            text("Group Key", &names(&columns[..plan.depth]), es);
        }
        if plan.inner_depth > plan.depth {
            text(
                "Distinct",
                &names(&columns[plan.depth..plan.inner_depth]),
                es,
            );
        }
        let scan = (*node).ss.ps.plan.cast::<pg_sys::CustomScan>();
        let values: Vec<*mut pg_sys::Node> = list_iter((*scan).custom_exprs)
            .take(plan.compared.len())
            .collect();
        let values = custom::deparse(node, &values, ancestors, es);
        let shown: Vec<String> = plan
            .compared
            .iter()
            .zip(&values)
            .map(|(compared, value)| condition(compared, value))
            .collect();
        let (bounds, tests) = shown.split_at(plan.bounds);
        for (label, conditions) in [("Index Cond", bounds), ("Filter on Ids", tests)] {
            if !conditions.is_empty() {
                text(label, &conditions.join(" AND "), es);
            }
        }
        if (*es).analyze {
            for (label, value) in [
                (c"Leaves", groups.work.leaves),
                (c"Leaves Skipped", groups.work.skipped),
            ] {
                custom::explain_integer(label, value as i64, es);
            }
            if !groups.reader.ranges_are_sorted() {
                custom::explain_traffic(&groups.reader.traffic(), es);
            }
        }
    }
}

/// A condition as SQL.
fn condition(compared: &Compared, value: &str) -> String {
    let column = COLUMNS[compared.column];
    match compared.bound {
        Bound::Any | Bound::Within => format!("({column} = ANY ({value}))"),
        _ if compared.unequal => format!("({column} <> {value})"),
        Bound::Eq => format!("({column} = {value})"),
        Bound::Lt => format!("({column} < {value})"),
        Bound::Le => format!("({column} <= {value})"),
        Bound::Ge => format!("({column} >= {value})"),
        Bound::Gt => format!("({column} > {value})"),
    }
}
