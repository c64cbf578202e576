//! What can be told of a graph pattern without translating it.

use std::collections::HashSet;

use spargebra::algebra::{
    AggregateExpression, AggregateFunction, Expression, GraphPattern,
    PropertyPathExpression as Path,
};
use spargebra::term::{GroundTerm, NamedNodePattern, TermPattern, TriplePattern, Variable};

use crate::expression_properties::tested_bound;
use crate::node::Node;

/// The operands of nested joins, from left to right.
pub(crate) fn join_operands<'p>(pattern: &'p GraphPattern, operands: &mut Vec<&'p GraphPattern>) {
    match pattern {
        GraphPattern::Join { left, right } => {
            join_operands(left, operands);
            join_operands(right, operands);
        }
        other => operands.push(other),
    }
}

/// The branches of nested unions, from left to right.
pub(crate) fn union_operands<'p>(pattern: &'p GraphPattern, operands: &mut Vec<&'p GraphPattern>) {
    match pattern {
        GraphPattern::Union { left, right } => {
            union_operands(left, operands);
            union_operands(right, operands);
        }
        other => operands.push(other),
    }
}

/// Subject, predicates and object when the branches of a union are the same triple pattern with different predicates:
/// every quad with one of them is a solution, once.
pub(crate) fn alternatives(branches: &[&GraphPattern]) -> Option<(Node, Vec<String>, Node)> {
    let mut ends: Option<(Node, Node)> = None;
    let mut predicates: Vec<String> = Vec::new();
    for branch in branches {
        let GraphPattern::Bgp { patterns } = branch else {
            return None;
        };
        let [triple] = patterns.as_slice() else {
            return None;
        };
        let NamedNodePattern::NamedNode(iri) = &triple.predicate else {
            return None;
        };
        let own = (Node::from(&triple.subject), Node::from(&triple.object));
        let predicate = iri.to_string();
        if ends.as_ref().is_some_and(|known| *known != own) || predicates.contains(&predicate) {
            return None;
        }
        ends = Some(own);
        predicates.push(predicate);
    }
    ends.map(|(subject, object)| (subject, predicates, object))
}

/// Whether every solution of the pattern needs quads of the active graph in each of its parts, so that the graph can be
/// read off them.
pub(crate) fn reads_graph(pattern: &GraphPattern) -> bool {
    match pattern {
        GraphPattern::Bgp { patterns } => !patterns.is_empty(),
        GraphPattern::Join { left, right } => {
            (reads_graph(left) && (reads_graph(right) || is_constant(right)))
                || (reads_graph(right) && is_constant(left))
        }
        GraphPattern::LeftJoin { left, right, .. }
        | GraphPattern::Union { left, right }
        | GraphPattern::Minus { left, right } => reads_graph(left) && reads_graph(right),
        GraphPattern::Filter { inner, .. } | GraphPattern::Extend { inner, .. } => {
            reads_graph(inner)
        }
        GraphPattern::Path { path, .. } => is_flat(path),
        _ => false,
    }
}

/// Whether the pattern reads no graph at all.
fn is_constant(pattern: &GraphPattern) -> bool {
    matches!(pattern, GraphPattern::Values { .. })
}

/// Whether the path is made of quad patterns that all have to match: nothing of it can have length zero or any length.
pub(crate) fn is_flat(path: &Path) -> bool {
    match path {
        Path::NamedNode(_) | Path::NegatedPropertySet(_) => true,
        Path::Reverse(inner) => is_flat(inner),
        Path::Sequence(a, b) | Path::Alternative(a, b) => is_flat(a) && is_flat(b),
        Path::ZeroOrMore(_) | Path::OneOrMore(_) | Path::ZeroOrOne(_) => false,
    }
}

