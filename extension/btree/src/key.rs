//! Keys: quads in the column order of a tree.

use std::cmp::Ordering;

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

/// Compares two keys, as `Ord` does.
#[inline]
pub fn cmp(a: &Key, b: &Key) -> Ordering {
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
    fn separators_are_short() {
        assert_eq!(separator(&[1, 2, 3, 4], &[2, 5, 6, 7]), [2, 0, 0, 0]);
        assert_eq!(separator(&[1, 2, 3, 4], &[1, 2, 4, 4]), [1, 2, 4, 0]);
        assert_eq!(separator(&[1, 2, 3, 4], &[1, 2, 3, 5]), [1, 2, 3, 5]);
    }
}
