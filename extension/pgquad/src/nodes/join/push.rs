//! A pushed join, seen from the node that was asked. That node decides, gives every node its part, and takes what they
//! find.

use super::feedback::with_feedback;
use super::group_spill::group_room;
use super::pushed::{Pushed, Refused};
use super::shipped_filters;
use super::state::QuadJoin;
use crate::catalog::distributed_store;
use crate::cluster::connection::{connect_timeout, Participants, Refusal, Unlinked};
use crate::cluster::{damaged, exchange, map, snapshots, Scope, ShardedReader};
use crate::pg::error;
use crate::pg::list::list_iter;
use crate::settings::{self, ExchangeMode};
use crate::storage::has_transaction_snapshot;
use crate::table::TableReader;
use pgquad_cluster::exchange::MESH_BYTES;
use pgquad_cluster::push::{Aggregate, Counting, FirstRows, Param, SortKey, Start};
use pgquad_cluster::wire::Damaged;
use pgquad_exec::{Bindings, Counted, Extreme, HashAggregation, Outlook, Plan, Slot, Value};
use pgrx::{pg_sys, PgSqlErrorCode};
use std::cell::Cell;
use std::time::Duration;

/// A session without participants has to expect so many times `quad.exchange_min_quads`: starting them takes that much
/// longer than waking them up. Three nodes on two cores: 27 ms and 1.5 ms.
const TIMES_TO_START: f64 = 3.0;

/// How long participants try to be linked where the join can be pulled as well. Linux repeats a lost SYN packet after 1
/// and 3 s: one repetition fits in, two do not.
const PATIENCE_IN_AUTO: Duration = Duration::from_secs(3);

/// A reason to pull: another table takes part.
const NOT_DISTRIBUTED: &str = "a table is not distributed";

/// A reason to pull: waking up the participants would take longer.
const FEW_QUADS: &str = "few quads are expected";

/// A reason to pull: starting the participants would take longer.
const NO_PARTICIPANTS: &str = "participants would have to be started";

thread_local! {
    /// Number of the last query that was pushed.
    static QUERIES: Cell<u64> = const { Cell::new(0) };
    /// Quads of joins that have been pulled for want of participants.
    static PULLED: Cell<f64> = const { Cell::new(0.0) };
}

/// Whether a join that is expected to find so many quads is better pushed to the nodes of these groups; or why not.
///
/// A session may have to start participants first. It does so once all that it would have pushed adds up to what that
/// costs. (The ski-rental problem: one rents until the rent has come to the price.)
fn check_worth(quads: f64, groups: &[i32]) -> Result<(), &'static str> {
    let least = exchange::min_quads();
    if quads < least {
        return Err(FEW_QUADS);
    }
    if !Participants::are_there(groups) {
        let pulled = PULLED.get() + quads;
        PULLED.set(pulled);
        if pulled < least * TIMES_TO_START {
            return Err(NO_PARTICIPANTS);
        }
    }
    PULLED.set(0.0);
    Ok(())
}

/// A reason to pull: batches of rows need the statement's snapshot.
const SAVEPOINT: &str = "an outer input is read within a savepoint";

impl QuadJoin {
    /// Whether nothing else reads distributed stores under this snapshot: other joins and scans of the statement, also
    /// those that are over.
    fn reads_alone(&self) -> bool {
        let own = self.source.readers.iter().filter_map(TableReader::sharded);
        let all = own.clone().next().map_or(0, ShardedReader::sharing);
        own.count() == all
    }

    /// Begins the join on all nodes with these parameters, where it is to be pushed; `counting`: its rows are to be
    /// counted.
    ///
    /// # Safety
    /// `state` is the begun node that this is a part of.
    pub unsafe fn push(
        &mut self,
        state: *mut pg_sys::ScanState,
        params: &[Value],
        counting: Option<&HashAggregation>,
    ) -> Option<Pushed> {
        let mode = settings::EXCHANGE_MODE.get();
        if mode == ExchangeMode::Pull || !self.source.readers.iter().any(TableReader::is_remote) {
            return None;
        }
        // SAFETY: the caller's promise.
        let ready = unsafe { self.start_message(state, params, counting, mode) };
        match ready {
            Ok(ready) if self.outer_input.is_some() => {
                self.for_fed_rows = Some(ready);
                None
            }
            Ok((start, groups)) => self.start_participants(start, &groups),
            Err(why) => {
                self.report.refused = Some(why);
                None
            }
        }
    }

