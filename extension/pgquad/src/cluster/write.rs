//! Changes of a distributed store. What a statement deletes and inserts is collected ([`super::pending_changes`]) and
//! then written to both tables of the store by Citus, within the transaction of the caller.
//!
//! Invariant: both tables get the same quads in the same transaction, deletions before insertions. So a quad which one
//! statement deletes and inserts stays, as it does in a table of one node.
//!
//! Invariant: a statement for Citus takes its snapshot when the shards that it writes can no longer be moved: see
//! [`hold`].

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ffi::CStr;
use std::ops::Range;
use std::rc::Rc;
use std::time::Duration;

use pgquad_btree::{key_of, quad_of, Key, Order, Quad};
use pgquad_cluster::hash::hash_bigint;
use pgquad_cluster::quad_batches::QuadBatches;
use pgquad_cluster::taken::Taken;
use pgquad_cluster::{statement_chunks, Placement, SortedKeys};
use pgrx::iter::TableIterator;
use pgrx::prelude::*;
use pgrx::{pg_sys, PgSqlErrorCode};

use super::connection::end_scope_of_transaction;
use super::relations::qualified_name;
use super::{arrival, citus, map};
use crate::catalog::distributed_store::{owner_of, Sides};
use crate::pg::error::{raise, raise_hint};
use crate::pg::guc::with_settings;
use crate::pg::interrupt::interrupt;
use crate::storage::{has_transaction_snapshot, pending, QuadSorter, SortedQuads};

/// Up to so many quads go as parameters of the statement (0.4 ms instead of 2 on loopback), more by a function that
/// streams them.
const PARAMETER_QUADS: usize = 1000;
/// Up to so many quads go to all shards of a node over one connection. Citus opens one for each shard otherwise, and
/// each prepares and commits by itself. Milliseconds on three nodes of one machine, 12 shards, one connection and many:
/// 300 quads 11 and 60, 1,000 19 and 64, 10,000 73 and 114, 30,000 215 and 217.
const ONE_CONNECTION_QUADS: usize = 20_000;
/// Most quads of one DELETE.
const DELETE_CHUNK: usize = 10_000;
/// Quads that shards may be given of others for there to be one DELETE less, which costs 0.7 ms; a quad costs 3 us for
/// each shard that gets it (three nodes of one machine, 8 shards).
const SPARED_QUADS: usize = 250;
/// Citus' setting for the bytes that it collects for a shard of this node; and the least and most that it is given.
const LOCAL_BUFFER: &CStr = c"citus.local_copy_flush_threshold";
const LOCAL_BUFFER_BYTES: Range<usize> = 512 << 10..256 << 20;
/// Citus' setting for the bytes that may wait for a shard of another node to take them, and what it is given: a row.
/// Its default is 8 MB, and what waits is sent when all other shards have been ended.
const REMOTE_BUFFER: (&CStr, &str) = (c"citus.remote_copy_flush_threshold", "64kB");
/// Quads to insert are sorted in memory up to one in so many parts of what may be used: the rest is for the sort on
/// threads, which takes them over then.
const SORTED_IN_MEMORY_PART: usize = 4;
/// Quads that the sort on threads gets at once.
const PUSHED_QUADS: usize = 4096;
/// Between two attempts to delete what another transaction is about to commit.
const PAUSES: Range<Duration> = Duration::from_millis(1)..Duration::from_millis(100);
/// Deletions kept back at most; they are also what tells that a statement meets a quad twice.
const MAX_DELETED_QUADS: usize = 1 << 20;

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
    /// Versions of the quad that was deleted last from a shard here.
    static MARKED: Cell<i64> = const { Cell::new(0) };
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
    let body = || citus::with_sqlstate(|| citus::unexplained(body));
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

/// To be called when a savepoint is rolled back: what an error has ended allows nothing any more, and nobody reads its
/// quads.
pub fn forget_statement() {
    ALLOWED.set(false);
    SOURCE.take();
}

