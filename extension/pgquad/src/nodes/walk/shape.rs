//! Which recursive queries are transitive closures that `Quad Walk` can run. Their recursive term follows a chain of
//! quads, from a column of the table of results so far to the same column of the next results. With a UNION ALL it
//! follows several chains.

use crate::catalog::access_method;
use crate::nodes::scan::conditions::{self, Condition, Test};
use crate::nodes::scan::subquery_result;
use crate::nodes::triples;
use crate::pg::compat;
use crate::pg::ffi;
use crate::pg::list::{list_iter, list_node};
use crate::table;
use pgquad_exec::{match_order, Bound};
use pgrx::{pg_guard, pg_sys};
use std::ffi::c_void;

/// Most quads of a chain.
const MAX_HOPS: usize = 8;

/// One quad of a step.
pub struct Hop {
    /// Its relation, in the query level of the chain.
    pub rti: pg_sys::Index,
    /// Its table.
    pub table: pg_sys::Oid,
    /// The column where the walk comes from (0 = s .. 3 = g).
    pub from: usize,
    /// The column where it goes.
    pub to: usize,
    /// The order that is read.
    pub order: usize,
    /// Conditions that make the key ranges, together with the column that the walk comes from.
    pub bounds: Vec<Condition>,
    /// Conditions tested on the way.
    pub tests: Vec<Test>,
}

/// The recursive term of a query.
pub struct Shape {
    /// Columns of a result, 1 or 2.
    pub arity: usize,
    /// The column that the walk changes; the other one stays as it is.
    pub at: usize,
    /// The chains of quads by which one step leads on.
    pub branches: Vec<Vec<Hop>>,
    /// The members of the UNION ALL that the chains come from; empty where the only chain is of the level's own quads.
    pub members: Vec<*mut pg_sys::RelOptInfo>,
}

/// What a query level reads.
#[derive(Default)]
struct Relations {
    /// The table of results so far.
    results: Option<pg_sys::Index>,
    quads: Vec<pg_sys::Index>,
    /// A UNION ALL of queries.
    union: Option<pg_sys::Index>,
}

/// A column of one of the relations.
#[derive(Clone, Copy, PartialEq)]
struct Place {
    rti: pg_sys::Index,
    column: usize,
}

impl Shape {
    /// The shape of the recursive term that `root` plans, if it has one.
    ///
    /// # Safety
    /// `root` is the live planner state of a level that has been planned.
    pub unsafe fn find(root: *mut pg_sys::PlannerInfo) -> Option<Self> {
        // SAFETY: the caller's promise.
        unsafe {
            if !is_plain(root) {
                return None;
            }
            let Relations {
                results: Some(results),
                quads,
                union,
            } = Relations::of(root)?
            else {
                return None;
            };
            let outputs: Vec<Place> = list_iter::<pg_sys::TargetEntry>((*root).processed_tlist)
                .map(|entry| place((*entry).expr.cast()).filter(|_| !(*entry).resjunk))
                .collect::<Option<_>>()?;
            let arity = outputs.len();
            let at = outputs.iter().position(|p| p.rti != results)?;
            let passed = |(column, p): (usize, &Place)| {
                column == at || (p.rti == results && p.column == column)
            };
            if !(1..=2).contains(&arity) || !outputs.iter().enumerate().all(passed) {
                return None;
            }
            let start = Place {
                rti: results,
                column: at,
            };
            let (branches, members) = match union {
                None => (vec![chain(root, start, outputs[at], &quads)?], Vec::new()),
                Some(union) if quads.is_empty() => alternatives(root, start, outputs[at], union)?
                    .into_iter()
                    .unzip(),
                Some(_) => return None,
            };
            Some(Self {
                arity,
                at,
                branches,
                members,
            })
        }
    }
}

