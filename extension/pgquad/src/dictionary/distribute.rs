//! Making the dictionary a distributed one: its tables become tables of Citus, with all that is in them. No term gets
//! another number.

use std::cell::Cell;

use pgrx::prelude::*;
use pgrx::{pg_sys, PgSqlErrorCode, Spi};

use super::extents::EXTENT;
use super::layout::Layout;
use super::tables::Tables;
use crate::cluster::{
    as_superuser, ensure_secret, guard, has_citus, local_node, making_shards, rows, with_sqlstate,
    ONE_PLACEMENT, SAME_VERSION_HINT,
};
use crate::pg::compat;
use crate::pg::error::{raise, raise_hint};
use crate::pg::guc::with_settings;

/// How long a transaction of its own waits for each of its locks.
const AHEAD_TIMEOUT: &str = "5s";

/// Most shards: what Citus allows.
const MAX_SHARDS: i32 = 64_000;

thread_local! {
    /// The subtransaction in which this transaction has distributed the dictionary, which other sessions do not know of
    /// yet.
    static PENDING: Cell<Option<u32>> = const { Cell::new(None) };
}

/// Whether the dictionary of this database is distributed.
pub fn is_distributed() -> bool {
    Layout::current().shards.is_some()
}

/// Distributes the dictionary in a transaction of its own, so that the running one can use terms. The sessions that
/// find and make terms do not see what the running transaction has not committed. Does nothing where this transaction
/// holds a lock that the other would wait for, or where the other does not get its locks, or fails. Then [`distribute`]
/// does it, or says why not.
pub fn distribute_ahead(shards: i32) {
    let Some(tables) = Tables::find().filter(|_| has_citus()) else {
        return;
    };
    let relations = tables.relations();
    // SAFETY: within a transaction.
    let is_locked = relations
        .iter()
        .any(|&relation| unsafe { compat::is_locked(relation, pg_sys::AccessShareLock) });
    if is_locked || guard::is_citus_table(tables.term_ids) {
        return;
    }
    let command = format!(
        "SELECT quad.distribute_dictionary({shards}) FROM pg_catalog.set_config('lock_timeout', '{AHEAD_TIMEOUT}', true)"
    );
    with_quiet_settings(|| {
        run(&format!(
            "SELECT success FROM pg_catalog.run_command_on_coordinator({})",
            pgrx::spi::quote_literal(command)
        ));
    });
}

/// Distributes the dictionary into so many shards; nothing happens where it is distributed already. Whoever adds terms
/// waits for the transaction, readers go on: [`finish`] is to be called when the transaction has little left to do.
///
/// Errors: Citus is missing (0A000), the number of shards (22023), another node has terms of its own (55000), what
/// Citus refuses.
pub fn distribute(shards: i32) {
    if !has_citus() {
        raise_hint(
            PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
            "a dictionary can be distributed by Citus only, which is not there",
            "CREATE EXTENSION citus, and add the nodes with citus_add_node.",
        );
    }
    if !(1..=MAX_SHARDS).contains(&shards) {
        raise(
            PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
            format!("number of shards {shards} is not between 1 and {MAX_SHARDS}"),
        );
    }
    // No locks where it is done: they would be held to the end of this transaction. Its own sessions that add terms on
    // other nodes would wait for them for ever, and no deadlock detector would see it.
    if is_distributed() {
        return;
    }
    with_quiet_settings(|| {
        // Whoever takes numbers from the sequence has locked term_ids before.
        run("LOCK TABLE quad.term_ids, quad.terms, quad.term_extents, quad.languages, quad.symbol_tables IN EXCLUSIVE MODE");
        if is_distributed() {
            return;
        }
        check_other_nodes();
        ensure_secret();
        guard::allow_dictionary_changes();
        close_extents();
        // SAFETY: within a transaction.
        PENDING.set(Some(unsafe { pg_sys::GetCurrentSubTransactionId() }));
        making_shards(shards, || with_sqlstate(|| distribute_tables(shards)));
    });
}

/// Hands the tables to Citus.
fn distribute_tables(shards: i32) {
    run("SELECT pg_catalog.create_reference_table(t) \
             FROM pg_catalog.unnest(ARRAY['quad.languages', 'quad.symbol_tables']::pg_catalog.regclass[]) t");
    run(&format!(
            "SELECT pg_catalog.create_distributed_table('quad.term_ids', 's', shard_count => {shards}, colocate_with => 'none')"
        ));
    run("SELECT pg_catalog.create_distributed_table(t, 'extent', colocate_with => 'quad.term_ids') \
             FROM pg_catalog.unnest(ARRAY['quad.terms', 'quad.term_extents']::pg_catalog.regclass[]) t");
}

