//! The 64-bit term id: a 4-bit tag and a 59-bit payload, sign bit clear, so that the id and the
//! SQL `bigint` of the same value sort alike.

use crate::{encoded, Term, Xsd};

/// Bits of the payload.
pub const PAYLOAD_BITS: u32 = 59;
/// Largest payload.
pub const MAX_PAYLOAD: u64 = (1 << PAYLOAD_BITS) - 1;
/// Bits of the dictionary number of a language string.
pub const LANGUAGE_SHIFT: u32 = 47;
/// Largest dictionary number a language string can have.
pub const MAX_LANGUAGE_STRING_NUMBER: u64 = (1 << LANGUAGE_SHIFT) - 1;
/// Largest language number (numbers start at 1).
pub const MAX_LANGUAGE_NUMBER: u16 = (1 << (PAYLOAD_BITS - LANGUAGE_SHIFT)) - 1;

/// Values of the tag bits.
pub mod tag {
    /// IRI; the payload is its dictionary number. Payload 0 is the default graph.
    pub const IRI: u8 = 0;
    /// Blank node; the payload is its number. Not in the dictionary.
    pub const BLANK: u8 = 1;
    /// `xsd:string` in the dictionary.
    pub const STRING: u8 = 2;
    /// Language string in the dictionary: language number (12 bits), then dictionary number (47).
    pub const LANG_STRING: u8 = 3;
    /// Any other literal in the dictionary.
    pub const OTHER: u8 = 4;
    /// Inlined `xsd:boolean`.
    pub const BOOLEAN: u8 = 5;
    /// Inlined `xsd:integer` and the types derived from it.
    pub const INTEGER: u8 = 6;
    /// Inlined `xsd:decimal`.
    pub const DECIMAL: u8 = 7;
    /// Inlined `xsd:double`.
    pub const DOUBLE: u8 = 8;
    /// Inlined `xsd:float`.
    pub const FLOAT: u8 = 9;
    /// Inlined `xsd:dateTime`.
    pub const DATE_TIME: u8 = 10;
    /// Inlined `xsd:date`.
    pub const DATE: u8 = 11;
    /// Inlined `xsd:string` of at most seven bytes.
    pub const SHORT_STRING: u8 = 12;
}

/// A term id. Equal terms have equal ids within one database.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct TermId(pub u64);

impl TermId {
    /// The default graph; never the id of a term.
    pub const DEFAULT_GRAPH: Self = Self(0);

    /// The id with this tag and payload. The tag must be below 16, the payload within
    /// [`MAX_PAYLOAD`]; excess bits are cut off.
    #[inline]
    #[must_use]
    pub const fn new(tag: u8, payload: u64) -> Self {
        Self(((tag as u64 & 15) << PAYLOAD_BITS) | (payload & MAX_PAYLOAD))
    }

    /// The id of a language string with its language and dictionary numbers.
    #[inline]
    #[must_use]
    pub const fn lang_string(language: u16, number: u64) -> Self {
        Self::new(
            tag::LANG_STRING,
            ((language as u64) << LANGUAGE_SHIFT) | (number & MAX_LANGUAGE_STRING_NUMBER),
        )
    }

    /// The id of a term that is kept in the dictionary under `number`. `language` is the number of
    /// the language tag of a language string, `None` when the language numbers are used up.
    ///
    /// Terms that [`crate::inline_id`] can inline must not come here: they would get two ids.
    #[must_use]
    pub fn in_dictionary(term: &Term<'_>, number: u64, language: Option<u16>) -> Self {
        Self::of_kind(encoded::kind(term), number, language)
            .expect("the encoding of a term begins with a kind")
    }

    /// As [`Self::in_dictionary`], for a term whose encoded form begins with `kind`; `None` where none does.
    #[must_use]
    pub fn of_kind(kind: u8, number: u64, language: Option<u16>) -> Option<Self> {
        Some(match (kind, language) {
            (b'I', _) => Self::new(tag::IRI, number),
            (b'N' | b'B', _) => Self::new(tag::BLANK, number),
            (b'S', _) => Self::new(tag::STRING, number),
            (b'L', Some(language)) if number <= MAX_LANGUAGE_STRING_NUMBER => {
                Self::lang_string(language, number)
            }
            (b'L' | b'T', _) => Self::new(tag::OTHER, number),
            (code, _) => {
                Xsd::from_code(code)?;
                Self::new(tag::OTHER, number)
            }
        })
    }

    /// The tag, see [`tag`].
    #[inline]
    #[must_use]
    pub const fn tag(self) -> u8 {
        (self.0 >> PAYLOAD_BITS) as u8 & 15
    }

    /// The payload.
    #[inline]
    #[must_use]
    pub const fn payload(self) -> u64 {
        self.0 & MAX_PAYLOAD
    }

    /// Whether the id itself tells the whole term: blank nodes and inlined literals.
    #[inline]
    #[must_use]
    pub const fn is_inline(self) -> bool {
        matches!(self.tag(), tag::BLANK | tag::BOOLEAN..=tag::SHORT_STRING)
    }

    /// The dictionary number of a term that is in the dictionary; `None` for inlined terms and the
    /// default graph.
    #[inline]
    #[must_use]
    pub const fn dictionary_number(self) -> Option<u64> {
        match self.tag() {
            tag::IRI if self.payload() == 0 => None,
            tag::IRI | tag::STRING | tag::OTHER => Some(self.payload()),
            tag::LANG_STRING => Some(self.payload() & MAX_LANGUAGE_STRING_NUMBER),
            _ => None,
        }
    }

    /// The language number of a language string (tag 3).
    #[inline]
    #[must_use]
    pub const fn language_number(self) -> Option<u16> {
        match self.tag() {
            tag::LANG_STRING => Some((self.payload() >> LANGUAGE_SHIFT) as u16),
            _ => None,
        }
    }

    /// The id stored in a `bigint` column; `None` for a negative number, which is never an id.
    #[inline]
    #[must_use]
    pub const fn from_i64(value: i64) -> Option<Self> {
        if value < 0 {
            None
        } else {
            Some(Self(value as u64))
        }
    }

    /// The `bigint` of this id.
    #[inline]
    #[must_use]
    pub const fn to_i64(self) -> i64 {
        self.0 as i64
    }
}
