//! The relation of a distributed store is on every node, with the same name, owner, rights, policies, triggers, rules,
//! defaults and comment.
//!
//! After a statement that changed it on one node, its whole definition is sent to the others in the same transaction.
//! Each of them brings its own relation in line (`quad.cluster_mirror`). So it does not matter which statement it was.
//! A node finds its relation by the mark, which no statement changes. A node that joins later asks the coordinator for
//! all definitions (`quad.cluster_definitions`) when Citus makes the tables of schema `quad_shards` there.

use std::cell::{Cell, RefCell};

use pgrx::pg_sys::panic::CaughtError;
use pgrx::prelude::*;
use pgrx::{pg_sys, PgSqlErrorCode, PgTryBuilder};

use super::citus::{self, literal, text_array};
use super::nodes::{query, Row};
use super::relations::{marked, one, qualified_name};
use crate::am::table_options;
use crate::catalog::access_method;
use crate::catalog::distributed_store::{self, is_side, mark_of, owner_of};
use crate::catalog::names::c_string;
use crate::dictionary;
use crate::pg::error::{raise, raise_all, raise_hint, required};
use crate::pg::guc::with_settings;
use crate::store;

thread_local! {
    /// Number of statements under way whose changes of relations are noted.
    static WATCHING: Cell<usize> = const { Cell::new(0) };
    static CHANGED: RefCell<Vec<pg_sys::Oid>> = const { RefCell::new(Vec::new()) };
    /// Bases of the stores that the running statement has dropped.
    static DROPPED: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
    /// Names of their shards. Citus leaves those of a table that goes with another one: it takes it for a partition.
    static SHARDS: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
    /// Bases of the stores whose relations other nodes have brought in line here in this transaction.
    static MIRRORED: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// How much was noted when each open subtransaction began.
#[derive(Clone, Copy)]
struct Noted {
    watching: usize,
    changed: usize,
    dropped: usize,
    shards: usize,
    mirrored: usize,
}

thread_local! {
    static BEFORE: RefCell<Vec<Noted>> = const { RefCell::new(Vec::new()) };
}

/// A subtransaction begins.
pub fn begin_subtransaction() {
    let noted = Noted {
        watching: WATCHING.get(),
        changed: CHANGED.with_borrow(Vec::len),
        dropped: DROPPED.with_borrow(Vec::len),
        shards: SHARDS.with_borrow(Vec::len),
        mirrored: MIRRORED.with_borrow(Vec::len),
    };
    BEFORE.with_borrow_mut(|before| before.push(noted));
}

/// A subtransaction ends. What was noted in one that `failed` has not happened: other nodes must not drop what a
/// statement has failed to drop here.
pub fn end_subtransaction(failed: bool) {
    let before = BEFORE.with_borrow_mut(Vec::pop);
    if let Some(noted) = before.filter(|_| failed) {
        WATCHING.set(noted.watching);
        CHANGED.with_borrow_mut(|all| all.truncate(noted.changed));
        DROPPED.with_borrow_mut(|all| all.truncate(noted.dropped));
        SHARDS.with_borrow_mut(|all| all.truncate(noted.shards));
        MIRRORED.with_borrow_mut(|all| all.truncate(noted.mirrored));
    }
}

/// Notes changes of relations from now on.
pub fn watch() {
    WATCHING.set(WATCHING.get() + 1);
}

/// Sends the definitions of the distributed stores that have changed since [`watch`].
pub fn send_changed() {
    // Only now are the changes of the statement told to this session's caches.
    // SAFETY: within the statement that made the changes.
    unsafe { pg_sys::CommandCounterIncrement() }
    WATCHING.set(WATCHING.get().saturating_sub(1));
    let mut changed = CHANGED.take();
    changed.sort_unstable_by_key(|relid| relid.to_u32());
    changed.dedup();
    for relid in changed {
        if access_method::is_quad_relid(relid) && mark_of(relid).is_some() {
            send(relid);
        }
    }
}

/// Hears of a change of a relation; called from the relation cache.
pub fn relation_changed(relid: pg_sys::Oid) {
    if WATCHING.get() > 0 {
        CHANGED.with_borrow_mut(|changed| changed.push(relid));
    }
}

/// A relation is about to be dropped: tables of schema `quad_shards` come before the relation that they depend on.
pub fn dropping(relid: pg_sys::Oid) {
    if !access_method::is_quad_relid(relid) || !citus::propagates() || citus::owner().is_none() {
        return;
    }
    if is_side(relid) {
        let shards = citus::rows(
            &format!(
                "SELECT shard_name(logicalrelid, shardid) FROM pg_dist_shard WHERE logicalrelid = {}",
                relid.to_u32()
            ),
            &[],
        );
        let names = shards.into_iter().filter_map(|mut row| row.remove(0));
        SHARDS.with_borrow_mut(|all| all.extend(names));
    } else if let Some(base) = mark_of(relid) {
        // One that the cluster has dropped while this node was not part of it: the tables go before their relation.
        let is_left =
            SHARDS.with_borrow(Vec::is_empty) && distributed_store::sides_of_mark(&base).is_none();
        if is_left && !citus::is_coordinator() {
            return;
        }
        citus::require_coordinator("drop a distributed store");
        super::connection::end_scope_of_transaction("drop");
        lock_elsewhere(relid);
        DROPPED.with_borrow_mut(|dropped| dropped.push(base));
    }
}

/// Locks the relation of a distributed store on all other nodes, before a statement that holds it here takes shards
/// from readers.
///
/// Who reads the store has the relation of the node that was asked, and locks shards one by one as it comes to them. A
/// statement that locked shards first would wait for a reader that waits for it, on two nodes, where no deadlock
/// detector looks.
pub fn lock_elsewhere(relid: pg_sys::Oid) {
    if let Some(base) = mark_of(relid) {
        let mark = literal(&format!("shards={base}"));
        citus::on_other_nodes(&format!(
            include_str!("queries/lock_relation.sql"),
            mark = mark
        ));
    }
}

/// Drops on the other nodes what the statement has dropped here, and the shards. The tables of schema `quad_shards`
/// have gone with the relation, on which they depend.
pub fn drop_elsewhere() {
    let (dropped, shards) = (DROPPED.take(), SHARDS.take());
    if dropped.is_empty() {
        return;
    }
    // SAFETY: a look-up in the catalogue.
    let extension = unsafe { pg_sys::get_extension_oid(c"pgquad".as_ptr(), true) };
    // DROP EXTENSION reaches the other nodes by itself.
    if extension == pg_sys::InvalidOid {
        return;
    }
    citus::on_other_nodes(&format!(
        "SELECT quad.cluster_drop({}, {})",
        text_array(&dropped),
        text_array(&shards)
    ));
    citus::as_role(citus::require(), || drop_here(&[], &shards));
}

/// The transaction is about to commit: where Citus has made the tables of stores, makes their relations. One that is
/// there may have missed changes while the node was not part of the cluster.
pub fn before_commit() {
    let made = table_options::take_shard_tables();
    if made.is_empty() {
        return;
    }
    // SAFETY: the statements of the transaction are over, and their snapshots gone; this one is popped below, or by the
    // abort.
    unsafe { pg_sys::PushActiveSnapshot(pg_sys::GetTransactionSnapshot()) }
    // The tables were made as the owner of their store, who may not ask for its definition.
    if let Some(superuser) = citus::owner() {
        citus::as_role(superuser, || mirror_made(&made));
    }
    // SAFETY: the snapshot pushed above.
    unsafe { pg_sys::PopActiveSnapshot() }
}

/// Asks the coordinator for the definitions of the stores whose tables these are.
fn mirror_made(made: &[pg_sys::Oid]) {
    if citus::is_coordinator() {
        return;
    }
    let made: Vec<String> = made
        .iter()
        .map(|relid| relid.to_u32().to_string())
        .collect();
    // Where Citus brings tables in transactions of their own, the second one of a store completes it.
    let complete = citus::rows(
        &format!(
            "SELECT DISTINCT left(t.relname::text, -2) FROM pg_class AS t JOIN pg_class AS other USING (relnamespace) \
             WHERE t.oid IN ({}) AND t.relname ~ '_[so]$' \
             AND other.relname = left(t.relname::text, -1) \
               || CASE right(t.relname::text, 1) WHEN 's' THEN 'o' ELSE 's' END",
            made.join(", ")
        ),
        &[],
    );
    // The relation of a store that is being made comes from the session that makes it. What the coordinator tells
    // another session is of before, and may wait for what this transaction has locked there.
    let is_mirrored = |base: &String| MIRRORED.with_borrow(|all| all.contains(base));
    let bases: Vec<String> = complete
        .into_iter()
        .filter_map(|mut row| row.remove(0))
        .filter(|base| !is_mirrored(base))
        .collect();
    if bases.is_empty() {
        return;
    }
    dictionary::check_joined_worker();
    let ask = format!(
        "SELECT coalesce(string_agg(d, ';'), '') FROM quad.cluster_definitions({}) AS d",
        text_array(&bases)
    );
    let answer = citus::rows(
        &format!(
            "SELECT success::text, result FROM run_command_on_coordinator({})",
            literal(&ask)
        ),
        &[],
    );
    match answer
        .first()
        .map(|row| (row[0].as_deref(), row[1].as_deref()))
    {
        Some((Some("true"), Some(commands))) => citus::run(commands),
        other => raise(
            PgSqlErrorCode::ERRCODE_CONNECTION_FAILURE,
            format!("the coordinator does not tell which stores there are: {other:?}"),
        ),
    }
}

/// Forgets what a statement has noted; called at the end of a transaction.
pub fn forget() {
    WATCHING.set(0);
    CHANGED.take();
    DROPPED.take();
    SHARDS.take();
    MIRRORED.take();
    BEFORE.take();
}

/// Brings the relation on the other nodes in line with the one here.
pub fn send(relid: pg_sys::Oid) {
    if !citus::propagates() {
        return;
    }
    // Two sessions that change the relation at once send one after the other, and the second one what both have made.
    // GRANT and COMMENT take no lock by themselves that would keep others away.
    // SAFETY: within a transaction, which keeps the lock.
    unsafe {
        pg_sys::LockRelationOid(relid, pg_sys::ShareUpdateExclusiveLock as i32);
        // What the statement has changed is there for the definition.
        pg_sys::CommandCounterIncrement();
    }
    if let Some(command) = definition(relid) {
        keep_owner(relid);
        citus::on_other_nodes(&command);
    }
}

/// The tables of schema `quad_shards` belong to the owner of the store.
fn keep_owner(relid: pg_sys::Oid) {
    let Some(sides) = distributed_store::sides_of_relid(relid) else {
        return;
    };
    let owner = owner_of(relid);
    for side in [sides.by_subject, sides.by_object] {
        if owner_of(side) != owner {
            citus::require_coordinator("change the owner of a distributed store");
            super::write::note_reshaped("alter");
            citus::as_role(citus::require(), || {
                citus::run(&format!(
                    "ALTER TABLE {} OWNER TO {}",
                    qualified_name(side),
                    role_name(owner)
                ));
            });
        }
    }
}

fn role_name(role: pg_sys::Oid) -> String {
    one(&format!("SELECT {}::regrole::text", role.to_u32()))
}

/// The call of `quad.cluster_mirror` that makes the relation of a distributed store on another node as it is here.
fn definition(relid: pg_sys::Oid) -> Option<String> {
    let base = mark_of(relid)?;
    let oid = relid.to_u32();
    let texts = |row: &Row| [1, 2].map(|column| row.get::<String>(column).unwrap_or_default());
    let of_class = format!(
        "SELECT relname::text, pg_get_userbyid(relowner)::text FROM pg_class WHERE oid = {oid}"
    );
    let [name, owner] = query(&c_string(&of_class), texts).pop()?;
    let given = query(&c_string(&definition_sql(oid)), texts);
    let (roles, commands): (Vec<String>, Vec<String>) = given.into_iter().map(Into::into).unzip();
    Some(format!(
        "SELECT quad.cluster_mirror({}, {}, {}, {}, {})",
        literal(&base),
        literal(&name),
        literal(&owner),
        text_array(&roles),
        text_array(&commands)
    ))
}

/// The query of the commands that a bare relation needs, each with the role that gives it (empty: the owner).
fn definition_sql(oid: u32) -> String {
    format!(include_str!("queries/relation_definition.sql"), oid = oid)
}

/// The calls of `quad.cluster_mirror` for a node that joins: one for each distributed store that has one of these
/// bases. Superusers only.
#[pg_extern(name = "cluster_definitions")]
fn definitions(bases: Vec<Option<String>>) -> SetOfIterator<'static, String> {
    require_superuser("quad.cluster_definitions");
    let bases = without_null("bases", bases);
    let relations = bases.iter().filter_map(|base| marked(base));
    SetOfIterator::new(relations.filter_map(definition).collect::<Vec<_>>())
}

