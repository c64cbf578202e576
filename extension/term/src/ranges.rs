//! Ranges of ids as keys, both bounds inclusive.

/// What two ascending lists of disjoint ranges have in common: a merge of both.
#[must_use]
pub fn intersection(a: &[(u64, u64)], b: &[(u64, u64)]) -> Vec<(u64, u64)> {
    let (mut a, mut b) = (a.iter().peekable(), b.iter().peekable());
    let mut both = Vec::new();
    while let (Some(&&x), Some(&&y)) = (a.peek(), b.peek()) {
        let (low, high) = (x.0.max(y.0), x.1.min(y.1));
        if low <= high {
            both.push((low, high));
        }
        if x.1 < y.1 {
            a.next();
        } else {
            b.next();
        }
    }
    both
}

#[cfg(test)]
mod tests {
    use super::intersection;

    #[test]
    fn ranges_in_common() {
        assert_eq!(
            intersection(&[(0, 3), (5, 9)], &[(2, 6), (9, 12)]),
            [(2, 3), (5, 6), (9, 9)]
        );
        assert_eq!(intersection(&[(0, 3)], &[(4, 6)]), []);
        assert_eq!(intersection(&[(0, 9)], &[(0, 9)]), [(0, 9)]);
    }
}
