//! Answers, as expected and as given, and whether they are the same.

use std::collections::HashMap;

use oxrdf::vocab::{rdf, xsd};
use oxrdf::{Graph, NamedNodeRef, Term, TermRef, Variable};
use oxrdfio::{RdfFormat, RdfParser};
use sparesults::{QueryResultsFormat, QueryResultsParser, SliceQueryResultsParserOutput as Output};

use crate::endpoint::read;
use crate::manifest::File;

pub use pgquad_test_database::Row;

/// An answer.
#[derive(Clone, Debug)]
pub enum Answer {
    /// Of ASK.
    Boolean(bool),
    /// Of SELECT.
    Solutions {
        /// Names of the columns.
        variables: Vec<String>,
        /// The solutions.
        rows: Vec<Row>,
    },
    /// Of CONSTRUCT: subject, predicate, object.
    Graph(Vec<Row>),
}

const RS: &str = "http://www.w3.org/2001/sw/DataAccess/tests/result-set#";

impl Answer {
    /// Reads a file of the suite, with some texts replaced.
    pub fn read(file: &File, replaced: &[(String, String)]) -> Self {
        let text = read(file, replaced);
        let bytes = text.as_bytes();
        let extension = file.path.extension().and_then(|e| e.to_str());
        match extension.unwrap_or_default() {
            "srx" => Self::parse(bytes, QueryResultsFormat::Xml),
            "srj" => Self::parse(bytes, QueryResultsFormat::Json),
            "tsv" => Self::parse(bytes, QueryResultsFormat::Tsv),
            _ => {
                let graph = parse_graph(file);
                Self::of_result_set(&graph).unwrap_or_else(|| {
                    Self::Graph(
                        graph
                            .iter()
                            .map(|t| {
                                vec![
                                    Some(Term::from(t.subject.into_owned())),
                                    Some(t.predicate.into_owned().into()),
                                    Some(t.object.into_owned()),
                                ]
                            })
                            .collect(),
                    )
                })
            }
        }
    }

