//! What all nodes are busy with: `quad.cluster_status`, view `quad.cluster_stats`, `quad.cluster_stats_reset`.
//!
//! Each node answers for itself (`quad.node_status`, `quad.node_stats`). The node that is asked has Citus ask all nodes
//! at once. For a node that does not answer there is a line, or a warning, that says so.

use std::ffi::CString;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use pgquad_cluster::status::{summary, Buffers, NodeStatus, ProcessStat, Sessions};
use pgrx::iter::{SetOfIterator, TableIterator};
use pgrx::prelude::*;
use pgrx::{check_for_interrupts, pg_sys, PgSqlErrorCode};

use super::citus;
use super::counters::{self, Counter, KINDS};
use super::nodes::{self, as_superuser, has_citus};
use crate::pg::error::raise_hint;

extension_sql_file!(
    "../../../../sql/cluster_status.sql",
    name = "cluster_status",
    requires = [cluster_status, node_status, all_node_stats, node_stats]
);

/// Shortest and longest time to watch, in seconds.
const WATCHED_SECONDS: std::ops::RangeInclusive<f64> = 0.01..=3600.0;

/// Pause between two looks at the sessions. A look costs half a millisecond.
const PAUSE: Duration = Duration::from_millis(100);

fn check_seconds(seconds: f64) {
    if !WATCHED_SECONDS.contains(&seconds) {
        raise_hint(
            PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
            format!("cannot watch the cluster for {seconds} seconds"),
            format!(
                "The number of seconds is from {} to {}.",
                WATCHED_SECONDS.start(),
                WATCHED_SECONDS.end()
            ),
        );
    }
}

/// Watches all nodes for some seconds. Gives a line for all of them together and one for each node. A line has messages
/// and KB sent per second, processor time, and the share of the sessions' time waiting for disk (read) and for other
/// nodes (clw). It also has the sessions running, waiting and idle, and the shared buffers used, dirty and being
/// written.
#[pg_extern(volatile, parallel_unsafe)]
fn cluster_status(seconds: default!(f64, 5.0)) -> SetOfIterator<'static, String> {
    check_seconds(seconds);
    let _watching = counters::watch();
    let command = format!("SELECT pg_catalog.row_to_json(s) FROM quad.node_status({seconds}) AS s");
    let (mut lines, mut found) = (vec![String::new()], Vec::new());
    for Answer {
        node,
        address,
        result,
    } in ask_all(&command)
    {
        let line = match result.and_then(|json| from_json(&json)) {
            Ok(status) => {
                found.push(status);
                status.to_string()
            }
            Err(error) => format!("does not answer: {error}"),
        };
        lines.push(format!("node {node} {address}: {line}"));
    }
    let sum = NodeStatus::sum(found.iter().copied()).unwrap_or_default();
    lines[0] = summary(found.len(), &sum);
    SetOfIterator::new(lines)
}

/// Watches this server for some seconds; see [`NodeStatus`]. For `quad.cluster_status` of another node.
#[pg_extern(volatile, parallel_unsafe)]
#[allow(clippy::type_complexity)]
fn node_status(
    seconds: f64,
) -> TableIterator<
    'static,
    (
        name!(seconds, f64),
        name!(messages, f64),
        name!(bytes, f64),
        name!(processors, Option<f64>),
        name!(active, f64),
        name!(reading, f64),
        name!(waiting, f64),
        name!(running, i64),
        name!(blocked, i64),
        name!(idle, i64),
        name!(buffers, i64),
        name!(dirty, i64),
        name!(writing, i64),
    ),
> {
    check_seconds(seconds);
    let _watching = counters::watch();
    let status = watch(seconds);
    let (sessions, buffers) = (status.sessions, status.buffers);
    TableIterator::once((
        status.seconds,
        status.messages,
        status.bytes,
        status.processors,
        status.active,
        status.reading,
        status.waiting,
        sessions.running as i64,
        sessions.waiting as i64,
        sessions.idle as i64,
        buffers.used as i64,
        buffers.dirty as i64,
        buffers.writing as i64,
    ))
}

/// A row of `quad.node_status`.
fn from_json(json: &str) -> Result<NodeStatus, String> {
    let values: serde_json::Value =
        serde_json::from_str(json).map_err(|error| error.to_string())?;
    let number = |name| values[name].as_f64().unwrap_or(0.0);
    let count = |name| values[name].as_u64().unwrap_or(0);
    Ok(NodeStatus {
        seconds: number("seconds"),
        messages: number("messages"),
        bytes: number("bytes"),
        processors: values["processors"].as_f64(),
        active: number("active"),
        reading: number("reading"),
        waiting: number("waiting"),
        sessions: Sessions {
            running: count("running"),
            waiting: count("blocked"),
            idle: count("idle"),
        },
        buffers: Buffers {
            used: count("buffers"),
            dirty: count("dirty"),
            writing: count("writing"),
        },
    })
}

