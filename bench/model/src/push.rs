//! A query whose rows go on from node to node: the exchange of `pgquad-cluster`, a participant for each node, over a
//! modelled network.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::rc::Rc;

use pgquad_btree::{Batch, Key, Probe, ALL_COLUMNS, SIGN};
use pgquad_cluster::exchange::{
    Dealt, Exchange, Lost, Ran, Rows, Settings, Step as Stepped, Transport, Work,
};

use crate::costs::{Costs, Outcome};
use crate::plan::What;
use crate::quads::Table;

/// Rows of a unit of work: the default of `quad.join_batch_size`.
const BATCH_ROWS: usize = 10_000;
/// Bytes that a socket holds before it takes no more.
const SOCKET_BYTES: f64 = 262_144.0;
/// Bytes of a row or of a group of the answer, on its way to the node that was asked.
const ROW_BYTES: u64 = 16;
/// Rows of a message of the answer.
const ANSWER_ROWS: u64 = 4_096;

/// A frame on its way: when it has left, when it is there.
struct Frame {
    left: f64,
    there: f64,
    bytes: Vec<u8>,
}

/// Clocks and ways of all nodes.
struct Network {
    costs: Costs,
    now: Vec<f64>,
    work: Vec<f64>,
    out: Vec<f64>,
    way_in: Vec<f64>,
    /// By sender and receiver.
    channels: Vec<VecDeque<Frame>>,
    outcome: Outcome,
}

impl Network {
    fn works(&mut self, node: usize, time: f64) {
        self.now[node] += time;
        self.work[node] += time;
    }

    fn count(&mut self, from: usize, to: usize, bytes: u64) {
        self.outcome.messages += 1;
        self.outcome.bytes += bytes;
        if from == 0 || to == 0 {
            self.outcome.asker_bytes += bytes;
        }
    }

    /// When the next frame for a node is there.
    fn next_for(&self, me: usize) -> Option<f64> {
        let nodes = self.now.len();
        let channels = (0..nodes).filter_map(|from| self.channels[from * nodes + me].front());
        channels.map(|frame| frame.there).min_by(f64::total_cmp)
    }

    /// When the link to `to` takes frames.
    fn takes_at(&self, me: usize, to: usize) -> f64 {
        let room = self.costs.byte * SOCKET_BYTES;
        let frames = self.channels[me * self.now.len() + to].iter();
        let last = frames.map(|frame| frame.left).fold(0.0, f64::max);
        last - room
    }
}

struct Member {
    me: usize,
    network: Rc<RefCell<Network>>,
}

impl Transport for Member {
    fn peers(&self) -> usize {
        self.network.borrow().now.len()
    }

    fn me(&self) -> usize {
        self.me
    }

    fn takes(&mut self, to: usize) -> Result<bool, Lost> {
        let network = self.network.borrow();
        Ok(network.takes_at(self.me, to) <= network.now[self.me])
    }

    fn send(&mut self, to: usize, frame: Vec<u8>) -> Result<(), Lost> {
        let network = &mut *self.network.borrow_mut();
        let (costs, length) = (network.costs, frame.len() as f64);
        network.works(self.me, costs.message);
        network.count(self.me, to, frame.len() as u64);
        let left = network.out[self.me].max(network.now[self.me]) + length * costs.byte;
        network.out[self.me] = left;
        // All frames for a node share its way in.
        let there = network.way_in[to].max(left + costs.latency - length * costs.byte)
            + length * costs.byte;
        network.way_in[to] = there;
        let at = self.me * network.now.len() + to;
        network.channels[at].push_back(Frame {
            left,
            there,
            bytes: frame,
        });
        Ok(())
    }

    fn receive(&mut self) -> Result<Option<(usize, Vec<u8>)>, Lost> {
        let network = &mut *self.network.borrow_mut();
        let (nodes, now) = (network.now.len(), network.now[self.me]);
        for from in (0..nodes).filter(|&from| from != self.me) {
            let channel = &mut network.channels[from * nodes + self.me];
            if channel.front().is_some_and(|frame| frame.there <= now) {
                let frame = channel.pop_front().map(|frame| (from, frame.bytes));
                let message = network.costs.message;
                network.works(self.me, message);
                return Ok(frame);
            }
        }
        Ok(None)
    }

    fn wait(&mut self, _writable: &[usize]) -> Result<(), Lost> {
        unreachable!("the model waits")
    }

    fn close(&mut self, _peer: usize) {}

    fn now(&self) -> u64 {
        self.network.borrow().now[self.me] as u64
    }
}

/// Rows that are joined with the steps before `step`, each the value that it looks up.
struct Open {
    step: usize,
    rows: Vec<i64>,
    taken: bool,
}

/// The join of one participant.
struct Join<'a> {
    tables: &'a [Table],
    me: usize,
    nodes: usize,
    network: Rc<RefCell<Network>>,
    stack: Vec<Open>,
}

