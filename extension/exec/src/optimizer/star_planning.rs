//! Star join planning: which patterns a batch goes through as one star, and the way in.
//!
//! A star takes the patterns that would be chosen one after the other anyway. It takes them as long as they are looked
//! up by the same key and nothing else is to be done between them.

use crate::access::access_path::{cannot_match, AccessPath, Constants, PushedRanges, StarKey};
use crate::bindings::Bindings;
use crate::cost::{
    REMOTE_STAR_UNTESTED_ROWS, SMALL_TABLE_ROWS, STAR_LAST_ARM_QUADS_PER_ROW,
    STAR_MAX_COUNTED_GAPS, STAR_MERGE_QUADS_PER_KEY, STAR_QUADS_PER_ROW, STAR_UNTESTED_ROWS,
};
use crate::operators::star_join::{range, wide_gaps, Optional, Star, StarMerge, MAX_ARMS};
use crate::optimizer::estimates::Estimator;
use crate::optimizer::hash_policy::{about_distinct, HashBuild, HashPolicy, Running};
use crate::optimizer::range_pushdown::pushed_ranges;
use crate::plan::layout::{bits, Ahead, Layout, Scope};
use crate::plan::query::{PatternAt, Query};
use crate::plan::{Kind, Slot, SlotSet, TableNumber};
use crate::source::Source;

/// A part of a group that is to be an arm of a star.
pub(crate) struct StarMember {
    pub what: MemberKind,
    /// How it is read, for all its variables.
    pub access: AccessPath,
    pub constants: Constants,
}

/// Which part of a group.
#[derive(Clone, Copy)]
pub(crate) enum MemberKind {
    /// One of its patterns, with the quads expected for each row.
    Pattern(usize, f64),
    /// One of the groups inside it.
    Optional(usize),
}

impl MemberKind {
    /// The pattern, by number, where it is one of the group itself.
    pub fn pattern(self) -> Option<usize> {
        match self {
            Self::Pattern(i, _) => Some(i),
            Self::Optional(_) => None,
        }
    }
}

/// The parts of a group that are to be a star join.
pub(crate) struct StarPlan {
    pub star_key: StarKey,
    pub list: Vec<StarMember>,
}

impl StarPlan {
    /// The first of them.
    pub fn first(&self) -> Ahead {
        match self.list[0].what {
            MemberKind::Pattern(i, _) => Ahead::Pattern(i),
            MemberKind::Optional(c) => Ahead::Child(c),
        }
    }

    /// Leaves out patterns that only make many rows of those that get something from others: they are counted
    /// afterwards, and no rows made.
    pub fn leave_counted(&mut self, live: &SlotSet) {
        let binds = |part: &StarMember| part.access.fills.iter().any(|f| live.has(f.0));
        if self.list.iter().any(binds) {
            let multiplies = |part: &StarMember| matches!(part.what, MemberKind::Pattern(_, each) if each > STAR_QUADS_PER_ROW);
            self.list.retain(|part| binds(part) || !multiplies(part));
        }
    }
}

/// What all arms have in common.
#[derive(Clone, Copy, PartialEq, Eq)]
struct SharedAccess {
    /// Identity of the table.
    table: u64,
    order: usize,
    star_key: StarKey,
}

