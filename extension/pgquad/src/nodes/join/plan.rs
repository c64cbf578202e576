//! The plan node of a `Quad Join`.
//!
//! `custom_scan_tlist` = all columns that the answer or a filter reads; `custom_exprs` = the values of the parameters,
//! then the expressions of the filters; the private data is a [`JoinData`].

use super::columns::Cell;
use super::compile::compile;
use super::exec;
use super::first_rows;
use super::path::QuadJoinPath;
use super::required_properties::required_properties;
use crate::nodes::custom::{self, ChosenPath, PlanPath};
use crate::pg::compat;
use crate::pg::error::raise_hint;
use pgquad_exec::{JoinData, Kind, Oid, RowIdentityData};
use pgrx::{pg_sys, PgSqlErrorCode};

impl PlanPath for QuadJoinPath {
    type Node = super::state::QuadJoin;

    /// The clauses passed are those of the path's parameters, which its description contains.
    unsafe fn plan(chosen: ChosenPath) -> *mut pg_sys::CustomScan {
        let ChosenPath {
            root,
            rel,
            path,
            tlist,
            plans,
            ..
        } = chosen;
        // SAFETY: arguments are the planner's own, and the path is one of ours.
        unsafe {
            let join_tree = &*(*path.cast::<QuadJoinPath>()).join_tree;
            let outer_input = (*path.cast::<QuadJoinPath>()).outer_input.as_ref();
            let relids = outer_input.map_or((*rel).relids, |outer_input| outer_input.patterns);
            let relids = compat::base_relations(root, relids);
            // The target list may yet be replaced by one that computes more; it can use no other columns than these.
            let mut used = (*(*rel).reltarget).exprs;
            for &clause in outer_input
                .iter()
                .flat_map(|outer_input| &outer_input.above)
            {
                used = pg_sys::lappend(pg_sys::list_copy(used), (*clause).clause.cast());
            }
            let of_patterns = |var: &*mut pg_sys::Var| pg_sys::bms_is_member((**var).varno, relids);
            let (own, carried): (Vec<_>, Vec<_>) = compat::variables(used.cast())
                .into_iter()
                .partition(of_patterns);
            let mut output: Vec<Cell> = Vec::new();
            let mut identified: Vec<*mut pg_sys::Var> = Vec::new();
            for var in own {
                if i32::from((*var).varattno) == pg_sys::SelfItemPointerAttributeNumber {
                    identified.push(var);
                    continue;
                }
                let cell = ((*var).varno as pg_sys::Index, (*var).varattno as usize - 1);
                if !output.contains(&cell) {
                    output.push(cell);
                }
            }
            // What identifies a row is the quad itself. PostgreSQL asks for the identity of rows in EXISTS, too, though
            // nobody reads it.
            let hidden = |var: *mut pg_sys::Var| {
                let kind = outer_input.and_then(|outer_input| outer_input.kind);
                matches!(kind, Some(Kind::Semi | Kind::Anti))
                    || join_tree.hides((*var).varno as pg_sys::Index)
            };
            let visible = identified.iter().filter(|&&var| !hidden(var));
            for cell in visible.flat_map(|&var| quad_of_row(var)) {
                if !output.contains(&cell) {
                    output.push(cell);
                }
            }
            // Rows come out with what tests have read, whichever entry of the scan tuple is found for it above.
            for &cell in outer_input
                .iter()
                .flat_map(|outer_input| &outer_input.by_value)
            {
                if !output.contains(&cell) {
                    output.push(cell);
                }
            }
            // No path is made of a join that is too large (`JoinTree::size`): this would be a mistake of ours.
            let Some(compiled) = compile(root, join_tree, relids, output, outer_input) else {
                raise_hint(
                    PgSqlErrorCode::ERRCODE_PROGRAM_LIMIT_EXCEEDED,
                    "the join of quad patterns has too many conditions",
                    "Split the query, or set quad.enable_quad_join to off.",
                );
            };
            let mut columns: Vec<Cell> = compiled.output.clone();
            for (_, cells) in &compiled.tests {
                for cell in cells {
                    if !columns.contains(cell) {
                        columns.push(*cell);
                    }
                }
            }
            let place = |cell: &Cell| columns.iter().position(|c| c == cell).unwrap_or(0);

            let mut scan_tlist = scan_tlist(root, &columns, used);
            let identities = carry(&mut scan_tlist, &identified)
                .into_iter()
                .map(|(var, at)| RowIdentityData {
                    place: at,
                    columns: match hidden(var) {
                        true => Vec::new(),
                        false => quad_of_row(var).iter().map(place).collect(),
                    },
                })
                .collect();
            let mut outer_input_data = None;
            let mut above = std::ptr::null_mut();
            if let (Some(outer_input), Some(slots)) = (outer_input, &compiled.outer_input) {
                let below: *mut pg_sys::Plan = pg_sys::list_nth(plans, 0).cast();
                let carried = carry(&mut scan_tlist, &carried);
                outer_input_data = Some(outer_input.data((*below).targetlist, slots, &carried));
                for &clause in &outer_input.above {
                    above = pg_sys::lappend(above, (*clause).clause.cast());
                }
            }
            let mut exprs = std::ptr::null_mut();
            for (value, _) in &compiled.params {
                exprs = pg_sys::lappend(exprs, value.cast());
            }
            for (test, _) in &compiled.tests {
                let test = compat::as_in(test.cast(), scan_tlist);
                exprs = pg_sys::lappend(exprs, test.cast());
            }
            let relation =
                |&rti: &pg_sys::Index| pg_sys::bms_member_index(relids, rti as i32) as usize;
            let all = (*rel).relids;
            let table = |rti: &i32| pg_sys::bms_member_index(all, *rti) as usize;
            let required = required_properties(root);
            let is_limited = required.limited && !required.whole;
            let first_rows = match outer_input {
                None => first_rows::of_level(root, rel, &compiled.output),
                Some(_) => None,
            };
            // What is tested above the join may leave out any of its rows.
            let leading_key = match above.is_null() {
                true => first_rows::leading_key(root, rel, scan_tlist),
                false => None,
            };
            let places = |cells: &Vec<Cell>| cells.iter().map(place).collect();
            let data = JoinData {
                output: places(&compiled.output),
                param_types: compiled.params.iter().map(|p| Oid(p.1.to_u32())).collect(),
                tests: compiled
                    .tests
                    .iter()
                    .map(|(_, cells)| places(cells))
                    .collect(),
                relations: compiled.relations.iter().map(relation).collect(),
                tables: compat::members(relids).iter().map(table).collect(),
                outer_input: outer_input_data,
                identities,
                limited: is_limited,
                first_rows,
                leading_key,
                plan: compiled.plan,
            };
            let scan = custom::new_plan(path, tlist, &exec::SCAN_METHODS);
            (*scan).custom_exprs = exprs;
            custom::set_private(scan, &data);
            (*scan).custom_scan_tlist = scan_tlist;
            (*scan).custom_plans = plans;
            (*scan).scan.plan.qual = above;
            scan
        }
    }
}

