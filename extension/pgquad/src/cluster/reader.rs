//! Reading the orders of a store whose quads are in shards: those of this node as local tables, the others by messages.

use std::cell::{Cell, RefCell};
use std::hash::Hash;
use std::rc::Rc;

use pgquad_btree::{
    Batch, Filter, GroupCursor, Groups, Key, Order, Probe, Span, Work, ALL_COLUMNS, KEY_MAX,
    KEY_MIN, SIGN,
};
use pgquad_cluster::ahead::parts_of;
use pgquad_cluster::groups::{decode_groups, GroupRequest, ValuesRequest};
use pgquad_cluster::message::{
    self, Count, Found, Kind, Part, Read, Rows, KEYS_AHEAD, NOT_READABLE,
};
use pgquad_cluster::placement::each_once;
use pgquad_cluster::reading::first_requests;
use pgquad_cluster::{shard_of_range, Damaged, Deal, Placement, Reading, Shards, Traffic, Wish};
use pgrx::pg_sys;
use rustc_hash::FxHashMap;

use super::connection::{Announcement, Scope};
use super::groups::{self, ShardedGroups};
use super::own_writes::Written;
use super::protocol::damaged;
use super::write::{has_written, others_can_answer};
use super::{arrival, estimates, map};
use crate::catalog::distributed_store::{self, Sides, ORDERS};
use crate::storage::{has_transaction_snapshot, range_for, LocalReader};

/// Column by which the rows of a side are placed: subject, object.
const PLACED_BY: [u8; 2] = [0, 2];

/// Shards here that are counted to estimate a range that all shards may have quads of.
const SAMPLED_SHARDS: usize = 4;
/// Entries in such a sample under which it says little: all nodes are asked. Values that many quads share are in few
/// shards, and these may be elsewhere. For example 28,000 offers have 21 numbers of days until their delivery.
const FEW_SAMPLED: u64 = 10;
/// Quads that a sample of shards by subject has in all, under which the store is too small for that to matter.
const MANY_SAMPLED: u64 = 1000;
/// Estimates from such a sample are remembered from so many quads on. A query of a few rows takes as long to find its
/// order as to run: each sampled shard costs 2 us. It asks for the same large ranges again and again.
const WORTH_REMEMBERING: u64 = 1000;

/// Most ranges of an estimate that are read ahead, too. Those of a query's constants are few, and the next message
/// would ask for their quads; others are keys of a sample.
const READ_WITH_ESTIMATE: usize = 16;

/// Values with their counts in an answer (4 MB): what there is no room for is counted anew for the next one.
const MAX_VALUES: u32 = 256 * 1024;

/// The tables of a distributed store, as one snapshot sees them.
pub struct ShardedReader {
    sides: [Rc<map::Table>; 2],
    /// Of the map that they are of.
    generation: u64,
    snapshot: pg_sys::Snapshot,
    scope: Rc<Scope>,
    traffic: Rc<Cell<Traffic>>,
    /// This transaction has written to stores on many nodes: it reads through Citus.
    written: bool,
    /// It has made or locked shards: estimates are not asked of other sessions.
    reshaped: bool,
    /// Shards of this node that have been used, by side: a place for each shard of the table once the first is.
    open: RefCell<[Vec<Option<Open>>; 2]>,
    /// In a join that several participants run: the participant that holds each shard, by side.
    holders: Option<[Vec<u16>; 2]>,
    /// Reads under way, by node.
    under_way: RefCell<Vec<(i32, UnderWay)>>,
}

/// A read of other nodes that has been asked for.
enum UnderWay {
    /// It is answered from what was read before, or ahead.
    Known(Rc<Rows>),
    /// A message is on its way, which reads this ahead. Beside it is the request, with the group of the node.
    Asked(Vec<Wish>, (i32, Vec<u8>)),
    /// The same where the message says nothing of the read itself, as all of it is read ahead.
    Ahead(Vec<Wish>, Box<Read>),
    /// It has been prefetched.
    Prefetched((i32, Vec<u8>)),
}

/// A shard of this node.
struct Open {
    rel: pg_sys::Relation,
    reader: Rc<LocalReader>,
}

impl ShardedReader {
    /// A reader of the tables behind a store.
    ///
    /// # Safety
    /// `snapshot` is registered (or active) while the reader is used.
    pub unsafe fn new(sides: Sides, snapshot: pg_sys::Snapshot) -> Self {
        // A transaction that has locked a shard here hears of its move by itself only when it locks something new.
        // What was left here would go on to be read, and others write to the shard where it is now.
        // SAFETY: in a transaction.
        unsafe { pg_sys::AcceptInvalidationMessages() };
        let sides = [sides.by_subject, sides.by_object].map(|relid| {
            map::table_of(relid).unwrap_or_else(|| {
                crate::pg::error::raise_hint(
                    pgrx::PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                    "the shards of a distributed store are not known on this node",
                    "SELECT start_metadata_sync_to_all_nodes() on the coordinator tells all nodes where shards are.",
                )
            })
        });
        Self {
            open: RefCell::default(),
            sides,
            generation: map::generation(),
            snapshot,
            scope: Scope::of_snapshot(snapshot),
            traffic: Rc::default(),
            written: has_written(),
            reshaped: !others_can_answer(),
            holders: None,
            under_way: RefCell::default(),
        }
    }

    /// A reader of the store with this mark.
    ///
    /// # Safety
    /// As for [`Self::new`].
    pub unsafe fn of_store(mark: &str, snapshot: pg_sys::Snapshot) -> Self {
        let Some(sides) = distributed_store::sides_of_mark(mark) else {
            crate::pg::error::raise(
                pgrx::PgSqlErrorCode::ERRCODE_UNDEFINED_TABLE,
                format!(
                    "this node has no shards of the distributed store with the mark \"{mark}\""
                ),
            )
        };
        // SAFETY: the caller's promise.
        unsafe { Self::new(sides, snapshot) }
    }

