//! Range counts from the cumulative counts of the inner pages.

use crate::descend::Path;
use crate::error::Result;
use crate::key::{cmp, Key};
use crate::leaf::LeafView;
use crate::store::PageStore;
use crate::tree::Tree;
use std::cmp::Ordering;

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
}