/// Makes a plan of a join one of which perhaps only the first few rows are read.
///
/// # Safety
/// `scan` is a plan that [`QuadJoinPath`] has made.
pub unsafe fn expect_few_rows(scan: *mut pg_sys::CustomScan) {
    // SAFETY: the caller's promise.
    unsafe {
        let mut data: JoinData = custom::private_data(scan);
        data.limited = true;
        data.plan.whole = false;
        custom::set_private(scan, &data);
    }
}

/// The columns of the row that a system column belongs to.
unsafe fn quad_of_row(var: *mut pg_sys::Var) -> [Cell; 4] {
    // SAFETY: a live planner node.
    let relation = unsafe { (*var).varno as pg_sys::Index };
    std::array::from_fn(|column| (relation, column))
}

/// Adds variables that are no columns of patterns to the target entries; returns each with its place.
unsafe fn carry(
    tlist: &mut *mut pg_sys::List,
    variables: &[*mut pg_sys::Var],
) -> Vec<(*mut pg_sys::Var, usize)> {
    let mut carried: Vec<(*mut pg_sys::Var, usize)> = Vec::new();
    // SAFETY: live planner nodes.
    unsafe {
        for &var in variables {
            if carried
                .iter()
                .any(|known| pg_sys::equal(known.0.cast(), var.cast()))
            {
                continue;
            }
            let place = pg_sys::list_length(*tlist);
            let copy = pg_sys::copyObjectImpl(var.cast()).cast();
            *tlist = custom::with_entry(*tlist, copy);
            carried.push((var, place as usize));
        }
    }
    carried
}

/// Target entries for columns, as they occur in `output` if they do.
unsafe fn scan_tlist(
    root: *mut pg_sys::PlannerInfo,
    columns: &[Cell],
    output: *mut pg_sys::List,
) -> *mut pg_sys::List {
    // SAFETY: live planner nodes.
    unsafe {
        let output = compat::variables(output.cast());
        let mut tlist = std::ptr::null_mut();
        for &(relation, column) in columns {
            debug_assert!(!(*(*root).simple_rel_array.add(relation as usize)).is_null());
            let (relation, column) = (relation as i32, column as i16 + 1);
            let is_column =
                |v: &&*mut pg_sys::Var| (***v).varno == relation && (***v).varattno == column;
            let var = match output.iter().find(is_column) {
                Some(var) => pg_sys::copyObjectImpl(var.cast()).cast(),
                None => {
                    let none = pg_sys::InvalidOid;
                    pg_sys::makeVar(relation, column, pg_sys::INT8OID, -1, none, 0)
                }
            };
            tlist = custom::with_entry(tlist, var.cast());
        }
        tlist
    }
}
