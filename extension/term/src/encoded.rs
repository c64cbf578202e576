//! The compact form of a term: one UTF-8 text whose first character is the kind. It is what the
//! SQL type stores and what the dictionary hash is taken of, so it must never change.
//!
//! | first character | rest |
//! |---|---|
//! | `I` | IRI |
//! | `N` | number of a blank node: nine base-128 digits, high first |
//! | `B` | label of a blank node |
//! | `S` | lexical form of an `xsd:string` |
//! | `L` | language tag, NUL, lexical form |
//! | `T` | datatype IRI, NUL, lexical form |
//! | U+0001 to U+001D | lexical form of the [`Xsd`] datatype with that number |
//!
//! Neither language tags nor IRIs can hold NUL, so the first one ends them. Equal terms have equal
//! encodings, and only they.

use crate::xsd::Xsd;
use crate::{Blank, Literal, LiteralKind, Term};

/// Bytes that a term of the dictionary may have at most in this form: 1 MB.
pub const MAX_TERM_BYTES: usize = 1 << 20;

const NUMBER_DIGITS: usize = 9;

/// What the encoding of a term begins with.
#[inline]
pub(crate) fn kind(term: &Term<'_>) -> u8 {
    match term {
        Term::Iri(_) => b'I',
        Term::Blank(Blank::Number(_)) => b'N',
        Term::Blank(Blank::Label(_)) => b'B',
        Term::Literal(literal) => match literal.kind {
            LiteralKind::String => b'S',
            LiteralKind::Xsd(xsd) => xsd.code(),
            LiteralKind::Language(_) => b'L',
            LiteralKind::Other(_) => b'T',
        },
    }
}

/// Appends the encoding of a term.
pub fn encode(term: &Term<'_>, out: &mut String) {
    out.push(char::from(kind(term)));
    match *term {
        Term::Iri(text) | Term::Blank(Blank::Label(text)) => out.push_str(text),
        Term::Blank(Blank::Number(number)) => {
            for digit in (0..NUMBER_DIGITS).rev() {
                out.push(char::from((number >> (7 * digit)) as u8 & 0x7f));
            }
        }
        Term::Literal(Literal { lexical, kind }) => {
            if let LiteralKind::Language(prefix) | LiteralKind::Other(prefix) = kind {
                push_prefix(prefix, out);
            }
            out.push_str(lexical);
        }
    }
}

fn push_prefix(prefix: &str, out: &mut String) {
    debug_assert!(!prefix.contains('\0'), "NUL ends the prefix");
    out.push_str(prefix);
    out.push('\0');
}

/// Length in bytes of the encoding of a term.
#[must_use]
pub fn encoded_len(term: &Term<'_>) -> usize {
    1 + match term {
        Term::Iri(text) | Term::Blank(Blank::Label(text)) => text.len(),
        Term::Blank(Blank::Number(_)) => NUMBER_DIGITS,
        Term::Literal(Literal { lexical, kind }) => {
            lexical.len()
                + match kind {
                    LiteralKind::String | LiteralKind::Xsd(_) => 0,
                    LiteralKind::Language(prefix) | LiteralKind::Other(prefix) => prefix.len() + 1,
                }
        }
    }
}

/// The term with this encoding, borrowed from it; `None` when the text is no encoding.
#[inline]
#[must_use]
pub fn decode(text: &str) -> Option<Term<'_>> {
    let kind = *text.as_bytes().first()?;
    if !kind.is_ascii() {
        return None;
    }
    let rest = &text[1..];
    Some(match kind {
        b'I' => Term::Iri(rest),
        b'S' => Term::string(rest),
        b'B' => match Blank::from_label(rest) {
            label @ Blank::Label(_) => Term::Blank(label),
            Blank::Number(_) => return None,
        },
        b'N' => {
            if rest.len() != NUMBER_DIGITS || !rest.is_ascii() {
                return None;
            }
            let number = rest
                .bytes()
                .fold(0, |number, digit| (number << 7) | u64::from(digit));
            Term::Blank(Blank::Number(number))
        }
        b'L' => {
            let (tag, lexical) = rest.split_once('\0')?;
            Term::language(lexical, tag)
        }
        b'T' => {
            let (iri, lexical) = rest.split_once('\0')?;
            Term::Literal(Literal {
                lexical,
                kind: LiteralKind::Other(iri),
            })
        }
        code => Term::xsd(rest, Xsd::from_code(code)?),
    })
}
