//! Makes the data and the queries of the Berlin SPARQL Benchmark.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::time::Instant;

use pgquad_bsbm::model::Model;
use pgquad_bsbm::queries::Mix;
use pgquad_bsbm::{data, pgbench};

const USAGE: &str = "usage: bsbm data|log|pgbench [OPTION..]
  data     the triples, as N-Triples with the types of the types above (about 360 for each product)
  log      a log of queries: {\"mix\", \"pos\", \"query_nr\", \"sparql\"} a line
  pgbench  tables and functions that draw the parameters of the pgbench scripts, as SQL
options
  --products N    the scale (284: 100 thousand triples, 2785: a million, 28480: ten million)
  --seed N        seed of the data (1)
  --mix NAME      explore or bi (explore)
  --mixes N       how many mixes to log (50)
  --log-seed N    seed of the queries' parameters (1)
  --out FILE      where to write (standard output)";

struct Arguments {
    products: usize,
    seed: u64,
    mix: &'static Mix,
    mixes: usize,
    log_seed: u64,
    out: Option<PathBuf>,
}

impl Arguments {
    fn parse(mut words: impl Iterator<Item = String>) -> Option<Self> {
        let mut parsed = Self {
            products: 0,
            seed: 1,
            mix: Mix::named("explore")?,
            mixes: 50,
            log_seed: 1,
            out: None,
        };
        while let Some(option) = words.next() {
            let value = words.next()?;
            match option.as_str() {
                "--products" => parsed.products = value.parse().ok()?,
                "--seed" => parsed.seed = value.parse().ok()?,
                "--mix" => parsed.mix = Mix::named(&value)?,
                "--mixes" => parsed.mixes = value.parse().ok()?,
                "--log-seed" => parsed.log_seed = value.parse().ok()?,
                "--out" => parsed.out = Some(value.into()),
                _ => return None,
            }
        }
        (parsed.products > 0).then_some(parsed)
    }

    fn output(&self) -> std::io::Result<Box<dyn Write>> {
        Ok(match &self.out {
            Some(path) => Box::new(BufWriter::with_capacity(1 << 20, File::create(path)?)),
            None => Box::new(BufWriter::with_capacity(1 << 20, std::io::stdout().lock())),
        })
    }
}

fn main() {
    let mut words = std::env::args().skip(1);
    let verb = words.next().unwrap_or_default();
    let Some(arguments) = Arguments::parse(words) else {
        eprintln!("{USAGE}");
        std::process::exit(2);
    };
    let model = Model::new(arguments.seed, arguments.products);
    let done = arguments.output().and_then(|mut out| match verb.as_str() {
        "data" => {
            let started = Instant::now();
            let triples = data::write(&model, &mut out)?;
            let seconds = started.elapsed().as_secs_f64();
            eprintln!(
                "{triples} triples in {seconds:.2} s, {:.0} a second",
                triples as f64 / seconds
            );
            Ok(())
        }
        "log" => arguments
            .mix
            .write_log(&model, arguments.log_seed, arguments.mixes, &mut out),
        "pgbench" => {
            out.write_all(pgbench::schema(&model).as_bytes())?;
            out.flush()
        }
        _ => {
            eprintln!("{USAGE}");
            std::process::exit(2);
        }
    });
    if let Err(error) = done {
        eprintln!("bsbm: {error}");
        std::process::exit(1);
    }
}
