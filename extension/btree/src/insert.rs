//! Insertion of sorted keys, leaf by leaf.

use crate::block::BlockNo;
use crate::descend::Path;
use crate::error::{Error, Result};
use crate::key::{cmp, Key};
use crate::leaf::{edit, Entry, LeafView, Place};
use crate::pack::{pack, Packing};
use crate::page::{Frame, Page, FROZEN_XID, NO_XID};
use crate::prune_and_freeze::prune_and_freeze;
use crate::split::Counted;
use crate::store::{Change, PageStore, Snapshot, TxnStatus, XidStatus, MAX_ATOMIC_PAGES};
use crate::tree::Tree;
use crate::wal_delta::{leaf_delta, Editor};
use std::cmp::Ordering;

/// What an insertion does about versions that are there already.
#[derive(Clone, Copy)]
pub enum Mode<'a> {
    /// A key with a version that the snapshot sees (or that the transaction inserted itself) and that
    /// nobody is deleting stays as it is.
    Set(&'a dyn Snapshot),
    /// A key stays as it is only when this very command inserted it. For a command that deletes, too (an UPDATE).
    /// Versions from before it are there now, but the command may yet come to delete them. So what it inserts has to be
    /// a version that its own snapshot does not see. For all orders.
    Update,
    /// Every key gets a new version: for the orders after the first one, which has decided by
    /// [`Mode::Set`].
    Force,
    /// A key stays as it is only when the transaction itself has inserted it. For another table, which another one has
    /// decided for by [`Mode::Set`].
    Own,
}

/// The transaction that makes a change.
#[derive(Clone, Copy)]
pub struct Writer<'a> {
    /// The (sub)transaction.
    pub xid: u32,
    /// The command.
    pub cid: u32,
    /// The states of transactions.
    pub status: &'a dyn TxnStatus,
}

/// Up to this many keys for one leaf are appended to its tail, more are packed right away.
const MAX_TAIL_QUADS: usize = 24;

/// A leaf of so many entries tells how many bytes one of them takes. What a page takes besides is less than half a byte
/// for each of them then.
const MIN_TELLING_QUADS: usize = 256;

/// A leaf that gets so many keys has a right sibling that is likely to get some, too.
const NEIGHBOUR_QUADS: usize = 4;

/// After so many siblings in a row the tree is descended anew. What the way knows of their parents is a hint, and the
/// page that it names is locked: vacuum may have given it up in the meantime.
const MAX_SIBLINGS: usize = 64;

/// Of so many leaves at most the parents are told the numbers of entries at once.
const MAX_COUNTED_LEAVES: usize = 256;

/// The way of an insertion from leaf to leaf.
struct Way {
    path: Path,
    /// Leaves whose parents are to know their numbers of entries.
    counted: Vec<Counted>,
}

impl Way {
    fn new() -> Self {
        Way {
            path: Path::new(),
            counted: Vec::new(),
        }
    }
}

enum Decision {
    /// The quad is there.
    Skip,
    /// This subtransaction deleted the quad: take that back.
    Undelete,
    /// This subtransaction inserted a version and deleted it in an earlier command: use it again.
    Revive,
    /// Add a version.
    Add,
}

fn decide<'e>(
    versions: impl Iterator<Item = &'e Entry>,
    mode: Mode<'_>,
    writer: &Writer<'_>,
) -> Decision {
    let mut decision = Decision::Add;
    for e in versions {
        let own = || writer.status.status(e.xmin) == XidStatus::Own;
        let there = match mode {
            Mode::Set(snapshot) => {
                e.xmin == FROZEN_XID || snapshot.sees_insert(e.xmin, e.cmin) || own()
            }
            Mode::Update => e.xmin != FROZEN_XID && e.cmin == writer.cid && own(),
            Mode::Force => false,
            Mode::Own => own(),
        };
        let kept = || {
            e.xmax == NO_XID || e.lock_only || writer.status.status(e.xmax) == XidStatus::Aborted
        };
        if there && kept() {
            return Decision::Skip;
        }
        if matches!(mode, Mode::Update) {
            if can_revive(e, writer) {
                decision = Decision::Revive;
            }
        } else if deleted_by(e, writer.xid) {
            decision = Decision::Undelete;
        }
    }
    decision
}

/// Reusing such versions keeps a transaction that changes a quad back and forth from filling the leaf
/// with its dead versions. Those that this very command deleted stay: it may meet them again.
fn can_revive(e: &Entry, writer: &Writer<'_>) -> bool {
    e.xmin == writer.xid && deleted_by(e, writer.xid) && e.cmax < writer.cid
}

fn deleted_by(e: &Entry, xid: u32) -> bool {
    e.xmax == xid && !e.lock_only
}