impl Join<'_> {
    /// The node of the quads that a row needs next. What is not looked up by a value of the row is read where the row
    /// is.
    fn node_of(&self, step: usize, row: i64) -> usize {
        let table = &self.tables[step];
        match table.step.what {
            What::Keys(_) => table.placement.shards()[table.placement.shard_of(row)].group as usize,
            What::Constant(_) | What::Everywhere(_) => self.me,
        }
    }

    fn works(&self, probes: usize, rows: usize) {
        let network = &mut *self.network.borrow_mut();
        let time = network.costs.reading(probes, rows);
        network.works(self.me, time);
    }

    /// Values of the quads of a range in a shard.
    fn read(&self, table: &Table, shard: usize, range: (Key, Key)) -> Vec<i64> {
        let mut probe = Probe::new(ALL_COLUMNS);
        let (mut batch, mut spans, mut found) = (Batch::new(), Vec::new(), Vec::new());
        loop {
            let more = table.read(
                shard,
                &mut probe,
                &[range],
                BATCH_ROWS,
                (&mut batch, &mut spans),
            );
            let values = batch.columns[table.value_place()].iter();
            found.extend(values.map(|value| (value ^ SIGN) as i64));
            if !more {
                return found;
            }
        }
    }

    /// The own share of the first step: what is in shards of this node.
    fn own_share(&self) -> Vec<i64> {
        let table = &self.tables[0];
        let value = match table.step.what {
            What::Constant(_) => Some(table.constant),
            What::Keys(_) | What::Everywhere(_) => None,
        };
        let Some(range) = table.ranges(value).last() else {
            return Vec::new();
        };
        let only = value.map(|value| table.placement.shard_of(value));
        let shards = table.placement.shards().iter().enumerate();
        let own = shards.filter(|(n, shard)| {
            shard.group as usize == self.me && only.is_none_or(|only| only == *n)
        });
        own.flat_map(|(n, _)| self.read(table, n, range)).collect()
    }

    /// What a step makes of rows of this node.
    fn joined(&self, step: usize, rows: &[i64]) -> Vec<i64> {
        let table = &self.tables[step];
        let mut out = Vec::new();
        match table.step.what {
            What::Keys(_) => {
                let mut values = rows.to_vec();
                values.sort_unstable();
                let mut at = 0;
                while at < values.len() {
                    let value = values[at];
                    let same = values[at..].iter().take_while(|v| **v == value).count();
                    let shard = table.placement.shard_of(value);
                    if let Some(range) = table.ranges(Some(value)).last() {
                        let found = self.read(table, shard, range);
                        (0..same).for_each(|_| out.extend_from_slice(&found));
                    }
                    self.works(table.step.arms, 0);
                    at += same;
                }
            }
            // A hash join whose build side each participant reads once: those of all nodes count together.
            What::Constant(count) | What::Everywhere(count) => {
                let outcome = (rows.len() as f64 * table.step.factor).round() as usize;
                let range = table.ranges(None).last();
                let all: Vec<i64> = range.map_or_else(Vec::new, |range| {
                    let shards = 0..table.placement.shards().len();
                    shards
                        .flat_map(|shard| self.read(table, shard, range))
                        .take(count)
                        .collect()
                });
                out.extend((0..outcome).filter_map(|n| all.get(n % all.len().max(1))));
            }
        }
        out
    }

    /// Deals rows to the nodes of their next quads, and keeps those that are at the right one.
    fn go_on(&mut self, step: usize, rows: Vec<i64>, dealt: &mut Dealt) {
        let mut by_node = vec![Vec::new(); self.nodes];
        for row in rows {
            by_node[self.node_of(step, row)].push(row);
        }
        for (node, rows) in by_node.into_iter().enumerate() {
            if rows.is_empty() {
                continue;
            }
            if node == self.me {
                let taken = false;
                self.stack.push(Open { step, rows, taken });
                continue;
            }
            let column: Vec<u64> = rows.iter().map(|row| *row as u64).collect();
            let chosen: Vec<u32> = (0..rows.len() as u32).collect();
            dealt.add_chosen(node, &[step as u8], &[&column], &chosen);
        }
    }
}

impl Work for Join<'_> {
    type Result = u64;
    type Error = Infallible;

    fn start(&mut self, dealt: &mut Dealt) -> Result<(), Infallible> {
        let own = self.own_share();
        self.works(1, own.len());
        if self.tables.len() == 1 {
            let (step, taken) = (1, false);
            self.stack.push(Open {
                step,
                rows: own,
                taken,
            });
        } else {
            self.go_on(1, own, dealt);
        }
        Ok(())
    }

    fn depth(&self, state: &[u8]) -> u32 {
        u32::from(state[0])
    }

    fn open(&self) -> usize {
        self.stack.iter().filter(|open| open.taken).count()
    }

    fn take(&mut self, state: &[u8], rows: Rows) -> Result<(), Infallible> {
        self.stack.push(Open {
            step: usize::from(state[0]),
            rows: rows.columns[0].iter().map(|row| *row as i64).collect(),
            taken: true,
        });
        Ok(())
    }

    fn run(&mut self, dealt: &mut Dealt) -> Result<Ran<u64>, Infallible> {
        let Some(open) = self.stack.last_mut() else {
            return Ok(Ran::Idle);
        };
        let step = open.step;
        let rest = open.rows.len().saturating_sub(BATCH_ROWS);
        let now = open.rows.split_off(rest);
        if open.rows.is_empty() && !open.taken {
            self.stack.pop();
        } else if now.is_empty() {
            self.stack.pop();
            return Ok(Ran::More);
        }
        if step == self.tables.len() {
            return Ok(if now.is_empty() {
                Ran::More
            } else {
                Ran::Result(now.len() as u64)
            });
        }
        let out = self.joined(step, &now);
        self.works(0, out.len());
        if step + 1 == self.tables.len() {
            return Ok(if out.is_empty() {
                Ran::More
            } else {
                Ran::Result(out.len() as u64)
            });
        }
        self.go_on(step + 1, out, dealt);
        Ok(Ran::More)
    }
}

