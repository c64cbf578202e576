//! The settings `quad.*`: their values and their definitions.

use crate::pg::replan;
use pgquad_cluster::exchange::{port_range, MAX_BATCH_BYTES};
use pgquad_sparql::DefaultGraph;
use pgrx::prelude::*;
use pgrx::{GucContext, GucFlags, GucRegistry, GucSetting, PostgresGucEnum};
use std::ffi::{c_char, c_void, CStr, CString};
use std::net::IpAddr;
use std::sync::OnceLock;
use std::time::Duration;

/// Processors that this process may use, for settings that go by them unless they are told.
pub fn processors() -> u32 {
    static PROCESSORS: OnceLock<u32> = OnceLock::new();
    *PROCESSORS.get_or_init(|| std::thread::available_parallelism().map_or(1, |n| n.get() as u32))
}

/// Orders of a new `quad` table: `quad.orders`.
pub static ORDERS: GucSetting<Option<CString>> =
    GucSetting::<Option<CString>>::new(Some(c"spog,posg,ospg"));
/// Maximum children per inner page of a new table, one number or one per order: `quad.inner_fanout`.
pub static INNER_FANOUT: GucSetting<Option<CString>> =
    GucSetting::<Option<CString>>::new(Some(c"0"));
/// Maximum quads per leaf of a new table, one number or one per order: `quad.leaf_quads`.
pub static LEAF_QUADS: GucSetting<Option<CString>> = GucSetting::<Option<CString>>::new(Some(c"0"));
/// Whether the planner may use `Quad Scan`: `quad.enable_quad_scan`.
pub static ENABLE_QUAD_SCAN: GucSetting<bool> = GucSetting::<bool>::new(true);
/// Whether the planner may use `Quad Join`: `quad.enable_quad_join`.
pub static ENABLE_QUAD_JOIN: GucSetting<bool> = GucSetting::<bool>::new(true);
/// Whether the planner may use `Quad Groups`: `quad.enable_quad_groups`.
pub static ENABLE_QUAD_GROUPS: GucSetting<bool> = GucSetting::<bool>::new(true);
/// Whether the planner may use `Quad Walk`: `quad.enable_quad_walk`.
pub static ENABLE_QUAD_WALK: GucSetting<bool> = GucSetting::<bool>::new(true);
/// Whether a shard that moves is copied as sorted runs: `quad.move_as_sorted_runs`.
pub static MOVE_AS_SORTED_RUNS: GucSetting<bool> = GucSetting::<bool>::new(true);
/// Most rows of a batch of `Quad Join`: `quad.join_batch_size`.
pub static JOIN_BATCH_SIZE: GucSetting<i32> = GucSetting::<i32>::new(10_000);

/// Where the quads of a distributed store meet the rows that they are joined with: `quad.exchange_mode`.
pub static EXCHANGE_MODE: GucSetting<ExchangeMode> =
    GucSetting::<ExchangeMode>::new(ExchangeMode::Auto);

/// Values of `quad.exchange_mode`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, PostgresGucEnum)]
pub enum ExchangeMode {
    /// By what the join is expected to find.
    #[name = c"auto"]
    Auto,
    /// The quads come to the node that was asked.
    #[name = c"pull"]
    Pull,
    /// The rows go from node to node.
    #[name = c"push"]
    Push,
}

/// Default graph of requests that name none: `quad.default_graph`.
pub static DEFAULT_GRAPH: GucSetting<DefaultGraphSetting> =
    GucSetting::<DefaultGraphSetting>::new(DefaultGraphSetting::Default);

/// Values of `quad.default_graph`.
#[derive(Clone, Copy, Debug, PostgresGucEnum)]
pub enum DefaultGraphSetting {
    /// The default graph of the store.
    #[name = c"default"]
    Default,
    /// The merge of all graphs.
    #[name = c"union"]
    Union,
}

impl From<DefaultGraphSetting> for DefaultGraph {
    fn from(setting: DefaultGraphSetting) -> Self {
        match setting {
            DefaultGraphSetting::Default => Self::Own,
            DefaultGraphSetting::Union => Self::Union,
        }
    }
}

