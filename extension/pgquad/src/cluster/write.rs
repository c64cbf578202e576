//! Changes of a distributed store. What a statement deletes and inserts is collected (`storage::pending`) and then
//! written to both tables of the store by Citus, within the transaction of the caller.
//!
//! Invariant: both tables get the same quads in the same transaction, deletions before insertions. So a quad which one
//! statement deletes and inserts stays, as it does in a table of one node.
//!
//! Invariant: a statement for Citus takes its snapshot when the shards that it writes can no longer be moved: see
//! [`hold`].

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashSet};
use std::ffi::CStr;
use std::ops::Range;
use std::panic::AssertUnwindSafe;
use std::rc::Rc;
use std::time::Duration;

use pgquad_btree::{key_of, quad_of, Key, Order, Quad};
use pgquad_cluster::hash::hash_bigint;
use pgquad_cluster::quad_batches::QuadBatches;
use pgrx::iter::TableIterator;
use pgrx::pg_sys::panic::CaughtError;
use pgrx::prelude::*;
use pgrx::{pg_sys, PgSqlErrorCode};

use super::connection::end_scope_of_transaction;
use super::mirror::qualified_name;
use super::store::{owner_of, Sides};
use super::{arrival, citus, map};
use crate::pg::error::{raise, raise_hint};
use crate::storage::{self, pending, Sorter};
use crate::store::with_settings;

/// Up to so many quads go as parameters of the statement (0.4 ms instead of 2 on loopback), more by a function that
/// streams them.
const PARAMETER_QUADS: usize = 1000;
/// Quads of one DELETE: all of them go to every shard that one of them is in.
const DELETE_CHUNK: usize = 10_000;
/// Citus' setting for the bytes that it collects for a shard of this node; and the least and most that it is given.
const LOCAL_BUFFER: &CStr = c"citus.local_copy_flush_threshold";
const LOCAL_BUFFER_BYTES: Range<usize> = 512 << 10..256 << 20;
/// Between two attempts to delete what another transaction is about to commit.
const PAUSES: Range<Duration> = Duration::from_millis(1)..Duration::from_millis(100);
/// How the system calls ENOSPC, at the end of PostgreSQL's message.
const FULL_DISK: &str = "No space left on device";
/// Deletions kept back at most; they are also what tells that a statement meets a quad twice.
const MOST_DELETED: usize = 1 << 20;

/// Rows of quads for the shards of a table.
type Source = QuadBatches<Box<dyn Iterator<Item = Quad>>>;

thread_local! {
    static WRITTEN: Cell<bool> = const { Cell::new(false) };
    /// The transaction has begun to write where shards of this node are written in the process.
    static LOCAL: Cell<bool> = const { Cell::new(false) };
    /// A statement of this extension is running that writes to the tables of stores.
    static ALLOWED: Cell<bool> = const { Cell::new(false) };
    /// The transaction has made, emptied or altered shards.
    static RESHAPED: Cell<bool> = const { Cell::new(false) };
    /// What `quad.cluster_source` is to give.
    static SOURCE: RefCell<Option<Source>> = const { RefCell::new(None) };
}

/// Whether this transaction has changed a distributed store, so that its reads have to go where its writes went.
pub fn has_written() -> bool {
    WRITTEN.get()
}

/// Notes that this transaction changes a distributed store.
pub fn note() {
    if !WRITTEN.replace(true) {
        LOCAL.set(citus::executes_locally());
    }
}

/// Notes that this transaction makes, empties or alters shards. Its sessions to other nodes do not see these changes,
/// or would wait for them: for this very transaction, unseen by any deadlock detector. `what` completes "cannot .. a
/// distributed store".
pub fn note_reshaped(what: &str) {
    end_scope_of_transaction(what);
    note();
    RESHAPED.set(true);
}

/// Whether other sessions can be asked about shards that this transaction has changed, where they answer without
/// looking at snapshots.
pub fn others_can_answer() -> bool {
    !RESHAPED.get()
}

/// Runs `body`, statements on the tables of Citus in a transaction that has written to some, as the owner of the store.
pub fn as_writer<T>(owner: pg_sys::Oid, body: impl FnOnce() -> T) -> T {
    citus::as_role(owner, || {
        allowed(|| {
            citus::in_transaction_block(|| {
                if LOCAL.get() && !citus::executes_locally() {
                    citus::locally(body)
                } else {
                    body()
                }
            })
        })
    })
}

/// Runs `body`, statements of this extension that may write to one of the two tables of a store.
pub fn allowed<T>(body: impl FnOnce() -> T) -> T {
    let outer = ALLOWED.replace(true);
    let result = body();
    ALLOWED.set(outer);
    result
}

