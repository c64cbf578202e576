//! Repartitioned joins: several participants run one join together, each on a node with a part of the quads. Before a
//! step of the outermost group, rows go to the participant that holds the quads of their next key.
//!
//! Every participant can read any quad, be it by messages to others: where a row is never changes the answer. A row
//! that is given away carries the state of its batch: which patterns, filters and groups are left, which variables are
//! bound, and which step comes next. It takes at least that step where it arrives, so that no row goes round for ever.
//! Groups inside (OPTIONAL, EXISTS, NOT EXISTS) are run whole where the row is, after it has been given to the holder
//! of the first key that it asks for there.
//!
//! The first pattern is the same for all participants, and each reads the quads of its own part. Where the constants of
//! the pattern say that one participant has all of them, that one alone reads.

use crate::access::access_path::{cannot_match, AccessPath, Operand, PushedRanges};
use crate::bindings::{Bindings, Column};
use crate::cost::MOVED_ROW_COST;
use crate::optimizer::cardinality_feedback::CardinalityFeedback;
use crate::optimizer::chains::Figures;
use crate::optimizer::estimates::count_pattern;
use crate::optimizer::join_order::{choose, Next};
use crate::pipeline::participant::{FirstPattern, Parcel, Role, Share};
use crate::pipeline::stack::Origin;
use crate::pipeline::Pipeline;
use crate::plan::condition::Value;
use crate::plan::layout::{Ahead, Scope};
use crate::plan::part::TablePart;
use crate::plan::{ColumnNumber, Pattern, Slot, SlotSet, TableNumber};
use crate::source::Source;

/// Where a join begins, by what one participant expects.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Outlook {
    /// What all participants start with; `None` where participant 0 has to start alone.
    pub first: Option<FirstPattern>,
    /// About how many quads all patterns of the outermost group will find.
    pub quads: f64,
}

/// A batch whose state is none of this join's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Damaged;

/// What rows are given away by: quads of `table` with the values of `slot` in `column`.
#[derive(Clone, Copy)]
pub(crate) struct PlacedKey {
    table: TableNumber,
    column: ColumnNumber,
    slot: Slot,
    /// The step of the pattern, and what of the group comes next.
    step: usize,
    ahead: Ahead,
}

/// Bytes of a state before the kinds of columns.
const FIXED: usize = 1 + 3 * 8 + 2;
/// The bit that tells a group inside from a pattern, and what stands for neither.
const CHILD: u16 = 1 << 15;
const NOTHING: u16 = u16::MAX;

impl Pipeline {
    /// Begins the share of participant `me`, every participant with the same `first`. Batches of fewer than `least`
    /// rows are joined where they are.
    pub fn start_share(
        &mut self,
        params: Vec<Value>,
        first: Option<FirstPattern>,
        me: usize,
        least: usize,
    ) {
        self.start_from(params, Bindings::one_row(self.query.slots));
        let patterns = self.query.layout.groups[0].patterns.len();
        let first = first.filter(|first| first.pattern < patterns);
        if first.is_none() && me != 0 {
            self.forget_start();
        }
        self.set_origin(first.map_or(Origin::Nowhere, Origin::Share));
        self.role = Some(Role {
            me: me as u16,
            least,
            parcels: Vec::new(),
        });
    }

    /// Begins the share of participant `me` in a join for rows that have some variables already. Participant 0 has all
    /// these rows. It gives them to the participants that hold the quads of their first keys.
    pub fn start_share_from(
        &mut self,
        params: Vec<Value>,
        rows: Bindings,
        me: usize,
        least: usize,
    ) {
        self.start_share(params, None, me, least);
        self.set_start(rows);
    }

    /// Rows to be given to other participants since the last call.
    pub fn parcels(&mut self) -> Vec<Parcel> {
        let role = self.role.as_mut();
        role.map_or_else(Vec::new, |role| std::mem::take(&mut role.parcels))
    }

