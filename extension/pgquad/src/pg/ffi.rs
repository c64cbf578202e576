//! PostgreSQL functions that pgrx does not bind. Each is called through
//! [`pgrx::pg_sys::ffi::pg_guard_ffi_boundary`], so that an `ERROR` inside unwinds as a Rust panic.

use pgrx::{pg_guard, pg_sys};

/// A table of function pointers and C strings that PostgreSQL reads and nobody writes.
pub struct Methods<T>(pub T);
// SAFETY: never written after it is made.
unsafe impl<T> Sync for Methods<T> {}
// SAFETY: as above.
unsafe impl<T> Send for Methods<T> {}

/// `ClusterParams` of `commands/cluster.h`.
#[repr(C)]
pub struct ClusterParams {
    /// Bits `CLUOPT_*`.
    pub options: u32,
}

/// The first functions of `PQcommMethods` of `libpq/libpq.h`: what sends messages to the client of this session.
#[repr(C)]
pub struct ClientMethods {
    _reset: Option<unsafe extern "C-unwind" fn()>,
    flush: Option<unsafe extern "C-unwind" fn() -> core::ffi::c_int>,
    _flush_if_writable: Option<unsafe extern "C-unwind" fn() -> core::ffi::c_int>,
    _is_send_pending: Option<unsafe extern "C-unwind" fn() -> bool>,
    put: Option<PutMessage>,
}

/// Sends a message of a type: its bytes, their number.
type PutMessage = unsafe extern "C-unwind" fn(
    core::ffi::c_char,
    *const core::ffi::c_char,
    usize,
) -> core::ffi::c_int;

mod raw {
    use super::ClusterParams;
    use pgrx::pg_sys;
    extern "C-unwind" {
        #[link_name = "PqCommMethods"]
        pub static mut CLIENT_METHODS: *const super::ClientMethods;
        pub fn pq_startmsgread();
        pub fn pq_endmsgread();
        pub fn pq_getbyte_if_available(byte: *mut u8) -> core::ffi::c_int;
        pub fn pq_getbyte() -> core::ffi::c_int;
        pub fn pq_getmessage(into: pg_sys::StringInfo, most: core::ffi::c_int) -> core::ffi::c_int;
        pub fn pq_buffer_has_data() -> bool;
        pub fn die(signal: core::ffi::c_int);
        pub fn SignalHandlerForConfigReload(signal: core::ffi::c_int);
        pub fn enable_timeout_after(id: core::ffi::c_int, milliseconds: core::ffi::c_int);
        pub fn disable_timeout(id: core::ffi::c_int, keep_indicator: bool);
        pub fn PredicateLockRelation(relation: pg_sys::Relation, snapshot: pg_sys::Snapshot);
        pub fn CheckForSerializableConflictIn(
            relation: pg_sys::Relation,
            tid: pg_sys::ItemPointer,
            block: pg_sys::BlockNumber,
        );
        pub fn CheckForSerializableConflictOut(
            relation: pg_sys::Relation,
            xid: pg_sys::TransactionId,
            snapshot: pg_sys::Snapshot,
        );
        pub fn CheckForSerializableConflictOutNeeded(
            relation: pg_sys::Relation,
            snapshot: pg_sys::Snapshot,
        ) -> bool;
        pub fn standard_ProcessUtility(
            pstmt: *mut pg_sys::PlannedStmt,
            query: *const core::ffi::c_char,
            read_only_tree: bool,
            context: pg_sys::ProcessUtilityContext::Type,
            params: pg_sys::ParamListInfo,
            env: *mut pg_sys::QueryEnvironment,
            dest: *mut pg_sys::DestReceiver,
            completion: *mut pg_sys::QueryCompletion,
        );
        pub fn standard_ExecutorRun(
            query: *mut pg_sys::QueryDesc,
            direction: pg_sys::ScanDirection::Type,
            count: pg_sys::uint64,
            execute_once: bool,
        );
        pub fn standard_ExecutorStart(query: *mut pg_sys::QueryDesc, flags: core::ffi::c_int);
        pub fn standard_ExecutorFinish(query: *mut pg_sys::QueryDesc);
        pub fn standard_planner(
            query: *mut pg_sys::Query,
            text: *const core::ffi::c_char,
            options: core::ffi::c_int,
            params: pg_sys::ParamListInfo,
        ) -> *mut pg_sys::PlannedStmt;
        #[cfg_attr(not(feature = "pg15"), link_name = "expression_tree_walker_impl")]
        pub fn expression_tree_walker(
            node: *mut pg_sys::Node,
            walker: super::TreeWalker,
            context: *mut core::ffi::c_void,
        ) -> bool;
        #[cfg_attr(not(feature = "pg15"), link_name = "expression_tree_mutator_impl")]
        pub fn expression_tree_mutator(
            node: *mut pg_sys::Node,
            mutator: super::TreeMutator,
            context: *mut core::ffi::c_void,
        ) -> *mut pg_sys::Node;
        pub fn LookupTupleHashEntry(
            table: pg_sys::TupleHashTable,
            slot: *mut pg_sys::TupleTableSlot,
            is_new: *mut bool,
            hash: *mut u32,
        ) -> pg_sys::TupleHashEntry;
        #[cfg_attr(not(feature = "pg15"), link_name = "query_tree_walker_impl")]
        pub fn query_tree_walker(
            query: *mut pg_sys::Query,
            walker: super::TreeWalker,
            context: *mut core::ffi::c_void,
            flags: core::ffi::c_int,
        ) -> bool;
        pub fn have_relevant_joinclause(
            root: *mut pg_sys::PlannerInfo,
            a: *mut pg_sys::RelOptInfo,
            b: *mut pg_sys::RelOptInfo,
        ) -> bool;
        pub fn geqo(
            root: *mut pg_sys::PlannerInfo,
            levels: core::ffi::c_int,
            initial: *mut pg_sys::List,
        ) -> *mut pg_sys::RelOptInfo;
        pub fn cluster_rel(table: pg_sys::Oid, index: pg_sys::Oid, params: *mut ClusterParams);
        pub fn ExecScan(
            node: *mut pg_sys::ScanState,
            access: pg_sys::ExecScanAccessMtd,
            recheck: pg_sys::ExecScanRecheckMtd,
        ) -> *mut pg_sys::TupleTableSlot;
        pub fn ReadBufferExtended(
            relation: pg_sys::Relation,
            fork: pg_sys::ForkNumber::Type,
            block: pg_sys::BlockNumber,
            mode: pg_sys::ReadBufferMode::Type,
            strategy: pg_sys::BufferAccessStrategy,
        ) -> pg_sys::Buffer;
        pub fn ReadRecentBuffer(
            file: crate::pg::compat::FileLocator,
            fork: pg_sys::ForkNumber::Type,
            block: pg_sys::BlockNumber,
            buffer: pg_sys::Buffer,
        ) -> bool;
        pub fn LockBuffer(buffer: pg_sys::Buffer, mode: core::ffi::c_int);
        pub fn datumCopy(
            value: pg_sys::Datum,
            by_value: bool,
            length: core::ffi::c_int,
        ) -> pg_sys::Datum;
        pub fn log_smgrcreate(
            node: *const crate::pg::compat::FileLocator,
            fork: pg_sys::ForkNumber::Type,
        );
    }
}

