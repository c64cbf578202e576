//! What nodes show in EXPLAIN: properties, groups of them, expressions as SQL, how shards were read.

use pgquad_cluster::Traffic;
use pgrx::pg_sys;
use std::ffi::{CStr, CString};

/// The name of a relation in the query that EXPLAIN shows.
///
/// # Safety
/// EXPLAIN's own state; `member` is a member of a set of relations of a plan.
pub unsafe fn relation_name(member: i32, es: *mut pg_sys::ExplainState) -> String {
    // SAFETY: the caller's promise.
    unsafe {
        let name = pg_sys::list_nth((*es).rtable_names, member - 1).cast::<core::ffi::c_char>();
        if name.is_null() {
            String::from("?")
        } else {
            CStr::from_ptr(name).to_string_lossy().into_owned()
        }
    }
}

/// Shows a property of a node in EXPLAIN.
///
/// # Safety
/// `es` is the state that EXPLAIN passes.
pub unsafe fn explain_text(label: &str, value: &str, es: *mut pg_sys::ExplainState) {
    let label = CString::new(label).unwrap_or_default();
    let value = CString::new(value).unwrap_or_default();
    // SAFETY: the caller's promise; both strings live during the call.
    unsafe { pg_sys::ExplainPropertyText(label.as_ptr(), value.as_ptr(), es) }
}

/// Shows a number of a node in EXPLAIN.
///
/// # Safety
/// `es` is the state that EXPLAIN passes.
pub unsafe fn explain_integer(label: &CStr, value: i64, es: *mut pg_sys::ExplainState) {
    // SAFETY: the caller's promise.
    unsafe { pg_sys::ExplainPropertyInteger(label.as_ptr(), std::ptr::null(), value, es) }
}

/// Shows a time of a node in EXPLAIN; `nanoseconds` become milliseconds.
///
/// # Safety
/// `es` is the state that EXPLAIN passes.
pub unsafe fn explain_milliseconds(label: &CStr, nanoseconds: u64, es: *mut pg_sys::ExplainState) {
    let milliseconds = nanoseconds as f64 / 1e6;
    // SAFETY: the caller's promise.
    unsafe { pg_sys::ExplainPropertyFloat(label.as_ptr(), c"ms".as_ptr(), milliseconds, 3, es) }
}

/// Shows a group of properties in EXPLAIN: an object (`is_object`), or a list of groups.
///
/// # Safety
/// `es` is the state that EXPLAIN passes; `content` shows properties by it and nothing else.
pub unsafe fn explain_group(
    label: &CStr,
    is_object: bool,
    es: *mut pg_sys::ExplainState,
    content: impl FnOnce(),
) {
    // A member of a list has no label of its own.
    let own_label = if is_object {
        std::ptr::null()
    } else {
        label.as_ptr()
    };
    // SAFETY: the caller's promise; the group is closed as it was opened.
    unsafe {
        pg_sys::ExplainOpenGroup(label.as_ptr(), own_label, is_object, es);
        content();
        pg_sys::ExplainCloseGroup(label.as_ptr(), own_label, is_object, es);
    }
}

/// Expressions of a plan as SQL, for EXPLAIN.
///
/// # Safety
/// EXPLAIN's own arguments for a begun node; the expressions are of its plan.
pub unsafe fn deparse(
    node: *mut pg_sys::CustomScanState,
    exprs: &[*mut pg_sys::Node],
    ancestors: *mut pg_sys::List,
    es: *mut pg_sys::ExplainState,
) -> Vec<String> {
    // SAFETY: the caller's promise.
    unsafe {
        let plan = (*node).ss.ps.plan;
        let context = pg_sys::set_deparse_context_plan((*es).deparse_cxt, plan, ancestors);
        let prefix = pg_sys::list_length((*es).rtable) > 1 || (*es).verbose;
        let text = |&expr| {
            let text = pg_sys::deparse_expression(expr, context, prefix, false);
            CStr::from_ptr(text).to_string_lossy().into_owned()
        };
        exprs.iter().map(text).collect()
    }
}

/// Whether EXPLAIN writes for people.
///
/// # Safety
/// `es` is the state that EXPLAIN passes.
pub unsafe fn is_text(es: *mut pg_sys::ExplainState) -> bool {
    // SAFETY: the caller's promise.
    unsafe { (*es).format == pg_sys::ExplainFormat::EXPLAIN_FORMAT_TEXT }
}

/// Shows how the quads of shards were read: a line, or a property for each figure.
///
/// # Safety
/// `es` is the state that EXPLAIN passes.
pub unsafe fn explain_traffic(went: &Traffic, es: *mut pg_sys::ExplainState) {
    // SAFETY: the caller's promise.
    unsafe {
        if is_text(es) {
            let text = traffic(went, (*es).timing);
            explain_text("Shards", text.trim_start(), es);
            return;
        }
        explain_text(
            "Shards",
            if went.messages == 0 { "here" } else { "pull" },
            es,
        );
        explain_integer(c"Shard Messages", went.messages as i64, es);
        explain_integer(c"Shard Bytes Sent", went.sent as i64, es);
        explain_integer(c"Shard Bytes Received", went.received as i64, es);
        if (*es).timing {
            explain_milliseconds(c"Shard Waiting Time", went.waited, es);
        }
    }
}

/// How the quads of shards were read, for EXPLAIN: ` read=here` without messages, else ` read=pull` with what went over
/// the wire.
pub fn traffic(traffic: &Traffic, timing: bool) -> String {
    if traffic.messages == 0 {
        return " read=here".to_owned();
    }
    let mut text = format!(
        " read=pull messages={} sent={}B received={}B",
        traffic.messages, traffic.sent, traffic.received
    );
    if timing {
        text += &format!(" waiting={:.3} ms", traffic.waited as f64 / 1e6);
    }
    text
}
