//! Which queries over one quad table `Quad Groups` can answer, and how.

use crate::nodes::counts::{COUNT_ROWS, COUNT_VALUES};
use crate::nodes::scan::conditions::{self, Condition, Test};
use crate::pg::compat;
use crate::pg::list::list_iter;
use crate::table;
use pgquad_btree::Order;
use pgquad_exec::{match_order, Bound};
use pgrx::pg_sys;

pub use pgquad_exec::GroupOutput as Output;

/// What a query level wants of its only relation.
pub struct Wanted {
    /// The columns whose distinct values are wanted (0 = s .. 3 = g).
    pub columns: Vec<usize>,
    /// The column whose distinct values are counted within each group.
    pub distinct: Option<usize>,
    /// Whether rows are counted.
    pub counting: bool,
    /// Whether no rows make no group; otherwise there is one group in any case.
    pub grouped: bool,
}

/// What a node of a target list is, if the node has it. `relid` is the relation.
///
/// # Safety
/// `node` is a live column or aggregate.
pub unsafe fn output_of(relid: pg_sys::Index, node: *mut pg_sys::Node) -> Option<Output> {
    // SAFETY: the caller's promise; casts follow a check of the tag.
    unsafe {
        if (*node).type_ != pg_sys::NodeTag::T_Aggref {
            return conditions::own_column(relid, node).map(Output::Column);
        }
        let aggregate = node.cast::<pg_sys::Aggref>();
        let plain = (*aggregate).aggfilter.is_null()
            && (*aggregate).agglevelsup == 0
            && (*aggregate).aggorder.is_null();
        match (*aggregate).aggfnoid {
            _ if !plain => None,
            COUNT_ROWS if (*aggregate).aggstar => Some(Output::Rows),
            COUNT_VALUES => {
                // No column of a quad table is ever NULL.
                let every_row = counts_every_row(aggregate);
                match (*aggregate).aggdistinct.is_null() {
                    true if every_row => Some(Output::Rows),
                    true => counted_column(relid, aggregate).map(|_| Output::Rows),
                    false => counted_column(relid, aggregate).map(|_| Output::Distinct),
                }
            }
            _ => None,
        }
    }
}

/// Whether a `count(value)` counts a constant.
unsafe fn counts_every_row(aggregate: *mut pg_sys::Aggref) -> bool {
    // SAFETY: a live aggregate with one argument, cast after its tag was checked.
    unsafe {
        list_iter::<pg_sys::TargetEntry>((*aggregate).args)
            .next()
            .is_some_and(|argument| {
                let expr = (*argument).expr.cast::<pg_sys::Node>();
                (*expr).type_ == pg_sys::NodeTag::T_Const
                    && !(*expr.cast::<pg_sys::Const>()).constisnull
            })
    }
}

/// The column that a `count(column)` counts.
unsafe fn counted_column(relid: pg_sys::Index, aggregate: *mut pg_sys::Aggref) -> Option<usize> {
    // SAFETY: a live aggregate with one argument.
    unsafe {
        let argument = list_iter::<pg_sys::TargetEntry>((*aggregate).args).next()?;
        conditions::own_column(relid, (*argument).expr.cast())
    }
}

impl Wanted {
    /// Adds what `nodes` (columns and aggregates of a target list or HAVING) ask for; `None` if one of them asks for
    /// something else.
    ///
    /// # Safety
    /// Live planner nodes.
    pub unsafe fn ask(
        &mut self,
        relid: pg_sys::Index,
        nodes: impl Iterator<Item = *mut pg_sys::Node>,
    ) -> Option<()> {
        // SAFETY: the caller's promise.
        unsafe {
            for node in nodes {
                match output_of(relid, node)? {
                    Output::Column(column) if self.columns.contains(&column) => (),
                    Output::Column(_) => return None,
                    Output::Rows => self.counting = true,
                    Output::Distinct => {
                        let column = counted_column(relid, node.cast())?;
                        if *self.distinct.get_or_insert(column) != column {
                            return None;
                        }
                    }
                }
            }
            Some(())
        }
    }
}

/// How a query is answered.
pub struct Shape {
    /// The relation.
    pub relid: pg_sys::Index,
    /// How many orders the table has.
    pub orders: usize,
    /// The number of the one that is read.
    pub order: usize,
    /// Its columns.
    pub columns: [u8; 4],
    /// The first columns of the order, which make the groups.
    pub depth: usize,
    /// Those columns and the one whose values are counted.
    pub inner_depth: usize,
    /// Conditions that make the key ranges.
    pub bounds: Vec<Condition>,
    /// Conditions tested on the way.
    pub tests: Vec<Test>,
    /// Conditions tested on groups.
    pub rest: Vec<*mut pg_sys::RestrictInfo>,
    /// Conditions of HAVING.
    pub having: *mut pg_sys::List,
    /// Columns bound to one value.
    pub exact: usize,
    /// The one column whose values make the groups, where no order has it in the right place: all leaves are read for
    /// it.
    pub scattered: Option<usize>,
    /// What is wanted.
    pub wanted: Wanted,
}

