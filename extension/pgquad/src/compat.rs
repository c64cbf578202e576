//! Where PostgreSQL 15, 16 and 17 differ, as far as this crate notices: one name for what has several.

use pgrx::pg_sys;

/// What identifies the file of a relation.
#[cfg(not(feature = "pg15"))]
pub use pg_sys::RelFileLocator as FileLocator;
/// What identifies the file of a relation.
#[cfg(feature = "pg15")]
pub use pg_sys::RelFileNode as FileLocator;

/// What `tuple_update` says about the indexes of a table.
#[cfg(feature = "pg15")]
pub type UpdateIndexes = bool;
/// What `tuple_update` says about the indexes of a table.
#[cfg(not(feature = "pg15"))]
pub type UpdateIndexes = pg_sys::TU_UpdateIndexes::Type;

/// No index is to be updated.
#[cfg(feature = "pg15")]
pub const UPDATE_NO_INDEX: UpdateIndexes = false;
/// No index is to be updated.
#[cfg(not(feature = "pg15"))]
pub const UPDATE_NO_INDEX: UpdateIndexes = pg_sys::TU_UpdateIndexes::TU_None;

/// The file of an open relation.
///
/// # Safety
/// `rel` is open.
pub unsafe fn file_of(rel: pg_sys::Relation) -> *mut FileLocator {
    // SAFETY: the caller's promise.
    unsafe {
        #[cfg(feature = "pg15")]
        return &raw mut (*rel).rd_node;
        #[cfg(not(feature = "pg15"))]
        return &raw mut (*rel).rd_locator;
    }
}

/// Whether two locators of files in one tablespace and database are of one file.
pub fn same_file(a: &FileLocator, b: &FileLocator) -> bool {
    #[cfg(feature = "pg15")]
    return a.relNode == b.relNode;
    #[cfg(not(feature = "pg15"))]
    return a.relNumber == b.relNumber;
}

/// Whether the running transaction made the relation, or its present file.
pub fn new_in_transaction(rel: &pg_sys::RelationData) -> bool {
    #[cfg(feature = "pg15")]
    let file = rel.rd_firstRelfilenodeSubid;
    #[cfg(not(feature = "pg15"))]
    let file = rel.rd_firstRelfilelocatorSubid;
    rel.rd_createSubid != 0 || file != 0
}

/// Whether the current user owns a relation.
///
/// # Safety
/// Within a transaction.
pub unsafe fn owns(relid: pg_sys::Oid) -> bool {
    // SAFETY: syscache look-ups.
    unsafe {
        let user = pg_sys::GetUserId();
        #[cfg(feature = "pg15")]
        return pg_sys::pg_class_ownercheck(relid, user);
        #[cfg(not(feature = "pg15"))]
        return pg_sys::object_ownercheck(pg_sys::RelationRelationId, relid, user);
    }
}

/// The parts of a qualified name; an ERROR when it is none.
///
/// # Safety
/// `name` is a C string.
pub unsafe fn qualified_name(name: *const core::ffi::c_char) -> *mut pg_sys::List {
    // SAFETY: the caller's promise.
    unsafe {
        #[cfg(feature = "pg15")]
        return pg_sys::stringToQualifiedNameList(name);
        #[cfg(not(feature = "pg15"))]
        return pg_sys::stringToQualifiedNameList(name, std::ptr::null_mut());
    }
}

/// Whether a set of relations has no member.
///
/// # Safety
/// `set` is null or a live bitmapset.
pub unsafe fn is_empty(set: pg_sys::Relids) -> bool {
    #[cfg(feature = "pg15")]
    // SAFETY: the caller's promise.
    return unsafe { pg_sys::bms_is_empty(set) };
    #[cfg(not(feature = "pg15"))]
    return set.is_null();
}

/// The pathkey of an expression over the base relations `rels`; null when the query has no use for it.
///
/// # Safety
/// Live planner nodes.
pub unsafe fn expression_pathkey(
    root: *mut pg_sys::PlannerInfo,
    expression: *mut pg_sys::Expr,
    operator: pg_sys::Oid,
    rels: pg_sys::Relids,
) -> *mut pg_sys::List {
    // SAFETY: the caller's promise.
    unsafe {
        #[cfg(feature = "pg15")]
        return pg_sys::build_expression_pathkey(
            root,
            expression,
            std::ptr::null_mut(),
            operator,
            rels,
            false,
        );
        #[cfg(not(feature = "pg15"))]
        return pg_sys::build_expression_pathkey(root, expression, operator, rels, false);
    }
}

/// The equalities that the equivalence classes imply between two sides of an inner join.
///
/// # Safety
/// Live planner nodes.
pub unsafe fn implied_equalities(
    root: *mut pg_sys::PlannerInfo,
    both: pg_sys::Relids,
    outer: pg_sys::Relids,
    inner: *mut pg_sys::RelOptInfo,
) -> *mut pg_sys::List {
    // SAFETY: the caller's promise.
    unsafe {
        #[cfg(feature = "pg15")]
        return pg_sys::generate_join_implied_equalities(root, both, outer, inner);
        #[cfg(not(feature = "pg15"))]
        return pg_sys::generate_join_implied_equalities(
            root,
            both,
            outer,
            inner,
            std::ptr::null_mut(),
        );
    }
}

/// Whether the members of a class equal a constant, so that ordering by them says nothing.
///
/// # Safety
/// A live planner node.
pub unsafe fn is_constant(class: *mut pg_sys::EquivalenceClass) -> bool {
    // SAFETY: the caller's promise.
    unsafe {
        #[cfg(feature = "pg15")]
        return (*class).ec_has_const && !(*class).ec_below_outer_join;
        #[cfg(not(feature = "pg15"))]
        return (*class).ec_has_const;
    }
}

