//! Arithmetic operators (section 17.3) and functions on numbers (section 17.4.4). NULL is the error.

use pgquad_term::func::numeric;
use pgquad_term::number::format_double;
use pgquad_term::{TermBuf, Xsd};
use pgrx::prelude::*;

use super::functions::sql_functions;
use super::{value, TermArg, TermOut};
use crate::term::constructors::random_bytes;

sql_functions! {
    /// `A + B`.
    sparql_add as "add"(a, b) -> TermOut = numeric::add;
    /// `A - B`.
    sparql_sub as "sub"(a, b) -> TermOut = numeric::sub;
    /// `A * B`.
    sparql_mul as "mul"(a, b) -> TermOut = numeric::mul;
    /// `A / B`.
    sparql_div as "div"(a, b) -> TermOut = numeric::div;
    /// `-A`.
    sparql_neg as "neg"(term) -> TermOut = numeric::neg;
    /// `+A`.
    sparql_pos as "pos"(term) -> TermOut = numeric::pos;
    /// ABS.
    fn_abs(term) -> TermOut = numeric::abs;
    /// ROUND.
    fn_round(term) -> TermOut = numeric::round;
    /// CEIL.
    fn_ceil(term) -> TermOut = numeric::ceil;
    /// FLOOR.
    fn_floor(term) -> TermOut = numeric::floor;
}

/// RAND: a double from 0 to below 1.
#[pg_extern(volatile, parallel_safe)]
fn fn_rand() -> TermOut {
    let bits = u64::from_be_bytes(random_bytes());
    // The 53 bits of a double's mantissa.
    let value = (bits >> 11) as f64 / (1_u64 << 53) as f64;
    TermOut(TermBuf::xsd(&format_double(value), Xsd::Double))
}
