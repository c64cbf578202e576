//! The loop of a participant, which never waits for one thing only.

use std::fmt;

use super::ending::{Counts, Ending};
use super::frame::{self, Kind};
use super::inbox::Inbox;
use super::outbox::Dealt;
use super::spill::SpillFile;
use super::stats::{PeerStats, Stats};
use super::transport::{Lost, Transport};
use super::work::{Ran, Work};
use crate::wire::Damaged;

/// Most frames that are taken from the links between two units of work. So peers who send much do not keep a
/// participant from working.
const MAX_FRAMES: usize = 256;

/// What a participant is told about its exchange.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// The number of the query: that of a later one over the same links is greater.
    pub query: u64,
    /// Bytes of rows that are collected for a peer before they are sent; 0: adapts.
    pub batch_bytes: usize,
    /// Most rows that are handed to the work at once.
    pub most_rows: usize,
    /// Bytes of received rows that are held in memory.
    pub memory: usize,
}

/// Why an exchange ends before its end.
#[derive(Debug)]
pub enum Error<E> {
    /// A peer cannot be reached any more.
    Lost(Lost),
    /// A peer has given up.
    GivenUp {
        /// The participant.
        by: usize,
        /// What it says.
        why: String,
    },
    /// A peer sends what cannot be read.
    Damaged {
        /// The participant.
        by: usize,
    },
    /// The work.
    Work(E),
}

impl<E> From<Lost> for Error<E> {
    fn from(lost: Lost) -> Self {
        Self::Lost(lost)
    }
}

impl<E: fmt::Display> fmt::Display for Error<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lost(lost) => lost.fmt(f),
            Self::GivenUp { by, why } => write!(f, "participant {by} has given up: {why}"),
            Self::Damaged { by } => write!(f, "a message of participant {by} is damaged"),
            Self::Work(error) => error.fmt(f),
        }
    }
}

/// What a step has come to.
#[derive(Debug)]
pub enum Step<R> {
    /// There is more to do at once.
    Worked,
    /// A part of the answer.
    Result(R),
    /// Nothing can be done before something comes, or one of these links takes frames.
    Wait(Vec<usize>),
    /// All participants are done.
    End,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Begin,
    Running,
    /// Participant 0 tells the others that it is over: these have not been told.
    Ending(usize),
    Over,
}

/// One participant of a query.
///
/// Dropped before its end, it tells its peers that it gives up.
pub struct Exchange<T: Transport, W: Work> {
    transport: T,
    work: W,
    dealt: Dealt,
    inbox: Inbox,
    settings: Settings,
    phase: Phase,
    /// Depths of the batches that the work has taken, from the bottom.
    taken: Vec<u32>,
    counts: Counts,
    /// The present counts have been reported.
    reported: bool,
    /// Of participant 0.
    ending: Ending,
    /// Since when rows for a peer have waited for its link.
    blocked: Vec<Option<u64>>,
    /// The last step has left work undone because of a link.
    stalled: bool,
    stats: Stats,
    why: String,
}

impl<T: Transport, W: Work> Exchange<T, W> {
    /// A participant that has done nothing yet. Without a file, all that comes is held in memory.
    pub fn new(
        transport: T,
        work: W,
        settings: Settings,
        file: Option<Box<dyn SpillFile>>,
    ) -> Self {
        let (me, peers) = (transport.me(), transport.peers());
        Self {
            work,
            dealt: Dealt::new(me, peers, settings.batch_bytes),
            inbox: Inbox::new(settings.memory, file),
            settings,
            phase: Phase::Begin,
            taken: Vec::new(),
            counts: Counts::new(peers),
            reported: false,
            ending: Ending::new(peers),
            blocked: vec![None; peers],
            stalled: false,
            stats: Stats {
                peers: vec![PeerStats::default(); peers],
                ..Stats::default()
            },
            why: String::new(),
            transport,
        }
    }

    /// The work.
    pub fn work(&self) -> &W {
        &self.work
    }

    /// The work, e.g. for what it has counted when all are done.
    pub fn work_mut(&mut self) -> &mut W {
        &mut self.work
    }

    /// The transport.
    pub fn transport_mut(&mut self) -> &mut T {
        &mut self.transport
    }

    /// What peers are told where this participant is dropped before the end.
    pub fn set_reason(&mut self, why: String) {
        self.why = why;
    }

    /// What it has cost so far.
    pub fn stats(&self) -> Stats {
        let mut stats = self.stats.clone();
        stats.spilled = self.inbox.spilled();
        stats.most_held = self.inbox.most() as u64;
        stats.states = self.dealt.states().to_vec();
        for (to, peer) in stats.peers.iter_mut().enumerate() {
            if to != self.transport.me() {
                peer.batch_bytes = self.dealt.batch_bytes(to) as u64;
            }
        }
        stats
    }