    /// Takes rows that another participant has given away; they are the next to go on.
    ///
    /// # Errors
    /// [`Damaged`] where the state is none of this join's.
    pub fn take(
        &mut self,
        state: &[u8],
        rows: usize,
        columns: Vec<Vec<u64>>,
    ) -> Result<(), Damaged> {
        let (scope, ahead, kinds) = self.decode_state(state)?;
        let mut given = columns.into_iter();
        let mut columns = Vec::with_capacity(self.query.slots);
        for kind in kinds {
            columns.push(match kind {
                0 => Column::Absent,
                1 => Column::Null,
                2 => Column::Ids(given.next().filter(|c| c.len() == rows).ok_or(Damaged)?),
                _ => return Err(Damaged),
            });
        }
        if given.next().is_some() {
            return Err(Damaged);
        }
        let rows = Bindings { len: rows, columns };
        self.push_rows(rows, vec![scope], Origin::Participant(ahead));
        Ok(())
    }

    /// The first pattern for a join of all participants, and how much there is to do. Also begins the join with these
    /// parameters, as [`Self::start`] does, so that a join that is not shared counts nothing twice.
    pub fn outlook_of<S: Source>(
        &mut self,
        source: &mut S,
        feedback: &mut CardinalityFeedback,
        params: Vec<Value>,
    ) -> Outlook {
        self.start(params);
        let rows = Bindings::one_row(self.query.slots);
        let mut scope = self.query.layout.scope(0, 0, 0);
        // Groups inside can wait until all participants have rows for them.
        scope.children = 0;
        if scope.patterns == 0 {
            return Outlook {
                quads: 1.0,
                ..Outlook::default()
            };
        }
        let next = choose(
            &mut self.estimator(source, feedback),
            &rows,
            &[scope],
            false,
            None,
        );
        let first = match next {
            Next::Pattern(i, _) => Some(i),
            Next::Star(_) | Next::Child(_) => None,
        };
        let (quads, second) = match first {
            Some(first) => self.foreseen(source, feedback, first),
            None => (1.0, None),
        };
        let first = first.map(|pattern| FirstPattern {
            pattern,
            column: self.shared_by(source, pattern, second),
        });
        Outlook { first, quads }
    }

    /// About how many quads the patterns of the outermost group find when `first` comes first. Its own are those that
    /// its constants select, or what filters leave of them where that is known. The others are estimated by what
    /// earlier probes have found for each row. Also the pattern that then comes next.
    fn foreseen<S: Source>(
        &self,
        source: &mut S,
        feedback: &CardinalityFeedback,
        first: usize,
    ) -> (f64, Option<usize>) {
        let info = &self.query.layout.groups[0].patterns[first];
        let rows = match &self.estimates.left[info.step] {
            Some((_, left)) => *left,
            None => count_pattern(&self.query, &self.estimates, source, feedback, first),
        };
        let known = info.needs;
        let others = self.query.layout.scope(0, 0, 0).patterns & !(1 << first);
        let (quads, second) = self.foreseen_after(feedback, rows, known, others);
        (rows + quads, second)
    }

    /// About how many quads the patterns of the outermost group find for rows that have some variables already. It is
    /// estimated by what earlier probes have found for each row. Reads nothing. The pipeline is not running.
    pub fn foreseen_for(
        &mut self,
        feedback: &CardinalityFeedback,
        params: Vec<Value>,
        rows: &Bindings,
    ) -> f64 {
        self.query.set_params(params);
        let mut known = SlotSet::default();
        let bound = Slot::first(rows.columns.len()).filter(|&slot| rows.ids(slot).is_some());
        known.add_all(&bound.collect());
        let patterns = self.query.layout.scope(0, 0, 0).patterns;
        self.foreseen_after(feedback, rows.len as f64, known, patterns)
            .0
    }

