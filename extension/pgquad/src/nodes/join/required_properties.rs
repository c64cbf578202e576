//! Required row properties: what a query level asks of the rows of its join (a set or a bag, all rows or the first
//! few).

use pgrx::pg_sys;

/// What matters about the rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequiredProperties {
    /// Which rows there are, not how often.
    pub distinct: bool,
    /// All of them: something above reads the last one before it hands out its first.
    pub whole: bool,
    /// Perhaps only the first few: there is a LIMIT, or a cursor.
    pub limited: bool,
}

/// What the level of `root` asks.
///
/// # Safety
/// `root` is the planner's own, at the time when plans are made of its paths.
pub unsafe fn required_properties(root: *mut pg_sys::PlannerInfo) -> RequiredProperties {
    // SAFETY: the caller's promise.
    unsafe {
        let query = (*root).parse;
        let grouped = !(*query).groupClause.is_null();
        let distinct = !(*query).distinctClause.is_null();
        RequiredProperties {
            distinct: (distinct || grouped) && only_sets(query),
            whole: distinct || grouped || (*query).hasAggs || !(*root).query_pathkeys.is_null(),
            limited: (*root).tuple_fraction != 0.0,
        }
    }
}

/// Whether DISTINCT or GROUP BY of the query make the same of a row and of many that are equal to it. Joins do: what is
/// repeated on one side is repeated in the result.
unsafe fn only_sets(query: *mut pg_sys::Query) -> bool {
    // SAFETY: the query of a planner's root; what it holds are expressions.
    unsafe {
        let tlist = (*query).targetList.cast::<pg_sys::Node>();
        let jointree = (*query).jointree.cast::<pg_sys::Node>();
        (*query).commandType == pg_sys::CmdType::CMD_SELECT
            && !(*query).hasAggs
            && !(*query).hasWindowFuncs
            && !(*query).hasTargetSRFs
            && !(*query).hasDistinctOn
            && (*query).groupingSets.is_null()
            && (*query).rowMarks.is_null()
            // What a subquery does cannot be seen from here.
            && !pg_sys::contain_subplans(tlist)
            && !pg_sys::contain_subplans(jointree)
            && !pg_sys::contain_volatile_functions(query.cast())
    }
}