    /// Reads a document in one of the result formats.
    pub fn parse(bytes: &[u8], format: QueryResultsFormat) -> Self {
        let parsed = QueryResultsParser::from_format(format)
            .for_slice(bytes)
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(bytes)));
        match parsed {
            Output::Boolean(value) => Self::Boolean(value),
            Output::Solutions(solutions) => {
                let variables = solutions.variables().to_vec();
                let rows = solutions
                    .map(|solution| {
                        let solution = solution.unwrap_or_else(|error| panic!("{error}"));
                        variables.iter().map(|v| solution.get(v).cloned()).collect()
                    })
                    .collect();
                Self::Solutions {
                    variables: names(&variables),
                    rows,
                }
            }
        }
    }

    /// A result set written as RDF (vocabulary of the test suite).
    fn of_result_set(graph: &Graph) -> Option<Self> {
        let rs = |name: &str| format!("{RS}{name}");
        let class = rs("ResultSet");
        let set =
            graph.subject_for_predicate_object(rdf::TYPE, NamedNodeRef::new_unchecked(&class))?;
        let text = |term: Option<TermRef<'_>>| match term {
            Some(TermRef::Literal(literal)) => Some(literal.value().to_owned()),
            _ => None,
        };
        if let Some(value) = text(
            graph.object_for_subject_predicate(set, NamedNodeRef::new_unchecked(&rs("boolean"))),
        ) {
            return Some(Self::Boolean(value == "true"));
        }
        let mut variables: Vec<String> = graph
            .objects_for_subject_predicate(set, NamedNodeRef::new_unchecked(&rs("resultVariable")))
            .filter_map(|term| text(Some(term)))
            .collect();
        variables.sort();
        let mut numbered = Vec::new();
        for solution in
            graph.objects_for_subject_predicate(set, NamedNodeRef::new_unchecked(&rs("solution")))
        {
            let TermRef::BlankNode(solution) = solution else {
                continue;
            };
            let index =
                text(graph.object_for_subject_predicate(
                    solution,
                    NamedNodeRef::new_unchecked(&rs("index")),
                ));
            let mut row = vec![None; variables.len()];
            for binding in graph.objects_for_subject_predicate(
                solution,
                NamedNodeRef::new_unchecked(&rs("binding")),
            ) {
                let TermRef::BlankNode(binding) = binding else {
                    continue;
                };
                let part = |name: &str| {
                    graph.object_for_subject_predicate(
                        binding,
                        NamedNodeRef::new_unchecked(&rs(name)),
                    )
                };
                let variable = text(part("variable"))?;
                let place = variables.iter().position(|v| *v == variable)?;
                row[place] = part("value").map(TermRef::into_owned);
            }
            numbered.push((index.and_then(|i| i.parse().ok()).unwrap_or(0_u64), row));
        }
        numbered.sort_by_key(|(index, _)| *index);
        Some(Self::Solutions {
            variables,
            rows: numbered.into_iter().map(|(_, row)| row).collect(),
        })
    }

    /// What is different in `given`, `None` when nothing is.
    pub fn difference(&self, given: &Self, ordered: bool) -> Option<String> {
        let same = match (self, given) {
            (Self::Boolean(a), Self::Boolean(b)) => a == b,
            (Self::Graph(a), Self::Graph(b)) => same_bag(a, b),
            (
                Self::Solutions { variables, rows },
                Self::Solutions {
                    variables: given_variables,
                    rows: given_rows,
                },
            ) => {
                let mut places = Vec::new();
                for variable in variables {
                    match given_variables.iter().position(|v| v == variable) {
                        Some(place) => places.push(place),
                        None => return Some(format!("no column {variable}")),
                    }
                }
                if given_variables.len() != variables.len() {
                    return Some(format!("columns {given_variables:?}, not {variables:?}"));
                }
                let given: Vec<Row> = given_rows
                    .iter()
                    .map(|row| places.iter().map(|p| row[*p].clone()).collect())
                    .collect();
                if ordered {
                    same_sequence(rows, &given)
                } else {
                    same_bag(rows, &given)
                }
            }
            _ => return Some(format!("a different kind of answer: {}", given.shown())),
        };
        (!same).then(|| format!("expected {}\n  got {}", self.shown(), given.shown()))
    }

    fn shown(&self) -> String {
        match self {
            Self::Boolean(value) => value.to_string(),
            Self::Graph(rows) | Self::Solutions { rows, .. } => {
                let mut lines: Vec<String> = rows
                    .iter()
                    .map(|row| {
                        let terms: Vec<String> = row
                            .iter()
                            .map(|t| t.as_ref().map_or("-".to_owned(), Term::to_string))
                            .collect();
                        terms.join(" ")
                    })
                    .collect();
                lines.sort();
                format!("{} rows: {}", rows.len(), lines.join(" | "))
            }
        }
    }
}

/// Parses a file of data.
pub fn parse_graph(file: &File) -> Graph {
    let bytes = std::fs::read(&file.path).unwrap_or_else(|e| panic!("{}: {e}", file.iri));
    let triples: Vec<oxrdf::Triple> = RdfParser::from_format(format_of(file))
        .with_base_iri(&file.iri)
        .expect("a valid base IRI")
        .for_slice(&bytes)
        .map(|quad| {
            quad.unwrap_or_else(|error| panic!("{}: {error}", file.iri))
                .into()
        })
        .collect();
    triples.iter().map(|t| t.as_ref()).collect()
}

/// The format of a file of data, by its name.
pub fn format_of(file: &File) -> RdfFormat {
    file.path
        .extension()
        .and_then(|e| e.to_str())
        .and_then(RdfFormat::from_extension)
        .unwrap_or(RdfFormat::Turtle)
}

fn names(variables: &[Variable]) -> Vec<String> {
    variables.iter().map(|v| v.as_str().to_owned()).collect()
}

/// A one-to-one relation between blank nodes of two answers.
#[derive(Clone, Default)]
struct Mapping {
    there: HashMap<String, String>,
    back: HashMap<String, String>,
}

impl Mapping {
    /// Whether the rows are the same under the relation, extended as need be; unchanged if not.
    fn unify(&mut self, a: &Row, b: &Row) -> bool {
        let before = self.clone();
        let same = a.len() == b.len()
            && a.iter().zip(b).all(|(a, b)| match (a, b) {
                (Some(Term::BlankNode(a)), Some(Term::BlankNode(b))) => {
                    let (a, b) = (a.as_str(), b.as_str());
                    match (self.there.get(a), self.back.get(b)) {
                        (None, None) => {
                            self.there.insert(a.to_owned(), b.to_owned());
                            self.back.insert(b.to_owned(), a.to_owned());
                            true
                        }
                        (Some(there), Some(back)) => there == b && back == a,
                        _ => false,
                    }
                }
                (Some(a), Some(b)) => same_term(a, b),
                (a, b) => a == b,
            });
        if !same {
            *self = before;
        }
        same
    }
}

