//! SQL functions over quad tables: what is stored, whether it is sound, how much there is in a range, rebuilding.

use crate::am::table_options;
use crate::catalog::distributed_store::sides_of;
use crate::catalog::{access_method, policies};
use crate::cluster::{guard, inspect, rebuild};
use crate::pg::error::{raise, raise_hint, required};
use crate::storage::{self, Table};
use crate::table::{self, pending};
use pgrx::iter::TableIterator;
use pgrx::prelude::*;
use pgrx::{pg_sys, PgRelation, PgSqlErrorCode};

/// What to do instead with a table that Citus manages: each of its shards is a quad table.
const BY_SHARDS: &str = "Ask its shards: SELECT * FROM run_command_on_shards('quads', $$SELECT count(*) FROM quad.verify('%s')$$).";

/// Opens a relation; an error where there is none with this oid.
fn open(oid: pg_sys::Oid) -> PgRelation {
    // SAFETY: a lock of what may be a relation, and a look-up; it stays one while it is locked.
    unsafe {
        let lock = pg_sys::AccessShareLock as pg_sys::LOCKMODE;
        let relation = pg_sys::try_relation_open(oid, lock);
        if relation.is_null() {
            raise(
                PgSqlErrorCode::ERRCODE_UNDEFINED_TABLE,
                format!("relation with OID {} does not exist", oid.to_u32()),
            );
        }
        pg_sys::relation_close(relation, pg_sys::NoLock as pg_sys::LOCKMODE);
        PgRelation::with_lock(oid, lock)
    }
}

/// Refuses a relation that is no quad table or that the caller may not use so; `what` is for the message.
fn check(rel: &PgRelation, right: u32, what: &str) {
    // SAFETY: the relation is open.
    unsafe {
        if !access_method::is_quad(rel.as_ptr()) {
            raise_hint(
                PgSqlErrorCode::ERRCODE_WRONG_OBJECT_TYPE,
                format!("\"{}\" is not a quad table", rel.name()),
                "Quad tables are made by quad.create_store or CREATE TABLE ... USING quad.",
            );
        }
        if pg_sys::pg_class_aclcheck(rel.oid(), pg_sys::GetUserId(), right as pg_sys::AclMode)
            != pg_sys::AclResult::ACLCHECK_OK
        {
            raise(
                PgSqlErrorCode::ERRCODE_INSUFFICIENT_PRIVILEGE,
                format!("permission denied for table {}", rel.name()),
            );
        }
    }
    guard::refuse_citus_table(rel.oid(), what, BY_SHARDS);
}

/// Refuses a relation whose policies hide quads from the caller: the counts in the index are those of all quads.
fn check_policies(rel: &PgRelation) {
    if policies::are_in_force(rel.oid(), false) {
        raise_hint(
            PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
            format!(
                "cannot count the quads of \"{}\" by its index, as it has row-level security",
                rel.name()
            ),
            "SELECT count(*) counts the quads that you may see.",
        );
    }
}

/// One row per order: options, height, pages by kind, quads, bytes per quad over all pages of the order, mean fill of
/// its leaves.
#[pg_extern(
    sql = "CREATE FUNCTION quad.store_info(relation regclass) RETURNS TABLE (order_name text, inner_fanout integer, leaf_quads integer,
    height integer, inner_pages bigint, leaf_pages bigint, quads bigint, delta_entries bigint, bytes_per_quad double precision,
    fill double precision) VOLATILE STRICT PARALLEL RESTRICTED LANGUAGE c AS 'MODULE_PATHNAME', '@FUNCTION_NAME@';"
)]
#[allow(clippy::type_complexity)]
fn store_info(
    relation: pg_sys::Oid,
) -> TableIterator<
    'static,
    (
        name!(order_name, String),
        name!(inner_fanout, i32),
        name!(leaf_quads, i32),
        name!(height, i32),
        name!(inner_pages, i64),
        name!(leaf_pages, i64),
        name!(quads, i64),
        name!(delta_entries, i64),
        name!(bytes_per_quad, Option<f64>),
        name!(fill, Option<f64>),
    ),
> {
    let relation = open(relation);
    check(&relation, pg_sys::ACL_SELECT, "describe");
    // SAFETY: the relation is open.
    if let Some(sides) = unsafe { sides_of(relation.as_ptr()) } {
        let rows: Vec<_> = inspect::orders(sides)
            .into_iter()
            .map(|order| {
                let [fanout, leaf_quads, height] = order.shape;
                let [inner, leaves, quads, delta] = order.counts;
                let (bytes, fill) = (order.bytes_per_quad, order.fill);
                (
                    order.name, fanout, leaf_quads, height, inner, leaves, quads, delta, bytes,
                    fill,
                )
            })
            .collect();
        return TableIterator::new(rows);
    }
    // SAFETY: the relation is open and locked.
    let table = unsafe { Table::open(relation.as_ptr()) };
    let rows: Vec<_> = (0..table.meta().orders().len())
        .map(|n| {
            let stats = table.stats(n);
            let order = table.meta().orders()[n];
            (
                order.order.to_string(),
                order.inner_fanout as i32,
                order.leaf_quads as i32,
                stats.height as i32,
                stats.inner as i64,
                stats.leaves as i64,
                stats.entries as i64,
                stats.tail as i64,
                (stats.entries > 0).then(|| stats.bytes_per_quad()),
                (stats.leaves > 0).then(|| stats.leaf_fill()),
            )
        })
        .collect();
    TableIterator::new(rows)
}

