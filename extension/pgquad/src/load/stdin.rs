//! `COPY quad.load_stdin FROM STDIN`: a document that the client sends line by line; `quad.load_stdin_bytes`: one that
//! comes in pieces of bytes, compressed as it is.
//!
//! The rows of these views are the lines or pieces of a document; triggers on them hand those to a loader. Plain
//! `INSERT INTO quad.load_stdin SELECT ...` works as well.

use std::cell::RefCell;
use std::convert::Infallible;
use std::ffi::{CStr, CString};

use pgquad_reader::{feed, Feed, FeedReader, Source};
use pgrx::guc::GucSetting;
use pgrx::heap_tuple::{PgHeapTuple, PgHeapTupleError};
use pgrx::prelude::*;
use pgrx::{pg_sys, AllocatedByPostgres, PgSqlErrorCode, PgTrigger};

use super::loader::{self, Loader, Request};
use super::progress::Progress;
use super::report::Document;
use crate::pg::error::{raise, raise_hint};
use crate::pg::exit::is_exiting;
use crate::settings;

extension_sql_file!(
    "../../../../sql/load_stdin.sql",
    name = "load_stdin",
    requires = [
        load_stdin_begin,
        load_stdin_line,
        load_stdin_piece,
        load_stdin_end
    ]
);

struct Stdin {
    feed: Feed,
    loader: Loader,
    progress: Progress,
    /// Subtransaction that the command runs in.
    subtransaction: pg_sys::SubTransactionId,
    /// Holds what PostgreSQL allocates for the loader, which outlives the calls of the triggers.
    memory: pg_sys::MemoryContext,
    /// Whether rows are lines; if not, they are pieces of the document, to be put together as they are.
    lines: bool,
}

thread_local! {
    static STDIN: RefCell<Option<Stdin>> = const { RefCell::new(None) };
}

/// Callbacks; called once from `_PG_init`.
pub fn init() {
    // SAFETY: the callbacks are plain functions that live as long as the process.
    unsafe {
        pg_sys::RegisterXactCallback(Some(at_transaction_end), std::ptr::null_mut());
        pg_sys::RegisterSubXactCallback(Some(at_subtransaction_end), std::ptr::null_mut());
    }
}

fn text(setting: &GucSetting<Option<CString>>) -> Option<String> {
    let text = setting.get()?.into_string().ok()?;
    (!text.is_empty()).then_some(text)
}

/// Begins a load.
#[pg_trigger(
    sql = "CREATE FUNCTION quad.load_stdin_begin() RETURNS trigger LANGUAGE c AS 'MODULE_PATHNAME', 'load_stdin_begin_called';"
)]
fn load_stdin_begin<'a>(
    trigger: &'a PgTrigger<'a>,
) -> Result<Option<PgHeapTuple<'a, AllocatedByPostgres>>, Infallible> {
    if STDIN.with_borrow(Option::is_some) {
        raise(
            PgSqlErrorCode::ERRCODE_OBJECT_IN_USE,
            "this session is loading a document already",
        );
    }
    let in_pieces = takes_bytes(trigger);
    let lines = !in_pieces && check_copy();
    let format = loader::format(&text(&settings::STDIN_FORMAT).unwrap_or_default());
    // SAFETY: a new context, deleted when the load or the transaction ends.
    let (memory, subtransaction) = unsafe {
        (
            pg_sys::AllocSetContextCreateInternal(
                pg_sys::TopTransactionContext,
                c"quad load".as_ptr(),
                pg_sys::ALLOCSET_DEFAULT_MINSIZE as usize,
                pg_sys::ALLOCSET_DEFAULT_INITSIZE as usize,
                pg_sys::ALLOCSET_DEFAULT_MAXSIZE as usize,
            ),
            pg_sys::GetCurrentSubTransactionId(),
        )
    };
    let (feed, reader) = feed();
    let source = if in_pieces {
        packed(reader)
    } else {
        Source::plain(reader)
    };
    let progress = Progress::start_within_copy("(stdin)");
    let document = Document {
        format,
        name: "Document sent by the client".to_owned(),
    };
    let (graph, base) = (text(&settings::STDIN_GRAPH), text(&settings::STDIN_BASE));
    let request = Request {
        format,
        graph: graph.as_deref(),
        one_graph: settings::STDIN_ONE_GRAPH.get(),
        base: base.as_deref(),
        store: None,
    };
    let loader = within(memory, || {
        Loader::start(source, document, &request, &progress)
    });
    STDIN.set(Some(Stdin {
        feed,
        loader,
        progress,
        subtransaction,
        memory,
        lines,
    }));
    Ok(None)
}

/// Takes a line.
#[pg_trigger(
    sql = "CREATE FUNCTION quad.load_stdin_line() RETURNS trigger LANGUAGE c AS 'MODULE_PATHNAME', 'load_stdin_line_called';"
)]
fn load_stdin_line<'a>(
    trigger: &'a PgTrigger<'a>,
) -> Result<Option<PgHeapTuple<'a, AllocatedByPostgres>>, PgHeapTupleError> {
    let row = trigger.new();
    let line: Option<&str> = match &row {
        Some(row) => row
            .get_by_index(std::num::NonZeroUsize::MIN)
            .map_err(|_| ())
            .unwrap_or(None),
        None => None,
    };
    take(line.unwrap_or_default().as_bytes());
    Ok(row)
}

