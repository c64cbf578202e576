//! Rows counted by the values of some variables: GROUP BY with counts, from a pipeline that does not make the rows of its last pattern
//! where only their number matters.

use crate::bindings::Bindings;
use crate::keys::{hash, Keys};
use crate::plan::Slot;

/// What is counted of each group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    /// Rows.
    Rows,
    /// Rows in which a variable is bound.
    Bound(Slot),
}

/// Groups with their counts: all of a join's, or as many as memory has room for, chosen by hash.
pub struct Tally {
    by: Vec<Slot>,
    counted: Vec<Counted>,
    /// The values of each group; behind them, bit by bit, which are none.
    keys: Keys,
    /// For each of `counted` the count of each group.
    counts: Vec<Vec<u64>>,
    /// The groups' hashes: from the first to below the second, or the end.
    hashes: (u64, Option<u64>),
    room: usize,
    /// All rows, whatever their group.
    rows: u64,
}

/// So many groups are kept however little room there is.
const FEW: usize = 64;

/// A hash that does not depend on the one by which keys are found.
fn rehash(hash: u64) -> u64 {
    (hash ^ hash >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93)
}

impl Tally {
    /// Counts by the variables of `by` (at most 64), in about `room` bytes.
    pub fn new(by: Vec<Slot>, counted: Vec<Counted>, room: usize) -> Self {
        Self::from_hash(by, counted, room, 0)
    }

    fn from_hash(by: Vec<Slot>, counted: Vec<Counted>, room: usize, from: u64) -> Self {
        Self {
            keys: Keys::new(by.len() + 1, 0),
            counts: vec![Vec::new(); counted.len()],
            by,
            counted,
            hashes: (from, None),
            room,
            rows: 0,
        }
    }

    /// The tally of the groups that there was no room for, empty: the join has to be run again for it.
    pub fn rest(&self) -> Option<Self> {
        let from = self.hashes.1?;
        Some(Self::from_hash(
            self.by.clone(),
            self.counted.clone(),
            self.room,
            from,
        ))
    }

    /// Number of all rows that there were, those included for whose groups there was no room.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Number of groups. By no variables all rows are one, if there are any.
    pub fn len(&self) -> usize {
        if self.by.is_empty() {
            usize::from(self.rows > 0)
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
        self.counts[place][group]
    }

    /// The variables that it reads.
    pub(crate) fn reads(&self) -> impl Iterator<Item = Slot> + '_ {
        let counted = self.counted.iter().filter_map(|c| match c {
            Counted::Rows => None,
            Counted::Bound(slot) => Some(*slot),
        });
        self.by.iter().copied().chain(counted)
    }

    /// Counts a batch of rows, each as often as `weights` says.
    pub(crate) fn add(&mut self, rows: &Bindings, weights: Option<&[u64]>) {
        let all = weights.map_or(rows.len as u64, |w| w.iter().sum());
        self.rows += all;
        let counts: Vec<bool> = self
            .counted
            .iter()
            .map(|counted| match counted {
                Counted::Rows => true,
                Counted::Bound(slot) => rows.ids(*slot).is_some(),
            })
            .collect();
        if self.by.is_empty() {
            for (of_all, &add) in self.counts.iter_mut().zip(&counts) {
                of_all.resize(1, 0);
                of_all[0] += if add { all } else { 0 };
            }
            return;
        }
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
        for row in 0..rows.len {
            let weight = weights.map_or(1, |w| w[row]);
            if weight == 0 {
                continue;
            }
            let group = match last.filter(|&key| self.keys.is(key, &columns, row)) {
                Some(key) => key,
                None => {
                    let hash = hash(&columns, row);
                    if !self.takes(hash) {
                        continue;
                    }
                    self.keys.find_or_add(hash, &columns, row)
                }
            };
            last = Some(group);
            for (of_all, &add) in self.counts.iter_mut().zip(&counts) {
                of_all.resize(self.keys.len(), 0);
                of_all[group as usize] += if add { weight } else { 0 };
            }
        }
        while self.bytes() > self.room && self.len() > FEW {
            self.halve();
        }
    }

    fn takes(&self, hash: u64) -> bool {
        let hash = rehash(hash);
        hash >= self.hashes.0 && self.hashes.1.is_none_or(|end| hash < end)
    }

    fn bytes(&self) -> usize {
        self.keys.bytes() + 8 * self.counts.len() * self.len()
    }

    /// Gives up about half of the groups.
    fn halve(&mut self) {
        let (from, end) = self.hashes;
        let width = end.map_or(u64::MAX - from, |end| end - from);
        self.hashes.1 = Some(from + (width / 2).max(1));
        let places = self.by.len() + 1;
        let old = std::mem::replace(&mut self.keys, Keys::new(places, 0));
        let columns: Vec<&[u64]> = (0..places).map(|c| old.column(c)).collect();
        let counts = std::mem::replace(&mut self.counts, vec![Vec::new(); self.counted.len()]);
        for group in 0..old.len() {
            let hash = hash(&columns, group);
            if self.takes(hash) {
                self.keys.find_or_add(hash, &columns, group);
                for (kept, of_all) in self.counts.iter_mut().zip(&counts) {
                    kept.push(of_all[group]);
                }
            }
        }
    }
}
