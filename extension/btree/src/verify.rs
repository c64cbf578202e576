//! Checking every invariant of a tree.

use crate::block::{BlockNo, NO_BLOCK};
use crate::error::{Error, Problem, Result};
use crate::inner::InnerView;
use crate::key::{cmp, Key, Quad, KEY_MIN};
use crate::leaf::LeafView;
use crate::order::quad_of;
use crate::page::{Frame, Page, PageKind, NO_XID};
use crate::store::{PageStore, Snapshot};
use crate::tree::{entry_count, Tree};
use crate::visibility::sees;
use std::cmp::Ordering;
use std::collections::HashSet;

/// Findings after which a check gives up.
const MAX_PROBLEMS: usize = 100;

/// What a check found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verified {
    /// Broken invariants. Nothing else here means much when there are any.
    pub problems: Vec<Problem>,
    /// Entries: versions, whoever sees them.
    pub entries: u64,
    /// Quads that the snapshot sees.
    pub visible: u64,
    /// A digest of those, the same for every order.
    pub digest: u128,
    /// The pages of the tree. Pages of the file that belong to no tree and are not free are lost space.
    pub pages: Vec<BlockNo>,
    /// Children whose parent has another number of entries noted than they have.
    pub inexact_counts: u64,
    /// Leaves that their parents have marked as all-visible.
    pub all_visible: u64,
    /// Pages whose right sibling has no downlink yet: left behind by a crash, and harmless.
    pub incomplete_splits: u64,
}

/// A page that the level above says there is.
struct Expected {
    block: BlockNo,
    low: Key,
    high: Option<Key>,
    count: Option<u64>,
    marks: u8,
}

struct Check<'a, S: PageStore> {
    tree: &'a Tree<S>,
    snapshot: &'a dyn Snapshot,
    out: Verified,
    seen: HashSet<BlockNo>,
}

impl<S: PageStore> Tree<S> {
    /// Checks every page of the tree. Meant to run while nobody writes: a change in between can show
    /// up as a problem.
    ///
    /// # Errors
    /// Only where not even the metapage can be read. Everything else is among the problems.
    pub fn verify(&self, snapshot: &dyn Snapshot) -> Result<Verified> {
        let (root, level) = self.refresh_root()?;
        let mut check = Check {
            tree: self,
            snapshot,
            out: Verified::default(),
            seen: HashSet::new(),
        };
        let mut expected = vec![Expected {
            block: root,
            low: KEY_MIN,
            high: None,
            count: None,
            marks: 0,
        }];
        for level in (0..=level).rev() {
            expected = check.level(level, &expected, level == self.root.get().1);
            if check.out.problems.len() >= MAX_PROBLEMS || (expected.is_empty() && level > 0) {
                break;
            }
        }
        Ok(check.out)
    }
}

