//! Which constants of a text are predicates, told from its tokens alone.
//!
//! A guess that is wrong does no harm beyond a template more or a template less.

use super::lexer::Token;

/// What comes next in a group of triples.
#[derive(Clone, Copy, PartialEq)]
enum Expect {
    Subject,
    Verb,
    Object,
}

enum Level {
    /// Triples between braces, or between the square brackets of a blank node.
    Triples(Expect),
    /// The parentheses of a property path.
    Path,
    /// Parentheses of an expression or of its arguments.
    Expression,
    /// Parentheses of a list, braces of VALUES.
    Values,
}

/// Follows the tokens of a text.
#[derive(Default)]
pub(super) struct Position {
    levels: Vec<Level>,
    /// VALUES has been read, but not its brace.
    values: bool,
    /// The last token was a keyword or the name of a function.
    word: bool,
}

impl Position {
    /// Whether a constant that comes now is a predicate.
    pub fn is_verb(&self) -> bool {
        matches!(
            self.levels.last(),
            Some(Level::Path | Level::Triples(Expect::Verb))
        )
    }

    /// Whether an IRI that comes now can be the name of a function.
    pub fn is_call(&self) -> bool {
        match self.levels.last() {
            None | Some(Level::Expression) => true,
            Some(Level::Triples(Expect::Subject)) => self.word,
            Some(_) => false,
        }
    }

    /// A constant or a variable was read.
    pub fn term(&mut self) {
        self.word = false;
        if let Some(Level::Triples(expect)) = self.levels.last_mut() {
            *expect = match expect {
                Expect::Subject => Expect::Verb,
                Expect::Verb | Expect::Object => Expect::Object,
            };
        }
    }

    /// The name of a function was read.
    pub fn function(&mut self) {
        self.restart();
        self.word = true;
    }

    /// Anything else was read.
    pub fn token(&mut self, token: Token<'_>) {
        let word = std::mem::replace(&mut self.word, false);
        match token {
            Token::Word(text) => {
                self.function();
                self.values |= text.eq_ignore_ascii_case("VALUES");
            }
            Token::Mark(b'{') => {
                let values = std::mem::replace(&mut self.values, false);
                self.levels.push(if values {
                    Level::Values
                } else {
                    Level::Triples(Expect::Subject)
                });
            }
            Token::Mark(b'}') => {
                self.levels.pop();
                self.restart();
            }
            Token::Mark(b'[') => self.levels.push(Level::Triples(Expect::Verb)),
            Token::Mark(b'(') => self.levels.push(match self.levels.last() {
                Some(Level::Path | Level::Triples(Expect::Verb)) => Level::Path,
                Some(Level::Triples(Expect::Subject)) if word => Level::Expression,
                Some(Level::Triples(_) | Level::Values) => Level::Values,
                Some(Level::Expression) | None => Level::Expression,
            }),
            Token::Mark(b']' | b')') => match self.levels.pop() {
                Some(Level::Expression) => self.restart(),
                _ => self.term(),
            },
            Token::Mark(b'.') => self.restart(),
            Token::Mark(b';') => self.expect(Expect::Verb),
            Token::Mark(b',') => self.expect(Expect::Object),
            Token::Mark(b'/' | b'|') => self.expect(Expect::Verb),
            _ => {}
        }
    }

    fn restart(&mut self) {
        self.expect(Expect::Subject);
    }

    fn expect(&mut self, next: Expect) {
        if let Some(Level::Triples(expect)) = self.levels.last_mut() {
            *expect = next;
        }
    }
}
