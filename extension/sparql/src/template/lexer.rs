//! Tokens of a SPARQL text, as far as telling its constants from the rest needs.
//!
//! The lexer gives up on what it could see differently from the parser. It need not refuse what is not SPARQL: only
//! texts that have parsed make a template.

/// A token. Text that the parser could read in another way comes as [`Token::Mark`], or as [`Token::Name`] with `plain`
/// false.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Token<'t> {
    /// What stands between `<` and `>`, with its escapes.
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
pub(crate) enum Number {
    Integer,
    Decimal,
    Double,
}

/// A token with its place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lexed<'t> {
    pub token: Token<'t>,
    pub start: usize,
    pub end: usize,
}

/// All tokens; `None` where the text cannot be cut into tokens for certain.
pub(crate) fn tokens(text: &str) -> Option<Vec<Lexed<'_>>> {
    let (tokens, unended) = tokens_until(text);
    unended.is_none().then_some(tokens)
}

/// The tokens up to a string that does not end, and where that starts.
pub(crate) fn tokens_until(text: &str) -> (Vec<Lexed<'_>>, Option<usize>) {
    let mut lexer = Lexer::new(text);
    let mut tokens = Vec::with_capacity(text.len() / 6);
    tokens.extend(&mut lexer);
    (tokens, (lexer.at < text.len()).then_some(lexer.at))
}

/// Gives the tokens of a text one by one, up to a string that does not end.
pub(crate) struct Lexer<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Iterator for Lexer<'t> {
    type Item = Lexed<'t>;

    fn next(&mut self) -> Option<Lexed<'t>> {
        self.skip_space();
        let start = self.at;
        if start == self.text.len() {
            return None;
        }
        let token = self.token()?;
        Some(Lexed {
            token,
            start,
            end: self.at,
        })
    }
}

impl<'t> Lexer<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        Self { text, at: 0 }
    }

    fn bytes(&self) -> &'t [u8] {
        self.text.as_bytes()
    }

    /// The byte `ahead` of the current one; 0 at the end.
    fn peek(&self, ahead: usize) -> u8 {
        self.bytes().get(self.at + ahead).copied().unwrap_or(0)
    }

    /// Moves over the bytes of some classes.
    fn skip(&mut self, classes: u8) {
        self.at += reach(&self.bytes()[self.at..], classes);
    }

    /// Takes `length` bytes.
    fn take(&mut self, length: usize) -> &'t str {
        let taken = &self.text[self.at..self.at + length];
        self.at += length;
        taken
    }

    fn skip_space(&mut self) {
        loop {
            self.skip(SPACE);
            if self.peek(0) != b'#' {
                return;
            }
            self.skip(COMMENT);
        }
    }

    /// The token that starts here; `None`, and no step further, for a string that does not end.
    fn token(&mut self) -> Option<Token<'t>> {
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
            b'?' | b'$' if is(self.peek(1), WORD) => {
                self.at += 1;
                self.skip(WORD);
                Token::Variable
            }
            b'_' if self.peek(1) == b':' => {
                self.at += 2;
                self.skip(NAME);
                // A label does not end with a dot.
                while self.bytes()[self.at - 1] == b'.' {
                    self.at -= 1;
                }
                Token::Variable
            }
            b'@' if self.peek(1).is_ascii_alphabetic() => {
                self.at += 1;
                let start = self.at;
                self.skip(TAG);
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
                let length = reach(&self.bytes()[self.at..], NAME);
                if self.peek(length) == b':' {
                    let prefix = self.take(length);
                    self.name(prefix)
                } else {
                    let start = self.at;
                    self.skip(WORD);
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
            while self.peek(0) == b'.' {
                self.at += 1;
            }
            let after = self.at;
            self.skip_local();
            if self.at == after {
                self.at = dots;
            }
        }
        let local = &self.text[start..self.at];
        let is_plain = |text: &str| reach(text.as_bytes(), PLAIN) == text.len();
        Token::Name {
            prefix,
            local,
            plain: is_plain(prefix) && is_plain(local) && !local.starts_with(['-', '.']),
        }
    }

    fn skip_local(&mut self) {
        loop {
            self.skip(LOCAL);
            if self.peek(0) != b'\\' || self.peek(1) == 0 || self.peek(1) >= 0x80 {
                return;
            }
            self.at += 2;
        }
    }

    fn number(&mut self) -> Token<'t> {
        let start = self.at;
        let skip_digits = |lexer: &mut Self| {
            while lexer.peek(0).is_ascii_digit() {
                lexer.at += 1;
            }
        };
        skip_digits(self);
        let whole = self.at;
        let mut fraction = whole;
        if self.peek(0) == b'.' {
            self.at += 1;
            skip_digits(self);
            fraction = self.at;
        }
        let sign = usize::from(matches!(self.peek(1), b'+' | b'-'));
        let datatype =
            if matches!(self.peek(0), b'e' | b'E') && self.peek(1 + sign).is_ascii_digit() {
                self.at += 1 + sign;
                skip_digits(self);
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
        // A backslash before a character beyond ASCII is an error, and this no boundary.
        let text = self.text.get(start..at)?;
        self.at = at + width;
        Some(Token::Text(text))
    }
}

