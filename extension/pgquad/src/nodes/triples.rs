//! Triples of several graphs: a quad of each, whatever graphs it is in.
//!
//! The merge of graphs has each triple once (RDF 1.1 Semantics section 4.1). In SQL that is a quad of which no equal
//! one is in a lesser graph: `NOT EXISTS (SELECT FROM quads x WHERE x.s = q.s AND x.p = q.p AND x.o = q.o AND x.g <
//! q.g)`. Where `x` and `q` are restricted in the same way, a reader that meets equal triples side by side needs no
//! look-up for that.

use crate::catalog::access_method;
use crate::nodes::scan::conditions;
use crate::pg::compat;
use crate::pg::list::{list_iter, list_node};
use crate::table;
use pgquad_btree::{Order, GRAPH};
use pgquad_exec::Bound;
use pgrx::pg_sys;

/// The relation of whose quads one of each triple remains, if that is what the anti-join with relation `test` under
/// `clauses` means.
///
/// # Safety
/// Live planner nodes; `test` is a base relation of the level.
pub unsafe fn repeats_of(
    root: *mut pg_sys::PlannerInfo,
    test: pg_sys::Index,
    clauses: &[*mut pg_sys::RestrictInfo],
) -> Option<pg_sys::Index> {
    // SAFETY: the caller's promise.
    unsafe {
        let compared: Vec<(usize, Bound, pg_sys::Index, usize)> = clauses
            .iter()
            .map(|&clause| compared(test, clause))
            .collect::<Option<_>>()?;
        let mut own = compared.iter().map(|c| c.2);
        let read = own.next()?;
        let is_of_test = |&(column, bound, _, other): &(usize, Bound, pg_sys::Index, usize)| {
            let expected = if column == GRAPH {
                Bound::Lt
            } else {
                Bound::Eq
            };
            column == other && bound == expected
        };
        if own.any(|other| other != read) || !compared.iter().all(is_of_test) {
            return None;
        }
        let has = |column: usize| compared.iter().any(|c| c.0 == column);
        if !has(GRAPH) || !is_same_table(root, test, read) {
            return None;
        }
        let (rel, other) = (relation(root, read), relation(root, test));
        let of_read: Vec<*mut pg_sys::RestrictInfo> = list_iter((*rel).baserestrictinfo).collect();
        let mut matched = Vec::new();
        for clause in list_iter::<pg_sys::RestrictInfo>((*other).baserestrictinfo) {
            matched.push(same_of(&of_read, clause, test, read)?);
        }
        // A constant that a column equals takes the place of the equality of both columns.
        let is_fixed = |column: usize| {
            matched.iter().any(|&clause| {
                conditions::match_clause(root, read, clause)
                    .is_some_and(|c| c.column == column && c.bound == Bound::Eq)
            })
        };
        let of_graph = |clause: &*mut pg_sys::RestrictInfo| is_of_graph(*clause, read);
        let mut others = of_read.iter().filter(|clause| !matched.contains(clause));
        let is_triple = (0..GRAPH).all(|column| has(column) || is_fixed(column));
        (is_triple && !others.any(of_graph) && !needs_graph(root, read, test)).then_some(read)
    }
}

/// The relation that an outer join only looks into for repeats of triples, and the one whose quads it is about.
///
/// # Safety
/// A live planner state, whose conditions are where they belong, and one of its joins.
pub unsafe fn test_of_repeats(
    root: *mut pg_sys::PlannerInfo,
    join: *mut pg_sys::SpecialJoinInfo,
) -> Option<(pg_sys::Index, pg_sys::Index)> {
    // SAFETY: the caller's promise.
    unsafe {
        let [test] = compat::members((*join).syn_righthand)[..] else {
            return None;
        };
        let test = test as pg_sys::Index;
        let rel = relation(root, test);
        if (*join).jointype != pg_sys::JoinType::JOIN_ANTI || rel.is_null() {
            return None;
        }
        let clauses: Vec<*mut pg_sys::RestrictInfo> = list_iter((*rel).joininfo).collect();
        repeats_of(root, test, &clauses).map(|read| (test, read))
    }
}

/// Whether a reader of the relation can leave out repeats: equal triples stand side by side in all orders, and
/// conditions on the graph are tested while reading.
///
/// # Safety
/// Live planner nodes; a quad table that the statement has locked.
pub unsafe fn is_readable(root: *mut pg_sys::PlannerInfo, read: pg_sys::Index) -> bool {
    // SAFETY: the caller's promise.
    unsafe {
        let table = (**(*root).simple_rte_array.add(read as usize)).relid;
        let last_is_graph =
            |orders: Vec<Order>| orders.iter().all(|order| order.position(GRAPH) == GRAPH);
        list_iter::<pg_sys::RestrictInfo>((*relation(root, read)).baserestrictinfo)
            .filter(|&clause| is_of_graph(clause, read))
            .all(|clause| conditions::match_clause(root, read, clause).is_some())
            && table::orders_of(table).is_some_and(last_is_graph)
    }
}

