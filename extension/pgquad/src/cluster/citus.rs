//! What is asked of Citus: who coordinates, who may be reached, commands on the other nodes within the running
//! transaction.

use std::collections::HashSet;
use std::ffi::{c_char, CStr};
use std::panic::AssertUnwindSafe;
use std::time::{Duration, Instant};

use pgrx::datum::DatumWithOid;
use pgrx::pg_sys::panic::CaughtError;
use pgrx::prelude::*;
use pgrx::{pg_sys, PgSqlErrorCode};

use crate::catalog::names::c_string;
use crate::pg::compat::CatalogPath;
use crate::pg::error::{raise, raise_all, raise_hint};
use crate::pg::guc::{self, with_settings};
use crate::pg::interrupt::interrupt;
use crate::settings::node_timeout;

/// Function of Citus' library that runs a command on every other node in the caller's transaction
/// (`transaction/worker_transaction.c`). Citus itself sends its metadata with it, over the same connections.
const RUN_ON_OTHERS: &CStr = c"SendCommandToRemoteNodesWithMetadataViaSuperUser";
type RunOnOthers = unsafe extern "C-unwind" fn(*const core::ffi::c_char);

/// Citus' function that locks the metadata of shards, of a mode and an array of their numbers.
const LOCK_SHARDS: &CStr = c"lock_shard_metadata";

/// The setting under which Citus gives each shard one placement: a shard is read on the node that has it, and terms get
/// their numbers there.
pub const ONE_PLACEMENT: (&CStr, &str) = (c"citus.shard_replication_factor", "1");

const LOCAL_EXECUTION: &CStr = c"citus.enable_local_execution";

/// Between two looks at the transactions that are prepared.
const PREPARED_PAUSE: Duration = Duration::from_millis(50);

/// How the system calls ENOSPC, at the end of PostgreSQL's message.
const FULL_DISK: &str = "No space left on device";
/// What Citus says before the address of a node whose connection is gone when a transaction begins on it.
const LOST_NODE: &str = "failure on connection marked as essential: ";

/// What to do where a node has no pgquad, or another one.
pub const SAME_VERSION_HINT: &str =
    "Every node needs the extension pgquad of the same version, preloaded after citus.";

/// One row of text columns.
pub type TextRow = Vec<Option<String>>;

/// The superuser that Citus itself connects as; raises an error where this database has no Citus.
pub fn require() -> pg_sys::Oid {
    owner().unwrap_or_else(|| {
        raise_hint(
            PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
            "a store can be distributed only where Citus is installed",
            "Install Citus 13, put 'citus,pgquad' into shared_preload_libraries, restart, and run CREATE EXTENSION citus.",
        )
    })
}

/// Owner of the extension Citus, where this database has it.
pub fn owner() -> Option<pg_sys::Oid> {
    // SAFETY: catalogue look-ups in a transaction; the scan is ended below.
    unsafe {
        let extension = pg_sys::get_extension_oid(c"citus".as_ptr(), true);
        if extension == pg_sys::InvalidOid {
            return None;
        }
    }
    let found = rows(
        "SELECT extowner::text FROM pg_extension WHERE extname = 'citus'",
        &[],
    );
    let oid = found.first()?.first()?.as_ref()?.parse::<u32>().ok()?;
    Some(pg_sys::Oid::from(oid))
}

/// Whether statements on distributed objects are to reach the other nodes: the setting `citus.enable_ddl_propagation`,
/// which Citus turns off for the commands that one node sends to another.
pub fn propagates() -> bool {
    setting(c"citus.enable_ddl_propagation").is_some_and(|value| value == c"on")
}

/// The value of a setting, `None` where it does not exist.
pub fn setting(name: &CStr) -> Option<&CStr> {
    // SAFETY: a look-up by name; the value is a copy in the current memory context.
    unsafe {
        let value = pg_sys::GetConfigOptionByName(name.as_ptr(), std::ptr::null_mut(), true);
        (!value.is_null()).then(|| CStr::from_ptr(value))
    }
}

/// Whether this node is the coordinator, or in no cluster.
pub fn is_coordinator() -> bool {
    rows("SELECT groupid::text FROM pg_dist_local_group", &[])
        .first()
        .is_none_or(|row| row[0].as_deref() == Some("0"))
}

/// The address of this node, as the others know it.
pub fn local_node() -> String {
    let node = rows(
        "SELECT format('%s:%s', nodename, nodeport) FROM pg_dist_node JOIN pg_dist_local_group USING (groupid) LIMIT 1",
        &[],
    );
    let name = node.first().and_then(|row| row[0].clone());
    name.unwrap_or_else(|| "of this session".to_owned())
}

