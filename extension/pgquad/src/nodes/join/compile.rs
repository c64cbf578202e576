//! From a described join to a plan of the pipeline. Columns that must be equal share a variable, and comparisons with
//! values that are fixed for a run become parameters. Everything else becomes an expression over rows.

use super::columns::{columns_of, equal_columns, Cell};
use super::join_tree::JoinTree;
use super::outer_input_paths::OuterInputPath;
use super::required_properties::required_properties;
use super::value_equality;
use crate::nodes::scan::conditions;
use crate::pg::compat;
use pgquad_exec::{
    Bound, Child, ColumnNumber, Comparison, Expr, Filter, Group, Link, Param, ParamRange, Pattern,
    Plan, SameValue, Slot, TableNumber, Test, MAX_PATTERNS, MAX_SLOTS,
};
use pgrx::pg_sys;
use std::collections::{HashMap, HashSet};

/// A compiled join.
pub struct Compiled {
    /// The plan; tables are numbered in ascending order of their range table indexes.
    pub plan: Plan,
    /// The columns that the variables of the answer stand for.
    pub output: Vec<Cell>,
    /// Values of the parameters, with their types.
    pub params: Vec<(*mut pg_sys::Expr, pg_sys::Oid)>,
    /// Expressions of the filters, with the columns that their variables stand for.
    pub tests: Vec<(*mut pg_sys::Expr, Vec<Cell>)>,
    /// For each pattern of the plan (a group's before those of the groups inside it), its relation.
    pub relations: Vec<pg_sys::Index>,
    /// The variables of the columns of the plan below, and the one that numbers its rows, which is last in the answer.
    pub outer_input: Option<(Vec<Slot>, Slot)>,
}

/// Where a condition goes.
enum Condition {
    Equal(Cell, Cell),
    Param(Cell, Bound, *mut pg_sys::Expr, pg_sys::Oid),
    Test(*mut pg_sys::RestrictInfo, Vec<Cell>),
    /// A test that two columns are equal in value.
    SameValue(*mut pg_sys::RestrictInfo, Cell, Cell),
}

struct Compiler {
    relids: pg_sys::Relids,
    tables: HashMap<pg_sys::Index, TableNumber>,
    wanted: HashSet<Cell>,
    slots: usize,
    params: Vec<(*mut pg_sys::Expr, pg_sys::Oid)>,
    tests: Vec<(*mut pg_sys::Expr, Vec<Cell>)>,
}

type Visible = HashMap<Cell, Slot>;

/// Compiles a join of the relations `relids` that has to deliver `output`, perhaps for rows of another plan. `None`
/// when it is too large for a plan.
///
/// # Safety
/// Planner nodes are live.
pub unsafe fn compile(
    root: *mut pg_sys::PlannerInfo,
    join_tree: &JoinTree,
    relids: pg_sys::Relids,
    output: Vec<Cell>,
    outer_input: Option<&OuterInputPath>,
) -> Option<Compiled> {
    // SAFETY: the caller's promise.
    unsafe {
        let members = compat::members(relids).into_iter();
        let tables = members
            .zip(0..)
            .map(|(member, table)| (member as u32, TableNumber::new(table)));
        let mut compiler = Compiler {
            relids: outer_input.map_or(relids, |outer_input| outer_input.with_columns(relids)),
            tables: tables.collect(),
            wanted: output.iter().copied().collect(),
            slots: 0,
            params: Vec::new(),
            tests: Vec::new(),
        };
        let mut join_tree = join_tree.clone();
        let mut visible = Visible::new();
        let outer_slots = outer_input.map(|outer_input| {
            join_tree.clauses.extend(&outer_input.keys);
            let columns = outer_input.columns.iter().map(|&column| {
                let slot = compiler.slot();
                visible.insert(column, slot);
                slot
            });
            let columns: Vec<Slot> = columns.collect();
            (columns, compiler.slot())
        });
        let prepared = compiler.prepare(root, &join_tree);
        let group = match outer_input.and_then(|outer_input| outer_input.kind) {
            None => {
                let (group, own) = compiler.group(prepared, &visible);
                visible.extend(own);
                group
            }
            Some(kind) => Group {
                children: vec![compiler.child(kind, prepared, &mut visible)],
                ..Group::default()
            },
        };
        let mut relations = Vec::new();
        order_of_steps(&join_tree, &mut relations);
        let row = outer_slots.as_ref().map(|outer_input| outer_input.1);
        let required = required_properties(root);
        let plan = Plan {
            slots: compiler.slots as u16,
            output: output.iter().map(|cell| visible[cell]).chain(row).collect(),
            root: group,
            distinct: required.distinct,
            whole: required.whole,
        };
        plan.is_within_limits().then_some(Compiled {
            plan,
            output,
            params: compiler.params,
            tests: compiler.tests,
            relations,
            outer_input: outer_slots,
        })
    }
}