/// Checks every invariant of every order and that all orders hold the same quads; returns one line per problem, none
/// when sound.
#[pg_extern(
    sql = "CREATE FUNCTION quad.verify(relation regclass) RETURNS SETOF text VOLATILE STRICT PARALLEL RESTRICTED LANGUAGE c
    AS 'MODULE_PATHNAME', '@FUNCTION_NAME@';"
)]
fn verify(relation: pg_sys::Oid) -> SetOfIterator<'static, String> {
    let relation = open(relation);
    check(&relation, pg_sys::ACL_SELECT, "verify");
    // SAFETY: the relation is open.
    if let Some(sides) = unsafe { sides_of(relation.as_ptr()) } {
        return SetOfIterator::new(inspect::problems(sides));
    }
    // SAFETY: the relation is open; the lock keeps writers away while orders are compared (a standby has none but
    // replay).
    let problems = unsafe {
        if !pg_sys::RecoveryInProgress() {
            pg_sys::LockRelationOid(relation.oid(), pg_sys::ShareLock as i32);
        }
        pending::flush(relation.oid());
        Table::open(relation.as_ptr()).verify()
    };
    SetOfIterator::new(problems)
}

/// Number of quads that match; NULL = any. O(height) page reads when the given columns are a prefix of some order;
/// otherwise the smallest range that an order has for them is read and filtered. Exact after VACUUM; before, deleted
/// quads that are still stored count.
#[pg_extern(
    sql = "CREATE FUNCTION quad.range_count(relation regclass, s bigint, p bigint, o bigint, g bigint) RETURNS bigint
    VOLATILE PARALLEL RESTRICTED LANGUAGE c AS 'MODULE_PATHNAME', '@FUNCTION_NAME@';"
)]
fn range_count(
    relation: Option<pg_sys::Oid>,
    s: Option<i64>,
    p: Option<i64>,
    o: Option<i64>,
    g: Option<i64>,
) -> i64 {
    let relation = open(required("relation", relation));
    check(&relation, pg_sys::ACL_SELECT, "count the quads of");
    check_policies(&relation);
    let key = [s, p, o, g];
    // SAFETY: the relation is open.
    if let Some(sides) = unsafe { sides_of(relation.as_ptr()) } {
        return inspect::count(sides, key);
    }
    // SAFETY: the relation is open and locked.
    unsafe {
        let table = Table::open(relation.as_ptr());
        let (count, covered) = table.range_count(key);
        let rest = (0..4).any(|c| key[c].is_some() && !covered[c]);
        if rest {
            return table::count_matching(relation.as_ptr(), key) as i64;
        }
        count as i64
    }
}

/// Rebuilds a quad table bottom-up with other orders, inner fanout or leaf size (settings as `quad.orders`,
/// `quad.inner_fanout`, `quad.leaf_quads`; NULL = as it is). Needs ownership and an exclusive lock, as VACUUM FULL
/// does. The shards of a distributed store are rebuilt each in a transaction of its own, up to 16 of a node at once.
#[pg_extern(
    sql = "CREATE FUNCTION quad.rebuild(relation regclass, orders text DEFAULT NULL, inner_fanout text DEFAULT NULL, leaf_quads text DEFAULT NULL)
    RETURNS void VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', '@FUNCTION_NAME@';"
)]
fn rebuild(
    relation: Option<pg_sys::Oid>,
    orders: default!(Option<&str>, "NULL"),
    inner_fanout: default!(Option<&str>, "NULL"),
    leaf_quads: default!(Option<&str>, "NULL"),
) {
    let relation = open(required("relation", relation));
    check(&relation, pg_sys::ACL_SELECT, "rebuild");
    // SAFETY: the relation is open.
    let sides = unsafe { sides_of(relation.as_ptr()) };
    let (oid, name) = (relation.oid(), relation.name().to_owned());
    // SAFETY: a look-up by oid in a transaction.
    if !unsafe { crate::pg::compat::owns(oid) } {
        raise(
            PgSqlErrorCode::ERRCODE_INSUFFICIENT_PRIVILEGE,
            format!("must be owner of table {name}"),
        );
    }
    // The rebuild wants the relation open nowhere else in this session, and no lock of it: two that hold one would wait
    // for each other.
    drop(relation);
    // SAFETY: `open` has locked it twice, and one of these locks was the relation's.
    unsafe { pg_sys::UnlockRelationOid(oid, pg_sys::AccessShareLock as pg_sys::LOCKMODE) };
    if let Some(sides) = sides {
        return rebuild::shards(sides, orders, inner_fanout, leaf_quads);
    }
    if storage::rebuild::in_place(oid, orders, inner_fanout, leaf_quads) {
        // SAFETY: in the transaction that has rebuilt the table, which is locked exclusively.
        unsafe { table_options::record(oid) }
    }
}
