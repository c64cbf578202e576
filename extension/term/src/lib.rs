//! RDF terms and their 64-bit ids, the order of values, XPath arithmetic and the functions of
//! SPARQL 1.1. Knows nothing of PostgreSQL.
//!
//! * [`Term`] is a borrowed RDF term, [`TermBuf`] an owned one in the compact [`encoded`] form.
//! * [`TermId`] is the 64-bit id; [`inline_id`] and [`inline_term`] convert the terms that need no
//!   dictionary.
//! * [`parse`] and `Display` read and write the N-Triples form.
//! * [`compare`] has the comparison operators, [`order()`] the order of ORDER BY, [`func`] the
//!   arithmetic and the functions, [`aggregate`] the aggregates.

pub mod aggregate;
pub mod block;
pub mod bloom;
pub mod cache;
pub mod compare;
mod duration;
pub mod encoded;
mod error;
pub mod func;
mod hash;
pub mod id;
mod inline;
mod key;
mod ntriples;
pub mod number;
pub mod number_pages;
mod order;
mod ranges;
mod term;
pub mod value;
mod xsd;

pub use error::{Error, Result};
pub use hash::{encoded_hash, encoded_hash_with_seed, term_hash};
pub use id::{tag, TermId};
pub use inline::{
    ascending_instants, ascending_numbers, compare_inline, float_id, inline_datatype, inline_id,
    inline_number, inline_parts, inline_term, integer_id, number_id, ordinal, Parts, Scale,
};
pub use key::{key_of, key_of_id, shared_value_ids, ValueKey};
pub use ntriples::{parse, parse_prefix, ParseError};
pub use order::{order, sort_key};
pub use ranges::intersection;
pub use term::{Blank, Literal, LiteralKind, Term, TermBuf};
pub use xsd::{Xsd, RDF_LANG_STRING, XSD_NS};
