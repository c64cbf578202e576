//! `quad.service`: the solutions of a query to another endpoint.

use std::collections::HashMap;

use pgquad_remote::{select, Error, Job, Row};
use pgquad_term::{Blank, Term, TermBuf};
use pgrx::prelude::*;
use pgrx::PgSqlErrorCode;

use super::failure::raise_failure;
use super::{client, wait};
use crate::dictionary;
use crate::pg::error::{raise, required};
use crate::term::{random_bytes, TermArg, TermOut};

/// Terms of a solution, as a row of the function.
type Solution = Vec<Option<TermOut>>;

/// What the SQL of SERVICE calls: sends a SELECT query to an endpoint and gives the bindings of the variables, one
/// array for each solution. `silent`: one empty solution in the place of an error. `keep`: the blank nodes are going to
/// be stored, and get their numbers now, so that a node stays one wherever it occurs.
#[pg_extern(volatile, parallel_unsafe)]
fn service(
    endpoint: Option<TermArg<'_>>,
    query: Option<&str>,
    variables: Option<Vec<Option<String>>>,
    silent: Option<bool>,
    keep: Option<bool>,
) -> SetOfIterator<'static, Solution> {
    let query = required("query", query);
    let variables: Vec<String> = required("variables", variables)
        .into_iter()
        .map(|variable| required("variables", variable))
        .collect();
    let silent = required("silent", silent);
    let keep = required("keep", keep);
    let endpoint = match endpoint.as_ref().map(TermArg::term) {
        Some(Term::Iri(iri)) => iri.to_owned(),
        _ if silent => return SetOfIterator::new([vec![None; variables.len()]]),
        other => not_an_endpoint(other.as_ref()),
    };
    let width = variables.len();
    let query = query.to_owned();
    let nonce = random_bytes();
    let job = wait::start(client::client(), move |client, give| {
        select(client, &endpoint, &query, &variables, nonce, give)
    });
    let mut answer = Answer {
        job,
        keep,
        numbers: HashMap::new(),
    };
    if silent {
        // Nothing may be given before it is known that all of it has come.
        return match answer.all() {
            Ok(solutions) => SetOfIterator::new(solutions),
            Err(error) => {
                pgrx::notice!("SERVICE {error}");
                SetOfIterator::new([vec![None; width]])
            }
        };
    }
    let mut batch = Vec::new().into_iter();
    SetOfIterator::new(std::iter::from_fn(move || {
        if let Some(next) = batch.next() {
            return Some(next);
        }
        match answer.next() {
            Ok(rows) => batch = rows?.into_iter(),
            Err(error) => raise_failure("SERVICE", &error),
        }
        batch.next()
    }))
}

fn not_an_endpoint(term: Option<&Term<'_>>) -> ! {
    let shown = term.map_or("an unbound variable".to_owned(), Term::to_string);
    raise(
        PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
        format!("SERVICE {shown}: not the IRI of an endpoint"),
    )
}

/// An answer on its way.
struct Answer {
    job: Job<Vec<Row>>,
    keep: bool,
    /// Nodes that have got their numbers.
    numbers: HashMap<TermBuf, TermBuf>,
}

impl Answer {
    fn next(&mut self) -> Result<Option<Vec<Solution>>, Error> {
        let Some(mut rows) = wait::next(&mut self.job)? else {
            return Ok(None);
        };
        if self.keep {
            self.number_nodes(&mut rows);
        }
        let solution = |row: Row| row.into_iter().map(|term| term.map(TermOut)).collect();
        Ok(Some(rows.into_iter().map(solution).collect()))
    }

    fn all(&mut self) -> Result<Vec<Solution>, Error> {
        let mut all = Vec::new();
        while let Some(solutions) = self.next()? {
            all.extend(solutions);
        }
        Ok(all)
    }

    fn number_nodes(&mut self, rows: &mut [Row]) {
        let is_label = |term: &TermBuf| matches!(term.as_term(), Term::Blank(Blank::Label(_)));
        let mut new: Vec<TermBuf> = Vec::new();
        for term in rows.iter().flatten().flatten() {
            if is_label(term) && !self.numbers.contains_key(term) {
                self.numbers.insert(term.clone(), term.clone());
                new.push(term.clone());
            }
        }
        let labels: Vec<Term<'_>> = new.iter().map(TermBuf::as_term).collect();
        for (label, id) in new.iter().zip(dictionary::encode_many(&labels)) {
            let node = dictionary::decode(id).expect("the id of a term");
            self.numbers.insert(label.clone(), node);
        }
        for term in rows.iter_mut().flatten().flatten() {
            if let Some(node) = self.numbers.get(term) {
                *term = node.clone();
            }
        }
    }
}
