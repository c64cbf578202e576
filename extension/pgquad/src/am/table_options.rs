//! Options of a quad table in the text of its definition: `CREATE TABLE ... USING quad WITH (orders = 'spog,psog',
//! ...)`.
//!
//! PostgreSQL 15 checks the options of tables itself and asks no access method. So before a CREATE TABLE runs, our
//! options are taken out of the statement and become settings for its duration. After it, the options that the table
//! got, from wherever, are written to `pg_class.reloptions`, beside those of the metapage. From there pg_dump puts them
//! into a dump, and Citus into the CREATE TABLE of every shard. So a restored table, a shard and a moved shard are
//! built like the original. Loading a relation ignores options that PostgreSQL does not know; ALTER TABLE does not, so
//! ours are taken away while one changes options.
//!
//! The mark of a distributed store (`catalog::distributed_store`) is one more option. Only `quad.create_store` and its
//! kin set it: a CREATE TABLE of a dump that has it makes a store of this node.

use crate::am::{not_null, table_as};
use crate::catalog::access_method::is_quad_relid;
use crate::catalog::distributed_store::{is_side, mark_of, MARK};
use crate::cluster::guard;
use crate::pg::compat;
use crate::pg::error::raise_hint;
use crate::pg::guc;
use crate::storage;
use pgrx::prelude::*;
use pgrx::{pg_sys, PgSqlErrorCode};
use std::cell::RefCell;
use std::ffi::{c_char, CStr, CString};

/// Option and the setting of the same meaning.
const OPTIONS: [(&CStr, &CStr); 3] = [
    (c"orders", c"quad.orders"),
    (c"inner_fanout", c"quad.inner_fanout"),
    (c"leaf_quads", c"quad.leaf_quads"),
];

thread_local! {
    /// Tables that got a new file in the running utility statement.
    static CREATED: RefCell<Vec<pg_sys::Oid>> = const { RefCell::new(Vec::new()) };
    /// Tables of schema `quad_shards` that this transaction has made.
    static SHARD_TABLES: RefCell<Vec<pg_sys::Oid>> = const { RefCell::new(Vec::new()) };
}

/// What `before` did, for `after` to finish. Owns nothing, since an error may jump over it.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Statement {
    /// The statement to run instead of the one given to `before`.
    pub planned: *mut pg_sys::PlannedStmt,
    /// Nesting level of the settings that `after` ends; 0 = none.
    settings: i32,
    /// Table whose options were taken away.
    altered: pg_sys::Oid,
    /// The mark that was taken away with them, in the memory of the statement; null: none.
    mark: *const c_char,
    /// Number of tables that enclosing statements have noted.
    noted: usize,
}

/// Notes that a table of this statement has got a new file.
pub fn created(relid: pg_sys::Oid) {
    CREATED.with_borrow_mut(|created| created.push(relid));
}

/// Forgets what a failed statement noted; called at the end of a transaction.
pub fn forget_created() {
    CREATED.take();
    SHARD_TABLES.take();
}

/// The tables of schema `quad_shards` that this transaction has made since the last call; some may be gone.
pub fn take_shard_tables() -> Vec<pg_sys::Oid> {
    SHARD_TABLES.take()
}

/// Prepares a utility statement: takes our options out of it.
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
        settings: 0,
        altered: pg_sys::InvalidOid,
        mark: std::ptr::null(),
        noted: CREATED.with_borrow(Vec::len),
    };
    // SAFETY: the node's tag says its type; every pointer comes from the parser.
    unsafe {
        let node = (*planned).utilityStmt;
        guard::check_utility(node);
        if create_options(node).is_some_and(|options| has_ours(*options)) {
            if read_only {
                statement.planned = pg_sys::copyObjectImpl(planned.cast()).cast();
            }
            if let Some(options) = create_options((*statement.planned).utilityStmt) {
                statement.settings = apply(options);
            }
        } else if (*node).type_ == pg_sys::NodeTag::T_AlterTableStmt {
            (statement.altered, statement.mark) = make_way(node.cast());
        }
    }
    statement
}

