//! Star join planning: which patterns a batch goes through as one star, and the way in.
//!
//! A star takes the patterns that would have been chosen one after the other anyway, as long as they are looked up by the same key and
//! nothing else is to be done between them.

use crate::access::access_path::PushedRanges;
use crate::access::access_path::{cannot_match, AccessPath, Constants, StarKey};
use crate::bindings::Bindings;
use crate::operators::distinct;
use crate::operators::star_join::{range, Arm, Optional, Star, MOST_ARMS};
use crate::optimizer::cardinality_feedback::CardinalityFeedback;
use crate::optimizer::hash_policy::{about_distinct, HashBuild, PROBE};
use crate::pipeline::repartition::{whole, Ahead};
use crate::pipeline::{Origin, Pipeline};
use crate::plan::layout::{bits, Scope};
use crate::plan::{Kind, Slot, SlotSet};
use crate::source::Source;
use crate::stats::Moment;

/// A part of a group that is to be an arm of a star.
pub(crate) struct StarMember {
    what: MemberKind,
    /// How it is read, for all its variables.
    access: AccessPath,
    constants: Constants,
}

/// Which part of a group.
#[derive(Clone, Copy)]
enum MemberKind {
    /// One of its patterns, with the quads expected for each row.
    Pattern(usize, f64),
    /// One of the groups inside it.
    Optional(usize),
}

/// The parts of a group that are to be a star join.
pub(crate) struct StarPlan {
    star_key: StarKey,
    list: Vec<StarMember>,
}

impl StarPlan {
    /// The first of them.
    pub fn first(&self) -> Ahead {
        match self.list[0].what {
            MemberKind::Pattern(i, _) => Ahead::Pattern(i),
            MemberKind::Optional(c) => Ahead::Child(c),
        }
    }

    /// Leaves out patterns that only make many rows of those that get something from others: they are counted afterwards, and no rows made.
    fn leave_counted(&mut self, live: &SlotSet) {
        let binds = |part: &StarMember| part.access.fills.iter().any(|f| live.has(f.0));
        if self.list.iter().any(binds) {
            let multiplies =
                |part: &StarMember| matches!(part.what, MemberKind::Pattern(_, each) if each > FEW);
            self.list.retain(|part| binds(part) || !multiplies(part));
        }
    }
}

/// Quads for each row that all arms but the last may have together, and that the last one may have.
const FEW: f64 = 4.0;
const MANY: f64 = 64.0;
/// Batches of so few rows are read to the end before filters are tested.
const FEW_ROWS: usize = 16;
/// What an arm after the first one costs, as [`PROBE`].
const NEXT_ARM: f64 = 3.0;
/// Quads from the first to the last key, per key and arm, that are read faster as a whole.
const CLOSE: f64 = 5.0;

/// A batch in a star.
pub(crate) struct StarFrame {
    pub star: Star,
    /// What was left to do before it.
    pub before: Vec<Scope>,
    /// The step that all its time is noted for: that of the first arm.
    pub step: usize,
    /// The same row may come out more than once.
    pub repeats: bool,
}

/// Table (by its identity), order and key that all arms have in common.
type SharedAccess = (u64, usize, StarKey);

impl Pipeline {
    /// The parts of a group that rows go through as one step, if there are two: of its patterns those that are `ranked` first, and where
    /// there are no others, its optional groups.
    pub(crate) fn plan_star<S: Source>(
        &self,
        source: &S,
        rows: &Bindings,
        scope: &Scope,
        ranked: &[(usize, f64)],
    ) -> Option<StarPlan> {
        let group = &self.layout.groups[scope.group];
        let before = rows.known();
        let (mut known, mut new) = (before, SlotSet::default());
        let (mut shared_access, mut each, mut many, mut list) = (None, 1.0, MANY, Vec::new());
        // Filters and tests leave fewer rows for what comes after.
        let is_tested = |known: &SlotSet| {
            let filtered = bits(scope.filters).any(|f| group.filters[f].1.within(known));
            let mut children = bits(scope.children).map(|c| &group.children[c]);
            let tested = children.any(|c| c.kind != Kind::Left && c.needs.within(known));
            rows.len > FEW_ROWS && (filtered || tested)
        };
        for &(i, expected) in ranked {
            let needs = &group.patterns[i].needs;
            // A variable of two arms has to be looked up for the second.
            if needs.meets(&new) && rows.len <= FEW_ROWS {
                many = FEW;
                continue;
            }
            let fits = each <= FEW && expected <= many && list.len() < MOST_ARMS;
            if !fits || needs.meets(&new) {
                break;
            }
            let what = MemberKind::Pattern(i, expected);
            let Some(part) =
                self.star_member(source, rows, (scope.group, i), what, &mut shared_access)
            else {
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
                let inner = &self.layout.groups[child.group];
                let is_plain = child.kind == Kind::Left
                    && inner.patterns.len() == 1
                    && inner.filters.is_empty()
                    && inner.children.is_empty();
                if !is_plain || !child.needs.within(&before) || list.len() >= MOST_ARMS {
                    continue;
                }
                let what = MemberKind::Optional(c);
                let Some(part) =
                    self.star_member(source, rows, (child.group, 0), what, &mut shared_access)
                else {
                    continue;
                };
                list.push(part);
                known.add_all(&child.binds);
                if is_tested(&known) {
                    break;
                }
            }
        }
        let (_, _, star_key) = shared_access?;
        (list.len() > 1).then_some(StarPlan { star_key, list })
    }

