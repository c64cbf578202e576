//! Access path: how one pattern is read for a batch. It says which index permutation is read, what the key is, what is
//! bound, and which residual predicates are left.

use crate::access::index_choice::{best_order, key_ranges, OrderMatch};
use crate::bindings::{Bindings, Column};
use crate::cost::LIST_RANGES_ROWS;
use crate::plan::condition::{Bound, Value};
use crate::plan::{ColumnNumber, Param, Pattern, Slot, SlotSet, TableNumber};
use pgquad_btree::{Key, Order, COUNTS, KEY_MAX, KEY_MIN};
use smallvec::SmallVec;

/// The value side of a key condition.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Operand {
    Slot(Slot),
    Param(Param),
    /// One of [`AccessPath::pushed_ranges`], by number.
    PushedRanges(u8),
}

/// A check of a quad that the key range does not make.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Residual {
    /// Equal to another place of the key.
    Same(usize),
    /// Compared with a parameter.
    Param(Bound, Param),
}

/// What all quads asked for have on the first place of the key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum StarKey {
    /// The value of a variable.
    Slot(Slot),
    /// A constant.
    Value(u64),
}

/// Place of the graph in the keys of tables of which triples are read.
pub(crate) const GRAPH: usize = 3;

/// Residual predicates of quads, with the places in the key that they are about.
pub(crate) type Residuals = SmallVec<[(usize, Residual); 2]>;
/// Constants on neighbouring places of the key.
pub(crate) type Constants = SmallVec<[u64; 3]>;
/// Variables with their places in the key.
pub(crate) type Places = SmallVec<[(Slot, usize); 4]>;

/// What filters leave to columns of a pattern.
pub(crate) type PushedRanges = Vec<PushedRange>;

/// What filters leave to one column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PushedRange {
    pub column: ColumnNumber,
    /// Ranges: ascending, disjoint and inclusive.
    pub within: Value,
}

/// A condition that key ranges can enforce.
#[derive(Clone, Copy, Debug)]
struct KeyCondition {
    column: ColumnNumber,
    bound: Bound,
    operand: Operand,
}

/// How a pattern is read. Made for every pattern that a batch could go on with, so that its lists are short and in
/// place.
#[derive(Clone, Debug)]
pub(crate) struct AccessPath {
    /// The table, or the part of it that is read.
    pub table: TableNumber,
    /// Number of the order.
    pub order: usize,
    /// The order itself.
    pub permutation: Order,
    /// Conditions that the key ranges enforce, in key order.
    used: SmallVec<[KeyCondition; 4]>,
    /// All of `used` are equalities with one value.
    exact: bool,
    /// Variables among the keys, in key order.
    pub keys: SmallVec<[Slot; 4]>,
    /// Known variables, keys or not, with the place in the key.
    pub known: Places,
    /// Known variables that are compared after reading, with the place in the key.
    pub compared: Places,
    /// Other checks after reading, by place in the key.
    pub residuals: Residuals,
    /// Variables that get their values, with the place in the key.
    pub fills: Places,
    /// Where triples are read: the first place of the key that may differ between two quads of a range.
    pub triples_from: Option<usize>,
    /// Places of the key that have to be read (bit `i` = place `i`), perhaps with [`COUNTS`].
    pub mask: u8,
    /// Columns of the quad bound by parameters, and by variables (bit `n` = column `n`).
    pub constant: u8,
    pub bound: u8,
    /// What filters leave to some columns.
    pub pushed_ranges: PushedRanges,
}

/// Whether a pattern cannot match any row of a batch: it needs a variable that is unbound, or a parameter that is NULL.
pub(crate) fn cannot_match(pattern: &Pattern, rows: &Bindings, params: &[Value]) -> bool {
    let unbound = |slot: Slot| matches!(rows.columns[slot.index()], Column::Null);
    pattern.cells.iter().flatten().any(|&s| unbound(s))
        || pattern.links.iter().any(|l| unbound(l.slot))
        || pattern
            .conditions
            .iter()
            .any(|c| params[c.param.index()] == Value::Null)
}

impl AccessPath {
    /// How to read `pattern` for rows like `rows`, when the variables of `live` are needed afterwards.
    pub fn new(pattern: &Pattern, orders: &[Order], rows: &Bindings, live: &SlotSet) -> Self {
        Self::with_keys(pattern, orders, rows, live, |_| true)
    }

    /// How to read it with only some of the known variables as keys. The others are compared after reading, and so may
    /// be those.
    pub fn with_keys(
        pattern: &Pattern,
        orders: &[Order],
        rows: &Bindings,
        live: &SlotSet,
        is_key: impl Fn(Slot) -> bool,
    ) -> Self {
        Self::with_ranges(pattern, orders, rows, live, is_key, &PushedRanges::new())
    }

