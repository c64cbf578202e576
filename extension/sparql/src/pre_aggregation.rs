//! Groups of computed keys over the groups of the values that they are computed from.
//!
//! `SELECT (COUNT(*) AS ?n) { ?p :year ?y } GROUP BY (FLOOR(?y / 10) AS ?decade)` counts the solutions of each `?y`
//! first, which `Quad Groups` reads off the order of the quads. Then it adds up the counts of each decade. So the
//! expression is computed once for each value instead of each solution.

use spargebra::algebra::{
    AggregateExpression, AggregateFunction, Expression, Function, GraphPattern,
};
use spargebra::term::{NamedNodePattern, TermPattern, TriplePattern, Variable};

use crate::expression_properties::{any, is_volatile, used_variables};

/// The same groups over those of the one variable that all keys and filters depend on. `None` where that does not hold,
/// or where nothing that is computed is worth it. `count` is the variable of the number of solutions of each value.
pub(crate) fn by_value(
    inner: &GraphPattern,
    variables: &[Variable],
    aggregates: &[(Variable, AggregateExpression)],
    count: &Variable,
) -> Option<(GraphPattern, Vec<(Variable, AggregateExpression)>)> {
    let found = Computed::of(inner)?;
    let is_known = |variable: &Variable| found.knows(variable);
    let is_bound = |variable: &Variable| variable == found.subject || variable == found.value;
    if !found.heavy || !variables.iter().all(is_known) {
        return None;
    }
    let over_groups = |(name, aggregate): &(Variable, AggregateExpression)| {
        Some((
            name.clone(),
            over_groups(aggregate, is_known, is_bound, count)?,
        ))
    };
    let aggregates = aggregates.iter().map(over_groups).collect::<Option<_>>()?;
    Some((grouped(inner, found.value, count), aggregates))
}

/// Filters and computed variables over a single triple pattern that depend on nothing but its object.
struct Computed<'p> {
    subject: &'p Variable,
    value: &'p Variable,
    variables: Vec<&'p Variable>,
    heavy: bool,
}

impl<'p> Computed<'p> {
    fn of(pattern: &'p GraphPattern) -> Option<Self> {
        match pattern {
            GraphPattern::Bgp { patterns } => match patterns.as_slice() {
                [triple] => {
                    let (subject, value) = ends_of(triple)?;
                    Some(Self {
                        subject,
                        value,
                        variables: Vec::new(),
                        heavy: false,
                    })
                }
                _ => None,
            },
            GraphPattern::Extend {
                inner,
                variable,
                expression,
            } => {
                let mut found = Self::of(inner)?.with(expression)?;
                found.variables.push(variable);
                Some(found)
            }
            GraphPattern::Filter { inner, expr } => Self::of(inner)?.with(expr),
            _ => None,
        }
    }

    fn with(mut self, expression: &Expression) -> Option<Self> {
        let used = used_variables(expression);
        self.heavy |= is_heavy(expression);
        (!is_volatile(expression) && used.iter().all(|v| self.knows(v))).then_some(self)
    }

    fn knows(&self, variable: &Variable) -> bool {
        variable == self.value || self.variables.contains(&variable)
    }
}

/// Subject and object of a pattern with a constant predicate, if they are two variables.
fn ends_of(triple: &TriplePattern) -> Option<(&Variable, &Variable)> {
    match (&triple.subject, &triple.predicate, &triple.object) {
        (
            TermPattern::Variable(subject),
            NamedNodePattern::NamedNode(_),
            TermPattern::Variable(object),
        ) => (subject != object).then_some((subject, object)),
        _ => None,
    }
}

/// The aggregate over groups of values that equals an aggregate over solutions. `None` for an aggregate that depends on
/// more than the values and their counts. Variables that are bound in every solution are counted as solutions are.
fn over_groups(
    aggregate: &AggregateExpression,
    is_known: impl Fn(&Variable) -> bool,
    is_bound: impl Fn(&Variable) -> bool,
    count: &Variable,
) -> Option<AggregateExpression> {
    let sum = AggregateExpression::FunctionCall {
        name: AggregateFunction::Sum,
        expr: Expression::Variable(count.clone()),
        distinct: false,
    };
    match aggregate {
        AggregateExpression::CountSolutions { distinct: false } => Some(sum),
        AggregateExpression::CountSolutions { distinct: true } => None,
        AggregateExpression::FunctionCall {
            name: AggregateFunction::Count,
            expr: Expression::Variable(variable),
            distinct: false,
        } if is_bound(variable) => Some(sum),
        AggregateExpression::FunctionCall {
            name,
            expr,
            distinct,
        } => {
            let once = *distinct || matches!(name, AggregateFunction::Min | AggregateFunction::Max);
            let known = !is_volatile(expr) && used_variables(expr).iter().all(is_known);
            (once && known).then(|| aggregate.clone())
        }
    }
}

/// The pattern with the groups of the value in the place of the triple pattern.
fn grouped(pattern: &GraphPattern, value: &Variable, count: &Variable) -> GraphPattern {
    match pattern {
        GraphPattern::Extend {
            inner,
            variable,
            expression,
        } => GraphPattern::Extend {
            inner: Box::new(grouped(inner, value, count)),
            variable: variable.clone(),
            expression: expression.clone(),
        },
        GraphPattern::Filter { inner, expr } => GraphPattern::Filter {
            inner: Box::new(grouped(inner, value, count)),
            expr: expr.clone(),
        },
        quads => {
            let solutions = AggregateExpression::CountSolutions { distinct: false };
            GraphPattern::Group {
                inner: Box::new(quads.clone()),
                variables: vec![value.clone()],
                aggregates: vec![(count.clone(), solutions)],
            }
        }
    }
}

/// Whether computing an expression costs more than making a group. That is arithmetic, whose numbers are written and
/// read at each step, and what goes through a text several times. Parts of texts and what ids tell cost less where most
/// values are different. Parts of dates are worth it, for many things have one date.
fn is_heavy(expression: &Expression) -> bool {
    any(expression, |e| match e {
        Expression::Add(..)
        | Expression::Subtract(..)
        | Expression::Multiply(..)
        | Expression::Divide(..)
        | Expression::UnaryMinus(_) => true,
        Expression::FunctionCall(function, _) => matches!(
            function,
            Function::Abs
                | Function::Ceil
                | Function::Floor
                | Function::Round
                | Function::Replace
                | Function::Md5
                | Function::Sha1
                | Function::Sha256
                | Function::Sha384
                | Function::Sha512
                | Function::Year
                | Function::Month
                | Function::Day
        ),
        _ => false,
    })
}
