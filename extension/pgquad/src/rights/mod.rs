//! Who may read the term of an id.
//!
//! Ids are numbers that anybody can count through, and one dictionary serves all stores. So an id says nothing by
//! itself. Its term is read where the id comes, within the statement, from a column of a quad table that the statement
//! may read, or from a term ([`origin`]). Any other id is a bare one, which only those may decode who may read the
//! dictionary's table `quad.terms`.
//!
//! * [`mark`]: before a statement is planned, calls of functions on ids whose ids come from such places get a mark. The
//!   functions look for it when they run ([`check`]), so a call that nobody has looked at is one on bare ids.
//! * [`notes`]: for the same reason quad tables take bare ids only from those who may read the dictionary.

pub mod mark;
pub mod notes;
mod origin;
pub mod own_statements;

use pgquad_btree::GRAPH;
use pgquad_term::{tag, TermId};
use pgrx::{pg_sys, PgSqlErrorCode};

use crate::dictionary::Tables;
use crate::pg::error::raise_all;

/// The mark: the input collation of a call. Functions on ids take nothing that has a collation, so no SQL text makes
/// this one.
pub const SEEN: pg_sys::Oid = pg_sys::Oid::from_u32(1);

/// Raises an error where a function is called on a bare id by someone who may not decode it. To be called by every SQL
/// function that tells something of the terms of ids which it is given.
#[inline]
pub fn check(call: pg_sys::FunctionCallInfo, ids: &[i64]) {
    // SAFETY: the caller passes what PostgreSQL has passed to its function.
    if unsafe { (*call).fncollation } != SEEN {
        check_bare(ids);
    }
}

fn check_bare(ids: &[i64]) {
    let Some(id) = ids.iter().find(|&&id| is_of_dictionary(id)) else {
        return;
    };
    if !may_decode() {
        raise_all(
            PgSqlErrorCode::ERRCODE_INSUFFICIENT_PRIVILEGE,
            "permission denied for terms of bare ids",
            format!("Id {id} does not come from a column of a quad table in this statement."),
            "Name the table in the statement, as in SELECT quad.decode(s) FROM quad_stores.main. SELECT on quad.terms is the right to \
             decode any id.",
        );
    }
}

/// Whether the term of an id is in the dictionary; others are in their ids.
fn is_of_dictionary(id: i64) -> bool {
    TermId::from_i64(id).is_some_and(|id| id.dictionary_number().is_some())
}

/// Whether a number can be a term id in this column of a quad. Others are errors for whoever reads the quad.
fn is_term_id(column: usize, id: i64) -> bool {
    match TermId::from_i64(id) {
        None => false,
        Some(TermId::DEFAULT_GRAPH) => column == GRAPH,
        Some(id) => id.tag() <= tag::SHORT_STRING,
    }
}

/// Whether the current user may decode any id.
pub fn may_decode() -> bool {
    // SAFETY: look-ups in the catalogue.
    unsafe {
        pg_sys::superuser()
            || Tables::find().is_some_and(|tables| {
                let (user, right) = (pg_sys::GetUserId(), pg_sys::ACL_SELECT);
                pg_sys::pg_class_aclcheck(tables.terms, user, right as pg_sys::AclMode)
                    == pg_sys::AclResult::ACLCHECK_OK
            })
    }
}
