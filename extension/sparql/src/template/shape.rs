//! A SPARQL text with its constants taken out.

use std::fmt::Write;

use memchr::memchr3_iter;
use spargebra::term::{Literal, NamedNode};

use super::constant::Kind;
use super::lexer::{tokens, unescaped, Lexed, Number, Token};
use super::marker::marker;
use super::position::Position;
use crate::params::inline_id_of;

const XSD: &str = "http://www.w3.org/2001/XMLSchema#";

/// Around the place of a constant.
const MARK: char = '\u{1}';

/// Most different constants that are taken out: each is a parameter of the statement. Chosen, not measured.
const MAX_CONSTANTS: usize = 200;

/// A text with its constants taken out: IRIs, strings, numbers. Texts that differ in their constants only have the same
/// key.
///
/// Left in their places are predicates, names of functions and separators, the numbers of LIMIT and OFFSET, booleans,
/// and what depends on the base IRI.
#[derive(Debug)]
pub struct Shape {
    key: String,
    /// N-Triples form of the constants, each one once, in the order in which the text first has them.
    constants: Vec<String>,
    kinds: Vec<Kind>,
}

impl Shape {
    /// Bytes of the longest text that has a shape. Chosen, not measured.
    pub const MAX_TEXT_BYTES: usize = 32 * 1024;

    /// The shape of a text; `None` for one that is better left alone. The text need not be right.
    #[must_use]
    pub fn of(text: &str) -> Option<Self> {
        if text.len() > Self::MAX_TEXT_BYTES || has_marks_or_codes(text.as_bytes()) {
            return None;
        }
        let tokens = tokens(text)?;
        let builder = Builder {
            text,
            tokens: &tokens,
            at: 0,
            prefixes: Vec::new(),
            seen: Vec::new(),
            position: Position::default(),
            shape: Self {
                key: String::with_capacity(text.len()),
                constants: Vec::new(),
                kinds: Vec::new(),
            },
        };
        builder.build()
    }

    /// The text without its constants: equal keys, equal templates.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }

    /// N-Triples form of the constants.
    #[must_use]
    pub fn constants(&self) -> &[String] {
        &self.constants
    }

    /// The text with a number in the place of each constant, for people.
    #[must_use]
    pub fn readable(&self) -> String {
        self.with(|place| Some(format!("${}", place + 1)))
            .unwrap_or_default()
    }

    /// One marker for each constant, and the text with them in it; `None` where a constant can have no marker.
    pub(super) fn marked(&self) -> Option<(Vec<String>, String)> {
        let markers: Option<Vec<String>> = self
            .kinds
            .iter()
            .enumerate()
            .map(|(place, kind)| marker(kind, place))
            .collect();
        let markers = markers?;
        let text = self.with(|place| markers.get(place).cloned())?;
        Some((markers, text))
    }

    /// The text with something in the place of the constants.
    fn with(&self, mut put: impl FnMut(usize) -> Option<String>) -> Option<String> {
        let mut text = String::with_capacity(self.key.len());
        for (n, part) in self.key.split(MARK).enumerate() {
            if n % 2 == 0 {
                text.push_str(part);
            } else {
                let end = part.find(|c: char| !c.is_ascii_digit())?;
                text.push_str(&put(part[..end].parse().ok()?)?);
            }
        }
        Some(text)
    }
}

struct Builder<'t> {
    text: &'t str,
    tokens: &'t [Lexed<'t>],
    at: usize,
    /// Prefixes and what they stand for, the last declared last; `None`: that depends on the base IRI.
    prefixes: Vec<(&'t str, Option<&'t str>)>,
    /// IRIs as they are written, and their places in the list of constants.
    seen: Vec<(&'t str, usize)>,
    position: Position,
    shape: Shape,
}

