//! The path and the plan of `Quad Groups`.
//!
//! `custom_scan_tlist` = the columns and aggregates that the target list, HAVING and conditions on groups use;
//! `custom_exprs` = the values of conditions; the private data is a [`GroupsData`].

use super::exec;
use super::shape::{output_of, Shape};
use crate::nodes::counts::parts;
use crate::nodes::custom::{self, ChosenPath, PlanPath};
use crate::pg::list::list_iter;
use pgquad_exec::GroupsData;
use pgrx::pg_sys;

/// PostgreSQL's path with ours behind it; the first field must be the path.
#[repr(C)]
pub struct GroupsPath {
    pub path: pg_sys::CustomPath,
    /// How the query is answered; lives in the planner's memory.
    pub shape: *const Shape,
}

impl PlanPath for GroupsPath {
    type Node = exec::QuadGroups;

    unsafe fn plan(chosen: ChosenPath) -> *mut pg_sys::CustomScan {
        let ChosenPath { path, tlist, .. } = chosen;
        // SAFETY: arguments are the planner's own, and the path is one of ours.
        unsafe {
            let shape = &*(*path.cast::<GroupsPath>()).shape;
            let mut quals = std::ptr::null_mut();
            for &clause in &shape.rest {
                quals = pg_sys::lappend(quals, (*clause).clause.cast());
            }
            quals = pg_sys::list_concat(quals, shape.having);

            let mut columns: *mut pg_sys::List = std::ptr::null_mut();
            let mut outputs = Vec::new();
            for list in [(*(*path).path.pathtarget).exprs, quals] {
                for node in parts(list) {
                    let known = list_iter::<pg_sys::TargetEntry>(columns)
                        .any(|entry| pg_sys::equal((*entry).expr.cast(), node.cast()));
                    let Some(output) = output_of(shape.relid, node).filter(|_| !known) else {
                        continue;
                    };
                    columns = custom::with_entry(columns, node.cast());
                    outputs.push(output);
                }
            }
            let bounds = shape.bounds.iter().map(|c| (c, false));
            let tests = shape.tests.iter().map(|t| (&t.condition, t.unequal));
            let (mut compared, mut values) = (Vec::new(), std::ptr::null_mut());
            for (condition, unequal) in bounds.chain(tests) {
                compared.push(condition.data(unequal));
                values = pg_sys::lappend(values, condition.value.cast());
            }
            let data = GroupsData {
                order: shape.order,
                depth: shape.depth,
                inner_depth: shape.inner_depth,
                scattered: shape.scattered,
                counting: shape.wanted.counting,
                grouped: shape.wanted.grouped,
                bounds: shape.bounds.len(),
                compared,
                outputs,
            };

            let scan = custom::new_plan(path, tlist, &exec::SCAN_METHODS);
            (*scan).scan.plan.qual = quals;
            (*scan).scan.scanrelid = shape.relid;
            (*scan).custom_exprs = values;
            custom::set_private(scan, &data);
            (*scan).custom_scan_tlist = columns;
            scan
        }
    }
}
