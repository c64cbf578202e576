//! Leaf pages: reading, small edits in place, and the codec between entries and pages.
//!
//! ```text
//! 0..24    PostgreSQL's page header
//! 24..56   leaf header (below)
//! 56..     base run: sorted, packed; then young bitmap, dead bitmap; then slots: u16 offsets of the
//!          tail records, sorted by place; pd_lower is their end
//! ..SPECIAL tail records, growing down; pd_upper is the start of the lowest
//! ```
//! A tail record is an entry of its own (insert) or a mark on a base entry (deletion or row lock).
//! Base entries never move while the page is only edited in place, so a record stores its place in the base run once.
//! For a mark it is the index of its entry, for an insert the number of base entries at or before its key. Slots are
//! sorted by `(place, key)`, an insert with place `p` coming after base entry `p - 1` and its mark, so a merged walk
//! compares numbers, not keys.

use crate::block::BlockNo;
use crate::error::{corrupt, Result};
use crate::key::{cmp, Key};
use crate::packed::{Run, RunPlan, MAX_RUN};
use crate::page::{Frame, Page, PageKind, FROZEN_XID, HEADER, NO_XID, SPECIAL};
use std::cmp::Ordering;

const L_SLOTS: usize = HEADER;
const L_COUNTED: usize = HEADER + 2;
const L_FLAGS: usize = HEADER + 4;
const L_SLOTS_AT: usize = HEADER + 6;
const L_XMIN: usize = HEADER + 8;
const L_CMIN: usize = HEADER + 12;
const L_XMAX: usize = HEADER + 16;
const L_CMAX: usize = HEADER + 20;
const L_YOUNG_AT: usize = HEADER + 24;
const L_DEAD_AT: usize = HEADER + 26;
const L_INSERTS: usize = HEADER + 28;
pub(crate) const RUN_AT: usize = HEADER + 32;

/// The page has a young bitmap: `base_xmin` holds for its base entries, the others are frozen.
const LF_YOUNG: u16 = 1;
/// The page has a dead bitmap: its base entries are deleted by `base_xmax`.
const LF_DEAD: u16 = 2;
/// Equal keys occur in the base run.
const LF_DUPLICATES: u16 = 4;

const R_INSERT: u8 = 1;
const R_MARK: u8 = 2;
/// The record's xmax is a row lock, not a deletion.
const RF_LOCK_ONLY: u8 = 1;

const INSERT_BYTES: usize = 52;
const MARK_BYTES: usize = 12;
const SLOT: usize = 2;
/// Bytes that one insert record takes from the free space.
pub(crate) const INSERT_COST: usize = INSERT_BYTES + SLOT;
/// Bytes that one mark record takes from the free space.
pub(crate) const MARK_COST: usize = MARK_BYTES + SLOT;
/// Bytes for run, bitmaps, slots and records.
pub(crate) const CAPACITY: usize = SPECIAL - RUN_AT;

/// One version of one quad.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The key in the order of the tree.
    pub key: Key,
    /// Inserting transaction; [`FROZEN_XID`] when visible to all.
    pub xmin: u32,
    /// Command of the insertion.
    pub cmin: u32,
    /// Deleting or locking transaction; 0 = none.
    pub xmax: u32,
    /// Command of the deletion.
    pub cmax: u32,
    /// `xmax` is a row lock only.
    pub lock_only: bool,
    /// The entry comes from the base run of a page.
    pub(crate) in_base: bool,
}

impl Entry {
    pub(crate) fn new(key: Key, xmin: u32, cmin: u32) -> Self {
        Entry {
            key,
            xmin,
            cmin,
            xmax: NO_XID,
            cmax: 0,
            lock_only: false,
            in_base: false,
        }
    }

    /// Forgets deletion and lock.
    pub(crate) fn clear_xmax(&mut self) {
        self.xmax = NO_XID;
        self.cmax = 0;
        self.lock_only = false;
    }
}

/// Where a version lives in its page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// A base entry, and the slot of its mark record if it has one.
    Base { index: usize, mark: Option<usize> },
    /// The insert record of a slot.
    Tail { slot: usize },
}

