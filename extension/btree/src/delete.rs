//! Deletion and row locks: marking versions with the transaction that deletes or locks them.

use crate::block::BlockNo;
use crate::descend::{Path, Target};
use crate::error::{Error, Result};
use crate::insert::Writer;
use crate::key::{cmp, Key};
use crate::leaf::{edit, encode_leaf, Entry, LeafView, Place, CAPACITY, MARK_COST};
use crate::page::{Frame, NO_XID};
use crate::prune_and_freeze::prune_and_freeze;
use crate::store::{Change, PageStore, Snapshot, TxnStatus, XidStatus};
use crate::tree::Tree;
use crate::visibility::sees;
use crate::wal_delta::Editor;
use std::cmp::Ordering;

/// The outcome of a deletion or a row lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deletion {
    /// Deleted (or locked).
    Done,
    /// The snapshot sees no version.
    NotFound,
    /// The own transaction deleted the quad already, in command `cmax`, not before the snapshot.
    SelfDeleted {
        /// The deleting command.
        cmax: u32,
    },
    /// Another transaction is in the way.
    Conflict {
        /// The transaction.
        xid: u32,
        /// Its deleting command.
        cmax: u32,
        /// It has committed the deletion of a version that the snapshot sees: a serialization failure,
        /// or, for read committed, a reason to try again with a new snapshot. Otherwise it is running:
        /// wait for it and try again.
        committed: bool,
        /// It has locked the quad only.
        lock_only: bool,
    },
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Action {
    Delete,
    Lock,
}

/// From this many marks in one page on, a change is described by its bytes.
const MANY_MARKS: usize = 8;
/// Free space for this many marks makes a rebuilt leaf good for further deletions.
const SPARE_MARKS: usize = 10;

/// Whether the version carries the mark that the writer would set, or a lock of a transaction around this one: its own
/// would be gone with a subtransaction that rolls back.
fn is_marked(e: &Entry, writer: &Writer<'_>, action: Action) -> bool {
    let is_own = || e.xmax != NO_XID && writer.status.status(e.xmax) == XidStatus::Own;
    match action {
        Action::Delete => e.xmax == writer.xid && !e.lock_only,
        Action::Lock => e.lock_only && is_own(),
    }
}

/// What the versions of a key allow: `Done` when all versions that are seen can be marked. Under a snapshot of one
/// statement those that another transaction has deleted do not count, where there are others.
fn judge(versions: &[(Place, Entry)], writer: &Writer<'_>, snapshot: &dyn Snapshot) -> Deletion {
    let mut outcome = Deletion::NotFound;
    let conflict = |outcome: &Deletion| matches!(outcome, Deletion::Conflict { .. });
    for (_, e) in versions.iter().filter(|(_, e)| sees(snapshot, e)) {
        if markable(e, writer) {
            if !conflict(&outcome) || snapshot.is_of_statement() {
                outcome = Deletion::Done;
            }
            continue;
        }
        let (xid, cmax, lock_only) = (e.xmax, e.cmax, e.lock_only);
        match writer.status.status(xid) {
            // The first thing to do about it is to wait.
            XidStatus::InProgress => {
                return Deletion::Conflict {
                    xid,
                    cmax,
                    committed: false,
                    lock_only,
                }
            }
            XidStatus::Committed if outcome == Deletion::Done && snapshot.is_of_statement() => {}
            XidStatus::Committed => {
                outcome = Deletion::Conflict {
                    xid,
                    cmax,
                    committed: true,
                    lock_only,
                };
            }
            XidStatus::Own if outcome == Deletion::NotFound => {
                outcome = Deletion::SelfDeleted { cmax };
            }
            _ => (),
        }
    }
    outcome
}

/// Whether the version can be marked: nobody else holds it.
fn markable(e: &Entry, writer: &Writer<'_>) -> bool {
    if e.xmax == NO_XID {
        return true;
    }
    match writer.status.status(e.xmax) {
        XidStatus::Aborted => true,
        XidStatus::Own | XidStatus::Committed => e.lock_only,
        XidStatus::InProgress => false,
    }
}