impl<'t> Builder<'t> {
    fn build(mut self) -> Option<Shape> {
        while let Some(lexed) = self.tokens.get(self.at) {
            match lexed.token {
                Token::Word("a") | Token::Iri(_) | Token::Name { .. } => self.iri()?,
                Token::Word(word) => {
                    // These name what is not part of the store, or change the meaning of all that follows.
                    let outside = ["SERVICE", "LOAD", "VERSION"];
                    if outside.iter().any(|w| word.eq_ignore_ascii_case(w)) {
                        return None;
                    }
                    self.declaration(word);
                    self.keep(1);
                    match word {
                        "true" | "false" => self.position.term(),
                        _ => self.position.token(lexed.token),
                    }
                }
                Token::Number { digits, datatype } => {
                    if self.is_limit() {
                        self.keep(1);
                    } else {
                        self.put(&number(digits, datatype), 1)?;
                    }
                    self.position.term();
                }
                Token::Text(text) => self.string(text)?,
                Token::Variable => {
                    self.keep(1);
                    self.position.term();
                }
                other => {
                    self.keep(1);
                    self.position.token(other);
                }
            }
        }
        Some(self.shape)
    }

    fn token(&self, ahead: usize) -> Option<Token<'t>> {
        self.tokens.get(self.at + ahead).map(|lexed| lexed.token)
    }

    /// Reads over PREFIX or BASE, but for the last token.
    fn declaration(&mut self, word: &str) {
        if word.eq_ignore_ascii_case("PREFIX") {
            if let (Some(Token::Name { prefix, .. }), Some(Token::Iri(iri))) =
                (self.token(1), self.token(2))
            {
                // Whether it is an IRI at all is the parser's business: it is part of the key.
                let absolute = has_scheme(iri) && !has_dots(iri);
                self.prefixes.push((prefix, absolute.then_some(iri)));
                self.seen.clear();
                self.keep(2);
            }
        } else if word.eq_ignore_ascii_case("BASE") && matches!(self.token(1), Some(Token::Iri(_)))
        {
            self.keep(1);
        }
    }

    /// Takes the IRI out that comes next, unless its text has to stay.
    fn iri(&mut self) -> Option<()> {
        if self.position.is_call() && self.token(1) == Some(Token::Mark(b'(')) {
            self.keep(1);
            self.position.function();
            return Some(());
        }
        let lexed = self.tokens[self.at];
        let text = &self.text[lexed.start..lexed.end];
        let seen = self.seen.iter().find(|(known, _)| *known == text);
        if self.position.is_verb() {
            self.keep(1);
        } else if let Some((_, place)) = seen {
            self.put_place(*place, 1);
        } else if let Some(iri) = self.resolved(self.at) {
            let place = self.put(&Constant::Iri(iri), 1)?;
            self.seen.push((text, place));
        } else {
            self.keep(1);
        }
        self.position.term();
        Some(())
    }

    /// The IRI at a place of the list of tokens, when it is certain which one that is.
    fn resolved(&self, at: usize) -> Option<String> {
        let iri = match self.tokens.get(at)?.token {
            Token::Iri(iri) if !has_dots(iri) => iri.to_owned(),
            Token::Name {
                prefix,
                local,
                plain: true,
            } => {
                let declared = self.prefixes.iter().rev().find(|(p, _)| *p == prefix)?;
                format!("{}{local}", declared.1?)
            }
            _ => return None,
        };
        NamedNode::new(iri).ok().map(NamedNode::into_string)
    }

    fn is_limit(&self) -> bool {
        let limit = |word: &str| {
            ["LIMIT", "OFFSET"]
                .iter()
                .any(|w| word.eq_ignore_ascii_case(w))
        };
        matches!(self.before(1), Some(Token::Word(word)) if limit(word))
    }

    /// Takes the literal out that begins with a string, unless its text has to stay. `None`: it is not certain what it
    /// is.
    fn string(&mut self, text: &str) -> Option<()> {
        let lexical = unescaped(text)?;
        let (literal, tokens) = match self.token(1) {
            Some(Token::Language(tag)) => {
                (Literal::new_language_tagged_literal(lexical, tag).ok()?, 2)
            }
            Some(Token::Typed) => {
                let datatype = NamedNode::new_unchecked(self.resolved(self.at + 2)?);
                (Literal::new_typed_literal(lexical, datatype), 3)
            }
            _ => (Literal::new_simple_literal(lexical), 1),
        };
        let separator = matches!(
            (self.before(2), self.before(1)),
            (Some(Token::Word(word)), Some(Token::Mark(b'='))) if word.eq_ignore_ascii_case("SEPARATOR")
        );
        // Effective boolean values are worked out by the translator.
        if separator || matches!(literal.value(), "true" | "false") {
            self.keep(tokens);
        } else {
            self.put(&Constant::Literal(literal), tokens)?;
        }
        self.position.term();
        Some(())
    }

    fn before(&self, back: usize) -> Option<Token<'t>> {
        self.tokens.get(self.at.checked_sub(back)?).map(|l| l.token)
    }

    /// Takes tokens over as they are, with the space before them as a single blank.
    fn keep(&mut self, tokens: usize) {
        for lexed in &self.tokens[self.at..self.at + tokens] {
            let text = &self.text[lexed.start..lexed.end];
            self.space();
            self.shape.key.push_str(text);
            self.at += 1;
        }
    }

    fn space(&mut self) {
        let end = self.before(1).map(|_| self.tokens[self.at - 1].end);
        if end.is_some_and(|end| end < self.tokens[self.at].start) {
            self.shape.key.push(' ');
        }
    }

    /// Takes a constant out and gives its place. `None`: there are too many.
    fn put(&mut self, constant: &Constant, tokens: usize) -> Option<usize> {
        let ntriples = constant.ntriples();
        let known = self.shape.constants.iter().position(|c| *c == ntriples);
        let place = known.unwrap_or(self.shape.constants.len());
        if known.is_none() {
            if place == MAX_CONSTANTS {
                return None;
            }
            self.shape.kinds.push(constant.kind(&ntriples));
            self.shape.constants.push(ntriples);
        }
        self.put_place(place, tokens);
        Some(place)
    }

    /// Takes the constant out that is at this place of the list.
    fn put_place(&mut self, place: usize, tokens: usize) {
        self.space();
        self.at += tokens;
        let key = &mut self.shape.key;
        let _ = match &self.shape.kinds[place] {
            Kind::Iri => write!(key, "{MARK}{place}I{MARK}"),
            Kind::Literal { suffix, inline } => {
                let sign = if *inline { 'S' } else { 'L' };
                write!(key, "{MARK}{place}{sign}{suffix}{MARK}")
            }
        };
    }
}

