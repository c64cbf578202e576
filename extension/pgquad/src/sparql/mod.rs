//! SPARQL from SQL: the functions `quad.sparql`, `quad.ask`, `quad.construct`, `quad.describe`, `quad.query`,
//! `quad.update` and their kin.
//!
//! A request is translated by the crate `pgquad-sparql`; the SQL runs through SPI with the rights of the caller.

mod answer;
mod cache_functions;
mod execute;
mod explain;
mod graph_text;
mod joins;
mod json;
mod parameters;
mod plan;
mod prepared;
mod query;
mod receiver;
mod results;
mod statements;
mod stream;
mod table;
mod template_cache;
mod translate;
mod update;
mod view;

/// Installs a hook; called once from `_PG_init`.
pub fn init() {
    table::init();
}
