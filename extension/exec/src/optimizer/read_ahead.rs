//! Read-ahead: the ranges that the remaining patterns will ask for, where a small batch tells them.
//!
//! Where quads are on other nodes each step of a few rows costs a message, whatever it reads. Some patterns are looked
//! up by what is known already: constants or variables of the batch. Their quads can come with the first of these
//! messages. Once they are there, they tell what other patterns are looked up by. Example: of a product its offers and
//! its reviews have been read ahead. While the offers are joined, the names of the reviewers are read, too.

use crate::access::access_path::{cannot_match, AccessPath};
use crate::bindings::{Bindings, Column};
use crate::cost::{READ_AHEAD_RANGES, READ_AHEAD_ROWS};
use crate::plan::layout::{bits, PatternInfo, Scope};
use crate::plan::query::Query;
use crate::plan::{Kind, Slot, SlotSet, TableNumber};
use crate::source::{Source, Wanted};
use pgquad_btree::Key;

/// Bit of the subject in [`AccessPath::constant`].
const SUBJECT: u8 = 1;

/// What is worth reading with the next message, for rows that have `scopes` left to do. `taken`: the patterns and the
/// groups inside the innermost of them that the next step takes.
pub(crate) fn wanted<S: Source>(
    query: &Query,
    source: &S,
    rows: &Bindings,
    scopes: &[Scope],
    (patterns, children): (u64, u64),
) -> Vec<Wanted> {
    let mut wanted = Vec::new();
    if rows.len > READ_AHEAD_ROWS {
        return wanted;
    }
    let (mut room, mut left) = (READ_AHEAD_RANGES, Vec::new());
    for (depth, scope) in scopes.iter().enumerate().rev() {
        let group = &query.layout.groups[scope.group];
        let is_top = depth + 1 == scopes.len();
        let (mut patterns_left, mut children_left) = (scope.patterns, scope.children);
        if is_top {
            patterns_left &= !patterns;
            children_left &= !children;
        }
        for i in bits(patterns_left) {
            let info = &group.patterns[i];
            // One that a constant object selects will be looked up by its subject, once that is known.
            let is_lasting =
                |access: &AccessPath| access.bound != 0 || access.constant & SUBJECT != 0;
            wanted.extend(ranges(query, source, rows, info, &mut room, is_lasting));
            left.push(info);
        }
        for c in bits(children_left) {
            let child = &group.children[c];
            if child.kind != Kind::Left {
                continue;
            }
            for info in &query.layout.groups[child.group].patterns {
                let is_lasting = |access: &AccessPath| {
                    access.bound != 0
                        || access.constant & SUBJECT != 0
                        || !info.needs.meets(&child.needs)
                };
                wanted.extend(ranges(query, source, rows, info, &mut room, is_lasting));
            }
            add_optional(query, child.group, &mut left);
        }
    }
    chained(query, source, rows, &left, &mut room, &mut wanted);
    wanted
}

/// The patterns of an optional group and of those inside it.
fn add_optional<'a>(query: &'a Query, group: usize, left: &mut Vec<&'a PatternInfo>) {
    let group = &query.layout.groups[group];
    left.extend(&group.patterns);
    let optional = group.children.iter().filter(|c| c.kind == Kind::Left);
    optional.for_each(|child| add_optional(query, child.group, left));
}

/// The ranges of patterns that are looked up by variables of quads which are known already, though not in the rows yet.
fn chained<S: Source>(
    query: &Query,
    source: &S,
    rows: &Bindings,
    left: &[&PatternInfo],
    room: &mut usize,
    wanted: &mut Vec<Wanted>,
) {
    let is_open = |slot: Slot| rows.columns[slot.index()] == Column::Absent;
    let mut found: Vec<(Slot, Vec<u64>)> = Vec::new();
    let add = |found: &mut Vec<(Slot, Vec<u64>)>, more: Vec<(Slot, Vec<u64>)>| {
        for (slot, values) in more {
            if is_open(slot) && found.iter().all(|(known, _)| *known != slot) {
                found.push((slot, values));
            }
        }
    };
    for info in left {
        add(&mut found, known_values(query, source, rows, info));
    }
    let mut next = 0;
    while let Some((slot, values)) = found.get(next) {
        let (slot, mut keys) = (*slot, Bindings::one_row(query.slots));
        keys.len = values.len();
        keys.columns[slot.index()] = Column::Ids(values.clone());
        next += 1;
        for info in left.iter().filter(|info| info.needs.has(slot)) {
            let is_keyed = |access: &AccessPath| access.bound != 0;
            wanted.extend(ranges(query, source, &keys, info, room, is_keyed));
            add(&mut found, known_values(query, source, &keys, info));
        }
    }
}