    /// The start message for all participants, and the groups of their nodes; or the reason why the quads are pulled.
    unsafe fn start_message(
        &mut self,
        state: *mut pg_sys::ScanState,
        params: &[Value],
        counting: Option<&HashAggregation>,
        mode: ExchangeMode,
    ) -> Result<(Start, Vec<i32>), Refused> {
        // Rows of an outer input come batch by batch.
        let has_outer_input = self.outer_input.is_some();
        if !snapshots::can_export() {
            if has_transaction_snapshot() {
                return Err("the transaction keeps its snapshot".into());
            }
            // Each batch is a push of its own, and all read the statement's snapshot.
            if has_outer_input {
                return Err(SAVEPOINT.into());
            }
            if !self.reads_alone() {
                return Err("other parts of the statement read within a savepoint".into());
            }
        }
        let (mut groups, mut placement) = (Vec::new(), 0);
        let mut stores = Vec::new();
        for (reader, &relid) in self.source.readers.iter().zip(&self.relids) {
            let Some(sharded) = reader.sharded() else {
                return Err(NOT_DISTRIBUTED.into());
            };
            if sharded.reads_own_writes() {
                return Err("the transaction has written".into());
            }
            groups.extend(sharded.groups_of_nodes());
            placement ^= sharded.placement_hash();
            stores.push(distributed_store::mark_of(relid).ok_or(NOT_DISTRIBUTED)?);
        }
        groups.sort_unstable();
        groups.dedup();
        for reader in &mut self.source.readers {
            reader.take_part(&groups);
        }
        if mode == ExchangeMode::Auto && self.limited && counting.is_none() {
            return Err("few rows may be enough".into());
        }
        if mode == ExchangeMode::Auto && self.report.times > 0 && !has_outer_input {
            return Err("it is run again and again".into());
        }
        let (pipeline, source) = (&mut self.pipeline, &mut self.source);
        let outlook = match has_outer_input {
            true => Outlook::default(),
            false => {
                self.is_begun = true;
                with_feedback(|feedback| pipeline.outlook_of(source, feedback, params.to_vec()))
            }
        };
        if mode == ExchangeMode::Auto && !has_outer_input {
            check_worth(outlook.quads, &groups)?;
        }
        let apart = exchange::remembered(&groups).filter(|_| mode == ExchangeMode::Auto);
        if let Some((from, to)) = apart {
            let name = |group| map::node(group).name();
            return Err(why_unlinked(&name(from), &name(to)).into());
        }
        let patience = match mode {
            ExchangeMode::Auto => connect_timeout().min(PATIENCE_IN_AUTO),
            _ => connect_timeout(),
        };
        let params = params.iter().map(|value| match value {
            Value::One(value) => Ok(Param::One(*value)),
            Value::Null => Ok(Param::Null),
            Value::List(list) => Ok(Param::List(list.clone())),
            Value::Ranges(_) => Err(Refused::from("a parameter is a list of ranges")),
        });
        let params = params.collect::<Result<_, _>>()?;
        // SAFETY: the caller's promise.
        let filters = unsafe { self.filters(state)? };
        let counting = match counting {
            // SAFETY: the caller's promise.
            Some(aggregation) => Some(unsafe { self.counting(state, aggregation)? }),
            None => None,
        };
        let start = Start {
            query: 0,
            mesh: [0; MESH_BYTES],
            me: 0,
            participants: Vec::new(),
            patience: patience.as_millis() as u32,
            first: outlook.first.map(|first| first.pattern as u32),
            column: outlook.first.map_or(0, |first| first.column.number()),
            least: 0,
            batch_bytes: exchange::batch_bytes() as u64,
            timing: self.source.since.is_some(),
            stores,
            tables: self.source.tables.iter().map(|&t| t as u16).collect(),
            placement,
            plan: match counting.is_some() {
                // All rows are counted before the first group is handed out.
                true => Plan {
                    whole: true,
                    ..self.plan.clone()
                }
                .encode(),
                false => self.plan.encode(),
            },
            tuning: [
                match counting.is_some() {
                    true => self.tuning.most,
                    false => self.tuning.first,
                },
                self.tuning.most,
                self.tuning.bulk_from,
                self.tuning.range_pushdown_from,
                self.tuning.memory,
            ]
            .map(|size| size as u64),
            // SAFETY: a plain setting.
            work_memory: unsafe { pg_sys::work_mem } as u64 * 1024,
            hash_memory: group_room() as u64,
            params,
            filters,
            first_rows: self.first_rows().filter(|_| counting.is_none()),
            counting,
            rows: None,
        };
        Ok((start, groups))
    }

