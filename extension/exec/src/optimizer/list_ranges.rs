//! Lists of values among the conditions of a pattern: one range of a constant, tested against the list, or a range for
//! each member.
//!
//! `?s IN (..)` and `?s a :Person`: a handful of subjects are looked up one by one, a hundred thousand are not. The
//! lists are known when a run begins, and so is what the constants select.

use crate::access::index_choice::{
    candidate_orders, key_ranges, most_ranges, read_cost, MAX_LIST_RANGES,
};
use crate::plan::condition::{Bound, Value};
use crate::plan::query::Query;
use crate::plan::Pattern;
use crate::source::Source;

/// Decides [`Pattern::lists_first`] of all patterns, for the parameters of this run.
pub(crate) fn choose_list_ranges<S: Source>(query: &mut Query, source: &mut S) {
    let Query { layout, params, .. } = query;
    let own = layout.own;
    for info in layout.groups[..own]
        .iter_mut()
        .flat_map(|g| &mut g.patterns)
    {
        let pattern = &mut info.pattern;
        pattern.lists_first = is_cheaper_by_lists(pattern, params, source);
    }
}

/// Whether a range for each member of a list costs less than the range that the other conditions leave.
fn is_cheaper_by_lists<S: Source>(pattern: &Pattern, params: &[Value], source: &mut S) -> bool {
    if !pattern.conditions.iter().any(|c| c.bound == Bound::Any) {
        return false;
    }
    let conditions = pattern.conditions.iter();
    let bounds: Vec<_> = conditions.map(|c| (c.column.index(), c.bound)).collect();
    let candidates = candidate_orders(source.orders(pattern.table), &bounds);
    let [_, listed] = &candidates[..] else {
        return false;
    };
    let value = |&i: &usize| &params[pattern.conditions[i].param.index()];
    if most_ranges(listed.prefix.used.iter().map(value)) > MAX_LIST_RANGES {
        return false;
    }
    let mut costs = candidates.iter().map(|candidate| {
        let order = source.orders(pattern.table)[candidate.order];
        let used = candidate.prefix.used.iter().map(|&i| {
            let c = &pattern.conditions[i];
            let value = params[c.param.index()].clone();
            (c.column.index(), c.bound, value)
        });
        let ranges = key_ranges(order, &used.collect::<Vec<_>>());
        read_cost(&ranges, |some| {
            source.counts(pattern.table, candidate.order, some)
        })
    });
    match (costs.next(), costs.next()) {
        (Some(ranked), Some(listed)) => listed < ranked,
        _ => false,
    }
}
