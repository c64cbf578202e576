//! `quad.template_cache` and its kin: what a session keeps of the requests that it has run.

use pgrx::prelude::*;

use super::translate::name_of;
use super::{statements, template_cache};

/// The templates that this session keeps, the last used first. A template is the text of its queries with `$1`, `$2`,
/// ... for the constants that may differ; a text without them stands for itself. `hits` counts the queries that found
/// it; the last two columns say how often its SQL took a plan for all constants and one for those at hand.
#[pg_extern(volatile)]
#[allow(clippy::type_complexity)]
fn template_cache() -> TableIterator<
    'static,
    (
        name!(kind, String),
        name!(store, String),
        name!(template, String),
        name!(hits, i64),
        name!(generic_plans, i64),
        name!(custom_plans, i64),
    ),
> {
    TableIterator::new(template_cache::listed().into_iter().map(|row| {
        let (generic, custom) = row.plans;
        let form = name_of(row.form).to_owned();
        (form, row.table, row.text, row.hits, generic, custom)
    }))
}

/// What the cache of templates did in this session. It counts queries that found their template, queries that made one,
/// and templates that gave way to others. It also counts plans of updates that are kept, and how often one was found.
#[pg_extern(volatile)]
fn template_cache_stats() -> TableIterator<
    'static,
    (
        name!(templates, i64),
        name!(hits, i64),
        name!(misses, i64),
        name!(evictions, i64),
        name!(update_plans, i64),
        name!(update_hits, i64),
    ),
> {
    let templates = template_cache::counts();
    let (update_plans, update_hits) = statements::counts();
    TableIterator::once((
        templates.templates,
        templates.hits,
        templates.misses,
        templates.evictions,
        update_plans,
        update_hits,
    ))
}

/// Forgets all templates of this session and sets its counters to zero.
#[pg_extern(volatile)]
fn template_cache_reset() {
    template_cache::reset();
    statements::reset();
}
