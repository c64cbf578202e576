//! Index choice: from conditions on s, p, o, g to the index permutation that serves them best, and to the key ranges to
//! read in it.
//!
//! An *order* here is an index permutation such as `posg`: a tree with all quads, sorted by predicate, object, subject,
//! graph (Hexastore, RDF-3X). PostgreSQL's counterpart is `optimizer/path/indxpath.c`.

use crate::cost::{COUNTED_RANGES, FAR_PROBE_COST};
use crate::plan::condition::{Bound, Value};
use pgquad_btree::{Key, Order};
use smallvec::SmallVec;

/// What part of an order a set of conditions binds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prefix {
    /// Indexes of the conditions used, in the order's column order.
    pub used: SmallVec<[usize; 4]>,
    /// Columns bound by equality (or ANY), from the first.
    pub bound: usize,
    /// Columns bound by exact equality before the first ANY or range.
    pub exact: usize,
    /// Whether the column after the bound ones has a range condition.
    pub range: bool,
}

/// An order of a table, and what part of it conditions bind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OrderMatch {
    /// Its number in the table.
    pub order: usize,
    /// What is bound.
    pub prefix: Prefix,
}

/// Matches conditions `(column, bound)` (column 0 = s .. 3 = g) against the permutation `order`: equalities on its
/// leading columns, then range conditions on the next.
pub fn match_order(order: Order, conditions: &[(usize, Bound)]) -> Prefix {
    let mut prefix = Prefix::default();
    let mut only_exact = true;
    for column in order.columns() {
        let of_column = |wanted: Bound| {
            conditions
                .iter()
                .position(|c| c.0 == usize::from(column) && c.1 == wanted)
        };
        if let Some(i) = of_column(Bound::Eq) {
            prefix.used.push(i);
            prefix.bound += 1;
            prefix.exact += usize::from(only_exact);
        } else if let Some(i) = of_column(Bound::Any) {
            prefix.used.push(i);
            prefix.bound += 1;
            only_exact = false;
        } else {
            let ranges = conditions.iter().enumerate().filter(|(_, c)| {
                c.0 == usize::from(column) && !matches!(c.1, Bound::Eq | Bound::Any)
            });
            for (i, _) in ranges {
                prefix.used.push(i);
                prefix.range = true;
            }
            break;
        }
    }
    prefix
}

/// The order that serves conditions best, with what it binds: most exact columns, then most bound ones; the first of
/// equals. With `lists_first` the members of a list count as exactly one value.
pub(crate) fn best_order(
    orders: &[Order],
    conditions: &[(usize, Bound)],
    lists_first: bool,
) -> OrderMatch {
    let mut kinds = [Kinds::default(); 4];
    for (column, bound) in conditions {
        let kinds = &mut kinds[*column];
        match bound {
            Bound::Eq => kinds.equal = true,
            Bound::Any => kinds.any = true,
            _ => kinds.range = true,
        }
        kinds.equal |= lists_first && *bound == Bound::Any;
    }
    let best = (0..orders.len())
        .rev()
        .max_by_key(|&n| served(orders[n], &kinds));
    best.map_or_else(Default::default, |order| OrderMatch {
        order,
        prefix: match_order(orders[order], conditions),
    })
}

/// The orders that conditions leave a choice of. The first is the one that serves them best. Where that reads a range
/// without a look at a list, the other one reads a range for each of its members. Example: `s = ANY (..) AND p = 2` is
/// a range of `posg` or many of `spog`. Only the length of the list and the size of the range tell which are fewer
/// quads ([`read_cost`]).
pub fn candidate_orders(
    orders: &[Order],
    conditions: &[(usize, Bound)],
) -> SmallVec<[OrderMatch; 2]> {
    let mut candidates: SmallVec<[OrderMatch; 2]> = SmallVec::new();
    candidates.push(best_order(orders, conditions, false));
    if conditions.iter().any(|c| c.1 == Bound::Any) {
        let listed = best_order(orders, conditions, true);
        let ranked = &candidates[0].prefix.used;
        if listed.prefix.used.iter().any(|i| !ranked.contains(i)) {
            candidates.push(listed);
        }
    }
    candidates
}

/// Most ranges that lists may make in an order that could be read instead of another one: their memory (64 bytes each).
pub const MAX_LIST_RANGES: usize = 1 << 18;

/// The most ranges that [`key_ranges`] makes of these conditions, without making them.
pub fn most_ranges<'v>(values: impl Iterator<Item = &'v Value>) -> usize {
    let members = values.map(|value| match value {
        Value::List(list) => list.len(),
        Value::Ranges(within) => within.len(),
        Value::One(_) => 1,
        Value::Null => 0,
    });
    members.fold(1, usize::saturating_mul)
}