/// Drops shards that Citus knows no more, on all nodes.
pub fn drop_shards(shards: &[String]) {
    if shards.is_empty() {
        return;
    }
    citus::on_other_nodes(&format!(
        "SELECT quad.cluster_drop('{{}}', {})",
        text_array(shards)
    ));
    drop_here(&[], shards);
}

fn require_superuser(function: &str) {
    // SAFETY: a look-up in the catalogue.
    if !unsafe { pg_sys::superuser() } {
        raise_hint(
            PgSqlErrorCode::ERRCODE_INSUFFICIENT_PRIVILEGE,
            format!("permission denied for function {function}"),
            "The nodes of a cluster call it of each other, as the superuser of Citus.",
        );
    }
}

/// The elements of an array, none of which may be NULL.
fn without_null(name: &str, list: Vec<Option<String>>) -> Vec<String> {
    list.into_iter().map(|one| required(name, one)).collect()
}

/// Makes the relation of a distributed store on this node as it is on the caller's. `base`: what the mark says.
/// `commands`: what a bare relation needs. Each command runs as the role at the same place of `roles`; without a role
/// it runs as superuser. Superusers only.
#[pg_extern(name = "cluster_mirror")]
fn mirror(
    base: &str,
    store: &str,
    owner: &str,
    roles: Vec<Option<String>>,
    commands: Vec<Option<String>>,
) {
    require_superuser("quad.cluster_mirror");
    let (roles, commands) = (
        without_null("roles", roles),
        without_null("commands", commands),
    );
    let node = citus::local_node();
    let no_echo = [
        (c"citus.enable_ddl_propagation", "off"),
        (c"check_function_bodies", "off"),
    ];
    let run = || {
        with_settings(&no_echo, || {
            let relid = bare(base, store, owner);
            for (role, command) in roles.iter().zip(&commands) {
                if role.is_empty() {
                    citus::run(command);
                } else {
                    // SAFETY: a look-up by name, which raises an error when there is no such role.
                    let role = unsafe { pg_sys::get_role_oid(c_string(role).as_ptr(), false) };
                    citus::as_role(role, || citus::run(command));
                }
            }
            debug_assert_eq!(mark_of(relid).as_deref(), Some(base));
            MIRRORED.with_borrow_mut(|all| all.push(base.to_owned()));
        });
    };
    // Who reads the error is on another node.
    PgTryBuilder::new(std::panic::AssertUnwindSafe(run))
        .catch_others(|error| match &error {
            CaughtError::PostgresError(report) | CaughtError::ErrorReport(report) => {
                let detail = report
                    .detail()
                    .map_or_else(String::new, |detail| format!(" {detail}"));
                raise_all(
                    report.sql_error_code(),
                    report.message(),
                    format!("On node {node}.{detail}"),
                    report.hint().unwrap_or_default(),
                )
            }
            CaughtError::RustPanic { .. } => error.rethrow(),
        })
        .execute();
}

