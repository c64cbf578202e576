//! Planning of `Quad Walk`, the transitive closure. Its path stands beside that of PostgreSQL's Recursive Union. Its
//! inputs are the path of the first term, and a `Quad Step` in the place of the recursive term.

use super::exec;
use super::shape::Shape;
use super::step;
use crate::nodes::custom::{self, ChosenPath, PlanPath};
use crate::pg::ffi::Methods;
use crate::pg::list::list_iter;
use crate::settings;
use pgquad_exec::WalkData;
use pgrx::pg_sys;

static PATH_METHODS: Methods<pg_sys::CustomPathMethods> = custom::path_methods::<WalkPath>();

/// PostgreSQL's path with ours behind it; the first field must be the path.
#[repr(C)]
struct WalkPath {
    path: pg_sys::CustomPath,
    arity: i32,
    at: i32,
    /// The range table index of the recursive term.
    term: pg_sys::Index,
}

/// Adds the path of a walk in the place of a recursive union.
///
/// # Safety
/// Arguments are those of `create_upper_paths_hook`, at the last stage.
pub unsafe fn add(root: *mut pg_sys::PlannerInfo, output: *mut pg_sys::RelOptInfo) {
    // SAFETY: the caller's promise.
    unsafe {
        if !settings::ENABLE_QUAD_WALK.get() || !settings::ENABLE_QUAD_SCAN.get() {
            return;
        }
        let union = list_iter::<pg_sys::Path>((*output).pathlist)
            .find(|&path| (*path).type_ == pg_sys::NodeTag::T_RecursiveUnionPath);
        if let Some(path) = union.and_then(|union| walk(root, output, union.cast())) {
            pg_sys::add_path(output, path.cast());
        }
    }
}

/// The path of a walk that does what a recursive union does, if there is one.
unsafe fn walk(
    root: *mut pg_sys::PlannerInfo,
    output: *mut pg_sys::RelOptInfo,
    union: *mut pg_sys::RecursiveUnionPath,
) -> Option<*mut WalkPath> {
    // SAFETY: live planner nodes; casts follow a check of the tag.
    unsafe {
        let recursive = (*union).rightpath;
        if (*recursive).type_ != pg_sys::NodeTag::T_SubqueryScanPath || !is_union_of_ids(root) {
            return None;
        }
        let term = (*recursive).parent;
        let inner = (*term).subroot;
        let shape = Shape::find(inner)?;
        let joined = list_iter::<pg_sys::RelOptInfo>((*inner).join_rel_list)
            .find(|&rel| pg_sys::bms_equal((*rel).relids, (*inner).all_baserels))?;
        let (arity, at) = (shape.arity as i32, shape.at as i32);

        let final_target =
            (*inner).upper_targets[pg_sys::UpperRelationKind::UPPERREL_FINAL as usize];
        let step = step::new_path(joined, final_target, shape);
        let scan = pg_sys::palloc0(size_of::<pg_sys::SubqueryScanPath>())
            .cast::<pg_sys::SubqueryScanPath>();
        *scan = *recursive.cast::<pg_sys::SubqueryScanPath>();
        (*scan).subpath = step;

        let path: *mut WalkPath = custom::new_path(output, &PATH_METHODS);
        let known = &(*union).path;
        (*path).path.path.pathtarget = known.pathtarget;
        (*path).path.path.rows = known.rows;
        (*path).path.path.startup_cost = (*(*union).leftpath).startup_cost;
        // The same rows are found, with fewer probes and less to do for each of them.
        (*path).path.path.total_cost = known.total_cost / 2.0;
        (*path).path.custom_paths = pg_sys::lappend(std::ptr::null_mut(), (*union).leftpath.cast());
        (*path).path.custom_paths = pg_sys::lappend((*path).path.custom_paths, scan.cast());
        ((*path).arity, (*path).at) = (arity, at);
        (*path).term = (*term).relid;
        Some(path)
    }
}

/// Whether the level is a UNION of rows of `bigint`.
unsafe fn is_union_of_ids(root: *mut pg_sys::PlannerInfo) -> bool {
    // SAFETY: a live planner state; the cast follows a check of the tag.
    unsafe {
        let operations = (*(*root).parse).setOperations;
        if operations.is_null() || (*operations).type_ != pg_sys::NodeTag::T_SetOperationStmt {
            return false;
        }
        let union = operations.cast::<pg_sys::SetOperationStmt>();
        !(*union).all
            && (0..pg_sys::list_length((*union).colTypes))
                .all(|n| pg_sys::list_nth_oid((*union).colTypes, n) == pg_sys::INT8OID)
    }
}

impl PlanPath for WalkPath {
    type Node = exec::QuadWalk;

    /// The columns are called those of the recursive term, as PostgreSQL's node has no names for them that EXPLAIN
    /// could show.
    unsafe fn plan(chosen: ChosenPath) -> *mut pg_sys::CustomScan {
        let ChosenPath {
            path, tlist, plans, ..
        } = chosen;
        // SAFETY: arguments are the planner's own, and the path is one of ours.
        unsafe {
            let walk = path.cast::<WalkPath>();
            let (mut columns, mut outputs) = (std::ptr::null_mut(), std::ptr::null_mut());
            for entry in list_iter::<pg_sys::TargetEntry>(tlist) {
                let place = (*entry).resno;
                for list in [&mut columns, &mut outputs] {
                    let (kind, none) = (pg_sys::INT8OID, pg_sys::InvalidOid);
                    let var = pg_sys::makeVar((*walk).term as i32, place, kind, -1, none, 0);
                    let entry = pg_sys::makeTargetEntry(var.cast(), place, (*entry).resname, false);
                    *list = pg_sys::lappend(*list, entry.cast());
                }
            }
            let scan = custom::new_plan(path, outputs, &exec::SCAN_METHODS);
            (*scan).custom_plans = plans;
            let (arity, at) = ((*walk).arity as usize, (*walk).at as usize);
            custom::set_private(scan, &WalkData { arity, at });
            (*scan).custom_scan_tlist = columns;
            scan
        }
    }
}
