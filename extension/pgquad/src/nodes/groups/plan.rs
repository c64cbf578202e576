//! The plan node of `Quad Groups`.
//!
//! `custom_scan_tlist` = the columns and aggregates that the target list, HAVING and conditions on groups use;
//! `custom_exprs` = the values of conditions; the integers of the plan are written by [`plan_path`] and read by
//! [`Decoded::read`].

use super::exec;
use super::paths::GroupsPath;
use super::shape::{output_of, Output};
use crate::nodes::counts::parts;
use crate::nodes::custom;
use crate::nodes::scan::compared::Compared;
use crate::pg::list::list_iter;
use pgrx::pg_sys;
use pgrx::prelude::*;

/// The plan as the executor sees it.
pub struct Decoded {
    /// The order that is read.
    pub order: usize,
    /// Columns that make the groups.
    pub depth: usize,
    /// Columns of the groups that are read.
    pub inner_depth: usize,
    /// The column that makes the groups if they are scattered over the order.
    pub scattered: Option<usize>,
    /// Whether rows are counted.
    pub counting: bool,
    /// Whether no rows make no group.
    pub grouped: bool,
    /// How many of the conditions make the key ranges; the others are tested on the way.
    pub bounds: usize,
    /// All conditions.
    pub compared: Vec<Compared>,
    /// What the scan tuple holds.
    pub outputs: Vec<Output>,
}

const OUTPUT_ROWS: i32 = -1;
const OUTPUT_DISTINCT: i32 = -2;

/// PlanCustomPath.
#[pg_guard]
pub unsafe extern "C-unwind" fn plan_path(
    _root: *mut pg_sys::PlannerInfo,
    _rel: *mut pg_sys::RelOptInfo,
    path: *mut pg_sys::CustomPath,
    tlist: *mut pg_sys::List,
    _clauses: *mut pg_sys::List,
    _plans: *mut pg_sys::List,
) -> *mut pg_sys::Plan {
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
                outputs.push(match output {
                    Output::Column(column) => column as i32,
                    Output::Rows => OUTPUT_ROWS,
                    Output::Distinct => OUTPUT_DISTINCT,
                });
            }
        }
        let bounds = shape.bounds.iter().map(|c| (c, false));
        let tests = shape.tests.iter().map(|t| (&t.condition, t.unequal));
        let mut words = vec![
            shape.order as i32,
            shape.depth as i32,
            shape.inner_depth as i32,
            shape.scattered.map_or(-1, |column| column as i32),
            i32::from(shape.wanted.counting),
            i32::from(shape.wanted.grouped),
            shape.bounds.len() as i32,
            (shape.bounds.len() + shape.tests.len()) as i32,
        ];
        let mut values = std::ptr::null_mut();
        for (condition, unequal) in bounds.chain(tests) {
            words.extend(Compared::encode(condition, unequal));
            values = pg_sys::lappend(values, condition.value.cast());
        }
        words.extend(outputs);

        let scan = custom::new_plan(path, tlist, &exec::SCAN_METHODS);
        (*scan).scan.plan.qual = quals;
        (*scan).scan.scanrelid = shape.relid;
        (*scan).custom_exprs = values;
        custom::set_private(scan, &[words]);
        (*scan).custom_scan_tlist = columns;
        scan.cast()
    }
}

impl Decoded {
    /// Reads the integers of a plan.
    ///
    /// # Safety
    /// `plan` is a plan made by [`plan_path`], or a copy of one.
    pub unsafe fn read(plan: *mut pg_sys::CustomScan) -> Self {
        // SAFETY: the caller's promise.
        let words = unsafe { custom::private_integers(plan, 0) };
        let (compared, outputs) = words[8..].split_at(Compared::WORDS * words[7] as usize);
        Self {
            order: words[0] as usize,
            depth: words[1] as usize,
            inner_depth: words[2] as usize,
            scattered: usize::try_from(words[3]).ok(),
            counting: words[4] != 0,
            grouped: words[5] != 0,
            bounds: words[6] as usize,
            compared: Compared::decode(compared),
            outputs: outputs
                .iter()
                .map(|&word| match word {
                    OUTPUT_ROWS => Output::Rows,
                    OUTPUT_DISTINCT => Output::Distinct,
                    column => Output::Column(column as usize),
                })
                .collect(),
        }
    }
}
