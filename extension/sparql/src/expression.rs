//! Expressions (SPARQL 1.1 section 17) to SQL. An error is NULL, and SQL's three-valued logic is SPARQL's (section
//! 17.2).

use pgquad_term::XSD_NS;
use spargebra::algebra::{Expression, Function, GraphPattern};
use spargebra::term::{Literal, Variable};

use crate::block::parenthesised;
use crate::column::{
    coalesced, constant, same_sql, Col, Exact, Inlined, Kind, Vars, FIRST_BLANK, FIRST_LITERAL,
};
use crate::error::Error;
use crate::expression_properties::conjunction;
use crate::function::{self, OfId};
use crate::params::{inline_id_of, ParamKind, Params};
use crate::pattern_properties::{alternatives, union_operands};
use crate::translator::{Env, Graph, Translator};

/// The constants whose effective boolean value is plain.
const TRUE: &str = "\"true\"^^<http://www.w3.org/2001/XMLSchema#boolean>";
const FALSE: &str = "\"false\"^^<http://www.w3.org/2001/XMLSchema#boolean>";

/// Text length from which an expression is computed once rather than repeated at each use.
const HEAVY_SQL_BYTES: usize = 1000;

/// What an expression may refer to.
pub(crate) struct Scope<'s> {
    pub vars: &'s Vars,
    pub env: &'s Env,
    /// SQL expression of the number of the solution, where there is one.
    pub row: Option<&'s str>,
}

impl<'s> Scope<'s> {
    pub fn of(vars: &'s Vars, env: &'s Env) -> Self {
        Self {
            vars,
            env,
            row: None,
        }
    }

    /// What the variable is here. One of the solution that EXISTS is tested on has its value wherever the pattern
    /// leaves it unbound.
    pub fn get(&self, variable: &Variable, params: &mut Params) -> Option<Col> {
        match (self.vars.get(variable), self.env.outer.get(variable)) {
            (Some(local), Some(outer)) if local.nullable => Some(if outer.nullable {
                coalesced(outer, local, params)
            } else {
                outer.clone()
            }),
            (local, outer) => local.or(outer).cloned(),
        }
    }
}

impl Scope<'_> {
    /// Whether the value of the variable can be that of a solution outside.
    pub fn is_from_outside(&self, variable: &Variable) -> bool {
        self.env.outer.get(variable).is_some()
    }
}

/// The value of an expression.
#[derive(Clone, Debug)]
pub(crate) enum Operand {
    /// A variable, or ids computed from variables.
    Col(Col),
    /// A constant.
    Constant(Constant),
    /// An SQL boolean, fit to stand under AND and NOT.
    Bool(String),
    /// A computed `quad.term`.
    Term(String),
    /// A computed `quad.term` of which more is known.
    Exact(String, Exact),
    /// Never bound.
    Unbound,
}

/// A constant term.
#[derive(Clone, Debug)]
pub(crate) struct Constant {
    ntriples: String,
    iri: bool,
    /// Whether `=` with it is true exactly of the very same term: strings and language strings.
    by_identity: bool,
}

impl Operand {
    fn iri(ntriples: String) -> Self {
        Self::Constant(Constant {
            ntriples,
            iri: true,
            by_identity: true,
        })
    }

    fn literal(literal: &Literal) -> Self {
        let string = "http://www.w3.org/2001/XMLSchema#string";
        Self::Constant(Constant {
            ntriples: literal.to_string(),
            iri: false,
            by_identity: literal.language().is_some() || literal.datatype().as_str() == string,
        })
    }

    pub fn term_sql(&self, params: &mut Params) -> String {
        match self {
            Self::Col(col) => col.term_sql(params),
            Self::Constant(c) => params.sql(ParamKind::Term, &c.ntriples),
            Self::Bool(sql) => format!("quad.from_bool({sql})"),
            Self::Term(sql) | Self::Exact(sql, _) => sql.clone(),
            Self::Unbound => "NULL::quad.term".to_owned(),
        }
    }

    /// What the value sorts by in ORDER BY.
    pub fn sort_sql(&self, params: &mut Params) -> String {
        match self {
            Self::Col(col) => col.sort_sql(params),
            other => other.term_sql(params),
        }
    }

