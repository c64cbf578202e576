//! Range counts: estimates from the cumulative counts of the inner pages, and exact counts of what a snapshot sees.

use crate::block::{BlockNo, NO_BLOCK};
use crate::descend::{Path, Target};
use crate::error::Result;
use crate::filter::{known_count, Filter, Filtered};
use crate::inner::{InnerView, ALL_VISIBLE};
use crate::key::{cmp, Key, KEY_MAX};
use crate::leaf::LeafView;
use crate::page::Frame;
use crate::scan::{Counter, Sink, Walk};
use crate::store::{PageStore, Snapshot};
use crate::tree::Tree;
use std::cmp::Ordering;

/// What counting has taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Leaves read.
    pub leaves: u64,
    /// Leaves counted without reading them.
    pub skipped: u64,
}

/// A range that has to be read: from a key to another one, that included unless `open`.
struct Part {
    from: Key,
    to: Key,
    open: bool,
    /// Where it starts, as far as known.
    leaf: BlockNo,
}

/// A place in a tree, and its page.
type Found<R> = (R, BlockNo, Frame);

impl<S: PageStore> Tree<S> {
    /// The number of entries from `lower` to `upper`, both included: versions, whoever sees them. Reads
    /// one page per level and bound. Exact after a vacuum or build; later the leaves between the two
    /// boundary leaves count as last reported.
    ///
    /// # Errors
    /// Corrupt pages.
    pub fn range_count(&self, lower: &Key, upper: &Key) -> Result<u64> {
        if cmp(lower, upper) == Ordering::Greater {
            return Ok(0);
        }
        let before = self.rank(lower, false)?;
        Ok(self.rank(upper, true)?.saturating_sub(before))
    }

    /// The number of entries with keys less than `key` (`or_equal`: or equal to it).
    fn rank(&self, key: &Key, or_equal: bool) -> Result<u64> {
        let mut before = 0;
        let (page, block, _) = self.find_counting(key, 0, &mut Path::new(), &mut before)?;
        Ok(before + LeafView::open(&page, block)?.rank(key, or_equal)? as u64)
    }

    /// The number of keys from `lower` to `upper`, both included, that the snapshot sees and that pass the filters.
    /// Leaves that their parents say are all-visible are not read.
    ///
    /// # Errors
    /// Corrupt pages.
    pub fn count_visible(
        &self,
        lower: &Key,
        upper: &Key,
        filters: &[Filter],
        snapshot: &dyn Snapshot,
        work: &mut Work,
    ) -> Result<u64> {
        let mut counter = Filtered::new(filters, Counter(0));
        let mut known = 0;
        let range = (lower, upper);
        self.visit(range, snapshot, work, &mut counter, &mut |marks, count| {
            let passing = known_count(filters, self.order(), marks, count);
            known += passing.unwrap_or(0);
            passing.is_some()
        })?;
        Ok(known + counter.to.0)
    }

    /// Hands the visible keys from `lower` to `upper` to a sink. It leaves out all-visible leaves that `known` takes by
    /// their marks and numbers of entries.
    pub(crate) fn visit(
        &self,
        (lower, upper): (&Key, &Key),
        snapshot: &dyn Snapshot,
        work: &mut Work,
        sink: &mut impl Sink,
        known: &mut dyn FnMut(u8, u64) -> bool,
    ) -> Result<()> {
        if cmp(lower, upper) == Ordering::Greater {
            return Ok(());
        }
        let mut parts = Vec::new();
        let mut at = *lower;
        loop {
            self.store.interrupt();
            let high = match self.parent_of_leaves(&at)? {
                Some((page, block, frame)) => {
                    let inner = InnerView::open(&page, block)?;
                    self.all_visible_part(&inner, &frame, (&at, upper), &mut parts, work, known);
                    frame.high
                }
                None => {
                    parts.push(Part {
                        from: at,
                        to: *upper,
                        open: false,
                        leaf: NO_BLOCK,
                    });
                    None
                }
            };
            for part in parts.drain(..) {
                self.read_part(&part, snapshot, sink, work)?;
            }
            match high {
                Some(high) if cmp(&high, upper) != Ordering::Greater => at = high,
                _ => return Ok(()),
            }
        }
    }

    /// The parent of the leaf that holds `key`, share-locked; none when the only leaf is the root.
    fn parent_of_leaves(&self, key: &Key) -> Result<Option<Found<S::Read>>> {
        if self.root.get().1 == 0 && self.refresh_root()?.1 == 0 {
            return Ok(None);
        }
        match self.find(Target::Holding(key), 1, &mut Path::new()) {
            // The tree may have become low meanwhile.
            Err(_) if self.refresh_root()?.1 == 0 => Ok(None),
            found => found.map(Some),
        }
    }

    /// Offers the all-visible children of a page between `at` and `upper` to `known`; what has to be read goes to
    /// `parts`.
    fn all_visible_part(
        &self,
        inner: &InnerView<'_>,
        frame: &Frame,
        (at, upper): (&Key, &Key),
        parts: &mut Vec<Part>,
        work: &mut Work,
        known: &mut dyn FnMut(u8, u64) -> bool,
    ) {
        let first = inner.child_for(at);
        let mut low = inner.low(first);
        for i in first..inner.children() {
            if i > first && cmp(&low, upper) == Ordering::Greater {
                break;
            }
            let high = match i + 1 < inner.children() {
                true => Some(inner.low(i + 1)),
                false => frame.high,
            };
            let ends_inside = match &high {
                Some(high) => cmp(high, upper) != Ordering::Greater,
                None => *upper == KEY_MAX,
            };
            if ends_inside
                && cmp(at, &low) != Ordering::Greater
                && inner.marks(i) & ALL_VISIBLE != 0
                && known(inner.marks(i), inner.count(i))
            {
                work.skipped += 1;
                low = high.unwrap_or(KEY_MAX);
                continue;
            }
            let from = *at.max(&low);
            let (to, open) = match high {
                Some(high) if ends_inside => (high, true),
                _ => (*upper, false),
            };
            match parts.last_mut() {
                Some(last) if last.open && last.to == from => (last.to, last.open) = (to, open),
                _ => parts.push(Part {
                    from,
                    to,
                    open,
                    leaf: inner.block(i),
                }),
            }
            low = high.unwrap_or(KEY_MAX);
        }
    }

    /// Reads leaves.
    fn read_part(
        &self,
        part: &Part,
        snapshot: &dyn Snapshot,
        sink: &mut impl Sink,
        work: &mut Work,
    ) -> Result<()> {
        let (mut at, mut hint) = (part.from, part.leaf);
        loop {
            self.store.interrupt();
            let (page, block, frame) = self.leaf_holding(&at, hint)?;
            let leaf = LeafView::open(&page, block)?;
            let from = Some(&at).filter(|k| cmp(k, &frame.low) == Ordering::Greater);
            let to = Some(&part.to).filter(|k| !frame.ends_before(k));
            Walk::new(&leaf, snapshot).run(from, to, part.open, sink)?;
            work.leaves += 1;
            match frame.high {
                Some(high) if cmp(&high, &part.to) == Ordering::Less => at = high,
                Some(high) if high == part.to && !part.open => at = high,
                _ => return Ok(()),
            }
            hint = frame.right;
        }
    }
}
