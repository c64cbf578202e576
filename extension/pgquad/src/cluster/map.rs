//! The map of shards: which hash ranges of a distributed table are where. Kept for as long as Citus does not say that
//! it has changed. Citus invalidates the relation cache of a table whose placements change, and that of `pg_dist_node`
//! when nodes change.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};
use std::ffi::{CStr, CString};
use std::rc::Rc;

use pgquad_cluster::{Placement, Shard};
use pgrx::{pg_sys, PgSqlErrorCode};

use super::catalogue::{self, CatalogueSnapshot, ScanKey};
use super::nodes::{self, Node};
use crate::catalog::names::c_string;
use crate::pg::error::raise_hint;

/// A distributed table.
pub struct Table {
    /// Citus' table: a relation that is empty on every node.
    pub relid: pg_sys::Oid,
    /// Where its shards are.
    pub placement: Placement,
    /// For each shard of the placement, its relation where it is on this node.
    pub here: Vec<Option<pg_sys::Oid>>,
    /// For each shard, the transaction that has told this node where it is: what was copied there has been committed
    /// before. 0: long ago.
    pub arrived: Vec<u32>,
    /// All shards are on this node.
    pub all_here: bool,
}

#[derive(Default)]
struct Map {
    tables: HashMap<pg_sys::Oid, Option<Rc<Table>>>,
    /// Relations of shards of this node, by number of the shard.
    shards: HashMap<u64, pg_sys::Oid>,
    /// When they have arrived: [`Table::arrived`].
    arrived: HashMap<pg_sys::Oid, u32>,
    nodes: Option<Rc<[Node]>>,
    local_group: Option<i32>,
    /// Relations of which a change makes the map stale.
    watched: HashSet<pg_sys::Oid>,
}

thread_local! {
    static MAP: RefCell<Map> = RefCell::new(Map::default());
    static GENERATION: Cell<u64> = const { Cell::new(0) };
    static STALE: Cell<bool> = const { Cell::new(false) };
}

/// A relation has changed; it is not known yet how.
pub fn relation_changed(relid: pg_sys::Oid) {
    let concerned = relid == pg_sys::InvalidOid
        || MAP.with(|map| {
            map.try_borrow()
                .map_or(true, |map| map.watched.contains(&relid))
        });
    if concerned {
        STALE.set(true);
    }
}

/// How often the map has been forgotten: what was sent to nodes before may be wrong now.
pub fn generation() -> u64 {
    with_map(|_| GENERATION.get())
}

/// Runs `body` on a map that has nothing in it that is known to be out of date.
fn with_map<T>(body: impl FnOnce(&mut Map) -> T) -> T {
    MAP.with_borrow_mut(|map| {
        if STALE.replace(false) {
            *map = Map::default();
            GENERATION.set(GENERATION.get() + 1);
        }
        body(map)
    })
}

/// A hash-distributed table of Citus, `None` for any other relation.
pub fn table_of(relid: pg_sys::Oid) -> Option<Rc<Table>> {
    if let Some(known) = with_map(|map| map.tables.get(&relid).cloned()) {
        return known;
    }
    let table = read_watching(relid, || read(relid).map(Rc::new));
    with_map(|map| {
        if let Some(table) = &table {
            let here = table.here.iter().zip(&table.arrived);
            for (shard, (&oid, &arrived)) in table.placement.shards().iter().zip(here) {
                if let Some(oid) = oid {
                    map.shards.insert(shard.id, oid);
                    map.arrived.insert(oid, arrived);
                    map.watched.insert(oid);
                }
            }
        }
        map.tables.insert(relid, table.clone());
    });
    table
}

/// Reads the catalogue until what is read does not change meanwhile: it may have been read in part. A change of the
/// relation `relid` tells so.
fn read_watching<T>(relid: pg_sys::Oid, read: impl Fn() -> T) -> T {
    loop {
        let before = with_map(|map| {
            map.watched.insert(relid);
            GENERATION.get()
        });
        let found = read();
        // What reads the map empties it where it is stale.
        if !STALE.get() && GENERATION.get() == before {
            return found;
        }
    }
}