/// The members of a group that rows go through as one step, if there are at least two. Patterns come first, as they are
/// `ranked`. Where these are all patterns of the group, its optional groups follow.
pub(crate) fn plan_star<S: Source>(
    estimator: &Estimator<S>,
    rows: &Bindings,
    scope: &Scope,
    ranked: &[(usize, f64)],
) -> Option<StarPlan> {
    let layout = &estimator.query.layout;
    let group = &layout.groups[scope.group];
    let before = rows.known();
    let (mut known, mut new) = (before, SlotSet::default());
    let (mut shared_access, mut each, mut many, mut list) =
        (None, 1.0, STAR_LAST_ARM_QUADS_PER_ROW, Vec::new());
    let untested = match estimator.asks_nodes {
        true => REMOTE_STAR_UNTESTED_ROWS,
        false => STAR_UNTESTED_ROWS,
    };
    // Filters and tests leave fewer rows for what comes after.
    let is_tested = |known: &SlotSet| {
        let filtered = bits(scope.filters).any(|f| group.filters[f].1.within(known));
        let mut children = bits(scope.children).map(|c| &group.children[c]);
        let tested = children.any(|c| c.kind != Kind::Left && c.needs.within(known));
        rows.len > untested && (filtered || tested)
    };
    for &(i, expected) in ranked {
        let needs = &group.patterns[i].needs;
        // A variable of two arms has to be looked up for the second.
        if needs.meets(&new) && rows.len <= untested {
            many = STAR_QUADS_PER_ROW;
            continue;
        }
        let fits = each <= STAR_QUADS_PER_ROW && expected <= many && list.len() < MAX_ARMS;
        if !fits || needs.meets(&new) {
            break;
        }
        let what = MemberKind::Pattern(i, expected);
        let Some(part) = star_member(
            estimator,
            rows,
            PatternAt {
                group: scope.group,
                pattern: i,
            },
            what,
            &mut shared_access,
        ) else {
            break;
        };
        list.push(part);
        each *= expected.max(1.0);
        known.add_all(needs);
        new.add_all(needs);
        new.remove_all(&before);
        if is_tested(&known) {
            break;
        }
    }
    if list.len() == bits(scope.patterns).count() && !is_tested(&known) {
        for c in bits(scope.children) {
            let child = &group.children[c];
            let inner = &layout.groups[child.group];
            let is_plain = child.kind == Kind::Left
                && inner.patterns.len() == 1
                && inner.filters.is_empty()
                && inner.children.is_empty();
            if !is_plain || !child.needs.within(&before) || list.len() >= MAX_ARMS {
                continue;
            }
            let what = MemberKind::Optional(c);
            let Some(part) = star_member(
                estimator,
                rows,
                PatternAt {
                    group: child.group,
                    pattern: 0,
                },
                what,
                &mut shared_access,
            ) else {
                continue;
            };
            list.push(part);
            known.add_all(&child.binds);
            if is_tested(&known) {
                break;
            }
        }
    }
    let star_key = shared_access?.star_key;
    (list.len() > 1).then_some(StarPlan { star_key, list })
}

/// A pattern as an arm of the star with `shared_access`, which the first arm sets.
fn star_member<S: Source>(
    estimator: &Estimator<S>,
    rows: &Bindings,
    at: PatternAt,
    what: MemberKind,
    shared_access: &mut Option<SharedAccess>,
) -> Option<StarMember> {
    let query = estimator.query;
    let info = query.pattern(at);
    let (pattern, build) = (&info.pattern, &estimator.builds[info.step]);
    let counted = estimator.estimates.counts[info.step];
    let least = match estimator.asks_nodes {
        true => REMOTE_STAR_UNTESTED_ROWS + 1,
        false => SMALL_TABLE_ROWS,
    };
    let alone = build.prefers_own_step(rows, counted, least);
    if alone || cannot_match(pattern, rows, &query.params) {
        return None;
    }
    let orders = estimator.source.orders(pattern.table);
    let access = AccessPath::new(pattern, orders, rows, &SlotSet::ALL);
    let (star_key, constants) = access.star_key(&query.params)?;
    // The few quads expected may be what filters leave of many; a star reads all.
    let is_constant = matches!(star_key, StarKey::Value(_));
    if is_constant && counted.is_some_and(|count| count > STAR_LAST_ARM_QUADS_PER_ROW) {
        return None;
    }
    let own = SharedAccess {
        table: query.tables[pattern.table.index()],
        order: access.order,
        star_key,
    };
    (*shared_access.get_or_insert(own) == own).then_some(StarMember {
        what,
        access,
        constants,
    })
}

/// The pattern of a part.
pub(crate) fn pattern_of(layout: &Layout, scope: &Scope, what: MemberKind) -> PatternAt {
    let (group, pattern) = match what {
        MemberKind::Pattern(i, _) => (scope.group, i),
        MemberKind::Optional(c) => (layout.groups[scope.group].children[c].group, 0),
    };
    PatternAt { group, pattern }
}

/// What the arm of an optional group does besides.
pub(crate) fn optional(query: &Query, scope: &Scope, child: usize) -> Optional {
    let child = &query.layout.groups[scope.group].children[child];
    let slots = Slot::first(query.slots);
    Optional {
        binds: slots.filter(|&slot| child.binds.has(slot)).collect(),
        copies: child.exports.clone(),
    }
}

