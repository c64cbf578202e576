//! Names of the functions of SPARQL 1.1 section 17.4 and 17.5 in SQL.

use std::borrow::Cow;

use pgquad_term::Xsd;
use spargebra::algebra::Function;

use crate::error::Error;

const XSD: &str = "http://www.w3.org/2001/XMLSchema#";

/// An SQL function.
pub(crate) struct SqlFunction {
    pub name: Cow<'static, str>,
    /// Whether it gives an SQL boolean rather than a `quad.term`.
    pub boolean: bool,
}

/// The SQL function for a call with `arguments` SQL arguments; `None` for an IRI that names no function: the call is an
/// error of evaluation.
pub(crate) fn of(function: &Function, arguments: usize) -> Result<Option<SqlFunction>, Error> {
    let term = |name: &'static str| SqlFunction {
        name: name.into(),
        boolean: false,
    };
    let boolean = |name: &'static str| SqlFunction {
        name: name.into(),
        boolean: true,
    };
    Ok(Some(match function {
        Function::Str => term("quad.fn_str"),
        Function::Lang => term("quad.fn_lang"),
        Function::LangMatches => boolean("quad.fn_langmatches"),
        Function::Datatype => term("quad.fn_datatype"),
        Function::Iri => term("quad.fn_iri"),
        Function::BNode => term("quad.fn_bnode"),
        Function::Rand => term("quad.fn_rand"),
        Function::Abs => term("quad.fn_abs"),
        Function::Ceil => term("quad.fn_ceil"),
        Function::Floor => term("quad.fn_floor"),
        Function::Round => term("quad.fn_round"),
        Function::Concat => term("quad.fn_concat"),
        Function::SubStr => term("quad.fn_substr"),
        Function::StrLen => term("quad.fn_strlen"),
        Function::Replace => term("quad.fn_replace"),
        Function::UCase => term("quad.fn_ucase"),
        Function::LCase => term("quad.fn_lcase"),
        Function::EncodeForUri => term("quad.fn_encode_for_uri"),
        Function::Contains => boolean("quad.fn_contains"),
        Function::StrStarts => boolean("quad.fn_strstarts"),
        Function::StrEnds => boolean("quad.fn_strends"),
        Function::StrBefore => term("quad.fn_strbefore"),
        Function::StrAfter => term("quad.fn_strafter"),
        Function::Year => term("quad.fn_year"),
        Function::Month => term("quad.fn_month"),
        Function::Day => term("quad.fn_day"),
        Function::Hours => term("quad.fn_hours"),
        Function::Minutes => term("quad.fn_minutes"),
        Function::Seconds => term("quad.fn_seconds"),
        Function::Timezone => term("quad.fn_timezone"),
        Function::Tz => term("quad.fn_tz"),
        Function::Now => term("quad.fn_now"),
        Function::Uuid => term("quad.fn_uuid"),
        Function::StrUuid => term("quad.fn_struuid"),
        Function::Md5 => term("quad.fn_md5"),
        Function::Sha1 => term("quad.fn_sha1"),
        Function::Sha256 => term("quad.fn_sha256"),
        Function::Sha384 => term("quad.fn_sha384"),
        Function::Sha512 => term("quad.fn_sha512"),
        Function::StrLang => term("quad.fn_strlang"),
        Function::StrDt => term("quad.fn_strdt"),
        Function::IsIri => boolean("quad.fn_isiri"),
        Function::IsBlank => boolean("quad.fn_isblank"),
        Function::IsLiteral => boolean("quad.fn_isliteral"),
        Function::IsNumeric => boolean("quad.fn_isnumeric"),
        Function::Regex => boolean("quad.fn_regex"),
        Function::Custom(iri) => {
            let Some(name) = iri.as_str().strip_prefix(XSD).and_then(cast) else {
                return Ok(None);
            };
            if arguments != 1 {
                return Err(Error::Invalid(format!(
                    "the cast {iri} takes one argument, not {arguments}"
                )));
            }
            SqlFunction {
                name: name.into(),
                boolean: false,
            }
        }
    }))
}

/// What a function of the term with an id gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OfId {
    /// An SQL boolean.
    Boolean,
    /// A `quad.term`.
    Term,
    /// The id of an `xsd:integer`.
    Integer,
}

/// The SQL function that takes the id of the first argument instead of the term, if there is one.
pub(crate) fn of_id(function: &Function) -> Option<(&'static str, OfId)> {
    use OfId::{Boolean, Integer, Term};
    Some(match function {
        Function::Str => ("quad.id_str", Term),
        Function::Lang => ("quad.id_lang", Term),
        Function::Datatype => ("quad.id_datatype", Term),
        Function::SubStr => ("quad.id_substr", Term),
        Function::StrLen => ("quad.id_strlen", Integer),
        Function::Replace => ("quad.id_replace", Term),
        Function::UCase => ("quad.id_ucase", Term),
        Function::LCase => ("quad.id_lcase", Term),
        Function::EncodeForUri => ("quad.id_encode_for_uri", Term),
        Function::Contains => ("quad.id_contains", Boolean),
        Function::StrStarts => ("quad.id_strstarts", Boolean),
        Function::StrEnds => ("quad.id_strends", Boolean),
        Function::StrBefore => ("quad.id_strbefore", Term),
        Function::StrAfter => ("quad.id_strafter", Term),
        Function::Regex => ("quad.id_regex", Boolean),
        Function::IsNumeric => ("quad.id_isnumeric", Boolean),
        Function::Year => ("quad.id_year", Integer),
        Function::Month => ("quad.id_month", Integer),
        Function::Day => ("quad.id_day", Integer),
        Function::Hours => ("quad.id_hours", Integer),
        Function::Minutes => ("quad.id_minutes", Integer),
        _ => return None,
    })
}

/// Casts of section 17.5, and to the other datatypes whose values are understood, by the local name of the datatype.
fn cast(datatype: &str) -> Option<String> {
    (datatype == "string" || Xsd::from_local_name(datatype).is_some())
        .then(|| format!("quad.cast_{}", datatype.to_ascii_lowercase()))
}
