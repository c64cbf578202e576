//! Terms that need no dictionary: their id tells all of them.
//!
//! Every encoding here is lossless (the exact lexical form comes back) and monotone within its tag
//! and, for integers, within the datatype: a smaller value has a smaller id. Two lexical forms of one value that both
//! fit (`1.5` and `1.50`, or one instant in two time zones) get two ids, just as they are two terms. The ids are next
//! to each other in value order.

mod compare;
mod number;
mod text;
mod time;
mod value;

pub use compare::{
    ascending_instants, ascending_numbers, compare_inline, inline_number, ordinal, Scale,
};
pub use time::Parts;
pub use value::{float_id, integer_id, number_id};

use crate::id::tag;
use crate::xsd::Xsd;
use crate::{Blank, Literal, LiteralKind, Term, TermBuf, TermId};

/// The id of a term that can be inlined, else `None`: the term belongs into the dictionary.
///
/// Blank nodes that only have a label are not inlined: they have no number yet.
#[must_use]
pub fn inline_id(term: &Term<'_>) -> Option<TermId> {
    match term {
        Term::Iri(_) | Term::Blank(Blank::Label(_)) => None,
        Term::Blank(Blank::Number(number)) => Some(TermId::new(tag::BLANK, *number)),
        Term::Literal(Literal { lexical, kind }) => match kind {
            LiteralKind::String => {
                text::encode(lexical).map(|payload| TermId::new(tag::SHORT_STRING, payload))
            }
            LiteralKind::Xsd(xsd) => inline_xsd(lexical, *xsd),
            LiteralKind::Language(_) | LiteralKind::Other(_) => None,
        },
    }
}

fn inline_xsd(lexical: &str, xsd: Xsd) -> Option<TermId> {
    let (tag, payload) = match xsd {
        Xsd::Boolean => match lexical {
            "true" => (tag::BOOLEAN, 1),
            "false" => (tag::BOOLEAN, 0),
            _ => return None,
        },
        Xsd::Decimal => (tag::DECIMAL, number::encode_decimal(lexical)?),
        Xsd::Double => (tag::DOUBLE, number::encode_double(lexical)?),
        Xsd::Float => (tag::FLOAT, number::encode_float(lexical)?),
        Xsd::DateTime => (tag::DATE_TIME, time::encode_date_time(lexical)?),
        Xsd::Date => (tag::DATE, time::encode_date(lexical)?),
        _ if xsd.is_integer() => (tag::INTEGER, number::encode_integer(lexical, xsd)?),
        _ => return None,
    };
    Some(TermId::new(tag, payload))
}

/// The datatype that the id of an inlined literal tells; `None` for short strings and for what is not inlined.
#[inline]
#[must_use]
pub fn inline_datatype(id: TermId) -> Option<Xsd> {
    match id.tag() {
        tag::BOOLEAN => Some(Xsd::Boolean),
        tag::INTEGER => number::integer_type(id.payload()),
        tag::DECIMAL => Some(Xsd::Decimal),
        tag::DOUBLE => Some(Xsd::Double),
        tag::FLOAT => Some(Xsd::Float),
        tag::DATE_TIME => Some(Xsd::DateTime),
        tag::DATE => Some(Xsd::Date),
        _ => None,
    }
}

/// The parts of the moment that an inlined id tells; `None` for all other ids.
#[must_use]
pub fn inline_parts(id: TermId) -> Option<Parts> {
    match id.tag() {
        tag::DATE_TIME => time::date_time_parts(id.payload()),
        tag::DATE => time::date_parts(id.payload()),
        _ => None,
    }
}

/// The term of an inlined id; `None` for ids of the dictionary, the default graph and ids that no
/// term has.
#[must_use]
pub fn inline_term(id: TermId) -> Option<TermBuf> {
    let payload = id.payload();
    let (lexical, xsd) = match id.tag() {
        tag::BLANK => return Some(TermBuf::blank_number(payload)),
        tag::SHORT_STRING => return text::decode(payload).map(|text| TermBuf::string(&text)),
        tag::BOOLEAN => {
            return match payload {
                0 | 1 => Some(TermBuf::boolean(payload == 1)),
                _ => None,
            }
        }
        tag::INTEGER => number::decode_integer(payload)?,
        tag::DECIMAL => (number::decode_decimal(payload)?, Xsd::Decimal),
        tag::DOUBLE => (number::decode_double(payload)?, Xsd::Double),
        tag::FLOAT => (number::decode_float(payload)?, Xsd::Float),
        tag::DATE_TIME => (time::decode_date_time(payload)?, Xsd::DateTime),
        tag::DATE => (time::decode_date(payload)?, Xsd::Date),
        _ => return None,
    };
    Some(TermBuf::xsd(&lexical, xsd))
}