/// Reads the catalogue.
fn read(relid: pg_sys::Oid) -> Option<Table> {
    if !nodes::has_citus() {
        return None;
    }
    let this = local_group();
    let snapshot = CatalogueSnapshot::take();
    let mut is_hashed = false;
    snapshot.each_row(
        c"pg_dist_partition",
        Some(&ScanKey::of_partition(relid)),
        |row| {
            is_hashed = row.get::<i8>(c"partmethod") == Some(b'h' as i8);
        },
    );
    if !is_hashed {
        return None;
    }
    let mut shards = Vec::new();
    snapshot.each_row(c"pg_dist_shard", Some(&ScanKey::of_shards(relid)), |row| {
        let bound = |column| row.get::<&str>(column)?.parse::<i32>().ok();
        let shard = row.get::<i64>(c"shardid");
        shards.push((shard, bound(c"shardminvalue"), bound(c"shardmaxvalue")));
    });
    let mut rows = Vec::with_capacity(shards.len());
    for (id, low, high) in shards {
        let (id, low, high) = (id?, low?, high?);
        snapshot.each_row(
            c"pg_dist_placement",
            Some(&ScanKey::of_placements(id)),
            |row| {
                let group = row.get(c"groupid").unwrap_or(-1);
                let here = (group == this).then(|| shard_relation(relid, id));
                let id = id as u64;
                let shard = Shard {
                    id,
                    low,
                    high,
                    group,
                };
                rows.push((shard, here.flatten(), row.xmin()));
            },
        );
    }
    rows.sort_unstable_by_key(|(shard, ..)| shard.low);
    let here: Vec<Option<pg_sys::Oid>> = rows.iter().map(|(_, oid, _)| *oid).collect();
    let arrived = rows.iter().map(|(_, _, xmin)| recent(*xmin));
    let arrived = arrived.collect();
    let placement = Placement::new(rows.into_iter().map(|(shard, ..)| shard).collect())?;
    Some(Table {
        relid,
        placement,
        all_here: here.iter().all(Option::is_some),
        here,
        arrived,
    })
}

/// The number of a transaction, 0 for one of so long ago that it looks like one to come.
fn recent(xid: pg_sys::TransactionId) -> u32 {
    // SAFETY: plain session state and arithmetic.
    let precedes = unsafe {
        let next = pg_sys::ReadNextFullTransactionId().value as u32;
        pg_sys::TransactionIdPrecedes(xid, pg_sys::TransactionId::from(next))
    };
    if precedes {
        xid.into_inner()
    } else {
        0
    }
}

/// When a shard has arrived on this node, as far as it is known: [`Table::arrived`].
pub fn arrived(shard: pg_sys::Oid) -> u32 {
    with_map(|map| map.arrived.get(&shard).copied().unwrap_or(0))
}

/// This node's copy of a table that Citus keeps on every node (a reference table); `InvalidOid` where it has none.
pub fn local_copy(relid: pg_sys::Oid) -> pg_sys::Oid {
    let this = local_group();
    let snapshot = CatalogueSnapshot::take();
    let mut shards = Vec::new();
    snapshot.each_row(c"pg_dist_shard", Some(&ScanKey::of_shards(relid)), |row| {
        shards.extend(row.get::<i64>(c"shardid"));
    });
    let is_here = |shard: &i64| {
        let mut is_here = false;
        snapshot.each_row(
            c"pg_dist_placement",
            Some(&ScanKey::of_placements(*shard)),
            |row| {
                is_here |= row.get(c"groupid") == Some(this);
            },
        );
        is_here
    };
    let shard = shards.into_iter().find(is_here);
    let copy = shard.and_then(|shard| shard_relation(relid, shard));
    copy.unwrap_or(pg_sys::InvalidOid)
}

