//! Reading key ranges of one order, wherever the quads are: a table of this node, shards of this node, shards of other
//! nodes.
//!
//! A list of ranges is dealt out to shards once. Each call then asks every other node that is not done for the next
//! rows, with one message to each. It reads the shards here meanwhile, and puts the answers together. Nothing is kept
//! on the other nodes between messages: an answer says where it stopped, and the next request goes on from there.
//!
//! Without groups, rows come in the order in which they arrive, and spans say which ranges they belong to. With groups
//! (a star's arms), the ranges of a call are a window of whole groups, and spans ascend.

use crate::deal::{shard_of_range, shards_of, Deal, ALL};
use crate::message::{Part, Read, Rows, Stop};
use crate::placement::Placement;
use pgquad_btree::{Batch, Key, Probe, Span};
use std::rc::Rc;

/// The shards of a table, as a [`Reading`] sees them.
pub trait Shards {
    /// Where they are.
    fn placement(&self) -> &Placement;

    /// Whether a shard (by its place in the placement) is on this node.
    fn is_here(&self, shard: usize) -> bool;

    /// Whether only shards of this node are to be read.
    fn only_here(&self) -> bool {
        false
    }

    /// Column of the key by which rows are placed.
    fn key_place(&self) -> usize;

    /// The number of the order, for messages.
    fn order(&self) -> u8;

    /// Reads on in a shard of this node, in the manner of [`Probe::append`].
    #[allow(clippy::too_many_arguments)]
    fn read_here(
        &self,
        shard: usize,
        probe: &mut Probe,
        ranges: &[(Key, Key)],
        enough: usize,
        batch: &mut Batch,
        spans: &mut Vec<Span>,
    ) -> bool;

    /// A shard of this node will be read soon, first at this key.
    fn expect(&self, _shard: usize, _key: &Key) {}

    /// Sends a request to a node (by the number of its group); does not wait.
    fn send(&self, group: i32, request: &Read);

    /// Waits for the answer to the request sent to that node.
    fn receive(&self, group: i32) -> Rc<Rows>;
}

/// How ranges belong together; see [`Probe::grouped`].
#[derive(Clone, Copy, Debug)]
struct Grouping {
    size: usize,
    required: u64,
    most: Option<usize>,
}

/// Each range by itself.
const NO_GROUPS: Grouping = Grouping {
    size: 1,
    required: 0,
    most: None,
};

/// Groups of one window at least, so that few messages are sent for small batches of rows.
const MIN_WINDOW_GROUPS: usize = 256;

/// So many shards here are announced ahead, so that their pages are on the way to the processor while others are read.
/// One that is not needed in the end has been opened in vain.
const SHARDS_AHEAD: usize = 2;

/// Rows that an answer may always have: a message costs as much as reading some hundred rows (80 us against 0.2 us a
/// row, on loopback).
const MIN_ROWS: usize = 128;

/// So many rows of one shard, where only shards here are read, are handed out without those of the next one. So are the
/// last rows of a shard that an earlier call has begun. What a batch is joined with lies in one shard then, and is read
/// from its first key to its last. Rows of two shards are looked up key by key: in a star of five over 10 million
/// triples on three nodes, which has 570,000 rows, 20,000 of them on each node took a sixth of the time.
const ROWS_OF_ONE_SHARD: usize = 128;

/// Progress in a list of ranges. Plain data, as long as it is used with one list; [`Self::restart`] begins another.
#[derive(Clone, Debug)]
pub struct Reading {
    mask: u8,
    grouping: Grouping,
    /// Progress in a table that is not distributed, or in ranges that are not dealt out.
    probe: Probe,
    spread: Option<Box<Spread>>,
}

/// Up to so many ranges (or groups of them) for each shard of a table are read in the order in which they are given.
/// They lie in as many leaves, so dealing them out costs more than going from shard to shard.
const IN_ORDER_RANGES: usize = 2;

/// How shards are gone through.
#[derive(Clone, Debug, Default)]
enum Way {
    /// One shard of this node has all ranges.
    One(usize),
    /// Range by range, each in the shard of this node that has it.
    InOrder(Vec<u32>),
    /// Shard by shard, and node by node.
    #[default]
    Dealt,
}