fn order_of_steps(join_tree: &JoinTree, relations: &mut Vec<pg_sys::Index>) {
    relations.extend(&join_tree.relations);
    for child in &join_tree.children {
        order_of_steps(&child.group, relations);
    }
}

/// A group with its conditions sorted out.
struct Prepared {
    relations: Vec<pg_sys::Index>,
    triples: Vec<pg_sys::Index>,
    conditions: Vec<Condition>,
    children: Vec<(pgquad_exec::Kind, Prepared)>,
}

impl Compiler {
    unsafe fn prepare(&mut self, root: *mut pg_sys::PlannerInfo, join_tree: &JoinTree) -> Prepared {
        // SAFETY: live planner nodes.
        unsafe {
            // What a policy hides must be hidden before conditions of the user's own see it.
            let mut clauses = join_tree.clauses.clone();
            clauses.sort_by_key(|&c| (*c).security_level);
            let conditions: Vec<Condition> = clauses
                .iter()
                .map(|&c| self.condition(root, &join_tree.relations, c))
                .collect();
            for condition in &conditions {
                match condition {
                    Condition::Equal(a, b) => self.wanted.extend([*a, *b]),
                    Condition::Test(_, cells) => self.wanted.extend(cells),
                    Condition::SameValue(_, a, b) => self.wanted.extend([*a, *b]),
                    Condition::Param(..) => {}
                }
            }
            let children = join_tree
                .children
                .iter()
                .map(|c| (c.kind, self.prepare(root, &c.group)))
                .collect();
            Prepared {
                relations: join_tree.relations.clone(),
                triples: join_tree.triples.clone(),
                conditions,
                children,
            }
        }
    }

    unsafe fn condition(
        &self,
        root: *mut pg_sys::PlannerInfo,
        own: &[pg_sys::Index],
        clause: *mut pg_sys::RestrictInfo,
    ) -> Condition {
        // SAFETY: live planner nodes.
        unsafe {
            if let Some((a, b)) = equal_columns(clause, self.relids) {
                return Condition::Equal(a, b);
            }
            for &relation in own {
                let Some(c) = conditions::match_clause(root, relation, clause) else {
                    continue;
                };
                if !pg_sys::bms_overlap(pg_sys::pull_varnos(root, c.value.cast()), self.relids) {
                    return Condition::Param((relation, c.column), c.bound, c.value, c.value_type);
                }
            }
            if let Some((a, b)) = value_equality::compared((*clause).clause.cast(), self.relids) {
                return Condition::SameValue(clause, a, b);
            }
            let mut cells = columns_of((*clause).clause.cast());
            // Columns of relations outside the node are parameters of the expression.
            cells.retain(|cell| pg_sys::bms_is_member(cell.0 as i32, self.relids));
            Condition::Test(clause, cells)
        }
    }

    /// The parameters with the least and the greatest id whose value other ids may have too.
    unsafe fn shared_values(&mut self) -> ParamRange {
        // SAFETY: makes nodes of the planner's memory context.
        let (low, high) = unsafe { value_equality::shared_values() };
        ParamRange {
            least: self.param(low, pg_sys::INT8OID),
            greatest: self.param(high, pg_sys::INT8OID),
        }
    }

    fn param(&mut self, value: *mut pg_sys::Expr, kind: pg_sys::Oid) -> Param {
        self.params.push((value, kind));
        Param::from_index(self.params.len() - 1)
    }

    fn slot(&mut self) -> Slot {
        self.slots += 1;
        Slot::from_index((self.slots - 1).min(MAX_SLOTS - 1))
    }

