//! GROUP BY and the set functions (SPARQL 1.1 sections 11 and 18.5.1).

use spargebra::algebra::{AggregateExpression, AggregateFunction, Expression, GraphPattern};
use spargebra::term::Variable;

use crate::block::{column_name, parenthesised, Block};
use crate::column::{Col, Inlined};
use crate::error::Error;
use crate::expression::{Operand, Scope};
use crate::expression_properties::{has_exists, is_volatile, needs_row, used_variables};
use crate::params::ParamKind;
use crate::pre_aggregation;
use crate::translate::sort_item;
use crate::translator::{Env, Graph, Translator};

impl Translator<'_> {
    pub fn group(
        &mut self,
        inner: &GraphPattern,
        keys: &[Variable],
        aggregates: &[(Variable, AggregateExpression)],
        env: &Env,
    ) -> Result<Block, Error> {
        let count = self.hidden("n");
        // Where each pattern binds its graph, the values of each graph are counted apart.
        let by_value = match env.graph {
            Graph::Each(_) => None,
            _ => pre_aggregation::by_value(inner, keys, aggregates, &count),
        };
        let (inner, aggregates) = match &by_value {
            Some((inner, aggregates)) => (inner, aggregates.as_slice()),
            None => (inner, aggregates),
        };
        // Everyone expects the texts in the order of the subquery that they come from, though no order is promised.
        let (inner, order) = match aggregates.iter().any(concatenates) {
            true => self.ordered_block(inner, env)?,
            false => (self.block(inner, env)?, Vec::new()),
        };
        let (inner, aggregates) = self.with_computed_arguments(inner, aggregates, env)?;
        let (inner, aggregates) = self.with_distinct_arguments(inner, keys, aggregates, env)?;
        let mut outputs = Vec::new();
        let mut columns = Vec::new();
        for (place, key) in keys.iter().enumerate() {
            if keys[..place].contains(key) {
                continue;
            }
            // A key that nothing binds is the same, unbound, for every solution.
            if let Some(col) = inner.vars.get(key) {
                outputs.push(col.any().to_owned());
                columns.push((key, col.clone()));
            }
        }
        let bound_keys = outputs.len();
        for (variable, aggregate) in &aggregates {
            let col = self.aggregate(aggregate, &inner, &order, !keys.is_empty(), env)?;
            outputs.push(col.any().to_owned());
            columns.push((variable, col));
        }
        let grouping = match (keys.len(), bound_keys) {
            (0, _) => String::new(),
            (_, 0) => "\nHAVING count(*) > 0".to_owned(),
            (_, n) => {
                let places: Vec<String> = (1..=n).map(|i| i.to_string()).collect();
                format!("\nGROUP BY {}", places.join(", "))
            }
        };
        let mut list: Vec<String> = outputs
            .iter()
            .zip(&columns)
            .enumerate()
            .map(|(place, (sql, (variable, _)))| {
                format!("{sql} AS {}", column_name(variable, place))
            })
            .collect();
        if list.is_empty() {
            list.push("count(*) AS \"#unit\"".to_owned());
        }
        let select = format!("SELECT {}{}{grouping}", list.join(", "), inner.body());
        let alias = self.alias();
        let keyword = if inner.lateral { "LATERAL " } else { "" };
        let mut block = Block::of_item(format!("{keyword}{} AS {alias}", parenthesised(&select)));
        block.lateral = inner.lateral;
        for (place, (variable, col)) in columns.into_iter().enumerate() {
            let name = format!("{alias}.{}", column_name(variable, place));
            self.bind(&mut block, variable, col.renamed(name), env);
        }
        Ok(block)
    }

    /// The arguments that are computed before they are aggregated become columns of the block. SQL takes an aggregate
    /// over nothing but columns of an outer query for one of that query, and knows no numbers of solutions within it.
    fn with_computed_arguments(
        &mut self,
        mut inner: Block,
        aggregates: &[(Variable, AggregateExpression)],
        env: &Env,
    ) -> Result<(Block, Vec<(Variable, AggregateExpression)>), Error> {
        let mut aggregates = aggregates.to_vec();
        let mut changed = false;
        for (_, aggregate) in &mut aggregates {
            let AggregateExpression::FunctionCall { expr, .. } = aggregate else {
                continue;
            };
            if needs_row(expr) {
                inner = self.numbered(inner);
            }
            let scope = Scope {
                row: inner.row.as_deref(),
                ..Scope::of(&inner.vars, env)
            };
            let from_outside = used_variables(expr)
                .iter()
                .any(|v| scope.is_from_outside(v));
            if !from_outside && !has_exists(expr) && !needs_row(expr) {
                continue;
            }
            if let Some(col) = self.operand(expr, &scope)?.into_col(&mut self.params) {
                let argument = self.hidden("arg");
                inner.vars.set(argument.clone(), col);
                *expr = Expression::Variable(argument);
                changed = true;
            }
        }
        if changed {
            inner = self.wrap(inner);
        }
        Ok((inner, aggregates))
    }

    /// Where only the distinct values of a computed expression are counted, they are made distinct before, by a hash
    /// table. An aggregate with DISTINCT has none.
    fn with_distinct_arguments(
        &mut self,
        mut inner: Block,
        keys: &[Variable],
        aggregates: Vec<(Variable, AggregateExpression)>,
        env: &Env,
    ) -> Result<(Block, Vec<(Variable, AggregateExpression)>), Error> {
        let [(variable, aggregate)] = &aggregates[..] else {
            return Ok((inner, aggregates));
        };
        let AggregateExpression::FunctionCall {
            name: name @ AggregateFunction::Count,
            expr,
            distinct: true,
        } = aggregate
        else {
            return Ok((inner, aggregates));
        };
        if !matches!(expr, Expression::FunctionCall(..)) || is_volatile(expr) {
            return Ok((inner, aggregates));
        }
        let operand = self.operand(expr, &Scope::of(&inner.vars, env))?;
        let (Operand::Term(_) | Operand::Exact(..) | Operand::Col(_), Some(col)) =
            (&operand, operand.clone().into_col(&mut self.params))
        else {
            return Ok((inner, aggregates));
        };
        let argument = self.hidden("arg");
        inner.vars.retain(|v| keys.contains(v));
        inner.vars.set(argument.clone(), col);
        let alias = self.alias();
        let aggregate = AggregateExpression::FunctionCall {
            name: name.clone(),
            expr: Expression::Variable(argument),
            distinct: false,
        };
        let aggregates = vec![(variable.clone(), aggregate)];
        Ok((inner.derived(&alias, true, ""), aggregates))
    }

    fn aggregate(
        &mut self,
        aggregate: &AggregateExpression,
        inner: &Block,
        order: &[(Variable, bool)],
        grouped: bool,
        env: &Env,
    ) -> Result<Col, Error> {
        let (name, expression, distinct) = match aggregate {
            AggregateExpression::CountSolutions { distinct } => {
                let cols: Vec<&str> = inner
                    .vars
                    .iter()
                    .filter(|(variable, _)| is_named(variable))
                    .map(|(_, c)| c.any())
                    .collect();
                return Ok(count(match (distinct, cols.is_empty()) {
                    (false, _) => "count(*)".to_owned(),
                    (true, true) => "LEAST(count(*), 1)".to_owned(),
                    (true, false) => format!("count(DISTINCT ROW({}))", cols.join(", ")),
                }));
            }
            AggregateExpression::FunctionCall {
                name,
                expr,
                distinct,
            } => (name, expr, *distinct),
        };
        let operand = self.operand(expression, &Scope::of(&inner.vars, env))?;
        let keyword = if distinct { "DISTINCT " } else { "" };
        if let AggregateFunction::Count = name {
            let value = match &operand {
                Operand::Col(col) => col.any().to_owned(),
                Operand::Bool(sql) => sql.clone(),
                other => other.term_sql(&mut self.params),
            };
            return Ok(count(format!("count({keyword}{value})")));
        }
        if let (AggregateFunction::Sample, Operand::Col(col)) = (name, &operand) {
            if let Some(id) = &col.id {
                // Any bound value will do, and the least id is one.
                return Ok(Col {
                    id: Some(format!("min({id})")),
                    term: None,
                    nullable: col.nullable || !grouped,
                    ..col.clone()
                });
            }
        }
        if let Operand::Col(col) = &operand {
            if let Some(aggregate) = by_id(name, keyword, col, grouped) {
                return Ok(aggregate);
            }
        }
        let value = operand.term_sql(&mut self.params);
        Ok(Col::of_term(match name {
            AggregateFunction::Sum => format!("quad.agg_sum({keyword}{value})"),
            AggregateFunction::Avg => format!("quad.agg_avg({keyword}{value})"),
            AggregateFunction::Min => format!("quad.agg_min({value})"),
            AggregateFunction::Max => format!("quad.agg_max({value})"),
            AggregateFunction::Sample => format!("quad.agg_sample({value})"),
            AggregateFunction::GroupConcat { separator } => {
                let separator = separator.as_deref().unwrap_or(" ");
                let separator = self.params.sql(ParamKind::Text, separator);
                // SQL sorts distinct values by themselves.
                let order = if distinct { &[] } else { order };
                let order = order.iter().filter_map(|(variable, descending)| {
                    Some(sort_item(inner.vars.get(variable)?.any(), *descending))
                });
                let order = match order.collect::<Vec<_>>() {
                    none if none.is_empty() => String::new(),
                    items => format!(" ORDER BY {}", items.join(", ")),
                };
                format!("quad.agg_group_concat({keyword}{value}, {separator}{order})")
            }
            AggregateFunction::Custom(iri) => {
                return Err(Error::unsupported(format!("aggregate function {iri}")));
            }
            AggregateFunction::Count => unreachable!("dealt with above"),
        }))
    }
}