/// Whether a text has characters that stand for something in a key, or code points as numbers.
fn has_marks_or_codes(text: &[u8]) -> bool {
    memchr3_iter(MARK as u8, 2, b'\\', text)
        .any(|at| text[at] != b'\\' || matches!(text.get(at + 1), Some(b'u' | b'U')))
}

enum Constant {
    Iri(String),
    Literal(Literal),
}

impl Constant {
    fn ntriples(&self) -> String {
        match self {
            Self::Iri(iri) => format!("<{iri}>"),
            Self::Literal(literal) => literal.to_string(),
        }
    }

    fn kind(&self, ntriples: &str) -> Kind {
        let Self::Literal(literal) = self else {
            return Kind::Iri;
        };
        let lexical = Literal::new_simple_literal(literal.value()).to_string();
        Kind::Literal {
            suffix: ntriples[lexical.len()..].to_owned(),
            inline: inline_id_of(ntriples).is_some(),
        }
    }
}

fn number(digits: &str, datatype: Number) -> Constant {
    let datatype = match datatype {
        Number::Integer => "integer",
        Number::Decimal => "decimal",
        Number::Double => "double",
    };
    let datatype = NamedNode::new_unchecked(format!("{XSD}{datatype}"));
    Constant::Literal(Literal::new_typed_literal(digits, datatype))
}

/// Whether resolving the IRI on a base could drop segments, though it is absolute.
fn has_dots(iri: &str) -> bool {
    iri.contains("/.") || iri.contains(":.")
}

