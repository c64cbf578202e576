//! Range pushdown: filters restrict a variable that is not bound yet to key ranges, so that the index reads only those.
//!
//! Example: `?price < 100` leaves the ids of the inlined numbers below 100. The filters are tested all the same: the
//! ranges only say where to look.

use crate::access::access_path::{AccessPath, PushedRange, PushedRanges};
use crate::bindings::{Bindings, Column};
use crate::cost::MAX_PUSHED_RANGES;
use crate::plan::condition::Value;
use crate::plan::layout::{bits, Layout, Scope};
use crate::plan::{ColumnNumber, Filter, Slot, Test};
use crate::source::Source;
use pgquad_term::intersection;
use std::rc::Rc;

/// About how many quads an access reads in the ranges that filters leave to its pattern. The ranges are few and hold
/// different numbers of quads, so all are counted.
pub(crate) fn count_in_ranges<S: Source>(
    source: &mut S,
    rows: &Bindings,
    access: &AccessPath,
    params: &[Value],
) -> f64 {
    let mut ranges = Vec::new();
    access.ranges(rows, 0, params, &mut ranges);
    let counts = source.counts(access.table, access.order, &ranges);
    counts.iter().sum::<u64>() as f64
}

/// What the filters of the scope leave to pattern `i` of its group, for all of these rows alike.
pub(crate) fn pushed_ranges<S: Source>(
    layout: &Layout,
    source: &mut S,
    i: usize,
    rows: &Bindings,
    scope: &Scope,
) -> PushedRanges {
    let group = &layout.groups[scope.group];
    let mut pushed_ranges = PushedRanges::new();
    for (column, cell) in group.patterns[i].pattern.cells.iter().enumerate() {
        let Some(slot) = cell.filter(|&s| rows.columns[s.index()] == Column::Absent) else {
            continue;
        };
        let mut left: Option<Vec<(u64, u64)>> = None;
        for f in bits(scope.filters) {
            let (Filter { test, needs }, _) = &group.filters[f];
            let (Test::Expr(expr), Some(at)) = (test, needs.iter().position(|&n| n == slot)) else {
                continue;
            };
            let Some(row) = same_for_all(rows, needs, at) else {
                continue;
            };
            if let Some(ranges) = source.pushdown_ranges(*expr, needs, at, &row) {
                left = Some(match left {
                    Some(left) => intersection(&left, &ranges),
                    None => ranges,
                });
            }
        }
        if let Some(ranges) = left.filter(|ranges| ranges.len() <= MAX_PUSHED_RANGES) {
            pushed_ranges.push(PushedRange {
                column: ColumnNumber::from_index(column),
                within: Value::Ranges(Rc::from(ranges)),
            });
        }
    }
    pushed_ranges
}

/// The values of `needs` in all rows, variable number `unknown` aside; `None` where rows differ, or where one is not
/// known.
fn same_for_all(rows: &Bindings, needs: &[Slot], unknown: usize) -> Option<Vec<Option<u64>>> {
    let values = needs.iter().enumerate().map(|(n, &need)| {
        if n == unknown {
            return Some(None);
        }
        match &rows.columns[need.index()] {
            Column::Absent => None,
            Column::Null => Some(None),
            Column::Ids(ids) => {
                let first = *ids.first()?;
                ids.iter().all(|&id| id == first).then_some(Some(first))
            }
        }
    });
    values.collect()
}
