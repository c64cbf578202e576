//! What can be told of an expression without translating it.

use spargebra::algebra::{Expression, Function};
use spargebra::term::Variable;

/// The parts of an expression that all have to be true.
pub(crate) fn conjunction<'e>(expression: &'e Expression, conjuncts: &mut Vec<&'e Expression>) {
    match expression {
        Expression::And(a, b) => {
            conjunction(a, conjuncts);
            conjunction(b, conjuncts);
        }
        other => conjuncts.push(other),
    }
}

/// Variables that are bound where the expression is true, because it asks for that.
pub(crate) fn tested_bound(expression: &Expression) -> Vec<&Variable> {
    let mut conjuncts = Vec::new();
    conjunction(expression, &mut conjuncts);
    let tested = conjuncts.into_iter().filter_map(|e| match e {
        Expression::Bound(variable) => Some(variable),
        _ => None,
    });
    tested.collect()
}

/// Calls `visit` on the expression and all below it, without going into EXISTS patterns.
fn walk<'e>(expression: &'e Expression, visit: &mut impl FnMut(&'e Expression)) {
    visit(expression);
    match expression {
        Expression::NamedNode(_)
        | Expression::Literal(_)
        | Expression::Variable(_)
        | Expression::Bound(_)
        | Expression::Exists(_) => {}
        Expression::Or(a, b)
        | Expression::And(a, b)
        | Expression::Equal(a, b)
        | Expression::SameTerm(a, b)
        | Expression::Greater(a, b)
        | Expression::GreaterOrEqual(a, b)
        | Expression::Less(a, b)
        | Expression::LessOrEqual(a, b)
        | Expression::Add(a, b)
        | Expression::Subtract(a, b)
        | Expression::Multiply(a, b)
        | Expression::Divide(a, b) => {
            walk(a, visit);
            walk(b, visit);
        }
        Expression::In(a, list) => {
            walk(a, visit);
            list.iter().for_each(|e| walk(e, visit));
        }
        Expression::UnaryPlus(a) | Expression::UnaryMinus(a) | Expression::Not(a) => walk(a, visit),
        Expression::If(a, b, c) => {
            walk(a, visit);
            walk(b, visit);
            walk(c, visit);
        }
        Expression::Coalesce(list) | Expression::FunctionCall(_, list) => {
            list.iter().for_each(|e| walk(e, visit));
        }
    }
}

pub(crate) fn any(expression: &Expression, test: impl Fn(&Expression) -> bool) -> bool {
    let mut found = false;
    walk(expression, &mut |e| found |= test(e));
    found
}

/// Whether two evaluations may differ.
pub(crate) fn is_volatile(expression: &Expression) -> bool {
    any(expression, |e| match e {
        Expression::FunctionCall(name, _) => matches!(
            name,
            Function::Rand | Function::Uuid | Function::StrUuid | Function::BNode
        ),
        // What is in the pattern is not looked at: it is rarely repeated, and then costly in any case.
        Expression::Exists(_) => true,
        _ => false,
    })
}

/// Whether BNODE with an argument occurs, which is the same node for the same argument within one solution.
pub(crate) fn needs_row(expression: &Expression) -> bool {
    any(
        expression,
        |e| matches!(e, Expression::FunctionCall(Function::BNode, arguments) if !arguments.is_empty()),
    )
}

/// Whether EXISTS occurs.
pub(crate) fn has_exists(expression: &Expression) -> bool {
    any(expression, |e| matches!(e, Expression::Exists(_)))
}

/// Variables that the expression itself mentions; one with EXISTS mentions a variable that nothing binds.
pub(crate) fn used_variables(expression: &Expression) -> Vec<Variable> {
    let mut variables = Vec::new();
    walk(expression, &mut |e| match e {
        Expression::Variable(v) | Expression::Bound(v) => variables.push(v.clone()),
        _ => {}
    });
    variables
}