impl<S: PageStore> Tree<S> {
    /// Inserts keys, which must be in strictly ascending order. `inserted[i]` tells whether key `i`
    /// was not there before; returns how many were not.
    ///
    /// # Errors
    /// [`Error::Unsorted`]; [`Error::TooManyVersions`]; corrupt pages.
    pub fn insert(
        &self,
        keys: &[Key],
        writer: &Writer<'_>,
        mode: Mode<'_>,
        inserted: &mut Vec<bool>,
    ) -> Result<usize> {
        if !keys.windows(2).all(|w| cmp(&w[0], &w[1]) == Ordering::Less) {
            return Err(Error::Unsorted);
        }
        inserted.clear();
        inserted.resize(keys.len(), false);
        let mut way = Way::new();
        let mut done = 0;
        // The right sibling of the leaf before, which the next key is likely to belong to, with its low fence.
        let mut next = None;
        let mut siblings = 0;
        while done < keys.len() {
            self.store.interrupt();
            let (page, block, frame) = match self.write_sibling(next, &keys[done])? {
                Some(leaf) => {
                    siblings += 1;
                    leaf
                }
                None => {
                    siblings = 0;
                    self.find_write(&keys[done], 0, &mut way.path)?
                }
            };
            let here = keys[done..].partition_point(|k| !frame.ends_before(k));
            let keys = &keys[done..done + here];
            let inserted = &mut inserted[done..done + here];
            let is_likely = here >= NEIGHBOUR_QUADS && siblings < MAX_SIBLINGS;
            next = frame
                .high
                .filter(|_| is_likely)
                .map(|high| (frame.right, high));
            done += if here <= MAX_TAIL_QUADS {
                self.append_to_leaf(page, block, &frame, keys, writer, mode, inserted, &mut way)?
            } else {
                self.merge_into_leaf(page, block, &frame, keys, writer, mode, inserted, &mut way)?
            };
            if way.counted.len() >= MAX_COUNTED_LEAVES {
                self.report(&way.counted, &mut way.path)?;
                way.counted.clear();
            }
        }
        self.report(&way.counted, &mut way.path)?;
        Ok(inserted.iter().filter(|i| **i).count())
    }

    /// Adds a few keys to the tail of their leaf; falls back to [`Self::merge_into_leaf`] when that is
    /// full. Returns how many keys have been dealt with.
    #[allow(clippy::too_many_arguments)]
    fn append_to_leaf(
        &self,
        mut page: S::Write,
        block: BlockNo,
        frame: &Frame,
        keys: &[Key],
        writer: &Writer<'_>,
        mode: Mode<'_>,
        inserted: &mut [bool],
        way: &mut Way,
    ) -> Result<usize> {
        let mut editor: Option<Editor> = None;
        let mut versions = Vec::new();
        let mut done = 0;
        for key in keys {
            let current = editor.as_ref().map_or(&*page, Editor::image);
            let leaf = LeafView::open(current, block)?;
            leaf.versions(key, &mut versions)?;
            let decision = decide(versions.iter().map(|(_, e)| e), mode, writer);
            match decision {
                Decision::Skip => (),
                Decision::Undelete => {
                    let editor = editor.get_or_insert_with(|| Editor::new(&page, block));
                    for (place, e) in &versions {
                        if deleted_by(e, writer.xid) {
                            // Clearing never needs room.
                            editor.set_xmax(*place, NO_XID, 0, false)?;
                        }
                    }
                    inserted[done] = true;
                }
                Decision::Revive | Decision::Add => {
                    let in_tail = versions.iter().find_map(|(place, e)| match place {
                        Place::Tail { slot } if can_revive(e, writer) => Some(*slot),
                        _ => None,
                    });
                    if let (Decision::Revive, Some(slot)) = (&decision, in_tail) {
                        let editor = editor.get_or_insert_with(|| Editor::new(&page, block));
                        editor.revive(slot, writer.cid)?;
                        inserted[done] = true;
                        done += 1;
                        continue;
                    }
                    if leaf.entries() >= self.leaf_max() {
                        break;
                    }
                    let editor = editor.get_or_insert_with(|| Editor::new(&page, block));
                    if !editor.insert(key, writer.xid, writer.cid)? {
                        break;
                    }
                    inserted[done] = true;
                }
            }
            done += 1;
        }
        if let Some(editor) = editor.filter(|_| done > 0) {
            self.store.stop("insert-decided");
            self.clear_visibility_marks(&page, block, frame, &mut way.path)?;
            let (image, delta) = editor.finish();
            self.store
                .commit(&mut [Change::by(&mut page, &image, Some(delta))], 0);
        }
        if done > 0 {
            return Ok(done);
        }
        self.merge_into_leaf(page, block, frame, keys, writer, mode, inserted, way)
    }

