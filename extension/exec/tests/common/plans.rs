//! Random plans, and what a plan means, by definition. Shared by the test programs that compare the two.

use crate::common::{holds, FLIP};
use pgquad_btree::Quad;
use pgquad_exec::{
    Bindings, Bound, Child, Column, ColumnNumber, Comparison, Expr, Filter, Group, Kind, Link,
    Param, ParamRange, Pattern, Plan, SameValue, Slot, TableNumber, Test, Value,
};
use proptest::prelude::*;
use std::cell::Cell;
use std::collections::HashSet;

/// Values of the variables of a row.
pub type Row = Vec<Option<u64>>;

/// The rows of an answer's batch. The values of all variables of the answer have to be there.
pub fn rows_of(plan: &Plan, batch: &Bindings) -> Vec<Row> {
    let value = |slot: Slot, row: usize| match &batch.columns[slot.index()] {
        Column::Ids(ids) => Some(ids[row]),
        Column::Null => None,
        Column::Absent => panic!("variable {slot:?} of the answer is missing"),
    };
    let row = |row: usize| plan.output.iter().map(|&slot| value(slot, row)).collect();
    (0..batch.len).map(row).collect()
}

/// The least and the greatest id whose value others may have too.
pub const SHARED: (u64, u64) = (FLIP + 1, FLIP + 4);

/// What a plan means, by definition.
pub struct Model<'a> {
    pub tables: &'a [Vec<Quad>],
    pub params: &'a [Value],
    /// Quads that may still be looked at; plans that multiply beyond that are left out.
    pub budget: Cell<i64>,
}

impl Model<'_> {
    fn pattern(&self, pattern: &Pattern, row: &Row) -> Vec<Row> {
        let mut found = Vec::new();
        self.budget
            .set(self.budget.get() - self.tables[pattern.table.index()].len() as i64);
        if self.budget.get() < 0 {
            return found;
        }
        let mut triples = HashSet::new();
        'quads: for quad in &self.tables[pattern.table.index()] {
            let value = |c: usize| quad[c] as u64 ^ FLIP;
            for &Comparison {
                column,
                bound,
                param,
            } in &pattern.conditions
            {
                let v = value(column.index());
                let ok = match (bound, &self.params[param.index()]) {
                    (Bound::Eq, Value::One(x)) => v == *x,
                    (Bound::Lt, Value::One(x)) => v < *x,
                    (Bound::Ge, Value::One(x)) => v >= *x,
                    (Bound::Any, Value::List(list)) => list.contains(&v),
                    _ => false,
                };
                if !ok {
                    continue 'quads;
                }
            }
            if pattern.triples && !triples.insert([quad[0], quad[1], quad[2]]) {
                continue;
            }
            let mut row = row.clone();
            for (c, cell) in pattern.cells.iter().enumerate() {
                let Some(slot) = cell else { continue };
                let place = &mut row[slot.index()];
                match place {
                    Some(x) if *x != value(c) => continue 'quads,
                    _ => *place = Some(value(c)),
                }
            }
            found.push(row);
        }
        found
    }

    pub fn group(&self, group: &Group, row: &Row) -> Vec<Row> {
        let mut rows = vec![row.clone()];
        for p in &group.patterns {
            // A variable of an outer group that is unbound matches nothing.
            rows = rows.iter().flat_map(|r| self.pattern(p, r)).collect();
        }
        for child in &group.children {
            rows = rows.iter().flat_map(|r| self.child(child, r)).collect();
        }
        rows.retain(|row| {
            group.filters.iter().all(|f| match f.test {
                Test::Equal(a, b) => row[a.index()].is_some() && row[a.index()] == row[b.index()],
                Test::Expr(n) => {
                    let values: Vec<_> = f.needs.iter().map(|&s| row[s.index()]).collect();
                    holds(n, &values)
                }
            })
        });
        rows
    }

    fn child(&self, child: &Child, row: &Row) -> Vec<Row> {
        let hopeless = child.needs.iter().any(|&n| {
            row[n.index()].is_none()
                && child
                    .group
                    .patterns
                    .iter()
                    .any(|p| p.cells.contains(&Some(n)))
        });
        let mut found = if hopeless {
            Vec::new()
        } else {
            self.group(&child.group, row)
        };
        match child.kind {
            Kind::Semi if found.is_empty() => Vec::new(),
            Kind::Anti if !found.is_empty() => Vec::new(),
            Kind::Semi | Kind::Anti => vec![row.clone()],
            Kind::Left if found.is_empty() => vec![row.clone()],
            Kind::Left => {
                for row in &mut found {
                    for &(copy, original) in &child.exports {
                        row[copy.index()] = row[original.index()];
                    }
                }
                found
            }
        }
    }
}