    /// How many readers of distributed stores read under this one's snapshot, itself included.
    pub fn sharing(&self) -> usize {
        Rc::strong_count(&self.scope)
    }

    /// The orders.
    pub fn orders(&self) -> &[Order] {
        &ORDERS
    }

    /// The place of a column (0 = subject .. 3 = graph) in the keys of an order.
    pub fn place(&self, order: usize, column: usize) -> usize {
        ORDERS[order].position(column)
    }

    /// An order of the store.
    pub fn order(&self, order: usize) -> Order {
        ORDERS[order]
    }

    /// What has gone over the wire for this reader.
    pub fn traffic(&self) -> Traffic {
        self.traffic.get()
    }

    fn send(&self, group: i32, request: &[u8]) {
        let before = self.scope.traffic();
        self.scope.send(group, request);
        self.note_since(before);
    }

    fn receive(&self, group: i32) -> Vec<u8> {
        let before = self.scope.traffic();
        let answer = self.scope.receive(group);
        self.note_since(before);
        answer
    }

    /// Ranges of orders that will be asked for soon. Those on other nodes are read with the next message, and not asked
    /// for again.
    pub fn read_ahead(&self, order: usize, ranges: &[(Key, Key)]) {
        if self.written {
            return;
        }
        for range in ranges {
            self.wish(order, range);
        }
    }

    /// Asks for a range of an order with the next message, where it is in a shard of another node; false where it is
    /// not asked for.
    fn wish(&self, order: usize, range: &(Key, Key)) -> bool {
        let side = self.side(order);
        let shard = side.shard_of(range).filter(|&shard| !side.is_here(shard));
        let Some(shard) = shard else {
            return false;
        };
        let placed = side.placement().shards()[shard];
        self.scope.ahead().wish(Wish {
            table: side.table().relid.to_u32(),
            group: placed.group,
            shard: placed.id,
            order: side.order as u8,
            range: *range,
        })
    }

    /// Whether reads may be answered from what is read ahead: not for the planner, which has no snapshot of a query.
    fn reads_ahead(&self) -> bool {
        !self.written && !std::ptr::eq(self.snapshot, &raw mut pg_sys::SnapshotSelfData)
    }

    /// About how many keys a range of an order has, by what has been read ahead.
    fn counted_ahead(&self, order: usize, range: &(Key, Key)) -> Option<u64> {
        let side = self.side(order);
        let (table, order) = (side.table().relid.to_u32(), side.order as u8);
        let ahead = self.scope.ahead();
        ahead.count(table, order, range)
    }

    /// Whether a range of an order is counted without asking other nodes.
    pub fn is_counted_here(&self, order: usize, range: &(Key, Key)) -> bool {
        let side = self.side(order);
        let shard = side.shard_of(range);
        self.reshaped || shard.is_none_or(|shard| side.is_here(shard))
    }

    /// Whether a range of an order, in one shard, is read without asking another node.
    pub fn is_known(&self, order: usize, range: &(Key, Key)) -> bool {
        let side = self.side(order);
        let shard = side.shard_of(range);
        let is_kept = || {
            let table = side.table().relid.to_u32();
            let ahead = self.scope.ahead();
            ahead.keys(table, side.order as u8, range).is_some()
        };
        shard.is_some_and(|shard| side.is_here(shard) || self.reads_ahead() && is_kept())
    }

    /// Appends the keys of a range of an order, where there are at most `most` and no other node has to be asked; false
    /// otherwise. What is read of shards here is kept for the next time.
    pub fn known_keys(
        &self,
        order: usize,
        range: &(Key, Key),
        most: usize,
        keys: &mut Vec<Key>,
    ) -> bool {
        let side = self.side(order);
        let (table, number) = (side.table().relid.to_u32(), side.order as u8);
        let shard = side.shard_of(range);
        let (Some(shard), true) = (shard, self.reads_ahead()) else {
            return false;
        };
        if let Some(known) = self.scope.ahead().keys(table, number, range) {
            keys.extend_from_slice(&known[..known.len().min(most)]);
            return known.len() <= most;
        }
        // Perhaps nobody comes to need it: that is no reason to wait for a lock, or to fail.
        let is_large = self.counted_ahead(order, range).is_some();
        if is_large || !side.is_here(shard) || !side.is_readable(shard) {
            return false;
        }
        let (mut batch, mut spans) = (Batch::new(), Vec::new());
        batch.clear(ALL_COLUMNS);
        let (probe, ranges) = (&mut Probe::new(ALL_COLUMNS), std::slice::from_ref(range));
        side.read_here(shard, probe, ranges, KEYS_AHEAD + 1, &mut batch, &mut spans);
        let read: Vec<Key> = (0..batch.len()).map(|n| batch.key(n)).collect();
        if read.len() > KEYS_AHEAD {
            let least = read.len() as u64;
            self.scope.ahead().keep_count(table, number, range, least);
        }
        if read.len() > most.min(KEYS_AHEAD) {
            return false;
        }
        keys.extend_from_slice(&read);
        self.scope.ahead().keep_keys(table, number, range, read);
        true
    }

    /// Whether other nodes may be asked for what perhaps nobody comes to need.
    fn may_prefetch(&self) -> bool {
        !self.written && !has_transaction_snapshot()
    }