    /// The same where only some ranges have to be looked at, if the order allows.
    pub fn with_ranges(
        pattern: &Pattern,
        orders: &[Order],
        rows: &Bindings,
        live: &SlotSet,
        is_key: impl Fn(Slot) -> bool,
        pushed_ranges: &PushedRanges,
    ) -> Self {
        let known = |slot: Slot| rows.ids(slot).is_some();
        let mut conditions: SmallVec<[KeyCondition; 8]> = SmallVec::new();
        let mut add = |column, bound, operand| {
            conditions.push(KeyCondition {
                column,
                bound,
                operand,
            });
        };
        for (column, cell) in pattern.cells.iter().enumerate() {
            if let Some(slot) = cell.filter(|&s| known(s)) {
                add(
                    ColumnNumber::from_index(column),
                    Bound::Eq,
                    Operand::Slot(slot),
                );
            }
        }
        for link in pattern.links.iter().filter(|l| known(l.slot)) {
            add(link.column, Bound::Eq, Operand::Slot(link.slot));
        }
        for c in &pattern.conditions {
            add(c.column, c.bound, Operand::Param(c.param));
        }
        for (n, pushed) in pushed_ranges.iter().enumerate() {
            add(pushed.column, Bound::Within, Operand::PushedRanges(n as u8));
        }
        // Ranges for every member of a list and every key of a batch would be too many: such a list is checked after
        // reading.
        let keyed = |operand| matches!(operand, Operand::Slot(slot) if is_key(slot));
        let unkeyed = !conditions.iter().any(|c| keyed(c.operand));
        let listed = rows.len <= LIST_RANGES_ROWS || unkeyed;
        let offered: SmallVec<[usize; 8]> = (0..conditions.len())
            .filter(|&i| match conditions[i].operand {
                Operand::Slot(slot) => is_key(slot),
                // Repeats of a triple would be in several ranges.
                Operand::Param(_)
                    if pattern.triples && conditions[i].column == ColumnNumber::GRAPH =>
                {
                    false
                }
                Operand::Param(_) => listed || conditions[i].bound != Bound::Any,
                Operand::PushedRanges(_) => true,
            })
            .collect();
        let bounds: SmallVec<[(usize, Bound); 8]> = offered
            .iter()
            .map(|&i| (conditions[i].column.index(), conditions[i].bound))
            .collect();
        let lists_first = unkeyed && pattern.lists_first;
        let OrderMatch { order, mut prefix } = best_order(orders, &bounds, lists_first);
        for used in &mut prefix.used {
            *used = offered[*used];
        }
        let permutation = orders[order];
        let place = |column: ColumnNumber| permutation.position(column.index());
        let mut access = Self {
            table: pattern.table,
            order,
            permutation,
            used: prefix.used.iter().map(|&i| conditions[i]).collect(),
            exact: prefix.used.len() == prefix.exact,
            keys: SmallVec::new(),
            known: SmallVec::new(),
            compared: SmallVec::new(),
            residuals: SmallVec::new(),
            fills: SmallVec::new(),
            triples_from: None,
            mask: 0,
            constant: 0,
            bound: 0,
            pushed_ranges: pushed_ranges.clone(),
        };
        for used in &access.used {
            if let Operand::Slot(slot) = used.operand {
                access.keys.push(slot);
            }
        }
        for (i, condition) in conditions.iter().enumerate() {
            let KeyCondition {
                column,
                bound,
                operand,
            } = *condition;
            match operand {
                Operand::Slot(slot) => {
                    access.bound |= 1 << column.index();
                    access.known.push((slot, place(column)));
                }
                Operand::Param(_) if bound == Bound::Eq => access.constant |= 1 << column.index(),
                Operand::Param(_) => {}
                // The filters are tested in any case.
                Operand::PushedRanges(_) => continue,
            }
            if prefix.used.contains(&i) {
                continue;
            }
            let at = place(column);
            access.mask |= 1 << at;
            match operand {
                Operand::Slot(slot) => access.compared.push((slot, at)),
                Operand::Param(param) => access.residuals.push((at, Residual::Param(bound, param))),
                Operand::PushedRanges(_) => {}
            }
        }
        let mut new = Places::new();
        for (column, cell) in pattern.cells.iter().enumerate() {
            let Some(slot) = cell.filter(|&s| !known(s)) else {
                continue;
            };
            let at = place(ColumnNumber::from_index(column));
            if let Some(&(_, first)) = new.iter().find(|f| f.0 == slot) {
                access.mask |= 1 << at | 1 << first;
                access.residuals.push((at, Residual::Same(first)));
            } else {
                new.push((slot, at));
            }
        }
        for &(slot, at) in new.iter().filter(|f| live.has(f.0)) {
            access.mask |= 1 << at;
            access.fills.push((slot, at));
        }
        if pattern.triples {
            let columns = permutation.columns();
            let is_fixed = |place: &usize| {
                let column = ColumnNumber::new(columns[*place]);
                let mut used = access.used.iter();
                used.any(|u| u.column == column && matches!(u.bound, Bound::Eq | Bound::Any))
            };
            access.tell_triples_from((0..GRAPH).take_while(is_fixed).count());
        }
        access
    }

