//! Making a store distributed, and one of a single node again.

use std::ffi::CStr;

use pgrx::prelude::*;
use pgrx::{pg_sys, PgSqlErrorCode};

use super::check_nodes::check_nodes;
use super::connection::{end_scope_of_transaction, refuse_open_cursors};
use super::{citus, mirror, relations, write};
use crate::am;
use crate::catalog::distributed_store::{
    mark_of, side_name, sides_of_relid, table_in_shard_schema, Sides, SHARD_SCHEMA,
};
use crate::dictionary;
use crate::pg::compat;
use crate::pg::error::{raise, raise_hint, required};
use crate::pg::guc::with_settings;
use crate::storage;
use crate::store::{self, Store};
use crate::table::pending;

/// Most shards of a store. Each is a table with two trees on its node; more than a few for each processor of a cluster
/// only cost.
const MAX_SHARDS: i32 = 1024;

/// Orders of the table by subject and of the table by object.
const ORDERS: [(&CStr, &str); 2] = [(c"s", "spog,psog"), (c"o", "ospg,posg")];

/// Limits of pages, as the settings `quad.inner_fanout` and `quad.leaf_quads`.
pub struct Limits<'a> {
    /// Most children of an inner page.
    pub inner_fanout: Option<&'a str>,
    /// Most quads of a leaf.
    pub leaf_quads: Option<&'a str>,
}

/// Refuses a number of shards that cannot be; `None`: the setting `citus.shard_count`.
pub fn check_shards(shards: Option<i32>) -> Option<i32> {
    if let Some(n) = shards.filter(|n| !(1..=MAX_SHARDS).contains(n)) {
        raise_hint(
            PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
            format!("a store cannot have {n} shards"),
            format!("Choose 1 to {MAX_SHARDS}: shards are what is moved from node to node, so at least one for each node that there may be."),
        );
    }
    shards
}

/// Refuses where no store can be distributed now.
pub fn check_cluster(what: &str) {
    citus::require();
    citus::require_coordinator(what);
    check_nodes();
}

/// Makes what all distributed stores share, where it is not there yet.
fn ensure_common(shards: i32) {
    dictionary::distribute_ahead(shards);
    super::secret::ensure();
    dictionary::distribute(shards);
}

/// The number of shards of a store; `None`: the setting `citus.shard_count`.
fn number_of_shards(shards: Option<i32>) -> i32 {
    let setting = || {
        let rows = citus::rows("SELECT current_setting('citus.shard_count')", &[]);
        rows.first().and_then(|row| row[0].as_ref()?.parse().ok())
    };
    shards.or_else(setting).unwrap_or(32).clamp(1, MAX_SHARDS)
}

/// Makes a store that was just created a distributed one.
pub fn distribute_new(store: &Store, shards: Option<i32>, limits: &Limits<'_>) {
    let shards = number_of_shards(shards);
    ensure_common(shards);
    write::note_reshaped("make");
    let base = free_base(&store.name);
    citus::making_shards(shards, || make_sides(&base, shards, limits));
    attach(store.oid, &base);
    mirror::send(store.oid);
    dictionary::finish_distribution();
}

/// A base whose tables are not there yet: the name of the store, shortened and numbered where needed.
fn free_base(name: &str) -> String {
    /// With `_s`, the number of a shard and the `_` of an array type a name stays within 63 bytes. Citus makes shards
    /// over several connections, which would wait for each other for ever where PostgreSQL has shortened such names to
    /// the same one.
    const MAX_NAME_BYTES: usize = 40;
    let shortened = |most: usize| {
        let end = (0..=most.min(name.len()))
            .rev()
            .find(|&n| name.is_char_boundary(n));
        &name[..end.unwrap_or(0)]
    };
    let free = |base: &String| {
        let taken = |column| table_in_shard_schema(&side_name(base, column)).is_some();
        !taken('s') && !taken('o')
    };
    let plain = shortened(MAX_NAME_BYTES).to_owned();
    let numbered = (2..).map(|n: u64| {
        let number = format!("_{n}");
        format!("{}{number}", shortened(MAX_NAME_BYTES - number.len()))
    });
    std::iter::once(plain)
        .chain(numbered)
        .find(free)
        .expect("one of all numbers is free")
}

fn quoted(base: &str, column: char) -> String {
    let name = side_name(base, column);
    format!("{SHARD_SCHEMA}.{}", pgrx::spi::quote_identifier(name))
}

