//! Running one test.

use postgres::error::SqlState;
use sparesults::QueryResultsFormat;

use crate::answer::{parse_graph, same_bag, Answer, Row};
use crate::database::{Database, Failure, Session};
use crate::endpoint::{read, Endpoints};
use crate::manifest::{Data, File, Test};
use oxrdf::{BlankNode, Literal, NamedNode, Term};

/// What became of a test.
pub enum Outcome {
    /// As the suite expects.
    Passed,
    /// Something else; what.
    Failed(String),
    /// Not run; why.
    Excluded(String),
}

/// Directories that are not run here.
const EXCLUDED: [(&str, &str); 4] = [
    ("entailment", "entailment regimes are not built"),
    ("protocol", "suite http runs it"),
    ("graph-store-protocol", "suite http runs it"),
    ("service-description", "suite http runs it"),
];

/// Runs a test.
pub fn run(test: &Test, database: &mut Database) -> Outcome {
    if let Some((_, why)) = EXCLUDED.iter().find(|(d, _)| *d == test.directory) {
        return Outcome::Excluded((*why).to_owned());
    }
    let Some(action) = &test.action else {
        return Outcome::Failed("no query".to_owned());
    };
    let endpoints = (test.directory == "service").then(|| Endpoints::start(&test.services));
    let replaced = endpoints.as_ref().map_or(&[][..], |e| &e.replaced);
    let text = read(action, replaced);
    let mut session = database.begin();
    if let Some(Err(error)) = endpoints.as_ref().map(|e| session.use_endpoints(e)) {
        return Outcome::Failed(error.message);
    }
    let outcome = match test.class.as_str() {
        "QueryEvaluationTest" => query(test, &text, action, replaced, &mut session),
        "CSVResultFormatTest" => csv(test, &text, action, &mut session),
        "UpdateEvaluationTest" => update(test, &text, action, &mut session),
        "PositiveSyntaxTest11" | "NegativeSyntaxTest11" => {
            let result = session.text("sparql_to_sql", &text, &action.iri).map(drop);
            return syntax(result, test.class.starts_with("Positive"));
        }
        "PositiveUpdateSyntaxTest11" | "NegativeUpdateSyntaxTest11" => {
            let result = session.update(&text, &action.iri).map(drop);
            return syntax(result, test.class.starts_with("Positive"));
        }
        other => return Outcome::Excluded(format!("tests of class {other} are not run")),
    };
    match outcome {
        Ok(None) => Outcome::Passed,
        Ok(Some(difference)) => Outcome::Failed(difference),
        Err(error) => Outcome::Failed(error.message),
    }
}

/// `None` when all is well.
type Verdict = Result<Option<String>, Failure>;

fn query(
    test: &Test,
    text: &str,
    action: &File,
    replaced: &[(String, String)],
    session: &mut Session<'_>,
) -> Verdict {
    session.load(&test.data)?;
    let Some(result) = &test.result else {
        return Ok(Some("no result to compare with".to_owned()));
    };
    let expected = Answer::read(result, replaced);
    let given = match &expected {
        Answer::Graph(_) => Answer::Graph(session.construct(text, &action.iri)?),
        _ => {
            let extension = result.path.extension().and_then(|e| e.to_str());
            let (function, format) = match extension {
                Some("srx") => ("sparql_xml", QueryResultsFormat::Xml),
                Some("tsv") => ("sparql_tsv", QueryResultsFormat::Tsv),
                _ => ("sparql_json", QueryResultsFormat::Json),
            };
            let answer = session.text(function, text, &action.iri)?;
            Answer::parse(answer.as_bytes(), format)
        }
    };
    let ordered = text.to_ascii_uppercase().contains("ORDER BY");
    if let Some(difference) = expected.difference(&given, ordered) {
        return Ok(Some(difference));
    }
    if let Answer::Solutions { rows, .. } = &given {
        // The SQL that is shown has to be the SQL that runs.
        let sql = session.text("sparql_to_sql", text, &action.iri)?;
        let count = session.row_count(&sql)?;
        if count != rows.len() {
            return Ok(Some(format!(
                "sparql_to_sql gives {count} rows, not {}",
                rows.len()
            )));
        }
    }
    Ok(None)
}

/// CSV does not tell terms apart, so cells are compared as texts, but for blank nodes. Commas within quotes cut both
/// sides alike.
fn csv(test: &Test, text: &str, action: &File, session: &mut Session<'_>) -> Verdict {
    session.load(&test.data)?;
    let given = session.text("sparql_csv", text, &action.iri)?;
    let expected = test
        .result
        .as_ref()
        .and_then(|file| std::fs::read_to_string(&file.path).ok())
        .unwrap_or_default();
    let cell = |text: &str| match text.strip_prefix("_:") {
        Some(label) => Some(Term::from(BlankNode::new_unchecked(label))),
        None => Some(Literal::new_simple_literal(text).into()),
    };
    let rows = |text: &str| -> Vec<Row> {
        text.lines()
            .map(|line| line.split(',').map(cell).collect())
            .collect()
    };
    let (a, b) = (rows(&expected), rows(&given));
    let same = a.first() == b.first() && same_bag(&a, &b);
    Ok((!same).then(|| format!("expected {expected}\n  got {given}")))
}

fn update(test: &Test, text: &str, action: &File, session: &mut Session<'_>) -> Verdict {
    session.load(&test.data)?;
    let before = session.quads()?.len();
    let changed = session.update(text, &action.iri)?;
    let given = session.quads()?;
    let expected = quads_of(&test.after);
    if !same_bag(&expected, &given) {
        let expected = Answer::Graph(expected);
        return Ok(expected.difference(&Answer::Graph(given), false));
    }
    let moved = before.abs_diff(given.len()) as i64;
    Ok((changed < moved).then(|| format!("{changed} quads changed, but {moved} more or fewer")))
}

fn quads_of(data: &Data) -> Vec<Row> {
    let default = data.default.iter().map(|file| (None, file));
    let named = data.named.iter().map(|(name, file)| {
        let name = NamedNode::new_unchecked(name);
        (Some(Term::from(name)), file)
    });
    default
        .chain(named)
        .flat_map(|(graph, file)| {
            let quads: Vec<Row> = parse_graph(file)
                .iter()
                .map(|t| {
                    vec![
                        Some(Term::from(t.subject.into_owned())),
                        Some(t.predicate.into_owned().into()),
                        Some(t.object.into_owned()),
                        graph.clone(),
                    ]
                })
                .collect();
            quads
        })
        .collect()
}

/// A syntax test: what is refused for another reason (not built, a server that may not be asked) is right SPARQL.
fn syntax(result: Result<(), Failure>, positive: bool) -> Outcome {
    match (result, positive) {
        (Ok(()), true) => Outcome::Passed,
        (Ok(()), false) => Outcome::Failed("accepted, but it is not SPARQL".to_owned()),
        (Err(error), _) => match (error.code, positive) {
            (Some(SqlState::SYNTAX_ERROR), false) => Outcome::Passed,
            (Some(SqlState::FEATURE_NOT_SUPPORTED | SqlState::INSUFFICIENT_PRIVILEGE), true) => {
                Outcome::Passed
            }
            _ => Outcome::Failed(error.message),
        },
    }
}
