//! Reading terms in N-Triples form, and the bare numbers and booleans of Turtle.

use crate::xsd::Xsd;
use crate::{Term, TermBuf};
use std::borrow::Cow;
use std::fmt;

/// Why a text is no term.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// Where, in characters from 1.
    pub position: usize,
    /// What is wrong.
    pub message: String,
    /// What to write instead.
    pub hint: &'static str,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at character {}", self.message, self.position)
    }
}

impl std::error::Error for ParseError {}

const HINT_TERM: &str = "A term is <iri>, _:label, \"text\", \"text\"@language, \
                         \"text\"^^<datatype>, a number, true or false.";
const HINT_IRI: &str = "IRIs are absolute and stand between < and >.";
const HINT_BLANK: &str = "A blank node is _: and a label of letters, digits, '_', '-' and '.'.";
const HINT_ESCAPE: &str = "Escapes are \\t \\b \\n \\r \\f \\\" \\' \\\\ \\uXXXX and \\UXXXXXXXX.";
const HINT_LANGUAGE: &str = "A language tag is as in \"chat\"@fr or \"colour\"@en-gb.";
const HINT_END: &str = "Write one term only.";

/// The term with this text; white space around it is ignored.
///
/// # Errors
/// The text is not exactly one term.
pub fn parse(text: &str) -> Result<TermBuf, ParseError> {
    let start = text.len() - text.trim_start().len();
    let mut parser = Parser { text, at: start };
    let term = parser.term()?;
    if !text[parser.at..].trim_start().is_empty() {
        return Err(parser.error("unexpected text after the term", HINT_END));
    }
    Ok(term)
}

/// The term at the start of a text and how many bytes it takes. A bare number or boolean ends at
/// white space or the end of the text.
///
/// # Errors
/// The text does not start with a term.
pub fn parse_prefix(text: &str) -> Result<(TermBuf, usize), ParseError> {
    let mut parser = Parser { text, at: 0 };
    let term = parser.term()?;
    Ok((term, parser.at))
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Parser<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn error(&self, message: impl Into<String>, hint: &'static str) -> ParseError {
        self.error_at(self.at, message, hint)
    }

    fn error_at(&self, at: usize, message: impl Into<String>, hint: &'static str) -> ParseError {
        ParseError {
            position: self.text[..at].chars().count() + 1,
            message: message.into(),
            hint,
        }
    }

    fn term(&mut self) -> Result<TermBuf, ParseError> {
        match self.rest().as_bytes().first() {
            None => Err(self.error("a term is missing", HINT_TERM)),
            Some(b'<') => Ok(TermBuf::iri(&self.iri()?)),
            Some(b'_') => self.blank(),
            Some(b'"') => self.literal(),
            Some(_) => self.bare(),
        }
    }

    /// An IRI in angle brackets, checked.
    fn iri(&mut self) -> Result<Cow<'a, str>, ParseError> {
        let start = self.at;
        let Some(end) = self.rest().find('>') else {
            return Err(self.error("the IRI is not closed by '>'", HINT_IRI));
        };
        let inner = &self.text[start + 1..start + end];
        let iri = if inner.contains('\\') {
            Cow::Owned(self.unescape(start + 1, inner, false)?)
        } else {
            Cow::Borrowed(inner)
        };
        if let Err(error) = oxiri::Iri::parse(iri.as_ref()) {
            return Err(self.error_at(start, format!("invalid IRI <{inner}>: {error}"), HINT_IRI));
        }
        self.at = start + end + 1;
        Ok(iri)
    }

    /// Resolves the escapes of a text that starts at `start`.
    fn unescape(&self, start: usize, text: &str, echar: bool) -> Result<String, ParseError> {
        let mut out = String::with_capacity(text.len());
        let mut at = 0;
        while let Some(backslash) = text[at..].find('\\') {
            out.push_str(&text[at..at + backslash]);
            at += backslash;
            let error = || self.error_at(start + at, "invalid escape", HINT_ESCAPE);
            let letter = text[at + 1..].chars().next().ok_or_else(error)?;
            let width = match letter {
                'u' => 4,
                'U' => 8,
                _ if !echar => return Err(error()),
                _ => 0,
            };
            if width == 0 {
                out.push(match letter {
                    't' => '\t',
                    'b' => '\x08',
                    'n' => '\n',
                    'r' => '\r',
                    'f' => '\x0c',
                    '"' | '\'' | '\\' => letter,
                    _ => return Err(error()),
                });
            } else {
                let digits = text
                    .get(at + 2..at + 2 + width)
                    .filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()))
                    .ok_or_else(error)?;
                let code = u32::from_str_radix(digits, 16).map_err(|_| error())?;
                out.push(char::from_u32(code).ok_or_else(error)?);
            }
            at += 2 + width;
        }
        out.push_str(&text[at..]);
        Ok(out)
    }

    fn blank(&mut self) -> Result<TermBuf, ParseError> {
        let Some(rest) = self.rest().strip_prefix("_:") else {
            return Err(self.error("a blank node starts with '_:'", HINT_BLANK));
        };
        let end = rest
            .find(|c: char| !(is_label_char(c) || c == '.'))
            .unwrap_or(rest.len());
        // A full stop at the end is not part of the label.
        let label = rest[..end].trim_end_matches('.');
        if !label
            .chars()
            .next()
            .is_some_and(|c| c.is_ascii_digit() || is_label_start(c))
        {
            return Err(self.error("invalid label of a blank node", HINT_BLANK));
        }
        self.at += 2 + label.len();
        Ok(Term::blank(label).to_buf())
    }

    fn literal(&mut self) -> Result<TermBuf, ParseError> {
        let start = self.at + 1;
        let bytes = self.text.as_bytes();
        let mut end = start;
        let mut escaped = false;
        loop {
            match bytes.get(end) {
                None => return Err(self.error("the literal is not closed by '\"'", HINT_TERM)),
                Some(b'"') => break,
                Some(b'\\') => {
                    escaped = true;
                    end += 2;
                }
                Some(_) => end += 1,
            }
        }
        let raw = &self.text[start..end];
        let lexical = if escaped {
            Cow::Owned(self.unescape(start, raw, true)?)
        } else {
            Cow::Borrowed(raw)
        };
        self.at = end + 1;
        if self.rest().starts_with('@') {
            let tag = &self.rest()[1..];
            let end = tag
                .find(|c: char| !(c.is_ascii_alphanumeric() || c == '-'))
                .unwrap_or(tag.len());
            let tag = &tag[..end];
            if let Err(error) = oxilangtag::LanguageTag::parse(tag) {
                return Err(self.error(
                    format!("invalid language tag \"{tag}\": {error}"),
                    HINT_LANGUAGE,
                ));
            }
            self.at += 1 + end;
            Ok(TermBuf::language(&lexical, tag))
        } else if self.rest().starts_with("^^") {
            self.at += 2;
            if !self.rest().starts_with('<') {
                return Err(self.error("the datatype must be an IRI", HINT_IRI));
            }
            let datatype = self.iri()?;
            Ok(Term::typed(&lexical, &datatype).to_buf())
        } else {
            Ok(TermBuf::string(&lexical))
        }
    }

    /// `true`, `false` or a number, as Turtle writes them.
    fn bare(&mut self) -> Result<TermBuf, ParseError> {
        let rest = self.rest();
        let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
        let word = &rest[..end];
        let datatype = match word {
            "true" | "false" => Some(Xsd::Boolean),
            _ => number_type(word),
        };
        let Some(datatype) = datatype else {
            return Err(self.error("this is no RDF term", HINT_TERM));
        };
        self.at += end;
        Ok(TermBuf::xsd(word, datatype))
    }
}

