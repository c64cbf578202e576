//! Statements about the relation of a distributed store: what is sent to the other nodes, what becomes a statement
//! about its shards, what is refused. Called around every utility statement.

use std::ffi::CStr;

use pgrx::prelude::*;
use pgrx::{pg_sys, PgSqlErrorCode};

use super::connection::send_waiting_ends;
use super::{citus, guard, mirror, relations};
use crate::catalog::access_method;
use crate::catalog::distributed_store::{self, mark_of, sides_of_relid, Sides};
use crate::pg::error::raise_hint;
use crate::pg::list::list_iter;
use pg_sys::NodeTag::*;

/// What `before` did, for `after` to finish. Owns nothing, since an error may jump over it.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Statement {
    /// The statement to run instead of the one given to `before`.
    pub planned: *mut pg_sys::PlannedStmt,
    watched: bool,
    /// The distributed store that a COMMENT is on: nothing else tells that a comment has changed.
    commented: pg_sys::Oid,
    /// A TRUNCATE. It is noted here, as what else `planned` points to may be gone when the statement is over, for
    /// example after a COMMIT.
    truncates: bool,
}

/// Prepares a utility statement.
///
/// # Safety
/// `planned` is a utility statement about to run; with `read_only` it is changed in a copy only.
#[pg_guard]
pub unsafe extern "C-unwind" fn before(
    planned: *mut pg_sys::PlannedStmt,
    read_only: bool,
) -> Statement {
    let mut statement = Statement {
        planned,
        watched: false,
        commented: pg_sys::InvalidOid,
        truncates: false,
    };
    // SAFETY: the node's tag says its type; every pointer comes from the parser.
    unsafe {
        let node = (*planned).utilityStmt;
        if !is_frequent((*node).type_) {
            send_waiting_ends();
        }
        if (*node).type_ == T_DropStmt && drops_extension(node.cast()) {
            super::ddl::leave_cluster();
        }
        match (*node).type_ {
            T_GrantStmt | T_CreatePolicyStmt | T_AlterPolicyStmt | T_DropStmt | T_RenameStmt
            | T_ReassignOwnedStmt | T_DropOwnedStmt | T_CreateTrigStmt | T_RuleStmt => {
                statement.watched = true
            }
            T_AlterTableStmt => {
                refuse_alter(node.cast());
                statement.watched = true;
            }
            T_AlterObjectSchemaStmt => {
                let range = (*node.cast::<pg_sys::AlterObjectSchemaStmt>()).relation;
                refuse_when_distributed(range, "be moved to another schema");
            }
            T_CreateStmt => refuse_children(node.cast()),
            T_CommentStmt => statement.commented = commented(node.cast()),
            T_TruncateStmt => {
                check_truncated(node.cast());
                statement.truncates = true;
            }
            T_CopyStmt => check_copied(node.cast()),
            T_VacuumStmt => {
                statement.planned = vacuum_of_shards(planned, read_only);
            }
            _ => {}
        }
    }
    if statement.watched {
        mirror::watch();
    }
    statement
}

/// Finishes a utility statement: tells the other nodes.
///
/// # Safety
/// The statement of `before` has run without an error.
#[pg_guard]
pub unsafe extern "C-unwind" fn after(statement: Statement) {
    if statement.watched {
        mirror::send_changed();
    }
    if statement.commented != pg_sys::InvalidOid {
        mirror::send(statement.commented);
    }
    mirror::drop_elsewhere();
    if statement.truncates {
        // SAFETY: the statement is still there, and the tag has been looked at.
        unsafe { truncate_shards((*statement.planned).utilityStmt.cast()) }
    }
}

/// Whether statements of this kind come as often as queries, and need no lock that excludes readers.
fn is_frequent(tag: pg_sys::NodeTag) -> bool {
    matches!(
        tag,
        T_TransactionStmt
            | T_PrepareStmt
            | T_ExecuteStmt
            | T_DeallocateStmt
            | T_DeclareCursorStmt
            | T_FetchStmt
            | T_ClosePortalStmt
            | T_VariableSetStmt
            | T_VariableShowStmt
            | T_ExplainStmt
    )
}

