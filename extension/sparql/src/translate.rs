//! Graph patterns (SPARQL 1.1 section 18.2) to plan blocks.

use std::collections::HashSet;

use spargebra::algebra::{Expression, GraphPattern, OrderExpression};
use spargebra::term::{GroundTerm, NamedNodePattern, Variable};

use crate::block::{column_name, parenthesised, Block};
use crate::column::{coalesced, compatible_sql, constant, merged, same_sql, Col, Kind, Vars};
use crate::distribute;
use crate::error::Error;
use crate::expression::{is_heavy, Operand, Scope};
use crate::expression_properties::{is_volatile, needs_row, tested_bound, used_variables};
use crate::node::Predicate;
use crate::params::{ParamKind, Params};
use crate::pattern_properties::{alternatives, join_operands, reads_graph, union_operands};
use crate::pushdown;
use crate::service::Service;
use crate::translator::{Env, Graph, Translator};

/// Most rows of VALUES of several variables that are tested as alternatives.
const MAX_ALTERNATIVES: usize = 32;

/// A block with the solution modifiers on top of it.
pub(crate) struct Rel {
    pub block: Block,
    order: Vec<OrderKey>,
    distinct: bool,
    slice: Option<(u64, Option<u64>)>,
}

/// A comparator of ORDER BY.
struct OrderKey {
    expression: Expression,
    /// The key in the scope below the projection.
    key: SortKey,
}

/// What is sorted by.
#[derive(Clone)]
struct SortKey {
    sql: String,
    /// The id of the term that `sql` is, where there is one.
    id: Option<String>,
    descending: bool,
}

/// Most solutions to be sorted by their ids, whose terms are then read as they are compared. Each solution that is not
/// among the first is read once, each of the first more often.
const MAX_SORTED_BY_ID: u64 = 1000;

impl SortKey {
    fn new(operand: &Operand, descending: bool, params: &mut Params) -> Self {
        Self {
            sql: operand.sort_sql(params),
            id: operand.sort_id().map(str::to_owned),
            descending,
        }
    }

    /// The item of an ORDER BY clause; `few`: not many rows of the order are asked for. Unbound and errors come first
    /// in ascending order (section 15.1).
    fn order_sql(&self, few: bool) -> String {
        let (operator, nulls) = match self.descending {
            false => ("<#", "NULLS FIRST"),
            true => (">#", "NULLS LAST"),
        };
        match &self.id {
            Some(id) if few => format!("{id} USING OPERATOR(quad.{operator}) {nulls}"),
            _ => sort_item(&self.sql, self.descending),
        }
    }
}

/// An item of an ORDER BY clause. Unbound and errors come first in ascending order.
pub(crate) fn sort_item(sql: &str, descending: bool) -> String {
    match descending {
        false => format!("{sql} NULLS FIRST"),
        true => format!("{sql} DESC NULLS LAST"),
    }
}

impl Rel {
    fn plain(block: Block) -> Self {
        Self {
            block,
            order: Vec::new(),
            distinct: false,
            slice: None,
        }
    }
}