/// Points at which this session waits: `quad.stop_at`.
#[cfg(feature = "stop_points")]
pub static STOP_AT: GucSetting<Option<CString>> = GucSetting::<Option<CString>>::new(None);

/// Store that is used when a function is given none: `quad.store`.
pub static STORE: GucSetting<Option<CString>> = GucSetting::<Option<CString>>::new(Some(c"main"));

/// Templates of queries, and plans of updates, that a session keeps: `quad.template_cache_size`.
pub static TEMPLATE_CACHE_SIZE: GucSetting<i32> = GucSetting::<i32>::new(200);

/// How the SQL of SPARQL queries is planned: `quad.template_plans`.
pub static TEMPLATE_PLANS: GucSetting<PlanMode> = GucSetting::<PlanMode>::new(PlanMode::Auto);

/// Values of `quad.template_plans`: how the SQL of a query whose constants are parameters is planned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PostgresGucEnum)]
pub enum PlanMode {
    /// Once, for all constants, when all patterns are joined by `Quad Join`s, which choose their order as they run.
    /// Else as PostgreSQL sees fit: for the constants at hand a few times, then for all if that promises to be no
    /// worse.
    #[name = c"auto"]
    Auto,
    /// Once, for all constants.
    #[name = c"generic"]
    Generic,
    /// For the constants at hand, each time.
    #[name = c"custom"]
    Custom,
}

/// Most rows of an answer; 0: any number: `quad.max_result_rows`.
pub static MAX_RESULT_ROWS: GucSetting<i32> = GucSetting::<i32>::new(0);

/// Kilobytes of terms that a backend caches: `quad.dictionary_cache`.
pub static DICTIONARY_CACHE: GucSetting<i32> = GucSetting::<i32>::new(20 * 1024);

/// Kilobytes of shared memory for terms of a distributed dictionary, -1 for a quarter of `shared_buffers`:
/// `quad.shared_dictionary_cache`.
pub static SHARED_DICTIONARY_CACHE: GucSetting<i32> = GucSetting::<i32>::new(-1);

/// Parser threads; 0: as many as there are processors: `quad.load_threads`.
pub static LOAD_THREADS: GucSetting<i32> = GucSetting::<i32>::new(0);

/// Format of documents sent to `quad.load_stdin`: `quad.stdin_format`.
pub static STDIN_FORMAT: GucSetting<Option<CString>> =
    GucSetting::<Option<CString>>::new(Some(c"nquads"));
/// Whether a named graph in them is an error: `quad.stdin_one_graph`.
pub static STDIN_ONE_GRAPH: GucSetting<bool> = GucSetting::<bool>::new(false);
/// Graph for their triples: `quad.stdin_graph`.
pub static STDIN_GRAPH: GucSetting<Option<CString>> = GucSetting::<Option<CString>>::new(Some(c""));
/// Their base IRI: `quad.stdin_base`.
pub static STDIN_BASE: GucSetting<Option<CString>> = GucSetting::<Option<CString>>::new(Some(c""));
/// Their compression: `quad.stdin_compression`.
pub static STDIN_COMPRESSION: GucSetting<Option<CString>> =
    GucSetting::<Option<CString>>::new(Some(c""));
/// The largest that is taken: `quad.stdin_max_bytes`. A number with a fraction is the only kind of setting that counts
/// beyond 2 GB.
pub static STDIN_MAX_BYTES: GucSetting<f64> = GucSetting::<f64>::new(0.0);

/// Ports that participants listen on: `quad.exchange_ports`.
pub static EXCHANGE_PORTS: GucSetting<Option<CString>> =
    GucSetting::<Option<CString>>::new(Some(c"0"));
/// Address that other nodes are told: `quad.exchange_host`.
pub static EXCHANGE_HOST: GucSetting<Option<CString>> =
    GucSetting::<Option<CString>>::new(Some(c""));
