//! Differences between PostgreSQL 15, 16 and 17 that this crate notices: one name for what has several.

use crate::pg::list::list_iter;
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

/// Whether the current user may execute a function.
///
/// # Safety
/// Within a transaction.
pub unsafe fn may_execute(function: pg_sys::Oid) -> bool {
    // SAFETY: syscache look-ups.
    let result = unsafe {
        let (user, right) = (pg_sys::GetUserId(), pg_sys::ACL_EXECUTE as pg_sys::AclMode);
        #[cfg(feature = "pg15")]
        let result = pg_sys::pg_proc_aclcheck(function, user, right);
        #[cfg(not(feature = "pg15"))]
        let result = pg_sys::object_aclcheck(pg_sys::ProcedureRelationId, function, user, right);
        result
    };
    result == pg_sys::AclResult::ACLCHECK_OK
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

/// The members of a set that are relations. Since PostgreSQL 16 outer joins are members, too.
///
/// # Safety
/// Live planner nodes.
pub unsafe fn base_relations(
    root: *mut pg_sys::PlannerInfo,
    relids: pg_sys::Relids,
) -> pg_sys::Relids {
    #[cfg(feature = "pg15")]
    {
        let _ = root;
        relids
    }
    #[cfg(not(feature = "pg15"))]
    // SAFETY: the caller's promise.
    unsafe {
        pg_sys::bms_difference(relids, (*root).outer_join_rels)
    }
}

/// The members of a set, ascending.
///
/// # Safety
/// `set` is null or a live bitmapset.
pub unsafe fn members(set: pg_sys::Relids) -> Vec<i32> {
    let mut member = -1;
    std::iter::from_fn(|| {
        // SAFETY: the caller's promise.
        member = unsafe { pg_sys::bms_next_member(set, member) };
        (member >= 0).then_some(member)
    })
    .collect()
}

/// Whether a member of a set of relations is an outer join.
///
/// # Safety
/// Live planner nodes.
pub unsafe fn is_outer_join(root: *mut pg_sys::PlannerInfo, member: i32) -> bool {
    #[cfg(feature = "pg15")]
    {
        let _ = (root, member);
        false
    }
    #[cfg(not(feature = "pg15"))]
    // SAFETY: the caller's promise.
    unsafe {
        pg_sys::bms_is_member(member, (*root).outer_join_rels)
    }
}

/// Whether an entry of the range table is a relation.
///
/// # Safety
/// A live node.
pub unsafe fn is_relation(rte: *mut pg_sys::RangeTblEntry) -> bool {
    // SAFETY: the caller's promise.
    unsafe { (*rte).rtekind == pg_sys::RTEKind::RTE_RELATION }
}

/// The relation that an entry of the range table is of, if it is of one.
///
/// # Safety
/// A live node.
pub unsafe fn relation_of(rte: *mut pg_sys::RangeTblEntry) -> Option<pg_sys::Oid> {
    // SAFETY: the caller's promise.
    unsafe { is_relation(rte).then(|| (*rte).relid) }
}

/// The variables of an expression, or of a list of expressions: the nodes themselves.
///
/// # Safety
/// A live expression.
pub unsafe fn variables(expression: *mut pg_sys::Node) -> Vec<*mut pg_sys::Var> {
    let flags = pg_sys::PVC_RECURSE_AGGREGATES
        | pg_sys::PVC_RECURSE_WINDOWFUNCS
        | pg_sys::PVC_RECURSE_PLACEHOLDERS;
    // SAFETY: the caller's promise.
    unsafe { list_iter(pg_sys::pull_var_clause(expression, flags as i32)).collect() }
}

/// An expression as a node can compute it from what `tlist` has. Since PostgreSQL 16 a variable also says which outer
/// joins can have made it null. A node that carries out several joins computes conditions below such a join and answers
/// above it from the same columns. So the conditions have to name them as the columns do.
///
/// # Safety
/// Live nodes; the entries of `tlist` are variables.
pub unsafe fn as_in(expression: *mut pg_sys::Node, tlist: *mut pg_sys::List) -> *mut pg_sys::Node {
    #[cfg(feature = "pg15")]
    let _ = tlist;
    #[cfg(not(feature = "pg15"))]
    // SAFETY: the caller's promise; the copy is changed only.
    unsafe {
        let copy = pg_sys::copyObjectImpl(expression.cast()).cast::<pg_sys::Node>();
        for var in variables(copy) {
            let mut columns = list_iter::<pg_sys::TargetEntry>(tlist)
                .map(|entry| (*entry).expr.cast::<pg_sys::Var>());
            let column =
                columns.find(|c| ((**c).varno, (**c).varattno) == ((*var).varno, (*var).varattno));
            if let Some(column) = column {
                (*var).varnullingrels = (*column).varnullingrels;
            }
        }
        copy
    }
    #[cfg(feature = "pg15")]
    expression
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

/// Gives a table a new, empty file, as TRUNCATE does.
///
/// # Safety
/// `rel` is open and locked exclusively.
pub unsafe fn new_file(rel: pg_sys::Relation) {
    // SAFETY: the caller's promise.
    unsafe {
        let persistence = (*(*rel).rd_rel).relpersistence;
        #[cfg(feature = "pg15")]
        pg_sys::RelationSetNewRelfilenode(rel, persistence);
        #[cfg(not(feature = "pg15"))]
        pg_sys::RelationSetNewRelfilenumber(rel, persistence);
    }
}

/// A set of so many events to wait for, which lives until `FreeWaitEventSet`. Since PostgreSQL 17 a set may belong to a
/// resource owner. Without one it is allocated in the top memory context, which is an argument in earlier versions.
///
/// # Safety
/// In a session's main thread.
pub unsafe fn wait_event_set(events: i32) -> *mut pg_sys::WaitEventSet {
    // SAFETY: the context lives as long as the session.
    unsafe {
        #[cfg(not(feature = "pg17"))]
        let owner = pg_sys::TopMemoryContext;
        #[cfg(feature = "pg17")]
        let owner = std::ptr::null_mut();
        pg_sys::CreateWaitEventSet(owner, events)
    }
}

/// The socket of this session's client: the first field of `Port` of `libpq/libpq-be.h`, which pgrx does not bind.
///
/// # Safety
/// In a session that has a client.
pub unsafe fn client_socket() -> i32 {
    // SAFETY: the caller's promise.
    unsafe { *pg_sys::MyProcPort.cast::<i32>() }
}

/// Whether this transaction has made a relation, and not only its file: it knows the subtransaction.
///
/// # Safety
/// The relation is there and locked.
pub unsafe fn is_made_here(relid: pg_sys::Oid) -> bool {
    // SAFETY: the caller's promise.
    unsafe {
        let rel = pg_sys::relation_open(relid, pg_sys::NoLock as pg_sys::LOCKMODE);
        let made = (*rel).rd_createSubid != 0;
        pg_sys::relation_close(rel, pg_sys::NoLock as pg_sys::LOCKMODE);
        made
    }
}

/// Whether this session has a lock on a relation, of this mode or a stronger one.
///
/// `CheckRelationOidLockedByMe` is younger than the first minor versions of 15 and 16: a library that needs it does not
/// load there.
///
/// # Safety
/// Within a transaction.
pub unsafe fn is_locked(relation: pg_sys::Oid, mode: u32) -> bool {
    // SAFETY: the relation stays open for the look alone; one that is dropped is null.
    unsafe {
        let open = pg_sys::RelationIdGetRelation(relation);
        if open.is_null() {
            return false;
        }
        let locked = pg_sys::CheckRelationLockedByMe(open, mode as pg_sys::LOCKMODE, true);
        pg_sys::RelationClose(open);
        locked
    }
}

/// The query that an EXPLAIN is of; null for any other utility statement, and before the query has been analysed.
///
/// # Safety
/// A live utility statement.
pub unsafe fn explained_query(statement: *mut pg_sys::Node) -> *mut pg_sys::Query {
    // SAFETY: casts follow looks at tags.
    unsafe {
        if (*statement).type_ != pg_sys::NodeTag::T_ExplainStmt {
            return std::ptr::null_mut();
        }
        let query = (*statement.cast::<pg_sys::ExplainStmt>()).query;
        if query.is_null() || (*query).type_ != pg_sys::NodeTag::T_Query {
            return std::ptr::null_mut();
        }
        query.cast()
    }
}

/// A search path with PostgreSQL's own schema only, in force until [`CatalogPath::pop`] or, after an error, the end of
/// the transaction.
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
            crate::pg::guc::set_in_level(c"search_path", c"pg_catalog, pg_temp".as_ptr());
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

/// The status of a session by its place among all, from 1, with its snapshot's oldest transaction; may be null.
///
/// # Safety
/// In a transaction. The status is a copy that lasts until it ends, or the copies are cleared.
pub unsafe fn session_status(place: i32) -> *const pg_sys::LocalPgBackendStatus {
    // SAFETY: the caller's promise.
    unsafe {
        #[cfg(feature = "pg15")]
        return pg_sys::pgstat_fetch_stat_local_beentry(place);
        #[cfg(not(feature = "pg15"))]
        return pg_sys::pgstat_get_local_beentry_by_index(place);
    }
}
