//! Bounds on how deep and how long a text may nest, checked before it is parsed: parser, translator and PostgreSQL
//! recurse with the text, and the parser tries a path group once for each modifier that could follow it, so nested ones
//! cost 2^depth.

use crate::error::Error;

/// Most brackets open at a time.
const DEEPEST: usize = 500;
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

/// Refuses texts that nest too deep or chain too long.
///
/// # Errors
/// [`Error::TooComplex`] with the place where the bound is passed.
pub(crate) fn check(text: &str) -> Result<(), Error> {
    let bytes = text.as_bytes();
    let mut open: Vec<Open> = Vec::new();
    let mut chain = 0;
    let mut i = 0;
    while i < bytes.len() {
        let start = i;
        let after = bytes.get(i + 1).copied().unwrap_or(0);
        match bytes[i] {
            b'#' => i += line_rest(&bytes[i..]),
            b'<' => i += iri(&bytes[i..]),
            quote @ (b'"' | b'\'') => {
                i += string(&bytes[i..], quote);
                mark_value(&mut open);
            }
            b'(' | b'{' | b'[' => {
                i += 1;
                open.push(Open {
                    round: bytes[start] == b'(',
                    value: false,
                    paths: 0,
                });
                if open.len() > DEEPEST {
                    return Err(too_complex(
                        text,
                        start,
                        format!("more than {DEEPEST} brackets inside each other"),
                    ));
                }
            }
            b')' | b'}' | b']' => {
                i += 1;
                let Some(closed) = open.pop() else { continue };
                let next = bytes.get(i + 1).copied().unwrap_or(b' ');
                let modified = match bytes.get(i) {
                    Some(b'*' | b'+') => true,
                    Some(b'?') => !(next.is_ascii_alphanumeric() || next == b'_'),
                    _ => false,
                };
                let paths = closed.paths + usize::from(modified && !closed.value);
                if paths > DEEPEST_PATH && !closed.value {
                    return Err(too_complex(
                        text,
                        start,
                        format!("more than {DEEPEST_PATH} repeated path groups inside each other"),
                    ));
                }
                if let Some(outer) = open.last_mut() {
                    outer.value |= closed.value;
                    outer.paths = outer.paths.max(paths);
                }
            }
            b'?' | b'$' if after.is_ascii_alphanumeric() || after == b'_' => {
                mark_value(&mut open);
                i += 1 + word(&bytes[i + 1..]);
            }
            b'|' | b'&' => {
                i += if after == bytes[i] { 2 } else { 1 };
                chain += 1;
            }
            b'*' | b'/' | b'^' | b'!' => {
                i += 1;
                chain += 1;
            }
            b'+' | b'-' => {
                i += 1;
                chain += usize::from(open.last().is_some_and(|o| o.round));
            }
            b if b.is_ascii_alphanumeric() || b == b'_' || b >= 0x80 => {
                let length = word(&bytes[i..]);
                if b.is_ascii_digit() {
                    mark_value(&mut open);
                }
                let group = ["union", "optional", "minus", "filter", "bind", "graph"];
                let text = &bytes[i..i + length];
                chain += usize::from(
                    group
                        .iter()
                        .any(|k| text.eq_ignore_ascii_case(k.as_bytes())),
                );
                i += length;
            }
            _ => i += 1,
        }
        if chain > LONGEST_CHAIN {
            return Err(too_complex(
                text,
                start,
                format!("more than {LONGEST_CHAIN} operators and groups"),
            ));
        }
    }
    Ok(())
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

/// Bytes up to the end of the line.
fn line_rest(bytes: &[u8]) -> usize {
    bytes
        .iter()
        .position(|b| *b == b'\n')
        .unwrap_or(bytes.len())
}

/// Bytes of an IRI in angle brackets, or of the operator that only looks like its start.
fn iri(bytes: &[u8]) -> usize {
    let end = bytes[1..]
        .iter()
        .position(|b| b"<>\"{}|^`\\ \t\r\n".contains(b));
    match end {
        Some(n) if bytes[1 + n] == b'>' => n + 2,
        _ => 1,
    }
}

/// Bytes of a string literal, short or long, with its quotes.
fn string(bytes: &[u8], quote: u8) -> usize {
    let long = bytes.starts_with(&[quote; 3]);
    let close: &[u8] = if long { &[quote; 3] } else { &[quote] };
    let mut i = close.len();
    while i < bytes.len() {
        if bytes[i] == b'\\' {
            i += 2;
        } else if bytes[i..].starts_with(close) {
            return i + close.len();
        } else if !long && bytes[i] == b'\n' {
            return i;
        } else {
            i += 1;
        }
    }
    bytes.len()
}

/// Bytes of a name (prefixed names and numbers included).
fn word(bytes: &[u8]) -> usize {
    bytes
        .iter()
        .position(|b| !(b.is_ascii_alphanumeric() || b"_:.%".contains(b) || *b >= 0x80))
        .unwrap_or(bytes.len())
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
        assert!(!refused(&format!(
            "INSERT DATA {{ {} }}",
            "<a:a> <a:b> -5 . ".repeat(5000)
        )));
    }
}