    /// The first rows that are wanted, where that is not all.
    fn first_rows(&self) -> Option<FirstRows> {
        let wanted = self.first_rows.as_ref()?;
        let keys = wanted.keys.iter().map(|key| SortKey {
            place: key.place as u16,
            by_term: key.by_term,
            descending: key.descending,
            nulls_first: key.nulls_first,
        });
        Some(FirstRows {
            most: wanted.most as u32,
            keys: keys.collect(),
        })
    }

    /// The filters as SQL.
    unsafe fn filters(&self, state: *mut pg_sys::ScanState) -> Result<Vec<String>, Refused> {
        // SAFETY: behind the values of the parameters, the plan has the filters' expressions.
        unsafe {
            let plan = (*state).ps.plan.cast::<pg_sys::CustomScan>();
            let tests = &self.source.tests;
            let exprs: Vec<*mut pg_sys::Expr> = list_iter((*plan).custom_exprs).collect();
            let filters = exprs[exprs.len() - tests.len()..].iter().zip(tests);
            let sql = filters.map(|(&expr, test)| {
                let (parent, context) = (&raw mut (*state).ps, (*state).ps.ps_ExprContext);
                shipped_filters::to_sql(expr, &test.places, parent, context)
            });
            sql.collect::<Option<_>>()
                .ok_or("a filter has to be tested here".into())
        }
    }

    /// What the participants count, with the arguments of sums and extremes as SQL.
    unsafe fn counting(
        &self,
        state: *mut pg_sys::ScanState,
        aggregation: &HashAggregation,
    ) -> Result<Counting, Refused> {
        let (by, needs) = (aggregation.by(), aggregation.arguments());
        let numbers = |slots: &[Slot]| slots.iter().map(|slot| slot.number()).collect();
        let counted = aggregation.counted().iter().map(|counted| match counted {
            Counted::Rows => Aggregate::Rows,
            Counted::Bound(slot) => Aggregate::Bound(slot.number()),
            Counted::Sum(argument) => Aggregate::Sum(argument.number()),
            Counted::Distinct(slot) => Aggregate::Distinct(slot.number()),
            Counted::Extreme(argument, extreme) => match extreme {
                Extreme::LeastId => Aggregate::LeastId(argument.number()),
                Extreme::GreatestId => Aggregate::GreatestId(argument.number()),
                Extreme::FirstTerm => Aggregate::FirstTerm(argument.number()),
                Extreme::LastTerm => Aggregate::LastTerm(argument.number()),
            },
        });
        let arguments = self.source.arguments.iter().zip(needs);
        let arguments = arguments.map(|(argument, needs)| {
            // SAFETY: the caller's promise; the expression is one over the node's scan tuple.
            let sql = unsafe {
                let (parent, context) = (&raw mut (*state).ps, (*state).ps.ps_ExprContext);
                shipped_filters::to_sql(argument.expr, &argument.places, parent, context)
            };
            Some((sql?, numbers(needs)))
        });
        Ok(Counting {
            by: numbers(by),
            counted: counted.collect(),
            arguments: arguments
                .collect::<Option<_>>()
                .ok_or("the argument of an aggregate has to be computed here")?,
        })
    }

    /// Begins the join on all nodes with rows of the plan below, where [`Self::push`] has made that ready and the rows
    /// promise many quads. `params` are the parameters' values.
    pub fn push_rows(&mut self, params: &[Value], rows: &Bindings) -> Option<Pushed> {
        let (mut start, groups) = self.for_fed_rows.clone()?;
        let pipeline = &mut self.pipeline;
        let quads =
            with_feedback(|feedback| pipeline.foreseen_for(feedback, params.to_vec(), rows));
        if !snapshots::can_export() {
            self.report.refused = Some(SAVEPOINT.into());
            return None;
        }
        if settings::EXCHANGE_MODE.get() == ExchangeMode::Auto {
            if let Err(why) = check_worth(quads, &groups) {
                self.report.refused = Some(why.into());
                return None;
            }
        }
        let columns = rows.columns.iter();
        let columns = columns.map(|column| column.ids().map(<[u64]>::to_vec));
        start.rows = Some((rows.len, columns.collect()));
        let pushed = self.start_participants(start, &groups);
        if pushed.is_none() {
            // Nor will the batches to come be pushed.
            self.for_fed_rows = None;
        }
        pushed
    }

