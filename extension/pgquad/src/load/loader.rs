//! One document on its way into a store.

use std::time::Duration;

use pgquad_reader::{Batch, Format, Options, Pipeline, ReadError, Source, Step};
use pgrx::{check_for_interrupts, pg_sys, PgSqlErrorCode};

use super::progress::{Phase, Progress};
use super::report::{self, Document};
use super::rows::{self, Rows};
use crate::dictionary::{self, BulkEncoder};
use crate::pg::error::{raise, raise_hint};
use crate::pg::threads::with_signals_blocked;
use crate::settings;
use crate::store::{self, Store};

/// Longest wait for a batch before the next look for a cancel request.
const PATIENCE: Duration = Duration::from_millis(20);

fn threads() -> usize {
    match settings::LOAD_THREADS.get() {
        0 => settings::processors().min(16) as usize,
        count => count as usize,
    }
}

/// What the caller of a load has asked for.
pub struct Request<'a> {
    /// Format of the document.
    pub format: Format,
    /// Graph for triples outside of named graphs.
    pub graph: Option<&'a str>,
    /// A named graph in the document is an error.
    pub one_graph: bool,
    /// IRI against which relative IRIs are resolved.
    pub base: Option<&'a str>,
    /// Store; `None`: the default store.
    pub store: Option<&'a str>,
}

/// The format with this name.
pub fn format(name: &str) -> Format {
    Format::from_name(name).unwrap_or_else(|| {
        raise_hint(
            PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
            format!("format \"{name}\" is not known"),
            format!("Formats are {}.", Format::NAMES),
        )
    })
}

/// A document of at most so many quads, in one batch, is inserted beside other writers. A larger document locks them
/// out for speed.
const SMALL_QUADS: usize = 4096;

/// A load that is under way.
pub struct Loader {
    document: Document,
    store: Store,
    pipeline: Pipeline,
    /// Number of the symbol tables that the parsers compress with.
    symbols: Option<u32>,
    work: Work,
    quads: u64,
}

enum Work {
    /// The document may be small: nothing but its first batch has come.
    Small(Option<Batch>),
    Large(Box<BulkEncoder>, Rows),
}

/// What to do where quads cannot be loaded.
const INSTEAD: &str = "Use INSERT statements, or quad.update, instead.";

/// Refuses a store whose table tests rows or does something with them: a load writes quads into the trees, past
/// constraints, triggers and rules.
fn refuse_conditions(store: &Store) {
    let lock = pg_sys::NoLock as pg_sys::LOCKMODE;
    // As the session's role of replication has it by default.
    let is_on = |enabled: core::ffi::c_char| matches!(enabled as u8, b'O' | b'A');
    // SAFETY: the table of the store is locked; it is closed here. Arrays have the lengths that stand beside them.
    let has_some = unsafe {
        let rel = pg_sys::table_open(store.oid, lock);
        let constraints = (*(*rel).rd_att).constr;
        let is_tested = !constraints.is_null() && (*constraints).num_check > 0;
        let is_watched = (*rel).trigdesc.as_ref().is_some_and(|all| {
            let triggers = std::slice::from_raw_parts(all.triggers, all.numtriggers as usize);
            let of_insert =
                |t: &pg_sys::Trigger| t.tgtype as u32 & pg_sys::TRIGGER_TYPE_INSERT != 0;
            triggers.iter().any(|t| of_insert(t) && is_on(t.tgenabled))
        });
        let is_rewritten = (*rel).rd_rules.as_ref().is_some_and(|all| {
            let rules = std::slice::from_raw_parts(all.rules, all.numLocks as usize);
            let of_insert = |&rule: &*mut pg_sys::RewriteRule| {
                (*rule).event == pg_sys::CmdType::CMD_INSERT && is_on((*rule).enabled)
            };
            rules.iter().any(of_insert)
        });
        pg_sys::table_close(rel, lock);
        is_tested || is_watched || is_rewritten
    };
    if has_some {
        raise_hint(
            PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
            format!(
                "cannot load into store \"{}\", whose table has constraints, triggers or rules",
                store.name
            ),
            INSTEAD,
        );
    }
}

