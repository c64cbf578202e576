//! The part of one node in a pushed join: an ordinary pipeline over the store's shards, driven by the exchange. The
//! node that asks calls it through SQL; only nodes of the cluster may.

use super::expression_filters::TestExpr;
use super::feedback::with_feedback;
use super::group_spill::{no_groups, spill_file, term_order};
use super::results::await_room;
use super::shipped_filters;
use super::source::{ArgumentExpr, NodeSource};
use crate::cluster::exchange::{self, Meeting, Peer};
use crate::cluster::{self, damaged, Scope, ShardedReader};
use crate::dictionary::Upcoming;
use crate::pg::error::raise_hint;
use crate::pg::ffi::flush_to_client;
use crate::table::TableReader;
use pgquad_cluster::exchange::{Dealt, Exchange, Ran, Rows, Settings, Work};
use pgquad_cluster::push::{self, Aggregate, Cost, Counting, Found, Param, Start};
use pgquad_cluster::results::Outgoing;
use pgquad_cluster::wire::{Damaged, Reader, Writer};
use pgquad_exec::{
    AnswerRows, Argument, Bindings, Column, ColumnNumber, Counted, Extreme, FirstPattern,
    FirstRows, Group, HashAggregation, Pipeline, Plan, Progress, Slot, SortKey, Test, Tuning,
    Value,
};
use pgrx::iter::SetOfIterator;
use pgrx::prelude::*;
use pgrx::{pg_sys, PgMemoryContexts, PgSqlErrorCode};
use std::convert::Infallible;
use std::time::{Duration, Instant};

/// Called by the node that asks, before the work and in the same transaction. Tells where this backend takes
/// connections of other participants, or why it takes none, and the name of its snapshot. Those who read from this node
/// without a participant import that snapshot.
#[pg_extern]
fn cluster_participant() -> Vec<u8> {
    cluster::check_trusted();
    let snapshot = cluster::snapshots::export();
    let address = exchange::address();
    let mut writer = Writer::new();
    writer.u8(u8::from(address.is_ok()));
    let address = address.map_or_else(|why| why, |address| address.to_string());
    writer.bytes(address.as_bytes());
    writer.bytes(snapshot.as_bytes());
    writer.finish()
}

/// Called by the node that asks. Does this node's part of a join, and gives what it finds as messages. The first
/// message says whether it has its links to the other participants, the last one what it has cost.
#[pg_extern]
fn cluster_push(request: &[u8]) -> SetOfIterator<'static, Vec<u8>> {
    cluster::check_trusted();
    let mut reader = Reader::new(request);
    cluster::check_version(reader.u8().unwrap_or_else(|e| damaged(e)));
    let start = Start::decode(&mut reader).unwrap_or_else(|e| damaged(e));
    // SAFETY: what the part needs is made in the context in which the function's first call runs, and lasts until its
    // last one.
    let mut part = unsafe { Part::begin(start) };
    SetOfIterator::new(std::iter::from_fn(move || part.next()))
}

/// Groups of one message: some MB. What a node counts may be more than a message can be.
const GROUPS_AT_ONCE: usize = 1 << 16;

/// The part under way.
struct Part {
    /// What is on its way to the node that asks.
    results: Outgoing,
    /// The first message.
    linked: Option<Found>,
    /// `None` once the join is over, or where it does not begin.
    exchange: Option<Exchange<exchange::Links, Joining>>,
    /// Of all calls.
    context: pg_sys::MemoryContext,
    stage: Stage,
    /// Its number, and all participants, for errors.
    me: usize,
    peers: Vec<Peer>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Linking,
    Joining,
    Groups,
}

/// The join of this participant.
struct Joining {
    pipeline: Pipeline,
    source: NodeSource,
    snapshot: pg_sys::Snapshot,
    /// Of all calls.
    context: pg_sys::MemoryContext,
    start: Start,
    params: Vec<Value>,
    /// The variables of the answer.
    output: Vec<Slot>,
    /// The first rows so far, where no others are wanted, with what the dictionary is told of those to come.
    first_rows: Option<(FirstRows, Upcoming)>,
    /// The first rows, once the join is over.
    last: Vec<AnswerRows>,
    /// The groups that have been counted.
    counted: Option<HashAggregation>,
    /// How many of those in memory have been sent.
    sent: usize,
    answered: u64,
}