type StatsRow = (
    String,
    i64,
    i64,
    i64,
    i64,
    i64,
    i64,
    f64,
    f64,
    Option<TimestampWithTimeZone>,
);

/// The counters of this server by kind of message; `reset`: sets them to zero. For `quad.cluster_stats` of another
/// node.
#[pg_extern(volatile, parallel_unsafe)]
#[allow(clippy::type_complexity)]
fn node_stats(
    reset: bool,
) -> TableIterator<
    'static,
    (
        name!(kind, String),
        name!(messages_sent, i64),
        name!(bytes_sent, i64),
        name!(messages_received, i64),
        name!(bytes_received, i64),
        name!(batches, i64),
        name!(blocked_writes, i64),
        name!(blocked_ms, f64),
        name!(waited_ms, f64),
        name!(since, Option<TimestampWithTimeZone>),
    ),
> {
    let since = counters::since();
    let counts = if reset {
        counters::reset()
    } else {
        counters::read()
    };
    let rows: Vec<StatsRow> = KINDS
        .into_iter()
        .zip(counts)
        .map(|(kind, counts)| {
            let count = |counter| counts.get(counter) as i64;
            let milliseconds = |counter| counts.get(counter) as f64 / 1e6;
            (
                kind.name().to_owned(),
                count(Counter::MessagesSent),
                count(Counter::BytesSent),
                count(Counter::MessagesReceived),
                count(Counter::BytesReceived),
                count(Counter::Batches),
                count(Counter::BlockedWrites),
                milliseconds(Counter::BlockedTime),
                milliseconds(Counter::WaitedTime),
                since,
            )
        })
        .collect();
    TableIterator::new(rows)
}

/// The counters of all nodes as JSON, for the view `quad.cluster_stats` and `quad.cluster_stats_reset`.
#[pg_extern(volatile, parallel_unsafe)]
fn all_node_stats(
    reset: bool,
) -> TableIterator<
    'static,
    (
        name!(node, i32),
        name!(address, String),
        name!(stats, String),
    ),
> {
    let command = format!("SELECT pg_catalog.json_agg(s) FROM quad.node_stats({reset}) AS s");
    let mut rows = Vec::new();
    for Answer {
        node,
        address,
        result,
    } in ask_all(&command)
    {
        match result {
            Ok(stats) => rows.push((node, address, stats)),
            Err(error) => warning!("node {node} {address} does not answer: {error}"),
        }
    }
    TableIterator::new(rows)
}

/// What a node has answered.
struct Answer {
    /// Citus' number of the node.
    node: i32,
    /// Its host and port.
    address: String,
    /// The value, or the error.
    result: Result<String, String>,
}

/// Runs a query for one value on all active nodes at once, as the superuser: the right to ask has been checked here.
fn ask_all(command: &str) -> Vec<Answer> {
    let cell = |row: &citus::TextRow, n: usize| row[n].clone().unwrap_or_default();
    as_superuser(|| {
        if is_alone() {
            let rows = citus::rows(&format!("SELECT ({command})::text"), &[]);
            // SAFETY: a setting of the server.
            let port = unsafe { pg_sys::PostPortNumber };
            let answer = |row: &citus::TextRow| Answer {
                node: 1,
                address: format!("localhost:{port}"),
                result: Ok(cell(row, 0)),
            };
            return rows.iter().map(answer).collect();
        }
        let rows = citus::rows(
            "SELECT r.nodeid::text, pg_catalog.concat_ws(':', n.nodename, n.nodeport), r.success::text, r.result \
             FROM pg_catalog.run_command_on_all_nodes($1) AS r LEFT JOIN pg_catalog.pg_dist_node AS n USING (nodeid) \
             ORDER BY r.nodeid",
            &[command.into()],
        );
        let answer = |row: &citus::TextRow| Answer {
            node: cell(row, 0).parse().unwrap_or(0),
            address: cell(row, 1),
            result: if cell(row, 2).starts_with('t') {
                Ok(cell(row, 3))
            } else {
                Err(cell(row, 3).trim().to_owned())
            },
        };
        rows.iter().map(answer).collect()
    })
}

/// Whether this server is in no cluster.
fn is_alone() -> bool {
    !has_citus()
        || citus::rows(
            "SELECT nodeid::text FROM pg_catalog.pg_dist_node LIMIT 1",
            &[],
        )
        .is_empty()
}

