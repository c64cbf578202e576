//! Functions on RDF terms, section 17.4.2.

use super::simple;
use super::strings::text_of;
use crate::error::{Error, Result};
use crate::xsd::RDF_LANG_STRING;
use crate::{Literal, LiteralKind, Term, TermBuf};
use oxilangtag::LanguageTag;
use oxiri::{Iri, IriRef};

/// isNumeric.
#[must_use]
pub fn is_numeric(term: &Term<'_>) -> bool {
    matches!(term, Term::Literal(literal) if literal.is_numeric())
}

/// STR.
///
/// # Errors
/// A blank node.
pub fn str(term: &Term<'_>) -> Result<TermBuf> {
    text_of(term).map(TermBuf::string)
}

/// LANG: the language tag, `""` for other literals.
///
/// # Errors
/// Not a literal.
pub fn lang(term: &Term<'_>) -> Result<TermBuf> {
    match term {
        Term::Literal(Literal { kind, .. }) => Ok(TermBuf::string(match kind {
            LiteralKind::Language(tag) => tag,
            _ => "",
        })),
        _ => Err(Error::Type),
    }
}

/// DATATYPE.
///
/// # Errors
/// Not a literal.
pub fn datatype(term: &Term<'_>) -> Result<TermBuf> {
    match term {
        Term::Literal(Literal { kind, .. }) => Ok(TermBuf::iri(kind.datatype())),
        _ => Err(Error::Type),
    }
}

/// IRI: an IRI as it is, a simple literal resolved against the base (empty: there is none).
///
/// # Errors
/// Neither an IRI nor a simple literal, or not a valid IRI.
pub fn iri(term: &Term<'_>, base: &str) -> Result<TermBuf> {
    if let Term::Iri(iri) = term {
        return Ok(TermBuf::iri(iri));
    }
    let text = simple(term)?;
    let invalid = |error: oxiri::IriParseError| Error::Argument(format!("invalid IRI: {error}"));
    if base.is_empty() {
        let iri = Iri::parse(text).map_err(invalid)?;
        Ok(TermBuf::iri(iri.as_str()))
    } else {
        let base = Iri::parse(base).map_err(invalid)?;
        let reference = IriRef::parse(text).map_err(invalid)?;
        let iri = base.resolve(&reference).map_err(invalid)?;
        Ok(TermBuf::iri(iri.as_str()))
    }
}

/// STRDT: a simple literal with a datatype.
///
/// # Errors
/// The first argument is not a simple literal, the second not an IRI or the datatype of language
/// strings.
pub fn strdt(lexical: &Term<'_>, datatype: &Term<'_>) -> Result<TermBuf> {
    let text = simple(lexical)?;
    match datatype {
        Term::Iri(iri) if *iri != RDF_LANG_STRING => Ok(Term::typed(text, iri).to_buf()),
        _ => Err(Error::Type),
    }
}

/// STRLANG: a simple literal with a language tag.
///
/// # Errors
/// Not simple literals, or not a well-formed tag.
pub fn strlang(lexical: &Term<'_>, tag: &Term<'_>) -> Result<TermBuf> {
    let (text, tag) = (simple(lexical)?, simple(tag)?);
    LanguageTag::parse(tag)
        .map_err(|error| Error::Argument(format!("invalid language tag: {error}")))?;
    Ok(TermBuf::language(text, tag))
}

/// STRUUID of these random bytes: a version 4 UUID of RFC 4122.
#[must_use]
pub fn struuid(random: [u8; 16]) -> TermBuf {
    TermBuf::string(&uuid_text(random))
}

/// UUID of these random bytes, as `urn:uuid:` IRI.
#[must_use]
pub fn uuid(random: [u8; 16]) -> TermBuf {
    TermBuf::iri(&format!("urn:uuid:{}", uuid_text(random)))
}

fn uuid_text(mut bytes: [u8; 16]) -> String {
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let mut out = super::digest::hex(&bytes);
    for at in [20, 16, 12, 8] {
        out.insert(at, '-');
    }
    out
}

/// BNODE without argument: a fresh blank node, made of these random bytes.
#[must_use]
pub fn bnode(random: [u8; 16]) -> TermBuf {
    Term::blank(&format!("r{}", super::digest::hex(&random))).to_buf()
}

/// BNODE with a label: one blank node for each label and solution. The bytes of `solution` must
/// differ between solutions and executions, and have one length.
///
/// # Errors
/// Not a simple literal.
pub fn bnode_for(label: &Term<'_>, solution: &[u8]) -> Result<TermBuf> {
    let label = simple(label)?;
    let mut bytes = solution.to_vec();
    bytes.extend_from_slice(label.as_bytes());
    let hash = xxhash_rust::xxh3::xxh3_128(&bytes);
    Ok(Term::blank(&format!("s{hash:032x}")).to_buf())
}
