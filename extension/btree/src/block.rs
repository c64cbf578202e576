//! Numbers of pages in a file, and the version of their format.

/// The number of a page in its file.
pub type BlockNo = u32;

/// No page.
pub const NO_BLOCK: BlockNo = u32::MAX;

/// Version 2: parents of leaves have marks.
pub(crate) const VERSION: u8 = 2;