    /// Asks other nodes with the next messages for what [`Self::read`] of these columns will ask them for, when it
    /// reads about `enough` rows of these ranges first. False where it does not: nobody may come to need the answer, so
    /// it must not fail, as a read of a shard that has arrived after an old snapshot does.
    pub fn prefetch(&self, order: usize, mask: u8, ranges: &[(Key, Key)], enough: usize) -> bool {
        if !self.may_prefetch() {
            return false;
        }
        let side = self.side(order);
        let table = side.table().relid.to_u32();
        for (group, request) in first_requests(&side, mask, ranges, enough) {
            // What comes with a message anyway stands for more than this request.
            let is_coming = self.scope.ahead().is_wished(table, &request);
            if !is_coming {
                self.scope.prefetch(group, request.encode());
            }
        }
        true
    }

    /// A join begins; `hash` gives what tells it and its parameters apart. What its query has read when it ran last
    /// goes with the next messages. False where that is not known, or must not be asked for, as in [`Self::prefetch`].
    pub fn begin_run(&self, hash: impl FnOnce() -> u64) -> bool {
        // Reads by a map that is out of date are not for the next run.
        let may_ask = self.may_prefetch() && self.generation == map::generation();
        let before = self.scope.traffic();
        let is_under_way = may_ask && self.scope.begin_run(hash);
        self.note_since(before);
        is_under_way
    }

    /// Takes what has been prefetched and not been used: nothing of it is under way any more.
    pub fn take_prefetched(&self) {
        let before = self.scope.traffic();
        self.scope.take_prefetches();
        self.note_since(before);
    }

    /// Forgets what was to be read ahead and has not been asked for.
    pub fn forget_wishes(&self) {
        self.scope.ahead().forget_wishes();
    }

    /// Sends a read to a node, with what is to be read ahead there.
    fn send_read(&self, table: u32, group: i32, request: &Read) {
        let encoded = (group, request.encode());
        self.scope.note_read(table, &encoded);
        let known = self.scope.ahead().answer(table, request);
        let under_way = match known {
            Some(rows) => UnderWay::Known(Rc::new(rows)),
            None => self.ask_read(table, request, encoded),
        };
        self.under_way.borrow_mut().push((group, under_way));
    }

    fn ask_read(&self, table: u32, request: &Read, encoded: (i32, Vec<u8>)) -> UnderWay {
        let group = encoded.0;
        if let Some(rows) = self.scope.read_cache().get(&encoded) {
            return UnderWay::Known(rows);
        }
        if self.scope.is_prefetched(&encoded) {
            return UnderWay::Prefetched(encoded);
        }
        let (wishes, is_covered) = {
            let mut ahead = self.scope.ahead();
            let wishes = ahead.take(group);
            let is_covered = !wishes.is_empty() && ahead.covers(table, request, &wishes);
            (wishes, is_covered)
        };
        if is_covered {
            self.send(group, &request.encode_with(&[], &parts_of(&wishes)));
            return UnderWay::Ahead(wishes, Box::new(request.clone()));
        }
        if wishes.is_empty() {
            self.send(group, &encoded.1);
        } else {
            let with_wishes = request.encode_with(&request.parts, &parts_of(&wishes));
            self.send(group, &with_wishes);
        }
        UnderWay::Asked(wishes, encoded)
    }

    /// The answer to the read that was sent to a node. Meanwhile the other nodes read ahead.
    fn receive_read(&self, table: u32, group: i32) -> Rc<Rows> {
        let under_way = {
            let mut all = self.under_way.borrow_mut();
            let at = all.iter().position(|(of, _)| *of == group);
            at.map(|at| all.remove(at).1)
        };
        match under_way {
            Some(UnderWay::Known(rows)) => rows,
            Some(UnderWay::Asked(wishes, request)) => {
                let mut rows = self.receive_with_others(group, &wishes);
                rows.ahead = Found::default();
                let rows = Rc::new(rows);
                self.scope.read_cache().keep(request, &rows);
                rows
            }
            Some(UnderWay::Prefetched(encoded)) => {
                let before = self.scope.traffic();
                let rows = self.scope.await_prefetched(&encoded);
                self.note_since(before);
                // Who asks for rows waits for no other message of that node.
                let rows = rows.unwrap_or_else(|| damaged(Damaged));
                self.scope.read_cache().keep(encoded, &rows);
                rows
            }
            Some(UnderWay::Ahead(wishes, request)) => {
                self.receive_with_others(group, &wishes);
                let known = self.scope.ahead().answer(table, &request);
                Rc::new(known.unwrap_or_else(|| {
                    self.send(group, &request.encode());
                    self.receive_rows(group, &[])
                }))
            }
            None => Rc::new(self.receive_with_others(group, &[])),
        }
    }

    /// The answer of a node. Meanwhile other nodes read ahead.
    fn receive_with_others(&self, group: i32, wishes: &[Wish]) -> Rows {
        let others = self.ask_others();
        let rows = self.receive_rows(group, wishes);
        for (group, wishes) in others {
            self.receive_rows(group, &wishes);
        }
        rows
    }

    /// Asks nodes for what is to be read ahead from them and went with no message.
    fn ask_others(&self) -> Vec<(i32, Vec<Wish>)> {
        let groups = self.scope.ahead().groups();
        let is_busy = |group: &i32| {
            let all = self.under_way.borrow();
            let mut of_group = all.iter().filter(|(of, _)| of == group);
            of_group.any(|(_, read)| !matches!(read, UnderWay::Known(_)))
        };
        let idle = groups.into_iter().filter(|group| !is_busy(group));
        let ask = |group: i32| {
            let wishes = self.scope.ahead().take(group);
            let request = Read::default();
            self.send(group, &request.encode_with(&[], &parts_of(&wishes)));
            (group, wishes)
        };
        idle.map(ask).collect()
    }

    fn receive_rows(&self, group: i32, wishes: &[Wish]) -> Rows {
        let bytes = self.receive(group);
        let rows = Rows::decode(&bytes).unwrap_or_else(|e| damaged(e));
        if !self.scope.ahead().keep(wishes, &rows.ahead) {
            damaged(Damaged);
        }
        rows
    }

