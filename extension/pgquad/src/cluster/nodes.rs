//! The nodes of the cluster, as Citus' catalogue names them.

use std::ffi::CString;

use pgrx::prelude::*;
use pgrx::{pg_sys, PgSqlErrorCode, Spi};

use super::citus;
use crate::pg::error::{raise, raise_hint};

/// A node that holds shards.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Node {
    /// Citus' number of its group: what placements name.
    pub group: i32,
    /// Citus' number of the node.
    pub id: i32,
    /// Host name or address.
    pub host: String,
    /// Port.
    pub port: i32,
}

impl Node {
    /// How messages name it.
    pub fn name(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }
}

/// Runs `body` as the bootstrap superuser: what it reads is the extension's own business.
pub fn as_superuser<T>(body: impl FnOnce() -> T) -> T {
    citus::as_role(pg_sys::Oid::from(pg_sys::BOOTSTRAP_SUPERUSERID), body)
}

/// Rows of a query about catalogues, as the newest snapshot sees them, whatever the isolation level of the transaction.
pub fn query<T>(sql: &std::ffi::CStr, each: impl Fn(&Row) -> T) -> Vec<T> {
    as_superuser(|| {
        Spi::connect(|_| {
            // SAFETY: SPI is connected; the snapshot is registered while the query runs; rows are read before SPI is
            // left.
            unsafe {
                let plan = pg_sys::SPI_prepare(sql.as_ptr(), 0, std::ptr::null_mut());
                let snapshot = pg_sys::RegisterSnapshot(pg_sys::GetLatestSnapshot());
                let done = pg_sys::SPI_execute_snapshot(
                    plan,
                    std::ptr::null_mut(),
                    std::ptr::null(),
                    snapshot,
                    std::ptr::null_mut(),
                    true,
                    false,
                    0,
                );
                pg_sys::UnregisterSnapshot(snapshot);
                if done < 0 {
                    raise(
                        PgSqlErrorCode::ERRCODE_INTERNAL_ERROR,
                        format!("a query about the cluster failed with code {done}"),
                    );
                }
                let table = &*pg_sys::SPI_tuptable;
                let rows = 0..pg_sys::SPI_processed as usize;
                rows.map(|n| {
                    each(&Row {
                        tuple: *table.vals.add(n),
                        shape: table.tupdesc,
                    })
                })
                .collect()
            }
        })
    })
}

/// A row of [`query`].
pub struct Row {
    tuple: pg_sys::HeapTuple,
    shape: pg_sys::TupleDesc,
}

impl Row {
    /// Column `number` (from 1); `None` for NULL.
    pub fn get<T: FromDatum>(&self, number: i32) -> Option<T> {
        let mut is_null = false;
        // SAFETY: a row of the query, whose columns have the types that the caller names.
        unsafe {
            let datum = pg_sys::SPI_getbinval(self.tuple, self.shape, number, &mut is_null);
            T::from_datum(datum, is_null)
        }
    }
}

/// Whether Citus is there in this database.
pub fn has_citus() -> bool {
    // SAFETY: a look-up by name.
    unsafe { pg_sys::get_extension_oid(c"citus".as_ptr(), true) != pg_sys::InvalidOid }
}

/// The nodes that are active, with primaries or secondaries as `citus.use_secondary_nodes` says; and this node's group.
pub fn read() -> (Vec<Node>, i32) {
    let sql = CString::new(include_str!("queries/nodes.sql")).unwrap_or_default();
    let nodes = query(&sql, |row| Node {
        group: row.get(1).unwrap_or(-1),
        id: row.get(2).unwrap_or(-1),
        host: row.get(3).unwrap_or_default(),
        port: row.get(4).unwrap_or(0),
    });
    let group = query(
        c"SELECT groupid FROM pg_catalog.pg_dist_local_group",
        |row| row.get::<i32>(1).unwrap_or(0),
    );
    (nodes, group.first().copied().unwrap_or(0))
}

/// Raises the error for a node that Citus does not know.
pub fn unknown(group: i32) -> ! {
    raise_hint(
        PgSqlErrorCode::ERRCODE_CONNECTION_DOES_NOT_EXIST,
        format!("group {group} of the cluster has no active node"),
        "SELECT * FROM pg_dist_node shows the nodes that Citus knows.",
    )
}
