//! Values of ids that are ids again. Counts and floats are always in their ids, so computing with them needs no terms.

use pgquad_term::func::cast;
use pgquad_term::func::strings::text_of;
use pgquad_term::number::Number;
use pgquad_term::{
    float_id, inline_number, integer_id, number_id, tag, Error, Term, TermBuf, TermId,
};
use pgrx::prelude::*;
use pgrx::{pg_sys, PgSqlErrorCode};

use super::ahead::count_read;
use super::casts::Cast;
use super::read::{term_in, unknown_id, Reader};
use super::sql::term_id;
use super::state::{self, with_state, State};
use crate::pg::error::raise;
use crate::rights;
use crate::term::value;

/// The number that a term is; `None` for any other term.
pub fn number(id: i64) -> Option<Number> {
    let id = term_id(id);
    match may_be_number(id) {
        false => None,
        true => inline_number(id).or_else(|| super::with_term(id, number_of)?),
    }
}

/// The numbers that terms are; those that are not in their ids are read together.
pub fn numbers(ids: &[Option<i64>]) -> Vec<Option<Number>> {
    let mut numbers = vec![None; ids.len()];
    let mut unread = Vec::new();
    for (place, id) in ids.iter().enumerate() {
        let id = id.map(term_id).filter(|&id| may_be_number(id));
        numbers[place] = id.and_then(inline_number);
        if numbers[place].is_none() {
            unread.extend(id.map(|id| (id, place)));
        }
    }
    super::for_each_term(&unread, |place, term| {
        numbers[place] = number_of(&term.as_term())
    });
    numbers
}

/// Whether the term of an id may be a number, as far as the id tells.
fn may_be_number(id: TermId) -> bool {
    !matches!(
        id.tag(),
        tag::IRI | tag::BLANK | tag::STRING | tag::SHORT_STRING | tag::LANG_STRING
    )
}

fn number_of(term: &Term<'_>) -> Option<Number> {
    match term {
        Term::Literal(literal) => literal.number(),
        _ => None,
    }
}

/// The id of the `xsd:integer` of a count or the like.
#[pg_extern(immutable, strict, parallel_safe)]
fn int_id(value: i64) -> i64 {
    integer_id(value).map_or_else(
        || {
            raise(
                PgSqlErrorCode::ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE,
                format!("{value} is no count"),
            )
        },
        TermId::to_i64,
    )
}

impl Cast {
    /// The cast of the term with this id; `None` is an error of the cast.
    fn of(self, id: TermId) -> Option<f32> {
        let Some(number) = id.dictionary_number() else {
            return self.of_term(&super::decode(id)?.as_term());
        };
        let found = with_state(|state| {
            if let Some(known) = state.casts.get(self, number) {
                return Some(known);
            }
            let is_here = state.layout.holding(number).is_some();
            is_here.then(|| {
                count_read();
                self.read(state, id, number)
            })
        });
        found.unwrap_or_else(|| {
            // A chunk of terms is one message.
            let float = super::with_term(id, |term| self.of_term(term)).flatten();
            with_state(|state| state.casts.put(self, number, float));
            float
        })
    }

    fn of_term(self, term: &Term<'_>) -> Option<f32> {
        value(self.cast(term))
    }

    fn cast(self, term: &Term<'_>) -> Result<f32, Error> {
        match self {
            Self::Term => cast::to_float(term),
            Self::Text => text_of(term).and_then(cast::text_to_float),
        }
    }

    /// Reads and casts a term of this node, and others of its block when that is opened again: see [`super::casts`].
    fn read(self, state: &mut State, id: TermId, number: u64) -> Option<f32> {
        let checked = |term: &TermBuf| match super::fits(id, term.as_encoded()) {
            true => self.of_term(&term.as_term()),
            false => unknown_id(id),
        };
        if let Some(term) = state.terms.look(&number, state::term_bytes) {
            let float = checked(term);
            state.casts.put(self, number, float);
            return float;
        }
        let block = Reader::default().block(state, number);
        let block = block.unwrap_or_else(|| unknown_id(id));
        let float = checked(&term_in(&block, number));
        state.casts.put(self, number, float);
        if id.tag() == tag::OTHER && state.casts.is_opened_again(self, block.first()) {
            for other in block.alike(number) {
                if state.casts.get(self, other).is_some() {
                    continue;
                }
                // Nobody has asked for it: that it cannot be read is for whoever does.
                match block.term(other).map(|term| self.cast(&term.as_term())) {
                    Ok(Ok(float)) => state.casts.put(self, other, Some(float)),
                    Err(_) | Ok(Err(Error::NotSupported(_) | Error::TooLong)) => {}
                    Ok(Err(_)) => state.casts.put(self, other, None),
                }
            }
        }
        float
    }
}

/// The id of `xsd:float(A)`, given that of A; NULL is the error.
#[pg_extern(stable, strict, parallel_safe, name = "cast_float", cost = 20)]
fn id_cast_float(id: i64, call: pg_sys::FunctionCallInfo) -> Option<i64> {
    rights::check(call, &[id]);
    let id = term_id(id);
    let float = match inline_number(id) {
        Some(Number::Float(value)) => Some(value),
        _ => Cast::Term.of(id),
    };
    float.map(|float| float_id(float).to_i64())
}

/// The id of `xsd:float(STR(A))`, given that of A; NULL is the error.
#[pg_extern(stable, strict, parallel_safe, cost = 50)]
fn cast_float_of_str(id: i64, call: pg_sys::FunctionCallInfo) -> Option<i64> {
    rights::check(call, &[id]);
    Cast::Text
        .of(term_id(id))
        .map(|float| float_id(float).to_i64())
}

macro_rules! float_arithmetic {
    ($($(#[$doc:meta])* $name:ident = $operation:path;)*) => {$(
        $(#[$doc])*
        #[pg_extern(stable, strict, parallel_safe)]
        fn $name(a: i64, b: i64, call: pg_sys::FunctionCallInfo) -> Option<i64> {
            rights::check(call, &[a, b]);
            let result = value($operation(number(a)?, number(b)?))?;
            number_id(result).map(TermId::to_i64)
        }
    )*};
}

// One of the operands is an `xsd:float`, and the other no `xsd:double`, so that the result is a float as well.
float_arithmetic! {
    /// The id of `A + B`, given those of a float and a number; NULL is the error.
    add_float = Number::checked_add;
    /// The id of `A - B`, given those of a float and a number; NULL is the error.
    sub_float = Number::checked_sub;
    /// The id of `A * B`, given those of a float and a number; NULL is the error.
    mul_float = Number::checked_mul;
    /// The id of `A / B`, given those of a float and a number; NULL is the error.
    div_float = Number::checked_div;
}
