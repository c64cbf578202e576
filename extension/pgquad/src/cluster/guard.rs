//! What is refused under Citus, because it would lose quads or answer wrongly without a word.
//!
//! * Functions that work on the pages of a quad table refuse a table that Citus manages. The relation that carries its
//!   name on a node is an empty shell, and the quads are in its shards.
//! * The tables of the dictionary refuse to be distributed, truncated, renamed and moved by users. Code of this
//!   extension that does so on purpose says so with [`allow_dictionary_changes`].
//! * A statement refuses to read a quad table under row-level security beside a table of Citus, whose planner crashes
//!   on that.
//! * The two tables of a distributed store refuse what users write to one of them.
//! * A worker refuses to use its dictionary where the cluster's is not distributed: it is empty, the terms are on the
//!   coordinator.

use std::cell::Cell;
use std::ffi::CStr;

use pgrx::{pg_sys, PgSqlErrorCode};

use super::{catalogue, nodes, relations, write};
use crate::catalog::access_method;
use crate::catalog::distributed_store::is_side;
use crate::dictionary::Tables;
use crate::pg::error::{raise_all, raise_hint};
use crate::pg::ffi;
use crate::pg::list::list_iter;

thread_local! {
    /// The running transaction changes the tables of the dictionary on purpose.
    static ALLOWED: Cell<bool> = const { Cell::new(false) };
    /// The definition of a table of the dictionary may have changed since the last look.
    static CHANGED: Cell<bool> = const { Cell::new(false) };
}

/// Lets the running transaction distribute, truncate and alter the tables of the dictionary.
pub fn allow_dictionary_changes() {
    ALLOWED.set(true);
}

/// Takes back what [`allow_dictionary_changes`] allowed; called at the end of a transaction.
pub fn forget_allowed() {
    ALLOWED.set(false);
}

/// Notes that the definition of a table of the dictionary may have changed.
pub fn dictionary_changed() {
    CHANGED.set(true);
}

/// Raises an error where Citus manages a quad table (distributed, reference, or local but known to Citus). `what`
/// completes "cannot .. table", `instead` begins the hint.
pub fn refuse_citus_table(relid: pg_sys::Oid, what: &str, instead: &str) {
    if !is_citus_table(relid) {
        return;
    }
    if is_side(relid) {
        raise_hint(
            PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
            format!(
                "cannot {what} \"{}\", one of the two tables that hold a distributed store",
                name_of(relid)
            ),
            format!("Name the store: {}.", store_of_side(relid).0),
        );
    }
    raise_all(
        PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
        format!(
            "cannot {what} \"{}\", a table that Citus manages",
            name_of(relid)
        ),
        "Its quads are in its shards; the relation of this name is an empty shell on every node.",
        format!("{instead} Or bring the quads back to one node: SELECT undistribute_table(..)."),
    );
}

/// Whether Citus manages a table.
pub fn is_citus_table(relid: pg_sys::Oid) -> bool {
    is_any_of_citus(&[relid])
}

/// Whether Citus manages one of some tables.
pub fn is_any_of_citus(relids: &[pg_sys::Oid]) -> bool {
    !of_citus(relids).is_empty()
}

/// Raises an error where a statement reads a quad table under row-level security together with a table that Citus
/// manages. The planner of Citus 13.2 crashes on security conditions beside its tables.
///
/// # Safety
/// `query` is a statement that has been rewritten and not yet been planned.
pub unsafe fn check_policies(query: *mut pg_sys::Query) {
    // SAFETY: the caller's promise. The flag covers subqueries.
    if !unsafe { (*query).hasRowSecurity } {
        return;
    }
    // SAFETY: the caller's promise.
    let found = unsafe { relations_of(query) };
    let Some(policed) = found.policed else { return };
    if let Some((managed, _)) = of_citus(&found.others).first() {
        raise_all(
            PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
            format!(
                "cannot read \"{}\", which has row-level security, together with \"{}\", a table that Citus manages",
                name_of(policed),
                name_of(*managed)
            ),
            "The planner of Citus cannot handle policies of tables beside its own.",
            "Read one of them into a temporary table first.",
        );
    }
}

/// Raises an error where a statement changes one of the two tables of a distributed store, which this extension alone
/// keeps the same.
///
/// # Safety
/// `query` is a statement that has been rewritten and not yet been planned.
pub unsafe fn check_targets(query: *mut pg_sys::Query) {
    // SAFETY: the caller's promise.
    unsafe {
        let reads_only =
            (*query).commandType == pg_sys::CmdType::CMD_SELECT && !(*query).hasModifyingCTE;
        if reads_only || write::is_allowed() {
            return;
        }
        let check = |query: *mut pg_sys::Query| {
            if (*query).commandType != pg_sys::CmdType::CMD_SELECT && (*query).resultRelation > 0 {
                let target = pg_sys::list_nth((*query).rtable, (*query).resultRelation - 1);
                check_target((*target.cast::<pg_sys::RangeTblEntry>()).relid);
            }
        };
        if (*query).hasModifyingCTE {
            ffi::each_query(query, &mut |query| check(query));
        } else {
            check(query);
        }
    }
}