/// A tail record without its key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record {
    at: usize,
    pub insert: bool,
    pub lock_only: bool,
    pub place: usize,
    pub xmax: u32,
    pub cmax: u32,
    pub xmin: u32,
    pub cmin: u32,
}

impl Record {
    /// Sort key among slots: inserts with place `p` before the mark of entry `p`, after that of `p - 1`.
    fn rank(&self) -> usize {
        2 * self.place + usize::from(!self.insert)
    }
}

/// A leaf page, opened for reading.
#[derive(Clone, Copy)]
pub struct LeafView<'a> {
    page: &'a Page,
    block: BlockNo,
    flags: u16,
    slots_at: usize,
    slots: usize,
    young_at: usize,
    dead_at: usize,
    pub(crate) run: Run<'a, 4>,
}

impl<'a> LeafView<'a> {
    /// Opens a page that its frame says is a leaf.
    ///
    /// # Errors
    /// Corrupt when offsets lead outside the page.
    #[inline]
    pub fn open(page: &'a Page, block: BlockNo) -> Result<Self> {
        let run = Run::open(page, RUN_AT, block)?;
        let flags = page.u16(L_FLAGS);
        let view = LeafView {
            page,
            block,
            flags,
            slots_at: usize::from(page.u16(L_SLOTS_AT)),
            slots: usize::from(page.u16(L_SLOTS)),
            young_at: usize::from(page.u16(L_YOUNG_AT)),
            dead_at: usize::from(page.u16(L_DEAD_AT)),
            run,
        };
        let bitmap = run.len().div_ceil(8);
        if view.slots_at + SLOT * view.slots != page.lower()
            || view.slots_at < run.end()
            || (flags & LF_YOUNG != 0 && view.young_at + bitmap > SPECIAL)
            || (flags & LF_DEAD != 0 && view.dead_at + bitmap > SPECIAL)
        {
            return corrupt(block, "leaf header leads outside the page");
        }
        Ok(view)
    }

    /// Number of entries (versions) in the page.
    #[inline]
    pub fn entries(&self) -> usize {
        self.run.len() + self.inserts()
    }

    #[inline]
    pub(crate) fn inserts(&self) -> usize {
        usize::from(self.page.u16(L_INSERTS)).min(self.slots)
    }

    /// The number of entries last reported to the parent.
    pub(crate) fn counted(&self) -> usize {
        usize::from(self.page.u16(L_COUNTED))
    }

    #[inline]
    pub(crate) fn slots(&self) -> usize {
        self.slots
    }

    /// Bytes in use of the [`CAPACITY`].
    pub(crate) fn used(&self) -> usize {
        CAPACITY - self.page.room().min(CAPACITY)
    }

    #[inline]
    pub(crate) fn has_young_bitmap(&self) -> bool {
        self.flags & LF_YOUNG != 0
    }

    #[inline]
    pub(crate) fn has_dead_bitmap(&self) -> bool {
        self.flags & LF_DEAD != 0
    }

    #[inline]
    pub(crate) fn has_duplicates(&self) -> bool {
        self.flags & LF_DUPLICATES != 0
    }

    /// The transaction and command of the base entries that are not frozen.
    #[inline]
    pub(crate) fn base_xmin(&self) -> (u32, u32) {
        (self.page.u32(L_XMIN), self.page.u32(L_CMIN))
    }

    #[inline]
    pub(crate) fn base_xmax(&self) -> (u32, u32) {
        (self.page.u32(L_XMAX), self.page.u32(L_CMAX))
    }

    /// Whether base entry `i` is one that `base_xmin` holds for.
    #[inline]
    pub(crate) fn is_young(&self, i: usize) -> bool {
        self.flags & LF_YOUNG == 0 || self.page.0[self.young_at + i / 8] >> (i % 8) & 1 != 0
    }

    /// Whether `base_xmax` holds for base entry `i`.
    #[inline]
    pub(crate) fn is_dead(&self, i: usize) -> bool {
        self.flags & LF_DEAD != 0 && self.page.0[self.dead_at + i / 8] >> (i % 8) & 1 != 0
    }