/// Takes a piece.
#[pg_trigger(
    sql = "CREATE FUNCTION quad.load_stdin_piece() RETURNS trigger LANGUAGE c AS 'MODULE_PATHNAME', 'load_stdin_piece_called';"
)]
fn load_stdin_piece<'a>(
    trigger: &'a PgTrigger<'a>,
) -> Result<Option<PgHeapTuple<'a, AllocatedByPostgres>>, PgHeapTupleError> {
    let row = trigger.new();
    let piece: Option<&[u8]> = match &row {
        Some(row) => row
            .get_by_index(std::num::NonZeroUsize::MIN)
            .map_err(|_| ())
            .unwrap_or(None),
        None => None,
    };
    take(piece.unwrap_or_default());
    Ok(row)
}

/// Takes what a row holds.
fn take(bytes: &[u8]) {
    STDIN.with_borrow_mut(|stdin| {
        let stdin = stdin.as_mut().unwrap_or_else(|| not_loading());
        stdin.feed.push(bytes);
        if stdin.lines {
            stdin.feed.push(b"\n");
        }
        if stdin.feed.is_due() {
            stdin.flush();
        }
    });
}

/// Ends the load.
#[pg_trigger(
    sql = "CREATE FUNCTION quad.load_stdin_end() RETURNS trigger LANGUAGE c AS 'MODULE_PATHNAME', 'load_stdin_end_called';"
)]
fn load_stdin_end<'a>(
    _trigger: &'a PgTrigger<'a>,
) -> Result<Option<PgHeapTuple<'a, AllocatedByPostgres>>, Infallible> {
    let mut stdin = STDIN.take().unwrap_or_else(|| not_loading());
    stdin.flush();
    let Stdin {
        feed,
        mut loader,
        progress,
        memory,
        ..
    } = stdin;
    drop(feed);
    let count = within(memory, || {
        while loader.step(&progress) {}
        loader.finish(&progress)
    });
    progress.finish();
    // SAFETY: created when the load began; the loader, which used it, is gone.
    unsafe { pg_sys::MemoryContextDelete(memory) };
    notice!("{count} new quads loaded");
    Ok(None)
}

/// The functions that SQL calls. For pgrx a call that is not a trigger's would be an internal error.
macro_rules! only_as_trigger {
    ($($called:ident $finfo:ident = $trigger:ident;)*) => {$(
        #[no_mangle]
        #[doc(hidden)]
        pub extern "C-unwind" fn $finfo() -> &'static pg_sys::Pg_finfo_record {
            const RECORD: pg_sys::Pg_finfo_record = pg_sys::Pg_finfo_record { api_version: 1 };
            &RECORD
        }

        #[no_mangle]
        #[pg_guard]
        #[doc(hidden)]
        pub unsafe extern "C-unwind" fn $called(call: pg_sys::FunctionCallInfo) -> pg_sys::Datum {
            // SAFETY: PostgreSQL's own call, passed on.
            unsafe {
                check_trigger(call);
                $trigger(call)
            }
        }
    )*};
}

only_as_trigger! {
    load_stdin_begin_called pg_finfo_load_stdin_begin_called = load_stdin_begin_wrapper;
    load_stdin_line_called pg_finfo_load_stdin_line_called = load_stdin_line_wrapper;
    load_stdin_piece_called pg_finfo_load_stdin_piece_called = load_stdin_piece_wrapper;
    load_stdin_end_called pg_finfo_load_stdin_end_called = load_stdin_end_wrapper;
}

/// Raises an error where a trigger function is not called as a trigger.
///
/// # Safety
/// `call` is that of the running function.
unsafe fn check_trigger(call: pg_sys::FunctionCallInfo) {
    // SAFETY: the context of a call is NULL or a node.
    let as_trigger = unsafe {
        let context = (*call).context;
        !context.is_null() && (*context).type_ == pg_sys::NodeTag::T_TriggerData
    };
    if !as_trigger {
        raise_hint(
            PgSqlErrorCode::ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED,
            "trigger functions can only be called as triggers",
            "COPY quad.load_stdin FROM STDIN loads a document.",
        );
    }
}

impl Stdin {
    /// Sends what is collected to the parser, and loads batches while that is busy. Where the parser has stopped, what
    /// it has found wrong is raised: the client need not send the rest.
    fn flush(&mut self) {
        while !self.feed.flush() {
            self.step();
        }
        while self.feed.is_over() && self.step() {}
    }

    fn step(&mut self) -> bool {
        let (loader, progress) = (&mut self.loader, &self.progress);
        within(self.memory, || loader.step(progress))
    }
}

