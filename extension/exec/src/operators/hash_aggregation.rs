//! Hash aggregation (GROUP BY with COUNT, SUM, AVG, MIN, MAX). By the values of some variables, rows are counted,
//! numbers added up, and the least or greatest values kept.
//!
//! Values that are counted once (COUNT(DISTINCT ..)) are sets beside the groups, each of the groups' variables and one
//! more. Where several participants count, each value goes to one of them, by its hash: the counts of all participants
//! can then be added. Rows of which only the set matters (DISTINCT) are shared out in the same way.
//!
//! The pipeline does not make the rows of its last pattern where only their number matters. Groups that memory has no
//! room for are spilled in partitions, as in PostgreSQL's `executor/nodeAgg.c`.

use crate::bindings::Bindings;
use crate::cost::MIN_GROUPS_IN_MEMORY;
use crate::operators::extremes::{Extreme, TermOffer, TermOrder, EXTREME_WORDS};
use crate::operators::keys::{hash, Keys};
use crate::operators::spill::{Divider, File, Part, Spill};
use crate::plan::{Argument, Slot};
use crate::source::Source;
use pgquad_term::aggregate::{Sum, SUM_WORDS};
use pgquad_term::number::Number;
use rustc_hash::FxHashSet;
use std::collections::HashMap;
use std::ops::Range;

/// What is counted of each group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    /// Rows.
    Rows,
    /// Rows in which a variable is bound.
    Bound(Slot),
    /// Nothing: the numbers that an argument has in its rows are added up ([`Source::numbers`]).
    Sum(Argument),
    /// Distinct values of a variable, where it is bound.
    Distinct(Slot),
    /// Nothing: one of the values that an argument has in its rows is kept ([`Source::values`]).
    Extreme(Argument, Extreme),
}

impl Counted {
    /// Words that a group has of it.
    fn words(self) -> usize {
        match self {
            Self::Rows | Self::Bound(_) | Self::Distinct(_) => 1,
            Self::Sum(_) => SUM_WORDS,
            Self::Extreme(..) => EXTREME_WORDS,
        }
    }
}

/// What a row adds to one of the aggregates.
enum Adds {
    /// Itself, or nothing.
    Row(bool),
    /// A number.
    Numbers(Vec<Option<Number>>),
    /// A value.
    Values(Extreme, Vec<Option<u64>>),
}

/// Groups with their counts: all of a join's, or where memory has no room for them one part after the other.
pub struct HashAggregation {
    by: Vec<Slot>,
    counted: Vec<Counted>,
    /// By argument, the variables that it is computed from.
    arguments: Vec<Vec<Slot>>,
    /// How terms are compared.
    terms: TermOrder,
    /// Who is told of the terms that merging groups will compare.
    offer: Option<TermOffer>,
    /// The values of each group; behind them, bit by bit, which are none.
    keys: Keys,
    /// For each of `counted` the count of each group, or the words of its sum or extreme. Behind them, where groups are
    /// handed out early, whether each has been.
    counts: Vec<Vec<u64>>,
    /// Groups are handed out while rows come.
    is_early: bool,
    /// All rows, whatever their group.
    rows: u64,
    /// What is counted once.
    sets: Vec<DistinctSet>,
    overflow: Option<Overflow>,
}

/// Distinct values of a variable by group, or distinct groups.
struct DistinctSet {
    /// Its place in `counted`, and the variable; `None` where it is groups.
    counted: Option<(usize, Slot)>,
    /// The values with their groups, the variable last.
    found: HashAggregation,
    /// Where others count, too: those that this participant is to count.
    owned: Option<HashAggregation>,
}

impl DistinctSet {
    /// Bytes of the values that wait for [`HashAggregation::repartition`].
    fn found_bytes(&self) -> usize {
        match self.owned {
            Some(_) if self.found.keys.len() > 0 => self.found.keys.bytes(),
            _ => 0,
        }
    }
}

/// Values of a set for another participant.
#[derive(Debug)]
pub struct SetParcel {
    /// Number of the participant.
    pub to: usize,
    /// Number of the set.
    pub set: usize,
    /// The values, as [`HashAggregation::take_set`] reads them.
    pub columns: Vec<Vec<u64>>,
}

