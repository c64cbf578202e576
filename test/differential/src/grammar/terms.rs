//! Terms and graphs.

use super::{choice, Flavour};
use crate::syntax::{Node, Var, VARS};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

/// A quad in the terms of Turtle; no graph: the default graph.
#[derive(Clone, Debug)]
pub struct Quad {
    /// Subject, predicate, object.
    pub triple: [&'static str; 3],
    /// Graph.
    pub graph: Option<&'static str>,
}

/// Nodes of the graphs.
const NODES: [&str; 4] = [":s", ":t", ":u", ":p"];
/// Predicates.
const PREDICATES: [&str; 3] = [":p", ":q", ":r"];
/// Named graphs.
const GRAPHS: [&str; 2] = [":g", ":h"];
/// Blank nodes of the data.
const BLANKS: [&str; 2] = ["_:x", "_:y"];
/// Literals whose lexical form is canonical. No doubles: engines write computed ones in different
/// ways, and to the reference the order of NaN is an error rather than false.
/// Times with a zone are more than 14 hours away from times without, here and in expressions. The order of closer ones
/// is not determined (XSD 1.1 part 2 section 3.3.7). That is an error, which the reference does not make of `=`.
const CANONICAL: [&str; 23] = [
    "1",
    "2",
    "\"a\"",
    "\"b\"",
    "\"\"",
    "true",
    "false",
    "0",
    "-3",
    "10",
    "\"a\"@en",
    "\"a\"@fr",
    "\"Ab c\"@en-gb",
    "\"1\"",
    "\"\u{e9}\u{1d4b3}y a\"",
    "\"1.5\"^^xsd:decimal",
    "\"-0.25\"^^xsd:decimal",
    "\"2020-01-01T00:00:00Z\"^^xsd:dateTime",
    "\"2021-06-01T00:00:00\"^^xsd:dateTime",
    "\"2019-12-31T19:00:00.5-05:00\"^^xsd:dateTime",
    "\"z\"^^:dt",
    "\"x\"^^xsd:integer",
    "\"\"^^xsd:boolean",
];
/// Literals of every kind but language strings and ill-typed booleans and numbers, whose effective boolean value the
/// reference does not know.
const LEXICAL: [&str; 19] = [
    "1",
    "\"01\"^^xsd:integer",
    "\"+1\"^^xsd:integer",
    "\"1.0\"^^xsd:decimal",
    "\"1\"^^xsd:boolean",
    "true",
    "\"1e0\"^^xsd:double",
    "\"1.0E0\"^^xsd:float",
    "\"0.10\"^^xsd:decimal",
    "\"-0\"^^xsd:double",
    "0",
    "\"2020-13-01T00:00:00Z\"^^xsd:dateTime",
    "\"2020-01-01T00:00:00Z\"^^xsd:dateTime",
    "\"2020-01-01T01:00:00+01:00\"^^xsd:dateTime",
    "\"2021-06-01T00:00:00.000\"^^xsd:dateTime",
    "\"a\"",
    "\"1\"^^:dt",
    "\"7\"^^xsd:int",
    "\"7\"^^xsd:unsignedByte",
];

fn literals(flavour: Flavour) -> BoxedStrategy<&'static str> {
    match flavour {
        Flavour::Canonical => select(&CANONICAL[..]).boxed(),
        Flavour::Lexical => select(&LEXICAL[..]).boxed(),
    }
}

/// An IRI.
pub fn iri() -> BoxedStrategy<&'static str> {
    choice(vec![
        (4, select(&NODES[..]).boxed()),
        (1, select(&GRAPHS[..]).boxed()),
    ])
}

/// A term that a query can name.
pub fn constant(flavour: Flavour) -> BoxedStrategy<&'static str> {
    choice(vec![(1, iri()), (1, literals(flavour))])
}

/// A literal.
pub fn literal(flavour: Flavour) -> BoxedStrategy<&'static str> {
    literals(flavour)
}

/// A predicate.
pub fn predicate() -> BoxedStrategy<&'static str> {
    select(&PREDICATES[..]).boxed()
}

/// The name of a graph, sometimes of one that is not there.
pub fn graph() -> BoxedStrategy<&'static str> {
    choice(vec![
        (6, select(&GRAPHS[..]).boxed()),
        (1, Just(":nowhere").boxed()),
    ])
}

/// A variable of the pool.
pub fn var() -> BoxedStrategy<Var> {
    (0..VARS).boxed()
}

/// A variable as a term of a pattern.
pub fn var_node() -> BoxedStrategy<Node> {
    var().prop_map(Node::Var).boxed()
}

/// A constant as a term of a pattern.
pub fn text_node(texts: BoxedStrategy<&'static str>) -> BoxedStrategy<Node> {
    texts.prop_map(|text| Node::Text(text.to_owned())).boxed()
}

fn quad(flavour: Flavour) -> impl Strategy<Value = Quad> {
    let subject = choice(vec![
        (5, select(&NODES[..]).boxed()),
        (1, select(&BLANKS[..]).boxed()),
    ]);
    let object = choice(vec![
        (3, select(&NODES[..]).boxed()),
        (1, select(&BLANKS[..]).boxed()),
        (1, select(&GRAPHS[..]).boxed()),
        (4, literals(flavour)),
    ]);
    let graph = choice(vec![
        (4, Just(None).boxed()),
        (2, select(&GRAPHS[..]).prop_map(Some).boxed()),
    ]);
    (subject, predicate(), object, graph).prop_map(|(s, p, o, graph)| Quad {
        triple: [s, p, o],
        graph,
    })
}

/// The data of a case.
pub fn data(flavour: Flavour) -> BoxedStrategy<Vec<Quad>> {
    vec(quad(flavour), 0..14).boxed()
}
