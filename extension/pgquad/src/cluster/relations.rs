//! Relations of distributed stores on this node, as the catalogue shows them to the running statement.

use pgrx::pg_sys;

use super::citus::{self, literal};

/// Quoted, schema-qualified name of a relation.
pub fn qualified_name(relid: pg_sys::Oid) -> String {
    one(&format!(
        "SELECT format('%I.%I', n.nspname, c.relname) FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE c.oid = {}",
        relid.to_u32()
    ))
}

/// The first column of the first row of a query; empty where there is none.
pub fn one(sql: &str) -> String {
    let rows = citus::rows(sql, &[]);
    rows.into_iter()
        .next()
        .and_then(|row| row.into_iter().next().flatten())
        .unwrap_or_default()
}

/// Relations of distributed stores on this node.
pub fn distributed() -> Vec<pg_sys::Oid> {
    oids(
        "SELECT oid::text FROM pg_class WHERE relnamespace = 'quad_stores'::regnamespace \
         AND EXISTS (SELECT FROM unnest(reloptions) AS o WHERE o LIKE 'shards=%') ORDER BY oid",
    )
}

fn oids(sql: &str) -> Vec<pg_sys::Oid> {
    citus::rows(sql, &[])
        .into_iter()
        .filter_map(|row| row[0].as_ref()?.parse::<u32>().ok())
        .map(pg_sys::Oid::from)
        .collect()
}

/// The relation with this mark.
pub fn marked(base: &str) -> Option<pg_sys::Oid> {
    let mark = literal(&format!("shards={base}"));
    oids(&format!(
        "SELECT oid::text FROM pg_class WHERE relnamespace = 'quad_stores'::regnamespace AND reloptions @> ARRAY[{mark}]"
    ))
    .pop()
}