impl Relations {
    /// The relations of a level; `None` where it reads something else.
    unsafe fn of(root: *mut pg_sys::PlannerInfo) -> Option<Self> {
        // SAFETY: a live planner state.
        unsafe {
            // Whether a quad that leads on is the first of its triple is all the same.
            let tests = tests_of_repeats(root)?;
            let is_test = |rti: pg_sys::Index| tests.contains(&rti);
            let mut found = Self::default();
            for rti in 1..(*root).simple_rel_array_size as pg_sys::Index {
                let rel = *(*root).simple_rel_array.add(rti as usize);
                if rel.is_null() || (*rel).reloptkind != pg_sys::RelOptKind::RELOPT_BASEREL {
                    continue;
                }
                if is_test(rti) {
                    continue;
                }
                let of_tests = list_iter::<pg_sys::RestrictInfo>((*rel).joininfo).all(|clause| {
                    let mut relations = compat::members((*clause).clause_relids).into_iter();
                    relations.any(|member| is_test(member as pg_sys::Index))
                });
                if !of_tests || !compat::is_empty((*rel).lateral_relids) {
                    return None;
                }
                let rte = *(*root).simple_rte_array.add(rti as usize);
                let is_tested = !(*rel).baserestrictinfo.is_null();
                match (*rte).rtekind {
                    pg_sys::RTEKind::RTE_CTE
                        if (*rte).self_reference && found.results.is_none() && !is_tested =>
                    {
                        found.results = Some(rti);
                    }
                    pg_sys::RTEKind::RTE_RELATION
                        if !(*rte).inh
                            && (*rte).tablesample.is_null()
                            && access_method::is_quad_relid((*rte).relid) =>
                    {
                        found.quads.push(rti);
                    }
                    pg_sys::RTEKind::RTE_SUBQUERY
                        if (*rte).inh && found.union.is_none() && !is_tested =>
                    {
                        found.union = Some(rti);
                    }
                    _ => return None,
                }
            }
            let has_some = !found.quads.is_empty() || found.union.is_some();
            (has_some && found.quads.len() <= MAX_HOPS).then_some(found)
        }
    }
}

/// The relations that are only looked into for repeats of triples; `None` where there are other outer joins.
unsafe fn tests_of_repeats(root: *mut pg_sys::PlannerInfo) -> Option<Vec<pg_sys::Index>> {
    // SAFETY: a live planner state.
    unsafe {
        list_iter::<pg_sys::SpecialJoinInfo>((*root).join_info_list)
            .map(|join| triples::test_of_repeats(root, join).map(|(test, _)| test))
            .collect()
    }
}

/// Whether a level does nothing but select from joins.
unsafe fn is_plain(root: *mut pg_sys::PlannerInfo) -> bool {
    // SAFETY: a live planner state.
    unsafe {
        let parse = (*root).parse;
        (*parse).commandType == pg_sys::CmdType::CMD_SELECT
            && (*parse).setOperations.is_null()
            && !(*parse).hasAggs
            && !(*parse).hasWindowFuncs
            && !(*parse).hasTargetSRFs
            && (*parse).groupClause.is_null()
            && (*parse).groupingSets.is_null()
            && (*parse).havingQual.is_null()
            && (*parse).distinctClause.is_null()
            && (*parse).sortClause.is_null()
            && (*parse).limitCount.is_null()
            && (*parse).limitOffset.is_null()
            && (*parse).rowMarks.is_null()
            && (*root).placeholder_list.is_null()
            && !(*root).hasPseudoConstantQuals
    }
}

/// The relation and column of a plain column of this level.
unsafe fn place(node: *mut pg_sys::Node) -> Option<Place> {
    // SAFETY: a live node, cast after its tag was checked.
    unsafe {
        if (*node).type_ != pg_sys::NodeTag::T_Var {
            return None;
        }
        let var = node.cast::<pg_sys::Var>();
        ((*var).varlevelsup == 0 && (*var).varattno > 0).then(|| Place {
            rti: (*var).varno as pg_sys::Index,
            column: (*var).varattno as usize - 1,
        })
    }
}

/// The pairs of columns of different relations that a level compares with each other; `None` where more than two are
/// equal, or a column of `results` is compared with a value.
unsafe fn links(
    root: *mut pg_sys::PlannerInfo,
    results: Option<pg_sys::Index>,
) -> Option<Vec<(Place, Place)>> {
    // SAFETY: a live planner state.
    unsafe {
        let mut links: Vec<(Place, Place)> = Vec::new();
        for class in list_iter::<pg_sys::EquivalenceClass>((*root).eq_classes) {
            if !(*class).ec_merged.is_null() {
                continue;
            }
            let (mut places, mut constant) = (Vec::new(), false);
            for member in list_iter::<pg_sys::EquivalenceMember>((*class).ec_members) {
                if (*member).em_is_const {
                    constant = true;
                } else if !(*member).em_is_child {
                    places.push(place((*member).em_expr.cast())?);
                }
            }
            match places.as_slice() {
                // Columns compared with a value have conditions of their own.
                _ if constant && places.iter().all(|p| Some(p.rti) != results) => (),
                [_] if !constant => (),
                [a, b] if !constant && a.rti != b.rti => links.push((*a, *b)),
                _ => return None,
            }
        }
        Some(links)
    }
}