impl Way {
    fn new<S: Shards>(shards: &S, ranges: &[(Key, Key)], size: usize) -> Self {
        if let Some(only) = only_shard(shards, ranges) {
            return Self::One(only);
        }
        let placement = shards.placement();
        if ranges.len() / size > IN_ORDER_RANGES * placement.shards().len() {
            return Self::Dealt;
        }
        let (of_range, aligned) = shards_of(placement, shards.key_place(), ranges, size);
        let is_here = |&shard: &u32| shard != ALL && shards.is_here(shard as usize);
        if aligned && of_range.iter().all(is_here) {
            Self::InOrder(of_range)
        } else {
            Self::Dealt
        }
    }
}

/// Progress in shards.
#[derive(Clone, Debug, Default)]
struct Spread {
    way: Way,
    here: Vec<Here>,
    /// The ranges of the shards here, shard by shard, and their numbers in the whole list.
    ranges: Vec<(Key, Key)>,
    numbers: Vec<u32>,
    there: Vec<There>,
    /// The first range that has not been dealt out.
    dealt: usize,
    /// The first range whose rows have not been handed out, with groups.
    next: usize,
    begun: bool,
    /// Each group of what was dealt out is with one shard.
    whole: bool,
    scratch: Batch,
    found: Vec<Span>,
}

/// Ranges of a shard of this node.
#[derive(Clone, Debug)]
struct Here {
    shard: usize,
    probe: Probe,
    /// Its part of the ranges.
    part: std::ops::Range<usize>,
}

/// Ranges of all shards of another node.
#[derive(Clone, Debug)]
struct There {
    group: i32,
    read: Read,
    /// For each part, the numbers of its ranges.
    numbers: Vec<Vec<u32>>,
}

impl Reading {
    /// A reading that fills these columns (bit `i` = column `i` of the key).
    #[must_use]
    pub fn new(mask: u8) -> Self {
        Self {
            mask,
            grouping: NO_GROUPS,
            probe: Probe::new(mask),
            spread: None,
        }
    }

    /// The same for groups of ranges: see [`Probe::grouped`].
    #[must_use]
    pub fn grouped(mask: u8, size: usize, required: u64, most: usize) -> Self {
        let grouping = Grouping {
            size: size.max(1),
            required,
            most: Some(most),
        };
        Self {
            mask,
            grouping,
            probe: Probe::grouped(mask, size, required, most),
            spread: None,
        }
    }

    /// The same in one shard of this node, whatever others have of the ranges.
    #[must_use]
    pub fn in_shard(mut self, shard: usize) -> Self {
        self.spread = Some(Box::new(Spread {
            way: Way::One(shard),
            ..Spread::default()
        }));
        self
    }

    /// The columns that it fills (bit `i` = column `i` of the key).
    #[must_use]
    pub fn mask(&self) -> u8 {
        self.mask
    }

    /// The progress in a table that is not distributed.
    #[inline]
    pub fn local(&mut self) -> &mut Probe {
        &mut self.probe
    }

    /// The group that comes next, and whether it has been read in part.
    #[must_use]
    pub fn place(&self) -> (usize, bool) {
        match &self.spread {
            Some(spread) if matches!(spread.way, Way::Dealt) => {
                (spread.next / self.grouping.size, spread.begun)
            }
            _ => self.probe.place(),
        }
    }

    /// Starts with a new list of ranges.
    pub fn restart(&mut self) {
        self.probe.restart();
        if self.spread.take().is_some() {
            // The next list may be in another shard.
            self.probe.change_tree();
        }
    }

    /// Reads on in `ranges` (the same list in every call) as [`Probe::read`] does. It reads about `enough` rows;
    /// `spans` tells which rows belong to which range. Returns whether there is more.
    pub fn read<S: Shards>(
        &mut self,
        shards: &S,
        ranges: &[(Key, Key)],
        enough: usize,
        batch: &mut Batch,
        spans: &mut Vec<Span>,
    ) -> bool {
        let grouping = self.grouping;
        let mask = self.mask;
        let spread = self.spread.get_or_insert_with(|| {
            Box::new(Spread {
                way: Way::new(shards, ranges, grouping.size),
                ..Spread::default()
            })
        });
        batch.clear(mask);
        spans.clear();
        match &spread.way {
            Way::One(shard) => {
                return shards.read_here(*shard, &mut self.probe, ranges, enough, batch, spans)
            }
            Way::InOrder(of_range) => {
                let probe = &mut self.probe;
                return read_in_order(shards, of_range, probe, ranges, enough, batch, spans);
            }
            Way::Dealt => {}
        }
        if grouping.most.is_some() {
            spread.read_window(shards, (mask, grouping), ranges, enough, batch, spans)
        } else {
            if spread.dealt < ranges.len() {
                spread.deal(shards, (mask, grouping), ranges, 0);
                spread.dealt = ranges.len();
            }
            let clamped = enough.clamp(1, u32::MAX as usize);
            spread.read_some(shards, clamped, batch, spans);
            !spread.is_done()
        }
    }
}

