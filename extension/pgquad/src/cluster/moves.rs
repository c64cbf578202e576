//! Moves of shards. In place of Citus' COPY row by row, the node that gets a shard reads every order of it as a sorted
//! run. It builds all trees bottom-up, side by side.
//!
//! Citus has the node of a shard run `worker_copy_table_to_node(shard, node)` for each table that moves. Where that is
//! a quad table the call becomes one of [`copy_shard_to_node`], which asks the other node to take the shard. All other
//! parts of the move stay Citus' own.
//!
//! Invariant: the quads of a shard that has arrived are visible to every snapshot. A statement may learn that a shard
//! is on its node after it has taken its snapshot, at the latest when a write has waited for the move. By then the copy
//! has committed, after that snapshot.

use pgquad_btree::Key;
use pgquad_cluster::message::{decode_numbers, encode_numbers, Rows};
use pgquad_cluster::moves::{Runs, TakeShard};
use pgquad_cluster::Reader;
use pgrx::prelude::*;
use pgrx::{pg_sys, PgRelation, PgSqlErrorCode};

use super::connection::{Mode, Scope};
use super::protocol::damaged;
use super::{citus, map, nodes, secret};
use crate::catalog::access_method;
use crate::catalog::names::c_string;
use crate::pg::compat::owns;
use crate::pg::error::{raise, raise_hint};
use crate::pg::list::list_node;
use crate::storage::{bulk, Table};

/// Citus' function that copies the relation of a shard to another node, and ours.
const CITUS_COPY: &str = "worker_copy_table_to_node";
const OWN_COPY: &core::ffi::CStr = c"copy_shard_to_node";

/// Lets [`copy_shard_to_node`] do what `SELECT worker_copy_table_to_node(..)` asks for, where it can.
///
/// # Safety
/// `query` is a live query before it is planned.
pub unsafe fn take_over_copy(query: *mut pg_sys::Query) {
    // SAFETY: the caller's promise; nodes are cast after a look at their tag.
    unsafe {
        let Some((call, relid)) = copy_of_relation(query) else {
            return;
        };
        if access_method::is_quad_relid(relid) && secret::is_there() && shard_of(relid).is_some() {
            let types = [pg_sys::REGCLASSOID, pg_sys::INT4OID];
            let schema = pg_sys::get_namespace_oid(c"quad".as_ptr(), false);
            if let Some(own) = citus::function(schema, OWN_COPY, &types) {
                (*call).funcid = own;
            }
        }
    }
}

/// The call and the relation, if a query is nothing but a call of Citus' function.
unsafe fn copy_of_relation(
    query: *mut pg_sys::Query,
) -> Option<(*mut pg_sys::FuncExpr, pg_sys::Oid)> {
    // SAFETY: as for `take_over_copy`.
    unsafe {
        let plain = (*query).commandType == pg_sys::CmdType::CMD_SELECT
            && (*query).rtable.is_null()
            && pg_sys::list_length((*query).targetList) == 1;
        if !plain {
            return None;
        }
        let target = list_node((*query).targetList, 0).cast::<pg_sys::TargetEntry>();
        let call = (*target).expr.cast::<pg_sys::FuncExpr>();
        if (*call).xpr.type_ != pg_sys::NodeTag::T_FuncExpr
            || pg_sys::list_length((*call).args) != 2
        {
            return None;
        }
        let relation = list_node((*call).args, 0).cast::<pg_sys::Const>();
        if (*relation).xpr.type_ != pg_sys::NodeTag::T_Const
            || (*relation).constisnull
            || (*relation).consttype != pg_sys::REGCLASSOID
        {
            return None;
        }
        let name = pg_sys::get_func_name((*call).funcid);
        let is_copy = !name.is_null()
            && core::ffi::CStr::from_ptr(name).to_bytes() == CITUS_COPY.as_bytes()
            && pg_sys::get_func_namespace((*call).funcid)
                == pg_sys::Oid::from(pg_sys::PG_CATALOG_NAMESPACE);
        let relid = pg_sys::Oid::from((*relation).constvalue.value() as u32);
        is_copy.then_some((call, relid))
    }
}

/// Citus' number of the shard of a hash-distributed table that a relation of this node is.
fn shard_of(relid: pg_sys::Oid) -> Option<u64> {
    let sql = format!(
        include_str!("queries/shard_of_relation.sql"),
        relid.to_u32()
    );
    let sql = std::ffi::CString::new(sql).ok()?;
    let found = nodes::query(&sql, |row| row.get::<i64>(1));
    found.into_iter().flatten().next().map(|shard| shard as u64)
}

/// Refuses a relation that is no quad table of the current role.
fn check(relation: &PgRelation) {
    if !access_method::is_quad_relid(relation.oid()) {
        raise(
            PgSqlErrorCode::ERRCODE_WRONG_OBJECT_TYPE,
            format!("\"{}\" is not a quad table", relation.name()),
        );
    }
    // SAFETY: a look-up by oid in a transaction.
    if !unsafe { owns(relation.oid()) } {
        raise(
            PgSqlErrorCode::ERRCODE_INSUFFICIENT_PRIVILEGE,
            format!("must be owner of table {}", relation.name()),
        );
    }
}

