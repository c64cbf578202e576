//! Distributed stores: which relations stand for quads in shards, and where those are.
//!
//! A store is distributed when its relation `quad_stores.<name>` carries the mark, the option `shards = '<base>'` in
//! `pg_class.reloptions`. Its quads are in two colocated Citus tables, `quad_shards.<base>_s`, hash-distributed by `s`
//! (orders spog, psog), and `quad_shards.<base>_o` by `o` (ospg, posg). Every quad is in both; the relation's own file
//! stays empty. The base is the name that the store was distributed under: renaming the store changes neither mark nor
//! shards.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ffi::CStr;

use pgquad_btree::Order;
use pgrx::prelude::*;
use pgrx::{pg_sys, PgSqlErrorCode};

use super::names::c_string;
use crate::pg::error::raise_hint;

/// Schema of the Citus tables.
pub const SHARD_SCHEMA: &str = "quad_shards";

/// The option that marks the relation of a distributed store.
pub const MARK: &CStr = c"shards";

/// The orders of a distributed store. First come those of the table distributed by subject, then those of the table
/// distributed by object.
pub const ORDERS: [Order; 4] = [Order::SPOG, Order::PSOG, Order::OSPG, Order::POSG];

extension_sql!(
    r#"
CREATE SCHEMA quad_shards;
GRANT USAGE, CREATE ON SCHEMA quad_shards TO PUBLIC;
COMMENT ON SCHEMA quad_shards IS 'Citus tables of distributed quad stores, two for each, made by quad.create_store and quad.distribute_store';
"#,
    name = "shard_schema"
);

/// The two Citus tables of a distributed store, as this node names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sides {
    /// Distributed by subject, orders spog and psog.
    pub by_subject: pg_sys::Oid,
    /// Distributed by object, orders ospg and posg.
    pub by_object: pg_sys::Oid,
}

thread_local! {
    /// Relations that have been asked about, until one of them or of their sides changes.
    static KNOWN: RefCell<HashMap<pg_sys::Oid, Option<Sides>>> = RefCell::new(HashMap::new());
    /// Number of changes so far: what was looked up while one came in is not kept.
    static CHANGES: Cell<u64> = const { Cell::new(0) };
}

/// Forgets what a change of a relation may have changed; `InvalidOid` stands for every relation.
pub fn relation_changed(relid: pg_sys::Oid) {
    CHANGES.set(CHANGES.get() + 1);
    KNOWN.with_borrow_mut(|known| {
        let concerns = |(key, sides): (&pg_sys::Oid, &Option<Sides>)| {
            *key == relid
                || sides.is_some_and(|sides| [sides.by_subject, sides.by_object].contains(&relid))
        };
        if relid == pg_sys::InvalidOid || known.iter().any(concerns) {
            known.clear();
        }
    });
}

/// Where the quads of an open relation are, when it is that of a distributed store; `None`: in its own file.
///
/// # Safety
/// `rel` is open.
pub unsafe fn sides_of(rel: pg_sys::Relation) -> Option<Sides> {
    // SAFETY: the caller's promise.
    sides_of_relid(unsafe { (*rel).rd_id })
}

/// As [`sides_of`], for a relation that is locked but need not be open.
pub fn sides_of_relid(relid: pg_sys::Oid) -> Option<Sides> {
    if let Some(known) = KNOWN.with_borrow(|known| known.get(&relid).copied()) {
        return known;
    }
    let before = CHANGES.get();
    let sides = mark_of(relid).map(|base| sides_named(relid, &base));
    if CHANGES.get() == before {
        KNOWN.with_borrow_mut(|known| known.insert(relid, sides));
    }
    sides
}

