//! Conditions of patterns: how a column is compared, and with what.

use std::rc::Rc;

/// How a condition bounds its column.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(i32)]
pub enum Bound {
    /// column < value
    Lt = 1,
    /// column <= value
    Le = 2,
    /// column = value
    Eq = 3,
    /// column >= value
    Ge = 4,
    /// column > value
    Gt = 5,
    /// column = ANY (list)
    Any = 6,
    /// column in one of several ranges; made while a join runs
    Within = 7,
}

impl Bound {
    /// From PostgreSQL's btree strategy number (1..=5), or 6 for ANY.
    pub fn from_number(number: i32) -> Option<Self> {
        Some(match number {
            1 => Self::Lt,
            2 => Self::Le,
            3 => Self::Eq,
            4 => Self::Ge,
            5 => Self::Gt,
            6 => Self::Any,
            _ => return None,
        })
    }

    /// The same condition read from the other side: `value < column` is `column > value`.
    pub fn commuted(self) -> Self {
        match self {
            Self::Lt => Self::Gt,
            Self::Le => Self::Ge,
            Self::Ge => Self::Le,
            Self::Gt => Self::Lt,
            other => other,
        }
    }
}

/// The value side of a condition, in the order-preserving unsigned form of keys.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Value {
    /// One value.
    One(u64),
    /// The list of an ANY; order and duplicates do not matter.
    List(Vec<u64>),
    /// The ranges of a [`Bound::Within`]: ascending, disjoint, inclusive.
    Ranges(Rc<[(u64, u64)]>),
    /// NULL: no quad satisfies the condition.
    Null,
}
