//! Sorting the rows of a batch by some of their columns.

/// Rows in the order of their values, and which of them are alike.
pub(crate) struct Sorted {
    /// The rows.
    pub rows: Vec<u32>,
    /// First place in `rows` of each distinct key, and the end.
    pub starts: Vec<u32>,
}

/// Rows `0..len` sorted by all of `columns`; those that agree in the first `keys` columns are alike.
pub(crate) fn sort_rows(columns: &[&[u64]], keys: usize, len: usize) -> Sorted {
    let mut rows: Vec<u32> = (0..len as u32).collect();
    let before = |a: u32, b: u32| compare(columns, a, b);
    if !rows.is_sorted_by(|&a, &b| before(a, b).is_le()) && !sort_packed(columns, &mut rows) {
        rows.sort_unstable_by(|&a, &b| before(a, b).then(a.cmp(&b)));
    }
    let keys = &columns[..keys];
    let mut starts = vec![0];
    for at in 1..rows.len() {
        if compare(keys, rows[at - 1], rows[at]).is_ne() {
            starts.push(at as u32);
        }
    }
    starts.push(len as u32);
    Sorted { rows, starts }
}

/// Sorts by numbers that hold all values of a row, as far above the least of their column, and the row itself. False when that takes
/// more than 64 bits.
fn sort_packed(columns: &[&[u64]], rows: &mut [u32]) -> bool {
    let row_bits = bits(rows.len() as u64);
    let mut used = row_bits;
    let mut fields = Vec::with_capacity(columns.len());
    for column in columns.iter().rev() {
        let (least, most) = column.iter().fold((u64::MAX, 0), |(least, most), &v| {
            (least.min(v), most.max(v))
        });
        fields.push((*column, least, used));
        used += bits(most - least);
        if used > u64::BITS {
            return false;
        }
    }
    let mut packed: Vec<u64> = (0..rows.len() as u64).collect();
    for (column, least, shift) in fields {
        for (number, &value) in packed.iter_mut().zip(column) {
            // A column of equal values may have nothing left to be shifted into.
            *number |= (value - least).checked_shl(shift).unwrap_or(0);
        }
    }
    packed.sort_unstable();
    let row = (1u64 << row_bits) - 1;
    for (place, number) in rows.iter_mut().zip(packed) {
        *place = (number & row) as u32;
    }
    true
}

fn bits(value: u64) -> u32 {
    u64::BITS - value.leading_zeros()
}

#[inline]
fn compare(columns: &[&[u64]], a: u32, b: u32) -> std::cmp::Ordering {
    columns
        .iter()
        .map(|c| c[a as usize].cmp(&c[b as usize]))
        .find(|o| o.is_ne())
        .unwrap_or(std::cmp::Ordering::Equal)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn value() -> impl Strategy<Value = u64> {
        prop_oneof![0u64..4, (1u64 << 63)..(1 << 63) + 4, any::<u64>()]
    }

    proptest! {
        #[test]
        fn rows_are_sorted_and_cut_into_keys(
            table in prop::collection::vec([value(), value(), value()], 1..60),
            narrow: bool,
            count in 0usize..4,
            keys in 0usize..4,
        ) {
            let column = |c: usize| table.iter().map(|r| if narrow { r[c] & 3 | 1 << 63 } else { r[c] }).collect::<Vec<_>>();
            let all: Vec<Vec<u64>> = (0..count).map(column).collect();
            let columns: Vec<&[u64]> = all.iter().map(Vec::as_slice).collect();
            let keys = keys.min(count);
            let sorted = sort_rows(&columns, keys, table.len());
            let row = |at: u32| columns.iter().map(|c| c[at as usize]).collect::<Vec<_>>();
            let mut expected: Vec<u32> = (0..table.len() as u32).collect();
            expected.sort_by_key(|&r| (row(r), r));
            prop_assert_eq!(&sorted.rows, &expected);
            let alike = |a: u32, b: u32| row(a)[..keys] == row(b)[..keys];
            let mut starts: Vec<u32> = (0..table.len() as u32)
                .filter(|&at| at == 0 || !alike(expected[at as usize - 1], expected[at as usize]))
                .collect();
            starts.push(table.len() as u32);
            prop_assert_eq!(sorted.starts, starts);
        }
    }
}
