//! Answers, and whether two of them say the same.

use std::cmp::Ordering;

use oxrdf::Term;
use oxrdfio::{RdfFormat, RdfParser};
use sparesults::{QueryResultsFormat, QueryResultsParser, SliceQueryResultsParserOutput as Output};

use crate::log::{Form, Query};

/// Share of the greater of two numbers by which they may differ: stores compute the last digits differently.
const RELATIVE_TOLERANCE: f64 = 1e-4;

type Row = Vec<Option<Term>>;

/// An answer: a bag of rows.
#[derive(Clone, Debug)]
pub struct Answer {
    variables: Vec<String>,
    rows: Vec<Row>,
}

impl Answer {
    /// Reads SPARQL JSON results, or N-Triples.
    pub fn parse(form: Form, bytes: &[u8]) -> Result<Self, String> {
        match form {
            Form::Select | Form::Ask => Self::solutions(bytes),
            Form::Construct | Form::Describe => Self::triples(bytes),
        }
    }

    fn solutions(bytes: &[u8]) -> Result<Self, String> {
        let parsed = QueryResultsParser::from_format(QueryResultsFormat::Json)
            .for_slice(bytes)
            .map_err(|e| e.to_string())?;
        match parsed {
            Output::Boolean(value) => Ok(Self {
                variables: vec!["answer".into()],
                rows: vec![vec![Some(oxrdf::Literal::from(value).into())]],
            }),
            Output::Solutions(solutions) => {
                let variables = solutions.variables().to_vec();
                let rows: Result<Vec<Row>, _> = solutions
                    .map(|solution| {
                        let solution = solution.map_err(|e| e.to_string())?;
                        Ok::<_, String>(
                            variables.iter().map(|v| solution.get(v).cloned()).collect(),
                        )
                    })
                    .collect();
                Ok(Self {
                    variables: variables.iter().map(|v| v.as_str().to_owned()).collect(),
                    rows: rows?,
                })
            }
        }
    }

    fn triples(bytes: &[u8]) -> Result<Self, String> {
        let rows: Result<Vec<Row>, _> = RdfParser::from_format(RdfFormat::NTriples)
            .for_slice(bytes)
            .map(|quad| {
                let quad = quad.map_err(|e| e.to_string())?;
                let triple = [quad.subject.into(), quad.predicate.into(), quad.object];
                Ok::<_, String>(triple.into_iter().map(Some).collect())
            })
            .collect();
        let mut rows = rows?;
        // A graph is a set; some stores send a triple for each solution that makes it.
        rows.sort_by(order);
        rows.dedup();
        Ok(Self {
            variables: ["subject", "predicate", "object"]
                .map(str::to_owned)
                .to_vec(),
            rows,
        })
    }

    /// What differs from another store's answer to the same query; `None` when they agree as bags. Where the query has
    /// a limit, rows that tie with the last one may differ.
    pub fn difference(&self, other: &Self, query: &Query) -> Option<String> {
        if self.rows.len() != other.rows.len() {
            return Some(format!(
                "{} rows, not {}",
                self.rows.len(),
                other.rows.len()
            ));
        }
        if self.variables.len() != other.variables.len() {
            return Some(format!(
                "columns {:?}, not {:?}",
                self.variables, other.variables
            ));
        }
        let key = tied_key(query).and_then(|name| self.variables.iter().position(|v| *v == name));
        let columns: Option<Vec<usize>> = self
            .variables
            .iter()
            .map(|name| other.variables.iter().position(|v| v == name))
            .collect();
        let Some(columns) = columns else {
            return Some(format!(
                "columns {:?}, not {:?}",
                self.variables, other.variables
            ));
        };
        let arranged: Vec<Row> = other
            .rows
            .iter()
            .map(|row| columns.iter().map(|&c| row[c].clone()).collect())
            .collect();
        if let (Some(key), Some(a), Some(b)) = (key, self.rows.last(), arranged.last()) {
            if !same(a[key].as_ref(), b[key].as_ref()) {
                return Some(format!("ends with {}, not {}", text(a), text(b)));
            }
        }
        let left = sorted(&self.rows, key);
        let right = sorted(&arranged, key);
        if left.len() != right.len() {
            return Some(format!(
                "{} rows before the last ties, not {}",
                left.len(),
                right.len()
            ));
        }
        left.iter()
            .zip(&right)
            .find(|(a, b)| {
                !a.iter()
                    .zip(b.iter())
                    .all(|(a, b)| same(a.as_ref(), b.as_ref()))
            })
            .map(|(a, b)| format!("{} instead of {}", text(a), text(b)))
    }
}

/// The variable by which rows at the end of a limited answer may tie: the first that ORDER BY names.
fn tied_key(query: &Query) -> Option<String> {
    let upper = query.text.to_ascii_uppercase();
    let order = upper.rfind("ORDER BY")?;
    upper[order..].find("LIMIT")?;
    let name = query.text[order..].split('?').nth(1)?;
    let end = name.find(|c: char| !c.is_alphanumeric() && c != '_');
    Some(name[..end.unwrap_or(name.len())].to_owned())
}