/// Has another node (by Citus' number) fill its empty relation of a shard from this node. Stands in for Citus'
/// `worker_copy_table_to_node` while a shard of quads moves.
#[pg_extern(
    sql = "CREATE FUNCTION quad.copy_shard_to_node(shard regclass, node integer) RETURNS void VOLATILE STRICT PARALLEL UNSAFE
    LANGUAGE c AS 'MODULE_PATHNAME', '@FUNCTION_NAME@';"
)]
fn copy_shard_to_node(shard: pg_sys::Oid, node: i32) {
    // SAFETY: opened by oid under a lock; closed with the value.
    let relation = unsafe {
        let opened = pg_sys::try_relation_open(shard, pg_sys::AccessShareLock as i32);
        if opened.is_null() {
            raise(
                PgSqlErrorCode::ERRCODE_UNDEFINED_TABLE,
                format!("relation with OID {} does not exist", shard.to_u32()),
            );
        }
        PgRelation::from_pg_owned(opened)
    };
    check(&relation);
    let number = nodes::has_citus().then(|| shard_of(shard)).flatten();
    let Some(number) = number else {
        raise_hint(
            PgSqlErrorCode::ERRCODE_WRONG_OBJECT_TYPE,
            format!("\"{}\" is not a shard of this node", relation.name()),
            "Citus calls this function while it moves a shard: SELECT citus_move_shard_placement(...).",
        )
    };
    let (nodes, from) = (map::nodes(), map::local_group());
    let Some(to) = nodes.iter().find(|other| other.id == node) else {
        raise_hint(
            PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
            format!("the cluster has no active node with number {node}"),
            "SELECT * FROM pg_dist_node shows the nodes that Citus knows.",
        )
    };
    // Citus' lock keeps new writes away. A transaction that was prepared before, by a node that then went down, does
    // not hold it. Its quads would be committed here after the copy. Its lock on the relation tells of it until it is
    // decided. SAFETY: the relation is open; the lock goes with the transaction.
    unsafe { pg_sys::LockRelationOid(shard, pg_sys::ShareLock as i32) };
    // SAFETY: the relation is open.
    let orders = unsafe { Table::open(relation.as_ptr()).orders() };
    let request = TakeShard {
        shard: number,
        from,
        relation: [relation.namespace().to_owned(), relation.name().to_owned()],
        orders,
    };
    let answers = Scope::new(Mode::Command).exchange(&[(to.group, request.encode())]);
    let answer = answers.first().map_or(&[][..], Vec::as_slice);
    decode_numbers(answer, 1).unwrap_or_else(|e| damaged(e));
}

/// Fills the relation of a shard on this node, which another node has asked for. The answer is the number of quads.
pub fn take_shard(reader: &mut Reader<'_>) -> Vec<u8> {
    let request = TakeShard::decode(reader).unwrap_or_else(|e| damaged(e));
    let relation = open_empty(&request);
    // SAFETY: the relation is open, and locked against other writers.
    let table = unsafe { Table::open(relation.as_ptr()) };
    if table.orders() != request.orders || !table.is_empty() {
        raise(
            PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            format!(
                "the relation \"{}\" of a shard that moves here is not an empty one of the same orders",
                relation.name()
            ),
        );
    }
    // One snapshot for all orders.
    let scope = Scope::new(Mode::Query);
    let mut runs = Runs::new(request.shard, request.orders.len());
    for read in runs.requests() {
        scope.send(request.from, &read.encode());
    }
    let next = || -> Option<(usize, Vec<Key>)> {
        if runs.is_done() {
            return None;
        }
        let rows = Rows::decode(&scope.receive(request.from)).unwrap_or_else(|e| damaged(e));
        let (order, keys, more) = runs.take(&rows).unwrap_or_else(|e| damaged(e));
        if let Some(read) = more {
            scope.send(request.from, &read.encode());
        }
        Some((order, keys))
    };
    // SAFETY: the relation is open and locked; no node knows of the shard here before the move commits, and Citus drops
    // the relation of a move that fails.
    let quads = unsafe { bulk::build_arriving(relation.as_ptr(), next) };
    encode_numbers(&[quads])
}

/// Opens the relation that is to be filled, and locks it against other writers.
fn open_empty(request: &TakeShard) -> PgRelation {
    let [schema, name] = request.relation.each_ref().map(|name| c_string(name));
    // SAFETY: look-ups by name; opened under a lock, closed with the value.
    let relation = unsafe {
        let schema = pg_sys::get_namespace_oid(schema.as_ptr(), true);
        let oid = pg_sys::get_relname_relid(name.as_ptr(), schema);
        let opened = pg_sys::try_relation_open(oid, pg_sys::ShareRowExclusiveLock as i32);
        if opened.is_null() {
            raise(
                PgSqlErrorCode::ERRCODE_UNDEFINED_TABLE,
                format!("relation \"{}\" does not exist", request.relation.join(".")),
            );
        }
        PgRelation::from_pg_owned(opened)
    };
    check(&relation);
    relation
}
