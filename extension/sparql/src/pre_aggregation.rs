//! Groups of computed keys over the groups of the values that they are computed from.
//!
//! `SELECT (COUNT(*) AS ?n) { ?p :year ?y } GROUP BY (FLOOR(?y / 10) AS ?decade)` counts the solutions of each `?y`
//! first, which `Quad Groups` reads off the order of the quads. Then it adds up the counts of each decade. So the
//! expression is computed once for each value instead of each solution. `{ ?s ?p ?o }` by what is computed from `?p` is
//! answered by the predicates.

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
    let value = found.value?;
    let is_known = |variable: &Variable| variable == value || found.variables.contains(&variable);
    let is_bound = |variable: &Variable| found.bound.contains(&variable);
    // There are few predicates.
    let is_worth_it = found.heavy || (found.calls && found.predicate == Some(value));
    if !is_worth_it || !variables.iter().all(is_known) {
        return None;
    }
    let over_groups = |(name, aggregate): &(Variable, AggregateExpression)| {
        Some((
            name.clone(),
            over_groups(aggregate, is_known, is_bound, count)?,
        ))
    };
    let aggregates = aggregates.iter().map(over_groups).collect::<Option<_>>()?;
    Some((grouped(inner, value, count), aggregates))
}

/// Filters and computed variables over a single triple pattern that depend on nothing but one of its variables.
struct Computed<'p> {
    /// The variables of the pattern, and that of its predicate.
    bound: Vec<&'p Variable>,
    predicate: Option<&'p Variable>,
    /// The one that all depends on, once there is something.
    value: Option<&'p Variable>,
    variables: Vec<&'p Variable>,
    /// Something costs more to compute than a group to make.
    heavy: bool,
    /// A function is called.
    calls: bool,
}

impl<'p> Computed<'p> {
    fn of(pattern: &'p GraphPattern) -> Option<Self> {
        match pattern {
            GraphPattern::Bgp { patterns } => match patterns.as_slice() {
                [triple] => Some(Self::over(triple)),
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

    fn over(triple: &'p TriplePattern) -> Self {
        let predicate = match &triple.predicate {
            NamedNodePattern::Variable(variable) => Some(variable),
            NamedNodePattern::NamedNode(_) => None,
        };
        let ends = [&triple.subject, &triple.object].into_iter();
        let ends = ends.filter_map(|end| match end {
            TermPattern::Variable(variable) => Some(variable),
            _ => None,
        });
        Self {
            bound: ends.chain(predicate).collect(),
            predicate,
            value: None,
            variables: Vec::new(),
            heavy: false,
            calls: false,
        }
    }

    fn with(mut self, expression: &Expression) -> Option<Self> {
        for used in used_variables(expression) {
            if self.variables.contains(&&used) {
                continue;
            }
            let bound = *self.bound.iter().find(|&&bound| *bound == used)?;
            (*self.value.get_or_insert(bound) == bound).then_some(())?;
        }
        self.heavy |= is_heavy(expression);
        self.calls |= any(expression, |e| matches!(e, Expression::FunctionCall(..)));
        (!is_volatile(expression)).then_some(self)
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
