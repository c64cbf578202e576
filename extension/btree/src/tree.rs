//! One tree: its store, its place in the metapage, its options.

use crate::block::BlockNo;
use crate::error::{corrupt, Error, Result};
use crate::inner::InnerView;
use crate::inner_page_cache::InnerPageCache;
use crate::leaf::{LeafView, Scratch};
use crate::meta::{Meta, OrderMeta};
use crate::order::Order;
use crate::page::{Frame, Page, PageKind};
use crate::store::PageStore;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// One B-link tree of a file: the quads in one order.
///
/// A value belongs to one thread or session; any number of them may work on the same file. It may be
/// kept as long as the file is the same one: the root it remembers is checked when used.
pub struct Tree<S: PageStore> {
    pub(crate) store: S,
    pub(crate) index: usize,
    pub(crate) info: OrderMeta,
    pub(crate) root: Cell<(BlockNo, u8)>,
    pub(crate) scratch: RefCell<Scratch>,
    pub(crate) inner_page_cache: Option<Rc<InnerPageCache>>,
}

impl<S: PageStore> Tree<S> {
    /// The tree of order number `index`.
    ///
    /// # Errors
    /// [`Error::NoSuchOrder`].
    pub fn new(store: S, meta: &Meta, index: usize) -> Result<Self> {
        let info = *meta.orders().get(index).ok_or(Error::NoSuchOrder(index))?;
        Ok(Tree {
            store,
            index,
            info,
            root: Cell::new((info.root, info.root_level)),
            scratch: RefCell::default(),
            inner_page_cache: None,
        })
    }

    /// Makes reading go by what a session remembers of the inner pages of this tree.
    #[must_use]
    pub fn with_inner_page_cache(mut self, inner_page_cache: Rc<InnerPageCache>) -> Self {
        self.inner_page_cache = Some(inner_page_cache);
        self
    }

    /// The permutation of this tree.
    pub fn order(&self) -> Order {
        self.info.order
    }

    /// The store of this tree.
    pub fn store(&self) -> &S {
        &self.store
    }

    /// The current root and its level, read from the metapage.
    pub(crate) fn refresh_root(&self) -> Result<(BlockNo, u8)> {
        let meta = Meta::read(&self.store)?;
        let info = meta
            .orders()
            .get(self.index)
            .ok_or(Error::NoSuchOrder(self.index))?;
        self.root.set((info.root, info.root_level));
        Ok((info.root, info.root_level))
    }

    /// Most quads of a leaf.
    pub(crate) fn leaf_max(&self) -> usize {
        limit(self.info.leaf_quads)
    }

    /// Most children of an inner page.
    pub(crate) fn inner_max(&self) -> usize {
        limit(self.info.inner_fanout)
    }

    /// Whether the page is one of this tree at this level. It need not be: a stale pointer may lead to
    /// a page that has been given another use.
    #[inline]
    pub(crate) fn is_mine(&self, frame: &Frame, level: u8) -> bool {
        let kind = if level == 0 {
            PageKind::Leaf
        } else {
            PageKind::Inner
        };
        frame.kind == kind && frame.level == level && usize::from(frame.order) == self.index
    }
}

fn limit(option: u32) -> usize {
    match option {
        0 => crate::packed::MAX_RUN,
        n => (n as usize).min(crate::packed::MAX_RUN),
    }
}

/// The number of entries in or below a page.
pub(crate) fn entry_count(page: &Page, frame: &Frame, block: BlockNo) -> Result<u64> {
    match frame.kind {
        PageKind::Leaf => Ok(LeafView::open(page, block)?.entries() as u64),
        PageKind::Inner => Ok(InnerView::open(page, block)?.total()),
        _ => corrupt(block, "neither a leaf nor an inner page"),
    }
}
