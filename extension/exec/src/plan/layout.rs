//! The groups of a plan with the variables of their parts, and what is left to do in a group.

use crate::plan::{Filter, Group, Kind, Pattern, Plan, SameValue, Slot, SlotSet};

/// A pattern of a group.
#[derive(Clone)]
pub(crate) struct PatternInfo {
    pub pattern: Pattern,
    pub needs: SlotSet,
    /// Those of its [`Pattern::values`] whose use is not decided yet: rows are told apart by their values.
    pub undecided: Vec<SameValue>,
    /// The equality by which its quads are joined when nothing else connects them with a batch.
    pub keyed: Option<SameValue>,
    /// Its place among the patterns of the whole plan.
    pub step: usize,
}

/// A group inside another one.
#[derive(Clone)]
pub(crate) struct ChildInfo {
    pub kind: Kind,
    pub group: usize,
    pub exports: Vec<(Slot, Slot)>,
    pub needs: SlotSet,
    pub binds: SlotSet,
    pub row: Slot,
}

/// A group: its patterns, filters with what they need, and the groups inside it.
#[derive(Clone)]
pub(crate) struct GroupInfo {
    pub patterns: Vec<PatternInfo>,
    pub filters: Vec<(Filter, SlotSet)>,
    pub children: Vec<ChildInfo>,
}

/// What is left to do in one group.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Scope {
    pub group: usize,
    pub patterns: u64,
    pub filters: u64,
    pub children: u64,
    /// The frame that entered the group; of no meaning in the outermost.
    pub frame: usize,
    /// Number of the child in the group around.
    pub child: usize,
}

impl Scope {
    /// Whether there is nothing to read any more; filters may be left.
    pub fn is_read(&self) -> bool {
        self.patterns | self.children == 0
    }

    /// Whether nothing is left to do.
    pub fn is_done(&self) -> bool {
        self.is_read() && self.filters == 0
    }
}

/// The part of a group that comes next: what rows are given away for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ahead {
    /// A pattern of the outermost group, by number.
    Pattern(usize),
    /// A group inside it.
    Child(usize),
}

impl GroupInfo {
    /// Whether it is undecided for some pattern how equality of values is used.
    pub fn is_undecided(&self) -> bool {
        self.patterns.iter().any(|p| !p.undecided.is_empty())
    }
}

/// How equality of values is used for rows of one kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ByValue {
    /// Equal values are equal ids.
    Id,
    /// Equal values have equal keys.
    Key,
    /// It is not; the filter tells.
    Not,
}

/// A group whose rows are of one kind.
#[derive(PartialEq, Eq)]
struct Variant {
    /// The group that it is made of.
    of: usize,
    /// The pattern that is joined by the equality.
    pattern: usize,
    same: SameValue,
    how: ByValue,
}

/// All groups of a plan, the outermost first.
#[derive(Default)]
pub(crate) struct Layout {
    /// A group comes before those inside it. Behind the groups of the plan are variants of them.
    pub groups: Vec<GroupInfo>,
    /// Number of groups of the plan.
    pub own: usize,
    /// Which variants there are.
    variants: Vec<Variant>,
    /// Number of patterns.
    pub steps: usize,
}

impl Layout {
    /// The groups of `plan`.
    pub fn new(plan: &Plan) -> Self {
        let mut layout = Self::default();
        layout.add(&plan.root);
        layout.own = layout.groups.len();
        layout
    }

    /// The group in which the values of one pattern are equal to those of rows of one kind: the same parts, steps and
    /// filters.
    pub fn variant(&mut self, of: usize, i: usize, same: SameValue, how: ByValue) -> usize {
        let what = Variant {
            of,
            pattern: i,
            same,
            how,
        };
        if let Some(known) = self.variants.iter().position(|v| *v == what) {
            return self.own + known;
        }
        let mut group = self.groups[of].clone();
        let info = &mut group.patterns[i];
        info.undecided.clear();
        match how {
            ByValue::Id => {
                info.pattern.links.push(same.link());
                info.needs = info.pattern.needs();
            }
            ByValue::Key => info.keyed = Some(same),
            ByValue::Not => {}
        }
        self.groups.push(group);
        self.variants.push(what);
        self.groups.len() - 1
    }

    /// Forgets variants: the next run has other values.
    pub fn forget_variants(&mut self) {
        self.groups.truncate(self.own);
        self.variants.clear();
    }

    fn add(&mut self, group: &Group) -> usize {
        let at = self.groups.len();
        let first_step = self.steps;
        self.steps += group.patterns.len();
        let patterns = group.patterns.iter().enumerate().map(|(i, p)| PatternInfo {
            needs: p.needs(),
            pattern: p.clone(),
            undecided: Vec::new(),
            keyed: None,
            step: first_step + i,
        });
        let filters = group
            .filters
            .iter()
            .map(|f| (f.clone(), f.needs.iter().copied().collect()));
        self.groups.push(GroupInfo {
            patterns: patterns.collect(),
            filters: filters.collect(),
            children: Vec::new(),
        });
        for child in &group.children {
            let info = ChildInfo {
                kind: child.kind,
                group: self.add(&child.group),
                exports: child.exports.clone(),
                needs: child.needs.iter().copied().collect(),
                binds: child.binds(),
                row: child.row,
            };
            self.groups[at].children.push(info);
        }
        at
    }

    /// All that is to do in a group.
    pub fn scope(&self, group: usize, frame: usize, child: usize) -> Scope {
        let info = &self.groups[group];
        Scope {
            group,
            patterns: first_bits(info.patterns.len()),
            filters: first_bits(info.filters.len()),
            children: first_bits(info.children.len()),
            frame,
            child,
        }
    }

    /// The innermost of the scopes that is one of EXISTS or NOT EXISTS.
    pub fn tested(&self, scopes: &[Scope]) -> Option<usize> {
        (1..scopes.len()).rev().find(|&depth| {
            let outer = &self.groups[scopes[depth - 1].group];
            outer.children[scopes[depth].child].kind != Kind::Left
        })
    }

    /// The variables that are of use after the current step.
    pub fn live(&self, output: SlotSet, scopes: &[Scope]) -> SlotSet {
        let mut live = output;
        for (depth, scope) in scopes.iter().enumerate() {
            let group = &self.groups[scope.group];
            if depth > 0 {
                let child = &self.groups[scopes[depth - 1].group].children[scope.child];
                if child.kind != Kind::Left {
                    // Only which rows have a match is asked for; the rows themselves wait outside.
                    live = SlotSet::default();
                }
                live.add(child.row);
                for &(copy, original) in &child.exports {
                    if live.has(copy) {
                        live.add(original);
                    }
                }
            }
            bits(scope.patterns).for_each(|i| live.add_all(&group.patterns[i].needs));
            bits(scope.filters).for_each(|i| live.add_all(&group.filters[i].1));
            for i in bits(scope.children) {
                let child = &group.children[i];
                live.add_all(&child.needs);
            }
        }
        live
    }
}

fn first_bits(n: usize) -> u64 {
    if n >= 64 {
        u64::MAX
    } else {
        (1 << n) - 1
    }
}

/// The bits that are set in a mask.
pub(crate) fn bits(mut mask: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let bit = mask.trailing_zeros() as usize;
        mask &= mask.wrapping_sub(1);
        (bit < 64).then_some(bit)
    })
}
