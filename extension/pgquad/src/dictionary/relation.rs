//! Relations, scans and insertions of the dictionary's tables through PostgreSQL's C interfaces.
//!
//! Reads see what is committed at the moment of the read, and what this transaction has written (`SnapshotSelf`),
//! whatever snapshot the statement has. The tables only ever grow, and an id that someone hands us may be younger than
//! our snapshot.
//!
//! After an error PostgreSQL itself releases what these types hold, so nothing is released while unwinding.

use pgrx::{pg_sys, varlena, FromDatum};

/// The snapshot described above.
pub fn latest() -> pg_sys::Snapshot {
    &raw mut pg_sys::SnapshotSelfData
}

/// An open relation. The lock is kept until the transaction ends.
pub struct Relation(pg_sys::Relation);

impl Relation {
    /// Opens a table with this lock.
    pub fn open(oid: pg_sys::Oid, lock: u32) -> Self {
        // SAFETY: raises an error when there is no such relation.
        Relation(unsafe { pg_sys::table_open(oid, lock as pg_sys::LOCKMODE) })
    }

    /// The relation for calls into PostgreSQL; valid as long as `self`.
    pub fn as_ptr(&self) -> pg_sys::Relation {
        self.0
    }
}

impl Drop for Relation {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            // SAFETY: opened in `open`, closed only here.
            unsafe { pg_sys::table_close(self.0, pg_sys::NoLock as pg_sys::LOCKMODE) };
        }
    }
}

/// A slot for rows of a table.
struct Slot(*mut pg_sys::TupleTableSlot);

impl Slot {
    fn new(relation: &Relation) -> Self {
        // SAFETY: the relation is open.
        Slot(unsafe { pg_sys::table_slot_create(relation.0, std::ptr::null_mut()) })
    }

    /// Column `number` (from 1) of the row in the slot; the tables have no null values.
    fn datum(&self, number: i32) -> pg_sys::Datum {
        let mut is_null = false;
        // SAFETY: the slot holds a row of a table with at least `number` columns.
        unsafe { pg_sys::slot_getattr(self.0, number, &mut is_null) }
    }

    fn clear(&self) {
        // SAFETY: the slot is alive.
        unsafe { pg_sys::ExecClearTuple(self.0) };
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            // SAFETY: created in `new`, dropped only here.
            unsafe { pg_sys::ExecDropSingleTupleTableSlot(self.0) };
        }
    }
}

/// The row a scan stands on.
pub struct Row<'a>(&'a Slot);

impl Row<'_> {
    /// A `bigint` column.
    pub fn bigint(&self, number: i32) -> i64 {
        self.0.datum(number).value() as i64
    }

    /// An `integer` column.
    pub fn integer(&self, number: i32) -> i32 {
        self.0.datum(number).value() as i32
    }

    /// Calls `body` with the bytes of a `bytea` or `text` column.
    pub fn with_bytes<T>(&self, number: i32, body: impl FnOnce(&[u8]) -> T) -> T {
        let stored = self.0.datum(number).cast_mut_ptr::<pg_sys::varlena>();
        // SAFETY: the datum is a varlena of the row in the slot, which stays there while `self` is borrowed.
        let plain = unsafe { pg_sys::pg_detoast_datum_packed(stored) };
        // SAFETY: `plain` is a varlena in memory until it is freed below.
        let result = body(unsafe { varlena::varlena_to_byte_slice(plain) });
        if plain != stored {
            // SAFETY: a copy made for us.
            unsafe { pg_sys::pfree(plain.cast()) };
        }
        result
    }

    /// Where the row is in its table.
    pub fn place(&self) -> pg_sys::ItemPointerData {
        // SAFETY: the slot holds a row.
        unsafe { (*self.0 .0).tts_tid }
    }

    /// A `text` column.
    pub fn text(&self, number: i32) -> String {
        // SAFETY: the column is of type text and not null.
        unsafe { String::from_datum(self.0.datum(number), false) }.unwrap_or_default()
    }
}

/// A search by the index of a primary key.
pub struct IndexScan {
    index: pg_sys::Relation,
    scan: pg_sys::IndexScanDesc,
    slot: Slot,
    keys: [pg_sys::ScanKeyData; 2],
}

impl IndexScan {
    /// A scan of `table` by its primary key, whose first column is a `bigint`.
    pub fn new(table: &Relation) -> Self {
        let mut keys = [pg_sys::ScanKeyData::default(); 2];
        let compare = [
            (pg_sys::BTGreaterEqualStrategyNumber, pg_sys::F_INT8GE),
            (pg_sys::BTLessEqualStrategyNumber, pg_sys::F_INT8LE),
        ];
        // SAFETY: initializes the keys in place; table and index are open for the life of the scan.
        unsafe {
            for (key, (strategy, function)) in keys.iter_mut().zip(compare) {
                pg_sys::ScanKeyInit(
                    key,
                    1,
                    strategy as pg_sys::StrategyNumber,
                    pg_sys::RegProcedure::from(function),
                    pg_sys::Datum::from(0),
                );
            }
            let key = pg_sys::RelationGetPrimaryKeyIndex(table.0);
            let index = pg_sys::index_open(key, pg_sys::AccessShareLock as pg_sys::LOCKMODE);
            let scan = pg_sys::index_beginscan(table.0, index, latest(), keys.len() as i32, 0);
            IndexScan {
                index,
                scan,
                slot: Slot::new(table),
                keys,
            }
        }
    }

