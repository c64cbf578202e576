//! Runs the W3C test suites of SPARQL 1.1 and of the RDF 1.1 formats against a PostgreSQL server with pgquad, reading
//! their own manifests.
//!
//! Answers are compared as bags, in order where the query asks for one, with blank nodes up to isomorphism. Each test
//! runs in a transaction that is rolled back. Environment: PGHOST, PGPORT, PGUSER, PGDATABASE; PGQUAD_SHARED (default
//! `../shared`).

mod answer;
mod database;
mod endpoint;
mod manifest;
mod rdf;
mod tests;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

use database::Database;
use manifest::Test;
use tests::{run, Outcome};

fn main() -> ExitCode {
    let shared = std::env::var_os("PGQUAD_SHARED").unwrap_or_else(|| "../shared".into());
    let suites = PathBuf::from(shared).join("w3c");
    if !suites.is_dir() {
        println!("SKIPPED: ../shared/w3c not found");
        return ExitCode::from(77);
    }
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let mut database = Database::create();
    let mut totals = [0; 3];
    let mut directories: BTreeMap<String, [usize; 3]> = BTreeMap::new();
    let sparql = manifest::read_sparql(&suites.join("sparql11"));
    let mut tests: Vec<(Test, Option<&str>)> = sparql.into_iter().map(|t| (t, None)).collect();
    for (directory, format) in rdf::SUITES {
        let documents = manifest::read_rdf(&suites.join("rdf11"), directory);
        tests.extend(documents.into_iter().map(|t| (t, Some(format))));
    }
    for (test, format) in tests {
        let name = format!("{}/{}", test.directory, test.name);
        if !wanted.is_empty() && !wanted.iter().any(|w| *w == test.directory || *w == name) {
            continue;
        }
        let outcome = match format {
            Some(format) => rdf::run(&test, format, &mut database),
            None => run(&test, &mut database),
        };
        let place = report(&name, outcome);
        totals[place] += 1;
        directories.entry(test.directory).or_default()[place] += 1;
    }
    database.drop();
    for (directory, [passed, failed, excluded]) in directories {
        println!("{directory}: {passed} passed, {failed} failed, {excluded} excluded");
    }
    let [passed, failed, excluded] = totals;
    println!("{passed} passed, {failed} failed, {excluded} skipped");
    ExitCode::from(u8::from(failed > 0))
}

/// Prints the outcome; gives its place in the totals.
fn report(name: &str, outcome: Outcome) -> usize {
    match outcome {
        Outcome::Passed => {
            println!("PASS w3c/{name}");
            0
        }
        Outcome::Failed(why) => {
            println!("FAIL w3c/{name}: {why}");
            1
        }
        Outcome::Excluded(why) => {
            println!("EXCLUDED w3c/{name}: {why}");
            2
        }
    }
}