/// Writes down the options of the tables that the statement made or changed.
///
/// # Safety
/// The statement of `before` has run without an error, in a transaction that still runs if it made a table.
#[pg_guard]
pub unsafe extern "C-unwind" fn after(statement: Statement) {
    let mut changed = CREATED.with_borrow_mut(|created| {
        let noted = statement.noted.min(created.len());
        created.split_off(noted)
    });
    if statement.altered != pg_sys::InvalidOid {
        changed.push(statement.altered);
    }
    // SAFETY: the level is the one that `apply` opened.
    unsafe {
        if statement.settings > 0 {
            pg_sys::AtEOXact_GUC(true, statement.settings);
        }
        if !changed.is_empty() {
            pg_sys::CommandCounterIncrement();
        }
        for relid in changed {
            record(relid);
            not_null::declare(relid);
            if is_side(relid) && compat::is_made_here(relid) {
                SHARD_TABLES.with_borrow_mut(|made| made.push(relid));
            }
        }
        if !statement.mark.is_null() {
            let mark = CStr::from_ptr(statement.mark).to_owned();
            replace(statement.altered, vec![(MARK, Some(mark))]);
        }
    }
}

/// Brings `pg_class.reloptions` of a table in line with its access method and metapage; nothing when the table is gone.
///
/// # Safety
/// In a transaction that holds a lock on the table which keeps other changes of its definition away.
pub unsafe fn record(relid: pg_sys::Oid) {
    let options = if is_quad_relid(relid) {
        storage::options_of(relid)
    } else {
        None
    };
    let changes = match options {
        Some(options) => {
            let values = texts(&options).map(|v| Some(CString::new(v).unwrap_or_default()));
            OPTIONS.iter().map(|(name, _)| *name).zip(values).collect()
        }
        None => removals(),
    };
    // SAFETY: the caller's promise.
    unsafe { replace(relid, changes) };
}

/// Sets the mark of a relation, or takes it away.
///
/// # Safety
/// As for [`record`].
pub unsafe fn set_mark(relid: pg_sys::Oid, base: Option<CString>) {
    // SAFETY: the caller's promise.
    unsafe { replace(relid, vec![(MARK, base)]) };
}

