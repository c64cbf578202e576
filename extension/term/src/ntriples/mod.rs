//! The N-Triples form of a term.

mod parse;
mod write;

pub use parse::{parse, parse_prefix, ParseError};