/// Refuses what only the coordinator can do.
pub fn require_coordinator(what: &str) {
    if is_coordinator() {
        return;
    }
    let at = rows(
        "SELECT format('%s:%s', nodename, nodeport) FROM pg_dist_node WHERE groupid = 0 LIMIT 1",
        &[],
    );
    let at = at.first().and_then(|row| row[0].clone());
    raise_hint(
        PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
        format!("cannot {what} on a worker node"),
        format!(
            "Connect to the coordinator{} and run it there.",
            at.map_or_else(String::new, |at| format!(" ({at})"))
        ),
    )
}

/// Runs `body`, in which Citus writes to other nodes. Of an error of its COPY it passes on the text and not the
/// SQLSTATE (`ReportCopyError` of its `multi_copy.c`): a full disk has its own again. So has a node that has been
/// restarted since this session wrote to it: Citus notices only now that the connection it has kept is gone.
pub fn with_sqlstate<T>(body: impl FnOnce() -> T) -> T {
    PgTryBuilder::new(AssertUnwindSafe(body))
        .catch_others(|error| match &error {
            CaughtError::PostgresError(report) | CaughtError::ErrorReport(report)
                if report.sql_error_code() == PgSqlErrorCode::ERRCODE_INTERNAL_ERROR =>
            {
                let message = report.message();
                if message.ends_with(FULL_DISK) {
                    raise_hint(
                        PgSqlErrorCode::ERRCODE_DISK_FULL,
                        message,
                        "Check free disk space on all nodes.",
                    )
                } else if let Some(node) = message.strip_prefix(LOST_NODE) {
                    raise_hint(
                        PgSqlErrorCode::ERRCODE_CONNECTION_FAILURE,
                        format!("lost the connection to node {node}"),
                        "The transaction is rolled back. Run it again.",
                    )
                } else {
                    error.rethrow()
                }
            }
            _ => error.rethrow(),
        })
        .execute()
}

/// Runs a command on every other node of the cluster, as the superuser of Citus, in the running transaction (2PC). An
/// error there is raised here; its context names the node.
pub fn on_other_nodes(command: &str) {
    require();
    let command = c_string(command);
    // SAFETY: the function of Citus takes a C string; it is found by name or not at all.
    unsafe {
        let found = pg_sys::load_external_function(
            c"$libdir/citus".as_ptr(),
            RUN_ON_OTHERS.as_ptr(),
            false,
            std::ptr::null_mut(),
        );
        if found.is_null() {
            raise(
                PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
                format!(
                    "this build of Citus has no function {}: version 13 for PostgreSQL 15 is needed",
                    RUN_ON_OTHERS.to_string_lossy()
                ),
            );
        }
        let run: RunOnOthers = std::mem::transmute(found);
        with_sqlstate(|| pg_sys::ffi::pg_guard_ffi_boundary(|| run(command.as_ptr())));
    }
}

/// The transactions that Citus has prepared on any node. Those that have been committed on some nodes and not yet on
/// others are among them. Asked over connections of their own.
///
/// A node that does not answer is asked again: it may just be starting, with transactions prepared that nobody else
/// knows of. After `quad.node_timeout` that is an error (08006).
pub fn prepared() -> HashSet<String> {
    let sql = include_str!("queries/prepared_transactions.sql");
    let since = Instant::now();
    loop {
        let answers = as_role(require(), || rows(sql, &[]));
        let has_answered = |row: &&TextRow| row[1].as_deref() == Some("true");
        let Some(silent) = answers.iter().find(|row| !has_answered(row)) else {
            let lists = answers.iter().filter_map(|row| row[2].as_deref());
            return lists.flat_map(str::lines).map(str::to_owned).collect();
        };
        if since.elapsed() > node_timeout() {
            let node = silent[0].as_deref().unwrap_or("?");
            raise_all(
                PgSqlErrorCode::ERRCODE_CONNECTION_FAILURE,
                format!("node {node} does not tell which transactions are prepared on it"),
                silent[2].as_deref().unwrap_or_default(),
                "Run the statement again when the node answers.",
            );
        }
        pause();
    }
}

fn pause() {
    interrupt();
    std::thread::sleep(PREPARED_PAUSE);
}

/// Waits until the transactions that are prepared on any node now have been decided. A node that goes down between the
/// two phases of a commit leaves such a one: it has no lock on tables any more, but on shards, and its quads are yet to
/// come. Citus decides it within `citus.recover_2pc_interval`.
pub fn wait_for_prepared() {
    let mut undecided = prepared();
    while !undecided.is_empty() {
        pause();
        let now = prepared();
        undecided.retain(|transaction| now.contains(transaction));
    }
}