/// Whether the IRI, if it is one, is absolute.
fn has_scheme(iri: &str) -> bool {
    let end = iri.find([':', '/', '?', '#']);
    end.is_some_and(|end| end > 0 && iri[end..].starts_with(':'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> (String, Vec<String>) {
        let shape = Shape::of(text).expect("has a shape");
        (shape.readable(), shape.constants)
    }

    fn constants(text: &str) -> Vec<String> {
        of(text).1
    }

    #[test]
    fn constants_are_taken_out() {
        let (text, constants) = of("PREFIX e: <http://e/>\nSELECT * # all\n{ ?x e:p e:a , <http://e/a>; a 'b'@EN FILTER(?x > 1.5 || ?x = \"1.5\"^^<http://www.w3.org/2001/XMLSchema#decimal>) } LIMIT 5");
        assert_eq!(
            text,
            "PREFIX e: <http://e/> SELECT * { ?x e:p $1 , $1; a $2 FILTER(?x > $3 || ?x = $3) } LIMIT 5"
        );
        assert_eq!(
            constants,
            [
                "<http://e/a>",
                "\"b\"@en",
                "\"1.5\"^^<http://www.w3.org/2001/XMLSchema#decimal>"
            ]
        );
    }

    #[test]
    fn predicates_stay() {
        let prefix = "PREFIX : <http://e/>";
        let of = |rest: &str| constants(&format!("{prefix} {rest}"));
        assert_eq!(
            of("ASK { :a :p [ :q :b ; :r :c ] . :d (:p|^:q)*/:r :e FILTER(?x = :f) :g a :h }"),
            ["a", "b", "c", "d", "e", "f", "g", "h"].map(|n| format!("<http://e/{n}>"))
        );
        assert_eq!(
            of("ASK { GRAPH :g { :a :p (:b :c) , :d FILTER regex(:e, :f) :h :q :i OPTIONAL { :j :r :k } :l :s :m } VALUES ?x { :n :o } VALUES (?x ?y) { (:s :t) } }"),
            ["g", "a", "b", "c", "d", "e", "f", "h", "i", "j", "k", "l", "m", "n", "o", "s", "t"]
                .map(|n| format!("<http://e/{n}>"))
        );
        assert_eq!(
            of("SELECT (:f(:a) AS ?y) FROM :g { ?x ?p :b FILTER :f(:c, -5) :d :q ?y } ORDER BY :f(:e)"),
            ["<http://e/a>", "<http://e/g>", "<http://e/b>", "<http://e/c>",
             "\"5\"^^<http://www.w3.org/2001/XMLSchema#integer>", "<http://e/d>", "<http://e/e>"]
        );
    }

    #[test]
    fn what_depends_on_more_than_itself_stays() {
        assert_eq!(
            of("BASE <http://b/> PREFIX r: <#> SELECT (GROUP_CONCAT(?x; separator = ', ') AS ?y) { <a> <http://p> r:x , <http://b/../c> , <b:./c> , true , 'false' , u:v } OFFSET 7").1,
            [""; 0]
        );
        for text in [
            "ASK { SERVICE <http://e> {} }",
            "ASK { ?x ?y '\\u0041' }",
            "ASK { ?x ?y '\u{1}' }",
            "ASK { ?x ?y 'x'^^a }",
            "ASK { 'x }",
        ] {
            assert!(Shape::of(text).is_none(), "{text}");
        }
    }

    #[test]
    fn equal_keys_mean_equal_texts_but_for_the_constants() {
        let key = |text: &str| Shape::of(text).expect("has a shape").key;
        assert_eq!(
            key("ASK { <a:a> ?p 'long enough text' }"),
            key("ASK {\n<a:b> ?p\t\"another long text\" }")
        );
        for (one, other) in [
            ("ASK { <a:a> ?p <a:a> }", "ASK { <a:a> ?p <a:b> }"),
            ("ASK { ?x ?p 5 }", "ASK { ?x ?p 5.0 }"),
            ("ASK { ?x ?p 5 }", "ASK { ?x ?p 05 }"),
            ("ASK { ?x ?p 'a' }", "ASK { ?x ?p 'longer than seven' }"),
            ("ASK { ?x ?p 'a' }", "ASK { ?x ?p 'a'@en }"),
            ("ASK { ?x ?p 'a'@de }", "ASK { ?x ?p 'a'@en }"),
            ("ASK { ?x ?p 'a' }", "ASK { ?x ?p <a:a> }"),
            ("ASK { ?x ?p 1 } LIMIT 1", "ASK { ?x ?p 1 } LIMIT 2"),
            ("ASK { ?x?p?y }", "ASK { ?x ?p ?y }"),
            ("ASK { ?x <a:p> ?y }", "ASK { ?x <a:q> ?y }"),
            ("ASK { ?x ?y <a:a> }", "ASK { ?x ?y a }"),
            ("ASK { VALUES ?x { <a:a> } }", "ASK { VALUES ?x { a } }"),
        ] {
            assert_ne!(key(one), key(other), "{one} / {other}");
        }
    }
}
