//! The command line.

use std::path::PathBuf;
use std::time::Duration;

use crate::http::Endpoint;
use crate::measure::Until;
use crate::target::{Place, Target};

const USAGE: &str = "usage: replay --log FILE TARGET.. [OPTION..]
targets
  --postgres NAME=SETTINGS  this store: a PostgreSQL connection string
  --http NAME=URL           a SPARQL endpoint; the URL's parameters go with each query
  --http-close NAME=URL     the same with a new connection for each query
options
  --clients N[,N..]         how many clients ask at a time (1)
  --rounds N                how often each target has its turn (3)
  --seconds N               how long a turn is (10)
  --passes N                a turn is N times the log instead
  --warm-mixes N            mixes that a client asks before the clock runs (2)
  --timeout N               seconds after which a query counts as failed (60)
  --check-every N           compare the answers to each Nth query first; 0: do not (1)
  --no-floor                do not measure empty round trips";

/// What is asked for.
pub struct Arguments {
    /// The log.
    pub log: PathBuf,
    /// The stores, in order; answers are compared with the first one's.
    pub targets: Vec<Target>,
    /// Numbers of clients.
    pub clients: Vec<usize>,
    /// Turns of each target.
    pub rounds: usize,
    /// The end of a turn.
    pub until: Until,
    /// Mixes before the clock runs.
    pub warm_mixes: usize,
    /// The longest time to wait for an answer.
    pub timeout: Duration,
    /// Which queries are compared; 0 for none.
    pub check_every: usize,
    /// Whether to measure empty round trips.
    pub floor: bool,
}

impl Arguments {
    /// Reads the command line.
    pub fn parse(mut words: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut log = None;
        let mut parsed = Self {
            log: PathBuf::new(),
            targets: Vec::new(),
            clients: vec![1],
            rounds: 3,
            until: Until::Elapsed(Duration::from_secs(10)),
            warm_mixes: 2,
            timeout: Duration::from_secs(60),
            check_every: 1,
            floor: true,
        };
        while let Some(option) = words.next() {
            if option == "--no-floor" {
                parsed.floor = false;
                continue;
            }
            let value = words.next().ok_or_else(|| format!("{option}?\n{USAGE}"))?;
            match option.as_str() {
                "--log" => log = Some(value.into()),
                "--postgres" => {
                    let place = |settings: &str| Ok(Place::Postgres(settings.to_owned()));
                    parsed.targets.push(Target::parse(&value, place)?);
                }
                "--http" | "--http-close" => {
                    let keep_alive = option == "--http";
                    let place = |url: &str| Ok(Place::Http(Endpoint::new(url, keep_alive)?));
                    parsed.targets.push(Target::parse(&value, place)?);
                }
                "--clients" => {
                    let counts: Result<Vec<usize>, String> =
                        value.split(',').map(positive).collect();
                    parsed.clients = counts?;
                }
                "--rounds" => parsed.rounds = number(&value)?,
                "--seconds" => {
                    parsed.until = Until::Elapsed(Duration::from_secs(positive(&value)? as u64))
                }
                "--passes" => parsed.until = Until::Passes(positive(&value)?),
                "--warm-mixes" => parsed.warm_mixes = number(&value)?,
                "--timeout" => parsed.timeout = Duration::from_secs(positive(&value)? as u64),
                "--check-every" => parsed.check_every = number(&value)?,
                _ => return Err(format!("{option}?\n{USAGE}")),
            }
        }
        parsed.log = log.ok_or(USAGE)?;
        if parsed.targets.is_empty() {
            return Err(USAGE.to_owned());
        }
        Ok(parsed)
    }
}

fn number(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| format!("{text}: not a number"))
}

fn positive(text: &str) -> Result<usize, String> {
    number(text).and_then(|n| {
        if n > 0 {
            Ok(n)
        } else {
            Err(format!("{text}: not positive"))
        }
    })
}