impl Shape {
    /// How to answer what is wanted of `rel`, if it can be.
    ///
    /// # Safety
    /// `rel` is a live base relation, a quad table that the statement has locked.
    pub unsafe fn find(
        root: *mut pg_sys::PlannerInfo,
        rel: *mut pg_sys::RelOptInfo,
        wanted: Wanted,
        having: *mut pg_sys::List,
    ) -> Option<Self> {
        // SAFETY: the caller's promise.
        unsafe {
            let relid = (*rel).relid;
            let table = (**(*root).simple_rte_array.add(relid as usize)).relid;
            let orders = table::orders_of(table)?;
            let (mut usable, mut unequal, mut rest) = (Vec::new(), Vec::new(), Vec::new());
            for clause in list_iter::<pg_sys::RestrictInfo>((*rel).baserestrictinfo) {
                if let Some(condition) = conditions::match_clause(root, relid, clause) {
                    usable.push(condition);
                } else if let Some(condition) = conditions::match_unequal(root, relid, clause) {
                    unequal.push(Test {
                        condition,
                        unequal: true,
                    });
                } else if tests_groups(relid, clause, &wanted) {
                    rest.push(clause);
                } else {
                    return None;
                }
            }
            let bounds: Vec<(usize, Bound)> = usable.iter().map(|c| (c.column, c.bound)).collect();
            let mut best: Option<(_, Self)> = None;
            for (number, order) in orders.iter().enumerate() {
                let prefix = match_order(*order, &bounds);
                let depths = wanted.depths(*order, prefix.exact);
                let scattered = match (&wanted.columns[..], wanted.distinct) {
                    (&[column], None) if depths.is_none() => Some(column),
                    _ if depths.is_none() => continue,
                    _ => None,
                };
                let (depth, inner_depth) = depths.unwrap_or_default();
                let left = |i: &usize| !prefix.used.contains(i);
                let tested: Vec<usize> = (0..usable.len()).filter(left).collect();
                if tested.iter().any(|&i| usable[i].bound == Bound::Any) {
                    continue;
                }
                let rank = (
                    scattered.is_none(),
                    prefix.exact,
                    prefix.bound,
                    prefix.range,
                );
                if best.as_ref().is_some_and(|(other, _)| *other >= rank) {
                    continue;
                }
                let tests = tested.iter().map(|&i| Test {
                    condition: usable[i],
                    unequal: false,
                });
                let shape = Self {
                    relid,
                    orders: orders.len(),
                    order: number,
                    columns: order.columns(),
                    depth,
                    inner_depth,
                    bounds: prefix.used.iter().map(|&i| usable[i]).collect(),
                    tests: tests.chain(unequal.iter().copied()).collect(),
                    rest: rest.clone(),
                    having,
                    exact: prefix.exact,
                    scattered,
                    wanted: Wanted {
                        columns: wanted.columns.clone(),
                        ..wanted
                    },
                };
                best = Some((rank, shape));
            }
            best.map(|(_, shape)| shape)
        }
    }
}

impl Wanted {
    /// How many columns of an order make the groups, and how many with the one whose values are counted, when `exact`
    /// of them are bound to one value. `None` when the order cannot serve.
    fn depths(&self, order: Order, exact: usize) -> Option<(usize, usize)> {
        let mut depth = exact;
        for &column in &self.columns {
            depth = depth.max(order.position(column) + 1);
        }
        let columns = order.columns();
        let is_asked = |&column: &u8| self.columns.contains(&usize::from(column));
        let free = columns[exact..depth].iter().all(is_asked);
        let inner = match self.distinct {
            None => depth,
            Some(column) if order.position(column) == depth => depth + 1,
            Some(_) => return None,
        };
        free.then_some((depth, inner))
    }
}

/// Whether a condition can be tested on a group as well as on each of its quads. It can if it reads columns that make
/// the group and nothing else, and no policy has to be tested before it. One without columns is not: it would also be
/// tested on the one group that there is without any quads.
unsafe fn tests_groups(
    relid: pg_sys::Index,
    clause: *mut pg_sys::RestrictInfo,
    wanted: &Wanted,
) -> bool {
    // SAFETY: live planner nodes; attribute numbers are offset by FirstLowInvalidHeapAttributeNumber.
    unsafe {
        let expr = (*clause).clause.cast::<pg_sys::Node>();
        if (*clause).pseudoconstant
            || (*clause).security_level > 0
            || pg_sys::contain_volatile_functions(expr)
        {
            return false;
        }
        let mut attributes = std::ptr::null_mut();
        pg_sys::pull_varattnos(expr, relid, &mut attributes);
        if attributes.is_null() {
            return false;
        }
        compat::members(attributes).iter().all(|member| {
            let column = member + pg_sys::FirstLowInvalidHeapAttributeNumber - 1;
            wanted.columns.iter().any(|&c| c as i32 == column)
        })
    }
}
