//! Asking other nodes of a distributed dictionary: one message to each node and batch, all nodes at once.
//!
//! Terms are looked up through the sessions of queries. Where nodes make ids each message is a transaction of its
//! own, on this very node too. So an id is there for everyone at once, whatever becomes of the transaction that
//! wanted it.

use std::ops::Range;
use std::time::{Duration, Instant};

use pgquad_cluster::dictionary::{Answer, Part, Request, Term};
use pgquad_cluster::Damaged;
use pgquad_term::TermId;
use pgrx::{check_for_interrupts, pg_sys, PgSqlErrorCode};

use super::layout::{Layout, Shards};
use super::{distribute, numbers, shared_cache};
use crate::cluster::{damaged, Mode, Scope};
use crate::pg::error::raise_hint;

/// Wait for nodes to agree on where a shard is; Citus tells all of them within one commit.
const AGREEMENT_PATIENCE: Duration = Duration::from_secs(30);

/// Shortest and longest pause between two attempts.
const PAUSES: Range<Duration> = Duration::from_millis(2)..Duration::from_millis(200);

/// Sessions for messages in which nodes write: each is a transaction of its own.
pub fn scope() -> Scope {
    distribute::check_committed();
    Scope::new(Mode::Autonomous)
}

/// Sessions for messages in which nodes read.
fn scope_of_lookups() -> Scope {
    distribute::check_committed();
    Scope::of_lookups()
}

/// A message to one node: what is asked for by shard, and the numbers of these items in the caller's list, in the same
/// order.
pub struct Asked<T> {
    /// Citus' number of the group of the node.
    pub group: i32,
    /// What is asked for.
    pub parts: Vec<Part<T>>,
    /// Which items that is.
    pub items: Vec<usize>,
}

/// Deals out items to the nodes that hold their shards, in their order within each shard. Nodes ascend: all sessions
/// wait for answers, until which nodes hold locks, in one order.
pub fn deal<T>(
    shards: &Shards,
    items: &[usize],
    shard_of: impl Fn(usize) -> usize,
    item: impl Fn(usize) -> T,
) -> Vec<Asked<T>> {
    let mut placed: Vec<(i32, usize, usize)> = items
        .iter()
        .map(|&item| {
            let place = shard_of(item);
            (shards.group(place), place, item)
        })
        .collect();
    placed.sort_by_key(|(group, place, _)| (*group, *place));
    let mut all: Vec<Asked<T>> = Vec::new();
    for (group, place, number) in placed {
        if all.last().is_none_or(|asked| asked.group != group) {
            let (parts, items) = (Vec::new(), Vec::new());
            all.push(Asked {
                group,
                parts,
                items,
            });
        }
        let Some(asked) = all.last_mut() else {
            continue;
        };
        let shard = shards.id(place);
        if asked.parts.last().is_none_or(|part| part.shard != shard) {
            let items = Vec::new();
            asked.parts.push(Part { shard, items });
        }
        if let Some(part) = asked.parts.last_mut() {
            part.items.push(item(number));
        }
        asked.items.push(number);
    }
    all
}

