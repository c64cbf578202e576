//! What other nodes ask of this one: the functions that their sessions call.

use std::rc::Rc;

use pgquad_btree::{Batch, GroupCursor, Groups, Probe, Work, ALL_COLUMNS, KEY_MAX, KEY_MIN};
use pgquad_cluster::groups::{encode_groups, GroupRequest, Smallest, ValuesRequest};
use pgquad_cluster::message::Found;
use pgquad_cluster::message::{self, Count, Kind, Read};
use pgquad_cluster::reading;
use pgquad_cluster::wire::{Damaged, Reader};
use pgrx::pg_sys;
use pgrx::prelude::*;

use super::groups::{self, Here, ShardedGroups, Source};
use super::protocol::{check_version, damaged};
use super::trust::{check_trusted, meet};
use super::{arrival, counters, map, moves, snapshots};
use crate::dictionary;
use crate::storage::LocalReader;

/// Called by another node when its session begins: with the version of its messages and the proof that it is one.
#[pg_extern]
fn cluster_hello(version: i32, token: &[u8]) -> String {
    meet(version, token);
    env!("CARGO_PKG_VERSION").to_owned()
}

/// Called by other nodes: a message and its answer.
#[pg_extern]
fn cluster_answer(request: &[u8]) -> Vec<u8> {
    check_trusted();
    answer(request)
}

/// The answer to a message of a node.
pub fn answer(request: &[u8]) -> Vec<u8> {
    let mut reader = Reader::new(request);
    check_version(reader.u8().unwrap_or_else(|e| damaged(e)));
    let kind = reader.u8().unwrap_or_else(|e| damaged(e));
    let kind = Kind::from_number(kind).unwrap_or_else(|| damaged(Damaged));
    let counted = match kind {
        Kind::Dictionary => counters::Kind::Dictionary,
        _ => counters::Kind::Pull,
    };
    counters::received(counted, request.len());
    let answer = match kind {
        Kind::Read => read(&mut reader),
        Kind::Estimate => estimate(&mut reader),
        Kind::CountVisible => count_visible(&mut reader),
        Kind::Groups => some_groups(&mut reader),
        Kind::CountGroups => count_groups(&mut reader),
        Kind::Values => values(&mut reader),
        Kind::TakeShard => moves::take_shard(&mut reader),
        Kind::ExportSnapshot => snapshots::export().into_bytes(),
        Kind::Dictionary => dictionary::answer(&mut reader),
        Kind::ImportSnapshot | Kind::EndTransaction => damaged(Damaged),
    };
    counters::sent(counted, answer.len());
    counters::batches(counted, usize::from(kind.is_batch()));
    answer
}

/// Shards of this node, open while a message is answered.
struct Open {
    /// Their numbers.
    shards: Vec<u64>,
    relations: Vec<pg_sys::Relation>,
    readers: Vec<LocalReader>,
}

impl Open {
    /// Opens the shards of a request.
    fn new(shards: impl Iterator<Item = u64>) -> Self {
        let mut open = Self {
            shards: Vec::new(),
            relations: Vec::new(),
            readers: Vec::new(),
        };
        for shard in shards {
            let Some(oid) = map::local_shard(shard) else {
                open.left_behind(shard);
                continue;
            };
            let arrived = map::arrived(oid);
            // SAFETY: the snapshot is that of the calling statement, active throughout; the relation is closed by
            // `close`, or by PostgreSQL after an error.
            unsafe {
                let rel = pg_sys::table_open(oid, pg_sys::AccessShareLock as i32);
                let snapshot = pg_sys::GetActiveSnapshot();
                let reader = LocalReader::new(rel, snapshot);
                arrival::check_read(rel, arrived, snapshot, &reader);
                open.push(shard, rel, reader);
            }
        }
        open
    }

    /// Opens what a move has left behind of a shard, until Citus drops it. The statement that asks began before the
    /// shard was moved, and need not see what has been written since. An empty one may be the beginning of a copy.
    fn left_behind(&mut self, shard: u64) {
        let oid = map::left_behind(shard).unwrap_or_else(|| map::not_here(shard));
        // SAFETY: as in `new`.
        let (rel, reader) = unsafe {
            let rel = pg_sys::try_relation_open(oid, pg_sys::AccessShareLock as i32);
            if rel.is_null() {
                map::not_here(shard);
            }
            (rel, LocalReader::new(rel, pg_sys::GetActiveSnapshot()))
        };
        let is_empty = reader.count(0, &KEY_MIN, &KEY_MAX) == 0;
        if is_empty || !reader.sees_some() {
            map::not_here(shard);
        }
        self.push(shard, rel, reader);
    }

    /// The place of a shard that is read ahead, which is opened unless it is open; `None` where it is not here, locked
    /// by others, or not readable.
    fn ahead(&mut self, shard: u64) -> Option<usize> {
        if let Some(place) = self.shards.iter().position(|&open| open == shard) {
            return Some(place);
        }
        let oid = map::local_shard(shard)?;
        let arrived = map::arrived(oid);
        let lock = pg_sys::AccessShareLock as i32;
        // SAFETY: as in `new`; the lock is taken before the relation is looked up, which may be gone by then.
        unsafe {
            if !pg_sys::ConditionalLockRelationOid(oid, lock) {
                return None;
            }
            let rel = pg_sys::try_relation_open(oid, pg_sys::NoLock as i32);
            if rel.is_null() {
                return None;
            }
            let snapshot = pg_sys::GetActiveSnapshot();
            let reader = LocalReader::new(rel, snapshot);
            if !arrival::is_readable(arrived, snapshot, &reader) {
                drop(reader);
                pg_sys::table_close(rel, pg_sys::NoLock as i32);
                return None;
            }
            self.push(shard, rel, reader);
        }
        Some(self.shards.len() - 1)
    }