    /// From `place` of the key on, two quads of a range may be of different triples.
    fn tell_triples_from(&mut self, place: usize) {
        self.triples_from = Some(place);
        self.mask |= (place..GRAPH).fold(0, |mask, at| mask | 1 << at);
    }

    /// The same for another part of the table, in whose orders it was made.
    pub fn of_part(mut self, table: TableNumber) -> Self {
        self.table = table;
        self
    }

    /// The same in the order with the most constants in front, of those that serve equally well. The quads that the
    /// constants select are side by side there, so the keys of a large batch share leaves. Example: whether subjects
    /// are of one type is looked up in `posg` rather than `spog`. The keys stay in their order: rows that share a
    /// subject are looked up side by side. The arguments are those that this was made of.
    pub fn in_densest_order(
        self,
        pattern: &Pattern,
        orders: &[Order],
        rows: &Bindings,
        live: &SlotSet,
    ) -> Self {
        if !self.exact {
            return self;
        }
        let is_constant = |column: &u8| {
            let mut used = self.used.iter();
            used.any(|u| u.column.number() == *column && matches!(u.operand, Operand::Param(_)))
        };
        let first = |order: &Order| order.columns().into_iter().take(self.used.len());
        let keys = |order: &Order| -> SmallVec<[u8; 4]> {
            first(order).filter(|column| !is_constant(column)).collect()
        };
        let constants = |order: &Order| first(order).take_while(is_constant).count();
        // With the same keys among as many columns, the others are the same constants.
        let (own, least) = (keys(&self.permutation), constants(&self.permutation));
        let serving = orders.iter().enumerate();
        let denser = serving.filter(|(_, order)| keys(order) == own && constants(order) > least);
        // The first of equals.
        match denser.rev().max_by_key(|(_, order)| constants(order)) {
            Some((number, order)) => Self {
                order: number,
                ..Self::new(pattern, &[*order], rows, live)
            },
            None => self,
        }
    }

    /// How many conditions the key ranges enforce.
    pub fn conditions(&self) -> usize {
        self.used.len()
    }

    /// The value that the quads asked for have in a column of the key, where it is the same for all quads of a row. It
    /// is the operand at `place` where all places up to it are equalities.
    pub fn one_at(&self, place: usize) -> Option<Operand> {
        let up_to = self.used.get(..=place)?;
        let equal = up_to.iter().all(|u| u.bound == Bound::Eq);
        equal.then(|| up_to[place].operand)
    }

    /// Hands on only the variables of `live`.
    pub fn keep(&mut self, live: &SlotSet) {
        self.fills.retain(|f| live.has(f.0));
        let filled = self.fills.iter().chain(&self.compared);
        self.mask = filled.fold(0, |mask, f| mask | 1 << f.1);
        for &(at, check) in &self.residuals {
            self.mask |= 1 << at;
            if let Residual::Same(other) = check {
                self.mask |= 1 << other;
            }
        }
        if let Some(place) = self.triples_from {
            self.tell_triples_from(place);
        }
    }

    /// The same for quads that are only counted by the known variables, of which none is a key: in an order where quads
    /// that agree in them follow each other, but for those of other graphs. `None` where there is none, or each such
    /// quad is alone. Where triples are read, equal quads are one triple, which is not for whoever reads them to count.
    /// The arguments are those that this was made of.
    pub fn counted_by_known(
        &self,
        pattern: &Pattern,
        orders: &[Order],
        rows: &Bindings,
        live: &SlotSet,
    ) -> Option<Self> {
        let is_countable = self.exact && self.keys.is_empty() && self.fills.is_empty();
        if !is_countable || self.known.is_empty() || self.triples_from.is_some() {
            return None;
        }
        let fixed = self.used.iter().map(|used| used.column.number());
        let own = self.permutation.columns();
        let known = self.known.iter().map(|known| own[known.1]);
        let first: SmallVec<[u8; 4]> = fixed.chain(known).collect();
        let is_grouped = |order: &Order| {
            let columns = order.columns();
            let (fixed, known) = first.split_at(self.used.len());
            let (of_fixed, others) = columns.split_at(fixed.len());
            of_fixed.iter().all(|column| fixed.contains(column))
                && others
                    .iter()
                    .take(known.len())
                    .all(|column| known.contains(column))
        };
        let (number, order) = orders
            .iter()
            .enumerate()
            .find(|(_, order)| is_grouped(order))?;
        let mut access = Self {
            order: number,
            ..Self::with_keys(pattern, &[*order], rows, live, |_| false)
        }
        .of_part(self.table);
        let is_read = |place: &usize| access.mask >> place & 1 != 0;
        if (first.len()..own.len()).all(|place| is_read(&place)) {
            return None;
        }
        access.mask |= COUNTS;
        Some(access)
    }