/// The oldest transaction and multixact that some snapshot may still need, for a vacuum.
///
/// # Safety
/// `rel` is open and `params` are those of VACUUM.
pub unsafe fn oldest_needed(
    rel: pg_sys::Relation,
    params: *mut pg_sys::VacuumParams,
) -> (pg_sys::TransactionId, pg_sys::MultiXactId) {
    // SAFETY: the caller's promise.
    unsafe {
        #[cfg(feature = "pg15")]
        {
            let (mut xid, mut freeze_limit) = Default::default();
            let (mut multi, mut multi_cutoff) = Default::default();
            pg_sys::vacuum_set_xid_limits(
                rel,
                (*params).freeze_min_age,
                (*params).freeze_table_age,
                (*params).multixact_freeze_min_age,
                (*params).multixact_freeze_table_age,
                &mut xid,
                &mut multi,
                &mut freeze_limit,
                &mut multi_cutoff,
            );
            (xid, multi)
        }
        #[cfg(not(feature = "pg15"))]
        {
            let mut cutoffs = pg_sys::VacuumCutoffs::default();
            pg_sys::vacuum_get_cutoffs(rel, params, &mut cutoffs);
            (cutoffs.OldestXmin, cutoffs.OldestMxact)
        }
    }
}

/// Counts an updated row for the statistics views.
///
/// # Safety
/// `rel` is open.
pub unsafe fn count_update(rel: pg_sys::Relation) {
    // SAFETY: the caller's promise.
    unsafe {
        #[cfg(feature = "pg15")]
        pg_sys::pgstat_count_heap_update(rel, false);
        #[cfg(not(feature = "pg15"))]
        pg_sys::pgstat_count_heap_update(rel, false, false);
    }
}

/// Cancels, in recovery, the queries of a standby whose snapshots need what `xid` and older ones changed.
///
/// # Safety
/// Called by the startup process.
pub unsafe fn resolve_conflict(xid: u32, file: FileLocator) {
    let xid = pg_sys::TransactionId::from(xid);
    // SAFETY: the caller's promise.
    unsafe {
        #[cfg(feature = "pg15")]
        pg_sys::ResolveRecoveryConflictWithSnapshot(xid, file);
        #[cfg(not(feature = "pg15"))]
        pg_sys::ResolveRecoveryConflictWithSnapshot(xid, false, file);
    }
}

/// About how many elements an array expression has.
///
/// # Safety
/// Live planner nodes.
pub unsafe fn array_length(root: *mut pg_sys::PlannerInfo, array: *mut pg_sys::Node) -> f64 {
    // SAFETY: the caller's promise.
    unsafe {
        #[cfg(not(feature = "pg17"))]
        {
            let _ = root;
            f64::from(pg_sys::estimate_array_length(array))
        }
        #[cfg(feature = "pg17")]
        pg_sys::estimate_array_length(root, array)
    }
}

/// The number by which this process knows its running transaction.
///
/// # Safety
/// Within a transaction.
pub unsafe fn local_transaction() -> pg_sys::LocalTransactionId {
    // SAFETY: a process with a transaction has an entry.
    unsafe {
        #[cfg(not(feature = "pg17"))]
        return (*pg_sys::MyProc).lxid;
        #[cfg(feature = "pg17")]
        return (*pg_sys::MyProc).vxid.lxid;
    }
}

/// A search path with PostgreSQL's own schema only, in force until [`CatalogPath::pop`] or, after an error, the end of the
/// transaction.
pub struct CatalogPath {
    #[cfg(feature = "pg17")]
    level: core::ffi::c_int,
}

impl CatalogPath {
    /// Puts the path in force.
    ///
    /// # Safety
    /// Within a transaction.
    #[cfg(not(feature = "pg17"))]
    pub unsafe fn push() -> Self {
        let mut path = pg_sys::OverrideSearchPath {
            schemas: std::ptr::null_mut(),
            addCatalog: true,
            addTemp: false,
            generation: 0,
        };
        // SAFETY: the path is copied.
        unsafe { pg_sys::PushOverrideSearchPath(&mut path) }
        CatalogPath {}
    }

    /// Puts the path in force. PostgreSQL 17 has no way but a setting.
    ///
    /// # Safety
    /// Within a transaction.
    #[cfg(feature = "pg17")]
    pub unsafe fn push() -> Self {
        // SAFETY: the setting is undone with its level.
        unsafe {
            let level = pg_sys::NewGUCNestLevel();
            pg_sys::set_config_option(
                c"search_path".as_ptr(),
                c"pg_catalog, pg_temp".as_ptr(),
                pg_sys::GucContext::PGC_USERSET,
                pg_sys::GucSource::PGC_S_SESSION,
                pg_sys::GucAction::GUC_ACTION_SAVE,
                true,
                0,
                false,
            );
            CatalogPath { level }
        }
    }

    /// Puts the path of before in force again.
    ///
    /// # Safety
    /// In the transaction of `push`, once, when all that were pushed later have been popped.
    pub unsafe fn pop(&self) {
        // SAFETY: the caller's promise.
        unsafe {
            #[cfg(not(feature = "pg17"))]
            pg_sys::PopOverrideSearchPath();
            #[cfg(feature = "pg17")]
            pg_sys::AtEOXact_GUC(true, self.level);
        }
    }
}