/// What this server does over some seconds.
fn watch(seconds: f64) -> NodeStatus {
    let (before, busy) = (Totals::now(), processor_seconds());
    let mut looks = Looks::default();
    let whole = Duration::from_secs_f64(seconds);
    let since = Instant::now();
    loop {
        looks.look();
        let left = whole.saturating_sub(since.elapsed());
        if left.is_zero() {
            break;
        }
        sleep(left.min(PAUSE));
    }
    let seconds = since.elapsed().as_secs_f64();
    let after = Totals::now();
    let average = |sum: u64| sum as f64 / looks.number.max(1) as f64;
    NodeStatus {
        seconds,
        messages: after.messages.saturating_sub(before.messages) as f64 / seconds,
        bytes: after.bytes.saturating_sub(before.bytes) as f64 / seconds,
        processors: processor_seconds()
            .zip(busy)
            .map(|(after, before)| (after - before).max(0.0) / seconds),
        active: average(looks.active),
        reading: average(looks.reading),
        waiting: after.waited.saturating_sub(before.waited) as f64 / 1e9 / seconds,
        sessions: looks.sessions,
        buffers: buffers(),
    }
}

/// Waits on the latch.
fn sleep(time: Duration) {
    // SAFETY: the latch of this process.
    unsafe {
        pg_sys::WaitLatch(
            pg_sys::MyLatch,
            (pg_sys::WL_LATCH_SET | pg_sys::WL_TIMEOUT | pg_sys::WL_EXIT_ON_PM_DEATH) as i32,
            time.as_millis().max(1) as i64,
            pg_sys::PG_WAIT_EXTENSION,
        );
        pg_sys::ResetLatch(pg_sys::MyLatch);
    }
    check_for_interrupts!();
}

/// Sums of the counters over all kinds.
struct Totals {
    messages: u64,
    bytes: u64,
    waited: u64,
}

impl Totals {
    fn now() -> Self {
        let counts = counters::read();
        let sum = |counter| counts.iter().map(|counts| counts.get(counter)).sum();
        Self {
            messages: sum(Counter::MessagesSent),
            bytes: sum(Counter::BytesSent),
            waited: sum(Counter::WaitedTime),
        }
    }
}

/// Looks at the sessions from time to time.
#[derive(Default)]
struct Looks {
    number: u64,
    /// Sums over all looks.
    active: u64,
    reading: u64,
    /// At the last look.
    sessions: Sessions,
}

impl Looks {
    /// Counts the sessions, without those that only watch.
    fn look(&mut self) {
        // SAFETY: drops this transaction's copy of the activity of all sessions.
        unsafe { pg_sys::pgstat_clear_backend_activity_snapshot() };
        let watchers = counters::watchers();
        let row = nodes::query(
            &CString::new(format!(
                include_str!("queries/sessions.sql"),
                watchers = watchers
            ))
            .unwrap_or_default(),
            |row| [1, 2, 3, 4].map(|n| row.get::<i64>(n).unwrap_or(0) as u64),
        );
        let [running, waiting, idle, reading] = row.first().copied().unwrap_or_default();
        self.number += 1;
        self.active += running + waiting;
        self.reading += reading;
        self.sessions = Sessions {
            running,
            waiting,
            idle,
        };
    }
}

/// Seconds of processor time that the processes of this server have used, those that have ended included; `None`
/// without `/proc`.
fn processor_seconds() -> Option<f64> {
    // SAFETY: plain process state; asks for a constant of the system.
    let (postmaster, per_second) =
        unsafe { (pg_sys::PostmasterPid, libc::sysconf(libc::_SC_CLK_TCK)) };
    let mut ticks = None;
    for entry in std::fs::read_dir("/proc").ok()?.flatten() {
        let name = entry.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse::<i32>().ok()) else {
            continue;
        };
        let Ok(stat) = std::fs::read_to_string(entry.path().join("stat")) else {
            continue;
        };
        let Some(stat) = ProcessStat::parse(&stat) else {
            continue;
        };
        if pid == postmaster {
            *ticks.get_or_insert(0) += stat.own + stat.ended_children;
        } else if stat.parent == postmaster {
            *ticks.get_or_insert(0) += stat.own;
        }
    }
    ticks.map(|ticks| ticks as f64 / per_second.max(1) as f64)
}

/// Shared buffers, looked at without locks: each is as it was at some moment.
fn buffers() -> Buffers {
    let mut buffers = Buffers::default();
    // SAFETY: the descriptors are there as long as the server; their state is an atomic 32-bit number.
    unsafe {
        for n in 0..pg_sys::NBuffers as usize {
            let buffer = pg_sys::BufferDescriptors.add(n);
            let state = &raw mut (*buffer).bufferdesc.state.value;
            let state = AtomicU32::from_ptr(state.cast()).load(Ordering::Relaxed);
            let has = |bits| state & bits == bits;
            buffers.used += u64::from(has(pg_sys::BM_VALID));
            buffers.dirty += u64::from(has(pg_sys::BM_VALID | pg_sys::BM_DIRTY));
            // A page that is being read is not valid yet.
            buffers.writing += u64::from(has(pg_sys::BM_VALID | pg_sys::BM_IO_IN_PROGRESS));
        }
    }
    buffers
}
