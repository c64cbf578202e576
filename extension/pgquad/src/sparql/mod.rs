//! SPARQL from SQL: the functions `quad.sparql`, `quad.ask`, `quad.construct`, `quad.describe`, `quad.update` and their kin.
//!
//! A request is translated by the crate `pgquad-sparql`; the SQL runs through SPI with the rights of the caller.

mod execute;
mod explain;
mod query;
mod request;
mod results;
mod update;
