//! WAL deltas: descriptions of page changes that are shorter than the bytes they change. [`redo`] applies a delta to
//! the page as it was before, with exactly the outcome that was described.
//!
//! The first byte of a delta is its kind:
//! - `EDITS`: small edits of a leaf, one after the other;
//! - `LEAF`, `INNER`: a page encoded anew from the entries or children it had. A script says what was kept, dropped,
//!   frozen, changed and added. The new upper fence, right link and flags come with it. So pruning costs bytes for what
//!   it decides, not for what it moves;
//! - `BYTES`: the bytes that differ.
//!
//! Encoding a page is a function of its entries and its frame, so deltas hold as long as the encoder stays the same. A
//! change of the encoder is a change of the log's format, too.

use crate::block::BlockNo;
use crate::error::{corrupt, Result};
use crate::inner::{encode_inner, Child, InnerView};
use crate::key::Key;
use crate::leaf::{edit, encode_leaf, Entry, LeafView, Place, Scratch};
use crate::page::{Frame, Page, PageKind, FROZEN_XID, F_HIGH_INF, HEADER, NO_XID, PAGE_SIZE};

const EDITS: u8 = 1;
const LEAF: u8 = 2;
const INNER: u8 = 3;
const BYTES: u8 = 4;

const E_INSERT: u8 = 1;
const E_XMAX: u8 = 2;
const E_REVIVE: u8 = 3;

/// Operations of a script, in the low two bits of a number whose other bits say how often.
const KEEP: u64 = 0;
const DROP: u64 = 1;
/// Of entries: visible to everyone now.
const FREEZE: u64 = 2;
/// Of entries: [`ADD`] or [`CHANGE`] instead of a number.
const OTHER: u64 = 3;
const ADD: u64 = 0;
const CHANGE: u64 = 1;
/// Of children.
const ADD_CHILD: u64 = 2;
const COUNT_CHILD: u64 = 3;

/// Differing bytes this close together go into one piece.
const MAX_GAP_BYTES: usize = 4;
/// Bytes of `pd_lsn` and `pd_checksum` at the head of a page. The buffer manager and WAL write them, so they are no
/// part of a page's contents, nor of any delta.
pub const PAGE_STAMP_BYTES: usize = 10;

/// A leaf image being edited, together with the delta that says how.
pub(crate) struct Editor {
    image: Box<Page>,
    block: BlockNo,
    delta: Vec<u8>,
}

impl Editor {
    pub fn new(page: &Page, block: BlockNo) -> Self {
        Editor {
            image: Box::new(page.clone()),
            block,
            delta: vec![EDITS],
        }
    }

    pub fn image(&self) -> &Page {
        &self.image
    }

    /// The image and its delta.
    pub fn finish(self) -> (Box<Page>, Vec<u8>) {
        (self.image, self.delta)
    }

    /// As [`edit::insert`].
    pub fn insert(&mut self, key: &Key, xmin: u32, cmin: u32) -> Result<bool> {
        let done = edit::insert(&mut self.image, self.block, key, xmin, cmin)?;
        if done {
            self.delta.push(E_INSERT);
            put_key(&mut self.delta, key);
            put(&mut self.delta, xmin);
            put(&mut self.delta, cmin);
        }
        Ok(done)
    }

    /// As [`edit::set_xmax`].
    pub fn set_xmax(
        &mut self,
        place: Place,
        xmax: u32,
        cmax: u32,
        lock_only: bool,
    ) -> Result<bool> {
        let done = edit::set_xmax(&mut self.image, self.block, place, xmax, cmax, lock_only)?;
        if done {
            self.delta.push(E_XMAX);
            put_place(&mut self.delta, place);
            put(&mut self.delta, xmax);
            put(&mut self.delta, cmax);
            put(&mut self.delta, lock_only);
        }
        Ok(done)
    }

