//! Where the ids of an expression come from.
//!
//! An expression gives ids that may be decoded when each value that it can have is one of these:
//!
//! * a column of a quad table: the rows are those that rights and policies let through;
//! * the id of a term that was given as such, or an id that has its term in itself;
//! * the outcome of a function of ids that only passes them on, or computes such an id.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ffi::CStr;

use pgrx::pg_sys;
use pgrx::pg_sys::NodeTag::*;

use crate::catalog::access_method;
use crate::catalog::distributed_store::is_side;
use crate::cluster::guard;
use crate::pg::list::list_iter;

/// Functions and aggregates of schema quad whose ids are those of terms they are given, are their own terms, or are
/// among the ids they are given.
const PASSING: [&str; 21] = [
    "encode",
    "find",
    "id_of",
    "id_of_resource",
    "int_id",
    "cast_float",
    "cast_float_of_str",
    "add_float",
    "sub_float",
    "mul_float",
    "div_float",
    "agg_min",
    "agg_max",
    "agg_sum_float",
    "agg_avg_float",
    "id_strlen",
    "id_year",
    "id_month",
    "id_day",
    "id_hours",
    "id_minutes",
];

/// Aggregates and window functions of PostgreSQL that pass on values of their arguments.
const BUILT_IN: [u32; 12] = [
    pg_sys::F_MIN_INT8,
    pg_sys::F_MAX_INT8,
    pg_sys::F_ARRAY_AGG_ANYNONARRAY,
    pg_sys::F_FIRST_VALUE,
    pg_sys::F_LAST_VALUE,
    pg_sys::F_NTH_VALUE,
    pg_sys::F_LAG_ANYELEMENT,
    pg_sys::F_LAG_ANYELEMENT_INT4,
    pg_sys::F_LAG_ANYCOMPATIBLE_INT4_ANYCOMPATIBLE,
    pg_sys::F_LEAD_ANYELEMENT,
    pg_sys::F_LEAD_ANYELEMENT_INT4,
    pg_sys::F_LEAD_ANYCOMPATIBLE_INT4_ANYCOMPATIBLE,
];

/// Whether an expression gives ids: a bigint, or of a domain over it.
///
/// # Safety
/// A live expression.
pub unsafe fn may_be_ids(expr: *mut pg_sys::Node) -> bool {
    // SAFETY: the caller's promise; a look-up in the catalogue.
    unsafe { pg_sys::getBaseType(pg_sys::exprType(expr)) == pg_sys::INT8OID }
}

/// A query and those around it.
pub struct Level<'a> {
    /// The query.
    pub query: *mut pg_sys::Query,
    /// The query around it.
    pub parent: Option<&'a Level<'a>>,
}

impl<'a> Level<'a> {
    /// The query so many levels up.
    fn up(&'a self, levels: u32) -> Option<&'a Level<'a>> {
        (0..levels).try_fold(self, |level, _| level.parent)
    }

    /// A query within this one.
    fn inner(&'a self, query: *mut pg_sys::Query) -> Level<'a> {
        Level {
            query,
            parent: Some(self),
        }
    }
}

/// What is known of the columns of the queries of a statement.
pub struct Origins {
    schema: pg_sys::Oid,
    /// The statement is one of ours, whose parameters are ids of terms.
    own: bool,
    /// Of a query and a column; `None` while it is being found out.
    known: RefCell<HashMap<(usize, i16), Option<bool>>>,
    /// A column that is being found out has been met: that of a recursive query, in its recursive term.
    assumed: Cell<bool>,
    tables: RefCell<HashMap<pg_sys::Oid, bool>>,
}

impl Origins {
    /// Nothing yet. `schema`: that of this extension; `own`: the statement is one that this extension has made.
    pub fn new(schema: pg_sys::Oid, own: bool) -> Self {
        Self {
            schema,
            own,
            known: RefCell::default(),
            assumed: Cell::new(false),
            tables: RefCell::default(),
        }
    }

    /// Whether a function is one of this extension.
    pub fn is_ours(&self, function: pg_sys::Oid) -> bool {
        function.to_u32() >= pg_sys::FirstNormalObjectId
            // SAFETY: a look-up in the catalogue.
            && unsafe { pg_sys::get_func_namespace(function) } == self.schema
    }

