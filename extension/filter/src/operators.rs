//! The operators of expressions, and what they are asked for: comparisons, arithmetic, kinds and texts of terms.

use pgquad_term::TermId;

/// Arithmetic operators with two operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arithmetic {
    /// `+`
    Add,
    /// `-`
    Sub,
    /// `*`
    Mul,
    /// `/`
    Div,
}

/// Comparison operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// `=`
    Eq,
    /// `!=`
    Ne,
    /// `<`
    Lt,
    /// `<=`
    Le,
    /// `>`
    Gt,
    /// `>=`
    Ge,
}

impl Comparison {
    /// The comparison that gives the same with the sides exchanged.
    #[must_use]
    pub fn commuted(self) -> Self {
        match self {
            Self::Lt => Self::Gt,
            Self::Le => Self::Ge,
            Self::Gt => Self::Lt,
            Self::Ge => Self::Le,
            other => other,
        }
    }

    /// Whether it holds for values in this order.
    #[inline]
    #[must_use]
    pub fn accepts(self, order: std::cmp::Ordering) -> bool {
        match self {
            Self::Eq => order.is_eq(),
            Self::Ne => order.is_ne(),
            Self::Lt => order.is_lt(),
            Self::Le => order.is_le(),
            Self::Gt => order.is_gt(),
            Self::Ge => order.is_ge(),
        }
    }
}

/// Kinds of terms that a test asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TermKind {
    /// isIRI
    Iri,
    /// isBlank
    Blank,
    /// isLiteral
    Literal,
    /// isNumeric
    Numeric,
}

/// The ids of terms that have one text.
#[derive(Clone, Debug)]
pub struct TextIds {
    /// Those of [`crate::terms_of_text`] that have one, sorted.
    pub ids: Vec<TermId>,
    /// Number of the last language that was asked for; strings of later ones, which others may have added since, are
    /// left to the dictionary.
    pub last_language: u16,
}