/// Bytes of rows that are collected for a node before they are sent: `quad.exchange_batch_bytes`.
pub static EXCHANGE_BATCH_BYTES: GucSetting<i32> = GucSetting::<i32>::new(0);
/// Quads that a join has to be expected to find before it is pushed: `quad.exchange_min_quads`. Milliseconds pulled and
/// pushed, on three nodes of two cores (Berlin data, 1M): 32,000 quads 1.5 and 3.4; 100,000 quads 1.8 and 7.1. 185,000
/// quads took 1.4 and 7; 280,000 quads 12 and 7.
pub static EXCHANGE_MIN_QUADS: GucSetting<i32> = GucSetting::<i32>::new(200_000);

/// Milliseconds until an attempt to connect to a node is given up: `quad.node_connect_timeout`.
pub static NODE_CONNECT_TIMEOUT: GucSetting<i32> = GucSetting::<i32>::new(10_000);
/// Milliseconds after which a node that does not acknowledge what it was sent counts as lost: `quad.node_timeout`.
pub static NODE_TIMEOUT: GucSetting<i32> = GucSetting::<i32>::new(30_000);
/// Microseconds for which an answer, or the next message of a transaction, that should come soon is looked for before
/// the process sleeps: `quad.node_poll_time`. Between transactions it is four times as long. Measured on three nodes of
/// two processors, Explore 1M, one client: 1.2 times the mixes of 0 where answers are looked for. With eight clients
/// nothing changes. Messages are looked for where there are more processors.
pub static NODE_POLL_TIME: GucSetting<i32> = GucSetting::<i32>::new(100);

/// Sessions of other nodes that are busy before workers serve them together, -1 for twice the processors, 0 for never:
/// `quad.serving_min_sessions`.
pub static SERVING_MIN_SESSIONS: GucSetting<i32> = GucSetting::<i32>::new(-1);
/// Most workers that serve the sessions of one role and database, 0 for as many as there are processors:
/// `quad.serving_workers`.
pub static SERVING_WORKERS: GucSetting<i32> = GucSetting::<i32>::new(0);

/// Whether nodes of this machine are asked over Unix-domain sockets: `quad.node_unix_sockets`.
pub static NODE_UNIX_SOCKETS: GucSetting<bool> = GucSetting::<bool>::new(true);

/// Servers that SERVICE and LOAD may ask: `quad.http_allowed`.
pub static HTTP_ALLOWED: GucSetting<Option<CString>> =
    GucSetting::<Option<CString>>::new(Some(c""));
/// Networks besides the public internet that they may connect to: `quad.http_private_networks`.
pub static HTTP_PRIVATE_NETWORKS: GucSetting<Option<CString>> =
    GucSetting::<Option<CString>>::new(Some(c""));
/// Certificate authorities: `quad.http_ca_file`.
pub static HTTP_CA_FILE: GucSetting<Option<CString>> =
    GucSetting::<Option<CString>>::new(Some(c""));
/// Longest wait for a server that sends nothing, in milliseconds: `quad.http_timeout`.
pub static HTTP_TIMEOUT: GucSetting<i32> = GucSetting::<i32>::new(30_000);
/// Largest answer that is taken, in kilobytes: `quad.http_max_size`.
pub static HTTP_MAX_SIZE: GucSetting<i32> = GucSetting::<i32>::new(1 << 20);

/// Time after which a node that acknowledges nothing counts as lost.
pub fn node_timeout() -> Duration {
    Duration::from_millis(NODE_TIMEOUT.get().max(1) as u64)
}

/// Registers the settings; called once from `_PG_init`, before what reads them.
pub fn init() {
    define_storage();
    define_planner();
    define_sparql();
    define_dictionary();
    define_load();
    define_cluster();
    define_remote();
}