/// The cost of reading key ranges, in quads (`cost.rs`): a probe for each range, and the quads in them. `count` counts
/// the quads of a few ranges, which stand for all.
pub fn read_cost(ranges: &[(Key, Key)], count: impl FnOnce(&[(Key, Key)]) -> Vec<u64>) -> f64 {
    let counted: Vec<(Key, Key)> = some(ranges).copied().collect();
    let quads: u64 = count(&counted).iter().sum();
    let share = ranges.len() as f64 / counted.len().max(1) as f64;
    ranges.len() as f64 * FAR_PROBE_COST + quads as f64 * share
}

/// Some of many ranges, which stand for the others.
pub(crate) fn some(ranges: &[(Key, Key)]) -> impl Iterator<Item = &(Key, Key)> {
    ranges
        .iter()
        .step_by(ranges.len().div_ceil(COUNTED_RANGES).max(1))
}

/// Which kinds of conditions a column has.
#[derive(Clone, Copy, Default)]
struct Kinds {
    equal: bool,
    any: bool,
    range: bool,
}

/// [`Prefix::exact`], [`Prefix::bound`] and [`Prefix::range`] of an order.
fn served(order: Order, kinds: &[Kinds; 4]) -> (usize, usize, bool) {
    let (mut exact, mut bound) = (0, 0);
    for column in order.columns() {
        let kinds = kinds[usize::from(column)];
        if kinds.equal {
            exact += usize::from(exact == bound);
        } else if !kinds.any {
            return (exact, bound, kinds.range);
        }
        bound += 1;
    }
    (exact, bound, false)
}

/// The ascending, disjoint, inclusive key ranges of `order` that hold exactly the quads satisfying all `conditions`
/// `(column, bound, value)`, which must be those that [`match_order`] uses.
pub fn key_ranges(order: Order, conditions: &[(usize, Bound, Value)]) -> Vec<(Key, Key)> {
    let mut ranges = vec![([0u64; 4], [u64::MAX; 4])];
    for (position, &column) in order.columns().iter().enumerate() {
        for (_, bound, value) in conditions.iter().filter(|c| c.0 == usize::from(column)) {
            match value {
                Value::Null => return Vec::new(),
                Value::One(value) => {
                    ranges.retain_mut(|(low, high)| restrict(low, high, position, *bound, *value));
                }
                Value::Ranges(within) => {
                    let pushed_ranges = ranges.iter().flat_map(|range| {
                        within.iter().filter_map(move |&(first, last)| {
                            let (mut low, mut high) = *range;
                            (restrict(&mut low, &mut high, position, Bound::Ge, first)
                                && restrict(&mut low, &mut high, position, Bound::Le, last))
                            .then_some((low, high))
                        })
                    });
                    ranges = pushed_ranges.collect();
                }
                Value::List(list) => {
                    let mut list = list.clone();
                    list.sort_unstable();
                    list.dedup();
                    ranges = ranges
                        .iter()
                        .flat_map(|range| {
                            list.iter().map(move |&member| {
                                let (mut low, mut high) = *range;
                                low[position] = member;
                                high[position] = member;
                                (low, high)
                            })
                        })
                        .collect();
                }
            }
        }
    }
    ranges
}

/// Restricts one inclusive range at `position`; false if nothing is left.
fn restrict(
    low: &mut [u64; 4],
    high: &mut [u64; 4],
    position: usize,
    bound: Bound,
    value: u64,
) -> bool {
    let (l, h) = (&mut low[position], &mut high[position]);
    match bound {
        Bound::Eq | Bound::Any | Bound::Within => {
            if value < *l || value > *h {
                return false;
            }
            *l = value;
            *h = value;
        }
        Bound::Lt if value == 0 => return false,
        Bound::Gt if value == u64::MAX => return false,
        Bound::Lt => *h = (*h).min(value - 1),
        Bound::Le => *h = (*h).min(value),
        Bound::Ge => *l = (*l).max(value),
        Bound::Gt => *l = (*l).max(value + 1),
    }
    *l <= *h
}

#[cfg(test)]
mod tests {
    use super::*;
    use pgquad_btree::DEFAULT_ORDERS;
    use proptest::prelude::*;

