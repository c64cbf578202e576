//! The metapage (block 0): the orders of the file, their roots and options.

use crate::block::{BlockNo, NO_BLOCK};
use crate::error::{corrupt, Error, Result};
use crate::key::KEY_MIN;
use crate::leaf::empty_leaf;
use crate::order::{Order, DEFAULT_ORDERS};
use crate::page::{Frame, Page, PageKind, F_ROOT, HEADER};
use crate::store::PageStore;

/// The largest number of orders a file can have.
pub const MAX_ORDERS: usize = 24;

/// Least accepted limit of children per inner page and quads per leaf.
const MIN_LIMIT: u32 = 4;

const FILE_MAGIC: u64 = u64::from_le_bytes(*b"pgquad\0\x01");
const FORMAT: u32 = 1;

const M_FORMAT: usize = HEADER + 8;
const M_ORDERS: usize = HEADER + 12;
const M_LIVE: usize = HEADER + 16;
const M_DEAD: usize = HEADER + 24;
const M_TABLE: usize = HEADER + 32;
const ENTRY: usize = 24;

/// Options of a new file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The orders, the first one being the one that decides what is in the store.
    pub orders: Vec<OrderOptions>,
}

/// Options of one order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderOptions {
    /// The permutation.
    pub order: Order,
    /// Most children of an inner page; 0 = what fits.
    pub inner_fanout: u32,
    /// Most quads in a leaf; 0 = what fits.
    pub leaf_quads: u32,
}

impl Default for Options {
    fn default() -> Self {
        Options::with_orders(&DEFAULT_ORDERS)
    }
}

impl Options {
    /// These orders, pages as full as they go.
    pub fn with_orders(orders: &[Order]) -> Self {
        let orders = orders
            .iter()
            .map(|&order| OrderOptions {
                order,
                inner_fanout: 0,
                leaf_quads: 0,
            })
            .collect();
        Options { orders }
    }

    /// Checks the options.
    ///
    /// # Errors
    /// [`Error::BadOptions`] when there are no or too many orders, one is given twice, or a limit is
    /// below 4.
    pub fn check(&self) -> Result<()> {
        let bad = |what: String| Err(Error::BadOptions(what));
        if self.orders.is_empty() {
            return bad("at least one order is needed".into());
        }
        if self.orders.len() > MAX_ORDERS {
            return bad(format!("at most {MAX_ORDERS} orders are possible"));
        }
        for (i, o) in self.orders.iter().enumerate() {
            if self.orders[..i].iter().any(|p| p.order == o.order) {
                return bad(format!("order {} is given twice", o.order));
            }
            for (name, v) in [
                ("inner_fanout", o.inner_fanout),
                ("leaf_quads", o.leaf_quads),
            ] {
                if v != 0 && v < MIN_LIMIT {
                    return bad(format!(
                        "{name} must be 0 (page-full) or at least {MIN_LIMIT}"
                    ));
                }
            }
        }
        Ok(())
    }
}

/// One order as the metapage describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderMeta {
    /// The permutation.
    pub order: Order,
    /// The root page.
    pub root: BlockNo,
    /// The level of the root page (0 = leaf).
    pub root_level: u8,
    /// Most children of an inner page; 0 = what fits.
    pub inner_fanout: u32,
    /// Most quads in a leaf; 0 = what fits.
    pub leaf_quads: u32,
}

/// The contents of the metapage. Plain data: it may be kept as long as the file is the same one
/// (the roots are hints that operations check and refresh).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meta {
    count: usize,
    orders: [OrderMeta; MAX_ORDERS],
    /// Live quads found by the last vacuum or bulk build.
    pub live: u64,
    /// Deleted quads still in place after the last vacuum.
    pub dead: u64,
}

impl Meta {
    /// Reads the metapage of a file.
    ///
    /// # Errors
    /// Corrupt when block 0 is no metapage of this format.
    pub fn read<S: PageStore>(store: &S) -> Result<Self> {
        Self::decode(&store.read(0))
    }

    /// The orders, the first one deciding what is in the store.
    pub fn orders(&self) -> &[OrderMeta] {
        &self.orders[..self.count]
    }

    pub(crate) fn order_mut(&mut self, i: usize) -> Result<&mut OrderMeta> {
        self.orders[..self.count]
            .get_mut(i)
            .ok_or(Error::NoSuchOrder(i))
    }

    /// The options that would make a file like this one.
    pub fn options(&self) -> Options {
        let orders = self
            .orders()
            .iter()
            .map(|o| OrderOptions {
                order: o.order,
                inner_fanout: o.inner_fanout,
                leaf_quads: o.leaf_quads,
            })
            .collect();
        Options { orders }
    }