/// The rows in a fixed order, without those that tie with the last in the key.
fn sorted(rows: &[Row], key: Option<usize>) -> Vec<&Row> {
    let mut kept: Vec<&Row> = rows.iter().collect();
    if let (Some(key), Some(last)) = (key, rows.last()) {
        kept.retain(|row| !same(row[key].as_ref(), last[key].as_ref()));
    }
    kept.sort_by(|a, b| order(a, b));
    kept
}

/// Numbers come last, so that digits that stores round differently decide only among rows that are otherwise alike.
fn order(a: &Row, b: &Row) -> Ordering {
    let names = |row: &Row| -> Vec<String> {
        row.iter()
            .map(|t| {
                t.as_ref()
                    .filter(|t| number(t).is_none())
                    .map(Term::to_string)
                    .unwrap_or_default()
            })
            .collect()
    };
    let numbers = |row: &Row| -> Vec<f64> { row.iter().flatten().filter_map(number).collect() };
    names(a).cmp(&names(b)).then_with(|| {
        numbers(a)
            .partial_cmp(&numbers(b))
            .unwrap_or(Ordering::Equal)
    })
}

fn number(term: &Term) -> Option<f64> {
    match term {
        Term::Literal(literal) if literal.language().is_none() => {
            let datatype = literal.datatype().into_owned().into_string();
            let name = datatype.strip_prefix("http://www.w3.org/2001/XMLSchema#")?;
            matches!(
                name,
                "integer" | "int" | "long" | "decimal" | "float" | "double"
            )
            .then(|| literal.value().parse().ok())?
        }
        _ => None,
    }
}

fn same(a: Option<&Term>, b: Option<&Term>) -> bool {
    let (Some(a), Some(b)) = (a, b) else {
        return a.is_none() && b.is_none();
    };
    a == b
        || match (number(a), number(b)) {
            (Some(a), Some(b)) => (a - b).abs() <= RELATIVE_TOLERANCE * a.abs().max(b.abs()),
            _ => false,
        }
}

fn text(row: &Row) -> String {
    let terms: Vec<String> = row
        .iter()
        .map(|t| {
            t.as_ref()
                .map_or_else(|| "unbound".to_owned(), Term::to_string)
        })
        .map(|t| t.chars().take(120).collect())
        .collect();
    terms.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(rows: &[(&str, &str)]) -> Answer {
        let bindings: Vec<String> = rows
            .iter()
            .map(|(a, b)| {
                format!(
                    r#"{{"a": {{"type": "literal", "value": "{a}"}},
                         "b": {{"type": "literal", "datatype": "http://www.w3.org/2001/XMLSchema#double", "value": "{b}"}}}}"#
                )
            })
            .collect();
        let text = format!(
            r#"{{"head": {{"vars": ["a", "b"]}}, "results": {{"bindings": [{}]}}}}"#,
            bindings.join(",")
        );
        Answer::parse(Form::Select, text.as_bytes()).unwrap()
    }

    fn query(text: &str) -> Query {
        Query {
            mix: 0,
            number: 0,
            form: Form::Select,
            text: text.into(),
        }
    }

    #[test]
    fn bags() {
        let all = query("SELECT ?a ?b { }");
        let one = answer(&[("x", "1"), ("y", "2"), ("y", "2")]);
        assert_eq!(
            one.difference(&answer(&[("y", "2.00001"), ("x", "1e0"), ("y", "2")]), &all),
            None
        );
        assert!(one
            .difference(&answer(&[("y", "2"), ("x", "1"), ("x", "1")]), &all)
            .is_some());
        assert!(one
            .difference(&answer(&[("y", "2.1"), ("x", "1"), ("y", "2")]), &all)
            .is_some());
        assert!(one
            .difference(&answer(&[("x", "1"), ("y", "2")]), &all)
            .is_some());
    }

    #[test]
    fn ties_at_a_limit() {
        let limited = query("SELECT ?a ?b { } ORDER BY DESC(?b) LIMIT 2");
        let one = answer(&[("x", "3"), ("y", "2")]);
        assert_eq!(
            one.difference(&answer(&[("x", "3"), ("z", "2")]), &limited),
            None
        );
        assert!(one
            .difference(&answer(&[("w", "3"), ("z", "2")]), &limited)
            .is_some());
        assert!(one
            .difference(&answer(&[("x", "3"), ("y", "1")]), &limited)
            .is_some());
        assert!(one
            .difference(
                &answer(&[("x", "3"), ("z", "1")]),
                &query("SELECT ?a ?b { }")
            )
            .is_some());
    }

    #[test]
    fn graphs_are_sets() {
        let one = Answer::parse(
            Form::Construct,
            b"<a:a> <a:b> \"c\" .\n<a:a> <a:b> \"c\" .\n",
        )
        .unwrap();
        assert_eq!(one.rows.len(), 1);
    }
}