/// Groups that a set is counted into at once.
const GROUPS_AT_ONCE: usize = 4096;

/// What groups become when they take too much memory.
struct Overflow {
    /// Bytes for groups.
    room: usize,
    file: File,
    /// The part that is in memory; all groups at first.
    part: Part,
    /// Groups of that part that have left memory.
    left: Option<Divider>,
    /// Parts that have not been looked at.
    waiting: Vec<Part>,
}

/// The participant that counts a value of this hash. Does not depend on [`rehash`] either, so that what a participant
/// counts is spread over the parts of its file.
fn owner(hash: u64, participants: usize) -> usize {
    let spread = hash.rotate_left(32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (spread >> 32) as usize % participants.max(1)
}

/// A hash that does not depend on the one by which keys are found.
fn rehash(hash: u64) -> u64 {
    (hash ^ hash >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93)
}

/// The sum of numbers of rows. Where a star makes more than a number holds, the sum is the greatest one: a count of so
/// many rows is an error.
pub(crate) fn total(multiplicities: &[u64]) -> u64 {
    multiplicities
        .iter()
        .fold(0, |sum, &rows| sum.saturating_add(rows))
}

impl HashAggregation {
    /// Counts by the variables of `by` (at most 63).
    pub fn new(by: Vec<Slot>, counted: Vec<Counted>) -> Self {
        let sets = counted.iter().enumerate().filter_map(|(place, counted)| {
            let Counted::Distinct(slot) = *counted else {
                return None;
            };
            let with_value = by.iter().copied().chain([slot]).collect();
            Some(DistinctSet {
                counted: Some((place, slot)),
                found: Self::new(with_value, Vec::new()),
                owned: None,
            })
        });
        Self {
            sets: sets.collect(),
            keys: Keys::new(by.len() + 1, 0),
            counts: vec![Vec::new(); counted.iter().map(|counted| counted.words()).sum()],
            by,
            counted,
            is_early: false,
            arguments: Vec::new(),
            terms: |a, b| a.cmp(&b),
            offer: None,
            rows: 0,
            overflow: None,
        }
    }

    /// The variables that the arguments of its sums and extremes are computed from.
    pub fn with_arguments(mut self, arguments: Vec<Vec<Slot>>) -> Self {
        self.arguments = arguments;
        self
    }

    /// The order of terms for [`Extreme::FirstTerm`] and [`Extreme::LastTerm`].
    pub fn with_order(mut self, terms: TermOrder) -> Self {
        self.terms = terms;
        self
    }

    /// Before rows are counted or groups merged, `offer` gets the ids whose terms may be compared. When that is
    /// done, it gets none. So terms that are elsewhere can be fetched together.
    pub fn with_offer(mut self, offer: TermOffer) -> Self {
        self.offer = Some(offer);
        self
    }

    /// Groups are handed out ([`Self::hand_out`]) while rows come, where nothing is counted.
    pub fn early(mut self) -> Self {
        self.is_early = true;
        self.counts.push(Vec::new());
        self
    }

    /// Notes that a group is handed out; false where it has been before, and has left memory since.
    pub fn hand_out(&mut self, group: usize) -> bool {
        let marks = self.counts.last_mut().filter(|_| self.is_early);
        marks.is_none_or(|marks| std::mem::replace(&mut marks[group], 1) == 0)
    }

    /// Whether groups have left memory: those that have not been handed out come when all rows have been counted.
    pub fn has_spilled(&self) -> bool {
        let has_left = |o: &Overflow| o.left.is_some() || o.file.bytes() > 0;
        self.overflow.as_ref().is_some_and(has_left)
    }

    /// Counts together with other participants: see [`Self::repartition`].
    pub fn repartitioned(mut self) -> Self {
        if self.counted.is_empty() && !self.by.is_empty() {
            self.sets.push(DistinctSet {
                counted: None,
                found: Self::new(self.by.clone(), Vec::new()),
                owned: None,
            });
        }
        for set in &mut self.sets {
            set.owned = Some(Self::new(set.found.by.clone(), Vec::new()));
        }
        self
    }

    /// Keeps groups, and sets, within about `room` bytes; those beyond go into files. What sets have found for other
    /// participants is not among them: [`Self::repartition`] bounds it.
    pub fn within(mut self, room: usize, file: &mut dyn FnMut() -> Box<dyn Spill>) -> Self {
        let room = room / (self.sets.len() + 1);
        for set in &mut self.sets {
            let kept = set.owned.as_mut().unwrap_or(&mut set.found);
            kept.spill_beyond(room, file());
        }
        self.spill_beyond(room, file());
        self
    }

    fn spill_beyond(&mut self, room: usize, file: Box<dyn Spill>) {
        self.overflow = Some(Overflow {
            room,
            file: File::new(file),
            part: Part::default(),
            left: None,
            waiting: Vec::new(),
        });
    }

    /// Gives the groups up, and their files.
    pub fn close(mut self) {
        for set in self.sets.drain(..) {
            set.found.close();
            set.owned.into_iter().for_each(Self::close);
        }
        if let Some(overflow) = &mut self.overflow {
            overflow.file.close();
        }
    }

    /// Bytes written to files so far.
    pub fn spilled(&self) -> u64 {
        let of_set = |set: &DistinctSet| {
            let owned = set.owned.as_ref().map_or(0, Self::spilled);
            set.found.spilled() + owned
        };
        let of_sets: u64 = self.sets.iter().map(of_set).sum();
        of_sets + self.overflow.as_ref().map_or(0, |o| o.file.bytes())
    }

    /// Bytes of what sets have found for other participants, or for this one, and [`Self::repartition`] has not looked
    /// at.
    pub fn found_bytes(&self) -> usize {
        self.sets.iter().map(DistinctSet::found_bytes).sum()
    }

    /// Gives what sets have found to the participants that are to count it (there are so many, and this one is number
    /// `me`). The largest sets are given first, until no more than `room` bytes are left. With no room nothing stays
    /// that is another one's.
    pub fn repartition(&mut self, participants: usize, me: usize, room: usize) -> Vec<SetParcel> {
        let mut parcels = Vec::new();
        let mut left = self.found_bytes();
        if left <= room {
            return parcels;
        }
        let mut largest: Vec<usize> = (0..self.sets.len()).collect();
        largest.sort_by_key(|&number| std::cmp::Reverse(self.sets[number].found_bytes()));
        for number in largest {
            let set = &mut self.sets[number];
            let bytes = set.found_bytes();
            let Some(owned) = set.owned.as_mut().filter(|_| bytes > 0) else {
                continue;
            };
            if left <= room {
                break;
            }
            left -= bytes;
            let places = set.found.by.len() + 1;
            let found = std::mem::replace(&mut set.found.keys, Keys::new(places, 0));
            let columns: Vec<&[u64]> = (0..places).map(|place| found.column(place)).collect();
            let mut lists: Vec<Vec<usize>> = vec![Vec::new(); participants];
            for key in 0..found.len() {
                lists[owner(hash(&columns, key), participants)].push(key);
            }
            for (to, list) in lists.into_iter().enumerate().filter(|l| !l.1.is_empty()) {
                let chosen = |column: &&[u64]| list.iter().map(|&key| column[key]).collect();
                let columns: Vec<Vec<u64>> = columns.iter().map(chosen).collect();
                if to == me {
                    owned.add_groups(&columns, &[]);
                } else {
                    parcels.push(SetParcel {
                        to,
                        set: number,
                        columns,
                    });
                }
            }
        }
        parcels
    }

    /// Takes values of a set from another participant; false where this one has no such set.
    pub fn take_set(&mut self, set: usize, columns: &[Vec<u64>]) -> bool {
        let owned = self.sets.get_mut(set).and_then(|set| set.owned.as_mut());
        let len = columns.first().map_or(0, Vec::len);
        match owned {
            Some(owned)
                if columns.len() == owned.by.len() + 1
                    && columns.iter().all(|column| column.len() == len) =>
            {
                owned.add_groups(columns, &[]);
                true
            }
            _ => false,
        }
    }

    /// Whether only the set of its groups matters.
    pub(crate) fn is_set(&self) -> bool {
        self.counted.is_empty() && !self.by.is_empty()
    }

    /// Whether groups are shared out among participants.
    fn shares_groups(&self) -> bool {
        self.sets.iter().any(|set| set.counted.is_none())
    }

    /// Counts what is in the sets.
    fn count_sets(&mut self) {
        for mut set in std::mem::take(&mut self.sets) {
            let parts = [Some(&mut set.found), set.owned.as_mut()];
            for part in parts.into_iter().flatten() {
                part.finish();
                loop {
                    self.count_set(part, set.counted);
                    if !part.next_part() {
                        break;
                    }
                }
            }
            self.sets.push(set);
        }
    }

    /// Counts the values of a set that are in memory, or makes groups of them.
    fn count_set(&mut self, set: &Self, counted: Option<(usize, Slot)>) {
        let values = set.keys.len();
        let of_groups = (0..self.by.len()).chain([set.by.len()]);
        let columns: Vec<&[u64]> = of_groups.map(|place| set.keys.column(place)).collect();
        let one = counted.map(|(place, _)| self.first_word(place));
        for first in (0..values).step_by(GROUPS_AT_ONCE) {
            let some = first..values.min(first + GROUPS_AT_ONCE);
            let counts: Vec<Vec<u64>> = (0..self.words())
                .map(|word| vec![u64::from(one == Some(word)); some.len()])
                .collect();
            let keys: Vec<Vec<u64>> = columns.iter().map(|c| c[some.clone()].to_vec()).collect();
            self.add_groups(&keys, &counts);
        }
    }

    /// The variables that rows are counted by.
    pub fn by(&self) -> &[Slot] {
        &self.by
    }

    /// What is counted.
    pub fn counted(&self) -> &[Counted] {
        &self.counted
    }

    /// By argument, the variables that it is computed from.
    pub fn arguments(&self) -> &[Vec<Slot>] {
        &self.arguments
    }

    /// Number of all rows that there were, whichever groups are in memory.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Number of groups in memory. By no variables all rows are one, if there are any.
    pub fn len(&self) -> usize {
        if self.by.is_empty() {
            // What it counts may all have come from other participants.
            usize::from(self.rows > 0 || self.counts.iter().any(|words| !words.is_empty()))
        } else {
            self.keys.len()
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value of a group's variable, by its place in `by`; `None` where it is unbound.
    pub fn value(&self, group: usize, place: usize) -> Option<u64> {
        let unbound = self.keys.column(self.by.len())[group] >> place & 1 == 1;
        (!unbound).then(|| self.keys.column(place)[group])
    }

    /// A count of a group, by its place in `counted`.
    pub fn count(&self, group: usize, place: usize) -> u64 {
        self.counts[self.first_word(place)][group]
    }

    /// A sum of a group, by its place in `counted`.
    pub fn sum(&self, group: usize, place: usize) -> Sum {
        let first = self.first_word(place);
        sum_of(&self.counts[first..first + SUM_WORDS], group)
    }

    /// An extreme of a group, by its place in `counted`; `None` where there is none.
    pub fn extreme(&self, group: usize, place: usize) -> Option<u64> {
        let first = self.first_word(place);
        Extreme::result(extreme_of(
            &self.counts[first..first + EXTREME_WORDS],
            group,
        ))
    }

    fn first_word(&self, place: usize) -> usize {
        self.counted[..place].iter().map(|c| c.words()).sum()
    }

    /// Words that each group has behind its values.
    pub fn words(&self) -> usize {
        self.counts.len()
    }

    /// The variables that it reads.
    pub(crate) fn reads(&self) -> impl Iterator<Item = Slot> + '_ {
        let counted = self.counted.iter().filter_map(|c| match c {
            Counted::Rows | Counted::Sum(_) | Counted::Extreme(..) => None,
            Counted::Bound(slot) | Counted::Distinct(slot) => Some(*slot),
        });
        let arguments = self.arguments.iter().flatten().copied();
        self.by.iter().copied().chain(counted).chain(arguments)
    }

    /// What each row of a batch adds to each of `counted`.
    fn adds<S: Source>(
        &self,
        source: &mut S,
        rows: &Bindings,
        multiplicities: Option<&[u64]>,
    ) -> Vec<Adds> {
        let is_there = |row| multiplicities.is_none_or(|times| times[row] > 0);
        let counted = self.counted.iter().map(|counted| match counted {
            Counted::Rows => Adds::Row(true),
            Counted::Bound(slot) => Adds::Row(rows.ids(*slot).is_some()),
            Counted::Distinct(_) => Adds::Row(false),
            Counted::Sum(argument) | Counted::Extreme(argument, _) => {
                let needs = self.arguments.get(argument.index());
                let wanted: Vec<bool> = (0..rows.len).map(is_there).collect();
                let needs = needs.map_or(&[][..], Vec::as_slice);
                match counted {
                    Counted::Extreme(_, extreme) => {
                        let values = source.values(*argument, needs, rows, &wanted);
                        Adds::Values(*extreme, values)
                    }
                    _ => Adds::Numbers(source.numbers(*argument, needs, rows, &wanted)),
                }
            }
        });
        counted.collect()
    }

    /// Counts a batch of rows, each as often as `multiplicities` says.
    pub(crate) fn add<S: Source>(
        &mut self,
        source: &mut S,
        rows: &Bindings,
        multiplicities: Option<&[u64]>,
    ) {
        let all = multiplicities.map_or(rows.len as u64, total);
        if all == 0 {
            return;
        }
        self.rows = self.rows.saturating_add(all);
        for set in &mut self.sets {
            if set.counted.is_none_or(|(_, slot)| rows.ids(slot).is_some()) {
                set.found.add(source, rows, multiplicities);
            }
        }
        if self.shares_groups() {
            return;
        }
        let adds = self.adds(source, rows, multiplicities);
        if self.by.is_empty() {
            self.resize(1);
            self.offering(
                |own| own.compared_with_rows(&[0], &adds),
                |own| own.add_to_one(&adds, all, multiplicities),
            );
            return;
        }
        let groups = self.groups_of(rows, multiplicities);
        self.offering(
            |own| own.compared_with_rows(&groups, &adds),
            |own| own.add_to_each(&adds, rows.len, &groups, multiplicities),
        );
        self.make_room();
    }

    /// Runs `body`, which compares the terms of some ids, while those are offered.
    fn offering(
        &mut self,
        compared: impl FnOnce(&Self) -> Vec<Vec<u64>>,
        body: impl FnOnce(&mut Self),
    ) {
        let offer = self.offer.filter(|_| self.compares_terms());
        if let Some(offer) = offer {
            offer(compared(self));
        }
        body(self);
        if let Some(withdraw) = offer {
            withdraw(Vec::new());
        }
    }

    /// Counts a batch, of `all` rows, into the one group that there is.
    fn add_to_one(&mut self, adds: &[Adds], all: u64, multiplicities: Option<&[u64]>) {
        let mut at = 0;
        for adds in adds {
            match adds {
                Adds::Row(add) => {
                    let count = &mut self.counts[at][0];
                    *count = count.saturating_add(if *add { all } else { 0 });
                    at += 1;
                }
                Adds::Numbers(numbers) => {
                    let sum = &mut self.counts[at..at + SUM_WORDS];
                    for (row, &number) in numbers.iter().enumerate() {
                        let times = multiplicities.map_or(1, |w| w[row]);
                        change(sum, 0, |sum| sum.step_times(number, times));
                    }
                    at += SUM_WORDS;
                }
                Adds::Values(extreme, values) => {
                    let words = &mut self.counts[at..at + EXTREME_WORDS];
                    for (row, &value) in values.iter().enumerate() {
                        if multiplicities.is_none_or(|w| w[row] > 0) {
                            widen(words, 0, *extreme, extreme.of_row(value), self.terms);
                        }
                    }
                    at += EXTREME_WORDS;
                }
            }
        }
    }

    /// The group of each row of a batch that counts, in their order; new groups are made.
    fn groups_of(&mut self, rows: &Bindings, multiplicities: Option<&[u64]>) -> Vec<u32> {
        let none: Vec<u64> = vec![0; rows.len];
        let mut unbound = 0u64;
        let mut columns: Vec<&[u64]> = Vec::with_capacity(self.by.len() + 1);
        for (place, &slot) in self.by.iter().enumerate() {
            let ids = rows.ids(slot);
            unbound |= u64::from(ids.is_none()) << place;
            columns.push(ids.unwrap_or(&none));
        }
        let unbound = vec![unbound; rows.len];
        columns.push(&unbound);
        let mut last = None;
        let mut groups = Vec::with_capacity(rows.len);
        for (row, _) in counted_rows(rows.len, multiplicities) {
            let group = match last.filter(|&key| self.keys.is(key, &columns, row)) {
                Some(key) => key,
                None => self.keys.find_or_add(hash(&columns, row), &columns, row),
            };
            last = Some(group);
            groups.push(group);
        }
        self.resize(self.keys.len());
        groups
    }

    /// Counts a batch, of which `groups` has the group of each row that counts.
    fn add_to_each(
        &mut self,
        adds: &[Adds],
        rows: usize,
        groups: &[u32],
        multiplicities: Option<&[u64]>,
    ) {
        for ((row, multiplicity), &group) in counted_rows(rows, multiplicities).zip(groups) {
            let (group, mut at) = (group as usize, 0);
            for adds in adds {
                match adds {
                    Adds::Row(add) => {
                        let count = &mut self.counts[at][group];
                        *count = count.saturating_add(if *add { multiplicity } else { 0 });
                        at += 1;
                    }
                    Adds::Numbers(numbers) => {
                        let sum = &mut self.counts[at..at + SUM_WORDS];
                        change(sum, group, |sum| sum.step_times(numbers[row], multiplicity));
                        at += SUM_WORDS;
                    }
                    Adds::Values(extreme, values) => {
                        let words = &mut self.counts[at..at + EXTREME_WORDS];
                        let value = extreme.of_row(values[row]);
                        widen(words, group, *extreme, value, self.terms);
                        at += EXTREME_WORDS;
                    }
                }
            }
        }
    }

    /// Makes room for so many groups in memory.
    fn resize(&mut self, groups: usize) {
        for of_all in &mut self.counts {
            if of_all.len() < groups {
                of_all.resize(groups, 0);
            }
        }
    }

    /// Adds what has been counted of a group elsewhere: row `row` of `counts`.
    fn merge(&mut self, group: usize, counts: &[Vec<u64>], row: usize) {
        let mut at = 0;
        for counted in &self.counted {
            let words = at..at + counted.words();
            match counted {
                Counted::Rows | Counted::Bound(_) | Counted::Distinct(_) => {
                    let count = &mut self.counts[at][group];
                    *count = count.saturating_add(counts[at][row]);
                }
                Counted::Sum(_) => {
                    let other = sum_of(&counts[words.clone()], row);
                    change(&mut self.counts[words.clone()], group, |sum| {
                        sum.merge(&other);
                    });
                }
                Counted::Extreme(_, extreme) => {
                    let other = extreme_of(&counts[words.clone()], row);
                    let known = &mut self.counts[words.clone()];
                    widen(known, group, *extreme, other, self.terms);
                }
            }
            at = words.end;
        }
        if self.is_early {
            self.counts[at][group] |= counts[at][row];
        }
    }

    fn bytes(&self) -> usize {
        self.keys.bytes() + 8 * self.counts.len() * self.len()
    }

    /// Writes the groups to the file if they have become too many. Groups that are met again are then written again.
    fn make_room(&mut self) {
        let too_much = |o: &Overflow| self.bytes() > o.room && o.part.is_divisible();
        if self.len() > MIN_GROUPS_IN_MEMORY && self.overflow.as_ref().is_some_and(too_much) {
            self.write();
        }
    }

    fn write(&mut self) {
        let places = self.by.len() + 1;
        let Some(Overflow {
            file, part, left, ..
        }) = &mut self.overflow
        else {
            return;
        };
        let left = left.get_or_insert_with(|| Divider::new(places + self.counts.len(), part));
        let keys = std::mem::replace(&mut self.keys, Keys::new(places, 0));
        let columns: Vec<&[u64]> = (0..places).map(|c| keys.column(c)).collect();
        for group in 0..keys.len() {
            let words = columns.iter().map(|column| column[group]);
            let counts = self.counts.iter().map(|of_all| of_all[group]);
            let hash = rehash(hash(&columns, group));
            left.add(file, hash, words.chain(counts));
        }
        self.counts.iter_mut().for_each(Vec::clear);
    }

    /// Some of the groups in memory, by number: the columns of their values, and their counts. The last column of
    /// values says bit by bit which values are unbound.
    pub fn groups(&self, some: Range<usize>) -> (Vec<Vec<u64>>, Vec<Vec<u64>>) {
        self.chosen(some.len(), |of_all| of_all[some.clone()].to_vec())
    }

    /// The groups with these numbers, as [`Self::groups`] gives them.
    pub fn groups_at(&self, numbers: &[u32]) -> (Vec<Vec<u64>>, Vec<Vec<u64>>) {
        self.chosen(numbers.len(), |of_all| {
            numbers.iter().map(|&n| of_all[n as usize]).collect()
        })
    }

    fn chosen(
        &self,
        count: usize,
        choose: impl Fn(&[u64]) -> Vec<u64>,
    ) -> (Vec<Vec<u64>>, Vec<Vec<u64>>) {
        let counts = self.counts.iter().map(|of_all| choose(of_all)).collect();
        if self.by.is_empty() {
            return (vec![vec![0; count]], counts);
        }
        let places = 0..=self.by.len();
        let keys = places.map(|place| choose(self.keys.column(place)));
        (keys.collect(), counts)
    }

    /// The numbers of the groups in memory, by ascending value of the variable at this place in `by`.
    pub fn order_by(&self, place: usize) -> Vec<u32> {
        let column = self.keys.column(place);
        let mut numbers: Vec<u32> = (0..self.len() as u32).collect();
        numbers.sort_unstable_by_key(|&n| column[n as usize]);
        numbers
    }

    /// Notes rows whose groups come by [`Self::add_groups`].
    pub fn add_rows(&mut self, rows: u64) {
        self.rows = self.rows.saturating_add(rows);
    }

    /// Adds groups that another one has counted, in the form of [`Self::groups`].
    pub fn add_groups(&mut self, keys: &[Vec<u64>], counts: &[Vec<u64>]) {
        if self.by.is_empty() {
            let groups = vec![0; counts.first().map_or(0, Vec::len)];
            if !groups.is_empty() {
                self.resize(1);
            }
            self.merge_all(&groups, counts);
            return;
        }
        let keys: Vec<&[u64]> = keys.iter().map(Vec::as_slice).collect();
        self.add_columns(&keys, counts);
        self.make_room();
    }

    /// To be called when all rows have been counted: the groups are then in memory, or a part of them.
    pub fn finish(&mut self) {
        self.count_sets();
        if self.divide() {
            self.next_part();
        }
    }

    /// Writes what is left of a part that has been divided; whether it has been.
    fn divide(&mut self) -> bool {
        if self.overflow.as_ref().is_none_or(|o| o.left.is_none()) {
            return false;
        }
        self.write();
        if let Some(overflow) = &mut self.overflow {
            if let Some(left) = overflow.left.take() {
                overflow.waiting.extend(left.finish(&mut overflow.file));
            }
        }
        true
    }

    /// Goes on to the next part of the groups; false if there is none.
    pub fn next_part(&mut self) -> bool {
        let places = self.by.len() + 1;
        let mut words = Vec::new();
        loop {
            self.keys = Keys::new(places, 0);
            self.counts.iter_mut().for_each(Vec::clear);
            let Some(overflow) = &mut self.overflow else {
                return false;
            };
            let Some(part) = overflow.waiting.pop() else {
                return false;
            };
            overflow.part = part;
            while let Some(overflow) = &mut self.overflow {
                if !overflow.file.next_block(&mut overflow.part, &mut words) {
                    break;
                }
                self.add_again(&words);
                self.make_room();
            }
            if !self.divide() {
                return true;
            }
        }
    }

    /// Counts groups that had left memory.
    fn add_again(&mut self, words: &[u64]) {
        let places = self.by.len() + 1;
        let record = places + self.counts.len();
        let column = |place: usize| words.iter().skip(place).step_by(record).copied().collect();
        let columns: Vec<Vec<u64>> = (0..record).map(column).collect();
        let keys: Vec<&[u64]> = columns[..places].iter().map(Vec::as_slice).collect();
        self.add_columns(&keys, &columns[places..]);
    }

    fn add_columns(&mut self, keys: &[&[u64]], counts: &[Vec<u64>]) {
        let len = keys.first().map_or(0, |column| column.len());
        let find = |row: usize| self.keys.find_or_add(hash(keys, row), keys, row);
        let groups: Vec<u32> = (0..len).map(find).collect();
        self.resize(self.keys.len());
        self.merge_all(&groups, counts);
    }

    /// Adds what has been counted of groups elsewhere: the rows of `counts`, each to the group with this number.
    fn merge_all(&mut self, groups: &[u32], counts: &[Vec<u64>]) {
        self.offering(
            |own| own.compared(groups, counts),
            |own| {
                for (row, &group) in groups.iter().enumerate() {
                    own.merge(group as usize, counts, row);
                }
            },
        );
    }

    /// Whether groups have terms that are compared when they are merged.
    fn compares_terms(&self) -> bool {
        let by_term = |counted: &Counted| matches!(counted, Counted::Extreme(_, extreme) if extreme.compares_terms());
        self.counted.iter().any(by_term)
    }

    /// The ids that rows of these groups will compare by their terms. For each such extreme they are the ids that the
    /// groups have, and the values of the rows.
    fn compared_with_rows(&self, groups: &[u32], adds: &[Adds]) -> Vec<Vec<u64>> {
        let mut columns = Vec::new();
        for (place, adds) in adds.iter().enumerate() {
            let Adds::Values(extreme, values) = adds else {
                continue;
            };
            if !extreme.compares_terms() {
                continue;
            }
            let first = self.first_word(place);
            let words = &self.counts[first..first + EXTREME_WORDS];
            let mut seen = FxHashSet::default();
            let groups = groups.iter().filter(|&&group| seen.insert(group));
            let known =
                groups.filter_map(|&group| Extreme::result(extreme_of(words, group as usize)));
            columns.push(known.collect());
            columns.push(values.iter().flatten().copied().collect());
        }
        columns
    }

    /// The ids that [`Self::merge_all`] will compare by their terms. For each such extreme they are the ids that groups
    /// have, and the ids that come.
    fn compared(&self, groups: &[u32], counts: &[Vec<u64>]) -> Vec<Vec<u64>> {
        let mut columns = Vec::new();
        for (place, counted) in self.counted.iter().enumerate() {
            let Counted::Extreme(_, extreme) = counted else {
                continue;
            };
            let first = self.first_word(place);
            let words = first..first + EXTREME_WORDS;
            // A value of a group is compared with the group's value before it in this very list.
            let mut latest = HashMap::new();
            let pairs = groups.iter().enumerate().filter_map(|(row, &group)| {
                let other = extreme_of(&counts[words.clone()], row);
                let before = latest.insert(group, other);
                let known = || extreme_of(&self.counts[words.clone()], group as usize);
                extreme.compared(before.unwrap_or_else(known), other)
            });
            let (known, others): (Vec<u64>, Vec<u64>) = pairs.unzip();
            columns.extend([known, others]);
        }
        columns
    }
}

/// The rows of a batch that count, and how often each does.
fn counted_rows(
    rows: usize,
    multiplicities: Option<&[u64]>,
) -> impl Iterator<Item = (usize, u64)> + '_ {
    let times = move |row| (row, multiplicities.map_or(1, |w| w[row]));
    (0..rows).map(times).filter(|&(_, times)| times > 0)
}

/// The sum of a group, of which `words` has the columns.
fn sum_of(words: &[Vec<u64>], group: usize) -> Sum {
    Sum::from_words(std::array::from_fn(|word| words[word][group]))
}

fn change(words: &mut [Vec<u64>], group: usize, how: impl FnOnce(&mut Sum)) {
    let mut sum = sum_of(words, group);
    how(&mut sum);
    for (column, word) in words.iter_mut().zip(sum.to_words()) {
        column[group] = word;
    }
}

/// The extreme of a group, of which `words` has the columns.
fn extreme_of(words: &[Vec<u64>], group: usize) -> [u64; EXTREME_WORDS] {
    std::array::from_fn(|word| words[word][group])
}

/// Takes another extreme into that of a group.
fn widen(
    words: &mut [Vec<u64>],
    group: usize,
    extreme: Extreme,
    other: [u64; EXTREME_WORDS],
    terms: TermOrder,
) {
    let merged = extreme.merge(extreme_of(words, group), other, terms);
    for (column, word) in words.iter_mut().zip(merged) {
        column[group] = word;
    }
}