/// Makes the two Citus tables of a base, as the current role.
///
/// Invariant: they are not colocated with the dictionary. A writer holds Citus' lock on the shards it has written until
/// it commits. Meanwhile it has new terms made over a session of its own, which takes the lock of the dictionary's
/// shards. If that were the same lock and a move came between the two, three would wait in a circle. The writer would
/// wait for the session, the session for the move, and the move for the writer. No deadlock detector would see it.
fn make_sides(base: &str, shards: i32, limits: &Limits<'_>) {
    let given = [
        (c"quad.inner_fanout", limits.inner_fanout),
        (c"quad.leaf_quads", limits.leaf_quads),
    ];
    for (column, orders) in ORDERS {
        let column = column.to_str().expect("a constant of one letter");
        let table = quoted(base, column.chars().next().expect("one letter"));
        let mut settings = vec![(c"quad.orders", orders)];
        settings.extend(
            given
                .iter()
                .filter_map(|(name, value)| value.map(|value| (*name, value))),
        );
        with_settings(&settings, || {
            citus::run(&format!(
                "CREATE TABLE {table} (s bigint NOT NULL, p bigint NOT NULL, o bigint NOT NULL, g bigint NOT NULL, quads bytea) USING quad"
            ));
        });
        let placed = if column == "o" {
            format!("colocate_with => {}", citus::literal(&quoted(base, 's')))
        } else {
            format!("shard_count => {shards}, colocate_with => 'none'")
        };
        with_settings(&[citus::ONE_PLACEMENT], || {
            citus::run(&format!(
                "SELECT create_distributed_table({}, '{column}', {placed})",
                citus::literal(&table)
            ));
        });
        revoke_defaults(&table);
    }
}

/// Takes back what default privileges give other roles: rights are those on the relation of the store.
fn revoke_defaults(table: &str) {
    let grantees = citus::rows(
        &format!(
            "SELECT DISTINCT CASE grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(grantee)) END \
             FROM pg_class, aclexplode(relacl) WHERE oid = {}::regclass AND grantee <> relowner",
            citus::literal(table)
        ),
        &[],
    );
    for grantee in grantees.into_iter().filter_map(|mut row| row.remove(0)) {
        citus::run(&format!("REVOKE ALL ON TABLE {table} FROM {grantee}"));
    }
}

/// Marks a relation, and makes the tables of its quads go with it when it is dropped.
fn attach(relid: pg_sys::Oid, base: &str) {
    mirror::mark(relid, base);
    let Some(sides) = sides_of_relid(relid) else {
        raise(
            PgSqlErrorCode::ERRCODE_INTERNAL_ERROR,
            "a mark that was just set is not there",
        );
    };
    let address = |relid| pg_sys::ObjectAddress {
        classId: pg_sys::RelationRelationId,
        objectId: relid,
        objectSubId: 0,
    };
    for side in [sides.by_subject, sides.by_object] {
        // SAFETY: both tables were made or locked by this transaction.
        unsafe {
            pg_sys::recordDependencyOn(
                &address(side),
                &address(relid),
                pg_sys::DependencyType::DEPENDENCY_INTERNAL,
            );
        }
    }
    // SAFETY: within a transaction.
    unsafe { pg_sys::CommandCounterIncrement() }
}

/// A store that the caller owns, locked against writers.
fn owned(name: &str, what: &str) -> Store {
    // Another role's writes that were committed after the snapshot was taken would be lost.
    if storage::has_transaction_snapshot() {
        raise_hint(
            PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
            format!("cannot {what} a store in a transaction of isolation level REPEATABLE READ or SERIALIZABLE"),
            "Use READ COMMITTED, so that what others have committed is seen.",
        );
    }
    let store = store::locked(name, pg_sys::ShareRowExclusiveLock);
    // SAFETY: a look-up by oid in a transaction.
    if !unsafe { compat::owns(store.oid) } {
        raise(
            PgSqlErrorCode::ERRCODE_INSUFFICIENT_PRIVILEGE,
            format!("must be owner of store \"{name}\""),
        );
    }
    pending::flush(store.oid);
    store
}

/// Distributes a store with its quads over the nodes of the cluster. Readers go on until the end, writers wait.
/// `shards`: number of parts, by default the setting `citus.shard_count`. Whatever fails, the store stays as it was.
#[pg_extern]
fn distribute_store(store: Option<&str>, shards: default!(Option<i32>, "NULL")) {
    let store = required("store", store);
    let shards = check_shards(shards);
    check_cluster("distribute a store");
    let store = owned(store, "distribute");
    if mark_of(store.oid).is_some() {
        raise_hint(
            PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            format!("store \"{}\" is distributed already", store.name),
            "quad.undistribute_store makes it a store of one node, which can be distributed into another number of shards.",
        );
    }
    let shards = number_of_shards(shards);
    ensure_common(shards);
    write::note_reshaped("make");
    let base = free_base(&store.name);
    let options = storage::options_of(store.oid);
    // Limits that hold for all orders hold for the new ones as well.
    let common = |limit: fn(&pgquad_btree::OrderOptions) -> u32| {
        let orders = &options.as_ref()?.orders;
        let first = limit(orders.first()?);
        orders
            .iter()
            .all(|o| limit(o) == first)
            .then(|| first.to_string())
    };
    let (inner_fanout, leaf_quads) = (common(|o| o.inner_fanout), common(|o| o.leaf_quads));
    let limits = Limits {
        inner_fanout: inner_fanout.as_deref(),
        leaf_quads: leaf_quads.as_deref(),
    };
    citus::making_shards(shards, || make_sides(&base, shards, &limits));
    for column in ['s', 'o'] {
        copy(&store.table(), &quoted(&base, column));
    }
    // SAFETY: the store is locked against writers; from here on against readers too.
    unsafe {
        pg_sys::LockRelationOid(store.oid, pg_sys::AccessExclusiveLock as i32);
        let rel = pg_sys::table_open(store.oid, pg_sys::NoLock as i32);
        compat::new_file(rel);
        pg_sys::table_close(rel, pg_sys::NoLock as i32);
        pg_sys::CommandCounterIncrement();
        am::table_options::record(store.oid);
    }
    attach(store.oid, &base);
    mirror::send(store.oid);
    dictionary::finish_distribution();
}