/// Settings of new tables.
fn define_storage() {
    GucRegistry::define_string_guc(
        c"quad.orders",
        c"Orders of a new quad table, comma separated permutations of s, p, o and g.",
        c"Read when the table is created and kept in its metapage.",
        &ORDERS,
        GucContext::Userset,
        GucFlags::default(),
    );
    GucRegistry::define_string_guc(
        c"quad.inner_fanout",
        c"Maximum children per inner page of a new quad table; one number or one per order, 0 = what fits.",
        c"Read when the table is created and kept in its metapage.",
        &INNER_FANOUT,
        GucContext::Userset,
        GucFlags::default(),
    );
    GucRegistry::define_string_guc(
        c"quad.leaf_quads",
        c"Maximum quads per leaf page of a new quad table; one number or one per order, 0 = what fits.",
        c"Read when the table is created and kept in its metapage.",
        &LEAF_QUADS,
        GucContext::Userset,
        GucFlags::default(),
    );
    #[cfg(feature = "stop_points")]
    GucRegistry::define_string_guc(
        c"quad.stop_at",
        c"Points at which this session waits for an advisory lock, as a list of name:key.",
        c"For tests of races between sessions.",
        &STOP_AT,
        GucContext::Userset,
        GucFlags::default(),
    );
}

/// Settings of the planner and its nodes.
fn define_planner() {
    GucRegistry::define_bool_guc(
        c"quad.enable_quad_scan",
        c"Lets the planner use Quad Scan, the ordered range scan of quad tables.",
        c"",
        &ENABLE_QUAD_SCAN,
        GucContext::Userset,
        GucFlags::default(),
    );
    GucRegistry::define_bool_guc(
        c"quad.enable_quad_join",
        c"Lets the planner use Quad Join, the pipelined join of all quad tables of a query level.",
        c"",
        &ENABLE_QUAD_JOIN,
        GucContext::Userset,
        GucFlags::default(),
    );
    GucRegistry::define_bool_guc(
        c"quad.enable_quad_groups",
        c"Lets the planner use Quad Groups, which counts and groups quads by counts of the trees and loose scans.",
        c"",
        &ENABLE_QUAD_GROUPS,
        GucContext::Userset,
        GucFlags::default(),
    );
    GucRegistry::define_bool_guc(
        c"quad.enable_quad_walk",
        c"Lets the planner use Quad Walk, which follows quads from node to node for recursive queries.",
        c"",
        &ENABLE_QUAD_WALK,
        GucContext::Userset,
        GucFlags::default(),
    );
    GucRegistry::define_int_guc(
        c"quad.join_batch_size",
        c"Most rows that Quad Join takes from step to step at once.",
        c"Less where work_mem is too small for that.",
        &JOIN_BATCH_SIZE,
        1,
        1_000_000,
        GucContext::Userset,
        GucFlags::default(),
    );
}

/// Settings of SPARQL.
fn define_sparql() {
    // SAFETY: the hook is guarded.
    unsafe {
        GucRegistry::define_string_guc_with_hooks(
            c"quad.store",
            c"Store that is used when a function is given none.",
            c"Name of a table in schema quad_stores. It is created at the first write.",
            &STORE,
            GucContext::Userset,
            GucFlags::IS_NAME,
            None,
            Some(default_store_changes),
            None,
        );
    }
    // SAFETY: the hook is guarded.
    unsafe {
        GucRegistry::define_enum_guc_with_hooks(
            c"quad.default_graph",
            c"Default graph of SPARQL requests that have neither FROM nor USING clauses.",
            c"default: that of the store; union: all graphs of the store, each triple once.",
            &DEFAULT_GRAPH,
            GucContext::Userset,
            GucFlags::default(),
            None,
            Some(default_graph_changes),
            None,
        );
    }
    GucRegistry::define_int_guc(
        c"quad.template_cache_size",
        c"Number of templates of SPARQL queries, and of plans of updates, that each session keeps.",
        c"0 translates and plans every query anew.",
        &TEMPLATE_CACHE_SIZE,
        0,
        100_000,
        GucContext::Userset,
        GucFlags::default(),
    );
    GucRegistry::define_enum_guc(
        c"quad.template_plans",
        c"Whether the SQL of a SPARQL query is planned for its constants or for all.",
        c"\"auto\" plans a template once when Quad Join joins its patterns and leaves the choice to PostgreSQL when not, \"generic\" plans each template once, \"custom\" plans each query.",
        &TEMPLATE_PLANS,
        GucContext::Userset,
        GucFlags::default(),
    );
    GucRegistry::define_int_guc(
        c"quad.max_result_rows",
        c"Most rows that an answer of quad.answer_stream and its kin may have.",
        c"0: any number. A larger answer is an error, not cut.",
        &MAX_RESULT_ROWS,
        0,
        i32::MAX,
        GucContext::Userset,
        GucFlags::default(),
    );
}

