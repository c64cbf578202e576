//! Reading: cursors over key ranges, batches of columns, point lookups, and probes of many ranges.

use crate::block::{BlockNo, NO_BLOCK};
use crate::cached_descent::CachedDescent;
use crate::descend::{Path, Target};
use crate::equal_keys::for_each_group;
use crate::error::Result;
use crate::gap::Gap;
use crate::key::{cmp, Key};
use crate::leaf::{LeafView, Record};
use crate::packed::Run;
use crate::page::{Frame, FROZEN_XID, NO_XID};
use crate::store::{PageStore, Snapshot};
use crate::tree::Tree;
use crate::visibility::sees;
use std::cmp::Ordering;

/// Keys as columns. Columns that were not asked for are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    /// The columns, in the order of the tree.
    pub columns: [Vec<u64>; 4],
    /// With [`COUNTS`], how many keys each row stands for; empty otherwise.
    pub counts: Vec<u64>,
    len: usize,
    mask: u8,
}

/// All four columns.
pub const ALL_COLUMNS: u8 = 0b1111;

/// Asked for beside columns: keys of a range that follow each other and are equal in these columns are one row, with
/// their number. A range that is read in several pieces may have such a row in each.
pub const COUNTS: u8 = 0b1_0000;

impl Batch {
    /// An empty batch.
    pub fn new() -> Self {
        Batch {
            mask: ALL_COLUMNS,
            ..Batch::default()
        }
    }

    /// Number of rows: a key each, or keys that are counted.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Key `i`; columns that were not asked for are 0.
    #[inline]
    pub fn key(&self, i: usize) -> Key {
        std::array::from_fn(|c| self.columns[c].get(i).copied().unwrap_or(0))
    }

    /// Empties the batch and says which columns (bit `i` = column `i`) to fill from now on, perhaps with [`COUNTS`].
    pub fn clear(&mut self, mask: u8) {
        for c in &mut self.columns {
            c.clear();
        }
        self.counts.clear();
        self.len = 0;
        self.mask = mask;
    }

    /// The columns that are filled (bit `i` = column `i`), and [`COUNTS`].
    #[must_use]
    pub fn mask(&self) -> u8 {
        self.mask
    }

    /// A batch of keys that were read elsewhere; `columns` that `mask` names have `len` values each, the others none.
    /// With [`COUNTS`] each is counted once.
    #[must_use]
    pub fn from_columns(mask: u8, columns: [Vec<u64>; 4], len: usize) -> Self {
        let counted = if mask & COUNTS == 0 { 0 } else { len };
        Batch {
            columns,
            counts: vec![1; counted],
            len,
            mask,
        }
    }

    /// A batch of rows that were read elsewhere with [`COUNTS`], and how many keys each stands for. Columns as in
    /// [`Self::from_columns`].
    #[must_use]
    pub fn from_counted(mask: u8, columns: [Vec<u64>; 4], counts: Vec<u64>) -> Self {
        Batch {
            len: counts.len(),
            columns,
            counts,
            mask: mask | COUNTS,
        }
    }

    /// Adds a row that stands for `count` keys with these values in the columns asked for. They are counted with the
    /// last row where that has the same, unless it is before row `from`.
    fn add_counted(&mut self, from: usize, count: u64, value: impl Fn(usize) -> u64) {
        let mask = self.mask;
        let same = |(c, column): (usize, &Vec<u64>)| {
            mask >> c & 1 == 0 || column.last() == Some(&value(c))
        };
        match self.counts.last_mut() {
            Some(last) if self.len > from && self.columns.iter().enumerate().all(same) => {
                *last += count;
            }
            _ => {
                for (c, column) in self.columns.iter_mut().enumerate() {
                    if mask >> c & 1 != 0 {
                        column.push(value(c));
                    }
                }
                self.counts.push(count);
                self.len += 1;
            }
        }
    }

