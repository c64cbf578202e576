//! Graph patterns as SPARQL text, for another endpoint.
//!
//! The parser's own writer leaves out the braces that keep a filter to its group. This one puts every operand that a
//! filter, or the like, could leak from into a group of its own. Subselects and EXISTS are left to the parser's writer:
//! in them such operands become unions with nothing ([`braced`]), which it writes in braces.

use std::fmt::Write;

use spargebra::algebra::{Expression, GraphPattern, OrderExpression};
use spargebra::term::Variable;

/// A query for the bindings of these variables.
pub(crate) fn select(pattern: &GraphPattern, variables: &[Variable], base: Option<&str>) -> String {
    let mut text = String::new();
    if let Some(base) = base {
        let _ = writeln!(text, "BASE <{base}>");
    }
    text.push_str("SELECT");
    if variables.is_empty() {
        text.push_str(" *");
    }
    for variable in variables {
        let _ = write!(text, " {variable}");
    }
    let _ = write!(text, " WHERE {{ {} }}", group(pattern));
    text
}

/// The inside of a group.
fn group(pattern: &GraphPattern) -> String {
    match pattern {
        GraphPattern::Join { left, right } => format!("{} {}", operand(left), operand(right)),
        GraphPattern::LeftJoin {
            left,
            right,
            expression,
        } => {
            let (left, right) = (operand(left), operand(right));
            match expression {
                Some(filter) => format!(
                    "{left} OPTIONAL {{ {right} FILTER({}) }}",
                    condition(filter)
                ),
                None => format!("{left} OPTIONAL {{ {right} }}"),
            }
        }
        GraphPattern::Minus { left, right } => {
            format!("{} MINUS {{ {} }}", operand(left), group(right))
        }
        GraphPattern::Filter { expr, inner } => {
            format!("{} FILTER({})", operand(inner), condition(expr))
        }
        GraphPattern::Extend {
            inner,
            variable,
            expression,
        } => format!(
            "{} BIND({} AS {variable})",
            operand(inner),
            condition(expression)
        ),
        GraphPattern::Union { left, right } => {
            format!("{{ {} }} UNION {{ {} }}", group(left), group(right))
        }
        GraphPattern::Graph { name, inner } => format!("GRAPH {name} {{ {} }}", group(inner)),
        GraphPattern::Service {
            name,
            inner,
            silent,
        } => {
            let silent = if *silent { " SILENT" } else { "" };
            format!("SERVICE{silent} {name} {{ {} }}", group(inner))
        }
        other => braced(other).to_string(),
    }
}

/// The same pattern, to be written by the parser's writer: where more follows or precedes, what a filter could leak
/// from is united with nothing. (A subselect would hide the variables around EXISTS.)
fn braced(pattern: &GraphPattern) -> GraphPattern {
    let boxed = |pattern: &GraphPattern| Box::new(braced(pattern));
    let apart = |pattern: &GraphPattern| Box::new(set_apart(pattern));
    match pattern {
        GraphPattern::Join { left, right } => GraphPattern::Join {
            left: apart(left),
            right: apart(right),
        },
        GraphPattern::LeftJoin {
            left,
            right,
            expression,
        } => GraphPattern::LeftJoin {
            left: apart(left),
            right: apart(right),
            expression: expression.as_ref().map(condition),
        },
        GraphPattern::Minus { left, right } => GraphPattern::Minus {
            left: apart(left),
            right: boxed(right),
        },
        GraphPattern::Filter { expr, inner } => GraphPattern::Filter {
            expr: condition(expr),
            inner: apart(inner),
        },
        GraphPattern::Extend {
            inner,
            variable,
            expression,
        } => GraphPattern::Extend {
            inner: apart(inner),
            variable: variable.clone(),
            expression: condition(expression),
        },
        GraphPattern::Union { left, right } => GraphPattern::Union {
            left: boxed(left),
            right: boxed(right),
        },
        GraphPattern::Graph { name, inner } => GraphPattern::Graph {
            name: name.clone(),
            inner: boxed(inner),
        },
        GraphPattern::Service {
            name,
            inner,
            silent,
        } => GraphPattern::Service {
            name: name.clone(),
            inner: boxed(inner),
            silent: *silent,
        },
        GraphPattern::OrderBy { inner, expression } => GraphPattern::OrderBy {
            inner: boxed(inner),
            expression: expression.iter().map(key).collect(),
        },
        GraphPattern::Project { inner, variables } => GraphPattern::Project {
            inner: boxed(inner),
            variables: variables.clone(),
        },
        GraphPattern::Distinct { inner } => GraphPattern::Distinct {
            inner: boxed(inner),
        },
        GraphPattern::Reduced { inner } => GraphPattern::Reduced {
            inner: boxed(inner),
        },
        GraphPattern::Slice {
            inner,
            start,
            length,
        } => GraphPattern::Slice {
            inner: boxed(inner),
            start: *start,
            length: *length,
        },
        GraphPattern::Group {
            inner,
            variables,
            aggregates,
        } => GraphPattern::Group {
            inner: boxed(inner),
            variables: variables.clone(),
            aggregates: aggregates.clone(),
        },
        leaf => leaf.clone(),
    }
}