/// Settings of the dictionary.
fn define_dictionary() {
    GucRegistry::define_int_guc(
        c"quad.dictionary_cache",
        c"Memory for terms of the dictionary that each session keeps.",
        c"",
        &DICTIONARY_CACHE,
        64,
        1024 * 1024,
        GucContext::Userset,
        GucFlags::UNIT_KB,
    );
    // Where the library is preloaded: later nobody could take the memory.
    // SAFETY: plain process state.
    if unsafe { pg_sys::process_shared_preload_libraries_in_progress } {
        GucRegistry::define_int_guc(
            c"quad.shared_dictionary_cache",
            c"Shared memory for terms of a distributed dictionary that all sessions keep; 0 for none.",
            c"-1 is a quarter of shared_buffers, 8 MB to 1 GB. Only a server that preloads Citus takes it.",
            &SHARED_DICTIONARY_CACHE,
            -1,
            8 * 1024 * 1024,
            GucContext::Postmaster,
            GucFlags::UNIT_KB,
        );
    }
}

/// Settings of loading.
fn define_load() {
    GucRegistry::define_int_guc(
        c"quad.load_threads",
        c"Number of threads that parse a document while it is loaded.",
        c"0 means as many as there are processors. Only N-Triples and N-Quads are parsed by several.",
        &LOAD_THREADS,
        0,
        64,
        GucContext::Userset,
        GucFlags::default(),
    );
    GucRegistry::define_bool_guc(
        c"quad.stdin_one_graph",
        c"Whether a named graph in documents sent to quad.load_stdin is an error.",
        c"",
        &STDIN_ONE_GRAPH,
        GucContext::Userset,
        GucFlags::default(),
    );
    let settings = [
        (
            c"quad.stdin_format",
            c"Format of documents sent to quad.load_stdin.",
            &STDIN_FORMAT,
        ),
        (
            c"quad.stdin_graph",
            c"Graph for triples of documents sent to quad.load_stdin; empty: the default graph.",
            &STDIN_GRAPH,
        ),
        (
            c"quad.stdin_base",
            c"Base IRI of documents sent to quad.load_stdin; empty: none.",
            &STDIN_BASE,
        ),
        (
            c"quad.stdin_compression",
            c"Compression of documents sent to quad.load_stdin_bytes: gzip, zstd, bzip2, none; empty: as their first bytes tell.",
            &STDIN_COMPRESSION,
        ),
    ];
    for (name, description, setting) in settings {
        GucRegistry::define_string_guc(
            name,
            description,
            c"",
            setting,
            GucContext::Userset,
            GucFlags::default(),
        );
    }
    GucRegistry::define_float_guc(
        c"quad.stdin_max_bytes",
        c"Largest document that quad.load_stdin_bytes takes, unpacked, in bytes.",
        c"0 means any size.",
        &STDIN_MAX_BYTES,
        0.0,
        // All whole numbers up to there are exact.
        9_007_199_254_740_992.0,
        GucContext::Userset,
        GucFlags::default(),
    );
}