    /// The record of a slot.
    #[inline]
    pub(crate) fn record(&self, slot: usize) -> Result<Record> {
        let at = usize::from(self.page.u16(self.slots_at + SLOT * slot));
        if !(RUN_AT..=SPECIAL - MARK_BYTES).contains(&at) {
            return corrupt(self.block, "slot leads outside the page");
        }
        let insert = match self.page.0[at] {
            R_INSERT if at <= SPECIAL - INSERT_BYTES => true,
            R_MARK => false,
            _ => return corrupt(self.block, "bad tail record"),
        };
        let place = usize::from(self.page.u16(at + 2));
        if place + usize::from(!insert) > self.run.len() {
            return corrupt(self.block, "tail record refers to no base entry");
        }
        let (xmin, cmin) = if insert {
            (self.page.u32(at + 12), self.page.u32(at + 16))
        } else {
            (NO_XID, 0)
        };
        Ok(Record {
            at,
            insert,
            lock_only: self.page.0[at + 1] & RF_LOCK_ONLY != 0,
            place,
            xmax: self.page.u32(at + 4),
            cmax: self.page.u32(at + 8),
            xmin,
            cmin,
        })
    }

    /// The key of an insert record.
    #[inline]
    pub(crate) fn record_key(&self, record: &Record) -> Key {
        self.page.key(record.at + 20)
    }

    /// The first slot whose record does not come before `(rank, key)`; with `after`, the first that
    /// comes after it.
    fn slot_bound(&self, rank: usize, key: Option<&Key>, after: bool) -> Result<usize> {
        let (mut lo, mut hi) = (0, self.slots);
        while lo < hi {
            let mid = lo + (hi - lo) / 2;
            let r = self.record(mid)?;
            let order = r.rank().cmp(&rank).then_with(|| match key {
                Some(k) if r.insert => cmp(&self.record_key(&r), k),
                _ => Ordering::Equal,
            });
            if order == Ordering::Less || (after && order == Ordering::Equal) {
                lo = mid + 1;
            } else {
                hi = mid;
            }
        }
        Ok(lo)
    }

    /// The first slot that does not come before inserts of `key`. `place` is the number of base entries before the key
    /// (`after` = false), or at or before it (`after` = true).
    pub(crate) fn slot_of_key(&self, place: usize, key: &Key, after: bool) -> Result<usize> {
        self.slot_bound(2 * place, Some(key), after)
    }

    /// The base entry `i` with everything known of it; `mark` is its mark record, if any.
    pub(crate) fn base_entry(&self, i: usize, mark: Option<&Record>) -> Entry {
        let (xmin, cmin) = self.base_visibility(i);
        let (xmax, cmax, lock_only) = match mark {
            Some(m) => (m.xmax, m.cmax, m.lock_only),
            None if self.is_dead(i) => (self.base_xmax().0, self.base_xmax().1, false),
            None => (NO_XID, 0, false),
        };
        Entry {
            key: self.run.key(i),
            xmin,
            cmin,
            xmax,
            cmax,
            lock_only,
            in_base: true,
        }
    }

    #[inline]
    fn base_visibility(&self, i: usize) -> (u32, u32) {
        if self.is_young(i) {
            self.base_xmin()
        } else {
            (FROZEN_XID, 0)
        }
    }

    pub(crate) fn tail_entry(&self, r: &Record) -> Entry {
        Entry {
            key: self.record_key(r),
            xmin: r.xmin,
            cmin: r.cmin,
            xmax: r.xmax,
            cmax: r.cmax,
            lock_only: r.lock_only,
            in_base: false,
        }
    }

    /// All versions of a key, with their places.
    pub(crate) fn versions(&self, key: &Key, out: &mut Vec<(Place, Entry)>) -> Result<()> {
        out.clear();
        let first = self.run.lower_bound(key, 0);
        let mut end = first;
        while end < self.run.len() && self.run.cmp(end, key) == Ordering::Equal {
            end += 1;
        }
        if self.slots == 0 {
            for index in first..end {
                out.push((
                    Place::Base { index, mark: None },
                    self.base_entry(index, None),
                ));
            }
            return Ok(());
        }
        for index in first..end {
            let slot = self.slot_bound(2 * index + 1, None, false)?;
            let mark = match slot < self.slots {
                true => Some(self.record(slot)?).filter(|r| !r.insert && r.place == index),
                false => None,
            };
            let entry = self.base_entry(index, mark.as_ref());
            out.push((
                Place::Base {
                    index,
                    mark: mark.map(|_| slot),
                },
                entry,
            ));
        }
        let mut slot = self.slot_of_key(end, key, false)?;
        while slot < self.slots {
            let r = self.record(slot)?;
            if !r.insert || r.place != end || self.record_key(&r) != *key {
                break;
            }
            out.push((Place::Tail { slot }, self.tail_entry(&r)));
            slot += 1;
        }
        Ok(())
    }