/// A pattern as an operand: in braces of its own where something could leak.
fn set_apart(pattern: &GraphPattern) -> GraphPattern {
    let leaks = match pattern {
        GraphPattern::Filter { .. }
        | GraphPattern::LeftJoin { .. }
        | GraphPattern::Minus { .. }
        | GraphPattern::Extend { .. } => true,
        GraphPattern::Join { left, right } => is_group(left) || is_group(right),
        _ => false,
    };
    let inner = braced(pattern);
    if !leaks {
        return inner;
    }
    GraphPattern::Union {
        left: Box::new(inner),
        right: Box::new(GraphPattern::Values {
            variables: Vec::new(),
            bindings: Vec::new(),
        }),
    }
}

fn key(key: &OrderExpression) -> OrderExpression {
    match key {
        OrderExpression::Asc(expression) => OrderExpression::Asc(condition(expression)),
        OrderExpression::Desc(expression) => OrderExpression::Desc(condition(expression)),
    }
}

/// An expression with the patterns of its EXISTS [`braced`].
fn condition(expression: &Expression) -> Expression {
    use Expression::{
        Add, And, Coalesce, Divide, Equal, Exists, FunctionCall, Greater, GreaterOrEqual, If, In,
        Less, LessOrEqual, Multiply, Not, Or, SameTerm, Subtract, UnaryMinus, UnaryPlus,
    };
    let one = |expression: &Expression| Box::new(condition(expression));
    let many = |all: &[Expression]| all.iter().map(condition).collect::<Vec<_>>();
    match expression {
        Or(a, b) => Or(one(a), one(b)),
        And(a, b) => And(one(a), one(b)),
        Equal(a, b) => Equal(one(a), one(b)),
        SameTerm(a, b) => SameTerm(one(a), one(b)),
        Greater(a, b) => Greater(one(a), one(b)),
        GreaterOrEqual(a, b) => GreaterOrEqual(one(a), one(b)),
        Less(a, b) => Less(one(a), one(b)),
        LessOrEqual(a, b) => LessOrEqual(one(a), one(b)),
        In(a, list) => In(one(a), many(list)),
        Add(a, b) => Add(one(a), one(b)),
        Subtract(a, b) => Subtract(one(a), one(b)),
        Multiply(a, b) => Multiply(one(a), one(b)),
        Divide(a, b) => Divide(one(a), one(b)),
        UnaryPlus(a) => UnaryPlus(one(a)),
        UnaryMinus(a) => UnaryMinus(one(a)),
        Not(a) => Not(one(a)),
        Exists(pattern) => Exists(Box::new(braced(pattern))),
        If(a, b, c) => If(one(a), one(b), one(c)),
        Coalesce(all) => Coalesce(many(all)),
        FunctionCall(function, arguments) => FunctionCall(function.clone(), many(arguments)),
        leaf => leaf.clone(),
    }
}

/// The pattern in a place where more follows. Triples stand without braces, which would end the scope of their blank
/// nodes.
fn operand(pattern: &GraphPattern) -> String {
    match pattern {
        GraphPattern::Bgp { .. }
        | GraphPattern::Path { .. }
        | GraphPattern::Graph { .. }
        | GraphPattern::Service { .. }
        | GraphPattern::Values { .. } => group(pattern),
        GraphPattern::Join { left, right } if !is_group(left) && !is_group(right) => group(pattern),
        _ => format!("{{ {} }}", group(pattern)),
    }
}

