//! Joins that are several joins: with a union, and on a variable that may be unbound.
//!
//! `R { A UNION B }` is `{ R A } UNION { R B }`: what R binds is looked up in A and in B, which otherwise would be
//! computed whole. And after `X OPTIONAL { Y }` a variable of Y is bound in the solutions of `X Y`, and unbound in
//! those of X without a match in Y. Rows of the first kind are joined by their value; those of the second kind are
//! compatible with everything.

use std::collections::HashSet;

use spargebra::algebra::{Expression, GraphPattern};
use spargebra::term::{GroundTerm, Variable};

use crate::expression::{has_exists, is_volatile};
use crate::path::is_flat;
use crate::service::certainly_bound;
use crate::translate::{alternatives, union_operands};

/// Most branches that a join is distributed over, and most triple patterns that are copied into each.
const MOST_BRANCHES: usize = 4;
pub(crate) const MOST_COPIED: usize = 8;
/// Most OPTIONALs of a pattern that is taken apart, and how many of them may be taken apart themselves: each doubles
/// the joins.
const MOST_OPTIONALS: usize = 12;
const MOST_APART: usize = 3;

/// The joins whose solutions together are those of a join of `operands`, if it is better taken apart.
pub(crate) fn of_join(operands: &[&GraphPattern]) -> Option<Vec<GraphPattern>> {
    (0..operands.len()).find_map(|at| {
        let others: Vec<&GraphPattern> = [&operands[..at], &operands[at + 1..]].concat();
        let arms = match operands[at] {
            union @ GraphPattern::Union { .. } => of_union(union, &others),
            GraphPattern::Values {
                variables,
                bindings,
            } => of_values(variables, bindings, &others),
            optional @ GraphPattern::LeftJoin { .. } => {
                let variable = connecting(optional, &others)?;
                split(optional, &variable).map(|(bound, unbound)| vec![bound, unbound])
            }
            _ => None,
        }?;
        let joined = |arm: GraphPattern| {
            let before = operands[..at].iter().map(|p| (*p).clone());
            let after = operands[at + 1..].iter().map(|p| (*p).clone());
            let parts = before.chain([arm]).chain(after);
            parts.reduce(join).expect("an operand at least")
        };
        Some(arms.into_iter().map(joined).collect())
    })
}

/// Left joins whose solutions together are those of the left join of `left` with `right`, if it is better taken apart.
pub(crate) fn of_left_join(
    left: &GraphPattern,
    right: &GraphPattern,
    filter: Option<&Expression>,
) -> Option<Vec<GraphPattern>> {
    if filter.is_some_and(|filter| is_volatile(filter) || has_exists(filter)) {
        return None;
    }
    if matches!(right, GraphPattern::Union { .. }) {
        return of_optional_union(left, right, filter);
    }
    let variable = connecting(left, &[right])?;
    let (bound, unbound) = split(left, &variable)?;
    let optional = |left: GraphPattern| GraphPattern::LeftJoin {
        left: Box::new(left),
        right: Box::new(right.clone()),
        expression: filter.cloned(),
    };
    Some(vec![optional(bound), optional(unbound)])
}

/// The branches of a union, where patterns around it can be looked up by what the others bind.
fn of_union(union: &GraphPattern, others: &[&GraphPattern]) -> Option<Vec<GraphPattern>> {
    let mut branches = Vec::new();
    union_operands(union, &mut branches);
    let copied: usize = others.iter().map(|other| patterns(other)).sum();
    if branches.len() > MOST_BRANCHES || copied == 0 || copied > MOST_COPIED {
        return None;
    }
    if alternatives(&branches).is_some() || !others.iter().all(|other| is_plain(other)) {
        return None;
    }
    let known = certain(others.iter().copied());
    let shares = |branch: &&GraphPattern| !certain([*branch]).is_disjoint(&known);
    let all_share = branches.iter().all(shares);
    all_share.then(|| branches.into_iter().cloned().collect())
}

