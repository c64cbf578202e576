//! Lists of integers, the form in which PostgreSQL keeps and copies what a plan carries: writing and reading them.

use crate::plan::condition::Bound;

/// The list is not one that the encoder made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecodeError;

/// Reads a list from its beginning.
#[derive(Debug)]
pub struct Reader<'a> {
    words: &'a [i32],
    /// Groups around the one that is read.
    pub(super) depth: usize,
}

impl<'a> Reader<'a> {
    /// At the beginning of a list.
    pub fn new(words: &'a [i32]) -> Self {
        Self { words, depth: 0 }
    }

    /// The next integer.
    ///
    /// # Errors
    /// [`DecodeError`] at the end of the list.
    pub fn word(&mut self) -> Result<i32, DecodeError> {
        let (first, rest) = self.words.split_first().ok_or(DecodeError)?;
        self.words = rest;
        Ok(*first)
    }

    /// The number of an enum's variant, or of the items of a list: no larger than what can follow.
    ///
    /// # Errors
    /// [`DecodeError`] where the list is shorter.
    pub(super) fn count(&mut self) -> Result<usize, DecodeError> {
        let count = usize::try_from(self.word()?).map_err(|_| DecodeError)?;
        (count <= self.words.len())
            .then_some(count)
            .ok_or(DecodeError)
    }

    /// Checks that nothing is left.
    ///
    /// # Errors
    /// [`DecodeError`] where something is.
    pub fn end(&self) -> Result<(), DecodeError> {
        self.words.is_empty().then_some(()).ok_or(DecodeError)
    }
}

/// What can be part of a plan.
pub trait Words: Sized {
    /// Adds the value to a list.
    fn write(&self, out: &mut Vec<i32>);

    /// Reads what [`Self::write`] has added.
    ///
    /// # Errors
    /// [`DecodeError`] when the list is damaged.
    fn read(from: &mut Reader<'_>) -> Result<Self, DecodeError>;
}

/// Whole numbers: one integer each.
macro_rules! numbers {
    ($($number:ty),*) => {$(
        impl Words for $number {
            fn write(&self, out: &mut Vec<i32>) {
                out.push(*self as i32);
            }

            fn read(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
                Self::try_from(from.word()?).map_err(|_| DecodeError)
            }
        }
    )*};
}

numbers!(u8, u16, i32, usize);

/// An object identifier of PostgreSQL: all 32 bits are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Oid(pub u32);

impl Words for Oid {
    fn write(&self, out: &mut Vec<i32>) {
        out.push(self.0 as i32);
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self(from.word()? as u32))
    }
}

impl Words for bool {
    fn write(&self, out: &mut Vec<i32>) {
        out.push(i32::from(*self));
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
        match from.word()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(DecodeError),
        }
    }
}

impl Words for Bound {
    fn write(&self, out: &mut Vec<i32>) {
        out.push(*self as i32);
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Self::from_number(from.word()?).ok_or(DecodeError)
    }
}

/// Whether there is one, then the value.
impl<T: Words> Words for Option<T> {
    fn write(&self, out: &mut Vec<i32>) {
        self.is_some().write(out);
        if let Some(value) = self {
            value.write(out);
        }
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
        bool::read(from)?.then(|| T::read(from)).transpose()
    }
}

/// The number of items, then the items.
impl<T: Words> Words for Vec<T> {
    fn write(&self, out: &mut Vec<i32>) {
        out.push(self.len() as i32);
        for item in self {
            item.write(out);
        }
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let count = from.count()?;
        (0..count).map(|_| T::read(from)).collect()
    }
}

impl<A: Words, B: Words> Words for (A, B) {
    fn write(&self, out: &mut Vec<i32>) {
        self.0.write(out);
        self.1.write(out);
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok((A::read(from)?, B::read(from)?))
    }
}
