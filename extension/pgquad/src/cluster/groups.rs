//! Loose scans of a distributed store: the groups of each shard here and of each other node, put together.

use std::borrow::Borrow;
use std::cell::Cell;
use std::rc::Rc;

use pgquad_btree::{Filter, GroupCursor, Groups, Work};
use pgquad_cluster::groups::{decode_groups, GroupRequest, GroupSource, Merge};
use pgquad_cluster::Traffic;
use pgrx::check_for_interrupts;

use super::connection::Scope;
use super::own_writes::Written;
use super::protocol::damaged;
use crate::storage::LocalReader;

/// The groups of a range in all shards, ascending.
pub type ShardedGroups = Merge<Source>;

/// Where groups come from.
pub enum Source {
    /// A shard of this node.
    Here(Box<Here>),
    /// All shards of another node.
    There(Box<There>),
    /// All shards, by way of Citus, in a transaction that has written to some.
    Written(Box<OwnWrites>),
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
    /// What is asked next, with the number of groups asked for last; `None` at the end.
    pub request: Option<GroupRequest>,
}

/// All shards, by way of Citus.
pub struct OwnWrites {
    /// The table.
    pub written: Written,
    /// What is asked next, with the number of groups asked for last; `None` at the end.
    pub request: Option<GroupRequest>,
}

/// Groups that are asked for at most at once (8 MB): each time Citus makes all that are left.
const MAX_GROUPS: usize = 256 * 1024;
/// Groups that a node is asked for at most at once (2 MB).
const MAX_GROUPS_OF_NODE: usize = 64 * 1024;
/// How much more than the time before is asked for.
const GROWTH_FACTOR: usize = 8;

/// Groups that are counted at once.
const COUNTED_GROUPS: usize = 4096;

/// How many groups of a request shards have, and how many keys those have. No group is in two shards.
pub fn count<R: Borrow<LocalReader>>(
    shards: impl IntoIterator<Item = R>,
    order: usize,
    request: &GroupRequest,
) -> [u64; 2] {
    let (low, high) = request.range;
    let (depth, filters) = (usize::from(request.depth), &request.filters);
    let (mut groups, mut work) = (Groups::default(), Work::default());
    let mut sum = [0; 2];
    for shard in shards {
        let mut cursor = GroupCursor::new(low, high, depth, request.counting);
        loop {
            let (shard, enough) = (shard.borrow(), COUNTED_GROUPS);
            shard.groups(order, &mut cursor, filters, enough, &mut groups, &mut work);
            if groups.is_empty() {
                break;
            }
            check_for_interrupts!();
            sum[0] += groups.len() as u64;
            sum[1] += groups.counts.iter().sum::<u64>();
        }
    }
    sum
}

impl OwnWrites {
    fn take(&mut self, groups: &mut Groups) {
        let Some(request) = self.request.take() else {
            groups.clear(0);
            return;
        };
        let (depth, page) = (usize::from(request.depth), request.enough as usize);
        let (low, high) = &request.range;
        self.written
            .groups(depth, (low, high), &request.filters, page, groups);
        self.request = rest(request, groups);
    }
}

/// Asks for more groups than the time before, and at least for those that are wanted: whoever has taken some will take
/// more, and each time costs.
fn grow(request: &mut GroupRequest, wanted: usize, most: usize) {
    let more = request.enough as usize * GROWTH_FACTOR;
    request.enough = more.max(wanted).min(most) as u32;
}

/// The request for what comes after these groups; `None` where they are all that are left.
fn rest(request: GroupRequest, groups: &Groups) -> Option<GroupRequest> {
    let last = groups.len().checked_sub(1)?;
    let is_full = groups.len() >= request.enough as usize;
    is_full.then(|| request.after(&groups.key(last)))?
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
            Self::Written(own) => {
                if let Some(request) = &mut own.request {
                    grow(request, enough, MAX_GROUPS);
                }
            }
            Self::There(there) => {
                if let Some(request) = &mut there.request {
                    grow(request, enough, MAX_GROUPS_OF_NODE);
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
            Self::Written(own) => own.take(groups),
            Self::There(there) => match there.request.take() {
                Some(request) => {
                    let depth = usize::from(request.depth);
                    let answer = there.noting(|scope| scope.receive(there.group));
                    decode_groups(&answer, depth, groups).unwrap_or_else(|e| damaged(e));
                    there.request = rest(request, groups);
                }
                None => groups.clear(0),
            },
        }
    }
}
