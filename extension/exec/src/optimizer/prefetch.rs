//! Prefetch: the quads of hash build sides that a run will probably need are asked for with its first message to other
//! nodes. So they take no round trip of their own. Sources may do the same for all reads of a run that comes again.

use crate::access::access_path::{cannot_match, AccessPath};
use crate::bindings::Bindings;
use crate::cost::READ_QUADS;
use crate::operators::hash_build::is_counted;
use crate::optimizer::build_feedback::{is_small, BuildRead};
use crate::optimizer::estimates::Estimates;
use crate::plan::condition::Value;
use crate::plan::layout::PatternInfo;
use crate::plan::query::Query;
use crate::plan::{ColumnNumber, Comparison, SlotSet};
use crate::source::{Prefetch, Source, Wanted};
use pgquad_btree::Order;
use rustc_hash::FxHasher;
use std::hash::{Hash, Hasher};

/// What tells plans apart, by their patterns and predicates, for what is remembered of them.
pub(crate) fn plan_hash(query: &Query) -> u64 {
    let mut hasher = FxHasher::default();
    query.tables.hash(&mut hasher);
    for group in &query.layout.groups[..query.layout.own] {
        group.patterns.len().hash(&mut hasher);
        for info in &group.patterns {
            info.pattern.hash(&mut hasher);
            let of_predicate = |c: &&Comparison| c.column == ColumnNumber::PREDICATE;
            for condition in info.pattern.conditions.iter().filter(of_predicate) {
                if let Value::One(predicate) = query.params[condition.param.index()] {
                    predicate.hash(&mut hasher);
                }
            }
        }
    }
    hasher.finish()
}

/// What tells runs apart: the plan and all its parameters.
pub(crate) fn run_hash(query: &Query) -> u64 {
    let mut hasher = FxHasher::default();
    plan_hash(query).hash(&mut hasher);
    query.params.hash(&mut hasher);
    hasher.finish()
}

/// The reads of build sides for the parameters of this run.
pub(crate) fn build_reads<S: Source>(
    query: &Query,
    source: &S,
    estimates: &Estimates,
    expected: &[BuildRead],
) -> (Vec<BuildRead>, Vec<Prefetch>) {
    let groups = &query.layout.groups[..query.layout.own];
    let patterns = || groups.iter().flat_map(|group| &group.patterns);
    let reads = expected.iter().filter_map(|read| {
        let info = patterns().find(|info| info.step == read.step)?;
        // Counting goes on until there are many keys, however many quads these have: only where that is known.
        let counted = estimates.counts[read.step];
        let is_large = counted.map_or(is_counted(read.mask), |quads| !is_small(quads, read.mask));
        let prefetch = build_read(query, source, info, read).filter(|_| !is_large)?;
        Some((*read, prefetch))
    });
    reads.unzip()
}

/// The read of a pattern's quads that its constants select.
fn build_read<S: Source>(
    query: &Query,
    source: &S,
    info: &PatternInfo,
    read: &BuildRead,
) -> Option<Prefetch> {
    let (pattern, params) = (&info.pattern, &query.params);
    let one_row = Bindings::one_row(query.slots);
    if cannot_match(pattern, &one_row, params) {
        return None;
    }
    let orders = source.orders(pattern.table);
    let in_orders = |orders: &[Order]| {
        AccessPath::with_keys(pattern, orders, &one_row, &SlotSet::default(), |_| false)
    };
    let access = in_orders(&[*orders.get(read.order)?]);
    let mut ranges = Vec::new();
    access.ranges(&one_row, 0, params, &mut ranges);
    let wanted = Wanted {
        table: pattern.table,
        order: read.order,
        ranges,
    };
    // The order serves these constants as well as any.
    let is_best = access.conditions() == in_orders(orders).conditions();
    is_best.then_some(Prefetch {
        wanted,
        mask: read.mask,
        enough: READ_QUADS.min(query.tuning.most),
    })
}
