//! SPARQL from SQL: the functions `quad.sparql`, `quad.ask`, `quad.construct`, `quad.describe`, `quad.query`,
//! `quad.update` and their kin.
//!
//! A request is translated by the crate `pgquad-sparql`; the SQL runs through SPI with the rights of the caller.

mod answer;
mod cache;
mod execute;
mod explain;
mod graph_text;
mod joins;
mod json;
mod plan;
mod query;
mod receiver;
mod request;
mod results;
mod statements;
mod stream;
mod table;
mod update;
mod view;

/// Defines settings; called once from `_PG_init`.
pub fn init() {
    cache::init();
    plan::init();
    stream::init();
    table::init();
}
