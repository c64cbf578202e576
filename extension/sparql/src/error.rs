//! What can go wrong between a SPARQL text and its SQL.

use std::fmt;

use spargebra::SparqlSyntaxError;

use crate::known_prefixes;

/// Why a text was not translated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// The text is not SPARQL 1.1. Line and column count from 1, in characters.
    Syntax {
        /// What the parser says.
        message: String,
        /// Line and column, where known.
        position: Option<(u32, u32)>,
        /// The position is that of the token that cannot stand there; otherwise the parser's, which may be behind it.
        is_certain: bool,
    },
    /// A prefixed name whose prefix is not declared. Line and column count from 1, in characters.
    UndeclaredPrefix {
        /// The prefix, without its colon.
        prefix: String,
        /// Line and column of the name.
        position: (u32, u32),
    },
    /// A relative IRI, where nothing says what it is relative to. Line and column count from 1, in characters.
    RelativeIri {
        /// What stands between `<` and `>`.
        iri: String,
        /// Line and column of its `<`.
        position: (u32, u32),
    },
    /// The base IRI is not an absolute IRI.
    Base(String),
    /// The text is right, but this feature is not built.
    Unsupported(String),
    /// The text nests deeper or chains longer than can be worked on.
    TooComplex {
        /// The bound.
        what: String,
        /// Line and column where it is passed.
        position: (u32, u32),
    },
    /// The text parses, but asks for something that has no meaning (wrong number of arguments, wrong query form).
    Invalid(String),
}

impl Error {
    pub(crate) fn unsupported(what: impl Into<String>) -> Self {
        Self::Unsupported(what.into())
    }

    /// What can be done about it, where that can be told.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        let prefix = match self {
            Self::UndeclaredPrefix { prefix, .. } => prefix,
            Self::RelativeIri { .. } => {
                let hint =
                    "Write the IRI in full, or say at the beginning what it is relative to: \
                            BASE <http://example.org/>";
                return Some(hint.to_owned());
            }
            _ => return None,
        };
        Some(match known_prefixes::declaration(prefix) {
            Some(declaration) => format!("Add the declaration at the beginning: {declaration}"),
            None => format!("Declare it at the beginning: PREFIX {prefix}: <...>"),
        })
    }

    /// The line of `text` that it is about, with a caret below the place: `Line 2:`, the line, the caret. A long line
    /// is cut.
    #[must_use]
    pub fn place(&self, text: &str) -> Option<String> {
        let (line, column) = match self {
            Self::TooComplex { position, .. }
            | Self::UndeclaredPrefix { position, .. }
            | Self::RelativeIri { position, .. } => *position,
            Self::Syntax {
                position: Some(position),
                is_certain: true,
                ..
            } => *position,
            _ => return None,
        };
        let shown: Vec<char> = text.lines().nth(line as usize - 1)?.chars().collect();
        let caret = (column as usize - 1).min(shown.len());
        let from = caret.saturating_sub(SHOWN_CHARS / 2);
        let to = shown.len().min(from + SHOWN_CHARS);
        // A tab takes one column, as the caret counts.
        let visible = |&c: &char| if c.is_control() { ' ' } else { c };
        let shown: String = shown[from..to].iter().map(visible).collect();
        let blanks = " ".repeat(caret - from);
        Some(format!("Line {line}:\n  {shown}\n  {blanks}^"))
    }
}

/// Characters of a line that are shown around an error.
const SHOWN_CHARS: usize = 80;

impl From<SparqlSyntaxError> for Error {
    /// The parser keeps its position private and writes it as `error at <line>:<column>: <what>`.
    fn from(error: SparqlSyntaxError) -> Self {
        let text = error.to_string();
        let parts = text.strip_prefix("error at ").and_then(|rest| {
            let (position, message) = rest.split_once(": ")?;
            let (line, column) = position.split_once(':')?;
            Some(((line.parse().ok()?, column.parse().ok()?), message))
        });
        match parts {
            Some((position, message)) => Self::Syntax {
                message: message.to_owned(),
                position: Some(position),
                is_certain: false,
            },
            None => Self::Syntax {
                message: text,
                position: None,
                is_certain: false,
            },
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Syntax {
                message,
                position: Some((line, column)),
                ..
            } => write!(
                f,
                "SPARQL syntax error at line {line}, column {column}: {message}"
            ),
            Self::Syntax {
                message,
                position: None,
                ..
            } => write!(f, "SPARQL syntax error: {message}"),
            Self::TooComplex {
                what,
                position: (line, column),
            } => write!(
                f,
                "SPARQL text is too complex at line {line}, column {column}: {what}"
            ),
            Self::UndeclaredPrefix {
                prefix,
                position: (line, column),
            } => write!(
                f,
                "prefix \"{prefix}:\" at line {line}, column {column} is not declared"
            ),
            Self::RelativeIri {
                iri,
                position: (line, column),
            } => write!(
                f,
                "IRI <{iri}> at line {line}, column {column} is relative, and there is no base IRI"
            ),
            Self::Base(base) => write!(f, "not an absolute base IRI: {base}"),
            Self::Unsupported(what) => write!(f, "not supported: {what}"),
            Self::Invalid(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for Error {}