/// A function by its schema, name and types of arguments.
pub fn function(schema: pg_sys::Oid, name: &CStr, types: &[pg_sys::Oid]) -> Option<pg_sys::Oid> {
    // SAFETY: a look-up in the catalogue; the key outlives it.
    unsafe {
        let arguments = pg_sys::buildoidvector(types.as_ptr(), types.len() as i32);
        let oid = pg_sys::GetSysCacheOid(
            pg_sys::SysCacheIdentifier::PROCNAMEARGSNSP as i32,
            pg_sys::Anum_pg_proc_oid as i16,
            pg_sys::Datum::from(name.as_ptr()),
            pg_sys::Datum::from(arguments),
            pg_sys::Datum::from(schema),
            pg_sys::Datum::from(0),
        );
        (oid != pg_sys::InvalidOid).then_some(oid)
    }
}

/// Waits until no shard is being moved or split, and keeps it so until the transaction ends. It takes the lock that
/// Citus takes for its own writes. To be called as the owner of their table.
pub fn lock_shards(shards: &[u64]) {
    let types = [pg_sys::INT4OID, pg_sys::INT8ARRAYOID];
    let catalogue = pg_sys::Oid::from(pg_sys::PG_CATALOG_NAMESPACE);
    let function = function(catalogue, LOCK_SHARDS, &types).unwrap_or_else(|| {
        raise(
            PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
            format!(
                "this version of Citus has no function {}",
                LOCK_SHARDS.to_string_lossy()
            ),
        )
    });
    let shards: Vec<i64> = shards.iter().map(|&shard| shard as i64).collect();
    let mode = pg_sys::Datum::from(pg_sys::ShareLock as i32);
    let shards = shards.into_datum().unwrap_or(pg_sys::Datum::null());
    with_sqlstate(|| {
        // SAFETY: a function of these types.
        unsafe {
            pg_sys::OidFunctionCall2Coll(function, pg_sys::InvalidOid, mode, shards);
        }
    });
}

/// Shards of a node that Citus may make over connections of their own. Citus does so where a statement or transaction
/// is to fill them. The bound is a third of the connections that PostgreSQL allows by default.
const MAX_PARALLEL_SHARDS: usize = 32;

/// Runs `body`, which makes so many shards: over one connection to each node where they are many.
pub fn making_shards<T>(shards: i32, body: impl FnOnce() -> T) -> T {
    let nodes = rows(
        "SELECT count(*)::text FROM pg_dist_node WHERE isactive AND noderole = 'primary' AND shouldhaveshards",
        &[],
    );
    let nodes = nodes
        .first()
        .and_then(|row| row[0].as_ref()?.parse::<usize>().ok());
    let of_node = (shards as usize).div_ceil(nodes.unwrap_or(1).max(1));
    if of_node <= MAX_PARALLEL_SHARDS {
        return body();
    }
    over_one_connection(body)
}

/// Runs `body`, in which Citus sends everything that is for one node over one connection.
pub fn over_one_connection<T>(body: impl FnOnce() -> T) -> T {
    with_settings(&[(c"citus.multi_shard_modify_mode", "sequential")], body)
}

/// Runs `body`, statements that auto_explain does not look at. Where they are measured (`EXPLAIN ANALYZE`), Citus
/// refuses INSERT .. SELECT, and counts the rows of RETURNING otherwise, which SPI takes for an internal error.
pub fn unexplained<T>(body: impl FnOnce() -> T) -> T {
    const MIN_DURATION_SETTING: &CStr = c"auto_explain.log_min_duration";
    // SAFETY: a setting by its name, null where the module is not loaded; the level opened is closed below, or by the
    // abort of the (sub)transaction.
    unsafe {
        if pg_sys::GetConfigOption(MIN_DURATION_SETTING.as_ptr(), true, false).is_null() {
            return body();
        }
        let level = pg_sys::NewGUCNestLevel();
        // As a superuser: the owner of a store may not turn it off.
        guc::set_in_level_as(
            MIN_DURATION_SETTING,
            c"-1".as_ptr(),
            pg_sys::GucContext::PGC_SUSET,
        );
        let result = body();
        pg_sys::AtEOXact_GUC(true, level);
        result
    }
}

/// Whether Citus reads and writes shards of this node in the process that asks: its setting
/// `citus.enable_local_execution`.
pub fn executes_locally() -> bool {
    setting(LOCAL_EXECUTION).is_some_and(|value| value == c"on")
}

/// Runs `body` with `citus.enable_local_execution`. A transaction in which Citus has written to a shard of this node in
/// the process has to go on so. But EXPLAIN turns the setting off for the rest of the transaction.
pub fn locally<T>(body: impl FnOnce() -> T) -> T {
    with_settings(&[(LOCAL_EXECUTION, "on")], body)
}