/// Random plans. Variables are numbered as they are met.
pub struct Maker<'a> {
    pub choices: &'a [u8],
    pub at: usize,
    pub slots: u16,
    pub params: Vec<Value>,
    pub tables: usize,
}

impl Maker<'_> {
    pub fn pick(&mut self, n: usize) -> usize {
        let choice = self.choices[self.at % self.choices.len()];
        self.at += 1;
        usize::from(choice) % n.max(1)
    }

    /// Lets some of the patterns that bind no graph read triples.
    pub fn read_triples(&mut self, group: &mut Group) {
        for pattern in &mut group.patterns {
            let of_graph = pattern.cells[3].is_some()
                || pattern
                    .links
                    .iter()
                    .any(|link| link.column == ColumnNumber::GRAPH)
                || pattern
                    .values
                    .iter()
                    .any(|value| value.column == ColumnNumber::GRAPH);
            pattern.triples = !of_graph && self.pick(3) > 0;
        }
        for child in &mut group.children {
            self.read_triples(&mut child.group);
        }
    }

    fn slot(&mut self) -> Slot {
        self.slots += 1;
        Slot::new(self.slots - 1)
    }

    pub fn group(&mut self, outer: &[Slot], depth: usize) -> (Group, Vec<Slot>) {
        let mut group = Group::default();
        let mut own: Vec<Slot> = Vec::new();
        for _ in 0..1 + self.pick(3) {
            let mut pattern = Pattern {
                table: TableNumber::from_index(self.pick(self.tables)),
                ..Pattern::default()
            };
            for c in 0..4 {
                match self.pick(8) {
                    0..=2 => {
                        let slot = self.slot();
                        own.push(slot);
                        pattern.cells[c] = Some(slot);
                    }
                    3 | 4 => {
                        let known: Vec<Slot> = outer.iter().chain(&own).copied().collect();
                        if !known.is_empty() {
                            pattern.cells[c] = Some(known[self.pick(known.len())]);
                        }
                    }
                    5 => {
                        let (bound, value) = match self.pick(5) {
                            0 => (Bound::Lt, Value::One(FLIP + self.pick(4) as u64)),
                            1 => (Bound::Ge, Value::One(FLIP + self.pick(4) as u64)),
                            2 => (
                                Bound::Any,
                                Value::List(vec![FLIP + self.pick(4) as u64, FLIP + 1]),
                            ),
                            _ => (Bound::Eq, Value::One(FLIP + self.pick(4) as u64)),
                        };
                        pattern.conditions.push(Comparison::new(
                            ColumnNumber::from_index(c),
                            bound,
                            Param::from_index(self.params.len()),
                        ));
                        self.params.push(value);
                    }
                    _ => {}
                }
            }
            group.patterns.push(pattern);
        }
        let mut visible = own.clone();
        if depth < 2 {
            for _ in 0..self.pick(3) {
                let scope: Vec<Slot> = outer.iter().chain(&visible).copied().collect();
                let (inner, binds) = self.group(&scope, depth + 1);
                let kind = [Kind::Left, Kind::Left, Kind::Semi, Kind::Anti][self.pick(4)];
                let mut needs: Vec<Slot> = used(&inner)
                    .into_iter()
                    .filter(|s| scope.contains(s))
                    .collect();
                needs.sort_unstable();
                needs.dedup();
                let mut exports = Vec::new();
                if kind == Kind::Left {
                    if let Some(&original) = needs.first() {
                        exports.push((self.slot(), original));
                    }
                    visible.extend(&binds);
                    visible.extend(exports.iter().map(|e| e.0));
                }
                let row = self.slot();
                group.children.push(Child {
                    kind,
                    group: inner,
                    exports,
                    needs,
                    row,
                });
            }
        }
        let all: Vec<Slot> = outer.iter().chain(&visible).copied().collect();
        for _ in 0..self.pick(3) {
            if all.len() < 2 {
                break;
            }
            let (a, b) = (all[self.pick(all.len())], all[self.pick(all.len())]);
            let tests = [
                Test::Equal(a, b),
                Test::Expr(Expr::new(0)),
                Test::Expr(Expr::new(1)),
                Test::Expr(Expr::new(2)),
            ];
            let test = tests[self.pick(4)];
            if let Test::Equal(a, b) = test {
                for pattern in &mut group.patterns {
                    if let Some(c) = pattern.cells.iter().position(|&cell| cell == Some(a)) {
                        pattern.links.push(Link {
                            column: ColumnNumber::from_index(c),
                            slot: b,
                        });
                    }
                }
            }
            if test == Test::Expr(Expr::new(2)) {
                self.same_value(&mut group, a, b);
            }
            group.filters.push(Filter {
                test,
                needs: vec![a, b],
            });
        }
        (group, visible)
    }
}

