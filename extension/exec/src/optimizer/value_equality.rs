//! Equality of values as a key.
//!
//! `?a = ?b` compares values: numbers of different types may be equal. IRIs, blank nodes and strings are equal to
//! nothing but themselves, so a pattern can be probed by such a condition when it has no other terms in that column.
//! Otherwise rows are told apart by their own values. Rows whose value equals only itself are joined by the id, the
//! others by a key of the value (`value_hash_join.rs`).

use crate::access::access_path::AccessPath;
use crate::bindings::Bindings;
use crate::cost::MAX_SINGLE_VALUES;
use crate::plan::condition::{Bound, Value};
use crate::plan::layout::{bits, ByValue, Scope};
use crate::plan::query::Query;
use crate::plan::{Comparison, Param, ParamRange, Pattern, SameValue, SlotSet};
use crate::source::{Prefetch, Source, ValueKey, Wanted};
use pgquad_btree::Batch;
use pgquad_cluster::Reading;
use std::rc::Rc;

/// Where a column has to equal a variable in value, lets the pattern use the variable as a key, if its quads allow
/// that. Returns whether something has been prefetched: what is looked at of all patterns.
pub(crate) fn key_by_value<S: Source>(query: &mut Query, source: &mut S) -> bool {
    let is_prefetched = source.is_remote() && prefetch_looks(query, source);
    for group in 0..query.layout.own {
        for at in 0..query.layout.groups[group].patterns.len() {
            let pattern = &query.layout.groups[group].patterns[at].pattern;
            if pattern.values.is_empty() {
                continue;
            }
            let (mut linked, mut undecided) = (pattern.clone(), Vec::new());
            for same in pattern.values.clone() {
                let link = same.link();
                linked.links.retain(|l| *l != link);
                if any_between(query, source, pattern, same) {
                    undecided.push(same);
                } else {
                    linked.links.push(link);
                }
            }
            let info = &mut query.layout.groups[group].patterns[at];
            info.needs = linked.needs();
            info.pattern = linked;
            info.undecided = undecided;
        }
    }
    is_prefetched
}

/// Asks for what [`any_between`] will look at, where that is done more than once.
fn prefetch_looks<S: Source>(query: &Query, source: &mut S) -> bool {
    let groups = &query.layout.groups[..query.layout.own];
    let patterns = groups.iter().flat_map(|group| &group.patterns);
    let looks = patterns.flat_map(|info| {
        let values = info.pattern.values.iter();
        values.map(|same| look(query, source, &info.pattern, *same))
    });
    let looks: Vec<Prefetch> = looks.collect();
    looks.len() > 1 && source.prefetch(&looks)
}

/// The read that shows whether the pattern may have a quad whose column has a value that other ids have too.
fn look<S: Source>(query: &Query, source: &S, pattern: &Pattern, same: SameValue) -> Prefetch {
    let one_row = Bindings::one_row(query.slots);
    let mut between = pattern.clone();
    between.links.clear();
    let ParamRange { least, greatest } = same.between;
    between
        .conditions
        .push(Comparison::new(same.column, Bound::Ge, least));
    between
        .conditions
        .push(Comparison::new(same.column, Bound::Le, greatest));
    let none = SlotSet::default();
    let access = AccessPath::new(&between, source.orders(between.table), &one_row, &none);
    let mut ranges = Vec::new();
    access.ranges(&one_row, 0, &query.params, &mut ranges);
    Prefetch {
        wanted: Wanted {
            table: between.table,
            order: access.order,
            ranges,
        },
        mask: access.mask,
        enough: 1,
    }
}

/// Whether the pattern may have a quad whose column has a value that other ids have too.
fn any_between<S: Source>(
    query: &Query,
    source: &mut S,
    pattern: &Pattern,
    same: SameValue,
) -> bool {
    let look = look(query, source, pattern, same);
    let (mut batch, mut spans) = (Batch::new(), Vec::new());
    let mut reading = Reading::new(look.mask);
    loop {
        let more = source.read(
            look.wanted.table,
            look.wanted.order,
            &mut reading,
            &look.wanted.ranges,
            look.enough,
            &mut batch,
            &mut spans,
        );
        if !batch.is_empty() || !more {
            return !batch.is_empty();
        }
    }
}

/// The ids whose value other ids may have too.
pub(crate) fn between(params: &[Value], same: SameValue) -> Value {
    let id = |param: Param| match params[param.index()] {
        Value::One(id) => id,
        _ => 0,
    };
    let ParamRange { least, greatest } = same.between;
    Value::Ranges(Rc::from([(id(least), id(greatest))]))
}

/// Tells rows apart by how a pattern can be joined with them, where their value is all that connects them. Returns the
/// rows of each kind with the variant of the group in which they go on. Rows that nothing can equal are left out.
pub(crate) fn parts_by_value<S: Source>(
    query: &mut Query,
    source: &mut S,
    rows: &Bindings,
    scope: &Scope,
) -> Option<Vec<(Bindings, usize)>> {
    let group = &query.layout.groups[scope.group];
    if !group.is_undecided() {
        return None;
    }
    let known = rows.known();
    let (i, same) = bits(scope.patterns).find_map(|i| {
        let info = &group.patterns[i];
        let mut undecided = info.undecided.iter();
        let same = undecided.find(|same| known.has(same.slot));
        same.filter(|_| !info.needs.meets(&known))
            .map(|same| (i, *same))
    })?;
    // What is unbound equals nothing.
    let Some(ids) = rows.ids(same.slot) else {
        return Some(Vec::new());
    };
    let (mut itself, mut keyed, mut any) = (Vec::new(), Vec::new(), Vec::new());
    for (row, key) in source.value_keys(ids).into_iter().enumerate() {
        match key {
            ValueKey::Never => {}
            ValueKey::Itself => itself.push(row as u32),
            ValueKey::Of(_) => keyed.push(row as u32),
            ValueKey::Any => any.push(row as u32),
        }
    }
    let mut parts = vec![(itself, ByValue::Id), (any, ByValue::Not)];
    let values = keyed.iter().map(|&row| ids[row as usize]);
    parts.extend(
        one_by_one(values, &keyed)
            .into_iter()
            .map(|rows| (rows, ByValue::Key)),
    );
    let mut found = Vec::new();
    for (chosen, how) in parts.into_iter().filter(|part| !part.0.is_empty()) {
        let group = query.layout.variant(scope.group, i, same, how);
        found.push((rows.gather(&chosen, &SlotSet::ALL), group));
    }
    Some(found)
}

/// Rows by their values, where these are few; otherwise all rows together.
fn one_by_one(values: impl Iterator<Item = u64>, rows: &[u32]) -> Vec<Vec<u32>> {
    let mut parts: Vec<(u64, Vec<u32>)> = Vec::new();
    for (value, &row) in values.zip(rows) {
        match parts.iter().position(|part| part.0 == value) {
            Some(part) => parts[part].1.push(row),
            None if parts.len() == MAX_SINGLE_VALUES => return vec![rows.to_vec()],
            None => parts.push((value, vec![row])),
        }
    }
    parts.into_iter().map(|part| part.1).collect()
}

#[cfg(test)]
mod tests {
    use super::one_by_one;

    #[test]
    fn few_values_go_one_by_one() {
        let parts = one_by_one([7, 8, 7].into_iter(), &[0, 4, 5]);
        assert_eq!(parts, [vec![0, 5], vec![4]]);
        assert_eq!(one_by_one(0..9, &[3; 9]), [vec![3; 9]]);
        assert!(one_by_one(std::iter::empty(), &[]).is_empty());
    }
}
