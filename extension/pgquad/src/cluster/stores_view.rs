//! The view `quad.stores`.

use pgrx::iter::TableIterator;
use pgrx::prelude::*;
use pgrx::{pg_sys, PgRelation};

use super::citus;
use super::relations::qualified_name;
use super::write::{as_writer, has_written};
use crate::catalog::distributed_store::{mark_of, owner_of, sides_of_mark, Sides};
use crate::catalog::{access_method, policies};
use crate::storage::Table;

extension_sql!(
    r#"
CREATE VIEW quad.stores AS SELECT store, distributed, shards, quads, bytes, orders FROM quad.list_stores();
GRANT SELECT ON quad.stores TO PUBLIC;
COMMENT ON VIEW quad.stores IS 'all stores: whether and into how many shards they are distributed, quads (NULL where the caller may not read all), bytes on all nodes (NULL for a distributed store in a transaction that has written), orders';
"#,
    name = "stores_view",
    requires = [list_stores]
);

/// Rows of the view `quad.stores`.
#[pg_extern(volatile, parallel_unsafe)]
#[allow(clippy::type_complexity)]
fn list_stores() -> TableIterator<
    'static,
    (
        name!(store, String),
        name!(distributed, bool),
        name!(shards, Option<i32>),
        name!(quads, Option<i64>),
        name!(bytes, Option<i64>),
        name!(orders, String),
    ),
> {
    let stores = citus::rows(
        "SELECT c.oid::text, c.relname::text FROM pg_class AS c JOIN pg_am AS a ON a.oid = c.relam \
         WHERE c.relnamespace = 'quad_stores'::regnamespace AND c.relkind = 'r' AND a.amname = 'quad' ORDER BY c.relname",
        &[],
    );
    let rows: Vec<_> = stores
        .into_iter()
        .filter_map(|row| {
            let relid = pg_sys::Oid::from(row[0].as_ref()?.parse::<u32>().ok()?);
            let name = row[1].clone()?;
            let rel = open(relid)?;
            Some(match mark_of(relid).map(|base| sides_of_mark(&base)) {
                Some(Some(sides)) => distributed(name, relid, sides),
                // The node is not, or no longer, part of the cluster that has the quads.
                Some(None) => (name, true, None, None, None, String::new()),
                None => local(name, &rel),
            })
        })
        .collect();
    TableIterator::new(rows)
}

type Row = (String, bool, Option<i32>, Option<i64>, Option<i64>, String);

/// The relation, locked against being dropped; `None` when it is gone.
fn open(relid: pg_sys::Oid) -> Option<PgRelation> {
    // SAFETY: opened by oid under a lock; closed with the value.
    unsafe {
        let rel = pg_sys::try_relation_open(relid, pg_sys::AccessShareLock as i32);
        (!rel.is_null()).then(|| PgRelation::from_pg_owned(rel))
    }
}

/// Whether the current role may read every quad.
fn may_read(relid: pg_sys::Oid) -> bool {
    // SAFETY: look-ups in the catalogue.
    unsafe {
        let right = pg_sys::ACL_SELECT as pg_sys::AclMode;
        pg_sys::pg_class_aclcheck(relid, pg_sys::GetUserId(), right)
            == pg_sys::AclResult::ACLCHECK_OK
            && !policies::are_in_force(relid, true)
    }
}

fn local(name: String, rel: &PgRelation) -> Row {
    // SAFETY: the relation is open and locked.
    let (quads, orders) = unsafe {
        let table = Table::open(rel.as_ptr());
        let (quads, _) = table.range_count([None; 4]);
        let orders: Vec<String> = table
            .meta()
            .orders()
            .iter()
            .map(|o| o.order.to_string())
            .collect();
        (quads, orders.join(","))
    };
    let size = format!("SELECT pg_table_size({})::text", rel.oid().to_u32());
    let readable = may_read(rel.oid());
    (
        name,
        false,
        None,
        readable.then_some(quads as i64),
        number(&size),
        orders,
    )
}

fn distributed(name: String, relid: pg_sys::Oid, sides: Sides) -> Row {
    let (s, o) = (
        qualified_name(sides.by_subject),
        qualified_name(sides.by_object),
    );
    let oid = sides.by_subject.to_u32();
    let shards = number(&format!(
        "SELECT count(*)::text FROM pg_dist_shard WHERE logicalrelid = {oid}"
    ));
    let (quads, bytes) = as_writer(owner_of(relid), || {
        (
            may_read(relid)
                .then(|| number(&format!("SELECT count(*)::text FROM {s}")))
                .flatten(),
            // Citus asks the nodes over sessions of their own, and refuses that in a transaction that has written.
            (!has_written())
                .then(|| {
                    number(&format!(
                        "SELECT (citus_table_size({}) + citus_table_size({}))::text",
                        citus::literal(&s),
                        citus::literal(&o)
                    ))
                })
                .flatten(),
        )
    });
    let orders = [sides.by_subject, sides.by_object]
        .into_iter()
        .filter_map(open)
        .filter(|rel| access_method::is_quad_relid(rel.oid()))
        .flat_map(|rel| {
            // SAFETY: the relation is open and locked.
            let table = unsafe { Table::open(rel.as_ptr()) };
            table
                .meta()
                .orders()
                .iter()
                .map(|o| o.order.to_string())
                .collect::<Vec<_>>()
        })
        .collect::<Vec<_>>()
        .join(",");
    let readable = may_read(relid);
    (
        name,
        true,
        shards.map(|n| n as i32),
        quads.filter(|_| readable),
        bytes,
        orders,
    )
}

fn number(sql: &str) -> Option<i64> {
    citus::rows(sql, &[])
        .first()?
        .first()?
        .as_ref()?
        .parse()
        .ok()
}