/// Settings of distributed stores.
fn define_cluster() {
    GucRegistry::define_bool_guc(
        c"quad.move_as_sorted_runs",
        c"Copies a shard that moves as sorted runs instead of row by row.",
        c"Off: Citus copies its rows, which takes nearly three times the processor time.",
        &MOVE_AS_SORTED_RUNS,
        GucContext::Suset,
        GucFlags::default(),
    );
    GucRegistry::define_enum_guc(
        c"quad.exchange_mode",
        c"How Quad Join brings rows and the quads of a distributed store together.",
        c"pull: the quads come to the node that was asked; push: the rows go to the nodes that hold their next quads; auto: by what is to be \
          expected.",
        &EXCHANGE_MODE,
        GucContext::Userset,
        GucFlags::default(),
    );
    // SAFETY: the hooks are guarded.
    unsafe {
        GucRegistry::define_string_guc_with_hooks(
            c"quad.exchange_ports",
            c"Ports on which processes take rows from other nodes: 0 for any free one, or a range such as 20000-20999.",
            c"Each session that takes part in joins of a distributed store listens on one of them.",
            &EXCHANGE_PORTS,
            GucContext::Sighup,
            GucFlags::default(),
            Some(check_ports),
            None,
            None,
        );
        GucRegistry::define_string_guc_with_hooks(
            c"quad.exchange_host",
            c"IP address at which processes of other nodes reach those of this one.",
            c"Empty: the address at which they find its PostgreSQL. Where addresses are translated, or a proxy stands between the nodes, another one.",
            &EXCHANGE_HOST,
            GucContext::Sighup,
            GucFlags::default(),
            Some(check_host),
            None,
            None,
        );
    }
    GucRegistry::define_int_guc(
        c"quad.exchange_batch_bytes",
        c"Memory for the rows that go to another node, 8 bytes for each value: half are collected, half are on their way.",
        c"0 lets it adapt: larger while writes do not block, smaller when they do.",
        &EXCHANGE_BATCH_BYTES,
        0,
        MAX_BATCH_BYTES as i32,
        GucContext::Userset,
        GucFlags::UNIT_BYTE,
    );
    GucRegistry::define_int_guc(
        c"quad.exchange_min_quads",
        c"Quads that a join has to be expected to find before all nodes run it, where quad.exchange_mode is auto.",
        c"A session that has to start processes for that on the nodes expects three times as many.",
        &EXCHANGE_MIN_QUADS,
        0,
        i32::MAX,
        GucContext::Userset,
        GucFlags::default(),
    );
    let define = |name, what, setting, most| {
        GucRegistry::define_int_guc(
            name,
            what,
            c"",
            setting,
            100,
            most,
            GucContext::Userset,
            GucFlags::UNIT_MS,
        );
    };
    define(
        c"quad.node_connect_timeout",
        c"Time after which an attempt to connect to another node is given up.",
        &NODE_CONNECT_TIMEOUT,
        600_000,
    );
    define(
        c"quad.node_timeout",
        c"Time after which another node that acknowledges nothing counts as lost.",
        &NODE_TIMEOUT,
        3_600_000,
    );
    GucRegistry::define_int_guc(
        c"quad.node_poll_time",
        c"Microseconds for which a session looks for another node's answer or message before it sleeps; 0 sleeps at once.",
        c"",
        &NODE_POLL_TIME,
        0,
        10_000,
        GucContext::Userset,
        GucFlags::default(),
    );
    GucRegistry::define_int_guc(
        c"quad.serving_min_sessions",
        c"Sessions of other nodes that are busy at a time from which on background workers serve them together.",
        c"-1 is twice the number of processors; 0: never.",
        &SERVING_MIN_SESSIONS,
        -1,
        10_000,
        GucContext::Sighup,
        GucFlags::default(),
    );
    GucRegistry::define_int_guc(
        c"quad.serving_workers",
        c"Most background workers that serve the sessions of one role and database together.",
        c"0 means as many as there are processors. Each has up to eight sessions before another one is started.",
        &SERVING_WORKERS,
        0,
        64,
        GucContext::Sighup,
        GucFlags::default(),
    );
    GucRegistry::define_bool_guc(
        c"quad.node_unix_sockets",
        c"Connects to nodes of this machine over Unix-domain sockets where unix_socket_directories has theirs.",
        c"Nodes that Citus knows as localhost, 127.0.0.1 or ::1. Others, and those that refuse it, are reached over TCP.",
        &NODE_UNIX_SOCKETS,
        GucContext::Userset,
        GucFlags::default(),
    );
}