    /// About how many quads the patterns of `left` (a bit each) find for so many rows with these variables, and which
    /// comes next.
    fn foreseen_after(
        &self,
        feedback: &CardinalityFeedback,
        mut rows: f64,
        mut known: SlotSet,
        mut left: u64,
    ) -> (f64, Option<usize>) {
        let figures = Figures {
            query: &self.query,
            feedback,
            group: 0,
            fresh: &[],
            unknown: Some(1.0),
        };
        let group = &self.query.layout.groups[0];
        let (mut quads, mut second) = (0.0, None);
        while left != 0 {
            let next = match figures.next(left, &known) {
                Some((next, each)) => {
                    rows *= each;
                    quads += rows;
                    next
                }
                // What shares no variable with the rows is not counted, as if it had one quad.
                None => left.trailing_zeros() as usize,
            };
            second.get_or_insert(next);
            known.add_all(&group.patterns[next].needs);
            left &= !(1 << next);
        }
        (quads, second)
    }

    /// The column by which the quads of pattern `first` are shared out. It is the column by which the order that is
    /// read is placed. Where another order is as good, it is the column that leaves rows where the quads of the next
    /// step are. An order that reads what filters leave is the better one where that is little.
    fn shared_by<S: Source>(
        &self,
        source: &S,
        first: usize,
        second: Option<usize>,
    ) -> ColumnNumber {
        let group = &self.query.layout.groups[0];
        let (info, rows) = (&group.patterns[first], Bindings::one_row(self.query.slots));
        let pattern = &as_planned(&info.pattern);
        let (table, none) = (pattern.table, SlotSet::default());
        let orders = source.orders(table);
        let ranges = self.few_left(info.step);
        let access = match ranges {
            Some(ranges) => {
                AccessPath::with_ranges(pattern, orders, &rows, &none, |_| true, ranges)
            }
            None => AccessPath::new(pattern, orders, &rows, &none),
        };
        let Some(column) = source.placed_by(table, access.order) else {
            return ColumnNumber::SUBJECT;
        };
        if ranges.is_some() {
            return column;
        }
        let after = one_with(self.query.slots, &info.needs);
        let inside = group.children.iter().map(|child| child.group);
        let inside = inside.flat_map(|group| &self.query.layout.groups[group].patterns);
        let next = second.map(|i| &group.patterns[i]).into_iter().chain(inside);
        let key = next.into_iter().find_map(|next| {
            let table = next.pattern.table;
            let next = as_planned(&next.pattern);
            let access = AccessPath::new(&next, source.orders(table), &after, &none);
            match self.key_at(&access, source.placed_by(table, access.order)?)? {
                Operand::Slot(slot) => Some(slot),
                _ => None,
            }
        });
        let of_key = |column: &ColumnNumber| key.is_some() && pattern.cells[column.index()] == key;
        let Some(other) = [ColumnNumber::SUBJECT, ColumnNumber::OBJECT]
            .into_iter()
            .find(of_key)
        else {
            return column;
        };
        let part = table.in_part(TablePart::by(other));
        let there = AccessPath::new(pattern, source.orders(part), &rows, &none);
        match there.conditions() == access.conditions() {
            true => other,
            false => column,
        }
    }

    /// What filters leave to the columns of a pattern, where that is so few quads that reading only these is worth to
    /// give their rows away.
    fn few_left(&self, step: usize) -> Option<&PushedRanges> {
        let (ranges, left) = self.estimates.left[step].as_ref()?;
        let all = self.estimates.counts[step]?;
        (left * MOVED_ROW_COST <= all).then_some(ranges)
    }

    /// The share of a participant in the first pattern: the part of the table that it reads. `None` where another one
    /// has all of it.
    pub(crate) fn share<S: Source>(
        &self,
        source: &mut S,
        first: FirstPattern,
        rows: &Bindings,
    ) -> Option<Share> {
        let me = self.role.as_ref()?.me;
        let pattern = &as_planned(&self.query.layout.groups[0].patterns[first.pattern].pattern);
        let table = pattern.table;
        if cannot_match(pattern, rows, &self.query.params) {
            return None;
        }
        let access = AccessPath::new(pattern, source.orders(table), rows, &SlotSet::default());
        let Some(column) = source.placed_by(table, access.order) else {
            return (me == 0).then_some(Share::All);
        };
        match self.key_at(&access, column) {
            Some(Operand::Param(param)) => match &self.query.params[param.index()] {
                Value::One(value) => {
                    let holder = source.holders(table, column, &[*value]);
                    (holder.first() == Some(&me)).then_some(Share::All)
                }
                _ => Some(Share::Part(table.in_part(TablePart::by(first.column)))),
            },
            _ => Some(Share::Part(table.in_part(TablePart::by(first.column)))),
        }
    }