/// Takes the link that a column has out of these, and gives the other column.
fn follow(links: &mut Vec<(Place, Place)>, is_near: impl Fn(&Place) -> bool) -> Option<[Place; 2]> {
    let at = links.iter().position(|(a, b)| is_near(a) || is_near(b))?;
    let (a, b) = links.swap_remove(at);
    Some(if is_near(&a) { [a, b] } else { [b, a] })
}

/// The quads as a chain from `start` to `end`, each joined with the one before by one equality, and by nothing else.
unsafe fn chain(
    root: *mut pg_sys::PlannerInfo,
    start: Place,
    end: Place,
    quads: &[pg_sys::Index],
) -> Option<Vec<Hop>> {
    // SAFETY: a live planner state.
    unsafe {
        let mut links = links(root, Some(start.rti))?;
        if links.len() != quads.len() {
            return None;
        }
        let [_, first] = follow(&mut links, |place| *place == start)?;
        hops(root, first, end, links)
    }
}

/// The chain that comes to its first quad at the column `first`.
unsafe fn hops(
    root: *mut pg_sys::PlannerInfo,
    first: Place,
    end: Place,
    mut links: Vec<(Place, Place)>,
) -> Option<Vec<Hop>> {
    // SAFETY: a live planner state.
    unsafe {
        let mut hops = Vec::new();
        let mut arrived = first;
        while let Some([left, next]) = follow(&mut links, |place| place.rti == arrived.rti) {
            hops.push(hop(root, arrived, left.column)?);
            // A chain that comes back to a quad, by another of its columns, does not lead on from any quad that it
            // finds there, and some other quad is in no chain.
            if hops.iter().any(|hop| hop.rti == next.rti) {
                return None;
            }
            arrived = next;
        }
        if !links.is_empty() || end.rti != arrived.rti {
            return None;
        }
        hops.push(hop(root, arrived, end.column)?);
        Some(hops)
    }
}

/// A chain from `start` to `end` for each member of a UNION ALL that the results are joined with by one equality, and
/// by nothing else.
unsafe fn alternatives(
    root: *mut pg_sys::PlannerInfo,
    start: Place,
    end: Place,
    union: pg_sys::Index,
) -> Option<Vec<(Vec<Hop>, *mut pg_sys::RelOptInfo)>> {
    // SAFETY: a live planner state, whose members have been planned.
    unsafe {
        let mut links = links(root, Some(start.rti))?;
        let [_, first] = follow(&mut links, |place| *place == start)?;
        if !links.is_empty() || first.rti != union || end.rti != union {
            return None;
        }
        list_iter::<pg_sys::AppendRelInfo>((*root).append_rel_list)
            .filter(|&info| (*info).parent_relid == union)
            .map(|info| {
                let member = *(*root).simple_rel_array.add((*info).child_relid as usize);
                let is_read = !member.is_null()
                    && !(*member).subroot.is_null()
                    && (*member).baserestrictinfo.is_null()
                    && !pg_sys::is_dummy_rel(member);
                let level = is_read.then(|| (*member).subroot)?;
                let output =
                    |column: usize| output(level, list_node((*info).translated_vars, column));
                let hops = own_chain(level, output(first.column)?, output(end.column)?)?;
                Some((hops, member))
            })
            .collect()
    }
}

/// The column of a level's own relations that a column of its rows is.
unsafe fn output(level: *mut pg_sys::PlannerInfo, column: *mut pg_sys::Node) -> Option<Place> {
    // SAFETY: a live planner state.
    unsafe {
        if column.is_null() {
            return None;
        }
        let number = place(column)?.column + 1;
        let entry = list_iter::<pg_sys::TargetEntry>((*level).processed_tlist)
            .find(|&entry| (*entry).resno as usize == number && !(*entry).resjunk)?;
        place((*entry).expr.cast())
    }
}

/// The quads of a level that reads nothing else, as a chain between two columns of its rows. The values of its
/// conditions do not belong to the level, whose plan is never run.
unsafe fn own_chain(level: *mut pg_sys::PlannerInfo, start: Place, end: Place) -> Option<Vec<Hop>> {
    // SAFETY: a live planner state.
    unsafe {
        if !is_plain(level) {
            return None;
        }
        let Relations {
            results: None,
            quads,
            union: None,
        } = Relations::of(level)?
        else {
            return None;
        };
        let links = links(level, None)?;
        if links.len() + 1 != quads.len() {
            return None;
        }
        let mut hops = hops(level, start, end, links)?;
        for hop in &mut hops {
            let of_tests = hop.tests.iter_mut().map(|test| &mut test.condition);
            for condition in hop.bounds.iter_mut().chain(of_tests) {
                condition.value = given_value(level, condition.value.cast())?.cast();
            }
        }
        Some(hops)
    }
}

