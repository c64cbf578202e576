//! The order and the key range that fit the bound columns of a pattern best.

use pgquad_btree::{prefix_range, Key, Order, SIGN};

/// The order that has the most columns of `key` (NULL = any) as a prefix, the first of the best ones, and the range of
/// them.
pub fn range_for(orders: &[Order], key: [Option<i64>; 4]) -> (usize, Key, Key) {
    let prefix = |order: usize| -> Vec<u64> {
        let columns = orders[order].columns().into_iter();
        let values = columns.map_while(|c| key[usize::from(c)]);
        values.map(|v| v as u64 ^ SIGN).collect()
    };
    let best = (0..orders.len()).rev().max_by_key(|&n| prefix(n).len());
    let order = best.unwrap_or(0);
    let (low, high) = prefix_range(&prefix(order));
    (order, low, high)
}