/// Whether the running statement may write to one of the two tables of a store.
pub fn is_allowed() -> bool {
    ALLOWED.get()
}

/// To be called when a savepoint is rolled back: what an error has ended allows nothing any more.
pub fn forget_allowed() {
    ALLOWED.set(false);
}

/// Forgets the transaction; called at its end.
pub fn forget() {
    WRITTEN.set(false);
    RESHAPED.set(false);
    ALLOWED.set(false);
    SOURCE.take();
}

/// One of the two tables: its key column and the order that it is best written in.
#[derive(Clone, Copy)]
struct Side {
    relid: pg_sys::Oid,
    column: char,
    place: usize,
    order: &'static str,
}

fn sides(sides: Sides) -> [Side; 2] {
    [
        Side {
            relid: sides.by_subject,
            column: 's',
            place: 0,
            order: "spog",
        },
        Side {
            relid: sides.by_object,
            column: 'o',
            place: 2,
            order: "ospg",
        },
    ]
}

fn order(side: Side) -> Order {
    side.order.parse().expect("a constant")
}

/// What one statement changes in one store.
pub struct Changes {
    sides: Sides,
    deleted: HashSet<Quad>,
    inserted: Collected,
}

impl Changes {
    /// No changes yet.
    pub fn new(sides: Sides) -> Self {
        // SAFETY: a setting of PostgreSQL, in KB.
        let memory = unsafe { pg_sys::maintenance_work_mem } as usize * 1024;
        Self::with_memory(sides, memory)
    }

    /// No changes yet; insertions may take about `memory` bytes.
    pub fn with_memory(sides: Sides, memory: usize) -> Self {
        Self {
            sides,
            deleted: HashSet::new(),
            inserted: Collected::new(memory),
        }
    }

    /// Notes insertions.
    pub fn insert(&mut self, quads: &[Quad]) {
        self.inserted.push(quads);
    }

    /// Notes a deletion; false when the statement has deleted the quad already.
    pub fn delete(&mut self, quad: Quad) -> bool {
        self.deleted.insert(quad)
    }

    /// Takes the deletions out when there are too many to keep.
    pub fn overflow(&mut self) -> Option<Self> {
        if self.deleted.len() < MOST_DELETED {
            return None;
        }
        let mut due = Self::new(self.sides);
        due.deleted = std::mem::take(&mut self.deleted);
        Some(due)
    }

    /// Writes everything.
    pub fn write(self) {
        self.write_as(false);
    }

    /// Writes everything. Returns the number of quads that were not there before.
    pub fn write_and_count(self) -> u64 {
        self.write_as(true)
    }

    fn write_as(self, count: bool) -> u64 {
        note();
        let owner = owner_of(self.sides.by_subject);
        as_writer(owner, || {
            if !self.deleted.is_empty() {
                delete(self.sides, self.deleted.into_iter().collect());
            }
            self.inserted.write(self.sides, count)
        })
    }
}

/// Keeps the shards of some keys of a table, or all (`None`), from being moved or split until the transaction ends.
///
/// Citus does so itself, but only when the statement has its snapshot already. If a shard has come to this node while
/// the statement waited, it is written to in this very process, under that snapshot. The snapshot does not see what the
/// move has copied, so quads that were to be deleted would stay.
fn hold(side: Side, keys: Option<&[i64]>) {
    // Citus' lock is that of the place among the shards: a split that was waited for has changed shards and places.
    let mut held = Vec::new();
    while let Some(table) = map::table_of(side.relid) {
        let shards = table.placement.shards();
        let mut places: Vec<usize> = match keys {
            Some(keys) => keys
                .iter()
                .map(|&key| table.placement.shard_of(key))
                .collect(),
            None => (0..shards.len()).collect(),
        };
        places.sort_unstable();
        places.dedup();
        let wanted: Vec<(usize, u64)> = places.iter().map(|&n| (n, shards[n].id)).collect();
        if wanted == held {
            places.iter().for_each(|&n| arrival::check_write(&table, n));
            return;
        }
        let numbers: Vec<u64> = wanted.iter().map(|&(_, id)| id).collect();
        citus::lock_shards(&numbers);
        // SAFETY: in a transaction.
        unsafe { pg_sys::AcceptInvalidationMessages() };
        held = wanted;
    }
}