    /// Begins the join on the nodes of these groups; none where they cannot be reached or linked, or see shards at
    /// other places, and the join may be pulled as well. No row has been read by then.
    fn start_participants(&mut self, mut start: Start, groups: &[i32]) -> Option<Pushed> {
        // One push reads each node in one snapshot of its own. Many, or one beside what is pulled, read those of the
        // statement.
        let is_shared =
            has_transaction_snapshot() || self.outer_input.is_some() || !self.reads_alone();
        let snapshots = match is_shared {
            // SAFETY: a snapshot is active while a statement runs.
            true => Scope::of_snapshot(unsafe { pg_sys::GetActiveSnapshot() }).export(groups),
            false => Vec::new(),
        };
        let (mut participants, meeting) = match Participants::open(groups, &snapshots) {
            Ok(opened) => opened,
            Err(unlinked) => {
                let names = groups.iter().map(|&group| map::node(group).name());
                let names: Vec<String> = names.collect();
                self.report.refused = Some(unlinked_nodes(unlinked, groups, &names));
                return None;
            }
        };
        start.mesh = meeting.mesh;
        QUERIES.set(QUERIES.get() + 1);
        start.query = QUERIES.get();
        start.participants = meeting.participants;
        let linked = match meeting.deaf {
            Some(deaf) => Err(Refusal::Unlinked(deaf)),
            None => {
                participants.start(&messages(&mut start, groups.len()));
                participants.linked()
            }
        };
        let names: Vec<String> = start.participants.into_iter().map(|p| p.name).collect();
        if let Err(refusal) = linked {
            participants.finish();
            self.report.refused = Some(match refusal {
                Refusal::Unlinked(unlinked) => unlinked_nodes(unlinked, groups, &names),
                Refusal::Moved => "shards are being moved".into(),
            });
            return None;
        }
        self.report.times += 1;
        self.report.refused = None;
        Some(Pushed {
            participants: Some(participants),
            names,
        })
    }
}

/// What each of so many participants is told.
fn messages(start: &mut Start, participants: usize) -> Vec<Vec<u8>> {
    let rows = start.rows.take();
    let mut of = |me: usize| {
        start.me = me as u32;
        // The first participant gives the rows to those whom they concern.
        start.rows = rows.as_ref().map(|(len, columns)| match me {
            0 => (*len, columns.clone()),
            _ => (0, vec![None; columns.len()]),
        });
        start.encode()
    };
    (0..participants).map(&mut of).collect()
}

/// The reason not to push that two nodes are.
fn why_unlinked(from: &str, to: &str) -> String {
    match from == to {
        true => format!("node {from} takes no connections of others"),
        false => format!("node {from} cannot reach node {to}"),
    }
}

/// Nodes cannot be linked: an error where the join has to be pushed; otherwise remembered, logged once, and given as
/// the reason to pull.
fn unlinked_nodes(unlinked: Unlinked, groups: &[i32], names: &[String]) -> Refused {
    let Unlinked { from, to, why } = unlinked;
    let (Some(from_name), Some(to_name)) = (names.get(from), names.get(to)) else {
        damaged(Damaged)
    };
    let message = why_unlinked(from_name, to_name);
    let code = PgSqlErrorCode::ERRCODE_SQLCLIENT_UNABLE_TO_ESTABLISH_SQLCONNECTION;
    let ports = match from == to {
        true => "The node must have a connection, and quad.exchange_ports a port, for each session that takes part in \
                 joins of distributed stores",
        false => "Open the ports of quad.exchange_ports between the nodes",
    };
    let hint = format!("{ports}, or set quad.exchange_mode to pull.");
    if settings::EXCHANGE_MODE.get() == ExchangeMode::Push {
        error::raise_all(code, format!("{message} for a join"), why, hint);
    }
    if exchange::remember(groups[from], groups[to]) {
        let message = format!("{message}: joins are pulled for a minute");
        error::log(code, message, why, hint);
    }
    message.into()
}
