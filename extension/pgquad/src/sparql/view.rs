//! `quad.create_view`.

use std::ffi::{CStr, CString};

use pgquad_sparql::{column_types, ColumnType};
use pgrx::prelude::*;
use pgrx::{pg_sys, spi, JsonB, PgSqlErrorCode};

use super::plan::Planning;
use super::translate;
use crate::pg::error::{raise, raise_hint, required};

/// Longest name of a column in bytes.
const MAX_NAME: usize = pg_sys::NAMEDATALEN as usize - 1;

/// Makes an ordinary view of a query, with a column for each variable of its projection. `name` is an SQL name, with a
/// schema or not. A column that a function or an aggregate gives has the SQL type of that; all others are of type
/// `quad.term`, NULL for unbound. `types` chooses others: an object `{"variable": "type"}`, of types that `quad.term`
/// can be cast to.
#[pg_extern(volatile)]
fn create_view(
    name: Option<&str>,
    query: Option<&str>,
    store: default!(Option<&str>, "NULL"),
    base: default!(Option<&str>, "NULL"),
    types: default!(Option<JsonB>, "NULL"),
) {
    let name = required("name", name);
    let query = required("query", query);
    let view = qualified(name);
    let (parsed, translated) = translate::query_for_view(query, store, base);
    if translated.columns.is_empty() {
        raise(
            PgSqlErrorCode::ERRCODE_INVALID_TABLE_DEFINITION,
            "a query without variables makes no view",
        );
    }
    let inferred = column_types(&parsed);
    let chosen = types.map_or_else(Vec::new, |types| chosen(&types, &translated.columns));
    let outputs: Vec<String> = translated
        .columns
        .iter()
        .zip(inferred)
        .map(|(column, inferred)| {
            check_length(column);
            let identifier = spi::quote_identifier(column);
            let chosen = chosen.iter().find(|(name, _)| name == column);
            let wanted = chosen.map_or(inferred.sql(), |(_, kind)| kind);
            if wanted == ColumnType::Term.sql() || is_boolean(&translated.form) {
                format!("v.{identifier}")
            } else {
                format!("CAST(v.{identifier} AS {wanted}) AS {identifier}")
            }
        })
        .collect();
    let sql = format!(
        "CREATE VIEW {view} AS\nSELECT {}\nFROM (\n{}\n) AS v",
        outputs.join(", "),
        translated.to_standalone_sql()
    );
    let _planning = Planning::begin();
    if let Err(error) = Spi::run(&sql) {
        raise(
            PgSqlErrorCode::ERRCODE_INTERNAL_ERROR,
            format!("the view could not be made: {error}"),
        );
    }
}

/// ASK gives an SQL boolean as it is.
fn is_boolean(form: &pgquad_sparql::Form) -> bool {
    *form == pgquad_sparql::Form::Ask
}

fn check_length(column: &str) {
    if column.len() > MAX_NAME {
        raise_hint(
            PgSqlErrorCode::ERRCODE_NAME_TOO_LONG,
            format!("variable ?{column} is too long to be the name of a column"),
            format!("Names of columns have at most {MAX_NAME} bytes."),
        );
    }
}

/// The name, quoted and with its schema: that of the caller's search path where it has none.
fn qualified(name: &str) -> String {
    let text = CString::new(name).unwrap_or_else(|_| {
        raise(
            PgSqlErrorCode::ERRCODE_INVALID_NAME,
            "the name of a view must not contain a NUL character",
        )
    });
    // SAFETY: the functions raise errors for what is no name, and for schemas that are not there or that the caller may
    // not create in. The strings they give are of the current memory context.
    let (schema, relation) = unsafe {
        let range =
            pg_sys::makeRangeVarFromNameList(crate::pg::compat::qualified_name(text.as_ptr()));
        let schema = pg_sys::get_namespace_name(pg_sys::RangeVarGetCreationNamespace(range));
        (
            CStr::from_ptr(schema).to_string_lossy().into_owned(),
            CStr::from_ptr((*range).relname)
                .to_string_lossy()
                .into_owned(),
        )
    };
    format!(
        "{}.{}",
        spi::quote_identifier(schema),
        spi::quote_identifier(relation)
    )
}

/// The types that the caller has chosen, by variable, as SQL text.
fn chosen(types: &JsonB, columns: &[String]) -> Vec<(String, String)> {
    let invalid = |message: String| -> ! {
        raise_hint(
            PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
            message,
            "types is an object like {\"name\": \"text\", \"year\": \"bigint\"}.",
        )
    };
    let Some(object) = types.0.as_object() else {
        invalid("types is not an object".to_owned())
    };
    object
        .iter()
        .map(|(variable, kind)| {
            if !columns.contains(variable) {
                raise(
                    PgSqlErrorCode::ERRCODE_UNDEFINED_COLUMN,
                    format!("the query has no column ?{variable}"),
                );
            }
            let Some(kind) = kind.as_str() else {
                invalid(format!("the type of ?{variable} is not a string"))
            };
            (variable.clone(), type_name(kind))
        })
        .collect()
}

/// The name of a type, quoted and with its schema.
fn type_name(text: &str) -> String {
    let sql =
        "SELECT pg_catalog.format('%I.%I', n.nspname, t.typname) FROM pg_catalog.pg_type AS t \
               JOIN pg_catalog.pg_namespace AS n ON n.oid OPERATOR(pg_catalog.=) t.typnamespace \
               WHERE t.oid OPERATOR(pg_catalog.=) ($1::pg_catalog.regtype)::pg_catalog.oid";
    match Spi::get_one_with_args::<String>(sql, &[text.into()]) {
        Ok(Some(name)) => name,
        _ => raise(
            PgSqlErrorCode::ERRCODE_UNDEFINED_OBJECT,
            format!("type \"{text}\" does not exist"),
        ),
    }
}