/// Raises an error where a table that a user's statement is to change is one of the two of a distributed store.
pub fn check_target(relid: pg_sys::Oid) {
    if write::is_allowed() || !is_side(relid) || !is_citus_table(relid) {
        return;
    }
    let (store, both) = store_of_side(relid);
    raise_all(
        PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
        format!(
            "cannot write to \"{}\", which holds the quads of a distributed store",
            name_of(relid)
        ),
        format!("Each quad is in {both}, and both have to hold the same ones."),
        format!("Write to {store}, which writes to both."),
    );
}

/// How messages name the store that a table is a part of, and both of its tables.
fn store_of_side(relid: pg_sys::Oid) -> (String, String) {
    let name = name_of(relid);
    let base = name.strip_suffix("_s").or_else(|| name.strip_suffix("_o"));
    let base = base.unwrap_or(&name);
    let store = base
        .split_once('.')
        .and_then(|(_, base)| relations::marked(base));
    let store = store.map_or_else(
        || "the relation of the store in schema quad_stores".to_owned(),
        relations::qualified_name,
    );
    (store, format!("{base}_s and in {base}_o"))
}

/// Relations of a statement.
#[derive(Default)]
struct Relations {
    /// A quad table whose policies are in force.
    policed: Option<pg_sys::Oid>,
    others: Vec<pg_sys::Oid>,
}

unsafe fn relations_of(query: *mut pg_sys::Query) -> Relations {
    let mut found = Relations::default();
    // SAFETY: a live query.
    unsafe {
        ffi::each_query(query, &mut |query| {
            for entry in list_iter::<pg_sys::RangeTblEntry>((*query).rtable) {
                if (*entry).rtekind == pg_sys::RTEKind::RTE_RELATION {
                    let relid = (*entry).relid;
                    if !(*entry).securityQuals.is_null() && access_method::is_quad_relid(relid) {
                        found.policed = Some(relid);
                    } else {
                        found.others.push(relid);
                    }
                }
            }
        });
    }
    found
}

/// Raises an error on a node of a cluster that has no dictionary: a worker.
pub fn refuse_worker() {
    if nodes::local_group() > 0 {
        raise_all(
            PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            "the dictionary of terms is not on this node",
            "This server is a worker of a Citus cluster; terms and their ids are on the coordinator.",
            "Ask the coordinator, or distribute the dictionary: SELECT quad.distribute_dictionary() there. In a query over distributed tables, put quad.find and quad.decode into parts that it computes itself: \
             WITH id AS MATERIALIZED (SELECT quad.find(..) AS p) SELECT .. WHERE p = (SELECT p FROM id).",
        );
    }
}

/// The relation whose changes may turn this node into a worker, or back: `InvalidOid` without Citus.
pub fn local_group_table() -> pg_sys::Oid {
    catalogue::relation(c"pg_dist_local_group")
}

/// Raises an error where the running transaction has handed a table of the dictionary to Citus.
pub fn check_dictionary() {
    // SAFETY: plain looks at the state of the process; some processes of the server are in no database.
    let can_look =
        || unsafe { pg_sys::MyDatabaseId != pg_sys::InvalidOid && pg_sys::IsTransactionState() };
    if !CHANGED.get() || !can_look() {
        return;
    }
    CHANGED.set(false);
    if ALLOWED.get() || called_by_citus() {
        return;
    }
    let Some(tables) = Tables::find() else { return };
    for (relid, by_us) in of_citus(&tables.relations()) {
        if by_us {
            refuse_change(relid, "distributed");
        }
    }
}

/// Raises an error where `relid`, which is about to be truncated, is a table of the dictionary.
pub fn check_truncate(relid: pg_sys::Oid) {
    if is_guarded(relid) {
        refuse_change(relid, "truncated");
    }
}

/// Raises an error where a utility statement renames or moves a table of the dictionary, or changes more than its
/// storage parameters, tablespace, owner, statistics and triggers.
///
/// # Safety
/// `statement` is a utility statement as the parser made it.
pub unsafe fn check_utility(statement: *mut pg_sys::Node) {
    use pg_sys::NodeTag::{T_AlterObjectSchemaStmt, T_AlterTableStmt, T_RenameStmt};
    // SAFETY: each cast follows a look at the tag.
    unsafe {
        let (relation, what) = match (*statement).type_ {
            T_RenameStmt => {
                let rename = statement.cast::<pg_sys::RenameStmt>();
                ((*rename).relation, "renamed")
            }
            T_AlterObjectSchemaStmt => {
                let moved = statement.cast::<pg_sys::AlterObjectSchemaStmt>();
                ((*moved).relation, "moved to another schema")
            }
            T_AlterTableStmt => {
                let altered = statement.cast::<pg_sys::AlterTableStmt>();
                if list_iter::<pg_sys::AlterTableCmd>((*altered).cmds)
                    .all(|command| is_harmless((*command).subtype))
                {
                    return;
                }
                ((*altered).relation, "altered so")
            }
            _ => return,
        };
        if relation.is_null() {
            return;
        }
        let relid = pg_sys::RangeVarGetRelidExtended(
            relation,
            pg_sys::NoLock as pg_sys::LOCKMODE,
            pg_sys::RVROption::RVR_MISSING_OK,
            None,
            std::ptr::null_mut(),
        );
        if relid != pg_sys::InvalidOid && is_guarded(relid) {
            refuse_change(relid, what);
        }
    }
}