impl<S: PageStore> Tree<S> {
    /// Deletes a key: marks every version that the snapshot sees. For the first order, which decides.
    ///
    /// # Errors
    /// [`Error::TooManyVersions`]; corrupt pages.
    pub fn delete(
        &self,
        key: &Key,
        writer: &Writer<'_>,
        snapshot: &dyn Snapshot,
    ) -> Result<Deletion> {
        self.mark(key, writer, snapshot, Action::Delete)
    }

    /// Locks a key against deletion by others until the transaction ends: like [`Tree::delete`], but
    /// the versions stay.
    ///
    /// # Errors
    /// As [`Tree::delete`].
    pub fn lock(
        &self,
        key: &Key,
        writer: &Writer<'_>,
        snapshot: &dyn Snapshot,
    ) -> Result<Deletion> {
        self.mark(key, writer, snapshot, Action::Lock)
    }

    /// Whether the running transaction has inserted a version of a key that is still there. Marks of leaves that all
    /// snapshots see do not matter here.
    ///
    /// # Errors
    /// Corrupt pages.
    pub fn has_own(&self, key: &Key, status: &dyn TxnStatus) -> Result<bool> {
        let own = |xid: u32| xid != NO_XID && status.status(xid) == XidStatus::Own;
        let there = |e: &Entry| own(e.xmin) && (e.lock_only || !own(e.xmax));
        Ok(self.versions_of(key)?.iter().any(there))
    }

    /// The number of versions of a key that a command of a (sub)transaction has marked as deleted.
    ///
    /// # Errors
    /// Corrupt pages.
    pub fn marked(&self, key: &Key, xid: u32, cid: u32) -> Result<usize> {
        let by_it = |e: &&Entry| e.xmax == xid && e.cmax == cid && !e.lock_only;
        Ok(self.versions_of(key)?.iter().filter(by_it).count())
    }

    /// All versions of a key.
    fn versions_of(&self, key: &Key) -> Result<Vec<Entry>> {
        let (page, block, _) = self.find(Target::Holding(key), 0, &mut Path::new())?;
        let mut versions = Vec::new();
        LeafView::open(&page, block)?.versions(key, &mut versions)?;
        Ok(versions.into_iter().map(|(_, entry)| entry).collect())
    }

    fn mark(
        &self,
        key: &Key,
        writer: &Writer<'_>,
        snapshot: &dyn Snapshot,
        action: Action,
    ) -> Result<Deletion> {
        let mut path = Path::new();
        let mut versions = Vec::new();
        loop {
            self.store.interrupt();
            let (mut page, block, frame) = self.find_write(key, 0, &mut path)?;
            LeafView::open(&page, block)?.versions(key, &mut versions)?;
            let outcome = judge(&versions, writer, snapshot);
            if outcome != Deletion::Done {
                return Ok(outcome);
            }
            let mut editor = Editor::new(&page, block);
            if mark_versions(
                &mut editor,
                block,
                key,
                writer,
                snapshot,
                action,
                &mut versions,
            )? {
                self.clear_visibility_marks(&page, block, &frame, &mut path)?;
                let (image, delta) = editor.finish();
                self.store
                    .commit(&mut [Change::by(&mut page, &image, Some(delta))], 0);
                return Ok(outcome);
            }
            self.make_room(page, block, &frame, key, writer, action, &mut path)?;
        }
    }

