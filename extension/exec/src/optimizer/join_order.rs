//! Adaptive join order: each batch chooses its next pattern, the one with the lowest cardinality per row
//! (`estimates.rs`; compare Eddies, Avnur and Hellerstein, SIGMOD 2000). Where that makes many rows, what the patterns
//! lead to counts, too (`lookahead.rs`).

use crate::bindings::Bindings;
use crate::cost::{
    CLOSE_LOOK_PATTERNS, CLOSE_LOOK_ROWS, FEW_QUADS_PER_ROW, FILTER_SELECTIVITY,
    LOOKAHEAD_MULTIPLIES, LOOKAHEAD_NEXT_ROWS, LOOKAHEAD_START_ROWS, MAX_CHAINED_PATTERNS,
};
use crate::optimizer::estimates::Estimator;
use crate::optimizer::lookahead::{best_chain, choose_start};
use crate::optimizer::star_planning::{plan_star, StarPlan};
use crate::plan::layout::{bits, Ahead, Scope};
use crate::plan::query::PatternAt;
use crate::plan::Kind;
use crate::source::Source;
use smallvec::{smallvec, SmallVec};

/// Patterns of a group, and what is known of them. There is a choice for every batch, so that these lists are in place.
type Few<T> = SmallVec<[T; 16]>;

/// What to do next with a batch.
pub(crate) enum Next {
    Pattern(usize, f64),
    Child(usize),
    /// Several parts of the group as one step.
    Star(StarPlan),
}

/// What to do next with rows in the innermost of these groups, which is not done; `stars` may be made. `ahead`: what
/// was chosen already, by whoever gave these rows away.
pub(crate) fn choose<S: Source>(
    estimator: &mut Estimator<S>,
    rows: &Bindings,
    scopes: &[Scope],
    stars: bool,
    ahead: Option<Ahead>,
) -> Next {
    let (query, scope) = (estimator.query, &scopes[scopes.len() - 1]);
    let group = &query.layout.groups[scope.group];
    let known = rows.known();
    let runnable = |i: &usize| group.children[*i].needs.within(&known);
    if let Some(test) = bits(scope.children)
        .filter(runnable)
        .find(|&i| group.children[i].kind != Kind::Left)
    {
        match ahead {
            Some(Ahead::Pattern(_)) => {}
            Some(Ahead::Child(i)) if runnable(&i) => return Next::Child(i),
            _ => return Next::Child(test),
        }
    }
    let optional = bits(scope.children).find(runnable);
    if bits(scope.patterns).nth(1).is_none() && optional.is_none() {
        if let Some(only) = bits(scope.patterns).next() {
            return Next::Pattern(only, f64::NAN);
        }
    }
    let by_value = |i: usize| group.patterns[i].keyed.is_some();
    let connected = |i: usize| group.patterns[i].needs.meets(&known) || by_value(i);
    let near: Few<usize> = bits(scope.patterns).filter(|&i| connected(i)).collect();
    let far: Few<usize> = bits(scope.patterns).filter(|&i| !connected(i)).collect();
    // An optional group goes first where it alone leads on to the patterns that are left.
    if let (true, Some(i)) = (near.is_empty(), optional) {
        let leads = far
            .iter()
            .any(|&p| group.patterns[p].needs.meets(&group.children[i].binds));
        if far.is_empty() || leads {
            let alone = !stars || !far.is_empty();
            let parts = (!alone).then(|| plan_star(estimator, rows, scope, &[]));
            return parts.flatten().map_or(Next::Child(i), Next::Star);
        }
    }
    // A filter that a pattern makes testable leaves fewer rows for what comes after.
    let tested = |i: usize| {
        let mut after = known;
        after.add_all(&group.patterns[i].needs);
        bits(scope.filters)
            .filter(|&f| group.filters[f].1.within(&after))
            .count()
    };
    let tested: Few<i32> = match scope.filters {
        0 => smallvec![0; group.patterns.len()],
        _ => (0..group.patterns.len())
            .map(|i| tested(i) as i32)
            .collect(),
    };
    let kept = |i: usize| FILTER_SELECTIVITY.powi(tested[i]);
    let rows_left = |i: usize, expected: f64| expected * kept(i);
    let at = |pattern: usize| PatternAt {
        group: scope.group,
        pattern,
    };
    if estimator.source.is_remote() {
        let all = near.iter().chain(&far).map(|&i| at(i));
        estimator.foresee(rows, &known, scopes, all);
    }
    let mut ranked: Few<(usize, f64)> = Few::new();
    for &i in near.iter().chain(&far) {
        let expected = estimator.expected(rows, &known, at(i), false);
        ranked.push((i, expected));
    }
    // To see what filters leave takes longer than to join a few rows.
    if ranked.iter().all(|r| r.1 > FEW_QUADS_PER_ROW) {
        for (i, expected) in &mut ranked[near.len()..] {
            *expected = estimator.count_left(rows, scope, *i, *expected);
        }
    }
    // What shares no variable multiplies the rows, whatever comes next.
    let mut place = 0;
    ranked.retain(|(_, expected)| {
        place += 1;
        place <= near.len() || near.is_empty() || *expected <= 1.0
    });
    let by_rows_left =
        |a: &(usize, f64), b: &(usize, f64)| rows_left(a.0, a.1).total_cmp(&rows_left(b.0, b.1));
    ranked.sort_by(by_rows_left);
    if let Some(Ahead::Pattern(first)) = ahead {
        match ranked.iter().position(|r| r.0 == first) {
            Some(at) => ranked[..=at].rotate_right(1),
            None => ranked.insert(0, (first, f64::NAN)),
        }
    } else if rows.len >= CLOSE_LOOK_ROWS && ranked.len() > 1 {
        // A large batch deserves a closer look at the best few.
        let close = ranked.len().min(CLOSE_LOOK_PATTERNS);
        for (i, expected) in &mut ranked[..close] {
            if near.contains(i) {
                *expected = estimator.expected(rows, &known, at(*i), true);
            }
        }
        ranked[..close].sort_by(by_rows_left);
    }
    if let [(_, expected), _, ..] = ranked[..] {
        let is_whole_group = scope.patterns.count_ones() as usize == group.patterns.len();
        let is_start = rows.len == 1 && scopes.len() == 1 && is_whole_group;
        let is_small = scope.patterns.count_ones() <= MAX_CHAINED_PATTERNS;
        if near.is_empty() && is_start && is_small && ahead.is_none() && !query.limited {
            if expected >= LOOKAHEAD_START_ROWS {
                choose_start(estimator, rows, scope, &mut ranked);
            }
        } else if !near.is_empty() && is_small && expected * rows.len as f64 >= LOOKAHEAD_NEXT_ROWS
        {
            let decided = matches!(ahead, Some(Ahead::Pattern(_)));
            let best = best_chain(estimator, rows, scope, &ranked, kept, decided);
            ranked[..=best.at].rotate_right(1);
            if best.leads_on {
                // What multiplies the rows waits for what the first leads to.
                let first = ranked[0].0;
                ranked.retain(|r| r.0 == first || r.1 < LOOKAHEAD_MULTIPLIES);
            }
        }
    }
    if stars {
        if let Some(parts) = plan_star(estimator, rows, scope, &ranked) {
            return Next::Star(parts);
        }
    }
    match (ranked.first(), optional) {
        (Some(&(i, expected)), _) => Next::Pattern(i, expected),
        (None, Some(i)) => Next::Child(i),
        (None, None) => unreachable!("a group that is not done has a step that can be taken"),
    }
}