/// Copies all quads; an error where policies would hide some of them.
fn copy(from: &str, to: &str) {
    with_settings(&[(c"row_security", "off")], || {
        write::allowed(|| {
            citus::with_sqlstate(|| {
                citus::run(&format!(
                    "INSERT INTO {to} (s, p, o, g) SELECT q.s, q.p, q.o, q.g FROM {from} AS q"
                ));
            });
        });
    });
}

/// Brings the quads of a distributed store back to this node, the coordinator. Readers go on until the end, writers
/// wait. Whatever fails, the store stays as it was.
#[pg_extern]
fn undistribute_store(store: &str) {
    citus::require();
    citus::require_coordinator("undistribute a store");
    let store = owned(store, "undistribute");
    let Some(base) = mark_of(store.oid) else {
        raise(
            PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            format!("store \"{}\" is not distributed", store.name),
        );
    };
    let Some(sides) = sides_of_relid(store.oid) else {
        return;
    };
    end_scope_of_transaction("undistribute");
    refuse_open_cursors("undistribute");
    // Writers on other nodes lock these tables, not the relation of this node.
    citus::run(&format!(
        "LOCK TABLE {}, {} IN SHARE ROW EXCLUSIVE MODE",
        quoted(&base, 's'),
        quoted(&base, 'o')
    ));
    citus::wait_for_prepared();
    // SAFETY: the relation is locked against other changes of its definition.
    unsafe {
        am::table_options::set_mark(store.oid, None);
        pg_sys::CommandCounterIncrement();
    }
    copy(&quoted(&base, 's'), &store.table());
    detach(sides);
    // SAFETY: an upgrade of the lock that is held.
    unsafe { pg_sys::LockRelationOid(store.oid, pg_sys::AccessExclusiveLock as i32) }
    citus::on_other_nodes(&format!(
        "SELECT quad.cluster_drop(ARRAY[{}], '{{}}')",
        citus::literal(&base)
    ));
    citus::run(&format!(
        "DROP TABLE {}, {}",
        quoted(&base, 's'),
        quoted(&base, 'o')
    ));
}

/// Ends what `attach` has begun: the tables can be dropped without the relation.
fn detach(sides: Sides) {
    for side in [sides.by_subject, sides.by_object] {
        // SAFETY: both tables are locked.
        unsafe {
            pg_sys::deleteDependencyRecordsForClass(
                pg_sys::RelationRelationId,
                side,
                pg_sys::RelationRelationId,
                pg_sys::DependencyType::DEPENDENCY_INTERNAL as core::ffi::c_char,
            );
        }
    }
    // SAFETY: within a transaction.
    unsafe { pg_sys::CommandCounterIncrement() }
}

/// Before DROP EXTENSION pgquad CASCADE: drops the distributed stores, and takes the extension's own tables out of the
/// cluster. Each node drops its part of the extension over one connection, and the shards over others, which would wait
/// for each other for ever.
pub fn leave_cluster() {
    // SAFETY: a look-up in the catalogue.
    let is_there =
        unsafe { pg_sys::get_extension_oid(c"pgquad".as_ptr(), true) } != pg_sys::InvalidOid;
    if !is_there || citus::owner().is_none() || !citus::propagates() || !citus::is_coordinator() {
        return;
    }
    for relid in relations::distributed() {
        citus::run(&format!("DROP TABLE {}", relations::qualified_name(relid)));
    }
    super::guard::allow_dictionary_changes();
    citus::as_role(citus::require(), || {
        let of_extension = "FROM pg_dist_partition AS d JOIN pg_class AS c ON c.oid = d.logicalrelid WHERE c.relnamespace = 'quad'::regnamespace";
        let shards: Vec<String> = citus::rows(
            &format!("SELECT shard_name(s.logicalrelid, s.shardid) FROM pg_dist_shard AS s WHERE s.logicalrelid IN (SELECT d.logicalrelid {of_extension})"),
            &[],
        )
        .into_iter()
        .filter_map(|mut row| row.remove(0))
        .collect();
        for row in citus::rows(
            &format!("SELECT c.oid::text, c.relname::text {of_extension}"),
            &[],
        ) {
            let table = format!(
                "{}, 'quad', {}",
                row[0].as_deref().unwrap_or_default(),
                citus::literal(row[1].as_deref().unwrap_or_default())
            );
            citus::run(&format!(
                "SELECT master_remove_distributed_table_metadata_from_workers({table})"
            ));
            citus::run(&format!(
                "SELECT citus_drop_all_shards({table}, drop_shards_metadata_only := true)"
            ));
            citus::run(&format!("SELECT master_remove_partition_metadata({table})"));
        }
        mirror::drop_shards(&shards);
    });
}