/// The tables that a mark names.
fn sides_named(relid: pg_sys::Oid, base: &str) -> Sides {
    let side = |column: char| {
        let name = side_name(base, column);
        table_in_shard_schema(&name).unwrap_or_else(|| {
            // SAFETY: a look-up in the catalogue, copied at once.
            let store = unsafe {
                let name = pg_sys::get_rel_name(relid);
                if name.is_null() { String::new() } else { CStr::from_ptr(name).to_string_lossy().into_owned() }
            };
            raise_hint(
                PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                format!("store \"{store}\" is distributed, but this node has no table {SHARD_SCHEMA}.{name}"),
                "The node is not, or no longer, part of the cluster that has the quads. Ask a node of the cluster, or drop the store here.",
            )
        })
    };
    Sides {
        by_subject: side('s'),
        by_object: side('o'),
    }
}

/// The tables that a mark names, on a node whose relation need not be looked at.
pub fn sides_of_mark(base: &str) -> Option<Sides> {
    let side = |column: char| table_in_shard_schema(&side_name(base, column));
    Some(Sides {
        by_subject: side('s')?,
        by_object: side('o')?,
    })
}

/// Name of one of the two tables of a base; `column`: `s` or `o`.
pub fn side_name(base: &str, column: char) -> String {
    format!("{base}_{column}")
}

/// Whether a schema is `quad_shards`.
pub fn is_shard_schema(schema: pg_sys::Oid) -> bool {
    let name = c_string(SHARD_SCHEMA);
    // SAFETY: a look-up in the catalogue.
    schema != pg_sys::InvalidOid
        && schema == unsafe { pg_sys::get_namespace_oid(name.as_ptr(), true) }
}

/// Whether a table is one of the two Citus tables that hold the quads of a distributed store, or one of their shards.
pub fn is_side(relid: pg_sys::Oid) -> bool {
    // SAFETY: a look-up in the catalogue.
    is_shard_schema(unsafe { pg_sys::get_rel_namespace(relid) })
}

/// A table of schema `quad_shards`.
pub fn table_in_shard_schema(name: &str) -> Option<pg_sys::Oid> {
    let (schema, name) = (c_string(SHARD_SCHEMA), c_string(name));
    // SAFETY: look-ups in the catalogue.
    let relid = unsafe {
        let schema = pg_sys::get_namespace_oid(schema.as_ptr(), true);
        pg_sys::get_relname_relid(name.as_ptr(), schema)
    };
    (relid != pg_sys::InvalidOid).then_some(relid)
}

/// The base in the mark of a relation, `None` when it has none.
pub fn mark_of(relid: pg_sys::Oid) -> Option<String> {
    // SAFETY: the tuple is released before the end; the list is a copy.
    unsafe {
        let tuple = pg_sys::SearchSysCache1(
            pg_sys::SysCacheIdentifier::RELOID as i32,
            pg_sys::Datum::from(relid),
        );
        if tuple.is_null() {
            return None;
        }
        let mut missing = false;
        let options = pg_sys::SysCacheGetAttr(
            pg_sys::SysCacheIdentifier::RELOID as i32,
            tuple,
            pg_sys::Anum_pg_class_reloptions as i16,
            &mut missing,
        );
        let mut found = None;
        if !missing {
            let list = pg_sys::untransformRelOptions(options);
            for n in 0..if list.is_null() { 0 } else { (*list).length } {
                let option = pg_sys::list_nth(list, n).cast::<pg_sys::DefElem>();
                if CStr::from_ptr((*option).defname) == MARK && !(*option).arg.is_null() {
                    let value = CStr::from_ptr(pg_sys::defGetString(option));
                    found = Some(value.to_string_lossy().into_owned());
                }
            }
        }
        pg_sys::ReleaseSysCache(tuple);
        found
    }
}

/// Owner of a relation.
pub fn owner_of(relid: pg_sys::Oid) -> pg_sys::Oid {
    // SAFETY: the tuple is released before the end.
    unsafe {
        let tuple = pg_sys::SearchSysCache1(
            pg_sys::SysCacheIdentifier::RELOID as i32,
            pg_sys::Datum::from(relid),
        );
        if tuple.is_null() {
            return pg_sys::InvalidOid;
        }
        let owner = (*pg_sys::GETSTRUCT(tuple).cast::<pg_sys::FormData_pg_class>()).relowner;
        pg_sys::ReleaseSysCache(tuple);
        owner
    }
}