    #[test]
    fn prefixes() {
        let both = [(0, Bound::Eq), (1, Bound::Eq)];
        let p = match_order(Order::POSG, &both);
        assert_eq!(
            (p.bound, p.exact, p.range, p.used.to_vec()),
            (1, 1, false, vec![1])
        );
        let spog = match_order(Order::SPOG, &both);
        assert_eq!((spog.bound, spog.used.to_vec()), (2, vec![0, 1]));
        let range = [
            (1, Bound::Eq),
            (2, Bound::Gt),
            (2, Bound::Le),
            (0, Bound::Eq),
        ];
        let p = match_order(Order::POSG, &range);
        assert_eq!(
            (p.bound, p.range, p.used.to_vec()),
            (1, true, vec![0, 1, 2])
        );
        let any = [(1, Bound::Any), (2, Bound::Eq)];
        let p = match_order(Order::POSG, &any);
        assert_eq!((p.bound, p.exact), (2, 0));
    }

    #[test]
    fn candidates() {
        let numbers = |conditions: &[(usize, Bound)]| -> Vec<usize> {
            let candidates = candidate_orders(&DEFAULT_ORDERS, conditions);
            candidates.iter().map(|c| c.order).collect()
        };
        // A range of a predicate, or one of each subject.
        assert_eq!(numbers(&[(0, Bound::Any), (1, Bound::Eq)]), [1, 0]);
        assert_eq!(
            numbers(&[(2, Bound::Gt), (1, Bound::Eq), (0, Bound::Any)]),
            [1, 0]
        );
        // One order does both.
        assert_eq!(numbers(&[(0, Bound::Eq), (1, Bound::Any)]), [0]);
        assert_eq!(numbers(&[(2, Bound::Any), (1, Bound::Eq)]), [1]);
        assert_eq!(
            numbers(&[(0, Bound::Any), (1, Bound::Eq), (2, Bound::Eq)]),
            [1]
        );
        assert_eq!(numbers(&[(0, Bound::Any)]), [0]);
        assert_eq!(numbers(&[(0, Bound::Eq), (1, Bound::Eq)]), [0]);
    }

    #[test]
    fn cost_of_ranges() {
        let ranges: Vec<(Key, Key)> = (0..100).map(|n| ([n; 4], [n; 4])).collect();
        let cost = read_cost(&ranges, |counted| {
            assert!(counted.len() <= COUNTED_RANGES);
            vec![3; counted.len()]
        });
        assert!((cost - 100.0 * (FAR_PROBE_COST + 3.0)).abs() < 1e-6);
    }

    fn satisfies(quad: &[u64; 4], conditions: &[(usize, Bound, Value)]) -> bool {
        conditions.iter().all(|(column, bound, value)| {
            let x = quad[*column];
            match (bound, value) {
                (_, Value::Null) => false,
                (Bound::Any, Value::List(list)) => list.contains(&x),
                (Bound::Lt, Value::One(v)) => x < *v,
                (Bound::Le, Value::One(v)) => x <= *v,
                (Bound::Eq, Value::One(v)) => x == *v,
                (Bound::Ge, Value::One(v)) => x >= *v,
                (Bound::Gt, Value::One(v)) => x > *v,
                _ => false,
            }
        })
    }

    fn small() -> impl Strategy<Value = u64> {
        prop_oneof![0u64..4, Just(u64::MAX), Just(u64::MAX - 1)]
    }

    fn condition() -> impl Strategy<Value = (usize, Bound, Value)> {
        let one = (
            0usize..4,
            1i32..6,
            prop_oneof![9 => small().prop_map(Value::One), 1 => Just(Value::Null)],
        )
            .prop_map(|(c, b, v)| (c, Bound::from_number(b).unwrap(), v));
        let any = (0usize..4, prop::collection::vec(small(), 0..4))
            .prop_map(|(c, list)| (c, Bound::Any, Value::List(list)));
        prop_oneof![3 => one, 1 => any]
    }

    proptest! {
        /// The ranges hold a quad exactly when the conditions used accept it, and they are ascending and disjoint.
        #[test]
        fn ranges_are_exact(
            columns in Just([0u8, 1, 2, 3]).prop_shuffle(),
            conditions in prop::collection::vec(condition(), 0..6),
            quads in prop::collection::vec([small(), small(), small(), small()], 1..60),
        ) {
            let bounds: Vec<_> = conditions.iter().map(|c| (c.0, c.1)).collect();
            let order = Order::new(columns).unwrap();
            let prefix = match_order(order, &bounds);
            let used: Vec<_> = prefix.used.iter().map(|&i| conditions[i].clone()).collect();
            let ranges = key_ranges(order, &used);
            prop_assert!(ranges.windows(2).all(|w| w[0].1 < w[1].0));
            for quad in quads {
                let key: [u64; 4] = std::array::from_fn(|i| quad[usize::from(columns[i])]);
                let inside = ranges.iter().any(|(low, high)| *low <= key && key <= *high);
                prop_assert_eq!(inside, satisfies(&quad, &used));
            }
        }
    }
}