    /// Compiles a group; returns it with the variables of its columns as seen from outside, once it has run.
    unsafe fn group(&mut self, prepared: Prepared, outer: &Visible) -> (Group, Visible) {
        // SAFETY: live planner nodes.
        unsafe {
            let first_own = self.slots;
            let own = |cell: &Cell| prepared.relations.contains(&cell.0);
            let mut classes = Classes::new(&prepared.relations);
            let mut fixed: HashMap<usize, Slot> = HashMap::new();
            let mut later: Vec<(Cell, Cell)> = Vec::new();
            for condition in &prepared.conditions {
                let Condition::Equal(a, b) = condition else {
                    continue;
                };
                if own(a) && own(b) {
                    classes.unite(*a, *b);
                } else {
                    later.push((*a, *b));
                }
            }
            later.retain(|&(a, b)| {
                let (mine, other) = if own(&a) { (a, b) } else { (b, a) };
                match outer.get(&other) {
                    Some(&slot) if own(&mine) => {
                        *fixed.entry(classes.find(mine)).or_insert(slot) != slot
                    }
                    _ => true,
                }
            });
            // A column has a variable when something depends on its value.
            let mut visible = outer.clone();
            let mut slots: HashMap<usize, Slot> = fixed.clone();
            let mut patterns = Vec::new();
            for &relation in &prepared.relations {
                let mut pattern = Pattern {
                    table: self.tables[&relation],
                    triples: prepared.triples.contains(&relation),
                    ..Pattern::default()
                };
                for column in 0..4 {
                    let cell = (relation, column);
                    let class = classes.find(cell);
                    if classes.size(class) > 1
                        || fixed.contains_key(&class)
                        || self.wanted.contains(&cell)
                    {
                        let slot = match slots.get(&class) {
                            Some(&slot) => slot,
                            None => self.slot(),
                        };
                        slots.insert(class, slot);
                        pattern.cells[column] = Some(slot);
                        visible.insert(cell, slot);
                    }
                }
                patterns.push(pattern);
            }
            let mut children = Vec::new();
            for (kind, child) in prepared.children {
                children.push(self.child(kind, child, &mut visible));
            }
            let mut filters = Vec::new();
            for (a, b) in later {
                let (x, y) = (visible[&a], visible[&b]);
                filters.push(Filter {
                    test: Test::Equal(x, y),
                    needs: vec![x, y],
                });
                for (mine, other) in [(a, y), (b, x)] {
                    if let Some(i) = prepared.relations.iter().position(|&r| r == mine.0) {
                        patterns[i].links.push(Link {
                            column: ColumnNumber::from_index(mine.1),
                            slot: other,
                        });
                    }
                }
            }
            let mut tests = Vec::new();
            for condition in prepared.conditions {
                match condition {
                    Condition::Equal(..) => {}
                    Condition::Param((relation, column), bound, value, kind) => {
                        let param = self.param(value, kind);
                        let at = prepared
                            .relations
                            .iter()
                            .position(|&r| r == relation)
                            .unwrap_or(0);
                        patterns[at].conditions.push(Comparison::new(
                            ColumnNumber::from_index(column),
                            bound,
                            param,
                        ));
                    }
                    Condition::Test(clause, cells) => tests.push(((*clause).clause, cells)),
                    Condition::SameValue(clause, a, b) => {
                        for (mine, other) in [(a, b), (b, a)] {
                            let at = prepared.relations.iter().position(|&r| r == mine.0);
                            if let (Some(i), Some(&slot)) = (at, visible.get(&other)) {
                                let between = self.shared_values();
                                let column = ColumnNumber::from_index(mine.1);
                                patterns[i].values.push(SameValue {
                                    column,
                                    slot,
                                    between,
                                });
                            }
                        }
                        tests.push(((*clause).clause, vec![a, b]));
                    }
                }
            }
            for (test, cells) in at_most(tests, MAX_PATTERNS.saturating_sub(filters.len())) {
                let needs = cells.iter().map(|cell| visible[cell]).collect();
                filters.push(Filter {
                    test: Test::Expr(Expr::from_index(self.tests.len())),
                    needs,
                });
                self.tests.push((test, cells));
            }
            // From outside, only what this group has added is new.
            visible.retain(|cell, _| !outer.contains_key(cell));
            debug_assert!(self.slots >= first_own);
            (
                Group {
                    patterns,
                    filters,
                    children,
                },
                visible,
            )
        }
    }