    /// As [`edit::revive`].
    pub fn revive(&mut self, slot: usize, cmin: u32) -> Result<()> {
        edit::revive(&mut self.image, self.block, slot, cmin)?;
        self.delta.push(E_REVIVE);
        put(&mut self.delta, slot as u64);
        put(&mut self.delta, cmin);
        Ok(())
    }
}

/// The delta from a leaf that holds the entries `old` to `image`, which holds `entries`; none when there is no short
/// one.
pub(crate) fn leaf_delta(
    old: &[Entry],
    block: BlockNo,
    entries: &[Entry],
    image: &Page,
) -> Result<Option<Vec<u8>>> {
    let most = used(image) / 2;
    // Where many entries are added, it is known beforehand that no delta is short. What was in the tail of the old
    // page, and may be kept, is not added.
    let kept: usize = old.iter().filter(|e| !e.in_base).map(added_bytes).sum();
    let added = entries.iter().filter(|e| !e.in_base).map(added_bytes);
    if added.sum::<usize>() > most + kept {
        return Ok(None);
    }
    let mut delta = vec![LEAF];
    put_frame(&mut delta, &image.frame(block)?);
    put(&mut delta, LeafView::open(image, block)?.counted() as u64);
    let mut script = Script::new(&mut delta);
    let mut rest = old;
    for e in entries {
        if script.bytes() > most {
            return Ok(None);
        }
        // The versions of a key keep their order, but for those that go.
        let same = rest
            .iter()
            .position(|o| o.key >= e.key)
            .unwrap_or(rest.len());
        let of_key = rest[same..].iter().take_while(|o| o.key == e.key);
        let from = of_key
            .clone()
            .position(|o| o == e)
            .or_else(|| of_key.clone().position(|o| o.in_base == e.in_base));
        let Some(at) = from.map(|i| same + i) else {
            if e.in_base {
                return Ok(None);
            }
            script.run(DROP, same);
            rest = &rest[same..];
            script.entry(ADD, e);
            continue;
        };
        script.run(DROP, at);
        let all_visible = Entry {
            xmin: FROZEN_XID,
            cmin: 0,
            ..rest[at]
        };
        if rest[at] == *e {
            script.run(KEEP, 1);
        } else if all_visible == *e && e.xmax == NO_XID {
            script.run(FREEZE, 1);
        } else {
            script.entry(CHANGE, e);
        }
        rest = &rest[at + 1..];
    }
    script.run(DROP, rest.len());
    script.end();
    Ok(Some(delta).filter(|s| s.len() * 2 < used(image)))
}

/// The delta from `page` to `image`, an inner page that holds `children`; none when there is no short one.
pub(crate) fn inner_delta(
    page: &Page,
    block: BlockNo,
    children: &[Child],
    image: &Page,
) -> Result<Option<Vec<u8>>> {
    let old = InnerView::open(page, block)?.decode()?;
    let mut delta = vec![INNER];
    put_frame(&mut delta, &image.frame(block)?);
    let mut script = Script::new(&mut delta);
    let mut rest = old.as_slice();
    for child in children {
        let at = rest
            .iter()
            .position(|o| o.low >= child.low)
            .unwrap_or(rest.len());
        script.run(DROP, at);
        rest = &rest[at..];
        match rest.first() {
            Some(o) if o.low == child.low && o.block == child.block => {
                if o.marks != child.marks {
                    return Ok(None);
                }
                if o.count == child.count {
                    script.run(KEEP, 1);
                } else {
                    script.count(child.count);
                }
                rest = &rest[1..];
            }
            _ if child.marks != 0 => return Ok(None),
            _ => script.child(child),
        }
    }
    script.run(DROP, rest.len());
    script.end();
    Ok(Some(delta).filter(|s| s.len() * 2 < used(image)))
}

