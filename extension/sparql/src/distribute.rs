//! Joins that are several joins: with a union, and on a variable that may be unbound.
//!
//! `R { A UNION B }` is `{ R A } UNION { R B }`: what R binds is looked up in A and in B, which otherwise would be
//! computed whole. And after `X OPTIONAL { Y }` a variable of Y is bound in the solutions of `X Y`, and unbound in
//! those of X without a match in Y. Rows of the first kind are joined by their value; those of the second kind are
//! compatible with everything. The same holds after `X BIND(.. AS ?y)`, whose expression may be an error, and of the
//! results of subqueries.

use std::collections::HashSet;

use spargebra::algebra::{AggregateExpression, Expression, GraphPattern};
use spargebra::term::{GroundTerm, Variable};

use crate::expression_properties::{conjunction, has_exists, is_volatile, used_variables};
use crate::pattern_properties::certainly_bound;
use crate::pattern_properties::is_flat;
use crate::pattern_properties::{alternatives, union_operands};

/// Most branches that a join is distributed over, and most triple patterns that are copied into each.
const MAX_BRANCHES: usize = 4;
pub(crate) const MAX_COPIED_PATTERNS: usize = 8;
/// Most OPTIONALs of a pattern that is taken apart, and how many of them may be taken apart themselves: each doubles
/// the joins.
const MAX_OPTIONALS: usize = 12;
const MAX_OPTIONALS_APART: usize = 3;
/// Most leaves of the patterns that are joined on a computed variable.
const MAX_LEAVES: usize = 32;

