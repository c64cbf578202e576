//! Hooks that guard the shape of quad tables and tell the access method what statement creates a table. Every hook
//! calls the one that was installed before it.

use crate::am::{self, shape, table_as, table_options};
use crate::catalog::access_method;
use crate::cluster::{self, guard};
use crate::pg::error::raise_hint;
use crate::pg::exit::is_exiting;
use crate::pg::ffi::unguarded;
use crate::rights::notes;
use crate::storage::executor_depth::Running;
use crate::table::pending;
use pgrx::prelude::*;
use pgrx::{pg_sys, PgSqlErrorCode};

static mut PREVIOUS_UTILITY: pg_sys::ProcessUtility_hook_type = None;
static mut PREVIOUS_RUN: pg_sys::ExecutorRun_hook_type = None;
static mut PREVIOUS_START: pg_sys::ExecutorStart_hook_type = None;
static mut PREVIOUS_FINISH: pg_sys::ExecutorFinish_hook_type = None;
static mut PREVIOUS_ACCESS: pg_sys::object_access_hook_type = None;

/// Installs the hooks; called once from `_PG_init`.
pub fn init() {
    // SAFETY: _PG_init runs once, before any statement.
    unsafe {
        PREVIOUS_UTILITY = pg_sys::ProcessUtility_hook;
        pg_sys::ProcessUtility_hook = Some(process_utility);
        PREVIOUS_ACCESS = pg_sys::object_access_hook;
        pg_sys::object_access_hook = Some(object_access);
        PREVIOUS_RUN = pg_sys::ExecutorRun_hook;
        pg_sys::ExecutorRun_hook = Some(executor_run);
        PREVIOUS_START = pg_sys::ExecutorStart_hook;
        pg_sys::ExecutorStart_hook = Some(executor_start);
        PREVIOUS_FINISH = pg_sys::ExecutorFinish_hook;
        pg_sys::ExecutorFinish_hook = Some(executor_finish);
        pg_sys::RegisterSubXactCallback(Some(at_subtransaction_end), std::ptr::null_mut());
        pg_sys::RegisterXactCallback(Some(at_transaction_end), std::ptr::null_mut());
    }
}

#[pg_guard]
extern "C-unwind" fn at_transaction_end(
    event: pg_sys::XactEvent::Type,
    _arg: *mut core::ffi::c_void,
) {
    use pg_sys::XactEvent::*;
    if is_exiting() {
        return;
    }
    if matches!(event, XACT_EVENT_PRE_COMMIT | XACT_EVENT_PRE_PREPARE) {
        guard::check_dictionary();
        pending::flush_all();
        am::tid::close_all();
        cluster::mirror::before_commit();
    }
    if matches!(
        event,
        XACT_EVENT_COMMIT | XACT_EVENT_ABORT | XACT_EVENT_PREPARE
    ) {
        am::tid::forget_all();
        table_options::forget_created();
        pending::forget_all();
        crate::storage::rebuild::forget_wanted();
        guard::forget_allowed();
        cluster::mirror::forget();
        cluster::write::forget();
        notes::forget();
        table_as::forget();
    }
}

#[pg_guard]
extern "C-unwind" fn at_subtransaction_end(
    event: pg_sys::SubXactEvent::Type,
    subtransaction: pg_sys::SubTransactionId,
    _parent: pg_sys::SubTransactionId,
    _arg: *mut core::ffi::c_void,
) {
    use pg_sys::SubXactEvent::{
        SUBXACT_EVENT_ABORT_SUB, SUBXACT_EVENT_COMMIT_SUB, SUBXACT_EVENT_START_SUB,
    };
    if is_exiting() {
        return;
    }
    let failed = event == SUBXACT_EVENT_ABORT_SUB;
    match event {
        SUBXACT_EVENT_START_SUB => {
            notes::begin_subtransaction();
            table_as::begin_subtransaction();
            cluster::mirror::begin_subtransaction();
            pending::begin_subtransaction();
        }
        SUBXACT_EVENT_COMMIT_SUB | SUBXACT_EVENT_ABORT_SUB => {
            pending::end_subtransaction(subtransaction, failed);
            notes::end_subtransaction(failed);
            table_as::end_subtransaction(failed);
            cluster::mirror::end_subtransaction(failed);
            if failed {
                cluster::write::forget_statement();
                crate::storage::rebuild::forget_wanted();
            }
        }
        _ => {}
    }
}

/// Runs the executor, then brings the rows it inserted into their trees. Owns nothing that an error would have to drop.
unsafe extern "C-unwind" fn executor_run(
    query: *mut pg_sys::QueryDesc,
    direction: pg_sys::ScanDirection::Type,
    count: pg_sys::uint64,
    execute_once: bool,
) {
    // SAFETY: arguments are PostgreSQL's own and passed on unchanged.
    unsafe {
        let in_parts = (*(*query).plannedstmt).hasModifyingCTE;
        let running = pending::enter_executor(may_delete((*query).plannedstmt));
        let outer = notes::enter((*query).plannedstmt);
        match PREVIOUS_RUN {
            Some(previous) => previous(query, direction, count, execute_once),
            None => unguarded::standard_ExecutorRun(query, direction, count, execute_once),
        }
        if in_parts {
            pending::pause_executor(running);
        } else {
            after_executor(running);
        }
        notes::leave(outer);
    }
}

