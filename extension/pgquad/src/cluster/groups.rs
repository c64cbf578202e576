//! Loose scans of a distributed store: the groups of each shard here and of each other node, put together.

use std::cell::Cell;
use std::rc::Rc;

use pgquad_btree::{Filter, GroupCursor, Groups, Key, Work};
use pgquad_cluster::groups::{decode_groups, GroupRequest, GroupSource, Merge};
use pgquad_cluster::Traffic;

use super::answer::damaged;
use super::connection::Scope;
use crate::storage::LocalReader;

/// The groups of a range in all shards, ascending.
pub type ShardedGroups = Merge<Source>;

/// Where groups come from.
pub enum Source {
    /// A shard of this node.
    Here(Box<Here>),
    /// All shards of another node.
    There(Box<There>),
}

/// A shard of this node.
pub struct Here {
    /// The shard.
    pub reader: Rc<LocalReader>,
    /// Number of the order in it.
    pub order: usize,
    /// Progress.
    pub cursor: GroupCursor,
    /// Conditions on columns of the key.
    pub filters: Vec<Filter>,
    /// Groups asked for.
    pub enough: usize,
}

/// All shards of another node.
pub struct There {
    /// The group of the node.
    pub group: i32,
    /// Sessions of the statement.
    pub scope: Rc<Scope>,
    /// Where what goes over the wire is noted.
    pub traffic: Rc<Cell<Traffic>>,
    /// What is asked next; `None` at the end.
    pub request: Option<GroupRequest>,
}

impl There {
    fn noting<T>(&self, body: impl FnOnce(&Scope) -> T) -> T {
        let before = self.scope.traffic();
        let result = body(&self.scope);
        let mut traffic = self.traffic.get();
        traffic += self.scope.traffic() - before;
        self.traffic.set(traffic);
        result
    }
}

impl GroupSource for Source {
    fn ask(&mut self, enough: usize) {
        match self {
            Self::Here(here) => here.enough = enough,
            Self::There(there) => {
                if let Some(request) = &mut there.request {
                    request.enough = enough.min(u32::MAX as usize) as u32;
                    let message = request.encode();
                    there.noting(|scope| scope.send(there.group, &message));
                }
            }
        }
    }

    fn take(&mut self, groups: &mut Groups) {
        match self {
            Self::Here(here) => {
                let work = &mut Work::default();
                let (filters, enough) = (&here.filters, here.enough);
                let cursor = &mut here.cursor;
                here.reader
                    .groups(here.order, cursor, filters, enough, groups, work);
            }
            Self::There(there) => match there.request.take() {
                Some(request) => {
                    let depth = usize::from(request.depth);
                    let answer = there.noting(|scope| scope.receive(there.group));
                    decode_groups(&answer, depth, groups).unwrap_or_else(|e| damaged(e));
                    let last: Option<Key> = groups.len().checked_sub(1).map(|n| groups.key(n));
                    there.request = last.and_then(|last| request.after(&last));
                }
                None => groups.clear(0),
            },
        }
    }
}