    /// Rebuilds a leaf with the keys merged into it, splitting it as needed. Returns how many keys have
    /// been dealt with: one atomic change makes at most [`MAX_ATOMIC_PAGES`] pages.
    #[allow(clippy::too_many_arguments)]
    fn merge_into_leaf(
        &self,
        page: S::Write,
        block: BlockNo,
        frame: &Frame,
        keys: &[Key],
        writer: &Writer<'_>,
        mode: Mode<'_>,
        inserted: &mut [bool],
        way: &mut Way,
    ) -> Result<usize> {
        let leaf = LeafView::open(&page, block)?;
        let counted = leaf.counted();
        let mut old = Vec::new();
        leaf.decode(&mut old)?;
        // About as many keys as three pages take, going by what an entry takes now.
        let each = if old.is_empty() {
            12
        } else {
            (leaf.used() / old.len()).clamp(1, 32)
        };
        let per_page = (crate::pack::FILL / each).min(self.leaf_max());
        let mut take = keys.len().min((per_page * (MAX_ATOMIC_PAGES - 1)).max(1));
        let mut scratch = self.scratch.borrow_mut();
        loop {
            let mut entries = Vec::with_capacity(old.len() + take);
            merge(
                &old,
                &keys[..take],
                writer,
                mode,
                &mut entries,
                &mut inserted[..take],
            );
            if !inserted[..take].contains(&true) {
                return Ok(take);
            }
            let pruned = prune_and_freeze(&mut entries, writer.status);
            let ascending = old
                .last()
                .is_none_or(|e| cmp(&e.key, &keys[0]) == Ordering::Less);
            // Few entries tell nothing, and one of the tail takes several times what one of the base does.
            let tells = old.len() >= MIN_TELLING_QUADS && leaf.slots() == 0;
            let bytes = match tells {
                true => leaf.used() * entries.len() / old.len(),
                false => 0,
            };
            let packing = Packing {
                max: self.leaf_max(),
                ascending,
                bytes,
            };
            let mut images = pack(&entries, frame, packing, &mut scratch)?;
            if images.len() > MAX_ATOMIC_PAGES {
                if take == 1 {
                    return Err(Error::Corrupt {
                        block,
                        what: "a leaf splits into too many pages",
                    });
                }
                take = (take * MAX_ATOMIC_PAGES / (images.len() + 1)).clamp(1, take - 1);
                inserted.fill(false);
                continue;
            }
            drop(scratch);
            self.store.stop("prune");
            self.clear_visibility_marks(&page, block, frame, &mut way.path)?;
            if images.len() > 1 {
                // The split tells its number, which is a newer one.
                way.counted.retain(|leaf| leaf.block != block);
                self.install(
                    page,
                    block,
                    frame,
                    images,
                    (&old, &entries),
                    pruned.conflict_xid,
                    &mut way.path,
                )?;
                return Ok(take);
            }
            let news = entries.len().abs_diff(counted);
            if news < 16 || news * 8 < counted {
                // Too close to what the parent knows to tell it.
                edit::set_counted(&mut images[0], counted);
            } else if !frame.is_root() {
                way.counted.push(Counted {
                    low: frame.low,
                    block,
                    count: entries.len() as u64,
                });
            }
            self.replace(
                page,
                block,
                frame,
                &mut images[0],
                (&old, &entries),
                pruned.conflict_xid,
            )?;
            return Ok(take);
        }
    }

    /// Puts a new image, which holds `entries`, in the place of a leaf, which holds `old`.
    pub(crate) fn replace(
        &self,
        mut page: S::Write,
        block: BlockNo,
        frame: &Frame,
        image: &mut Page,
        (old, entries): (&[Entry], &[Entry]),
        conflict_xid: u32,
    ) -> Result<()> {
        image.set_right(frame.right);
        image.set_flags(frame.flags);
        let delta = leaf_delta(old, block, entries, image)?;
        self.store
            .commit(&mut [Change::by(&mut page, image, delta)], conflict_xid);
        Ok(())
    }
}

/// Merges new keys into the entries of a leaf, deciding about each.
fn merge(
    old: &[Entry],
    keys: &[Key],
    writer: &Writer<'_>,
    mode: Mode<'_>,
    out: &mut Vec<Entry>,
    inserted: &mut [bool],
) {
    let mut rest = old;
    for (key, inserted) in keys.iter().zip(inserted) {
        let before = rest.partition_point(|e| cmp(&e.key, key) == Ordering::Less);
        out.extend_from_slice(&rest[..before]);
        rest = &rest[before..];
        let equal = rest.iter().take_while(|e| e.key == *key).count();
        let first = out.len();
        out.extend_from_slice(&rest[..equal]);
        rest = &rest[equal..];
        match decide(out[first..].iter(), mode, writer) {
            Decision::Skip => *inserted = false,
            Decision::Undelete => {
                *inserted = true;
                for e in out[first..]
                    .iter_mut()
                    .filter(|e| deleted_by(e, writer.xid))
                {
                    e.clear_xmax();
                }
            }
            Decision::Revive => {
                *inserted = true;
                if let Some(e) = out[first..].iter_mut().find(|e| can_revive(e, writer)) {
                    e.clear_xmax();
                    e.cmin = writer.cid;
                }
            }
            Decision::Add => {
                *inserted = true;
                out.push(Entry::new(*key, writer.xid, writer.cid));
            }
        }
    }
    out.extend_from_slice(rest);
}
