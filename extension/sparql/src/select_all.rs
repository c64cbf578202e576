//! `SELECT *`: the parser sorts its variables; everyone expects them in the order in which the query first names them.

use spargebra::algebra::GraphPattern;
use spargebra::term::Variable;
use spargebra::Query;

use crate::template::lexer::{Lexer, Token};

/// Whether the text of a query, which is known to parse, begins with `SELECT *` after its prologue.
pub(crate) fn selects_all(text: &str) -> bool {
    let is_one_of = |token: &Token<'_>, keywords: [&str; 2]| match token {
        Token::Word(word) => keywords.iter().any(|k| word.eq_ignore_ascii_case(k)),
        _ => false,
    };
    // The prologue has no other words.
    let mut tokens = Lexer::new(text)
        .map(|lexed| lexed.token)
        .skip_while(|token| {
            !matches!(token, Token::Word(_)) || is_one_of(token, ["BASE", "PREFIX"])
        });
    matches!(tokens.next(), Some(Token::Word(form)) if form.eq_ignore_ascii_case("SELECT"))
        && tokens.find(|token| !is_one_of(token, ["DISTINCT", "REDUCED"]))
            == Some(Token::Mark(b'*'))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse_query;

    #[test]
    fn the_star_is_found_behind_any_prologue() {
        for text in [
            "select*{}",
            "SELECT DISTINCT * {}",
            "Select Reduced*{}",
            "# SELECT ?x\nPREFIX select: <http://e/select>BASE <http://e/>\n SELECT # all\r DISTINCT * {}",
            "base<http://e#>prefix:<http://e/#(>prefix ask:<ask#>prefix e-1:<\\u00e9/ask#>\tselect\n*{}",
        ] {
            assert!(selects_all(text), "{text}");
        }
        for text in [
            "SELECT ?x { { SELECT * {} } }",
            "SELECT DISTINCT ?x { ?x <http://e/p>* ?y }",
            "SELECT (1 AS ?x) { { SELECT * {} } }",
            "SELECT (2*3 AS ?x) {}",
            "PREFIX : <http://e/*> ASK {}",
            "# SELECT *\nDESCRIBE * {}",
            "BASE <http://e/SELECT> CONSTRUCT { ?s ?p ?o } { { SELECT * { ?s ?p ?o } } }",
        ] {
            assert!(!selects_all(text), "{text}");
        }
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