/// The joins whose solutions together are those of a join of `operands`, if it is better taken apart. `each`: all
/// patterns are connected by the graph that each of them binds, so that only computed variables are worth it.
pub(crate) fn of_join(operands: &[&GraphPattern], each: bool) -> Option<Vec<GraphPattern>> {
    (0..operands.len()).find_map(|at| {
        let others: Vec<&GraphPattern> = [&operands[..at], &operands[at + 1..]].concat();
        let arms = match operands[at] {
            GraphPattern::Bgp { .. } | GraphPattern::Path { .. } => None,
            other if each => of_computed(other, &others),
            union @ GraphPattern::Union { .. } => {
                of_union(union, &others).or_else(|| of_computed(union, &others))
            }
            GraphPattern::Values {
                variables,
                bindings,
            } => of_values(variables, bindings, &others),
            optional @ GraphPattern::LeftJoin { .. } => {
                let apart = connecting(optional, &others)
                    .and_then(|variable| split(optional, &variable))
                    .map(|(bound, unbound)| vec![bound, unbound]);
                apart.or_else(|| of_computed(optional, &others))
            }
            other => of_computed(other, &others),
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
/// `each`: as for [`of_join`].
pub(crate) fn of_left_join(
    left: &GraphPattern,
    right: &GraphPattern,
    filter: Option<&Expression>,
    each: bool,
) -> Option<Vec<GraphPattern>> {
    if filter.is_some_and(|filter| is_volatile(filter) || has_exists(filter)) {
        return None;
    }
    if matches!(right, GraphPattern::Union { .. }) && !each {
        return of_optional_union(left, right, filter);
    }
    let connecting = connecting(left, &[right]).filter(|_| !each);
    let apart = connecting.and_then(|variable| split(left, &variable));
    let arms = match apart {
        Some((bound, unbound)) => vec![bound, unbound],
        None => of_computed(left, &[right])?,
    };
    let optional = |left: GraphPattern| GraphPattern::LeftJoin {
        left: Box::new(left),
        right: Box::new(right.clone()),
        expression: filter.cloned(),
    };
    Some(arms.into_iter().map(optional).collect())
}

/// Filters whose solutions together are those of `inner` that pass `condition`, if its EXISTS look for a variable that
/// may be unbound.
pub(crate) fn of_filter(condition: &Expression, inner: &GraphPattern) -> Option<Vec<GraphPattern>> {
    let mut conjuncts = Vec::new();
    conjunction(condition, &mut conjuncts);
    let mut looked_for = Vec::new();
    for conjunct in conjuncts {
        match conjunct {
            Expression::Exists(pattern) => looked_for.push(pattern.as_ref()),
            Expression::Not(negated) => match negated.as_ref() {
                Expression::Exists(pattern) => looked_for.push(pattern.as_ref()),
                other if is_volatile(other) => return None,
                _ => {}
            },
            other if is_volatile(other) => return None,
            _ => {}
        }
    }
    let arms = looked_for
        .into_iter()
        .find_map(|pattern| of_computed(inner, &[pattern]))?;
    let filtered = |arm| filter(condition.clone(), arm);
    Some(arms.into_iter().map(filtered).collect())
}

/// The solutions of a pattern in which a variable is bound that connects it with the others, and those in which it is
/// not. The pattern is computed twice, which is little beside comparing each of its solutions with each of the others.
fn of_computed(pattern: &GraphPattern, others: &[&GraphPattern]) -> Option<Vec<GraphPattern>> {
    let all = || others.iter().copied().chain([pattern]);
    if !all().all(is_repeatable)
        || all().map(leaves).sum::<usize>() > MAX_LEAVES
        || all().map(computed_joins).sum::<usize>() > MAX_OPTIONALS_APART
    {
        return None;
    }
    let there = certain(others.iter().copied());
    let here = certain([pattern]);
    // What reads nothing has one solution or few.
    if leaves(pattern) == 0 || !computes(pattern) || optionals(pattern) > MAX_OPTIONALS {
        return None;
    }
    // Where other variables connect the two, the pattern is looked up by these. Then an expression is worth being
    // computed twice, groups and optional parts are not.
    let is_connected = !here.is_disjoint(&there);
    let mut variables = in_scope_variables(pattern);
    let connects = |v: &Variable| {
        let apart = !is_connected || is_assigned(pattern, v) && !groups(pattern);
        apart && there.contains(v) && !here.contains(v)
    };
    let variable = variables.remove(variables.iter().position(connects)?);
    Some(apart_by(&variable, pattern, variables))
}

/// The solutions of a pattern in which the variable is bound, and the others, in which the `rest` may be. What is
/// looked up for both kinds by OPTIONAL is looked up for each.
fn apart_by(variable: &Variable, pattern: &GraphPattern, rest: Vec<Variable>) -> Vec<GraphPattern> {
    if let GraphPattern::LeftJoin {
        left,
        right,
        expression,
    } = pattern
    {
        if in_scope(left, variable) {
            let mut rest = in_scope_variables(left);
            rest.retain(|v| v != variable);
            let optional = |arm| GraphPattern::LeftJoin {
                left: Box::new(arm),
                right: right.clone(),
                expression: expression.clone(),
            };
            let arms = apart_by(variable, left, rest).into_iter();
            return arms.map(optional).collect();
        }
    }
    let is_bound = Expression::Bound(variable.clone());
    let unbound = filter(Expression::Not(Box::new(is_bound.clone())), pattern.clone());
    let unbound = GraphPattern::Project {
        inner: Box::new(fenced(unbound)),
        variables: rest,
    };
    vec![filter(is_bound, pattern.clone()), unbound]
}

/// The branches of a union, where patterns around it can be looked up by what the others bind.
fn of_union(union: &GraphPattern, others: &[&GraphPattern]) -> Option<Vec<GraphPattern>> {
    let mut branches = Vec::new();
    union_operands(union, &mut branches);
    let copied: usize = others.iter().map(|other| patterns(other)).sum();
    if branches.len() > MAX_BRANCHES || copied == 0 || copied > MAX_COPIED_PATTERNS {
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
    if all_bound || copied == 0 || copied > MAX_COPIED_PATTERNS {
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
    (arms.len() <= MAX_BRANCHES).then(|| arms.into_iter().map(values).collect())
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
    if optionals(optional) > MAX_OPTIONALS || apart(optional) > MAX_OPTIONALS_APART {
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
    Some((bound, fenced(unmatched)))
}

/// The pattern, to be computed on its own.
fn fenced(pattern: GraphPattern) -> GraphPattern {
    GraphPattern::Slice {
        inner: Box::new(pattern),
        start: 0,
        length: None,
    }
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

fn in_scope_variables(pattern: &GraphPattern) -> Vec<Variable> {
    let mut variables = Vec::new();
    pattern.on_in_scope_variable(|v| {
        if !variables.contains(v) {
            variables.push(v.clone());
        }
    });
    variables
}

/// Whether a pattern is made of quad patterns that all have to match, so that it can stand in several places. Its
/// filters mention no variables but its own: within EXISTS others would have values.
pub(crate) fn is_plain(pattern: &GraphPattern) -> bool {
    match pattern {
        GraphPattern::Bgp { .. } | GraphPattern::Values { .. } => true,
        GraphPattern::Path { path, .. } => is_flat(path),
        GraphPattern::Join { left, right } => is_plain(left) && is_plain(right),
        GraphPattern::Filter { inner, expr } => {
            let is_own = |variable: &Variable| in_scope(inner, variable);
            is_plain(inner)
                && !is_volatile(expr)
                && !has_exists(expr)
                && used_variables(expr).iter().all(is_own)
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

/// Whether a pattern has the same solutions each time it is computed.
fn is_repeatable(pattern: &GraphPattern) -> bool {
    let is_fixed = |e: &Expression| !is_volatile(e);
    match pattern {
        GraphPattern::Bgp { .. } | GraphPattern::Values { .. } | GraphPattern::Path { .. } => true,
        GraphPattern::Join { left, right }
        | GraphPattern::Union { left, right }
        | GraphPattern::Minus { left, right } => is_repeatable(left) && is_repeatable(right),
        GraphPattern::LeftJoin {
            left,
            right,
            expression,
        } => {
            is_repeatable(left) && is_repeatable(right) && expression.as_ref().is_none_or(is_fixed)
        }
        GraphPattern::Filter { inner, expr } => is_repeatable(inner) && is_fixed(expr),
        GraphPattern::Extend {
            inner, expression, ..
        } => is_repeatable(inner) && is_fixed(expression),
        GraphPattern::Group {
            inner, aggregates, ..
        } => {
            let is_fixed = |aggregate: &AggregateExpression| match aggregate {
                AggregateExpression::CountSolutions { .. } => true,
                AggregateExpression::FunctionCall { expr, .. } => is_fixed(expr),
            };
            is_repeatable(inner) && aggregates.iter().all(|(_, aggregate)| is_fixed(aggregate))
        }
        GraphPattern::Graph { inner, .. }
        | GraphPattern::OrderBy { inner, .. }
        | GraphPattern::Project { inner, .. }
        | GraphPattern::Distinct { inner }
        | GraphPattern::Reduced { inner }
        | GraphPattern::Slice {
            inner,
            start: 0,
            length: None,
        } => is_repeatable(inner),
        // Which solutions are the first may differ.
        GraphPattern::Slice { .. } | GraphPattern::Service { .. } => false,
    }
}

/// The patterns that a pattern is made of.
fn children(pattern: &GraphPattern) -> Vec<&GraphPattern> {
    match pattern {
        GraphPattern::Bgp { .. } | GraphPattern::Values { .. } | GraphPattern::Path { .. } => {
            Vec::new()
        }
        GraphPattern::Join { left, right }
        | GraphPattern::LeftJoin { left, right, .. }
        | GraphPattern::Union { left, right }
        | GraphPattern::Minus { left, right } => vec![left, right],
        GraphPattern::Filter { inner, .. }
        | GraphPattern::Extend { inner, .. }
        | GraphPattern::Group { inner, .. }
        | GraphPattern::Graph { inner, .. }
        | GraphPattern::OrderBy { inner, .. }
        | GraphPattern::Project { inner, .. }
        | GraphPattern::Distinct { inner }
        | GraphPattern::Reduced { inner }
        | GraphPattern::Slice { inner, .. }
        | GraphPattern::Service { inner, .. } => vec![inner],
    }
}

/// Number of triple patterns, and of lists of values that are more than one row.
fn leaves(pattern: &GraphPattern) -> usize {
    let own = match pattern {
        GraphPattern::Bgp { patterns } => patterns.len(),
        GraphPattern::Path { .. } => 1,
        GraphPattern::Values { bindings, .. } => usize::from(bindings.len() > 1),
        _ => 0,
    };
    own + children(pattern).into_iter().map(leaves).sum::<usize>()
}

/// Whether there are groups or distinct solutions in the pattern.
fn groups(pattern: &GraphPattern) -> bool {
    let own = matches!(
        pattern,
        GraphPattern::Group { .. } | GraphPattern::Distinct { .. }
    );
    own || children(pattern).into_iter().any(groups)
}

/// Whether BIND, or an expression of SELECT, assigns the variable.
fn is_assigned(pattern: &GraphPattern, variable: &Variable) -> bool {
    let own = matches!(pattern, GraphPattern::Extend { variable: v, .. } if v == variable);
    let mut children = children(pattern).into_iter();
    own || children.any(|child| is_assigned(child, variable))
}

/// Number of joins with a part that computes variables: those that may be taken apart. OPTIONALs in a row that look for
/// the same variable are so together.
fn computed_joins(pattern: &GraphPattern) -> usize {
    let of_children: usize = children(pattern).into_iter().map(computed_joins).sum();
    let own = match pattern {
        GraphPattern::Join { left, right } => computes(left) || computes(right),
        GraphPattern::LeftJoin { left, right, .. } => {
            let together = match left.as_ref() {
                GraphPattern::LeftJoin { right: earlier, .. } => {
                    let known = certain([left.as_ref()]);
                    let (a, b) = (certain([earlier.as_ref()]), certain([right.as_ref()]));
                    !computes(right) && a.intersection(&b).any(|v| !known.contains(v))
                }
                _ => false,
            };
            !together && (computes(left) || computes(right))
        }
        _ => false,
    };
    usize::from(own) + of_children
}

fn computes(pattern: &GraphPattern) -> bool {
    let own = matches!(
        pattern,
        GraphPattern::Extend { .. } | GraphPattern::Group { .. }
    );
    own || children(pattern).into_iter().any(computes)
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