    fn note_since(&self, before: Traffic) {
        let mut traffic = self.traffic.get();
        traffic += self.scope.traffic() - before;
        self.traffic.set(traffic);
    }

    fn side(&self, order: usize) -> Side<'_> {
        Side {
            reader: self,
            number: order / 2,
            order: order % 2,
            own: false,
        }
    }

    /// Reads on in sorted ranges of an order: [`Reading::read`].
    pub fn read(
        &self,
        order: usize,
        reading: &mut Reading,
        ranges: &[(Key, Key)],
        enough: usize,
        batch: &mut Batch,
        spans: &mut Vec<Span>,
    ) -> bool {
        if self.written {
            return reading.read(&self.through_citus(order), ranges, enough, batch, spans);
        }
        reading.read(&self.side(order), ranges, enough, batch, spans)
    }

    /// Groups of nodes that hold shards of the store, ascending.
    pub fn groups_of_nodes(&self) -> Vec<i32> {
        let shards = self.sides.iter().flat_map(|side| side.placement.shards());
        each_once(shards.map(|shard| shard.group))
    }

    /// A hash of where the shards are: participants that see different ones must not join together.
    pub fn placement_hash(&self) -> u64 {
        let shards = self.sides.iter().flat_map(|side| side.placement.shards());
        let words = shards.flat_map(|s| [s.id, s.low as u64, s.high as u64, s.group as u64]);
        // FNV-1a, by words.
        words.fold(0xcbf2_9ce4_8422_2325, |hash, word| {
            (hash ^ word).wrapping_mul(0x0100_0000_01b3)
        })
    }

    /// Takes part in a join of the participants on these groups of nodes, which are numbered in this order.
    pub fn take_part(&mut self, groups: &[i32]) {
        let holders = |side: &Rc<map::Table>| {
            let number = |group| groups.iter().position(|&g| g == group).unwrap_or(0) as u16;
            let shards = side.placement.shards().iter();
            shards.map(|shard| number(shard.group)).collect()
        };
        self.holders = Some([holders(&self.sides[0]), holders(&self.sides[1])]);
    }

    /// The column (0 = subject, 2 = object) by which the quads of an order are placed, where the column tells the
    /// participant that has them.
    pub fn placed_by(&self, order: usize) -> Option<u8> {
        self.holders.as_ref().map(|_| PLACED_BY[order / 2])
    }

    /// The participants that hold the quads with these values of a column, in the form of keys.
    pub fn holders(&self, column: u8, values: &[u64]) -> Vec<u16> {
        let side = usize::from(column == PLACED_BY[1]);
        let (Some(holders), placement) = (&self.holders, &self.sides[side].placement) else {
            return vec![0; values.len()];
        };
        let of_value = |&value: &u64| holders[side][placement.shard_of((value ^ SIGN) as i64)];
        values.iter().map(of_value).collect()
    }

    /// The shard of this node that has the quads of all these keys in an order, by the column that the order is placed
    /// by, and how many shards of the table are here.
    pub fn only_shard(&self, order: usize, keys: &[u64]) -> Option<(usize, usize)> {
        let table = &self.sides[order / 2];
        let shard_of = |&key: &u64| table.placement.shard_of((key ^ SIGN) as i64);
        let (first, rest) = keys.split_first()?;
        let only = shard_of(first);
        let is_only = table.here[only].is_some() && rest.iter().all(|key| shard_of(key) == only);
        is_only.then(|| (only, table.here.iter().flatten().count()))
    }

    /// As [`Self::read`], of the shards of this node only.
    pub fn read_own(
        &self,
        order: usize,
        reading: &mut Reading,
        ranges: &[(Key, Key)],
        enough: usize,
        batch: &mut Batch,
        spans: &mut Vec<Span>,
    ) -> bool {
        let side = Side {
            own: true,
            ..self.side(order)
        };
        reading.read(&side, ranges, enough, batch, spans)
    }

    /// As [`Self::counts`], of the shards of this node only.
    pub fn counts_own(&self, order: usize, ranges: &[(Key, Key)]) -> Vec<u64> {
        let side = self.side(order);
        ranges
            .iter()
            .map(|range| side.estimate_own(range))
            .collect()
    }

    fn through_citus(&self, order: usize) -> Written {
        Written::new(self.sides[order / 2].relid, order)
    }

    /// About how many entries an order has in ranges, visible or not.
    pub fn counts(&self, order: usize, ranges: &[(Key, Key)]) -> Vec<u64> {
        let wanted: Vec<(usize, Key, Key)> = ranges.iter().map(|r| (order, r.0, r.1)).collect();
        self.estimates_of(&wanted, true)
    }

    /// About how many entries ranges of orders have, visible or not. It takes one message to each other node that has
    /// entries of ranges which are not remembered.
    pub fn estimates(&self, wanted: &[(usize, Key, Key)]) -> Vec<u64> {
        self.estimates_of(wanted, false)
    }

    /// The same; `together`: all ranges are those of one pattern, and a sample is to show enough of them in all.
    fn estimates_of(&self, wanted: &[(usize, Key, Key)], together: bool) -> Vec<u64> {
        if self.reshaped {
            return wanted
                .iter()
                .map(|&(order, low, high)| self.side(order).estimate_alone((low, high)))
                .collect();
        }
        let mut counts = vec![0; wanted.len()];
        let (mut asked, mut new, mut anywhere) = (Vec::new(), Vec::new(), Vec::new());
        let mut elsewhere = Vec::new();
        for (n, &(order, low, high)) in wanted.iter().enumerate() {
            let side = self.side(order);
            let (relid, range) = (side.table().relid, (low, high));
            let only = side.shard_of(&range);
            if let Some(shard) = only.filter(|&shard| side.is_here(shard)) {
                counts[n] = side.local(shard).count(side.order, &low, &high);
            } else if let Some(count) = self.counted_ahead(order, &range) {
                counts[n] = count;
            } else if let Some(count) = estimates::known(relid, order, range) {
                counts[n] = count;
            } else if only.is_some() {
                elsewhere.push(n);
            } else if side.has_some_here() {
                anywhere.push(n);
            } else {
                asked.extend(side.deal(range, n));
                new.push(n);
            }
        }
        // What is known of the pattern already shows enough, too.
        let known: u64 = counts.iter().sum();
        let mut is_large = None;
        for of_order in anywhere.chunk_by(|&a, &b| wanted[a].0 == wanted[b].0) {
            let side = self.side(wanted[of_order[0]].0);
            let range = |&n: &usize| (wanted[n].1, wanted[n].2);
            let ranges: Vec<(Key, Key)> = of_order.iter().map(range).collect();
            let (estimated, entries) = side.sampled(&ranges);
            let in_all = known + entries.iter().sum::<u64>();
            for ((&n, count), own) in of_order.iter().zip(estimated).zip(entries) {
                let seen = if together { in_all } else { own };
                if seen < FEW_SAMPLED && *is_large.get_or_insert_with(|| self.is_large()) {
                    counts[n] = side.count_here(&range(&n));
                    asked.extend(side.deal(range(&n), n));
                    new.push(n);
                    continue;
                }
                counts[n] = count;
                // A small count may soon be a wrong one.
                if count >= WORTH_REMEMBERING {
                    let (order, low, high) = wanted[n];
                    estimates::note(side.table().relid, order, (low, high), count);
                }
            }
        }
        let reads = elsewhere.len() <= READ_WITH_ESTIMATE && self.reads_ahead();
        let (read, counted): (Vec<usize>, Vec<usize>) = elsewhere
            .iter()
            .partition(|&&n| reads && self.wish(wanted[n].0, &(wanted[n].1, wanted[n].2)));
        for n in counted {
            let (order, low, high) = wanted[n];
            asked.extend(self.side(order).deal((low, high), n));
        }
        new.extend(elsewhere);
        // Before the other requests, as their answers come before, too.
        let ahead = if read.is_empty() {
            Vec::new()
        } else {
            self.ask_others()
        };
        let asked = self.ask(asked, &[], Kind::Estimate);
        let read_counts = self.take_counts(ahead);
        let mut add = |numbers: &[u32], found: &[u64]| {
            for (number, count) in numbers.iter().zip(found) {
                counts[*number as usize] += count;
            }
        };
        self.answers(&asked, Kind::Estimate, &mut add);
        let mut asked = Vec::new();
        for n in read {
            let (order, low, high) = wanted[n];
            let side = self.side(order);
            let table = side.table().relid.to_u32();
            match read_counts.get(&(table, side.order as u8, (low, high))) {
                Some(&count) => add(&[n as u32], &[count]),
                None => asked.extend(side.deal((low, high), n)),
            }
        }
        let asked = self.ask(asked, &[], Kind::Estimate);
        self.answers(&asked, Kind::Estimate, &mut add);
        for n in new {
            let (order, low, high) = wanted[n];
            let relid = self.sides[order / 2].relid;
            estimates::note(relid, order, (low, high), counts[n]);
        }
        counts
    }

    /// The answers of nodes that read ahead: about how many keys each range of an order of a table has, as far as they
    /// could read it. What is kept of it may have been displaced by what other nodes answered.
    fn take_counts(&self, asked: Vec<(i32, Vec<Wish>)>) -> FxHashMap<(u32, u8, (Key, Key)), u64> {
        let mut counts = FxHashMap::default();
        for (group, wishes) in asked {
            let found = self.receive_rows(group, &wishes).ahead.counts;
            let found = wishes.iter().zip(found);
            let read = found.filter(|(_, count)| *count != NOT_READABLE);
            counts.extend(read.map(|(wish, count)| ((wish.table, wish.order, wish.range), count)));
        }
        counts
    }

    /// Whether the store has many quads, by what the shards of this node tell. Few quads share a subject.
    fn is_large(&self) -> bool {
        let by_subject = self.side(0);
        let whole = [(KEY_MIN, KEY_MAX)];
        !by_subject.has_some_here() || by_subject.sampled(&whole).1[0] >= MANY_SAMPLED
    }

    /// Asks the other nodes for counts; [`Self::answers`] takes them.
    fn ask(&self, ranges: Vec<Asked>, filters: &[Filter], kind: Kind) -> Vec<(i32, Vec<u32>)> {
        let mut nodes: Vec<(i32, Count, Vec<u32>)> = Vec::new();
        for Asked {
            group,
            order,
            part,
            numbers,
        } in ranges
        {
            let at = nodes.iter().position(|a| a.0 == group);
            let at = at.unwrap_or_else(|| {
                let count = Count {
                    filters: filters.to_vec(),
                    parts: Vec::new(),
                };
                nodes.push((group, count, Vec::new()));
                nodes.len() - 1
            });
            nodes[at].1.parts.push((order, part));
            nodes[at].2.extend(numbers);
        }
        for (group, count, _) in &nodes {
            self.send(*group, &count.encode(kind));
        }
        let asked = nodes.into_iter();
        asked.map(|(group, _, numbers)| (group, numbers)).collect()
    }

    /// Waits for the answers to [`Self::ask`]; `each` gets the numbers of the ranges and their counts.
    fn answers(&self, asked: &[(i32, Vec<u32>)], kind: Kind, mut each: impl FnMut(&[u32], &[u64])) {
        for (group, numbers) in asked {
            let answer = self.receive(*group);
            let expected = match kind {
                Kind::CountVisible => 1,
                _ => numbers.len(),
            };
            let found = message::decode_numbers(&answer, expected).unwrap_or_else(|e| damaged(e));
            each(numbers, &found);
        }
    }

    /// About how many entries an order has between two keys (inclusive), visible or not.
    pub fn count(&self, order: usize, low: &Key, high: &Key) -> u64 {
        self.counts(order, &[(*low, *high)])[0]
    }

    /// Keys of an order between two keys (inclusive) that the snapshot sees and that pass the filters.
    pub fn count_visible(
        &self,
        order: usize,
        (low, high): (&Key, &Key),
        filters: &[Filter],
        work: &mut Work,
    ) -> u64 {
        if self.written {
            return self.through_citus(order).count((low, high), filters);
        }
        let side = self.side(order);
        let placement = &side.table().placement;
        let mut sum = 0;
        // The other nodes count while this one does.
        let asked = self.ask(side.deal((*low, *high), 0), filters, Kind::CountVisible);
        let only = side.shard_of(&(*low, *high));
        for shard in (0..placement.shards().len()).filter(|&n| only.is_none_or(|only| only == n)) {
            if side.is_here(shard) {
                let local = side.local(shard);
                sum += local.count_visible(side.order, (low, high), filters, work);
            }
        }
        self.answers(&asked, Kind::CountVisible, |_, found| {
            sum += found.iter().sum::<u64>();
        });
        sum
    }

    /// The values of a key column between two keys (inclusive), with numbers of keys; a value may come several times.
    pub fn values(
        &self,
        order: usize,
        range: (&Key, &Key),
        column: usize,
        filters: &[Filter],
        work: &mut Work,
        mut each: impl FnMut(u64, u64),
    ) {
        if self.written {
            return self.values_through_citus(order, range, column, filters, each);
        }
        let side = self.side(order);
        let (here, there) = side.shards_of(&(*range.0, *range.1));
        let mut requests: Vec<(i32, ValuesRequest)> = there
            .into_iter()
            .map(|(group, shards)| {
                let request = ValuesRequest {
                    order: side.order as u8,
                    column: column as u8,
                    most: MAX_VALUES,
                    after: None,
                    range: (*range.0, *range.1),
                    filters: filters.to_vec(),
                    shards,
                };
                (group, request)
            })
            .collect();
        let send = |(group, request): &(i32, ValuesRequest)| self.send(*group, &request.encode());
        requests.iter().for_each(send);
        // The other nodes count while this one does.
        for shard in here {
            let local = side.local(shard);
            local.values(side.order, range, column, filters, work, &mut each);
        }
        let mut found = Groups::default();
        while !requests.is_empty() {
            requests.retain_mut(|(group, request)| {
                let answer = self.receive(*group);
                decode_groups(&answer, 1, &mut found).unwrap_or_else(|e| damaged(e));
                let values = found.columns[0].iter().zip(&found.counts);
                values.for_each(|(&value, &keys)| each(value, keys));
                request.after = found.columns[0].last().copied();
                found.len() >= request.most as usize
            });
            requests.iter().for_each(send);
        }
    }

    fn values_through_citus(
        &self,
        order: usize,
        range: (&Key, &Key),
        column: usize,
        filters: &[Filter],
        mut each: impl FnMut(u64, u64),
    ) {
        let (table, most) = (self.through_citus(order), MAX_VALUES as usize);
        let (mut found, mut after) = (Groups::default(), None);
        loop {
            table.values(column, range, filters, (after, most), &mut found);
            let values = found.columns[0].iter().zip(&found.counts);
            values.for_each(|(&value, &keys)| each(value, keys));
            if found.len() < most {
                return;
            }
            after = found.columns[0].last().copied();
        }
    }

    /// The groups of the keys between two keys (inclusive) by their first `depth` columns, of all shards.
    pub fn groups(
        &self,
        order: usize,
        range: (Key, Key),
        (depth, counting): (usize, bool),
        filters: &[Filter],
    ) -> ShardedGroups {
        let side = self.side(order);
        let request = |shards| side.group_request(range, (depth, counting), filters, shards);
        if self.written {
            let own = groups::OwnWrites {
                written: self.through_citus(order),
                request: Some(request(Vec::new())),
            };
            return ShardedGroups::new(vec![groups::Source::Written(Box::new(own))], depth);
        }
        let (here, there) = side.shards_of(&range);
        let mut sources = Vec::new();
        for shard in here {
            sources.push(groups::Source::Here(Box::new(groups::Here {
                reader: side.local(shard),
                order: side.order,
                cursor: GroupCursor::new(range.0, range.1, depth, counting),
                filters: filters.to_vec(),
                enough: 0,
            })));
        }
        for (group, shards) in there {
            sources.push(groups::Source::There(Box::new(groups::There {
                group,
                scope: self.scope.clone(),
                traffic: self.traffic.clone(),
                request: Some(request(shards)),
            })));
        }
        ShardedGroups::new(sources, depth)
    }

    /// How many groups [`Self::groups`] finds, and how many keys they have. `None` where shards may share groups, or
    /// this transaction has written to them: then they have to be put together.
    pub fn count_groups(
        &self,
        order: usize,
        range: (Key, Key),
        (depth, counting): (usize, bool),
        filters: &[Filter],
    ) -> Option<[u64; 2]> {
        let side = self.side(order);
        if self.written || side.key_place() >= depth {
            return None;
        }
        let request = |shards| side.group_request(range, (depth, counting), filters, shards);
        let (here, there) = side.shards_of(&range);
        let groups: Vec<i32> = there.iter().map(|(group, _)| *group).collect();
        for (group, shards) in there {
            self.send(group, &request(shards).encode_counting());
        }
        // The other nodes count while this one does.
        let here = here.into_iter().map(|shard| side.local(shard));
        let mut sum = groups::count(here, side.order, &request(Vec::new()));
        for group in groups {
            let answer = self.receive(group);
            let found = message::decode_numbers(&answer, 2).unwrap_or_else(|e| damaged(e));
            sum.iter_mut().zip(found).for_each(|(sum, n)| *sum += n);
        }
        Some(sum)
    }

    /// Whether some shards are on other nodes.
    pub fn is_remote(&self) -> bool {
        self.sides.iter().any(|side| !side.all_here)
    }

    /// Whether this transaction reads through Citus.
    pub fn reads_own_writes(&self) -> bool {
        self.written
    }

    /// Closes the shards of this node; to be called where the node that reads ends.
    pub fn close(&mut self) {
        self.forget_wishes();
        for open in self
            .open
            .get_mut()
            .iter_mut()
            .flat_map(std::mem::take)
            .flatten()
        {
            drop(open.reader);
            // SAFETY: opened by `local`; the lock stays with the transaction.
            unsafe { pg_sys::table_close(open.rel, pg_sys::NoLock as i32) };
        }
    }
}

