//! Sampling: how many quads an access path finds, from exact counts for some of the rows of a batch.

use crate::access::access_path::AccessPath;
use crate::access::index_choice::some;
use crate::bindings::Bindings;
use crate::cost::NEAR_SAMPLE_ROWS;
use crate::plan::condition::Value;
use crate::source::Source;
use pgquad_btree::Key;

/// About how many quads a pattern has per row of a batch, from exact counts for some of the rows.
pub(crate) fn sample<S: Source>(
    source: &mut S,
    access: &AccessPath,
    rows: &Bindings,
    params: &[Value],
    most: usize,
) -> f64 {
    let (ranges, multiplicities) = sampled(source, access, rows, params, most);
    let counts = source.counts(access.table, access.order, &ranges);
    let weighted = counts
        .iter()
        .zip(multiplicities)
        .map(|(&n, weight)| n as f64 * weight);
    weighted.sum::<f64>() / most.clamp(1, rows.len.max(1)) as f64
}

/// The ranges that are counted for `most` of the rows, with the weight of each. Each row stands for a stretch of the
/// batch. One whose quads are on this node is taken where the stretch has one: shards are chosen by a hash, so these
/// rows are like the others, and counting them takes no message.
pub(crate) fn sampled<S: Source>(
    source: &S,
    access: &AccessPath,
    rows: &Bindings,
    params: &[Value],
    most: usize,
) -> (Vec<(Key, Key)>, Vec<f64>) {
    let samples = most.clamp(1, rows.len.max(1));
    let is_here = |range: &(Key, Key)| source.is_counted_here(access.table, access.order, range);
    let (mut all, mut ranges, mut multiplicities) = (Vec::new(), Vec::new(), Vec::new());
    for i in 0..samples {
        let stretch = i * rows.len / samples..(i + 1) * rows.len / samples;
        let first = stretch.start;
        let near = stretch.take(NEAR_SAMPLE_ROWS).find(|&row| {
            ranges.clear();
            access.ranges(rows, row, params, &mut ranges);
            ranges.iter().all(is_here)
        });
        if near.is_none() {
            ranges.clear();
            access.ranges(rows, first, params, &mut ranges);
        }
        let counted = some(&ranges).inspect(|range| all.push(**range)).count();
        multiplicities.resize(all.len(), ranges.len() as f64 / counted.max(1) as f64);
    }
    (all, multiplicities)
}

/// About how many quads ranges hold; counts some of many ranges only.
pub(crate) fn count<S: Source>(source: &mut S, access: &AccessPath, ranges: &[(Key, Key)]) -> f64 {
    let counted: Vec<(Key, Key)> = some(ranges).copied().collect();
    let sum: u64 = source
        .counts(access.table, access.order, &counted)
        .iter()
        .sum();
    sum as f64 * ranges.len() as f64 / counted.len().max(1) as f64
}
