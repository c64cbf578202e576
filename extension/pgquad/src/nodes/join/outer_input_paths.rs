//! Outer input, planned: joins of patterns with the rows of another plan (a subquery, a list of values, a function).
//!
//! The patterns are neither probed for each of those rows (nested loop) nor read whole (hash join). The pipeline takes
//! the rows in batches, as if an earlier pattern had found them.

use super::columns::{equal_columns, Cell};
use super::value_equality;
use crate::pg::error::raise;
use crate::pg::list::list_iter;
use pgquad_exec::{Kind, OuterInputData, Slot};
use pgrx::{pg_sys, PgSqlErrorCode};

/// What a join takes from the plan below it.
pub struct OuterInputPath {
    /// How the patterns take part for each row; `None` = inner join.
    pub kind: Option<Kind>,
    /// Relations of the patterns.
    pub patterns: pg_sys::Relids,
    /// Equalities of columns of the plan below with columns of the patterns, or of their values.
    pub keys: Vec<*mut pg_sys::RestrictInfo>,
    /// The columns of the plan below in `keys`.
    pub columns: Vec<Cell>,
    /// Those of which the values are compared: tests read them.
    pub by_value: Vec<Cell>,
    /// Conditions on joined rows.
    pub above: Vec<*mut pg_sys::RestrictInfo>,
}

impl OuterInputPath {
    /// Relations of patterns, and those that the columns of the plan below are of.
    ///
    /// # Safety
    /// A set of the level that is being planned.
    pub unsafe fn with_columns(&self, patterns: pg_sys::Relids) -> pg_sys::Relids {
        // SAFETY: the caller's promise; the set is copied before it is added to.
        unsafe {
            self.columns
                .iter()
                .fold(pg_sys::bms_copy(patterns), |all, column| {
                    pg_sys::bms_add_member(all, column.0 as i32)
                })
        }
    }

    /// The part of it that the plan carries. `slots` are the variables of the columns and of the row number. `carried`
    /// has the places of the columns that are carried along.
    ///
    /// # Safety
    /// `below` is the target list of the plan below.
    pub unsafe fn data(
        &self,
        below: *mut pg_sys::List,
        slots: &(Vec<Slot>, Slot),
        carried: &[(*mut pg_sys::Var, usize)],
    ) -> OuterInputData {
        // SAFETY: live planner nodes.
        unsafe {
            let entries: Vec<*mut pg_sys::Expr> = list_iter::<pg_sys::TargetEntry>(below)
                .map(|entry| (*entry).expr)
                .collect();
            let number = |found: Option<usize>| {
                found.unwrap_or_else(|| {
                    raise(
                        PgSqlErrorCode::ERRCODE_INTERNAL_ERROR,
                        "a plan below a Quad Join lacks a column",
                    )
                })
            };
            let column = |cell: &Cell| {
                number(entries.iter().position(|&expr| {
                    let var = expr.cast::<pg_sys::Var>();
                    (*expr.cast::<pg_sys::Node>()).type_ == pg_sys::NodeTag::T_Var
                        && (*var).varno as pg_sys::Index == cell.0
                        && (*var).varattno as usize == cell.1 + 1
                }))
            };
            let place = |var: *mut pg_sys::Var| {
                number(
                    entries
                        .iter()
                        .position(|&expr| pg_sys::equal(expr.cast(), var.cast())),
                )
            };
            let keeps = matches!(self.kind, Some(Kind::Left | Kind::Anti));
            let with_slot = |(cell, &slot)| (column(cell), slot);
            OuterInputData {
                row: slots.1,
                keeps,
                keys: self.columns.iter().zip(&slots.0).map(with_slot).collect(),
                carried: carried.iter().map(|&(var, to)| (place(var), to)).collect(),
            }
        }
    }

    /// `None` where no equality connects the two sides, or some condition cannot be tested.
    ///
    /// # Safety
    /// Live planner nodes of one join.
    pub unsafe fn new(
        joined: *mut pg_sys::RelOptInfo,
        outer: *mut pg_sys::RelOptInfo,
        inner: *mut pg_sys::RelOptInfo,
        kind: pg_sys::JoinType::Type,
        restrictions: *mut pg_sys::List,
    ) -> Option<Self> {
        use pg_sys::JoinType::*;
        // SAFETY: live planner nodes.
        unsafe {
            let mut outer_input = Self {
                kind: match kind {
                    JOIN_INNER => None,
                    JOIN_LEFT => Some(Kind::Left),
                    JOIN_SEMI => Some(Kind::Semi),
                    JOIN_ANTI => Some(Kind::Anti),
                    _ => return None,
                },
                patterns: (*inner).relids,
                keys: Vec::new(),
                columns: Vec::new(),
                by_value: Vec::new(),
                above: Vec::new(),
            };
            let both = pg_sys::bms_union((*outer).relids, (*inner).relids);
            for clause in list_iter::<pg_sys::RestrictInfo>(restrictions) {
                // Of an outer join, such a condition is tested on the joined rows (RINFO_IS_PUSHED_DOWN of
                // nodes/pathnodes.h).
                let on_joined = outer_input.kind.is_some_and(|kind| kind != Kind::Semi)
                    && ((*clause).is_pushed_down
                        || !pg_sys::bms_is_subset((*clause).required_relids, (*joined).relids));
                match key(clause, outer, inner).filter(|_| !on_joined) {
                    Some(column) => {
                        outer_input.keys.push(clause);
                        if equal_columns(clause, both).is_none() {
                            outer_input.by_value.push(column);
                        }
                        if !outer_input.columns.contains(&column) {
                            outer_input.columns.push(column);
                        }
                    }
                    None if outer_input.kind.is_none()
                        || (on_joined && outer_input.kind == Some(Kind::Left)) =>
                    {
                        outer_input.above.push(clause);
                    }
                    None => return None,
                }
            }
            // A row that stays for want of one key would lose the others.
            let keeps = matches!(outer_input.kind, Some(Kind::Left | Kind::Anti));
            let loses = keeps && !outer_input.by_value.is_empty() && outer_input.columns.len() > 1;
            (!outer_input.keys.is_empty() && !loses).then_some(outer_input)
        }
    }
}

/// The column of `outer` that a clause compares with a column of `inner` for equality, of ids or of values.
unsafe fn key(
    clause: *mut pg_sys::RestrictInfo,
    outer: *mut pg_sys::RelOptInfo,
    inner: *mut pg_sys::RelOptInfo,
) -> Option<Cell> {
    // SAFETY: live planner nodes.
    unsafe {
        let both = pg_sys::bms_union((*outer).relids, (*inner).relids);
        let by_value = || value_equality::compared((*clause).clause.cast(), both);
        let (a, b) = equal_columns(clause, both).or_else(by_value)?;
        let of_inner = |cell: Cell| pg_sys::bms_is_member(cell.0 as i32, (*inner).relids);
        match (of_inner(a), of_inner(b)) {
            (false, true) => Some(a),
            (true, false) => Some(b),
            _ => None,
        }
    }
}