    /// All entries in key order.
    ///
    /// # Errors
    /// Corrupt when a tail record is malformed, or keys are not in order.
    pub fn decode(&self, out: &mut Vec<Entry>) -> Result<()> {
        out.clear();
        let n = self.run.len();
        out.reserve(n + self.slots);
        let columns: [Vec<u64>; 4] = std::array::from_fn(|c| self.run.column(c));
        let mut base = 0;
        let push_base = |to: usize, base: &mut usize, out: &mut Vec<Entry>| {
            while *base < to {
                let i = *base;
                let (xmin, cmin) = self.base_visibility(i);
                let (xmax, cmax) = if self.is_dead(i) {
                    self.base_xmax()
                } else {
                    (NO_XID, 0)
                };
                let key = [columns[0][i], columns[1][i], columns[2][i], columns[3][i]];
                out.push(Entry {
                    key,
                    xmin,
                    cmin,
                    xmax,
                    cmax,
                    lock_only: false,
                    in_base: true,
                });
                *base += 1;
            }
        };
        for slot in 0..self.slots {
            let r = self.record(slot)?;
            if r.insert {
                push_base(r.place, &mut base, out);
                out.push(self.tail_entry(&r));
            } else {
                push_base(r.place + 1, &mut base, out);
                if let Some(e) = out.last_mut().filter(|e| e.in_base) {
                    (e.xmax, e.cmax, e.lock_only) = (r.xmax, r.cmax, r.lock_only);
                }
            }
        }
        push_base(n, &mut base, out);
        if !out.is_sorted_by(|a, b| cmp(&a.key, &b.key) != Ordering::Greater) {
            return corrupt(self.block, "keys are out of order");
        }
        Ok(())
    }

    /// A fault in the layout of the page that reading it would not notice, if there is one.
    pub(crate) fn check_layout(&self) -> Result<Option<&'static str>> {
        let bitmap = self.run.len().div_ceil(8);
        let mut at = self.run.end();
        for (on, start) in [
            (self.has_young_bitmap(), self.young_at),
            (self.has_dead_bitmap(), self.dead_at),
        ] {
            if on && start != at {
                return Ok(Some("bitmap is not in its place"));
            }
            at += if on { bitmap } else { 0 };
        }
        if self.slots_at != at || at + SLOT * self.slots != self.page.lower() {
            return Ok(Some("slots are not in their place"));
        }
        if self.base_xmin().0 == NO_XID || (self.has_dead_bitmap() && self.base_xmax().0 == NO_XID)
        {
            return Ok(Some("base run without its transaction"));
        }
        let mut inserts = 0;
        let mut previous: Option<(usize, Option<Key>)> = None;
        for slot in 0..self.slots {
            let r = self.record(slot)?;
            inserts += usize::from(r.insert);
            if r.at < self.page.upper() {
                return Ok(Some("slot leads into the free space"));
            }
            let key = r.insert.then(|| self.record_key(&r));
            if let Some(k) = &key {
                if self.run.upper_bound(k, 0) != r.place {
                    return Ok(Some("tail record has the wrong place in the base run"));
                }
            }
            let ordered = match (&previous, &key) {
                (Some((rank, _)), None) => *rank < r.rank(),
                (Some((rank, Some(p))), Some(k)) if *rank == r.rank() => {
                    cmp(p, k) != Ordering::Greater
                }
                (Some((rank, _)), Some(_)) => *rank < r.rank(),
                (None, _) => true,
            };
            if !ordered {
                return Ok(Some("slots are out of order"));
            }
            if r.insert && r.xmin == NO_XID {
                return Ok(Some("tail record without inserting transaction"));
            }
            previous = Some((r.rank(), key));
        }
        if inserts != usize::from(self.page.u16(L_INSERTS)) {
            return Ok(Some("number of tail records is wrong"));
        }
        let duplicates =
            (1..self.run.len()).any(|i| self.run.cmp(i, &self.run.key(i - 1)) == Ordering::Equal);
        if duplicates && !self.has_duplicates() {
            return Ok(Some("equal keys in the base run are not flagged"));
        }
        Ok(None)
    }

    /// Number of entries with a key less than `key` (`or_equal`: or equal to it).
    pub(crate) fn rank(&self, key: &Key, or_equal: bool) -> Result<usize> {
        let place = if or_equal {
            self.run.upper_bound(key, 0)
        } else {
            self.run.lower_bound(key, 0)
        };
        if self.slots == 0 {
            return Ok(place);
        }
        // The inserts before `key`: those with a smaller place, and among equal places by key. An
        // insert equal to a base entry has a greater place than that entry's lower bound.
        let slot = self.slot_of_key(place, key, or_equal)?;
        let mut before = 0;
        for s in 0..slot {
            before += usize::from(self.record(s)?.insert);
        }
        Ok(place + before)
    }

    /// Number of entries with a key before those of a range (inclusive), and with one before its end.
    pub(crate) fn ranks(&self, low: &Key, high: &Key) -> Result<(usize, usize)> {
        let before = self.rank(low, false)?;
        let up_to = if self.slots == 0 {
            self.run.upper_bound_near(high, before)
        } else {
            self.rank(high, true)?
        };
        Ok((before, up_to))
    }
}