/// Announces a query, told apart by all that says what it reads, before it is planned: [`Announcement`].
/// `None` where its reads must not be sent then, as in [`ShardedReader::prefetch`].
pub fn announce(query: impl Hash) -> Option<Announcement> {
    let may_ask = !has_written() && others_can_answer() && !has_transaction_snapshot();
    may_ask.then(|| Announcement::new(query))
}

/// About how many quads a store has for `key` (NULL = any), and the columns that the number takes account of; for the
/// planner.
pub fn range_count(sides: Sides, key: [Option<i64>; 4]) -> (u64, [bool; 4]) {
    let (order, low, high) = range_for(&ORDERS, key);
    let mut covered = [false; 4];
    for c in ORDERS[order].columns() {
        if key[usize::from(c)].is_none() {
            break;
        }
        covered[usize::from(c)] = true;
    }
    let mut reader = estimating(sides);
    let count = reader.count(order, &low, &high);
    reader.close();
    (count, covered)
}

/// Asks for the estimates that [`range_count`] gives for these keys; they are remembered.
pub fn count_ahead(sides: Sides, keys: &[[Option<i64>; 4]]) {
    let wanted: Vec<(usize, Key, Key)> = keys.iter().map(|&key| range_for(&ORDERS, key)).collect();
    let mut reader = estimating(sides);
    reader.estimates(&wanted);
    reader.close();
}

