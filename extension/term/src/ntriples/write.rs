//! Writing terms as N-Triples.

use crate::{Blank, Literal, LiteralKind, Term, TermBuf};
use std::fmt::{Display, Formatter, Result, Write};

impl Display for Term<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match *self {
            Term::Iri(iri) => write_iri(iri, f),
            Term::Blank(blank) => blank.fmt(f),
            Term::Literal(Literal { lexical, kind }) => {
                write_quoted(lexical, f)?;
                match kind {
                    LiteralKind::String => Ok(()),
                    LiteralKind::Language(tag) => write!(f, "@{tag}"),
                    LiteralKind::Xsd(xsd) => write!(f, "^^<{}>", xsd.iri()),
                    LiteralKind::Other(iri) => {
                        f.write_str("^^")?;
                        write_iri(iri, f)
                    }
                }
            }
        }
    }
}

impl Display for Blank<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Blank::Number(number) => write!(f, "_:b{number}"),
            Blank::Label(label) => write!(f, "_:{label}"),
        }
    }
}

impl Display for TermBuf {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        self.as_term().fmt(f)
    }
}

fn write_iri(iri: &str, f: &mut Formatter<'_>) -> Result {
    f.write_char('<')?;
    let needs_escape = |b: u8| {
        matches!(
            b,
            0..=b' ' | b'<' | b'>' | b'"' | b'{' | b'}' | b'|' | b'^' | b'`' | b'\\'
        )
    };
    let mut rest = iri;
    while let Some(at) = rest.bytes().position(needs_escape) {
        f.write_str(&rest[..at])?;
        write!(f, "\\u{:04X}", rest.as_bytes()[at])?;
        rest = &rest[at + 1..];
    }
    f.write_str(rest)?;
    f.write_char('>')
}

fn write_quoted(text: &str, f: &mut Formatter<'_>) -> Result {
    f.write_char('"')?;
    let needs_escape = |b: u8| matches!(b, 0..=0x1f | b'"' | b'\\' | 0x7f);
    let mut rest = text;
    while let Some(at) = rest.bytes().position(needs_escape) {
        f.write_str(&rest[..at])?;
        match rest.as_bytes()[at] {
            b'\t' => f.write_str("\\t")?,
            b'\x08' => f.write_str("\\b")?,
            b'\n' => f.write_str("\\n")?,
            b'\r' => f.write_str("\\r")?,
            b'\x0c' => f.write_str("\\f")?,
            b'"' => f.write_str("\\\"")?,
            b'\\' => f.write_str("\\\\")?,
            control => write!(f, "\\u{control:04X}")?,
        }
        rest = &rest[at + 1..];
    }
    f.write_str(rest)?;
    f.write_char('"')
}
