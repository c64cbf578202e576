//! Numbers in plans: a type for each kind, so that none is taken for another.

use crate::plan::words::{DecodeError, Reader, Words};

/// Numbers that count from 0; as part of a plan, one integer each.
macro_rules! numbers {
    ($($(#[$meta:meta])* $name:ident($raw:ty);)*) => {$(
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub struct $name($raw);

        impl $name {
            /// The one with this number.
            #[inline]
            #[must_use]
            pub const fn new(number: $raw) -> Self {
                Self(number)
            }

            /// The one at this place of a list; there are fewer than the type has numbers.
            #[inline]
            #[must_use]
            pub const fn from_index(index: usize) -> Self {
                Self(index as $raw)
            }

            /// Its place in a list.
            #[inline]
            #[must_use]
            pub const fn index(self) -> usize {
                self.0 as usize
            }

            /// As messages have it.
            #[inline]
            #[must_use]
            pub const fn number(self) -> $raw {
                self.0
            }
        }

        impl Words for $name {
            fn write(&self, out: &mut Vec<i32>) {
                self.0.write(out);
            }

            fn read(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
                Words::read(from).map(Self)
            }
        }
    )*};
}

numbers! {
    /// A variable: its number is the place of its column in [`crate::Bindings`].
    Slot(u16);

    /// A parameter: its number is the place of its value among those of a run.
    Param(u16);

    /// A test of a filter: its number is the place of its expression among those of the source.
    Expr(u16);

    /// An argument of sums and extremes: its number is the place of its expression among the source's arguments.
    Argument(u16);

    /// A column of quads: s, p, o or g.
    ColumnNumber(u8);

    /// A table of the source. Its number may also stand for a part of it ([`TableNumber::part`]).
    #[derive(Default)]
    TableNumber(u16);
}

impl ColumnNumber {
    /// The column s.
    pub const SUBJECT: Self = Self(0);
    /// The column p.
    pub const PREDICATE: Self = Self(1);
    /// The column o.
    pub const OBJECT: Self = Self(2);
    /// The column g.
    pub const GRAPH: Self = Self(3);
}

impl Slot {
    /// The first variables, so many.
    pub fn first(count: usize) -> impl Iterator<Item = Self> {
        (0..count).map(Self::from_index)
    }
}