/// What a [`Reading`] of these columns asks other nodes for first, by group, when it reads about `enough` rows of these
/// ranges.
pub fn first_requests<S: Shards>(
    shards: &S,
    mask: u8,
    ranges: &[(Key, Key)],
    enough: usize,
) -> Vec<(i32, Read)> {
    if !matches!(Way::new(shards, ranges, NO_GROUPS.size), Way::Dealt) {
        return Vec::new();
    }
    let mut spread = Spread::default();
    spread.deal(shards, (mask, NO_GROUPS), ranges, 0);
    spread.ask_for(enough.clamp(1, u32::MAX as usize));
    let requests = spread.there.into_iter();
    requests.map(|there| (there.group, there.read)).collect()
}

/// The shard of this node that holds all ranges, if it does.
fn only_shard<S: Shards>(shards: &S, ranges: &[(Key, Key)]) -> Option<usize> {
    let (placement, place) = (shards.placement(), shards.key_place());
    if placement.shards().len() == 1 {
        return shards.is_here(0).then_some(0);
    }
    let (first, rest) = ranges.split_first()?;
    let only = shard_of_range(placement, place, first).filter(|&shard| shards.is_here(shard))?;
    let mut before = first;
    for range in rest {
        // Ranges of one key, as a star's, need no second look at its hash.
        let same =
            range.0[..=place] == before.0[..=place] && range.1[..=place] == before.1[..=place];
        if !same && shard_of_range(placement, place, range) != Some(only) {
            return None;
        }
        before = range;
    }
    Some(only)
}

/// Reads on in ranges that are not dealt out; `of_range` has the shard of each.
fn read_in_order<S: Shards>(
    shards: &S,
    of_range: &[u32],
    probe: &mut Probe,
    ranges: &[(Key, Key)],
    enough: usize,
    batch: &mut Batch,
    spans: &mut Vec<Span>,
) -> bool {
    // Behind the ranges from this one on that are in its shard.
    let end_of = |start: usize| {
        let same = of_range[start..].iter();
        start + same.take_while(|&&s| s == of_range[start]).count()
    };
    let mut announced = 0;
    while let Some(&shard) = of_range.get(probe.progress().0) {
        let end = end_of(probe.progress().0);
        let mut coming = end;
        for _ in 0..SHARDS_AHEAD {
            if coming < ranges.len() {
                if coming >= announced {
                    shards.expect(of_range[coming] as usize, &ranges[coming].0);
                    announced = coming + 1;
                }
                coming = end_of(coming);
            }
        }
        probe.change_tree();
        if shards.read_here(shard as usize, probe, &ranges[..end], enough, batch, spans) {
            return true;
        }
    }
    false
}

