//! Limits of a plan, and whether a join will be within them: known before its plan is made.

use crate::plan::{Group, Plan, MAX_PATTERNS, MAX_SLOTS};

/// Most filters of a group, and most groups inside it: both have a bit each, as patterns do.
const MAX_FILTERS: usize = MAX_PATTERNS;
const MAX_CHILDREN: usize = MAX_PATTERNS;
/// Most parameters of a plan: their numbers have 16 bits.
const MAX_PARAMS: usize = 1 << 16;
/// Most parameters of a condition: the range of shared values, for each column of an equality of values.
const PARAMS_OF_CONDITION: usize = 4;

impl Plan {
    /// Whether sets of its parts and variables have room for all of them.
    #[must_use]
    pub fn is_within_limits(&self) -> bool {
        usize::from(self.slots) <= MAX_SLOTS && self.root.is_within_limits()
    }
}

impl Group {
    fn is_within_limits(&self) -> bool {
        self.patterns.len() <= MAX_PATTERNS
            && self.filters.len() <= MAX_FILTERS
            && self.children.len() <= MAX_CHILDREN
            && self.children.iter().all(|c| c.group.is_within_limits())
    }
}

/// How large a group of a join is that has no plan yet.
#[derive(Clone, Debug, Default)]
pub struct GroupSize {
    /// Its patterns.
    pub patterns: usize,
    /// All conditions of the group.
    pub conditions: usize,
    /// Equalities with columns of other groups. Each is a filter where no pattern can look it up.
    pub equalities: usize,
    /// The groups inside it.
    pub children: Vec<GroupSize>,
}

impl GroupSize {
    /// Whether the plan of the join has room for all of it, whatever is asked of its rows. `outer_columns`: the columns
    /// of an outer input that are keys, if there is one.
    #[must_use]
    pub fn fits(&self, outer_columns: Option<usize>) -> bool {
        // The rows of an outer input have a number, and so have those that a group inside is matched for.
        let outer = outer_columns.map_or(0, |columns| columns + 2);
        self.max_slots() + outer <= MAX_SLOTS
            && self.all_conditions() * PARAMS_OF_CONDITION <= MAX_PARAMS
            && self.has_room()
    }

    fn all_conditions(&self) -> usize {
        let inside = self.children.iter().map(Self::all_conditions);
        self.conditions + inside.sum::<usize>()
    }

    /// Each column has a variable at most: its own, one that it shares with equal columns, or, where that is of an
    /// outer group, a copy of it that is unbound where nothing matches. Rows that a group is matched for have a number.
    fn max_slots(&self) -> usize {
        let inside = self.children.iter().map(|child| child.max_slots() + 1);
        4 * self.patterns + inside.sum::<usize>()
    }

    /// One filter is left for the conjunction of all conditions that are no equality of columns.
    fn has_room(&self) -> bool {
        self.patterns <= MAX_PATTERNS
            && self.equalities < MAX_FILTERS
            && self.children.len() <= MAX_CHILDREN
            && self.children.iter().all(Self::has_room)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Pattern;

    fn group(patterns: usize, children: Vec<GroupSize>) -> GroupSize {
        GroupSize {
            patterns,
            children,
            ..GroupSize::default()
        }
    }

    fn equated(equalities: usize) -> GroupSize {
        GroupSize {
            equalities,
            ..group(1, Vec::new())
        }
    }

    #[test]
    fn a_join_of_forty_eight_patterns_has_room_for_its_variables() {
        assert!(group(48, Vec::new()).fits(None));
        assert!(group(1, vec![group(1, Vec::new()); 47]).fits(None));
        let nested = (1..48).fold(group(1, Vec::new()), |inside, _| group(1, vec![inside]));
        assert!(nested.fits(None));
    }

    #[test]
    fn a_group_has_room_for_sixty_three_equalities() {
        assert!(equated(63).fits(None));
        assert!(!equated(64).fits(None));
        assert!(group(1, vec![equated(63), equated(63)]).fits(None));
        assert!(!group(1, vec![group(1, vec![equated(64)])]).fits(None));
    }

    #[test]
    fn all_parameters_have_numbers() {
        let compared = |conditions, children| GroupSize {
            conditions,
            ..group(1, children)
        };
        assert!(compared(16_384, Vec::new()).fits(None));
        assert!(!compared(16_385, Vec::new()).fits(None));
        assert!(!compared(16_384, vec![compared(1, Vec::new())]).fits(None));
    }

    #[test]
    fn columns_of_an_outer_input_are_variables() {
        let join = group(10, vec![group(1, Vec::new())]);
        assert!(join.fits(Some(256 - 2 - 45)));
        assert!(!join.fits(Some(256 - 2 - 44)));
    }

    #[test]
    fn a_group_has_room_for_sixty_four_groups() {
        let tests = |n| group(0, vec![group(0, Vec::new()); n]);
        assert!(tests(64).fits(None));
        assert!(!tests(65).fits(None));
    }

    #[test]
    fn a_plan_is_within_limits_up_to_sixty_four_parts() {
        let plan = |patterns: usize, slots| Plan {
            root: Group {
                patterns: vec![Pattern::default(); patterns],
                ..Group::default()
            },
            slots,
            ..Plan::default()
        };
        assert!(plan(64, 256).is_within_limits());
        assert!(!plan(65, 256).is_within_limits());
        assert!(!plan(1, 257).is_within_limits());
    }
}
