//! Tokens of a SPARQL text, as far as telling its constants from the rest needs.
//!
//! The lexer gives up on what it could see differently from the parser. It need not refuse what is not SPARQL: only texts that have
//! parsed make a template.

/// A token. What the parser could read in another way comes as [`Token::Mark`] or [`Token::Name`] with `plain` false.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token<'t> {
    /// What stands between `<` and `>`.
    Iri(&'t str),
    /// A prefixed name.
    Name {
        prefix: &'t str,
        local: &'t str,
        /// It has no escapes and nothing beyond ASCII.
        plain: bool,
    },
    /// What stands between the quotes, with its escapes.
    Text(&'t str),
    /// An unsigned number.
    Number { digits: &'t str, datatype: Number },
    /// A keyword, `a`, `true` or `false`.
    Word(&'t str),
    /// `@` and a language tag.
    Language(&'t str),
    /// A variable or a labelled blank node.
    Variable,
    /// `^^`.
    Typed,
    /// Any other character.
    Mark(u8),
}

/// Datatype of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Number {
    Integer,
    Decimal,
    Double,
}

/// A token with its place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lexed<'t> {
    pub token: Token<'t>,
    pub start: usize,
    pub end: usize,
}

/// All tokens; `None` where the text cannot be cut into tokens for certain.
pub(super) fn tokens(text: &str) -> Option<Vec<Lexed<'_>>> {
    let mut lexer = Lexer { text, at: 0 };
    let mut tokens = Vec::with_capacity(text.len() / 6);
    loop {
        lexer.skip_space();
        let start = lexer.at;
        if start == text.len() {
            return Some(tokens);
        }
        let token = lexer.next()?;
        tokens.push(Lexed {
            token,
            start,
            end: lexer.at,
        });
    }
}

struct Lexer<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Lexer<'t> {
    fn bytes(&self) -> &'t [u8] {
        self.text.as_bytes()
    }

    /// The byte `ahead` of the current one; 0 at the end.
    fn peek(&self, ahead: usize) -> u8 {
        self.bytes().get(self.at + ahead).copied().unwrap_or(0)
    }

    /// Moves over the bytes that `holds` is true of.
    fn skip_while(&mut self, holds: impl Fn(u8) -> bool) {
        let rest = &self.bytes()[self.at..];
        self.at += rest.iter().position(|b| !holds(*b)).unwrap_or(rest.len());
    }

    /// Takes `length` bytes.
    fn take(&mut self, length: usize) -> &'t str {
        let taken = &self.text[self.at..self.at + length];
        self.at += length;
        taken
    }

    fn skip_space(&mut self) {
        loop {
            self.skip_while(|b| matches!(b, b' ' | b'\t' | b'\n' | b'\r'));
            if self.peek(0) != b'#' {
                return;
            }
            self.skip_while(|b| b != b'\n' && b != b'\r');
        }
    }

    fn next(&mut self) -> Option<Token<'t>> {
        let byte = self.peek(0);
        Some(match byte {
            b'<' => match iri_length(&self.bytes()[self.at + 1..]) {
                Some(length) => {
                    self.at += 1;
                    let iri = self.take(length);
                    self.at += 1;
                    Token::Iri(iri)
                }
                None => self.mark(),
            },
            b'"' | b'\'' => return self.string(byte),
            b'?' | b'$' if is_word(self.peek(1)) => {
                self.at += 1;
                self.skip_while(is_word);
                Token::Variable
            }
            b'_' if self.peek(1) == b':' => {
                self.at += 2;
                self.skip_while(is_name);
                // A label does not end with a dot.
                while self.bytes()[self.at - 1] == b'.' {
                    self.at -= 1;
                }
                Token::Variable
            }
            b'@' if self.peek(1).is_ascii_alphabetic() => {
                self.at += 1;
                let start = self.at;
                self.skip_while(|b| b.is_ascii_alphanumeric() || b == b'-');
                Token::Language(&self.text[start..self.at])
            }
            b'^' if self.peek(1) == b'^' => {
                self.at += 2;
                Token::Typed
            }
            b'0'..=b'9' => self.number(),
            b'.' if self.peek(1).is_ascii_digit() => self.number(),
            b':' => self.name(""),
            _ if byte.is_ascii_alphabetic() || byte >= 0x80 => {
                let rest = &self.bytes()[self.at..];
                let reach = rest.iter().position(|b| !is_name(*b));
                let reach = reach.unwrap_or(rest.len());
                if rest.get(reach) == Some(&b':') {
                    let prefix = self.take(reach);
                    self.name(prefix)
                } else {
                    let start = self.at;
                    self.skip_while(is_word);
                    Token::Word(&self.text[start..self.at])
                }
            }
            _ => self.mark(),
        })
    }

    /// Any other character. Those beyond ASCII are part of words, so this is one byte.
    fn mark(&mut self) -> Token<'t> {
        let byte = self.peek(0);
        self.at += 1;
        Token::Mark(byte)
    }

    /// A prefixed name, standing on its colon.
    fn name(&mut self, prefix: &'t str) -> Token<'t> {
        self.at += 1;
        let start = self.at;
        self.skip_local();
        // The parser takes one run of dots within the local part, and none at its end.
        if self.peek(0) == b'.' {
            let dots = self.at;
            self.skip_while(|b| b == b'.');
            let after = self.at;
            self.skip_local();
            if self.at == after {
                self.at = dots;
            }
        }
        let local = &self.text[start..self.at];
        let simple = |b: u8| b.is_ascii_alphanumeric() || b"_-.:".contains(&b);
        Token::Name {
            prefix,
            local,
            plain: prefix.bytes().chain(local.bytes()).all(simple)
                && !local.starts_with(['-', '.']),
        }
    }

    fn skip_local(&mut self) {
        loop {
            self.skip_while(|b| b == b':' || b == b'%' || (is_name(b) && b != b'.'));
            if self.peek(0) != b'\\' || self.peek(1) == 0 || self.peek(1) >= 0x80 {
                return;
            }
            self.at += 2;
        }
    }

    fn number(&mut self) -> Token<'t> {
        let start = self.at;
        let digits = |b: u8| b.is_ascii_digit();
        self.skip_while(digits);
        let whole = self.at;
        let mut fraction = whole;
        if self.peek(0) == b'.' {
            self.at += 1;
            self.skip_while(digits);
            fraction = self.at;
        }
        let sign = usize::from(matches!(self.peek(1), b'+' | b'-'));
        let datatype = if matches!(self.peek(0), b'e' | b'E') && digits(self.peek(1 + sign)) {
            self.at += 1 + sign;
            self.skip_while(digits);
            Number::Double
        } else if fraction > whole + 1 {
            Number::Decimal
        } else {
            // A dot with nothing behind it ends a triple.
            self.at = whole;
            Number::Integer
        };
        Token::Number {
            digits: &self.text[start..self.at],
            datatype,
        }
    }

    fn string(&mut self, quote: u8) -> Option<Token<'t>> {
        let long = self.bytes()[self.at..].starts_with(&[quote; 3]);
        let width = if long { 3 } else { 1 };
        let start = self.at + width;
        let mut at = start;
        loop {
            match *self.bytes().get(at)? {
                b'\\' => at += 2,
                b'\n' | b'\r' if !long => return None,
                b if b == quote && (!long || self.bytes()[at..].starts_with(&[quote; 3])) => break,
                _ => at += 1,
            }
        }
        self.at = at + width;
        // A backslash before a character beyond ASCII is an error, and this no boundary.
        Some(Token::Text(self.text.get(start..at)?))
    }
}

