//! Names that stand for no IRI: prefixes that a text uses and does not declare, and relative IRIs without a base.

use crate::error::Error;
use crate::expected::position;
use crate::template::lexer::{tokens, Token};

/// The error of the first name that stands for no IRI: its prefix is not declared before it, or it is relative and
/// there is no base. `has_base`: one comes with the text. `None` where there is none, or the text cannot be cut into
/// tokens.
pub(crate) fn unresolved(text: &str, has_base: bool) -> Option<Error> {
    let tokens = tokens(text)?;
    let mut declared = Vec::new();
    let mut has_base = has_base;
    let mut before = None;
    for lexed in &tokens {
        let follows = |keyword: &str| matches!(before, Some(Token::Word(word)) if word.eq_ignore_ascii_case(keyword));
        match lexed.token {
            Token::Name { prefix, local, .. } => {
                if local.is_empty() && follows("prefix") {
                    declared.push(prefix);
                } else if !declared.contains(&prefix) {
                    return Some(Error::UndeclaredPrefix {
                        prefix: prefix.to_owned(),
                        position: position(text, lexed.start),
                    });
                }
            }
            Token::Iri(iri) if is_absolute(iri) => has_base |= follows("base"),
            Token::Iri(iri) if !has_base && !is_comparison(iri) => {
                return Some(Error::RelativeIri {
                    iri: iri.to_owned(),
                    position: position(text, lexed.start),
                });
            }
            _ => {}
        }
        before = Some(lexed.token);
    }
    None
}

/// Whether an IRI begins with a scheme.
fn is_absolute(iri: &str) -> bool {
    iri.split_once(':').is_some_and(|(scheme, _)| {
        let is_part = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
        scheme.starts_with(|c: char| c.is_ascii_alphabetic()) && scheme.chars().all(is_part)
    })
}

/// Whether what the lexer takes for an IRI may be a comparison without blanks: `?a<?b&&?c>?d`.
fn is_comparison(iri: &str) -> bool {
    iri.contains("&&") || iri.contains("||") || iri.starts_with(['?', '$'])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{parse_query, parse_update};

    fn found(text: &str) -> Option<(String, (u32, u32))> {
        match parse_query(text, None) {
            Err(Error::UndeclaredPrefix { prefix, position }) => Some((prefix, position)),
            _ => None,
        }
    }

    #[test]
    fn the_first_one_is_named() {
        let text = "SELECT * WHERE {\n  ?ö foaf:name ?n ; ex:x ?y }";
        assert_eq!(found(text), Some(("foaf".to_owned(), (2, 6))));
        let text = "PREFIX foaf: <http://x/> SELECT * { ?s foaf:name ?n ; a :Person }";
        assert_eq!(found(text), Some((String::new(), (1, 57))));
        let text = "INSERT DATA { <http://s> foaf:name 'x' }";
        let error = parse_update(text, None).unwrap_err();
        let hint =
            "Add the declaration at the beginning: PREFIX foaf: <http://xmlns.com/foaf/0.1/>";
        assert_eq!(error.hint().as_deref(), Some(hint));
        assert_eq!(
            error.to_string(),
            "prefix \"foaf:\" at line 1, column 26 is not declared"
        );
    }

    #[test]
    fn relative_iris_need_a_base() {
        let text = "SELECT * {\n  ?s <p> ?o }";
        let error = parse_query(text, None).unwrap_err();
        assert_eq!(
            error.to_string(),
            "IRI <p> at line 2, column 6 is relative, and there is no base IRI"
        );
        assert_eq!(
            error.place(text).as_deref(),
            Some("Line 2:\n    ?s <p> ?o }\n       ^")
        );
        assert!(error.hint().unwrap().contains("BASE <"));
        assert!(parse_query(text, Some("http://x/")).is_ok());
        assert!(parse_query("BASE <http://x/> SELECT * { ?s <p> ?o }", None).is_ok());
        for other in [
            "BASE <http://x/> SELECT * { ?s <p> }",
            "SELECT * { ?s ?p ?o FILTER(?s<?p&&?o>?s) } LIMIT x",
            "SELECT * { ?s ?p } BASE <p>",
        ] {
            let error = parse_query(other, None).unwrap_err();
            assert!(matches!(error, Error::Syntax { .. }), "{other}: {error}");
        }
    }

    #[test]
    fn other_errors_stay_what_they_are() {
        for text in [
            "PREFIX foaf: <http://x/> SELECT * { ?s foaf:name }",
            "SELECT * { ?s ?p 'foaf:name }",
            "SELECT * { ?s ?p ?o # foaf:name\n",
            "SELECT * { ?s <http://foaf:80/> }",
        ] {
            assert!(
                matches!(parse_query(text, None), Err(Error::Syntax { .. })),
                "{text}"
            );
        }
        assert!(parse_query(
            "prefix foaf: <http://x/> SELECT * { ?s foaf:name ?o }",
            None
        )
        .is_ok());
    }

    #[test]
    fn the_place_is_shown() {
        let text = "SELECT *\nWHERE { ?s\tfoaf:name ?o }";
        let error = parse_query(text, None).unwrap_err();
        let shown = "Line 2:\n  WHERE { ?s foaf:name ?o }\n             ^";
        assert_eq!(error.place(text).as_deref(), Some(shown));
        let long = format!(
            "SELECT * {{ {} ?s foaf:name ?o }}",
            "?s ?p ?o . ".repeat(40)
        );
        let place = parse_query(&long, None).unwrap_err().place(&long).unwrap();
        let lines: Vec<&str> = place.lines().collect();
        assert!(lines.iter().all(|line| line.len() <= 84), "{place}");
        assert_eq!(lines[1].as_bytes()[lines[2].len() - 1], b'f', "{place}");
    }
}