    fn is_passing(&self, function: pg_sys::Oid) -> bool {
        if !self.is_ours(function) {
            return BUILT_IN.contains(&function.to_u32());
        }
        // SAFETY: a look-up in the catalogue, of a palloc'd C string.
        unsafe {
            let name = pg_sys::get_func_name(function);
            !name.is_null()
                && CStr::from_ptr(name)
                    .to_str()
                    .is_ok_and(|name| PASSING.contains(&name))
        }
    }

    /// Whether the ids, or arrays of ids, that an expression gives may be decoded.
    ///
    /// # Safety
    /// A live expression of the query of this level, before it is planned.
    pub unsafe fn is_seen(&self, node: *mut pg_sys::Node, level: &Level<'_>) -> bool {
        // SAFETY: nodes are cast after a look at their tag.
        unsafe {
            if node.is_null() {
                return false;
            }
            let one = |node: *mut pg_sys::Expr| self.is_seen(node.cast(), level);
            let all = |list: *mut pg_sys::List| {
                list_iter::<pg_sys::Node>(list).all(|node| self.is_seen(node, level))
            };
            match (*node).type_ {
                T_Var => self.variable(node.cast(), level),
                T_Const => is_plain(node.cast()),
                T_Param => {
                    let param = node.cast::<pg_sys::Param>();
                    self.own && (*param).paramkind == pg_sys::ParamKind::PARAM_EXTERN
                }
                T_FuncExpr => {
                    let call = node.cast::<pg_sys::FuncExpr>();
                    match (*call).funcid.to_u32() {
                        pg_sys::F_UNNEST_ANYARRAY => all((*call).args),
                        // A number as it is written: 0 is the default graph.
                        pg_sys::F_INT8_INT4 => list_iter::<pg_sys::Node>((*call).args)
                            .all(|number| (*number).type_ == T_Const && is_plain(number.cast())),
                        _ => self.is_ours((*call).funcid) && self.is_passing((*call).funcid),
                    }
                }
                T_Aggref => {
                    let call = node.cast::<pg_sys::Aggref>();
                    // What only the order of the rows is computed from is not passed on.
                    let arguments = list_iter::<pg_sys::TargetEntry>((*call).args)
                        .filter(|&entry| !(*entry).resjunk)
                        .map(|entry| (*entry).expr.cast());
                    self.passes_on((*call).aggfnoid, arguments, level)
                }
                T_WindowFunc => {
                    let call = node.cast::<pg_sys::WindowFunc>();
                    self.passes_on((*call).winfnoid, list_iter((*call).args), level)
                }
                T_RelabelType => one((*node.cast::<pg_sys::RelabelType>()).arg),
                T_CoerceToDomain => one((*node.cast::<pg_sys::CoerceToDomain>()).arg),
                T_CoalesceExpr => all((*node.cast::<pg_sys::CoalesceExpr>()).args),
                T_MinMaxExpr => all((*node.cast::<pg_sys::MinMaxExpr>()).args),
                T_ArrayExpr => all((*node.cast::<pg_sys::ArrayExpr>()).elements),
                T_NullIfExpr => {
                    let first = list_iter((*node.cast::<pg_sys::OpExpr>()).args).next();
                    first.is_some_and(|first| self.is_seen(first, level))
                }
                T_SubscriptingRef => {
                    let part = node.cast::<pg_sys::SubscriptingRef>();
                    (*part).refassgnexpr.is_null() && one((*part).refexpr)
                }
                T_CaseExpr => {
                    let case = node.cast::<pg_sys::CaseExpr>();
                    let branch = |branch: *mut pg_sys::CaseWhen| one((*branch).result);
                    list_iter::<pg_sys::CaseWhen>((*case).args).all(branch)
                        && ((*case).defresult.is_null() || one((*case).defresult))
                }
                T_SubLink => {
                    use pg_sys::SubLinkType::{ARRAY_SUBLINK, EXPR_SUBLINK};
                    let link = node.cast::<pg_sys::SubLink>();
                    let of_rows = matches!((*link).subLinkType, ARRAY_SUBLINK | EXPR_SUBLINK);
                    of_rows && self.column(&level.inner((*link).subselect.cast()), 1)
                }
                _ => false,
            }
        }
    }