/// Bytes up to the `>` of an IRI; `None` for the operators that begin so.
fn iri_length(bytes: &[u8]) -> Option<usize> {
    let length = reach(bytes, IRI);
    (bytes.get(length) == Some(&b'>')).then_some(length)
}

/// Characters of variables and keywords.
const WORD: u8 = 1;
/// Characters of prefixes and blank node labels.
const NAME: u8 = 1 << 1;
/// Characters of the local part of a name, but for dots and escapes.
const LOCAL: u8 = 1 << 2;
/// Characters of a prefixed name that every reader takes for such.
const PLAIN: u8 = 1 << 3;
/// Characters of an IRI. A backslash begins the number of a character.
const IRI: u8 = 1 << 4;
/// White space.
const SPACE: u8 = 1 << 5;
/// Characters of a comment.
const COMMENT: u8 = 1 << 6;
/// Characters of a language tag.
const TAG: u8 = 1 << 7;

/// The classes of each byte. Texts are read at every query, so that each byte is looked at as briefly as can be.
static CLASSES: [u8; 256] = {
    let mut classes = [0; 256];
    let mut at = 0;
    while at < 256 {
        classes[at] = classes_of(at as u8);
        at += 1;
    }
    classes
};

const fn classes_of(byte: u8) -> u8 {
    let latin = byte.is_ascii_alphanumeric();
    let word = latin || byte == b'_' || byte >= 0x80;
    let mut classes = 0;
    if word {
        classes |= WORD;
    }
    if word || matches!(byte, b'-' | b'.') {
        classes |= NAME;
    }
    if word || matches!(byte, b'-' | b':' | b'%') {
        classes |= LOCAL;
    }
    if latin || matches!(byte, b'_' | b'-' | b'.' | b':') {
        classes |= PLAIN;
    }
    if byte > b' ' && !matches!(byte, b'<' | b'>' | b'"' | b'{' | b'}' | b'|' | b'^' | b'`') {
        classes |= IRI;
    }
    if matches!(byte, b' ' | b'\t' | b'\n' | b'\r') {
        classes |= SPACE;
    }
    if !matches!(byte, b'\n' | b'\r') {
        classes |= COMMENT;
    }
    if latin || byte == b'-' {
        classes |= TAG;
    }
    classes
}

fn is(byte: u8, classes: u8) -> bool {
    CLASSES[usize::from(byte)] & classes != 0
}

/// How many of the bytes at the start are of some classes.
fn reach(bytes: &[u8], classes: u8) -> usize {
    let end = bytes.iter().position(|&byte| !is(byte, classes));
    end.unwrap_or(bytes.len())
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
    fn iris_have_escapes() {
        use Token::*;
        assert_eq!(
            of("<http://e/\\u00e9#TRUE>true <a#b>"),
            [Iri("http://e/\\u00e9#TRUE"), Word("true"), Iri("a#b")]
        );
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