/// What a participant does next.
enum State {
    Runs,
    Waits(Vec<usize>),
    Done,
}

/// Runs a join on all of `nodes` nodes; `groups`: its rows are counted by so many groups before they are sent.
pub fn run(tables: &[Table], nodes: usize, groups: Option<usize>, costs: &Costs) -> Outcome {
    let network = Rc::new(RefCell::new(Network {
        costs: *costs,
        // The query is sent to all nodes, each of which takes it up.
        now: vec![costs.latency + 2.0 * costs.message + costs.participant; nodes],
        work: vec![costs.message + costs.participant; nodes],
        out: vec![0.0; nodes],
        way_in: vec![0.0; nodes],
        channels: std::iter::repeat_with(VecDeque::new)
            .take(nodes * nodes)
            .collect(),
        outcome: Outcome::default(),
    }));
    network.borrow_mut().work[0] += nodes as f64 * costs.message;
    let settings = Settings {
        query: 1,
        batch_bytes: 0,
        most_rows: BATCH_ROWS,
        memory: 64 << 20,
    };
    let mut members: Vec<_> = (0..nodes)
        .map(|me| {
            let join = Join {
                tables,
                me,
                nodes,
                network: network.clone(),
                stack: Vec::new(),
            };
            let transport = Member {
                me,
                network: network.clone(),
            };
            (
                Exchange::new(transport, join, settings, None),
                State::Runs,
                0u64,
            )
        })
        .collect();
    loop {
        let next = {
            let network = network.borrow();
            let ready = members
                .iter()
                .enumerate()
                .filter_map(|(me, (_, state, _))| {
                    let at = match state {
                        State::Runs => Some(network.now[me]),
                        State::Waits(writable) => {
                            let takes = writable.iter().map(|&to| network.takes_at(me, to));
                            let first = network.next_for(me).into_iter().chain(takes);
                            first
                                .min_by(f64::total_cmp)
                                .map(|at| at.max(network.now[me]))
                        }
                        State::Done => None,
                    };
                    at.map(|at| (at, me))
                });
            ready.min_by(|a, b| a.0.total_cmp(&b.0))
        };
        let Some((at, me)) = next else { break };
        network.borrow_mut().now[me] = at;
        let (exchange, state, rows) = &mut members[me];
        *state = match exchange.step() {
            Ok(Stepped::Worked) => State::Runs,
            Ok(Stepped::Result(some)) => {
                *rows += some;
                State::Runs
            }
            Ok(Stepped::Wait(writable)) => State::Waits(writable),
            Ok(Stepped::End) => State::Done,
            Err(error) => unreachable!("a participant of the model fails: {error}"),
        };
    }
    let waiting = members
        .iter()
        .any(|(_, state, _)| !matches!(state, State::Done));
    assert!(!waiting, "everybody waits for somebody");
    let rows: Vec<u64> = members.iter().map(|member| member.2).collect();
    drop(members);
    let network = network.borrow();
    let outcome = finish(&network, &rows, groups);
    drop(network);
    outcome
}

/// The answers of all nodes go to the one that was asked.
fn finish(network: &Network, rows: &[u64], groups: Option<usize>) -> Outcome {
    let (costs, nodes) = (network.costs, rows.len());
    let mut outcome = network.outcome;
    let mut work = network.work.clone();
    let mut last: f64 = 0.0;
    let mut way_in: f64 = 0.0;
    for (node, &found) in rows.iter().enumerate() {
        let sent = groups.map_or(found, |groups| found.min(groups as u64));
        let messages = sent.div_ceil(ANSWER_ROWS).max(1);
        let bytes = sent * ROW_BYTES;
        work[node] += messages as f64 * costs.message;
        work[0] += messages as f64 * costs.message;
        let done = network.now[node];
        if node == 0 {
            last = last.max(done);
            continue;
        }
        // The request, and the parts of the answer.
        outcome.messages += 1 + messages;
        outcome.bytes += bytes;
        outcome.asker_bytes += bytes;
        way_in = way_in.max(done + costs.latency) + bytes as f64 * costs.byte;
        last = last.max(way_in);
    }
    let taken = nodes as f64 * costs.message;
    Outcome {
        elapsed: last + taken,
        work: work.iter().sum(),
        most_work: work.iter().fold(0.0, |most, work| most.max(*work)),
        rows: rows.iter().sum(),
        ..outcome
    }
}
