//! The plan of a join: groups of quad patterns with their filters, and optional or tested groups inside them.
//!
//! A plan fixes what is joined, not in which order: that is decided while it runs.

pub(crate) mod codec;
pub(crate) mod condition;
pub(crate) mod layout;
pub(crate) mod limits;
pub(crate) mod numbers;
pub(crate) mod part;
pub(crate) mod query;
pub(crate) mod words;

use crate::plan::condition::Bound;
pub use crate::plan::numbers::{Argument, ColumnNumber, Expr, Param, Slot, TableNumber};

/// Most patterns in one group.
pub const MAX_PATTERNS: usize = 64;
/// Most variables of a plan.
pub const MAX_SLOTS: usize = 256;

/// A set of variables.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SlotSet([u64; MAX_SLOTS / 64]);

impl SlotSet {
    /// All variables.
    pub(crate) const ALL: Self = Self([u64::MAX; MAX_SLOTS / 64]);

    /// Puts a variable in.
    #[inline]
    pub fn add(&mut self, slot: Slot) {
        self.0[slot.index() / 64] |= 1 << (slot.index() % 64);
    }

    /// Whether the variable is in it.
    #[inline]
    pub fn has(&self, slot: Slot) -> bool {
        self.0[slot.index() / 64] & 1 << (slot.index() % 64) != 0
    }

    /// Puts all variables of another set in.
    #[inline]
    pub fn add_all(&mut self, other: &Self) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            *mine |= theirs;
        }
    }

    /// Takes all variables of another set out.
    #[inline]
    pub fn remove_all(&mut self, other: &Self) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            *mine &= !theirs;
        }
    }

    /// Whether all variables of this set are in the other one.
    #[inline]
    pub fn within(&self, other: &Self) -> bool {
        self.0
            .iter()
            .zip(other.0)
            .all(|(mine, theirs)| mine & !theirs == 0)
    }

    /// Whether the sets share a variable.
    #[inline]
    pub fn meets(&self, other: &Self) -> bool {
        self.0
            .iter()
            .zip(other.0)
            .any(|(mine, theirs)| mine & theirs != 0)
    }
}

impl FromIterator<Slot> for SlotSet {
    fn from_iter<I: IntoIterator<Item = Slot>>(slots: I) -> Self {
        let mut set = Self::default();
        for slot in slots {
            set.add(slot);
        }
        set
    }
}

/// The ids from one parameter to another, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ParamRange {
    /// The parameter with the least one.
    pub least: Param,
    /// The parameter with the greatest one.
    pub greatest: Param,
}

/// A column that has to equal a variable in value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SameValue {
    /// The column.
    pub column: ColumnNumber,
    /// The variable.
    pub slot: Slot,
    /// The ids whose value other ids may have too. Any other id is equal in value to itself only.
    pub between: ParamRange,
}

impl SameValue {
    /// The equality of ids that stands for it where equal values are equal ids.
    pub(crate) fn link(&self) -> Link {
        Link {
            column: self.column,
            slot: self.slot,
        }
    }
}

/// A column that has to equal a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Link {
    /// The column.
    pub column: ColumnNumber,
    /// The variable.
    pub slot: Slot,
}

/// A column that is compared with a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Comparison {
    /// The column.
    pub column: ColumnNumber,
    /// How it is compared.
    pub bound: Bound,
    /// The parameter.
    pub param: Param,
}

impl Comparison {
    /// `column` compared with `param`.
    pub fn new(column: ColumnNumber, bound: Bound, param: Param) -> Self {
        Self {
            column,
            bound,
            param,
        }
    }
}

/// One quad pattern.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Pattern {
    /// Which of the source's tables it reads.
    pub table: TableNumber,
    /// The variable of each column ([`ColumnNumber`]); `None` where no value is asked for. A variable that is bound
    /// already restricts the column, one that is not is bound by it. The same variable may stand in several columns.
    pub cells: [Option<Slot>; 4],
    /// Variables of other groups that a column has to equal: used as keys once they are bound. The equality
    /// itself is a filter.
    pub links: Vec<Link>,
    /// Variables that a column has to equal in value: used as keys, too, once they are bound. The comparison itself is
    /// a filter.
    pub values: Vec<SameValue>,
    /// Comparisons of a column with a parameter.
    pub conditions: Vec<Comparison>,
    /// It reads triples: of quads that differ in their graph only, the one in the least graph that passes the
    /// conditions. Column g has no variable. The orders of its table end with g.
    pub triples: bool,
    /// Where no variable is a key, a range is read for each member of a list instead of one of a constant. Decided when
    /// the parameters are known (`optimizer/list_ranges.rs`).
    pub lists_first: bool,
}

impl Pattern {
    /// The variables that it binds or has for keys.
    pub(crate) fn needs(&self) -> SlotSet {
        let cells = self.cells.iter().flatten().copied();
        cells.chain(self.links.iter().map(|l| l.slot)).collect()
    }
}

/// What a filter tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Test {
    /// Two variables are both bound and equal.
    Equal(Slot, Slot),
    /// An expression of the source's.
    Expr(Expr),
}

/// A condition on rows, tested as soon as the variables it needs are known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter {
    /// The test.
    pub test: Test,
    /// Its variables, in the order in which the source expects them.
    pub needs: Vec<Slot>,
}

/// How a group inside another one takes part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Rows without a match stay, with its variables unbound (LEFT JOIN, OPTIONAL).
    Left,
    /// Rows with a match stay, once each (EXISTS).
    Semi,
    /// Rows without a match stay (NOT EXISTS).
    Anti,
}

/// A group inside another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Child {
    /// How it takes part.
    pub kind: Kind,
    /// The group that is matched for each row of the outer group. Its filters decide about a match.
    pub group: Group,
    /// Variables that exist after the child only, with those they are copied from: (copy, original).
    pub exports: Vec<(Slot, Slot)>,
    /// Variables of outer groups that have to be known before it runs: all that it or a group inside it uses.
    pub needs: Vec<Slot>,
    /// A variable of its own that numbers the outer rows while the child runs.
    pub row: Slot,
}

/// Patterns that are joined, with filters and inner groups.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Group {
    /// At most [`MAX_PATTERNS`].
    pub patterns: Vec<Pattern>,
    /// At most 64.
    pub filters: Vec<Filter>,
    /// At most 64.
    pub children: Vec<Child>,
}

impl Group {
    /// The variables of the group's patterns, and those that the groups inside it bind.
    pub fn binds(&self) -> SlotSet {
        let mut set: SlotSet = self
            .patterns
            .iter()
            .flat_map(|p| p.cells)
            .flatten()
            .collect();
        for child in self
            .children
            .iter()
            .filter(|c| c.kind == Kind::Left || c.kind == Kind::Anti)
        {
            set.add_all(&child.binds());
        }
        set
    }
}

impl Child {
    /// The variables that exist once the child has run (they may be unbound).
    pub fn binds(&self) -> SlotSet {
        let mut set = self.group.binds();
        set.remove_all(&self.needs.iter().copied().collect());
        set.add_all(&self.exports.iter().map(|e| e.0).collect());
        set
    }
}

/// A whole join.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// The outermost group.
    pub root: Group,
    /// Number of variables, at most [`MAX_SLOTS`].
    pub slots: u16,
    /// The variables of the answer.
    pub output: Vec<Slot>,
    /// Rows that are equal in the variables of the answer may be handed out once.
    pub distinct: bool,
    /// All rows will be asked for: nothing is gained by small batches.
    pub whole: bool,
}