    /// Whether the key range is one, of equalities.
    pub fn is_exact(&self) -> bool {
        self.exact
    }

    /// Whether all conditions are equalities that the key range covers.
    pub fn is_plain(&self) -> bool {
        self.exact && self.residuals.is_empty()
    }

    /// The variable that is the only key besides constants, and its place in the key.
    pub fn only_key(&self) -> Option<(Slot, usize)> {
        match self.keys.as_slice() {
            [only] if self.exact => {
                let is_slot = |u: &KeyCondition| matches!(u.operand, Operand::Slot(_));
                Some((*only, self.used.iter().position(is_slot)?))
            }
            _ => None,
        }
    }

    /// The operand at the first place of the key, and the constants at the places behind it. `None` where other
    /// operands are there.
    pub fn star_key(&self, params: &[Value]) -> Option<(StarKey, Constants)> {
        let (first, rest) = self.used.split_first()?;
        if !self.exact || !self.compared.is_empty() {
            return None;
        }
        let constant = |operand: Operand| match operand {
            Operand::Param(param) => match params[param.index()] {
                Value::One(value) => Some(value),
                _ => None,
            },
            _ => None,
        };
        let star_key = match first.operand {
            Operand::Slot(slot) => StarKey::Slot(slot),
            other => StarKey::Value(constant(other)?),
        };
        let constants = rest.iter().map(|used| constant(used.operand));
        Some((star_key, constants.collect::<Option<_>>()?))
    }

    /// Makes the constants behind place `at` of the key checks after reading.
    pub fn add_residuals_behind(&mut self, at: usize) {
        for (place, used) in self.used.iter().enumerate().skip(at + 1) {
            if let Operand::Param(param) = used.operand {
                self.mask |= 1 << place;
                self.residuals
                    .push((place, Residual::Param(used.bound, param)));
            }
        }
        if self.triples_from.is_some() {
            self.tell_triples_from(at);
        }
    }

    /// Whether subject, predicate and object are all bound: at most one quad a graph.
    pub fn is_lookup(&self) -> bool {
        (self.constant | self.bound) & 0b111 == 0b111
    }

    /// The key ranges for row `row` of a batch, ascending.
    pub fn ranges(&self, rows: &Bindings, row: usize, params: &[Value], out: &mut Vec<(Key, Key)>) {
        if self.exact {
            let (mut low, mut high) = (KEY_MIN, KEY_MAX);
            for (place, used) in self.used.iter().enumerate() {
                let Some(value) = one(used.operand, rows, row, params) else {
                    return;
                };
                low[place] = value;
                high[place] = value;
            }
            out.push((low, high));
            return;
        }
        let conditions: Vec<(usize, Bound, Value)> = self
            .used
            .iter()
            .map(|used| {
                let value = match used.operand {
                    Operand::Param(param) => params[param.index()].clone(),
                    Operand::PushedRanges(n) => self.pushed_ranges[usize::from(n)].within.clone(),
                    Operand::Slot(_) => {
                        one(used.operand, rows, row, params).map_or(Value::Null, Value::One)
                    }
                };
                (used.column.index(), used.bound, value)
            })
            .collect();
        out.extend(key_ranges(self.permutation, &conditions));
    }
}

fn one(operand: Operand, rows: &Bindings, row: usize, params: &[Value]) -> Option<u64> {
    match operand {
        Operand::Slot(slot) => rows.ids(slot).map(|ids| ids[row]),
        Operand::Param(param) => match params[param.index()] {
            Value::One(value) => Some(value),
            _ => None,
        },
        Operand::PushedRanges(_) => None,
    }
}

/// Whether `value` compares with a parameter as asked; lists are sorted.
#[inline]
pub fn holds(value: u64, bound: Bound, param: &Value) -> bool {
    match (bound, param) {
        (Bound::Any, Value::List(list)) => list.binary_search(&value).is_ok(),
        (Bound::Lt, Value::One(v)) => value < *v,
        (Bound::Le, Value::One(v)) => value <= *v,
        (Bound::Eq, Value::One(v)) => value == *v,
        (Bound::Ge, Value::One(v)) => value >= *v,
        (Bound::Gt, Value::One(v)) => value > *v,
        _ => false,
    }
}
