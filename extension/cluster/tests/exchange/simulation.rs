//! Participants and a network in one thread: what happens next is random, decided by a seed. A participant that waits
//! runs again only when what it waits for has happened. So a missing wake-up becomes a standstill, and the test fails.

use super::toy::{Join, Part, Query};
use super::Random;
use pgquad_cluster::exchange::{
    Error, Exchange, Lost, Settings, SpillFile, Stats, Step, Transport,
};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

/// A run.
#[derive(Clone, Debug)]
pub struct Simulated {
    pub nodes: usize,
    pub settings: Settings,
    /// Bytes that a channel takes before what it holds is delivered.
    pub room: usize,
    /// Rows in a unit of work.
    pub unit: usize,
    pub seed: u64,
    /// How often (of 256 times) the network goes on before the participants do.
    pub eagerness: u8,
    /// A link is lost after so many events.
    pub loss: Option<u32>,
    /// How often (of 256 times) nobody takes a participant's results for a while.
    pub slowness: u8,
}

/// What a run has come to.
#[derive(Debug)]
pub enum Outcome {
    /// The answer, sorted.
    Rows(Vec<Vec<u64>>),
    /// A link was lost before the end, and all participants have noticed.
    Lost,
}

#[derive(Default)]
struct Channel {
    on_the_way: VecDeque<Vec<u8>>,
    arrived: VecDeque<Vec<u8>>,
    closed: bool,
}

struct Network {
    nodes: usize,
    room: usize,
    channels: Vec<Channel>,
    time: u64,
}

impl Network {
    fn channel(&mut self, from: usize, to: usize) -> &mut Channel {
        &mut self.channels[from * self.nodes + to]
    }

    fn takes(&mut self, from: usize, to: usize) -> bool {
        let room = self.room;
        let channel = self.channel(from, to);
        channel.on_the_way.iter().map(Vec::len).sum::<usize>() < room
    }

    fn close(&mut self, one: usize, other: usize) {
        for (from, to) in [(one, other), (other, one)] {
            self.channel(from, to).closed = true;
        }
    }

    fn is_woken(&mut self, me: usize, writable: &[usize]) -> bool {
        let nodes = self.nodes;
        let mut others = (0..nodes).filter(|&from| from != me);
        others.any(|from| {
            let channel = self.channel(from, me);
            channel.closed || !channel.arrived.is_empty()
        }) || writable.iter().any(|&to| self.takes(me, to))
    }
}

struct Member {
    me: usize,
    network: Rc<RefCell<Network>>,
}

fn lost(peer: usize) -> Lost {
    Lost {
        peer,
        why: "the link is cut".to_owned(),
        closed: false,
    }
}

impl Transport for Member {
    fn peers(&self) -> usize {
        self.network.borrow().nodes
    }

    fn me(&self) -> usize {
        self.me
    }

    fn takes(&mut self, to: usize) -> Result<bool, Lost> {
        let mut network = self.network.borrow_mut();
        if network.channel(self.me, to).closed {
            return Err(lost(to));
        }
        Ok(network.takes(self.me, to))
    }

    fn send(&mut self, to: usize, frame: Vec<u8>) -> Result<(), Lost> {
        let mut network = self.network.borrow_mut();
        if network.channel(self.me, to).closed {
            return Err(lost(to));
        }
        assert!(
            network.takes(self.me, to),
            "a frame is sent where there is room"
        );
        network.channel(self.me, to).on_the_way.push_back(frame);
        Ok(())
    }

    fn receive(&mut self) -> Result<Option<(usize, Vec<u8>)>, Lost> {
        let mut network = self.network.borrow_mut();
        for from in (0..network.nodes).filter(|&from| from != self.me) {
            let channel = network.channel(from, self.me);
            if let Some(frame) = channel.arrived.pop_front() {
                return Ok(Some((from, frame)));
            }
            if channel.closed {
                return Err(lost(from));
            }
        }
        Ok(None)
    }

    fn wait(&mut self, _writable: &[usize]) -> Result<(), Lost> {
        unreachable!("the simulation waits")
    }

    fn close(&mut self, peer: usize) {
        self.network.borrow_mut().close(self.me, peer);
    }

    fn now(&self) -> u64 {
        self.network.borrow().time
    }
}

/// A file in memory.
#[derive(Default)]
struct File(Vec<u8>);

impl SpillFile for File {
    fn write(&mut self, at: u64, bytes: &[u8]) {
        let at = at as usize;
        assert!(at <= self.0.len(), "a file has no holes");
        self.0.resize(self.0.len().max(at + bytes.len()), 0);
        self.0[at..at + bytes.len()].copy_from_slice(bytes);
    }

    fn read(&mut self, at: u64, bytes: &mut [u8]) {
        let at = at as usize;
        bytes.copy_from_slice(&self.0[at..at + bytes.len()]);
    }
}

enum State {
    Runs,
    Waits(Vec<usize>),
    /// Nobody takes its results; it tends its links. It waits for these ones, or does not wait.
    Held(Option<Vec<usize>>),
    Done,
    Failed,
}