/// Whether the rows of the trigger's view are bytes.
fn takes_bytes(trigger: &PgTrigger<'_>) -> bool {
    let view = trigger.relation().ok();
    view.is_some_and(|view| {
        let row = view.tuple_desc();
        row.get(0)
            .is_some_and(|column| column.atttypid == pg_sys::BYTEAOID)
    })
}

/// The document that the pieces are, as the settings tell of it.
fn packed(reader: FeedReader) -> Source {
    let compression = text(&settings::STDIN_COMPRESSION).unwrap_or_default();
    let source = Source::compressed(reader, &compression).unwrap_or_else(|| {
        raise_hint(
            PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
            format!("compression \"{compression}\" is not known"),
            "The setting quad.stdin_compression is gzip, zstd, bzip2, none, or empty: as the first bytes tell.",
        )
    });
    match settings::STDIN_MAX_BYTES.get() as u64 {
        0 => source,
        bytes => source.bounded(bytes),
    }
}

/// Refuses a COPY whose format would change the lines: the text format takes backslashes for its own, CSV the quotes.
/// `false`: the rows are not lines but pieces of any size, as a binary COPY can send them.
fn check_copy() -> bool {
    let Some(options) = copy_options() else {
        return true;
    };
    let option = |name: &str| {
        let found = options.iter().find(|(known, _)| known == name);
        found.map_or("", |(_, value)| value.as_str())
    };
    if option("format") == "binary" {
        return false;
    }
    let is_control = |value: &str| value.len() == 1 && value.as_bytes()[0] < b' ';
    if option("format") != "csv" || !is_control(option("delimiter")) || !is_control(option("quote"))
    {
        raise_hint(
            PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
            "COPY to quad.load_stdin must take the lines as they are",
            "Use WITH (FORMAT csv, DELIMITER E'\\x01', QUOTE E'\\x02') for lines, or (FORMAT binary) for pieces of any size.",
        );
    }
    true
}

/// The options of the COPY command that is running; `None` when another command is.
fn copy_options() -> Option<Vec<(String, String)>> {
    // SAFETY: the running portal and its statements are alive and, being parser output, made of well-formed nodes and
    // lists.
    unsafe {
        let portal = pg_sys::ActivePortal.as_ref()?;
        let statement = pg_sys::list_nth(portal.stmts.as_ref()?, 0).cast::<pg_sys::PlannedStmt>();
        let copy = (*statement).utilityStmt;
        if copy.is_null() || (*copy).type_ != pg_sys::NodeTag::T_CopyStmt {
            return None;
        }
        let list = (*copy.cast::<pg_sys::CopyStmt>()).options;
        let count = list.as_ref().map_or(0, |list| list.length);
        let text =
            |text: *const std::ffi::c_char| CStr::from_ptr(text).to_string_lossy().into_owned();
        let options = (0..count).map(|index| {
            let option = pg_sys::list_nth(list, index).cast::<pg_sys::DefElem>();
            let value = (*option).arg.cast::<pg_sys::String>();
            let is_string = !value.is_null() && (*value).type_ == pg_sys::NodeTag::T_String;
            let value = if is_string {
                text((*value).sval)
            } else {
                String::new()
            };
            (text((*option).defname), value)
        });
        Some(options.collect())
    }
}

fn not_loading() -> ! {
    raise_hint(
        PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        "no document is being loaded",
        "The triggers of quad.load_stdin work for INSERT and COPY into this view only.",
    )
}

/// Calls `body` with `memory` as the current memory context.
fn within<T>(memory: pg_sys::MemoryContext, body: impl FnOnce() -> T) -> T {
    // SAFETY: the context is alive; after an error PostgreSQL sets its own.
    unsafe {
        let before = pg_sys::MemoryContextSwitchTo(memory);
        let result = body();
        pg_sys::MemoryContextSwitchTo(before);
        result
    }
}

/// Gives up a load whose command has failed.
fn give_up(since: pg_sys::SubTransactionId) {
    STDIN.with(|stdin| {
        // It is borrowed only when the process exits in the middle of a call.
        if let Ok(mut stdin) = stdin.try_borrow_mut() {
            if stdin
                .as_ref()
                .is_some_and(|stdin| stdin.subtransaction >= since)
            {
                // The memory context goes with the transaction.
                *stdin = None;
            }
        }
    });
}

#[pg_guard]
unsafe extern "C-unwind" fn at_transaction_end(
    event: pg_sys::XactEvent::Type,
    _argument: *mut std::ffi::c_void,
) {
    if event == pg_sys::XactEvent::XACT_EVENT_ABORT && !is_exiting() {
        give_up(0);
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn at_subtransaction_end(
    event: pg_sys::SubXactEvent::Type,
    subtransaction: pg_sys::SubTransactionId,
    _parent: pg_sys::SubTransactionId,
    _argument: *mut std::ffi::c_void,
) {
    if event == pg_sys::SubXactEvent::SUBXACT_EVENT_ABORT_SUB && !is_exiting() {
        give_up(subtransaction);
    }
}