/// The delta that sets the bytes in which `image` differs from `page`; none when they are many.
pub(crate) fn byte_delta(page: &Page, image: &Page) -> Option<Vec<u8>> {
    let hole = image.lower()..image.upper();
    // What lies in the hole of the old page is not to be relied upon.
    let unknown = page.lower().max(HEADER)..page.upper();
    let differs = |i: usize| page.0[i] != image.0[i] || unknown.contains(&i);
    let mut delta = vec![BYTES];
    for part in [PAGE_STAMP_BYTES..hole.start, hole.end..PAGE_SIZE] {
        let mut at = part.start;
        while let Some(from) = (at..part.end).find(|&i| differs(i)) {
            let mut end = from + 1;
            while let Some(next) = (end..part.end.min(end + MAX_GAP_BYTES)).find(|&i| differs(i)) {
                end = next + 1;
            }
            put(&mut delta, from as u64);
            put(&mut delta, (end - from) as u64);
            delta.extend_from_slice(&image.0[from..end]);
            at = end;
        }
        if delta.len() * 2 >= used(image) {
            return None;
        }
    }
    Some(delta)
}

/// Bytes of a page that a whole image takes.
fn used(image: &Page) -> usize {
    PAGE_SIZE - image.room()
}

/// Applies a delta to a page that holds what it held when the delta was made. `pd_lsn` and `pd_checksum` stay as they
/// are; the hole is filled with zeroes.
///
/// # Errors
/// Corrupt when the delta does not fit the page.
pub fn redo(page: &mut Page, block: BlockNo, delta: &[u8]) -> Result<()> {
    let Some((&kind, rest)) = delta.split_first() else {
        return corrupt(block, "the log has no delta for the page");
    };
    let mut bytes = Bytes { rest, block };
    match kind {
        EDITS => redo_edits(page, &mut bytes)?,
        LEAF => redo_leaf(page, &mut bytes)?,
        INNER => redo_inner(page, &mut bytes)?,
        BYTES => redo_bytes(page, &mut bytes)?,
        _ => return corrupt(block, "unknown delta in the log"),
    }
    page.clear_hole();
    Ok(())
}

/// The frame of a page that has to be of this kind.
fn frame_of(page: &Page, block: BlockNo, kind: PageKind) -> Result<Frame> {
    let frame = page.frame(block)?;
    if frame.kind != kind {
        return corrupt(block, "a delta in the log is for another kind of page");
    }
    Ok(frame)
}

fn redo_edits(page: &mut Page, bytes: &mut Bytes<'_>) -> Result<()> {
    let block = bytes.block;
    frame_of(page, block, PageKind::Leaf)?;
    while !bytes.rest.is_empty() {
        let fits = match bytes.byte()? {
            E_INSERT => {
                let key = bytes.key()?;
                edit::insert(page, block, &key, bytes.u32()?, bytes.u32()?)?
            }
            E_XMAX => {
                let place = bytes.place()?;
                let (xmax, cmax, lock_only) = (bytes.u32()?, bytes.u32()?, bytes.number()? != 0);
                edit::set_xmax(page, block, place, xmax, cmax, lock_only)?
            }
            E_REVIVE => {
                let slot = bytes.number()? as usize;
                edit::revive(page, block, slot, bytes.u32()?)?;
                true
            }
            _ => false,
        };
        if !fits {
            return corrupt(block, "an edit in the log does not fit the page");
        }
    }
    Ok(())
}

