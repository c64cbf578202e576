//! SERVICE (SPARQL 1.1 Federated Query): a call of a set-returning function whose rows are joined with the rest.
//!
//! `quad.service(endpoint, query, variables, silent, keep)` gives one array of terms for each solution, in the order of
//! `variables`.

use std::collections::HashSet;

use spargebra::algebra::{AggregateExpression, AggregateFunction, Expression, GraphPattern};
use spargebra::term::{GroundTerm, NamedNodePattern, TermPattern, TriplePattern, Variable};

use crate::block::{column_name, parenthesised, Block};
use crate::column::{same_sql, Col};
use crate::error::Error;
use crate::expression::tested_bound;
use crate::params::ParamKind;
use crate::text;
use crate::translate::{Env, Translator};

/// A SERVICE clause.
#[derive(Clone, Copy)]
pub(crate) struct Service<'p> {
    pub name: &'p NamedNodePattern,
    pub inner: &'p GraphPattern,
    pub silent: bool,
}

impl Service<'_> {
    /// The variable that names the endpoint.
    pub fn variable(&self) -> Option<&Variable> {
        match self.name {
            NamedNodePattern::Variable(variable) => Some(variable),
            NamedNodePattern::NamedNode(_) => None,
        }
    }
}

impl Translator<'_> {
    /// The solutions of the endpoint. A variable that names it must be bound by what comes before (section 4 of the
    /// specification).
    pub fn service(&mut self, service: Service<'_>, env: &Env) -> Result<Block, Error> {
        let (endpoint, lateral) = match service.name {
            NamedNodePattern::NamedNode(iri) => {
                (self.params.sql(ParamKind::Term, &iri.to_string()), false)
            }
            NamedNodePattern::Variable(variable) => {
                let col = env.sideways.get(variable).or(env.outer.get(variable));
                let col = col.ok_or_else(|| unbound(variable))?;
                (col.term_sql(&mut self.params), true)
            }
        };
        let (call, variables) = self.service_call(service, &endpoint);
        let alias = self.alias();
        let keyword = if lateral { "LATERAL " } else { "" };
        let mut block = Block::of_item(format!("{keyword}{call} AS {alias}(b)"));
        block.lateral = lateral;
        self.bindings(&mut block, service, &variables, &format!("{alias}.b"), env);
        Ok(block)
    }

    /// The join of a block with an endpoint that one of its variables names: each endpoint is asked once.
    pub fn join_service(
        &mut self,
        block: Block,
        service: Service<'_>,
        env: &Env,
    ) -> Result<Block, Error> {
        let found = service.variable().and_then(|variable| {
            let mut vars = block.vars.iter().enumerate();
            vars.find(|(_, (v, _))| v == variable)
        });
        let Some((name, col)) = found.map(|(place, (v, col))| (column_name(v, place), col.clone()))
        else {
            let service = self.service(service, env)?;
            return Ok(block.join(service, &mut self.params));
        };
        let (left, asked, answers, joined) =
            (self.alias(), self.alias(), self.alias(), self.alias());
        let lateral = block.lateral;
        let endpoint = col.renamed(format!("{asked}.e")).term_sql(&mut self.params);
        let condition = same_sql(
            &col.renamed(format!("{left}.{name}")),
            &col.renamed(format!("{answers}.e")),
            &mut self.params,
        );
        let (call, variables) = self.service_call(service, &endpoint);
        // The second table is a fence: an endpoint is asked once, however the rows are joined.
        let sql = format!(
            "WITH {left} AS MATERIALIZED {}, {answers}(e, b) AS MATERIALIZED {}\n\
             SELECT {left}.*, {answers}.b AS \"#b\"\nFROM {left}, {answers}\nWHERE {condition}",
            parenthesised(&block.select(false)),
            parenthesised(&format!(
                "SELECT {asked}.e, s.b\nFROM (SELECT DISTINCT {left}.{name} AS e FROM {left}) AS {asked}, LATERAL {call} AS s(b)"
            )),
        );
        let keyword = if lateral { "LATERAL " } else { "" };
        let mut result = Block::of_item(format!("{keyword}{} AS {joined}", parenthesised(&sql)));
        result.lateral = lateral;
        result.row = block.row.as_ref().map(|_| format!("{joined}.\"#row\""));
        for (place, (variable, col)) in block.vars.into_iter().enumerate() {
            let name = format!("{joined}.{}", column_name(&variable, place));
            result.vars.set(variable, col.renamed(name));
        }
        self.bindings(
            &mut result,
            service,
            &variables,
            &format!("{joined}.\"#b\""),
            env,
        );
        Ok(result)
    }

    /// The call, and the variables whose bindings it gives.
    fn service_call(&mut self, service: Service<'_>, endpoint: &str) -> (String, Vec<Variable>) {
        let mut variables: Vec<Variable> = Vec::new();
        service.inner.on_in_scope_variable(|variable| {
            if !variables.contains(variable) {
                variables.push(variable.clone());
            }
        });
        let query = text::select(service.inner, &variables, self.base.as_deref());
        let query = self.params.sql(ParamKind::Text, &query);
        let names: Vec<String> = variables
            .iter()
            .map(|v| self.params.sql(ParamKind::Text, v.as_str()))
            .collect();
        let call = format!(
            "quad.service({endpoint}, {query}, ARRAY[{}]::text[], {}, {})",
            names.join(", "),
            service.silent,
            self.keeps_terms
        );
        (call, variables)
    }

    /// Binds the variables to the elements of `array`.
    fn bindings(
        &mut self,
        block: &mut Block,
        service: Service<'_>,
        variables: &[Variable],
        array: &str,
        env: &Env,
    ) {
        let mut certain = HashSet::new();
        if !service.silent {
            certainly_bound(service.inner, &mut certain);
        }
        for (place, variable) in variables.iter().enumerate() {
            let col = Col {
                nullable: !certain.contains(variable),
                strict: true,
                ..Col::of_term(format!("{array}[{}]", place + 1))
            };
            self.bind(block, variable, col, env);
        }
    }
}

fn unbound(variable: &Variable) -> Error {
    Error::Invalid(format!(
        "SERVICE {variable}: no pattern before it in the group binds {variable}"
    ))
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
