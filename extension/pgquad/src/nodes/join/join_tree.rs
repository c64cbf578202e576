//! What a join relation of the planner joins: a tree of groups, put together join by join as PostgreSQL's search finds
//! them legal.
//!
//! Each join of two relations that have a description gets one of its own. An inner join merges two groups. A left,
//! semi or anti join puts the inner group into the outer one. PostgreSQL has worked out which conditions belong to
//! which join; nothing here re-decides that.

use super::columns::{equal_columns, Cell};
use crate::nodes::triples;
use crate::pg::list::list_iter;
use pgquad_exec::{GroupSize, Kind};
use pgrx::pg_sys;

/// A group of relations joined with each other.
#[derive(Clone, Default)]
pub struct JoinTree {
    /// Range table indexes.
    pub relations: Vec<pg_sys::Index>,
    /// Those of which triples are read, each once, whatever graphs it is in.
    pub triples: Vec<pg_sys::Index>,
    /// Relations that only told repeats of those triples.
    tests: Vec<pg_sys::Index>,
    /// Conditions of the relations and of their joins.
    pub clauses: Vec<*mut pg_sys::RestrictInfo>,
    /// Groups inside, in an order in which they can run.
    pub children: Vec<Inner>,
}

/// A group inside another one.
#[derive(Clone)]
pub struct Inner {
    /// How it takes part.
    pub kind: Kind,
    /// Its relations; its conditions are those that decide about a match.
    pub group: JoinTree,
}

impl JoinTree {
    /// A single base relation.
    ///
    /// # Safety
    /// `rel` is a live base relation.
    pub unsafe fn relation(rel: *mut pg_sys::RelOptInfo) -> Self {
        // SAFETY: the caller's promise.
        unsafe {
            Self {
                relations: vec![(*rel).relid],
                triples: Vec::new(),
                tests: Vec::new(),
                clauses: list_iter((*rel).baserestrictinfo).collect(),
                children: Vec::new(),
            }
        }
    }

    /// What a plan of the join has to have room for. `relids` are its relations.
    ///
    /// # Safety
    /// Live planner nodes.
    pub unsafe fn size(&self, relids: pg_sys::Relids) -> GroupSize {
        let is_own = |cell: Cell| self.relations.contains(&cell.0);
        let is_between_groups = |&&clause: &&*mut pg_sys::RestrictInfo| {
            // SAFETY: the caller's promise.
            let columns = unsafe { equal_columns(clause, relids) };
            columns.is_some_and(|(a, b)| !(is_own(a) && is_own(b)))
        };
        let children = self.children.iter();
        GroupSize {
            patterns: self.relations.len(),
            conditions: self.clauses.len(),
            equalities: self.clauses.iter().filter(is_between_groups).count(),
            // SAFETY: the caller's promise.
            children: children
                .map(|child| unsafe { child.group.size(relids) })
                .collect(),
        }
    }

    /// Number of relations, those of inner groups included.
    pub fn patterns(&self) -> usize {
        let inside = self.children.iter().map(|child| child.group.patterns());
        self.relations.len() + inside.sum::<usize>()
    }

    /// Whether a relation is only looked for (EXISTS, NOT EXISTS), so that its columns do not come out.
    pub fn hides(&self, relation: pg_sys::Index) -> bool {
        let mut children = self.children.iter();
        self.tests.contains(&relation)
            || children.any(|child| match child.kind {
                Kind::Semi | Kind::Anti => child.group.contains(relation),
                Kind::Left => child.group.hides(relation),
            })
    }

    fn contains(&self, relation: pg_sys::Index) -> bool {
        let mut groups = self.children.iter().map(|child| &child.group);
        self.relations.contains(&relation)
            || self.tests.contains(&relation)
            || groups.any(|group| group.contains(relation))
    }

    /// The group with one quad of each triple, where that is what the anti-join with `inner` leaves.
    ///
    /// # Safety
    /// As for [`Self::join`]; `restrictions` are those of an anti-join.
    pub unsafe fn without_repeats(
        &self,
        root: *mut pg_sys::PlannerInfo,
        inner: &Self,
        restrictions: *mut pg_sys::List,
    ) -> Option<Self> {
        // SAFETY: the caller's promise.
        unsafe {
            let [test] = inner.relations[..] else {
                return None;
            };
            if !inner.children.is_empty() || !inner.triples.is_empty() {
                return None;
            }
            let clauses: Vec<*mut pg_sys::RestrictInfo> = list_iter(restrictions).collect();
            let read = triples::repeats_of(root, test, &clauses)?;
            let can = self.relations.contains(&read) && triples::is_readable(root, read);
            can.then(|| {
                let mut group = self.clone();
                group.triples.push(read);
                group.tests.push(test);
                group
            })
        }
    }

    /// The join of two groups; `None` for kinds of joins that the node does not know.
    ///
    /// # Safety
    /// `joined` and `restrictions` are the planner's own for this join.
    pub unsafe fn join(
        mut self,
        mut inner: Self,
        kind: pg_sys::JoinType::Type,
        joined: *mut pg_sys::RelOptInfo,
        restrictions: *mut pg_sys::List,
    ) -> Option<Self> {
        use pg_sys::JoinType::*;
        // SAFETY: the caller's promise.
        unsafe {
            let clauses = list_iter::<pg_sys::RestrictInfo>(restrictions);
            let kind = match kind {
                JOIN_INNER => {
                    self.relations.append(&mut inner.relations);
                    self.triples.append(&mut inner.triples);
                    self.tests.append(&mut inner.tests);
                    self.clauses.append(&mut inner.clauses);
                    self.children.append(&mut inner.children);
                    self.clauses.extend(clauses);
                    return Some(self);
                }
                JOIN_LEFT => Kind::Left,
                JOIN_ANTI => Kind::Anti,
                JOIN_SEMI => {
                    let clauses: Vec<_> = clauses.collect();
                    let is_asked = |&clause: &_| may_be_asked_above(clause, (*joined).relids);
                    if clauses.iter().any(is_asked) {
                        return None;
                    }
                    inner.clauses.extend(clauses);
                    self.children.push(Inner {
                        kind: Kind::Semi,
                        group: inner,
                    });
                    return Some(self);
                }
                _ => return None,
            };
            for clause in clauses {
                // RINFO_IS_PUSHED_DOWN of nodes/pathnodes.h: such a condition is tested on the joined rows.
                let above = (*clause).is_pushed_down
                    || !pg_sys::bms_is_subset((*clause).required_relids, (*joined).relids);
                if above {
                    &mut self.clauses
                } else {
                    &mut inner.clauses
                }
                .push(clause);
            }
            self.children.push(Inner { kind, group: inner });
            Some(self)
        }
    }
}

/// Whether a column of EXISTS may be asked for above it, by a condition of its own (not the equality of two columns):
/// where its equivalence class has more members, PostgreSQL compares any of them with each other. No column above has
/// its value.
///
/// # Safety
/// A live clause of a join of `joined`.
unsafe fn may_be_asked_above(clause: *mut pg_sys::RestrictInfo, joined: pg_sys::Relids) -> bool {
    // SAFETY: the caller's promise.
    unsafe {
        let class = match (*clause).parent_ec.is_null() {
            true => (*clause).left_ec,
            false => (*clause).parent_ec,
        };
        let members = class
            .as_ref()
            .map_or(std::ptr::null_mut(), |class| class.ec_members);
        pg_sys::list_length(members) > 2 && equal_columns(clause, joined).is_none()
    }
}
