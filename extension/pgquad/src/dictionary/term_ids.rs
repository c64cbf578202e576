//! Table `quad.term_ids`: ids by the 128-bit hash of the term.

use pgquad_term::TermId;
use pgrx::{check_for_interrupts, pg_sys, PgSqlErrorCode};

use super::relation::{for_each_row, Compare, IndexScan, Inserter, Relation};
use super::tables::Tables;
use crate::error::raise;

/// The two columns of a hash.
fn key(hash: u128) -> [i64; 2] {
    [(hash >> 64) as i64, hash as i64]
}

/// Order in which probes touch neighbouring pages one after the other.
pub fn probe_order(hash: u128) -> impl Ord {
    key(hash)
}

/// The ids of the terms with these hashes, which should be in [`probe_order`].
pub fn probe(tables: &Tables, hashes: &[u128]) -> Vec<Option<TermId>> {
    let table = Relation::open(tables.term_ids, pg_sys::AccessShareLock);
    let mut scan = IndexScan::new(
        &table,
        tables.term_ids_hash,
        &[Compare::Equal, Compare::Equal],
    );
    hashes
        .iter()
        .map(|hash| {
            check_for_interrupts!();
            scan.seek(&key(*hash));
            let id = scan.next()?.bigint(3);
            Some(TermId::from_i64(id).unwrap_or_else(|| {
                raise(
                    PgSqlErrorCode::ERRCODE_DATA_CORRUPTED,
                    format!("quad.term_ids holds the invalid id {id}"),
                )
            }))
        })
        .collect()
}

/// Whether no term has an id yet.
pub fn is_empty(tables: &Tables) -> bool {
    let table = Relation::open(tables.term_ids, pg_sys::AccessShareLock);
    let mut empty = true;
    for_each_row(&table, |_| {
        empty = false;
        false
    });
    empty
}

/// Adds the ids of new terms.
pub fn insert(tables: &Tables, entries: impl IntoIterator<Item = (u128, TermId)>) {
    let inserter = Inserter::new(Relation::open(tables.term_ids, pg_sys::RowExclusiveLock));
    for (hash, id) in entries {
        check_for_interrupts!();
        let [s, p] = key(hash);
        inserter.insert([s, p, id.to_i64(), 0].map(pg_sys::Datum::from));
    }
}

/// Adds the ids of many new terms, in any order.
pub fn insert_many(tables: &Tables, entries: impl Iterator<Item = (u128, TermId)>) {
    let mut entries: Vec<(u128, TermId)> = entries.collect();
    entries.sort_unstable_by_key(|(hash, _)| probe_order(*hash));
    insert(tables, entries);
}
