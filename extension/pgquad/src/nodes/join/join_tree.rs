//! What a join relation of the planner joins: a tree of groups, put together join by join as PostgreSQL's search finds
//! them legal.
//!
//! Each join of two relations that have a description gets one of its own. An inner join merges two groups. A left,
//! semi or anti join puts the inner group into the outer one. PostgreSQL has worked out which conditions belong to
//! which join; nothing here re-decides that.

use crate::nodes::triples;
use crate::pg::list::list_iter;
use pgquad_exec::{Kind, MAX_SLOTS};
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

    /// Whether a plan has room for the variables of the join, about. It has one for each column that something above
    /// its relation needs; equal columns share one. Columns of an optional group have another one outside of it.
    /// `outer` are the columns of an outer input, and how the group takes part for its rows.
    ///
    /// # Safety
    /// Relations of the live planner state.
    pub unsafe fn fits(
        &self,
        root: *mut pg_sys::PlannerInfo,
        outer: Option<(usize, Option<Kind>)>,
    ) -> bool {
        // SAFETY: the caller's promise.
        let (own, copies) = unsafe { self.slots(root) };
        let outer = match outer {
            None => 0,
            // The rows of both have a number.
            Some((columns, Some(Kind::Left))) => columns + copies + 2,
            Some((columns, _)) => columns + 2,
        };
        own + outer <= MAX_SLOTS
    }

    /// Variables of the group and of those inside, about, and how many columns they stand for.
    unsafe fn slots(&self, root: *mut pg_sys::PlannerInfo) -> (usize, usize) {
        // SAFETY: the caller's promise; the array starts with the least attribute.
        unsafe {
            let needed = |&relation: &pg_sys::Index| {
                let rel = *(*root).simple_rel_array.add(relation as usize);
                let is_needed = |column: &i32| {
                    let at = (*column - i32::from((*rel).min_attr)) as usize;
                    !(*(*rel).attr_needed.add(at)).is_null()
                };
                (1..=4).filter(is_needed).count()
            };
            let columns: usize = self.relations.iter().map(needed).sum();
            let equates = |&&clause: &&*mut pg_sys::RestrictInfo| {
                (*clause).can_join && !(*clause).mergeopfamilies.is_null()
            };
            let shared = self.clauses.iter().filter(equates).count();
            let mut all = (columns.saturating_sub(shared), columns);
            for child in &self.children {
                let inside = child.group.slots(root);
                let copies = match child.kind {
                    Kind::Left => inside.1,
                    Kind::Semi | Kind::Anti => 0,
                };
                // The row outside that a row inside belongs to has one, too.
                all.0 += inside.0 + copies + 1;
                all.1 += copies;
            }
            all
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
