//! Answers and whether two of them agree.

use std::collections::{BTreeMap, BTreeSet};

use oxrdf::Term;

pub use pgquad_test_database::Row;

/// Blank nodes up to which all mappings between those of two answers are tried.
pub const MOST_BLANKS: usize = 6;

/// Rows with the number of times that each is there.
pub type Bag = BTreeMap<Vec<String>, usize>;

/// How the rows of one bag have to be those of the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// The same rows, each as many times.
    Same,
    /// The given ones are among the expected ones, and this many.
    Part(usize),
    /// The same rows, each given at least once and at most as many times as expected.
    Reduced,
}

/// Whether the given rows are as expected, under some one-to-one mapping of blank nodes.
pub fn agree(expected: &[Row], given: &[Row], relation: Relation) -> bool {
    let from: Vec<String> = blanks(expected).into_iter().collect();
    let to: Vec<String> = blanks(given).into_iter().collect();
    if from.len() < to.len() {
        return false;
    }
    let expected = bag(expected, &BTreeMap::new());
    // The mapping goes from the given blank nodes to the expected ones, of which a part may not be given.
    let mut mapping = BTreeMap::new();
    search(&to, &from, &mut mapping, &mut |mapping| {
        holds(&expected, &bag(given, mapping), relation)
    })
}

fn search(
    of: &[String],
    among: &[String],
    mapping: &mut BTreeMap<String, String>,
    test: &mut impl FnMut(&BTreeMap<String, String>) -> bool,
) -> bool {
    let Some((first, rest)) = of.split_first() else {
        return test(mapping);
    };
    for candidate in among {
        if mapping.values().any(|taken| taken == candidate) {
            continue;
        }
        mapping.insert(first.clone(), candidate.clone());
        if search(rest, among, mapping, test) {
            return true;
        }
        mapping.remove(first);
    }
    false
}

/// The labels of the blank nodes of an answer.
pub fn blanks(rows: &[Row]) -> BTreeSet<String> {
    rows.iter()
        .flatten()
        .filter_map(|term| match term {
            Some(Term::BlankNode(node)) => Some(node.to_string()),
            _ => None,
        })
        .collect()
}

fn bag(rows: &[Row], mapping: &BTreeMap<String, String>) -> Bag {
    let mut bag = Bag::new();
    for row in rows {
        let key = row
            .iter()
            .map(|term| match term {
                None => "-".to_owned(),
                Some(term @ Term::BlankNode(_)) => {
                    let label = term.to_string();
                    mapping.get(&label).cloned().unwrap_or(label)
                }
                Some(term) => term.to_string(),
            })
            .collect();
        *bag.entry(key).or_default() += 1;
    }
    bag
}

fn holds(expected: &Bag, given: &Bag, relation: Relation) -> bool {
    let within = || {
        given
            .iter()
            .all(|(row, n)| expected.get(row).is_some_and(|most| n <= most))
    };
    match relation {
        Relation::Same => expected == given,
        Relation::Part(count) => given.values().sum::<usize>() == count && within(),
        Relation::Reduced => given.len() == expected.len() && within(),
    }
}

/// The rows as lines, in no order.
pub fn shown(rows: &[Row]) -> String {
    let mut lines: Vec<String> = rows
        .iter()
        .map(|row| {
            let terms: Vec<String> = row
                .iter()
                .map(|term| term.as_ref().map_or("-".to_owned(), Term::to_string))
                .collect();
            format!("    {}", terms.join(" "))
        })
        .collect();
    lines.sort();
    format!("{} rows\n{}", rows.len(), lines.join("\n"))
}