/// Deletes quads from both tables. The table by subject decides which: what it does not have any more stays in the
/// other one, where the transaction that has deleted it, or inserts it anew, sees to it.
///
/// A commit reaches one node after the other. What the first table shows as inserted may not be committed in the second
/// one yet. A deletion there would miss it, and it would stay in that table alone. So the deletion is repeated until it
/// has met everything, or until no transaction is left that could be half-way. Such a one is prepared and waits for
/// nobody.
fn delete(tables: Sides, mut quads: Vec<Quad>) {
    let [by_subject, by_object] = sides(tables);
    let (_, mut quads) = delete_from(by_subject, &mut quads, true);
    let mut missing = quads.len();
    let mut half_way: Option<HashSet<String>> = None;
    let mut pause = PAUSES.start;
    loop {
        missing = missing.saturating_sub(delete_from(by_object, &mut quads, false).0);
        if missing == 0 {
            return;
        }
        if half_way.as_ref().is_some_and(HashSet::is_empty) {
            break;
        }
        let prepared = citus::prepared();
        let half_way = half_way.get_or_insert_with(|| prepared.clone());
        half_way.retain(|transaction| prepared.contains(transaction));
        if !half_way.is_empty() {
            storage::interrupt();
            std::thread::sleep(pause);
            pause = PAUSES.end.min(pause * 2);
        }
    }
    // With one snapshot for all statements nothing appears by waiting. Otherwise the tables differed before.
    if super::snapshots::is_kept() {
        raise_hint(
            PgSqlErrorCode::ERRCODE_T_R_SERIALIZATION_FAILURE,
            "could not serialize access due to concurrent update",
            "Another transaction has changed the same quads on several nodes. Run this one again.",
        );
    }
}

/// Deletes quads from one table. Returns their number and, if asked for, those that were there.
fn delete_from(side: Side, quads: &mut [Quad], which: bool) -> (usize, Vec<Quad>) {
    quads.sort_by_cached_key(|quad| hash_bigint(quad[side.place]));
    let table = qualified_name(side.relid);
    let column = side.column;
    let returning = if which {
        " RETURNING t.s, t.p, t.o, t.g"
    } else {
        ""
    };
    let sql = format!(
        "DELETE FROM {table} AS t WHERE t.{column} = ANY ($5) \
         AND (t.s, t.p, t.o, t.g) IN (SELECT d.s, d.p, d.o, d.g FROM unnest($1, $2, $3, $4) AS d(s, p, o, g)){returning}"
    );
    let (mut number, mut deleted) = (0, Vec::new());
    for chunk in quads.chunks(DELETE_CHUNK) {
        storage::interrupt();
        let mut keys: Vec<i64> = chunk.iter().map(|quad| quad[side.place]).collect();
        keys.sort_unstable();
        keys.dedup();
        hold(side, Some(&keys));
        let mut parameters = columns(chunk).to_vec();
        parameters.push(keys);
        number += execute(&sql, parameters, &mut deleted);
    }
    (number, deleted)
}

fn columns(quads: &[Quad]) -> [Vec<i64>; 4] {
    std::array::from_fn(|column| quads.iter().map(|quad| quad[column]).collect())
}

/// Runs a statement whose parameters are arrays of bigint. Returns the number of its rows; those that it returns are
/// added to `quads`.
fn execute(sql: &str, parameters: Vec<Vec<i64>>, quads: &mut Vec<Quad>) -> usize {
    let parameters: Vec<_> = parameters.into_iter().map(Into::into).collect();
    let run = || -> Result<usize, pgrx::spi::Error> {
        Spi::connect_mut(|client| {
            let rows = client.update(sql, None, &parameters)?;
            let number = rows.len();
            if rows.columns().is_ok() {
                for row in rows {
                    let column = |n| row.get::<i64>(n).map(Option::unwrap_or_default);
                    quads.push([column(1)?, column(2)?, column(3)?, column(4)?]);
                }
            }
            Ok(number)
        })
    };
    citus::with_catalog_path(run).unwrap_or_else(|error| {
        raise(
            PgSqlErrorCode::ERRCODE_INTERNAL_ERROR,
            format!("\"{sql}\" failed: {error}"),
        )
    })
}

/// Quads to insert, in memory up to a limit, then in temporary files.
pub struct Collected {
    keys: Vec<Key>,
    bytes: usize,
    sorter: Option<Sorter>,
}

impl Collected {
    /// `bytes`: memory that may be used.
    pub fn new(bytes: usize) -> Self {
        Self {
            keys: Vec::new(),
            bytes,
            sorter: None,
        }
    }

