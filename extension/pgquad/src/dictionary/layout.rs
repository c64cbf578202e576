//! Where the tables of the dictionary are: in this database alone, or in shards on many nodes.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use pgrx::pg_sys;
use pgrx::prelude::*;

use super::tables::Tables;

/// Where the tables are.
pub struct Layout {
    /// The relations that have the names.
    named: Tables,
    /// The relations to read and write where the dictionary is not distributed.
    pub tables: Tables,
}

thread_local! {
    /// The layout last looked up, for as long as PostgreSQL has not said that one of the tables changed.
    static KNOWN: RefCell<Option<Rc<Layout>>> = const { RefCell::new(None) };
    /// Whether this transaction holds the locks that keep a dictionary that is not distributed from being so.
    static LOCKED: Cell<bool> = const { Cell::new(false) };
}

impl Layout {
    /// The layout now; an error when the extension is not installed. A local dictionary stays local until the transaction ends.
    pub fn current() -> Rc<Layout> {
        let layout = Self::known();
        if LOCKED.get() {
            return layout;
        }
        // SAFETY: locks of relations that exist; waits only for whoever distributes the dictionary or drops the extension.
        unsafe {
            for relation in [layout.named.terms, layout.named.term_ids] {
                pg_sys::LockRelationOid(relation, pg_sys::AccessShareLock as pg_sys::LOCKMODE);
            }
        }
        LOCKED.set(true);
        // Taking the locks has told this backend of all changes before.
        Self::known()
    }

    fn known() -> Rc<Layout> {
        if let Some(layout) = KNOWN.with_borrow(Option::clone) {
            return layout;
        }
        let layout = Rc::new(Self::look_up());
        KNOWN.set(Some(layout.clone()));
        layout
    }

    fn look_up() -> Layout {
        let named = Tables::by_name();
        Layout {
            named,
            tables: named,
        }
    }

    /// Whether both are layouts of the same dictionary, so that what was read through one is true in the other.
    pub fn is_of_same_dictionary(&self, other: &Layout) -> bool {
        self.named == other.named
    }
}

/// Watches for changes of the tables; called once per process.
pub fn init() {
    // SAFETY: the callback is a plain function that lives as long as the process.
    unsafe { pg_sys::CacheRegisterRelcacheCallback(Some(changed), pg_sys::Datum::from(0)) };
}

/// To be called when locks taken by this transaction or a part of it have been released.
pub fn forget_locks() {
    LOCKED.set(false);
}

#[pg_guard]
unsafe extern "C-unwind" fn changed(_argument: pg_sys::Datum, relation: pg_sys::Oid) {
    KNOWN.with(|known| {
        // It is borrowed only while it is copied or set, when nothing comes from PostgreSQL.
        if let Ok(mut known) = known.try_borrow_mut() {
            if known
                .as_ref()
                .is_some_and(|layout| layout.named.contains(relation))
            {
                *known = None;
            }
        }
    });
}