/// A reader for estimates.
fn estimating(sides: Sides) -> ShardedReader {
    // SAFETY: the snapshot is not looked at by estimates, and lasts as long as the process.
    unsafe { ShardedReader::new(sides, &raw mut pg_sys::SnapshotSelfData) }
}

/// One of the two tables of a store, in one of its orders.
struct Side<'a> {
    reader: &'a ShardedReader,
    number: usize,
    /// Number of the order in the shards.
    order: usize,
    /// Only shards of this node are read.
    own: bool,
}

impl Side<'_> {
    fn table(&self) -> &map::Table {
        &self.reader.sides[self.number]
    }

    /// The only shard that may have keys of a range; `None` where all may.
    fn shard_of(&self, range: &(Key, Key)) -> Option<usize> {
        shard_of_range(&self.table().placement, self.key_place(), range)
    }

    /// The shards that may have keys of a range: the places of those here, and the numbers of those of each other node.
    fn shards_of(&self, range: &(Key, Key)) -> (Vec<usize>, Vec<(i32, Vec<u64>)>) {
        let placement = &self.table().placement;
        let only = self.shard_of(range);
        let (mut here, mut there) = (Vec::new(), Vec::<(i32, Vec<u64>)>::new());
        for (n, shard) in placement.shards().iter().enumerate() {
            if only.is_some_and(|only| only != n) {
                continue;
            }
            if self.is_here(n) {
                here.push(n);
                continue;
            }
            match there.iter_mut().find(|node| node.0 == shard.group) {
                Some(node) => node.1.push(shard.id),
                None => there.push((shard.group, vec![shard.id])),
            }
        }
        (here, there)
    }

    /// A shard of this node, opened when it is first used.
    fn local(&self, shard: usize) -> Rc<LocalReader> {
        let mut open = self.reader.open.borrow_mut();
        let places = &mut open[self.number];
        if places.is_empty() {
            places.resize_with(self.table().here.len(), || None);
        }
        let place = &mut places[shard];
        if let Some(open) = place {
            return open.reader.clone();
        }
        let oid = self.table().here[shard].unwrap_or(pg_sys::InvalidOid);
        let arrived = self.table().arrived[shard];
        // SAFETY: the shard is locked like any relation that is read, so that the clean-up of a move waits; the
        // snapshot is that of the statement. `close` closes it, or PostgreSQL after an error.
        let opened = unsafe {
            let rel = pg_sys::try_relation_open(oid, pg_sys::AccessShareLock as i32);
            if rel.is_null() {
                map::not_here(self.table().placement.shards()[shard].id);
            }
            let reader = LocalReader::new(rel, self.reader.snapshot);
            arrival::check_read(rel, arrived, self.reader.snapshot, &reader);
            Open {
                rel,
                reader: Rc::new(reader),
            }
        };
        place.insert(opened).reader.clone()
    }

    /// Whether a shard of this node is open, or can be opened at once, and without an error.
    fn is_readable(&self, shard: usize) -> bool {
        let open = self.reader.open.borrow();
        let is_open = open[self.number].get(shard).is_some_and(Option::is_some);
        // SAFETY: the snapshot is that of the statement.
        is_open
            || unsafe { !arrival::is_late(self.table().arrived[shard], self.reader.snapshot) }
                && self.can_lock(shard)
    }

    /// Asks shards for the groups of a range.
    fn group_request(
        &self,
        range: (Key, Key),
        (depth, counting): (usize, bool),
        filters: &[Filter],
        shards: Vec<u64>,
    ) -> GroupRequest {
        GroupRequest {
            order: self.order as u8,
            depth: depth as u8,
            counting,
            enough: 0,
            range,
            filters: filters.to_vec(),
            shards,
        }
    }

    /// Whether this node has shards of the table.
    fn has_some_here(&self) -> bool {
        self.table().here.iter().any(Option::is_some)
    }

    /// Shards of this node that stand for all.
    fn sample(&self) -> Vec<usize> {
        let all = 0..self.table().here.len();
        let here: Vec<usize> = all.filter(|&n| self.is_here(n)).collect();
        let step = here.len().div_ceil(SAMPLED_SHARDS).max(1);
        here.into_iter().step_by(step).collect()
    }

    /// The counts of ranges over all shards, estimated from some shards of this node, which has some. Rows are placed
    /// by a hash, so shards are alike. Also the entries that these shards have of each range.
    fn sampled(&self, ranges: &[(Key, Key)]) -> (Vec<u64>, Vec<u64>) {
        let some = self.sample();
        let (all, sampled) = (self.table().here.len() as u64, some.len().max(1) as u64);
        let mut sums = vec![0; ranges.len()];
        for shard in some {
            let counts = self.local(shard).counts(self.order, ranges);
            sums.iter_mut().zip(counts).for_each(|(sum, n)| *sum += n);
        }
        let estimated = sums.iter().map(|sum| sum * all / sampled).collect();
        (estimated, sums)
    }

    /// About how many entries of a range, which any shard may have, are in shards of this node.
    fn count_here(&self, range: &(Key, Key)) -> u64 {
        let here = (0..self.table().here.len()).filter(|&n| self.is_here(n));
        here.map(|n| self.local(n).count(self.order, &range.0, &range.1))
            .sum()
    }

    /// About how many entries a range has, without asking other sessions.
    fn estimate_alone(&self, range: (Key, Key)) -> u64 {
        match self.shard_of(&range) {
            Some(shard) if self.can_lock(shard) => {
                self.local(shard).count(self.order, &range.0, &range.1)
            }
            None if self.has_some_here() && self.sample().iter().all(|&n| self.can_lock(n)) => {
                self.sampled(&[range]).0[0]
            }
            _ => {
                let order = 2 * self.number + self.order;
                let citus = self.reader.through_citus(order);
                citus.estimate((&range.0, &range.1))
            }
        }
    }

    /// Whether a shard is here and can be read at once: another session may hold a lock of it for this very
    /// transaction.
    fn can_lock(&self, shard: usize) -> bool {
        // SAFETY: a lock of a relation that exists, which lasts as long as the transaction.
        self.table().here[shard].is_some_and(|oid| unsafe {
            pg_sys::ConditionalLockRelationOid(oid, pg_sys::AccessShareLock as i32)
        })
    }

    /// About how many entries of a range are in shards of this node.
    fn estimate_own(&self, range: &(Key, Key)) -> u64 {
        let table = self.table();
        match self.shard_of(range) {
            Some(shard) if !self.is_here(shard) => 0,
            Some(shard) => self.local(shard).count(self.order, &range.0, &range.1),
            None => {
                let here = (0..table.here.len()).filter(|&n| self.is_here(n)).count();
                let all = self.sampled(&[*range]).0[0];
                all * here as u64 / table.here.len() as u64
            }
        }
    }

    /// What other nodes are to be asked about a range, which has this number.
    fn deal(&self, range: (Key, Key), number: usize) -> Vec<Asked> {
        let placement = &self.table().placement;
        let deal = Deal::new(placement, self.key_place(), &[range], number, 1);
        let shards = deal.shards.iter().cloned();
        let asked = shards.filter(|s| !self.is_here(s.shard)).map(|of_shard| {
            let shard = placement.shards()[of_shard.shard];
            Asked {
                group: shard.group,
                order: self.order as u8,
                part: Part {
                    shard: shard.id,
                    ranges: deal.ranges[of_shard.part.clone()].to_vec(),
                },
                numbers: deal.numbers[of_shard.part].to_vec(),
            }
        });
        asked.collect()
    }
}

