//! The one table shape of the access method: four `bigint` columns s, p, o, g. The Citus tables of distributed stores
//! have a fifth one, which is always NULL when it is read.

use crate::catalog::distributed_store::is_shard_schema;
use crate::pg::error::raise_hint;
use pgrx::{pg_sys, PgSqlErrorCode, PgTupleDesc};

/// Column names in order.
pub const COLUMNS: [&str; 4] = ["s", "p", "o", "g"];
/// Column of the Citus tables of distributed stores. A row that has it stands for the quads in its bytes
/// ([`pgquad_cluster::quad_batches`]), and its other columns say where they are to go.
pub const QUADS: &str = "quads";

/// Name of a relation for messages.
///
/// # Safety
/// `rel` is open.
pub unsafe fn relation_name(rel: pg_sys::Relation) -> String {
    // SAFETY: the caller's promise; relname is NUL terminated.
    unsafe {
        std::ffi::CStr::from_ptr((*(*rel).rd_rel).relname.data.as_ptr())
            .to_string_lossy()
            .into_owned()
    }
}

/// Whether `rel` has the column [`QUADS`]: it is a Citus table of a distributed store, or a shard of one.
///
/// # Safety
/// `rel` is open.
pub unsafe fn has_quads(rel: pg_sys::Relation) -> bool {
    // SAFETY: the caller's promise.
    unsafe { (*(*rel).rd_att).natts as usize > COLUMNS.len() }
}

/// Whether a column beyond the four is the one that shards of distributed stores may have.
///
/// # Safety
/// `rel` is open.
unsafe fn is_quads(rel: pg_sys::Relation, desc: &PgTupleDesc<'_>) -> bool {
    // SAFETY: the caller's promise.
    let schema = unsafe { (*(*rel).rd_rel).relnamespace };
    let column = desc.get(COLUMNS.len());
    is_shard_schema(schema)
        && desc.len() == COLUMNS.len() + 1
        && column.is_some_and(|column| {
            column.name() == QUADS && column.atttypid == pg_sys::BYTEAOID && !column.attnotnull
        })
}

/// Refuses `rel`, which messages call `name`, unless it is (s bigint, p bigint, o bigint, g bigint), each NOT NULL.
///
/// `CREATE TABLE AS`, `SELECT INTO` and materialized views cannot declare NOT NULL; there `declared_not_null` is false
/// and NULLs are refused row by row.
///
/// # Safety
/// `rel` is open.
pub unsafe fn check(rel: pg_sys::Relation, name: &str, declared_not_null: bool) {
    // SAFETY: the caller's promise.
    let desc = unsafe { PgTupleDesc::from_pg_unchecked((*rel).rd_att) };
    let refuse = |what: String| -> ! {
        raise_hint(PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
            format!("table \"{name}\" cannot use access method \"quad\": {what}"),
            "A quad table has exactly the columns s bigint NOT NULL, p bigint NOT NULL, o bigint NOT NULL, g bigint NOT NULL.")
    };
    // SAFETY: the caller's promise.
    if desc.len() != COLUMNS.len() && !unsafe { is_quads(rel, &desc) } {
        refuse(format!("it has {} columns", desc.len()));
    }
    for (i, wanted) in COLUMNS.iter().enumerate() {
        let Some(column) = desc.get(i) else {
            refuse(format!("column {} is missing", i + 1));
        };
        if column.attisdropped || column.name() != *wanted {
            refuse(format!("column {} must be named \"{wanted}\"", i + 1));
        }
        if column.atttypid != pg_sys::INT8OID {
            refuse(format!("column \"{wanted}\" must be of type bigint"));
        }
        if column.attgenerated != 0 || column.attidentity != 0 {
            refuse(format!("column \"{wanted}\" cannot be generated"));
        }
        if declared_not_null && !column.attnotnull {
            refuse(format!("column \"{wanted}\" must be declared NOT NULL"));
        }
    }
}