    fn key_at(&self, access: &AccessPath, column: ColumnNumber) -> Option<Operand> {
        access.one_at(access.permutation.position(column.index()))
    }

    /// The key that the next step of a batch looks up by a variable, where the key tells who holds the quads.
    pub(crate) fn placed_key<S: Source>(
        &self,
        source: &S,
        rows: &Bindings,
        scope: &Scope,
        next: &Next,
    ) -> Option<PlacedKey> {
        self.role.as_ref()?;
        let (group, patterns, ahead) = match next {
            Next::Pattern(i, _) => (scope.group, *i..*i + 1, Ahead::Pattern(*i)),
            Next::Star(parts) => match parts.first() {
                Ahead::Pattern(i) => (scope.group, i..i + 1, Ahead::Pattern(i)),
                Ahead::Child(c) => {
                    let group = self.query.layout.groups[scope.group].children[c].group;
                    (group, 0..1, Ahead::Child(c))
                }
            },
            Next::Child(c) => {
                let group = self.query.layout.groups[scope.group].children[*c].group;
                let patterns = 0..self.query.layout.groups[group].patterns.len();
                (group, patterns, Ahead::Child(*c))
            }
        };
        let mut keys = patterns.filter_map(|i| {
            let info = &self.query.layout.groups[group].patterns[i];
            let table = info.pattern.table;
            if cannot_match(&info.pattern, rows, &self.query.params) {
                return None;
            }
            let orders = source.orders(table);
            let access = AccessPath::new(&info.pattern, orders, rows, &SlotSet::default());
            let column = source.placed_by(table, access.order)?;
            match self.key_at(&access, column)? {
                Operand::Slot(slot) => Some(PlacedKey {
                    table,
                    column,
                    slot,
                    step: info.step,
                    ahead,
                }),
                _ => None,
            }
        });
        keys.next()
    }

    /// The part of the table that has all quads which rows ask for with a key, if this participant holds it.
    pub(crate) fn own_part<S: Source>(
        &self,
        source: &mut S,
        rows: &Bindings,
        key: &PlacedKey,
    ) -> Option<TableNumber> {
        let me = self.role.as_ref()?.me;
        let ids = rows.ids(key.slot)?;
        let holders = source.holders(key.table, key.column, ids);
        let mine = holders.iter().all(|&holder| holder == me);
        mine.then_some(key.table.in_part(TablePart::by(key.column)))
    }

    /// Gives rows to those who hold the quads of their keys. What stays, and the part of the table that has their
    /// quads, if they are in one.
    pub(crate) fn repartition<S: Source>(
        &mut self,
        source: &mut S,
        rows: Bindings,
        scopes: &[Scope],
        key: &PlacedKey,
    ) -> (Bindings, Option<TableNumber>) {
        let (Some(role), Some(ids)) = (&self.role, rows.ids(key.slot)) else {
            return (rows, None);
        };
        let me = role.me;
        let holders = source.holders(key.table, key.column, ids);
        let part = Some(key.table.in_part(TablePart::by(key.column)));
        if holders.iter().all(|&holder| holder == me) {
            return (rows, part);
        }
        if rows.len < role.least {
            return (rows, None);
        }
        let most = holders.iter().max().map_or(0, |&h| usize::from(h) + 1);
        let mut lists: Vec<Vec<u32>> = vec![Vec::new(); most];
        for (row, &holder) in (0u32..).zip(&holders) {
            lists[usize::from(holder)].push(row);
        }
        let live = self.query.live(scopes);
        let mut mine = Bindings::default();
        for (to, chosen) in lists.into_iter().enumerate() {
            if to == usize::from(me) {
                mine = rows.gather(&chosen, &SlotSet::ALL);
            } else if !chosen.is_empty() {
                self.steps[key.step].dealt += chosen.len() as u64;
                let given = rows.gather(&chosen, &live);
                self.give(to, given, &scopes[0], key.ahead);
            }
        }
        (mine, part)
    }

