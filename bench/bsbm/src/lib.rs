//! The Berlin SPARQL Benchmark, version 3.1: its data at any scale, and its query mixes.

pub mod data;
pub mod dates;
pub mod hierarchy;
pub mod instances;
pub mod model;
pub mod pgbench;
pub mod queries;
pub mod random;
pub mod triples;
pub mod vocabulary;
pub mod words;
