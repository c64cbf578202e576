//! Bounds on how deep and how long a text may nest, checked before it is parsed. Parser, translator and PostgreSQL
//! recurse with the text. The parser tries a path group once for each modifier that could follow it, so nested ones
//! cost 2^depth.

use crate::error::Error;
use crate::template::lexer::{tokens_until, Lexed, Token};

/// Most brackets open at a time.
const MAX_OPEN_BRACKETS: usize = 500;
/// Most operators and group keywords in one text that chain groups or expressions.
const LONGEST_CHAIN: usize = 1_500;
/// Most path groups with a modifier (`*`, `+`, `?`) inside each other.
const DEEPEST_PATH: usize = 8;

/// An open bracket.
struct Open {
    /// It is a round one.
    round: bool,
    /// A variable, number or string stands inside: no path.
    value: bool,
    /// Path groups with a modifier nested in it.
    paths: usize,
}

/// Refuses texts that nest too deep or chain too long. What follows a string that does not end is not looked at: the
/// parser gets no further either.
///
/// # Errors
/// [`Error::TooComplex`] with the place where the bound is passed.
pub(crate) fn check(text: &str) -> Result<(), Error> {
    let (tokens, _) = tokens_until(text);
    let mut open: Vec<Open> = Vec::new();
    let mut chain = 0;
    // Whether the last token was the second half of `||` or `&&`.
    let mut was_half = false;
    for (i, lexed) in tokens.iter().enumerate() {
        let mut is_half = false;
        match lexed.token {
            Token::Text(_) | Token::Number { .. } | Token::Variable => mark_value(&mut open),
            Token::Mark(bracket @ (b'(' | b'{' | b'[')) => {
                open.push(Open {
                    round: bracket == b'(',
                    value: false,
                    paths: 0,
                });
                if open.len() > MAX_OPEN_BRACKETS {
                    return Err(too_complex(
                        text,
                        lexed.start,
                        format!("more than {MAX_OPEN_BRACKETS} brackets inside each other"),
                    ));
                }
            }
            Token::Mark(b')' | b'}' | b']') => {
                let Some(closed) = open.pop() else { continue };
                let modifier = tokens.get(i + 1).map(|next| next.token);
                let modified = matches!(modifier, Some(Token::Mark(b'*' | b'+' | b'?')));
                let paths = closed.paths + usize::from(modified && !closed.value);
                if paths > DEEPEST_PATH && !closed.value {
                    return Err(too_complex(
                        text,
                        lexed.start,
                        format!("more than {DEEPEST_PATH} repeated path groups inside each other"),
                    ));
                }
                if let Some(outer) = open.last_mut() {
                    outer.value |= closed.value;
                    outer.paths = outer.paths.max(paths);
                }
            }
            Token::Mark(sign @ (b'|' | b'&')) => {
                is_half = !was_half && is_mark_before(&tokens[..i], lexed.start, sign);
                chain += usize::from(!is_half);
            }
            Token::Mark(b'*' | b'/' | b'^' | b'!') => chain += 1,
            // Behind a string it is that of a typed literal, elsewhere it is two inverse paths.
            Token::Typed if !is_text_before(&tokens[..i]) => chain += 2,
            Token::Mark(b'+' | b'-') => {
                chain += usize::from(open.last().is_some_and(|o| o.round));
            }
            Token::Word(word) => {
                let group = ["union", "optional", "minus", "filter", "bind", "graph"];
                chain += usize::from(group.iter().any(|k| word.eq_ignore_ascii_case(k)));
            }
            _ => (),
        }
        was_half = is_half;
        if chain > LONGEST_CHAIN {
            return Err(too_complex(
                text,
                lexed.start,
                format!("more than {LONGEST_CHAIN} operators and groups"),
            ));
        }
    }
    Ok(())
}

/// Whether the last of these tokens is a string.
fn is_text_before(tokens: &[Lexed<'_>]) -> bool {
    matches!(tokens.last(), Some(last) if matches!(last.token, Token::Text(_)))
}

/// Whether the last of these tokens is that mark, right before `start`.
fn is_mark_before(tokens: &[Lexed<'_>], start: usize, mark: u8) -> bool {
    let is_it = |last: &Lexed<'_>| last.end == start && last.token == Token::Mark(mark);
    tokens.last().is_some_and(is_it)
}

fn mark_value(open: &mut [Open]) {
    if let Some(innermost) = open.last_mut() {
        innermost.value = true;
    }
}

fn too_complex(text: &str, at: usize, what: String) -> Error {
    let before = &text[..at];
    let line = before.matches('\n').count() + 1;
    let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
    Error::TooComplex {
        what,
        position: (line as u32, column as u32),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> bool {
        matches!(check(text), Err(Error::TooComplex { .. }))
    }

    #[test]
    fn bounds() {
        let groups = |n: usize| format!("SELECT * WHERE {}{}", "{".repeat(n), "}".repeat(n));
        assert!(!refused(&groups(500)));
        assert!(refused(&groups(501)));
        let unions = |n: usize| format!("SELECT * WHERE {{ {{}} {}}}", "UNION {} ".repeat(n));
        assert!(!refused(&unions(1000)));
        assert!(refused(&unions(1501)));
        let paths = |n: usize| {
            format!(
                "ASK {{ ?s {}<http://x/p>{} ?o }}",
                "(".repeat(n),
                ")*".repeat(n)
            )
        };
        assert!(!refused(&paths(8)));
        assert!(refused(&paths(9)));
        let spaced = format!(
            "ASK {{ ?s {}<http://x/p>{} ?o }}",
            "( ".repeat(9),
            " ) #x\n *".repeat(9)
        );
        assert!(refused(&spaced));
        let inverse = |n: usize| format!("ASK {{ ?s {}<http://x/p> ?o }}", "^".repeat(n));
        assert!(!refused(&inverse(1500)));
        assert!(refused(&inverse(1502)));
        let alternatives =
            |n: usize, or: &str| format!("ASK {{ FILTER(1{}) }}", format!(" {or} 1").repeat(n));
        assert!(!refused(&alternatives(1400, "||")));
        assert!(refused(&alternatives(1600, "||")));
        assert!(refused(&alternatives(800, "| |")));
        assert_eq!(
            check(&format!("ASK\n {}", "{".repeat(501))),
            Err(Error::TooComplex {
                what: "more than 500 brackets inside each other".into(),
                position: (2, 502)
            })
        );
    }

    #[test]
    fn what_only_looks_like_brackets() {
        let strings = format!(
            "SELECT ('{}' AS ?a) {{ ?s ?p \"\"\"{}\"\"\" }}",
            "(".repeat(600),
            "{ \" ".repeat(600)
        );
        assert!(!refused(&strings));
        assert!(!refused(&format!("SELECT * {{ }} # {}", "{".repeat(600))));
        assert!(!refused(&format!(
            "ASK {{ <http://x/{}> ?p ?o }}",
            "(".repeat(600)
        )));
        assert!(!refused(&format!(
            "SELECT ({}1{} AS ?x) {{}}",
            "(".repeat(90),
            ")*2".repeat(90)
        )));
        for object in ["-5", "\"5\"^^<a:c>", "ex:union", "'(*'"] {
            assert!(!refused(&format!(
                "INSERT DATA {{ {} }}",
                format!("<a:a> <a:b> {object} . ").repeat(5000)
            )));
        }
    }
}
