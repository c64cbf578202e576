//! Column statistics of distributed stores: those of shards.
//!
//! ANALYZE of a store reaches its shards; its own relation is empty and has no rows in `pg_statistic`. Without them the
//! planner takes a share of all quads for what a parameter selects, and plans a prepared statement anew for each value.
//! It is told how many values a column has, and nothing of single values: those are counted in the orders.

use std::cell::RefCell;
use std::time::{Duration, Instant};

use pgrx::pg_sys;
use pgrx::prelude::*;
use rustc_hash::FxHashMap;

use super::map;
use crate::catalog::distributed_store::{self, Sides};

/// After this time the catalogue is looked at anew.
const MAX_AGE: Duration = Duration::from_secs(10);

/// Columns by which the tables of a store are distributed, as `pg_attribute` numbers them.
const SUBJECT: pg_sys::AttrNumber = 1;
const OBJECT: pg_sys::AttrNumber = 3;

/// Columns of `pg_statistic` that every row has a value of.
const FIXED: u16 = pg_sys::Anum_pg_statistic_stacoll5 as u16;

static mut PREVIOUS: pg_sys::get_relation_stats_hook_type = None;

/// What is known of a column of a store.
struct Known {
    since: Instant,
    /// In the memory context of the session.
    tuple: Option<pg_sys::HeapTuple>,
}

thread_local! {
    /// By relation and column. A list of ten thousand members asks as often.
    static KNOWN: RefCell<FxHashMap<(u32, pg_sys::AttrNumber), Known>> = RefCell::default();
}

/// Installs the hook; called once from `_PG_init`.
pub fn init() {
    // SAFETY: _PG_init runs once, before any statement.
    unsafe {
        PREVIOUS = pg_sys::get_relation_stats_hook;
        pg_sys::get_relation_stats_hook = Some(relation_statistics);
    }
}

/// Gives the planner what is known of a column of a distributed store.
#[pg_guard]
unsafe extern "C-unwind" fn relation_statistics(
    root: *mut pg_sys::PlannerInfo,
    rte: *mut pg_sys::RangeTblEntry,
    column: pg_sys::AttrNumber,
    variable: *mut pg_sys::VariableStatData,
) -> bool {
    // SAFETY: live planner nodes; the statement has locked the relation. The tuple is a copy, freed as the planner is
    // told.
    unsafe {
        if PREVIOUS.is_some_and(|previous| previous(root, rte, column, variable)) {
            return true;
        }
        if (*rte).rtekind != pg_sys::RTEKind::RTE_RELATION {
            return false;
        }
        let Some(sides) = distributed_store::sides_of_relid((*rte).relid) else {
            return false;
        };
        let Some(tuple) = known((*rte).relid, column, sides) else {
            return false;
        };
        (*variable).statsTuple = pg_sys::heap_copytuple(tuple);
        (*variable).freefunc = Some(free);
        true
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn free(tuple: pg_sys::HeapTuple) {
    // SAFETY: the copy that was given to the planner.
    unsafe { pg_sys::heap_freetuple(tuple) }
}

/// The statistics of a column, from memory where they are fresh.
fn known(
    relid: pg_sys::Oid,
    column: pg_sys::AttrNumber,
    sides: Sides,
) -> Option<pg_sys::HeapTuple> {
    let key = (relid.to_u32(), column);
    let fresh = KNOWN.with_borrow(|known| {
        let known = known.get(&key)?;
        (known.since.elapsed() < MAX_AGE).then_some(known.tuple)
    });
    if let Some(tuple) = fresh {
        return tuple;
    }
    let found = of_column(sides, column);
    // SAFETY: a tuple of the current memory context, copied into that of the session.
    let tuple = found.map(|found| unsafe {
        let before = pg_sys::MemoryContextSwitchTo(pg_sys::TopMemoryContext);
        let copy = pg_sys::heap_copytuple(found);
        pg_sys::MemoryContextSwitchTo(before);
        copy
    });
    let new = Known {
        since: Instant::now(),
        tuple,
    };
    let old = KNOWN.with_borrow_mut(|known| known.insert(key, new));
    if let Some(old) = old.and_then(|old| old.tuple) {
        // SAFETY: made above, and given to nobody but as a copy.
        unsafe { pg_sys::heap_freetuple(old) };
    }
    tuple
}

/// The statistics of a column of all quads, from those of a shard.
///
/// A shard has a random part of the quads, as far as they are placed by another column. Of the column that places them
/// it has all quads of some values: the values of all shards add up.
fn of_column(sides: Sides, column: pg_sys::AttrNumber) -> Option<pg_sys::HeapTuple> {
    let table = map::table_of(match column {
        OBJECT => sides.by_object,
        _ => sides.by_subject,
    })?;
    let tuple = table
        .here
        .iter()
        .flatten()
        .find_map(|&shard| of_shard(shard, column))?;
    // SAFETY: a copy of a tuple of `pg_statistic`, of which the fixed columns are kept.
    unsafe {
        let row = pg_sys::GETSTRUCT(tuple).cast::<pg_sys::FormData_pg_statistic>();
        // Negative: a share of the quads, which is the same in all shards.
        if [SUBJECT, OBJECT].contains(&column) && (*row).stadistinct > 0.0 {
            (*row).stadistinct *= table.here.len() as f32;
        }
        ((*row).stakind1, (*row).stakind2, (*row).stakind3) = (0, 0, 0);
        ((*row).stakind4, (*row).stakind5) = (0, 0);
        let header = (*tuple).t_data;
        (*header).t_infomask2 = (*header).t_infomask2 & !(pg_sys::HEAP_NATTS_MASK as u16) | FIXED;
        let fixed = size_of::<pg_sys::FormData_pg_statistic>();
        (*tuple).t_len = u32::from((*header).t_hoff) + fixed as u32;
    }
    Some(tuple)
}

/// A copy of the statistics of a column of a shard.
fn of_shard(shard: pg_sys::Oid, column: pg_sys::AttrNumber) -> Option<pg_sys::HeapTuple> {
    // SAFETY: a look-up in the catalogue; the tuple is copied and released.
    unsafe {
        let tuple = pg_sys::SearchSysCache3(
            pg_sys::SysCacheIdentifier::STATRELATTINH as i32,
            pg_sys::Datum::from(shard),
            pg_sys::Datum::from(column),
            pg_sys::Datum::from(false),
        );
        if tuple.is_null() {
            return None;
        }
        let copy = pg_sys::heap_copytuple(tuple);
        pg_sys::ReleaseSysCache(tuple);
        Some(copy)
    }
}