    /// Adds quads in any order.
    pub fn push(&mut self, quads: &[Quad]) {
        let order: Order = "spog".parse().expect("a constant");
        for quad in quads {
            let key = key_of(order, quad);
            match &mut self.sorter {
                Some(sorter) => sorter.push(key),
                None => self.keys.push(key),
            }
        }
        if self.sorter.is_none() && self.keys.len() * size_of::<Key>() >= self.bytes {
            // Two sorters are alive while the first table is written.
            let mut sorter = Sorter::new(self.bytes / 2);
            std::mem::take(&mut self.keys)
                .into_iter()
                .for_each(|key| sorter.push(key));
            self.sorter = Some(sorter);
        }
    }

    /// Writes everything to both tables, as the current role. Returns the number of quads that were not there before,
    /// if asked for.
    fn write(mut self, tables: Sides, count: bool) -> u64 {
        let [by_subject, by_object] = sides(tables);
        let sample = count.then(|| Sample::new(by_subject));
        match self.sorter.take() {
            None => in_memory(by_subject, by_object, self.keys, sample),
            Some(sorter) => spilled(by_subject, by_object, sorter, self.bytes / 2, sample),
        }
    }
}

fn in_memory(
    by_subject: Side,
    by_object: Side,
    mut keys: Vec<Key>,
    mut sample: Option<Sample>,
) -> u64 {
    if keys.is_empty() {
        return 0;
    }
    let mut count = 0;
    let mut from = order(by_subject);
    for side in [by_subject, by_object] {
        let to = order(side);
        for key in &mut keys {
            *key = key_of(to, &quad_of(from, key));
        }
        from = to;
        keys.sort_unstable();
        keys.dedup();
        if let Some(sample) = sample.as_mut() {
            keys.iter()
                .for_each(|key| sample.add(quad_of(to, key)[side.place]));
        }
        if keys.len() <= PARAMETER_QUADS {
            let quads: Vec<Quad> = keys.iter().map(|key| quad_of(to, key)).collect();
            hold(side, None);
            let table = qualified_name(side.relid);
            let sql = format!(
                "INSERT INTO {table} (s, p, o, g) SELECT d.s, d.p, d.o, d.g FROM unnest($1, $2, $3, $4) AS d(s, p, o, g)"
            );
            execute(&sql, columns(&quads).to_vec(), &mut Vec::new());
        } else {
            let sorted = Rc::new(keys);
            let source = sorted.clone();
            let quads = (0..source.len()).map(move |n| quad_of(to, &source[n]));
            stream(side, Box::new(quads));
            keys = Rc::into_inner(sorted).unwrap_or_else(still_read);
        }
        if let Some(sample) = sample.take() {
            count = added(side, &sample);
        }
    }
    count
}

/// The first table's quads stream out of its sorter, and into that of the second.
fn spilled(
    by_subject: Side,
    by_object: Side,
    first: Sorter,
    bytes: usize,
    sample: Option<Sample>,
) -> u64 {
    let (first_order, second_order) = (order(by_subject), order(by_object));
    let beside = Rc::new(RefCell::new((Sorter::new(bytes), sample)));
    let tee = beside.clone();
    let quads = first.finish().map(move |key| {
        let quad = quad_of(first_order, &key);
        let (second, sample) = &mut *tee.borrow_mut();
        second.push(key_of(second_order, &quad));
        if let Some(sample) = sample {
            sample.add(quad[by_subject.place]);
        }
        quad
    });
    stream(by_subject, Box::new(quads));
    let (second, sample) = Rc::into_inner(beside)
        .unwrap_or_else(still_read)
        .into_inner();
    let count = sample.map_or(0, |sample| added(by_subject, &sample));
    let quads = second.finish().map(move |key| quad_of(second_order, &key));
    stream(by_object, Box::new(quads));
    count
}

/// Raises an error: a statement that has ended still reads quads.
fn still_read<T>() -> T {
    raise(
        PgSqlErrorCode::ERRCODE_INTERNAL_ERROR,
        "the quads of a write are still being read",
    )
}

/// Inserts quads into one table with one statement, so that each of its shards gets one COPY. Its rows are batches of
/// quads, which the node of the shard takes apart: a row for each quad costs this node more than all else of a load.
fn stream(side: Side, quads: Box<dyn Iterator<Item = Quad>>) {
    hold(side, None);
    let Some(table) = map::table_of(side.relid) else {
        raise(
            PgSqlErrorCode::ERRCODE_INTERNAL_ERROR,
            format!("{} is not a table of Citus", qualified_name(side.relid)),
        );
    };
    SOURCE.set(Some(QuadBatches::new(
        quads,
        table.placement.clone(),
        side.place,
    )));
    // The key leads to the shard. The other columns of the row say nothing, but cannot be NULL.
    let sql = format!(
        "INSERT INTO {} (s, p, o, g, quads) SELECT d.key, d.key, d.key, d.key, d.quads FROM quad.cluster_source() AS d",
        qualified_name(side.relid)
    );
    let buffer = local_buffer(side).to_string();
    with_sqlstate(|| with_settings(&[(LOCAL_BUFFER, &buffer)], || citus::run(&sql)));
    SOURCE.take();
}