impl Part {
    unsafe fn begin(start: Start) -> Self {
        // SAFETY: the caller's promise.
        unsafe {
            let context = pg_sys::CurrentMemoryContext;
            let settings = Settings {
                query: start.query,
                // The other half is for what was packed from the batch before, and for rows of peers that are unpacked.
                batch_bytes: (start.batch_bytes as usize).div_ceil(2),
                most_rows: start.tuning[1].max(1) as usize,
                // The rest is for the hash tables of the pipeline, and for what the allocator keeps for later.
                memory: start.work_memory as usize * 3 / 8,
            };
            let peers = start.participants.iter().map(|participant| Peer {
                name: participant.name.clone(),
                address: participant
                    .address
                    .parse()
                    .unwrap_or_else(|_| damaged(Damaged)),
            });
            let meeting = Meeting {
                mesh: start.mesh,
                me: start.me as usize,
                peers: peers.collect(),
                query: start.query,
                patience: Duration::from_millis(u64::from(start.patience)),
            };
            let (me, peers) = (meeting.me, meeting.peers.clone());
            let mut joining = Joining::begin(start);
            let (linked, exchange) = match exchange::join(meeting) {
                Ok(links) => {
                    let file = exchange::spill_file(context);
                    let exchange = Exchange::new(links, joining, settings, Some(file));
                    (Found::Linked, Some(exchange))
                }
                Err(lost) => {
                    joining.end();
                    let (peer, why) = (lost.peer as u32, lost.why);
                    let closed = lost.closed;
                    (Found::Unlinked { peer, why, closed }, None)
                }
            };
            Self {
                results: Outgoing::default(),
                linked: Some(linked),
                exchange,
                me,
                peers,
                context,
                stage: Stage::Linking,
            }
        }
    }

    fn next(&mut self) -> Option<Vec<u8>> {
        // SAFETY: the context lasts as long as the function.
        unsafe {
            let context = self.context;
            PgMemoryContexts::For(context).switch_to(|_| self.next_piece())
        }
    }

    /// The next piece of a message, once there is room for it on its way.
    fn next_piece(&mut self) -> Option<Vec<u8>> {
        if self.results.is_empty() {
            let Some(message) = self.step() else {
                // Whoever asks ends the transaction once it has the last message.
                flush_to_client();
                return None;
            };
            self.results.put(message);
        }
        let joining = self.stage == Stage::Joining;
        let exchange = self.exchange.as_mut().filter(|_| joining);
        if let Err(error) = await_room(&mut self.results, exchange) {
            exchange::raise_error(self.me, &self.peers, error);
        }
        self.results.next_piece()
    }

    fn step(&mut self) -> Option<Vec<u8>> {
        if let Some(linked) = self.linked.take() {
            return Some(linked.encode());
        }
        let exchange = self.exchange.as_mut()?;
        if self.stage == Stage::Linking {
            // The node that asks waits for the first message.
            flush_to_client();
            self.stage = Stage::Joining;
        }
        if self.stage == Stage::Joining {
            match exchange.next() {
                Ok(Some(found)) => return Some(found),
                Ok(None) => self.stage = Stage::Groups,
                Err(error) => exchange::raise_error(self.me, &self.peers, error),
            }
        }
        let work = exchange.work_mut();
        if let Some(last) = work.next_groups().or_else(|| work.next_first_rows()) {
            return Some(last);
        }
        let stats = exchange.stats();
        let mut cost = exchange.work_mut().end();
        for peer in &stats.peers {
            cost.messages += peer.messages;
            cost.bytes += peer.bytes;
            cost.rows += peer.rows;
            cost.blocked_writes += peer.blocked_writes;
            cost.blocked += peer.blocked;
        }
        cost.waited = stats.idle + stats.stalled;
        cost.spilled = stats.spilled;
        if let Some(mut exchange) = self.exchange.take() {
            exchange.transport_mut().keep();
        }
        Some(Found::End(Box::new(cost)).encode())
    }
}