impl<S: PageStore> Check<'_, S> {
    fn problem(&mut self, block: BlockNo, what: impl Into<String>) {
        if self.out.problems.len() < MAX_PROBLEMS {
            self.out.problems.push(Problem {
                block,
                what: what.into(),
            });
        }
    }

    /// Records the error of a page as a problem.
    fn checked<T>(&mut self, block: BlockNo, result: Result<T>) -> Option<T> {
        match result {
            Ok(v) => Some(v),
            Err(Error::Corrupt { block, what }) => {
                self.problem(block, what);
                None
            }
            Err(e) => {
                self.problem(block, e.to_string());
                None
            }
        }
    }

    /// Checks the pages of a level; returns those of the level below.
    fn level(&mut self, level: u8, expected: &[Expected], top: bool) -> Vec<Expected> {
        let mut below = Vec::new();
        for (i, e) in expected.iter().enumerate() {
            let after = expected.get(i + 1).map_or(NO_BLOCK, |n| n.block);
            let (mut block, mut low) = (e.block, e.low);
            let mut known = e.count;
            // The page, then right siblings that have no downlink yet.
            loop {
                self.tree.store().interrupt();
                if !self.seen.insert(block) {
                    self.problem(block, "reached twice");
                    break;
                }
                self.out.pages.push(block);
                let page = self.tree.store().read(block);
                let Some(frame) = self.checked(block, page.frame(block)) else {
                    break;
                };
                if !self.tree.is_mine(&frame, level) {
                    self.problem(block, "not a page of this order and level");
                    break;
                }
                if frame.low != low {
                    self.problem(
                        block,
                        format!("low fence {:?} instead of {low:?}", frame.low),
                    );
                }
                if frame.is_root() != (top && i == 0 && block == e.block) {
                    self.problem(block, "root flag is wrong");
                }
                self.page(&page, block, &frame, &mut below);
                let count = entry_count(&page, &frame, block);
                if let (Some(count), Some(known)) = (self.checked(block, count), known.take()) {
                    self.out.inexact_counts += u64::from(count != known);
                    if e.marks != 0 {
                        self.all_visible(&page, block, &frame, e.marks, count == known);
                    }
                }
                if !frame.incomplete() {
                    if frame.high != e.high {
                        self.problem(
                            block,
                            format!("high fence {:?} instead of {:?}", frame.high, e.high),
                        );
                    }
                    if frame.right != after {
                        self.problem(
                            block,
                            format!("right link {} instead of {after}", frame.right),
                        );
                    }
                    break;
                }
                self.out.incomplete_splits += 1;
                match frame.high {
                    Some(h) if cmp(&h, &low) == Ordering::Greater && frame.right != NO_BLOCK => {
                        low = h;
                        block = frame.right;
                    }
                    _ => {
                        self.problem(block, "incomplete split without a right part");
                        break;
                    }
                }
            }
        }
        below
    }

    /// Checks a leaf that its parent has marked.
    fn all_visible(&mut self, page: &Page, block: BlockNo, frame: &Frame, marks: u8, exact: bool) {
        if frame.kind != PageKind::Leaf {
            return;
        }
        let Some(leaf) = self.checked(block, LeafView::open(page, block)) else {
            return;
        };
        self.out.all_visible += 1;
        if marks & !leaf.marks(self.tree.order()) != 0 || frame.incomplete() {
            self.problem(block, "marked as all-visible, and is not");
        }
        if !exact {
            self.problem(block, "marked as all-visible, and counted wrongly");
        }
    }

    fn page(&mut self, page: &Page, block: BlockNo, frame: &Frame, below: &mut Vec<Expected>) {
        if frame
            .high
            .is_some_and(|h| cmp(&frame.low, &h) != Ordering::Less)
        {
            self.problem(block, "fences are out of order");
        }
        match frame.kind {
            PageKind::Inner => self.inner(page, block, frame, below),
            _ => self.leaf(page, block, frame),
        }
    }

    fn inner(&mut self, page: &Page, block: BlockNo, frame: &Frame, below: &mut Vec<Expected>) {
        let Some(inner) = self.checked(block, InnerView::open(page, block)) else {
            return;
        };
        if inner.children() > self.tree.inner_max() {
            self.problem(
                block,
                format!("{} children, more than allowed", inner.children()),
            );
        }
        let Some(children) = self.checked(block, inner.decode()) else {
            return;
        };
        if children[0].low != frame.low {
            self.problem(block, "the first child does not start where the page does");
        }
        for (i, c) in children.iter().enumerate() {
            let high = children.get(i + 1).map_or(frame.high, |n| Some(n.low));
            if high.is_some_and(|h| cmp(&c.low, &h) != Ordering::Less) {
                self.problem(block, format!("child {i} is out of order"));
            }
            below.push(Expected {
                block: c.block,
                low: c.low,
                high,
                count: Some(c.count),
                marks: c.marks,
            });
            if c.marks != 0 && frame.level > 1 {
                self.problem(block, format!("child {i} is marked, and no leaf"));
            }
        }
    }

    fn leaf(&mut self, page: &Page, block: BlockNo, frame: &Frame) {
        let Some(leaf) = self.checked(block, LeafView::open(page, block)) else {
            return;
        };
        let what = leaf.check_layout();
        if let Some(what) = self.checked(block, what).flatten() {
            self.problem(block, what);
        }
        let mut entries = Vec::new();
        if self.checked(block, leaf.decode(&mut entries)).is_none() {
            return;
        }
        if entries.len() != leaf.entries() {
            self.problem(block, "number of entries is wrong");
        }
        self.out.entries += entries.len() as u64;
        let one_key = entries.windows(2).all(|w| w[0].key == w[1].key);
        if entries.len() > self.tree.leaf_max() && !one_key {
            self.problem(block, format!("{} quads, more than allowed", entries.len()));
        }
        let first_before = entries
            .first()
            .is_some_and(|e| !frame.starts_at_or_before(&e.key));
        if first_before || entries.last().is_some_and(|e| frame.ends_before(&e.key)) {
            self.problem(block, "keys outside the fences");
        }
        if entries.iter().any(|e| e.xmin == NO_XID) {
            self.problem(block, "entry without inserting transaction");
        }
        let mut previous = None;
        for e in entries.iter().filter(|e| sees(self.snapshot, e)) {
            if previous != Some(&e.key) {
                self.out.visible += 1;
                let quad = quad_of(self.tree.order(), &e.key);
                self.out.digest = self.out.digest.wrapping_add(digest(&quad));
            }
            previous = Some(&e.key);
        }
    }
}

/// The contribution of a quad to the digest of a store: 128 well mixed bits.
fn digest(quad: &Quad) -> u128 {
    let mut lanes = [0x243f_6a88_85a3_08d3_u64, 0x1319_8a2e_0370_7344];
    let factors = [0x9e37_79b9_7f4a_7c15_u64, 0xc2b2_ae3d_27d4_eb4f];
    for v in quad {
        for (lane, factor) in lanes.iter_mut().zip(factors) {
            *lane = (*lane ^ *v as u64).wrapping_mul(factor);
            *lane ^= *lane >> 29;
            *lane = lane.wrapping_mul(0xbf58_476d_1ce4_e5b9);
            *lane ^= *lane >> 32;
        }
    }
    (u128::from(lanes[0]) << 64) | u128::from(lanes[1])
}
