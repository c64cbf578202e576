//! One case: data, and a query or an update request on them, answered by both engines.

use crate::answer::{agree, blanks, shown, Relation, Row, MOST_BLANKS};
use crate::grammar::{computes, Flavour, Quad, Query, Shape, Update};
use crate::order::disorder;
use crate::reference::{self, Answer};
use crate::server::{Database, Session};
use crate::syntax::name;
use oxrdf::Dataset;

/// Rows beyond which an answer is not compared: a product of everything with everything tells nothing new.
const MAX_ROWS: usize = 3000;

/// What is done with the data.
#[derive(Clone, Debug)]
pub enum Request {
    /// A query.
    Query(Query),
    /// The operations of an update request.
    Update(Vec<Update>),
    /// A text that may be no query at all, which is only planned.
    Text(String),
}

/// A case.
#[derive(Clone, Debug)]
pub struct Case {
    /// Which terms there are.
    pub flavour: Flavour,
    /// The data.
    pub data: Vec<Quad>,
    /// The request.
    pub request: Request,
}

/// What became of a case.
#[derive(Debug)]
pub enum Outcome {
    /// The engines agree.
    Agreed,
    /// They do not; how.
    Differed(String),
    /// They were not compared; why.
    Left(String),
}

impl Case {
    /// The request as text.
    pub fn text(&self) -> String {
        match &self.request {
            Request::Query(query) => query.text(),
            Request::Update(operations) => Update::request(operations),
            Request::Text(text) => text.clone(),
        }
    }

    /// The data as N-Quads.
    pub fn nquads(&self) -> String {
        reference::dataset(&self.data).to_string()
    }

    /// Runs the case.
    pub fn run(&self, database: &mut Database) -> Outcome {
        let mut session = database.begin();
        if let Err(error) = session.load(&self.nquads()) {
            return Outcome::Differed(format!("the data cannot be loaded: {}", error.0));
        }
        match &self.request {
            Request::Query(query) => self.run_query(query, &mut session),
            Request::Update(operations) => {
                self.run_update(&Update::request(operations), &mut session)
            }
            Request::Text(text) => plan(&mut session, text),
        }
    }

    /// Runs the query of the same shape with other constants and then the query itself, which finds the template of the
    /// first one. Then it runs the query under each of the settings, which a plan of the cache would not know of.
    fn run_query(&self, query: &Query, session: &mut Session<'_>) -> Outcome {
        let (text, plain) = (query.text(), query.without_choice().text());
        let others = exchanged(&text);
        if others != text {
            let outcome = self.ask(query, &others, &exchanged(&plain), session);
            if let Outcome::Differed(how) = outcome {
                return Outcome::Differed(format!("with other constants:\n{others}\n{how}"));
            }
        }
        let outcome = self.ask(query, &text, &plain, session);
        if !matches!(outcome, Outcome::Agreed) {
            return outcome;
        }
        for (setting, value) in session.settings() {
            session.set("quad.template_cache_size", "0");
            session.set(setting, value);
            let outcome = self.ask(query, &text, &plain, session);
            session.reset(setting);
            session.reset("quad.template_cache_size");
            if let Outcome::Differed(how) = outcome {
                return Outcome::Differed(format!("with {setting} = {value}: {how}"));
            }
        }
        self.ask_merged(query, &text, &plain, session)
    }

    /// Answers a text about the merge of all graphs, whose quads the reference has in its default graph.
    fn ask_merged(
        &self,
        query: &Query,
        text: &str,
        plain: &str,
        session: &mut Session<'_>,
    ) -> Outcome {
        let merged = reference::merged(reference::dataset(&self.data));
        session.set("quad.default_graph", "union");
        let outcome = self.ask_about(&merged, query, (text, plain), session);
        session.reset("quad.default_graph");
        match outcome {
            Outcome::Differed(how) => Outcome::Differed(format!("with all graphs merged: {how}")),
            other => other,
        }
    }

    /// Answers a text by both engines; `plain` is the text without what leaves a choice.
    fn ask(&self, query: &Query, text: &str, plain: &str, session: &mut Session<'_>) -> Outcome {
        let dataset = reference::dataset(&self.data);
        self.ask_about(&dataset, query, (text, plain), session)
    }