    /// Whether a function passes on ids of its arguments, and these may be decoded.
    unsafe fn passes_on(
        &self,
        function: pg_sys::Oid,
        arguments: impl Iterator<Item = *mut pg_sys::Node>,
        level: &Level<'_>,
    ) -> bool {
        // SAFETY: as for `is_seen`.
        unsafe {
            if !self.is_passing(function) {
                return false;
            }
            if self.is_ours(function) {
                let mut ids = arguments.filter(|&argument| may_be_ids(argument));
                return ids.all(|id| self.is_seen(id, level));
            }
            // Those of PostgreSQL take values of any type. Places in a window are not what they pass on.
            let values: Vec<_> = arguments
                .filter(|&argument| pg_sys::exprType(argument) != pg_sys::INT4OID)
                .collect();
            !values.is_empty() && values.into_iter().all(|value| self.is_seen(value, level))
        }
    }

    unsafe fn variable(&self, var: *mut pg_sys::Var, level: &Level<'_>) -> bool {
        // SAFETY: as for `is_seen`.
        unsafe {
            let Some(level) = level.up((*var).varlevelsup) else {
                return false;
            };
            let column = (*var).varattno;
            let entries = (*level.query).rtable;
            if column < 1 || (*var).varno < 1 || (*var).varno > pg_sys::list_length(entries) {
                return false;
            }
            let entry: *mut pg_sys::RangeTblEntry =
                pg_sys::list_nth(entries, (*var).varno - 1).cast();
            let nth =
                |list: *mut pg_sys::List| list_iter::<pg_sys::Node>(list).nth(column as usize - 1);
            match (*entry).rtekind {
                pg_sys::RTEKind::RTE_RELATION => self.is_source((*entry).relid),
                pg_sys::RTEKind::RTE_SUBQUERY => {
                    self.column(&level.inner((*entry).subquery), column)
                }
                pg_sys::RTEKind::RTE_JOIN => {
                    nth((*entry).joinaliasvars).is_some_and(|node| self.is_seen(node, level))
                }
                pg_sys::RTEKind::RTE_VALUES => list_iter::<pg_sys::List>((*entry).values_lists)
                    .all(|row| nth(row).is_some_and(|node| self.is_seen(node, level))),
                pg_sys::RTEKind::RTE_FUNCTION => self.of_function(entry, column, level),
                pg_sys::RTEKind::RTE_CTE => self.of_cte(entry, column, level),
                _ => false,
            }
        }
    }

    unsafe fn of_function(
        &self,
        entry: *mut pg_sys::RangeTblEntry,
        column: i16,
        level: &Level<'_>,
    ) -> bool {
        let mut column = i32::from(column);
        // SAFETY: as for `is_seen`.
        unsafe {
            for function in list_iter::<pg_sys::RangeTblFunction>((*entry).functions) {
                if column <= (*function).funccolcount {
                    return self.is_seen((*function).funcexpr, level);
                }
                column -= (*function).funccolcount;
            }
        }
        // WITH ORDINALITY
        false
    }

    unsafe fn of_cte(
        &self,
        entry: *mut pg_sys::RangeTblEntry,
        column: i16,
        level: &Level<'_>,
    ) -> bool {
        // SAFETY: as for `is_seen`.
        unsafe {
            let Some(level) = level.up((*entry).ctelevelsup) else {
                return false;
            };
            let name = CStr::from_ptr((*entry).ctename);
            let cte = list_iter::<pg_sys::CommonTableExpr>((*level.query).cteList)
                .find(|&cte| CStr::from_ptr((*cte).ctename) == name);
            cte.is_some_and(|cte| {
                (*(*cte).ctequery).type_ == T_Query
                    && self.column(&level.inner((*cte).ctequery.cast()), column)
            })
        }
    }

