//! Look-ahead: what patterns lead to, beyond the rows that each of them makes by itself.
//!
//! Example: products have four types and ten reviews each, but hardly a review is by somebody of the country asked for.
//! The types look better to whoever counts the next rows only. The reviews with those who wrote them leave fewer rows
//! for all that follows.
//!
//! What patterns lead to is known of earlier probes (`chains.rs`), and of a look at the quads of possible first ones.

use crate::access::access_path::{cannot_match, AccessPath};
use crate::bindings::Bindings;
use crate::cost::{
    LOOKAHEAD_GAIN, LOOKAHEAD_READ_SHARE, LOOKAHEAD_ROWS, LOOKAHEAD_ROWS_PER_KEY,
    MAX_LOOKAHEAD_READ,
};
use crate::operators::index_probe::IndexProbe;
use crate::optimizer::chains::{Chain, Figures, Fresh};
use crate::optimizer::estimates::Estimator;
use crate::optimizer::prefetch::plan_hash;
use crate::optimizer::sampling::sample;
use crate::plan::layout::{bits, Scope};
use crate::plan::SlotSet;
use crate::source::Source;
use crate::tuning::Tuning;

fn figures<'a, S>(estimator: &'a Estimator<S>, scope: &Scope, fresh: &'a [Fresh]) -> Figures<'a> {
    Figures {
        query: estimator.query,
        feedback: estimator.feedback,
        group: scope.group,
        fresh,
        unknown: None,
    }
}

/// A pattern that is the best one with all that it leads to.
pub(crate) struct BestChain {
    /// Its place among those ranked.
    pub at: usize,
    /// It is better with what it leads to than by itself.
    pub leads_on: bool,
}

/// Which of some patterns is the best with all that it leads to. They are ranked by the quads that they have for each
/// of the rows, of which filters leave the share `kept`. Perhaps it is `decided` that the first of them goes first.
pub(crate) fn best_chain<S: Source>(
    estimator: &Estimator<S>,
    rows: &Bindings,
    scope: &Scope,
    ranked: &[(usize, f64)],
    kept: impl Fn(usize) -> f64,
    decided: bool,
) -> BestChain {
    let known = rows.known();
    let figures = figures(estimator, scope, &[]);
    let candidates = &ranked[..if decided { 1 } else { ranked.len() }];
    let mut best = (
        BestChain {
            at: 0,
            leads_on: false,
        },
        f64::INFINITY,
    );
    for (at, &(pattern, each)) in candidates.iter().enumerate() {
        let one = Chain::of_one(each, kept(pattern));
        let rank = figures.chain(pattern, one, &known, scope.patterns).rank();
        if rank < best.1 {
            let leads_on = rank < one.rank();
            best = (BestChain { at, leads_on }, rank);
        }
    }
    best.0
}

/// Puts that one of some patterns first with which the whole join has the fewest rows. They share no variable with the
/// one row that there is, and are ranked by the quads that they have. The quads of an alternative, which are few, are
/// read to see what they lead to.
pub(crate) fn choose_start<S: Source>(
    estimator: &mut Estimator<S>,
    rows: &Bindings,
    scope: &Scope,
    ranked: &mut [(usize, f64)],
) {
    let put_first = |ranked: &mut [(usize, f64)], start| {
        if let Some(at) = ranked.iter().position(|pattern| pattern.0 == start) {
            ranked[..=at].rotate_right(1);
        }
    };
    if let Some(start) = estimator.estimates.start {
        return put_first(ranked, start);
    }
    let query = estimator.query;
    let [(first, count), others @ ..] = &*ranked else {
        return;
    };
    let cost_of = |estimator: &Estimator<S>, fresh: &[Fresh], first, count| {
        figures(estimator, scope, fresh).cost(first, count, scope.patterns)
    };
    let Some((greedy, apart)) = cost_of(estimator, &[], *first, *count) else {
        return;
    };
    if greedy < LOOKAHEAD_ROWS {
        return;
    }
    let plan = plan_hash(query);
    if let Some(start) = estimator.feedback.starts.get(plan, ranked) {
        return put_first(ranked, start);
    }
    let mut budget = greedy * LOOKAHEAD_READ_SHARE;
    let mut best = (0, greedy * LOOKAHEAD_GAIN);
    for (n, &(other, count)) in others.iter().enumerate() {
        // What filters have left is not what would be read.
        let step = query.layout.groups[scope.group].patterns[other].step;
        let is_filtered = estimator.estimates.left[step].is_some();
        let near = followers(estimator, scope, other);
        let samples = (greedy / LOOKAHEAD_ROWS_PER_KEY).min(count).max(1.0);
        let reads = count + samples * near.len() as f64;
        if is_filtered || count > MAX_LOOKAHEAD_READ as f64 || reads > budget {
            continue;
        }
        // It is not read where it cannot be better: not if it led to nothing at all. Costs of patterns that share no
        // variable with the others do not compare.
        let is_better = |cost: Option<(f64, u64)>| {
            cost.filter(|(cost, others)| *others == apart && *cost < best.1)
        };
        if is_better(cost_of(estimator, &near, other, count)).is_none() {
            continue;
        }
        budget -= reads;
        let near = sample_followers(
            estimator,
            rows,
            (scope.group, other),
            near,
            samples as usize,
        );
        if let Some((cost, _)) = is_better(cost_of(estimator, &near, other, count)) {
            best = (n + 1, cost);
        }
    }
    let start = ranked[best.0].0;
    estimator.feedback.starts.add(plan, start, ranked);
    estimator.estimates.start = Some(start);
    put_first(ranked, start);
}

/// The patterns that share a variable with `first`, as if they had no quads for its own.
fn followers<S>(estimator: &Estimator<S>, scope: &Scope, first: usize) -> Vec<Fresh> {
    let figures = figures(estimator, scope, &[]);
    let patterns = &estimator.query.layout.groups[scope.group].patterns;
    let known = &patterns[first].needs;
    let others = bits(scope.patterns & !(1 << first));
    let near = others.filter(|&i| patterns[i].needs.meets(known));
    near.map(|pattern| Fresh {
        pattern,
        bound: figures.bound(pattern, known),
        each: 0.0,
    })
    .collect()
}

/// What these followers have for each quad of the pattern `first` of a group. It is read; the quads are counted for so
/// many of the keys.
fn sample_followers<S: Source>(
    estimator: &mut Estimator<S>,
    one: &Bindings,
    (group, first): (usize, usize),
    mut followers: Vec<Fresh>,
    samples: usize,
) -> Vec<Fresh> {
    let query = estimator.query;
    let group = &query.layout.groups[group];
    let (info, all) = (&group.patterns[first], SlotSet::ALL);
    let orders = estimator.source.orders(info.pattern.table);
    let access = AccessPath::new(&info.pattern, orders, one, &all);
    let tuning = Tuning {
        first: MAX_LOOKAHEAD_READ,
        most: MAX_LOOKAHEAD_READ,
        ..query.tuning
    };
    let mut probe = IndexProbe::new(
        estimator.source,
        access,
        one.clone(),
        all,
        &query.params,
        tuning,
    );
    let Some(rows) = probe.next(estimator.source, &query.params) else {
        return followers;
    };
    for follower in &mut followers {
        let pattern = &group.patterns[follower.pattern].pattern;
        if cannot_match(pattern, &rows, &query.params) {
            continue;
        }
        let orders = estimator.source.orders(pattern.table);
        let access = AccessPath::new(pattern, orders, &rows, &SlotSet::default());
        follower.each = sample(estimator.source, &access, &rows, &query.params, samples);
    }
    followers
}
