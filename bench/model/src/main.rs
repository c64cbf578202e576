//! A model of larger clusters. It runs the code that decides what is sent where (`pgquad-cluster`: placement, readings,
//! exchange, messages) on recorded plans. 1 to 256 nodes are in one process, over a modelled network.
//!
//! `pgquad-model RECORDED.json` prints tab-separated values: mix, network, skew, nodes, and way (pull, push, or the
//! better of both for each join). For an average query it also prints messages, bytes, bytes at the node that was
//! asked, and milliseconds. Last come milliseconds of work of all nodes, and of the busiest.
//! `pgquad-model --queries N RECORDED.json`: the same for each query on N nodes, beside what was measured.

mod costs;
mod plan;
mod pull;
mod push;
mod quads;

use std::process::ExitCode;

use costs::{Costs, Outcome};
use plan::{Join, Query};
use quads::Skew;

/// Sizes of clusters.
const NODES: [usize; 10] = [1, 2, 3, 4, 8, 16, 32, 64, 128, 256];
const NETWORKS: [(&str, Costs); 3] = [
    ("loopback", Costs::LOOPBACK),
    ("rack", Costs::RACK),
    ("far", Costs::FAR),
];
/// No hot key, and one with a tenth of the quads of each step.
const SKEWS: [Skew; 2] = [0.0, 0.1];

/// Ways to run a join.
const WAYS: [&str; 3] = ["pull", "push", "better"];

/// What a join comes to, each way.
fn run_join(join: &Join, nodes: usize, costs: &Costs, skew: Skew, seed: u64) -> [Outcome; 3] {
    let tables = quads::tables(join, nodes, skew, seed);
    let pulled = pull::run(&tables, nodes, costs).on(costs);
    let pushed = if nodes == 1 {
        pulled
    } else {
        push::run(&tables, nodes, join.groups, costs).on(costs)
    };
    let better = if pushed.elapsed < pulled.elapsed {
        pushed
    } else {
        pulled
    };
    [pulled, pushed, better].map(|outcome| outcome.times(join.loops))
}

/// What all joins of a query come to.
fn run_query(query: &Query, nodes: usize, costs: &Costs, skew: Skew) -> [Outcome; 3] {
    let mut sums = [Outcome::default(); 3];
    for (n, join) in query.joins.iter().enumerate() {
        let found = run_join(join, nodes, costs, skew, n as u64);
        for (sum, found) in sums.iter_mut().zip(found) {
            *sum = sum.then(found);
        }
    }
    sums
}

/// An average query of a mix.
fn print_mix(mix: &str, queries: &[&Query], (network, costs): (&str, &Costs), skew: Skew) {
    let weight: u64 = queries.iter().map(|query| query.weight).sum();
    for nodes in NODES {
        let mut sums = [Outcome::default(); 3];
        for query in queries {
            for (sum, found) in sums.iter_mut().zip(run_query(query, nodes, costs, skew)) {
                *sum = sum.then(found.times(query.weight));
            }
        }
        for (way, sum) in WAYS.iter().zip(sums) {
            let each = |value: f64| value / weight as f64;
            println!(
                "{mix}\t{network}\t{skew}\t{nodes}\t{way}\t{:.2}\t{:.0}\t{:.0}\t{:.4}\t{:.4}\t{:.4}",
                each(sum.messages as f64),
                each(sum.bytes as f64),
                each(sum.asker_bytes as f64),
                each(sum.elapsed) / 1e6,
                each(sum.work) / 1e6,
                each(sum.most_work) / 1e6,
            );
        }
    }
}