    fn ask_about(
        &self,
        dataset: &Dataset,
        query: &Query,
        (text, plain): (&str, &str),
        session: &mut Session<'_>,
    ) -> Outcome {
        let expected = match reference::query(dataset, plain) {
            Ok(answer) => answer,
            Err(error) => return Outcome::Left(error),
        };
        match (expected, &query.shape) {
            (Answer::Boolean(expected), _) => match session.ask(text) {
                Ok(given) if given == expected => Outcome::Agreed,
                Ok(given) => Outcome::Differed(format!("expected {expected}, got {given}")),
                Err(error) => Outcome::Differed(error.0),
            },
            (Answer::Triples(expected), _) => match session.construct(text) {
                Ok(given) => self.compare(&expected, &given, Relation::Same),
                Err(error) => Outcome::Differed(error.0),
            },
            (Answer::Solutions { variables, rows }, Shape::Select(select)) => {
                if rows.len() > MAX_ROWS {
                    return Outcome::Left("too many rows".to_owned());
                }
                let given = match session.select(text, &variables) {
                    Ok(given) => given,
                    Err(error) => return Outcome::Differed(error.0),
                };
                let relation = match (select.slice, select.modifier) {
                    (Some((offset, limit)), _) => {
                        Relation::Part(rows.len().saturating_sub(offset).min(limit))
                    }
                    (None, "REDUCED") => Relation::Reduced,
                    _ => Relation::Same,
                };
                let keys: Vec<(usize, bool)> = select
                    .order
                    .iter()
                    .filter_map(|(var, descending)| {
                        let place = variables.iter().position(|v| *v == name(*var))?;
                        Some((place, *descending))
                    })
                    .collect();
                if let Some((a, b)) = disorder(&given, &keys) {
                    return Outcome::Differed(format!("{a:?} comes before {b:?}"));
                }
                match self.compare(&rows, &given, relation) {
                    Outcome::Agreed => same_count(session, text, given.len()),
                    other => other,
                }
            }
            (answer, _) => Outcome::Differed(format!("an answer of another form: {answer:?}")),
        }
    }

    fn run_update(&self, text: &str, session: &mut Session<'_>) -> Outcome {
        let mut dataset = reference::dataset(&self.data);
        if let Err(error) = reference::update(&mut dataset, text) {
            return Outcome::Left(error);
        }
        if dataset.len() > MAX_ROWS {
            return Outcome::Left("too many quads".to_owned());
        }
        match session.update(text).and_then(|()| session.quads()) {
            Ok(given) => self.compare(&reference::quads(&dataset), &given, Relation::Same),
            Err(error) => Outcome::Differed(error.0),
        }
    }

    fn compare(&self, expected: &[Row], given: &[Row], relation: Relation) -> Outcome {
        if blanks(expected).len() > MOST_BLANKS {
            return Outcome::Left("too many blank nodes".to_owned());
        }
        if agree(expected, given, relation) {
            return Outcome::Agreed;
        }
        let computed = match &self.request {
            Request::Query(query) => computes(query),
            Request::Update(_) | Request::Text(_) => true,
        };
        if self.flavour == Flavour::Lexical && computed {
            let canonical = |rows: &[Row]| -> Vec<Row> {
                rows.iter()
                    .map(|row| {
                        row.iter()
                            .map(|term| term.as_ref().map(reference::canonical))
                            .collect()
                    })
                    .collect()
            };
            if agree(&canonical(expected), &canonical(given), relation) {
                return Outcome::Agreed;
            }
        }
        Outcome::Differed(format!(
            "expected ({relation:?}) {}\n  got {}",
            shown(expected),
            shown(given)
        ))
    }
}

/// SQLSTATEs of a refusal: syntax, a value or a form that does not fit, too deep or long, not built.
const REFUSALS: [&str; 6] = ["42601", "22023", "42809", "54001", "54000", "0A000"];

/// What is a query has to become SQL that PostgreSQL plans; all else has to be refused for a reason.
fn plan(session: &mut Session<'_>, text: &str) -> Outcome {
    let sql = match session.sql(text) {
        Ok(sql) => sql,
        Err(error) if REFUSALS.iter().any(|code| error.0.starts_with(code)) => {
            return Outcome::Agreed;
        }
        Err(error) => return Outcome::Differed(error.0),
    };
    match session.explain(&sql) {
        Ok(()) => Outcome::Agreed,
        Err(error) => Outcome::Differed(format!("{}\n{sql}", error.0)),
    }
}

/// The text with constants in the places of others of their kind.
fn exchanged(text: &str) -> String {
    const TURNS: [&[&str]; 5] = [
        &[":s ", ":t ", ":u "],
        &[":p", ":q", ":r"],
        &[":g ", ":h "],
        &["\"a\"", "\"b\""],
        &["(1 ", "(2 ", "(0 "],
    ];
    let (prefixes, query) = text.split_at(crate::syntax::PREFIXES.len());
    let mut rest = query;
    let mut out = prefixes.to_owned();
    while let Some(c) = rest.chars().next() {
        let found = TURNS.iter().find_map(|turn| {
            let place = turn.iter().position(|old| rest.starts_with(old))?;
            Some((turn[place], turn[(place + 1) % turn.len()]))
        });
        let (old, new) = found.unwrap_or((&rest[..c.len_utf8()], &rest[..c.len_utf8()]));
        out.push_str(new);
        rest = &rest[old.len()..];
    }
    out
}

/// The SQL that is shown has to be SQL, with as many rows.
fn same_count(session: &mut Session<'_>, text: &str, rows: usize) -> Outcome {
    match session.count_by_sql(text) {
        Ok(count) if count == rows => Outcome::Agreed,
        Ok(count) => Outcome::Differed(format!("sparql_to_sql gives {count} rows, not {rows}")),
        Err(error) => Outcome::Differed(format!("sparql_to_sql: {}", error.0)),
    }
}