/// Rows of VALUES.
type Rows = Vec<Vec<Option<GroundTerm>>>;

/// VALUES with UNDEF as one VALUES for each set of variables that rows bind: each is looked up by its own variables.
fn of_values(
    variables: &[Variable],
    bindings: &[Vec<Option<GroundTerm>>],
    others: &[&GraphPattern],
) -> Option<Vec<GraphPattern>> {
    let copied: usize = others.iter().map(|other| patterns(other)).sum();
    let all_bound = bindings.iter().flatten().all(Option::is_some);
    if all_bound || copied == 0 || copied > MOST_COPIED {
        return None;
    }
    if !others.iter().all(|other| is_plain(other)) {
        return None;
    }
    let mut arms: Vec<(Vec<bool>, Rows)> = Vec::new();
    for row in bindings {
        let bound: Vec<bool> = row.iter().map(Option::is_some).collect();
        let terms = row.iter().filter(|term| term.is_some()).cloned().collect();
        match arms.iter_mut().find(|arm| arm.0 == bound) {
            Some(arm) => arm.1.push(terms),
            None => arms.push((bound, vec![terms])),
        }
    }
    let values = |(bound, bindings): (Vec<bool>, _)| GraphPattern::Values {
        variables: variables
            .iter()
            .zip(bound)
            .filter(|(_, bound)| *bound)
            .map(|(variable, _)| variable.clone())
            .collect(),
        bindings,
    };
    (arms.len() <= MOST_BRANCHES).then(|| arms.into_iter().map(values).collect())
}

/// `L OPTIONAL { A UNION B }`: `L` with each branch, and what of `L` has a match in none.
fn of_optional_union(
    left: &GraphPattern,
    union: &GraphPattern,
    condition: Option<&Expression>,
) -> Option<Vec<GraphPattern>> {
    let branches = of_union(union, &[left])?;
    if !branches.iter().all(is_plain) {
        return None;
    }
    let filtered = |inner: GraphPattern| match condition {
        Some(expr) => filter(expr.clone(), inner),
        None => inner,
    };
    let unmatched = branches.iter().fold(left.clone(), |left, branch| {
        let matched = Expression::Exists(Box::new(filtered(branch.clone())));
        filter(Expression::Not(Box::new(matched)), left)
    });
    let matched = branches
        .into_iter()
        .map(|branch| filtered(join(left.clone(), branch)));
    Some(matched.chain([unmatched]).collect())
}

/// A variable of a pattern that may be unbound, and that alone connects it with the others.
fn connecting(optional: &GraphPattern, others: &[&GraphPattern]) -> Option<Variable> {
    if !others.iter().all(|other| is_plain(other)) || !is_copied(optional) {
        return None;
    }
    if optionals(optional) > MOST_OPTIONALS || apart(optional) > MOST_APART {
        return None;
    }
    uncertain(optional, others)
}

/// A variable that patterns bind and that is bound on both sides in no other way than by an OPTIONAL.
fn uncertain(optional: &GraphPattern, others: &[&GraphPattern]) -> Option<Variable> {
    let there = certain(others.iter().copied());
    let here = certain([optional]);
    if there.is_empty() || !here.is_disjoint(&there) {
        return None;
    }
    let mut found = None;
    optional.on_in_scope_variable(|variable| {
        if there.contains(variable) {
            found.get_or_insert_with(|| variable.clone());
        }
    });
    found
}

