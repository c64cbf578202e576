//! Where the tables of the dictionary are: in this database alone, or in shards on many nodes.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use pgrx::pg_sys;

use super::extents::extent_of;
use super::tables::Tables;
use crate::cluster::{guard, map};

/// Where the tables are.
pub struct Layout {
    /// The relations that have the names.
    named: Tables,
    /// The relations to read and write where the dictionary is not distributed. In a distributed one those of the
    /// languages and symbol tables are this node's copies (`InvalidOid` where it has none), and the others are empty.
    pub tables: Tables,
    /// The shards of a distributed dictionary.
    pub shards: Option<Shards>,
}

/// The shards of a distributed dictionary. The three tables are colocated, so a shard is known by its place in any of
/// them.
pub struct Shards {
    term_ids: Rc<map::Table>,
    /// The tables of each shard that is on this node.
    here: Vec<Option<Tables>>,
}

impl Shards {
    /// The place of the shard that finds the term with this hash, and gives it its number.
    pub fn of_hash(&self, hash: u128) -> usize {
        self.term_ids.placement.shard_of((hash >> 64) as i64)
    }

    /// The place of the shard that holds the term with this number.
    pub fn of_number(&self, number: u64) -> usize {
        self.of_extent(extent_of(number))
    }

    /// The place of the shard that an extent belongs to.
    pub fn of_extent(&self, extent: u64) -> usize {
        self.term_ids.placement.shard_of(extent as i64)
    }

    /// The tables of the shard at this place where it is on this node.
    pub fn here(&self, place: usize) -> Option<&Tables> {
        self.here[place].as_ref()
    }

    /// Citus' number of the shard of `quad.term_ids` at this place.
    pub fn id(&self, place: usize) -> u64 {
        self.term_ids.placement.shards()[place].id
    }

    /// The place of the shard with this number of Citus'.
    pub fn place_of_id(&self, id: u64) -> Option<usize> {
        let shards = self.term_ids.placement.shards();
        shards.iter().position(|shard| shard.id == id)
    }

    /// Citus' number of the group of the node that holds the shard at this place.
    pub fn group(&self, place: usize) -> i32 {
        self.term_ids.placement.shards()[place].group
    }

    /// Number of shards.
    pub fn count(&self) -> usize {
        self.here.len()
    }
}

/// The relations that a layout depends on.
#[derive(Clone, Copy)]
struct Watched {
    named: Tables,
    /// Citus's catalogue that tells whether this node is a worker; `InvalidOid` without Citus.
    local_group: pg_sys::Oid,
}

impl Watched {
    /// Whether a change of `relation` may change the layout. Citus may come at any time.
    fn contains(&self, relation: pg_sys::Oid) -> bool {
        self.local_group == pg_sys::InvalidOid
            || relation == self.local_group
            || self.named.contains(relation)
    }
}

thread_local! {
    /// The layout last looked up, for as long as PostgreSQL has not said that one of the tables changed.
    static KNOWN: RefCell<Option<Rc<Layout>>> = const { RefCell::new(None) };
    /// The relations whose changes count.
    static WATCHED: Cell<Option<Watched>> = const { Cell::new(None) };
    /// Number of changes of them.
    static CHANGES: Cell<u64> = const { Cell::new(0) };
    /// Whether this transaction holds the locks that keep a dictionary that is not distributed from being so.
    static LOCKED: Cell<bool> = const { Cell::new(false) };
}

impl Layout {
    /// The layout now; an error when the extension is not installed. A local dictionary stays local until the
    /// transaction ends, unless the transaction itself distributes it.
    pub fn current() -> Rc<Layout> {
        let layout = Self::known();
        if LOCKED.get() {
            return layout;
        }
        // SAFETY: locks of relations that exist; waits only for whoever distributes the dictionary or drops the
        // extension.
        unsafe {
            for relation in [layout.named.terms, layout.named.term_ids] {
                pg_sys::LockRelationOid(relation, pg_sys::AccessShareLock as pg_sys::LOCKMODE);
            }
        }
        LOCKED.set(true);
        // Taking the locks has told this backend of all changes before.
        Self::known()
    }

