//! Reading versions, whoever sees them: for rebuilding a table and for sampling its blocks.

use crate::block::{BlockNo, NO_BLOCK};
use crate::descend::{Path, Target};
use crate::error::Result;
use crate::key::KEY_MIN;
use crate::leaf::{Entry, LeafView};
use crate::page::PageKind;
use crate::store::PageStore;
use crate::tree::Tree;

impl<S: PageStore> Tree<S> {
    /// Whether the tree is a single leaf without entries, dead ones included.
    ///
    /// # Errors
    /// Corrupt pages.
    pub fn is_empty(&self) -> Result<bool> {
        let (page, block, frame) = self.find(Target::Holding(&KEY_MIN), 0, &mut Path::new())?;
        Ok(frame.right == NO_BLOCK && LeafView::open(&page, block)?.entries() == 0)
    }

    /// Calls `each` for every version in key order. The caller keeps writers away.
    ///
    /// # Errors
    /// Corrupt pages.
    pub fn for_each_version(&self, mut each: impl FnMut(&Entry)) -> Result<()> {
        let mut entries = Vec::new();
        let mut low = KEY_MIN;
        loop {
            self.store.interrupt();
            let (page, block, frame) = self.find(Target::Holding(&low), 0, &mut Path::new())?;
            entries.clear();
            LeafView::open(&page, block)?.decode(&mut entries)?;
            drop(page);
            entries.iter().for_each(&mut each);
            match frame.high {
                Some(high) => low = high,
                None => return Ok(()),
            }
        }
    }

    /// The versions on one page if it is a leaf of this tree, none if it is any other page of the file.
    ///
    /// # Errors
    /// Corrupt pages.
    pub fn leaf_entries(&self, block: BlockNo) -> Result<Vec<Entry>> {
        let page = self.store.read(block);
        let mut entries = Vec::new();
        if !page.is_free() {
            let frame = page.frame(block)?;
            if frame.kind == PageKind::Leaf && self.is_mine(&frame, 0) {
                LeafView::open(&page, block)?.decode(&mut entries)?;
            }
        }
        Ok(entries)
    }
}