    /// Marks keys (in strictly ascending order) as deleted that [`Tree::delete`] on the first order has
    /// decided about.
    ///
    /// # Errors
    /// [`Error::Unsorted`]; [`Error::TooManyVersions`]; corrupt pages.
    pub fn mark_deleted(
        &self,
        keys: &[Key],
        writer: &Writer<'_>,
        snapshot: &dyn Snapshot,
    ) -> Result<()> {
        if !keys.windows(2).all(|w| cmp(&w[0], &w[1]) == Ordering::Less) {
            return Err(Error::Unsorted);
        }
        let mut path = Path::new();
        let mut versions = Vec::new();
        let mut done = 0;
        while done < keys.len() {
            self.store.interrupt();
            let (mut page, block, frame) = self.find_write(&keys[done], 0, &mut path)?;
            let here = keys[done..].partition_point(|k| !frame.ends_before(k));
            let mut editor = Editor::new(&page, block);
            let mut marked = 0;
            let mut full = false;
            for key in &keys[done..done + here] {
                let action = Action::Delete;
                if !mark_versions(
                    &mut editor,
                    block,
                    key,
                    writer,
                    snapshot,
                    action,
                    &mut versions,
                )? {
                    full = true;
                    break;
                }
                marked += 1;
            }
            self.clear_visibility_marks(&page, block, &frame, &mut path)?;
            // A key whose versions were marked in part is marked again after the rebuild.
            let (image, delta) = editor.finish();
            // The bits of a large deletion are shorter than a list of what is deleted.
            let change = if marked > MANY_MARKS {
                Change::new(&mut page, &image)
            } else {
                Change::by(&mut page, &image, Some(delta))
            };
            self.store.commit(&mut [change], 0);
            done += marked;
            if full {
                self.make_room(
                    page,
                    block,
                    &frame,
                    &keys[done],
                    writer,
                    Action::Delete,
                    &mut path,
                )?;
            }
        }
        Ok(())
    }

    /// Rebuilds a leaf so that it has room for marks, splitting it when it must.
    #[allow(clippy::too_many_arguments)]
    fn make_room(
        &self,
        page: S::Write,
        block: BlockNo,
        frame: &Frame,
        key: &Key,
        writer: &Writer<'_>,
        action: Action,
        path: &mut Path,
    ) -> Result<()> {
        let leaf = LeafView::open(&page, block)?;
        let counted = leaf.counted();
        let mut old = Vec::new();
        leaf.decode(&mut old)?;
        let mut entries = old.clone();
        self.clear_visibility_marks(&page, block, frame, path)?;
        let pruned = prune_and_freeze(&mut entries, writer.status);
        let mut scratch = self.scratch.borrow_mut();
        if entries.len() <= self.leaf_max() {
            if let Some(mut image) = encode_leaf(&entries, frame, &mut scratch) {
                let view = LeafView::open(&image, block)?;
                let by_bitmap = action == Action::Delete
                    && view.has_dead_bitmap()
                    && view.base_xmax() == (writer.xid, writer.cid);
                let of_key = entries.iter().filter(|e| e.key == *key).count();
                let only_key = of_key == entries.len();
                let spare = if only_key {
                    of_key
                } else {
                    of_key.max(SPARE_MARKS)
                };
                if view.used() + spare * MARK_COST <= CAPACITY || (by_bitmap && !only_key) {
                    drop(scratch);
                    edit::set_counted(&mut image, counted);
                    return self.replace(
                        page,
                        block,
                        frame,
                        &mut image,
                        (&old, &entries),
                        pruned.conflict_xid,
                    );
                }
                if only_key {
                    return Err(Error::TooManyVersions { key: *key });
                }
            }
        }
        drop(scratch);
        let images = self.pack_apart(&entries, frame)?;
        if images.len() < 2 {
            return Err(Error::TooManyVersions { key: *key });
        }
        self.install(
            page,
            block,
            frame,
            images,
            (&old, &entries),
            pruned.conflict_xid,
            path,
        )
    }
}

/// Marks, in an image, every version of a key that the snapshot sees and that can be marked. Returns
/// false when the page has no room for another mark.
fn mark_versions(
    editor: &mut Editor,
    block: BlockNo,
    key: &Key,
    writer: &Writer<'_>,
    snapshot: &dyn Snapshot,
    action: Action,
    versions: &mut Vec<(Place, Entry)>,
) -> Result<bool> {
    // A new mark moves the slots behind it, so the places are looked up again after each.
    loop {
        LeafView::open(editor.image(), block)?.versions(key, versions)?;
        let next = versions.iter().find(|(_, e)| {
            !is_marked(e, writer, action) && markable(e, writer) && sees(snapshot, e)
        });
        let Some((place, _)) = next else {
            return Ok(true);
        };
        let lock_only = action == Action::Lock;
        if !editor.set_xmax(*place, writer.xid, writer.cid, lock_only)? {
            return Ok(false);
        }
    }
}
