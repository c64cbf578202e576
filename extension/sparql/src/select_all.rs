//! `SELECT *`: the parser sorts its variables; everyone expects them in the order in which the query first names them.

use spargebra::algebra::GraphPattern;
use spargebra::term::Variable;
use spargebra::Query;

/// Whether the text of a query, which is known to parse, begins with `SELECT *` after its prologue.
pub(crate) fn selects_all(text: &str) -> bool {
    let mut rest = text;
    loop {
        rest = skip_space(rest);
        if let Some(after) = keyword(rest, "BASE") {
            rest = skip_iri(after);
        } else if let Some(after) = keyword(rest, "PREFIX") {
            rest = skip_iri(after);
        } else {
            break;
        }
    }
    let Some(mut rest) = keyword(rest, "SELECT") else {
        return false;
    };
    rest = skip_space(rest);
    for option in ["DISTINCT", "REDUCED"] {
        if let Some(after) = keyword(rest, option) {
            rest = skip_space(after);
        }
    }
    rest.starts_with('*')
}

/// Puts the variables of the outermost projection into the order in which the pattern below has them.
pub(crate) fn in_order_of_appearance(query: &mut Query) {
    let Query::Select { pattern, .. } = query else {
        return;
    };
    if let Some((inner, variables)) = outermost_projection(pattern) {
        let mut ordered: Vec<Variable> = Vec::with_capacity(variables.len());
        inner.on_in_scope_variable(|v| {
            if variables.contains(v) && !ordered.contains(v) {
                ordered.push(v.clone());
            }
        });
        *variables = ordered;
    }
}

fn outermost_projection(pattern: &mut GraphPattern) -> Option<(&GraphPattern, &mut Vec<Variable>)> {
    match pattern {
        GraphPattern::Project { inner, variables } => Some((inner, variables)),
        GraphPattern::Distinct { inner }
        | GraphPattern::Reduced { inner }
        | GraphPattern::Slice { inner, .. } => outermost_projection(inner),
        _ => None,
    }
}

fn skip_space(text: &str) -> &str {
    let mut rest = text.trim_start();
    while let Some(comment) = rest.strip_prefix('#') {
        rest = comment
            .find(['\r', '\n'])
            .map_or("", |end| &comment[end..])
            .trim_start();
    }
    rest
}

/// What follows the keyword, if the text begins with it.
fn keyword<'t>(text: &'t str, keyword: &str) -> Option<&'t str> {
    let head = text.get(..keyword.len())?;
    head.eq_ignore_ascii_case(keyword)
        .then(|| &text[keyword.len()..])
}

/// What follows the IRI that comes next.
fn skip_iri(text: &str) -> &str {
    text.find('>').map_or("", |end| &text[end + 1..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse_query;

    #[test]
    fn the_star_is_found_behind_any_prologue() {
        assert!(selects_all("select*{}"));
        assert!(selects_all("# SELECT ?x\nPREFIX select: <http://e/select>BASE <http://e/>\n SELECT # all\r DISTINCT * {}"));
        assert!(!selects_all("SELECT ?x { { SELECT * {} } }"));
        assert!(!selects_all("PREFIX : <http://e/*> ASK {}"));
    }

    #[test]
    fn variables_come_in_order_of_appearance() {
        let query = parse_query(
            "SELECT REDUCED * { ?s ?p ?o OPTIONAL { ?o ?a ?s } } LIMIT 1",
            None,
        );
        let Ok(Query::Select { mut pattern, .. }) = query else {
            panic!("not a query");
        };
        let (_, variables) = outermost_projection(&mut pattern).unwrap();
        let names: Vec<&str> = variables.iter().map(Variable::as_str).collect();
        assert_eq!(names, ["s", "p", "o", "a"]);
    }
}