    fn give(&mut self, to: usize, rows: Bindings, scope: &Scope, ahead: Ahead) {
        let state = self.encode_state(&rows, scope, ahead);
        let columns = rows.columns.into_iter().filter_map(|column| match column {
            Column::Ids(ids) => Some(ids),
            _ => None,
        });
        let parcel = Parcel {
            to,
            state,
            rows: rows.len,
            columns: columns.collect(),
        };
        if let Some(role) = &mut self.role {
            role.parcels.push(parcel);
        }
    }

    /// What is left to do in the outermost group. How equality of values is used there is found out again by who gets
    /// it.
    fn encode_state(&self, rows: &Bindings, scope: &Scope, ahead: Ahead) -> Vec<u8> {
        let all = self.query.layout.scope(0, 0, 0);
        let left = scope.patterns.count_ones() + scope.children.count_ones();
        let done = all.patterns.count_ones() + all.children.count_ones() - left;
        let mut state = vec![done.min(255) as u8];
        for mask in [scope.patterns, scope.filters, scope.children] {
            state.extend(mask.to_le_bytes());
        }
        let ahead = match ahead {
            Ahead::Pattern(i) => i as u16,
            Ahead::Child(c) => CHILD | c as u16,
        };
        state.extend(ahead.to_le_bytes());
        for four in rows.columns.chunks(4) {
            let kinds = four.iter().enumerate().map(|(n, column)| {
                let kind = match column {
                    Column::Absent => 0u8,
                    Column::Null => 1,
                    Column::Ids(_) => 2,
                };
                kind << (2 * n)
            });
            state.push(kinds.sum());
        }
        state
    }

    /// The scope of a state, the step that comes next, and the kinds of its columns.
    fn decode_state(&self, state: &[u8]) -> Result<(Scope, Option<Ahead>, Vec<u8>), Damaged> {
        if state.len() != FIXED + self.query.slots.div_ceil(4) {
            return Err(Damaged);
        }
        let mask = |n: usize| {
            let bytes = state[1 + 8 * n..9 + 8 * n].try_into();
            bytes.map(u64::from_le_bytes).map_err(|_| Damaged)
        };
        let mut scope = self.query.layout.scope(0, 0, 0);
        for (n, left) in [&mut scope.patterns, &mut scope.filters, &mut scope.children]
            .into_iter()
            .enumerate()
        {
            let given = mask(n)?;
            if given & !*left != 0 {
                return Err(Damaged);
            }
            *left = given;
        }
        let ahead = u16::from_le_bytes([state[FIXED - 2], state[FIXED - 1]]);
        let number = usize::from(ahead & !CHILD);
        let ahead = match ahead {
            NOTHING => None,
            _ if number >= 64 => return Err(Damaged),
            _ if ahead & CHILD != 0 && scope.children >> number & 1 == 1 => {
                Some(Ahead::Child(number))
            }
            _ if ahead & CHILD == 0 && scope.patterns >> number & 1 == 1 => {
                Some(Ahead::Pattern(number))
            }
            _ => return Err(Damaged),
        };
        let kinds =
            (0..self.query.slots).map(|slot| state[FIXED + slot / 4] >> (2 * (slot % 4)) & 3);
        Ok((scope, ahead, kinds.collect()))
    }
}

/// A pattern as all participants have it. Who reads what must not depend on counts that only one of them has
/// ([`Pattern::lists_first`]).
fn as_planned(pattern: &Pattern) -> Pattern {
    Pattern {
        lists_first: false,
        ..pattern.clone()
    }
}

/// One row in which these variables are bound, whatever to.
fn one_with(slots: usize, known: &SlotSet) -> Bindings {
    let mut rows = Bindings::one_row(slots);
    for (slot, column) in rows.columns.iter_mut().enumerate() {
        if known.has(Slot::from_index(slot)) {
            *column = Column::Ids(vec![0]);
        }
    }
    rows
}
