//! Keys of a leaf that are equal in some columns, taken together.

use crate::packed::Run;

/// Calls `each` for keys `lo..hi` of a run: for those that follow each other and are equal in the columns of `mask`
/// (bit `i` = column `i`) once, with their number and the values of these columns.
pub(crate) fn for_each_group(
    run: &Run<'_, 4>,
    (lo, hi): (usize, usize),
    mask: u8,
    scratch: &mut [Vec<u64>; 4],
    mut each: impl FnMut(u64, &dyn Fn(usize) -> u64),
) {
    let mut constants = [Some(0); 4];
    for (c, column) in scratch.iter_mut().enumerate() {
        column.clear();
        if mask >> c & 1 != 0 {
            constants[c] = run.constant(c);
            if constants[c].is_none() {
                run.unpack(c, lo, hi, column);
            }
        }
    }
    let value = |c: usize, i: usize| constants[c].unwrap_or_else(|| scratch[c][i]);
    // Those that vary come first; the others are empty.
    let mut varying: [&[u64]; 4] = std::array::from_fn(|c| scratch[c].as_slice());
    varying.sort_by_key(|column| column.is_empty());
    let count = varying.iter().filter(|column| !column.is_empty()).count();
    let (n, mut start) = (hi - lo, 0);
    if count == 0 {
        each(n as u64, &|c| value(c, 0));
        return;
    }
    for i in 1..=n {
        if i == n
            || varying[..count]
                .iter()
                .any(|column| column[i] != column[start])
        {
            each((i - start) as u64, &|c| value(c, start));
            start = i;
        }
    }
}
