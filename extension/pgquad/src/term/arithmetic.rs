//! Arithmetic operators (section 17.3) and functions on numbers (section 17.4.4). NULL is the error.

use pgquad_term::func::numeric;
use pgquad_term::number::format_double;
use pgquad_term::{TermBuf, Xsd};
use pgrx::prelude::*;

use super::{value, TermArg, TermOut};
use crate::term::constructors::random_bytes;

macro_rules! unary {
    ($($(#[$doc:meta])* $name:ident $sql:literal = $function:path;)*) => {$(
        $(#[$doc])*
        #[pg_extern(immutable, parallel_safe, name = $sql)]
        fn $name(term: TermArg<'_>) -> Option<TermOut> {
            value($function(&term.term())).map(TermOut)
        }
    )*};
}

macro_rules! binary {
    ($($(#[$doc:meta])* $name:ident $sql:literal = $function:path;)*) => {$(
        $(#[$doc])*
        #[pg_extern(immutable, parallel_safe, name = $sql)]
        fn $name(a: TermArg<'_>, b: TermArg<'_>) -> Option<TermOut> {
            value($function(&a.term(), &b.term())).map(TermOut)
        }
    )*};
}

binary! {
    /// `A + B`.
    sparql_add "add" = numeric::add;
    /// `A - B`.
    sparql_sub "sub" = numeric::sub;
    /// `A * B`.
    sparql_mul "mul" = numeric::mul;
    /// `A / B`.
    sparql_div "div" = numeric::div;
}

unary! {
    /// `-A`.
    sparql_neg "neg" = numeric::neg;
    /// `+A`.
    sparql_pos "pos" = numeric::pos;
    /// ABS.
    fn_abs "fn_abs" = numeric::abs;
    /// ROUND.
    fn_round "fn_round" = numeric::round;
    /// CEIL.
    fn_ceil "fn_ceil" = numeric::ceil;
    /// FLOOR.
    fn_floor "fn_floor" = numeric::floor;
}

/// RAND: a double from 0 to below 1.
#[pg_extern(volatile, parallel_safe)]
fn fn_rand() -> TermOut {
    let [bytes @ .., _, _, _, _, _, _, _, _] = random_bytes();
    let bits = u64::from_be_bytes(bytes);
    // The 53 bits of a double's mantissa.
    let value = (bits >> 11) as f64 / (1_u64 << 53) as f64;
    TermOut(TermBuf::xsd(&format_double(value), Xsd::Double))
}