    /// Compiles a group inside another one, and makes its columns visible there.
    unsafe fn child(
        &mut self,
        kind: pgquad_exec::Kind,
        prepared: Prepared,
        visible: &mut Visible,
    ) -> Child {
        // SAFETY: live planner nodes.
        unsafe {
            let first_own = Slot::from_index(self.slots);
            let (group, inside) = self.group(prepared, visible);
            let mut needs = used(&group);
            needs.retain(|&slot| slot < first_own);
            needs.sort_unstable();
            needs.dedup();
            let mut exports = Vec::new();
            if kind == pgquad_exec::Kind::Semi {
                // Above EXISTS, an equivalence class may name an inner column for the outer one that it equals.
                visible.extend(inside.into_iter().filter(|(_, slot)| *slot < first_own));
            } else {
                let mut copies: HashMap<Slot, Slot> = HashMap::new();
                for (cell, slot) in inside {
                    // A column that shares its variable with an outer one is unbound on its own where nothing matches.
                    let seen = if slot < first_own {
                        if !self.wanted.contains(&cell) {
                            continue;
                        }
                        match copies.get(&slot) {
                            Some(&copy) => copy,
                            None => {
                                let copy = self.slot();
                                copies.insert(slot, copy);
                                exports.push((copy, slot));
                                copy
                            }
                        }
                    } else {
                        slot
                    };
                    visible.insert(cell, seen);
                }
            }
            Child {
                kind,
                group,
                exports,
                needs,
                row: self.slot(),
            }
        }
    }
}

/// No more than `most` tests: the last one is the conjunction of those that are too many.
unsafe fn at_most(
    mut tests: Vec<(*mut pg_sys::Expr, Vec<Cell>)>,
    most: usize,
) -> Vec<(*mut pg_sys::Expr, Vec<Cell>)> {
    // SAFETY: live planner nodes.
    unsafe {
        if tests.len() > most && most > 0 {
            let mut all = std::ptr::null_mut();
            let mut needed: Vec<Cell> = Vec::new();
            for (test, cells) in tests.split_off(most - 1) {
                all = pg_sys::lappend(all, test.cast());
                for cell in cells {
                    if !needed.contains(&cell) {
                        needed.push(cell);
                    }
                }
            }
            let both = pg_sys::makeBoolExpr(pg_sys::BoolExprType::AND_EXPR, all, -1);
            tests.push((both, needed));
        }
        tests
    }
}

/// The variables that a group uses, its own and others.
fn used(group: &Group) -> Vec<Slot> {
    let mut slots: Vec<Slot> = Vec::new();
    for pattern in &group.patterns {
        slots.extend(pattern.cells.iter().flatten());
        slots.extend(pattern.links.iter().map(|l| l.slot));
    }
    for filter in &group.filters {
        slots.extend(&filter.needs);
    }
    for child in &group.children {
        slots.extend(&child.needs);
    }
    slots
}

/// Columns of the relations of a group, in classes of equal ones.
struct Classes {
    relations: Vec<pg_sys::Index>,
    parent: Vec<usize>,
}

impl Classes {
    fn new(relations: &[pg_sys::Index]) -> Self {
        Self {
            relations: relations.to_vec(),
            parent: (0..4 * relations.len()).collect(),
        }
    }

    fn index(&self, cell: Cell) -> usize {
        4 * self
            .relations
            .iter()
            .position(|&r| r == cell.0)
            .unwrap_or(0)
            + cell.1
    }

    fn find(&self, cell: Cell) -> usize {
        let mut at = self.index(cell);
        while self.parent[at] != at {
            at = self.parent[at];
        }
        at
    }

    fn unite(&mut self, a: Cell, b: Cell) {
        let (a, b) = (self.find(a), self.find(b));
        self.parent[a.max(b)] = a.min(b);
    }

    fn size(&self, class: usize) -> usize {
        let cells = self
            .relations
            .iter()
            .flat_map(|&r| (0..4).map(move |c| (r, c)));
        cells.filter(|&cell| self.find(cell) == class).count()
    }
}