/// A value of a level, without what belongs to the level: results of its subqueries are computed in their places where
/// these read nothing, as that of `(SELECT COALESCE(quad.find($1), -1))`.
unsafe fn given_value(
    level: *mut pg_sys::PlannerInfo,
    value: *mut pg_sys::Node,
) -> Option<*mut pg_sys::Node> {
    // SAFETY: a live expression of the level.
    unsafe {
        let value = in_place(value, level.cast());
        // A subquery is evaluated once, its expression in the step each time that the walk begins.
        let is_fixed =
            !needs_level(value, std::ptr::null_mut()) && !pg_sys::contain_volatile_functions(value);
        is_fixed.then_some(value)
    }
}

/// Puts the expression of a subquery of the level `root` in the place of the parameter with its result.
#[pg_guard]
unsafe extern "C-unwind" fn in_place(
    node: *mut pg_sys::Node,
    root: *mut c_void,
) -> *mut pg_sys::Node {
    // SAFETY: nodes are cast after a look at their tag; `root` is the planner state of a level.
    unsafe {
        if node.is_null() {
            return node;
        }
        let param = node.cast::<pg_sys::Param>();
        let is_result = (*node).type_ == pg_sys::NodeTag::T_Param
            && (*param).paramkind == pg_sys::ParamKind::PARAM_EXEC;
        let result = is_result.then(|| subquery_result(root.cast(), (*param).paramid));
        match result.flatten() {
            Some(expr) if pg_sys::exprType(expr.cast()) == (*param).paramtype => {
                pg_sys::copyObjectImpl(expr.cast()).cast()
            }
            _ => ffi::expression_tree_mutator(node, in_place, root),
        }
    }
}

/// Whether an expression is of columns or aggregates, of values of the executor, or of subqueries.
#[pg_guard]
unsafe extern "C-unwind" fn needs_level(node: *mut pg_sys::Node, context: *mut c_void) -> bool {
    // SAFETY: nodes are cast after a look at their tag.
    unsafe {
        if node.is_null() {
            return false;
        }
        match (*node).type_ {
            pg_sys::NodeTag::T_Param
                if (*node.cast::<pg_sys::Param>()).paramkind != pg_sys::ParamKind::PARAM_EXTERN =>
            {
                true
            }
            pg_sys::NodeTag::T_Var
            | pg_sys::NodeTag::T_PlaceHolderVar
            | pg_sys::NodeTag::T_Aggref
            | pg_sys::NodeTag::T_SubPlan
            | pg_sys::NodeTag::T_AlternativeSubPlan => true,
            _ => ffi::expression_tree_walker(node, needs_level, context),
        }
    }
}

/// A quad reached at a column, with all of its conditions.
unsafe fn hop(root: *mut pg_sys::PlannerInfo, from: Place, to: usize) -> Option<Hop> {
    // SAFETY: a live planner state; the relation is a quad table that the statement has locked.
    unsafe {
        let rel = *(*root).simple_rel_array.add(from.rti as usize);
        let table = (**(*root).simple_rte_array.add(from.rti as usize)).relid;
        let (mut usable, mut tests) = (Vec::new(), Vec::new());
        for clause in list_iter::<pg_sys::RestrictInfo>((*rel).baserestrictinfo) {
            if let Some(condition) = conditions::match_clause(root, from.rti, clause) {
                usable.push(condition);
            } else {
                tests.push(Test {
                    condition: conditions::match_unequal(root, from.rti, clause)?,
                    unequal: true,
                });
            }
        }
        let mut compared: Vec<(usize, Bound)> =
            usable.iter().map(|c| (c.column, c.bound)).collect();
        let walked = compared.len();
        compared.push((from.column, Bound::Eq));
        let orders = table::orders_of(table)?;
        let prefixes = orders.iter().map(|order| match_order(*order, &compared));
        let (order, prefix) = prefixes
            .enumerate()
            .filter(|(_, prefix)| prefix.used.contains(&walked))
            .max_by_key(|(order, p)| (p.exact, p.bound, p.range, std::cmp::Reverse(*order)))?;
        let (bounds, tested): (Vec<usize>, Vec<usize>) =
            (0..usable.len()).partition(|i| prefix.used.contains(i));
        tests.extend(tested.into_iter().map(|i| Test {
            condition: usable[i],
            unequal: false,
        }));
        Some(Hop {
            rti: from.rti,
            table,
            from: from.column,
            to,
            order,
            bounds: bounds.into_iter().map(|i| usable[i]).collect(),
            tests,
        })
    }
}
