//! All the orders of a file together: quads in, quads out.

use crate::delete::Deletion;
use crate::error::{Error, Result};
use crate::insert::{Mode, Writer};
use crate::key::{Key, Quad};
use crate::meta::Meta;
use crate::order::{key_of, quad_of};
use crate::store::{Change, PageStore, Snapshot};
use crate::tree::Tree;

/// The trees of a file, which hold the same quads in different orders. The first one decides what is
/// in the store.
pub struct Quads<S: PageStore + Clone> {
    store: S,
    trees: Vec<Tree<S>>,
}

impl<S: PageStore + Clone> Quads<S> {
    /// Opens a file.
    ///
    /// # Errors
    /// Corrupt when block 0 is no metapage of this format.
    pub fn open(store: S) -> Result<Self> {
        let meta = Meta::read(&store)?;
        Self::with_meta(store, &meta)
    }

    /// Opens a file whose metapage has been read before.
    ///
    /// # Errors
    /// None at present beyond those of [`Tree::new`].
    pub fn with_meta(store: S, meta: &Meta) -> Result<Self> {
        let trees = (0..meta.orders().len())
            .map(|i| Tree::new(store.clone(), meta, i))
            .collect::<Result<_>>()?;
        Ok(Quads { store, trees })
    }

    /// The trees, in the order of the metapage.
    pub fn trees(&self) -> &[Tree<S>] {
        &self.trees
    }

    /// The tree of order number `index`.
    ///
    /// # Errors
    /// [`Error::NoSuchOrder`].
    pub fn tree(&self, index: usize) -> Result<&Tree<S>> {
        self.trees.get(index).ok_or(Error::NoSuchOrder(index))
    }

    /// Inserts quads (in any order, repetitions allowed) as a set; leaves in `quads` those that were
    /// not in the store before, sorted in the first order. Returns their number.
    ///
    /// # Errors
    /// As [`Tree::insert`].
    pub fn insert(
        &self,
        quads: &mut Vec<Quad>,
        writer: &Writer<'_>,
        mode: Mode<'_>,
    ) -> Result<usize> {
        let mut inserted = Vec::new();
        for (i, tree) in self.trees.iter().enumerate() {
            let order = tree.order();
            let mut keys: Vec<Key> = quads.iter().map(|q| key_of(order, q)).collect();
            if keys.len() > 1 {
                keys.sort_unstable();
                keys.dedup();
            }
            if i > 0 {
                let mode = match mode {
                    Mode::Update => Mode::Update,
                    Mode::Set(_) | Mode::Force | Mode::Own => Mode::Force,
                };
                self.store.stop("insert-between-orders");
                tree.insert(&keys, writer, mode, &mut inserted)?;
                continue;
            }
            tree.insert(&keys, writer, mode, &mut inserted)?;
            quads.clear();
            let new = keys.iter().zip(&inserted).filter(|(_, new)| **new);
            quads.extend(new.map(|(k, _)| quad_of(order, k)));
            if quads.is_empty() {
                break;
            }
        }
        Ok(quads.len())
    }

    /// Deletes a quad.
    ///
    /// # Errors
    /// As [`Tree::delete`].
    pub fn delete(
        &self,
        quad: &Quad,
        writer: &Writer<'_>,
        snapshot: &dyn Snapshot,
    ) -> Result<Deletion> {
        let mut outcome = Deletion::NotFound;
        for (i, tree) in self.trees.iter().enumerate() {
            let key = key_of(tree.order(), quad);
            if i > 0 {
                self.store.stop("delete-between-orders");
                tree.mark_deleted(&[key], writer, snapshot)?;
                continue;
            }
            outcome = tree.delete(&key, writer, snapshot)?;
            if outcome != Deletion::Done {
                break;
            }
        }
        Ok(outcome)
    }

    /// Locks a quad against deletion by others until the transaction ends. Only the first order
    /// carries row locks. The lock is lost when a subtransaction that has deleted the quad afterwards
    /// rolls back.
    ///
    /// # Errors
    /// As [`Tree::lock`].
    pub fn lock(
        &self,
        quad: &Quad,
        writer: &Writer<'_>,
        snapshot: &dyn Snapshot,
    ) -> Result<Deletion> {
        let tree = self.tree(0)?;
        tree.lock(&key_of(tree.order(), quad), writer, snapshot)
    }

    /// Whether the snapshot sees the quad.
    ///
    /// # Errors
    /// Corrupt pages.
    pub fn exists(&self, quad: &Quad, snapshot: &dyn Snapshot) -> Result<bool> {
        let tree = self.tree(0)?;
        tree.exists(&key_of(tree.order(), quad), snapshot)
    }

    /// Hands every deleted page of the file to [`PageStore::free`]: inner pages that earlier vacuums gave
    /// up, and leaves that the store may have forgotten in a crash. To be called at the start of a
    /// vacuum, before the trees are. Reads the whole file; returns the number of free pages.
    pub fn reclaim(&self) -> u64 {
        let mut free = 0;
        // A page that is just being added is all zeroes, as a free one is, before its lock is taken.
        for block in 1..self.store.settled_blocks() {
            self.store.interrupt();
            let page = self.store.read(block);
            if page.is_free() {
                drop(page);
                self.store.free(block);
                free += 1;
            }
        }
        free
    }

    /// Notes the numbers of live and dead quads in the metapage, for estimates.
    ///
    /// # Errors
    /// Corrupt metapage.
    pub fn set_counters(&self, live: u64, dead: u64) -> Result<()> {
        let mut page = self.store.write(0);
        let mut meta = Meta::decode(&page)?;
        (meta.live, meta.dead) = (live, dead);
        let image = meta.encode();
        self.store.commit(&mut [Change::new(&mut page, &image)], 0);
        Ok(())
    }
}