    /// Adds rows of another batch that has the same columns.
    pub fn append(&mut self, other: &Batch, rows: std::ops::Range<usize>) {
        self.len += rows.len();
        if self.mask & COUNTS != 0 {
            self.counts.extend_from_slice(&other.counts[rows.clone()]);
        }
        for (c, column) in self.columns.iter_mut().enumerate() {
            if self.mask >> c & 1 != 0 {
                column.extend_from_slice(&other.columns[c][rows.clone()]);
            }
        }
    }

    /// Keeps the rows whose place in `keep` is true.
    pub fn retain(&mut self, keep: &[bool]) {
        if self.mask & COUNTS != 0 {
            let mut kept = keep.iter();
            self.counts.retain(|_| kept.next() == Some(&true));
        }
        for (c, column) in self.columns.iter_mut().enumerate() {
            if self.mask >> c & 1 != 0 {
                let mut kept = keep.iter();
                column.retain(|_| kept.next() == Some(&true));
            }
        }
        self.len = keep.iter().filter(|k| **k).count();
    }

    fn reverse(&mut self) {
        for c in &mut self.columns {
            c.reverse();
        }
        self.counts.reverse();
    }
}

/// What becomes of the visible keys of a leaf.
pub(crate) trait Sink {
    /// Base entries `lo..hi`.
    fn range(&mut self, run: &Run<'_, 4>, lo: usize, hi: usize);
    /// A key from the tail.
    fn key(&mut self, key: &Key);
}

impl Sink for Batch {
    #[inline]
    fn range(&mut self, run: &Run<'_, 4>, lo: usize, hi: usize) {
        self.len += hi - lo;
        for (c, column) in self.columns.iter_mut().enumerate() {
            if self.mask >> c & 1 != 0 {
                if hi - lo <= 4 {
                    column.extend((lo..hi).map(|i| run.get(c, i)));
                } else {
                    run.unpack(c, lo, hi, column);
                }
            }
        }
    }

    fn key(&mut self, key: &Key) {
        self.len += 1;
        for (c, column) in self.columns.iter_mut().enumerate() {
            if self.mask >> c & 1 != 0 {
                column.push(key[c]);
            }
        }
    }
}

/// Puts keys into a batch with [`COUNTS`].
struct Counted<'a> {
    batch: &'a mut Batch,
    /// The first row of the range that is being read.
    from: usize,
    scratch: &'a mut [Vec<u64>; 4],
}

impl Sink for Counted<'_> {
    fn range(&mut self, run: &Run<'_, 4>, lo: usize, hi: usize) {
        let (batch, from) = (&mut *self.batch, self.from);
        let mask = batch.mask;
        for_each_group(run, (lo, hi), mask, self.scratch, |count, value| {
            batch.add_counted(from, count, value);
        });
    }

    fn key(&mut self, key: &Key) {
        self.batch.add_counted(self.from, 1, |c| key[c]);
    }
}

/// Counts only.
pub(crate) struct Counter(pub u64);

impl Sink for Counter {
    fn range(&mut self, _: &Run<'_, 4>, lo: usize, hi: usize) {
        self.0 += (hi - lo) as u64;
    }

    fn key(&mut self, _: &Key) {
        self.0 += 1;
    }
}

/// The last key that went to the sink.
enum Last {
    None,
    Base(usize),
    Key(Key),
}

/// Entries between two ranges of a leaf up to which the second is looked for step by step. Otherwise its place is
/// guessed, which takes longer than so many steps take (0.1 us).
const CLOSE_ENTRIES: usize = 8;

/// Hands the visible keys of one leaf to a sink, each once.
pub(crate) struct Walk<'a, 'l> {
    leaf: &'a LeafView<'l>,
    snapshot: &'a dyn Snapshot,
    /// Base entries of `base_xmin` are visible.
    young_visible: bool,
    /// The deletions of the dead bitmap are seen.
    dead_seen: bool,
    /// All base entries without a mark of their own are visible, and they differ from each other.
    plain: bool,
    last: Last,
    /// The answer to the last question asked about a tail record.
    memo: Option<((u32, u32), bool)>,
    /// A base entry near which the next range starts.
    near: Option<usize>,
    /// All base entries before this one come before the next range, where nothing is known to be near it.
    behind: Option<usize>,
    /// The last group of ranges began close behind the range before it.
    close: bool,
    /// Before this base entry the last range would have been, of which the leaf holds no version.
    missed: Option<usize>,
}

