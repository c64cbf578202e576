//! Orders: permutations of the columns of a quad, and the mapping between quads and keys.

use crate::error::{Error, Result};
use crate::key::{Key, Quad, SIGN};
use std::fmt;
use std::str::FromStr;

/// A permutation of subject (0), predicate (1), object (2) and graph (3): column `i` of a key is
/// column `self.0[i]` of the quad.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Order(pub(crate) [u8; 4]);

/// The orders of a new file when nothing else is asked for: spog, posg, ospg.
pub const DEFAULT_ORDERS: [Order; 3] = [Order::SPOG, Order::POSG, Order::OSPG];

impl Order {
    /// Subject, predicate, object, graph.
    pub const SPOG: Self = Self([0, 1, 2, 3]);
    /// Predicate, subject, object, graph.
    pub const PSOG: Self = Self([1, 0, 2, 3]);
    /// Object, subject, predicate, graph.
    pub const OSPG: Self = Self([2, 0, 1, 3]);
    /// Predicate, object, subject, graph.
    pub const POSG: Self = Self([1, 2, 0, 3]);

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
    #[inline]
    pub fn columns(&self) -> [u8; 4] {
        self.0
    }

    /// The place in the key of quad column `column` (0 = subject .. 3 = graph).
    #[inline]
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_and_keys() {
        let named = [
            (Order::SPOG, "spog"),
            (Order::PSOG, "psog"),
            (Order::OSPG, "ospg"),
            (Order::POSG, "posg"),
        ];
        for (order, name) in named {
            assert_eq!(name.parse::<Order>().unwrap(), order);
            assert_eq!(order.to_string(), name);
        }
        assert!("spos".parse::<Order>().is_err());
        assert!("spo".parse::<Order>().is_err());
        assert_eq!(Order::POSG.position(0), 2);
        let quad = [1, -2, i64::MAX, i64::MIN];
        for o in DEFAULT_ORDERS {
            assert_eq!(quad_of(o, &key_of(o, &quad)), quad);
        }
        assert!(key_of(Order::POSG, &[0, -1, 0, 0]) < key_of(Order::POSG, &[0, 0, -5, 0]));
    }
}
