//! `quad.export`: the quads of a store as lines of N-Quads.

use std::fmt::Write;

use pgquad_btree::{quad_of, GRAPH, KEY_MAX, KEY_MIN};
use pgquad_term::{Term, TermId};
use pgrx::prelude::*;
use pgrx::{check_for_interrupts, pg_sys};

use crate::dictionary;
use crate::store::{self, Store};
use crate::table::OrderCursor;

/// Quads whose terms are decoded together: at first, and at most.
const FIRST_BATCH_QUADS: usize = 256;
const MAX_BATCH_QUADS: usize = 8192;
/// Bytes that the lines of a batch are to take, as far as the batch before tells.
const BATCH_BYTES: usize = 16 << 20;

/// The quads of a store as lines of N-Quads, in the order of the table.
///
/// `graph`: only the quads of this graph; the empty string stands for the default graph. Rows beyond `work_mem` wait in
/// a temporary file.
#[pg_extern(
    sql = "CREATE FUNCTION quad.export(store text DEFAULT NULL, graph text DEFAULT NULL) RETURNS SETOF text
VOLATILE PARALLEL RESTRICTED LANGUAGE c AS 'MODULE_PATHNAME', '@FUNCTION_NAME@';"
)]
fn export(store: Option<&str>, graph: Option<&str>, fcinfo: pg_sys::FunctionCallInfo) {
    let store = store::resolve(store, false);
    let instead = "Select from its table instead.";
    store.check(pg_sys::ACL_SELECT, "export", instead);
    let mut lines = Lines::new(fcinfo);
    let graph = match graph {
        None => None,
        Some("") => Some(TermId::DEFAULT_GRAPH),
        Some(iri) => match dictionary::find(&Term::Iri(iri)) {
            Some(id) => Some(id),
            None => return,
        },
    };
    let mut batch: Vec<[TermId; 4]> = Vec::with_capacity(MAX_BATCH_QUADS);
    let mut enough = FIRST_BATCH_QUADS;
    scan(&store, |quad| {
        if graph.is_none_or(|graph| graph == quad[3]) {
            batch.push(quad);
        }
        if batch.len() >= enough {
            let bytes = lines.write(&mut batch);
            enough = (enough * BATCH_BYTES / bytes.max(1)).clamp(1, MAX_BATCH_QUADS);
        }
    });
    lines.write(&mut batch);
}

/// Calls `each` with every quad that the statement sees.
fn scan(store: &Store, mut each: impl FnMut([TermId; 4])) {
    // SAFETY: the table exists and is locked; it is closed below, or by PostgreSQL after an error. The statement's
    // snapshot is active.
    unsafe {
        let table = pg_sys::table_open(store.oid, pg_sys::NoLock as pg_sys::LOCKMODE);
        let mut cursor = OrderCursor::new(table, pg_sys::GetActiveSnapshot(), 0);
        let order = cursor.order();
        cursor.seek(KEY_MIN, KEY_MAX);
        let mut keys = Vec::new();
        while cursor.next_batch(&mut keys) {
            check_for_interrupts!();
            for key in keys.drain(..) {
                each(quad_of(order, &key).map(|id| TermId(id as u64)));
            }
        }
        cursor.close();
        pg_sys::table_close(table, pg_sys::NoLock as pg_sys::LOCKMODE);
    }
}

/// The rows of the result.
struct Lines {
    result: *mut pg_sys::ReturnSetInfo,
}

impl Lines {
    fn new(fcinfo: pg_sys::FunctionCallInfo) -> Self {
        // SAFETY: `fcinfo` is that of the running function, which returns a set. Raises an error where a set cannot be
        // returned.
        unsafe {
            pg_sys::InitMaterializedSRF(fcinfo, pg_sys::MAT_SRF_USE_EXPECTED_DESC);
            Lines {
                result: (*fcinfo).resultinfo.cast(),
            }
        }
    }

    /// Writes a batch, which is empty afterwards; the bytes of its lines.
    fn write(&mut self, batch: &mut Vec<[TermId; 4]>) -> usize {
        check_for_interrupts!();
        let mut ids: Vec<TermId> = batch.iter().flatten().copied().collect();
        ids.sort_unstable();
        ids.dedup();
        let texts: Vec<String> = dictionary::decode_many(&ids)
            .into_iter()
            .map(|term| term.map_or_else(String::new, |term| term.as_term().to_string()))
            .collect();
        let text = |id: &TermId| &texts[ids.binary_search(id).expect("all ids are in the list")];
        let (mut line, mut bytes) = (String::new(), 0);
        for quad in batch.drain(..) {
            line.clear();
            if quad[..GRAPH].contains(&TermId::DEFAULT_GRAPH) {
                dictionary::no_term_id(0);
            }
            for id in quad.iter().filter(|id| **id != TermId::DEFAULT_GRAPH) {
                let _ = write!(line, "{} ", text(id));
            }
            line.push('.');
            self.put(&line);
            bytes += line.len();
        }
        bytes
    }

    fn put(&mut self, line: &str) {
        // SAFETY: the tuple store and the row type were made by `InitMaterializedSRF`; the text is copied into the
        // store.
        unsafe {
            let text = pg_sys::cstring_to_text_with_len(line.as_ptr().cast(), line.len() as i32);
            let mut value = pg_sys::Datum::from(text);
            let mut is_null = false;
            pg_sys::tuplestore_putvalues(
                (*self.result).setResult,
                (*self.result).setDesc,
                &mut value,
                &mut is_null,
            );
            pg_sys::pfree(text.cast());
        }
    }
}
