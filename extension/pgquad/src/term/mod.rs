//! The SQL type `quad.term`, its operators, casts, functions and aggregates: what the SQL made of SPARQL queries calls.
//!
//! A datum is a varlena that holds the compact encoding of [`pgquad_term::encoded`]. NULL stands for an unbound
//! variable and for the error of a SPARQL expression. Arguments come as [`TermArg`], which borrows from the datum;
//! results are [`TermOut`].

mod accessors;
mod aggregates;
mod arithmetic;
mod by_id;
pub mod by_id_conditions;
mod casts;
mod compare;
mod constructors;
mod datum;
mod functions;
mod hashing;
mod id_order;
mod io;
mod opclass;
mod simplify;
mod sort;
pub mod sql_value;
mod strings;
mod time;
mod xsd_casts;

pub use aggregates::{average, average_id, number_of_datum, sum_id, total};
pub use constructors::random_bytes;
pub use datum::{value, TermArg, TermCopy, TermOut};
pub use id_order::order_of;