impl Spread {
    /// Deals out ranges, numbered from `first` on.
    fn deal<S: Shards>(
        &mut self,
        shards: &S,
        (mask, grouping): (u8, Grouping),
        ranges: &[(Key, Key)],
        first: usize,
    ) {
        let placement = shards.placement();
        let deal = Deal::new(placement, shards.key_place(), ranges, first, grouping.size);
        // Settings for groups hold only where one shard sees all of a group.
        let whole = grouping.most.filter(|_| deal.aligned);
        self.whole = whole.is_some();
        let size = if whole.is_some() { grouping.size } else { 1 };
        let required = if whole.is_some() {
            grouping.required
        } else {
            0
        };
        self.here.clear();
        self.there.clear();
        for of_shard in deal.shards {
            let shard = placement.shards()[of_shard.shard];
            if shards.is_here(of_shard.shard) {
                self.here.push(Here {
                    shard: of_shard.shard,
                    probe: match whole {
                        Some(most) => Probe::grouped(mask, size, required, most),
                        None => Probe::new(mask),
                    },
                    part: of_shard.part,
                });
                continue;
            }
            if shards.only_here() {
                continue;
            }
            let known = self.there.iter().position(|t| t.group == shard.group);
            let at = known.unwrap_or_else(|| {
                self.there.push(There {
                    group: shard.group,
                    read: Read {
                        order: shards.order(),
                        mask,
                        size: size as u32,
                        required,
                        most: whole.unwrap_or(0).min(u32::MAX as usize) as u32,
                        ..Read::default()
                    },
                    numbers: Vec::new(),
                });
                self.there.len() - 1
            });
            self.there[at].read.parts.push(Part {
                shard: shard.id,
                ranges: deal.ranges[of_shard.part.clone()].to_vec(),
            });
            let numbers = deal.numbers[of_shard.part].to_vec();
            self.there[at].numbers.push(numbers);
        }
        (self.ranges, self.numbers) = (deal.ranges, deal.numbers);
    }

    /// So many rows are wanted of each node.
    fn ask_for(&mut self, enough: usize) {
        for there in &mut self.there {
            there.read.enough = enough.max(MIN_ROWS) as u32;
        }
    }

    fn is_done(&self) -> bool {
        self.here.is_empty() && self.there.is_empty()
    }

    /// Takes the next rows of every node. Returns the first range at which a shard stopped within a group; such a
    /// shard's further ranges are left out.
    fn read_some<S: Shards>(
        &mut self,
        shards: &S,
        enough: usize,
        batch: &mut Batch,
        spans: &mut Vec<Span>,
    ) -> Option<u32> {
        self.ask_for(enough);
        for there in &self.there {
            shards.send(there.group, &there.read);
        }
        let mut begun = self.read_here(shards, enough, batch, spans);
        let whole = self.whole;
        let mut there = std::mem::take(&mut self.there);
        there.retain_mut(|there| {
            let rows = shards.receive(there.group);
            there.add(&rows, batch, spans);
            let Some(stop) = rows.stop else {
                return false;
            };
            let left = there.go_on_from(&stop);
            let next = there.numbers.first().and_then(|numbers| numbers.first());
            if let (true, Some(&next)) = (whole && stop.begun, next) {
                begun = Some(begun.map_or(next, |first: u32| first.min(next)));
                return there.leave_out_first_part();
            }
            left
        });
        self.there = there;
        begun
    }

    /// Takes the next rows of the shards here. Returns the range at which one stopped within a group; that shard's
    /// further ranges are left out.
    fn read_here<S: Shards>(
        &mut self,
        shards: &S,
        enough: usize,
        batch: &mut Batch,
        spans: &mut Vec<Span>,
    ) -> Option<u32> {
        let (mut rows, mut done) = (0, 0);
        let mut begun = None;
        let mut announced = 1;
        for n in 0..self.here.len() {
            let coming = self.here.len().min(n + 1 + SHARDS_AHEAD);
            for next in &self.here[announced.min(coming)..coming] {
                shards.expect(next.shard, &self.ranges[next.part.start].0);
            }
            announced = coming;
            let Here { shard, probe, part } = &mut self.here[n];
            let ranges = &self.ranges[part.clone()];
            let numbers = &self.numbers[part.clone()];
            let (before, has_begun) = (batch.len(), probe.progress() != (0, None));
            let more = if self.whole {
                // The rows of other shards do not make a group too large.
                let (scratch, found) = (&mut self.scratch, &mut self.found);
                scratch.clear(batch.mask());
                found.clear();
                let more = shards.read_here(*shard, probe, ranges, enough - rows, scratch, found);
                add(batch, spans, scratch, found, |range| numbers[range]);
                more
            } else {
                let (known, enough) = (spans.len(), before + enough - rows);
                let more = shards.read_here(*shard, probe, ranges, enough, batch, spans);
                let new = spans[known..].iter_mut();
                new.for_each(|span| span.range = numbers[span.range as usize]);
                more
            };
            rows += batch.len() - before;
            if more {
                let next = numbers.get(probe.progress().0).copied();
                begun = next.filter(|_| self.whole && probe.place().1);
                done += usize::from(begun.is_some());
                break;
            }
            done += 1;
            let of_shard = batch.len() - before;
            let is_large = of_shard >= ROWS_OF_ONE_SHARD || has_begun && of_shard > 0;
            let ends_here = is_large && !self.whole && shards.only_here();
            if rows >= enough || ends_here {
                break;
            }
        }
        self.here.drain(..done);
        begun
    }

