//! The nodes of the cluster, as Citus' catalogue names them.

use std::ffi::CStr;

use pgrx::prelude::*;
use pgrx::{pg_sys, PgSqlErrorCode, Spi};

use super::{catalogue, citus};
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

/// Runs `body` as the bootstrap superuser: what it reads is the extension's own business. Its search path is the
/// catalogue's: operators of the caller must not be found in it.
pub fn as_superuser<T>(body: impl FnOnce() -> T) -> T {
    let superuser = pg_sys::Oid::from(pg_sys::BOOTSTRAP_SUPERUSERID);
    citus::as_role(superuser, || citus::with_catalog_path(body))
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

/// The nodes that are active: primaries or secondaries, as `citus.use_secondary_nodes` says.
pub fn read() -> Vec<Node> {
    let role = match citus::setting(c"citus.use_secondary_nodes") {
        Some(use_secondaries) if use_secondaries == c"always" => "secondary",
        _ => "primary",
    };
    let cluster = citus::setting(c"citus.cluster_name");
    let mut nodes = Vec::new();
    catalogue::each_row(c"pg_dist_node", None, |row| {
        let is_of_role = row
            .get::<pg_sys::Oid>(c"noderole")
            .is_some_and(|of| pgrx::enum_helper::lookup_enum_by_oid(of).0 == role);
        let is_of_cluster = row.get::<&CStr>(c"nodecluster") == cluster;
        if is_of_role && is_of_cluster && row.get(c"isactive") == Some(true) {
            nodes.push(Node {
                group: row.get(c"groupid").unwrap_or(-1),
                id: row.get(c"nodeid").unwrap_or(-1),
                host: row.get(c"nodename").unwrap_or_default(),
                port: row.get(c"nodeport").unwrap_or(0),
            });
        }
    });
    nodes
}

/// The number of this node's group: 0 is the coordinator's, and that of a server without Citus.
pub fn local_group() -> i32 {
    let mut group = 0;
    catalogue::each_row(c"pg_dist_local_group", None, |row| {
        group = row.get(c"groupid").unwrap_or(0);
    });
    group
}

/// How to connect to a node as a role, beyond what all connections have in common (`pg_dist_authinfo`).
pub fn authinfo(node: &Node, role: &str) -> Option<String> {
    let mut found: Option<(i32, String)> = None;
    catalogue::each_row(c"pg_dist_authinfo", None, |row| {
        let of = row.get::<i32>(c"nodeid").unwrap_or(-1);
        let is_of_role = row
            .get::<&CStr>(c"rolename")
            .is_some_and(|of| of.to_bytes() == role.as_bytes());
        // That of a node has precedence over that of all nodes, number 0.
        if is_of_role && (of == 0 || of == node.id) && found.as_ref().is_none_or(|f| f.0 < of) {
            found = row.get(c"authinfo").map(|info| (of, info));
        }
    });
    found.map(|(_, info)| info)
}

/// Raises the error for a node that Citus does not know.
pub fn unknown(group: i32) -> ! {
    raise_hint(
        PgSqlErrorCode::ERRCODE_CONNECTION_DOES_NOT_EXIST,
        format!("group {group} of the cluster has no active node"),
        "SELECT * FROM pg_dist_node shows the nodes that Citus knows.",
    )
}