/// Asks for items until each of them has been answered for: nodes may disagree for an instant about where a shard is,
/// and answer for the first items only. `accept` says for how many that is.
fn ask<T>(
    scope: impl FnOnce() -> Scope,
    mut pending: Vec<usize>,
    shard_of: impl Fn(&Shards, usize) -> usize,
    item: impl Fn(usize) -> T,
    request: impl Fn(Vec<Part<T>>) -> Vec<u8>,
    mut accept: impl FnMut(&[usize], Answer<'_>) -> usize,
) {
    if pending.is_empty() {
        return;
    }
    let scope = scope();
    let mut attempts = Attempts::new();
    loop {
        let layout = Layout::newest();
        let shards = shards_of(&layout);
        let mut messages = Vec::new();
        let mut lists = Vec::new();
        for asked in deal(shards, &pending, |n| shard_of(shards, n), &item) {
            messages.push((asked.group, request(asked.parts)));
            lists.push(asked.items);
        }
        pending.clear();
        let mut has_moved = false;
        for (answer, items) in scope.exchange(&messages).iter().zip(lists) {
            let accepted = match read(answer) {
                Answer::Moved => {
                    has_moved = true;
                    0
                }
                answer => accept(&items, answer),
            };
            pending.extend_from_slice(&items[accepted..]);
        }
        if pending.is_empty() {
            return;
        }
        pending.sort_unstable();
        if has_moved {
            attempts.pause();
        }
    }
}

/// The shards of a dictionary that was distributed a moment ago.
pub fn shards_of(layout: &Layout) -> &Shards {
    layout.shards.as_ref().unwrap_or_else(|| {
        raise_hint(
            PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            "the dictionary is not distributed any more",
            "Run the statement again.",
        )
    })
}

/// The answer in a message.
pub fn read(message: &[u8]) -> Answer<'_> {
    Answer::decode(message).unwrap_or_else(|error| damaged(error))
}

/// The ids in an answer about `count` terms.
pub fn ids_of(answer: Answer<'_>, count: usize) -> Vec<Option<TermId>> {
    let Answer::Ids(ids) = answer else {
        damaged(Damaged)
    };
    if ids.len() != count {
        damaged(Damaged);
    }
    if ids.iter().any(|&id| i64::try_from(id).is_err()) {
        damaged(Damaged);
    }
    let id = |id: u64| (id != 0).then_some(TermId(id));
    ids.into_iter().map(id).collect()
}

/// The ids of the terms with the hashes at `wanted`; `each` is called for those that are in the dictionary.
pub fn find(wanted: Vec<usize>, hashes: &[u128], mut each: impl FnMut(usize, TermId)) {
    let is_kept = wanted.len() <= shared_cache::MAX_TERMS_AT_ONCE;
    ask(
        scope_of_lookups,
        shared_cache::ids(wanted, hashes, &mut each),
        |shards, n| shards.of_hash(hashes[n]),
        |n| hashes[n],
        |parts| Request::Find(parts).encode(),
        |items, answer| {
            for (n, id) in items.iter().zip(ids_of(answer, items.len())) {
                if let Some(id) = id {
                    each(*n, id);
                    if is_kept {
                        shared_cache::keep_id(hashes[*n], id);
                    }
                }
            }
            items.len()
        },
    );
}

