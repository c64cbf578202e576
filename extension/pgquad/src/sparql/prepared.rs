//! Queries that are ready to be run: a template, and the constants of the query at hand.

use std::rc::Rc;

use pgquad_sparql::{Form, Graphs, Output, Param, Target};
use pgrx::PgSqlErrorCode;

use super::plan::Plan;
use super::template_cache::{template_of, Entry};
use super::translate::{name_of, table_to_read, target};
use crate::cluster::connection::Announcement;
use crate::cluster::reader::announce;
use crate::pg::error::raise_hint;

/// What a query is translated to, ready to be run with its own constants.
pub struct Prepared {
    entry: Rc<Entry>,
    /// Values of the parameters.
    pub params: Vec<Param>,
    /// Dropped with the query: until then its first join may come for early reads.
    _announcement: Option<Announcement>,
}

impl Prepared {
    /// A query for a target. Raises the errors of [`translate()`](super::translate::translate).
    fn new(text: &str, target: Target<'_>, base: Option<&str>) -> Self {
        let (entry, params) = template_of(text, target, base);
        Self {
            entry,
            params,
            _announcement: None,
        }
    }

    /// Form of the query.
    pub fn form(&self) -> Form {
        self.entry.translated().form
    }

    /// Names of the columns of the answer.
    pub fn columns(&self) -> &[String] {
        &self.entry.translated().columns
    }

    /// How the columns of the answer are read.
    pub fn outputs(&self) -> &[Output] {
        &self.entry.translated().undecoded.outputs
    }

    /// The plan, made if need be.
    pub fn plan(&self) -> Rc<Plan> {
        self.entry.plan(&self.params)
    }
}

/// A query on a store (`None`: the default store), ready to be run, refusing all forms but these.
pub fn query_of_form(
    text: &str,
    store: Option<&str>,
    base: Option<&str>,
    forms: &[Form],
) -> Prepared {
    let prepared = query_of_any_form(text, store, base, None);
    let form = prepared.form();
    if !forms.contains(&form) {
        let function = match form {
            Form::Select => "quad.sparql",
            Form::Ask => "quad.ask",
            Form::Construct => "quad.construct",
            Form::Describe => "quad.describe",
        };
        raise_hint(
            PgSqlErrorCode::ERRCODE_WRONG_OBJECT_TYPE,
            format!("a query of the form {} has no such result", name_of(form)),
            format!("Call {function}."),
        );
    }
    prepared
}

/// A query of any form, ready to be run, on the graphs that were named beside the text.
pub fn query_of_any_form(
    text: &str,
    store: Option<&str>,
    base: Option<&str>,
    graphs: Option<&Graphs>,
) -> Prepared {
    let table = table_to_read(store);
    let target = target(&table, graphs);
    let identity = (text, &table, target.default_graph, graphs, base);
    let announcement = target.distributed.then(|| announce(identity)).flatten();
    Prepared {
        _announcement: announcement,
        ..Prepared::new(text, target, base)
    }
}

/// A query of the extension's own, ready to be run on the store whose default graph is its own, whatever the settings
/// say.
pub fn own_query(text: &str, store: Option<&str>) -> Prepared {
    let table = table_to_read(store);
    Prepared::new(text, Target::from(table.as_str()), None)
}