fn redo_leaf(page: &mut Page, bytes: &mut Bytes<'_>) -> Result<()> {
    let block = bytes.block;
    let frame = bytes.frame(&frame_of(page, block, PageKind::Leaf)?)?;
    let counted = bytes.number()? as usize;
    let mut old = Vec::new();
    LeafView::open(page, block)?.decode(&mut old)?;
    let mut rest = old.into_iter();
    let mut entries = Vec::new();
    while !bytes.rest.is_empty() {
        let number = bytes.number()?;
        let times = (number >> 2) as usize;
        if number & 3 != OTHER && times > rest.len() {
            return corrupt(
                block,
                "a script in the log is of more entries than the page has",
            );
        }
        match number & 3 {
            KEEP => entries.extend(rest.by_ref().take(times)),
            DROP => rest.by_ref().take(times).for_each(drop),
            FREEZE => entries.extend(rest.by_ref().take(times).map(|e| Entry {
                xmin: FROZEN_XID,
                cmin: 0,
                ..e
            })),
            _ if number >> 2 == ADD => {
                let key = bytes.key()?;
                entries.push(bytes.visibility(Entry::new(key, NO_XID, 0))?);
            }
            _ => match rest.next() {
                Some(e) => entries.push(bytes.visibility(e)?),
                None => return corrupt(block, "a change in the log is of no entry of the page"),
            },
        }
    }
    if rest.len() > 0 {
        return corrupt(block, "a script in the log leaves entries out");
    }
    let Some(mut image) = encode_leaf(&entries, &frame, &mut Scratch::default()) else {
        return corrupt(block, "a leaf in the log does not fit in a page");
    };
    edit::set_counted(&mut image, counted);
    replace(page, &mut image, &frame);
    Ok(())
}

fn redo_inner(page: &mut Page, bytes: &mut Bytes<'_>) -> Result<()> {
    let block = bytes.block;
    let frame = bytes.frame(&frame_of(page, block, PageKind::Inner)?)?;
    let mut rest = InnerView::open(page, block)?.decode()?.into_iter();
    let mut children = Vec::new();
    while !bytes.rest.is_empty() {
        let number = bytes.number()?;
        let times = (number >> 2) as usize;
        if matches!(number & 3, KEEP | DROP) && times > rest.len() {
            return corrupt(
                block,
                "a script in the log is of more children than the page has",
            );
        }
        match number & 3 {
            KEEP => children.extend(rest.by_ref().take(times)),
            DROP => rest.by_ref().take(times).for_each(drop),
            ADD_CHILD => children.push(Child {
                low: bytes.key()?,
                block: bytes.u32()?,
                count: bytes.number()?,
                marks: 0,
            }),
            _ => match rest.next() {
                Some(child) => children.push(Child {
                    count: bytes.number()?,
                    ..child
                }),
                None => return corrupt(block, "a count in the log is of no child of the page"),
            },
        }
    }
    if rest.len() > 0 {
        return corrupt(block, "a script in the log leaves children out");
    }
    let Some(mut image) = encode_inner(&children, &frame) else {
        return corrupt(block, "an inner page in the log does not fit in a page");
    };
    replace(page, &mut image, &frame);
    Ok(())
}

/// Puts an image with its links and flags in the place of a page.
fn replace(page: &mut Page, image: &mut Page, frame: &Frame) {
    image.set_right(frame.right);
    image.set_flags(frame.flags);
    page.0[PAGE_STAMP_BYTES..].copy_from_slice(&image.0[PAGE_STAMP_BYTES..]);
}

fn redo_bytes(page: &mut Page, bytes: &mut Bytes<'_>) -> Result<()> {
    while !bytes.rest.is_empty() {
        let (from, len) = (bytes.number()? as usize, bytes.number()? as usize);
        let piece = bytes.take(len)?;
        match page.0.get_mut(from..from.saturating_add(len)) {
            Some(place) => place.copy_from_slice(piece),
            None => return corrupt(bytes.block, "bytes in the log lead outside the page"),
        }
    }
    Ok(())
}

/// Writes a script, putting runs of one operation together.
struct Script<'a> {
    out: &'a mut Vec<u8>,
    operation: u64,
    times: usize,
}

impl<'a> Script<'a> {
    fn new(out: &'a mut Vec<u8>) -> Self {
        Script {
            out,
            operation: KEEP,
            times: 0,
        }
    }

    /// Bytes written so far, with all before the script.
    fn bytes(&self) -> usize {
        self.out.len()
    }

    fn run(&mut self, operation: u64, times: usize) {
        if times > 0 && operation != self.operation {
            self.end();
            self.operation = operation;
        }
        self.times += times;
    }

    fn end(&mut self) {
        if self.times > 0 {
            put(self.out, (self.times as u64) << 2 | self.operation);
        }
        self.times = 0;
    }

