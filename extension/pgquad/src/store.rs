//! Stores: the named quad tables of schema `quad_stores`.
//!
//! A store is a table `quad_stores.<name>` with the columns s, p, o, g. Creating one is plain DDL under the caller's
//! rights, so ownership, GRANT, pg_dump, and DROP work as for any table.

use std::ffi::{CStr, CString};

use pgrx::prelude::*;
use pgrx::{pg_sys, spi, PgSqlErrorCode};

use crate::catalog::{access_method, policies};
use crate::cluster::guard;
use crate::pg::error::{raise, raise_hint};
use crate::pg::guc::with_settings;
use crate::settings;

/// Schema that holds the tables of all stores.
pub const SCHEMA: &str = "quad_stores";

/// Longest identifier in bytes.
const MAX_NAME: usize = pg_sys::NAMEDATALEN as usize - 1;

extension_sql!(
    r#"
CREATE SCHEMA quad_stores;
GRANT USAGE, CREATE ON SCHEMA quad_stores TO PUBLIC;
GRANT USAGE ON SCHEMA quad TO PUBLIC;
COMMENT ON SCHEMA quad_stores IS 'quad stores: one table for each, made by quad.create_store';
"#,
    name = "store_schema",
    bootstrap
);

/// A store that exists, locked against being dropped until the transaction ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Store {
    /// Table of the store.
    pub oid: pg_sys::Oid,
    /// Name of the store, not quoted.
    pub name: String,
}

impl Store {
    /// Quoted, schema-qualified name of the table, for SQL text.
    pub fn table(&self) -> String {
        table_of(&self.name)
    }

    /// Refuses the store where the caller does not have a right to it. Also refuses it where policies hide some of its
    /// rows: what the caller is about to do would not follow them. `what` and `instead` are for the message.
    pub fn check(&self, right: u32, what: &str, instead: &str) {
        let name = &self.name;
        // SAFETY: look-ups in the catalogue; the relation is locked by `resolve`.
        unsafe {
            let right =
                pg_sys::pg_class_aclcheck(self.oid, pg_sys::GetUserId(), right as pg_sys::AclMode);
            if right != pg_sys::AclResult::ACLCHECK_OK {
                raise(
                    PgSqlErrorCode::ERRCODE_INSUFFICIENT_PRIVILEGE,
                    format!("permission denied for store \"{name}\""),
                );
            }
            guard::refuse_citus_table(self.oid, what, instead);
            if policies::are_in_force(self.oid, false) {
                raise_hint(
                    PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
                    format!("cannot {what} store \"{name}\", which has row-level security"),
                    instead,
                );
            }
        }
    }
}

/// Quoted, schema-qualified name of the table of store `name`, which need not exist.
pub fn table_of(name: &str) -> String {
    format!("{SCHEMA}.{}", spi::quote_identifier(name))
}

/// Name of the default store: the setting `quad.store`.
pub fn default_name() -> String {
    let name = settings::STORE.get().unwrap_or_default();
    match name.into_string() {
        Ok(name) if !name.is_empty() => name,
        Ok(_) => raise_hint(
            PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
            "no store named",
            "Name a store in the call, or set quad.store.",
        ),
        Err(_) => raise(
            PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
            "setting \"quad.store\" is not valid UTF-8",
        ),
    }
}

/// The store `name` (`None`: the default store), locked as a read or a write needs it.
///
/// For a write the default store is created when it is missing; any other missing store is an error.
/// Rights on the table are not checked here, except USAGE of the schema.
pub fn resolve(name: Option<&str>, for_write: bool) -> Store {
    let default = name.is_none();
    let name = name.map_or_else(default_name, str::to_owned);
    check_name(&name);
    let lock = if for_write {
        pg_sys::RowExclusiveLock
    } else {
        pg_sys::AccessShareLock
    };
    if let Some(store) = lookup(&name, lock) {
        return store;
    }
    if default && for_write {
        create(&name, true, &[]);
        if let Some(store) = lookup(&name, lock) {
            return store;
        }
    }
    missing(&name, default)
}

/// The store `name` (`None`: the default store) locked for reading, or `None` when it does not exist.
pub fn find(name: Option<&str>) -> Option<Store> {
    let name = name.map_or_else(default_name, str::to_owned);
    check_name(&name);
    lookup(&name, pg_sys::AccessShareLock)
}

/// The store `name`, with this lock on it.
pub fn locked(name: &str, lock: u32) -> Store {
    check_name(name);
    lookup(name, lock).unwrap_or_else(|| missing(name, false))
}

/// Creates the table of a store with the settings in force, and gives it.
pub fn create_bare(name: &str) -> pg_sys::Oid {
    check_name(name);
    create(name, false, &[]);
    match lookup(name, pg_sys::NoLock) {
        Some(store) => store.oid,
        None => missing(name, false),
    }
}

