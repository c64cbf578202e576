//! The value of a term as far as its id tells, and SPARQL's operators on such values.

use crate::constants::{LANG_STRING_PLACE, STRING_PLACE};
use crate::operators::{Arithmetic, Comparison, TermKind, TextIds};
use crate::truth::Truth;
use crate::SIGN;
use pgquad_term::func::strings::lang_matches;
use pgquad_term::number::{compare_promoted, Number};
use pgquad_term::{
    compare_inline, inline_datatype, inline_id, inline_number, inline_term, tag, Term, TermId,
};
use std::cmp::Ordering;

/// What is known of the term of a row.
#[derive(Clone, Copy, Debug)]
pub enum Value {
    /// No term: an error, or something unbound.
    Null,
    /// Not to be told from ids.
    Unknown,
    /// The term with this id.
    Id(TermId),
    /// A computed number, or a literal with its value that has no id of its own.
    Number(Number),
}

/// Terms that have comparisons in common.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    /// IRIs and blank nodes.
    Node,
    LanguageString,
    String,
    Boolean,
    Number,
    DateTime,
    Date,
    /// Literals of which only the dictionary tells more.
    Other,
}

fn class(id: TermId) -> Class {
    match id.tag() {
        tag::IRI | tag::BLANK => Class::Node,
        tag::LANG_STRING => Class::LanguageString,
        tag::STRING | tag::SHORT_STRING => Class::String,
        tag::BOOLEAN => Class::Boolean,
        tag::INTEGER | tag::DECIMAL | tag::DOUBLE | tag::FLOAT => Class::Number,
        tag::DATE_TIME => Class::DateTime,
        tag::DATE => Class::Date,
        _ => Class::Other,
    }
}

impl Value {
    /// The term with an id, given as a key.
    #[inline]
    #[must_use]
    pub fn of_key(key: Option<u64>) -> Self {
        match key.map(|key| key ^ SIGN) {
            // The default graph is no term.
            None | Some(0) => Self::Null,
            // What is no id at all is for others to complain about.
            Some(number) if number & SIGN != 0 => Self::Unknown,
            Some(number) => Self::Id(TermId(number)),
        }
    }

    /// A term that is the same for all rows. `id` gives the id it has in the dictionary, or that of a
    /// [`crate::UnstoredConstants`].
    #[must_use]
    pub fn of_term(term: &Term<'_>, id: impl FnOnce() -> TermId) -> Self {
        if let Some(id) = inline_id(term) {
            return Self::Id(id);
        }
        let number = match term {
            Term::Literal(literal) => literal.number(),
            _ => None,
        };
        number.map_or_else(|| Self::Id(id()), Self::Number)
    }

    /// The `xsd:boolean` of a truth value.
    #[must_use]
    pub fn of_truth(truth: Truth) -> Self {
        match truth {
            Truth::Null => Self::Null,
            Truth::Unknown => Self::Unknown,
            Truth::False | Truth::True => {
                Self::Id(TermId::new(tag::BOOLEAN, (truth == Truth::True).into()))
            }
        }
    }

    fn class(self) -> Class {
        match self {
            Self::Id(id) => class(id),
            Self::Number(_) => Class::Number,
            Self::Null | Self::Unknown => Class::Other,
        }
    }

    /// The number; `Null` for what surely is none, else `Unknown`.
    fn number(self) -> Result<Number, Self> {
        match self {
            Self::Number(number) => Ok(number),
            Self::Id(id) => inline_number(id).ok_or(match class(id) {
                Class::Other | Class::Number => Self::Unknown,
                _ => Self::Null,
            }),
            other => Err(other),
        }
    }

    /// IS NULL.
    #[must_use]
    pub fn is_null(self) -> Truth {
        match self {
            Self::Null => Truth::True,
            Self::Unknown => Truth::Unknown,
            Self::Id(_) | Self::Number(_) => Truth::False,
        }
    }

    /// A comparison.
    #[must_use]
    pub fn compare(self, comparison: Comparison, other: Self) -> Truth {
        match (self, other) {
            (Self::Null, _) | (_, Self::Null) => Truth::Null,
            (Self::Unknown, _) | (_, Self::Unknown) => Truth::Unknown,
            _ => match comparison {
                Comparison::Eq => self.equal(other),
                Comparison::Ne => !self.equal(other),
                _ => self.ordered(comparison, other),
            },
        }
    }

