//! `quad.query`: the answer to a query as a table, whose columns the caller names and types.
//!
//! Where all arguments are constants by the time the statement is planned, [`inline`] puts the SQL of the query in
//! place of the call, as if it were a view. Otherwise (an argument comes from another table of FROM, a plan for all
//! values of a parameter) the function below runs.

mod columns;
mod conditions;
mod inline;

use pgquad_sparql::Form;
use pgrx::prelude::*;
use pgrx::{check_for_interrupts, pg_sys, PgMemoryContexts};

use self::columns::Columns;
use super::answer::Row;
use super::execute::Cursor;
use super::prepared::{query_of_any_form, Prepared};
use super::query::run_ask;
use super::translate::graphs;
use crate::pg::error::required;
use crate::term::sql_value::SqlType;

pub use inline::init;

/// Answers a query with a row for each solution, whose columns are those of the column definition list.
#[pg_extern(
    sql = "CREATE FUNCTION quad.query(query text, store text DEFAULT NULL, base text DEFAULT NULL, default_graphs text[] DEFAULT NULL,
    named_graphs text[] DEFAULT NULL) RETURNS SETOF record STABLE COST 100000 LANGUAGE c AS 'MODULE_PATHNAME', '@FUNCTION_NAME@';",
    requires = ["store_schema"]
)]
fn query(
    query: Option<&str>,
    store: Option<&str>,
    base: Option<&str>,
    default_graphs: Option<Vec<Option<String>>>,
    named_graphs: Option<Vec<Option<String>>>,
    call: pg_sys::FunctionCallInfo,
) {
    let query = required("query", query);
    let mut table = Table::new(call);
    let graphs = graphs(default_graphs, named_graphs);
    let prepared = query_of_any_form(query, store, base, graphs.as_ref());
    table.take_columns(prepared.columns());
    table.fill(prepared);
}

/// The rows of the result, which PostgreSQL keeps in a tuple store (on disk beyond `work_mem`).
struct Table {
    result: *mut pg_sys::ReturnSetInfo,
    /// For each column its place in the answer, its type and its name.
    columns: Vec<(usize, SqlType, String)>,
    values: Vec<pg_sys::Datum>,
    nulls: Vec<bool>,
}

impl Table {
    fn new(call: pg_sys::FunctionCallInfo) -> Self {
        // SAFETY: `call` is that of the running function, which returns a set. Raises an error where a set, or a row of
        // any type, cannot be returned.
        unsafe {
            pg_sys::InitMaterializedSRF(call, pg_sys::MAT_SRF_USE_EXPECTED_DESC);
            Self {
                result: (*call).resultinfo.cast(),
                columns: Vec::new(),
                values: Vec::new(),
                nulls: Vec::new(),
            }
        }
    }

    /// Finds the columns that are asked for in those of the answer.
    fn take_columns(&mut self, has: &[String]) {
        // SAFETY: the row type was made by `InitMaterializedSRF`, in the memory of the query, where the types are kept,
        // too.
        let (asked, context) = unsafe {
            let context = (*(*self.result).econtext).ecxt_per_query_memory;
            (Columns::of_descriptor((*self.result).setDesc), context)
        };
        let places = asked.places(has);
        let columns = asked.0.into_iter().zip(places).map(|(column, place)| {
            // SAFETY: the memory of the query outlives the call.
            let kind = unsafe { SqlType::new(column.oid, column.typmod, context) };
            (place, kind, column.name)
        });
        self.columns = columns.collect();
        self.values = vec![pg_sys::Datum::null(); self.columns.len()];
        self.nulls = vec![true; self.columns.len()];
    }

    fn fill(&mut self, prepared: Prepared) {
        if prepared.form() == Form::Ask {
            let answer = pgquad_term::TermBuf::boolean(run_ask(&prepared));
            return self.put(|_, read| Some(read(&answer.as_term())));
        }
        let mut cursor = Cursor::open(prepared);
        loop {
            check_for_interrupts!();
            let mut context = PgMemoryContexts::new("rows of quad.query");
            // SAFETY: the values of a batch are freed with the context; what PostgreSQL keeps of them it has copied,
            // and what the cursor keeps is not palloc'd.
            let rows =
                unsafe { context.switch_to(|_| cursor.fetch(|row| self.put_row(row)).len()) };
            if rows == 0 {
                return;
            }
        }
    }

    fn put_row(&mut self, row: &Row<'_>) {
        self.put(|place, read| row.term(place, |term| read(term)));
    }

    /// Adds a row. `value` calls what it is given with the term of a column of the answer; `None` is for unbound.
    fn put(
        &mut self,
        value: impl Fn(
            usize,
            &mut dyn FnMut(&pgquad_term::Term<'_>) -> pg_sys::Datum,
        ) -> Option<pg_sys::Datum>,
    ) {
        let places = self.values.iter_mut().zip(&mut self.nulls);
        for ((place, kind, name), (datum, null)) in self.columns.iter_mut().zip(places) {
            let found = value(*place, &mut |term| kind.datum(term, name));
            *null = found.is_none();
            *datum = found.unwrap_or(pg_sys::Datum::null());
        }
        // SAFETY: the tuple store and the row type were made by `InitMaterializedSRF`; there is a value for each column
        // of it, which is copied into the store.
        unsafe {
            pg_sys::tuplestore_putvalues(
                (*self.result).setResult,
                (*self.result).setDesc,
                self.values.as_mut_ptr(),
                self.nulls.as_mut_ptr(),
            );
        }
    }
}
