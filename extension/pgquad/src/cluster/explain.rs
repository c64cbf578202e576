//! EXPLAIN of queries that Citus has nothing to do with, within transactions. Citus refuses EXPLAIN (ANALYZE) of any
//! query once it has read or written a shard here in the transaction, and executes nothing here after any EXPLAIN.
//! Reads and writes of distributed stores are such statements of Citus. So a transaction that writes to a store could
//! not explain its reads of the store.

use std::ffi::CStr;

use pgrx::pg_sys;
use pgrx::prelude::*;

use super::guard::is_any_of_citus;
use super::nodes::has_citus;
use super::write::has_written;
use crate::catalog::access_method;
use crate::pg::list::list_iter;
use crate::pg::{compat, ffi};

/// Relations of a query, views followed, and whether it reads quads.
#[derive(Default)]
struct Reads {
    relations: Vec<pg_sys::Oid>,
    quads: bool,
}

/// Whether a utility statement is an EXPLAIN that PostgreSQL is to run without Citus: in a transaction block, of a
/// query over quads that reads no table of Citus.
///
/// # Safety
/// `planned` is a utility statement about to run.
#[pg_guard]
pub unsafe extern "C-unwind" fn is_without_citus(planned: *mut pg_sys::PlannedStmt) -> bool {
    // SAFETY: casts follow looks at tags; the rewriter gets a copy, which it may change.
    unsafe {
        let query = compat::explained_query((*planned).utilityStmt);
        if query.is_null() || !pg_sys::IsTransactionBlock() || !has_citus() {
            return false;
        }
        let reads = if (*query).commandType == pg_sys::CmdType::CMD_UTILITY {
            match of_prepared((*query).utilityStmt) {
                Some(reads) => reads,
                None => return false,
            }
        } else {
            of_query(query)
        };
        (reads.quads || has_written()) && !is_any_of_citus(&reads.relations)
    }
}

/// What EXECUTE of a prepared statement reads; `None` for another statement.
unsafe fn of_prepared(statement: *mut pg_sys::Node) -> Option<Reads> {
    // SAFETY: a cast after a look at the tag; a prepared statement is there while nobody deallocates it.
    unsafe {
        if (*statement).type_ != pg_sys::NodeTag::T_ExecuteStmt {
            return None;
        }
        let name = (*statement.cast::<pg_sys::ExecuteStmt>()).name;
        let prepared = pg_sys::FetchPreparedStatement(name, false);
        if prepared.is_null() {
            return None;
        }
        let mut reads = Reads::default();
        for query in list_iter::<pg_sys::Query>((*(*prepared).plansource).query_list) {
            reads.add(query);
        }
        Some(reads)
    }
}

unsafe fn of_query(query: *mut pg_sys::Query) -> Reads {
    let mut reads = Reads::default();
    // SAFETY: a copy of a query that the parser has made.
    unsafe {
        let copy = pg_sys::copyObjectImpl(query.cast()).cast::<pg_sys::Query>();
        for rewritten in list_iter::<pg_sys::Query>(pg_sys::QueryRewrite(copy)) {
            reads.add(rewritten);
        }
    }
    reads
}

impl Reads {
    /// Adds a rewritten query, with the queries in it.
    unsafe fn add(&mut self, query: *mut pg_sys::Query) {
        // SAFETY: a live query, which is not changed.
        unsafe {
            ffi::each_query(query, &mut |query| {
                for entry in list_iter::<pg_sys::RangeTblEntry>((*query).rtable) {
                    match (*entry).rtekind {
                        pg_sys::RTEKind::RTE_RELATION => {
                            self.relations.push((*entry).relid);
                            self.quads |= access_method::is_quad_relid((*entry).relid);
                        }
                        pg_sys::RTEKind::RTE_FUNCTION => {
                            self.quads |= list_iter((*entry).functions).any(|f| is_ours(f));
                        }
                        _ => {}
                    }
                }
            });
        }
    }
}

/// Whether a function in FROM is one of schema `quad`: SPARQL is planned as a query over its store.
unsafe fn is_ours(function: *mut pg_sys::RangeTblFunction) -> bool {
    // SAFETY: a cast after a look at the tag; look-ups in the catalogue, whose answer is a C string or null.
    unsafe {
        let call = (*function).funcexpr;
        if (*call).type_ != pg_sys::NodeTag::T_FuncExpr {
            return false;
        }
        let function = (*call.cast::<pg_sys::FuncExpr>()).funcid;
        let schema = pg_sys::get_namespace_name(pg_sys::get_func_namespace(function));
        !schema.is_null() && CStr::from_ptr(schema) == c"quad"
    }
}
