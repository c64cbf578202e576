//! The walk through a statement before it is planned. It finds the calls that get ids which may be decoded, and whether
//! the statement writes only such ids into quad tables.

use std::ffi::{c_char, c_void};

use pgrx::pg_sys;
use pgrx::prelude::*;

use super::origin::{Level, Origins};
use super::{notes, own_statements, SEEN};
use crate::am::table_as;
use crate::cluster::{guard, moves};
use crate::pg::ffi;
use crate::pg::list::list_iter;
use crate::settings;

static mut PREVIOUS_PLANNER: pg_sys::planner_hook_type = None;
static mut PREVIOUS_EXPLAIN: pg_sys::ExplainOneQuery_hook_type = None;

/// Installs the hooks; called once from `_PG_init`.
pub fn init() {
    // SAFETY: _PG_init runs once, before any statement.
    unsafe {
        PREVIOUS_PLANNER = pg_sys::planner_hook;
        pg_sys::planner_hook = Some(plan);
        // PostgreSQL itself plans what it explains under the statement's text.
        let previous = pg_sys::ExplainOneQuery_hook;
        PREVIOUS_EXPLAIN = previous;
        if previous.is_some() {
            pg_sys::ExplainOneQuery_hook = Some(explain);
        }
    }
}

/// Notes which query it is that another library explains.
#[pg_guard]
unsafe extern "C-unwind" fn explain(
    query: *mut pg_sys::Query,
    options: core::ffi::c_int,
    into: *mut pg_sys::IntoClause,
    es: *mut pg_sys::ExplainState,
    text: *const c_char,
    params: pg_sys::ParamListInfo,
    environment: *mut pg_sys::QueryEnvironment,
) {
    let _explained = own_statements::Explained::begin(query, text);
    // SAFETY: arguments are PostgreSQL's own and passed on; an error drops what is noted here.
    unsafe {
        if let Some(previous) = PREVIOUS_EXPLAIN {
            pg_sys::ffi::pg_guard_ffi_boundary(|| {
                previous(query, options, into, es, text, params, environment);
            });
        }
    }
}

/// Plans a statement that has been looked at. Owns nothing that an error would have to drop.
unsafe extern "C-unwind" fn plan(
    query: *mut pg_sys::Query,
    text: *const c_char,
    options: core::ffi::c_int,
    params: pg_sys::ParamListInfo,
) -> *mut pg_sys::PlannedStmt {
    // SAFETY: arguments are PostgreSQL's own and passed on; the planner may change the query, too.
    unsafe {
        let notes = look(query, text);
        let previous = PREVIOUS_PLANNER.unwrap_or(ffi::unguarded::standard_planner);
        let planned = previous(query, text, options, params);
        if !planned.is_null() {
            (*planned).jitFlags |= notes;
        }
        planned
    }
}

/// Marks the calls of a statement; gives the notes of [`notes`] on it.
#[pg_guard]
unsafe extern "C-unwind" fn look(query: *mut pg_sys::Query, text: *const c_char) -> i32 {
    // SAFETY: a live query.
    unsafe {
        let schema = pg_sys::get_namespace_oid(c"quad".as_ptr(), true);
        if schema == pg_sys::InvalidOid {
            return 0;
        }
        guard::check_policies(query);
        guard::check_targets(query);
        if settings::MOVE_AS_SORTED_RUNS.get() {
            moves::take_over_copy(query);
        }
        let origins = Origins::new(schema, own_statements::contains(query, text));
        let level = Level {
            query,
            parent: None,
        };
        let mut walk = Walk {
            origins: &origins,
            level: &level,
            writes_seen: notes::are_seen(&origins, &level),
            sorts_seen: notes::are_sorts_seen(&origins, &level),
        };
        walk.query();
        let mut found = 0;
        if walk.writes_seen {
            found |= notes::WRITES_SEEN;
        }
        if walk.sorts_seen {
            found |= notes::SORTS_SEEN;
        }
        if table_as::is_running() && notes::are_rows_seen(&origins, &level) {
            found |= notes::ROWS_SEEN;
        }
        found
    }
}

