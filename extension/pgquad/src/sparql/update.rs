//! `quad.update`.

use pgquad_sparql::{delete_data_sql, insert_data_sql, DataQuad, Operation, Statement};
use pgquad_term::{Term, TermBuf, TermId};
use pgrx::prelude::*;
use pgrx::{pg_sys, PgSqlErrorCode};

use super::parameters::{datum, parse_term, values};
use super::plan::Plan;
use super::receiver::run;
use super::statements::{plan, plan_of};
use super::translate;
use crate::dictionary;
use crate::pg::error::{raise, raise_hint, required};
use crate::pg::subtransaction;
use crate::remote;

/// Runs a SPARQL Update request, all of it or, on an error, nothing. Gives the number of quads added and removed.
///
/// `using_graphs`, `using_named_graphs`: the graphs that operations with WHERE read, as if each had these USING and
/// USING NAMED clauses.
#[pg_extern(volatile)]
fn update(
    request: Option<&str>,
    store: default!(Option<&str>, "NULL"),
    base: default!(Option<&str>, "NULL"),
    using_graphs: default!(Option<Vec<Option<String>>>, "NULL"),
    using_named_graphs: default!(Option<Vec<Option<String>>>, "NULL"),
) -> i64 {
    let request = required("request", request);
    let graphs = translate::graphs(using_graphs, using_named_graphs);
    let (operations, table) = translate::update(request, store, base, graphs.as_ref());
    let mut changed = 0;
    for operation in operations {
        changed += match operation {
            Operation::InsertData(quads) => {
                let terms = terms(&quads);
                let ids = dictionary::encode_many(&as_terms(&terms))
                    .into_iter()
                    .map(Some);
                run_data(insert_data_sql(&table), &quads, ids)
            }
            Operation::DeleteData(quads) => {
                let terms = terms(&quads);
                let ids = dictionary::find_many(&as_terms(&terms)).into_iter();
                run_data(delete_data_sql(&table), &quads, ids)
            }
            Operation::Run(statement) => count(&plan_of(&statement), values(&statement.params)),
            Operation::Create { graph, exists } => {
                if is_true(&exists) {
                    raise_hint(
                        PgSqlErrorCode::ERRCODE_DUPLICATE_OBJECT,
                        format!("graph {graph} already exists"),
                        "CREATE SILENT GRAPH does not mind.",
                    );
                }
                0
            }
            Operation::Load {
                source,
                graph,
                silent,
            } => {
                let load = || remote::load(&source, graph.as_deref(), store);
                if silent {
                    silently(&source, load)
                } else {
                    load()
                }
            }
            Operation::Skip(what) => {
                notice!("{what} has been left out");
                0
            }
        };
    }
    changed
}

/// The outcome of a LOAD SILENT: 0, and everything as it was, when it fails.
fn silently(source: &str, load: impl Fn() -> i64) -> i64 {
    subtransaction::attempt(load).unwrap_or_else(|message| {
        notice!("LOAD SILENT <{source}> has done nothing: {message}");
        0
    })
}

/// All terms of the quads, in order, the graph of a quad last and only where it has one.
fn terms(quads: &[DataQuad]) -> Vec<TermBuf> {
    quads
        .iter()
        .flat_map(|(triple, graph)| triple.iter().chain(graph))
        .map(|text| parse_term(text))
        .collect()
}

fn as_terms(terms: &[TermBuf]) -> Vec<Term<'_>> {
    terms.iter().map(TermBuf::as_term).collect()
}

/// Runs a statement on the quads, whose terms have these ids; a quad with a term without id is left out.
fn run_data(sql: String, quads: &[DataQuad], mut ids: impl Iterator<Item = Option<TermId>>) -> i64 {
    let mut columns: [Vec<i64>; 4] = Default::default();
    for (_, graph) in quads {
        let mut next = || ids.next().expect("one answer for each term");
        let quad = [
            next(),
            next(),
            next(),
            match graph {
                Some(_) => next(),
                None => Some(TermId::DEFAULT_GRAPH),
            },
        ];
        if quad.iter().all(Option::is_some) {
            for (column, id) in columns.iter_mut().zip(quad.into_iter().flatten()) {
                column.push(id.to_i64());
            }
        }
    }
    if columns[0].is_empty() {
        return 0;
    }
    let plan = plan(sql, vec![pg_sys::INT8ARRAYOID; 4]);
    count(&plan, columns.map(datum).to_vec())
}

fn count(plan: &Plan, values: Vec<pg_sys::Datum>) -> i64 {
    let counts = run(plan, &values, false, |row| {
        row.datum(0).map_or(0, |datum| datum.value() as i64)
    });
    match counts[..] {
        [count] => count,
        _ => raise(
            PgSqlErrorCode::ERRCODE_INTERNAL_ERROR,
            "an update has to give one count",
        ),
    }
}

fn is_true(statement: &Statement) -> bool {
    run(
        &plan_of(statement),
        &values(&statement.params),
        false,
        |row| row.datum(0).is_some_and(|datum| datum.value() != 0),
    )
    .contains(&true)
}
