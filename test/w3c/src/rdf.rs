//! The suites of the RDF 1.1 formats: documents that have to load, that must not, and what others have to give.

use oxrdf::{GraphName, Term};
use oxrdfio::{RdfFormat, RdfParser};
use postgres::error::SqlState;

use crate::answer::{same_bag, Answer, Row};
use crate::database::Database;
use crate::manifest::{File, Test};
use crate::tests::Outcome;

/// Directory of each suite, and the name of its format.
pub const SUITES: [(&str, &str); 4] = [
    ("rdf-n-triples", "nt"),
    ("rdf-n-quads", "nquads"),
    ("rdf-turtle", "turtle"),
    ("rdf-trig", "trig"),
];

/// Runs a test of a document in this format.
pub fn run(test: &Test, format: &str, database: &mut Database) -> Outcome {
    let Some(action) = &test.action else {
        return Outcome::Failed("no document".to_owned());
    };
    let bytes = match std::fs::read(&action.path) {
        Ok(bytes) => bytes,
        Err(error) => return Outcome::Failed(error.to_string()),
    };
    let mut session = database.begin();
    let loaded = match String::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => session.load_text(&text, format, &action.iri),
        // What no text of PostgreSQL can hold comes from a file.
        _ => session.load_file_of_server(&action.path, format, &action.iri),
    };
    let negative = test.class.contains("Negative");
    match (loaded, negative) {
        (Ok(_), true) => Outcome::Failed("loaded, but it is malformed".to_owned()),
        (Err(error), true) => match error.code {
            Some(SqlState::INVALID_TEXT_REPRESENTATION) => Outcome::Passed,
            _ => Outcome::Failed(error.message),
        },
        (Err(error), false) => Outcome::Failed(error.message),
        (Ok(_), false) => match (&test.result, session.quads()) {
            (_, Err(error)) => Outcome::Failed(error.message),
            // The count of a document that only has to load is what another parser finds in it.
            (None, Ok(given)) => compare(&quads(action, format), &given),
            (Some(result), Ok(given)) => compare(&quads(result, "nquads"), &given),
        },
    }
}

fn compare(expected: &[Row], given: &[Row]) -> Outcome {
    if same_bag(expected, given) {
        return Outcome::Passed;
    }
    let shown = |rows: &[Row]| Answer::Graph(rows.to_vec());
    let difference = shown(expected).difference(&shown(given), false);
    Outcome::Failed(difference.unwrap_or_else(|| "not the same quads".to_owned()))
}

/// The quads of a document, each once; the graph last, `None` for the default graph.
fn quads(file: &File, format: &str) -> Vec<Row> {
    let bytes = std::fs::read(&file.path).unwrap_or_else(|e| panic!("{}: {e}", file.iri));
    let format = match format {
        "nt" => RdfFormat::NTriples,
        "nquads" => RdfFormat::NQuads,
        "turtle" => RdfFormat::Turtle,
        _ => RdfFormat::TriG,
    };
    let mut rows: Vec<Row> = Vec::new();
    for quad in RdfParser::from_format(format)
        .with_base_iri(&file.iri)
        .expect("a valid base IRI")
        .for_slice(&bytes)
    {
        let quad = quad.unwrap_or_else(|error| panic!("{}: {error}", file.iri));
        let row = vec![
            Some(Term::from(quad.subject)),
            Some(quad.predicate.into()),
            Some(lower_case_language(quad.object)),
            match quad.graph_name {
                GraphName::NamedNode(name) => Some(name.into()),
                GraphName::BlankNode(node) => Some(node.into()),
                GraphName::DefaultGraph => None,
            },
        ];
        if !rows.contains(&row) {
            rows.push(row);
        }
    }
    rows
}

/// Language tags are compared without regard to case (RDF 1.1 Concepts section 3.3); the store keeps them in lower
/// case.
fn lower_case_language(term: Term) -> Term {
    match &term {
        Term::Literal(literal) => match literal.language() {
            Some(tag) => oxrdf::Literal::new_language_tagged_literal_unchecked(
                literal.value(),
                tag.to_ascii_lowercase(),
            )
            .into(),
            None => term,
        },
        _ => term,
    }
}