    /// The next part of the answer; `None` when all participants are done. Waits.
    ///
    /// # Errors
    /// Of the work, of a peer, or that one is lost. The exchange is of no further use then.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<Option<W::Result>, Error<W::Error>> {
        loop {
            match self.step()? {
                Step::Worked => {}
                Step::Result(result) => return Ok(Some(result)),
                Step::End => return Ok(None),
                Step::Wait(writable) => {
                    let since = self.transport.now();
                    self.transport.wait(&writable)?;
                    let waited = self.transport.now().saturating_sub(since);
                    if self.stalled {
                        self.stats.stalled += waited;
                    } else {
                        self.stats.idle += waited;
                    }
                }
            }
        }
    }

    /// Does what can be done without waiting: takes what has come, one unit of work, sends what is due.
    ///
    /// # Errors
    /// As [`Self::next`].
    pub fn step(&mut self) -> Result<Step<W::Result>, Error<W::Error>> {
        match self.phase {
            Phase::Begin => {
                self.work.start(&mut self.dealt).map_err(Error::Work)?;
                self.phase = Phase::Running;
            }
            Phase::Running => {}
            Phase::Ending(_) => {
                // Nothing comes any more but the word of a peer that gives up before it knows.
                self.receive()?;
                return self.tell_end();
            }
            Phase::Over => return Ok(Step::End),
        }
        let more = self.receive()?;
        if self.phase == Phase::Over {
            return Ok(Step::End);
        }
        self.flush(false)?;
        self.stalled = (0..self.dealt.peers()).any(|to| self.dealt.is_overfull(to));
        if self.stalled {
            return Ok(if more { Step::Worked } else { self.wait() });
        }
        self.hand_over()?;
        let ran = self.work.run(&mut self.dealt).map_err(Error::Work)?;
        self.stats.most_dealt = self.stats.most_dealt.max(self.dealt.bytes() as u64);
        self.flush(false)?;
        match ran {
            Ran::Result(result) => Ok(Step::Result(result)),
            Ran::More => Ok(Step::Worked),
            Ran::Idle if more || !self.inbox.is_empty() => Ok(Step::Worked),
            Ran::Idle => self.idle(),
        }
    }

    /// Does what peers may wait for, and no work: takes what has come, sends what is due. So a participant whose
    /// results nobody takes at the moment keeps no peer from its work. [`Step::Worked`] or [`Step::Wait`].
    ///
    /// # Errors
    /// A peer has given up or is lost.
    pub fn tend(&mut self) -> Result<Step<W::Result>, Error<W::Error>> {
        let more = self.receive()?;
        self.flush(false)?;
        Ok(if more { Step::Worked } else { self.wait() })
    }

    /// Waits for all peers, and for the links to those that something is to be sent to.
    fn wait(&self) -> Step<W::Result> {
        let due = |&to: &usize| self.blocked[to].is_some();
        Step::Wait((0..self.blocked.len()).filter(due).collect())
    }

    /// Takes frames that have come; whether there may be more.
    fn receive(&mut self) -> Result<bool, Error<W::Error>> {
        for _ in 0..MAX_FRAMES {
            let Some((from, frame)) = self.transport.receive()? else {
                return Ok(false);
            };
            self.take_frame(from, &frame)?;
            if self.phase == Phase::Over {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn take_frame(&mut self, from: usize, bytes: &[u8]) -> Result<(), Error<W::Error>> {
        let damaged = |Damaged| Error::Damaged { by: from };
        let (kind, query, mut reader) = frame::open(bytes).map_err(damaged)?;
        if query != self.settings.query {
            return Err(Error::Damaged { by: from });
        }
        match kind {
            Kind::Rows => {
                for (state, rows) in frame::parts(&mut reader).map_err(damaged)? {
                    let work = &self.work;
                    self.inbox.add(from, state, rows, |state| work.depth(state));
                }
                self.counts.received[from] += 1;
                self.reported = false;
                let stats = &mut self.stats.peers[from];
                stats.received_messages += 1;
                stats.received_bytes += bytes.len() as u64;
            }
            Kind::Report if self.transport.me() == 0 => {
                let peers = self.dealt.peers();
                let counts = frame::report(&mut reader, peers).map_err(damaged)?;
                self.ending.note(from, counts);
            }
            Kind::End if from == 0 => {
                reader.end().map_err(damaged)?;
                self.phase = Phase::Over;
            }
            Kind::Abort => {
                let why = frame::why(&mut reader).map_err(damaged)?;
                return Err(Error::GivenUp { by: from, why });
            }
            Kind::Report | Kind::End | Kind::Greeting => return Err(Error::Damaged { by: from }),
        }
        Ok(())
    }

    /// Gives the work rows that have come, where they are deeper than what it is working on.
    fn hand_over(&mut self) -> Result<(), Error<W::Error>> {
        self.taken.truncate(self.work.open());
        let than = self.taken.last().copied();
        let next = self.inbox.next(than, self.settings.most_rows.max(1));
        let Some(next) = next.map_err(|by| Error::Damaged { by })? else {
            return Ok(());
        };
        self.taken.push(next.depth);
        self.work.take(next.state, next.rows).map_err(Error::Work)
    }

    /// Sends what is due; with `all` everything.
    ///
    /// Invariant: a link is blocked only while it takes nothing. What was due when there was no room goes out as soon
    /// as there is, also where it does not fill a message. Otherwise [`Self::wait`] would return at once for ever.
    fn flush(&mut self, all: bool) -> Result<(), Error<W::Error>> {
        for to in 0..self.dealt.peers() {
            let due = |own: &Self| {
                let rest = all || own.blocked[to].is_some();
                own.dealt.is_full(to) || rest && !own.dealt.is_empty(to)
            };
            while due(self) {
                if !self.transport.takes(to)? {
                    self.note_blocked(to);
                    break;
                }
                self.send_rows(to)?;
            }
        }
        Ok(())
    }

    fn note_blocked(&mut self, to: usize) {
        if self.blocked[to].is_none() {
            self.blocked[to] = Some(self.transport.now());
            self.stats.peers[to].blocked_writes += 1;
        }
    }

    fn send_rows(&mut self, to: usize) -> Result<(), Error<W::Error>> {
        let now = self.transport.now();
        let full = self.dealt.is_full(to);
        let (frame, rows) = self.dealt.cut(to, self.settings.query);
        let stats = &mut self.stats.peers[to];
        match self.blocked[to].take() {
            Some(since) => {
                stats.blocked += now.saturating_sub(since);
                self.dealt.size(to).shrink();
            }
            None if full => self.dealt.size(to).grow(),
            None => {}
        }
        stats.messages += 1;
        stats.bytes += frame.len() as u64;
        stats.largest_message = stats.largest_message.max(frame.len() as u64);
        stats.rows += rows;
        self.counts.sent[to] += 1;
        self.reported = false;
        Ok(self.transport.send(to, frame)?)
    }

    /// There is nothing to do: sends everything, and then says so.
    fn idle(&mut self) -> Result<Step<W::Result>, Error<W::Error>> {
        self.flush(true)?;
        if (0..self.dealt.peers()).any(|to| !self.dealt.is_empty(to)) {
            return Ok(self.wait());
        }
        if !self.reported {
            if self.transport.me() == 0 {
                self.ending.note(0, self.counts.clone());
            } else if self.transport.takes(0)? {
                let report = frame::of_report(self.settings.query, &self.counts);
                self.transport.send(0, report)?;
            } else {
                return Ok(Step::Wait(vec![0]));
            }
            self.reported = true;
            self.stats.reports += 1;
        }
        if self.transport.me() == 0 && self.ending.is_over() {
            self.phase = Phase::Ending(1);
            return self.tell_end();
        }
        Ok(self.wait())
    }

    /// Tells all others that it is over, and waits until the network has it.
    fn tell_end(&mut self) -> Result<Step<W::Result>, Error<W::Error>> {
        let peers = self.dealt.peers();
        while let Phase::Ending(to) = self.phase {
            if to == peers {
                break;
            }
            if !self.transport.takes(to)? {
                return Ok(Step::Wait(vec![to]));
            }
            self.transport
                .send(to, frame::of_end(self.settings.query))?;
            self.phase = Phase::Ending(to + 1);
        }
        for to in 1..peers {
            if !self.transport.takes(to)? {
                return Ok(Step::Wait(vec![to]));
            }
        }
        self.phase = Phase::Over;
        Ok(Step::End)
    }
}

impl<T: Transport, W: Work> Drop for Exchange<T, W> {
    /// Tells the peers of an exchange that has not come to its end. Does not wait, and raises nothing.
    fn drop(&mut self) {
        if matches!(self.phase, Phase::Begin | Phase::Over) {
            return;
        }
        let me = self.transport.me();
        for to in (0..self.transport.peers()).filter(|&to| to != me) {
            let frame = frame::of_abort(self.settings.query, &self.why);
            let transport = &mut self.transport;
            let told = matches!(transport.takes(to), Ok(true))
                && transport.send(to, frame).is_ok()
                && matches!(transport.takes(to), Ok(true));
            if !told {
                transport.close(to);
            }
        }
    }
}