/// Whether a statement may delete what it has inserted, or found to be there. An UPDATE of partitions inserts and
/// deletes.
unsafe fn may_delete(plan: *const pg_sys::PlannedStmt) -> bool {
    // SAFETY: a live plan.
    unsafe {
        (*plan).hasModifyingCTE
            || matches!(
                (*plan).commandType,
                pg_sys::CmdType::CMD_MERGE | pg_sys::CmdType::CMD_UPDATE
            )
    }
}

/// Begins a statement: some nodes set up their sorts here. Owns nothing that an error would have to drop.
unsafe extern "C-unwind" fn executor_start(query: *mut pg_sys::QueryDesc, flags: core::ffi::c_int) {
    // SAFETY: arguments are PostgreSQL's own and passed on unchanged.
    unsafe {
        let outer = notes::enter((*query).plannedstmt);
        match PREVIOUS_START {
            Some(previous) => previous(query, flags),
            None => unguarded::standard_ExecutorStart(query, flags),
        }
        notes::leave(outer);
    }
}

/// Runs what is left of a statement: parts that write, and triggers. Owns nothing that an error would have to drop.
unsafe extern "C-unwind" fn executor_finish(query: *mut pg_sys::QueryDesc) {
    // SAFETY: the argument is PostgreSQL's own and passed on unchanged.
    unsafe {
        let outer = notes::enter((*query).plannedstmt);
        let running = pending::enter_executor(may_delete((*query).plannedstmt));
        match PREVIOUS_FINISH {
            Some(previous) => previous(query),
            None => unguarded::standard_ExecutorFinish(query),
        }
        after_executor(running);
        notes::leave(outer);
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn after_executor(outer: Running) {
    pending::leave_executor(outer);
    guard::check_dictionary();
}

/// Runs a utility statement with a note of what it is. Owns nothing that an error would have to drop.
#[allow(clippy::too_many_arguments)]
unsafe extern "C-unwind" fn process_utility(
    pstmt: *mut pg_sys::PlannedStmt,
    query: *const core::ffi::c_char,
    read_only_tree: bool,
    context: pg_sys::ProcessUtilityContext::Type,
    params: pg_sys::ParamListInfo,
    env: *mut pg_sys::QueryEnvironment,
    dest: *mut pg_sys::DestReceiver,
    completion: *mut pg_sys::QueryCompletion,
) {
    // SAFETY: arguments are PostgreSQL's own and passed on unchanged.
    unsafe {
        let tag = (*(*pstmt).utilityStmt).type_;
        if tag == pg_sys::NodeTag::T_IndexStmt {
            before_index((*pstmt).utilityStmt.cast());
        }
        let copied = match tag {
            pg_sys::NodeTag::T_CopyStmt => copy_target((*pstmt).utilityStmt.cast()),
            _ => pg_sys::InvalidOid,
        };
        let outer = table_as::enter(table_as::is_table_as((*pstmt).utilityStmt));
        let inner = match PREVIOUS_UTILITY {
            Some(previous) if !cluster::explain::is_without_citus(pstmt) => previous,
            _ => unguarded::standard_ProcessUtility,
        };
        // In this order: the second takes the mark of a distributed store away while the statement runs.
        let distributed = cluster::statements::before(pstmt, read_only_tree);
        let statement = table_options::before(distributed.planned, read_only_tree);
        let writer = notes::enter_utility(tag);
        let context = cluster::snapshots::context_of(pstmt, context);
        inner(
            statement.planned,
            query,
            read_only_tree,
            context,
            params,
            env,
            dest,
            completion,
        );
        notes::leave(writer);
        table_as::leave(outer);
        table_options::after(statement);
        cluster::statements::after(distributed);
        match tag {
            pg_sys::NodeTag::T_CopyStmt => after_copy(copied),
            pg_sys::NodeTag::T_CreatePublicationStmt => {
                let statement = (*pstmt).utilityStmt.cast::<pg_sys::CreatePublicationStmt>();
                after_publication((*statement).pubname);
            }
            pg_sys::NodeTag::T_AlterPublicationStmt => {
                let statement = (*pstmt).utilityStmt.cast::<pg_sys::AlterPublicationStmt>();
                after_publication((*statement).pubname);
            }
            _ => {}
        }
    }
}

/// Refuses an index before any of it is made. CREATE INDEX CONCURRENTLY commits the index before it asks the access
/// method to build it. An index that cannot be built is in the way of TRUNCATE and VACUUM FULL.
#[pg_guard]
unsafe extern "C-unwind" fn before_index(statement: *mut pg_sys::IndexStmt) {
    // SAFETY: the statement and its table's name come from the parser; nothing is locked, the statement does that.
    unsafe {
        let relid = find_table((*statement).relation);
        if relid != pg_sys::InvalidOid && access_method::is_quad_relid(relid) {
            am::no_index();
        }
    }
}

/// The table that COPY fills, `InvalidOid` where there is none. Afterwards the name may be that of another one.
#[pg_guard]
unsafe extern "C-unwind" fn copy_target(statement: *mut pg_sys::CopyStmt) -> pg_sys::Oid {
    // SAFETY: the statement and its table's name come from the parser; COPY itself locks the table.
    unsafe {
        if !(*statement).is_from || (*statement).relation.is_null() {
            return pg_sys::InvalidOid;
        }
        find_table((*statement).relation)
    }
}

/// Writes what COPY has kept back. It ends with `finish_bulk_insert` only where it inserts many rows at a time.
#[pg_guard]
extern "C-unwind" fn after_copy(table: pg_sys::Oid) {
    if table != pg_sys::InvalidOid {
        pending::finish(table);
    }
}

/// The table of this name, not locked; `InvalidOid` where there is none.
unsafe fn find_table(name: *mut pg_sys::RangeVar) -> pg_sys::Oid {
    // SAFETY: a name from the parser.
    unsafe {
        pg_sys::RangeVarGetRelidExtended(
            name,
            pg_sys::NoLock as pg_sys::LOCKMODE,
            pg_sys::RVROption::RVR_MISSING_OK,
            None,
            std::ptr::null_mut(),
        )
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn after_publication(name: *const core::ffi::c_char) {
    // SAFETY: within the statement that made or changed the publication of this name.
    let name = unsafe {
        pg_sys::CommandCounterIncrement();
        std::ffi::CStr::from_ptr(name).to_string_lossy()
    };
    check_publication(&name);
}

#[pg_guard]
unsafe extern "C-unwind" fn object_access(
    access: pg_sys::ObjectAccessType::Type,
    class: pg_sys::Oid,
    object: pg_sys::Oid,
    sub: core::ffi::c_int,
    arg: *mut core::ffi::c_void,
) {
    // SAFETY: arguments are PostgreSQL's own and passed on unchanged.
    unsafe {
        if let Some(previous) = PREVIOUS_ACCESS {
            previous(access, class, object, sub, arg);
        }
        match access {
            pg_sys::ObjectAccessType::OAT_POST_CREATE
            | pg_sys::ObjectAccessType::OAT_POST_ALTER
            | pg_sys::ObjectAccessType::OAT_DROP
                if class == pg_sys::RelationRelationId && sub > 0 =>
            {
                refuse_column_change(object);
            }
            pg_sys::ObjectAccessType::OAT_TRUNCATE => guard::check_truncate(object),
            pg_sys::ObjectAccessType::OAT_DROP
                if class == pg_sys::RelationRelationId && sub == 0 =>
            {
                cluster::mirror::dropping(object);
            }
            _ => {}
        }
    }
}

/// Columns of a quad table are fixed: adding, dropping, renaming or altering one is refused.
///
/// # Safety
/// Called from the object access hook, inside a transaction.
unsafe fn refuse_column_change(relid: pg_sys::Oid) {
    // SAFETY: syscache look-ups in a transaction.
    unsafe {
        if !access_method::is_quad_relid(relid) {
            return;
        }
        let name = std::ffi::CStr::from_ptr(pg_sys::get_rel_name(relid)).to_string_lossy();
        raise_hint(
            PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
            format!("the columns of quad table \"{name}\" cannot be changed"),
            format!(
                "A quad table always has the columns {}.",
                shape::COLUMNS.join(", ")
            ),
        );
    }
}

/// Logical decoding reads row changes from WAL; quad tables log page changes, so a publication of one would stay
/// silent. One of all tables is made all the same: the dictionary is among them. Called after a publication was made or
/// changed, within the same statement.
fn check_publication(name: &str) {
    let published = Spi::connect(|client| {
        let rows = client.select(
            "SELECT c.relname::text, p.puballtables FROM pg_catalog.pg_publication p, \
             pg_catalog.pg_get_publication_tables(p.pubname) t \
             JOIN pg_catalog.pg_class c ON c.oid OPERATOR(pg_catalog.=) t.relid \
             JOIN pg_catalog.pg_am a ON a.oid OPERATOR(pg_catalog.=) c.relam \
             WHERE a.amname OPERATOR(pg_catalog.=) 'quad' \
             AND p.pubname OPERATOR(pg_catalog.=) $1::pg_catalog.name LIMIT 1",
            Some(1),
            &[name.into()],
        )?;
        rows.first().get_two::<String, bool>()
    });
    let hint = "Logical decoding sees no changes of quad tables; use streaming replication.";
    match published {
        Ok((Some(_), Some(true))) => {
            pgrx::ereport!(
                PgLogLevel::WARNING,
                PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
                format!("publication \"{name}\" says nothing of the quad tables in it"),
                hint
            );
        }
        Ok((Some(table), _)) => raise_hint(
            PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
            format!("quad table \"{table}\" cannot be published"),
            hint,
        ),
        _ => {}
    }
}