/// Runs `body`, in which Citus copies rows to other nodes. Of an error there Citus passes on the text and not the
/// SQLSTATE (`ReportCopyError` of its `multi_copy.c`): a full disk has its own again.
fn with_sqlstate(body: impl FnOnce()) {
    PgTryBuilder::new(AssertUnwindSafe(body))
        .catch_others(|error| match &error {
            CaughtError::PostgresError(report) | CaughtError::ErrorReport(report)
                if report.sql_error_code() == PgSqlErrorCode::ERRCODE_INTERNAL_ERROR
                    && report.message().ends_with(FULL_DISK) =>
            {
                raise_hint(
                    PgSqlErrorCode::ERRCODE_DISK_FULL,
                    report.message(),
                    "Check free disk space on all nodes.",
                )
            }
            _ => error.rethrow(),
        })
        .execute();
}

/// Bytes that Citus collects for each shard of this node before it writes them; its default is 512 kB. What comes at
/// once into an empty shard is built bottom-up, and what comes later is inserted. All shards together get what a
/// maintenance command may have.
fn local_buffer(side: Side) -> usize {
    let here = map::table_of(side.relid).map_or(1, |table| table.here.iter().flatten().count());
    // SAFETY: a setting of PostgreSQL, in KB.
    let memory = unsafe { pg_sys::maintenance_work_mem } as usize * 1024;
    (memory / here.max(1)).clamp(LOCAL_BUFFER_BYTES.start, LOCAL_BUFFER_BYTES.end)
}

/// The quads that are being written to a distributed store, for the statement that writes them.
#[pg_extern(name = "cluster_source", volatile, parallel_unsafe)]
fn source() -> TableIterator<'static, (name!(key, i64), name!(quads, Vec<u8>))> {
    let rows = SOURCE.take().into_iter().flatten();
    TableIterator::new(rows.inspect(|_| storage::interrupt()))
}

/// One key for each shard of a table that keys fall into.
struct Sample {
    /// Least hash of each shard, ascending.
    lows: Vec<i32>,
    keys: BTreeMap<usize, i64>,
    last: Option<i64>,
}

impl Sample {
    fn new(side: Side) -> Self {
        let lows = citus::rows(
            &format!(
                "SELECT shardminvalue FROM pg_dist_shard WHERE logicalrelid = {} ORDER BY shardminvalue::int",
                side.relid.to_u32()
            ),
            &[],
        );
        Self {
            lows: lows
                .iter()
                .filter_map(|row| row[0].as_ref()?.parse().ok())
                .collect(),
            keys: BTreeMap::new(),
            last: None,
        }
    }

    /// Adds a key; they come sorted, so most repeat the one before.
    fn add(&mut self, key: i64) {
        if self.last != Some(key) && self.keys.len() < self.lows.len() {
            self.last = Some(key);
            let hash = hash_bigint(key);
            let shard = self.lows.partition_point(|low| *low <= hash);
            self.keys.entry(shard).or_insert(key);
        }
    }
}

/// How many quads the statement that has just inserted quads with the sample's keys has added. Citus asks each shard
/// over the connection that wrote to it. So the session that knows is asked ([`crate::storage::pending::added`]).
fn added(side: Side, sample: &Sample) -> u64 {
    let keys: Vec<i64> = sample.keys.values().copied().collect();
    let sql = format!(
        "SELECT coalesce(sum(t.added), 0)::text FROM (SELECT {column}, max(quad.cluster_added(tableoid)) AS added \
         FROM {table} WHERE {column} = ANY ($1) GROUP BY {column}) AS t",
        column = side.column,
        table = qualified_name(side.relid)
    );
    let rows = citus::rows(&sql, &[keys.into()]);
    let added = rows.first().and_then(|row| row[0].as_ref()?.parse().ok());
    added.unwrap_or(0)
}

/// Number of quads that the last command of this transaction which wrote to a shard added to it.
#[pg_extern(name = "cluster_added", volatile, parallel_unsafe)]
fn added_here(shard: pg_sys::Oid) -> i64 {
    pending::added(shard) as i64
}
