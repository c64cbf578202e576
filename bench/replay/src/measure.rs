//! Clients that ask the queries of a log, and what their stopwatches say.

use std::collections::BTreeMap;
use std::sync::Barrier;
use std::time::{Duration, Instant};

use crate::log::{Form, Query};
use crate::target::Target;

/// When a client is done.
#[derive(Clone, Copy, Debug)]
pub enum Until {
    /// After a time.
    Elapsed(Duration),
    /// When the clients together have been through the log so many times.
    Passes(usize),
}

/// How a run is done.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Clients that ask at the same time.
    pub clients: usize,
    /// When they stop.
    pub until: Until,
    /// Mixes that each client asks on its connection before the clock runs.
    pub warm_mixes: usize,
    /// When to give up on an answer.
    pub timeout: Duration,
}

/// What one run measured.
pub struct Run {
    /// Query mixes an hour, all clients together; what failed does not count.
    pub mixes_per_hour: f64,
    /// Seconds from the first query to the last answer, of the slowest client.
    pub seconds: f64,
    /// Latencies of the queries of each template, in milliseconds, in increasing order.
    pub latencies: BTreeMap<u64, Vec<f64>>,
    /// Queries of each template that failed, and what the last of them said.
    pub failures: BTreeMap<u64, (usize, String)>,
}

struct Client {
    seconds: f64,
    asked: usize,
    times: Vec<(u64, f64)>,
    failures: Vec<(u64, String)>,
}

/// Replays a log; each client starts with another mix.
pub fn run(target: &Target, log: &[Query], plan: Plan) -> Result<Run, String> {
    let starts = mix_starts(log);
    let ready = Barrier::new(plan.clients);
    let clients: Result<Vec<Client>, String> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..plan.clients)
            .map(|index| {
                let start = starts[index * starts.len() / plan.clients];
                let ready = &ready;
                scope.spawn(move || client(target, log, plan, start, ready))
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().map_err(|_| "a client panicked".to_owned())?)
            .collect()
    });
    let clients = clients?;
    let per_mix = log.len() as f64 / starts.len() as f64;
    let mut run = Run {
        mixes_per_hour: clients
            .iter()
            .map(|c| c.times.len() as f64 / per_mix / c.seconds)
            .sum::<f64>()
            * 3600.0,
        seconds: clients.iter().map(|c| c.seconds).fold(0.0, f64::max),
        latencies: BTreeMap::new(),
        failures: BTreeMap::new(),
    };
    for client in clients {
        for (number, taken) in client.times {
            run.latencies.entry(number).or_default().push(taken);
        }
        for (number, text) in client.failures {
            let entry = run.failures.entry(number).or_default();
            *entry = (entry.0 + 1, text);
        }
    }
    for times in run.latencies.values_mut() {
        times.sort_by(f64::total_cmp);
    }
    Ok(run)
}

fn client(
    target: &Target,
    log: &[Query],
    plan: Plan,
    start: usize,
    ready: &Barrier,
) -> Result<Client, String> {
    let session = target.connect(log, plan.timeout).map(|mut session| {
        let warm = plan.warm_mixes * log.len() / mix_starts(log).len();
        for step in 0..warm {
            let position = (start + step) % log.len();
            // What fails here fails again when it counts.
            session.ask(position, &log[position], |_| ()).ok();
        }
        session
    });
    // Every client comes to the barrier, or none would pass it.
    ready.wait();
    let mut session = session?;
    let mut client = Client {
        seconds: 0.0,
        asked: 0,
        times: Vec::new(),
        failures: Vec::new(),
    };
    let share = match plan.until {
        Until::Passes(passes) => (passes * log.len()).div_ceil(plan.clients),
        Until::Elapsed(_) => usize::MAX,
    };
    let began = Instant::now();
    while client.asked < share
        && !matches!(plan.until, Until::Elapsed(limit) if began.elapsed() >= limit)
    {
        let position = (start + client.asked) % log.len();
        let query = &log[position];
        let before = Instant::now();
        match session.ask(position, query, |_| ()) {
            Ok(()) => client
                .times
                .push((query.number, before.elapsed().as_secs_f64() * 1000.0)),
            Err(text) => client.failures.push((query.number, text)),
        }
        client.asked += 1;
    }
    client.seconds = began.elapsed().as_secs_f64();
    Ok(client)
}

fn mix_starts(log: &[Query]) -> Vec<usize> {
    (0..log.len())
        .filter(|&position| position == 0 || log[position].mix != log[position - 1].mix)
        .collect()
}

/// The least that a question can cost: round trips of an empty statement, where the protocol has one, and of `ASK {}`,
/// medians in milliseconds.
pub struct Floor {
    /// `SELECT ''`, prepared.
    pub empty: Option<f64>,
    /// `ASK {}`.
    pub ask: f64,
}

/// Measures the floor with one client.
pub fn floor(target: &Target, timeout: Duration) -> Result<Floor, String> {
    const ROUNDS: usize = 300;
    let query = Query {
        mix: 0,
        number: 0,
        form: Form::Ask,
        text: "ASK {}".to_owned(),
    };
    let mut session = target.connect(std::slice::from_ref(&query), timeout)?;
    let mut ask = Vec::with_capacity(ROUNDS);
    let mut empty = Vec::new();
    for _ in 0..ROUNDS {
        let before = Instant::now();
        session.ask(0, &query, |_| ())?;
        ask.push(before.elapsed().as_secs_f64() * 1000.0);
        let before = Instant::now();
        if session.empty_statement()? {
            empty.push(before.elapsed().as_secs_f64() * 1000.0);
        }
    }
    ask.sort_by(f64::total_cmp);
    empty.sort_by(f64::total_cmp);
    Ok(Floor {
        empty: (!empty.is_empty()).then(|| percentile(&empty, 50)),
        ask: percentile(&ask, 50),
    })
}

/// The value that so many percent of the values, given in increasing order, do not exceed.
pub fn percentile(values: &[f64], percent: usize) -> f64 {
    values[(values.len() * percent).div_ceil(100).max(1) - 1]
}

/// The mean of some values.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles() {
        let values: Vec<f64> = (1..=200).map(f64::from).collect();
        assert_eq!(percentile(&values, 50), 100.0);
        assert_eq!(percentile(&values, 99), 198.0);
        assert_eq!(percentile(&values, 100), 200.0);
        assert_eq!(percentile(&[7.0], 1), 7.0);
    }

    #[test]
    fn starts_of_mixes() {
        let log: Vec<Query> = [0, 0, 1, 1, 1, 4]
            .map(|mix| Query {
                mix,
                number: 1,
                form: Form::Ask,
                text: String::new(),
            })
            .to_vec();
        assert_eq!(mix_starts(&log), [0, 2, 5]);
    }
}