/// Each query on so many nodes, pulled and pushed, beside what was measured. Time: that of one node, as measured, and
/// what the model adds.
fn print_queries(queries: &[Query], nodes: usize) {
    println!(
        "mix\tquery\tway\tmessages\tmessages measured\tbytes\tbytes measured\tms\tms measured\t\
         ms measured on one node"
    );
    for query in queries {
        let costs = &Costs::LOOPBACK;
        let [alone, ..] = run_query(query, 1, costs, 0.0);
        let outcomes = run_query(query, nodes, costs, 0.0);
        let on_one = query.measured.iter().find(|found| found.nodes == 1);
        let one = on_one.map_or(0.0, |found| found.ms);
        for real in query.measured.iter().filter(|found| found.nodes == nodes) {
            let Some(at) = WAYS.iter().position(|way| *way == real.way) else {
                continue;
            };
            println!(
                "{}\t{}\t{}\t{}\t{:.0}\t{}\t{:.0}\t{:.3}\t{:.3}\t{:.3}",
                query.mix,
                query.template,
                real.way,
                outcomes[at].messages,
                real.messages,
                outcomes[at].bytes,
                real.bytes,
                one + (outcomes[at].elapsed - alone.elapsed) / 1e6,
                real.ms,
                one,
            );
        }
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (file, nodes) = match arguments.as_slice() {
        [file] => (file, None),
        [option, nodes, file] if option == "--queries" => (file, Some(nodes)),
        _ => {
            eprintln!("usage: pgquad-model [--queries NODES] RECORDED.json");
            return ExitCode::FAILURE;
        }
    };
    let queries = std::fs::read_to_string(file)
        .map_err(|error| error.to_string())
        .and_then(|text| serde_json::from_str(&text).map_err(|error| error.to_string()))
        .and_then(|recorded| plan::read(&recorded));
    let queries = match queries {
        Ok(queries) => queries,
        Err(error) => {
            eprintln!("{file}: {error}");
            return ExitCode::FAILURE;
        }
    };
    if let Some(nodes) = nodes {
        let Ok(nodes) = nodes.parse() else {
            eprintln!("{nodes} is no number of nodes");
            return ExitCode::FAILURE;
        };
        print_queries(&queries, nodes);
        return ExitCode::SUCCESS;
    }
    println!(
        "mix\tnetwork\tskew\tnodes\tway\tmessages\tbytes\tasker bytes\tms\twork ms\tbusiest ms"
    );
    for mix in ["explore", "bi"] {
        // A join that another one runs again and again would hide all others.
        let runs_once = |query: &&Query| query.joins.iter().all(|join| join.loops == 1);
        let of_mix = queries.iter().filter(|query| query.mix == mix);
        let of_mix: Vec<&Query> = of_mix.filter(runs_once).collect();
        for (network, costs) in &NETWORKS {
            for skew in SKEWS {
                print_mix(mix, &of_mix, (network, costs), skew);
            }
        }
    }
    ExitCode::SUCCESS
}

#[cfg(test)]
mod tests {
    use super::*;
    use pgquad_btree::Order;
    use plan::{Step, What};

    fn chain() -> Join {
        let step = |by, order, what, arms, factor| Step {
            by,
            order,
            what,
            arms,
            factor,
        };
        Join {
            loops: 1,
            groups: Some(10),
            steps: vec![
                step(2, Order::POSG, What::Constant(2_000), 1, 2_000.0),
                step(0, Order::SPOG, What::Keys(1_000), 3, 2.0),
                step(2, Order::OSPG, What::Keys(500), 1, 1.5),
            ],
        }
    }

    #[test]
    fn pulled_and_pushed_have_the_same_answer() {
        for nodes in [1, 2, 3, 16] {
            for skew in SKEWS {
                let [pulled, pushed, _] = run_join(&chain(), nodes, &Costs::RACK, skew, 7);
                assert!(pulled.rows > 1_000, "{nodes} nodes: {pulled:?}");
                assert_eq!(pulled.rows, pushed.rows, "{nodes} nodes");
                assert_eq!(pulled.messages == 0, nodes == 1);
            }
        }
    }

    #[test]
    fn as_many_rows_as_recorded() {
        let [pulled, ..] = run_join(&chain(), 3, &Costs::LOOPBACK, 0.0, 1);
        assert_eq!(pulled.rows, 6_000);
    }

    #[test]
    fn a_way_of_a_millisecond_costs_what_it_takes() {
        let [near, ..] = run_join(&chain(), 3, &Costs::RACK, 0.0, 1);
        let [far, ..] = run_join(&chain(), 3, &Costs::FAR, 0.0, 1);
        // One round trip for each of the steps that are elsewhere, at most three for this chain.
        let more =
            (far.elapsed - near.elapsed) / (2.0 * (Costs::FAR.latency - Costs::RACK.latency));
        assert!((2.0..=3.01).contains(&more.round()), "{more} round trips");
    }
}