impl Maker<'_> {
    /// Lets patterns of a group be joined by the equality of two values.
    fn same_value(&mut self, group: &mut Group, a: Slot, b: Slot) {
        let first = self.params.len();
        self.params
            .extend([Value::One(SHARED.0), Value::One(SHARED.1)]);
        let between = ParamRange {
            least: Param::from_index(first),
            greatest: Param::from_index(first + 1),
        };
        for (mine, slot) in [(a, b), (b, a)] {
            for pattern in &mut group.patterns {
                if let Some(c) = pattern.cells.iter().position(|&cell| cell == Some(mine)) {
                    pattern.values.push(SameValue {
                        column: ColumnNumber::from_index(c),
                        slot,
                        between,
                    });
                }
            }
        }
    }

    /// Two groups of patterns that only the equality of values connects.
    pub fn apart(&mut self) -> (Group, Vec<Slot>) {
        let (mut group, mut visible) = self.star();
        let mut own = Vec::new();
        let subject = self.slot();
        for _ in 0..1 + self.pick(2) {
            let pattern = self.arm(Some(subject), &mut own);
            group.patterns.push(pattern);
        }
        own.push(subject);
        let bound: Vec<Slot> = group
            .patterns
            .iter()
            .flat_map(|p| p.cells)
            .flatten()
            .collect();
        let left: Vec<Slot> = visible
            .iter()
            .copied()
            .filter(|s| bound.contains(s))
            .collect();
        for _ in 0..1 + self.pick(2) {
            if left.is_empty() {
                break;
            }
            let (a, b) = (left[self.pick(left.len())], own[self.pick(own.len())]);
            self.same_value(&mut group, a, b);
            group.filters.push(Filter {
                test: Test::Expr(Expr::new(2)),
                needs: vec![a, b],
            });
        }
        visible.extend(own);
        (group, visible)
    }

    fn constant(&mut self, column: usize, value: u64, pattern: &mut Pattern) {
        let param = Param::from_index(self.params.len());
        pattern.conditions.push(Comparison::new(
            ColumnNumber::from_index(column),
            Bound::Eq,
            param,
        ));
        self.params.push(Value::One(FLIP + value));
    }

    /// A pattern with a constant predicate, of this subject; its new variables go to `own`.
    fn arm(&mut self, subject: Option<Slot>, own: &mut Vec<Slot>) -> Pattern {
        let mut pattern = Pattern {
            table: TableNumber::from_index(self.pick(self.tables)),
            ..Pattern::default()
        };
        pattern.cells[0] = subject;
        if subject.is_none() {
            self.constant(0, 1, &mut pattern);
        }
        let predicate = self.pick(3) as u64;
        self.constant(1, predicate, &mut pattern);
        for column in 2..4 {
            match self.pick(6) {
                0..=2 => {
                    own.push(self.slot());
                    pattern.cells[column] = own.last().copied();
                }
                3 if !own.is_empty() => {
                    pattern.cells[column] = Some(own[self.pick(own.len())]);
                }
                4 => {
                    let value = self.pick(2) as u64;
                    self.constant(column, value, &mut pattern);
                }
                _ => {}
            }
        }
        pattern
    }

    /// Patterns of one subject, some of them optional, with filters.
    pub fn star(&mut self) -> (Group, Vec<Slot>) {
        let mut group = Group::default();
        let subject = (self.pick(4) > 0).then(|| self.slot());
        let mut own: Vec<Slot> = Vec::new();
        for _ in 0..1 + self.pick(4) {
            let pattern = self.arm(subject, &mut own);
            group.patterns.push(pattern);
        }
        let mut visible: Vec<Slot> = subject.into_iter().chain(own).collect();
        for _ in 0..self.pick(4) {
            let mut own = Vec::new();
            let mut inner = Group::default();
            for _ in 0..1 + self.pick(5) / 4 {
                let pattern = self.arm(subject, &mut own);
                inner.patterns.push(pattern);
            }
            if let (Some(&slot), 0) = (own.first(), self.pick(4)) {
                inner.filters.push(Filter {
                    test: Test::Expr(Expr::new(0)),
                    needs: vec![slot],
                });
            }
            let exports: Vec<(Slot, Slot)> = match subject {
                Some(subject) if self.pick(2) == 0 => vec![(self.slot(), subject)],
                _ => Vec::new(),
            };
            visible.extend(own.into_iter().chain(exports.iter().map(|e| e.0)));
            group.children.push(Child {
                kind: [Kind::Left, Kind::Left, Kind::Left, Kind::Semi, Kind::Anti][self.pick(5)],
                group: inner,
                exports,
                needs: subject.into_iter().collect(),
                row: self.slot(),
            });
        }
        let bound = |child: &Child| (child.kind == Kind::Left).then(|| child.binds());
        let patterns = group.patterns.iter().flat_map(|p| p.cells).flatten();
        let outer: Vec<Slot> = patterns.collect();
        let inner: Vec<_> = group.children.iter().filter_map(bound).collect();
        visible.retain(|&slot| outer.contains(&slot) || inner.iter().any(|set| set.has(slot)));
        for _ in 0..self.pick(3) {
            if visible.len() < 2 {
                break;
            }
            let (a, b) = (
                visible[self.pick(visible.len())],
                visible[self.pick(visible.len())],
            );
            let test = [
                Test::Equal(a, b),
                Test::Expr(Expr::new(0)),
                Test::Expr(Expr::new(1)),
            ][self.pick(3)];
            group.filters.push(Filter {
                test,
                needs: vec![a, b],
            });
        }
        (group, visible)
    }
}