/// Marks records as changed or appends one. `page` is an image of a leaf that opens without error.
pub(crate) mod edit {
    use super::*;

    /// Appends an insert record, if there is room.
    pub fn insert(
        page: &mut Page,
        block: BlockNo,
        key: &Key,
        xmin: u32,
        cmin: u32,
    ) -> Result<bool> {
        if page.room() < INSERT_COST {
            return Ok(false);
        }
        let leaf = LeafView::open(page, block)?;
        let place = leaf.run.upper_bound(key, 0);
        let slot = leaf.slot_of_key(place, key, true)?;
        let inserts = leaf.inserts() as u16;
        let at = push_record(page, slot, INSERT_BYTES);
        page.0[at] = R_INSERT;
        page.0[at + 1] = 0;
        page.put_u16(at + 2, place as u16);
        page.put_u32(at + 4, NO_XID);
        page.put_u32(at + 8, 0);
        page.put_u32(at + 12, xmin);
        page.put_u32(at + 16, cmin);
        page.put_key(at + 20, key);
        page.put_u16(L_INSERTS, inserts + 1);
        Ok(true)
    }

    /// Makes room for a record of `bytes` with the given slot number; returns where it goes.
    fn push_record(page: &mut Page, slot: usize, bytes: usize) -> usize {
        let at = page.upper() - bytes;
        page.set_upper(at);
        let slots = usize::from(page.u16(L_SLOTS));
        let first = usize::from(page.u16(L_SLOTS_AT));
        let (from, end) = (first + SLOT * slot, first + SLOT * slots);
        page.0.copy_within(from..end, from + SLOT);
        page.put_u16(from, at as u16);
        page.put_u16(L_SLOTS, slots as u16 + 1);
        page.set_lower(end + SLOT);
        at
    }

    /// Sets the xmax of a version (`xmax` = 0 clears it). `place` comes from
    /// [`LeafView::versions`] of this very image. Returns false when there is no room for a mark.
    pub fn set_xmax(
        page: &mut Page,
        block: BlockNo,
        place: Place,
        xmax: u32,
        cmax: u32,
        lock_only: bool,
    ) -> Result<bool> {
        let leaf = LeafView::open(page, block)?;
        let slot = match place {
            Place::Tail { slot } => Some(slot),
            Place::Base { mark, .. } => mark,
        };
        if let Some(slot) = slot {
            let at = leaf.record(slot)?.at;
            write_xmax(page, at, xmax, cmax, lock_only);
            return Ok(true);
        }
        let Place::Base { index, .. } = place else {
            return Ok(false);
        };
        let by_bitmap = leaf.has_dead_bitmap() && leaf.base_xmax() == (xmax, cmax) && !lock_only;
        let clear_bit = leaf.is_dead(index);
        let bit = leaf.dead_at + index / 8;
        if by_bitmap {
            page.0[bit] |= 1 << (index % 8);
            return Ok(true);
        }
        if xmax != NO_XID {
            if page.room() < MARK_COST {
                return Ok(false);
            }
            let slot = leaf.slot_bound(2 * index + 1, None, false)?;
            let at = push_record(page, slot, MARK_BYTES);
            page.0[at] = R_MARK;
            page.put_u16(at + 2, index as u16);
            write_xmax(page, at, xmax, cmax, lock_only);
        }
        if clear_bit {
            page.0[bit] &= !(1 << (index % 8));
        }
        Ok(true)
    }

