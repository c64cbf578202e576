//! Columns of tables that could not declare them NOT NULL.

use super::shape;
use crate::catalog::access_method::is_quad_relid;
use pgrx::pg_sys;

/// Marks the columns of a quad table NOT NULL where they are not. `CREATE TABLE AS` cannot say so, though every row is
/// checked. A dump has to say so, for the CREATE TABLE in it must have the whole shape. Materialized views stay as they
/// are: their dump is their query.
///
/// # Safety
/// In a transaction that has made the table, and counted a command since.
pub unsafe fn declare(relid: pg_sys::Oid) {
    // SAFETY: the catalogue is open during the call; the tuples are copies.
    unsafe {
        if !is_quad_relid(relid) || pg_sys::get_rel_relkind(relid) as u8 != pg_sys::RELKIND_RELATION
        {
            return;
        }
        let lock = pg_sys::RowExclusiveLock as i32;
        let catalogue = pg_sys::table_open(pg_sys::AttributeRelationId, lock);
        for number in 1..=shape::COLUMNS.len() {
            let tuple = pg_sys::SearchSysCacheCopyAttNum(relid, number as i16);
            if tuple.is_null() {
                continue;
            }
            let column = pg_sys::GETSTRUCT(tuple).cast::<pg_sys::FormData_pg_attribute>();
            if !(*column).attnotnull {
                (*column).attnotnull = true;
                pg_sys::CatalogTupleUpdate(catalogue, &raw mut (*tuple).t_self, tuple);
            }
            pg_sys::heap_freetuple(tuple);
        }
        pg_sys::table_close(catalogue, lock);
    }
}