    fn entry(&mut self, what: u64, e: &Entry) {
        self.end();
        put(self.out, what << 2 | OTHER);
        if what == ADD {
            put_key(self.out, &e.key);
        }
        for number in [e.xmin, e.cmin, e.xmax, e.cmax, u32::from(e.lock_only)] {
            put(self.out, number);
        }
    }

    fn child(&mut self, child: &Child) {
        self.end();
        put(self.out, ADD_CHILD);
        put_key(self.out, &child.low);
        put(self.out, child.block);
        put(self.out, child.count);
    }

    fn count(&mut self, count: u64) {
        self.end();
        put(self.out, COUNT_CHILD);
        put(self.out, count);
    }
}

/// A number, seven bits a byte, low ones first.
fn put(out: &mut Vec<u8>, number: impl Into<u64>) {
    let mut rest = number.into();
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

/// The bytes of each column that are not 0, after a bitmap that says which: term ids have their bytes at both ends.
fn put_key(out: &mut Vec<u8>, key: &Key) {
    for column in key {
        let bytes = column.to_le_bytes();
        let bit = |i: usize| u8::from(bytes[i] != 0) << i;
        out.push((0..8).map(bit).sum());
        out.extend(bytes.iter().filter(|b| **b != 0));
    }
}

/// Bytes that [`Script::entry`] writes at least for an entry that is added.
fn added_bytes(e: &Entry) -> usize {
    let of_column = |c: &u64| 1 + c.to_le_bytes().iter().filter(|b| **b != 0).count();
    6 + e.key.iter().map(of_column).sum::<usize>()
}

fn put_place(out: &mut Vec<u8>, place: Place) {
    match place {
        Place::Tail { slot } => put(out, (slot as u64) << 2),
        Place::Base { index, mark: None } => put(out, (index as u64) << 2 | 1),
        Place::Base {
            index,
            mark: Some(slot),
        } => {
            put(out, (index as u64) << 2 | 2);
            put(out, slot as u64);
        }
    }
}

fn put_frame(out: &mut Vec<u8>, frame: &Frame) {
    put(out, frame.flags);
    put(out, frame.right);
    if let Some(high) = &frame.high {
        put_key(out, high);
    }
}

/// A delta being read.
struct Bytes<'a> {
    rest: &'a [u8],
    block: BlockNo,
}

