//! Inner pages: a packed run of children. Each has the key its range starts at, its block, and the number of
//! entries below it and its left neighbours in the page. In parents of leaves the *marks* follow: two bits for
//! each child, which `visibility_marks.rs` explains.

use crate::block::BlockNo;
use crate::error::{corrupt, Result};
use crate::key::{cmp, Key};
use crate::packed::{Run, RunPlan, MAX_RUN};
use crate::page::{Frame, Page, PageKind, HEADER, SPECIAL};
use std::cmp::Ordering;

pub(crate) const RUN_AT: usize = HEADER;
/// Bytes for the run.
pub(crate) const CAPACITY: usize = SPECIAL - RUN_AT;

const CHILD: usize = 4;
const CUMULATIVE: usize = 5;

/// The mark of an all-visible leaf: everyone sees all its entries, and their number is noted exactly.
pub(crate) const ALL_VISIBLE: u8 = 1;
/// The mark of an all-visible leaf whose quads are all in the default graph.
pub(crate) const DEFAULT_GRAPH_ONLY: u8 = 2;
/// Bits of the marks of one child.
const MARK_BITS: usize = 2;

/// The level whose pages have marks.
const MARKED_LEVEL: u8 = 1;

/// Bytes of the marks of `n` children of a page of this level.
fn marks_bytes(n: usize, level: u8) -> usize {
    match level {
        MARKED_LEVEL => (n * MARK_BITS).div_ceil(8),
        _ => 0,
    }
}

/// A child of an inner page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Child {
    /// The low fence of the child.
    pub low: Key,
    /// The page.
    pub block: BlockNo,
    /// Entries below the child, as far as reported.
    pub count: u64,
    /// What is known of a leaf: [`ALL_VISIBLE`], [`DEFAULT_GRAPH_ONLY`].
    pub marks: u8,
}

/// An inner page, opened for reading.
#[derive(Clone, Copy)]
pub struct InnerView<'a> {
    page: &'a Page,
    run: Run<'a, 6>,
    /// The first byte behind the used ones.
    end: usize,
    block: BlockNo,
}

impl<'a> InnerView<'a> {
    /// Opens a page that its frame says is an inner page.
    ///
    /// # Errors
    /// Corrupt when the run or the marks lead outside the page, or there are no children.
    #[inline]
    pub fn open(page: &'a Page, block: BlockNo) -> Result<Self> {
        let run = Run::open(page, RUN_AT, block)?;
        if run.len() == 0 {
            return corrupt(block, "inner page without children");
        }
        let end = run.end() + marks_bytes(run.len(), page.level());
        if end > page.lower().min(SPECIAL) {
            return corrupt(block, "inner page with more than its used bytes");
        }
        Ok(InnerView {
            page,
            run,
            end,
            block,
        })
    }

    /// Number of children.
    #[inline]
    pub fn children(&self) -> usize {
        self.run.len()
    }

    /// Bytes in use of the [`CAPACITY`].
    pub(crate) fn used(&self) -> usize {
        self.end - RUN_AT
    }

    /// The byte and the place in it of the marks of child `i`.
    fn marks_at(&self, i: usize) -> (usize, usize) {
        let bit = i * MARK_BITS;
        (self.run.end() + bit / 8, bit % 8)
    }

    /// The marks of child `i`.
    #[inline]
    pub(crate) fn marks(&self, i: usize) -> u8 {
        if self.end == self.run.end() {
            return 0;
        }
        let (byte, bit) = self.marks_at(i);
        self.page.0[byte] >> bit & ((1 << MARK_BITS) - 1)
    }

    /// The number of entries noted for child `i`.
    #[inline]
    pub(crate) fn count(&self, i: usize) -> u64 {
        self.count_before(i + 1)
            .saturating_sub(self.count_before(i))
    }

    /// The low fence of child `i`.
    #[inline]
    pub fn low(&self, i: usize) -> Key {
        self.run.key(i)
    }

    /// The block of child `i`.
    #[inline]
    pub fn block(&self, i: usize) -> BlockNo {
        self.run.get(CHILD, i) as BlockNo
    }