/// Empties the tables that this transaction has distributed, where their rows have stayed beside the shards. Waits for
/// readers, who wait from then on.
pub fn finish() {
    if PENDING.get().is_some() {
        with_quiet_settings(|| {
            run("SELECT pg_catalog.truncate_local_data_after_distributing_table(t) \
                 FROM pg_catalog.unnest(ARRAY['quad.term_ids', 'quad.terms', 'quad.term_extents', 'quad.languages', \
                                              'quad.symbol_tables']::pg_catalog.regclass[]) t");
        });
    }
}

/// Runs `body` as a superuser, with names and operators of PostgreSQL's own, and without Citus' notices.
fn with_quiet_settings(body: impl FnOnce()) {
    let settings = [
        (c"search_path", "pg_catalog, pg_temp"),
        (c"client_min_messages", "warning"),
        ONE_PLACEMENT,
    ];
    with_settings(&settings, || as_superuser(body));
}

/// Distributes the dictionary of this database, which `quad.create_store` and `quad.distribute_store` do by themselves.
#[pg_extern]
fn distribute_dictionary(shards: default!(i32, 32)) {
    distribute(shards);
    finish();
}

extension_sql!(
    r#"
REVOKE ALL ON FUNCTION quad.distribute_dictionary(integer) FROM PUBLIC;
"#,
    name = "distribute_dictionary_rights",
    requires = [distribute_dictionary]
);

/// Raises an error where this transaction has distributed the dictionary: sessions that read and add terms do not see
/// that yet.
pub fn check_committed() {
    if PENDING.get().is_some() {
        raise_hint(
            PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            "the dictionary has been distributed in this transaction, which has not been committed",
            "COMMIT, then use terms; or run SELECT quad.distribute_dictionary() before the transaction.",
        );
    }
}

/// To be called at the end of a transaction.
pub fn at_transaction_end() {
    PENDING.set(None);
}

/// To be called where a subtransaction fails: those within it have greater numbers.
pub fn forget_subtransaction(subtransaction: u32) {
    if PENDING
        .get()
        .is_some_and(|pending| pending >= subtransaction)
    {
        PENDING.set(None);
    }
}

/// Notes all numbers that were given out as used, so that no shard gives them out again.
fn close_extents() {
    run(&format!(
        "INSERT INTO quad.term_extents \
         SELECT extent, (extent + 1) * {EXTENT} FROM (SELECT last_value + 63 AS last FROM quad.term_numbers WHERE is_called) numbers, \
           pg_catalog.generate_series(0, last / {EXTENT}) extent \
         ON CONFLICT (extent) DO UPDATE SET next = EXCLUDED.next"
    ));
}

/// The error of a node that has a dictionary with something in it.
fn refuse_terms(node: &str) -> ! {
    raise_hint(
        PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        format!("node {node} has terms of its own in its dictionary"),
        "Export its stores, then run there DROP EXTENSION pgquad CASCADE and CREATE EXTENSION pgquad.",
    )
}

/// Raises an error where this worker, which has come to a cluster with distributed stores, has given numbers to terms
/// before: ids in its own stores would mean other terms.
pub fn check_joined_worker() {
    let used = rows("SELECT is_called::text FROM quad.term_numbers", &[]);
    if used
        .first()
        .is_some_and(|row| row[0].as_deref() == Some("true"))
    {
        refuse_terms(&local_node());
    }
}

/// Raises an error where another node has a dictionary with something in it: its ids would mean other terms.
fn check_other_nodes() {
    let used =
        "SELECT EXISTS (SELECT FROM quad.term_ids) OR (SELECT is_called FROM quad.term_numbers)";
    let sql = format!(
        "SELECT nodename || ':' || nodeport, success::text, result FROM run_command_on_workers({})",
        pgrx::spi::quote_literal(used)
    );
    for row in rows(&sql, &[]) {
        let text = |place: usize| row[place].as_deref().unwrap_or_default();
        if text(1) != "true" {
            raise_hint(
                PgSqlErrorCode::ERRCODE_CONNECTION_FAILURE,
                format!(
                    "node {} does not tell whether it has terms: {}",
                    text(0),
                    text(2)
                ),
                SAME_VERSION_HINT,
            );
        }
        if text(2) == "t" {
            refuse_terms(text(0));
        }
    }
}

/// Runs a statement.
fn run(sql: &str) {
    if let Err(error) = Spi::run(sql) {
        raise(PgSqlErrorCode::ERRCODE_INTERNAL_ERROR, error.to_string());
    }
}