    /// Leaves out the shards whose next range is `end` or a later one.
    fn leave_out_from(&mut self, end: u32) {
        let numbers = &self.numbers;
        self.here.retain(|here| {
            // A probe may stand behind its last range without having said that it is done.
            let next = here.part.start + here.probe.progress().0;
            numbers[..here.part.end].get(next) < Some(&end)
        });
        self.there.retain_mut(|there| {
            let is_before = |numbers: &Vec<u32>| numbers.first() < Some(&end);
            let keep: Vec<bool> = there.numbers.iter().map(is_before).collect();
            let mut kept = keep.iter().copied();
            there.read.parts.retain(|_| kept.next() == Some(true));
            there.numbers.retain(is_before);
            !there.numbers.is_empty()
        });
    }

    /// Reads the next window of groups to its end; rows come out in the order of the ranges.
    fn read_window<S: Shards>(
        &mut self,
        shards: &S,
        (mask, grouping): (u8, Grouping),
        ranges: &[(Key, Key)],
        enough: usize,
        batch: &mut Batch,
        spans: &mut Vec<Span>,
    ) -> bool {
        let size = grouping.size;
        let most = grouping.most.unwrap_or(usize::MAX);
        let until = ranges
            .len()
            .min(self.next + enough.max(MIN_WINDOW_GROUPS).saturating_mul(size));
        let window = self.next..until;
        self.deal(shards, (mask, grouping), &ranges[window.clone()], self.next);
        let (mut all, mut pieces) = (Batch::new(), Vec::new());
        all.clear(mask);
        let clamped = enough.clamp(1, u32::MAX as usize);
        // A group that is too large ends the list before it. The groups before it are read to their ends in all shards:
        // one shard may come to its large group while another has not begun.
        let mut large: Option<usize> = None;
        while !self.is_done() {
            let stopped = self.read_some(shards, clamped, &mut all, &mut pieces);
            if let Some(range) = stopped {
                let group = range as usize / size;
                large = Some(large.map_or(group, |first| first.min(group)));
            }
            if let Some(group) = large {
                self.leave_out_from((group * size) as u32);
            }
        }
        let large = first_large_group(&pieces, size, most)
            .into_iter()
            .chain(large)
            .min();
        self.here.clear();
        self.there.clear();
        let end = large.map_or(until, |group| group * size);
        hand_out(&all, &pieces, self.next..end, batch, spans);
        self.next = end;
        self.begun = large.is_some();
        self.next < ranges.len()
    }
}

/// The first group that has `most` rows or more.
fn first_large_group(pieces: &[Span], size: usize, most: usize) -> Option<usize> {
    let all = pieces.last().map_or(0, |piece| piece.end as usize);
    if all < most {
        return None;
    }
    let mut rows: std::collections::BTreeMap<usize, usize> = std::collections::BTreeMap::new();
    let mut start = 0;
    for piece in pieces {
        *rows.entry(piece.range as usize / size).or_insert(0) += (piece.end - start) as usize;
        start = piece.end;
    }
    rows.into_iter().find(|r| r.1 >= most).map(|r| r.0)
}

