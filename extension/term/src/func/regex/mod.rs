//! REGEX and REPLACE, sections 17.4.3.14 and 17.4.3.15: fn:matches and fn:replace of Functions and
//! Operators section 7.6.

mod translate;

use super::strings::string_literal;
use super::{simple, string};
use crate::error::{Error, Result, MAX_TEXT_BYTES};
use crate::{Term, TermBuf};
use ::regex::{Regex, RegexBuilder};
use std::collections::HashMap;
use std::rc::Rc;

/// A compiled pattern.
#[derive(Debug)]
pub struct Pattern {
    regex: Regex,
    /// The `q` flag: the replacement is literal too.
    quoted: bool,
}

impl Pattern {
    /// Compiles a pattern of XPath with the flags `s`, `m`, `i`, `x` and `q`.
    ///
    /// # Errors
    /// An unknown flag, a malformed pattern, or a feature of XPath that is not supported: back
    /// references and Unicode blocks.
    pub fn new(pattern: &str, flags: &str) -> Result<Self> {
        let flags = translate::Flags::parse(flags)?;
        let translated = translate::translate(pattern, flags)?;
        let regex = RegexBuilder::new(&translated)
            .case_insensitive(flags.case_insensitive)
            .build()
            .map_err(|error| Error::Argument(format!("invalid regular expression: {error}")))?;
        Ok(Self {
            regex,
            quoted: flags.quoted,
        })
    }

    /// Whether it matches anywhere in the text.
    #[must_use]
    pub fn is_match(&self, text: &str) -> bool {
        self.regex.is_match(text)
    }

    /// Replaces all matches. In the replacement `$N` is the text of a group, `\$` a dollar sign
    /// and `\\` a backslash.
    ///
    /// # Errors
    /// The pattern matches the empty string, or the replacement is malformed.
    pub fn replace(&self, text: &str, replacement: &str) -> Result<String> {
        if self.regex.is_match("") {
            return Err(Error::Argument(
                "the regular expression of REPLACE matches the empty string".to_owned(),
            ));
        }
        let parts = if self.quoted {
            vec![Part::Text(replacement.to_owned())]
        } else {
            parse_replacement(replacement, self.regex.captures_len() - 1)?
        };
        let (mut out, mut done) = (String::new(), 0);
        for captures in self.regex.captures_iter(text) {
            let found = captures.get(0).expect("the whole match");
            out.push_str(&text[done..found.start()]);
            done = found.end();
            for part in &parts {
                let more = match part {
                    Part::Text(text) => text,
                    Part::Group(group) => captures.get(*group).map_or("", |m| m.as_str()),
                };
                if out.len() + more.len() > MAX_TEXT_BYTES {
                    return Err(Error::TooLong);
                }
                out.push_str(more);
            }
        }
        out.push_str(&text[done..]);
        Ok(out)
    }
}

enum Part {
    Text(String),
    Group(usize),
}

fn parse_replacement(replacement: &str, groups: usize) -> Result<Vec<Part>> {
    let invalid = || Error::Argument(format!("invalid replacement \"{replacement}\""));
    let mut parts = Vec::new();
    let mut text = String::new();
    let mut chars = replacement.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(c @ ('\\' | '$')) => text.push(c),
                _ => return Err(invalid()),
            },
            '$' => {
                let mut group = chars
                    .next()
                    .and_then(|c| c.to_digit(10))
                    .ok_or_else(invalid)? as usize;
                // Further digits belong to the number as long as there are so many groups.
                while let Some(digit) = chars.peek().and_then(|c| c.to_digit(10)) {
                    let longer = group * 10 + digit as usize;
                    if longer > groups {
                        break;
                    }
                    group = longer;
                    chars.next();
                }
                if !text.is_empty() {
                    parts.push(Part::Text(std::mem::take(&mut text)));
                }
                parts.push(Part::Group(group));
            }
            _ => text.push(c),
        }
    }
    parts.push(Part::Text(text));
    Ok(parts)
}

/// Compiled patterns by pattern and flags, so that one pattern is compiled once, not once a row.
#[derive(Default)]
pub struct PatternCache {
    patterns: HashMap<String, Rc<Pattern>>,
    key: String,
}

impl PatternCache {
    const KEPT_PATTERNS: usize = 64;

    /// The compiled pattern.
    ///
    /// # Errors
    /// As [`Pattern::new`].
    pub fn get(&mut self, pattern: &str, flags: &str) -> Result<Rc<Pattern>> {
        // Flags are letters, so the first NUL separates them from the pattern.
        self.key.clear();
        self.key.push_str(flags);
        self.key.push('\0');
        self.key.push_str(pattern);
        if let Some(pattern) = self.patterns.get(&self.key) {
            return Ok(Rc::clone(pattern));
        }
        let compiled = Rc::new(Pattern::new(pattern, flags)?);
        if self.patterns.len() >= Self::KEPT_PATTERNS {
            self.patterns.clear();
        }
        self.patterns.insert(self.key.clone(), Rc::clone(&compiled));
        Ok(compiled)
    }
}

fn flags_of<'a>(flags: Option<&Term<'a>>) -> Result<&'a str> {
    flags.map_or(Ok(""), simple)
}

/// REGEX.
///
/// # Errors
/// The text is not a string literal, pattern and flags are not simple literals, or as
/// [`Pattern::new`].
pub fn regex(
    cache: &mut PatternCache,
    text: &Term<'_>,
    pattern: &Term<'_>,
    flags: Option<&Term<'_>>,
) -> Result<bool> {
    let (text, _) = string(text)?;
    let pattern = cache.get(simple(pattern)?, flags_of(flags)?)?;
    Ok(pattern.is_match(text))
}

/// REPLACE: the result has the language tag of the text.
///
/// # Errors
/// As [`regex`], and as [`Pattern::replace`].
pub fn replace(
    cache: &mut PatternCache,
    text: &Term<'_>,
    pattern: &Term<'_>,
    replacement: &Term<'_>,
    flags: Option<&Term<'_>>,
) -> Result<TermBuf> {
    let (text, tag) = string(text)?;
    let pattern = cache.get(simple(pattern)?, flags_of(flags)?)?;
    let replaced = pattern.replace(text, simple(replacement)?)?;
    Ok(string_literal(&replaced, tag))
}
