//! Inner-page cache: what a session remembers of inner pages, so that readers find leaves without locking the pages
//! above them.
//!
//! A copy may be old: pages have split since, leaves have merged or serve another purpose. The fences of the leaf tell
//! whether it is the right one. So an old copy costs a descent and is made anew; it never leads to a wrong answer.

use crate::block::BlockNo;
use crate::inner::InnerView;
use crate::key::{cmp, Key};
use crate::page::Frame;
use std::cell::{Cell, RefCell};
use std::cmp::Ordering;
use std::rc::Rc;

/// The memory that the copies of any number of trees share.
pub struct CacheBudget {
    most: usize,
    used: Cell<usize>,
}

impl CacheBudget {
    /// So many bytes.
    pub fn new(most: usize) -> Self {
        CacheBudget {
            most,
            used: Cell::new(0),
        }
    }

    /// Bytes that copies take now.
    pub fn used(&self) -> usize {
        self.used.get()
    }

    /// Whether pages right above the leaves are no longer remembered. They leave a quarter to the far fewer pages above
    /// them, without which they could not be found.
    pub fn is_full(&self) -> bool {
        self.used() >= self.most / 4 * 3
    }

    /// Whether a copy that there is already may stay. Right above the leaves the last one that fits goes beyond the
    /// limit, so that it is seen to be reached.
    fn has_room_for(&self, node: &Node) -> bool {
        match node.level {
            1 => self.used() - node.bytes < self.most / 4 * 3,
            _ => self.used() <= self.most,
        }
    }
}

/// The remembered inner pages of one tree.
///
/// A page without memory for it is not remembered. A remembered page stays as long as it is right.
pub struct InnerPageCache {
    pub(crate) budget: Rc<CacheBudget>,
    pub(crate) root: RefCell<Option<Rc<Node>>>,
    /// The node above the leaf that was looked for last.
    pub(crate) last: RefCell<Option<Rc<Node>>>,
    /// The page right above the leaves for which there was no memory last.
    missed: Cell<BlockNo>,
}

/// A copy of an inner page.
pub(crate) struct Node {
    pub(crate) level: u8,
    pub(crate) low: Key,
    pub(crate) high: Option<Key>,
    /// Low fences of the children.
    pub(crate) lows: Vec<Key>,
    pub(crate) blocks: Vec<BlockNo>,
    /// Entries below the children before each.
    pub(crate) before: Vec<u64>,
    /// Where the children were in memory when they were last read, of level 1.
    pub(crate) places: Vec<Cell<u32>>,
    /// Copies of the children, of levels above 1.
    pub(crate) below: Vec<RefCell<Option<Rc<Node>>>>,
    /// It has led to a wrong page.
    pub(crate) old: Cell<bool>,
    /// What it takes, of this budget, until it is dropped.
    pub(crate) bytes: usize,
    pub(crate) budget: Rc<CacheBudget>,
}

impl Drop for Node {
    fn drop(&mut self) {
        self.budget.used.set(self.budget.used() - self.bytes);
    }
}

impl Node {
    /// The copy of a page, which has `before` entries to its left.
    pub(crate) fn new(
        inner: &InnerView<'_>,
        frame: &Frame,
        before: u64,
        budget: &Rc<CacheBudget>,
    ) -> Self {
        let children = 0..inner.children();
        let (below, places) = match frame.level {
            1 => (0, children.len()),
            _ => (children.len(), 0),
        };
        let mut node = Node {
            level: frame.level,
            low: frame.low,
            high: frame.high,
            lows: children.clone().map(|i| inner.low(i)).collect(),
            blocks: children.clone().map(|i| inner.block(i)).collect(),
            before: children.map(|i| before + inner.count_before(i)).collect(),
            places: (0..places).map(|_| Cell::new(0)).collect(),
            below: (0..below).map(|_| RefCell::default()).collect(),
            old: Cell::new(false),
            bytes: 0,
            budget: budget.clone(),
        };
        node.bytes = node.size();
        budget.used.set(budget.used() + node.bytes);
        node
    }

    /// Bytes of memory, with the two counters of its [`Rc`].
    fn size(&self) -> usize {
        fn of<T>(vec: &Vec<T>) -> usize {
            vec.capacity() * size_of::<T>()
        }
        let own = size_of::<Self>() + 2 * size_of::<usize>();
        let fences = of(&self.lows) + of(&self.blocks) + of(&self.before);
        own + fences + of(&self.places) + of(&self.below)
    }

    /// Whether it is the page that leads to a key.
    pub(crate) fn holds(&self, key: &Key) -> bool {
        cmp(&self.low, key) != Ordering::Greater
            && self
                .high
                .is_none_or(|high| cmp(key, &high) == Ordering::Less)
    }

    /// The place of the child that leads to a key.
    pub(crate) fn child_for(&self, key: &Key) -> usize {
        let after = self
            .lows
            .partition_point(|low| cmp(low, key) != Ordering::Greater);
        after.saturating_sub(1)
    }
}

impl InnerPageCache {
    /// Nothing remembered.
    pub fn new(budget: &Rc<CacheBudget>) -> Self {
        budget.used.set(budget.used() + size_of::<Self>());
        InnerPageCache {
            budget: budget.clone(),
            root: RefCell::default(),
            last: RefCell::default(),
            missed: Cell::default(),
        }
    }

    /// Remembers a node, if there is memory for it.
    pub(crate) fn keep(&self, place: &RefCell<Option<Rc<Node>>>, node: Node) -> Rc<Node> {
        let node = Rc::new(node);
        if self.budget.has_room_for(&node) {
            place.replace(Some(node.clone()));
        }
        node
    }

    /// Whether a page that cannot be remembered is worth a copy all the same, for the look-ups that follow. A descent
    /// costs less than a copy, unless it is the page that was missed the time before.
    pub(crate) fn is_missed_again(&self, block: BlockNo) -> bool {
        self.missed.replace(block) == block
    }
}

impl Drop for InnerPageCache {
    fn drop(&mut self) {
        self.budget.used.set(self.budget.used() - size_of::<Self>());
    }
}

/// The node of a place, unless it has led to a wrong page: then it is dropped.
pub(crate) fn kept(place: &RefCell<Option<Rc<Node>>>) -> Option<Rc<Node>> {
    let mut place = place.borrow_mut();
    if place.as_ref().is_some_and(|node| node.old.get()) {
        *place = None;
    }
    place.clone()
}
