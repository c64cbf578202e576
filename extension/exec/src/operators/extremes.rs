//! MIN and MAX of a group: the words that it has of one, stepped by rows and by what others have found.

use std::cmp::Ordering;

/// Words of an extreme: what there is, and the value.
pub(crate) const EXTREME_WORDS: usize = 2;

/// There is no value yet; the words of a group without rows are zeros.
const NOTHING: u64 = 0;
/// There is one.
const FOUND: u64 = 1;
/// There is none for good: an error in a row.
const FAILED: u64 = 2;

/// The order of the terms with two ids, in the form of keys.
pub type TermOrder = fn(u64, u64) -> Ordering;

/// Is told of ids, in the form of keys, whose terms are about to be compared, column by column.
pub type TermOffer = fn(Vec<Vec<u64>>);

/// Which value of an argument is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extreme {
    /// The least id; rows without one are left out (SQL's MIN).
    LeastId,
    /// The greatest id.
    GreatestId,
    /// The id of the first term in the order of ORDER BY; a row without one is an error (SPARQL's MIN).
    FirstTerm,
    /// That of the last one.
    LastTerm,
}

impl Extreme {
    /// What a row adds.
    pub(crate) fn of_row(self, value: Option<u64>) -> [u64; EXTREME_WORDS] {
        match (value, self) {
            (Some(value), _) => [FOUND, value],
            (None, Self::LeastId | Self::GreatestId) => [NOTHING, 0],
            (None, Self::FirstTerm | Self::LastTerm) => [FAILED, 0],
        }
    }

    /// The extreme of what two parts of a group have.
    pub(crate) fn merge(
        self,
        known: [u64; EXTREME_WORDS],
        other: [u64; EXTREME_WORDS],
        terms: TermOrder,
    ) -> [u64; EXTREME_WORDS] {
        match (known[0], other[0]) {
            (_, NOTHING) => known,
            (NOTHING, _) => other,
            (FOUND, FOUND) => {
                let order = match self {
                    _ if known[1] == other[1] => Ordering::Equal,
                    Self::LeastId | Self::GreatestId => other[1].cmp(&known[1]),
                    Self::FirstTerm | Self::LastTerm => terms(other[1], known[1]),
                };
                let wanted = match self {
                    Self::LeastId | Self::FirstTerm => Ordering::Less,
                    Self::GreatestId | Self::LastTerm => Ordering::Greater,
                };
                if order == wanted {
                    other
                } else {
                    known
                }
            }
            _ => [FAILED, 0],
        }
    }

    /// Whether values are compared by their terms.
    pub(crate) fn compares_terms(self) -> bool {
        matches!(self, Self::FirstTerm | Self::LastTerm)
    }

    /// The ids whose terms [`Self::merge`] compares, if it does.
    pub(crate) fn compared(
        self,
        known: [u64; EXTREME_WORDS],
        other: [u64; EXTREME_WORDS],
    ) -> Option<(u64, u64)> {
        let both = known[0] == FOUND && other[0] == FOUND && known[1] != other[1];
        (both && self.compares_terms()).then_some((known[1], other[1]))
    }

    /// The result; `None` where there is none.
    pub(crate) fn result(words: [u64; EXTREME_WORDS]) -> Option<u64> {
        (words[0] == FOUND).then_some(words[1])
    }
}
