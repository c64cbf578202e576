//! Snapshots by name, so that several sessions of a node read the same state of it.

use std::ffi::CStr;

use pgrx::pg_sys;

use super::trust::is_trusted;

/// Exports the active snapshot; gives its name, which other sessions of this node and database can import as long as
/// this transaction lasts. PostgreSQL refuses that within a savepoint.
pub fn export() -> String {
    // SAFETY: a snapshot is active while a statement or function runs; its name is a C string.
    unsafe {
        let name = pg_sys::ExportSnapshot(pg_sys::GetActiveSnapshot());
        CStr::from_ptr(name).to_string_lossy().into_owned()
    }
}

/// Whether this transaction can export its snapshot to other sessions. PostgreSQL exports none in a savepoint. A
/// SERIALIZABLE transaction does not either, for what other sessions read is not watched for its conflicts.
pub fn can_export() -> bool {
    // SAFETY: plain session state.
    unsafe {
        pg_sys::XactIsoLevel <= pg_sys::XACT_REPEATABLE_READ as i32
            && pg_sys::GetCurrentTransactionNestLevel() == 1
    }
}

/// The context to run a statement in. A node that asks imports a snapshot at the beginning of the messages, which are
/// one transaction without being a block. There PostgreSQL warns of statements at the top level that they have no
/// effect. This one has an effect, on the messages behind it.
///
/// # Safety
/// `planned` is a live utility statement.
pub unsafe fn context_of(
    planned: *mut pg_sys::PlannedStmt,
    context: pg_sys::ProcessUtilityContext::Type,
) -> pg_sys::ProcessUtilityContext::Type {
    use pg_sys::ProcessUtilityContext::{PROCESS_UTILITY_QUERY, PROCESS_UTILITY_TOPLEVEL};
    // SAFETY: the caller's promise; the node is cast after a look at its tag.
    let is_import = unsafe {
        let statement = (*planned).utilityStmt;
        (*statement).type_ == pg_sys::NodeTag::T_VariableSetStmt && {
            let set = statement.cast::<pg_sys::VariableSetStmt>();
            (*set).kind == pg_sys::VariableSetKind::VAR_SET_MULTI
                && CStr::from_ptr((*set).name) == c"TRANSACTION SNAPSHOT"
        }
    };
    if is_import && context == PROCESS_UTILITY_TOPLEVEL && is_trusted() {
        PROCESS_UTILITY_QUERY
    } else {
        context
    }
}
