//! RDF terms, borrowed and owned.

use crate::encoded;
use crate::id::MAX_PAYLOAD;
use crate::xsd::{Xsd, XSD_NS};

/// A borrowed RDF term. Derived equality is `sameTerm`, provided that the terms were made by the
/// constructors here (known datatypes as [`LiteralKind::Xsd`], `_:b<number>` as
/// [`Blank::Number`], language tags in lower case).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Term<'a> {
    /// An absolute IRI, without angle brackets.
    Iri(&'a str),
    /// A blank node.
    Blank(Blank<'a>),
    /// A literal.
    Literal(Literal<'a>),
}

/// A blank node: one of the database, known by its number, or one that only has a label so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Blank<'a> {
    /// Written `_:b<number>`.
    Number(u64),
    /// Any other label, without `_:`.
    Label(&'a str),
}

/// A literal with its exact lexical form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Literal<'a> {
    /// The lexical form.
    pub lexical: &'a str,
    /// What kind of literal it is.
    pub kind: LiteralKind<'a>,
}

/// Datatype or language of a literal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LiteralKind<'a> {
    /// `xsd:string` (a simple literal).
    String,
    /// A language string with its tag, in lower case.
    Language(&'a str),
    /// A datatype whose values are understood.
    Xsd(Xsd),
    /// The IRI of any other datatype.
    Other(&'a str),
}

impl<'a> LiteralKind<'a> {
    /// The kind of a literal with this datatype IRI.
    #[must_use]
    pub fn from_datatype(iri: &'a str) -> Self {
        match iri.strip_prefix(XSD_NS) {
            Some("string") => Self::String,
            Some(local) => Xsd::from_local_name(local).map_or(Self::Other(iri), Self::Xsd),
            None => Self::Other(iri),
        }
    }

    /// The datatype IRI.
    #[must_use]
    pub const fn datatype(self) -> &'a str {
        match self {
            Self::String => "http://www.w3.org/2001/XMLSchema#string",
            Self::Language(_) => crate::xsd::RDF_LANG_STRING,
            Self::Xsd(xsd) => xsd.iri(),
            Self::Other(iri) => iri,
        }
    }
}

impl<'a> Blank<'a> {
    /// The blank node with this label (without `_:`): labels of the form `b<number>`, as written
    /// for the blank nodes of the database, give the number back.
    #[must_use]
    pub fn from_label(label: &'a str) -> Self {
        match label.strip_prefix('b') {
            Some(digits)
                if !digits.starts_with('0') && digits.bytes().all(|b| b.is_ascii_digit()) =>
            {
                match digits.parse() {
                    Ok(number) if number <= MAX_PAYLOAD => Self::Number(number),
                    _ => Self::Label(label),
                }
            }
            _ => Self::Label(label),
        }
    }
}

impl<'a> Term<'a> {
    /// The blank node with this label, see [`Blank::from_label`].
    #[must_use]
    pub fn blank(label: &'a str) -> Self {
        Self::Blank(Blank::from_label(label))
    }

    /// A simple literal (`xsd:string`).
    #[must_use]
    pub const fn string(lexical: &'a str) -> Self {
        Self::Literal(Literal {
            lexical,
            kind: LiteralKind::String,
        })
    }

    /// A language string. The tag must be in lower case: [`TermBuf::language`] takes any.
    #[must_use]
    pub const fn language(lexical: &'a str, tag: &'a str) -> Self {
        Self::Literal(Literal {
            lexical,
            kind: LiteralKind::Language(tag),
        })
    }

    /// A literal with this datatype IRI.
    #[must_use]
    pub fn typed(lexical: &'a str, datatype: &'a str) -> Self {
        Self::Literal(Literal {
            lexical,
            kind: LiteralKind::from_datatype(datatype),
        })
    }

    /// A literal of an understood datatype.
    #[must_use]
    pub const fn xsd(lexical: &'a str, datatype: Xsd) -> Self {
        Self::Literal(Literal {
            lexical,
            kind: LiteralKind::Xsd(datatype),
        })
    }

    /// The owned term.
    #[must_use]
    pub fn to_buf(&self) -> TermBuf {
        TermBuf::from(*self)
    }
}

/// An owned term, kept in the [`encoded`] form.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct TermBuf(String);

impl TermBuf {
    /// The borrowed term.
    #[inline]
    #[must_use]
    pub fn as_term(&self) -> Term<'_> {
        encoded::decode(&self.0).expect("an owned term holds a valid encoding")
    }

    /// The encoded form.
    #[inline]
    #[must_use]
    pub fn as_encoded(&self) -> &str {
        &self.0
    }

    /// The term with this encoded form, `None` when it is not one.
    #[must_use]
    pub fn from_encoded(text: String) -> Option<Self> {
        encoded::decode(&text)?;
        Some(Self(text))
    }

    /// An IRI; it is not checked here.
    #[must_use]
    pub fn iri(iri: &str) -> Self {
        Term::Iri(iri).into()
    }

    /// A blank node of the database.
    #[must_use]
    pub fn blank_number(number: u64) -> Self {
        Term::Blank(Blank::Number(number)).into()
    }

    /// A simple literal.
    #[must_use]
    pub fn string(lexical: &str) -> Self {
        Term::string(lexical).into()
    }

    /// A language string; the tag is brought to lower case, as RDF 1.1 section 3.3 allows.
    #[must_use]
    pub fn language(lexical: &str, tag: &str) -> Self {
        if tag.bytes().any(|b| b.is_ascii_uppercase()) {
            Term::language(lexical, &tag.to_ascii_lowercase()).into()
        } else {
            Term::language(lexical, tag).into()
        }
    }

    /// A literal of an understood datatype.
    #[must_use]
    pub fn xsd(lexical: &str, datatype: Xsd) -> Self {
        Term::xsd(lexical, datatype).into()
    }

    /// An integer.
    #[must_use]
    pub fn integer(value: i128) -> Self {
        Self::xsd(&value.to_string(), Xsd::Integer)
    }

    /// A boolean.
    #[must_use]
    pub fn boolean(value: bool) -> Self {
        Self::xsd(if value { "true" } else { "false" }, Xsd::Boolean)
    }
}

impl From<Term<'_>> for TermBuf {
    fn from(term: Term<'_>) -> Self {
        let mut text = String::with_capacity(encoded::encoded_len(&term));
        encoded::encode(&term, &mut text);
        Self(text)
    }
}

impl std::fmt::Debug for TermBuf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.as_term().fmt(f)
    }
}
