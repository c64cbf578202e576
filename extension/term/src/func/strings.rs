//! Functions on strings, section 17.4.3, apart from REGEX and REPLACE.

use super::{compatible, simple, string};
use crate::error::{Error, Result};
use crate::number::Number;
use crate::{Literal, Term, TermBuf};

/// A string literal with this language tag, if any.
pub(super) fn string_literal(text: &str, tag: Option<&str>) -> TermBuf {
    match tag {
        Some(tag) => TermBuf::language(text, tag),
        None => TermBuf::string(text),
    }
}

fn integer(term: &Term<'_>) -> Result<i128> {
    match term {
        Term::Literal(literal) => match literal.number() {
            Some(Number::Integer(value)) => Ok(value),
            _ => Err(Error::Type),
        },
        _ => Err(Error::Type),
    }
}

/// STRLEN: length in characters.
///
/// # Errors
/// Not a string literal.
pub fn strlen(term: &Term<'_>) -> Result<TermBuf> {
    Ok(Number::Integer(length(term)? as i128).to_term())
}

/// The length of a string in characters.
///
/// # Errors
/// As [`strlen`].
pub fn length(term: &Term<'_>) -> Result<usize> {
    let (text, _) = string(term)?;
    Ok(text.chars().count())
}

/// SUBSTR: from the character with this number, counted from 1, this many characters or all.
///
/// # Errors
/// Not a string literal, or numbers that are not integers.
pub fn substr(term: &Term<'_>, start: &Term<'_>, length: Option<&Term<'_>>) -> Result<TermBuf> {
    let (text, tag) = string(term)?;
    let start = integer(start)?;
    let end = match length {
        Some(length) => start.saturating_add(integer(length)?),
        None => i128::MAX,
    };
    // Character n is at distance n - 1.
    let distance = |n: i128| usize::try_from(n.saturating_sub(1).max(0)).unwrap_or(usize::MAX);
    let offset = |distance: usize| {
        text.char_indices()
            .nth(distance)
            .map_or(text.len(), |(at, _)| at)
    };
    let (start, end) = (distance(start), distance(end));
    let part = if start < end {
        &text[offset(start)..offset(end)]
    } else {
        ""
    };
    Ok(string_literal(part, tag))
}

/// UCASE.
///
/// # Errors
/// Not a string literal.
pub fn ucase(term: &Term<'_>) -> Result<TermBuf> {
    let (text, tag) = string(term)?;
    Ok(string_literal(&text.to_uppercase(), tag))
}

/// LCASE.
///
/// # Errors
/// Not a string literal.
pub fn lcase(term: &Term<'_>) -> Result<TermBuf> {
    let (text, tag) = string(term)?;
    Ok(string_literal(&text.to_lowercase(), tag))
}

/// STRSTARTS.
///
/// # Errors
/// Not compatible string literals.
pub fn strstarts(a: &Term<'_>, b: &Term<'_>) -> Result<bool> {
    compatible(a, b).map(|(text, part, _)| text.starts_with(part))
}

/// STRENDS.
///
/// # Errors
/// Not compatible string literals.
pub fn strends(a: &Term<'_>, b: &Term<'_>) -> Result<bool> {
    compatible(a, b).map(|(text, part, _)| text.ends_with(part))
}

/// CONTAINS.
///
/// # Errors
/// Not compatible string literals.
pub fn contains(a: &Term<'_>, b: &Term<'_>) -> Result<bool> {
    compatible(a, b).map(|(text, part, _)| text.contains(part))
}

/// STRBEFORE: what comes before the first occurrence, with the language tag of the first argument;
/// the simple literal `""` when there is none.
///
/// # Errors
/// Not compatible string literals.
pub fn strbefore(a: &Term<'_>, b: &Term<'_>) -> Result<TermBuf> {
    let (text, part, tag) = compatible(a, b)?;
    Ok(match text.find(part) {
        Some(at) => string_literal(&text[..at], tag),
        None => TermBuf::string(""),
    })
}

/// STRAFTER: what comes after the first occurrence, as [`strbefore`].
///
/// # Errors
/// Not compatible string literals.
pub fn strafter(a: &Term<'_>, b: &Term<'_>) -> Result<TermBuf> {
    let (text, part, tag) = compatible(a, b)?;
    Ok(match text.find(part) {
        Some(at) => string_literal(&text[at + part.len()..], tag),
        None => TermBuf::string(""),
    })
}

/// ENCODE_FOR_URI: percent-encodes all but the unreserved characters of RFC 3986.
///
/// # Errors
/// Not a string literal.
pub fn encode_for_uri(term: &Term<'_>) -> Result<TermBuf> {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    let (text, _) = string(term)?;
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~') {
            out.push(char::from(byte));
        } else {
            out.push('%');
            out.push(char::from(HEX[usize::from(byte >> 4)]));
            out.push(char::from(HEX[usize::from(byte & 15)]));
        }
    }
    Ok(TermBuf::string(&out))
}

/// CONCAT: keeps the language tag when all arguments have the same.
///
/// # Errors
/// An argument is not a string literal.
pub fn concat<'a>(terms: impl IntoIterator<Item = Term<'a>>) -> Result<TermBuf> {
    let mut text = String::new();
    let mut common = None;
    for term in terms {
        let (part, tag) = string(&term)?;
        text.push_str(part);
        common = match common {
            None => Some(tag),
            Some(common) if common == tag => Some(tag),
            Some(_) => Some(None),
        };
    }
    Ok(string_literal(&text, common.flatten()))
}

/// langMatches: basic filtering of RFC 4647 section 3.3.1, `*` matches any tag.
///
/// # Errors
/// Not simple literals.
pub fn lang_matches(tag: &Term<'_>, range: &Term<'_>) -> Result<bool> {
    let (tag, range) = (simple(tag)?, simple(range)?);
    Ok(tag_matches(tag, range))
}

/// Whether a language tag is in a language range, see [`lang_matches`].
#[must_use]
pub fn tag_matches(tag: &str, range: &str) -> bool {
    if range == "*" {
        return !tag.is_empty();
    }
    let (tag, range) = (tag.as_bytes(), range.as_bytes());
    match tag.split_at_checked(range.len()) {
        Some((start, rest)) => {
            start.eq_ignore_ascii_case(range)
                && (rest.is_empty() || (rest[0] == b'-' && !range.is_empty()))
        }
        None => false,
    }
}

/// STR: the lexical form of a literal or the text of an IRI.
///
/// # Errors
/// A blank node.
pub fn text_of<'a>(term: &Term<'a>) -> Result<&'a str> {
    match term {
        Term::Iri(iri) => Ok(iri),
        Term::Literal(Literal { lexical, .. }) => Ok(lexical),
        Term::Blank(_) => Err(Error::Type),
    }
}
