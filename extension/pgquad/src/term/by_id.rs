//! Functions of the term with an id. Where the id tells the result, the term is not decoded. Where the text is needed,
//! it is read where the dictionary keeps it ([`dictionary::with_term`]). NULL is the error, as for the functions of
//! terms, and a function of the default graph, which is no term.

use std::sync::LazyLock;

use pgquad_term::func::time::{self, Part};
use pgquad_term::func::{regex, strings, terms};
use pgquad_term::{
    inline_datatype, integer_id, tag, LiteralKind, Result, Term, TermBuf, TermId, Xsd,
    RDF_LANG_STRING,
};
use pgrx::pg_sys;
use pgrx::prelude::*;

use super::strings::with_patterns;
use super::{value, TermArg, TermCopy, TermOut};
use crate::dictionary::{self, term_id};
use crate::rights;

/// Whether the term may be a string literal, which the functions on strings take.
fn may_be_string(id: TermId) -> bool {
    matches!(
        id.tag(),
        tag::STRING | tag::SHORT_STRING | tag::LANG_STRING | tag::OTHER
    )
}

/// What a function makes of the term, if that may be a string.
fn of_string<T>(
    id: i64,
    call: pg_sys::FunctionCallInfo,
    function: impl FnOnce(&Term<'_>) -> Result<T>,
) -> Option<T> {
    rights::check(call, &[id]);
    let id = Some(term_id(id)).filter(|&id| may_be_string(id))?;
    value(dictionary::with_term(id, function)?)
}

/// Makes functions of SQL: `name as "sql"(id, argument, ..) -> result = function;`.
macro_rules! of_strings {
    ($($(#[$doc:meta])* $name:ident as $sql:literal (id $(, $argument:ident)*) -> $result:ident = $function:path;)*) => {$(
        $(#[$doc])*
        #[pg_extern(stable, parallel_safe, name = $sql, cost = 40)]
        fn $name(
            id: i64 $(, $argument: TermArg<'_>)*, call: pg_sys::FunctionCallInfo
        ) -> Option<$result> {
            of_string(id, call, |text| $function(text $(, &$argument.term())*)).map(Into::into)
        }
    )*};
}

of_strings! {
    /// UCASE of the term with an id.
    id_ucase as "id_ucase" (id) -> TermOut = strings::ucase;
    /// LCASE of the term with an id.
    id_lcase as "id_lcase" (id) -> TermOut = strings::lcase;
    /// ENCODE_FOR_URI of the term with an id.
    id_encode_for_uri as "id_encode_for_uri" (id) -> TermOut = strings::encode_for_uri;
    /// SUBSTR to the end, of the term with an id.
    id_substr_from as "id_substr" (id, start) -> TermOut = substr_from;
    /// SUBSTR of the term with an id.
    id_substr as "id_substr" (id, start, length) -> TermOut = substr;
    /// STRBEFORE of the term with an id.
    id_strbefore as "id_strbefore" (id, part) -> TermOut = strings::strbefore;
    /// STRAFTER of the term with an id.
    id_strafter as "id_strafter" (id, part) -> TermOut = strings::strafter;
    /// STRSTARTS of the term with an id.
    id_strstarts as "id_strstarts" (id, part) -> bool = strings::strstarts;
    /// STRENDS of the term with an id.
    id_strends as "id_strends" (id, part) -> bool = strings::strends;
    /// CONTAINS of the term with an id.
    id_contains as "id_contains" (id, part) -> bool = strings::contains;
    /// REGEX of the term with an id.
    id_regex as "id_regex" (id, pattern) -> bool = matches;
    /// REGEX with flags of the term with an id.
    id_regex_flags as "id_regex" (id, pattern, flags) -> bool = matches_with;
    /// REPLACE of the term with an id.
    id_replace as "id_replace" (id, pattern, replacement) -> TermOut = replaced;
    /// REPLACE with flags of the term with an id.
    id_replace_flags as "id_replace" (id, pattern, replacement, flags) -> TermOut = replaced_with;
}

fn substr_from(text: &Term<'_>, start: &Term<'_>) -> Result<TermBuf> {
    strings::substr(text, start, None)
}

fn substr(text: &Term<'_>, start: &Term<'_>, length: &Term<'_>) -> Result<TermBuf> {
    strings::substr(text, start, Some(length))
}

fn matches(text: &Term<'_>, pattern: &Term<'_>) -> Result<bool> {
    with_patterns(|cache| regex::regex(cache, text, pattern, None))
}

fn matches_with(text: &Term<'_>, pattern: &Term<'_>, flags: &Term<'_>) -> Result<bool> {
    with_patterns(|cache| regex::regex(cache, text, pattern, Some(flags)))
}

fn replaced(text: &Term<'_>, pattern: &Term<'_>, replacement: &Term<'_>) -> Result<TermBuf> {
    with_patterns(|cache| regex::replace(cache, text, pattern, replacement, None))
}

fn replaced_with(
    text: &Term<'_>,
    pattern: &Term<'_>,
    replacement: &Term<'_>,
    flags: &Term<'_>,
) -> Result<TermBuf> {
    with_patterns(|cache| regex::replace(cache, text, pattern, replacement, Some(flags)))
}

/// The id of STRLEN of the term with an id.
#[pg_extern(stable, parallel_safe, cost = 40)]
fn id_strlen(id: i64, call: pg_sys::FunctionCallInfo) -> Option<i64> {
    let length = of_string(id, call, strings::length)?;
    integer_id(length as i64).map(TermId::to_i64)
}

/// STR of the term with an id.
#[pg_extern(stable, parallel_safe, cost = 40)]
fn id_str(id: i64, call: pg_sys::FunctionCallInfo) -> Option<TermOut> {
    rights::check(call, &[id]);
    let id = Some(term_id(id)).filter(|id| id.tag() != tag::BLANK)?;
    value(dictionary::with_term(id, terms::str)?).map(TermOut)
}

/// LANG of the term with an id.
#[pg_extern(stable, parallel_safe, cost = 5)]
fn id_lang(id: i64, call: pg_sys::FunctionCallInfo) -> Option<TermCopy> {
    rights::check(call, &[id]);
    let id = term_id(id);
    let copy = |tag: &TermBuf| TermCopy::of_encoded(tag.as_encoded());
    match id.tag() {
        tag::IRI | tag::BLANK => None,
        tag::LANG_STRING => match id.language_number() {
            Some(number) => dictionary::with_language(number, copy),
            None => None,
        },
        tag::OTHER => value(dictionary::with_term(id, terms::lang)?).map(|tag| copy(&tag)),
        _ => Some(TermCopy::of_encoded(EMPTY_STRING)),
    }
}

/// `""` in its encoded form.
const EMPTY_STRING: &str = "S";

/// The datatypes that ids tell, as terms.
struct Datatypes {
    string: TermBuf,
    lang_string: TermBuf,
    /// In the place of its code.
    others: Vec<TermBuf>,
}

static DATATYPES: LazyLock<Datatypes> = LazyLock::new(|| {
    let last = Xsd::ALL.iter().map(|xsd| xsd.code()).max().unwrap_or(0);
    let of_code = |code| Xsd::from_code(code).map_or("", |xsd| xsd.iri());
    Datatypes {
        string: TermBuf::iri(LiteralKind::String.datatype()),
        lang_string: TermBuf::iri(RDF_LANG_STRING),
        others: (0..=last).map(|code| TermBuf::iri(of_code(code))).collect(),
    }
});

/// DATATYPE of the term with an id.
#[pg_extern(stable, parallel_safe, cost = 5)]
fn id_datatype(id: i64, call: pg_sys::FunctionCallInfo) -> Option<TermCopy> {
    rights::check(call, &[id]);
    let id = term_id(id);
    let told = match id.tag() {
        tag::IRI | tag::BLANK => return None,
        tag::STRING | tag::SHORT_STRING => Some(&DATATYPES.string),
        tag::LANG_STRING => Some(&DATATYPES.lang_string),
        _ => inline_datatype(id).map(|xsd| &DATATYPES.others[usize::from(xsd.code())]),
    };
    let copy = |datatype: &TermBuf| TermCopy::of_encoded(datatype.as_encoded());
    match told {
        Some(datatype) => Some(copy(datatype)),
        None => value(dictionary::with_term(id, terms::datatype)?).map(|datatype| copy(&datatype)),
    }
}

/// isNumeric of the term with an id.
#[pg_extern(stable, parallel_safe, cost = 5)]
fn id_isnumeric(id: i64, call: pg_sys::FunctionCallInfo) -> Option<bool> {
    rights::check(call, &[id]);
    let id = term_id(id);
    match id.tag() {
        tag::INTEGER | tag::DECIMAL | tag::DOUBLE | tag::FLOAT => Some(true),
        tag::OTHER => dictionary::with_term(id, terms::is_numeric),
        _ => (id != TermId::DEFAULT_GRAPH).then_some(false),
    }
}

/// The id of a part of the moment that the term with an id is.
fn part(id: i64, part: Part) -> Option<i64> {
    let id = term_id(id);
    let value = match time::inline_part(id, part) {
        Some(told) => value(told),
        None if id.tag() == tag::OTHER => {
            value(dictionary::with_term(id, |term| time::part(term, part))?)
        }
        None => None,
    };
    value.and_then(integer_id).map(TermId::to_i64)
}

macro_rules! parts {
    ($($(#[$doc:meta])* $name:ident = $part:path;)*) => {$(
        $(#[$doc])*
        #[pg_extern(stable, parallel_safe, cost = 5)]
        fn $name(id: i64, call: pg_sys::FunctionCallInfo) -> Option<i64> {
            rights::check(call, &[id]);
            part(id, $part)
        }
    )*};
}

parts! {
    /// The id of YEAR of the term with an id.
    id_year = Part::Year;
    /// The id of MONTH of the term with an id.
    id_month = Part::Month;
    /// The id of DAY of the term with an id.
    id_day = Part::Day;
    /// The id of HOURS of the term with an id.
    id_hours = Part::Hours;
    /// The id of MINUTES of the term with an id.
    id_minutes = Part::Minutes;
}