/// Ranges of a shard of another node that are to be counted.
struct Asked {
    group: i32,
    /// Number of the order in the shard.
    order: u8,
    part: Part,
    numbers: Vec<u32>,
}

impl Shards for Side<'_> {
    fn placement(&self) -> &Placement {
        &self.table().placement
    }

    fn is_here(&self, shard: usize) -> bool {
        self.table().here[shard].is_some()
    }

    fn only_here(&self) -> bool {
        self.own
    }

    fn key_place(&self) -> usize {
        let order = ORDERS[2 * self.number + self.order];
        order.position(usize::from(PLACED_BY[self.number]))
    }

    fn order(&self) -> u8 {
        self.order as u8
    }

    fn read_here(
        &self,
        shard: usize,
        probe: &mut Probe,
        ranges: &[(Key, Key)],
        enough: usize,
        batch: &mut Batch,
        spans: &mut Vec<Span>,
    ) -> bool {
        let local = self.local(shard);
        local.append(self.order, probe, ranges, enough, batch, spans)
    }

    fn expect(&self, shard: usize, key: &Key) {
        self.local(shard).expect(self.order, key);
    }

    fn send(&self, group: i32, request: &Read) {
        let table = self.table().relid.to_u32();
        self.reader.send_read(table, group, request);
    }

    fn receive(&self, group: i32) -> Rc<Rows> {
        let table = self.table().relid.to_u32();
        self.reader.receive_read(table, group)
    }
}