/// Settings of requests over http(s), for superusers only.
fn define_remote() {
    let text = |name, short, long, setting| {
        GucRegistry::define_string_guc(
            name,
            short,
            long,
            setting,
            GucContext::Suset,
            GucFlags::default(),
        );
    };
    text(
        c"quad.http_allowed",
        c"Servers that SERVICE and LOAD may ask, as [http[s]://]host[:port], separated by commas.",
        c"A host may be * or begin with \"*.\"; a port may be *. Empty: none.",
        &HTTP_ALLOWED,
    );
    text(
        c"quad.http_private_networks",
        c"Networks besides the public internet that SERVICE and LOAD may connect to.",
        c"Addresses or address/length, separated by commas. The servers must be allowed too.",
        &HTTP_PRIVATE_NETWORKS,
    );
    text(
        c"quad.http_ca_file",
        c"PEM file of the certificate authorities that https servers are trusted by.",
        c"Empty: the authorities that Mozilla trusts.",
        &HTTP_CA_FILE,
    );
    GucRegistry::define_int_guc(
        c"quad.http_timeout",
        c"Longest time that SERVICE and LOAD wait for a server that sends nothing.",
        c"",
        &HTTP_TIMEOUT,
        1,
        i32::MAX,
        GucContext::Suset,
        GucFlags::UNIT_MS,
    );
    GucRegistry::define_int_guc(
        c"quad.http_max_size",
        c"Largest answer that SERVICE and LOAD take.",
        c"A compressed document counts unpacked.",
        &HTTP_MAX_SIZE,
        1,
        i32::MAX,
        GucContext::Suset,
        GucFlags::UNIT_KB,
    );
}

#[pg_guard]
unsafe extern "C-unwind" fn default_graph_changes(_new: core::ffi::c_int, _extra: *mut c_void) {
    replan::settings_change();
}

#[pg_guard]
unsafe extern "C-unwind" fn default_store_changes(_new: *const c_char, _extra: *mut c_void) {
    replan::settings_change();
}

/// The address that a text names, if it names any.
pub fn host(text: &CStr) -> Result<Option<IpAddr>, std::net::AddrParseError> {
    let text = text.to_string_lossy();
    match text.trim() {
        "" => Ok(None),
        host => host.parse().map(Some),
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn check_ports(
    value: *mut *mut c_char,
    _extra: *mut *mut c_void,
    _source: pg_sys::GucSource::Type,
) -> bool {
    // SAFETY: the new value is a C string.
    let text = unsafe { CStr::from_ptr(*value) };
    let is_range = port_range(&text.to_string_lossy()).is_some();
    if !is_range {
        explain(
            c"It is not a range of ports.",
            c"Write 0 for any free port, one port, or a range such as 20000-20999.",
        );
    }
    is_range
}

#[pg_guard]
unsafe extern "C-unwind" fn check_host(
    value: *mut *mut c_char,
    _extra: *mut *mut c_void,
    _source: pg_sys::GucSource::Type,
) -> bool {
    // SAFETY: the new value is a C string.
    let is_host = host(unsafe { CStr::from_ptr(*value) }).is_ok();
    if !is_host {
        explain(
            c"It is not an IP address.",
            c"Write an address such as 10.0.0.5, or nothing.",
        );
    }
    is_host
}

/// Says what is wrong with a value that a check refuses, in the error or message that PostgreSQL makes of that (22023).
fn explain(detail: &'static CStr, hint: &'static CStr) {
    // SAFETY: PostgreSQL reads these when the check returns, and never writes or frees them: they are C strings in its
    // own memory for errors elsewhere.
    unsafe {
        pg_sys::GUC_check_errdetail_string = detail.as_ptr().cast_mut();
        pg_sys::GUC_check_errhint_string = hint.as_ptr().cast_mut();
    }
}
