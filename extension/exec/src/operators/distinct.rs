//! Early duplicate elimination: where only the set of rows matters, one of equal rows goes on.
//!
//! That holds for the whole plan when DISTINCT stands above it, and inside EXISTS and NOT EXISTS (semi-join and
//! anti-join). Once a variable that nothing needs any more is dropped, rows that differed by it alone are the same.

use crate::bindings::Bindings;
use crate::cost::{DISTINCT_BATCHES, DISTINCT_DROPPED_SHARE, DISTINCT_TRIAL_ROWS};
use crate::operators::keys::{hash, Keys};
use crate::plan::condition::Bound;
use crate::plan::layout::Scope;
use crate::plan::query::Query;
use crate::plan::{ColumnNumber, Pattern, Slot, SlotSet};

/// Rows that have come out of a step.
struct Seen {
    /// What is left to do for them, and their variables: others would be other rows.
    scopes: Vec<Scope>,
    slots: Vec<Slot>,
    rows: Keys,
    tested: usize,
    dropped: usize,
}

impl Seen {
    fn new(scopes: &[Scope], slots: Vec<Slot>, expected: usize) -> Self {
        Self {
            scopes: scopes.to_vec(),
            rows: Keys::new(slots.len(), expected),
            slots,
            tested: 0,
            dropped: 0,
        }
    }

    /// Keeps rows that have not been seen; remembers at most `most` of them.
    fn retain(&mut self, rows: &mut Bindings, most: usize) {
        if self.tested > DISTINCT_TRIAL_ROWS
            && (self.dropped as f64) < DISTINCT_DROPPED_SHARE * self.tested as f64
        {
            return;
        }
        let columns: Vec<&[u64]> = self.slots.iter().filter_map(|&s| rows.ids(s)).collect();
        if columns.is_empty() {
            rows.len = 1;
            return;
        }
        if self.rows.len() + rows.len > most {
            self.rows = Keys::new(columns.len(), 0);
        }
        let mut keep = vec![true; rows.len];
        for (row, keep) in keep.iter_mut().enumerate() {
            let known = self.rows.len();
            self.rows.find_or_add(hash(&columns, row), &columns, row);
            *keep = self.rows.len() > known;
        }
        let before = rows.len;
        if keep.contains(&false) {
            rows.retain(&keep);
        }
        self.tested += before;
        self.dropped += before - rows.len;
    }
}

/// Whether a step makes rows that differ in nothing of `live`; `determined_by_outer` are variables that others of
/// `live` determine.
pub(crate) fn repeats(
    pattern: &Pattern,
    needs: &SlotSet,
    rows: &Bindings,
    live: &SlotSet,
    determined_by_outer: &SlotSet,
) -> bool {
    let mut variables = rows.known();
    variables.add_all(needs);
    variables.remove_all(determined_by_outer);
    let is_fixed = |column: ColumnNumber| {
        let mut conditions = pattern.conditions.iter();
        conditions.any(|c| c.column == column && c.bound == Bound::Eq)
            || pattern.links.iter().any(|l| l.column == column)
    };
    let told_apart = if pattern.triples { 3 } else { 4 };
    let mut cells = pattern.cells[..told_apart].iter().enumerate();
    let open = cells.any(|(c, cell)| cell.is_none() && !is_fixed(ColumnNumber::from_index(c)));
    open || !variables.within(live)
}

/// The rows that have come out of each step, where only the set of rows matters.
#[derive(Default)]
pub(crate) struct DuplicateElimination {
    /// By step.
    seen: Vec<Option<Seen>>,
}

impl DuplicateElimination {
    /// Forgets all rows; there are so many steps.
    pub fn clear(&mut self, steps: usize) {
        self.seen.clear();
        self.seen.resize_with(steps, || None);
    }

    /// Forgets the rows of groups inside that are done, with so many frames on the stack: the next ones to enter are
    /// numbered anew.
    pub fn forget_inside(&mut self, frames: usize) {
        for seen in &mut self.seen {
            let is_done = |seen: &mut Seen| seen.scopes.iter().skip(1).any(|s| s.frame >= frames);
            seen.take_if(is_done);
        }
    }

    /// Drops columns that nothing needs any more and, where only the set of rows matters, rows that have come out of
    /// `step` before. `repeated`: they may have.
    pub fn thin(
        &mut self,
        query: &Query,
        rows: &mut Bindings,
        scopes: &[Scope],
        step: usize,
        repeated: bool,
    ) {
        if !query.distinct && query.layout.tested(scopes).is_none() {
            return;
        }
        let live = query.live(scopes);
        let known = rows.known();
        if !repeated && known.within(&live) {
            return;
        }
        rows.keep_columns(&live);
        if rows.len == 1 && self.seen[step].is_none() {
            // Most likely the only one.
            return;
        }
        let slots: Vec<Slot> = Slot::first(rows.columns.len())
            .filter(|&slot| rows.ids(slot).is_some())
            .collect();
        let most = DISTINCT_BATCHES * query.tuning.most;
        let mut seen = self.seen[step]
            .take()
            .filter(|seen| seen.scopes == scopes && seen.slots == slots)
            .unwrap_or_else(|| Seen::new(scopes, slots, rows.len));
        seen.retain(rows, most);
        self.seen[step] = Some(seen);
    }
}