/// Whether the terms are the same, or numbers of one datatype and value: the specification does not say how a computed
/// number is written.
fn same_term(a: &Term, b: &Term) -> bool {
    if a == b {
        return true;
    }
    let (Term::Literal(a), Term::Literal(b)) = (a, b) else {
        return false;
    };
    if a.datatype() != b.datatype() {
        return false;
    }
    if a.datatype() == xsd::DECIMAL {
        return plain_decimal(a.value()) == plain_decimal(b.value());
    }
    (a.datatype() == xsd::DOUBLE || a.datatype() == xsd::FLOAT)
        && match (a.value().parse::<f64>(), b.value().parse::<f64>()) {
            (Ok(a), Ok(b)) => a == b,
            _ => false,
        }
}

/// A decimal without sign `+` and without zeros that say nothing.
fn plain_decimal(text: &str) -> String {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", text.strip_prefix('+').unwrap_or(text)),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let (whole, fraction) = (
        whole.trim_start_matches('0'),
        fraction.trim_end_matches('0'),
    );
    if whole.is_empty() && fraction.is_empty() {
        return "0".to_owned();
    }
    format!("{sign}{whole}.{fraction}")
}

/// Whether the rows are the same, in any order and as many times, up to the names of blank nodes.
pub fn same_bag(a: &[Row], b: &[Row]) -> bool {
    if a.len() != b.len() {
        return false;
    }
    // Rows without blank nodes first: they leave no choice.
    let mut a: Vec<&Row> = a.iter().collect();
    a.sort_by_key(|row| blank_nodes(row));
    search(&a, &mut b.iter().map(Some).collect(), &Mapping::default())
}

fn search(a: &[&Row], b: &mut Vec<Option<&Row>>, mapping: &Mapping) -> bool {
    let Some((first, rest)) = a.split_first() else {
        return true;
    };
    for place in 0..b.len() {
        let Some(row) = b[place] else { continue };
        let mut extended = mapping.clone();
        if extended.unify(first, row) {
            b[place] = None;
            if search(rest, b, &extended) {
                return true;
            }
            b[place] = Some(row);
            if blank_nodes(first) == 0 {
                return false;
            }
        }
    }
    false
}

fn same_sequence(a: &[Row], b: &[Row]) -> bool {
    let mut mapping = Mapping::default();
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| mapping.unify(a, b))
}

fn blank_nodes(row: &Row) -> usize {
    row.iter()
        .filter(|term| matches!(term, Some(Term::BlankNode(_))))
        .count()
}

#[cfg(test)]
mod checks {
    use super::*;
    use oxrdf::{BlankNode, Literal};

    fn row(terms: &[&str]) -> Row {
        terms
            .iter()
            .map(|t| match t.strip_prefix("_:") {
                Some(label) => Some(BlankNode::new_unchecked(label).into()),
                None => Some(Literal::new_simple_literal(*t).into()),
            })
            .collect()
    }

    #[test]
    fn bags_count_and_match_blank_nodes() {
        let a = [row(&["_:a", "1"]), row(&["_:b", "2"]), row(&["_:a", "3"])];
        let b = [row(&["_:y", "3"]), row(&["_:x", "2"]), row(&["_:y", "1"])];
        assert!(same_bag(&a, &b));
        let c = [row(&["_:y", "3"]), row(&["_:y", "2"]), row(&["_:y", "1"])];
        assert!(!same_bag(&a, &c));
        assert!(!same_bag(&c, &a));
        assert!(!same_bag(
            &[row(&["1"]), row(&["1"])],
            &[row(&["1"]), row(&["2"])]
        ));
        let number = |text| vec![Some(Literal::new_typed_literal(text, xsd::DECIMAL).into())];
        assert!(same_bag(&[number("02.50")], &[number("+2.5")]));
        assert!(!same_bag(&[number("2.5")], &[number("-2.5")]));
        assert!(!same_sequence(
            &[row(&["1"]), row(&["2"])],
            &[row(&["2"]), row(&["1"])]
        ));
    }
}