/// The datatype of a bare number: productions INTEGER, DECIMAL and DOUBLE of Turtle.
fn number_type(word: &str) -> Option<Xsd> {
    let unsigned = word.strip_prefix(['+', '-']).unwrap_or(word);
    let (mantissa, exponent) = match unsigned.find(['e', 'E']) {
        Some(at) => (&unsigned[..at], Some(&unsigned[at + 1..])),
        None => (unsigned, None),
    };
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (mantissa, None),
    };
    if !digits(whole) || !digits(fraction.unwrap_or("")) {
        return None;
    }
    if let Some(exponent) = exponent {
        let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        let has_digit = !whole.is_empty() || fraction.is_some_and(|f| !f.is_empty());
        return (has_digit && !exponent.is_empty() && digits(exponent)).then_some(Xsd::Double);
    }
    match fraction {
        None => (!whole.is_empty()).then_some(Xsd::Integer),
        Some(fraction) => (!fraction.is_empty()).then_some(Xsd::Decimal),
    }
}

/// PN_CHARS_U of Turtle, and ':' as N-Triples allows.
fn is_label_start(c: char) -> bool {
    matches!(c,
        'A'..='Z' | 'a'..='z' | '_' | ':'
        | '\u{C0}'..='\u{D6}' | '\u{D8}'..='\u{F6}' | '\u{F8}'..='\u{2FF}'
        | '\u{370}'..='\u{37D}' | '\u{37F}'..='\u{1FFF}' | '\u{200C}'..='\u{200D}'
        | '\u{2070}'..='\u{218F}' | '\u{2C00}'..='\u{2FEF}' | '\u{3001}'..='\u{D7FF}'
        | '\u{F900}'..='\u{FDCF}' | '\u{FDF0}'..='\u{FFFD}' | '\u{10000}'..='\u{EFFFF}')
}

/// PN_CHARS of Turtle.
fn is_label_char(c: char) -> bool {
    is_label_start(c)
        || matches!(c, '-' | '0'..='9' | '\u{B7}' | '\u{300}'..='\u{36F}' | '\u{203F}'..='\u{2040}')
}
