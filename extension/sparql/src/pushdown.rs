//! Bindings that are pushed down into subqueries which group or remove duplicates.
//!
//! PostgreSQL computes such a subquery whole. Where selective patterns beside it bind one of its group keys, only their
//! groups count. So `:a :knows ?x { SELECT ?x (COUNT(*) AS ?n) { ?y :knows ?x } GROUP BY ?x }` groups
//! `{ SELECT DISTINCT ?x { :a :knows ?x } } ?y :knows ?x`. That is a semi-join reduction (magic sets): the patterns are
//! read twice, once for the set of their keys.

use std::collections::HashSet;

use spargebra::algebra::GraphPattern;
use spargebra::term::{NamedNodePattern, TermPattern, TriplePattern, Variable};

use crate::distribute::{certain, is_plain, join, patterns, MAX_COPIED_PATTERNS};
use crate::expression_properties::is_volatile;
use crate::pattern_properties::{alternatives, union_operands};

const RDF_TYPE: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type";

/// The subquery with what `beside` binds in it; `None` where nothing can be pushed down, or too little is known to be
/// gained.
pub(crate) fn into_subquery(
    subquery: &GraphPattern,
    beside: &[&GraphPattern],
) -> Option<GraphPattern> {
    if is_selective(subquery) {
        return None;
    }
    let plain = beside.iter().copied().filter(|pattern| is_plain(pattern));
    let source = plain.cloned().reduce(join)?;
    if !is_selective(&source) || patterns(&source) > MAX_COPIED_PATTERNS {
        return None;
    }
    let keys = certain([&source]).into_iter().cloned().collect();
    reduced(subquery, &source, keys, false)
}

/// A pattern restricted to the solutions that bind `keys` as `source` does. `distinct`: duplicates do not count.
fn reduced(
    pattern: &GraphPattern,
    source: &GraphPattern,
    mut keys: HashSet<Variable>,
    distinct: bool,
) -> Option<GraphPattern> {
    match pattern {
        GraphPattern::Distinct { inner } => Some(GraphPattern::Distinct {
            inner: Box::new(reduced(inner, source, keys, true)?),
        }),
        GraphPattern::Project { inner, variables } => {
            keys.retain(|key| variables.contains(key));
            Some(GraphPattern::Project {
                inner: Box::new(reduced(inner, source, keys, distinct)?),
                variables: variables.clone(),
            })
        }
        GraphPattern::OrderBy { inner, expression } => Some(GraphPattern::OrderBy {
            inner: Box::new(reduced(inner, source, keys, distinct)?),
            expression: expression.clone(),
        }),
        // HAVING, or a filter on what is made distinct.
        GraphPattern::Filter { inner, expr } if is_over_groups(inner) && !is_volatile(expr) => {
            Some(GraphPattern::Filter {
                inner: Box::new(reduced(inner, source, keys, distinct)?),
                expr: expr.clone(),
            })
        }
        GraphPattern::Extend {
            inner,
            variable,
            expression,
        } if is_over_groups(inner) && !is_volatile(expression) => {
            keys.remove(variable);
            Some(GraphPattern::Extend {
                inner: Box::new(reduced(inner, source, keys, distinct)?),
                variable: variable.clone(),
                expression: expression.clone(),
            })
        }
        GraphPattern::Group {
            inner,
            variables,
            aggregates,
        } => {
            keys.retain(|key| variables.contains(key));
            Some(GraphPattern::Group {
                inner: Box::new(joined(inner, source, keys)?),
                variables: variables.clone(),
                aggregates: aggregates.clone(),
            })
        }
        _ if distinct => joined(pattern, source, keys),
        _ => None,
    }
}

/// The pattern joined with the set of what `source` binds the keys to: of keys that the pattern binds in every
/// solution.
fn joined(
    pattern: &GraphPattern,
    source: &GraphPattern,
    keys: HashSet<Variable>,
) -> Option<GraphPattern> {
    let bound = certain([pattern]);
    let mut keys: Vec<Variable> = keys.into_iter().filter(|key| bound.contains(key)).collect();
    if keys.is_empty() {
        return None;
    }
    keys.sort_by(|a, b| a.as_str().cmp(b.as_str()));
    let set = GraphPattern::Distinct {
        inner: Box::new(GraphPattern::Project {
            inner: Box::new(source.clone()),
            variables: keys,
        }),
    };
    Some(joined_with(&set, pattern))
}

/// The pattern joined with a set of keys, each branch of a union on its own: a union is computed whole otherwise.
fn joined_with(set: &GraphPattern, pattern: &GraphPattern) -> GraphPattern {
    let mut branches = Vec::new();
    union_operands(pattern, &mut branches);
    if branches.len() == 1 || alternatives(&branches).is_some() {
        return join(set.clone(), pattern.clone());
    }
    let mut arms = branches.into_iter().map(|b| join(set.clone(), b.clone()));
    let first = arms.next().expect("two branches at least");
    arms.fold(first, |left, right| GraphPattern::Union {
        left: Box::new(left),
        right: Box::new(right),
    })
}

/// Whether there is a GROUP BY below filters and computed columns.
fn is_over_groups(pattern: &GraphPattern) -> bool {
    match pattern {
        GraphPattern::Group { .. } => true,
        GraphPattern::Filter { inner, .. } | GraphPattern::Extend { inner, .. } => {
            is_over_groups(inner)
        }
        _ => false,
    }
}

/// Whether a pattern names a subject or an object, which few quads have, or lists values. A class may have any number
/// of members.
fn is_selective(pattern: &GraphPattern) -> bool {
    match pattern {
        GraphPattern::Bgp { patterns } => patterns.iter().any(names_an_end),
        GraphPattern::Path {
            subject, object, ..
        } => is_constant(subject) || is_constant(object),
        GraphPattern::Values { .. } => true,
        GraphPattern::Join { left, right } | GraphPattern::Union { left, right } => {
            is_selective(left) || is_selective(right)
        }
        GraphPattern::LeftJoin { left: inner, .. }
        | GraphPattern::Minus { left: inner, .. }
        | GraphPattern::Filter { inner, .. }
        | GraphPattern::Extend { inner, .. }
        | GraphPattern::OrderBy { inner, .. }
        | GraphPattern::Project { inner, .. }
        | GraphPattern::Distinct { inner }
        | GraphPattern::Reduced { inner }
        | GraphPattern::Slice { inner, .. }
        | GraphPattern::Graph { inner, .. }
        | GraphPattern::Group { inner, .. } => is_selective(inner),
        GraphPattern::Service { .. } => true,
    }
}

fn names_an_end(triple: &TriplePattern) -> bool {
    let is_type =
        matches!(&triple.predicate, NamedNodePattern::NamedNode(p) if p.as_str() == RDF_TYPE);
    is_constant(&triple.subject) || is_constant(&triple.object) && !is_type
}

fn is_constant(term: &TermPattern) -> bool {
    matches!(term, TermPattern::NamedNode(_) | TermPattern::Literal(_))
}
