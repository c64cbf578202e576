//! The first rows of random ones, against all of them sorted.

#[path = "common/extremes.rs"]
#[allow(dead_code)]
mod extremes;

use extremes::term_order;
use pgquad_exec::{Bindings, Column, FirstRows, LeadingKey, Slot, SortKey};
use proptest::prelude::*;

type Row = Vec<Option<u64>>;

/// What a row is sorted by: the values of its keys, in an order that tuples have.
fn rank(row: &Row, keys: &[SortKey], terms: &[u64]) -> Vec<(u8, i64)> {
    let of_key = |key: &SortKey| match row[key.place] {
        None => (if key.nulls_first { 0 } else { 2 }, 0),
        Some(value) => {
            let known = terms.iter().position(|&term| term == value).unwrap();
            let rank = if key.by_term {
                known as i64
            } else {
                value as i64
            };
            (1, if key.descending { -rank } else { rank })
        }
    };
    keys.iter().map(of_key).collect()
}

proptest! {
    #[test]
    fn are_those_of_a_sort(
        batches in prop::collection::vec(
            (0usize..400, prop::collection::vec(any::<bool>(), 3), any::<u64>()), 0..8),
        keys in prop::collection::vec((0usize..3, any::<bool>(), any::<bool>(), any::<bool>()), 1..3),
        most in prop::sample::select(vec![1usize, 2, 7, 100, 5000]),
    ) {
        let keys: Vec<SortKey> = keys.into_iter().map(|(place, by_term, descending, nulls_first)| SortKey {
            place, by_term, descending, nulls_first,
        }).collect();
        let mut terms: Vec<u64> = (0..50).collect();
        terms.sort_by(|&a, &b| term_order(a, b));
        let mut first = FirstRows::new(keys.clone(), most, term_order);
        let mut all: Vec<Row> = Vec::new();
        for (len, bound, seed) in batches {
            let value = |row: usize, column: usize| {
                (seed.wrapping_add(row as u64 * 3 + column as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) % 50
            };
            let column = |column: usize| match bound[column] {
                true => Column::Ids((0..len).map(|row| value(row, column)).collect()),
                false => Column::Null,
            };
            // The answer's variables are the second to the fourth.
            let columns = vec![Column::Absent, column(0), column(1), column(2)];
            first.add(&Bindings { len, columns }, &[1, 2, 3].map(Slot::new));
            all.extend((0..len).map(|row| -> Row {
                (0..3).map(|column| bound[column].then(|| value(row, column))).collect()
            }));
        }
        let mut found: Vec<Row> = Vec::new();
        for (len, columns) in first.finish() {
            prop_assert!(columns.iter().flatten().all(|column| column.len() == len));
            found.extend((0..len).map(|row| -> Row {
                columns.iter().map(|column| column.as_ref().map(|ids| ids[row])).collect()
            }));
        }
        prop_assert_eq!(found.len(), all.len().min(most));
        let ranks = |rows: &[Row]| {
            let mut ranks: Vec<_> = rows.iter().map(|row| rank(row, &keys, &terms)).collect();
            ranks.sort();
            ranks
        };
        prop_assert_eq!(ranks(&found), ranks(&all)[..found.len()].to_vec());
        for row in found {
            let at = all.iter().position(|known| *known == row);
            prop_assert!(at.is_some(), "{:?} is none of the rows", row);
            at.map(|at| all.swap_remove(at));
        }
    }

    #[test]
    fn the_leading_key_keeps_what_can_be_among_them(
        batches in prop::collection::vec(prop::collection::vec(prop::option::of(-9i64..9), 0..300), 0..6),
        most in prop::sample::select(vec![1usize, 2, 10, 200, 3000]),
        (descending, nulls_first) in any::<(bool, bool)>(),
    ) {
        let ranked = |value: Option<i64>| match value {
            None => (if nulls_first { 0 } else { 2 }, 0),
            Some(value) => (1, if descending { -value } else { value }),
        };
        let mut key = LeadingKey::new(most, descending, nulls_first);
        let (mut seen, mut kept) = (Vec::new(), Vec::new());
        for batch in &batches {
            seen.extend(batch.iter().map(|&value| ranked(value)));
            seen.sort_unstable();
            // A row goes when so many come before it for sure.
            let last = seen.get(most - 1);
            let expected = |&value: &Option<i64>| last.is_none_or(|last| ranked(value) <= *last);
            let found = key.candidates(batch).unwrap_or_else(|| vec![true; batch.len()]);
            prop_assert_eq!(&found, &batch.iter().map(expected).collect::<Vec<_>>());
            let candidates = batch.iter().zip(&found).filter(|(_, found)| **found);
            kept.extend(candidates.map(|(&value, _)| ranked(value)));
        }
        kept.sort_unstable();
        let first = most.min(seen.len());
        prop_assert_eq!(&kept[..first], &seen[..first]);
    }

    /// Rows that go first, and the others afterwards as far as they can be among the first, are all that is needed.
    #[test]
    fn what_goes_first_saves_most_of_the_others(
        values in prop::collection::vec(prop::option::of(-9i64..9), 0..300),
        most in prop::sample::select(vec![1usize, 2, 10, 200]),
        count in 0usize..310,
        (descending, nulls_first) in any::<(bool, bool)>(),
    ) {
        let ranked = |value: &Option<i64>| match *value {
            None => (if nulls_first { 0 } else { 2 }, 0),
            Some(value) => (1, if descending { -value } else { value }),
        };
        let mut key = LeadingKey::new(most, descending, nulls_first);
        let first = key.first_of(&values, count).unwrap_or_else(|| vec![true; values.len()]);
        let divided = |is_first: bool| -> Vec<Option<i64>> {
            let rows = values.iter().zip(&first).filter(|row| *row.1 == is_first);
            rows.map(|row| *row.0).collect()
        };
        let (mut rows, others) = (divided(true), divided(false));
        prop_assert!(rows.len() >= count.min(values.len()));
        prop_assert!(rows.iter().all(|row| others.iter().all(|other| ranked(row) < ranked(other))));
        key.candidates(&rows);
        let kept = key.still_candidates(&others).unwrap_or_else(|| vec![true; others.len()]);
        if rows.len() >= most {
            prop_assert!(!kept.contains(&true));
        }
        rows.extend(others.iter().zip(kept).filter(|other| other.1).map(|other| *other.0));
        let sorted = |rows: &[Option<i64>]| {
            let mut ranks: Vec<_> = rows.iter().map(ranked).collect();
            ranks.sort_unstable();
            ranks.truncate(most);
            ranks
        };
        prop_assert_eq!(sorted(&rows), sorted(&values));
    }
}
