//! What the planner notes of a statement, and where the notes are read while it runs.
//!
//! * Quad tables take ids that may be decoded, and bare ones only from those who may decode any. Otherwise a table of
//!   one's own, filled with numbers, would show all terms. The access method looks at each quad where there is no note
//!   ([`check_writes`]): rows of COPY, of CREATE TABLE AS, of `VALUES (1, 2, 3, 0)`.
//! * Sorting ids in the order of their terms tells what the terms are, too ([`check_sort`]).

use pgquad_btree::Quad;
use pgrx::{pg_sys, PgSqlErrorCode};

use super::origin::{may_be_ids, Level, Origins};
use crate::am::{ddl, table_as};
use crate::catalog::access_method;
use crate::cluster::guard;
use crate::pg::error::raise_all;
use crate::pg::list::list_iter;
use crate::pg::statement_state::StatementState;

/// Notes of a plan, in bits of its JIT flags that PostgreSQL does not use. They say what holds no bare ids: what its
/// INSERTs and UPDATEs write, the rows of its answer, or what it sorts in the order of terms.
pub const WRITES_SEEN: i32 = 1 << 30;
/// See [`WRITES_SEEN`].
pub const ROWS_SEEN: i32 = 1 << 29;
/// See [`WRITES_SEEN`].
pub const SORTS_SEEN: i32 = 1 << 28;

/// What needs no check in the running statement: it uses no bare ids there, or its user may decode them.
#[derive(Clone, Copy)]
pub struct Allowed {
    writes: bool,
    sorts: bool,
    /// The statement is an ALTER TABLE, which may write the quads of a table into a new file (`SET UNLOGGED`).
    rewrites: bool,
}

/// While nothing runs.
const NOTHING: Allowed = Allowed {
    writes: false,
    sorts: false,
    rewrites: false,
};

thread_local! {
    static ALLOWED: StatementState<Allowed> = const { StatementState::new(NOTHING) };
}

fn allowed() -> Allowed {
    ALLOWED.with(StatementState::get)
}

fn replace(allowed: Allowed) -> Allowed {
    ALLOWED.with(|state| state.replace(allowed))
}

/// Begins to run a plan; gives what [`leave`] wants.
///
/// # Safety
/// A live plan.
pub unsafe fn enter(plan: *const pg_sys::PlannedStmt) -> Allowed {
    // SAFETY: the caller's promise.
    let (notes, reads) = unsafe {
        let reads = (*plan).commandType == pg_sys::CmdType::CMD_SELECT && !(*plan).hasModifyingCTE;
        ((*plan).jitFlags, reads)
    };
    // What a plan that only reads has written is its rows.
    let rows = reads || table_as::is_running();
    replace(Allowed {
        writes: notes & WRITES_SEEN != 0 && (!rows || notes & ROWS_SEEN != 0),
        sorts: notes & SORTS_SEEN != 0,
        rewrites: false,
    })
}

/// Begins to run a utility statement; gives what [`leave`] wants.
pub fn enter_utility(tag: pg_sys::NodeTag) -> Allowed {
    replace(Allowed {
        rewrites: tag == pg_sys::NodeTag::T_AlterTableStmt,
        ..NOTHING
    })
}

/// The statement that was running before goes on.
pub fn leave(outer: Allowed) {
    replace(outer);
}

/// A subtransaction begins.
pub fn begin_subtransaction() {
    ALLOWED.with(StatementState::begin_subtransaction);
}

/// A subtransaction ends; `failed`: an error has left what ran within it.
pub fn end_subtransaction(failed: bool) {
    ALLOWED.with(|state| state.end_subtransaction(failed));
}

/// Nothing is running; called at the end of a transaction.
pub fn forget() {
    ALLOWED.with(|state| state.reset(NOTHING));
}

/// Raises an error where quads that are written into `rel` hold bare ids that the current user may not write.
///
/// # Safety
/// An open relation.
pub unsafe fn check_writes(rel: pg_sys::Relation, quads: &[Quad]) {
    let allowed = allowed();
    let is_bare = |&(column, &id): &(usize, &i64)| {
        !super::is_term_id(column, id) || !allowed.writes && super::is_of_dictionary(id)
    };
    let mut ids = quads.iter().flat_map(|quad| quad.iter().enumerate());
    let Some((_, id)) = ids.find(is_bare) else {
        return;
    };
    // Ids that a quad table has already.
    // SAFETY: the caller's promise.
    if allowed.rewrites && unsafe { ddl::is_rewrite_of_quads(rel) } {
        return;
    }
    // SAFETY: the caller's promise.
    let decided = || unsafe { guard::is_written_by_citus(rel) };
    if !super::may_decode() && !decided() {
        raise_all(
            PgSqlErrorCode::ERRCODE_INSUFFICIENT_PRIVILEGE,
            "permission denied for writing bare ids",
            format!("Id {id} does not come from a term, or from a column of a quad table, in this statement."),
            "Give the term, as in VALUES (quad.encode('<http://example.org/s>'), ..). SELECT on quad.terms is the right to use any id.",
        );
    }
    // The rest of the statement is written by the same user.
    replace(Allowed {
        writes: true,
        ..allowed
    });
}