/// Commands of ALTER TABLE that change neither what is stored nor who finds it.
#[allow(non_upper_case_globals)]
fn is_harmless(command: pg_sys::AlterTableType::Type) -> bool {
    use pg_sys::AlterTableType::*;
    matches!(
        command,
        AT_SetRelOptions
            | AT_ResetRelOptions
            | AT_ReplaceRelOptions
            | AT_SetTableSpace
            | AT_ChangeOwner
            | AT_SetStatistics
            | AT_EnableTrig
            | AT_DisableTrig
            | AT_EnableTrigAll
            | AT_DisableTrigAll
            | AT_EnableTrigUser
            | AT_DisableTrigUser
    )
}

/// Whether a relation is one of the dictionary's that users may not change now.
fn is_guarded(relid: pg_sys::Oid) -> bool {
    // SAFETY: plain reads of the state of the process.
    let by_us = unsafe { pg_sys::creating_extension || pg_sys::IsBinaryUpgrade };
    !by_us
        && !ALLOWED.get()
        && Tables::find().is_some_and(|tables| tables.contains(owner_of(relid)))
}

/// The table that an index is of, or the relation itself.
fn owner_of(relid: pg_sys::Oid) -> pg_sys::Oid {
    // SAFETY: a look-up in the catalogue, of what it says is an index.
    unsafe {
        match pg_sys::get_rel_relkind(relid) as u8 {
            pg_sys::RELKIND_INDEX => pg_sys::IndexGetRelation(relid, false),
            _ => relid,
        }
    }
}

fn refuse_change(relid: pg_sys::Oid, what: &str) -> ! {
    raise_all(
        PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
        format!(
            "\"{}\", a relation of the dictionary, cannot be {what}",
            name_of(relid)
        ),
        "The ids in all quad tables of the database are read by it, from this place on this node.",
        "Distribute, truncate or move tables of quads; the dictionary serves all of them.",
    );
}

/// Those of the relations that Citus manages, each with whether the running transaction has given it to Citus.
fn of_citus(relids: &[pg_sys::Oid]) -> Vec<(pg_sys::Oid, bool)> {
    let mut found = Vec::new();
    catalogue::each_row(c"pg_dist_partition", None, |row| {
        let relid = row.get::<pg_sys::Oid>(c"logicalrelid");
        if let Some(relid) = relid.filter(|relid| relids.contains(relid)) {
            // SAFETY: plain session state.
            let by_us = unsafe { pg_sys::TransactionIdIsCurrentTransactionId(row.xmin()) };
            found.push((relid, by_us));
        }
    });
    found
}

/// Whether this session is one that another node of the cluster has opened: what it does has been decided there.
fn called_by_citus() -> bool {
    // SAFETY: a setting, which is a C string where it is set.
    unsafe {
        !pg_sys::application_name.is_null()
            && CStr::from_ptr(pg_sys::application_name)
                .to_bytes()
                .starts_with(b"citus_internal gpid=")
    }
}

/// Whether a relation is a part of a distributed store that another node of the cluster writes: what may be written has
/// been decided there.
///
/// The name that a session gives itself proves nothing. So this holds for tables of distributed stores alone, and only
/// where Citus is installed. There, roles that may make distributed stores can fill them with bare ids.
///
/// # Safety
/// An open relation.
pub unsafe fn is_written_by_citus(rel: pg_sys::Relation) -> bool {
    // SAFETY: the caller's promise.
    let is_side = is_side(unsafe { (*rel).rd_id });
    is_side && called_by_citus() && catalogue::relation(c"pg_dist_shard") != pg_sys::InvalidOid
}

/// Schema and name of a relation.
fn name_of(relid: pg_sys::Oid) -> String {
    let text = |name: *mut core::ffi::c_char| {
        if name.is_null() {
            return String::new();
        }
        // SAFETY: a palloc'd C string.
        unsafe { CStr::from_ptr(name).to_string_lossy().into_owned() }
    };
    // SAFETY: look-ups in the catalogue.
    unsafe {
        let schema = text(pg_sys::get_namespace_name(pg_sys::get_rel_namespace(relid)));
        format!("{schema}.{}", text(pg_sys::get_rel_name(relid)))
    }
}