impl<'a, 'l> Walk<'a, 'l> {
    #[inline]
    pub(crate) fn new(leaf: &'a LeafView<'l>, snapshot: &'a dyn Snapshot) -> Self {
        let (xmin, cmin) = leaf.base_xmin();
        let young_visible = xmin == FROZEN_XID || snapshot.sees_insert(xmin, cmin);
        let (xmax, cmax) = leaf.base_xmax();
        let dead_seen =
            leaf.has_dead_bitmap() && xmax != NO_XID && snapshot.sees_delete(xmax, cmax);
        let plain = young_visible && !dead_seen && !leaf.has_duplicates();
        Walk {
            leaf,
            snapshot,
            young_visible,
            dead_seen,
            plain,
            last: Last::None,
            memo: None,
            near: None,
            behind: None,
            close: true,
            missed: None,
        }
    }

    /// Everything from `lower` (if it is past the start of the page) to `upper` (if before its end),
    /// that included unless `open`.
    #[inline]
    pub(crate) fn run(
        &mut self,
        lower: Option<&Key>,
        upper: Option<&Key>,
        open: bool,
        sink: &mut impl Sink,
    ) -> Result<()> {
        let leaf = self.leaf;
        let lo = match (lower, self.near, self.behind) {
            (None, ..) => 0,
            (Some(k), Some(near), _) => leaf.run.lower_bound_near(k, near),
            (Some(k), None, Some(behind)) => {
                let lo = match self.close {
                    true => leaf.run.lower_bound_behind(k, behind),
                    false => leaf.run.lower_bound(k, behind),
                };
                self.close = lo - behind < CLOSE_ENTRIES;
                lo
            }
            (Some(k), None, None) => leaf.run.lower_bound(k, 0),
        };
        let hi = match upper {
            Some(k) if open => leaf.run.lower_bound(k, lo),
            Some(k) => leaf.run.upper_bound_near(k, lo),
            None => leaf.run.len(),
        };
        self.near = Some(lo);
        self.behind = Some(hi);
        self.missed = None;
        if leaf.slots() == 0 {
            self.missed = (lo >= hi).then_some(lo);
            self.base(lo, hi, sink);
            return Ok(());
        }
        let first = match lower {
            Some(k) => leaf.slot_of_key(lo, k, false)?,
            None => 0,
        };
        let end = match upper {
            Some(k) => leaf.slot_of_key(hi, k, !open)?,
            None => leaf.slots(),
        };
        let mut at = lo;
        for slot in first..end {
            let r = leaf.record(slot)?;
            if r.insert {
                self.base(at, r.place, sink);
                at = at.max(r.place);
                self.tail(&r, sink);
            } else {
                self.base(at, r.place, sink);
                at = at.max(r.place + 1);
                let e = leaf.base_entry(r.place, Some(&r));
                if sees(self.snapshot, &e) {
                    self.emit_one(r.place, sink);
                }
            }
        }
        self.base(at, hi, sink);
        Ok(())
    }

    /// Base entries `lo..hi`, which have no marks of their own.
    #[inline]
    fn base(&mut self, lo: usize, hi: usize, sink: &mut impl Sink) {
        if lo >= hi {
            return;
        }
        if self.plain {
            sink.range(&self.leaf.run, lo, hi);
            self.last = Last::Base(hi - 1);
            return;
        }
        if !self.young_visible && !self.leaf.has_young_bitmap() {
            return;
        }
        let mut start = None;
        for i in lo..hi {
            let mut visible = (self.young_visible || !self.leaf.is_young(i))
                && !(self.dead_seen && self.leaf.is_dead(i));
            if visible && self.leaf.has_duplicates() {
                let key = self.leaf.run.key(i);
                visible = !self.is_last(&key);
            }
            if visible {
                start.get_or_insert(i);
                self.last = Last::Base(i);
            } else if let Some(from) = start.take() {
                sink.range(&self.leaf.run, from, i);
            }
        }
        if let Some(from) = start {
            sink.range(&self.leaf.run, from, hi);
        }
    }