    /// Gives an insert record, which its own transaction has deleted, a new life since command `cmin`.
    pub fn revive(page: &mut Page, block: BlockNo, slot: usize, cmin: u32) -> Result<()> {
        let at = LeafView::open(page, block)?.record(slot)?.at;
        write_xmax(page, at, NO_XID, 0, false);
        page.put_u32(at + 16, cmin);
        Ok(())
    }

    fn write_xmax(page: &mut Page, at: usize, xmax: u32, cmax: u32, lock_only: bool) {
        page.0[at + 1] = if lock_only { RF_LOCK_ONLY } else { 0 };
        page.put_u32(at + 4, xmax);
        page.put_u32(at + 8, cmax);
    }

    /// Notes the number of entries that the parent has been told.
    pub fn set_counted(page: &mut Page, counted: usize) {
        page.put_u16(L_COUNTED, counted as u16);
    }
}

/// Reusable memory of the encoder.
#[derive(Default)]
pub(crate) struct Scratch {
    columns: [Vec<u64>; 4],
    sort: Vec<u64>,
    pairs: Vec<((u32, u32), usize)>,
}

/// How a page of given entries is going to look.
struct LeafPlan {
    run: RunPlan<4>,
    base: usize,
    young: (u32, u32),
    young_bitmap: bool,
    dead: (u32, u32),
    dead_bitmap: bool,
    duplicates: bool,
    inserts: usize,
    marks: usize,
    /// Entries that are not in the base of their old page stay tail records.
    keep_tail: bool,
}

/// The most frequent pair, given the pairs of the entries in question.
fn most_frequent(
    pairs: &mut Vec<((u32, u32), usize)>,
    each: impl Iterator<Item = (u32, u32)>,
) -> ((u32, u32), usize) {
    pairs.clear();
    for p in each {
        match pairs.iter_mut().find(|(q, _)| *q == p) {
            Some((_, n)) => *n += 1,
            None => pairs.push((p, 1)),
        }
    }
    pairs
        .iter()
        .copied()
        .max_by_key(|(_, n)| *n)
        .unwrap_or(((NO_XID, 0), 0))
}

impl LeafPlan {
    fn goes_to_base(&self, e: &Entry) -> bool {
        (!self.keep_tail || e.in_base) && (e.xmin == FROZEN_XID || (e.xmin, e.cmin) == self.young)
    }

    fn dead_by_bitmap(&self, e: &Entry) -> bool {
        self.dead_bitmap && (e.xmax, e.cmax) == self.dead && !e.lock_only && e.xmax != NO_XID
    }