impl Joining {
    /// Makes the pipeline of a start message.
    ///
    /// # Safety
    /// A snapshot is active; the current memory context lasts as long as the value.
    unsafe fn begin(mut start: Start) -> Self {
        let plan = Plan::decode(&start.plan).unwrap_or_else(|_| damaged(Damaged));
        // SAFETY: the caller's promise.
        unsafe {
            let snapshot = pg_sys::RegisterSnapshot(pg_sys::GetActiveSnapshot());
            let snapshots = start.participants.iter();
            let snapshots = snapshots.map(|p| (p.group, p.snapshot.clone())).collect();
            Scope::of_snapshot(snapshot).import(snapshots);
            let groups: Vec<i32> = start.participants.iter().map(|p| p.group).collect();
            let mut placement = 0;
            let readers = start.stores.iter().map(|store| {
                let reader = ShardedReader::of_store(store, snapshot);
                placement ^= reader.placement_hash();
                let mut reader = TableReader::Sharded(Box::new(reader));
                reader.take_part(&groups);
                reader
            });
            let readers = readers.collect();
            if placement != start.placement {
                raise_hint(
                    PgSqlErrorCode::ERRCODE_T_R_SERIALIZATION_FAILURE,
                    "the nodes do not agree on where the shards of a store are",
                    "Shards are being moved; run the query again.",
                );
            }
            let tests = tests(&start, &plan);
            let summed = start.counting.iter().flat_map(|c| &c.arguments);
            let summed = summed.map(|(_, needs)| needs.len());
            let most = tests
                .iter()
                .map(|test| test.places.len())
                .chain(summed)
                .max();
            let source = NodeSource {
                readers,
                tables: start.tables.iter().map(|&t| usize::from(t)).collect(),
                tests,
                arguments: arguments(&start),
                slot: slot(most.unwrap_or(0).max(1)),
                context: pg_sys::CreateStandaloneExprContext(),
                since: start.timing.then(Instant::now),
            };
            let [first, most, bulk_from, range_pushdown_from, memory] =
                start.tuning.map(|size| size as usize);
            let tuning = Tuning {
                first,
                most,
                bulk_from,
                range_pushdown_from,
                memory,
            };
            let columns = start.rows.as_ref().map(|(_, columns)| columns.len());
            if most_table(&plan.root) >= start.tables.len()
                || columns.is_some_and(|columns| columns != usize::from(plan.slots))
                || start.counting.as_ref().is_some_and(|c| !c.fits(plan.slots))
            {
                damaged(Damaged);
            }
            let names = start.tables.iter().map(|&table| u64::from(table));
            let params = start.params.iter().map(|param| match param {
                Param::Null => Value::Null,
                Param::One(value) => Value::One(*value),
                Param::List(list) => Value::List(list.clone()),
            });
            let first_rows = start.first_rows.take();
            let first_rows = first_rows.map(|wanted| first_rows_of(&wanted, plan.output.len()));
            Self {
                first_rows: first_rows.map(|first_rows| (first_rows, Upcoming::new())),
                last: Vec::new(),
                pipeline: Pipeline::new(&plan, names.collect(), tuning),
                source,
                snapshot,
                context: pg_sys::CurrentMemoryContext,
                params: params.collect(),
                output: plan.output,
                counted: None,
                sent: 0,
                answered: 0,
                start,
            }
        }
    }

    /// The next groups, once the join is over.
    fn next_groups(&mut self) -> Option<Vec<u8>> {
        self.start.counting.as_ref()?;
        let counted = match &mut self.counted {
            None => {
                let counted = self.pipeline.end_aggregation();
                self.answered = counted.rows();
                self.counted.insert(counted)
            }
            Some(counted) => {
                if self.sent == counted.len() {
                    if !counted.next_part() {
                        return None;
                    }
                    self.sent = 0;
                }
                counted
            }
        };
        let some = self.sent..counted.len().min(self.sent + GROUPS_AT_ONCE);
        self.sent = some.end;
        let (keys, counts) = counted.groups(some.clone());
        Some(Found::Groups(some.len(), keys, counts).encode())
    }

    /// The next of the first rows, once the join is over.
    fn next_first_rows(&mut self) -> Option<Vec<u8>> {
        if let Some((mut first_rows, _)) = self.first_rows.take() {
            self.last = first_rows.finish();
        }
        let (len, columns) = self.last.pop()?;
        self.answered += len as u64;
        Some(Found::Rows(len, columns).encode())
    }

    /// Closes what is open. What the join has cost.
    fn end(&mut self) -> Cost {
        let groups_spilled = self.counted.as_ref().map_or(0, HashAggregation::spilled);
        if let Some(counted) = self.counted.take() {
            counted.close();
        }
        let steps = self.pipeline.steps().iter();
        let cost = Cost {
            groups_spilled,
            steps: steps.map(pgquad_exec::StepStats::numbers).collect(),
            removed: self.source.tests.iter().map(|test| test.removed).collect(),
            answered: self.answered,
            ..Cost::default()
        };
        self.pipeline.stop();
        self.source.readers.iter_mut().for_each(TableReader::close);
        for test in &mut self.source.tests {
            test.upcoming.withdraw();
        }
        for argument in &mut self.source.arguments {
            argument.upcoming.withdraw();
        }
        // SAFETY: registered by `begin`; nothing reads any more.
        unsafe { pg_sys::UnregisterSnapshot(self.snapshot) };
        cost
    }