/// The solutions of a pattern in which an OPTIONAL in it has bound the variable, and the others. Those are fenced off:
/// there may be none, and nothing is to be joined with them before that is known.
fn split(pattern: &GraphPattern, variable: &Variable) -> Option<(GraphPattern, GraphPattern)> {
    let GraphPattern::LeftJoin {
        left,
        right,
        expression,
    } = pattern
    else {
        return None;
    };
    let optional = |left: GraphPattern| GraphPattern::LeftJoin {
        left: Box::new(left),
        right: right.clone(),
        expression: expression.clone(),
    };
    if in_scope(left, variable) {
        let (bound, unbound) = split(left, variable)?;
        return Some((optional(bound), optional(unbound)));
    }
    if !is_plain(right) || !certain([right.as_ref()]).contains(variable) {
        return None;
    }
    let filtered = |inner: GraphPattern| match expression {
        Some(expr) => filter(expr.clone(), inner),
        None => inner,
    };
    let bound = filtered(join(left.as_ref().clone(), right.as_ref().clone()));
    let matched = Expression::Exists(Box::new(filtered(right.as_ref().clone())));
    let unmatched = filter(Expression::Not(Box::new(matched)), left.as_ref().clone());
    let unbound = GraphPattern::Slice {
        inner: Box::new(unmatched),
        start: 0,
        length: None,
    };
    Some((bound, unbound))
}

pub(crate) fn join(left: GraphPattern, right: GraphPattern) -> GraphPattern {
    GraphPattern::Join {
        left: Box::new(left),
        right: Box::new(right),
    }
}

fn filter(expr: Expression, inner: GraphPattern) -> GraphPattern {
    GraphPattern::Filter {
        expr,
        inner: Box::new(inner),
    }
}

pub(crate) fn certain<'p>(
    patterns: impl IntoIterator<Item = &'p GraphPattern>,
) -> HashSet<&'p Variable> {
    let mut bound = HashSet::new();
    for pattern in patterns {
        certainly_bound(pattern, &mut bound);
    }
    bound
}

fn in_scope(pattern: &GraphPattern, variable: &Variable) -> bool {
    let mut found = false;
    pattern.on_in_scope_variable(|v| found |= v == variable);
    found
}

/// Whether a pattern is made of quad patterns that all have to match, so that it can stand in several places.
pub(crate) fn is_plain(pattern: &GraphPattern) -> bool {
    match pattern {
        GraphPattern::Bgp { .. } | GraphPattern::Values { .. } => true,
        GraphPattern::Path { path, .. } => is_flat(path),
        GraphPattern::Join { left, right } => is_plain(left) && is_plain(right),
        GraphPattern::Filter { inner, expr } => {
            is_plain(inner) && !is_volatile(expr) && !has_exists(expr)
        }
        _ => false,
    }
}

/// Whether a pattern that may be copied is plain, or has plain optional parts.
fn is_copied(pattern: &GraphPattern) -> bool {
    match pattern {
        GraphPattern::LeftJoin {
            left,
            right,
            expression,
        } => {
            let is_fixed = |e: &Expression| !is_volatile(e) && !has_exists(e);
            is_copied(left) && is_plain(right) && expression.as_ref().is_none_or(is_fixed)
        }
        // The fenced part of one that has been taken apart.
        GraphPattern::Slice {
            inner,
            start: 0,
            length: None,
        } => match inner.as_ref() {
            GraphPattern::Filter { inner, .. } => is_copied(inner),
            _ => false,
        },
        other => is_plain(other),
    }
}

/// Number of OPTIONALs that are not fenced off.
fn optionals(pattern: &GraphPattern) -> usize {
    match pattern {
        GraphPattern::LeftJoin { left, .. } => 1 + optionals(left),
        _ => 0,
    }
}

/// Number of OPTIONALs that are joined on a variable which an earlier one may leave unbound, and of the pattern itself.
fn apart(pattern: &GraphPattern) -> usize {
    match pattern {
        GraphPattern::LeftJoin { left, right, .. } => {
            usize::from(uncertain(left, &[right]).is_some()) + apart(left)
        }
        _ => 1,
    }
}

/// Number of triple patterns.
pub(crate) fn patterns(pattern: &GraphPattern) -> usize {
    match pattern {
        GraphPattern::Bgp { patterns } => patterns.len(),
        GraphPattern::Path { .. } => 1,
        GraphPattern::Join { left, right } => patterns(left) + patterns(right),
        GraphPattern::Filter { inner, .. } => patterns(inner),
        _ => 0,
    }
}
