//! The functions of SPARQL 1.1 sections 17.4 and 17.5. Every function takes the terms as they are
//! and gives an error where the spec does.

pub mod cast;
pub mod digest;
pub mod numeric;
pub mod regex;
pub mod strings;
pub mod terms;
pub mod time;

use crate::error::{Error, Result};
use crate::{Literal, LiteralKind, Term};

/// A simple literal (`xsd:string` without language tag).
fn simple<'a>(term: &Term<'a>) -> Result<&'a str> {
    match term {
        Term::Literal(Literal {
            lexical,
            kind: LiteralKind::String,
        }) => Ok(lexical),
        _ => Err(Error::Type),
    }
}

/// A string literal: text and language tag, if any.
fn string<'a>(term: &Term<'a>) -> Result<(&'a str, Option<&'a str>)> {
    match term {
        Term::Literal(Literal { lexical, kind }) => match kind {
            LiteralKind::String => Ok((lexical, None)),
            LiteralKind::Language(tag) => Ok((lexical, Some(tag))),
            LiteralKind::Xsd(_) | LiteralKind::Other(_) => Err(Error::Type),
        },
        _ => Err(Error::Type),
    }
}

/// Two string literals that are argument compatible (section 17.4.3.1.2): the second has no
/// language tag or the same as the first. The tag is that of the first.
fn compatible<'a>(a: &Term<'a>, b: &Term<'a>) -> Result<(&'a str, &'a str, Option<&'a str>)> {
    let (x, tag) = string(a)?;
    let (y, other) = string(b)?;
    if other.is_none() || tag == other {
        Ok((x, y, tag))
    } else {
        Err(Error::Type)
    }
}