    fn equal(self, other: Self) -> Truth {
        let (mine, others) = (self.class(), other.class());
        let same_id = || match (self, other) {
            (Self::Id(a), Self::Id(b)) => a == b,
            _ => false,
        };
        let by_identity = |class| matches!(class, Class::Node | Class::LanguageString);
        if by_identity(mine)
            || by_identity(others)
            || (mine, others) == (Class::String, Class::String)
        {
            Truth::of(Some(same_id()))
        } else if mine == Class::Other || others == Class::Other {
            Truth::Unknown
        } else if mine != others {
            Truth::False
        } else {
            match self.order(other) {
                Some(order) => Truth::of(Some(order == Some(Ordering::Equal))),
                None => Truth::Unknown,
            }
        }
    }

    fn ordered(self, comparison: Comparison, other: Self) -> Truth {
        let (mine, others) = (self.class(), other.class());
        if mine == Class::Node || others == Class::Node {
            Truth::Null
        } else if (mine, others) == (Class::LanguageString, Class::LanguageString) {
            self.ordered_in_language(comparison, other)
        } else if mine == Class::Other || others == Class::Other {
            Truth::Unknown
        } else if mine != others {
            Truth::Null
        } else {
            match self.order(other) {
                Some(order) => Truth::of(Some(order.is_some_and(|o| comparison.accepts(o)))),
                None => Truth::Unknown,
            }
        }
    }

    /// Comparison of two language strings, which have an order where they are of one language.
    fn ordered_in_language(self, comparison: Comparison, other: Self) -> Truth {
        match (self, other) {
            (Self::Id(a), Self::Id(b)) if a == b => {
                Truth::of(Some(comparison.accepts(Ordering::Equal)))
            }
            (Self::Id(a), Self::Id(b)) if a.language_number() == b.language_number() => {
                Truth::Unknown
            }
            _ => Truth::Null,
        }
    }

    /// The order of two values of one class; `Some(None)` with a NaN, `None` when ids do not tell.
    #[allow(clippy::option_option)]
    fn order(self, other: Self) -> Option<Option<Ordering>> {
        if let (Self::Id(a), Self::Id(b)) = (self, other) {
            if let Some(order) = compare_inline(a, b) {
                return Some(Some(order));
            }
        }
        match (self.number(), other.number()) {
            (Ok(a), Ok(b)) => Some(compare_promoted(a, b)),
            _ => None,
        }
    }

    /// An operator on two numbers.
    #[must_use]
    pub fn arithmetic(self, operator: Arithmetic, other: Self) -> Self {
        if matches!(self, Self::Null) || matches!(other, Self::Null) {
            return Self::Null;
        }
        let (Ok(a), Ok(b)) = (self.number(), other.number()) else {
            // Dates and durations can be added and subtracted as well.
            return Self::Unknown;
        };
        let result = match operator {
            Arithmetic::Add => a.checked_add(b),
            Arithmetic::Sub => a.checked_sub(b),
            Arithmetic::Mul => a.checked_mul(b),
            Arithmetic::Div => a.checked_div(b),
        };
        result.map_or(Self::Null, Self::Number)
    }

    /// `-A`
    #[must_use]
    pub fn negated(self) -> Self {
        match self.number() {
            Ok(number) => number.checked_neg().map_or(Self::Null, Self::Number),
            Err(other) => other,
        }
    }

    /// `+A`
    #[must_use]
    pub fn plus(self) -> Self {
        match self.number() {
            Ok(number) => Self::Number(number),
            Err(other) => other,
        }
    }

    /// The effective boolean value.
    #[must_use]
    pub fn effective(self) -> Truth {
        let id = match self {
            Self::Null => return Truth::Null,
            Self::Unknown => return Truth::Unknown,
            Self::Number(number) => return Truth::of(Some(!number.is_falsy())),
            Self::Id(id) => id,
        };
        match id.tag() {
            tag::BOOLEAN => Truth::of(Some(id.payload() == 1)),
            // The empty string is a short one.
            tag::STRING => Truth::True,
            tag::SHORT_STRING => Truth::of(Some(id.payload() != 0)),
            tag::INTEGER | tag::DECIMAL | tag::DOUBLE | tag::FLOAT => match inline_number(id) {
                Some(number) => Truth::of(Some(!number.is_falsy())),
                None => Truth::Unknown,
            },
            tag::LANG_STRING | tag::OTHER => Truth::Unknown,
            _ => Truth::Null,
        }
    }