/// Raises an error where a sort by the terms of ids begins that the current user may not see.
pub fn check_sort() {
    if !allowed().sorts && !super::may_decode() {
        raise_all(
            PgSqlErrorCode::ERRCODE_INSUFFICIENT_PRIVILEGE,
            "permission denied for sorting bare ids by their terms",
            "The ids do not all come from columns of quad tables in this statement.",
            "Sort ids of a quad table. SELECT on quad.terms is the right to use any id.",
        );
    }
}

/// Whether what a query itself sorts in the order of terms are ids that may be decoded.
///
/// # Safety
/// A live query that is not planned yet.
pub unsafe fn are_sorts_seen(origins: &Origins, level: &Level<'_>) -> bool {
    // SAFETY: the caller's promise.
    unsafe {
        let query = level.query;
        let windows = list_iter::<pg_sys::WindowClause>((*query).windowClause);
        let mut lists = vec![
            (*query).sortClause,
            (*query).distinctClause,
            (*query).groupClause,
        ];
        lists.extend(windows.flat_map(|window| [(*window).partitionClause, (*window).orderClause]));
        lists
            .into_iter()
            .all(|list| is_sort_seen(origins, level, list, (*query).targetList))
    }
}

/// Whether a list of sort keys, which refer to target entries, sorts no bare ids in the order of their terms.
///
/// # Safety
/// As for [`are_sorts_seen`].
pub unsafe fn is_sort_seen(
    origins: &Origins,
    level: &Level<'_>,
    keys: *mut pg_sys::List,
    entries: *mut pg_sys::List,
) -> bool {
    // SAFETY: the caller's promise; look-ups in the catalogue.
    unsafe {
        list_iter::<pg_sys::SortGroupClause>(keys).all(|key| {
            let by_terms = |operator: pg_sys::Oid| {
                operator.to_u32() >= pg_sys::FirstNormalObjectId
                    && origins.is_ours(pg_sys::get_opcode(operator))
            };
            if !by_terms((*key).sortop) && !by_terms((*key).eqop) {
                return true;
            }
            list_iter::<pg_sys::TargetEntry>(entries)
                .filter(|&entry| (*entry).ressortgroupref == (*key).tleSortGroupRef)
                .all(|entry| {
                    let expr = (*entry).expr.cast();
                    // The columns of a set operation are named after its first part, and come from all.
                    let of_parts = entries == (*level.query).targetList
                        && !(*level.query).setOperations.is_null();
                    !may_be_ids(expr)
                        || match of_parts {
                            true => origins.column(level, (*entry).resno),
                            false => origins.is_seen(expr, level),
                        }
                })
        })
    }
}

/// Whether what a query itself writes into quad tables are ids that may be decoded.
///
/// # Safety
/// A live query that is not planned yet.
pub unsafe fn are_seen(origins: &Origins, level: &Level<'_>) -> bool {
    use pg_sys::CmdType::{CMD_INSERT, CMD_MERGE, CMD_UPDATE};
    // SAFETY: the caller's promise.
    unsafe {
        let query = level.query;
        let seen = |entry: *mut pg_sys::TargetEntry| {
            (*entry).resjunk
                || pg_sys::exprType((*entry).expr.cast()) != pg_sys::INT8OID
                || origins.is_seen((*entry).expr.cast(), level)
        };
        let all_seen = |list| list_iter::<pg_sys::TargetEntry>(list).all(seen);
        match (*query).commandType {
            CMD_INSERT | CMD_UPDATE | CMD_MERGE => {
                takes_as_given(query)
                    && all_seen((*query).targetList)
                    && list_iter::<pg_sys::MergeAction>((*query).mergeActionList)
                        .all(|action| all_seen((*action).targetList))
            }
            _ => true,
        }
    }
}

/// Whether the rows of a query, which may become a table, hold only ids that may be decoded.
///
/// # Safety
/// As for [`are_seen`].
pub unsafe fn are_rows_seen(origins: &Origins, level: &Level<'_>) -> bool {
    // SAFETY: the caller's promise.
    unsafe {
        list_iter::<pg_sys::TargetEntry>((*level.query).targetList).all(|entry| {
            (*entry).resjunk
                || pg_sys::exprType((*entry).expr.cast()) != pg_sys::INT8OID
                || origins.column(level, (*entry).resno)
        })
    }
}

/// Whether rows reach the table that a query writes as the query makes them, if it is a quad table.
unsafe fn takes_as_given(query: *mut pg_sys::Query) -> bool {
    // SAFETY: the table is locked since the query was parsed or rewritten.
    unsafe {
        let entries = list_iter::<pg_sys::RangeTblEntry>((*query).rtable);
        let Some(entry) = entries
            .into_iter()
            .nth((*query).resultRelation as usize - 1)
        else {
            return false;
        };
        if !access_method::is_quad_relid((*entry).relid) {
            return (*entry).relkind as u8 != pg_sys::RELKIND_PARTITIONED_TABLE;
        }
        let table = pg_sys::table_open((*entry).relid, pg_sys::NoLock as pg_sys::LOCKMODE);
        let triggers = (*table).trigdesc;
        let changed = !triggers.is_null()
            && ((*triggers).trig_insert_before_row || (*triggers).trig_update_before_row);
        let constraints = (*(*table).rd_att).constr;
        let generated = !constraints.is_null() && (*constraints).has_generated_stored;
        pg_sys::table_close(table, pg_sys::NoLock as pg_sys::LOCKMODE);
        !changed && !generated
    }
}