macro_rules! guarded {
    ($(#[$doc:meta])* $name:ident($($arg:ident: $ty:ty),*) $(-> $ret:ty)?) => {
        $(#[$doc])*
        ///
        /// # Safety
        /// As for the PostgreSQL function of this name: live relation, valid snapshot.
        pub unsafe fn $name($($arg: $ty),*) $(-> $ret)? {
            // SAFETY: the caller's promise; the guard turns a longjmp into a panic.
            unsafe { pg_sys::ffi::pg_guard_ffi_boundary(|| raw::$name($($arg),*)) }
        }
    };
}

guarded!(
    /// Takes a relation-level predicate lock for a SERIALIZABLE reader (`storage/predicate.h`).
    #[allow(non_snake_case)]
    PredicateLockRelation(relation: pg_sys::Relation, snapshot: pg_sys::Snapshot)
);
guarded!(
    /// A SERIALIZABLE writer announces a change (`storage/predicate.h`).
    #[allow(non_snake_case)]
    CheckForSerializableConflictIn(relation: pg_sys::Relation, tid: pg_sys::ItemPointer, block: pg_sys::BlockNumber)
);
/// A change of a table is in its trees: SERIALIZABLE readers who have come before it conflict with it, and those who
/// come later meet its transaction. Heap tables are asked about at the change, under the lock of its page.
///
/// # Safety
/// `rel` is open, in the transaction that has changed it.
pub unsafe fn check_readers_of(rel: pg_sys::Relation) {
    // SAFETY: the caller's promise.
    unsafe {
        CheckForSerializableConflictIn(rel, std::ptr::null_mut(), pg_sys::InvalidBlockNumber);
    }
}

guarded!(
    /// A SERIALIZABLE reader met a version written by `xid` that its snapshot does not see.
    #[allow(non_snake_case)]
    CheckForSerializableConflictOut(relation: pg_sys::Relation, xid: pg_sys::TransactionId, snapshot: pg_sys::Snapshot)
);
guarded!(
    /// Whether the calls of `CheckForSerializableConflictOut` can matter for this snapshot.
    #[allow(non_snake_case)]
    CheckForSerializableConflictOutNeeded(relation: pg_sys::Relation, snapshot: pg_sys::Snapshot) -> bool
);
guarded!(
    /// Whether some join clause or equivalence class connects two relations (`optimizer/joininfo.h`).
    have_relevant_joinclause(root: *mut pg_sys::PlannerInfo, a: *mut pg_sys::RelOptInfo, b: *mut pg_sys::RelOptInfo) -> bool
);
guarded!(
    /// The genetic join search (`optimizer/geqo.h`).
    geqo(root: *mut pg_sys::PlannerInfo, levels: core::ffi::c_int, initial: *mut pg_sys::List) -> *mut pg_sys::RelOptInfo
);
guarded!(
    /// Rewrites a table into a new file; without an index as VACUUM FULL does (`commands/cluster.c`).
    cluster_rel(table: pg_sys::Oid, index: pg_sys::Oid, params: *mut ClusterParams)
);
guarded!(
    /// Logs the creation of a relation fork (`catalog/storage_xlog.h`).
    #[allow(non_snake_case)]
    log_smgrcreate(node: *const crate::pg::compat::FileLocator, fork: pg_sys::ForkNumber::Type)
);

/// Pins a page of the main fork and locks it: `ReadRecentBuffer`, `ReadBufferExtended` and `LockBuffer` of
/// `storage/bufmgr.h` under one guard. `recent`: the buffer in which the page may still be.
///
/// # Safety
/// The relation is open; `mode` is one of `BUFFER_LOCK_*`; `recent` is a shared buffer.
pub unsafe fn read_locked(
    relation: pg_sys::Relation,
    block: pg_sys::BlockNumber,
    recent: Option<pg_sys::Buffer>,
    mode: u32,
) -> pg_sys::Buffer {
    const MAIN: pg_sys::ForkNumber::Type = pg_sys::ForkNumber::MAIN_FORKNUM;
    // SAFETY: the caller's promise; nothing in the closure owns anything.
    unsafe {
        pg_sys::ffi::pg_guard_ffi_boundary(|| {
            let file = *crate::pg::compat::file_of(relation);
            let buffer = match recent {
                Some(recent) if raw::ReadRecentBuffer(file, MAIN, block, recent) => recent,
                _ => raw::ReadBufferExtended(
                    relation,
                    MAIN,
                    block,
                    pg_sys::ReadBufferMode::RBM_NORMAL,
                    std::ptr::null_mut(),
                ),
            };
            raw::LockBuffer(buffer, mode as core::ffi::c_int);
            buffer
        })
    }
}

/// Sends what waits to be sent to the client of this session (`pq_flush`). A client that is gone is noticed by the next
/// read.
pub fn flush_to_client() {
    // SAFETY: PostgreSQL sets the table before a session runs its first statement; an ERROR unwinds.
    unsafe {
        pg_sys::ffi::pg_guard_ffi_boundary(|| {
            if let Some(flush) = (*raw::CLIENT_METHODS).flush {
                flush();
            }
        });
    }
}

/// Gives the client of this session a message of this type (`pq_putmessage`), which waits to be sent.
pub fn put_to_client(kind: u8, message: &[u8]) {
    // SAFETY: as above; the bytes are copied.
    unsafe {
        pg_sys::ffi::pg_guard_ffi_boundary(|| {
            if let Some(put) = (*raw::CLIENT_METHODS).put {
                put(
                    kind as core::ffi::c_char,
                    message.as_ptr().cast(),
                    message.len(),
                );
            }
        });
    }
}

/// The type of a Flush message of PostgreSQL's protocol.
pub const FLUSH: u8 = b'H';

/// What the client of this session has sent.
pub enum FromClient {
    /// A message of this type, in the current memory context.
    Message(u8, pg_sys::StringInfoData),
    /// Nothing so far.
    Nothing,
    /// It has gone.
    End,
}

/// The next message of the client of this session, if one has begun to come (`libpq/pqcomm.c`). `is_coming`: that is
/// known already.
pub fn take_from_client(is_coming: bool) -> FromClient {
    const EOF: core::ffi::c_int = -1;
    // Bytes: PQ_LARGE_MESSAGE_LIMIT of libpq/libpq.h, MaxAllocSize - 1.
    const MAX_MESSAGE_BYTES: core::ffi::c_int = 0x3fff_fffe;
    // SAFETY: called between messages; nothing in the closure owns anything.
    unsafe {
        pg_sys::ffi::pg_guard_ffi_boundary(|| {
            raw::pq_startmsgread();
            let mut kind = 0;
            let come = if is_coming {
                let byte = raw::pq_getbyte();
                kind = byte as u8;
                if byte == EOF {
                    EOF
                } else {
                    1
                }
            } else {
                raw::pq_getbyte_if_available(&mut kind)
            };
            if come == 0 {
                raw::pq_endmsgread();
                return FromClient::Nothing;
            }
            let mut message = pg_sys::StringInfoData::default();
            pg_sys::initStringInfo(&mut message);
            if come == EOF || raw::pq_getmessage(&mut message, MAX_MESSAGE_BYTES) == EOF {
                return FromClient::End;
            }
            FromClient::Message(kind, message)
        })
    }
}

/// Whether something of the client's has been read from the socket and not been taken.
pub fn has_client_data() -> bool {
    // SAFETY: a look at a buffer of the session.
    unsafe { raw::pq_buffer_has_data() }
}

/// Lets a background worker end and take up changed settings as a session does: between two steps of its work.
pub fn handle_signals_as_session() {
    // SAFETY: PostgreSQL's own handlers.
    unsafe {
        pg_sys::pqsignal(libc::SIGHUP, Some(raw::SignalHandlerForConfigReload));
        pg_sys::pqsignal(libc::SIGTERM, Some(raw::die));
    }
}

/// A clock of `utils/timeout.h`.
#[derive(Clone, Copy)]
#[repr(i32)]
pub enum Timeout {
    /// `STATEMENT_TIMEOUT`.
    Statement = 3,
    /// `CLIENT_CONNECTION_CHECK_TIMEOUT`.
    #[cfg(not(feature = "pg17"))]
    ClientCheck = 10,
    /// `CLIENT_CONNECTION_CHECK_TIMEOUT`.
    #[cfg(feature = "pg17")]
    ClientCheck = 11,
}

impl Timeout {
    /// Starts the clock; not for 0 milliseconds, which a setting means by "never".
    pub fn start(self, milliseconds: i32) {
        if milliseconds > 0 {
            // SAFETY: a registered timeout of a session.
            unsafe { raw::enable_timeout_after(self as core::ffi::c_int, milliseconds) }
        }
    }

    /// Stops the clock.
    pub fn stop(self) {
        // SAFETY: as above.
        unsafe { raw::disable_timeout(self as core::ffi::c_int, false) }
    }
}

/// Functions that run whole statements. They are called without a guard of ours, so that an `ERROR` inside goes
/// straight to the caller's handler, unchanged.
///
/// # Safety
/// As for the PostgreSQL functions; in addition no frame between the caller's guard and the call may own a value with a
/// destructor.
pub mod unguarded {
    pub use super::raw::{
        standard_ExecutorFinish, standard_ExecutorRun, standard_ExecutorStart,
        standard_ProcessUtility, standard_planner,
    };
}

/// What gives the copy of a node with its children changed.
pub type TreeMutator =
    unsafe extern "C-unwind" fn(*mut pg_sys::Node, *mut core::ffi::c_void) -> *mut pg_sys::Node;

/// What is called with each node below another one; true ends the walk.
pub type TreeWalker =
    unsafe extern "C-unwind" fn(*mut pg_sys::Node, *mut core::ffi::c_void) -> bool;

/// Visits the nodes right below an expression (`nodes/nodeFuncs.h`).
///
/// # Safety
/// A live node; `context` is what `walker` expects.
pub unsafe fn expression_tree_walker(
    node: *mut pg_sys::Node,
    walker: TreeWalker,
    context: *mut core::ffi::c_void,
) -> bool {
    // SAFETY: the caller's promise; the guard turns a longjmp into a panic.
    unsafe {
        pg_sys::ffi::pg_guard_ffi_boundary(|| raw::expression_tree_walker(node, walker, context))
    }
}

/// A copy of a node with its children changed (`nodes/nodeFuncs.h`).
///
/// # Safety
/// As for [`expression_tree_walker`].
pub unsafe fn expression_tree_mutator(
    node: *mut pg_sys::Node,
    mutator: TreeMutator,
    context: *mut core::ffi::c_void,
) -> *mut pg_sys::Node {
    // SAFETY: the caller's promise; the guard turns a longjmp into a panic.
    unsafe {
        pg_sys::ffi::pg_guard_ffi_boundary(|| raw::expression_tree_mutator(node, mutator, context))
    }
}

/// The entry of a hash table for the keys in a slot (`executor/executor.h`); NULL where there is none, and none is to
/// be made because `is_new` is NULL; and the hash of the keys. It is called without a guard: an ERROR leaves the guard
/// of the caller.
///
/// # Safety
/// The table is one for the keys in the slot, which is filled. The caller is within a guard, and owns no memory there.
pub unsafe fn look_up_group_unguarded(
    table: pg_sys::TupleHashTable,
    slot: *mut pg_sys::TupleTableSlot,
    is_new: *mut bool,
    hash: *mut u32,
) -> pg_sys::TupleHashEntry {
    // SAFETY: the caller's promise.
    unsafe { raw::LookupTupleHashEntry(table, slot, is_new, hash) }
}

/// Visits the expressions and subqueries of a query (`nodes/nodeFuncs.h`).
///
/// # Safety
/// As for [`expression_tree_walker`].
pub unsafe fn query_tree_walker(
    query: *mut pg_sys::Query,
    walker: TreeWalker,
    context: *mut core::ffi::c_void,
) -> bool {
    // SAFETY: the caller's promise; the guard turns a longjmp into a panic.
    unsafe {
        pg_sys::ffi::pg_guard_ffi_boundary(|| raw::query_tree_walker(query, walker, context, 0))
    }
}

/// Calls `each` with a query, and then with each of those within it: subqueries, common table expressions, sublinks.
///
/// # Safety
/// A live query; `each` changes nothing that the visit still comes to.
pub unsafe fn each_query(query: *mut pg_sys::Query, mut each: &mut dyn FnMut(*mut pg_sys::Query)) {
    each(query);
    // SAFETY: the caller's promise; the closure lives as long as the call, to whose callback it is passed.
    unsafe { query_tree_walker(query, visit_query, std::ptr::from_mut(&mut each).cast()) };
}

#[pg_guard]
unsafe extern "C-unwind" fn visit_query(
    node: *mut pg_sys::Node,
    each: *mut core::ffi::c_void,
) -> bool {
    // SAFETY: a query is told by its tag; the context is that of `each_query`.
    unsafe {
        if node.is_null() {
            return false;
        }
        if (*node).type_ == pg_sys::NodeTag::T_Query {
            let closure = each.cast::<&mut dyn FnMut(*mut pg_sys::Query)>();
            each_query(node.cast(), &mut **closure);
            return false;
        }
        expression_tree_walker(node, visit_query, each)
    }
}

/// `ExecScan` of `executor/execScan.c` without the guard of pgrx, which would cost a `sigsetjmp` per row. An `ERROR`
/// inside jumps straight to the caller's guard.
///
/// # Safety
/// As for the PostgreSQL function; in addition no frame between the caller's guard and this call may own a value with a
/// destructor.
#[allow(non_snake_case)]
pub unsafe fn ExecScanUnguarded(
    node: *mut pg_sys::ScanState,
    access: pg_sys::ExecScanAccessMtd,
    recheck: pg_sys::ExecScanRecheckMtd,
) -> *mut pg_sys::TupleTableSlot {
    // SAFETY: the caller's promise.
    unsafe { raw::ExecScan(node, access, recheck) }
}

/// The next row of a plan node (`ExecProcNode` of `executor/executor.h`).
///
/// # Safety
/// `node` is a begun node.
pub unsafe fn exec_proc_node(node: *mut pg_sys::PlanState) -> *mut pg_sys::TupleTableSlot {
    // SAFETY: the caller's promise; the guard turns a longjmp into a panic.
    unsafe {
        if !(*node).chgParam.is_null() {
            pg_sys::ExecReScan(node);
        }
        let next = (*node).ExecProcNode.expect("a begun node");
        pg_sys::ffi::pg_guard_ffi_boundary(|| next(node))
    }
}

/// A copy of a value in the current memory context (`datumCopy` of `utils/datum.h`).
///
/// # Safety
/// `value` is a value of a type with these properties.
pub unsafe fn datum_copy(value: pg_sys::Datum, by_value: bool, length: i32) -> pg_sys::Datum {
    // SAFETY: the caller's promise; the guard turns a longjmp into a panic.
    unsafe { pg_sys::ffi::pg_guard_ffi_boundary(|| raw::datumCopy(value, by_value, length)) }
}
