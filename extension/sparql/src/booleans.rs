//! `TRUE` and `False`: keywords are read without regard to case (SPARQL 1.1 section 19.8), which the parser does for
//! all but these.

use crate::template::lexer::{tokens, Token};

/// The text with its boolean literals in lower case, each in its place. `None` when they are in lower case already, or
/// the text cannot be cut into tokens.
pub(crate) fn in_lower_case(text: &str) -> Option<String> {
    let mut changed: Option<String> = None;
    for lexed in tokens(text)? {
        let Token::Word(word) = lexed.token else {
            continue;
        };
        let known = ["true", "false"]
            .into_iter()
            .find(|known| word.eq_ignore_ascii_case(known) && word != *known);
        if let Some(known) = known {
            let text = changed.get_or_insert_with(|| text.to_owned());
            text.replace_range(lexed.start..lexed.end, known);
        }
    }
    changed
}

#[cfg(test)]
mod tests {
    use super::in_lower_case;

    #[test]
    fn only_literals_change() {
        assert_eq!(
            in_lower_case("SELECT ?True { ?s TRUE:x 'TRUE' . ?s <TRUE> True, FALSE } # TRUE")
                .as_deref(),
            Some("SELECT ?True { ?s TRUE:x 'TRUE' . ?s <TRUE> true, false } # TRUE")
        );
        assert_eq!(
            in_lower_case("ASK { <http://e/\\u00e9/TRUE> ?p TRUE }").as_deref(),
            Some("ASK { <http://e/\\u00e9/TRUE> ?p true }")
        );
        assert_eq!(in_lower_case("ASK { ?s ?p true }"), None);
        assert_eq!(in_lower_case("ASK { ?s ?p 'true }"), None);
    }
}