/// The ids of the terms at `wanted`, given with their hashes, which get some where they have none.
pub fn encode(wanted: Vec<usize>, terms: &[(u128, Term<'_>)], mut each: impl FnMut(usize, TermId)) {
    ask(
        scope,
        wanted,
        |shards, n| shards.of_hash(terms[n].0),
        |n| terms[n].1,
        |parts| Request::Encode(parts).encode(),
        |items, answer| {
            for (n, id) in items.iter().zip(ids_of(answer, items.len())) {
                each(*n, id.unwrap_or_else(|| damaged(Damaged)));
            }
            items.len()
        },
    );
}

/// The terms with these numbers, which are in ascending order, in their encoded form; `None` for those that are not in
/// the dictionary.
pub fn decode(numbers: &[u64], mut each: impl FnMut(usize, Option<&str>)) {
    let is_kept = numbers.len() <= shared_cache::MAX_TERMS_AT_ONCE;
    let missing = shared_cache::terms(numbers, |n, term| each(n, Some(term)));
    ask(
        scope_of_lookups,
        missing,
        |shards, n| shards.of_number(numbers[n]),
        |n| numbers[n],
        |parts| Request::Decode(parts).encode(),
        |items, answer| {
            let Answer::Terms(terms) = answer else {
                damaged(Damaged)
            };
            let count = terms.len();
            if count == 0 || count > items.len() {
                damaged(Damaged);
            }
            for (n, term) in items.iter().zip(terms) {
                each(*n, term);
                if let (true, Some(term)) = (is_kept, term) {
                    shared_cache::keep_term(numbers[*n], term);
                }
            }
            count
        },
    );
}

/// Numbers that nobody else has, from a shard of this node where it has one: it answers soonest.
pub fn take(count: usize) -> Vec<Range<u64>> {
    let ranges = ask_shard(
        |shards| {
            let here: Vec<usize> = (0..shards.count())
                .filter(|&place| shards.here(place).is_some())
                .collect();
            // SAFETY: plain process state.
            let process = unsafe { pg_sys::MyProcPid } as usize;
            match here.len() {
                0 => process % shards.count(),
                count => here[process % count],
            }
        },
        |shard| {
            let count = count as u64;
            Request::Take { shard, count }.encode()
        },
        |answer| match answer {
            Answer::Numbers(ranges) => ranges,
            _ => damaged(Damaged),
        },
    );
    if numbers::length(&ranges) < count as u64 {
        damaged(Damaged);
    }
    ranges
}

/// All languages, from a node that has them.
pub fn languages() -> Vec<(u16, String)> {
    ask_shard(|_| 0, |_| Request::Languages.encode(), languages_of)
}

/// Numbers for languages, as far as there are numbers left.
pub fn add_languages(tags: &[&str]) -> Vec<(u16, String)> {
    ask_shard(
        |_| 0,
        |shard| {
            let tags = tags.to_vec();
            Request::AddLanguages { shard, tags }.encode()
        },
        languages_of,
    )
}

fn languages_of(answer: Answer<'_>) -> Vec<(u16, String)> {
    let Answer::Languages(languages) = answer else {
        damaged(Damaged)
    };
    let owned = |(number, tag): (u16, &str)| (number, tag.to_owned());
    languages.into_iter().map(owned).collect()
}

/// Makes a symbol table the newest one; returns its number.
pub fn add_symbols(table: &[u8]) -> u32 {
    ask_shard(
        |_| 0,
        |shard| Request::AddSymbols { shard, table }.encode(),
        |answer| match answer {
            Answer::Symbols(number) => number,
            _ => damaged(Damaged),
        },
    )
}

/// Asks the node of one shard until it has answered.
fn ask_shard<T>(
    choose: impl Fn(&Shards) -> usize,
    request: impl Fn(u64) -> Vec<u8>,
    accept: impl Fn(Answer<'_>) -> T,
) -> T {
    let scope = scope();
    let mut attempts = Attempts::new();
    loop {
        let layout = Layout::newest();
        let shards = shards_of(&layout);
        let place = choose(shards);
        let message = (shards.group(place), request(shards.id(place)));
        let answers = scope.exchange(&[message]);
        match read(answers.first().unwrap_or_else(|| damaged(Damaged))) {
            Answer::Moved => attempts.pause(),
            answer => return accept(answer),
        }
    }
}

/// Attempts to find the node that has a shard.
pub struct Attempts {
    since: Instant,
    pause: Duration,
}

impl Attempts {
    /// Before the first.
    pub fn new() -> Self {
        Attempts {
            since: Instant::now(),
            pause: PAUSES.start,
        }
    }

    /// Waits before another one; an error when there were enough.
    pub fn pause(&mut self) {
        if self.since.elapsed() > AGREEMENT_PATIENCE {
            raise_hint(
                PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                "the nodes do not agree on which of them holds a shard of the dictionary",
                "SELECT citus_check_cluster_node_health() finds nodes that cannot be reached; start_metadata_sync_to_node() tells a \
                 node where shards are.",
            );
        }
        // SAFETY: the latch of this process.
        unsafe {
            pg_sys::WaitLatch(
                pg_sys::MyLatch,
                (pg_sys::WL_LATCH_SET | pg_sys::WL_TIMEOUT | pg_sys::WL_EXIT_ON_PM_DEATH) as i32,
                self.pause.as_millis() as i64,
                pg_sys::PG_WAIT_EXTENSION,
            );
            pg_sys::ResetLatch(pg_sys::MyLatch);
        }
        check_for_interrupts!();
        self.pause = (self.pause * 2).min(PAUSES.end);
    }
}
