//! Where the tables of the dictionary are: in this database alone, or in shards on many nodes.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use pgrx::pg_sys;

use super::tables::Tables;
use crate::cluster::guard;

/// Where the tables are.
pub struct Layout {
    /// The relations that have the names.
    named: Tables,
    /// The relations to read and write where the dictionary is not distributed.
    pub tables: Tables,
    /// Citus's catalogue that tells whether this node is a worker; `InvalidOid` without Citus.
    local_group: pg_sys::Oid,
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
        guard::refuse_worker();
        Layout {
            named,
            tables: named,
            local_group: guard::local_group_table(),
        }
    }

    /// Whether a change of `relation` may change the layout. Citus may come at any time.
    fn depends_on(&self, relation: pg_sys::Oid) -> bool {
        self.local_group == pg_sys::InvalidOid
            || relation == self.local_group
            || self.named.contains(relation)
    }

    /// Whether both are layouts of the same dictionary, so that what was read through one is true in the other.
    pub fn is_of_same_dictionary(&self, other: &Layout) -> bool {
        self.named == other.named
    }
}

/// To be called when locks taken by this transaction or a part of it have been released.
pub fn forget_locks() {
    LOCKED.set(false);
}

/// Forgets a layout that a change of a relation may have changed.
pub fn relation_changed(relation: pg_sys::Oid) {
    KNOWN.with(|known| {
        // It is borrowed only while it is copied or set, when nothing comes from PostgreSQL.
        if let Ok(mut known) = known.try_borrow_mut() {
            if known
                .as_ref()
                .is_none_or(|layout| layout.depends_on(relation))
            {
                *known = None;
                guard::dictionary_changed();
            }
        }
    });
}
