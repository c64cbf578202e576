//! Which recursive queries are transitive closures that `Quad Walk` can run. Their recursive term follows a chain of
//! quads, from a column of the table of results so far to the same column of the next results.

use crate::catalog::access_method;
use crate::nodes::scan::conditions::{self, Condition, Test};
use crate::nodes::triples;
use crate::pg::compat;
use crate::pg::list::list_iter;
use crate::table;
use pgquad_exec::{match_order, Bound};
use pgrx::pg_sys;

/// Most quads of a step.
const MAX_HOPS: usize = 8;

/// One quad of a step.
pub struct Hop {
    /// Its relation.
    pub rti: pg_sys::Index,
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
    /// The step.
    pub hops: Vec<Hop>,
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
            // Whether a quad that leads on is the first of its triple is all the same.
            let tests = tests_of_repeats(root)?;
            let is_test = |rti: pg_sys::Index| tests.contains(&rti);
            let (mut results, mut quads) = (None, Vec::new());
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
                match (*rte).rtekind {
                    pg_sys::RTEKind::RTE_CTE
                        if (*rte).self_reference
                            && results.is_none()
                            && (*rel).baserestrictinfo.is_null() =>
                    {
                        results = Some(rti);
                    }
                    pg_sys::RTEKind::RTE_RELATION
                        if !(*rte).inh
                            && (*rte).tablesample.is_null()
                            && access_method::is_quad_relid((*rte).relid) =>
                    {
                        quads.push(rti);
                    }
                    _ => return None,
                }
            }
            let results = results?;
            if quads.is_empty() || quads.len() > MAX_HOPS {
                return None;
            }
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
            let hops = chain(root, start, outputs[at], &quads)?;
            Some(Self { arity, at, hops })
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

/// The quads as a chain from `start` to `end`, each joined with the one before by one equality, and by nothing else.
unsafe fn chain(
    root: *mut pg_sys::PlannerInfo,
    start: Place,
    end: Place,
    quads: &[pg_sys::Index],
) -> Option<Vec<Hop>> {
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
                } else {
                    places.push(place((*member).em_expr.cast())?);
                }
            }
            match places.as_slice() {
                // Columns compared with a value have conditions of their own.
                _ if constant && places.iter().all(|p| p.rti != start.rti) => (),
                [_] if !constant => (),
                [a, b] if !constant && a.rti != b.rti => links.push((*a, *b)),
                _ => return None,
            }
        }
        if links.len() != quads.len() {
            return None;
        }
        let mut hops = Vec::new();
        let mut at = start;
        loop {
            let next = links.iter().position(|(a, b)| *a == at || *b == at)?;
            let (a, b) = links.swap_remove(next);
            let arrived = if a == at { b } else { a };
            // Where the next link leaves this quad, or the walk ends.
            let leaves = |p: &Place| p.rti == arrived.rti;
            let onward = links.iter().flat_map(|(a, b)| [*a, *b]).find(leaves);
            let to = match onward {
                Some(place) => place,
                None if links.is_empty() && end.rti == arrived.rti => end,
                None => return None,
            };
            hops.push(hop(root, arrived, to.column)?);
            if onward.is_none() {
                return Some(hops);
            }
            at = to;
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
            from: from.column,
            to,
            order,
            bounds: bounds.into_iter().map(|i| usable[i]).collect(),
            tests,
        })
    }
}