impl Translator<'_> {
    /// The pattern as a block.
    pub fn block(&mut self, pattern: &GraphPattern, env: &Env) -> Result<Block, Error> {
        let rel = self.pattern(pattern, env)?;
        self.close(rel)
    }

    pub fn pattern(&mut self, pattern: &GraphPattern, env: &Env) -> Result<Rel, Error> {
        Ok(Rel::plain(match pattern {
            GraphPattern::Bgp { patterns } => self.bgp(patterns, env)?,
            GraphPattern::Path { .. } | GraphPattern::Join { .. } => {
                self.join_group(pattern, env)?
            }
            GraphPattern::LeftJoin {
                left,
                right,
                expression,
            } => self.left_join(left, right, expression.as_ref(), env)?,
            GraphPattern::Filter { expr, inner } => {
                if let Some(arms) = self.arms(|_| distribute::of_filter(expr, inner), env) {
                    return Ok(Rel::plain(arms?));
                }
                let mut block = self.block(inner, env)?;
                // A variable of a solution outside has its value where it is unbound here.
                let is_own = |variable: &&Variable| env.outer.get(variable).is_none();
                for variable in tested_bound(expr).into_iter().filter(is_own) {
                    if let Some(col) = block.vars.get_mut(variable) {
                        let condition = col.bound_sql();
                        col.nullable = false;
                        block.add_condition(condition);
                    }
                }
                let scope = Scope {
                    row: block.row.as_deref(),
                    ..Scope::of(&block.vars, env)
                };
                let conditions = self.conditions(expr, &scope)?;
                for condition in conditions {
                    block.add_condition(condition);
                }
                block
            }
            GraphPattern::Union { .. } => self.union(pattern, env)?,
            GraphPattern::Graph { name, inner } => self.graph(name, inner, env)?,
            GraphPattern::Extend {
                inner,
                variable,
                expression,
            } => self.extend(inner, variable, expression, env)?,
            GraphPattern::Minus { left, right } => self.minus(left, right, env)?,
            GraphPattern::Values {
                variables,
                bindings,
            } => self.values(variables, bindings, env),
            GraphPattern::Group {
                inner,
                variables,
                aggregates,
            } => self.group(inner, variables, aggregates, env)?,
            GraphPattern::OrderBy { inner, expression } => {
                let block = self.block(inner, env)?;
                let scope = Scope {
                    row: block.row.as_deref(),
                    ..Scope::of(&block.vars, env)
                };
                let order = self.order_keys(expression, &scope)?;
                return Ok(Rel {
                    order,
                    ..Rel::plain(block)
                });
            }
            GraphPattern::Project { inner, variables } => {
                return self.project(inner, variables, env);
            }
            GraphPattern::Distinct { inner } => {
                return Ok(Rel {
                    distinct: true,
                    ..self.open(inner, env)?
                });
            }
            GraphPattern::Reduced { inner } => return self.open(inner, env),
            GraphPattern::Slice {
                inner,
                start,
                length,
            } => {
                let rel = self.open(inner, env)?;
                return Ok(Rel {
                    slice: Some((*start as u64, length.map(|l| l as u64))),
                    ..rel
                });
            }
            GraphPattern::Service {
                name,
                inner,
                silent,
            } => {
                let silent = *silent;
                self.service(
                    Service {
                        name,
                        inner,
                        silent,
                    },
                    env,
                )?
            }
        }))
    }

    /// The pattern without a slice on top, so that DISTINCT or a slice can be put on it.
    fn open(&mut self, pattern: &GraphPattern, env: &Env) -> Result<Rel, Error> {
        let rel = self.pattern(pattern, env)?;
        if rel.slice.is_some() {
            return Ok(Rel::plain(self.close(rel)?));
        }
        Ok(rel)
    }

    /// The modifiers made part of a block. The order of the solutions is lost, as SPARQL allows.
    pub fn close(&mut self, rel: Rel) -> Result<Block, Error> {
        match (rel.slice, rel.distinct) {
            (None, false) => Ok(rel.block),
            (None, true) => {
                let alias = self.alias();
                Ok(rel.block.derived(&alias, true, ""))
            }
            (Some(_), _) => {
                let (block, tail) = self.finish(rel)?;
                let alias = self.alias();
                Ok(block.derived(&alias, false, &tail))
            }
        }
    }

    /// The block to select from, made distinct if it is to be, and what its solutions are sorted by.
    fn sorted(&mut self, rel: Rel) -> Result<(Block, Vec<SortKey>), Error> {
        let mut block = rel.block;
        let mut keys: Vec<SortKey> = rel.order.iter().map(|k| k.key.clone()).collect();
        if rel.distinct {
            let alias = self.alias();
            let of_projection = rel.order.iter().all(|key| {
                !is_volatile(&key.expression)
                    && used_variables(&key.expression)
                        .iter()
                        .all(|v| block.vars.get(v).is_some())
            });
            if of_projection {
                block = block.derived(&alias, true, "");
                let env = Env::new();
                keys.clear();
                for key in &rel.order {
                    let operand = self.operand(&key.expression, &Scope::of(&block.vars, &env))?;
                    let descending = key.key.descending;
                    keys.push(SortKey::new(&operand, descending, &mut self.params));
                }
            } else {
                (block, keys) = distinct_by_first_key(block, &alias, &keys);
            }
        }
        Ok((block, keys))
    }

    /// The pattern as a block, and the order of its solutions: hidden variables, and whether they are descending.
    pub fn ordered_block(
        &mut self,
        pattern: &GraphPattern,
        env: &Env,
    ) -> Result<(Block, Vec<(Variable, bool)>), Error> {
        let rel = self.pattern(pattern, env)?;
        if rel.slice.is_some() || rel.order.is_empty() {
            return Ok((self.close(rel)?, Vec::new()));
        }
        let (mut block, keys) = self.sorted(rel)?;
        let mut order = Vec::new();
        for key in keys {
            let hidden = self.hidden("key");
            block.vars.set(hidden.clone(), Col::of_term(key.sql));
            order.push((hidden, key.descending));
        }
        Ok((block, order))
    }

    /// The block to select from, and the ORDER BY, LIMIT, and OFFSET clauses to end that query with.
    pub fn finish(&mut self, rel: Rel) -> Result<(Block, String), Error> {
        let slice = rel.slice;
        let (block, keys) = self.sorted(rel)?;
        let mut tail = String::new();
        if !keys.is_empty() {
            let few = matches!(slice, Some((start, Some(length)))
                if start.saturating_add(length) <= MAX_SORTED_BY_ID);
            let keys: Vec<String> = keys.iter().map(|key| key.order_sql(few)).collect();
            tail.push_str("\nORDER BY ");
            tail.push_str(&keys.join(", "));
        }
        if let Some((start, length)) = slice {
            // bigint is what LIMIT takes; more rows than that cannot be.
            let clamp = |n: u64| n.min(i64::MAX as u64);
            if let Some(length) = length {
                tail.push_str(&format!("\nLIMIT {}", clamp(length)));
            }
            // Without a limit it is a fence: what is above is joined with the solutions as they are.
            if start > 0 || length.is_none() {
                tail.push_str(&format!("\nOFFSET {}", clamp(start)));
            }
        }
        Ok((block, tail))
    }

    fn order_keys(
        &mut self,
        expressions: &[OrderExpression],
        scope: &Scope<'_>,
    ) -> Result<Vec<OrderKey>, Error> {
        expressions
            .iter()
            .map(|order| {
                let (expression, descending) = match order {
                    OrderExpression::Asc(e) => (e, false),
                    OrderExpression::Desc(e) => (e, true),
                };
                let operand = self.operand(expression, scope)?;
                Ok(OrderKey {
                    expression: expression.clone(),
                    key: SortKey::new(&operand, descending, &mut self.params),
                })
            })
            .collect()
    }

    /// Projection only hides variables: the solutions stay as many.
    fn project(
        &mut self,
        inner: &GraphPattern,
        variables: &[Variable],
        env: &Env,
    ) -> Result<Rel, Error> {
        let mut inner_env = env.without_sideways();
        inner_env.outer.retain(|v| variables.contains(v));
        let mut rel = self.open(inner, &inner_env)?;
        if rel.distinct {
            rel = Rel::plain(self.close(rel)?);
        }
        let mut vars = Vars::default();
        for variable in variables {
            if let Some(col) = rel.block.vars.get(variable) {
                vars.set(variable.clone(), col.clone());
            }
        }
        if let Graph::Each(graph) = &env.graph {
            let col = rel.block.vars.get(graph).cloned();
            col.into_iter().for_each(|col| vars.set(graph.clone(), col));
        }
        rel.block.vars = vars;
        rel.block.row = None;
        Ok(rel)
    }

    /// Adds the binding of a variable by a part of the block that is joined with what is there.
    pub fn bind(&mut self, block: &mut Block, variable: &Variable, col: Col, env: &Env) {
        if let Some(mine) = block.vars.get(variable).cloned() {
            block.add_condition(compatible_sql(&mine, &col, &mut self.params));
            let both = merged(&mine, &col, &mut self.params);
            block.vars.set(variable.clone(), both);
            return;
        }
        if let Some(outer) = env.outer.get(variable) {
            block.add_condition(compatible_sql(outer, &col, &mut self.params));
        }
        block.vars.set(variable.clone(), col);
    }

    /// The operands of nested joins, joined. Recursive paths come after patterns that can bind their ends, and
    /// endpoints after patterns that name them.
    fn join_group(&mut self, pattern: &GraphPattern, env: &Env) -> Result<Block, Error> {
        let mut operands = Vec::new();
        join_operands(pattern, &mut operands);
        if let Some(arms) = self.arms(|each| distribute::of_join(&operands, each), env) {
            return arms;
        }
        let mut block = Block::default();
        let mut values = Vec::new();
        let is_path = |p: &GraphPattern| matches!(p, GraphPattern::Path { .. });
        let mut others = operands.iter().filter(|p| !is_path(p));
        let all_plain = others.all(|p| distribute::is_plain(p));
        let mut paths = Vec::new();
        let mut services = Vec::new();
        for (place, &operand) in operands.iter().enumerate() {
            match operand {
                GraphPattern::Path {
                    subject,
                    path,
                    object,
                } => paths.push((subject, path, object)),
                GraphPattern::Service {
                    name: name @ NamedNodePattern::Variable(_),
                    inner,
                    silent,
                } => services.push(Service {
                    name,
                    inner,
                    silent: *silent,
                }),
                GraphPattern::Values {
                    variables,
                    bindings,
                } if bindings.len() > 1 => values.push((variables, bindings)),
                other => {
                    let beside = [&operands[..place], &operands[place + 1..]].concat();
                    let pushed_down = with_bindings(other, &beside, env);
                    let next = self.block(pushed_down.as_ref().unwrap_or(other), env)?;
                    block = block.join(next, &mut self.params);
                }
            }
        }
        for (variables, bindings) in values {
            if !self.choose_among(&mut block, variables, bindings) {
                let next = self.values(variables, bindings, env);
                block = block.join(next, &mut self.params);
            }
        }
        // A path may name an endpoint, and a path may start from the answer of an endpoint.
        for service in std::mem::take(&mut services) {
            let named = service.variable().and_then(|v| block.vars.get(v));
            if named.is_some() {
                block = self.join_service(block, service, env)?;
            } else {
                services.push(service);
            }
        }
        let mut plain = all_plain;
        while !paths.is_empty() {
            let inner = env.beside(&block, plain);
            let next = paths
                .iter()
                .position(|(s, p, o)| crate::path::is_anchored(s, p, o, &inner))
                .unwrap_or(0);
            let (subject, path, object) = paths.remove(next);
            plain &= crate::pattern_properties::is_flat(path);
            let next = self.path(subject, path, object, &inner)?;
            block = block.join(next, &mut self.params);
        }
        for service in services {
            block = self.join_service(block, service, env)?;
        }
        Ok(block)
    }

    /// The solutions of several patterns in the place of one. `arms` is told whether each pattern binds its graph.
    fn arms(
        &mut self,
        arms: impl FnOnce(bool) -> Option<Vec<GraphPattern>>,
        env: &Env,
    ) -> Option<Result<Block, Error>> {
        let env = env.without_sideways();
        let blocks = arms(matches!(env.graph, Graph::Each(_)))?
            .iter()
            .map(|arm| self.block(arm, &env))
            .collect();
        Some(Result::map(blocks, |blocks| self.union_of(blocks)))
    }

    /// Makes VALUES a condition on what a block binds already, where that leaves as many solutions as the join with it
    /// has. The values are looked up when it is their turn.
    fn choose_among(
        &mut self,
        block: &mut Block,
        variables: &[Variable],
        bindings: &[Vec<Option<GroundTerm>>],
    ) -> bool {
        let column = |v: &Variable| {
            let col = block.vars.get(v).filter(|col| !col.nullable)?;
            col.id.clone()
        };
        let columns: Option<Vec<String>> = variables.iter().map(column).collect();
        let rows: Option<Vec<Vec<String>>> = bindings
            .iter()
            .map(|row| {
                row.iter()
                    .map(|term| Some(term.as_ref()?.to_string()))
                    .collect()
            })
            .collect();
        let (Some(columns), Some(rows)) = (columns, rows) else {
            return false;
        };
        let distinct: HashSet<&Vec<String>> = rows.iter().collect();
        let few = columns.len() == 1 || rows.len() <= MAX_ALTERNATIVES;
        if columns.is_empty() || distinct.len() < rows.len() || !few {
            return false;
        }
        for (place, column) in columns.iter().enumerate() {
            let mut terms: Vec<String> = Vec::new();
            for row in &rows {
                if !terms.contains(&row[place]) || columns.len() == 1 {
                    terms.push(row[place].clone());
                }
            }
            let condition = self.is_one_of(column, &terms);
            block.add_condition(condition);
        }
        if columns.len() > 1 {
            let alternatives = rows.iter().map(|row| {
                let pairs = columns.iter().zip(row);
                let equal = pairs.map(|(column, term)| {
                    format!("{column} = {}", self.params.sql(ParamKind::Id, term))
                });
                format!("({})", equal.collect::<Vec<_>>().join(" AND "))
            });
            let alternatives = alternatives.collect::<Vec<_>>().join(" OR ");
            block.add_condition(format!("({alternatives})"));
        }
        true
    }

    /// LeftJoin: the filter of the optional group is part of the join condition, over the variables of both sides.
    fn left_join(
        &mut self,
        left: &GraphPattern,
        right: &GraphPattern,
        filter: Option<&Expression>,
        env: &Env,
    ) -> Result<Block, Error> {
        if let Some(arms) = self.arms(
            |each| distribute::of_left_join(left, right, filter, each),
            env,
        ) {
            return arms;
        }
        let plain = distribute::is_plain(left);
        let pushed_down = with_bindings(right, &[left], env);
        let right = pushed_down.as_ref().unwrap_or(right);
        let left = self.block(left, env)?;
        let right_env = env.beside(&left, plain);
        let mut right = self.block(right, &right_env)?;
        if !right.is_strict() {
            right = self.wrap(right);
        }
        let mut on = Vec::new();
        let mut matched = left.vars.clone();
        let mut result = left.vars.clone();
        for (variable, col) in right.vars.iter() {
            let extended = Col {
                nullable: true,
                ..col.clone()
            };
            match left.vars.get(variable) {
                Some(mine) => {
                    on.push(compatible_sql(mine, col, &mut self.params));
                    matched.set(variable.clone(), merged(mine, col, &mut self.params));
                    if mine.nullable {
                        let both = coalesced(mine, &extended, &mut self.params);
                        result.set(variable.clone(), both);
                    }
                }
                None => {
                    matched.set(variable.clone(), col.clone());
                    result.set(variable.clone(), extended);
                }
            }
        }
        if let Some(filter) = filter {
            on.extend(self.conditions(filter, &Scope::of(&matched, env))?);
        }
        let unit = format!("(SELECT) AS {}", self.alias());
        Ok(left.left_join(right, on, result, unit))
    }

    fn union(&mut self, pattern: &GraphPattern, env: &Env) -> Result<Block, Error> {
        let mut branches = Vec::new();
        union_operands(pattern, &mut branches);
        if let Some((subject, predicates, object)) = alternatives(&branches) {
            let predicate = Predicate::OneOf(&predicates);
            return Ok(self.quad_pattern(&subject, &predicate, &object, env));
        }
        let blocks = branches
            .into_iter()
            .map(|branch| self.block(branch, &env.without_sideways()))
            .collect::<Result<Vec<_>, _>>()?;
        Ok(self.union_of(blocks))
    }

    /// The solutions of all blocks.
    pub fn union_of(&mut self, blocks: Vec<Block>) -> Block {
        let mut shared = Vars::default();
        for block in &blocks {
            for (variable, _) in block.vars.iter() {
                if shared.get(variable).is_some() {
                    continue;
                }
                let all: Vec<Option<&Col>> = blocks.iter().map(|b| b.vars.get(variable)).collect();
                shared.set(variable.clone(), common_shape(&all));
            }
        }
        let alias = self.alias();
        let selects: Vec<String> = blocks
            .iter()
            .map(|block| {
                let mut outputs = Vec::new();
                for (place, (variable, col)) in shared.iter().enumerate() {
                    let value = match (block.vars.get(variable), col.id.is_some()) {
                        (None, true) => "NULL::bigint".to_owned(),
                        (None, false) => "NULL::quad.term".to_owned(),
                        (Some(mine), true) => mine.any().to_owned(),
                        (Some(mine), false) => mine.term_sql(&mut self.params),
                    };
                    outputs.push(format!("{value} AS {}", column_name(variable, place)));
                }
                if outputs.is_empty() {
                    outputs.push("0 AS \"#unit\"".to_owned());
                }
                format!("SELECT {}{}", outputs.join(", "), block.body())
            })
            .collect();
        let lateral = blocks.iter().any(|b| b.lateral);
        let keyword = if lateral { "LATERAL " } else { "" };
        let mut union = Block::of_item(format!(
            "{keyword}{} AS {alias}",
            parenthesised(&selects.join("\nUNION ALL\n"))
        ));
        union.lateral = lateral;
        for (place, (variable, col)) in shared.into_iter().enumerate() {
            let name = format!("{alias}.{}", column_name(&variable, place));
            union.vars.set(variable, col.renamed(name));
        }
        union
    }

    /// Minus: solutions with a compatible one on the right that shares a bound variable go.
    fn minus(
        &mut self,
        left: &GraphPattern,
        right: &GraphPattern,
        env: &Env,
    ) -> Result<Block, Error> {
        let mut left = self.block(left, env)?;
        let mut branches = Vec::new();
        union_operands(right, &mut branches);
        // What is compatible with no solution of a union is so with none of any branch.
        if alternatives(&branches).is_some() {
            branches = vec![right];
        }
        for branch in branches {
            let right = self.block(branch, &env.without_sideways())?;
            self.remove_compatible(&mut left, &right);
        }
        Ok(left)
    }

    /// Removes solutions that are compatible with one of `right` which shares a bound variable.
    fn remove_compatible(&mut self, left: &mut Block, right: &Block) {
        let mut shared = Vec::new();
        for (variable, theirs) in right.vars.iter() {
            if let Some(mine) = left.vars.get(variable) {
                let counts = !is_hidden_graph(variable);
                shared.push((mine.clone(), theirs, counts));
            }
        }
        let certain = |(mine, theirs, counts): &(Col, &Col, bool)| {
            *counts && !mine.nullable && !theirs.nullable
        };
        // Where none is bound for sure, each in turn may be the one that both have: they are joined by its value.
        let turns: Vec<Option<usize>> = if shared.iter().any(certain) {
            vec![None]
        } else {
            let counting = shared.iter().enumerate().filter(|(_, s)| s.2);
            counting.map(|(place, _)| Some(place)).collect()
        };
        for turn in turns {
            let mut conditions = Vec::new();
            for (place, (mine, theirs, _)) in shared.iter().enumerate() {
                conditions.push(match turn {
                    Some(both) if both == place => same_sql(mine, theirs, &mut self.params),
                    _ => compatible_sql(mine, theirs, &mut self.params),
                });
            }
            left.add_condition(format!(
                "NOT EXISTS {}",
                parenthesised(&format!("SELECT 1{}", right.body_and(&conditions)))
            ));
        }
    }

    fn extend(
        &mut self,
        inner: &GraphPattern,
        variable: &Variable,
        expression: &Expression,
        env: &Env,
    ) -> Result<Block, Error> {
        let mut block = self.block(inner, env)?;
        if needs_row(expression) {
            block = self.numbered(block);
        }
        let scope = Scope {
            row: block.row.as_deref(),
            ..Scope::of(&block.vars, env)
        };
        let operand = self.operand(expression, &scope)?;
        let Some(col) = operand.into_col(&mut self.params) else {
            return Ok(block);
        };
        let heavy = is_volatile(expression) || is_heavy(&col);
        self.bind(&mut block, variable, col, env);
        if heavy {
            // A fence: the expression is computed once, wherever the variable is used.
            let alias = self.alias();
            block = block.derived(&alias, false, "\nOFFSET 0");
        }
        Ok(block)
    }

    fn graph(
        &mut self,
        name: &NamedNodePattern,
        inner: &GraphPattern,
        env: &Env,
    ) -> Result<Block, Error> {
        match name {
            NamedNodePattern::NamedNode(iri) => {
                let text = iri.to_string();
                if let Some(named) = &self.dataset.named {
                    if !named.contains(&text) {
                        let mut block = self.block(inner, &env.without_sideways())?;
                        block.add_condition("FALSE".to_owned());
                        return Ok(block);
                    }
                }
                let id = self.params.sql(ParamKind::Id, &text);
                let mut inner_env = env.clone();
                inner_env.graph = Graph::Fixed(id.clone());
                let mut block = self.block(inner, &inner_env)?;
                if !reads_graph(inner) {
                    block.add_condition(format!(
                        "EXISTS (SELECT 1 FROM {} AS gx WHERE gx.g = {id})",
                        self.table
                    ));
                }
                Ok(block)
            }
            NamedNodePattern::Variable(variable) => self.each_graph(variable, inner, env),
        }
    }

    /// GRAPH with a variable. A pattern all of whose parts read the graph binds a hidden variable as it goes; any other
    /// one is evaluated graph by graph. The solutions are joined with the variable afterwards (section 18.6): within
    /// the pattern, its expressions included, the variable is unbound unless the pattern itself binds it.
    fn each_graph(
        &mut self,
        variable: &Variable,
        inner: &GraphPattern,
        env: &Env,
    ) -> Result<Block, Error> {
        let hidden = self.hidden("g");
        let mut inner_env = env.clone();
        let mut block;
        if reads_graph(inner) {
            inner_env.graph = Graph::Each(hidden.clone());
            block = self.block(inner, &inner_env)?;
            let id = block
                .vars
                .get(&hidden)
                .map(|c| c.any().to_owned())
                .expect("every pattern of the group binds its graph");
            let condition = self.is_named_graph(&id);
            block.add_condition(condition);
        } else {
            let alias = self.alias();
            let condition = self.is_named_graph("gx.g");
            block = Block::of_item(format!(
                "(SELECT DISTINCT gx.g FROM {} AS gx WHERE {condition}) AS {alias}",
                self.table
            ));
            let col = Col::of_quad(format!("{alias}.g"), Kind::Iri);
            block.vars.set(hidden.clone(), col);
            inner_env.graph = Graph::OfSolution(format!("{alias}.g"));
            inner_env.sideways = Vars::default();
            let mut each = self.block(inner, &inner_env)?;
            each.lateral = true;
            let each = self.wrap(each);
            block = block.join(each, &mut self.params);
        }
        let col = block.vars.remove(&hidden).expect("bound above");
        self.bind(&mut block, variable, col, env);
        Ok(block)
    }

    /// SQL condition: the id is the name of a named graph of the data set.
    fn is_named_graph(&mut self, id: &str) -> String {
        let Some(named) = self.dataset.named.clone() else {
            return format!("{id} <> 0");
        };
        self.is_one_of(id, &named)
    }

    /// SQL condition: the id is that of one of the IRIs (in N-Triples form).
    pub fn is_one_of(&mut self, id: &str, iris: &[String]) -> String {
        match iris {
            [] => "FALSE".to_owned(),
            [one] => format!("{id} = {}", self.params.sql(ParamKind::Id, one)),
            many => {
                let list: Vec<String> = many
                    .iter()
                    .map(|iri| self.params.sql(ParamKind::Id, iri))
                    .collect();
                format!("{id} IN ({})", list.join(", "))
            }
        }
    }

    fn values(
        &mut self,
        variables: &[Variable],
        bindings: &[Vec<Option<GroundTerm>>],
        env: &Env,
    ) -> Block {
        let mut cols: Vec<Option<Col>> = vec![None; variables.len()];
        let mut rows = Vec::new();
        for binding in bindings {
            let mut row = Vec::new();
            for (place, term) in binding.iter().enumerate() {
                let next = match term {
                    Some(term) => {
                        let kind = match term {
                            spargebra::term::GroundTerm::NamedNode(_) => Kind::Iri,
                            spargebra::term::GroundTerm::Literal(_) => Kind::Any,
                        };
                        constant(&term.to_string(), kind, &mut self.params)
                    }
                    None => Col {
                        id: Some("NULL::bigint".to_owned()),
                        nullable: true,
                        ..Col::of_quad(String::new(), Kind::Iri)
                    },
                };
                row.push(next.any().to_owned());
                let col = &mut cols[place];
                *col = Some(match col.take() {
                    None => next,
                    Some(col) => Col {
                        unknown: &col.unknown | &next.unknown,
                        nullable: col.nullable || next.nullable,
                        kind: col.kind.min(next.kind),
                        ..col
                    },
                });
            }
            rows.push(row);
        }
        if let ([row], true) = (&rows[..], cols.iter().flatten().all(|c| !c.nullable)) {
            debug_assert_eq!(row.len(), variables.len());
            let mut block = Block::default();
            for (variable, col) in variables.iter().zip(cols) {
                let col = col.expect("there is a row");
                self.bind(&mut block, variable, col, env);
            }
            return block;
        }
        let alias = self.alias();
        let names: Vec<String> = variables
            .iter()
            .enumerate()
            .map(|(place, v)| column_name(v, place))
            .collect();
        let (body, names) = match (rows.is_empty(), names.is_empty()) {
            (true, true) => (
                "SELECT 0 WHERE FALSE".to_owned(),
                vec!["\"#unit\"".to_owned()],
            ),
            (true, false) => (
                format!(
                    "SELECT {} WHERE FALSE",
                    vec!["NULL::bigint"; names.len()].join(", ")
                ),
                names,
            ),
            (false, true) => (
                format!("VALUES {}", vec!["(0)"; rows.len()].join(", ")),
                vec!["\"#unit\"".to_owned()],
            ),
            (false, false) => {
                let rows: Vec<String> = rows
                    .iter()
                    .map(|row| format!("({})", row.join(", ")))
                    .collect();
                (format!("VALUES {}", rows.join(", ")), names)
            }
        };
        let mut block = Block::of_item(format!("({body}) AS {alias}({})", names.join(", ")));
        for (place, (variable, col)) in variables.iter().zip(cols).enumerate() {
            let col = col.unwrap_or_else(|| Col::of_quad(String::new(), Kind::Iri));
            let col = Col {
                id: Some(format!("{alias}.{}", column_name(variable, place))),
                term: None,
                strict: true,
                ..col
            };
            self.bind(&mut block, variable, col, env);
        }
        block
    }
}