/// An option with its new value; `None`: removed.
type Change = (&'static CStr, Option<CString>);

/// Takes all our options away.
fn removals() -> Vec<Change> {
    let ours = OPTIONS.iter().map(|(name, _)| *name).chain([MARK]);
    ours.map(|name| (name, None)).collect()
}

/// The options in the form of the settings; one number when it holds for every order.
fn texts(options: &pgquad_btree::Options) -> [String; 3] {
    let list = |number: fn(&pgquad_btree::OrderOptions) -> u32| {
        let mut all: Vec<String> = options
            .orders
            .iter()
            .map(|o| number(o).to_string())
            .collect();
        if all.iter().all(|n| *n == all[0]) {
            all.truncate(1);
        }
        all.join(",")
    };
    let orders: Vec<String> = options.orders.iter().map(|o| o.order.to_string()).collect();
    [
        orders.join(","),
        list(|o| o.inner_fanout),
        list(|o| o.leaf_quads),
    ]
}

/// The list of options of a statement that creates a quad table.
unsafe fn create_options(node: *mut pg_sys::Node) -> Option<*mut *mut pg_sys::List> {
    // SAFETY: the tag says the type.
    unsafe {
        let node = table_as::explained(node);
        let (method, options) = match (*node).type_ {
            pg_sys::NodeTag::T_CreateStmt => {
                let create = node.cast::<pg_sys::CreateStmt>();
                // A partitioned table has no storage of its own.
                if !(*create).partspec.is_null() {
                    return None;
                }
                ((*create).accessMethod, &raw mut (*create).options)
            }
            pg_sys::NodeTag::T_CreateTableAsStmt => {
                let into = (*node.cast::<pg_sys::CreateTableAsStmt>()).into;
                ((*into).accessMethod, &raw mut (*into).options)
            }
            _ => return None,
        };
        let method = if method.is_null() {
            pg_sys::default_table_access_method.cast_const()
        } else {
            method.cast_const()
        };
        (CStr::from_ptr(method) == c"quad").then_some(options)
    }
}

/// One of our options in a statement.
enum Ours {
    /// Its place in `OPTIONS`.
    Setting(usize),
    Mark,
}

unsafe fn ours(option: *mut pg_sys::DefElem) -> Option<Ours> {
    // SAFETY: an element of a list of options.
    unsafe {
        if !(*option).defnamespace.is_null() {
            return None;
        }
        let name = CStr::from_ptr((*option).defname);
        if name == MARK {
            return Some(Ours::Mark);
        }
        let place = OPTIONS.iter().position(|(option, _)| *option == name);
        place.map(Ours::Setting)
    }
}

unsafe fn elements(list: *mut pg_sys::List) -> Vec<*mut pg_sys::DefElem> {
    // SAFETY: a list of pointers, or NIL.
    unsafe {
        let length = if list.is_null() { 0 } else { (*list).length };
        (0..length)
            .map(|n| pg_sys::list_nth(list, n).cast())
            .collect()
    }
}

unsafe fn has_ours(list: *mut pg_sys::List) -> bool {
    // SAFETY: as `elements` and `ours`.
    unsafe {
        elements(list)
            .into_iter()
            .any(|option| ours(option).is_some())
    }
}

/// Moves our options from the list into settings of a new nesting level, which is returned. An error ends the level
/// with the (sub)transaction.
unsafe fn apply(list: *mut *mut pg_sys::List) -> i32 {
    // SAFETY: the list is this statement's own.
    unsafe {
        let level = pg_sys::NewGUCNestLevel();
        let mut others = std::ptr::null_mut();
        for option in elements(*list) {
            match ours(option) {
                Some(Ours::Mark) => notice!("the quads of this table are kept here: quad.distribute_store distributes a store"),
                Some(Ours::Setting(place)) => {
                    guc::set_in_level(OPTIONS[place].1, pg_sys::defGetString(option));
                }
                None => others = pg_sys::lappend(others, option.cast()),
            }
        }
        *list = others;
        level
    }
}

/// Before an ALTER TABLE that changes options or the access method of a quad table: takes ours away. Returns the table,
/// whose options are written again when the statement is done, or no table.
unsafe fn make_way(alter: *mut pg_sys::AlterTableStmt) -> (pg_sys::Oid, *const c_char) {
    use pg_sys::AlterTableType as Kind;
    // SAFETY: the parser's list of AlterTableCmd.
    unsafe {
        let mut concerned = false;
        for command in elements((*alter).cmds) {
            let command = command.cast::<pg_sys::AlterTableCmd>();
            match (*command).subtype {
                Kind::AT_SetRelOptions | Kind::AT_ResetRelOptions => {
                    concerned = true;
                    if has_ours((*command).def.cast()) && is_quad_relid(table_of(alter)) {
                        raise_hint(
                            PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
                            "the orders, inner fanout, leaf size and shards of a quad table are not changed by ALTER TABLE",
                            "Use quad.rebuild(table, orders, inner_fanout, leaf_quads), quad.distribute_store or quad.undistribute_store.",
                        );
                    }
                }
                Kind::AT_SetAccessMethod => concerned = true,
                _ => {}
            }
        }
        let relid = table_of(alter);
        // Somebody who may not alter the table is told so by the statement itself.
        if !concerned || !is_quad_relid(relid) || !crate::pg::compat::owns(relid) {
            return (pg_sys::InvalidOid, std::ptr::null());
        }
        pg_sys::LockRelationOid(relid, pg_sys::ShareUpdateExclusiveLock as i32);
        let mark = mark_of(relid).map_or(std::ptr::null(), |mark| {
            let mark = CString::new(mark).unwrap_or_default();
            pg_sys::pstrdup(mark.as_ptr()).cast_const()
        });
        replace(relid, removals());
        pg_sys::CommandCounterIncrement();
        (relid, mark)
    }
}

/// The table that an ALTER TABLE names, not locked; invalid when there is none.
unsafe fn table_of(alter: *mut pg_sys::AlterTableStmt) -> pg_sys::Oid {
    // SAFETY: a look-up by name.
    unsafe {
        pg_sys::RangeVarGetRelidExtended(
            (*alter).relation,
            pg_sys::NoLock as i32,
            pg_sys::RVROption::RVR_MISSING_OK,
            None,
            std::ptr::null_mut(),
        )
    }
}

/// Writes values of our options to a table's row of pg_class, or removes them; other options stay. No write when
/// nothing changes.
unsafe fn replace(relid: pg_sys::Oid, changes: Vec<Change>) {
    // SAFETY: pg_class and the tuple are open during the call.
    unsafe {
        let class = pg_sys::table_open(pg_sys::RelationRelationId, pg_sys::RowExclusiveLock as i32);
        let tuple = pg_sys::SearchSysCacheCopy(
            pg_sys::SysCacheIdentifier::RELOID as i32,
            pg_sys::Datum::from(relid),
            pg_sys::Datum::from(0),
            pg_sys::Datum::from(0),
            pg_sys::Datum::from(0),
        );
        if !tuple.is_null() {
            let mut missing = false;
            let old = pg_sys::SysCacheGetAttr(
                pg_sys::SysCacheIdentifier::RELOID as i32,
                tuple,
                pg_sys::Anum_pg_class_reloptions as i16,
                &mut missing,
            );
            let old = if missing {
                pg_sys::Datum::from(0)
            } else {
                pg_sys::Datum::from(pg_sys::pg_detoast_datum(old.cast_mut_ptr()))
            };
            let new = merged(old, &changes);
            if bytes(old) != bytes(new) {
                write(class, tuple, new);
            }
        }
        pg_sys::table_close(class, pg_sys::RowExclusiveLock as i32);
    }
}

/// The bytes of an array that is not toasted; none for a null.
unsafe fn bytes<'a>(array: pg_sys::Datum) -> &'a [u8] {
    if array.is_null() {
        return &[];
    }
    // SAFETY: the caller's array outlives the comparison.
    unsafe { pgrx::varlena::varlena_to_byte_slice(array.cast_mut_ptr()) }
}

/// The array of options with these set, or removed.
unsafe fn merged(old: pg_sys::Datum, changes: &[Change]) -> pg_sys::Datum {
    let mut merged = old;
    // With `reset` the options named are removed, without it set.
    for reset in [true, false] {
        // SAFETY: nodes made here; transformRelOptions copies what it keeps.
        unsafe {
            let mut list = std::ptr::null_mut();
            for (name, value) in changes.iter().filter(|(_, value)| value.is_none() == reset) {
                let value = value.as_ref().map_or(std::ptr::null_mut(), |value| {
                    pg_sys::makeString(pg_sys::pstrdup(value.as_ptr())).cast()
                });
                let change = pg_sys::makeDefElem(pg_sys::pstrdup(name.as_ptr()), value, -1);
                list = pg_sys::lappend(list, change.cast());
            }
            if !list.is_null() {
                merged = pg_sys::transformRelOptions(
                    merged,
                    list,
                    std::ptr::null::<c_char>(),
                    std::ptr::null_mut(),
                    false,
                    reset,
                );
            }
        }
    }
    merged
}

unsafe fn write(class: pg_sys::Relation, tuple: pg_sys::HeapTuple, options: pg_sys::Datum) {
    const COLUMNS: usize = pg_sys::Natts_pg_class as usize;
    const PLACE: usize = pg_sys::Anum_pg_class_reloptions as usize - 1;
    let mut values = [pg_sys::Datum::from(0); COLUMNS];
    let mut nulls = [false; COLUMNS];
    let mut replaced = [false; COLUMNS];
    values[PLACE] = options;
    nulls[PLACE] = options.is_null();
    replaced[PLACE] = true;
    // SAFETY: `class` is pg_class, open for writing; `tuple` is a copy of a row of it.
    unsafe {
        let new = pg_sys::heap_modify_tuple(
            tuple,
            (*class).rd_att,
            values.as_mut_ptr(),
            nulls.as_mut_ptr(),
            replaced.as_mut_ptr(),
        );
        pg_sys::CatalogTupleUpdate(class, &mut (*new).t_self, new);
        pg_sys::CommandCounterIncrement();
    }
}