    /// A pattern as an arm of the star with `shared_access`; the first one says what that is.
    fn star_member<S: Source>(
        &self,
        source: &S,
        rows: &Bindings,
        (group, i): (usize, usize),
        what: MemberKind,
        shared_access: &mut Option<SharedAccess>,
    ) -> Option<StarMember> {
        let info = &self.layout.groups[group].patterns[i];
        let (pattern, hash_builds) = (&info.pattern, &self.hash_builds[info.step]);
        let alone = hash_builds.prefers_own_step(rows, self.counts[info.step]);
        if alone || cannot_match(pattern, rows, &self.params) {
            return None;
        }
        let orders = source.orders(pattern.table);
        let access = AccessPath::new(pattern, orders, rows, &SlotSet::ALL);
        let (star_key, constants) = access.star_key(&self.params)?;
        // The few quads expected may be what filters leave of many; a star reads all.
        let is_constant = matches!(star_key, StarKey::Value(_));
        if is_constant && self.counts[info.step].is_some_and(|count| count > MANY) {
            return None;
        }
        let table = self.tables[usize::from(pattern.table)];
        let own = (table, access.order, star_key);
        (*shared_access.get_or_insert(own) == own).then_some(StarMember {
            what,
            access,
            constants,
        })
    }

    /// Sends rows through the arms of a star. `part` is what their quads are all in, if that is not the whole table.
    pub(crate) fn enter_star<S: Source>(
        &mut self,
        source: &mut S,
        feedback: &mut CardinalityFeedback,
        rows: Bindings,
        before: Vec<Scope>,
        mut parts: StarPlan,
        part: Option<u16>,
    ) {
        let top = before.len() - 1;
        let merges = self.merges(source, &rows, &before[top], &parts);
        let first = parts.list[0].what;
        if rows.len >= self.tuning.bulk_from && !merges {
            self.drop_hash_joined(source, &rows, &before, (&mut parts.list, part));
        }
        let mut scopes = without(&before, &parts.list);
        let mut live = self.layout.live(self.output, &scopes);
        let is_counted = self.counting.is_some() && top == 0 && scopes[top].is_done();
        if is_counted {
            parts.leave_counted(&live);
            scopes = without(&before, &parts.list);
            live = self.layout.live(self.output, &scopes);
        }
        if parts.list.len() < 2 {
            let only = parts.list.first().map_or(first, |part| part.what);
            return match only {
                MemberKind::Pattern(i, each) => {
                    self.enter_pattern(source, feedback, rows, before, (i, each), part);
                }
                MemberKind::Optional(c) => self.enter_child(rows, before, c),
            };
        }
        let is_counted = is_counted && scopes[top].is_done();
        let moment = Moment::now(source);
        let mut star_frame = self.star(rows, before, parts, (live, merges));
        let step = star_frame.step;
        let star = &mut star_frame.star;
        if is_counted && star.arms().iter().all(|arm| arm.binds_nothing(&live)) {
            let multiplicities = star.multiplicities(source, &self.params);
            let rest = star.take_rest();
            star.note(&mut self.steps);
            star.add_feedback(feedback);
            if let Some(aggregation) = &mut self.counting {
                aggregation.add(star.input(), Some(&multiplicities));
            }
            moment.add_since(source, &mut self.steps[step]);
            if let Some(rest) = rest {
                crowd(&mut self.hash_builds, star);
                self.dispatch(source, feedback, rest, star_frame.before, Origin::Nowhere);
            }
            return;
        }
        self.push_star(star_frame, scopes);
        moment.add_since(source, &mut self.steps[step]);
    }

