//! Rows of Citus' catalogues, read as PostgreSQL reads its own: as they are now, by an index where there is one,
//! without SQL. A session that begins has nothing in its caches, so that to plan queries about them was a third of what
//! it did before its first answer (eight nodes on two processors).

use std::ffi::CStr;

use pgrx::datum::FromDatum;
use pgrx::pg_sys;

/// What tells the rows that are wanted: an index, the column that it is of, and the value.
pub enum ScanKey {
    /// A column of type `oid` or `regclass`.
    Oid(&'static CStr, &'static CStr, pg_sys::Oid),
    /// A column of type `bigint`.
    Int8(&'static CStr, &'static CStr, i64),
}

impl ScanKey {
    /// Rows of `pg_dist_partition` about this table.
    pub fn of_partition(table: pg_sys::Oid) -> Self {
        Self::Oid(
            c"pg_dist_partition_logical_relid_index",
            c"logicalrelid",
            table,
        )
    }

    /// Rows of `pg_dist_shard` about shards of this table.
    pub fn of_shards(table: pg_sys::Oid) -> Self {
        Self::Oid(c"pg_dist_shard_logical_relid_index", c"logicalrelid", table)
    }

    /// Rows of `pg_dist_shard` about this shard.
    pub fn of_shard(shard: i64) -> Self {
        Self::Int8(c"pg_dist_shard_shardid_index", c"shardid", shard)
    }

    /// Rows of `pg_dist_placement` about this shard.
    pub fn of_placements(shard: i64) -> Self {
        Self::Int8(c"pg_dist_placement_shardid_index", c"shardid", shard)
    }
}

/// A row of a catalogue.
pub struct Row {
    tuple: pg_sys::HeapTuple,
    shape: pg_sys::TupleDesc,
}

impl Row {
    /// The value of a column; `None` for NULL, and where there is no such column. `T` is what the column's type is in
    /// Rust. What is borrowed is gone when the scan goes on.
    pub fn get<T: FromDatum>(&self, column: &CStr) -> Option<T> {
        let number = number_of(self.shape, column)?;
        let mut is_null = false;
        // SAFETY: a row of a scan that goes on, and a column of it.
        unsafe {
            let datum = pg_sys::heap_getattr(self.tuple, number.into(), self.shape, &mut is_null);
            T::from_datum(datum, is_null)
        }
    }

    /// The transaction that has made this version of the row.
    pub fn xmin(&self) -> pg_sys::TransactionId {
        // SAFETY: as above.
        unsafe { (*(*self.tuple).t_data).t_choice.t_heap.t_xmin }
    }
}

/// The number of a column.
fn number_of(shape: pg_sys::TupleDesc, column: &CStr) -> Option<i16> {
    // SAFETY: the shape of an open relation.
    let columns = unsafe { (*shape).attrs.as_slice((*shape).natts as usize) };
    let found = columns.iter().find(|attribute| {
        // SAFETY: a name ends with NUL.
        !attribute.attisdropped
            && unsafe { CStr::from_ptr(attribute.attname.data.as_ptr()) } == column
    });
    found.map(|attribute| attribute.attnum)
}

/// The oid of a relation of schema `pg_catalog`; `InvalidOid` where there is none, as where Citus is not installed in
/// this database.
pub fn relation(name: &CStr) -> pg_sys::Oid {
    let schema = pg_sys::Oid::from(pg_sys::PG_CATALOG_NAMESPACE);
    // SAFETY: a look-up by name.
    unsafe { pg_sys::get_relname_relid(name.as_ptr(), schema) }
}

/// Catalogues as they are at one moment. What is in several of them fits together: a shard, and where it is.
pub struct CatalogueSnapshot(pg_sys::Snapshot);

impl CatalogueSnapshot {
    /// Now.
    pub fn take() -> Self {
        // SAFETY: in a transaction. Not being one of PostgreSQL's own, such a catalogue is seen by a new snapshot.
        unsafe {
            Self(pg_sys::RegisterSnapshot(pg_sys::GetCatalogSnapshot(
                pg_sys::InvalidOid,
            )))
        }
    }

    /// Calls `each` with the rows of a catalogue of Citus, all or those with a key.
    pub fn each_row(&self, name: &CStr, key: Option<&ScanKey>, each: impl FnMut(&Row)) {
        self.each_row_of(relation(name), key, each);
    }

    /// The same of any table, whatever the rights of the current role; no rows where the oid is invalid.
    pub fn each_row_of(
        &self,
        table: pg_sys::Oid,
        key: Option<&ScanKey>,
        mut each: impl FnMut(&Row),
    ) {
        if table == pg_sys::InvalidOid {
            return;
        }
        let lock = pg_sys::AccessShareLock as pg_sys::LOCKMODE;
        // SAFETY: a scan of an open table, ended here or by PostgreSQL after an error; snapshot and key outlive it.
        unsafe {
            let table = pg_sys::table_open(table, lock);
            let shape = (*table).rd_att;
            let mut written = pg_sys::ScanKeyData::default();
            let index = match key {
                Some(key) => key.write(shape, &mut written),
                None => pg_sys::InvalidOid,
            };
            let scan = pg_sys::systable_beginscan(
                table,
                index,
                index != pg_sys::InvalidOid,
                self.0,
                key.iter().len() as i32,
                &raw mut written,
            );
            loop {
                let tuple = pg_sys::systable_getnext(scan);
                if tuple.is_null() {
                    break;
                }
                each(&Row { tuple, shape });
            }
            pg_sys::systable_endscan(scan);
            pg_sys::table_close(table, lock);
        }
    }
}

impl Drop for CatalogueSnapshot {
    fn drop(&mut self) {
        // After an error PostgreSQL has it.
        if !std::thread::panicking() {
            // SAFETY: registered in `take`, unregistered only here.
            unsafe { pg_sys::UnregisterSnapshot(self.0) };
        }
    }
}

/// Calls `each` with the rows that a catalogue of Citus has now, all or those with a key.
pub fn each_row(name: &CStr, key: Option<&ScanKey>, each: impl FnMut(&Row)) {
    CatalogueSnapshot::take().each_row(name, key, each);
}

impl ScanKey {
    /// Writes the key of a scan; returns the index, `InvalidOid` where this version of Citus has none of that name.
    fn write(&self, shape: pg_sys::TupleDesc, key: &mut pg_sys::ScanKeyData) -> pg_sys::Oid {
        let (index, column, function, value) = match *self {
            Self::Oid(index, column, oid) => {
                (index, column, pg_sys::F_OIDEQ, pg_sys::Datum::from(oid))
            }
            Self::Int8(index, column, number) => {
                (index, column, pg_sys::F_INT8EQ, pg_sys::Datum::from(number))
            }
        };
        // SAFETY: initializes the key in place. The number of no column is an error of PostgreSQL's.
        unsafe {
            pg_sys::ScanKeyInit(
                key,
                number_of(shape, column).unwrap_or(0),
                pg_sys::BTEqualStrategyNumber as pg_sys::StrategyNumber,
                pg_sys::RegProcedure::from(function),
                value,
            );
        }
        relation(index)
    }
}