/// Runs `body`, several statements that Citus has to make one transaction of. Outside of transaction blocks it lets a
/// statement that changes one shard commit by itself on the node of that shard.
pub fn in_transaction_block<T>(body: impl FnOnce() -> T) -> T {
    // SAFETY: the state of this transaction, put back below. An error ends the transaction, as it does without a block.
    unsafe {
        if pg_sys::IsTransactionBlock() {
            return body();
        }
        pg_sys::BeginImplicitTransactionBlock();
        let result = body();
        pg_sys::EndImplicitTransactionBlock();
        result
    }
}

/// Runs `body` as another role, as a SECURITY DEFINER function would.
pub fn as_role<T>(role: pg_sys::Oid, body: impl FnOnce() -> T) -> T {
    let (mut user, mut context) = (pg_sys::InvalidOid, 0);
    // SAFETY: role and context are put back below, or by the abort of the (sub)transaction.
    unsafe {
        pg_sys::GetUserIdAndSecContext(&mut user, &mut context);
        pg_sys::SetUserIdAndSecContext(role, context | pg_sys::SECURITY_LOCAL_USERID_CHANGE as i32);
        let result = body();
        pg_sys::SetUserIdAndSecContext(user, context);
        result
    }
}

/// Runs `body` with no schema but `pg_catalog` in the search path.
pub fn with_catalog_path<T>(body: impl FnOnce() -> T) -> T {
    // SAFETY: in a transaction; popped below, or by the abort of the (sub)transaction.
    let path = unsafe { CatalogPath::push() };
    let result = body();
    // SAFETY: the path pushed above.
    unsafe { path.pop() };
    result
}

/// The rows of a query, with all columns as text.
pub fn rows(sql: &str, parameters: &[DatumWithOid<'_>]) -> Vec<TextRow> {
    with_catalog_path(|| Spi::connect(|_| read(sql, parameters)))
}

/// The same with SPI connected. With pgrx's `update` the transaction gets an id, which it cannot have on a standby.
/// With its `select` the query does not see what the statement has done.
fn read(sql: &str, parameters: &[DatumWithOid<'_>]) -> Vec<TextRow> {
    let command = c_string(sql);
    let mut types: Vec<pg_sys::Oid> = parameters.iter().map(DatumWithOid::oid).collect();
    let mut values: Vec<pg_sys::Datum> = parameters
        .iter()
        .map(|value| {
            value
                .datum()
                .map_or(pg_sys::Datum::null(), |datum| datum.sans_lifetime())
        })
        .collect();
    let nulls: Vec<c_char> = parameters
        .iter()
        .map(|value| (if value.datum().is_none() { b'n' } else { b' ' }) as c_char)
        .collect();
    // SAFETY: SPI is connected; there are a type and a value for each parameter. The texts of the rows are copied
    // before SPI frees them.
    unsafe {
        let status = pg_sys::SPI_execute_with_args(
            command.as_ptr(),
            parameters.len() as i32,
            types.as_mut_ptr(),
            values.as_mut_ptr(),
            nulls.as_ptr(),
            false,
            0,
        );
        if status < 0 {
            raise(
                PgSqlErrorCode::ERRCODE_INTERNAL_ERROR,
                format!("\"{sql}\" failed: SPI {status}"),
            );
        }
        let table = pg_sys::SPI_tuptable;
        if table.is_null() {
            return Vec::new();
        }
        let descriptor = (*table).tupdesc;
        let text = |tuple, column| {
            let value = pg_sys::SPI_getvalue(tuple, descriptor, column);
            (!value.is_null()).then(|| CStr::from_ptr(value).to_string_lossy().into_owned())
        };
        (0..pg_sys::SPI_processed as usize)
            .map(|row| {
                let tuple = *(*table).vals.add(row);
                (1..=(*descriptor).natts)
                    .map(|column| text(tuple, column))
                    .collect()
            })
            .collect()
    }
}

/// Runs a statement with no schema but `pg_catalog` in the search path.
pub fn run(sql: &str) {
    if let Err(error) = with_catalog_path(|| Spi::run(sql)) {
        raise(
            PgSqlErrorCode::ERRCODE_INTERNAL_ERROR,
            format!("\"{sql}\" failed: {error}"),
        );
    }
}

/// A text as an SQL literal.
pub fn literal(text: &str) -> String {
    pgrx::spi::quote_literal(text)
}

/// A list of texts as an SQL array.
pub fn text_array(texts: &[String]) -> String {
    let texts: Vec<String> = texts.iter().map(|text| literal(text)).collect();
    format!("ARRAY[{}]::text[]", texts.join(", "))
}
