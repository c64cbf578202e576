//! Which patterns a batch goes through as one star, and the way in.
//!
//! A star takes the patterns that would have been chosen one after the other anyway, as far as they are looked up by the same key and
//! nothing else is to be done between them.

use crate::bindings::Bindings;
use crate::distinct;
use crate::fanout::Fanouts;
use crate::held::{about_distinct, Holding, PROBE};
use crate::layout::{bits, Scope};
use crate::narrow::Narrowed;
use crate::order::{is_hopeless, Access, Center, Constants};
use crate::pipeline::Pipeline;
use crate::plan::{Kind, Slot, SlotSet};
use crate::source::Source;
use crate::star::{range, Arm, Optional, Star, MOST_ARMS};
use crate::stats::Moment;

/// A part of a group that is to be an arm of a star.
pub(crate) struct Part {
    what: What,
    /// How it is read, for all its variables.
    access: Access,
    constants: Constants,
}

/// Which part of a group.
#[derive(Clone, Copy)]
enum What {
    /// One of its patterns, with the quads expected for each row.
    Pattern(usize, f64),
    /// One of the groups inside it.
    Optional(usize),
}

/// The parts of a group that are to be a star.
pub(crate) struct Parts {
    center: Center,
    list: Vec<Part>,
}

impl Parts {
    /// Leaves out patterns that only make many rows of those that get something from others: they are counted afterwards, and no rows made.
    fn leave_counted(&mut self, live: &SlotSet) {
        let binds = |part: &Part| part.access.fills.iter().any(|f| live.has(f.0));
        if self.list.iter().any(binds) {
            let multiplies =
                |part: &Part| matches!(part.what, What::Pattern(_, each) if each > FEW);
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
pub(crate) struct Starring {
    pub star: Star,
    /// What was left to do before it.
    pub before: Vec<Scope>,
    /// The step that all its time is noted for: that of the first arm.
    pub step: usize,
    /// The same row may come out more than once.
    pub repeats: bool,
}

/// Table (by its identity), order and key that all arms have in common.
type Hub = (u64, usize, Center);

impl Pipeline {
    /// The parts of a group that rows go through as one step, if there are two: of its patterns those that are `ranked` first, and where
    /// there are no others, its optional groups.
    pub(crate) fn star_parts<S: Source>(
        &self,
        source: &S,
        rows: &Bindings,
        scope: &Scope,
        ranked: &[(usize, f64)],
    ) -> Option<Parts> {
        let group = &self.layout.groups[scope.group];
        let before = rows.known();
        let (mut known, mut new) = (before, SlotSet::default());
        let (mut hub, mut each, mut many, mut list) = (None, 1.0, MANY, Vec::new());
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
            let what = What::Pattern(i, expected);
            let Some(part) = self.part(source, rows, (scope.group, i), what, &mut hub) else {
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
                let what = What::Optional(c);
                let Some(part) = self.part(source, rows, (child.group, 0), what, &mut hub) else {
                    continue;
                };
                list.push(part);
                known.add_all(&child.binds);
                if is_tested(&known) {
                    break;
                }
            }
        }
        let (_, _, center) = hub?;
        (list.len() > 1).then_some(Parts { center, list })
    }

    /// A pattern as an arm of the star around `hub`, or of the first one.
    fn part<S: Source>(
        &self,
        source: &S,
        rows: &Bindings,
        (group, i): (usize, usize),
        what: What,
        hub: &mut Option<Hub>,
    ) -> Option<Part> {
        let info = &self.layout.groups[group].patterns[i];
        let (pattern, held) = (&info.pattern, &self.held[info.step]);
        let alone = held.is_alone(rows, self.counts[info.step]);
        if alone || is_hopeless(pattern, rows, &self.params) {
            return None;
        }
        let orders = source.orders(pattern.table);
        let access = Access::new(pattern, orders, rows, &SlotSet::ALL);
        let (center, constants) = access.center(&self.params)?;
        // The few quads expected may be what filters leave of many; a star reads all.
        let is_constant = matches!(center, Center::Value(_));
        if is_constant && self.counts[info.step].is_some_and(|count| count > MANY) {
            return None;
        }
        let table = self.tables[usize::from(pattern.table)];
        let own = (table, access.order, center);
        (*hub.get_or_insert(own) == own).then_some(Part {
            what,
            access,
            constants,
        })
    }

    /// Sends rows through the arms of a star.
    pub(crate) fn enter_star<S: Source>(
        &mut self,
        source: &mut S,
        fanouts: &mut Fanouts,
        rows: Bindings,
        before: Vec<Scope>,
        mut parts: Parts,
    ) {
        let top = before.len() - 1;
        let merges = self.merges(source, &rows, &before[top], &parts);
        let first = parts.list[0].what;
        if rows.len >= self.tuning.bulk_from && !merges {
            self.drop_held(source, &rows, &before, &mut parts.list);
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
                What::Pattern(i, each) => {
                    self.enter_pattern(source, fanouts, rows, before, (i, each));
                }
                What::Optional(c) => self.enter_child(rows, before, c),
            };
        }
        let is_counted = is_counted && scopes[top].is_done();
        let moment = Moment::now(source);
        let mut starring = self.star(rows, before, parts, (live, merges));
        let step = starring.step;
        let star = &mut starring.star;
        if is_counted && star.arms().iter().all(|arm| arm.binds_nothing(&live)) {
            let weights = star.weigh(source, &self.params);
            let rest = star.take_rest();
            star.note(&mut self.steps);
            star.note_found(fanouts);
            if let Some(tally) = &mut self.counting {
                tally.add(star.input(), Some(&weights));
            }
            moment.add_since(source, &mut self.steps[step]);
            if let Some(rest) = rest {
                crowd(&mut self.held, star);
                self.dispatch(source, fanouts, rest, starring.before, None);
            }
            return;
        }
        self.push_star(starring, scopes);
        moment.add_since(source, &mut self.steps[step]);
    }

    /// Starts a star, whose parts are in the scopes still; `live` are the variables of use after it.
    fn star(
        &mut self,
        rows: Bindings,
        before: Vec<Scope>,
        parts: Parts,
        (live, merges): (SlotSet, bool),
    ) -> Starring {
        let (scope, told) = (before[before.len() - 1], self.told(&before));
        let (group, i) = self.pattern_of(&scope, parts.list[0].what);
        let first = &self.layout.groups[group].patterns[i];
        let (table, step) = (first.pattern.table, first.step);
        let (len, count) = (rows.len as f64, parts.list.len() as f64);
        let (mut repeats, mut quads, mut arms) = (false, len, Vec::new());
        for mut part in parts.list {
            let (group, i) = self.pattern_of(&scope, part.what);
            let info = &self.layout.groups[group].patterns[i];
            repeats |= distinct::repeats(&info.pattern, &info.needs, &rows, (&live, &told));
            part.access.keep(&live);
            let (expected, optional) = match part.what {
                What::Pattern(_, expected) => (expected, None),
                What::Optional(c) => (1.0, Some(self.optional(&scope, c))),
            };
            quads *= expected;
            let (order, what) = (part.access.order, self.probed(&info.pattern, &part.access));
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
        let arms = (parts.center, arms);
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
                self.held[arm.step].add(len, star.distinct_keys() as f64 * share);
            }
        }
        Starring {
            star,
            before,
            step,
            repeats,
        }
    }