/// Where all quads between the keys of a batch are read, one behind the other, as they lie so close together. `part` is
/// what their quads are all in, if that is not the whole table.
pub(crate) fn merge<S: Source>(
    query: &Query,
    source: &mut S,
    rows: &Bindings,
    scope: &Scope,
    parts: &StarPlan,
    part: Option<TableNumber>,
) -> Option<StarMerge> {
    let StarKey::Slot(slot) = parts.star_key else {
        return None;
    };
    if rows.len < query.tuning.bulk_from {
        return None;
    }
    let at = pattern_of(&query.layout, scope, parts.list[0].what);
    let table = query.pattern(at).pattern.table;
    let order = parts.list[0].access.order;
    let ids = rows.ids(slot)?;
    let keys = about_distinct(ids).min(ids.len() as f64);
    let (&low, &high) = (ids.iter().min()?, ids.iter().max()?);
    let (low, high) = (range(low, &[]).0, range(high, &[]).1);
    let close = STAR_MERGE_QUADS_PER_KEY * (parts.list.len() + 1) as f64 * keys;
    if keys < query.tuning.bulk_from as f64 {
        return None;
    }
    let (table, order, shard, shards) = match part.and_then(TableNumber::part) {
        None if source.ranges_are_sorted(table) => (table, order, None, 1),
        None => return None,
        Some(part) => {
            let table = table.in_part(part);
            let (shard, shards) = source.only_shard(table, ids)?;
            let mut orders = 0..source.orders(table).len();
            let order = orders.find(|&n| source.whole_order(table, n) == order)?;
            (table, order, Some(shard), shards)
        }
    };
    let merge = StarMerge {
        table,
        order,
        shard,
    };
    let mut quads = source.count(table, order, &low, &high) as f64;
    let most = close * shards as f64;
    if quads > most {
        quads -= quads_in_wide_gaps(source, &merge, ids);
    }
    (quads <= most).then_some(merge)
}

/// Quads in the gaps between the keys of a batch that a merging star leaves out.
fn quads_in_wide_gaps<S: Source>(source: &mut S, merge: &StarMerge, ids: &[u64]) -> f64 {
    let mut keys = ids.to_vec();
    keys.sort_unstable();
    keys.dedup();
    let gaps: Vec<usize> = wide_gaps(&keys).take(STAR_MAX_COUNTED_GAPS).collect();
    let within = gaps.into_iter().map(|n| {
        let (low, high) = (range(keys[n - 1], &[]).1, range(keys[n], &[]).0);
        source.count(merge.table, merge.order, &low, &high) as f64
    });
    within.sum()
}

/// Leaves out patterns whose quads are better held in memory.
pub(crate) fn drop_hash_joined<S: Source, R: Running>(
    policy: &mut HashPolicy<S, R>,
    rows: &Bindings,
    before: &[Scope],
    parts: &mut Vec<StarMember>,
    of_table: Option<TableNumber>,
) {
    let Some(scope) = before.last() else {
        return;
    };
    let query = policy.query;
    let live = query.live(&without(before, parts));
    parts.retain(|part| {
        let at = pattern_of(&query.layout, scope, part.what);
        let pushed_ranges = match part.what {
            MemberKind::Pattern(i, _) => {
                pushed_ranges(&query.layout, policy.source, i, rows, scope)
            }
            MemberKind::Optional(_) => PushedRanges::new(),
        };
        let on_part = of_table.map(|part| {
            let pattern = &query.pattern(at).pattern;
            let table = part
                .part()
                .map_or(pattern.table, |part| pattern.table.in_part(part));
            let access = AccessPath::new(pattern, policy.source.orders(table), rows, &SlotSet::ALL);
            access.of_part(table)
        });
        let access = on_part.as_ref().unwrap_or(&part.access);
        access.known.is_empty()
            || policy
                .table_of_all(at, access, rows, &live, &pushed_ranges)
                .is_none()
    });
}

/// The scopes once parts of the innermost are done.
pub(crate) fn without(scopes: &[Scope], parts: &[StarMember]) -> Vec<Scope> {
    let mut scopes = scopes.to_vec();
    if let Some(scope) = scopes.last_mut() {
        for part in parts {
            match part.what {
                MemberKind::Pattern(i, _) => scope.patterns &= !(1 << i),
                MemberKind::Optional(c) => scope.children &= !(1 << c),
            }
        }
    }
    scopes
}

/// Keeps the patterns of a star from being arms again: there is a key with more quads than stars are made for.
pub(crate) fn note_large_key(hash_builds: &mut [HashBuild], star: &Star) {
    for arm in star.arms() {
        hash_builds[arm.step].has_large_key = true;
    }
}
