//! SPARQL as a tree that is written out as text. Where a rule of the language depends on the variables in scope (BIND,
//! projected expressions), the name is chosen while writing. So every tree is valid, and every smaller tree that
//! shrinking tries.

use std::collections::BTreeSet;
use std::fmt::Write;

/// A variable of the small pool that all patterns share.
pub type Var = u8;

/// Number of variables in the pool.
pub const VARS: Var = 5;

/// Name of a variable of the pool.
pub fn name(var: Var) -> String {
    char::from(b'a' + var % VARS).to_string()
}

/// An expression.
#[derive(Clone, Debug)]
pub enum Expr {
    /// Any text that stands for itself.
    Atom(&'static str),
    /// A variable.
    Var(Var),
    /// `f(a, b)`.
    Call(&'static str, Vec<Expr>),
    /// `(a o b)`.
    Infix(&'static str, Box<Expr>, Box<Expr>),
    /// `(o a)`.
    Prefix(&'static str, Box<Expr>),
    /// `a IN (...)`, or `NOT IN`.
    In(Box<Expr>, bool, Vec<Expr>),
    /// `EXISTS {...}`, or `NOT EXISTS`.
    Exists(bool, Group),
    /// An aggregate: its name, whether `DISTINCT`, its argument.
    Aggregate(&'static str, bool, Box<Expr>),
}

/// The elements between braces.
pub type Group = Vec<Element>;

/// A triple, or a path pattern.
#[derive(Clone, Debug)]
pub struct Triple {
    /// Subject, predicate or path, object.
    pub terms: [Node; 3],
}

/// A term of a pattern.
#[derive(Clone, Debug)]
pub enum Node {
    /// A variable.
    Var(Var),
    /// A constant or a path.
    Text(String),
}

/// An element of a group.
#[derive(Clone, Debug)]
pub enum Element {
    /// Triples of one block.
    Triples(Vec<Triple>),
    /// `OPTIONAL`.
    Optional(Group),
    /// `{} UNION {}`.
    Union(Vec<Group>),
    /// `MINUS`.
    Minus(Group),
    /// `FILTER`.
    Filter(Expr),
    /// `BIND`, to the variable of the pool from this one on that is free.
    Bind(Expr, Var),
    /// `VALUES`.
    Values(Values),
    /// `GRAPH`.
    Graph(Node, Group),
    /// A group within the group.
    Nested(Group),
    /// A subquery.
    Select(Box<Select>),
}

/// `VALUES`: variables, rows, `UNDEF` where there is no term.
#[derive(Clone, Debug)]
pub struct Values {
    /// Different variables.
    pub vars: Vec<Var>,
    /// Rows of that many terms.
    pub rows: Vec<Vec<Option<&'static str>>>,
}

/// What a SELECT query gives.
#[derive(Clone, Debug)]
pub enum Projection {
    /// `*`.
    Star,
    /// Variables, and expressions with names of their own.
    Items(Vec<Var>, Vec<Expr>),
}

/// A SELECT query.
#[derive(Clone, Debug)]
pub struct Select {
    /// `DISTINCT`, `REDUCED` or nothing.
    pub modifier: &'static str,
    /// The projection.
    pub projection: Projection,
    /// The pattern.
    pub pattern: Group,
    /// `GROUP BY`; `Some` of none: one group of all.
    pub group_by: Option<Vec<Var>>,
    /// `HAVING`.
    pub having: Option<Expr>,
    /// `ORDER BY`: variable, whether descending.
    pub order: Vec<(Var, bool)>,
    /// `OFFSET` and `LIMIT`.
    pub slice: Option<(usize, usize)>,
    /// `VALUES` at the end.
    pub values: Option<Values>,
}

/// Prefixes of every request.
pub const PREFIXES: &str = "PREFIX : <http://e/> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>\n";

impl Expr {
    /// Writes the expression.
    pub fn write(&self, out: &mut String) {
        match self {
            Self::Atom(text) => out.push_str(text),
            Self::Var(var) => push(out, format_args!("?{}", name(*var))),
            Self::Call(function, arguments) => {
                out.push_str(function);
                write_list(out, arguments);
            }
            Self::Infix(operator, a, b) => {
                out.push('(');
                a.write(out);
                push(out, format_args!(" {operator} "));
                b.write(out);
                out.push(')');
            }
            Self::Prefix(operator, a) => {
                push(out, format_args!("({operator}"));
                a.write(out);
                out.push(')');
            }
            Self::In(a, negated, list) => {
                out.push('(');
                a.write(out);
                out.push_str(if *negated { " NOT IN " } else { " IN " });
                write_list(out, list);
                out.push(')');
            }
            Self::Aggregate(name, distinct, argument) => {
                let distinct = if *distinct { "DISTINCT " } else { "" };
                push(out, format_args!("{name}({distinct}"));
                argument.write(out);
                out.push(')');
            }
            Self::Exists(negated, group) => {
                out.push_str(if *negated { "NOT EXISTS " } else { "EXISTS " });
                let mut text = String::new();
                write_group(group, &mut text);
                // What is assigned in the pattern has other names than what is outside. The specification (section
                // 18.6) does not say what it means to put a term in the place of an assigned variable.
                out.push_str(&text.replace(" AS ?", " AS ?y"));
            }
        }
    }
}

fn push(out: &mut String, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("a String takes any text");
}

fn write_list(out: &mut String, list: &[Expr]) {
    out.push('(');
    for (place, item) in list.iter().enumerate() {
        if place > 0 {
            out.push_str(", ");
        }
        item.write(out);
    }
    out.push(')');
}

impl Node {
    /// Writes the term.
    pub fn write(&self, out: &mut String) {
        match self {
            Self::Var(var) => push(out, format_args!("?{}", name(*var))),
            Self::Text(text) => out.push_str(text),
        }
    }

    fn see(&self, scope: &mut BTreeSet<String>) {
        if let Self::Var(var) = self {
            scope.insert(name(*var));
        }
    }
}

impl Triple {
    /// Writes the triple with its dot.
    pub fn write(&self, out: &mut String) {
        for term in &self.terms {
            term.write(out);
            out.push(' ');
        }
        out.push_str(". ");
    }
}

/// Writes the group with its braces.
pub fn write_group(group: &Group, out: &mut String) {
    let mut scope = BTreeSet::new();
    out.push_str("{ ");
    for element in group {
        if let Element::Bind(expression, first) = element {
            if let Some(var) = free(*first, &scope) {
                out.push_str("BIND(");
                expression.write(out);
                push(out, format_args!(" AS ?{var}) "));
                scope.insert(var);
            }
            continue;
        }
        element.write(out);
        element.see(&mut scope);
    }
    out.push_str("} ");
}

/// The first variable of the pool from this one on that is not in scope.
fn free(first: Var, scope: &BTreeSet<String>) -> Option<String> {
    (first..first + VARS)
        .map(name)
        .find(|var| !scope.contains(var))
}

/// Variables in scope at the end of a group.
pub fn scope_of(group: &Group) -> BTreeSet<String> {
    let mut scope = BTreeSet::new();
    for element in group {
        element.see(&mut scope);
    }
    scope
}

impl Element {
    fn write(&self, out: &mut String) {
        match self {
            Self::Triples(triples) => triples.iter().for_each(|triple| triple.write(out)),
            Self::Optional(group) => {
                out.push_str("OPTIONAL ");
                write_group(group, out);
            }
            Self::Union(groups) => {
                for (place, group) in groups.iter().enumerate() {
                    if place > 0 {
                        out.push_str("UNION ");
                    }
                    write_group(group, out);
                }
            }
            Self::Minus(group) => {
                out.push_str("MINUS ");
                write_group(group, out);
            }
            Self::Filter(expression) => {
                out.push_str("FILTER (");
                expression.write(out);
                out.push_str(") ");
            }
            Self::Bind(..) => unreachable!("written by its group, which knows the scope"),
            Self::Values(values) => values.write(out),
            Self::Graph(graph, group) => {
                out.push_str("GRAPH ");
                graph.write(out);
                out.push(' ');
                let mut text = String::new();
                write_group(group, &mut text);
                if let Node::Var(var) = graph {
                    // The name of the graph joins what is assigned to it within (section 18.6); the reference assigns
                    // anew.
                    let var = name(*var);
                    text = text.replace(&format!(" AS ?{var})"), &format!(" AS ?{var}g)"));
                }
                out.push_str(&text);
            }
            Self::Nested(group) => write_group(group, out),
            Self::Select(select) => {
                out.push_str("{ ");
                select.write("", out);
                out.push_str("} ");
            }
        }
    }

    /// Adds the variables that the element puts in scope (section 18.2.1).
    fn see(&self, scope: &mut BTreeSet<String>) {
        match self {
            Self::Triples(triples) => triples
                .iter()
                .flat_map(|triple| &triple.terms)
                .for_each(|term| term.see(scope)),
            Self::Optional(group) | Self::Nested(group) => scope.extend(scope_of(group)),
            Self::Union(groups) => groups.iter().for_each(|g| scope.extend(scope_of(g))),
            Self::Minus(_) | Self::Filter(_) => {}
            Self::Bind(_, first) => scope.extend(free(*first, scope)),
            Self::Values(values) => scope.extend(values.vars.iter().map(|v| name(*v))),
            Self::Graph(graph, group) => {
                graph.see(scope);
                scope.extend(scope_of(group));
            }
            Self::Select(select) => scope.extend(select.columns()),
        }
    }
}

impl Values {
    fn write(&self, out: &mut String) {
        out.push_str("VALUES (");
        for var in &self.vars {
            push(out, format_args!("?{} ", name(*var)));
        }
        out.push_str(") { ");
        for row in &self.rows {
            out.push('(');
            for term in row {
                out.push_str(term.unwrap_or("UNDEF"));
                out.push(' ');
            }
            out.push_str(") ");
        }
        out.push_str("} ");
    }
}

impl Select {
    /// The columns of the answer.
    pub fn columns(&self) -> Vec<String> {
        let (vars, expressions) = self.items();
        vars.into_iter()
            .chain(expressions.into_iter().map(|(name, _)| name))
            .collect()
    }

    /// Projected variables, and projected expressions with their names.
    fn items(&self) -> (Vec<String>, Vec<(String, &Expr)>) {
        let mut scope = scope_of(&self.pattern);
        let Projection::Items(vars, expressions) = &self.projection else {
            let values = self.values.iter().flat_map(|values| &values.vars);
            scope.extend(values.map(|var| name(*var)));
            return (scope.into_iter().collect(), Vec::new());
        };
        let mut columns: Vec<String> = Vec::new();
        for var in vars {
            let allowed = self.group_by.as_ref().is_none_or(|keys| keys.contains(var));
            if allowed && !columns.contains(&name(*var)) {
                columns.push(name(*var));
            }
        }
        scope.extend(columns.iter().cloned());
        let mut named = Vec::new();
        for expression in expressions {
            let fresh = (0..)
                .map(|n| format!("x{n}"))
                .find(|n| !scope.contains(n))
                .expect("there is always another number");
            scope.insert(fresh.clone());
            named.push((fresh, expression));
        }
        if columns.is_empty() && named.is_empty() {
            // A projection must not be empty: a variable that nothing binds does no harm.
            columns.push("none".to_owned());
        }
        (columns, named)
    }

    /// Writes the query; `dataset` is its data set clause.
    pub fn write(&self, dataset: &str, out: &mut String) {
        push(out, format_args!("SELECT {} ", self.modifier));
        if let Projection::Star = self.projection {
            out.push('*');
        } else {
            let (vars, expressions) = self.items();
            for var in vars {
                if self.group_by.is_some() && var == "none" {
                    out.push_str("(1 AS ?none) ");
                } else {
                    push(out, format_args!("?{var} "));
                }
            }
            for (name, expression) in expressions {
                out.push('(');
                expression.write(out);
                push(out, format_args!(" AS ?{name}) "));
            }
        }
        out.push_str(dataset);
        out.push_str(" WHERE ");
        write_group(&self.pattern, out);
        if let Some(keys) = &self.group_by {
            if !keys.is_empty() {
                out.push_str("GROUP BY ");
                for key in keys {
                    push(out, format_args!("?{} ", name(*key)));
                }
            }
        }
        if let Some(having) = &self.having {
            out.push_str("HAVING (");
            having.write(out);
            out.push_str(") ");
        }
        if !self.order.is_empty() {
            out.push_str("ORDER BY ");
            for (var, descending) in &self.order {
                let direction = if *descending { "DESC" } else { "ASC" };
                push(out, format_args!("{direction}(?{}) ", name(*var)));
            }
        }
        if let Some((offset, limit)) = self.slice {
            push(out, format_args!("LIMIT {limit} OFFSET {offset} "));
        }
        if let Some(values) = &self.values {
            values.write(out);
        }
    }
}
