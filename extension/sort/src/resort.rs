//! Sorting the sorted keys of one order in another one.
//!
//! Many pairs of orders differ in one column only, which is the first one of the second: spog and psog, as an example.
//! Keys sorted in the first one need no comparing then. Those with one value of the column go behind those with lesser
//! values, and stay as they are among themselves: a counting sort. It pays where the column has few values, as that of
//! predicates has.

use pgquad_btree::{key_of, quad_of, Key, Order};
use rustc_hash::FxHashMap;

/// Most values of a column whose keys are counted. Their ends are places that are written to in turn.
const MAX_VALUES: usize = 1 << 12;

/// Sorts keys of order `from`, in any sequence, in order `to`.
pub(crate) fn sort(keys: &mut [Key], from: Order, to: Order) {
    if from != to {
        for key in keys.iter_mut() {
            *key = key_of(to, &quad_of(from, key));
        }
    }
    keys.sort_unstable();
}

/// The same for keys that are sorted in order `from`; they go to `out`.
pub(crate) fn resort(keys: &[Key], from: Order, to: Order, out: &mut Vec<Key>) {
    out.clear();
    match sequence(keys, from, to) {
        Some(sequence) => {
            let sorted = sequence.iter().map(|&n| &keys[n as usize]);
            out.extend(sorted.map(|key| key_of(to, &quad_of(from, key))));
        }
        None => {
            out.extend_from_slice(keys);
            sort(out, from, to);
        }
    }
}

/// The places of keys, which are sorted in order `from`, in the sequence of order `to`, where counting tells.
pub(crate) fn sequence(keys: &[Key], from: Order, to: Order) -> Option<Vec<u32>> {
    let first = to.columns()[0];
    let others = |order: Order| order.columns().into_iter().filter(move |c| *c != first);
    if !others(from).eq(others(to)) || u32::try_from(keys.len()).is_err() {
        return None;
    }
    let column = from.position(usize::from(first));
    let mut numbers: FxHashMap<u64, u32> = FxHashMap::default();
    // The values with how many keys have them.
    let mut values: Vec<(u64, u32)> = Vec::new();
    let mut number_of_key = Vec::with_capacity(keys.len());
    for key in keys {
        let value = key[column];
        let number = *numbers.entry(value).or_insert(values.len() as u32);
        if number as usize == values.len() {
            if values.len() == MAX_VALUES {
                return None;
            }
            values.push((value, 0));
        }
        values[number as usize].1 += 1;
        number_of_key.push(number);
    }
    let mut ascending: Vec<usize> = (0..values.len()).collect();
    ascending.sort_unstable_by_key(|&number| values[number].0);
    let mut next = vec![0; values.len()];
    let mut end = 0;
    for number in ascending {
        next[number] = end;
        end += values[number].1;
    }
    let mut sequence = vec![0; keys.len()];
    for (place, number) in (0..).zip(number_of_key) {
        let next = &mut next[number as usize];
        sequence[*next as usize] = place;
        *next += 1;
    }
    Some(sequence)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pgquad_btree::{DEFAULT_ORDERS, KEY_MIN};
    use proptest::prelude::*;

    proptest! {
        /// As a sort does it, whether counting tells or not.
        #[test]
        fn sorted_keys_are_sorted_in_another_order(
            quads in prop::collection::vec(any::<[i64; 4]>(), 0..300),
            few in prop::array::uniform4(any::<bool>()),
            from in prop::sample::select(DEFAULT_ORDERS.to_vec()),
            to in prop::sample::select(DEFAULT_ORDERS.to_vec()),
        ) {
            let narrow = |quad: [i64; 4]| std::array::from_fn(|c| if few[c] { quad[c] % 4 } else { quad[c] });
            let mut keys: Vec<Key> = quads.into_iter().map(|quad| key_of(from, &narrow(quad))).collect();
            keys.sort_unstable();
            let mut expected = keys.clone();
            sort(&mut expected, from, to);
            let mut out = vec![KEY_MIN];
            resort(&keys, from, to, &mut out);
            prop_assert_eq!(out, expected);
        }
    }

    #[test]
    fn columns_of_many_values_are_compared() {
        let [spog, psog] = [[0, 1, 2, 3], [1, 0, 2, 3]].map(|columns| Order::new(columns).unwrap());
        let quads = (0..2 * MAX_VALUES as i64).map(|n| [n / 2, n % 7, n, 0]);
        let mut keys: Vec<Key> = quads.map(|quad| key_of(spog, &quad)).collect();
        assert!(sequence(&keys, spog, psog).is_some());
        for (n, key) in keys.iter_mut().enumerate() {
            key[1] ^= (n as u64) << 3;
        }
        assert!(sequence(&keys, spog, psog).is_none());
        let mut expected = keys.clone();
        sort(&mut expected, spog, psog);
        let mut out = Vec::new();
        resort(&keys, spog, psog, &mut out);
        assert_eq!(out, expected);
    }
}