/// Creates the table of a store that must not exist yet, with the given settings in force.
pub fn create_new(name: &str, settings: &[(&CStr, &str)]) {
    lock_schema();
    if lookup(name, pg_sys::NoLock).is_some() {
        raise_hint(
            PgSqlErrorCode::ERRCODE_DUPLICATE_TABLE,
            format!("store \"{name}\" already exists"),
            format!(
                "Drop it with SELECT quad.drop_store({}).",
                spi::quote_literal(name)
            ),
        );
    }
    create(name, false, settings);
}

/// Drops the table of a store.
pub fn drop(name: &str) {
    check_name(name);
    if lookup(name, pg_sys::NoLock).is_none() {
        missing(name, false);
    }
    run(&format!("DROP TABLE {}", table_of(name)));
}

fn missing(name: &str, default: bool) -> ! {
    raise_hint(
        PgSqlErrorCode::ERRCODE_UNDEFINED_TABLE,
        format!("store \"{name}\" does not exist"),
        if default {
            "The default store (setting quad.store) is created when something is first written to it; \
             quad.create_store creates it at once."
                .to_owned()
        } else {
            format!(
                "Create it with SELECT quad.create_store({}).",
                spi::quote_literal(name)
            )
        },
    )
}

/// Refuses what cannot be the name of a store.
pub fn check_name(name: &str) {
    if name.is_empty() {
        raise(
            PgSqlErrorCode::ERRCODE_INVALID_NAME,
            "the name of a store must not be empty",
        );
    }
    // They would be hard to see, and some stand for something in SQL that is being built.
    if name.chars().any(char::is_control) {
        raise(
            PgSqlErrorCode::ERRCODE_INVALID_NAME,
            "the name of a store must not contain control characters",
        );
    }
    if name.len() > MAX_NAME {
        raise(
            PgSqlErrorCode::ERRCODE_NAME_TOO_LONG,
            format!(
                "the name of a store has at most {MAX_NAME} bytes, this one has {}",
                name.len()
            ),
        );
    }
}

/// Looks up the table of store `name` and takes `lock` on it.
fn lookup(name: &str, lock: u32) -> Option<Store> {
    let schema = CString::new(SCHEMA).expect("no NUL in a constant");
    let relation = c_name(name);
    // SAFETY: both strings outlive the call, and makeRangeVar only keeps the pointers in a node of the current memory
    // context.
    let oid = unsafe {
        let range =
            pg_sys::makeRangeVar(schema.as_ptr().cast_mut(), relation.as_ptr().cast_mut(), -1);
        pg_sys::RangeVarGetRelidExtended(
            range,
            lock as pg_sys::LOCKMODE,
            pg_sys::RVROption::RVR_MISSING_OK,
            None,
            std::ptr::null_mut(),
        )
    };
    if oid == pg_sys::InvalidOid {
        return None;
    }
    if !access_method::is_quad_relid(oid) {
        raise(
            PgSqlErrorCode::ERRCODE_WRONG_OBJECT_TYPE,
            format!("{} is not a store", table_of(name)),
        );
    }
    Some(Store {
        oid,
        name: name.to_owned(),
    })
}

fn c_name(name: &str) -> CString {
    CString::new(name).unwrap_or_else(|_| {
        raise(
            PgSqlErrorCode::ERRCODE_INVALID_NAME,
            "the name of a store must not contain a NUL character",
        )
    })
}

/// Creates the table of store `name` with the given settings in force.
fn create(name: &str, if_not_exists: bool, settings: &[(&CStr, &str)]) {
    lock_schema();
    let existence = if if_not_exists { "IF NOT EXISTS " } else { "" };
    let sql = format!(
        "CREATE TABLE {existence}{} (s bigint NOT NULL, p bigint NOT NULL, o bigint NOT NULL, g bigint NOT NULL) USING quad",
        table_of(name),
    );
    with_settings(settings, || run(&sql));
}

fn run(sql: &str) {
    if let Err(error) = Spi::run(sql) {
        raise(
            PgSqlErrorCode::ERRCODE_INTERNAL_ERROR,
            format!("\"{sql}\" failed: {error}"),
        );
    }
}

/// Makes creations of stores take turns, so that "does it exist" and "create it" are one step.
fn lock_schema() {
    // SAFETY: plain catalogue look-up and heavyweight lock, released by PostgreSQL at the end of the transaction.
    unsafe {
        let schema = CString::new(SCHEMA).expect("no NUL in a constant");
        let oid = pg_sys::get_namespace_oid(schema.as_ptr(), false);
        pg_sys::LockDatabaseObject(
            pg_sys::NamespaceRelationId,
            oid,
            0,
            pg_sys::ShareUpdateExclusiveLock as pg_sys::LOCKMODE,
        );
    }
}
