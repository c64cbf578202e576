//! Regular expressions of XPath (XSD 1.0 part 2 appendix F with the additions of Functions and
//! Operators section 7.6.1) in the syntax of the `regex` crate.
//!
//! Beyond XPath, `\b` and `\B` are taken as word boundaries, as most SPARQL engines do. With the
//! flag `m`, `^` also matches after a newline that ends the text, where XPath does not.

use crate::error::{Error, Result};
use regex::escape;
use std::fmt::Write;
use std::iter::Peekable;
use std::str::Chars;

#[derive(Clone, Copy, Default)]
pub(super) struct Flags {
    dot_all: bool,
    multi_line: bool,
    pub(super) case_insensitive: bool,
    extended: bool,
    pub(super) quoted: bool,
}

impl Flags {
    pub(super) fn parse(text: &str) -> Result<Self> {
        let mut flags = Self::default();
        for c in text.chars() {
            *match c {
                's' => &mut flags.dot_all,
                'm' => &mut flags.multi_line,
                'i' => &mut flags.case_insensitive,
                'x' => &mut flags.extended,
                'q' => &mut flags.quoted,
                _ => {
                    return Err(Error::Argument(format!(
                        "unknown flag '{c}' of a regular expression"
                    )))
                }
            } = true;
        }
        Ok(flags)
    }
}

/// Characters that start an XML name.
const NAME_START: &str = "A-Z_a-z:\\xC0-\\xD6\\xD8-\\xF6\\u{F8}-\\u{2FF}\\u{370}-\\u{37D}\
    \\u{37F}-\\u{1FFF}\\u{200C}-\\u{200D}\\u{2070}-\\u{218F}\\u{2C00}-\\u{2FEF}\\u{3001}-\\u{D7FF}\
    \\u{F900}-\\u{FDCF}\\u{FDF0}-\\u{FFFD}\\u{10000}-\\u{EFFFF}";
/// Further characters of an XML name.
const NAME_REST: &str = "\\-.0-9\\xB7\\u{300}-\\u{36F}\\u{203F}-\\u{2040}";

/// The general categories that `\p{...}` knows.
const CATEGORIES: &[&str] = &[
    "L", "Lu", "Ll", "Lt", "Lm", "Lo", "M", "Mn", "Mc", "Me", "N", "Nd", "Nl", "No", "P", "Pc",
    "Pd", "Ps", "Pe", "Pi", "Pf", "Po", "Z", "Zs", "Zl", "Zp", "S", "Sm", "Sc", "Sk", "So", "C",
    "Cc", "Cf", "Co", "Cn",
];

fn invalid(what: &str) -> Error {
    Error::Argument(format!("invalid regular expression: {what}"))
}

pub(super) fn translate(pattern: &str, flags: Flags) -> Result<String> {
    if flags.quoted {
        return Ok(escape(pattern));
    }
    let mut translator = Translator {
        chars: pattern.chars().peekable(),
        flags,
        out: String::with_capacity(pattern.len() * 2),
    };
    translator.expression()?;
    Ok(translator.out)
}

/// What came before, to tell whether a quantifier may follow.
#[derive(Clone, Copy, PartialEq)]
enum Previous {
    Nothing,
    Atom,
    Quantifier,
}

struct Translator<'a> {
    chars: Peekable<Chars<'a>>,
    flags: Flags,
    out: String,
}

/// An escape: a character or a set of them in the syntax of the `regex` crate.
enum Escape {
    Char(char),
    Class(String),
}

