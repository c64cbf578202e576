//! The page frame: PostgreSQL's page header in front, this crate's special area at the end.

use crate::block::{BlockNo, NO_BLOCK, VERSION};
use crate::error::{corrupt, Error, Result};
use crate::key::{cmp, Key};
use std::cmp::Ordering;

/// Bytes in a page.
pub const PAGE_SIZE: usize = 8192;

/// No transaction.
pub const NO_XID: u32 = 0;
/// The transaction number of entries visible to everyone.
pub const FROZEN_XID: u32 = 2;

/// Bytes of PostgreSQL's `PageHeaderData`.
pub(crate) const HEADER: usize = 24;
/// Where the special area starts.
pub(crate) const SPECIAL: usize = PAGE_SIZE - 80;

const PD_LOWER: usize = 12;
const PD_UPPER: usize = 14;
const PD_SPECIAL: usize = 16;
const PD_PAGESIZE_VERSION: usize = 18;
/// Page size with layout version 4, as PostgreSQL's `PageSetPageSizeAndVersion` writes it.
const PAGESIZE_VERSION: u16 = PAGE_SIZE as u16 | 4;

const S_MAGIC: usize = SPECIAL;
const S_VERSION: usize = SPECIAL + 2;
const S_KIND: usize = SPECIAL + 3;
const S_ORDER: usize = SPECIAL + 4;
const S_LEVEL: usize = SPECIAL + 5;
const S_FLAGS: usize = SPECIAL + 6;
const S_RIGHT: usize = SPECIAL + 8;
const S_LOW: usize = SPECIAL + 16;
const S_HIGH: usize = SPECIAL + 48;

const MAGIC: u16 = 0x5142;

/// The right sibling has no downlink in the level above yet.
pub(crate) const F_INCOMPLETE: u16 = 1;
/// The page is the root of its tree.
pub(crate) const F_ROOT: u16 = 2;
/// There is no upper bound: the last page of its level.
pub(crate) const F_HIGH_INF: u16 = 4;

/// A page, PostgreSQL's header included.
#[derive(Clone)]
#[repr(C, align(8))]
pub struct Page(pub [u8; PAGE_SIZE]);

/// What a page is used for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PageKind {
    /// Block 0.
    Meta,
    /// Holds quads.
    Leaf,
    /// Holds children.
    Inner,
    /// Free for reuse.
    Deleted,
}

/// The place of a page in its tree: everything in the special area but the magic number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    pub kind: PageKind,
    pub order: u8,
    pub level: u8,
    pub flags: u16,
    pub right: BlockNo,
    /// Inclusive.
    pub low: Key,
    /// Exclusive; `None` = no bound.
    pub high: Option<Key>,
}

impl Frame {
    /// Whether keys from `key` on may be here or further right.
    #[inline]
    pub fn starts_at_or_before(&self, key: &Key) -> bool {
        cmp(&self.low, key) != Ordering::Greater
    }

    /// Whether `key` is at or past the upper bound.
    #[inline]
    pub fn ends_before(&self, key: &Key) -> bool {
        match &self.high {
            Some(h) => cmp(key, h) != Ordering::Less,
            None => false,
        }
    }

    pub fn incomplete(&self) -> bool {
        self.flags & F_INCOMPLETE != 0
    }

    pub fn is_root(&self) -> bool {
        self.flags & F_ROOT != 0
    }
}

impl Page {
    /// A page of zeroes.
    pub fn zeroed() -> Box<Page> {
        Box::new(Page([0; PAGE_SIZE]))
    }

    /// Whether the page may be handed out for reuse: deleted, or never used.
    pub fn is_free(&self) -> bool {
        self.u16(PD_UPPER) == 0 || (self.u16(S_MAGIC) == MAGIC && self.0[S_KIND] == 3)
    }

    #[inline]
    pub(crate) fn u16(&self, at: usize) -> u16 {
        u16::from_le_bytes([self.0[at], self.0[at + 1]])
    }

    #[inline]
    pub(crate) fn u32(&self, at: usize) -> u32 {
        let mut b = [0; 4];
        b.copy_from_slice(&self.0[at..at + 4]);
        u32::from_le_bytes(b)
    }

    #[inline]
    pub(crate) fn u64(&self, at: usize) -> u64 {
        let mut b = [0; 8];
        b.copy_from_slice(&self.0[at..at + 8]);
        u64::from_le_bytes(b)
    }

    #[inline]
    pub(crate) fn key(&self, at: usize) -> Key {
        [
            self.u64(at),
            self.u64(at + 8),
            self.u64(at + 16),
            self.u64(at + 24),
        ]
    }

    #[inline]
    pub(crate) fn put_u16(&mut self, at: usize, v: u16) {
        self.0[at..at + 2].copy_from_slice(&v.to_le_bytes());
    }