/// Bytes up to the `>` of an IRI; `None` for the operators that begin so.
fn iri_length(bytes: &[u8]) -> Option<usize> {
    let end = bytes
        .iter()
        .position(|b| *b <= b' ' || b"<>\"{}|^`\\".contains(b))?;
    (bytes[end] == b'>').then_some(end)
}

/// Characters of variables and keywords.
fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

/// Characters of prefixes and blank node labels.
fn is_name(byte: u8) -> bool {
    is_word(byte) || byte == b'-' || byte == b'.'
}

/// The text of a string without its escapes; `None` where they are not those of SPARQL.
pub(super) fn unescaped(text: &str) -> Option<String> {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\\') {
        plain.push_str(before);
        let mut chars = after.chars();
        plain.push(match chars.next()? {
            't' => '\t',
            'b' => '\u{8}',
            'n' => '\n',
            'r' => '\r',
            'f' => '\u{C}',
            escaped @ ('"' | '\'' | '\\') => escaped,
            _ => return None,
        });
        rest = chars.as_str();
    }
    plain.push_str(rest);
    Some(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Vec<Token<'_>> {
        tokens(text)
            .expect("can be cut")
            .into_iter()
            .map(|lexed| lexed.token)
            .collect()
    }

    fn name<'t>(prefix: &'t str, local: &'t str) -> Token<'t> {
        Token::Name {
            prefix,
            local,
            plain: true,
        }
    }

    fn number(digits: &str, datatype: Number) -> Token<'_> {
        Token::Number { digits, datatype }
    }

    #[test]
    fn names_end_before_dots() {
        use Token::*;
        assert_eq!(
            of("?s a:b e:c.d. :x-1;a :.\n_:b. _:c.d"),
            [
                Variable,
                name("a", "b"),
                name("e", "c.d"),
                Mark(b'.'),
                name("", "x-1"),
                Mark(b';'),
                Word("a"),
                name("", ""),
                Mark(b'.'),
                Variable,
                Mark(b'.'),
                Variable,
            ]
        );
        let Name { plain: false, .. } = of("e:a\\,b")[0] else {
            panic!("an escape is not plain");
        };
        assert_eq!(of("e:a\\,b").len(), 1);
    }

    #[test]
    fn numbers() {
        use Number::*;
        use Token::Mark;
        assert_eq!(
            of("5. 5.5 .5 5e3 5.e-3 -5 1.5.2"),
            [
                number("5", Integer),
                Mark(b'.'),
                number("5.5", Decimal),
                number(".5", Decimal),
                number("5e3", Double),
                number("5.e-3", Double),
                Mark(b'-'),
                number("5", Integer),
                number("1.5", Decimal),
                number(".2", Decimal),
            ]
        );
    }

    #[test]
    fn strings_and_what_follows_them() {
        use Token::*;
        assert_eq!(
            of("'a\"\\'' \"\"\"x\"\n\"y\"\"\"@en-GB \"5\" # \"\n ^^<http://t>"),
            [
                Text("a\"\\'"),
                Text("x\"\n\"y"),
                Language("en-GB"),
                Text("5"),
                Typed,
                Iri("http://t"),
            ]
        );
        assert_eq!(unescaped("a\\\"\\n\\\\").as_deref(), Some("a\"\n\\"));
        assert_eq!(unescaped("\\x"), None);
        assert!(tokens("'a\nb'").is_none());
        assert!(tokens("'ab").is_none());
        assert!(tokens("'\\é'").is_some());
        assert!(tokens("'\\").is_none());
    }

    #[test]
    fn less_than_is_no_iri() {
        use Token::{Mark, Variable};
        assert_eq!(
            of("?a<?b && ?c>5 <=?d"),
            [
                Variable,
                Mark(b'<'),
                Variable,
                Mark(b'&'),
                Mark(b'&'),
                Variable,
                Mark(b'>'),
                number("5", Number::Integer),
                Mark(b'<'),
                Mark(b'='),
                Variable,
            ]
        );
    }
}
