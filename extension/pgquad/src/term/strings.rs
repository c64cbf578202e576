//! Functions on strings, section 17.4.3. NULL is the error.

use std::cell::RefCell;

use pgquad_term::func::regex::{self, PatternCache};
use pgquad_term::func::strings;
use pgquad_term::{Result, TermBuf};
use pgrx::prelude::*;

use super::functions::sql_functions;
use super::{value, TermArg, TermOut};

sql_functions! {
    /// STRLEN.
    fn_strlen(term) -> TermOut = strings::strlen;
    /// UCASE.
    fn_ucase(term) -> TermOut = strings::ucase;
    /// LCASE.
    fn_lcase(term) -> TermOut = strings::lcase;
    /// ENCODE_FOR_URI.
    fn_encode_for_uri(term) -> TermOut = strings::encode_for_uri;
    /// STRBEFORE.
    fn_strbefore(a, b) -> TermOut = strings::strbefore;
    /// STRAFTER.
    fn_strafter(a, b) -> TermOut = strings::strafter;
    /// STRSTARTS.
    fn_strstarts(a, b) -> bool = strings::strstarts;
    /// STRENDS.
    fn_strends(a, b) -> bool = strings::strends;
    /// CONTAINS.
    fn_contains(a, b) -> bool = strings::contains;
    /// langMatches.
    fn_langmatches(a, b) -> bool = strings::lang_matches;
}

/// SUBSTR to the end.
#[pg_extern(immutable, parallel_safe, name = "fn_substr")]
fn fn_substr_from(text: TermArg<'_>, start: TermArg<'_>) -> Option<TermOut> {
    value(strings::substr(&text.term(), &start.term(), None)).map(TermOut)
}

/// SUBSTR.
#[pg_extern(immutable, parallel_safe)]
fn fn_substr(text: TermArg<'_>, start: TermArg<'_>, length: TermArg<'_>) -> Option<TermOut> {
    let length = length.term();
    value(strings::substr(&text.term(), &start.term(), Some(&length))).map(TermOut)
}

/// CONCAT of nothing.
#[pg_extern(immutable, parallel_safe, name = "fn_concat")]
fn fn_concat_empty() -> TermOut {
    TermOut(TermBuf::string(""))
}

/// CONCAT. A NULL among the arguments makes the result NULL.
#[pg_extern(immutable, parallel_safe)]
fn fn_concat(terms: VariadicArray<'_, TermArg<'_>>) -> Option<TermOut> {
    let terms: Vec<TermArg<'_>> = terms.iter().collect::<Option<_>>()?;
    value(strings::concat(terms.iter().map(TermArg::term))).map(TermOut)
}

/// Runs a function with the compiled patterns of this backend.
pub(super) fn with_patterns<T>(function: impl FnOnce(&mut PatternCache) -> Result<T>) -> Result<T> {
    thread_local! {
        static PATTERNS: RefCell<PatternCache> = RefCell::default();
    }
    PATTERNS.with_borrow_mut(function)
}

/// REGEX.
#[pg_extern(immutable, parallel_safe)]
fn fn_regex(text: TermArg<'_>, pattern: TermArg<'_>) -> Option<bool> {
    value(with_patterns(|cache| {
        regex::regex(cache, &text.term(), &pattern.term(), None)
    }))
}

/// REGEX with flags.
#[pg_extern(immutable, parallel_safe, name = "fn_regex")]
fn fn_regex_flags(text: TermArg<'_>, pattern: TermArg<'_>, flags: TermArg<'_>) -> Option<bool> {
    let flags = flags.term();
    value(with_patterns(|cache| {
        regex::regex(cache, &text.term(), &pattern.term(), Some(&flags))
    }))
}

/// REPLACE.
#[pg_extern(immutable, parallel_safe)]
fn fn_replace(
    text: TermArg<'_>,
    pattern: TermArg<'_>,
    replacement: TermArg<'_>,
) -> Option<TermOut> {
    let (text, pattern, replacement) = (text.term(), pattern.term(), replacement.term());
    let replaced =
        with_patterns(|cache| regex::replace(cache, &text, &pattern, &replacement, None));
    value(replaced).map(TermOut)
}

/// REPLACE with flags.
#[pg_extern(immutable, parallel_safe, name = "fn_replace")]
fn fn_replace_flags(
    text: TermArg<'_>,
    pattern: TermArg<'_>,
    replacement: TermArg<'_>,
    flags: TermArg<'_>,
) -> Option<TermOut> {
    let (text, pattern, replacement) = (text.term(), pattern.term(), replacement.term());
    let flags = flags.term();
    let replaced =
        with_patterns(|cache| regex::replace(cache, &text, &pattern, &replacement, Some(&flags)));
    value(replaced).map(TermOut)
}
