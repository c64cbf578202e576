//! `quad.explain`.

use pgrx::prelude::*;

use super::execute::{run, values};
use super::plan::{type_of, Plan};
use super::request::query;
use crate::error::required;

/// Shows what becomes of a query: its algebra, its SQL, and PostgreSQL's plan for it (`analyze`: run it and show what it did).
#[pg_extern(volatile)]
fn explain(
    query: Option<&str>,
    store: default!(Option<&str>, "NULL"),
    base: default!(Option<&str>, "NULL"),
    analyze: default!(Option<bool>, "false"),
) -> SetOfIterator<'static, String> {
    let query = required("query", query);
    let analyze = required("analyze", analyze);
    let translated = self::query(query, store, base);
    let mut lines = vec![
        "Algebra:".to_owned(),
        indented(&translated.algebra),
        "SQL:".to_owned(),
    ];
    lines.extend(translated.to_standalone_sql().lines().map(indented));
    lines.push("Plan:".to_owned());
    let options = if analyze {
        "ANALYZE, BUFFERS, VERBOSE"
    } else {
        "VERBOSE"
    };
    let undecoded = translated.undecoded;
    let sql = format!("EXPLAIN ({options}) {}", undecoded.sql());
    let types: Vec<_> = undecoded.params.iter().map(|p| type_of(p.kind)).collect();
    let plan = Plan::prepare(&sql, &types);
    lines.extend(run(&plan, values(&undecoded.params), false, |row| {
        let datum = row.datum(0);
        // SAFETY: EXPLAIN gives one column of type text.
        let line = datum.and_then(|d| unsafe { String::from_datum(d, false) });
        indented(&line.unwrap_or_default())
    }));
    SetOfIterator::new(lines)
}

fn indented(line: &str) -> String {
    format!("  {line}")
}