/// Puts the rows of `ranges`, which are numbers, in the order of the ranges. A counting sort: the ranges of a window
/// are numbered without gaps, and most have a piece.
fn hand_out(
    all: &Batch,
    pieces: &[Span],
    ranges: std::ops::Range<usize>,
    batch: &mut Batch,
    spans: &mut Vec<Span>,
) {
    let place = |piece: &Span| {
        let range = piece.range as usize;
        ranges.contains(&range).then(|| range - ranges.start)
    };
    // Where the pieces of each range begin in the sorted list.
    let mut next = vec![0; ranges.len() + 1];
    pieces
        .iter()
        .filter_map(place)
        .for_each(|at| next[at + 1] += 1);
    for at in 1..next.len() {
        next[at] += next[at - 1];
    }
    let mut sorted = vec![(0, 0..0); next[ranges.len()]];
    let mut start = 0;
    for piece in pieces {
        if let Some(at) = place(piece) {
            sorted[next[at]] = (piece.range, start as usize..piece.end as usize);
            next[at] += 1;
        }
        start = piece.end;
    }
    let mut end = batch.len();
    let mut rows = 0..0;
    for (range, piece) in sorted {
        end += piece.len();
        let end = end as u32;
        spans.push(Span { range, end });
        // Pieces that follow each other are copied at once, as the ranges of a star's member.
        if piece.start == rows.end {
            rows.end = piece.end;
        } else {
            batch.append(all, std::mem::replace(&mut rows, piece));
        }
    }
    batch.append(all, rows);
}

/// Adds rows with their spans; `number` is the number of a range in the whole list.
fn add(
    batch: &mut Batch,
    spans: &mut Vec<Span>,
    rows: &Batch,
    found: &[Span],
    number: impl Fn(usize) -> u32,
) {
    let before = batch.len() as u32;
    batch.append(rows, 0..rows.len());
    spans.extend(found.iter().map(|span| Span {
        range: number(span.range as usize),
        end: before + span.end,
    }));
}

impl There {
    /// Adds an answer.
    fn add(&self, rows: &Rows, batch: &mut Batch, spans: &mut Vec<Span>) {
        let numbers: Vec<u32> = self.numbers.iter().flatten().copied().collect();
        let number = |range: usize| numbers.get(range).copied().unwrap_or(0);
        add(batch, spans, &rows.batch, &rows.spans, number);
    }

    /// Leaves out what has been answered; false where nothing is left.
    fn go_on_from(&mut self, stop: &Stop) -> bool {
        let (part, next) = (stop.part as usize, stop.next as usize);
        self.read.parts.drain(..part.min(self.read.parts.len()));
        self.numbers.drain(..part.min(self.numbers.len()));
        let (Some(first), Some(numbers)) = (self.read.parts.first_mut(), self.numbers.first_mut())
        else {
            return false;
        };
        let next = next.min(first.ranges.len());
        first.ranges.drain(..next);
        numbers.drain(..next);
        if let (Some(key), Some(range)) = (stop.resume, first.ranges.first_mut()) {
            range.0 = key;
        }
        true
    }

    /// Leaves out what is left of the first shard; false where nothing else is left.
    fn leave_out_first_part(&mut self) -> bool {
        self.read.parts.remove(0);
        self.numbers.remove(0);
        !self.numbers.is_empty()
    }
}

/// Answers a request from shards of this node; `read` reads one of them, by the place of its part in the request.
pub fn answer(
    request: &Read,
    mut read: impl FnMut(usize, &mut Probe, &[(Key, Key)], usize, &mut Batch, &mut Vec<Span>) -> bool,
) -> Rows {
    let mut rows = Rows::default();
    rows.batch.clear(request.mask);
    let enough = (request.enough as usize).max(1);
    let (mut batch, mut found) = (Batch::new(), Vec::new());
    let mut first = 0;
    for (n, part) in request.parts.iter().enumerate() {
        let mut probe = match request.most {
            0 => Probe::new(request.mask),
            most => Probe::grouped(
                request.mask,
                request.size as usize,
                request.required,
                most as usize,
            ),
        };
        loop {
            let room = enough.saturating_sub(rows.batch.len());
            let (next, resume) = probe.progress();
            if room == 0 && next < part.ranges.len() {
                rows.stop = Some(Stop {
                    part: n as u32,
                    next: next as u32,
                    resume,
                    begun: request.most > 0 && probe.place().1,
                });
                return rows;
            }
            if room == 0 {
                break;
            }
            let more = read(n, &mut probe, &part.ranges, room, &mut batch, &mut found);
            add(&mut rows.batch, &mut rows.spans, &batch, &found, |range| {
                (first + range) as u32
            });
            if !more {
                break;
            }
            if request.most > 0 && probe.place().1 {
                let (next, resume) = probe.progress();
                rows.stop = Some(Stop {
                    part: n as u32,
                    next: next as u32,
                    resume,
                    begun: true,
                });
                return rows;
            }
        }
        first += part.ranges.len();
    }
    rows
}