    /// Starts a star, whose parts are in the scopes still; `live` are the variables of use after it.
    fn star(
        &mut self,
        rows: Bindings,
        before: Vec<Scope>,
        parts: StarPlan,
        (live, merges): (SlotSet, bool),
    ) -> StarFrame {
        let (scope, determined_by_outer) =
            (before[before.len() - 1], self.determined_by_outer(&before));
        let (group, i) = self.pattern_of(&scope, parts.list[0].what);
        let first = &self.layout.groups[group].patterns[i];
        let (table, step) = (first.pattern.table, first.step);
        let (len, count) = (rows.len as f64, parts.list.len() as f64);
        let (mut repeats, mut quads, mut arms) = (false, len, Vec::new());
        for mut part in parts.list {
            let (group, i) = self.pattern_of(&scope, part.what);
            let info = &self.layout.groups[group].patterns[i];
            repeats |= distinct::repeats(
                &info.pattern,
                &info.needs,
                &rows,
                (&live, &determined_by_outer),
            );
            part.access.keep(&live);
            let (expected, optional) = match part.what {
                MemberKind::Pattern(_, expected) => (expected, None),
                MemberKind::Optional(c) => (1.0, Some(self.optional(&scope, c))),
            };
            quads *= expected;
            let (order, what) = (
                part.access.order,
                self.feedback_key(&info.pattern, &part.access),
            );
            let of_step = (info.step, what);
            arms.push(Arm::new(of_step, part.access, part.constants, optional));
            let step = info.step;
            self.turn(step);
            let stats = &mut self.steps[step];
            stats.order = order;
            stats.estimate += quads;
            stats.batches += 1;
            stats.starred += 1;
        }
        let arms = (parts.star_key, arms);
        let star = Star::new(
            table,
            arms,
            rows,
            (live, self.distinct, merges),
            self.tuning,
        );
        if !merges {
            let share = (PROBE + (count - 1.0) * NEXT_ARM) / (count * PROBE);
            for arm in star.arms() {
                self.hash_builds[arm.step].add(len, star.distinct_keys() as f64 * share);
            }
        }
        StarFrame {
            star,
            before,
            step,
            repeats,
        }
    }

    /// The group and the number of the pattern of a part.
    fn pattern_of(&self, scope: &Scope, what: MemberKind) -> (usize, usize) {
        match what {
            MemberKind::Pattern(i, _) => (scope.group, i),
            MemberKind::Optional(c) => (self.layout.groups[scope.group].children[c].group, 0),
        }
    }

    fn optional(&self, scope: &Scope, child: usize) -> Optional {
        let child = &self.layout.groups[scope.group].children[child];
        let slots = 0..self.slots as Slot;
        Optional {
            binds: slots.filter(|&slot| child.binds.has(slot)).collect(),
            copies: child.exports.clone(),
        }
    }

    /// Whether the keys of a batch lie so close together that all between them is read.
    fn merges<S: Source>(
        &self,
        source: &mut S,
        rows: &Bindings,
        scope: &Scope,
        parts: &StarPlan,
    ) -> bool {
        let StarKey::Slot(slot) = parts.star_key else {
            return false;
        };
        if rows.len < self.tuning.bulk_from {
            return false;
        }
        let (group, i) = self.pattern_of(scope, parts.list[0].what);
        let table = self.layout.groups[group].patterns[i].pattern.table;
        let order = parts.list[0].access.order;
        let Some(ids) = rows.ids(slot) else {
            return false;
        };
        let keys = about_distinct(ids).min(ids.len() as f64);
        let (Some(&low), Some(&high)) = (ids.iter().min(), ids.iter().max()) else {
            return false;
        };
        let (low, high) = (range(low, &[]).0, range(high, &[]).1);
        let close = CLOSE * (parts.list.len() + 1) as f64 * keys;
        keys >= self.tuning.bulk_from as f64
            && source.is_ordered(table)
            && source.count(table, order, &low, &high) as f64 <= close
    }

    /// Leaves out patterns whose quads are better held in memory.
    fn drop_hash_joined<S: Source>(
        &mut self,
        source: &mut S,
        rows: &Bindings,
        before: &[Scope],
        (parts, of_table): (&mut Vec<StarMember>, Option<u16>),
    ) {
        let Some(scope) = before.last() else {
            return;
        };
        let live = self.layout.live(self.output, &without(before, parts));
        parts.retain(|part| {
            let at = self.pattern_of(scope, part.what);
            let pushed_ranges = match part.what {
                MemberKind::Pattern(i, _) => self.pushed_ranges(source, i, rows, scope),
                MemberKind::Optional(_) => PushedRanges::new(),
            };
            let on_part = of_table.map(|part| {
                let pattern = &self.layout.groups[at.0].patterns[at.1].pattern;
                let table = pattern.table | (part - whole(part));
                let access = AccessPath::new(pattern, source.orders(table), rows, &SlotSet::ALL);
                access.of_part(table)
            });
            let access = on_part.as_ref().unwrap_or(&part.access);
            access.known.is_empty()
                || self
                    .table_of_all(source, at, access, rows, (&live, &pushed_ranges))
                    .is_none()
        });
    }
}

/// Keeps the patterns of a star from being arms again: there is a key with more quads than stars are made for.
pub(crate) fn crowd(hash_builds: &mut [HashBuild], star: &Star) {
    for arm in star.arms() {
        hash_builds[arm.step].crowded = true;
    }
}

/// The scopes once parts of the innermost are done.
fn without(scopes: &[Scope], parts: &[StarMember]) -> Vec<Scope> {
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