/// The relation with this mark, made or renamed where needed, without rights, policies, triggers, rules and defaults.
fn bare(base: &str, store: &str, owner: &str) -> pg_sys::Oid {
    let table = store::table_of(store);
    let owner = pgrx::spi::quote_identifier(owner);
    let relid = match marked(base) {
        Some(relid) => {
            let name = qualified_name(relid);
            if name != table {
                citus::run(&format!(
                    "ALTER TABLE {name} RENAME TO {}",
                    pgrx::spi::quote_identifier(store)
                ));
            }
            relid
        }
        None => make(base, store),
    };
    let oid = relid.to_u32();
    citus::run(&format!("ALTER TABLE {table} OWNER TO {owner}"));
    for row in citus::rows(
        &format!(
            include_str!("queries/relation_properties.sql"),
            oid = oid,
            name = literal(&table)
        ),
        &[],
    ) {
        citus::run(row[0].as_deref().unwrap_or_default());
    }
    relid
}

/// Makes a relation with the mark.
fn make(base: &str, store: &str) -> pg_sys::Oid {
    if store::find(Some(store)).is_some() {
        raise_hint(
            PgSqlErrorCode::ERRCODE_DUPLICATE_TABLE,
            format!("store \"{store}\" already exists on this node and is not that of the cluster"),
            "Rename or drop it on this node, or give the distributed store another name.",
        );
    }
    let relid = store::create_bare(store);
    mark(relid, base);
    relid
}

/// Marks a relation as that of a distributed store.
pub fn mark(relid: pg_sys::Oid, base: &str) {
    // SAFETY: the relation was made or locked exclusively by this transaction.
    unsafe {
        table_options::set_mark(relid, Some(c_string(base)));
        pg_sys::CommandCounterIncrement();
    }
}

/// Drops the relations with these marks, and these shards, as far as they are on this node. Superusers only.
#[pg_extern(name = "cluster_drop")]
fn drop_mirrored(bases: Vec<Option<String>>, shards: Vec<Option<String>>) {
    require_superuser("quad.cluster_drop");
    drop_here(
        &without_null("bases", bases),
        &without_null("shards", shards),
    );
}

fn drop_here(bases: &[String], shards: &[String]) {
    let settings = [
        (c"citus.enable_ddl_propagation", "off"),
        (c"citus.enable_manual_changes_to_shards", "on"),
        (c"client_min_messages", "warning"),
    ];
    with_settings(&settings, || {
        for relid in bases.iter().filter_map(|base| marked(base)) {
            citus::run(&format!("DROP TABLE {}", qualified_name(relid)));
        }
        for shard in shards {
            citus::run(&format!("DROP TABLE IF EXISTS {shard}"));
        }
    });
}