/// Variables that are bound in every solution of the pattern.
pub(crate) fn certainly_bound<'p>(pattern: &'p GraphPattern, bound: &mut HashSet<&'p Variable>) {
    match pattern {
        GraphPattern::Bgp { patterns } => {
            for triple in patterns {
                bound.extend(triple_variables(triple));
            }
        }
        GraphPattern::Path {
            subject, object, ..
        } => bound.extend([subject, object].into_iter().filter_map(as_variable)),
        GraphPattern::Join { left, right } => {
            certainly_bound(left, bound);
            certainly_bound(right, bound);
        }
        GraphPattern::Union { left, right } => {
            let (mut a, mut b) = (HashSet::new(), HashSet::new());
            certainly_bound(left, &mut a);
            certainly_bound(right, &mut b);
            bound.extend(a.intersection(&b).copied());
        }
        GraphPattern::LeftJoin { left: inner, .. }
        | GraphPattern::Minus { left: inner, .. }
        | GraphPattern::OrderBy { inner, .. }
        | GraphPattern::Distinct { inner }
        | GraphPattern::Reduced { inner }
        | GraphPattern::Slice { inner, .. }
        | GraphPattern::Service {
            inner,
            silent: false,
            ..
        } => certainly_bound(inner, bound),
        GraphPattern::Service { silent: true, .. } => {}
        GraphPattern::Graph { name, inner } => {
            if let NamedNodePattern::Variable(variable) = name {
                bound.insert(variable);
            }
            certainly_bound(inner, bound);
        }
        GraphPattern::Values {
            variables,
            bindings,
        } => bound.extend(
            variables
                .iter()
                .enumerate()
                .filter_map(|(place, variable)| {
                    let always = |row: &Vec<Option<GroundTerm>>| row[place].is_some();
                    bindings.iter().all(always).then_some(variable)
                }),
        ),
        GraphPattern::Project { inner, variables } => {
            let mut of_inner = HashSet::new();
            certainly_bound(inner, &mut of_inner);
            bound.extend(variables.iter().filter(|v| of_inner.contains(v)));
        }
        GraphPattern::Filter { inner, expr } => {
            let mut of_inner = HashSet::new();
            inner.on_in_scope_variable(|v| {
                of_inner.insert(v);
            });
            let tested = tested_bound(expr).into_iter();
            bound.extend(tested.filter(|v| of_inner.contains(v)));
            certainly_bound(inner, bound);
        }
        GraphPattern::Extend {
            inner,
            variable,
            expression,
        } => {
            let mut of_inner = HashSet::new();
            certainly_bound(inner, &mut of_inner);
            if is_certain(expression, &of_inner) {
                bound.insert(variable);
            }
            bound.extend(of_inner);
        }
        GraphPattern::Group {
            inner,
            variables,
            aggregates,
        } => {
            let mut of_inner = HashSet::new();
            certainly_bound(inner, &mut of_inner);
            let is_certain = |(_, aggregate): &&(Variable, AggregateExpression)| match aggregate {
                AggregateExpression::CountSolutions { .. }
                | AggregateExpression::FunctionCall {
                    name: AggregateFunction::Count,
                    ..
                } => true,
                // A group has a solution, where there are keys.
                AggregateExpression::FunctionCall {
                    name:
                        AggregateFunction::Sample | AggregateFunction::Min | AggregateFunction::Max,
                    expr,
                    ..
                } => !variables.is_empty() && is_certain(expr, &of_inner),
                AggregateExpression::FunctionCall { .. } => false,
            };
            bound.extend(aggregates.iter().filter(is_certain).map(|(v, _)| v));
            bound.extend(variables.iter().filter(|v| of_inner.contains(v)));
        }
    }
}

/// Whether the expression is never an error, given the variables that are bound.
fn is_certain(expression: &Expression, bound: &HashSet<&Variable>) -> bool {
    match expression {
        Expression::NamedNode(_) | Expression::Literal(_) | Expression::Bound(_) => true,
        Expression::Variable(variable) => bound.contains(variable),
        _ => false,
    }
}

fn triple_variables(triple: &TriplePattern) -> impl Iterator<Item = &Variable> {
    let predicate = match &triple.predicate {
        NamedNodePattern::Variable(variable) => Some(variable),
        NamedNodePattern::NamedNode(_) => None,
    };
    [
        as_variable(&triple.subject),
        predicate,
        as_variable(&triple.object),
    ]
    .into_iter()
    .flatten()
}

fn as_variable(term: &TermPattern) -> Option<&Variable> {
    match term {
        TermPattern::Variable(variable) => Some(variable),
        _ => None,
    }
}
