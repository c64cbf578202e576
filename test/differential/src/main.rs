//! Differential testing: random small graphs, random queries and updates, answered by pgquad and by an independent
//! engine.
//!
//! Every case has a number; the same seed and number give the same case. A case on which the engines differ is shrunk
//! before it is shown. Environment: PGHOST, PGPORT, PGUSER.

mod answer;
mod case;
mod grammar;
mod order;
mod reference;
mod server;
mod syntax;

use std::collections::BTreeMap;
use std::ops::Range;
use std::process::ExitCode;

use case::{Case, Outcome, Request};
use grammar::Flavour;
use proptest::prelude::*;
use proptest::strategy::{Union, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use server::Database;

/// Cases of a short run.
const CASES: u64 = 400;
/// Failures after which a run ends.
const MOST_FAILURES: usize = 10;
/// Attempts at a smaller case.
const SHRINKS: usize = 1500;

fn main() -> ExitCode {
    let (seed, numbers) = match arguments() {
        Ok(arguments) => arguments,
        Err(message) => {
            eprintln!("{message}\nusage: run [--cases N] [--seed S] [--only NUMBER]");
            return ExitCode::from(2);
        }
    };
    let mut database = Database::create();
    let cases = cases();
    let (mut passed, mut failed) = (0, 0);
    let mut left: BTreeMap<String, usize> = BTreeMap::new();
    for number in numbers {
        let mut tree = cases
            .new_tree(&mut runner(seed, number))
            .expect("every strategy gives a case");
        match tree.current().run(&mut database) {
            Outcome::Agreed => passed += 1,
            Outcome::Left(why) => *left.entry(why).or_default() += 1,
            Outcome::Differed(how) => {
                failed += 1;
                let (case, how) = shrink(tree.as_mut(), how, &mut database);
                report(seed, number, &case, &how);
                if failed == MOST_FAILURES {
                    println!("that is enough");
                    break;
                }
            }
        }
    }
    database.drop();
    for (why, count) in &left {
        println!("{count} cases not compared: {why}");
    }
    let skipped: usize = left.values().sum();
    println!("{passed} passed, {failed} failed, {skipped} skipped");
    ExitCode::from(u8::from(failed > 0))
}

fn arguments() -> Result<(u64, Range<u64>), String> {
    let (mut seed, mut numbers) = (1, 0..CASES);
    let mut arguments = std::env::args().skip(1);
    while let Some(option) = arguments.next() {
        let value: u64 = arguments
            .next()
            .and_then(|text| text.parse().ok())
            .ok_or_else(|| format!("{option} takes a number"))?;
        match option.as_str() {
            "--cases" => numbers = 0..value,
            "--seed" => seed = value,
            "--only" => numbers = value..value + 1,
            _ => return Err(format!("no such option: {option}")),
        }
    }
    Ok((seed, numbers))
}

/// A source of random numbers for the case with this number.
fn runner(seed: u64, number: u64) -> TestRunner {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    bytes[8..16].copy_from_slice(&number.to_le_bytes());
    TestRunner::new_with_rng(
        Config::default(),
        TestRng::from_seed(RngAlgorithm::ChaCha, &bytes),
    )
}

fn cases() -> BoxedStrategy<Case> {
    let of = |flavour: Flavour| {
        let request = Union::new_weighted(vec![
            (4, grammar::query(flavour).prop_map(Request::Query).boxed()),
            (
                1,
                grammar::update(flavour).prop_map(Request::Update).boxed(),
            ),
            (1, grammar::text().prop_map(Request::Text).boxed()),
        ]);
        (grammar::data(flavour), request)
            .prop_map(move |(data, request)| Case {
                flavour,
                data,
                request,
            })
            .boxed()
    };
    Union::new_weighted(vec![(2, of(Flavour::Canonical)), (1, of(Flavour::Lexical))]).boxed()
}

/// The smallest case found on which the engines still differ, and how.
fn shrink(
    tree: &mut dyn ValueTree<Value = Case>,
    mut how: String,
    database: &mut Database,
) -> (Case, String) {
    let mut smallest = tree.current();
    let mut smaller = tree.simplify();
    for _ in 0..SHRINKS {
        if !smaller {
            break;
        }
        let case = tree.current();
        match case.run(database) {
            Outcome::Differed(still) => {
                smallest = case;
                how = still;
                smaller = tree.simplify();
            }
            Outcome::Agreed | Outcome::Left(_) => smaller = tree.complicate(),
        }
    }
    (smallest, how)
}

fn report(seed: u64, number: u64, case: &Case, how: &str) {
    println!(
        "FAIL differential/{seed}-{number} ({:?})\n{}\n{}\n  {how}\n",
        case.flavour,
        case.nquads(),
        case.text()
    );
}