    /// Entries below the children before `i`.
    #[inline]
    pub fn count_before(&self, i: usize) -> u64 {
        if i == 0 {
            0
        } else {
            self.run.get(CUMULATIVE, i - 1)
        }
    }

    /// Entries below all children.
    pub fn total(&self) -> u64 {
        self.count_before(self.children())
    }

    /// The child whose range holds `key`: the last one that starts at or before it (the first one
    /// when none does).
    #[inline]
    pub fn child_for(&self, key: &Key) -> usize {
        self.run.upper_bound(key, 1) - 1
    }

    /// The child that holds the greatest keys less than `key`.
    #[inline]
    pub fn child_below(&self, key: &Key) -> usize {
        self.run.lower_bound(key, 1) - 1
    }

    /// Whether child `i` starts exactly at `key`.
    pub(crate) fn starts_at(&self, i: usize, key: &Key) -> bool {
        self.run.cmp(i, key) == Ordering::Equal
    }

    /// All children.
    ///
    /// # Errors
    /// Corrupt when their order is not strictly ascending, or counts descend.
    pub fn decode(&self) -> Result<Vec<Child>> {
        let columns: [Vec<u64>; 6] = std::array::from_fn(|c| self.run.column(c));
        let mut children: Vec<Child> = Vec::with_capacity(self.children() + 1);
        let mut before = 0;
        for (i, &sum) in columns[CUMULATIVE].iter().enumerate() {
            let low = [columns[0][i], columns[1][i], columns[2][i], columns[3][i]];
            if children
                .last()
                .is_some_and(|c| cmp(&c.low, &low) != Ordering::Less)
                || sum < before
            {
                return corrupt(self.block, "children are out of order");
            }
            let block = columns[CHILD][i] as BlockNo;
            children.push(Child {
                low,
                block,
                count: sum - before,
                marks: self.marks(i),
            });
            before = sum;
        }
        Ok(children)
    }
}

/// Bytes (of [`CAPACITY`]) that a page of these children takes in this level.
pub(crate) fn encoded_bytes(children: &[Child], level: u8) -> usize {
    let columns = columns(children);
    plan(&columns).bytes() + marks_bytes(children.len(), level)
}

fn columns(children: &[Child]) -> [Vec<u64>; 6] {
    let mut columns: [Vec<u64>; 6] = std::array::from_fn(|_| Vec::with_capacity(children.len()));
    let mut sum = 0u64;
    for c in children {
        for (column, v) in columns.iter_mut().zip(c.low) {
            column.push(v);
        }
        columns[CHILD].push(u64::from(c.block));
        sum = sum.saturating_add(c.count);
        columns[CUMULATIVE].push(sum);
    }
    columns
}

fn plan(columns: &[Vec<u64>; 6]) -> RunPlan<6> {
    RunPlan::new(std::array::from_fn(|c| &columns[c][..]), &mut Vec::new())
}

/// Encodes children (sorted) as a page, or `None` when they do not fit.
pub(crate) fn encode_inner(children: &[Child], frame: &Frame) -> Option<Box<Page>> {
    debug_assert_eq!(frame.kind, PageKind::Inner);
    if children.len() > MAX_RUN {
        return None;
    }
    let columns = columns(children);
    let plan = plan(&columns);
    let used = plan.bytes() + marks_bytes(children.len(), frame.level);
    if used > CAPACITY {
        return None;
    }
    let mut page = Page::zeroed();
    page.init(frame);
    plan.write(std::array::from_fn(|c| &columns[c][..]), &mut page, RUN_AT);
    if frame.level == MARKED_LEVEL {
        for (i, child) in children.iter().enumerate() {
            let bit = i * MARK_BITS;
            page.0[RUN_AT + plan.bytes() + bit / 8] |= child.marks << (bit % 8);
        }
    }
    page.set_lower(RUN_AT + used);
    Some(page)
}

/// Sets the marks of child `i`, a leaf, in the image of its parent.
pub(crate) fn set_marks(image: &mut Page, block: BlockNo, i: usize, marks: u8) -> Result<()> {
    let (byte, bit) = InnerView::open(image, block)?.marks_at(i);
    let others = image.0[byte] & !(((1 << MARK_BITS) - 1) << bit);
    image.0[byte] = others | marks << bit;
    Ok(())
}
