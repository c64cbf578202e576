//! Whether the nodes of the cluster can take part in a distributed store: their metadata, and their pgquad.

use pgrx::prelude::*;
use pgrx::PgSqlErrorCode;

use super::citus::{rows, SAME_VERSION_HINT};
use super::connection;
use crate::pg::error::raise_hint;
use crate::storage::wal;

/// Refuses a cluster some node of which could not take part, naming the node.
pub fn check_nodes() {
    let others = rows(
        "SELECT format('%s:%s', nodename, nodeport), (hasmetadata AND metadatasynced)::text, (groupid = 0)::text \
         FROM pg_dist_node WHERE isactive AND noderole = 'primary'",
        &[],
    );
    if !others.is_empty() && others.iter().all(|row| row[2].as_deref() != Some("true")) {
        raise_hint(
            PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            "the other nodes do not know the address of the coordinator",
            "Run SELECT citus_set_coordinator_host('host', port) here, then try again.",
        );
    }
    if let Some(node) = others.iter().find(|row| row[1].as_deref() != Some("true")) {
        raise_hint(
            PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            format!(
                "node {} has no up-to-date metadata of the cluster",
                node[0].as_deref().unwrap_or_default()
            ),
            "Run SELECT start_metadata_sync_to_all_nodes() here, then try again.",
        );
    }
    let expected = state_of_node();
    for row in rows(
        "SELECT format('%s:%s', nodename, nodeport), r.success::text, r.result, groupid::text \
         FROM run_command_on_all_nodes('SELECT quad.cluster_node_state()') AS r JOIN pg_dist_node USING (nodeid)",
        &[],
    ) {
        let (node, result) = (
            row[0].as_deref().unwrap_or_default(),
            row[2].as_deref().unwrap_or_default(),
        );
        if row[1].as_deref() != Some("t") && row[1].as_deref() != Some("true") {
            // Citus does not say why it could not connect; an attempt of our own does.
            let group = row[3].as_ref().and_then(|group| group.parse().ok());
            if let Some(group) = group.filter(|_| result.starts_with("failed to connect")) {
                connection::reach(group);
            }
            raise_hint(
                PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                format!("pgquad does not answer on node {node}: {result}"),
                SAME_VERSION_HINT,
            );
        }
        if result != expected {
            raise_hint(
                PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                format!("node {node} has pgquad {result}, this node {expected}"),
                SAME_VERSION_HINT,
            );
        }
    }
}

/// Version of the library of this node and whether the server has preloaded it.
#[pg_extern(name = "cluster_node_state")]
fn state_of_node() -> String {
    let preloaded = wal::preloaded();
    format!(
        "{}{}",
        env!("CARGO_PKG_VERSION"),
        if preloaded { "" } else { ", not preloaded" }
    )
}