impl<'a> Bytes<'a> {
    fn take(&mut self, n: usize) -> Result<&'a [u8]> {
        match self.rest.split_at_checked(n) {
            Some((taken, rest)) => {
                self.rest = rest;
                Ok(taken)
            }
            None => corrupt(self.block, "a delta in the log is cut short"),
        }
    }

    fn byte(&mut self) -> Result<u8> {
        Ok(self.take(1)?[0])
    }

    fn number(&mut self) -> Result<u64> {
        let (mut number, mut shift) = (0, 0);
        loop {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte < 0x80 {
                return Ok(number);
            }
            if shift > 63 {
                return corrupt(self.block, "a number in the log has no end");
            }
        }
    }

    fn u32(&mut self) -> Result<u32> {
        Ok(self.number()? as u32)
    }

    fn key(&mut self) -> Result<Key> {
        let mut key = [0; 4];
        for column in &mut key {
            let bits = self.byte()?;
            let mut bytes = [0; 8];
            for (i, byte) in bytes.iter_mut().enumerate() {
                if bits >> i & 1 != 0 {
                    *byte = self.byte()?;
                }
            }
            *column = u64::from_le_bytes(bytes);
        }
        Ok(key)
    }

    fn place(&mut self) -> Result<Place> {
        let number = self.number()?;
        let index = (number >> 2) as usize;
        Ok(match number & 3 {
            0 => Place::Tail { slot: index },
            1 => Place::Base { index, mark: None },
            _ => Place::Base {
                index,
                mark: Some(self.number()? as usize),
            },
        })
    }

    /// The frame that the page of `old` gets.
    fn frame(&mut self, old: &Frame) -> Result<Frame> {
        let flags = self.number()? as u16;
        let right = self.u32()?;
        let high = match flags & F_HIGH_INF {
            0 => Some(self.key()?),
            _ => None,
        };
        Ok(Frame {
            flags,
            right,
            high,
            ..*old
        })
    }

    fn visibility(&mut self, e: Entry) -> Result<Entry> {
        Ok(Entry {
            xmin: self.u32()?,
            cmin: self.u32()?,
            xmax: self.u32()?,
            cmax: self.u32()?,
            lock_only: self.number()? != 0,
            ..e
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::NO_BLOCK;
    use crate::leaf::empty_leaf;

    fn leaf() -> Box<Page> {
        empty_leaf(&Frame {
            kind: PageKind::Leaf,
            order: 0,
            level: 0,
            flags: 0,
            right: NO_BLOCK,
            low: [0; 4],
            high: Some([9; 4]),
        })
    }

    fn same(a: &Page, b: &Page) -> bool {
        a.0[PAGE_STAMP_BYTES..] == b.0[PAGE_STAMP_BYTES..]
    }

    fn decoded(page: &Page) -> Vec<Entry> {
        let mut entries = Vec::new();
        let leaf = LeafView::open(page, 7).unwrap();
        leaf.decode(&mut entries).unwrap();
        entries
    }

    #[test]
    fn edits_and_a_fold_come_out_the_same() {
        let page = leaf();
        let mut editor = Editor::new(&page, 7);
        for i in 0..40u64 {
            assert!(editor
                .insert(&[i >> 2, i, u64::MAX - i, 1 << 63], 100 + i as u32, 3)
                .unwrap());
        }
        let (image, delta) = editor.finish();
        let mut again = page.clone();
        redo(&mut again, 7, &delta).unwrap();
        assert!(same(&again, &image));
        assert!(
            delta.len() < 40 * 30,
            "{} bytes for 40 insertions",
            delta.len()
        );

        let mut entries = decoded(&image);
        entries.remove(5);
        for e in &mut entries[10..] {
            (e.xmin, e.cmin) = (FROZEN_XID, 0);
        }
        let frame = image.frame(7).unwrap();
        let pruned = encode_leaf(&entries, &frame, &mut Scratch::default()).unwrap();
        let delta = leaf_delta(&decoded(&image), 7, &entries, &pruned)
            .unwrap()
            .unwrap();
        redo(&mut again, 7, &delta).unwrap();
        assert!(same(&again, &pruned));
        assert!(delta.len() < 40, "{} bytes for a pruning", delta.len());
    }

    #[test]
    fn differing_bytes_come_out_the_same() {
        let (page, mut image) = (leaf(), leaf());
        edit::insert(&mut image, 7, &[1, 2, 3, 4], 100, 0).unwrap();
        edit::set_counted(&mut image, 1);
        let mut again = page.clone();
        redo(&mut again, 7, &byte_delta(&page, &image).unwrap()).unwrap();
        assert!(same(&again, &image));
    }

    #[test]
    fn steps_that_do_not_fit_are_errors() {
        let page = leaf();
        let mut editor = Editor::new(&page, 7);
        editor.insert(&[1, 2, 3, 4], 100, 0).unwrap();
        let (image, delta) = editor.finish();
        let prune_and_freeze = leaf_delta(&decoded(&image), 7, &[], &page)
            .unwrap()
            .unwrap();
        for (before, delta) in [(&page, delta), (&image, prune_and_freeze)] {
            for cut in [0, 2, delta.len() - 1] {
                assert!(
                    redo(&mut before.clone(), 7, &delta[..cut]).is_err(),
                    "cut to {cut}"
                );
            }
        }
        for delta in [&[9u8][..], &[BYTES, 0xff, 0x7f, 1, 0], &[INNER, 4, 0]] {
            assert!(redo(&mut page.clone(), 7, delta).is_err());
        }
    }
}