    #[inline]
    pub(crate) fn put_u32(&mut self, at: usize, v: u32) {
        self.0[at..at + 4].copy_from_slice(&v.to_le_bytes());
    }

    #[inline]
    pub(crate) fn put_u64(&mut self, at: usize, v: u64) {
        self.0[at..at + 8].copy_from_slice(&v.to_le_bytes());
    }

    pub(crate) fn put_key(&mut self, at: usize, key: &Key) {
        for (i, v) in key.iter().enumerate() {
            self.put_u64(at + 8 * i, *v);
        }
    }

    /// End of the used bytes in front of the hole.
    #[inline]
    pub(crate) fn lower(&self) -> usize {
        usize::from(self.u16(PD_LOWER))
    }

    /// Start of the used bytes behind the hole.
    #[inline]
    pub(crate) fn upper(&self) -> usize {
        usize::from(self.u16(PD_UPPER))
    }

    pub(crate) fn set_lower(&mut self, v: usize) {
        self.put_u16(PD_LOWER, v as u16);
    }

    pub(crate) fn set_upper(&mut self, v: usize) {
        self.put_u16(PD_UPPER, v as u16);
    }

    /// Bytes free for tail records and their slots; 0 when the header is nonsense.
    #[inline]
    pub(crate) fn room(&self) -> usize {
        self.upper().saturating_sub(self.lower())
    }

    /// Fills the hole with zeroes.
    pub fn clear_hole(&mut self) {
        let (lower, upper) = (self.lower(), self.upper());
        if let Some(hole) = self.0.get_mut(lower..upper) {
            hole.fill(0);
        }
    }

    /// Writes the page header of an empty page and the special area.
    pub(crate) fn init(&mut self, frame: &Frame) {
        self.set_lower(HEADER);
        self.set_upper(SPECIAL);
        self.put_u16(PD_SPECIAL, SPECIAL as u16);
        self.put_u16(PD_PAGESIZE_VERSION, PAGESIZE_VERSION);
        self.put_u16(S_MAGIC, MAGIC);
        self.0[S_VERSION] = VERSION;
        self.0[S_KIND] = match frame.kind {
            PageKind::Meta => 0,
            PageKind::Leaf => 1,
            PageKind::Inner => 2,
            PageKind::Deleted => 3,
        };
        self.0[S_ORDER] = frame.order;
        self.0[S_LEVEL] = frame.level;
        self.set_flags(
            frame.flags & !F_HIGH_INF | if frame.high.is_none() { F_HIGH_INF } else { 0 },
        );
        self.put_u32(S_RIGHT, frame.right);
        self.put_key(S_LOW, &frame.low);
        self.put_key(S_HIGH, &frame.high.unwrap_or([u64::MAX; 4]));
    }

    pub(crate) fn flags(&self) -> u16 {
        self.u16(S_FLAGS)
    }

    /// The level of a page of a tree; leaves are at 0.
    #[inline]
    pub(crate) fn level(&self) -> u8 {
        self.0[S_LEVEL]
    }

    pub(crate) fn set_right(&mut self, right: BlockNo) {
        self.put_u32(S_RIGHT, right);
    }

    pub(crate) fn set_flags(&mut self, flags: u16) {
        self.put_u16(S_FLAGS, flags);
    }

    /// Reads the special area.
    ///
    /// # Errors
    /// Corrupt when the page is not one of this crate's.
    #[inline]
    pub(crate) fn frame(&self, block: BlockNo) -> Result<Frame> {
        if self.u16(S_MAGIC) != MAGIC || usize::from(self.u16(PD_SPECIAL)) != SPECIAL {
            return corrupt(block, "not a page of a quad tree");
        }
        if self.lower() < HEADER || self.lower() > self.upper() || self.upper() > SPECIAL {
            return corrupt(block, "bad page header");
        }
        if self.0[S_VERSION] != VERSION {
            let version = self.0[S_VERSION];
            return Err(Error::OtherFormat { block, version });
        }
        let kind = match self.0[S_KIND] {
            0 => PageKind::Meta,
            1 => PageKind::Leaf,
            2 => PageKind::Inner,
            3 => PageKind::Deleted,
            _ => return corrupt(block, "unknown page kind"),
        };
        let flags = self.u16(S_FLAGS);
        Ok(Frame {
            kind,
            order: self.0[S_ORDER],
            level: self.0[S_LEVEL],
            flags,
            right: self.u32(S_RIGHT),
            low: self.key(S_LOW),
            high: if flags & F_HIGH_INF != 0 {
                None
            } else {
                Some(self.key(S_HIGH))
            },
        })
    }

    /// The image of a deleted page.
    pub(crate) fn deleted(order: u8, level: u8) -> Box<Page> {
        let mut page = Page::zeroed();
        page.init(&Frame {
            kind: PageKind::Deleted,
            order,
            level,
            flags: 0,
            right: NO_BLOCK,
            low: [0; 4],
            high: None,
        });
        page
    }
}