/// The relation of a shard of a table on this node, whose name is that of the table with the number.
fn shard_relation(relid: pg_sys::Oid, shard: i64) -> Option<pg_sys::Oid> {
    // SAFETY: look-ups by oid; the name is a copy in the current memory context.
    let (mut name, schema) = unsafe {
        let name = pg_sys::get_rel_name(relid);
        if name.is_null() {
            return None;
        }
        let name = CStr::from_ptr(name).to_bytes().to_vec();
        (name, pg_sys::get_rel_namespace(relid))
    };
    name.extend(format!("_{shard}").bytes());
    if name.len() < pg_sys::NAMEDATALEN as usize {
        let name = CString::new(name).ok()?;
        // SAFETY: a look-up by name.
        let found = unsafe { pg_sys::get_relname_relid(name.as_ptr(), schema) };
        return (found != pg_sys::InvalidOid).then_some(found);
    }
    // Citus shortens such a name by a hash.
    let relid = relid.to_u32();
    let sql = c_string(&format!(
        "SELECT pg_catalog.to_regclass(pg_catalog.shard_name({relid}::pg_catalog.regclass, {shard}))::pg_catalog.oid"
    ));
    let found = nodes::query(&sql, |row| row.get::<pg_sys::Oid>(1));
    found.into_iter().flatten().next()
}

/// Raises the error for a shard that is not on this node.
pub fn not_here(shard: u64) -> ! {
    raise_hint(
        PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        format!("shard {shard} is not on this node"),
        "It has been moved while the query ran; run the query again. Where that does not help, this node may have been removed from the cluster.",
    )
}

/// The relation of a shard that has been moved away or split, as long as Citus has not cleaned it up.
pub fn left_behind(shard: u64) -> Option<pg_sys::Oid> {
    let sql = format!(include_str!("queries/left_behind.sql"), shard = shard);
    let sql = std::ffi::CString::new(sql).unwrap_or_default();
    let found = nodes::query(&sql, |row| row.get::<pg_sys::Oid>(1));
    found.into_iter().flatten().next()
}

/// The relation of a shard of this node; `None` where it is elsewhere.
pub fn local_shard(shard: u64) -> Option<pg_sys::Oid> {
    let known = |map: &mut Map| map.shards.get(&shard).copied();
    if let Some(oid) = with_map(known) {
        return Some(oid);
    }
    let mut tables = Vec::new();
    catalogue::each_row(
        c"pg_dist_shard",
        Some(&ScanKey::of_shard(shard as i64)),
        |row| {
            tables.push(row.get::<pg_sys::Oid>(c"logicalrelid"));
        },
    );
    tables.into_iter().flatten().for_each(|relid| {
        table_of(relid);
    });
    with_map(known)
}

/// The active nodes.
pub fn nodes() -> Rc<[Node]> {
    if let Some(known) = with_map(|map| map.nodes.clone()) {
        return known;
    }
    of_nodes(
        || nodes::read().into(),
        |map, found: &Rc<[Node]>| map.nodes = Some(found.clone()),
    )
}

/// The number of this node's group.
pub fn local_group() -> i32 {
    if let Some(known) = with_map(|map| map.local_group) {
        return known;
    }
    of_nodes(nodes::local_group, |map, found| {
        map.local_group = Some(*found);
    })
}

/// Reads something about nodes, and keeps it in the map until nodes change; not where Citus, which says so, is not
/// there yet.
fn of_nodes<T>(read: impl Fn() -> T, keep: impl FnOnce(&mut Map, &T)) -> T {
    let relid = catalogue::relation(c"pg_dist_node");
    if relid == pg_sys::InvalidOid {
        return read();
    }
    let found = read_watching(relid, read);
    with_map(|map| keep(map, &found));
    found
}

/// The node of a group.
pub fn node(group: i32) -> Node {
    let nodes = nodes();
    let found = nodes.iter().find(|node| node.group == group);
    found.cloned().unwrap_or_else(|| nodes::unknown(group))
}