    /// Plans the page; leaves the base columns in `scratch`.
    fn new(entries: &[Entry], keep_tail: bool, scratch: &mut Scratch) -> Self {
        let eligible = |e: &&Entry| !keep_tail || e.in_base;
        let (young, young_count) = most_frequent(
            &mut scratch.pairs,
            entries
                .iter()
                .filter(eligible)
                .filter(|e| e.xmin != FROZEN_XID)
                .map(|e| (e.xmin, e.cmin)),
        );
        let none = ((FROZEN_XID, 0), 0);
        let (young, young_count) = if young_count > 0 {
            (young, young_count)
        } else {
            none
        };
        let mut plan = LeafPlan {
            run: RunPlan::new([&[], &[], &[], &[]], &mut scratch.sort),
            base: 0,
            young,
            young_bitmap: false,
            dead: (NO_XID, 0),
            dead_bitmap: false,
            duplicates: false,
            inserts: 0,
            marks: 0,
            keep_tail,
        };
        for c in &mut scratch.columns {
            c.clear();
        }
        let mut previous: Option<&Key> = None;
        let (mut duplicates, mut deleted) = (false, false);
        for e in entries.iter().filter(|e| plan.goes_to_base(e)) {
            for (c, v) in scratch.columns.iter_mut().zip(e.key) {
                c.push(v);
            }
            duplicates |= previous == Some(&e.key);
            previous = Some(&e.key);
            deleted |= e.xmax != NO_XID;
        }
        plan.duplicates = duplicates;
        plan.base = scratch.columns[0].len();
        plan.inserts = entries.len() - plan.base;
        plan.young_bitmap = young_count > 0 && young_count < plan.base;
        if deleted {
            plan.note_deleted(entries, scratch);
        }
        let [a, b, c, d] = &scratch.columns;
        plan.run = RunPlan::new([a, b, c, d], &mut scratch.sort);
        plan
    }

    /// Decides how the base entries that are deleted or locked are told from the others.
    fn note_deleted(&mut self, entries: &[Entry], scratch: &mut Scratch) {
        let (dead, dead_count) = most_frequent(
            &mut scratch.pairs,
            entries
                .iter()
                .filter(|e| e.xmax != NO_XID && !e.lock_only && self.goes_to_base(e))
                .map(|e| (e.xmax, e.cmax)),
        );
        if dead_count * MARK_COST > self.base.div_ceil(8) {
            self.dead_bitmap = true;
            self.dead = dead;
        }
        self.marks = entries
            .iter()
            .filter(|e| e.xmax != NO_XID && self.goes_to_base(e) && !self.dead_by_bitmap(e))
            .count();
    }

    fn bytes(&self) -> usize {
        let bitmaps = usize::from(self.young_bitmap) + usize::from(self.dead_bitmap);
        self.run.bytes()
            + bitmaps * self.base.div_ceil(8)
            + self.inserts * INSERT_COST
            + self.marks * MARK_COST
    }

    fn fits(&self) -> bool {
        self.base <= MAX_RUN && self.bytes() <= CAPACITY
    }

    /// Writes the page from the base columns and the entries.
    fn write(&self, entries: &[Entry], columns: [&[u64]; 4], frame: &Frame) -> Box<Page> {
        let mut page = Page::zeroed();
        page.init(frame);
        self.run.write(columns, &mut page, RUN_AT);
        let mut at = RUN_AT + self.run.bytes();
        let bitmap = self.base.div_ceil(8);
        let (young_at, dead_at) = (at, at + if self.young_bitmap { bitmap } else { 0 });
        at = dead_at + if self.dead_bitmap { bitmap } else { 0 };
        let flag = |on: bool, f: u16| if on { f } else { 0 };
        page.put_u16(
            L_FLAGS,
            flag(self.young_bitmap, LF_YOUNG)
                | flag(self.dead_bitmap, LF_DEAD)
                | flag(self.duplicates, LF_DUPLICATES),
        );
        page.put_u32(L_XMIN, self.young.0);
        page.put_u32(L_CMIN, self.young.1);
        page.put_u32(L_XMAX, self.dead.0);
        page.put_u32(L_CMAX, self.dead.1);
        page.put_u16(L_YOUNG_AT, young_at as u16);
        page.put_u16(L_DEAD_AT, dead_at as u16);
        page.put_u16(L_SLOTS_AT, at as u16);
        page.put_u16(L_SLOTS, (self.inserts + self.marks) as u16);
        page.put_u16(L_INSERTS, self.inserts as u16);
        let mut upper = SPECIAL;
        let mut base = 0;
        // Among the versions of a key those in the base come first.
        let groups = entries.chunk_by(|a, b| a.key == b.key);
        let placed = groups.flat_map(|g| {
            let base = g.iter().filter(|e| self.goes_to_base(e));
            base.chain(g.iter().filter(|e| !self.goes_to_base(e)))
        });
        for e in placed {
            if self.goes_to_base(e) {
                let (byte, bit) = (base / 8, 1 << (base % 8));
                if self.young_bitmap && e.xmin != FROZEN_XID {
                    page.0[young_at + byte] |= bit;
                }
                if self.dead_by_bitmap(e) {
                    page.0[dead_at + byte] |= bit;
                } else if e.xmax != NO_XID {
                    upper -= MARK_BYTES;
                    page.0[upper] = R_MARK;
                    page.put_u16(upper + 2, base as u16);
                }
                base += 1;
                if e.xmax == NO_XID || self.dead_by_bitmap(e) {
                    continue;
                }
            } else {
                upper -= INSERT_BYTES;
                page.0[upper] = R_INSERT;
                page.put_u16(upper + 2, base as u16);
                page.put_u32(upper + 12, e.xmin);
                page.put_u32(upper + 16, e.cmin);
                page.put_key(upper + 20, &e.key);
            }
            page.0[upper + 1] = if e.lock_only { RF_LOCK_ONLY } else { 0 };
            page.put_u32(upper + 4, e.xmax);
            page.put_u32(upper + 8, e.cmax);
            page.put_u16(at, upper as u16);
            at += SLOT;
        }
        page.set_lower(at);
        page.set_upper(upper);
        page
    }
}

