//! SERVICE (SPARQL 1.1 Federated Query): a call of a set-returning function whose rows are joined with the rest.
//!
//! `quad.service(endpoint, query, variables, silent, keep)` gives one array of terms for each solution, in the order of
//! `variables`.

use std::collections::HashSet;

use spargebra::algebra::GraphPattern;
use spargebra::term::{NamedNodePattern, Variable};

use crate::block::{column_name, parenthesised, Block};
use crate::column::{same_sql, Col};
use crate::error::Error;
use crate::params::ParamKind;
use crate::pattern_properties::certainly_bound;
use crate::text;
use crate::translator::{Env, Translator};

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