    fn push(&mut self, shard: u64, rel: pg_sys::Relation, reader: LocalReader) {
        self.shards.push(shard);
        self.relations.push(rel);
        self.readers.push(reader);
    }

    /// Closes the shards; the locks stay with the transaction, so that the clean-up of a move waits.
    fn close(self) {
        drop(self.readers);
        for rel in self.relations {
            // SAFETY: opened by `new`.
            unsafe { pg_sys::table_close(rel, pg_sys::NoLock as i32) };
        }
    }

    /// Checks the number of an order.
    fn check_order(&self, order: u8) -> usize {
        let order = usize::from(order);
        if self.readers.iter().any(|r| order >= r.orders().len()) {
            damaged(Damaged);
        }
        order
    }
}

fn read(reader: &mut Reader<'_>) -> Vec<u8> {
    let request = Read::decode(reader).unwrap_or_else(|e| damaged(e));
    let mut open = Open::new(request.parts.iter().map(|part| part.shard));
    let order = open.check_order(request.order);
    let mut rows = reading::answer(
        &request,
        |part, probe, ranges, enough, batch: &mut Batch, spans| {
            open.readers[part].read(order, probe, ranges, enough, batch, spans)
        },
    );
    // Most shards of what is read ahead are open already.
    let places = request.ahead.iter().map(|(_, part)| open.ahead(part.shard));
    let places: Vec<Option<usize>> = places.collect();
    let order = |part: usize| open.check_order(request.ahead[part].0);
    let mut spans = Vec::new();
    rows.ahead = Found::of(
        &request.ahead,
        |part, range, enough, batch| {
            let Some(place) = places[part] else {
                return false;
            };
            let (order, probe) = (order(part), &mut Probe::new(ALL_COLUMNS));
            let range = std::slice::from_ref(range);
            open.readers[place].read(order, probe, range, enough, batch, &mut spans);
            true
        },
        |part, (low, high)| {
            places[part].map_or(0, |place| open.readers[place].count(order(part), low, high))
        },
    );
    open.close();
    rows.encode()
}

fn estimate(reader: &mut Reader<'_>) -> Vec<u8> {
    let request = Count::decode(reader).unwrap_or_else(|e| damaged(e));
    let open = Open::new(request.parts.iter().map(|(_, part)| part.shard));
    let parts = request.parts.iter().zip(&open.readers);
    let counts: Vec<u64> = parts
        .flat_map(|((order, part), reader)| {
            let order = open.check_order(*order);
            reader.counts(order, &part.ranges)
        })
        .collect();
    open.close();
    message::encode_numbers(&counts)
}

fn count_visible(reader: &mut Reader<'_>) -> Vec<u8> {
    let request = Count::decode(reader).unwrap_or_else(|e| damaged(e));
    let open = Open::new(request.parts.iter().map(|(_, part)| part.shard));
    let mut sum = 0;
    for ((order, part), reader) in request.parts.iter().zip(&open.readers) {
        let order = open.check_order(*order);
        for (low, high) in &part.ranges {
            let work = &mut Work::default();
            sum += reader.count_visible(order, (low, high), &request.filters, work);
        }
    }
    open.close();
    message::encode_numbers(&[sum])
}

fn values(reader: &mut Reader<'_>) -> Vec<u8> {
    let request = ValuesRequest::decode(reader).unwrap_or_else(|e| damaged(e));
    let open = Open::new(request.shards.iter().copied());
    let order = open.check_order(request.order);
    let mut smallest = Smallest::new(request.most as usize, request.after);
    for shard in &open.readers {
        let (low, high) = (&request.range.0, &request.range.1);
        let (column, work) = (usize::from(request.column), &mut Work::default());
        let each = |value, keys| smallest.add(value, keys);
        shard.values(order, (low, high), column, &request.filters, work, each);
    }
    open.close();
    encode_groups(&smallest.into_groups(), 1)
}

fn count_groups(reader: &mut Reader<'_>) -> Vec<u8> {
    let request = GroupRequest::decode(reader).unwrap_or_else(|e| damaged(e));
    let open = Open::new(request.shards.iter().copied());
    let order = open.check_order(request.order);
    let sum = groups::count(&open.readers, order, &request);
    open.close();
    message::encode_numbers(&sum)
}

fn some_groups(reader: &mut Reader<'_>) -> Vec<u8> {
    let request = GroupRequest::decode(reader).unwrap_or_else(|e| damaged(e));
    let mut open = Open::new(request.shards.iter().copied());
    let order = open.check_order(request.order);
    let depth = usize::from(request.depth);
    let (low, high) = request.range;
    let sources = std::mem::take(&mut open.readers).into_iter().map(|reader| {
        Source::Here(Box::new(Here {
            reader: Rc::new(reader),
            order,
            cursor: GroupCursor::new(low, high, depth, request.counting),
            filters: request.filters.clone(),
            enough: 0,
        }))
    });
    let mut found = Groups::default();
    ShardedGroups::new(sources.collect(), depth).next_batch(request.enough as usize, &mut found);
    open.close();
    encode_groups(&found, depth)
}