impl Loader {
    /// Starts to read `source`. The caller must have the right to insert into the store.
    pub fn start(
        source: Source,
        document: Document,
        request: &Request<'_>,
        progress: &Progress,
    ) -> Self {
        check_iri("graph", request.graph);
        check_iri("base", request.base);
        // SAFETY: only looks at the state of the transaction.
        unsafe {
            pg_sys::PreventCommandIfReadOnly(c"quad.load".as_ptr());
            pg_sys::PreventCommandIfParallelMode(c"quad.load".as_ptr());
        }
        let store = store::resolve(request.store, true);
        let right = pg_sys::ACL_INSERT;
        store.check(right, "load into", INSTEAD);
        refuse_conditions(&store);
        progress.set_store(store.oid);
        let options = Options {
            format: request.format,
            base: request.base.map(str::to_owned),
            graph: request.graph.map(str::to_owned),
            one_graph: request.one_graph,
            threads: threads(),
        };
        let pipeline =
            with_signals_blocked(|| Pipeline::start(source, &options)).unwrap_or_else(|error| {
                raise(
                    PgSqlErrorCode::ERRCODE_INSUFFICIENT_RESOURCES,
                    format!("could not start a thread: {error}"),
                )
            });
        Loader {
            document,
            store,
            pipeline,
            symbols: None,
            work: Work::Small(None),
            quads: 0,
        }
    }

    /// Loads the next batch if there is one soon. `false`: the document has ended.
    pub fn step(&mut self, progress: &Progress) -> bool {
        self.try_step(progress)
            .unwrap_or_else(|error| report::raise_error(&self.document, &error))
    }

    /// As [`Self::step`]; what is wrong with the document is for the caller to report.
    pub fn try_step(&mut self, progress: &Progress) -> Result<bool, ReadError> {
        check_for_interrupts!();
        match self.pipeline.next(PATIENCE)? {
            Step::Batch(batch) => {
                self.quads += batch.quads.len() as u64;
                self.take(batch);
                self.share_symbols();
                progress.update(self.pipeline.bytes_read(), self.quads);
                Ok(true)
            }
            Step::Waiting => {
                if let Work::Large(encoder, _) = &mut self.work {
                    encoder.take_answers();
                }
                Ok(true)
            }
            Step::End => Ok(false),
        }
    }

    /// Lets the parsers compress terms with the symbols that the encoder has chosen.
    fn share_symbols(&mut self) {
        let Work::Large(encoder, _) = &self.work else {
            return;
        };
        if let Some(chosen) = encoder.symbols() {
            if self.symbols != Some(chosen.number) {
                self.symbols = Some(chosen.number);
                self.pipeline
                    .compress_with(chosen.number, chosen.symbols.clone());
            }
        }
    }

    fn take(&mut self, batch: Batch) {
        if batch.quads.is_empty() {
            return;
        }
        match &mut self.work {
            Work::Large(encoder, rows) => encoder.encode(batch, |quads| rows.push(quads)),
            Work::Small(first @ None) if batch.quads.len() <= SMALL_QUADS => *first = Some(batch),
            Work::Small(first) => {
                // SAFETY: a setting of PostgreSQL.
                let memory = unsafe { pg_sys::maintenance_work_mem } as usize * 1024;
                let mut encoder = BulkEncoder::new(memory / 2);
                let mut rows = Rows::new(&self.store, memory / 2);
                for batch in first.take().into_iter().chain([batch]) {
                    encoder.encode(batch, |quads| rows.push(quads));
                }
                self.work = Work::Large(Box::new(encoder), rows);
            }
        }
    }

    /// Writes what is still in memory. Returns the number of quads that were not in the store before.
    pub fn finish(self, progress: &Progress) -> u64 {
        drop(self.pipeline);
        match self.work {
            Work::Small(None) => 0,
            Work::Small(Some(batch)) => {
                progress.set_phase(Phase::Quads);
                rows::insert(&self.store, dictionary::encode_batch(&batch))
            }
            Work::Large(encoder, mut rows) => {
                progress.set_phase(Phase::Terms);
                encoder.finish(|quads| rows.push(quads));
                progress.set_phase(Phase::Quads);
                rows.finish()
            }
        }
    }
}

/// Raises an error when `iri` is given and is not an absolute IRI.
fn check_iri(what: &str, iri: Option<&str>) {
    if let Some(Err(error)) = iri.map(pgquad_reader::check_iri) {
        raise(
            PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
            format!(
                "{what} \"{}\" is not an absolute IRI: {error}",
                iri.unwrap_or_default()
            ),
        );
    }
}