/// How a variable is held after a union: as an id when every branch that has it has an id.
fn common_shape(cols: &[Option<&Col>]) -> Col {
    let present: Vec<&Col> = cols.iter().copied().flatten().collect();
    let mut shape = present[0].clone();
    for col in &present[1..] {
        shape.unknown = &shape.unknown | &col.unknown;
        shape.nullable |= col.nullable;
        shape.kind = shape.kind.min(col.kind);
        if shape.node_of != col.node_of {
            shape.node_of = None;
        }
        if shape.inlined != col.inlined {
            shape.inlined = None;
        }
        if shape.exact != col.exact {
            shape.exact = None;
        }
        if col.id.is_none() {
            shape.id = None;
        }
    }
    shape.nullable |= present.len() < cols.len();
    if shape.id.is_none() {
        shape.term.get_or_insert_default();
        shape.unknown.clear();
    }
    shape
}

/// DISTINCT under an order by keys that are not of the projection: of equal solutions the first one counts.
fn distinct_by_first_key(mut block: Block, alias: &str, keys: &[SortKey]) -> (Block, Vec<SortKey>) {
    let cols: Vec<String> = block.vars.iter().map(|(_, c)| c.any().to_owned()).collect();
    if cols.is_empty() {
        return (block.derived(alias, true, ""), Vec::new());
    }
    let mut outputs: Vec<String> = block
        .vars
        .iter()
        .enumerate()
        .map(|(place, (v, c))| format!("{} AS {}", c.any(), column_name(v, place)))
        .collect();
    let mut order = cols.clone();
    let mut names = Vec::new();
    for (place, key) in keys.iter().enumerate() {
        outputs.push(format!("{} AS \"#key{place}\"", key.sql));
        order.push(key.order_sql(false));
        names.push(SortKey {
            sql: format!("{alias}.\"#key{place}\""),
            id: None,
            descending: key.descending,
        });
    }
    let select = format!(
        "SELECT DISTINCT ON ({}) {}{}\nORDER BY {}",
        cols.join(", "),
        outputs.join(", "),
        block.body(),
        order.join(", ")
    );
    let mut derived = Block::of_item(format!("{} AS {alias}", parenthesised(&select)));
    for (place, (variable, col)) in std::mem::take(&mut block.vars).into_iter().enumerate() {
        let name = format!("{alias}.{}", column_name(&variable, place));
        derived.vars.set(variable, col.renamed(name));
    }
    (derived, names)
}

/// A subquery that is joined with patterns beside it, with their bindings in it where that pays.
fn with_bindings(
    subquery: &GraphPattern,
    beside: &[&GraphPattern],
    env: &Env,
) -> Option<GraphPattern> {
    // A graph that each pattern binds is one more variable, which the set of the keys would lack.
    if matches!(env.graph, Graph::Each(_)) {
        return None;
    }
    pushdown::into_subquery(subquery, beside)
}

/// Whether the variable is one that GRAPH made; it does not count for the domains of MINUS.
fn is_hidden_graph(variable: &Variable) -> bool {
    variable.as_str().starts_with("#g")
}
