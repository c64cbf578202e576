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

/// Which of some patterns is the best with all that it leads to. They are ranked by the quads that they have for each of
/// the rows, of which filters leave the share `kept`. Perhaps it is `decided` that the first of them goes first.
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
/// one row that there is, and are ranked by the quads that they have. Those few of an alternative are read to see what
/// they lead to.
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
    let plan = plan_hash(estimator.query);
    if let Some(start) = estimator.feedback.starts.get(plan, ranked) {
        return put_first(ranked, start);
    }
    let samples = (greedy / LOOKAHEAD_ROWS_PER_KEY) as usize;
    let most = (greedy * LOOKAHEAD_READ_SHARE).min(MAX_LOOKAHEAD_READ as f64);
    let mut best = (0, greedy * LOOKAHEAD_GAIN);
    for (n, &(other, count)) in others.iter().enumerate().filter(|other| other.1 .1 <= most) {
        let fresh = followers(estimator, rows, scope, other, samples);
        match cost_of(estimator, &fresh, other, count) {
            // Costs of patterns that share no variable with the others do not compare.
            Some((cost, others)) if others == apart && cost < best.1 => best = (n + 1, cost),
            _ => {}
        }
    }
    let start = ranked[best.0].0;
    estimator.feedback.starts.add(plan, start, ranked);
    estimator.estimates.start = Some(start);
    put_first(ranked, start);
}

/// What the patterns that share a variable with `first` have for each of its quads, counted for so many of the keys.
fn followers<S: Source>(
    estimator: &mut Estimator<S>,
    one: &Bindings,
    scope: &Scope,
    first: usize,
    samples: usize,
) -> Vec<Fresh> {
    let query = estimator.query;
    let group = &query.layout.groups[scope.group];
    let (info, all) = (&group.patterns[first], SlotSet::ALL);
    if cannot_match(&info.pattern, one, &query.params) {
        return Vec::new();
    }
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
        return Vec::new();
    };
    let near = bits(scope.patterns & !(1 << first)).filter(|&i| {
        let follower = &group.patterns[i];
        follower.needs.meets(&info.needs) && !cannot_match(&follower.pattern, &rows, &query.params)
    });
    near.map(|i| {
        let pattern = &group.patterns[i].pattern;
        let orders = estimator.source.orders(pattern.table);
        let access = AccessPath::new(pattern, orders, &rows, &SlotSet::default());
        let each = sample(estimator.source, &access, &rows, &query.params, samples);
        Fresh {
            pattern: i,
            bound: access.bound,
            each,
        }
    })
    .collect()
}