    /// The group and the number of the pattern of a part.
    fn pattern_of(&self, scope: &Scope, what: What) -> (usize, usize) {
        match what {
            What::Pattern(i, _) => (scope.group, i),
            What::Optional(c) => (self.layout.groups[scope.group].children[c].group, 0),
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
        parts: &Parts,
    ) -> bool {
        let Center::Slot(slot) = parts.center else {
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
    fn drop_held<S: Source>(
        &mut self,
        source: &mut S,
        rows: &Bindings,
        before: &[Scope],
        parts: &mut Vec<Part>,
    ) {
        let Some(scope) = before.last() else {
            return;
        };
        let live = self.layout.live(self.output, &without(before, parts));
        parts.retain(|part| {
            let at = self.pattern_of(scope, part.what);
            let narrowed = match part.what {
                What::Pattern(i, _) => self.narrowed(source, i, rows, scope),
                What::Optional(_) => Narrowed::new(),
            };
            let access = &part.access;
            access.known.is_empty()
                || self
                    .table_of_all(source, at, access, rows, (&live, &narrowed))
                    .is_none()
        });
    }
}

/// Keeps the patterns of a star from being arms again: there is a key with more quads than stars are made for.
pub(crate) fn crowd(held: &mut [Holding], star: &Star) {
    for arm in star.arms() {
        held[arm.step].crowded = true;
    }
}

/// The scopes once parts of the innermost are done.
fn without(scopes: &[Scope], parts: &[Part]) -> Vec<Scope> {
    let mut scopes = scopes.to_vec();
    if let Some(scope) = scopes.last_mut() {
        for part in parts {
            match part.what {
                What::Pattern(i, _) => scope.patterns &= !(1 << i),
                What::Optional(c) => scope.children &= !(1 << c),
            }
        }
    }
    scopes
}