impl Translator<'_> {
    fn expression(&mut self) -> Result<()> {
        let mut depth = 0;
        let mut previous = Previous::Nothing;
        while let Some(c) = self.chars.next() {
            previous = match c {
                ' ' | '\t' | '\n' | '\r' if self.flags.extended => previous,
                '|' => {
                    self.out.push('|');
                    Previous::Nothing
                }
                '(' => {
                    depth += 1;
                    self.open_group()?;
                    Previous::Nothing
                }
                ')' => {
                    if depth == 0 {
                        return Err(invalid("')' without '('"));
                    }
                    depth -= 1;
                    self.out.push(')');
                    Previous::Atom
                }
                '?' | '*' | '+' | '{' => {
                    if previous != Previous::Atom {
                        return Err(invalid("a quantifier without anything to repeat"));
                    }
                    self.quantifier(c)?;
                    Previous::Quantifier
                }
                '^' => {
                    let anchor = if self.flags.multi_line {
                        "(?m:^)"
                    } else {
                        "\\A"
                    };
                    self.out.push_str(anchor);
                    Previous::Nothing
                }
                '$' => {
                    let anchor = if self.flags.multi_line {
                        "(?m:$)"
                    } else {
                        "\\z"
                    };
                    self.out.push_str(anchor);
                    Previous::Nothing
                }
                '.' => {
                    let any = if self.flags.dot_all {
                        "(?s:.)"
                    } else {
                        "[^\\n\\r]"
                    };
                    self.out.push_str(any);
                    Previous::Atom
                }
                '[' => {
                    let class = self.class()?;
                    self.out.push_str(&class);
                    Previous::Atom
                }
                ']' | '}' => return Err(invalid(&format!("'{c}' stands alone"))),
                '\\' => self.escape_outside()?,
                _ => {
                    self.literal(c);
                    Previous::Atom
                }
            };
        }
        if depth > 0 {
            return Err(invalid("'(' without ')'"));
        }
        Ok(())
    }

    fn literal(&mut self, c: char) {
        self.out.push_str(&escape(c.encode_utf8(&mut [0; 4])));
    }

    fn open_group(&mut self) -> Result<()> {
        self.out.push('(');
        if self.chars.next_if_eq(&'?').is_some() {
            if self.chars.next() != Some(':') {
                return Err(invalid("only '(?:' may follow '('"));
            }
            self.out.push_str("?:");
        }
        Ok(())
    }

    fn quantifier(&mut self, first: char) -> Result<()> {
        self.out.push(first);
        if first == '{' {
            let mut inner = String::new();
            loop {
                match self.chars.next() {
                    Some('}') => break,
                    Some(c @ ('0'..='9' | ',')) => inner.push(c),
                    Some(' ' | '\t' | '\n' | '\r') if self.flags.extended => {}
                    _ => return Err(invalid("malformed quantifier")),
                }
            }
            let (low, high) = inner.split_once(',').unwrap_or((&inner, ""));
            if low.is_empty() || high.contains(',') {
                return Err(invalid("malformed quantifier"));
            }
            self.out.push_str(&inner);
            self.out.push('}');
        }
        if self.chars.next_if_eq(&'?').is_some() {
            self.out.push('?');
        }
        Ok(())
    }

    fn escape_outside(&mut self) -> Result<Previous> {
        match self.chars.peek() {
            Some('1'..='9') => {
                return Err(Error::NotSupported(
                    "a back reference in a regular expression".to_owned(),
                ))
            }
            Some(c @ ('b' | 'B')) => {
                self.out.push('\\');
                self.out.push(*c);
                self.chars.next();
                return Ok(Previous::Nothing);
            }
            _ => {}
        }
        match self.escape()? {
            Escape::Char(c) => self.literal(c),
            // The flag `i` is about characters and ranges only (XPath functions, 5.6.2).
            Escape::Class(class) if self.flags.case_insensitive => {
                self.out.push_str("(?-i:");
                self.out.push_str(&class);
                self.out.push(')');
            }
            Escape::Class(class) => self.out.push_str(&class),
        }
        Ok(Previous::Atom)
    }

    /// What follows a backslash.
    fn escape(&mut self) -> Result<Escape> {
        let Some(c) = self.chars.next() else {
            return Err(invalid("a backslash at the end"));
        };
        let class = match c {
            'n' => return Ok(Escape::Char('\n')),
            'r' => return Ok(Escape::Char('\r')),
            't' => return Ok(Escape::Char('\t')),
            '\\' | '|' | '.' | '-' | '^' | '?' | '*' | '+' | '{' | '}' | '(' | ')' | '[' | ']'
            | '$' => return Ok(Escape::Char(c)),
            's' => "[ \\t\\n\\r]".to_owned(),
            'S' => "[^ \\t\\n\\r]".to_owned(),
            'd' => "\\p{Nd}".to_owned(),
            'D' => "\\P{Nd}".to_owned(),
            'w' => "[^\\p{P}\\p{Z}\\p{C}]".to_owned(),
            'W' => "[\\p{P}\\p{Z}\\p{C}]".to_owned(),
            'i' => format!("[{NAME_START}]"),
            'I' => format!("[^{NAME_START}]"),
            'c' => format!("[{NAME_START}{NAME_REST}]"),
            'C' => format!("[^{NAME_START}{NAME_REST}]"),
            'p' | 'P' => self.property(c)?,
            _ => return Err(invalid(&format!("unknown escape '\\{c}'"))),
        };
        Ok(Escape::Class(class))
    }

    /// `\p{Lu}` and its kin.
    fn property(&mut self, letter: char) -> Result<String> {
        if self.chars.next() != Some('{') {
            return Err(invalid("'{' is missing after '\\p'"));
        }
        let name: String = self.chars.by_ref().take_while(|c| *c != '}').collect();
        if name.starts_with("Is") {
            return Err(Error::NotSupported(format!(
                "the Unicode block \\{letter}{{{name}}} in a regular expression"
            )));
        }
        if !CATEGORIES.contains(&name.as_str()) {
            return Err(invalid(&format!("unknown category \"{name}\"")));
        }
        Ok(format!("\\{letter}{{{name}}}"))
    }

    /// A character class, after its opening bracket.
    fn class(&mut self) -> Result<String> {
        let negated = self.chars.next_if_eq(&'^').is_some();
        let mut items = String::new();
        let mut subtracted = None;
        let mut first = true;
        loop {
            let Some(c) = self.chars.next() else {
                return Err(invalid("'[' without ']'"));
            };
            match c {
                ']' if first => return Err(invalid("an empty character class")),
                ']' => break,
                '-' if !first && self.chars.next_if_eq(&'[').is_some() => {
                    subtracted = Some(self.class()?);
                    if self.chars.next() != Some(']') {
                        return Err(invalid("']' must follow a subtracted class"));
                    }
                    break;
                }
                '[' => return Err(invalid("'[' within a character class")),
                _ => self.class_item(c, &mut items)?,
            }
            first = false;
        }
        let class = format!("[{}{items}]", if negated { "^" } else { "" });
        Ok(match subtracted {
            Some(subtracted) => format!("[{class}--{subtracted}]"),
            None => class,
        })
    }

    /// One character, range or escape of a class.
    fn class_item(&mut self, c: char, items: &mut String) -> Result<()> {
        let low = match c {
            '\\' => match self.escape()? {
                Escape::Char(c) => c,
                Escape::Class(class) => {
                    items.push_str(&class);
                    return Ok(());
                }
            },
            _ => c,
        };
        let high = self.range_end()?.unwrap_or(low);
        if high < low {
            return Err(invalid("a range that runs backwards"));
        }
        write!(items, "\\u{{{:X}}}", u32::from(low)).expect("writing to a string");
        if high > low {
            write!(items, "-\\u{{{:X}}}", u32::from(high)).expect("writing to a string");
        }
        Ok(())
    }

    /// The end of a range, if a range follows: a hyphen that neither ends the class nor starts a
    /// subtraction.
    fn range_end(&mut self) -> Result<Option<char>> {
        let mut ahead = self.chars.clone();
        if ahead.next() != Some('-') || matches!(ahead.peek(), Some(']' | '[') | None) {
            return Ok(None);
        }
        self.chars.next();
        match self.chars.next() {
            Some('\\') => match self.escape()? {
                Escape::Char(c) => Ok(Some(c)),
                Escape::Class(_) => Err(invalid("a range that ends in a set")),
            },
            other => Ok(other),
        }
    }
}