    /// Whether a column of the result of a query has ids that may be decoded.
    ///
    /// # Safety
    /// As for [`Self::is_seen`].
    pub unsafe fn column(&self, level: &Level<'_>, column: i16) -> bool {
        let key = (level.query as usize, column);
        let known = self.known.borrow().get(&key).copied();
        match known {
            Some(Some(known)) => return known,
            // All that comes of a recursive query comes of its other terms, if its recursive one only passes it on.
            Some(None) => {
                self.assumed.set(true);
                return true;
            }
            None => {}
        }
        self.known.borrow_mut().insert(key, None);
        let assumed_outside = self.assumed.replace(false);
        // SAFETY: the caller's promise.
        let seen = unsafe { self.find_column(level, column) };
        self.known.borrow_mut().remove(&key);
        // What rests upon an assumption holds only for whoever has made it.
        let outermost = !self.known.borrow().values().any(Option::is_none);
        if outermost || !self.assumed.get() {
            self.known.borrow_mut().insert(key, Some(seen));
        }
        let assumed = self.assumed.get() && !outermost;
        self.assumed.set(assumed_outside || assumed);
        seen
    }

    unsafe fn find_column(&self, level: &Level<'_>, column: i16) -> bool {
        // SAFETY: as for `is_seen`.
        unsafe {
            let query = level.query;
            if !(*query).setOperations.is_null() {
                return self.of_union((*query).setOperations, level, column);
            }
            let entries = match (*query).commandType {
                pg_sys::CmdType::CMD_SELECT => (*query).targetList,
                _ => (*query).returningList,
            };
            list_iter::<pg_sys::TargetEntry>(entries)
                .find(|&entry| (*entry).resno == column)
                .is_some_and(|entry| self.is_seen((*entry).expr.cast(), level))
        }
    }

    unsafe fn of_union(&self, node: *mut pg_sys::Node, level: &Level<'_>, column: i16) -> bool {
        // SAFETY: as for `is_seen`; the leaves of set operations are subqueries.
        unsafe {
            if (*node).type_ == T_SetOperationStmt {
                let union = node.cast::<pg_sys::SetOperationStmt>();
                return self.of_union((*union).larg, level, column)
                    && self.of_union((*union).rarg, level, column);
            }
            let place = (*node.cast::<pg_sys::RangeTblRef>()).rtindex;
            let entry: *mut pg_sys::RangeTblEntry =
                pg_sys::list_nth((*level.query).rtable, place - 1).cast();
            self.column(&level.inner((*entry).subquery), column)
        }
    }

    /// Whether all ids in a table have come into it as [`super::writes`] says: a quad table, and no other table that is
    /// read with it.
    fn is_source(&self, relid: pg_sys::Oid) -> bool {
        if let Some(&known) = self.tables.borrow().get(&relid) {
            return known;
        }
        let is_source = access_method::is_quad_relid(relid)
            && !has_children(relid)
            && (is_side(relid) || !guard::is_citus_table(relid));
        self.tables.borrow_mut().insert(relid, is_source);
        is_source
    }
}

/// Whether other tables are, or have been, read together with a table, which may be of any kind.
fn has_children(relid: pg_sys::Oid) -> bool {
    // SAFETY: a syscache look-up; the tuple is released before the end.
    unsafe {
        let tuple = pg_sys::SearchSysCache1(
            pg_sys::SysCacheIdentifier::RELOID as i32,
            pg_sys::Datum::from(relid),
        );
        if tuple.is_null() {
            return true;
        }
        let class = pg_sys::GETSTRUCT(tuple).cast::<pg_sys::FormData_pg_class>();
        let found = (*class).relhassubclass;
        pg_sys::ReleaseSysCache(tuple);
        found
    }
}

/// Whether a constant is an id that has its term in itself, or no id.
unsafe fn is_plain(constant: *mut pg_sys::Const) -> bool {
    // SAFETY: a live node.
    unsafe {
        let value = (*constant).constvalue.value();
        let id = match (*constant).consttype {
            pg_sys::INT8OID => value as i64,
            pg_sys::INT4OID => i64::from(value as i32),
            _ => return (*constant).constisnull,
        };
        (*constant).constisnull || !super::is_of_dictionary(id)
    }
}