    /// Whether this session knows that the dictionary is on several nodes. Neither looks nor locks: a scan that uses no
    /// term runs where there is no dictionary, and beside whoever distributes it.
    pub fn is_known_distributed() -> bool {
        KNOWN.with_borrow(|layout| layout.as_ref().is_some_and(|known| known.shards.is_some()))
    }

    /// The layout after all changes that other sessions have committed.
    pub fn newest() -> Rc<Layout> {
        // SAFETY: within a transaction.
        unsafe { pg_sys::AcceptInvalidationMessages() };
        Self::current()
    }

    fn known() -> Rc<Layout> {
        loop {
            if let Some(layout) = KNOWN.with_borrow(Option::clone) {
                return layout;
            }
            let named = Tables::by_name();
            let local_group = guard::local_group_table();
            WATCHED.set(Some(Watched { named, local_group }));
            let changes = CHANGES.get();
            let layout = Rc::new(Self::look_up(named));
            // What has changed meanwhile may have been read in part.
            if CHANGES.get() == changes {
                KNOWN.set(Some(layout));
            }
        }
    }

    fn look_up(named: Tables) -> Layout {
        let shards = Shards::look_up(&named);
        let mut tables = named;
        if shards.is_none() {
            guard::refuse_worker();
        } else {
            tables.languages = map::local_copy(named.languages);
            tables.symbol_tables = map::local_copy(named.symbol_tables);
        }
        let here = |mut shard: Tables| {
            shard.languages = tables.languages;
            shard.symbol_tables = tables.symbol_tables;
            shard
        };
        let shards = shards.map(|mut shards| {
            shards.here = shards.here.into_iter().map(|t| t.map(here)).collect();
            shards
        });
        Layout {
            named,
            tables,
            shards,
        }
    }

    /// What tells this dictionary from others that the database has had: the number of its table of terms.
    pub fn number(&self) -> u32 {
        self.named.terms.to_u32()
    }

    /// Whether both are layouts of the same dictionary, so that what was read through one is true in the other.
    pub fn is_of_same_dictionary(&self, other: &Layout) -> bool {
        self.named == other.named
    }

    /// The place of the shard that holds the block of the term with this number; 0 where there are no shards.
    pub fn shard_of(&self, number: u64) -> usize {
        let shards = self.shards.as_ref();
        shards.map_or(0, |shards| shards.of_number(number))
    }

    /// The tables that hold the block of the term with this number; `None` where they are on another node.
    pub fn holding(&self, number: u64) -> Option<&Tables> {
        match &self.shards {
            None => Some(&self.tables),
            Some(shards) => shards.here(shards.of_number(number)),
        }
    }
}

impl Shards {
    fn look_up(named: &Tables) -> Option<Shards> {
        let term_ids = map::table_of(named.term_ids)?;
        let terms = map::table_of(named.terms)?;
        let extents = map::table_of(named.extents)?;
        let shard = |place: usize| {
            Some(Tables {
                terms: (*terms.here.get(place)?)?,
                term_ids: (*term_ids.here.get(place)?)?,
                extents: (*extents.here.get(place)?)?,
                ..*named
            })
        };
        let here = (0..term_ids.here.len()).map(shard).collect();
        Some(Shards { term_ids, here })
    }
}

/// To be called when locks taken by this transaction or a part of it have been released.
pub fn forget_locks() {
    LOCKED.set(false);
}

/// Forgets a layout that a change of a relation may have changed.
pub fn relation_changed(relation: pg_sys::Oid) {
    if WATCHED
        .get()
        .is_none_or(|watched| watched.contains(relation))
    {
        CHANGES.set(CHANGES.get() + 1);
        // The cell is borrowed only while it is copied or set, when nothing comes from PostgreSQL.
        KNOWN.set(None);
        guard::dictionary_changed();
    }
}