/// `(column, bound, relation, its column)` of a clause that compares a column of `test` with that of another relation.
unsafe fn compared(
    test: pg_sys::Index,
    clause: *mut pg_sys::RestrictInfo,
) -> Option<(usize, Bound, pg_sys::Index, usize)> {
    // SAFETY: a live clause; each cast follows a check of the tag.
    unsafe {
        let expr = (*clause).clause.cast::<pg_sys::Node>();
        if (*clause).is_pushed_down
            || (*clause).pseudoconstant
            || (*expr).type_ != pg_sys::NodeTag::T_OpExpr
        {
            return None;
        }
        let op = expr.cast::<pg_sys::OpExpr>();
        let bound = conditions::comparison((*op).opno)?;
        if pg_sys::list_length((*op).args) != 2 {
            return None;
        }
        let (left, right) = (list_node((*op).args, 0), list_node((*op).args, 1));
        let (column, other, bound) = match conditions::own_column(test, left) {
            Some(column) => (column, right, bound),
            None => (conditions::own_column(test, right)?, left, bound.commuted()),
        };
        if (*other).type_ != pg_sys::NodeTag::T_Var {
            return None;
        }
        let rti = (*other.cast::<pg_sys::Var>()).varno as pg_sys::Index;
        Some((column, bound, rti, conditions::own_column(rti, other)?))
    }
}

/// Whether both relations are the same quad table, read as the same user, with all of its rows.
unsafe fn is_same_table(
    root: *mut pg_sys::PlannerInfo,
    a: pg_sys::Index,
    b: pg_sys::Index,
) -> bool {
    // SAFETY: live planner nodes.
    unsafe {
        let entry = |rti: pg_sys::Index| *(*root).simple_rte_array.add(rti as usize);
        let is_table = |rte: *mut pg_sys::RangeTblEntry| {
            (*rte).rtekind == pg_sys::RTEKind::RTE_RELATION
                && !(*rte).inh
                && (*rte).tablesample.is_null()
                && access_method::is_quad_relid((*rte).relid)
        };
        let (a, b) = (entry(a), entry(b));
        a != b && is_table(a) && is_table(b) && (*a).relid == (*b).relid
    }
}

unsafe fn relation(root: *mut pg_sys::PlannerInfo, rti: pg_sys::Index) -> *mut pg_sys::RelOptInfo {
    // SAFETY: a live planner state, and one of its relations.
    unsafe { *(*root).simple_rel_array.add(rti as usize) }
}

/// The one of `clauses` of relation `to` that says what a clause of `from` does.
unsafe fn same_of(
    clauses: &[*mut pg_sys::RestrictInfo],
    clause: *mut pg_sys::RestrictInfo,
    from: pg_sys::Index,
    to: pg_sys::Index,
) -> Option<*mut pg_sys::RestrictInfo> {
    // SAFETY: live planner nodes; the copy is changed.
    unsafe {
        let wanted = (*clause).clause.cast::<pg_sys::Node>();
        if pg_sys::contain_volatile_functions(wanted) {
            return None;
        }
        let wanted = pg_sys::copyObjectImpl(wanted.cast()).cast::<pg_sys::Node>();
        pg_sys::ChangeVarNodes(wanted, from as i32, to as i32, 0);
        let is_same = |other: &*mut pg_sys::RestrictInfo| {
            pg_sys::equal(wanted.cast(), (**other).clause.cast())
        };
        clauses.iter().copied().find(is_same)
    }
}

/// Whether a condition of a relation reads its graph.
unsafe fn is_of_graph(clause: *mut pg_sys::RestrictInfo, rti: pg_sys::Index) -> bool {
    // SAFETY: a live clause; members are attribute numbers, offset.
    unsafe {
        let mut attributes = std::ptr::null_mut();
        pg_sys::pull_varattnos((*clause).clause.cast(), rti, &mut attributes);
        let columns = compat::members(attributes).into_iter();
        columns
            .map(|member| member + pg_sys::FirstLowInvalidHeapAttributeNumber)
            .any(|attribute| !(1..=GRAPH as i32).contains(&attribute))
    }
}

/// Whether anything but the test needs the graph of a relation.
unsafe fn needs_graph(
    root: *mut pg_sys::PlannerInfo,
    read: pg_sys::Index,
    test: pg_sys::Index,
) -> bool {
    // SAFETY: live planner nodes; the array starts with the least attribute.
    unsafe {
        let rel = relation(root, read);
        let graph = GRAPH as i32 + 1 - i32::from((*rel).min_attr);
        let needed = *(*rel).attr_needed.add(graph as usize);
        let of_test = [read as i32, test as i32];
        compat::members(needed)
            .iter()
            .any(|member| !of_test.contains(member))
    }
}
