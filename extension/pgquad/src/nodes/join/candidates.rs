//! Which rows of a `Quad Join` can be among the first of an order (ORDER BY .. LIMIT). The others are not handed out,
//! so nobody reads their terms to compare them.

use super::outer_input::OuterInput;
use pgquad_btree::SIGN;
use pgquad_exec::{Bindings, LeadingKey, LeadingKeyData, Plan};

/// Fewest rows from below that are divided: the second part may take a message to each node of its own.
const MANY_FED_ROWS: usize = 256;
/// Rows that go first for each one that is wanted, as not all of them may have a match.
const FIRST_FOR_EACH: usize = 2;
/// Fewest rows that go first: to look up a few costs as much as to look up one.
const FEWEST_FIRST: usize = 32;

/// The leading key of the order, executed.
pub struct Candidates {
    /// The key's place in the scan tuple.
    place: usize,
    key: LeadingKey,
    /// Rows that are wanted.
    most: usize,
    /// Rows that were left out.
    pub removed: u64,
}

impl Candidates {
    pub fn new(data: &LeadingKeyData) -> Self {
        Self {
            place: data.place,
            key: LeadingKey::new(data.most, data.descending, data.nulls_first),
            most: data.most,
            removed: 0,
        }
    }

    /// Forgets the rows so far: the join starts anew.
    pub fn restart(&mut self) {
        self.key.restart();
    }

    /// Divides rows from below, before they are joined: takes those that come first, and returns the others, which may
    /// turn out to be none of the first. Only where the order goes by what the rows have already.
    pub fn divide(
        &self,
        rows: &mut Bindings,
        of_answer: (&Plan, &[usize]),
        outer_input: &OuterInput,
    ) -> Option<Bindings> {
        let first = FEWEST_FIRST.max(self.most.saturating_mul(FIRST_FOR_EACH));
        if rows.len < MANY_FED_ROWS.max(first.saturating_mul(2)) {
            return None;
        }
        let values = known_values(self.place, rows, of_answer, outer_input)?;
        let mut goes_first = self.key.first_of(&values, first)?;
        let mut others = rows.clone();
        rows.retain(&goes_first);
        goes_first.iter_mut().for_each(|first| *first = !*first);
        others.retain(&goes_first);
        Some(others)
    }

    /// Leaves out rows from below that are none of the first, before they are joined.
    pub fn thin_fed(
        &mut self,
        rows: &mut Bindings,
        of_answer: (&Plan, &[usize]),
        outer_input: &OuterInput,
    ) {
        let values = known_values(self.place, rows, of_answer, outer_input);
        let kept = values.and_then(|values| self.key.still_candidates(&values));
        if let Some(kept) = kept {
            self.keep(rows, &kept);
        }
    }

    fn keep(&mut self, rows: &mut Bindings, kept: &[bool]) {
        let before = rows.len;
        rows.retain(kept);
        self.removed += (before - rows.len) as u64;
    }

    /// Leaves out rows of a batch that are none of the first. `output`: the place in the scan tuple of each variable of
    /// the plan's answer.
    pub fn thin(
        &mut self,
        rows: &mut Bindings,
        (plan, output): (&Plan, &[usize]),
        outer_input: Option<&OuterInput>,
    ) {
        let Some(values) = values(self.place, rows, (plan, output), outer_input) else {
            return;
        };
        if let Some(kept) = self.key.candidates(&values) {
            self.keep(rows, &kept);
        }
    }
}

/// What rows from below have at a place of the scan tuple; `None` where they do not fill it.
fn known_values(
    place: usize,
    rows: &Bindings,
    (plan, output): (&Plan, &[usize]),
    outer_input: &OuterInput,
) -> Option<Vec<Option<i64>>> {
    let at = output.iter().position(|&known| known == place);
    let is_known = at.is_none_or(|at| rows.ids(plan.output[at]).is_some());
    let found = is_known.then(|| values(place, rows, (plan, output), Some(outer_input)));
    found.flatten()
}

/// What the rows of a batch have at a place of the scan tuple; `None` where the join does not fill it.
fn values(
    place: usize,
    rows: &Bindings,
    (plan, output): (&Plan, &[usize]),
    outer_input: Option<&OuterInput>,
) -> Option<Vec<Option<i64>>> {
    if let Some(at) = output.iter().position(|&known| known == place) {
        let ids = rows.ids(plan.output[at]);
        return Some(match ids {
            Some(ids) => ids.iter().map(|&id| Some((id ^ SIGN) as i64)).collect(),
            None => vec![None; rows.len],
        });
    }
    let outer_input = outer_input?;
    let numbers = rows.ids(outer_input.row())?;
    let value = |&number: &u64| {
        let mut carried = outer_input.carried(number as usize);
        let (_, value, null) = carried.find(|&(known, ..)| known == place)?;
        Some((!null).then(|| value.value() as i64))
    };
    numbers.iter().map(value).collect()
}