    /// The id by which [`Self::sort_sql`] can be put off until two terms are compared.
    pub fn sort_id(&self) -> Option<&str> {
        match self {
            Self::Col(col) => col.sort_id(),
            _ => None,
        }
    }

    /// The type of the number that it is, where that is known, and its id.
    fn inlined_id(&self, params: &mut Params) -> Option<(Inlined, String)> {
        match self {
            Self::Col(Col {
                inlined: Some(inlined),
                id: Some(id),
                ..
            }) => Some((*inlined, id.clone())),
            Self::Constant(c) => {
                let id = inline_id_of(&c.ntriples)?;
                let datatype = c.ntriples.rsplit_once("^^<")?.1.trim_end_matches('>');
                let inlined = match datatype.strip_prefix(XSD_NS)? {
                    "integer" => Inlined::Integer,
                    "decimal" => Inlined::Decimal,
                    "float" => Inlined::Float,
                    _ => return None,
                };
                debug_assert!(id >= 0);
                Some((inlined, params.sql(ParamKind::Id, &c.ntriples)))
            }
            _ => None,
        }
    }

    /// Effective boolean value (section 17.2.2).
    fn boolean_sql(&self, params: &mut Params) -> String {
        match self {
            Self::Bool(sql) => sql.clone(),
            Self::Unbound => "NULL::boolean".to_owned(),
            Self::Constant(c) if c.ntriples == TRUE => "TRUE".to_owned(),
            Self::Constant(c) if c.ntriples == FALSE => "FALSE".to_owned(),
            other => format!("quad.ebv({})", other.term_sql(params)),
        }
    }

    /// The operand as the column of a variable; `None` when it is never bound.
    pub fn into_col(self, params: &mut Params) -> Option<Col> {
        match self {
            Self::Col(col) => Some(col),
            Self::Constant(c) => Some(constant(&c.ntriples, c.kind(), params)),
            Self::Unbound => None,
            Self::Exact(sql, exact) => Some(Col::of_exact_term(sql, exact)),
            other => Some(Col::of_term(other.term_sql(params))),
        }
    }

    /// The id, where the term has one in any case: what `quad.eq(bigint, bigint)` takes.
    fn plain_id(&self, params: &mut Params) -> Option<String> {
        match self {
            Self::Col(col) if col.has_plain_id() => col.id.clone(),
            Self::Constant(c) => {
                inline_id_of(&c.ntriples)?;
                Some(params.sql(ParamKind::Id, &c.ntriples))
            }
            _ => None,
        }
    }

    /// The id, with stand-ins for constants that have none: enough to tell whether two terms are the same.
    fn any_id(&self, params: &mut Params) -> Option<String> {
        match self {
            Self::Col(col) => col.id.clone(),
            Self::Constant(c) => Some(params.sql(ParamKind::Id, &c.ntriples)),
            _ => None,
        }
    }

    fn is_resource(&self) -> bool {
        match self {
            Self::Col(col) => col.kind != Kind::Any,
            Self::Constant(c) => c.iri,
            _ => false,
        }
    }

    fn is_by_identity(&self) -> bool {
        match self {
            Self::Constant(c) => c.by_identity,
            other => other.exact() == Some(Exact::Itself),
        }
    }

    /// What is known of equality with what is computed.
    fn exact(&self) -> Option<Exact> {
        match self {
            Self::Exact(_, exact) => Some(*exact),
            Self::Col(col) => col.exact,
            _ => None,
        }
    }

    /// Whether it is an `xsd:integer` in canonical form, or an error.
    fn is_integer(&self, params: &mut Params) -> bool {
        let inlined = self.inlined_id(params).map(|(inlined, _)| inlined);
        inlined == Some(Inlined::Integer) || self.exact() == Some(Exact::Integer)
    }

    /// Whether values of both are equal exactly when the terms are the same.
    fn is_same_with(&self, other: &Self) -> bool {
        let integer = |operand: &Self| match operand {
            // Of counts and years the id is known, too.
            Self::Col(col) if col.inlined == Some(Inlined::Integer) => true,
            other => other.exact() == Some(Exact::Integer),
        };
        self.is_by_identity() || other.is_by_identity() || integer(self) && integer(other)
    }
}

