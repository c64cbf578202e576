//! Table `quad.term_ids`: ids by the 128-bit hash of the term, a quad table with the single order spog.

use pgquad_btree::{key_of, prefix_range, Batch, Probe, SIGN};
use pgquad_term::TermId;
use pgrx::{pg_sys, PgSqlErrorCode};

use super::relation::{latest, Relation};
use super::tables::Tables;
use crate::pg::error::raise;
use crate::storage::bulk::BulkLoad;
use crate::storage::{LocalReader, Table};

/// So many hashes are looked up at once.
const PROBES_AT_ONCE: usize = 4096;

/// Subject and predicate of a hash.
fn halves(hash: u128) -> [i64; 2] {
    [(hash >> 64) as i64, hash as i64]
}

fn quad(hash: u128, id: TermId) -> [i64; 4] {
    let [s, p] = halves(hash);
    [s, p, id.to_i64(), 0]
}

/// What the order of probes goes by.
pub fn probe_key(hash: u128) -> impl Ord {
    halves(hash)
}

/// The places of hashes, in the order in which probes touch neighbouring pages one after the other.
pub fn probe_order(hashes: &[u128]) -> Vec<usize> {
    // Sorted with their places: a sort of places alone would look each hash up again and again.
    let mut keys: Vec<_> = hashes
        .iter()
        .enumerate()
        .map(|(n, &hash)| (probe_key(hash), n))
        .collect();
    keys.sort_unstable();
    keys.into_iter().map(|(_, n)| n).collect()
}

/// The ids of the terms with these hashes, which must be in the order of [`probe_order`].
pub fn probe(tables: &Tables, hashes: &[u128]) -> Vec<Option<TermId>> {
    let table = Relation::open(tables.term_ids, pg_sys::AccessShareLock);
    // SAFETY: the table is open while the reader is used; the snapshot is static.
    let reader = unsafe { LocalReader::new(table.as_ptr(), latest()) };
    let order = reader.orders()[0];
    let place = reader.place(0, 2);
    let range = |hash: &u128| {
        let key = key_of(order, &quad(*hash, TermId::DEFAULT_GRAPH));
        prefix_range(&key[..2])
    };
    let (mut batch, mut spans) = (Batch::new(), Vec::new());
    let mut probe = Probe::new(1 << place);
    let mut ids = Vec::with_capacity(hashes.len());
    for hashes in hashes.chunks(PROBES_AT_ONCE) {
        let ranges: Vec<_> = hashes.iter().map(range).collect();
        let first = ids.len();
        ids.resize(first + ranges.len(), None);
        let mut more = true;
        while more {
            more = reader.read(0, &mut probe, &ranges, usize::MAX, &mut batch, &mut spans);
            let mut row = 0;
            for span in &spans {
                ids[first + span.range as usize] = Some(id_of(batch.columns[place][row]));
                row = span.end as usize;
            }
        }
        probe.restart();
    }
    ids
}

/// The id that a column of a key says.
fn id_of(column: u64) -> TermId {
    let id = (column ^ SIGN) as i64;
    TermId::from_i64(id).unwrap_or_else(|| {
        raise(
            PgSqlErrorCode::ERRCODE_DATA_CORRUPTED,
            format!("quad.term_ids holds the invalid id {id}"),
        )
    })
}

/// Whether the table has nothing in it.
pub fn is_empty(tables: &Tables) -> bool {
    let table = Relation::open(tables.term_ids, pg_sys::AccessShareLock);
    // SAFETY: the table is open.
    unsafe { Table::open(table.as_ptr()) }.is_empty()
}

/// Adds the ids of some new terms. `horizon`: of a table that is read with the latest snapshots, where it is later than
/// PostgreSQL's.
pub fn insert(
    tables: &Tables,
    entries: impl IntoIterator<Item = (u128, TermId)>,
    horizon: Option<pg_sys::TransactionId>,
) {
    let mut quads: Vec<[i64; 4]> = entries
        .into_iter()
        .map(|(hash, id)| quad(hash, id))
        .collect();
    if quads.is_empty() {
        return;
    }
    let table = Relation::open(tables.term_ids, pg_sys::RowExclusiveLock);
    // SAFETY: the table is open; the transaction may write.
    unsafe {
        let xid = pg_sys::GetCurrentTransactionId().into_inner();
        let command = pg_sys::GetCurrentCommandId(true);
        let mut trees = Table::open(table.as_ptr());
        if let Some(horizon) = horizon {
            trees.set_horizon(horizon);
        }
        trees.insert(&mut quads, xid, command);
    }
}

/// Adds the ids of many new terms, with about `memory` bytes for sorting, and locks the table against other writers.
pub fn insert_many(tables: &Tables, memory: usize, entries: impl Iterator<Item = (u128, TermId)>) {
    let table = Relation::open(tables.term_ids, pg_sys::RowExclusiveLock);
    // SAFETY: the table stays open until the load is finished.
    let mut load = unsafe { BulkLoad::with_memory(table.as_ptr(), memory) };
    for (hash, id) in entries {
        load.push(&[quad(hash, id)]);
    }
    load.finish();
}
