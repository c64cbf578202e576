//! What of a constant the translation of its query depends on.

/// What of a constant its translation depends on, beside which constants are equal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Iri,
    Literal {
        /// `@tag`, `^^<datatype>`, or nothing.
        suffix: String,
        /// Whether its id holds all of it.
        inline: bool,
    },
}

impl Kind {
    pub fn is_inline(&self) -> bool {
        matches!(self, Self::Literal { inline: true, .. })
    }
}
