//! Sorting the rows of a batch by some of their columns.

use crate::cost::{COMPARED_ROWS, PACKED_COLUMN_BITS};
use crate::operators::keys::Keys;

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
    if !rows.is_sorted_by(|&a, &b| before(a, b).is_le()) {
        match columns {
            [column] if len >= COMPARED_ROWS => return by_rank(&ranks(column), keys),
            _ if len >= COMPARED_ROWS && sort_packed(columns, &mut rows) => {}
            _ => rows.sort_unstable_by(|&a, &b| before(a, b).then(a.cmp(&b))),
        }
    }
    let keys = &columns[..keys];
    let mut starts = Vec::with_capacity(rows.len() + 1);
    starts.push(0);
    for at in 1..rows.len() {
        if compare(keys, rows[at - 1], rows[at]).is_ne() {
            starts.push(at as u32);
        }
    }
    starts.push(len as u32);
    Sorted { rows, starts }
}

/// For each value its place among the distinct ones. Only those are sorted: mostly they are fewer than the values.
fn ranks(values: &[u64]) -> Vec<u32> {
    let mut distinct = Keys::new(1, values.len());
    let columns = [values];
    let mut numbers = distinct.find_or_add_all(&columns, values.len());
    let mut sorted: Vec<(u64, u32)> = distinct.column(0).iter().copied().zip(0..).collect();
    sorted.sort_unstable();
    let mut ranks = vec![0; sorted.len()];
    for (rank, (_, number)) in sorted.into_iter().enumerate() {
        ranks[number as usize] = rank as u32;
    }
    for number in &mut numbers {
        *number = ranks[*number as usize];
    }
    numbers
}

/// Rows in the order of their ranks. `keys` is 1 where ranks tell which rows are alike, and 0 where all rows are alike.
fn by_rank(ranks: &[u32], keys: usize) -> Sorted {
    let distinct = ranks.iter().max().map_or(0, |&most| most as usize + 1);
    let mut starts = vec![0u32; distinct + 1];
    for &rank in ranks {
        starts[rank as usize + 1] += 1;
    }
    for rank in 0..distinct {
        starts[rank + 1] += starts[rank];
    }
    let mut next = starts.clone();
    let mut rows = vec![0; ranks.len()];
    for (row, &rank) in ranks.iter().enumerate() {
        let place = &mut next[rank as usize];
        rows[*place as usize] = row as u32;
        *place += 1;
    }
    if keys == 0 {
        starts = vec![0, ranks.len() as u32];
    }
    Sorted { rows, starts }
}

/// A column as numbers of few bits that are in the same order.
enum PackedColumn<'a> {
    /// How far they are above the least.
    Above(&'a [u64], u64),
    /// Their ranks.
    Ranks(Vec<u32>),
}

impl<'a> PackedColumn<'a> {
    /// With the number of bits.
    fn new(column: &'a [u64]) -> (Self, u32) {
        let (least, most) = column.iter().fold((u64::MAX, 0), |(least, most), &v| {
            (least.min(v), most.max(v))
        });
        let wide = bits(most - least);
        if wide <= PACKED_COLUMN_BITS {
            return (Self::Above(column, least), wide);
        }
        let ranks = ranks(column);
        let most = ranks.iter().max().copied().unwrap_or(0);
        (Self::Ranks(ranks), bits(u64::from(most)))
    }

    fn add_to(&self, numbers: &mut [u64], shift: u32) {
        // A column of equal values may have nothing left to be shifted into.
        let shifted = |value: u64| value.checked_shl(shift).unwrap_or(0);
        match self {
            Self::Above(column, least) => {
                let pairs = numbers.iter_mut().zip(*column);
                pairs.for_each(|(number, value)| *number |= shifted(value - least));
            }
            Self::Ranks(ranks) => {
                let pairs = numbers.iter_mut().zip(ranks);
                pairs.for_each(|(number, &rank)| *number |= shifted(u64::from(rank)));
            }
        }
    }
}

/// Sorts by numbers that hold all values of a row and the row itself. False when that takes more than 64 bits.
fn sort_packed(columns: &[&[u64]], rows: &mut [u32]) -> bool {
    let row_bits = bits(rows.len() as u64);
    let mut used = row_bits;
    let mut packed: Vec<u64> = (0..rows.len() as u64).collect();
    for column in columns.iter().rev() {
        let (numbers, bits) = PackedColumn::new(column);
        if used + bits > u64::BITS {
            return false;
        }
        numbers.add_to(&mut packed, used);
        used += bits;
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
            table in prop::collection::vec([value(), value(), value()], 1..120),
            few_bits: bool,
            count in 0usize..4,
            keys in 0usize..4,
        ) {
            let column = |c: usize| table.iter().map(|r| if few_bits { r[c] & 3 | 1 << 63 } else { r[c] }).collect::<Vec<_>>();
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