    pub(crate) fn decode(page: &Page) -> Result<Self> {
        if page.frame(0)?.kind != PageKind::Meta || page.u64(HEADER) != FILE_MAGIC {
            return corrupt(0, "not the metapage of a quad table");
        }
        if page.u32(M_FORMAT) != FORMAT {
            return corrupt(0, "unknown file format version");
        }
        let count = usize::from(page.0[M_ORDERS]);
        if count == 0 || count > MAX_ORDERS {
            return corrupt(0, "number of orders out of range");
        }
        let unused = OrderMeta {
            order: DEFAULT_ORDERS[0],
            root: NO_BLOCK,
            root_level: 0,
            inner_fanout: 0,
            leaf_quads: 0,
        };
        let mut meta = Meta {
            count,
            orders: [unused; MAX_ORDERS],
            live: page.u64(M_LIVE),
            dead: page.u64(M_DEAD),
        };
        for (i, o) in meta.orders[..count].iter_mut().enumerate() {
            let at = M_TABLE + ENTRY * i;
            let columns = [page.0[at], page.0[at + 1], page.0[at + 2], page.0[at + 3]];
            let Ok(order) = Order::new(columns) else {
                return corrupt(0, "order is not a permutation");
            };
            *o = OrderMeta {
                order,
                root: page.u32(at + 4),
                root_level: page.0[at + 8],
                inner_fanout: page.u32(at + 12),
                leaf_quads: page.u32(at + 16),
            };
        }
        Ok(meta)
    }

    pub(crate) fn encode(&self) -> Box<Page> {
        let mut page = Page::zeroed();
        page.init(&Frame {
            kind: PageKind::Meta,
            order: 0,
            level: 0,
            flags: 0,
            right: NO_BLOCK,
            low: KEY_MIN,
            high: None,
        });
        page.put_u64(HEADER, FILE_MAGIC);
        page.put_u32(M_FORMAT, FORMAT);
        page.0[M_ORDERS] = self.count as u8;
        page.put_u64(M_LIVE, self.live);
        page.put_u64(M_DEAD, self.dead);
        for (i, o) in self.orders().iter().enumerate() {
            let at = M_TABLE + ENTRY * i;
            page.0[at..at + 4].copy_from_slice(&o.order.0);
            page.put_u32(at + 4, o.root);
            page.0[at + 8] = o.root_level;
            page.put_u32(at + 12, o.inner_fanout);
            page.put_u32(at + 16, o.leaf_quads);
        }
        page.set_lower(M_TABLE + ENTRY * self.count);
        page
    }
}

/// The pages of a new, empty file, block 0 first: the metapage, then an empty root leaf per order.
///
/// # Errors
/// [`Error::BadOptions`], see [`Options::check`].
pub fn initial_pages(options: &Options) -> Result<Vec<Page>> {
    options.check()?;
    let mut pages = Vec::with_capacity(1 + options.orders.len());
    let mut orders = [OrderMeta {
        order: DEFAULT_ORDERS[0],
        root: NO_BLOCK,
        root_level: 0,
        inner_fanout: 0,
        leaf_quads: 0,
    }; MAX_ORDERS];
    for (i, o) in options.orders.iter().enumerate() {
        orders[i] = OrderMeta {
            order: o.order,
            root: 1 + i as BlockNo,
            root_level: 0,
            inner_fanout: o.inner_fanout,
            leaf_quads: o.leaf_quads,
        };
    }
    pages.push(
        *Meta {
            count: options.orders.len(),
            orders,
            live: 0,
            dead: 0,
        }
        .encode(),
    );
    for i in 0..options.orders.len() {
        pages.push(*empty_leaf(&Frame {
            kind: PageKind::Leaf,
            order: i as u8,
            level: 0,
            flags: F_ROOT,
            right: NO_BLOCK,
            low: KEY_MIN,
            high: None,
        }));
    }
    Ok(pages)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metapage_round_trip() {
        let mut options = Options::default();
        options.orders[1].inner_fanout = 16;
        options.orders[2].leaf_quads = 4;
        let pages = initial_pages(&options).unwrap();
        assert_eq!(pages.len(), 4);
        let meta = Meta::decode(&pages[0]).unwrap();
        assert_eq!(meta.options(), options);
        assert_eq!(Meta::decode(&meta.encode()).unwrap(), meta);
        assert!(Meta::decode(&pages[1]).is_err());
    }

    #[test]
    fn bad_options_are_refused() {
        let mut options = Options::default();
        options.orders[0].leaf_quads = 3;
        assert!(initial_pages(&options).is_err());
        options.orders[0].leaf_quads = 0;
        options.orders[1].order = options.orders[0].order;
        assert!(initial_pages(&options).is_err());
        assert!(initial_pages(&Options { orders: vec![] }).is_err());
    }
}
