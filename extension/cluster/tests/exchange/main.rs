//! Joins whose rows go from participant to participant, against nested loops: in threads, and in a simulated network
//! whose delays, room and losses are random.

mod links;
mod simulation;
mod toy;

use pgquad_cluster::exchange::{memory, Exchange, Settings};
use proptest::prelude::*;
use simulation::{simulate, Outcome, Simulated};
use toy::{Join, Part, Query};

/// Random numbers that a seed decides (splitmix64).
struct Random(u64);

impl Random {
    /// A number below `end`.
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % end as u64) as usize
    }
}

fn settings(query: u64, batch_bytes: usize, most_rows: usize, memory: usize) -> Settings {
    Settings {
        query,
        batch_bytes,
        most_rows,
        memory,
    }
}

/// Threads, each of which waits for its peers.
fn run_in_threads(query: &Query, nodes: usize, room: usize, settings: Settings) -> Vec<Vec<u64>> {
    let members = memory::network(nodes, room);
    let mut rows: Vec<Vec<u64>> = std::thread::scope(|scope| {
        let threads: Vec<_> = members
            .into_iter()
            .enumerate()
            .map(|(me, member)| {
                scope.spawn(move || {
                    let join = Join::new(query, Part { me, nodes }, 7);
                    let mut exchange = Exchange::new(member, join, settings, None);
                    let mut rows = Vec::new();
                    while let Some(part) = exchange.next().unwrap() {
                        rows.extend(part);
                    }
                    let stats = exchange.stats();
                    assert_eq!(stats.peers[me].messages, 0);
                    rows
                })
            })
            .collect();
        let parts = threads.into_iter().map(|thread| thread.join().unwrap());
        parts.flatten().collect()
    });
    rows.sort_unstable();
    rows
}

#[test]
fn threads_join_as_nested_loops_do() {
    for nodes in [1, 2, 3, 5] {
        for batch_bytes in [0, 1, 1000] {
            let query = Query::random(11, 40, 3, 150);
            let rows = run_in_threads(&query, nodes, 1000, settings(1, batch_bytes, 16, 1 << 20));
            assert!(rows.len() > 100);
            assert_eq!(rows, query.nested_loops());
        }
    }
}

fn simulated() -> impl Strategy<Value = (Query, Simulated)> {
    let query = (any::<u64>(), 1u64..20, 1usize..5, 0usize..60);
    let query = query.prop_map(|(seed, values, steps, edges)| {
        Query::random(seed, values, steps, edges.min(3 * values as usize))
    });
    let nodes = 1usize..6;
    let batch = prop_oneof![Just(0usize), Just(1), 8usize..400];
    let memory = prop_oneof![Just(0usize), 1usize..300, Just(1 << 20)];
    let room = prop_oneof![Just(1usize), 1usize..200, Just(1 << 20)];
    let loss = prop_oneof![3 => Just(None), 1 => (0u32..400).prop_map(Some)];
    let slowness = prop_oneof![Just(0u8), any::<u8>()];
    let rest = (
        1usize..20,
        1usize..9,
        any::<u64>(),
        any::<u8>(),
        loss,
        slowness,
    );
    (query, nodes, batch, memory, room, rest).prop_map(
        |(query, nodes, batch, memory, room, rest)| {
            let (most_rows, unit, seed, eagerness, loss, slowness) = rest;
            let settings = settings(seed, batch, most_rows, memory);
            let simulated = Simulated {
                nodes,
                settings,
                room,
                unit,
                seed,
                eagerness,
                loss,
                slowness,
            };
            (query, simulated)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    /// Every run ends: with the answer of nested loops, or, where a link was lost, with an error of all that were not
    /// done.
    #[test]
    fn every_run_ends((query, simulated) in simulated()) {
        match simulate(&query, &simulated) {
            Outcome::Rows(rows) => prop_assert_eq!(rows, query.nested_loops()),
            Outcome::Lost => prop_assert!(simulated.loss.is_some()),
        }
    }
}