/// Whether the pattern is written in braces as an operand.
fn is_group(pattern: &GraphPattern) -> bool {
    match pattern {
        GraphPattern::Join { left, right } => is_group(left) || is_group(right),
        GraphPattern::Bgp { .. }
        | GraphPattern::Path { .. }
        | GraphPattern::Graph { .. }
        | GraphPattern::Service { .. }
        | GraphPattern::Values { .. } => false,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use spargebra::{Query, SparqlParser};

    fn parse(text: &str) -> GraphPattern {
        match SparqlParser::new().parse_query(text).unwrap() {
            Query::Select { pattern, .. } => pattern,
            _ => unreachable!(),
        }
    }

    /// The pattern below the projection.
    fn body(pattern: &GraphPattern) -> &GraphPattern {
        match pattern {
            GraphPattern::Project { inner, .. } => inner,
            other => other,
        }
    }

    #[test]
    fn what_is_written_is_read_back_as_the_same() {
        for group in [
            "?s ?p ?o",
            "?s ?p ?o . ?o <a:p>* ?x . ?x <a:q> \"it's \\\"\\\\ \\n\"@en",
            "?s ?p ?o { ?x ?y ?z FILTER(?o = ?x) }",
            "{ ?x ?y ?z FILTER(?o = ?x) } ?s ?p ?o",
            "{ ?x ?y ?z FILTER(?o = ?x) } { ?s ?p ?o FILTER(?z = 1) }",
            "?s ?p ?o OPTIONAL { ?o ?q ?z FILTER(?z > 1) }",
            "?s ?p ?o OPTIONAL { { ?o ?q ?z FILTER(?z > 1) } }",
            "OPTIONAL { ?s ?p ?o } ?s ?q ?z",
            "{ ?s ?p ?o OPTIONAL { ?o ?q ?z } } ?z ?r ?w",
            "{ ?s ?p ?o } UNION { ?s ?q ?o FILTER(?o > 1) } UNION { ?x ?y ?z }",
            "?a ?b ?c { ?s ?p ?o } UNION { ?s ?q ?o }",
            "?s ?p ?o MINUS { ?s ?q ?o FILTER(?o > 1) }",
            "?s ?p ?o BIND(?o + 1 AS ?x) ?x ?q ?y",
            "GRAPH ?g { ?s ?p ?o FILTER(?o > 1) } VALUES (?s ?o) { (<a:b> UNDEF) (UNDEF 1) }",
            "SERVICE SILENT <a:b> { ?s ?p ?o FILTER(?o > 1) } ?s ?q ?x",
            "?s ?p ?o FILTER(EXISTS { ?o ?q ?z } || ?o > 1)",
            "{ SELECT DISTINCT ?s (?o + 1 AS ?x) { ?s ?p ?o } ORDER BY ?o LIMIT 3 OFFSET 1 } ?s ?q ?z",
        ] {
            let pattern = parse(&format!("SELECT * WHERE {{ {group} }}"));
            let mut variables = Vec::new();
            body(&pattern).on_in_scope_variable(|v| {
                if !variables.contains(v) {
                    variables.push(v.clone());
                }
            });
            let written = select(body(&pattern), &variables, None);
            let read = parse(&written);
            let again = select(body(&read), &variables, None);
            assert_eq!(written, again, "{group}");
            assert_eq!(
                simple(body(&pattern)),
                simple(body(&read)),
                "{group}\n{written}"
            );
        }
    }

    /// Filters stay in the groups that they were written in, also within subselects and EXISTS.
    #[test]
    fn filters_stay_in_their_groups() {
        for (group, kept) in [
            (
                "{ SELECT ?s ?z { { ?s <a:p> ?o FILTER(!BOUND(?z)) } OPTIONAL { ?s <a:q> ?z } } }",
                "LeftJoin { left: Union { left: Filter",
            ),
            (
                "?s ?p ?o FILTER EXISTS { { ?s ?p ?o FILTER(?o > 1) } ?s ?q ?z }",
                "Join { left: Union { left: Filter",
            ),
            (
                "{ SELECT * { ?s ?p ?o { ?o ?q ?z FILTER(?z > ?s) } } LIMIT 3 }",
                "right: Union { left: Filter",
            ),
        ] {
            let pattern = parse(&format!("SELECT * {{ {group} }}"));
            let written = select(body(&pattern), &[], None);
            let read = format!("{:?}", parse(&written));
            assert!(read.contains(kept), "{written}\n{read}");
        }
    }

    /// The algebra without joins with the empty group, which braces make.
    fn simple(pattern: &GraphPattern) -> String {
        format!("{pattern:?}").replace("Bgp { patterns: [] }", "")
    }

    #[test]
    fn blank_nodes_keep_their_scope() {
        let pattern = parse("SELECT * { _:a <a:p> ?x . _:a <a:q>+ ?y . _:a <a:r> ?z }");
        parse(&select(body(&pattern), &[], None));
    }

    #[test]
    fn aggregates_can_be_read_back() {
        // Their results get new names each time.
        let group =
            "{ SELECT ?s (COUNT(*) AS ?n) { ?s ?p ?o } GROUP BY ?s HAVING(COUNT(*) > 1) } ?s ?q ?z";
        let pattern = parse(&format!("SELECT * {{ {group} }}"));
        parse(&select(body(&pattern), &[], None));
    }

    #[test]
    fn base_and_no_variables() {
        let pattern = parse("SELECT * { <a:s> <a:p> <a:o> }");
        assert_eq!(
            select(body(&pattern), &[], Some("http://x/")),
            "BASE <http://x/>\nSELECT * WHERE { <a:s> <a:p> <a:o> . }"
        );
    }
}
