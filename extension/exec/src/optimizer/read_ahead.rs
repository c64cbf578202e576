//! Read-ahead: the ranges that the remaining patterns will ask for, where a small batch tells them.
//!
//! Where quads are on other nodes each step of a few rows costs a message, whatever it reads. Some patterns are looked
//! up by what is known already: constants or variables of the batch. Their quads can come with the first of these
//! messages.

use crate::access::access_path::{cannot_match, AccessPath};
use crate::bindings::Bindings;
use crate::cost::{READ_AHEAD_RANGES, READ_AHEAD_ROWS};
use crate::optimizer::join_order::Next;
use crate::optimizer::star_planning::MemberKind;
use crate::plan::layout::{bits, PatternInfo, Scope};
use crate::plan::query::Query;
use crate::plan::{Kind, SlotSet};
use crate::source::{Source, Wanted};
use pgquad_btree::Key;

/// Bit of the subject in [`AccessPath::constant`].
const SUBJECT: u8 = 1;

/// What is worth reading with the quads of `next`, for rows that have `scopes` left to do.
pub(crate) fn wanted<S: Source>(
    query: &Query,
    source: &S,
    rows: &Bindings,
    scopes: &[Scope],
    next: &Next,
) -> Vec<Wanted> {
    let mut wanted = Vec::new();
    if rows.len > READ_AHEAD_ROWS || matches!(next, Next::Child(_)) {
        return wanted;
    }
    let (patterns, children) = taken(next);
    let mut room = READ_AHEAD_RANGES;
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
        }
    }
    wanted
}

/// The patterns and the groups inside that a step takes.
fn taken(next: &Next) -> (u64, u64) {
    match next {
        Next::Pattern(i, _) => (1 << i, 0),
        Next::Child(c) => (0, 1 << c),
        Next::Star(parts) => {
            parts
                .list
                .iter()
                .fold((0, 0), |(patterns, children), part| match part.what {
                    MemberKind::Pattern(i, _) => (patterns | 1 << i, children),
                    MemberKind::Optional(c) => (patterns, children | 1 << c),
                })
        }
    }
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
    let pattern = &info.pattern;
    if info.keyed.is_some() || cannot_match(pattern, rows, &query.params) {
        return None;
    }
    let orders = source.orders(pattern.table);
    let access = AccessPath::new(pattern, orders, rows, &SlotSet::default());
    let count = if access.bound == 0 { 1 } else { rows.len };
    if !access.is_exact() || access.conditions() < 2 || count > *room || !is_lasting(&access) {
        return None;
    }
    let mut ranges: Vec<(Key, Key)> = Vec::with_capacity(count);
    (0..count).for_each(|row| access.ranges(rows, row, &query.params, &mut ranges));
    ranges.sort_unstable();
    ranges.dedup();
    *room -= ranges.len();
    Some(Wanted {
        table: pattern.table,
        order: access.order,
        ranges,
    })
}
