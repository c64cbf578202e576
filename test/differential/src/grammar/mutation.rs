//! Requests of the grammar with words taken out, doubled, exchanged or replaced: most are no SPARQL, the others ask for
//! what the grammar would not.

use super::query::query;
use super::{choice, Flavour};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{select, Index};

/// A change of a list of words.
#[derive(Clone, Debug)]
enum Change {
    Remove(Index),
    Double(Index),
    Exchange(Index, Index),
    Replace(Index, &'static str),
    Insert(Index, &'static str),
}

/// Words that the grammar does not use, or not in such places.
const WORDS: [&str; 46] = [
    "?a",
    "?b",
    "*",
    "(",
    ")",
    "{",
    "}",
    ".",
    ";",
    ",",
    "[",
    "]",
    "_:b",
    ":p",
    ":p*",
    "(:p+)?",
    "!:p",
    "\"quo'te\\\"\\\\\"",
    "'''a\nb'''@en",
    "1e400",
    "\"\\u0001$1\"",
    "DISTINCT",
    "REDUCED",
    "OPTIONAL",
    "UNION",
    "MINUS",
    "SERVICE <http://127.0.0.1:1/>",
    "SERVICE SILENT ?a",
    "BIND(BNODE(\"x\") AS ?z)",
    "FILTER(:f(?a))",
    "GRAPH ?g",
    "GROUP BY ?a",
    "HAVING (COUNT(?a) > 1)",
    "ORDER BY RAND()",
    "LIMIT 99999999999999999999",
    "OFFSET 1",
    "VALUES ?a { UNDEF }",
    "FROM :g",
    "(SAMPLE(?a) AS ?s)",
    "(GROUP_CONCAT(DISTINCT ?a; SEPARATOR=\"'\") AS ?c)",
    "(COUNT(DISTINCT *) AS ?n)",
    "EXISTS { }",
    "NOT EXISTS { ?a ?b ?c }",
    "DESCRIBE *",
    "xsd:long(?a)",
    "<http://e/it's>",
];

/// A text that may or may not be a query.
pub fn text() -> BoxedStrategy<String> {
    let place = any::<Index>;
    let word = || select(&WORDS[..]);
    let change = choice(vec![
        (1, place().prop_map(Change::Remove).boxed()),
        (1, place().prop_map(Change::Double).boxed()),
        (
            1,
            (place(), place())
                .prop_map(|(a, b)| Change::Exchange(a, b))
                .boxed(),
        ),
        (
            2,
            (place(), word())
                .prop_map(|(a, w)| Change::Replace(a, w))
                .boxed(),
        ),
        (
            3,
            (place(), word())
                .prop_map(|(a, w)| Change::Insert(a, w))
                .boxed(),
        ),
    ]);
    (query(Flavour::Canonical), vec(change, 1..3))
        .prop_map(|(query, changes)| {
            let text = query.text();
            let (prefixes, rest) = text.split_at(crate::syntax::PREFIXES.len());
            let mut words: Vec<&str> = rest.split(' ').filter(|word| !word.is_empty()).collect();
            changes.iter().for_each(|change| change.make(&mut words));
            format!("{prefixes}{}", words.join(" "))
        })
        .boxed()
}

impl Change {
    fn make(&self, words: &mut Vec<&str>) {
        if words.is_empty() {
            return;
        }
        let count = words.len();
        match self {
            Self::Remove(place) => {
                words.remove(place.index(count));
            }
            Self::Double(place) => words.insert(place.index(count), words[place.index(count)]),
            Self::Exchange(a, b) => words.swap(a.index(count), b.index(count)),
            Self::Replace(place, word) => words[place.index(count)] = word,
            Self::Insert(place, word) => words.insert(place.index(count + 1), word),
        }
    }
}