    fn emit_one(&mut self, i: usize, sink: &mut impl Sink) {
        if self.leaf.has_duplicates() && self.is_last(&self.leaf.run.key(i)) {
            return;
        }
        sink.range(&self.leaf.run, i, i + 1);
        self.last = Last::Base(i);
    }

    fn tail(&mut self, r: &Record, sink: &mut impl Sink) {
        let inserted = r.xmin == FROZEN_XID
            || match self.memo {
                Some((of, seen)) if of == (r.xmin, r.cmin) => seen,
                _ => {
                    let seen = self.snapshot.sees_insert(r.xmin, r.cmin);
                    self.memo = Some(((r.xmin, r.cmin), seen));
                    seen
                }
            };
        let deleted = r.xmax != NO_XID && !r.lock_only && self.snapshot.sees_delete(r.xmax, r.cmax);
        if inserted && !deleted {
            let key = self.leaf.record_key(r);
            if !self.is_last(&key) {
                sink.key(&key);
                self.last = Last::Key(key);
            }
        }
    }

    fn is_last(&self, key: &Key) -> bool {
        match &self.last {
            Last::None => false,
            Last::Base(i) => self.leaf.run.cmp(*i, key) == Ordering::Equal,
            Last::Key(k) => k == key,
        }
    }
}

/// The direction of a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Ascending keys.
    Forward,
    /// Descending keys.
    Backward,
}

/// A scan of a key range. Holds no lock and no page between calls: it goes on by key, with the last
/// page as a hint. Plain data, bound to the tree it is used with.
#[derive(Clone, Debug)]
pub struct Cursor {
    /// What is left: keys from `lower` ..
    lower: Key,
    /// .. to `upper`, or, when going backward after the first leaf, less than `upper`.
    upper: Key,
    upper_open: bool,
    direction: Direction,
    done: bool,
    columns: u8,
    hint: BlockNo,
}

impl Cursor {
    /// A scan of the keys from `lower` to `upper`, both included.
    pub fn new(lower: Key, upper: Key, direction: Direction) -> Self {
        let done = cmp(&lower, &upper) == Ordering::Greater;
        Cursor {
            lower,
            upper,
            upper_open: false,
            direction,
            done,
            columns: ALL_COLUMNS,
            hint: NO_BLOCK,
        }
    }

    /// Starts again with another range. A range that starts in or just behind the page read last is
    /// found without a descent.
    pub fn seek(&mut self, lower: Key, upper: Key, direction: Direction) {
        let (hint, columns) = (self.hint, self.columns);
        *self = Cursor {
            hint,
            columns,
            ..Cursor::new(lower, upper, direction)
        };
    }

    /// Fills only these columns of the batches (bit `i` = column `i` of the key).
    pub fn set_columns(&mut self, mask: u8) {
        self.columns = mask;
    }

    /// Reads on: the visible keys of the next leaf that has any, in order, each once. Returns false at
    /// the end of the range, with an empty batch.
    ///
    /// # Errors
    /// Corrupt pages.
    pub fn next_batch<S: PageStore>(
        &mut self,
        tree: &Tree<S>,
        snapshot: &dyn Snapshot,
        batch: &mut Batch,
    ) -> Result<bool> {
        batch.clear(self.columns);
        while !self.done {
            self.step(tree, snapshot, batch)?;
            if !batch.is_empty() {
                if self.direction == Direction::Backward {
                    batch.reverse();
                }
                return Ok(true);
            }
            tree.store.interrupt();
        }
        Ok(false)
    }

    /// Counts the visible keys that are left, and ends the scan.
    ///
    /// # Errors
    /// Corrupt pages.
    pub fn count_rest<S: PageStore>(
        &mut self,
        tree: &Tree<S>,
        snapshot: &dyn Snapshot,
    ) -> Result<u64> {
        let mut counter = Counter(0);
        while !self.done {
            self.step(tree, snapshot, &mut counter)?;
            tree.store.interrupt();
        }
        Ok(counter.0)
    }

