//! Keys, orders, and the mapping between quads and keys.

use crate::error::{Error, Result};
use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

/// A quad in the column order of one tree. Compared as unsigned numbers, column by column.
pub type Key = [u64; 4];

/// The least key.
pub const KEY_MIN: Key = [0; 4];
/// The greatest key.
pub const KEY_MAX: Key = [u64::MAX; 4];

/// A quad as SQL sees it: subject, predicate, object, graph.
pub type Quad = [i64; 4];

/// The column of the graph in a quad. The columns of a triple are those before it.
pub const GRAPH: usize = 3;

/// The bit in which a column of a key (an unsigned number) differs from the id in its quad (a signed number), so that
/// both sort alike. Everything that makes keys of ids takes it from here.
pub const SIGN: u64 = 1 << 63;

/// A permutation of subject (0), predicate (1), object (2) and graph (3): column `i` of a key is
/// column `self.0[i]` of the quad.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Order(pub(crate) [u8; 4]);

/// The orders of a new file when nothing else is asked for: spog, posg, ospg.
pub const DEFAULT_ORDERS: [Order; 3] = [
    Order([0, 1, 2, 3]),
    Order([1, 2, 0, 3]),
    Order([2, 0, 1, 3]),
];

impl Order {
    /// The order with these column numbers.
    ///
    /// # Errors
    /// [`Error::BadOptions`] unless they are a permutation of 0..4.
    pub fn new(columns: [u8; 4]) -> Result<Self> {
        let mut seen = [false; 4];
        for &c in &columns {
            match seen.get_mut(usize::from(c)) {
                Some(s) if !*s => *s = true,
                _ => {
                    return Err(Error::BadOptions(format!(
                        "{columns:?} is not a permutation of 0..4"
                    )))
                }
            }
        }
        Ok(Self(columns))
    }

    /// The column numbers of the quad, in the order of the key.
    pub fn columns(&self) -> [u8; 4] {
        self.0
    }

    /// The place in the key of quad column `column` (0 = subject .. 3 = graph).
    pub fn position(&self, column: usize) -> usize {
        self.0
            .iter()
            .position(|&c| usize::from(c) == column)
            .unwrap_or(0)
    }
}

impl FromStr for Order {
    type Err = Error;

    /// Reads the form `spog`.
    fn from_str(s: &str) -> Result<Self> {
        let bad = || {
            Error::BadOptions(format!(
                "\"{s}\" is not an order: write each of s, p, o, g once"
            ))
        };
        let mut columns = [0u8; 4];
        if s.len() != 4 {
            return Err(bad());
        }
        for (i, b) in s.bytes().enumerate() {
            columns[i] = match b.to_ascii_lowercase() {
                b's' => 0,
                b'p' => 1,
                b'o' => 2,
                b'g' => 3,
                _ => return Err(bad()),
            };
        }
        Order::new(columns).map_err(|_| bad())
    }
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for &c in &self.0 {
            f.write_str(["s", "p", "o", "g"][usize::from(c & 3)])?;
        }
        Ok(())
    }
}

/// The key of a quad: permuted, the sign bit flipped so that `bigint` order is key order.
#[inline]
pub fn key_of(order: Order, quad: &Quad) -> Key {
    order.0.map(|c| quad[usize::from(c & 3)] as u64 ^ SIGN)
}

/// The quad of a key. Inverse of [`key_of`].
#[inline]
pub fn quad_of(order: Order, key: &Key) -> Quad {
    let mut quad = [0; 4];
    for (i, &c) in order.0.iter().enumerate() {
        quad[usize::from(c & 3)] = (key[i] ^ SIGN) as i64;
    }
    quad
}

/// Bounds (both inclusive) of the keys that start with the given columns of `prefix`.
#[inline]
pub fn prefix_range(prefix: &[u64]) -> (Key, Key) {
    let (mut lower, mut upper) = (KEY_MIN, KEY_MAX);
    for (i, &v) in prefix.iter().take(4).enumerate() {
        lower[i] = v;
        upper[i] = v;
    }
    (lower, upper)
}

/// Compares two keys.
#[inline]
pub(crate) fn cmp(a: &Key, b: &Key) -> Ordering {
    for i in 0..4 {
        if a[i] != b[i] {
            return if a[i] < b[i] {
                Ordering::Less
            } else {
                Ordering::Greater
            };
        }
    }
    Ordering::Equal
}

/// The shortest separator between two neighbours (`left < s <= right`): `right` with as many
/// trailing columns as possible cut to 0.
pub(crate) fn separator(left: &Key, right: &Key) -> Key {
    let mut s = *right;
    for i in (0..4).rev() {
        let keep = s[i];
        s[i] = 0;
        if cmp(&s, left) != Ordering::Greater {
            s[i] = keep;
            break;
        }
    }
    s
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_and_keys() {
        let posg: Order = "posg".parse().unwrap();
        assert_eq!(posg, DEFAULT_ORDERS[1]);
        assert_eq!(posg.to_string(), "posg");
        assert!("spos".parse::<Order>().is_err());
        assert!("spo".parse::<Order>().is_err());
        assert_eq!(posg.position(0), 2);
        let quad = [1, -2, i64::MAX, i64::MIN];
        for o in DEFAULT_ORDERS {
            assert_eq!(quad_of(o, &key_of(o, &quad)), quad);
        }
        assert!(key_of(posg, &[0, -1, 0, 0]) < key_of(posg, &[0, 0, -5, 0]));
    }

    #[test]
    fn separators_are_short() {
        assert_eq!(separator(&[1, 2, 3, 4], &[2, 5, 6, 7]), [2, 0, 0, 0]);
        assert_eq!(separator(&[1, 2, 3, 4], &[1, 2, 4, 4]), [1, 2, 4, 0]);
        assert_eq!(separator(&[1, 2, 3, 4], &[1, 2, 3, 5]), [1, 2, 3, 5]);
    }
}
