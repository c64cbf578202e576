//! `quad.explain` and `quad.explain_json`.

use pgrx::prelude::*;

use super::execute::run_explain;
use super::parameters::values;
use super::plan::{type_of, Plan};
use super::translate::query;
use crate::pg::error::required;

/// Shows what becomes of a query: its algebra, its SQL, and PostgreSQL's plan for it (`analyze`: run it and show what
/// it did).
#[pg_extern(volatile)]
fn explain(
    query: Option<&str>,
    store: default!(Option<&str>, "NULL"),
    base: default!(Option<&str>, "NULL"),
    analyze: default!(Option<bool>, "false"),
) -> SetOfIterator<'static, String> {
    let explained = Explained::of(query, store, base, analyze, "TEXT");
    let mut lines = vec![
        "Algebra:".to_owned(),
        indented(&explained.algebra),
        "SQL:".to_owned(),
    ];
    lines.extend(explained.sql.lines().map(indented));
    lines.push("Plan:".to_owned());
    lines.extend(explained.plan.iter().map(|line| indented(line)));
    SetOfIterator::new(lines)
}

/// The same for programs, a JSON object with the texts `algebra` and `sql`, and `plan`, which is what EXPLAIN (FORMAT
/// JSON) gives.
#[pg_extern(volatile)]
fn explain_json(
    query: Option<&str>,
    store: default!(Option<&str>, "NULL"),
    base: default!(Option<&str>, "NULL"),
    analyze: default!(Option<bool>, "false"),
) -> String {
    let explained = Explained::of(query, store, base, analyze, "JSON");
    let text = |text: String| serde_json::Value::from(text).to_string();
    format!(
        "{{\"algebra\": {}, \"sql\": {}, \"plan\": {}}}",
        text(explained.algebra),
        text(explained.sql),
        explained.plan.join("\n")
    )
}

/// What becomes of a query.
struct Explained {
    algebra: String,
    /// SQL that runs as it stands.
    sql: String,
    /// What EXPLAIN gives, row by row.
    plan: Vec<String>,
}

impl Explained {
    /// Has PostgreSQL explain a query. `format`: TEXT or JSON.
    fn of(
        query: Option<&str>,
        store: Option<&str>,
        base: Option<&str>,
        analyze: Option<bool>,
        format: &str,
    ) -> Self {
        let query = required("query", query);
        let analyze = required("analyze", analyze);
        let translated = self::query(query, store, base);
        let options = if analyze {
            "ANALYZE, BUFFERS, VERBOSE"
        } else {
            "VERBOSE"
        };
        let standalone = translated.to_standalone_sql();
        let undecoded = translated.undecoded;
        let sql = format!("EXPLAIN ({options}, FORMAT {format}) {}", undecoded.sql());
        let types: Vec<_> = undecoded.params.iter().map(|p| type_of(p.kind)).collect();
        let plan = Plan::prepare(&sql, &types);
        let plan = run_explain(&plan, values(&undecoded.params), |row| {
            let datum = row.datum(0);
            // SAFETY: EXPLAIN gives one column, of type text or json, which are stored alike.
            let line = datum.and_then(|d| unsafe { String::from_datum(d, false) });
            line.unwrap_or_default()
        });
        Self {
            algebra: translated.algebra,
            sql: standalone,
            plan,
        }
    }
}

fn indented(line: &str) -> String {
    format!("  {line}")
}