    /// Reads one leaf.
    fn step<S: PageStore>(
        &mut self,
        tree: &Tree<S>,
        snapshot: &dyn Snapshot,
        sink: &mut impl Sink,
    ) -> Result<()> {
        tree.store.stop("scan-next-leaf");
        let (page, block, frame) = match (self.direction, self.upper_open) {
            (Direction::Forward, _) => tree.leaf_holding(&self.lower, self.hint)?,
            (Direction::Backward, false) => tree.leaf_holding(&self.upper, self.hint)?,
            (Direction::Backward, true) => {
                tree.find(Target::Below(&self.upper), 0, &mut Path::new())?
            }
        };
        let leaf = LeafView::open(&page, block)?;
        let lower = Some(&self.lower).filter(|k| cmp(k, &frame.low) == Ordering::Greater);
        let upper = Some(&self.upper).filter(|k| !frame.ends_before(k));
        Walk::new(&leaf, snapshot).run(lower, upper, self.upper_open, sink)?;
        self.hint = block;
        match self.direction {
            Direction::Forward => match frame.high {
                Some(high) if cmp(&high, &self.upper) != Ordering::Greater => {
                    self.lower = high;
                    self.hint = frame.right;
                }
                _ => self.done = true,
            },
            Direction::Backward => {
                if cmp(&frame.low, &self.lower) == Ordering::Greater {
                    self.upper = frame.low;
                    self.upper_open = true;
                } else {
                    self.done = true;
                }
            }
        }
        Ok(())
    }
}

/// Part of the answer to many probes: rows `..end` of the batch (from the end of the span before)
/// belong to a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The number of the range.
    pub range: u32,
    /// The first row of the batch behind those of the range.
    pub end: u32,
}

/// Reads many ranges in ascending order of their lower bounds, locking each leaf once for all the
/// ranges in it. Plain data: holds nothing between calls.
#[derive(Clone, Debug)]
pub struct Probe {
    next: usize,
    /// Where to go on in range `next`, if it has been read in part.
    resume: Option<Key>,
    hint: BlockNo,
    columns: u8,
    /// The first group whose leaf the store has not been told of.
    ahead: usize,
    groups: Groups,
    /// Range `next` has been found to hold something.
    found: bool,
    /// The last group of ranges began close behind the range before it.
    close: bool,
}

/// How the ranges of a probe belong together.
#[derive(Clone, Copy, Debug)]
struct Groups {
    /// So many in a row are a group.
    size: usize,
    /// Those of a group without which the others are not asked for (bit `i` = the group's range `i`).
    required: u64,
    /// So many rows end a batch even within a group; `None`: it may end anywhere.
    most: Option<usize>,
}

/// The leaves of so many coming groups are announced to the store.
const GROUPS_AHEAD: usize = 6;

impl Probe {
    /// A probe that fills these columns (bit `i` = column `i` of the key), perhaps with [`COUNTS`].
    pub fn new(columns: u8) -> Self {
        let groups = Groups {
            size: 1,
            required: 0,
            most: None,
        };
        Self::with(columns, groups)
    }

    /// The same for ranges of which each `size` in a row are a group, best close to each other. Batches end between
    /// groups, unless they have `most` rows. When one of the `required` ranges (bit `i` = the group's range `i`, of the
    /// first 64) holds nothing, the rest of its group is passed over.
    pub fn grouped(columns: u8, size: usize, required: u64, most: usize) -> Self {
        let groups = Groups {
            size: size.max(1),
            required,
            most: Some(most),
        };
        Self::with(columns, groups)
    }

    fn with(columns: u8, groups: Groups) -> Self {
        Probe {
            next: 0,
            resume: None,
            hint: NO_BLOCK,
            columns,
            ahead: 0,
            groups,
            found: false,
            close: true,
        }
    }

    /// The group that comes next, and whether it has been read in part.
    pub fn place(&self) -> (usize, bool) {
        let size = self.groups.size;
        let begun = self.resume.is_some() || !self.next.is_multiple_of(size);
        (self.next / size, begun)
    }

