//! Hints for errors that PostgreSQL raises itself: an operator of `quad.term` that is not found, because schema `quad`
//! is not in `search_path`.

use pgrx::pg_sys;
use std::ffi::{CStr, CString};

static mut PREVIOUS: pg_sys::emit_log_hook_type = None;

/// The operators of `quad.term` (`sql/term_operators.sql`).
const OPERATORS: [&str; 6] = ["=", "<>", "<", "<=", ">", ">="];

/// Installs the hook; called once from `_PG_init`.
pub fn init() {
    // SAFETY: _PG_init runs once, before any statement.
    unsafe {
        PREVIOUS = pg_sys::emit_log_hook;
        pg_sys::emit_log_hook = Some(before_report);
    }
}

/// Called with each message for the log, before it also goes to the client. In the state of an error: reads no
/// catalogue and raises nothing.
#[pgrx::pg_guard]
unsafe extern "C-unwind" fn before_report(report: *mut pg_sys::ErrorData) {
    // SAFETY: the report is PostgreSQL's own; its texts are there or null, and the memory of the error is the current
    // context.
    unsafe {
        if let Some(previous) = PREVIOUS {
            previous(report);
        }
        // In the language of the sources, whatever that of the server.
        let id = (*report).message_id;
        if id.is_null() || CStr::from_ptr(id) != c"operator does not exist: %s" {
            return;
        }
        let message = CStr::from_ptr((*report).message).to_string_lossy();
        if let Some(hint) = hint(&message).and_then(|hint| CString::new(hint).ok()) {
            (*report).hint = pg_sys::pstrdup(hint.as_ptr());
        }
    }
}

/// The hint for a message such as `operator does not exist: quad.term > quad.term`, where schema `quad` has the
/// operator. PostgreSQL writes `quad.` before the type only where the schema is not in the path.
fn hint(message: &str) -> Option<String> {
    let words: Vec<&str> = message.rsplitn(4, ' ').collect();
    let [right, operator, left, _] = words[..] else {
        return None;
    };
    let is_operand = |name: &str| ["quad.term", "unknown"].contains(&name);
    let is_ours = OPERATORS.contains(&operator)
        && is_operand(left)
        && is_operand(right)
        && [left, right].contains(&"quad.term");
    is_ours.then(|| {
        format!(
            "The operators of quad.term are in schema quad: SET search_path = public, quad, \
             or write OPERATOR(quad.{operator})."
        )
    })
}