/// Forgets the transaction; called at its end.
pub fn forget() {
    WRITTEN.set(false);
    RESHAPED.set(false);
    forget_statement();
}

/// One of the two tables: its key column and the order that it is best written in.
#[derive(Clone, Copy)]
struct Side {
    relid: pg_sys::Oid,
    column: char,
    place: usize,
    order: Order,
}

fn sides(sides: Sides) -> [Side; 2] {
    [
        Side {
            relid: sides.by_subject,
            column: 's',
            place: 0,
            order: Order::SPOG,
        },
        Side {
            relid: sides.by_object,
            column: 'o',
            place: 2,
            order: Order::OSPG,
        },
    ]
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
        if self.deleted.len() < MAX_DELETED_QUADS {
            return None;
        }
        let mut due = Self::new(self.sides);
        due.deleted = std::mem::take(&mut self.deleted);
        Some(due)
    }

    /// Writes everything. Returns the number of quads that were not there before.
    pub fn write(self) -> u64 {
        note();
        let owner = owner_of(self.sides.by_subject);
        as_writer(owner, || {
            if !self.deleted.is_empty() {
                delete(self.sides, self.deleted.into_iter().collect());
            }
            self.inserted.write(self.sides)
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

/// Deletes quads from both tables. The table by subject decides which. What it does not have any more stays in the
/// other one, where the transaction that has deleted it, or inserts it anew, sees to it.
///
/// A commit reaches one node after the other, and each table is read a moment later than the one before. What the first
/// table shows as inserted may not be committed in the second one yet. A deletion there would miss it, and it would
/// stay in that table alone. Or the second one shows a version that has come since, which would stay in the first one.
/// So a quad is deleted until both have lost as many versions of it, or until no transaction is left that could be
/// half-way. Such a one is prepared and waits for nobody.
fn delete(tables: Sides, mut quads: Vec<Quad>) {
    let [by_subject, by_object] = sides(tables);
    let mut balance: HashMap<Quad, Marked> = HashMap::new();
    for (quad, versions) in delete_from(by_subject, &mut quads) {
        balance.entry(quad).or_default().by_subject += versions;
    }
    let mut quads: Vec<Quad> = balance.keys().copied().collect();
    let mut ahead: Vec<Quad> = Vec::new();
    let mut half_way: Option<HashSet<String>> = None;
    let mut pause = PAUSES.start;
    loop {
        for (quad, versions) in delete_from(by_subject, &mut std::mem::take(&mut ahead)) {
            balance.entry(quad).or_default().by_subject += versions;
        }
        for (quad, versions) in delete_from(by_object, &mut quads) {
            balance.entry(quad).or_default().by_object += versions;
        }
        balance.retain(|_, marked| marked.by_subject != marked.by_object);
        if balance.is_empty() {
            return;
        }
        if half_way.as_ref().is_some_and(HashSet::is_empty) {
            break;
        }
        let prepared = citus::prepared();
        let half_way = half_way.get_or_insert_with(|| prepared.clone());
        half_way.retain(|transaction| prepared.contains(transaction));
        if !half_way.is_empty() {
            interrupt();
            std::thread::sleep(pause);
            pause = PAUSES.end.min(pause * 2);
        }
        quads.clear();
        for (quad, marked) in &balance {
            if marked.by_subject > marked.by_object {
                quads.push(*quad);
            } else {
                ahead.push(*quad);
            }
        }
    }
    // With one snapshot for all statements nothing appears by waiting. Otherwise the tables differed before.
    if has_transaction_snapshot() && balance.values().any(|marked| marked.by_object == 0) {
        raise_hint(
            PgSqlErrorCode::ERRCODE_T_R_SERIALIZATION_FAILURE,
            "could not serialize access due to concurrent update",
            "Another transaction has changed the same quads on several nodes. Run this one again.",
        );
    }
}

/// Versions of a quad that a statement has deleted from each table.
#[derive(Default)]
struct Marked {
    by_subject: i64,
    by_object: i64,
}

/// Deletes quads from one table. Returns those that were there, with the number of their versions.
fn delete_from(side: Side, quads: &mut [Quad]) -> Vec<(Quad, i64)> {
    if quads.is_empty() {
        return Vec::new();
    }
    // Shards are ranges of these hashes.
    quads.sort_by_cached_key(|quad| hash_bigint(quad[side.place]));
    let placement = placement_of(side);
    let shards = quads
        .iter()
        .map(|quad| placement.shard_of(quad[side.place]));
    let shards: Vec<usize> = shards.collect();
    let of_shards: Vec<usize> = shards.chunk_by(usize::eq).map(<[usize]>::len).collect();
    let table = qualified_name(side.relid);
    let column = side.column;
    let sql = format!(
        "DELETE FROM {table} AS t WHERE t.{column} = ANY ($5) \
         AND (t.s, t.p, t.o, t.g) IN (SELECT d.s, d.p, d.o, d.g FROM unnest($1, $2, $3, $4) AS d(s, p, o, g)) \
         RETURNING t.s, t.p, t.o, t.g, quad.cluster_marked(t.s)"
    );
    let mut deleted = Vec::new();
    for chunk in statement_chunks(&of_shards, DELETE_CHUNK, SPARED_QUADS) {
        interrupt();
        let chunk = &quads[chunk];
        let mut keys: Vec<i64> = chunk.iter().map(|quad| quad[side.place]).collect();
        keys.sort_unstable();
        keys.dedup();
        hold(side, Some(&keys));
        let mut parameters = columns(chunk).to_vec();
        parameters.push(keys);
        execute(&sql, parameters, &mut deleted);
    }
    deleted
}

/// Notes how many versions of a quad have just been deleted from a shard.
pub fn note_marked(versions: usize) {
    MARKED.set(versions as i64);
}

/// Number of versions of the quad that this session has deleted last. It is immutable for Citus, which takes no other
/// function in RETURNING. The argument keeps it from being called once for all rows.
#[pg_extern(name = "cluster_marked", immutable, parallel_unsafe)]
fn marked_here(_quad: i64) -> i64 {
    MARKED.get()
}

fn columns(quads: &[Quad]) -> [Vec<i64>; 4] {
    std::array::from_fn(|column| quads.iter().map(|quad| quad[column]).collect())
}

/// Runs a statement whose parameters are arrays of bigint. What it returns is added to `deleted`: quads with a number.
fn execute(sql: &str, parameters: Vec<Vec<i64>>, deleted: &mut Vec<(Quad, i64)>) {
    let parameters: Vec<_> = parameters.into_iter().map(Into::into).collect();
    let run = || -> Result<(), pgrx::spi::Error> {
        Spi::connect_mut(|client| {
            let rows = client.update(sql, None, &parameters)?;
            if rows.columns().is_ok() {
                for row in rows {
                    let column = |n| row.get::<i64>(n).map(Option::unwrap_or_default);
                    let quad = [column(1)?, column(2)?, column(3)?, column(4)?];
                    deleted.push((quad, column(5)?));
                }
            }
            Ok(())
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
    /// Sorts them for both tables, on threads.
    sorter: Option<QuadSorter>,
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
        if let Some(sorter) = &mut self.sorter {
            return sorter.push(quads);
        }
        let keys = quads.iter().map(|quad| key_of(Order::SPOG, quad));
        self.keys.extend(keys);
        if self.keys.len() * size_of::<Key>() >= self.bytes / SORTED_IN_MEMORY_PART {
            let sorter = QuadSorter::new(&[Order::SPOG, Order::OSPG], self.bytes);
            let keys = std::mem::take(&mut self.keys).into_iter();
            let quads = keys.map(|key| quad_of(Order::SPOG, &key));
            self.sorter = Some(push_all(sorter, quads));
        }
    }

    /// Writes everything to both tables, as the current role. Returns the number of quads that were not there before.
    fn write(mut self, tables: Sides) -> u64 {
        let [by_subject, by_object] = sides(tables);
        match self.sorter.take() {
            None => in_memory(by_subject, by_object, self.keys),
            Some(sorter) => spilled(by_subject, by_object, sorter.finish(), self.bytes),
        }
    }
}

/// Has all quads sorted.
fn push_all(mut sorter: QuadSorter, mut quads: impl Iterator<Item = Quad>) -> QuadSorter {
    loop {
        let some: Vec<Quad> = quads.by_ref().take(PUSHED_QUADS).collect();
        if some.is_empty() {
            return sorter;
        }
        sorter.push(&some);
    }
}

/// Sorted quads of order number `n` of those they were sorted in, which is `order`. A thread merges them.
fn merged(sorted: &Rc<SortedQuads>, n: usize, order: Order) -> impl Iterator<Item = Quad> {
    let (sorted, mut chunks) = (sorted.clone(), sorted.chunks(n));
    let chunks = std::iter::from_fn(move || sorted.next(&mut chunks));
    chunks.flatten().map(move |key| quad_of(order, &key))
}

/// Removes the files of sorted quads, which nobody reads any more.
fn close(sorted: Rc<SortedQuads>) {
    Rc::into_inner(sorted).unwrap_or_else(still_read).close();
}

/// What a statement inserts, sorted for the first table.
enum Sorted {
    Memory(Vec<Key>),
    Files(Rc<SortedQuads>),
}

/// The quads of a statement, as often as they are asked for.
fn quads_of(sorted: &Rc<Sorted>, order: Order) -> Box<dyn Iterator<Item = Quad>> {
    match &**sorted {
        Sorted::Files(sorted) => Box::new(merged(sorted, 0, order)),
        Sorted::Memory(keys) => {
            let (count, shared) = (keys.len(), sorted.clone());
            Box::new((0..count).map_while(move |n| match &*shared {
                Sorted::Memory(keys) => Some(quad_of(order, &keys[n])),
                Sorted::Files(_) => None,
            }))
        }
    }
}

fn in_memory(by_subject: Side, by_object: Side, mut keys: Vec<Key>) -> u64 {
    if keys.is_empty() {
        return 0;
    }
    keys.sort_unstable();
    keys.dedup();
    if keys.len() <= ONE_CONNECTION_QUADS {
        citus::over_one_connection(|| sorted_in_memory(by_subject, by_object, keys))
    } else {
        sorted_in_memory(by_subject, by_object, keys)
    }
}

fn sorted_in_memory(by_subject: Side, by_object: Side, keys: Vec<Key>) -> u64 {
    let few = keys.len() <= PARAMETER_QUADS;
    let sorted = Rc::new(Sorted::Memory(keys));
    let decided = insert_first(by_subject, &sorted, few);
    let (added, to) = (decided.added, by_object.order);
    let mut own: Vec<Quad> = decided.own(quads_of(&sorted, by_subject.order)).collect();
    drop(sorted);
    own.sort_unstable_by_key(|quad| key_of(to, quad));
    if few {
        insert_few(by_object, &own);
    } else if !own.is_empty() {
        stream(by_object, Box::new(own.into_iter()));
    }
    added
}

/// The quads are sorted for the second table, too. It gets them as they are where the first one takes all of them, as
/// it does when an empty store is loaded. Otherwise they are read once more for what the first one has decided.
fn spilled(by_subject: Side, by_object: Side, sorted: SortedQuads, bytes: usize) -> u64 {
    let (from, to) = (by_subject.order, by_object.order);
    let sorted = Rc::new(sorted);
    let decided = insert_first(by_subject, &Rc::new(Sorted::Files(sorted.clone())), false);
    let added = decided.added;
    let (second, n) = if added == decided.sent {
        (sorted, 1)
    } else {
        let own = decided.own(merged(&sorted, 0, from));
        let second = push_all(QuadSorter::new(&[to], bytes), own).finish();
        close(sorted);
        (Rc::new(second), 0)
    };
    stream(by_object, Box::new(merged(&second, n, to)));
    close(second);
    added
}

/// Inserts quads into the first table, until all of its shards have said what they have decided.
fn insert_first(side: Side, sorted: &Rc<Sorted>, few: bool) -> Decided {
    let mut decided = Decided::new(side);
    while decided.is_open() {
        let quads = quads_of(sorted, side.order);
        if few {
            let due: Vec<Quad> = quads.filter(|quad| decided.is_due(quad)).collect();
            insert_few(side, &due);
        } else {
            let shared = Rc::new(RefCell::new(decided));
            let deciding = shared.clone();
            let due = quads.filter(move |quad| deciding.borrow_mut().is_due(quad));
            stream(side, Box::new(due));
            decided = Rc::into_inner(shared)
                .unwrap_or_else(still_read)
                .into_inner();
        }
        decided.ask(side);
    }
    decided
}

/// Inserts quads into one table as parameters of a statement.
fn insert_few(side: Side, quads: &[Quad]) {
    if quads.is_empty() {
        return;
    }
    hold(side, None);
    let table = qualified_name(side.relid);
    let sql = format!(
        "INSERT INTO {table} (s, p, o, g) SELECT d.s, d.p, d.o, d.g FROM unnest($1, $2, $3, $4) AS d(s, p, o, g)"
    );
    execute(&sql, columns(quads).to_vec(), &mut Vec::new());
}

/// Raises an error: a statement that has ended still reads quads.
fn still_read<T>() -> T {
    raise(
        PgSqlErrorCode::ERRCODE_INTERNAL_ERROR,
        "the quads of a write are still being read",
    )
}

/// The shards of a table.
fn placement_of(side: Side) -> Placement {
    let Some(table) = map::table_of(side.relid) else {
        raise(
            PgSqlErrorCode::ERRCODE_INTERNAL_ERROR,
            format!("{} is not a table of Citus", qualified_name(side.relid)),
        );
    };
    table.placement.clone()
}

/// Inserts quads into one table with one statement, so that each of its shards gets one COPY. Its rows are batches of
/// quads, which the node of the shard takes apart: a row for each quad costs this node more than all else of a load.
fn stream(side: Side, quads: Box<dyn Iterator<Item = Quad>>) {
    hold(side, None);
    let placement = placement_of(side);
    let rows = QuadBatches::new(quads, placement, side.place);
    SOURCE.set(Some(rows));
    // The key leads to the shard. The other columns of the row say nothing, but cannot be NULL. PostgreSQL keeps all
    // rows of a function in FROM before it reads the first; those of one in the list of columns come when they are
    // wanted.
    let sql = format!(
        "INSERT INTO {} (s, p, o, g, quads) \
         SELECT (d.source).key, (d.source).key, (d.source).key, (d.source).key, (d.source).quads \
         FROM (SELECT quad.cluster_source() AS source OFFSET 0) AS d",
        qualified_name(side.relid)
    );
    let buffer = local_buffer(side).to_string();
    with_settings(&[(LOCAL_BUFFER, &buffer), REMOTE_BUFFER], || {
        citus::run(&sql)
    });
    SOURCE.take();
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
    TableIterator::new(rows.inspect(|_| interrupt()))
}

/// What the shards of the first table have decided about the quads of a statement. The second table gets those that
/// the transaction has inserted into the first one, and no others. Were it to decide by itself, a moment later, quads
/// that were there and are deleted meanwhile would be inserted into it alone.
struct Decided {
    shards: SortedKeys,
    /// Shards that have not said what they have decided: all at first.
    open: Open,
    /// A quad of each shard that is being written to, and the number of its quads.
    asked: BTreeMap<usize, (Quad, u64)>,
    answers: HashMap<usize, Taken>,
    /// Quads that the shards were sent, each once.
    sent: u64,
    /// Quads that were not there before.
    added: u64,
}

enum Open {
    All,
    Some(BTreeSet<usize>),
}

impl Decided {
    fn new(side: Side) -> Self {
        // The shards stay as they are from here on.
        hold(side, None);
        Self {
            shards: SortedKeys::new(placement_of(side)),
            open: Open::All,
            asked: BTreeMap::new(),
            answers: HashMap::new(),
            sent: 0,
            added: 0,
        }
    }

    /// Whether shards are left to be written to.
    fn is_open(&self) -> bool {
        match &self.open {
            Open::All => true,
            Open::Some(shards) => !shards.is_empty(),
        }
    }

    /// Whether a quad is for a shard that is left; notes that it is written.
    fn is_due(&mut self, quad: &Quad) -> bool {
        let shard = self.shards.shard_of(quad[0]);
        if matches!(&self.open, Open::Some(shards) if !shards.contains(&shard)) {
            return false;
        }
        self.asked.entry(shard).or_insert((*quad, 0)).1 += 1;
        true
    }

    /// Asks the shards that have been written to. Citus asks each over the connection that wrote to it, so it is the
    /// session that knows. A shard is found by a quad of it. When that was there before and has been deleted meanwhile,
    /// the shard is left open. Written to again it has a version of this transaction's own, which nobody else deletes.
    fn ask(&mut self, side: Side) {
        let asked = std::mem::take(&mut self.asked);
        let (quads, counts): (Vec<Quad>, Vec<u64>) = asked.values().copied().unzip();
        let mut parameters: Vec<_> = columns(&quads).into_iter().map(Into::into).collect();
        parameters.push(
            quads
                .iter()
                .map(|quad| quad[0])
                .collect::<Vec<i64>>()
                .into(),
        );
        let sql = format!(
            "SELECT t.s::text, quad.cluster_taken(t.tableoid) FROM {} AS t WHERE t.s = ANY ($5) \
             AND (t.s, t.p, t.o, t.g) IN (SELECT d.s, d.p, d.o, d.g FROM unnest($1, $2, $3, $4) AS d(s, p, o, g))",
            qualified_name(side.relid)
        );
        let mut open: BTreeSet<usize> = asked.keys().copied().collect();
        for row in citus::rows(&sql, &parameters) {
            let number = |text: &String| text.parse::<i64>().ok();
            let at = row[0].as_ref().and_then(number);
            let at = at.and_then(|subject| quads.iter().position(|quad| quad[0] == subject));
            let taken = row[1].as_ref().and_then(|text| Taken::parse(text));
            let (Some(at), Some(taken)) = (at, taken) else {
                continue;
            };
            if taken.quads() != counts[at] {
                raise(
                    PgSqlErrorCode::ERRCODE_INTERNAL_ERROR,
                    format!(
                        "a shard has decided about {} quads, and has been sent {}",
                        taken.quads(),
                        counts[at]
                    ),
                );
            }
            let shard = self.shards.shard_of(quads[at][0]);
            open.remove(&shard);
            self.sent += counts[at];
            self.added += taken.added;
            self.answers.insert(shard, taken);
        }
        self.open = Open::Some(open);
    }

    /// Of all the quads, in the same order, those that the transaction has inserted.
    fn own(mut self, quads: impl Iterator<Item = Quad>) -> impl Iterator<Item = Quad> {
        let answers = std::mem::take(&mut self.answers).into_iter();
        let mut answers: HashMap<usize, _> = answers
            .map(|(shard, taken)| (shard, taken.each()))
            .collect();
        quads.filter(move |quad| {
            let of_shard = answers.get_mut(&self.shards.shard_of(quad[0]));
            of_shard.and_then(Iterator::next).unwrap_or(false)
        })
    }
}

/// What the last command of this transaction which wrote to a shard has decided about its quads: [`Taken`].
#[pg_extern(name = "cluster_taken", volatile, parallel_unsafe)]
fn taken_here(shard: pg_sys::Oid) -> String {
    pending::taken(shard)
}