fn used(group: &Group) -> Vec<Slot> {
    let mut slots: Vec<Slot> = group
        .patterns
        .iter()
        .flat_map(|p| p.cells)
        .flatten()
        .collect();
    slots.extend(
        group
            .patterns
            .iter()
            .flat_map(|p| p.links.iter().map(|l| l.slot)),
    );
    slots.extend(group.filters.iter().flat_map(|f| f.needs.iter().copied()));
    for child in &group.children {
        slots.extend(used(&child.group));
        slots.extend(child.exports.iter().map(|e| e.1));
    }
    slots
}

/// The rows that a plan means, in no order; `None` where that takes too long.
pub fn expected(plan: &Plan, params: &[Value], tables: &[Vec<Quad>]) -> Option<Vec<Row>> {
    let model = Model {
        tables,
        params,
        budget: Cell::new(300_000),
    };
    let empty: Row = vec![None; usize::from(plan.slots)];
    let all = model.group(&plan.root, &empty);
    let of_answer = |row: Row| -> Row { plan.output.iter().map(|&s| row[s.index()]).collect() };
    (model.budget.get() >= 0).then(|| all.into_iter().map(of_answer).collect())
}

/// Few quads of few values.
pub fn quads() -> impl Strategy<Value = Vec<Quad>> {
    prop::collection::btree_set([0i64..5, 0..3, 0..5, 0..2], 0..25)
        .prop_map(|set| set.into_iter().collect())
}
