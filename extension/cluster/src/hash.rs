//! PostgreSQL's hash of a bigint, by which Citus places rows (`hashint8` in `src/backend/access/hash/hashfunc.c`,
//! `hash_bytes_uint32` in `src/common/hashfn.c`, Bob Jenkins' lookup3).

/// The hash of a bigint, as PostgreSQL's `hashint8(value)` gives it.
#[inline]
#[must_use]
pub fn hash_bigint(value: i64) -> i32 {
    let low = value as u32;
    let high = (value >> 32) as u32;
    // Equal numbers of the three integer types have one hash.
    let folded = low ^ if value >= 0 { high } else { !high };
    hash_u32(folded) as i32
}

/// `hash_bytes_uint32`: the final mix of lookup3 over one word.
#[inline]
fn hash_u32(word: u32) -> u32 {
    let start = 0x9e37_79b9_u32.wrapping_add(4).wrapping_add(3_923_095);
    let (mut a, mut b, mut c) = (start.wrapping_add(word), start, start);
    c = (c ^ b).wrapping_sub(b.rotate_left(14));
    a = (a ^ c).wrapping_sub(c.rotate_left(11));
    b = (b ^ a).wrapping_sub(a.rotate_left(25));
    c = (c ^ b).wrapping_sub(b.rotate_left(16));
    a = (a ^ c).wrapping_sub(c.rotate_left(4));
    b = (b ^ a).wrapping_sub(a.rotate_left(14));
    (c ^ b).wrapping_sub(b.rotate_left(24))
}

#[cfg(test)]
mod tests {
    use super::hash_bigint;

    /// Values of `SELECT hashint8(..)` on PostgreSQL 15.
    #[test]
    fn as_postgresql() {
        let known = [
            (0i64, -272_711_505i32),
            (1, -1_905_060_026),
            (-1, 385_747_274),
            (42, 1_509_752_520),
            (4_611_686_018_427_387_904, -1_535_466_570),
        ];
        for (value, hash) in known {
            assert_eq!(hash_bigint(value), hash, "{value}");
        }
    }
}
