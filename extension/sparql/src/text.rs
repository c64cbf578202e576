//! Graph patterns as SPARQL text, for another endpoint.
//!
//! The parser's own writer leaves out the braces that keep a filter to its group. This one puts every operand that a
//! filter, or the like, could leak from into a group of its own.

use std::fmt::Write;

use spargebra::algebra::GraphPattern;
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
                Some(filter) => format!("{left} OPTIONAL {{ {right} FILTER({filter}) }}"),
                None => format!("{left} OPTIONAL {{ {right} }}"),
            }
        }
        GraphPattern::Minus { left, right } => {
            format!("{} MINUS {{ {} }}", operand(left), group(right))
        }
        GraphPattern::Filter { expr, inner } => format!("{} FILTER({expr})", operand(inner)),
        GraphPattern::Extend {
            inner,
            variable,
            expression,
        } => format!("{} BIND({expression} AS {variable})", operand(inner)),
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
        other => other.to_string(),
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
