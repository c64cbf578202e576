//! The order of ORDER BY (SPARQL 1.1 section 15.1), made total.
//!
//! Blank nodes, then IRIs, then literals. Literals whose values `<` compares are in that order.
//! What the spec leaves open is decided so. Numbers come first, then dates and times by type, durations, booleans,
//! texts (with and without language tag together), and literals of unknown value. Dates and times without time zone
//! sort as if in UTC, and NaN above all numbers. Terms of one value are ordered by lexical form, language tag (none
//! first) and datatype, so that only the same term is equal.

use crate::duration::within_cycle;
use crate::number::{compare_exactly, to_raw, Number, ONE};
use crate::value::{Instant, Value};
use crate::{Blank, Literal, LiteralKind, Term};
use oxsdatatypes::{DateTime, DayTimeDuration, Decimal, Duration};
use std::cmp::Ordering;
use std::sync::LazyLock;

/// Compares two terms for sorting. Equal only when they are the same term.
#[must_use]
pub fn order(a: &Term<'_>, b: &Term<'_>) -> Ordering {
    match (a, b) {
        (Term::Blank(a), Term::Blank(b)) => order_blanks(*a, *b),
        (Term::Blank(_), _) => Ordering::Less,
        (_, Term::Blank(_)) => Ordering::Greater,
        (Term::Iri(a), Term::Iri(b)) => a.cmp(b),
        (Term::Iri(_), _) => Ordering::Less,
        (_, Term::Iri(_)) => Ordering::Greater,
        (Term::Literal(a), Term::Literal(b)) => order_literals(a, b),
    }
}

fn order_blanks(a: Blank<'_>, b: Blank<'_>) -> Ordering {
    match (a, b) {
        (Blank::Number(a), Blank::Number(b)) => a.cmp(&b),
        (Blank::Number(_), Blank::Label(_)) => Ordering::Less,
        (Blank::Label(_), Blank::Number(_)) => Ordering::Greater,
        (Blank::Label(a), Blank::Label(b)) => a.cmp(b),
    }
}

fn order_literals(a: &Literal<'_>, b: &Literal<'_>) -> Ordering {
    if let (LiteralKind::String, LiteralKind::String) = (a.kind, b.kind) {
        return a.lexical.cmp(b.lexical);
    }
    order_values(&Key::of(a), &Key::of(b))
        .then_with(|| a.lexical.cmp(b.lexical))
        .then_with(|| language(a).cmp(language(b)))
        .then_with(|| a.kind.datatype().cmp(b.kind.datatype()))
}

fn language<'a>(literal: &Literal<'a>) -> &'a str {
    match literal.kind {
        LiteralKind::Language(tag) => tag,
        _ => "",
    }
}

/// What the value of a literal sorts by.
enum Key<'a> {
    Number(Number),
    Instant(u8, Instant),
    Duration(Decimal),
    Boolean(bool),
    Text(&'a str),
    Unknown,
}

impl<'a> Key<'a> {
    fn of(literal: &Literal<'a>) -> Self {
        match literal.value() {
            Value::Number(number) => Self::Number(number),
            Value::Instant(xsd, instant) => Self::Instant(xsd.code(), instant),
            Value::Duration(duration) => Self::Duration(reference_end(duration)),
            Value::Boolean(value) => Self::Boolean(value),
            Value::String(text) | Value::LangString(text, _) => Self::Text(text),
            Value::Unknown => Self::Unknown,
        }
    }

    fn rank(&self) -> u8 {
        match self {
            Self::Number(_) => 0,
            Self::Instant(..) => 1,
            Self::Duration(_) => 2,
            Self::Boolean(_) => 3,
            Self::Text(_) => 4,
            Self::Unknown => 5,
        }
    }
}

fn order_values(a: &Key<'_>, b: &Key<'_>) -> Ordering {
    match (a, b) {
        (Key::Number(a), Key::Number(b)) => compare_exactly(*a, *b),
        (Key::Instant(s, a), Key::Instant(t, b)) => s
            .cmp(t)
            .then_with(|| a.seconds.cmp(&b.seconds))
            .then_with(|| a.zoned.cmp(&b.zoned)),
        (Key::Duration(a), Key::Duration(b)) => a.cmp(b),
        (Key::Boolean(a), Key::Boolean(b)) => a.cmp(b),
        (Key::Text(a), Key::Text(b)) => a.cmp(b),
        _ => a.rank().cmp(&b.rank()),
    }
}

/// A number that is not greater for a term that comes before another. It decides most comparisons of a sort; [`order`]
/// decides those of terms with the same key.
#[must_use]
pub fn sort_key(term: &Term<'_>) -> u64 {
    let (rank, rest) = match term {
        Term::Blank(Blank::Number(number)) => (0, *number),
        Term::Blank(Blank::Label(label)) => (1, first_bytes(label)),
        Term::Iri(iri) => (2, first_bytes(iri)),
        Term::Literal(literal) => {
            let key = Key::of(literal);
            let rest = match key {
                Key::Number(number) => ordered_double(number.to_double()),
                Key::Instant(xsd, instant) => {
                    // Five bits tell the type, the rest the time, beyond some ten thousand years
                    // the nearest that fits.
                    const TIME_BITS: u32 = REST_BITS - 5;
                    let bias = 1_i128 << (TIME_BITS - 1);
                    let millis = to_raw(instant.seconds).div_euclid(ONE / 1000);
                    let time = (millis + bias).clamp(0, 2 * bias - 1) as u64;
                    u64::from(xsd) << TIME_BITS | time
                }
                Key::Duration(end) => ordered_double(Number::Decimal(end).to_double()),
                Key::Boolean(value) => value.into(),
                Key::Text(text) => first_bytes(text),
                Key::Unknown => first_bytes(literal.lexical),
            };
            (3 + u64::from(key.rank()), rest)
        }
    };
    rank << REST_BITS | rest
}

/// Bits of a sort key that do not tell the kind of term.
const REST_BITS: u32 = 60;

/// The first bytes, as far as they fit.
fn first_bytes(text: &str) -> u64 {
    let mut bytes = [0; 8];
    let length = text.len().min(bytes.len());
    bytes[..length].copy_from_slice(&text.as_bytes()[..length]);
    u64::from_be_bytes(bytes) >> (u64::BITS - REST_BITS)
}

/// The bits of a double, rearranged to sort as the values do, the last ones cut off.
fn ordered_double(value: f64) -> u64 {
    // Minus zero equals zero; there is one NaN, above all numbers.
    let bits = match value {
        0.0 => 0,
        _ if value.is_nan() => f64::NAN.to_bits(),
        _ => value.to_bits(),
    };
    let ordered = if bits >> 63 == 1 {
        !bits
    } else {
        bits | 1 << 63
    };
    ordered >> (u64::BITS - REST_BITS)
}

/// The end of a duration that begins at one of the four moments by which XSD 1.1 part 2 section 3.3.6.2 compares
/// durations. Whatever is smaller for all four is smaller here.
fn reference_end(duration: Duration) -> Decimal {
    static START: LazyLock<DateTime> =
        LazyLock::new(|| "1969-09-01T00:00:00".parse().expect("a valid dateTime"));
    within_cycle(duration)
        .and_then(|duration| START.checked_add_duration(duration))
        .and_then(|end| end.checked_sub(*START))
        .map_or_else(
            || {
                if duration.months() < 0 || duration.days() < 0 {
                    Decimal::MIN
                } else {
                    Decimal::MAX
                }
            },
            DayTimeDuration::as_seconds,
        )
}