    /// The row whose key begins with the largest number between these, both included.
    pub fn last_within(&mut self, low: i64, high: i64) -> Option<Row<'_>> {
        self.seek(low, high);
        self.step(pg_sys::ScanDirection::BackwardScanDirection)
            .then_some(Row(&self.slot))
    }

    /// Begins to read the rows with keys between these, both included.
    pub fn seek(&mut self, low: i64, high: i64) {
        self.keys[0].sk_argument = pg_sys::Datum::from(low);
        self.keys[1].sk_argument = pg_sys::Datum::from(high);
        // SAFETY: the keys are initialized.
        unsafe {
            pg_sys::index_rescan(
                self.scan,
                self.keys.as_mut_ptr(),
                self.keys.len() as i32,
                std::ptr::null_mut(),
                0,
            );
        }
    }

    /// The next row in ascending order, after [`Self::seek`].
    pub fn next(&mut self) -> Option<Row<'_>> {
        self.step(pg_sys::ScanDirection::ForwardScanDirection)
            .then_some(Row(&self.slot))
    }

    fn step(&mut self, direction: pg_sys::ScanDirection::Type) -> bool {
        // SAFETY: scan and slot belong to the same table.
        unsafe { pg_sys::index_getnext_slot(self.scan, direction, self.slot.0) }
    }
}

impl Drop for IndexScan {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.slot.clear();
            // SAFETY: begun and opened in `new`, ended only here.
            unsafe {
                pg_sys::index_endscan(self.scan);
                pg_sys::index_close(self.index, pg_sys::NoLock as pg_sys::LOCKMODE);
            }
        }
    }
}

/// Calls `body` with the rows of a table, for as long as it says `true`.
pub fn for_each_row(table: &Relation, mut body: impl FnMut(Row<'_>) -> bool) {
    let slot = Slot::new(table);
    // SAFETY: the table is open; the scan is ended below, or by PostgreSQL after an error.
    unsafe {
        let scan = pg_sys::table_beginscan(table.0, latest(), 0, std::ptr::null_mut());
        while pg_sys::table_scan_getnextslot(
            scan,
            pg_sys::ScanDirection::ForwardScanDirection,
            slot.0,
        ) {
            if !body(Row(&slot)) {
                break;
            }
        }
        slot.clear();
        pg_sys::table_endscan(scan);
    }
}

/// Puts another version in the place of a row that no other transaction changes meanwhile. At most once in a command
/// for each row.
pub fn update(table: &Relation, mut place: pg_sys::ItemPointerData, values: &mut [pg_sys::Datum]) {
    let mut nulls = vec![false; values.len()];
    // SAFETY: the table has columns of the number and types of the values; the tuple is freed after it was copied into
    // the table.
    unsafe {
        let shape = (*table.0).rd_att;
        let tuple = pg_sys::heap_form_tuple(shape, values.as_mut_ptr(), nulls.as_mut_ptr());
        pg_sys::CatalogTupleUpdate(table.0, &mut place, tuple);
        pg_sys::heap_freetuple(tuple);
    }
}

/// Inserts rows into a heap table and its indexes.
pub struct Inserter {
    table: Relation,
    indexes: pg_sys::CatalogIndexState,
}

impl Inserter {
    /// Opens the indexes of `table`.
    pub fn new(table: Relation) -> Self {
        // SAFETY: the table is open. The functions for catalogues serve any heap table with plain indexes.
        let indexes = unsafe { pg_sys::CatalogOpenIndexes(table.0) };
        Inserter { table, indexes }
    }

    /// Inserts a row.
    pub fn insert(&self, values: &mut [pg_sys::Datum]) {
        let mut nulls = vec![false; values.len()];
        // SAFETY: the table has columns of the number and types of the values; the tuple is freed after its insertion.
        unsafe {
            let tuple = pg_sys::heap_form_tuple(
                (*self.table.0).rd_att,
                values.as_mut_ptr(),
                nulls.as_mut_ptr(),
            );
            pg_sys::CatalogTupleInsertWithInfo(self.table.0, tuple, self.indexes);
            pg_sys::heap_freetuple(tuple);
        }
    }

    /// Inserts a row of numbers and a `bytea` or `text`.
    pub fn insert_bytes(&self, numbers: &[pg_sys::Datum], bytes: &[u8]) {
        let bytes = varlena::rust_byte_slice_to_bytea(bytes).into_pg();
        let mut values = numbers.to_vec();
        values.push(pg_sys::Datum::from(bytes));
        self.insert(&mut values);
        // SAFETY: made just above, and copied into the table.
        unsafe { pg_sys::pfree(bytes.cast()) };
    }
}

impl Drop for Inserter {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            // SAFETY: opened in `new`, closed only here.
            unsafe { pg_sys::CatalogCloseIndexes(self.indexes) };
        }
    }
}
