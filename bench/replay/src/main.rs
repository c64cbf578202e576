//! Replays a log of SPARQL queries against this store over PostgreSQL's protocol and against any SPARQL endpoint over
//! HTTP, in turn. Prints the times as JSON.

mod answer;
mod arguments;
mod check;
mod http;
mod log;
mod measure;
mod target;

use serde_json::{json, Map, Value};

use arguments::Arguments;
use measure::{mean, percentile, Plan, Run};

fn main() {
    let done = Arguments::parse(std::env::args().skip(1)).and_then(|arguments| replay(&arguments));
    match done {
        Ok(report) => println!("{report}"),
        Err(error) => {
            eprintln!("replay: {error}");
            std::process::exit(1);
        }
    }
}

fn replay(arguments: &Arguments) -> Result<Value, String> {
    let log = log::read(&arguments.log)?;
    let mut report = Map::new();
    report.insert("queries".into(), log.len().into());
    if arguments.check_every > 0 {
        report.insert("check".into(), checked(arguments, &log)?);
    }
    if arguments.floor {
        report.insert("floor".into(), floors(arguments)?);
    }
    report.insert("runs".into(), runs(arguments, &log)?);
    Ok(report.into())
}

fn checked(arguments: &Arguments, log: &[log::Query]) -> Result<Value, String> {
    eprintln!("comparing answers");
    let outcomes = check::check(
        &arguments.targets,
        log,
        arguments.check_every,
        arguments.timeout,
    )?;
    let list = |entries: &[(usize, u64, String)]| -> Vec<Value> {
        entries
            .iter()
            .map(|(position, number, text)| json!({"position": position, "query": number, "text": text}))
            .collect()
    };
    Ok(arguments
        .targets
        .iter()
        .zip(&outcomes)
        .map(|(target, outcome)| {
            let value = json!({
                "equal": outcome.equal,
                "not_compared": outcome.free,
                "different": list(&outcome.different),
                "failed": list(&outcome.failed),
            });
            (target.name.clone(), value)
        })
        .collect::<Map<_, _>>()
        .into())
}

/// Turns of each target for the floor. Empty round trips of one server take 0.02 ms in some turns and 0.08 ms in others
/// (two processors), so that one turn says little.
const FLOOR_TURNS: usize = 5;

/// The medians of the targets' floors, which are measured in turn.
fn floors(arguments: &Arguments) -> Result<Value, String> {
    let targets = &arguments.targets;
    let mut found: Vec<Vec<measure::Floor>> = targets.iter().map(|_| Vec::new()).collect();
    for (_, number) in turns(FLOOR_TURNS, targets.len()) {
        // A store that does not answer stops none of the others.
        match measure::floor(&targets[number], arguments.timeout) {
            Ok(floor) => found[number].push(floor),
            Err(error) => eprintln!("floor, {}: {error}", targets[number].name),
        }
    }
    let median = |mut times: Vec<f64>| {
        times.sort_by(f64::total_cmp);
        (!times.is_empty()).then(|| measure::percentile(&times, 50))
    };
    let floors = targets.iter().zip(&found).map(|(target, found)| {
        let empty = median(found.iter().filter_map(|floor| floor.empty).collect());
        let ask = median(found.iter().map(|floor| floor.ask).collect());
        (target.name.clone(), json!({"empty": empty, "ask": ask}))
    });
    Ok(floors.collect::<Map<_, _>>().into())
}

/// The rounds, and in each the numbers of all targets. Each round starts with another one, so that what else the
/// machine does falls on all alike.
fn turns(rounds: usize, targets: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..rounds)
        .flat_map(move |round| (0..targets).map(move |turn| (round, (turn + round) % targets)))
}

/// All runs: the targets in turn.
fn runs(arguments: &Arguments, log: &[log::Query]) -> Result<Value, String> {
    let mut runs = Vec::new();
    for &clients in &arguments.clients {
        let plan = Plan {
            clients,
            until: arguments.until,
            warm_mixes: arguments.warm_mixes,
            timeout: arguments.timeout,
        };
        for (round, number) in turns(arguments.rounds, arguments.targets.len()) {
            let target = &arguments.targets[number];
            let run = measure::run(target, log, plan)?;
            eprintln!(
                "{} clients, round {}, {}: {:.0} query mixes an hour",
                clients,
                round + 1,
                target.name,
                run.mixes_per_hour
            );
            runs.push(described(&target.name, clients, round, &run));
        }
    }
    Ok(runs.into())
}

fn described(target: &str, clients: usize, round: usize, run: &Run) -> Value {
    let latencies: Map<String, Value> = run
        .latencies
        .iter()
        .map(|(number, times)| {
            let value = json!({
                "count": times.len(),
                "mean": mean(times),
                "p50": percentile(times, 50),
                "p95": percentile(times, 95),
                "p99": percentile(times, 99),
            });
            (number.to_string(), value)
        })
        .collect();
    let failures: Map<String, Value> = run
        .failures
        .iter()
        .map(|(number, (count, text))| (number.to_string(), json!({"count": count, "text": text})))
        .collect();
    json!({
        "target": target,
        "clients": clients,
        "round": round,
        "seconds": run.seconds,
        "mixes_per_hour": run.mixes_per_hour,
        "latencies": latencies,
        "failures": failures,
    })
}
