//! Who has shown that it speaks for a node of the cluster, in this session.

use std::cell::Cell;

use pgrx::{pg_sys, PgSqlErrorCode};

use super::protocol::check_version;
use super::secret;
use crate::catalog::names::role_name;
use crate::pg::error::raise_hint;

thread_local! {
    /// The role that has shown that it speaks for a node of the cluster.
    static TRUSTED: Cell<pg_sys::Oid> = const { Cell::new(pg_sys::InvalidOid) };
}

/// The name of the current role.
fn current_role() -> String {
    // SAFETY: plain session state.
    role_name(unsafe { pg_sys::GetUserId() })
}

/// Trusts the current role of this session from now on where it has shown to be a node.
pub fn meet(version: i32, token: &[u8]) {
    check_version(version as u8);
    if !secret::is_token(&current_role(), token) {
        refuse();
    }
    // SAFETY: plain session state.
    TRUSTED.set(unsafe { pg_sys::GetUserId() });
}

/// Refuses a call by somebody who is no node.
pub fn refuse() -> ! {
    raise_hint(
        PgSqlErrorCode::ERRCODE_INSUFFICIENT_PRIVILEGE,
        "this function answers other nodes of the cluster only",
        "Ask for quads through the relation of the store.",
    )
}

/// Whether this session has shown to speak for a node.
pub fn is_trusted() -> bool {
    // SAFETY: plain session state.
    let user = unsafe { pg_sys::GetUserId() };
    user != pg_sys::InvalidOid && TRUSTED.get() == user
}

/// Refuses whoever has not shown to speak for a node.
pub fn check_trusted() {
    if !is_trusted() {
        refuse();
    }
}
