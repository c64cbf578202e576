//! Functions on strings, section 17.4.3. NULL is the error.

use std::cell::RefCell;

use pgquad_term::func::regex::{self, PatternCache};
use pgquad_term::func::strings;
use pgquad_term::{Result, TermBuf};
use pgrx::prelude::*;

use super::{value, TermArg, TermOut};

macro_rules! unary {
    ($($(#[$doc:meta])* $name:ident = $function:path;)*) => {$(
        $(#[$doc])*
        #[pg_extern(immutable, parallel_safe)]
        fn $name(term: TermArg<'_>) -> Option<TermOut> {
            value($function(&term.term())).map(TermOut)
        }
    )*};
}

macro_rules! binary {
    ($($(#[$doc:meta])* $name:ident = $function:path;)*) => {$(
        $(#[$doc])*
        #[pg_extern(immutable, parallel_safe)]
        fn $name(a: TermArg<'_>, b: TermArg<'_>) -> Option<TermOut> {
            value($function(&a.term(), &b.term())).map(TermOut)
        }
    )*};
}

macro_rules! test {
    ($($(#[$doc:meta])* $name:ident = $function:path;)*) => {$(
        $(#[$doc])*
        #[pg_extern(immutable, parallel_safe)]
        fn $name(a: TermArg<'_>, b: TermArg<'_>) -> Option<bool> {
            value($function(&a.term(), &b.term()))
        }
    )*};
}

unary! {
    /// STRLEN.
    fn_strlen = strings::strlen;
    /// UCASE.
    fn_ucase = strings::ucase;
    /// LCASE.
    fn_lcase = strings::lcase;
    /// ENCODE_FOR_URI.
    fn_encode_for_uri = strings::encode_for_uri;
}

binary! {
    /// STRBEFORE.
    fn_strbefore = strings::strbefore;
    /// STRAFTER.
    fn_strafter = strings::strafter;
}

test! {
    /// STRSTARTS.
    fn_strstarts = strings::strstarts;
    /// STRENDS.
    fn_strends = strings::strends;
    /// CONTAINS.
    fn_contains = strings::contains;
    /// langMatches.
    fn_langmatches = strings::lang_matches;
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
fn with_patterns<T>(function: impl FnOnce(&mut PatternCache) -> Result<T>) -> Option<T> {
    thread_local! {
        static PATTERNS: RefCell<PatternCache> = RefCell::default();
    }
    // The error is raised after the borrow has ended.
    value(PATTERNS.with_borrow_mut(function))
}

/// REGEX.
#[pg_extern(immutable, parallel_safe)]
fn fn_regex(text: TermArg<'_>, pattern: TermArg<'_>) -> Option<bool> {
    with_patterns(|cache| regex::regex(cache, &text.term(), &pattern.term(), None))
}

/// REGEX with flags.
#[pg_extern(immutable, parallel_safe, name = "fn_regex")]
fn fn_regex_flags(text: TermArg<'_>, pattern: TermArg<'_>, flags: TermArg<'_>) -> Option<bool> {
    let flags = flags.term();
    with_patterns(|cache| regex::regex(cache, &text.term(), &pattern.term(), Some(&flags)))
}

/// REPLACE.
#[pg_extern(immutable, parallel_safe)]
fn fn_replace(
    text: TermArg<'_>,
    pattern: TermArg<'_>,
    replacement: TermArg<'_>,
) -> Option<TermOut> {
    let (text, pattern, replacement) = (text.term(), pattern.term(), replacement.term());
    with_patterns(|cache| regex::replace(cache, &text, &pattern, &replacement, None)).map(TermOut)
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
    with_patterns(|cache| regex::replace(cache, &text, &pattern, &replacement, Some(&flags)))
        .map(TermOut)
}
