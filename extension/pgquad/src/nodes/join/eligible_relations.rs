//! Eligible relations: which relations of a query level may become part of a `Quad Join`.

use crate::catalog::access_method;
use crate::nodes::triples;
use crate::pg::compat;
use crate::pg::list::list_iter;
use crate::settings;
use pgrx::pg_sys;

/// Most relations that one node reads.
const MAX_RELATIONS: i32 = 48;

/// The quad relations of a level that `Quad Join` can take (NULL = none, or only one). Kept in the planner's
/// `join_search_private` until the join search, which is the first of PostgreSQL's own to use that field.
///
/// # Safety
/// `root` is the live planner state of a level whose base relations have been set up.
pub unsafe fn candidates(root: *mut pg_sys::PlannerInfo) -> pg_sys::Relids {
    // SAFETY: the caller's promise; the field is NULL or holds a `Level` of this module.
    unsafe {
        let mut level = (*root).join_search_private.cast::<Level>();
        if level.is_null() {
            level = pg_sys::palloc0(size_of::<Level>()).cast();
            (*level).candidates = find(root);
            (*root).join_search_private = level.cast();
        }
        (*level).candidates
    }
}

/// Forgets what [`candidates`] has kept, so that the join search finds its field as it expects it.
///
/// # Safety
/// As for [`candidates`].
pub unsafe fn forget(root: *mut pg_sys::PlannerInfo) {
    // SAFETY: the caller's promise.
    unsafe { (*root).join_search_private = std::ptr::null_mut() }
}

/// Those of `outer` that `rel` would be joined with inside a `Quad Join`; no path of `rel` needs to be parameterised by
/// them.
///
/// # Safety
/// As for [`candidates`]; `rel` is a base relation of the level.
pub unsafe fn outer_candidates(
    root: *mut pg_sys::PlannerInfo,
    rel: *mut pg_sys::RelOptInfo,
) -> pg_sys::Relids {
    // SAFETY: the caller's promise.
    unsafe {
        let all = candidates(root);
        if pg_sys::bms_is_member((*rel).relid as i32, all) {
            all
        } else {
            std::ptr::null_mut()
        }
    }
}

/// Whether a relation is a quad table that could be joined by the node, on its own in its level too.
///
/// # Safety
/// `rel` is a relation of the level, which is past the setting up of base relations.
pub unsafe fn is_eligible(root: *mut pg_sys::PlannerInfo, rel: *mut pg_sys::RelOptInfo) -> bool {
    // SAFETY: the caller's promise.
    unsafe {
        if (*rel).reloptkind != pg_sys::RelOptKind::RELOPT_BASEREL {
            return false;
        }
        let rte = *(*root).simple_rte_array.add((*rel).relid as usize);
        rel_allows(root, rel, rte) && level_allows(root)
    }
}

struct Level {
    candidates: pg_sys::Relids,
}

unsafe fn find(root: *mut pg_sys::PlannerInfo) -> pg_sys::Relids {
    // SAFETY: a live planner state; the array has the size it says.
    unsafe {
        let mut found: pg_sys::Relids = std::ptr::null_mut();
        if !level_allows(root) {
            return found;
        }
        let mut count = 0;
        for rti in 1..(*root).simple_rel_array_size {
            let rel = *(*root).simple_rel_array.add(rti as usize);
            let rte = *(*root).simple_rte_array.add(rti as usize);
            if !rel.is_null() && !rte.is_null() && rel_allows(root, rel, rte) {
                found = pg_sys::bms_add_member(found, rti);
                count += 1;
            }
        }
        if count > MAX_RELATIONS {
            count -= tests_of_repeats(root, found);
        }
        if (2..=MAX_RELATIONS).contains(&count) {
            found
        } else {
            std::ptr::null_mut()
        }
    }
}

/// How many of the relations `found` only tell repeats of triples: the node does not read them.
unsafe fn tests_of_repeats(root: *mut pg_sys::PlannerInfo, found: pg_sys::Relids) -> i32 {
    // SAFETY: a live planner state; relations that have been found are tables of it.
    unsafe {
        let is_found = |rti: pg_sys::Index| pg_sys::bms_is_member(rti as i32, found);
        list_iter::<pg_sys::SpecialJoinInfo>((*root).join_info_list)
            .filter_map(|join| triples::test_of_repeats(root, join))
            .filter(|&(test, read)| is_found(test) && is_found(read))
            .filter(|&(_, read)| triples::is_readable(root, read))
            .count() as i32
    }
}