/// Bytes (of [`CAPACITY`]) that a page of these entries takes at best; may be more than fits.
pub(crate) fn encoded_bytes(entries: &[Entry], scratch: &mut Scratch) -> usize {
    LeafPlan::new(entries, false, scratch).bytes()
}

/// Encodes entries (sorted by key; frame and counts as given) as a page, or `None` when they do not
/// fit.
///
/// Entries visible to all, and those of one transaction and command, go to the base run. Where the tail entries of the
/// old page would widen the packed columns too much, they stay in the tail. So entries that were on one page fit on one
/// page, and so does any part of them, but for a base run of fewer than eight entries, whose columns have one frame.
pub(crate) fn encode_leaf(
    entries: &[Entry],
    frame: &Frame,
    scratch: &mut Scratch,
) -> Option<Box<Page>> {
    encode_leaf_within(entries, frame, usize::MAX, scratch)
}

/// The same, or `None` when the entries take more than `limit` bytes, as [`encoded_bytes`] counts them.
pub(crate) fn encode_leaf_within(
    entries: &[Entry],
    frame: &Frame,
    limit: usize,
    scratch: &mut Scratch,
) -> Option<Box<Page>> {
    let mut plan = LeafPlan::new(entries, false, scratch);
    if plan.bytes() > limit {
        return None;
    }
    if !plan.fits() && entries.iter().any(|e| e.in_base) {
        plan = LeafPlan::new(entries, true, scratch);
    }
    if !plan.fits() {
        return None;
    }
    let [a, b, c, d] = &scratch.columns;
    let mut page = plan.write(entries, [a, b, c, d], frame);
    edit::set_counted(&mut page, entries.len());
    Some(page)
}

/// Bytes (of [`CAPACITY`]) that a page of these keys takes when one transaction inserted them all.
pub(crate) fn uniform_plan(columns: [&[u64]; 4], sort: &mut Vec<u64>) -> (RunPlan<4>, usize) {
    let run = RunPlan::new(columns, sort);
    let bytes = run.bytes();
    (run, bytes)
}

/// Encodes a page of keys that one transaction inserted in one command, by a plan that fits.
pub(crate) fn encode_uniform(
    run: RunPlan<4>,
    columns: [&[u64]; 4],
    xmin: (u32, u32),
    frame: &Frame,
) -> Box<Page> {
    let n = columns[0].len();
    let plan = LeafPlan {
        run,
        base: n,
        young: xmin,
        young_bitmap: false,
        dead: (NO_XID, 0),
        dead_bitmap: false,
        duplicates: false,
        inserts: 0,
        marks: 0,
        keep_tail: false,
    };
    let mut page = plan.write(&[], columns, frame);
    edit::set_counted(&mut page, n);
    page
}

/// An empty leaf.
pub(crate) fn empty_leaf(frame: &Frame) -> Box<Page> {
    debug_assert_eq!(frame.kind, PageKind::Leaf);
    let none: [&[u64]; 4] = [&[]; 4];
    let (run, _) = uniform_plan(none, &mut Vec::new());
    encode_uniform(run, none, (FROZEN_XID, 0), frame)
}