    fn message(&mut self, rows: &Bindings) -> Vec<u8> {
        self.answered += rows.len as u64;
        Found::encode_rows(rows.len, self.output.iter().map(|&slot| rows.ids(slot)))
    }
}

impl Work for Joining {
    type Result = Vec<u8>;
    type Error = Infallible;

    fn start(&mut self, dealt: &mut Dealt) -> Result<(), Infallible> {
        let first = self.start.first.map(|first| FirstPattern {
            pattern: first as usize,
            column: ColumnNumber::new(self.start.column),
        });
        let params = std::mem::take(&mut self.params);
        let (me, least) = (dealt.me(), self.start.least as usize);
        match self.start.rows.take() {
            None => self.pipeline.start_share(params, first, me, least),
            Some((len, columns)) => {
                let columns = columns.into_iter();
                let columns = columns.map(|column| column.map_or(Column::Absent, Column::Ids));
                let rows = Bindings {
                    len,
                    columns: columns.collect(),
                };
                self.pipeline.start_share_from(params, rows, me, least);
            }
        }
        if let Some(counting) = &self.start.counting {
            self.pipeline
                .begin_aggregation(aggregation(&self.start, counting, self.context));
        }
        Ok(())
    }

    fn depth(&self, state: &[u8]) -> u32 {
        state.first().map_or(0, |&depth| u32::from(depth))
    }

    fn open(&self) -> usize {
        self.pipeline.open()
    }

    fn take(&mut self, state: &[u8], rows: Rows) -> Result<(), Infallible> {
        let is_taken = match (push::set_of(state), self.pipeline.aggregation()) {
            (Some(set), Some(aggregation)) => aggregation.take_set(set, &rows.columns),
            _ => self.pipeline.take(state, rows.len, rows.columns).is_ok(),
        };
        if !is_taken {
            damaged(Damaged);
        }
        Ok(())
    }

    fn run(&mut self, dealt: &mut Dealt) -> Result<Ran<Vec<u8>>, Infallible> {
        let (pipeline, source) = (&mut self.pipeline, &mut self.source);
        let progress = with_feedback(|feedback| pipeline.step(source, feedback));
        for parcel in self.pipeline.parcels() {
            let rows = Rows {
                len: parcel.rows,
                columns: parcel.columns,
            };
            dealt.add(parcel.to, &parcel.state, rows);
        }
        let room = match progress {
            Progress::Idle => 0,
            _ => found_room(&self.start),
        };
        if let Some(aggregation) = self.pipeline.aggregation() {
            for parcel in aggregation.repartition(dealt.peers(), dealt.me(), room) {
                let rows = Rows {
                    len: parcel.columns.first().map_or(0, Vec::len),
                    columns: parcel.columns,
                };
                dealt.add(parcel.to, &push::state_of_set(parcel.set), rows);
            }
        }
        Ok(match progress {
            Progress::Rows(rows) => match &mut self.first_rows {
                Some((first_rows, upcoming)) => {
                    let ids = |place: usize| rows.ids(self.output[place]);
                    upcoming.batch(rows.len, || {
                        let columns = first_rows.term_places().filter_map(ids);
                        columns.map(<[u64]>::to_vec).collect()
                    });
                    first_rows.add(&rows, &self.output);
                    Ran::More
                }
                None => Ran::Result(self.message(&rows)),
            },
            Progress::More => Ran::More,
            Progress::Idle => Ran::Idle,
        })
    }
}