    /// LANG, by the tags that have numbers.
    #[must_use]
    pub fn language(self, tags: &[Option<TermId>]) -> Self {
        const EMPTY: TermId = TermId::new(tag::SHORT_STRING, 0);
        let id = match self {
            Self::Null | Self::Unknown => return self,
            Self::Number(_) => return Self::Id(EMPTY),
            Self::Id(id) => id,
        };
        match class(id) {
            Class::Node => Self::Null,
            Class::Other => Self::Unknown,
            Class::LanguageString => {
                let number = id.language_number().map_or(0, usize::from);
                tags.get(number)
                    .copied()
                    .flatten()
                    .map_or(Self::Unknown, Self::Id)
            }
            _ => Self::Id(EMPTY),
        }
    }

    /// Whether STR gives a text, by the terms of which it does.
    #[must_use]
    pub fn text_is(self, text: &TextIds) -> Truth {
        match self {
            Self::Null => Truth::Null,
            Self::Unknown | Self::Number(_) => Truth::Unknown,
            Self::Id(id) => match id.tag() {
                tag::BLANK => Truth::Null,
                tag::OTHER => Truth::Unknown,
                _ if id.language_number() > Some(text.last_language) => Truth::Unknown,
                _ => Truth::of(Some(text.ids.binary_search(&id).is_ok())),
            },
        }
    }

    /// DATATYPE, given the ids of [`crate::datatypes`].
    #[must_use]
    pub fn datatype(self, datatypes: &[TermId]) -> Self {
        let id = match self {
            Self::Null => return Self::Null,
            // The same number may be computed, or the value of a constant of a derived type.
            Self::Unknown | Self::Number(_) => return Self::Unknown,
            Self::Id(id) => id,
        };
        let place = match class(id) {
            Class::Node => return Self::Null,
            Class::String => Some(STRING_PLACE),
            Class::LanguageString => Some(LANG_STRING_PLACE),
            _ => inline_datatype(id).map(|xsd| usize::from(xsd.code())),
        };
        let datatype = place.and_then(|place| datatypes.get(place));
        datatype.map_or(Self::Unknown, |&id| Self::Id(id))
    }

    /// langMatches.
    #[must_use]
    pub fn language_matches(self, range: Self) -> Truth {
        let text = |value: Self| match value {
            Self::Id(id) if id.tag() == tag::SHORT_STRING => inline_term(id).ok_or(Truth::Unknown),
            Self::Id(id) if id.tag() == tag::STRING => Err(Truth::Unknown),
            Self::Unknown => Err(Truth::Unknown),
            _ => Err(Truth::Null),
        };
        match (text(self), text(range)) {
            (Ok(tag), Ok(range)) => Truth::of(lang_matches(&tag.as_term(), &range.as_term()).ok()),
            (Err(Truth::Null), _) | (_, Err(Truth::Null)) => Truth::Null,
            _ => Truth::Unknown,
        }
    }

    /// Whether the term is of a kind.
    #[must_use]
    pub fn is(self, kind: TermKind) -> Truth {
        let id = match self {
            Self::Null => return Truth::Null,
            Self::Unknown => return Truth::Unknown,
            Self::Number(_) => {
                return Truth::of(Some(matches!(kind, TermKind::Literal | TermKind::Numeric)))
            }
            Self::Id(id) => id,
        };
        Truth::of(Some(match kind {
            TermKind::Iri => id.tag() == tag::IRI,
            TermKind::Blank => id.tag() == tag::BLANK,
            TermKind::Literal => !matches!(id.tag(), tag::IRI | tag::BLANK),
            TermKind::Numeric if id.tag() == tag::OTHER => return Truth::Unknown,
            TermKind::Numeric => class(id) == Class::Number,
        }))
    }
}