    /// The range that comes next, and the key to go on from where it has been read in part.
    #[must_use]
    pub fn progress(&self) -> (usize, Option<Key>) {
        (self.next, self.resume)
    }

    /// Whether a batch of so many rows ends here.
    fn is_full(&self, rows: usize, enough: usize) -> bool {
        match self.groups.most {
            Some(most) if self.place().1 => rows >= most,
            _ => rows >= enough,
        }
    }

    /// Goes to the next range, or to the next group when this one was required and held nothing.
    fn advance(&mut self) {
        let Groups { size, required, .. } = self.groups;
        let place = self.next % size;
        let missing = !self.found && place < 64 && required >> place & 1 == 1;
        self.next += if missing { size - place } else { 1 };
        self.resume = None;
        self.found = false;
    }

    /// Goes on with the next range in another tree.
    pub fn change_tree(&mut self) {
        self.hint = NO_BLOCK;
    }

    /// Starts with a new list of ranges, keeping the place in the tree as a hint.
    pub fn restart(&mut self) {
        self.next = 0;
        self.resume = None;
        self.ahead = 0;
        self.found = false;
    }

    /// Tells the store which leaves come next, as far as that is remembered.
    fn look_ahead<S: PageStore>(&mut self, tree: &Tree<S>, ranges: &[(Key, Key)]) -> Result<()> {
        let size = self.groups.size;
        let group = self.next / size;
        let until = (ranges.len() / size).min(group + GROUPS_AHEAD);
        for group in until.min(self.ahead.max(group + 1))..until {
            if let Some(descent) = tree.cached_descent(&ranges[group * size].0)? {
                tree.store.expect(descent.place());
            }
        }
        self.ahead = until;
        Ok(())
    }

    /// Reads on in `ranges` until the batch holds at least `enough` rows or all ranges are done. Ranges are pairs
    /// of inclusive bounds, best with lower ones ascending; the list is the same in every call. `spans` tells
    /// which rows belong to which range. A range without rows has none, a range read in several pieces has
    /// several. Returns whether there is more.
    ///
    /// # Errors
    /// Corrupt pages.
    pub fn read<S: PageStore>(
        &mut self,
        tree: &Tree<S>,
        snapshot: &dyn Snapshot,
        ranges: &[(Key, Key)],
        enough: usize,
        batch: &mut Batch,
        spans: &mut Vec<Span>,
    ) -> Result<bool> {
        batch.clear(self.columns);
        spans.clear();
        self.append(tree, snapshot, ranges, enough, batch, spans)
    }

    /// As [`Self::read`], but adds rows and spans to those already there, which count as rows of the batch.
    ///
    /// # Errors
    /// Corrupt pages.
    pub fn append<S: PageStore>(
        &mut self,
        tree: &Tree<S>,
        snapshot: &dyn Snapshot,
        ranges: &[(Key, Key)],
        enough: usize,
        batch: &mut Batch,
        spans: &mut Vec<Span>,
    ) -> Result<bool> {
        let mut scratch = Default::default();
        while let Some(range) = ranges.get(self.next) {
            if self.is_full(batch.len(), enough) {
                return Ok(true);
            }
            tree.store.interrupt();
            self.look_ahead(tree, ranges)?;
            let start = self.resume.unwrap_or(range.0);
            let (page, block, frame) = tree.leaf_holding(&start, self.hint)?;
            self.hint = block;
            let leaf = LeafView::open(&page, block)?;
            let mut walk = Walk::new(&leaf, snapshot);
            walk.close = self.close;
            // What filters leave are many ranges, most of them empty and side by side.
            let mut gap: Option<Gap> = None;
            // The end of the range before.
            let mut end: Option<&Key> = None;
            // All the ranges that start in this leaf.
            while let Some((lower, upper)) = ranges.get(self.next) {
                let from = self.resume.as_ref().unwrap_or(lower);
                if gap.is_some_and(|gap| gap.holds(from, upper)) {
                    self.advance();
                    continue;
                }
                // The next range can start further left when the last one reached into this leaf.
                let here = frame.starts_at_or_before(from) && !frame.ends_before(from);
                if !here || self.is_full(batch.len(), enough) {
                    break;
                }
                if self.next.is_multiple_of(self.groups.size) {
                    walk.near = None;
                }
                if walk.near.is_none() && end.is_none_or(|end| cmp(end, from) != Ordering::Less) {
                    walk.behind = None;
                }
                let past_end = frame.ends_before(upper);
                let to = Some(upper).filter(|_| !past_end);
                let before = batch.len();
                walk.last = Last::None;
                if cmp(from, upper) != Ordering::Greater {
                    let start = Some(from).filter(|k| cmp(k, &frame.low) == Ordering::Greater);
                    if self.columns & COUNTS == 0 {
                        walk.run(start, to, false, batch)?;
                    } else {
                        let (from, scratch) = (before, &mut scratch);
                        let mut sink = Counted {
                            batch: &mut *batch,
                            from,
                            scratch,
                        };
                        walk.run(start, to, false, &mut sink)?;
                    }
                    end = Some(upper);
                    if let Some(place) = walk.missed {
                        gap = Some(leaf.gap(from, place, &frame));
                    }
                }
                if batch.len() > before {
                    self.found = true;
                    spans.push(Span {
                        range: self.next as u32,
                        end: batch.len() as u32,
                    });
                }
                if past_end && frame.high.is_some() {
                    self.resume = frame.high;
                    self.hint = frame.right;
                    break;
                }
                self.advance();
            }
            self.close = walk.close;
        }
        Ok(false)
    }
}