struct Walk<'a> {
    origins: &'a Origins,
    level: &'a Level<'a>,
    writes_seen: bool,
    sorts_seen: bool,
}

impl Walk<'_> {
    unsafe fn query(&mut self) {
        // SAFETY: a live query; the walk lives as long as the call.
        unsafe {
            let context = std::ptr::from_mut(self).cast();
            ffi::query_tree_walker(self.level.query, visit, context);
        }
    }

    /// Marks a call if all of its ids come from where they may be decoded.
    unsafe fn call(
        &self,
        function: pg_sys::Oid,
        arguments: impl Iterator<Item = *mut pg_sys::Node>,
        collation: *mut pg_sys::Oid,
    ) {
        // SAFETY: live nodes.
        unsafe {
            if !self.origins.is_ours(function) {
                return;
            }
            let mut ids = arguments.filter(|&argument| {
                matches!(
                    pg_sys::exprType(argument),
                    pg_sys::INT8OID | pg_sys::INT8ARRAYOID
                )
            });
            // Other calls keep their collation, by which the planner tells apart what it sorts and joins by.
            let Some(first) = ids.next() else { return };
            let is_seen = |id| self.origins.is_seen(id, self.level);
            if is_seen(first) && ids.all(is_seen) {
                *collation = SEEN;
            }
        }
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn visit(node: *mut pg_sys::Node, walk: *mut c_void) -> bool {
    use pg_sys::NodeTag::{
        T_Aggref, T_DistinctExpr, T_FuncExpr, T_NullIfExpr, T_OpExpr, T_Query, T_ScalarArrayOpExpr,
        T_WindowFunc,
    };
    // SAFETY: nodes are cast after a look at their tag; the context is the walk that `Walk::query` has passed.
    unsafe {
        if node.is_null() {
            return false;
        }
        let outer = &mut *walk.cast::<Walk<'_>>();
        match (*node).type_ {
            T_Query => {
                let level = Level {
                    query: node.cast(),
                    parent: Some(outer.level),
                };
                let mut inner = Walk {
                    origins: outer.origins,
                    level: &level,
                    writes_seen: notes::are_seen(outer.origins, &level),
                    sorts_seen: notes::are_sorts_seen(outer.origins, &level),
                };
                inner.query();
                let (writes_seen, sorts_seen) = (inner.writes_seen, inner.sorts_seen);
                outer.writes_seen &= writes_seen;
                outer.sorts_seen &= sorts_seen;
                return false;
            }
            T_FuncExpr => {
                let call = node.cast::<pg_sys::FuncExpr>();
                let collation = &raw mut (*call).inputcollid;
                outer.call((*call).funcid, list_iter((*call).args), collation);
            }
            T_OpExpr | T_DistinctExpr | T_NullIfExpr => {
                let call = node.cast::<pg_sys::OpExpr>();
                let collation = &raw mut (*call).inputcollid;
                outer.call((*call).opfuncid, list_iter((*call).args), collation);
            }
            T_ScalarArrayOpExpr => {
                let call = node.cast::<pg_sys::ScalarArrayOpExpr>();
                let collation = &raw mut (*call).inputcollid;
                outer.call((*call).opfuncid, list_iter((*call).args), collation);
            }
            T_Aggref => {
                let call = node.cast::<pg_sys::Aggref>();
                for keys in [(*call).aggorder, (*call).aggdistinct] {
                    outer.sorts_seen &=
                        notes::is_sort_seen(outer.origins, outer.level, keys, (*call).args);
                }
                let collation = &raw mut (*call).inputcollid;
                let arguments = list_iter::<pg_sys::TargetEntry>((*call).args)
                    .map(|entry| (*entry).expr.cast());
                outer.call((*call).aggfnoid, arguments, collation);
            }
            T_WindowFunc => {
                let call = node.cast::<pg_sys::WindowFunc>();
                let collation = &raw mut (*call).inputcollid;
                outer.call((*call).winfnoid, list_iter((*call).args), collation);
            }
            _ => {}
        }
        ffi::expression_tree_walker(node, visit, walk)
    }
}