/// An aggregation without groups for what is counted; its files are those of the memory context.
fn aggregation(
    start: &Start,
    counting: &Counting,
    context: pg_sys::MemoryContext,
) -> HashAggregation {
    let extreme = |argument: &u16, which| Counted::Extreme(Argument::new(*argument), which);
    let counted = counting.counted.iter().map(|counted| match counted {
        Aggregate::Rows => Counted::Rows,
        Aggregate::Bound(slot) => Counted::Bound(Slot::new(*slot)),
        Aggregate::Sum(argument) => Counted::Sum(Argument::new(*argument)),
        Aggregate::Distinct(slot) => Counted::Distinct(Slot::new(*slot)),
        Aggregate::LeastId(argument) => extreme(argument, Extreme::LeastId),
        Aggregate::GreatestId(argument) => extreme(argument, Extreme::GreatestId),
        Aggregate::FirstTerm(argument) => extreme(argument, Extreme::FirstTerm),
        Aggregate::LastTerm(argument) => extreme(argument, Extreme::LastTerm),
    });
    let slots = |numbers: &[u16]| -> Vec<Slot> { numbers.iter().copied().map(Slot::new).collect() };
    let arguments = counting.arguments.iter().map(|(_, needs)| slots(needs));
    no_groups(slots(&counting.by), counted.collect())
        .with_arguments(arguments.collect())
        .repartitioned()
        .within(start.hash_memory as usize - found_room(start), &mut || {
            spill_file(context)
        })
}

/// Bytes, of those for groups, for values that are counted once and have not been given to who counts them.
fn found_room(start: &Start) -> usize {
    start.hash_memory as usize / 4
}

/// The first rows that a start message wants of an answer with so many variables.
fn first_rows_of(wanted: &push::FirstRows, variables: usize) -> FirstRows {
    let keys = wanted.keys.iter().map(|key| SortKey {
        place: usize::from(key.place),
        by_term: key.by_term,
        descending: key.descending,
        nulls_first: key.nulls_first,
    });
    let keys: Vec<_> = keys.collect();
    if keys.iter().any(|key| key.place >= variables) {
        damaged(Damaged);
    }
    FirstRows::new(keys, wanted.most as usize, term_order)
}

/// The arguments of sums and extremes of a start message, compiled.
///
/// # Safety
/// The current memory context lasts as long as they.
unsafe fn arguments(start: &Start) -> Vec<ArgumentExpr> {
    let all = start.counting.iter().flat_map(|c| &c.arguments);
    let compiled = all.map(|(sql, needs)| {
        // SAFETY: the caller's promise; expressions without subplans need no parent.
        unsafe {
            let expr = shipped_filters::from_sql(sql, needs.len());
            ArgumentExpr {
                expr,
                is_term: pg_sys::exprType(expr.cast()) != pg_sys::INT8OID,
                state: pg_sys::ExecInitExpr(expr, std::ptr::null_mut()),
                places: (0..needs.len()).collect(),
                upcoming: Upcoming::new(),
            }
        }
    });
    compiled.collect()
}

/// The greatest number of a table in a group.
fn most_table(group: &Group) -> usize {
    let own = group.patterns.iter().map(|p| p.table.index());
    let inside = group.children.iter().map(|child| most_table(&child.group));
    own.chain(inside).max().unwrap_or(0)
}

/// Numbers of variables of the filters, by the filters' numbers.
fn variables(group: &Group, counts: &mut [usize]) {
    for filter in &group.filters {
        if let Test::Expr(expr) = filter.test {
            match counts.get_mut(expr.index()) {
                Some(count) => *count = filter.needs.len(),
                None => damaged(Damaged),
            }
        }
    }
    for child in &group.children {
        variables(&child.group, counts);
    }
}

/// The filters of a start message, compiled.
///
/// # Safety
/// The current memory context lasts as long as the filters.
unsafe fn tests(start: &Start, plan: &Plan) -> Vec<TestExpr> {
    let mut counts = vec![0; start.filters.len()];
    variables(&plan.root, &mut counts);
    let compiled = start.filters.iter().zip(counts).map(|(text, count)| {
        let places: Vec<usize> = (0..count).collect();
        let parent = std::ptr::null_mut();
        // SAFETY: the caller's promise; expressions without subplans need no parent.
        unsafe {
            let expr = shipped_filters::from_sql(text, count);
            TestExpr::new(expr, places, parent, false)
        }
    });
    compiled.collect()
}

/// A slot for so many ids.
///
/// # Safety
/// The current memory context lasts as long as the slot.
unsafe fn slot(columns: usize) -> *mut pg_sys::TupleTableSlot {
    // SAFETY: the caller's promise.
    unsafe {
        let shape = pg_sys::CreateTemplateTupleDesc(columns as i32);
        for number in 1..=columns as i16 {
            pg_sys::TupleDescInitEntry(shape, number, c"id".as_ptr(), pg_sys::INT8OID, -1, 0);
        }
        pg_sys::MakeSingleTupleTableSlot(shape, &raw const pg_sys::TTSOpsVirtual)
    }
}