/// The values of a pattern's variables in its quads for all of these rows, where these are few and known.
fn known_values<S: Source>(
    query: &Query,
    source: &S,
    rows: &Bindings,
    info: &PatternInfo,
) -> Vec<(Slot, Vec<u64>)> {
    let (mut room, mut quads) = (READ_AHEAD_RANGES, Vec::new());
    let of_pattern = ranges(query, source, rows, info, &mut room, |_| true);
    let Some(Wanted {
        table,
        order,
        ranges,
    }) = of_pattern
    else {
        return Vec::new();
    };
    for range in &ranges {
        let most = READ_AHEAD_RANGES - quads.len();
        if !source.known_keys(table, order, range, most, &mut quads) {
            return Vec::new();
        }
    }
    let permutation = source.orders(table)[order];
    let cells = info.pattern.cells.iter().enumerate();
    let open = cells.filter_map(|(column, cell)| {
        let slot = (*cell).filter(|slot| rows.columns[slot.index()] == Column::Absent)?;
        let place = permutation.position(column);
        let mut values: Vec<u64> = quads.iter().map(|quad| quad[place]).collect();
        values.sort_unstable();
        values.dedup();
        (!values.is_empty()).then_some((slot, values))
    });
    open.collect()
}

/// Whether the quads of a pattern are read without a message, for all rows.
pub(crate) fn is_known<S: Source>(
    query: &Query,
    source: &S,
    rows: &Bindings,
    info: &PatternInfo,
) -> bool {
    let Some((table, access)) = prefixes(query, source, rows, info) else {
        return false;
    };
    let count = if access.bound == 0 { 1 } else { rows.len };
    let mut of_row: Vec<(Key, Key)> = Vec::new();
    // Mostly the first one shows that a message is needed.
    count <= READ_AHEAD_RANGES
        && (0..count).all(|row| {
            of_row.clear();
            access.ranges(rows, row, &query.params, &mut of_row);
            let mut ranges = of_row.iter();
            ranges.all(|range| source.is_known(table, access.order, range))
        })
}

/// How a pattern is read, where two columns or more have one value in each range; also its table.
fn prefixes<S: Source>(
    query: &Query,
    source: &S,
    rows: &Bindings,
    info: &PatternInfo,
) -> Option<(TableNumber, AccessPath)> {
    let pattern = &info.pattern;
    if info.keyed.is_some() || cannot_match(pattern, rows, &query.params) {
        return None;
    }
    let orders = source.orders(pattern.table);
    let access = AccessPath::new(pattern, orders, rows, &SlotSet::default());
    (access.is_exact() && access.conditions() >= 2).then_some((pattern.table, access))
}

/// The ranges of a pattern for all rows, where two columns or more have one value in each of them.
fn ranges<S: Source>(
    query: &Query,
    source: &S,
    rows: &Bindings,
    info: &PatternInfo,
    room: &mut usize,
    is_lasting: impl Fn(&AccessPath) -> bool,
) -> Option<Wanted> {
    let (table, access) = prefixes(query, source, rows, info)?;
    let count = if access.bound == 0 { 1 } else { rows.len };
    if count > *room || !is_lasting(&access) {
        return None;
    }
    let mut ranges: Vec<(Key, Key)> = Vec::with_capacity(count);
    (0..count).for_each(|row| access.ranges(rows, row, &query.params, &mut ranges));
    ranges.sort_unstable();
    ranges.dedup();
    *room -= ranges.len();
    Some(Wanted {
        table,
        order: access.order,
        ranges,
    })
}
