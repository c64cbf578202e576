//! Rows that occur again: where only the set of rows matters, one of them goes on.
//!
//! That is so in the whole plan when the answer's duplicates are dropped anyway, and inside EXISTS and NOT EXISTS. Once a variable
//! that nothing needs any more is dropped, rows that differed by it alone are the same.

use crate::bindings::Bindings;
use crate::layout::{Layout, Scope};
use crate::pipeline::Pipeline;
use crate::plan::{Kind, Pattern, Slot, SlotSet};
use crate::Bound;

/// Rows that have come out of a step.
pub(crate) struct Seen {
    /// What is left to do for them, and their variables: others would be other rows.
    scopes: Vec<Scope>,
    slots: Vec<Slot>,
    /// By hash: number of a row plus one; 0 = free.
    heads: Vec<u32>,
    /// The values of the rows, one row after the other.
    values: Vec<u64>,
    tested: usize,
    dropped: usize,
}

/// Odd, with bits all over: the high bits of a product with it depend on all bits of the other factor.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
/// Rows tested before it is judged whether that is worth while, and the share of them that has to be dropped then.
const TRIAL: usize = 4096;
const WORTH: f64 = 0.05;
/// Batches of rows that are remembered.
const REMEMBERED: usize = 4;

impl Seen {
    fn new(scopes: &[Scope], slots: Vec<Slot>) -> Self {
        Self {
            scopes: scopes.to_vec(),
            slots,
            heads: vec![0; 64],
            values: Vec::new(),
            tested: 0,
            dropped: 0,
        }
    }

    /// Keeps rows that have not been seen; remembers at most `most` of them.
    fn retain(&mut self, rows: &mut Bindings, most: usize) {
        if self.tested > TRIAL && (self.dropped as f64) < WORTH * self.tested as f64 {
            return;
        }
        let columns: Vec<&[u64]> = self.slots.iter().filter_map(|&s| rows.ids(s)).collect();
        let width = columns.len();
        if width == 0 {
            rows.len = 1;
            return;
        }
        if self.values.len() / width + rows.len > most {
            self.values.clear();
            self.heads.fill(0);
        }
        let seen = self.values.len() / width;
        self.reserve(seen + rows.len, width);
        let shift = u64::BITS - self.heads.len().trailing_zeros();
        let mut keep = vec![true; rows.len];
        for (row, keep) in keep.iter_mut().enumerate() {
            let hash = columns.iter().fold(0, |hash, c| mix(hash, c[row]));
            let mut place = (hash >> shift) as usize;
            loop {
                let head = self.heads[place] as usize;
                if head == 0 {
                    self.values.extend(columns.iter().map(|c| c[row]));
                    self.heads[place] = (self.values.len() / width) as u32;
                    break;
                }
                let other = &self.values[(head - 1) * width..head * width];
                if other
                    .iter()
                    .zip(&columns)
                    .all(|(value, c)| *value == c[row])
                {
                    *keep = false;
                    break;
                }
                place = (place + 1) & (self.heads.len() - 1);
            }
        }
        let before = rows.len;
        if keep.contains(&false) {
            rows.retain(&keep);
        }
        self.tested += before;
        self.dropped += before - rows.len;
    }

    /// Makes room for so many rows.
    fn reserve(&mut self, rows: usize, width: usize) {
        let places = (rows * 3 / 2).next_power_of_two();
        if places <= self.heads.len() {
            return;
        }
        self.heads.clear();
        self.heads.resize(places, 0);
        let shift = u64::BITS - places.trailing_zeros();
        for (row, values) in self.values.chunks_exact(width).enumerate() {
            let hash = values.iter().fold(0, |hash, &value| mix(hash, value));
            let mut place = (hash >> shift) as usize;
            while self.heads[place] != 0 {
                place = (place + 1) & (places - 1);
            }
            self.heads[place] = row as u32 + 1;
        }
    }
}

#[inline]
fn mix(hash: u64, value: u64) -> u64 {
    (hash.rotate_left(29) ^ value).wrapping_mul(SPREAD)
}

impl Layout {
    /// The innermost of the scopes that is one of EXISTS or NOT EXISTS.
    pub fn tested(&self, scopes: &[Scope]) -> Option<usize> {
        (1..scopes.len()).rev().find(|&depth| {
            let outer = &self.groups[scopes[depth - 1].group];
            outer.children[scopes[depth].child].kind != Kind::Left
        })
    }
}

/// Whether a step makes rows that differ in nothing of `live`.
pub(crate) fn repeats(pattern: &Pattern, needs: &SlotSet, rows: &Bindings, live: &SlotSet) -> bool {
    let mut variables = rows.known();
    variables.add_all(needs);
    let is_fixed = |column: u8| {
        let mut conditions = pattern.conditions.iter();
        conditions.any(|c| c.0 == column && c.1 == Bound::Eq)
            || pattern.links.iter().any(|l| l.0 == column)
    };
    let open = (0..4u8).any(|c| pattern.cells[usize::from(c)].is_none() && !is_fixed(c));
    open || !variables.within(live)
}

impl Pipeline {
    /// Forgets the rows of groups inside that are done: the next ones to enter are numbered anew.
    pub(crate) fn forget_seen_inside(&mut self) {
        let frames = self.frame_count();
        for seen in &mut self.seen {
            let is_done = |seen: &mut Seen| seen.scopes.iter().skip(1).any(|s| s.frame >= frames);
            seen.take_if(is_done);
        }
    }

    /// Drops columns that nothing needs any more and, where only the set of rows matters, rows that have come out of `step` before.
    /// `repeated`: they may have.
    pub(crate) fn thin(
        &mut self,
        rows: &mut Bindings,
        scopes: &[Scope],
        step: usize,
        repeated: bool,
    ) {
        if !self.distinct && self.layout.tested(scopes).is_none() {
            return;
        }
        let live = self.layout.live(self.output, scopes);
        let known = rows.known();
        if !repeated && known.within(&live) {
            return;
        }
        rows.keep_columns(&live);
        if rows.len == 1 && self.seen[step].is_none() {
            // Most likely the only one.
            return;
        }
        let slots: Vec<Slot> = (0..rows.columns.len() as Slot)
            .filter(|&slot| rows.ids(slot).is_some())
            .collect();
        let most = REMEMBERED * self.tuning.most;
        let mut seen = self.seen[step]
            .take()
            .filter(|seen| seen.scopes == scopes && seen.slots == slots)
            .unwrap_or_else(|| Seen::new(scopes, slots));
        seen.retain(rows, most);
        self.seen[step] = Some(seen);
    }
}