/// Whether the result of an aggregate depends on the order of the solutions.
fn concatenates((_, aggregate): &(Variable, AggregateExpression)) -> bool {
    matches!(
        aggregate,
        AggregateExpression::FunctionCall {
            name: AggregateFunction::GroupConcat { .. },
            distinct: false,
            ..
        }
    )
}

/// Whether the query names the variable: neither the translator has made it nor is it a blank node.
fn is_named(variable: &Variable) -> bool {
    let name = variable.as_str();
    !name.starts_with('#') && !name.starts_with("_:")
}

/// The aggregate of a column that is an id, if it needs no terms.
fn by_id(name: &AggregateFunction, keyword: &str, col: &Col, grouped: bool) -> Option<Col> {
    let id = col.id.as_ref().filter(|_| col.has_plain_id())?;
    let float = col.inlined == Some(Inlined::Float);
    let integers = col.inlined == Some(Inlined::Integer) && !col.nullable;
    Some(match name {
        AggregateFunction::Sum | AggregateFunction::Avg if float => {
            let function = match name {
                AggregateFunction::Sum => "agg_sum_float",
                _ => "agg_avg_float",
            };
            // A group without solutions gives an integer; GROUP BY makes none.
            let inlined = grouped.then_some(Inlined::Float);
            Col::of_computed_id(format!("quad.{function}({keyword}{id})"), inlined)
        }
        AggregateFunction::Sum => Col::of_term(format!("quad.agg_sum({keyword}{id})")),
        AggregateFunction::Avg => Col::of_term(format!("quad.agg_avg({keyword}{id})")),
        AggregateFunction::Min | AggregateFunction::Max => {
            let least = matches!(name, AggregateFunction::Min);
            let function = match (integers, least) {
                (true, true) => "min",
                (true, false) => "max",
                (false, true) => "quad.agg_min",
                (false, false) => "quad.agg_max",
            };
            Col {
                kind: col.kind,
                nullable: col.nullable || !grouped,
                ..Col::of_computed_id(format!("{function}({id})"), col.inlined)
            }
        }
        _ => return None,
    })
}

fn count(sql: String) -> Col {
    Col {
        nullable: false,
        ..Col::of_computed_id(format!("quad.int_id({sql})"), Some(Inlined::Integer))
    }
}