/// Runs a query to the end.
pub fn simulate(query: &Query, run: &Simulated) -> Outcome {
    let nodes = run.nodes;
    let channels = std::iter::repeat_with(Channel::default).take(nodes * nodes);
    let network = Rc::new(RefCell::new(Network {
        nodes,
        room: run.room,
        channels: channels.collect(),
        time: 0,
    }));
    let mut members: Vec<_> = (0..nodes)
        .map(|me| {
            let network = network.clone();
            let join = Join::new(query, Part { me, nodes }, run.unit);
            let file = Some(Box::new(File::default()) as Box<dyn SpillFile>);
            let exchange = Exchange::new(Member { me, network }, join, run.settings, file);
            (Some(exchange), State::Runs)
        })
        .collect();
    let mut random = Random(run.seed);
    let mut rows = Vec::new();
    for event in 0.. {
        network.borrow_mut().time += 1;
        if run.loss == Some(event) && nodes > 1 {
            let one = random.below(nodes);
            let other = (one + 1 + random.below(nodes - 1)) % nodes;
            network.borrow_mut().close(one, other);
        }
        let moving: Vec<usize> = (0..nodes * nodes)
            .filter(|&at| !network.borrow().channels[at].on_the_way.is_empty())
            .collect();
        let able: Vec<usize> = (0..nodes)
            .filter(|&me| match &members[me].1 {
                State::Runs | State::Held(None) => true,
                State::Waits(writable) | State::Held(Some(writable)) => {
                    network.borrow_mut().is_woken(me, writable)
                }
                State::Done | State::Failed => false,
            })
            .collect();
        let network_first = random.below(256) < usize::from(run.eagerness);
        if !moving.is_empty() && (able.is_empty() || network_first) {
            let at = moving[random.below(moving.len())];
            let channel = &mut network.borrow_mut().channels[at];
            let frame = channel.on_the_way.pop_front();
            channel.arrived.extend(frame);
            continue;
        }
        // Results are taken again now and then, and at the latest when nothing else happens any more.
        let held = |(_, state): &(_, State)| matches!(state, State::Held(_));
        let held: Vec<usize> = (0..nodes).filter(|&me| held(&members[me])).collect();
        if !held.is_empty() && (able.is_empty() || random.below(16) == 0) {
            members[held[random.below(held.len())]].1 = State::Runs;
            continue;
        }
        if able.is_empty() {
            break;
        }
        let me = able[random.below(able.len())];
        let (exchange, state) = &mut members[me];
        let is_held = matches!(state, State::Held(_));
        let step = match is_held {
            true => Exchange::tend,
            false => Exchange::step,
        };
        *state = match exchange.as_mut().map(step) {
            Some(Ok(Step::Worked)) if is_held => State::Held(None),
            Some(Ok(Step::Worked)) => State::Runs,
            Some(Ok(Step::Result(part))) => {
                assert!(!is_held, "who is held does no work");
                rows.extend(part);
                match random.below(256) < usize::from(run.slowness) {
                    true => State::Held(None),
                    false => State::Runs,
                }
            }
            Some(Ok(Step::Wait(writable))) => {
                let mut network = network.borrow_mut();
                let there = writable.iter().find(|&&to| network.takes(me, to));
                assert_eq!(there, None, "nobody waits for room that is there");
                match is_held {
                    true => State::Held(Some(writable)),
                    false => State::Waits(writable),
                }
            }
            Some(Ok(Step::End)) => State::Done,
            Some(Err(Error::Lost(_) | Error::GivenUp { .. })) => State::Failed,
            Some(Err(error)) => panic!("{error}"),
            None => unreachable!("a participant that has failed is not run"),
        };
        if matches!(state, State::Failed) {
            *exchange = None;
        }
    }
    let waiting = members
        .iter()
        .any(|(_, state)| matches!(state, State::Waits(_)));
    assert!(!waiting, "everybody waits for somebody");
    if members
        .iter()
        .any(|(_, state)| matches!(state, State::Failed))
    {
        return Outcome::Lost;
    }
    let stats = members.iter().flat_map(|(exchange, _)| exchange);
    check_stats(run, &stats.map(Exchange::stats).collect::<Vec<_>>());
    rows.sort_unstable();
    Outcome::Rows(rows)
}

/// All that was sent has been received, and no more memory was taken than was allowed.
fn check_stats(run: &Simulated, all: &[Stats]) {
    for (from, sender) in all.iter().enumerate() {
        for (to, receiver) in all.iter().enumerate() {
            let (sent, received) = (&sender.peers[to], &receiver.peers[from]);
            assert_eq!(sent.messages, received.received_messages);
            assert_eq!(sent.bytes, received.received_bytes);
        }
        let by_state: u64 = sender.states.iter().map(|(_, state)| state.rows).sum();
        assert_eq!(
            by_state,
            sender.peers.iter().map(|peer| peer.rows).sum::<u64>()
        );
        let largest = all.iter().map(|stats| stats.peers[from].largest_message);
        let room = run.settings.memory as u64 + largest.max().unwrap_or(0);
        assert!(sender.most_held <= room);
    }
}