impl<S: PageStore> Tree<S> {
    /// The leaf whose range holds `key`, share-locked. It is the leaf that the remembered inner pages name (`hint`
    /// where there are none), its right neighbour, or what a descent finds.
    #[inline]
    pub(crate) fn leaf_holding(
        &self,
        key: &Key,
        hint: BlockNo,
    ) -> Result<(S::Read, BlockNo, Frame)> {
        let descent = self.cached_descent(key)?;
        self.leaf_by(descent.as_ref(), key, hint)
    }

    /// The same where the remembered inner pages have been asked already.
    #[inline]
    pub(crate) fn leaf_by(
        &self,
        descent: Option<&CachedDescent>,
        key: &Key,
        hint: BlockNo,
    ) -> Result<(S::Read, BlockNo, Frame)> {
        let mut block = descent.map_or(hint, CachedDescent::block);
        if descent.is_some() {
            self.store.stop("descent");
        }
        for _ in 0..2 {
            if block == NO_BLOCK {
                break;
            }
            let page = match descent {
                Some(descent) if descent.block() == block => {
                    self.store.read_at(block, descent.place())
                }
                _ => self.store.read(block),
            };
            let frame = page.frame(block)?;
            if !self.is_mine(&frame, 0) || !frame.starts_at_or_before(key) {
                break;
            }
            if !frame.ends_before(key) {
                if let Some(descent) = descent.filter(|descent| descent.block() == block) {
                    descent.was_right(self.store.place_of(&page));
                }
                return Ok((page, block, frame));
            }
            block = frame.right;
            if let Some(descent) = descent {
                descent.was_wrong();
            }
        }
        if let Some(descent) = descent {
            descent.was_wrong();
        }
        self.find(Target::Holding(key), 0, &mut Path::new())
    }

    /// Tells the store that the leaf of `key` will be read soon, where remembered inner pages say which leaf it is.
    ///
    /// # Errors
    /// Corrupt pages.
    pub fn expect(&self, key: &Key) -> Result<()> {
        if let Some(descent) = self.cached_descent(key)? {
            self.store.expect(descent.place());
        }
        Ok(())
    }

    /// Whether the snapshot sees the key.
    ///
    /// # Errors
    /// Corrupt pages.
    pub fn exists(&self, key: &Key, snapshot: &dyn Snapshot) -> Result<bool> {
        let (page, block, _) = self.leaf_holding(key, NO_BLOCK)?;
        let leaf = LeafView::open(&page, block)?;
        let mut counter = Counter(0);
        Walk::new(&leaf, snapshot).run(Some(key), Some(key), false, &mut counter)?;
        Ok(counter.0 > 0)
    }
}