/// Whether a statement drops the extension pgquad and all that depends on it.
unsafe fn drops_extension(drop: *mut pg_sys::DropStmt) -> bool {
    // SAFETY: the objects of DROP EXTENSION are a list of names.
    unsafe {
        if (*drop).removeType != pg_sys::ObjectType::OBJECT_EXTENSION
            || (*drop).behavior != pg_sys::DropBehavior::DROP_CASCADE
        {
            return false;
        }
        let names = (*drop).objects;
        (0..if names.is_null() { 0 } else { (*names).length }).any(|n| {
            let name = pg_sys::list_nth(names, n).cast::<pg_sys::String>();
            CStr::from_ptr((*name).sval) == c"pgquad"
        })
    }
}

/// The distributed store that a comment is on.
unsafe fn commented(comment: *mut pg_sys::CommentStmt) -> pg_sys::Oid {
    // SAFETY: the object of a comment on a table is a list of names.
    unsafe {
        if (*comment).objtype != pg_sys::ObjectType::OBJECT_TABLE {
            return pg_sys::InvalidOid;
        }
        let range = pg_sys::makeRangeVarFromNameList((*comment).object.cast());
        // Where a relation is being made like that of another node, its tables may not be there yet: the mark is
        // enough.
        let marked = quad_table(range).filter(|&relid| mark_of(relid).is_some());
        marked.unwrap_or(pg_sys::InvalidOid)
    }
}

/// The store that a statement names, when it is a distributed one.
unsafe fn distributed(range: *mut pg_sys::RangeVar) -> Option<(pg_sys::Oid, Sides)> {
    // SAFETY: the caller's promise.
    let relid = unsafe { quad_table(range)? };
    sides_of_relid(relid).map(|sides| (relid, sides))
}

/// The quad table that a statement names.
unsafe fn quad_table(range: *mut pg_sys::RangeVar) -> Option<pg_sys::Oid> {
    if range.is_null() {
        return None;
    }
    // SAFETY: a look-up by name.
    let relid = unsafe {
        pg_sys::RangeVarGetRelidExtended(
            range,
            pg_sys::NoLock as i32,
            pg_sys::RVROption::RVR_MISSING_OK,
            None,
            std::ptr::null_mut(),
        )
    };
    (relid != pg_sys::InvalidOid && access_method::is_quad_relid(relid)).then_some(relid)
}

unsafe fn refuse_when_distributed(range: *mut pg_sys::RangeVar, what: &str) {
    // SAFETY: as `distributed`.
    unsafe {
        if distributed(range).is_some() {
            let name = CStr::from_ptr((*range).relname).to_string_lossy();
            raise_hint(
                PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
                format!("distributed store \"{name}\" cannot {what}"),
                "quad.undistribute_store makes it a store of one node.",
            );
        }
    }
}

/// Refuses a table that inherits from a distributed store: it would be on one node only.
unsafe fn refuse_children(create: *mut pg_sys::CreateStmt) {
    // SAFETY: the parser's list of RangeVar.
    unsafe {
        for parent in list_iter::<pg_sys::RangeVar>((*create).inhRelations) {
            refuse_when_distributed(parent, "have tables that inherit from it");
        }
    }
}