impl Constant {
    fn kind(&self) -> Kind {
        if self.iri {
            Kind::Iri
        } else {
            Kind::Any
        }
    }
}

impl Translator<'_> {
    /// The conjuncts of a filter. NULL counts as false.
    pub fn conditions(
        &mut self,
        expression: &Expression,
        scope: &Scope<'_>,
    ) -> Result<Vec<String>, Error> {
        let mut conjuncts = Vec::new();
        conjunction(expression, &mut conjuncts);
        conjuncts
            .into_iter()
            .map(|e| self.boolean(e, true, scope))
            .collect()
    }

    /// An expression as an SQL boolean. `lax`: whoever asks takes NULL for false.
    fn boolean(
        &mut self,
        expression: &Expression,
        lax: bool,
        scope: &Scope<'_>,
    ) -> Result<String, Error> {
        let operand = match expression {
            Expression::And(a, b) => {
                let (a, b) = (self.boolean(a, lax, scope)?, self.boolean(b, lax, scope)?);
                Operand::Bool(format!("({a} AND {b})"))
            }
            Expression::Or(a, b) => {
                let (a, b) = (self.boolean(a, lax, scope)?, self.boolean(b, lax, scope)?);
                Operand::Bool(format!("({a} OR {b})"))
            }
            Expression::Equal(a, b) => {
                let (a, b) = (self.operand(a, scope)?, self.operand(b, scope)?);
                Operand::Bool(self.equal(&a, &b, lax))
            }
            Expression::In(a, list) => {
                let a = self.operand(a, scope)?;
                let mut alternatives = Vec::new();
                for b in list {
                    let b = self.operand(b, scope)?;
                    alternatives.push(self.equal(&a, &b, lax));
                }
                Operand::Bool(match alternatives.len() {
                    // An error on the left is one even where there is nothing to compare with.
                    0 => self.defined(&a, "FALSE"),
                    1 => alternatives.remove(0),
                    _ => format!("({})", alternatives.join(" OR ")),
                })
            }
            other => self.operand(other, scope)?,
        };
        Ok(operand.boolean_sql(&mut self.params))
    }

    /// An expression as it comes out cheapest.
    pub fn operand(
        &mut self,
        expression: &Expression,
        scope: &Scope<'_>,
    ) -> Result<Operand, Error> {
        Ok(match expression {
            Expression::NamedNode(iri) => Operand::iri(iri.to_string()),
            Expression::Literal(literal) => Operand::literal(literal),
            Expression::Variable(variable) => match scope.get(variable, &mut self.params) {
                Some(col) => Operand::Col(col),
                None => Operand::Unbound,
            },
            Expression::And(..)
            | Expression::Or(..)
            | Expression::Equal(..)
            | Expression::In(..) => Operand::Bool(self.boolean(expression, false, scope)?),
            Expression::Not(inner) => Operand::Bool(match inner.as_ref() {
                Expression::Bound(variable) => match scope.get(variable, &mut self.params) {
                    Some(col) => col.unbound_sql(),
                    None => "TRUE".to_owned(),
                },
                Expression::Exists(pattern) => {
                    // Nothing matches a union when nothing matches any of its branches.
                    let mut branches = Vec::new();
                    union_operands(pattern, &mut branches);
                    if alternatives(&branches).is_some() {
                        branches = vec![pattern];
                    }
                    let tests = branches
                        .into_iter()
                        .map(|branch| Ok(format!("NOT {}", self.exists(branch, scope)?)))
                        .collect::<Result<Vec<_>, Error>>()?;
                    match tests.as_slice() {
                        [one] => one.clone(),
                        _ => format!("({})", tests.join(" AND ")),
                    }
                }
                Expression::Equal(a, b) => {
                    let (a, b) = (self.operand(a, scope)?, self.operand(b, scope)?);
                    self.unequal(&a, &b)
                }
                _ => format!("NOT ({})", self.boolean(inner, false, scope)?),
            }),
            Expression::SameTerm(a, b) => {
                let (a, b) = (self.operand(a, scope)?, self.operand(b, scope)?);
                let (a, b) = (a.into_col(&mut self.params), b.into_col(&mut self.params));
                Operand::Bool(match (a, b) {
                    (Some(a), Some(b)) => self.same_term(&a, &b),
                    _ => "NULL::boolean".to_owned(),
                })
            }
            Expression::Greater(a, b) => self.compare("gt", a, b, scope)?,
            Expression::GreaterOrEqual(a, b) => self.compare("ge", a, b, scope)?,
            Expression::Less(a, b) => self.compare("lt", a, b, scope)?,
            Expression::LessOrEqual(a, b) => self.compare("le", a, b, scope)?,
            Expression::Add(a, b) => self.arithmetic("add", a, b, scope)?,
            Expression::Subtract(a, b) => self.arithmetic("sub", a, b, scope)?,
            Expression::Multiply(a, b) => self.arithmetic("mul", a, b, scope)?,
            Expression::Divide(a, b) => self.arithmetic("div", a, b, scope)?,
            Expression::UnaryPlus(a) => self.call("quad.pos", &[a], scope)?,
            Expression::UnaryMinus(a) => self.call("quad.neg", &[a], scope)?,
            Expression::Exists(pattern) => Operand::Bool(self.exists(pattern, scope)?),
            Expression::Bound(variable) => {
                Operand::Bool(match scope.get(variable, &mut self.params) {
                    Some(col) => col.bound_sql(),
                    None => "FALSE".to_owned(),
                })
            }
            Expression::If(test, yes, no) => {
                let test = self.boolean(test, false, scope)?;
                let branches = vec![self.operand(yes, scope)?, self.operand(no, scope)?];
                self.choice(branches, true, |sql| {
                    format!(
                        "CASE {test} WHEN TRUE THEN {} WHEN FALSE THEN {} END",
                        sql[0], sql[1]
                    )
                })
            }
            Expression::Coalesce(list) => {
                let mut operands = Vec::new();
                for e in list {
                    match self.operand(e, scope)? {
                        Operand::Unbound => {}
                        operand => operands.push(operand),
                    }
                }
                if operands.is_empty() {
                    return Ok(Operand::Unbound);
                }
                let nullable = operands.iter().all(|o| match o {
                    Operand::Col(col) => col.nullable,
                    Operand::Constant(_) => false,
                    _ => true,
                });
                self.choice(operands, nullable, |sql| {
                    format!("COALESCE({})", sql.join(", "))
                })
            }
            Expression::FunctionCall(name, arguments) => {
                self.function_call(name, arguments, scope)?
            }
        })
    }

    /// One of several values: as ids or booleans when all are such, else as terms.
    fn choice(
        &mut self,
        operands: Vec<Operand>,
        nullable: bool,
        build: impl Fn(&[String]) -> String,
    ) -> Operand {
        if operands.iter().all(|o| matches!(o, Operand::Bool(_))) {
            let sql: Vec<String> = operands
                .iter()
                .map(|o| o.boolean_sql(&mut self.params))
                .collect();
            return Operand::Bool(format!("({})", build(&sql)));
        }
        if operands
            .iter()
            .any(|o| matches!(o, Operand::Col(c) if c.id.is_some()))
            && operands.iter().all(|o| match o {
                Operand::Col(c) => c.id.is_some(),
                Operand::Constant(_) => true,
                _ => false,
            })
        {
            let cols: Vec<Col> = operands
                .into_iter()
                .filter_map(|o| o.into_col(&mut self.params))
                .collect();
            let ids: Vec<String> = cols.iter().map(|c| c.any().to_owned()).collect();
            return Operand::Col(Col {
                id: Some(format!("({})", build(&ids))),
                unknown: cols.iter().flat_map(|c| c.unknown.clone()).collect(),
                nullable,
                strict: false,
                ..Col::of_quad(
                    String::new(),
                    cols.iter().map(|c| c.kind).min().unwrap_or(Kind::Any),
                )
            });
        }
        let sql: Vec<String> = operands
            .iter()
            .map(|o| o.term_sql(&mut self.params))
            .collect();
        Operand::Term(format!("({})", build(&sql)))
    }

    /// An SQL boolean where the operand has a value, NULL where it is unbound or an error.
    fn defined(&mut self, operand: &Operand, value: &str) -> String {
        let test = match operand {
            Operand::Constant(_) => return value.to_owned(),
            Operand::Unbound => return "NULL::boolean".to_owned(),
            Operand::Col(col) if !col.nullable => return value.to_owned(),
            Operand::Col(col) => col.bound_sql(),
            Operand::Bool(sql) => format!("({sql}) IS NOT NULL"),
            Operand::Term(sql) | Operand::Exact(sql, _) => format!("{sql} IS NOT NULL"),
        };
        format!("CASE WHEN {test} THEN {value} END")
    }

    /// `=` (sections 17.3 and 17.4.1.7). Ids are compared where that gives the same answer as the values.
    fn equal(&mut self, a: &Operand, b: &Operand, lax: bool) -> String {
        let identity = lax && a.is_same_with(b);
        match self.ids_of_resources(a, b, identity) {
            Some((x, y)) => format!("{x} = {y}"),
            None if identity => self.same_value(a, b),
            None => self.comparison("eq", a, b),
        }
    }

    /// `=` of two values that are equal exactly when their terms are the same, as a condition that PostgreSQL can join
    /// by.
    fn same_value(&mut self, a: &Operand, b: &Operand) -> String {
        match (a, b) {
            // Filters on ids know the comparison with a constant.
            (Operand::Constant(_), _) | (_, Operand::Constant(_)) => self.comparison("eq", a, b),
            (Operand::Col(col), other) | (other, Operand::Col(col)) if col.has_plain_id() => {
                format!(
                    "{} = quad.find({})",
                    col.any(),
                    other.term_sql(&mut self.params)
                )
            }
            _ => format!(
                "{} OPERATOR(quad.=) {}",
                a.term_sql(&mut self.params),
                b.term_sql(&mut self.params)
            ),
        }
    }

    /// `!=`.
    fn unequal(&mut self, a: &Operand, b: &Operand) -> String {
        match self.ids_of_resources(a, b, false) {
            Some((x, y)) => format!("{x} <> {y}"),
            None => self.comparison("ne", a, b),
        }
    }

    /// The ids of both, when one is no literal (or `identity`: equal ids are all that counts).
    fn ids_of_resources(
        &mut self,
        a: &Operand,
        b: &Operand,
        identity: bool,
    ) -> Option<(String, String)> {
        if identity || a.is_resource() || b.is_resource() {
            a.any_id(&mut self.params).zip(b.any_id(&mut self.params))
        } else {
            None
        }
    }

    fn same_term(&mut self, a: &Col, b: &Col) -> String {
        match (&a.id, &b.id) {
            (Some(_), Some(_)) => same_sql(a, b, &mut self.params),
            // Unlike a join, a term without id is not the same as one that has an id, rather than unknown.
            _ => format!(
                "{} OPERATOR(quad.=) {}",
                a.term_sql(&mut self.params),
                b.term_sql(&mut self.params)
            ),
        }
    }

    fn compare(
        &mut self,
        operator: &str,
        a: &Expression,
        b: &Expression,
        scope: &Scope<'_>,
    ) -> Result<Operand, Error> {
        let (a, b) = (self.operand(a, scope)?, self.operand(b, scope)?);
        Ok(Operand::Bool(self.comparison(operator, &a, &b)))
    }

    fn comparison(&mut self, operator: &str, a: &Operand, b: &Operand) -> String {
        if let (Some((Inlined::Integer, x)), Some((Inlined::Integer, y))) = (
            a.inlined_id(&mut self.params),
            b.inlined_id(&mut self.params),
        ) {
            let operator = match operator {
                "eq" => "=",
                "ne" => "<>",
                "lt" => "<",
                "le" => "<=",
                "gt" => ">",
                _ => ">=",
            };
            return format!("{x} {operator} {y}");
        }
        if let (Some(x), Some(y)) = (a.plain_id(&mut self.params), b.plain_id(&mut self.params)) {
            return format!("quad.{operator}({x}, {y})");
        }
        self.on_terms(operator, a, b)
    }

    /// An operator on two terms.
    fn on_terms(&mut self, operator: &str, a: &Operand, b: &Operand) -> String {
        let a = a.term_sql(&mut self.params);
        let b = b.term_sql(&mut self.params);
        format!("quad.{operator}({a}, {b})")
    }

    /// Arithmetic of two operands. A float and another number that is no double give a float, which is in its id.
    fn arithmetic(
        &mut self,
        operator: &str,
        a: &Expression,
        b: &Expression,
        scope: &Scope<'_>,
    ) -> Result<Operand, Error> {
        let (a, b) = (self.operand(a, scope)?, self.operand(b, scope)?);
        let ids = (
            a.inlined_id(&mut self.params),
            b.inlined_id(&mut self.params),
        );
        if let (Some((s, x)), Some((t, y))) = ids {
            if s == Inlined::Float || t == Inlined::Float {
                let id = format!("quad.{operator}_float({x}, {y})");
                return Ok(Operand::Col(Col::of_computed_id(id, Some(Inlined::Float))));
            }
        }
        let integer =
            operator != "div" && a.is_integer(&mut self.params) && b.is_integer(&mut self.params);
        let sql = self.on_terms(operator, &a, &b);
        Ok(match integer {
            true => Operand::Exact(sql, Exact::Integer),
            false => Operand::Term(sql),
        })
    }

    fn call(
        &mut self,
        name: &str,
        arguments: &[&Expression],
        scope: &Scope<'_>,
    ) -> Result<Operand, Error> {
        let arguments = arguments
            .iter()
            .map(|a| Ok(self.operand(a, scope)?.term_sql(&mut self.params)))
            .collect::<Result<Vec<_>, Error>>()?;
        Ok(Operand::Term(format!("{name}({})", arguments.join(", "))))
    }

    fn function_call(
        &mut self,
        name: &Function,
        arguments: &[Expression],
        scope: &Scope<'_>,
    ) -> Result<Operand, Error> {
        // Each argument is looked at once: twice would be 2^n times for functions n deep in each other.
        let operands = arguments
            .iter()
            .map(|argument| self.operand(argument, scope))
            .collect::<Result<Vec<_>, Error>>()?;
        if let (Function::IsIri | Function::IsBlank | Function::IsLiteral, [operand]) =
            (name, operands.as_slice())
        {
            if let Operand::Col(Col {
                id: Some(id),
                unknown,
                ..
            }) = operand
            {
                if unknown.is_empty() {
                    return Ok(Operand::Bool(match name {
                        Function::IsIri => format!("{id} < {FIRST_BLANK}"),
                        Function::IsBlank => {
                            format!("({id} >= {FIRST_BLANK} AND {id} < {FIRST_LITERAL})")
                        }
                        _ => format!("{id} >= {FIRST_LITERAL}"),
                    }));
                }
            }
        }
        if let Some(float) = self.float_of_id(name, (arguments, &operands), scope)? {
            return Ok(float);
        }
        if let Some(value) = self.function_of_id(name, &operands) {
            return Ok(value);
        }
        let mut terms: Vec<String> = operands
            .iter()
            .map(|operand| operand.term_sql(&mut self.params))
            .collect();
        match name {
            Function::Concat => {
                let call = format!(
                    "quad.fn_concat(VARIADIC ARRAY[{}]::quad.term[])",
                    terms.join(", ")
                );
                return Ok(Operand::Exact(call, Exact::Itself));
            }
            Function::Iri => {
                let base = self.base.clone().unwrap_or_default();
                terms.push(self.params.sql(ParamKind::Text, &base));
            }
            // A node that is stored is one node wherever it is used: it gets its number here. Its label would get one
            // for each use.
            Function::BNode if terms.is_empty() && self.keeps_terms => {
                let node = "quad.decode(quad.encode(quad.fn_bnode()))";
                return Ok(Operand::Term(node.to_owned()));
            }
            // Without a number there is but one solution to tell from others: the one that a condition is tested on.
            Function::BNode if !terms.is_empty() => terms.push(scope.row.unwrap_or("0").to_owned()),
            _ => {}
        }
        let Some(function) = function::of(name, terms.len())? else {
            return Ok(Operand::Unbound);
        };
        let call = format!("{}({})", function.name, terms.join(", "));
        Ok(match exact(name) {
            _ if function.boolean => Operand::Bool(call),
            Some(exact) => Operand::Exact(call, exact),
            None => Operand::Term(call),
        })
    }

    /// A function whose first argument has an id, if the id tells the result or the term is read where the dictionary
    /// keeps it.
    fn function_of_id(&mut self, name: &Function, operands: &[Operand]) -> Option<Operand> {
        let (function, gives) = function::of_id(name)?;
        let (first, rest) = operands.split_first()?;
        let id = match first {
            Operand::Col(col) if col.has_plain_id() => col.any().to_owned(),
            _ => return None,
        };
        let mut list = vec![id];
        for operand in rest {
            list.push(operand.term_sql(&mut self.params));
        }
        let call = format!("{function}({})", list.join(", "));
        Some(match gives {
            OfId::Boolean => Operand::Bool(call),
            OfId::Term => Operand::Exact(call, Exact::Itself),
            OfId::Integer => Operand::Col(Col::of_computed_id(call, Some(Inlined::Integer))),
        })
    }

    /// `xsd:float(A)` and `xsd:float(STR(A))` of what has an id: an id as well.
    fn float_of_id(
        &mut self,
        name: &Function,
        (arguments, operands): (&[Expression], &[Operand]),
        scope: &Scope<'_>,
    ) -> Result<Option<Operand>, Error> {
        let (Function::Custom(iri), [argument], [operand]) = (name, arguments, operands) else {
            return Ok(None);
        };
        if iri.as_str().strip_prefix(XSD_NS) != Some("float") {
            return Ok(None);
        }
        let of_str = match argument {
            Expression::FunctionCall(Function::Str, of) => match of.as_slice() {
                [variable @ Expression::Variable(_)] => Some(self.operand(variable, scope)?),
                _ => None,
            },
            _ => None,
        };
        let (function, operand) = match &of_str {
            Some(of_str) => ("quad.cast_float_of_str", of_str),
            None => ("quad.cast_float", operand),
        };
        Ok(match operand {
            Operand::Col(col) if col.has_plain_id() => {
                let id = format!("{function}({})", col.any());
                Some(Operand::Col(Col::of_computed_id(id, Some(Inlined::Float))))
            }
            _ => None,
        })
    }

    /// EXISTS (section 18.6): the variables of the solution stand for constants in the pattern.
    fn exists(&mut self, pattern: &GraphPattern, scope: &Scope<'_>) -> Result<String, Error> {
        let mut env = scope.env.without_sideways();
        for (variable, col) in scope.vars.iter() {
            env.outer.set(variable.clone(), col.clone());
        }
        if let Graph::Each(hidden) = &env.graph {
            // The solution has its graph already.
            if let Some(col) = env.outer.get(hidden) {
                env.graph = Graph::OfSolution(col.any().to_owned());
            }
        }
        let block = self.block(pattern, &env)?;
        Ok(format!(
            "EXISTS {}",
            parenthesised(&format!("SELECT 1{}", block.body()))
        ))
    }
}

/// What is known of the terms that a function gives.
fn exact(function: &Function) -> Option<Exact> {
    use Function::*;
    match function {
        Str | Lang | Datatype | Iri | Concat | SubStr | Replace | UCase | LCase | EncodeForUri
        | StrBefore | StrAfter | Tz | Md5 | Sha1 | Sha256 | Sha384 | Sha512 | StrLang => {
            Some(Exact::Itself)
        }
        StrLen | Year | Month | Day | Hours | Minutes => Some(Exact::Integer),
        Custom(iri) => {
            let is_string = iri.as_str().strip_prefix(XSD_NS) == Some("string");
            is_string.then_some(Exact::Itself)
        }
        _ => None,
    }
}

/// Whether the expression of a variable is long, so that it is better computed once.
pub(crate) fn is_heavy(col: &Col) -> bool {
    col.any().len() > HEAVY_SQL_BYTES
}