/// Rows that are locked (FOR UPDATE) are looked at again after a wait, which a join cannot do. Expressions that an
/// outer join has to null, and conditions on no relation at all, are left to PostgreSQL's own joins.
unsafe fn level_allows(root: *mut pg_sys::PlannerInfo) -> bool {
    // SAFETY: a live planner state.
    unsafe {
        let parse = (*root).parse;
        let allowed = match (*parse).commandType {
            pg_sys::CmdType::CMD_SELECT | pg_sys::CmdType::CMD_INSERT => (*root).rowMarks.is_null(),
            _ => changes_quads(root),
        };
        settings::ENABLE_QUAD_JOIN.get()
            && settings::ENABLE_QUAD_SCAN.get()
            && allowed
            && (*parse).rowMarks.is_null()
            && (*root).placeholder_list.is_null()
            && !(*root).hasPseudoConstantQuals
            && list_iter::<pg_sys::SpecialJoinInfo>((*root).join_info_list)
                .all(|join| (*join).jointype != pg_sys::JoinType::JOIN_FULL)
    }
}

/// Whether the level is a DELETE, UPDATE or MERGE of a quad table. Whoever waits for a change of such a row finds it
/// deleted or as it was, never changed (`am/modify.rs`). No row is looked at again (EvalPlanQual), so the row marks of
/// the other relations are not used.
unsafe fn changes_quads(root: *mut pg_sys::PlannerInfo) -> bool {
    // SAFETY: a live planner state; the result relation of such a command is in its range table.
    unsafe {
        let parse = (*root).parse;
        let changes = matches!(
            (*parse).commandType,
            pg_sys::CmdType::CMD_DELETE | pg_sys::CmdType::CMD_UPDATE | pg_sys::CmdType::CMD_MERGE
        );
        if !changes {
            return false;
        }
        let rte = *(*root)
            .simple_rte_array
            .add((*parse).resultRelation as usize);
        !(*rte).inh && access_method::is_quad_relid((*rte).relid)
    }
}

unsafe fn rel_allows(
    root: *mut pg_sys::PlannerInfo,
    rel: *mut pg_sys::RelOptInfo,
    rte: *mut pg_sys::RangeTblEntry,
) -> bool {
    // SAFETY: live planner nodes.
    unsafe {
        (*rel).reloptkind == pg_sys::RelOptKind::RELOPT_BASEREL
            && (*rte).rtekind == pg_sys::RTEKind::RTE_RELATION
            && !(*rte).inh
            && (*rte).tablesample.is_null()
            && (*rel).lateral_relids.is_null()
            && access_method::is_quad_relid((*rte).relid)
            && uses_only_columns(root, rel)
    }
}

/// Whether the level uses nothing of a relation but its four columns, and the identity of its rows if it changes them
/// (no whole rows, no other system columns).
unsafe fn uses_only_columns(root: *mut pg_sys::PlannerInfo, rel: *mut pg_sys::RelOptInfo) -> bool {
    // SAFETY: live planner nodes; attribute numbers are offset by FirstLowInvalidHeapAttributeNumber.
    unsafe {
        let mut attributes = std::ptr::null_mut();
        pg_sys::pull_varattnos(
            (*(*rel).reltarget).exprs.cast(),
            (*rel).relid,
            &mut attributes,
        );
        if changes_quads(root) {
            let identity =
                pg_sys::SelfItemPointerAttributeNumber - pg_sys::FirstLowInvalidHeapAttributeNumber;
            attributes = pg_sys::bms_del_member(attributes, identity);
        }
        for list in [(*rel).baserestrictinfo, (*rel).joininfo] {
            for clause in list_iter::<pg_sys::RestrictInfo>(list) {
                let expr = (*clause).clause.cast::<pg_sys::Node>();
                // A volatile condition on no column is to be tested for each joined row, not as soon as it can be.
                if compat::is_empty((*clause).clause_relids) {
                    return false;
                }
                if (*expr).type_ == pg_sys::NodeTag::T_CurrentOfExpr || (*clause).pseudoconstant {
                    return false;
                }
                pg_sys::pull_varattnos(expr, (*rel).relid, &mut attributes);
            }
        }
        compat::members(attributes)
            .iter()
            .all(|member| (1..=4).contains(&(member + pg_sys::FirstLowInvalidHeapAttributeNumber)))
    }
}