unsafe fn refuse_alter(alter: *mut pg_sys::AlterTableStmt) {
    use pg_sys::AlterTableType as Kind;
    // SAFETY: the parser's list of AlterTableCmd.
    unsafe {
        let commands = (*alter).cmds;
        for n in 0..if commands.is_null() {
            0
        } else {
            (*commands).length
        } {
            let command = pg_sys::list_nth(commands, n).cast::<pg_sys::AlterTableCmd>();
            let what = match (*command).subtype {
                Kind::AT_SetAccessMethod => "get another access method",
                Kind::AT_SetLogged | Kind::AT_SetUnLogged => "change its persistence",
                Kind::AT_AddInherit | Kind::AT_AttachPartition => "be part of another table",
                Kind::AT_SetTableSpace => "be moved to another tablespace",
                Kind::AT_AddConstraint => "get a constraint",
                Kind::AT_ReplicaIdentity => "get another replica identity",
                Kind::AT_SetRelOptions | Kind::AT_ResetRelOptions => "get other storage parameters",
                _ => continue,
            };
            refuse_when_distributed((*alter).relation, what);
        }
    }
}

/// Refuses to truncate one of the two tables of a store.
unsafe fn check_truncated(truncate: *mut pg_sys::TruncateStmt) {
    // SAFETY: the parser's list of RangeVar.
    unsafe {
        for range in list_iter::<pg_sys::RangeVar>((*truncate).relations) {
            quad_table(range).into_iter().for_each(guard::check_target);
        }
    }
}

/// Refuses to copy rows into one of the two tables of a store.
unsafe fn check_copied(copy: *mut pg_sys::CopyStmt) {
    // SAFETY: a relation that the parser has made, or none.
    unsafe {
        if (*copy).is_from {
            quad_table((*copy).relation)
                .into_iter()
                .for_each(guard::check_target);
        }
    }
}

/// The statement with the tables of schema `quad_shards` in the place of distributed stores: Citus runs it on their
/// shards.
unsafe fn vacuum_of_shards(
    planned: *mut pg_sys::PlannedStmt,
    read_only: bool,
) -> *mut pg_sys::PlannedStmt {
    // SAFETY: the parser's list of VacuumRelation; new nodes are as the parser makes them.
    unsafe {
        let list = (*(*planned).utilityStmt.cast::<pg_sys::VacuumStmt>()).rels;
        let relations: Vec<*mut pg_sys::VacuumRelation> =
            (0..if list.is_null() { 0 } else { (*list).length })
                .map(|n| pg_sys::list_nth(list, n).cast())
                .collect();
        if !relations
            .iter()
            .any(|r| distributed((**r).relation).is_some())
        {
            return planned;
        }
        let mut changed = std::ptr::null_mut();
        for relation in relations {
            let Some((_, sides)) = distributed((*relation).relation) else {
                changed = pg_sys::lappend(changed, relation.cast());
                continue;
            };
            for side in [sides.by_subject, sides.by_object] {
                let schema = pg_sys::get_namespace_name(pg_sys::get_rel_namespace(side));
                let range = pg_sys::makeRangeVar(schema, pg_sys::get_rel_name(side), -1);
                let side =
                    pg_sys::makeVacuumRelation(range, pg_sys::InvalidOid, (*relation).va_cols);
                changed = pg_sys::lappend(changed, side.cast());
            }
        }
        let planned: *mut pg_sys::PlannedStmt = if read_only {
            pg_sys::copyObjectImpl(planned.cast()).cast()
        } else {
            planned
        };
        (*(*planned).utilityStmt.cast::<pg_sys::VacuumStmt>()).rels = changed;
        planned
    }
}

/// TRUNCATE has emptied the relation, which was empty: now for the shards. Rights have been checked on the relation.
unsafe fn truncate_shards(truncate: *mut pg_sys::TruncateStmt) {
    // SAFETY: the parser's list of RangeVar.
    unsafe {
        let list = (*truncate).relations;
        for n in 0..if list.is_null() { 0 } else { (*list).length } {
            let Some((relid, sides)) = distributed(pg_sys::list_nth(list, n).cast()) else {
                continue;
            };
            super::write::note_reshaped("truncate");
            mirror::lock_elsewhere(relid);
            super::write::as_writer(distributed_store::owner_of(relid), || {
                citus::run(&format!(
                    "TRUNCATE {}, {}",
                    relations::qualified_name(sides.by_subject),
                    relations::qualified_name(sides.by_object)
                ));
            });
        }
    }
}
