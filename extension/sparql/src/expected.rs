//! Where a text stops being SPARQL, and what could stand there.
//!
//! The parser tells the furthest place that any of its rules has reached. A rule for a keyword takes as many characters
//! as the keyword has before it compares them. So that place may be behind the one in question, by up to the length of
//! the longest keyword. Also, of all that could stand there the parser tells only that keyword. Both is put right by
//! parsing the text again, which costs only those whose text is wrong:
//!
//! * with its tokens further apart than keywords are long. No rule that fails at a token reaches the next one.
//! * cut off before the token and filled up with so many characters: keywords of this length are what is expected then.

use crate::error::Error;
use crate::template::lexer::{tokens_until, Lexed, Token};

/// Blanks between two tokens, more than any keyword has characters.
const GAP_BLANKS: usize = 24;
/// Longest keyword, in characters: ENCODE_FOR_URI.
const LONGEST_KEYWORD: usize = 14;
/// Most tokens of a text that is parsed again. All parses of a text of this length took 0.1 s (debug build, 2026-11).
const MAX_TOKENS: usize = 2_000;

/// What the parser says of a text.
pub(crate) struct Failure {
    /// Line and column, from 1, in characters.
    pub position: (u32, u32),
    /// What it expects: literals in quotes, keywords as they are, classes of characters in brackets, or sentences.
    pub expected: Vec<String>,
}

impl Failure {
    /// Out of the parser's message, which is `expected one of a, b, c` or `expected a`.
    pub fn of(message: &str, position: (u32, u32)) -> Self {
        let list = message.strip_prefix("expected ").unwrap_or(message);
        let items = match list.strip_prefix("one of ") {
            Some(list) => list.split(", ").map(str::to_owned).collect(),
            None => vec![list.to_owned()],
        };
        Self {
            position,
            expected: items,
        }
    }

    /// What is wrong with a part that is well formed, in the parser's words.
    fn sentence(&self) -> Option<&str> {
        let is_sentence = |item: &&String| item.contains(' ') && !item.starts_with(['[', '"']);
        self.expected.iter().find(is_sentence).map(String::as_str)
    }
}

/// The error of a text that `parse` has failed to parse, given what it makes of other texts. `failure` is what it has
/// said of this one.
pub(crate) fn explain(
    text: &str,
    failure: &Failure,
    parse: impl Fn(&str) -> Option<Failure>,
) -> Error {
    certain(text, &parse).unwrap_or_else(|| Error::Syntax {
        message: match failure.sentence() {
            Some(sentence) => sentence.to_owned(),
            None => listed(&failure.expected).unwrap_or_else(|| "unexpected text".to_owned()),
        },
        position: Some(failure.position),
        is_certain: false,
    })
}

/// The error with the place of the token that cannot stand where it does. `None` where that token cannot be found in
/// this way.
fn certain(text: &str, parse: &impl Fn(&str) -> Option<Failure>) -> Option<Error> {
    let (tokens, unended) = tokens_until(text);
    if tokens.len() > MAX_TOKENS || tokens.windows(2).any(|two| is_doubtful(two[0], two[1])) {
        return None;
    }
    let apart = Apart::new(text, &tokens);
    let failure = parse(&apart.text)?;
    if failure.sentence().is_some() {
        return None;
    }
    let place = apart.token_at(offset(&apart.text, failure.position)?);
    let (at, found) = match (apart.tokens.get(place), unended) {
        (Some(&(start, end)), _) => (
            start,
            format!("unexpected \"{}\"", shortened(&text[start..end])),
        ),
        (None, Some(start)) => (start, "a string that does not end".to_owned()),
        (None, None) => (
            text.trim_end().len(),
            "unexpected end of the text".to_owned(),
        ),
    };
    let before = &apart.text[..apart.starts[place]];
    let message = match listed(&expected(before, parse)) {
        Some(wanted) if unended.is_none() || place < apart.tokens.len() => {
            format!("{found}, {wanted}")
        }
        _ => found,
    };
    Some(Error::Syntax {
        message,
        position: Some(position(text, at)),
        is_certain: true,
    })
}

/// A text whose tokens are apart.
struct Apart {
    text: String,
    /// Where its tokens start, and the end.
    starts: Vec<usize>,
    /// Start and end of the tokens in the text that it was made of.
    tokens: Vec<(usize, usize)>,
}

impl Apart {
    fn new(text: &str, lexed: &[Lexed<'_>]) -> Self {
        let mut apart = String::with_capacity(lexed.len() * (GAP_BLANKS + 4));
        let mut starts = Vec::with_capacity(lexed.len() + 1);
        let mut tokens: Vec<(usize, usize)> = Vec::with_capacity(lexed.len());
        let mut before: Option<&Lexed<'_>> = None;
        for token in lexed {
            let joined =
                before.is_some_and(|b| b.end == token.start && is_one(b.token, token.token));
            match tokens.last_mut() {
                Some(last) if joined => last.1 = token.end,
                _ => {
                    apart.push_str(&" ".repeat(GAP_BLANKS));
                    starts.push(apart.len());
                    tokens.push((token.start, token.end));
                }
            }
            apart.push_str(&text[token.start..token.end]);
            before = Some(token);
        }
        apart.push_str(&" ".repeat(GAP_BLANKS));
        starts.push(apart.len());
        Self {
            text: apart,
            starts,
            tokens,
        }
    }

    /// The number of the last token that starts there or before; that of the end is the number of tokens.
    fn token_at(&self, offset: usize) -> usize {
        let after = self.starts.partition_point(|start| *start <= offset);
        after.saturating_sub(1)
    }
}

/// Whether two tokens of the lexer that touch each other can be one of the parser's.
fn is_one(a: Token<'_>, b: Token<'_>) -> bool {
    use Token::{Language, Mark, Name, Number, Text, Typed, Word};
    match (a, b) {
        (Mark(a), Mark(b)) => matches!(
            &[a, b],
            b"&&" | b"||" | b"<=" | b">=" | b"!=" | b"<<" | b">>" | b"{|" | b"|}"
        ),
        (Mark(b'+' | b'-'), Number { .. })
        | (Text(_), Language(_) | Typed)
        | (Typed, _)
        | (Number { .. } | Word(_), Number { .. } | Word(_) | Name { .. }) => true,
        _ => false,
    }
}

/// Whether what the lexer takes for an IRI could be a comparison: `?a<1&&?b>2`.
fn is_doubtful(before: Lexed<'_>, token: Lexed<'_>) -> bool {
    let touches = before.end == token.start
        && !matches!(before.token, Token::Mark(b'(' | b'{' | b'.' | b';' | b','));
    touches && matches!(token.token, Token::Iri(iri) if !iri.contains("://"))
}

/// All that could follow a text that can be continued.
fn expected(before: &str, parse: &impl Fn(&str) -> Option<Failure>) -> Vec<String> {
    let mut all = Vec::new();
    for length in 0..=LONGEST_KEYWORD {
        let filled = format!("{before}{}", "\u{1}".repeat(length));
        let Some(failure) = parse(&filled) else {
            continue;
        };
        // Of a keyword that is longer the parser says only that the text ends.
        let mut items = failure.expected;
        items.retain(|item| {
            let is_keyword = item.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
            item != "[_]" && (length == 0 || !is_keyword || item.len() == length || item == END)
        });
        all.extend(items);
    }
    all.sort_unstable();
    all.dedup();
    all
}

/// What the parser calls the end of a text.
const END: &str = "EOF";
/// Functions and aggregates, which are told as such.
const FUNCTIONS: [&str; 66] = [
    "ABS",
    "ADJUST",
    "AVG",
    "BNODE",
    "BOUND",
    "CEIL",
    "COALESCE",
    "CONCAT",
    "CONTAINS",
    "COUNT",
    "DATATYPE",
    "DAY",
    "ENCODE_FOR_URI",
    "FLOOR",
    "GROUP_CONCAT",
    "HOURS",
    "IF",
    "IRI",
    "LANG",
    "LANGDIR",
    "LANGMATCHES",
    "LCASE",
    "MAX",
    "MD5",
    "MIN",
    "MINUTES",
    "MONTH",
    "NOW",
    "OBJECT",
    "PREDICATE",
    "RAND",
    "REGEX",
    "REPLACE",
    "ROUND",
    "SAMPLE",
    "SECONDS",
    "SHA1",
    "SHA256",
    "SHA384",
    "SHA512",
    "STR",
    "STRAFTER",
    "STRBEFORE",
    "STRDT",
    "STRENDS",
    "STRLANG",
    "STRLANGDIR",
    "STRLEN",
    "STRSTARTS",
    "STRUUID",
    "SUBJECT",
    "SUBSTR",
    "SUM",
    "TIMEZONE",
    "TRIPLE",
    "TZ",
    "UCASE",
    "URI",
    "UUID",
    "YEAR",
    "hasLang",
    "hasLangDir",
    "isBLANK",
    "isIRI",
    "isLITERAL",
    "isNUMERIC",
];
/// What is not of SPARQL 1.1, though the parser knows it.
const LATER: [&str; 8] = [
    "LATERAL", "VERSION", "isTriple", "\"<<\"", "\"<<(\"", "\"{|\"", "\"~\"", "\">>\"",
];

/// `expected an IRI, a variable, "}"`: what the parser could have gone on with, in words.
fn listed(expected: &[String]) -> Option<String> {
    let has = |item: &str| expected.iter().any(|e| e == item);
    let digits = has("['0'..='9']");
    let number = |item: &str| digits && matches!(item, "\"+\"" | "\"-\"" | "\".\"");
    let mut kinds = Vec::new();
    let mut keywords = Vec::new();
    let mut marks = Vec::new();
    for item in expected {
        let kind = match item.as_str() {
            item if LATER.contains(&item) => continue,
            item if FUNCTIONS.contains(&item) || matches!(item, "isURI" | "sameTerm") => {
                "a function"
            }
            END => "the end of the text",
            item if number(item) => "a number",
            "['0'..='9']" => "a number",
            "\"?\"" | "\"$\"" => "a variable",
            "\"<\"" | "\":\"" => "an IRI",
            "\"'\"" | "\"'''\"" | "\"\\\"\"" | "\"\\\"\\\"\\\"\"" => "a string",
            "\"_:\"" => "a blank node",
            item if item.starts_with('[') => continue,
            item if item.starts_with('"') => {
                marks.push(item.to_owned());
                continue;
            }
            item => {
                keywords.push(item.to_owned());
                continue;
            }
        };
        if !kinds.iter().any(|k: &String| k == kind) {
            kinds.push(kind.to_owned());
        }
    }
    kinds.sort_unstable();
    let all = [kinds, keywords, marks].concat();
    match &all[..] {
        [] => None,
        [one] => Some(format!("expected {one}")),
        _ => Some(format!("expected one of {}", all.join(", "))),
    }
}

/// The beginning of a token.
fn shortened(token: &str) -> String {
    /// Characters of a token that a message shows.
    const MAX_TOKEN_CHARS: usize = 40;
    let line = token.lines().next().unwrap_or_default();
    if line.len() == token.len() && token.chars().count() <= MAX_TOKEN_CHARS {
        return token.to_owned();
    }
    let start: String = line.chars().take(MAX_TOKEN_CHARS).collect();
    format!("{start}...")
}

/// The byte at a line and column.
fn offset(text: &str, (line, column): (u32, u32)) -> Option<usize> {
    let mut start = 0;
    for _ in 1..line {
        start += text[start..].find('\n')? + 1;
    }
    let rest = &text[start..];
    let ahead = rest.char_indices().nth(column as usize - 1);
    Some(start + ahead.map_or(rest.len(), |(at, _)| at))
}

/// Line and column of a byte, both from 1, in characters.
pub(crate) fn position(text: &str, at: usize) -> (u32, u32) {
    let before = &text[..at];
    let line = before.matches('\n').count() + 1;
    let start = before.rfind('\n').map_or(0, |end| end + 1);
    let column = before[start..].chars().count() + 1;
    (line as u32, column as u32)
}

#[cfg(test)]
mod tests {
    use crate::{parse_query, parse_update, Error};

    fn error(text: &str) -> (String, Option<String>) {
        let error = parse_query(text, None).unwrap_err();
        (error.to_string(), error.place(text))
    }

    #[test]
    fn the_token_is_told_with_all_that_could_stand_there() {
        let (message, place) = error("SELECT * { ?s ?p }");
        assert_eq!(
            message,
            "SPARQL syntax error at line 1, column 18: unexpected \"}\", expected one of a blank node, a number, a string, a variable, an \
             IRI, \"(\", \"[\", \"false\", \"true\""
        );
        let shown = "Line 1:\n  SELECT * { ?s ?p }\n                   ^";
        assert_eq!(place.as_deref(), Some(shown));
        let (message, _) = error("SELEC * {}");
        assert_eq!(
            message,
            "SPARQL syntax error at line 1, column 1: unexpected \"SELEC\", expected one of ASK, BASE, CONSTRUCT, DESCRIBE, PREFIX, SELECT"
        );
        let (message, _) = error("SELECT * {\n ?s ?p ?o .\n FILTR(?o > 1)\n}");
        assert!(
            message.starts_with(
                "SPARQL syntax error at line 3, column 2: unexpected \"FILTR\", expected one of "
            ),
            "{message}"
        );
        assert!(
            message.contains("FILTER") && message.contains("OPTIONAL"),
            "{message}"
        );
        let (message, _) = error("SELECT * { FILTER(?x = ) }");
        assert!(
            message.contains("column 24: unexpected \")\", expected one of a function, a number"),
            "{message}"
        );
        let (message, _) = error("SELECT * { ?s ?p ?o } LIMIT ten");
        assert_eq!(
            message,
            "SPARQL syntax error at line 1, column 29: unexpected \"ten\", expected a number"
        );
    }

    #[test]
    fn the_end_of_a_text_that_goes_on() {
        let (message, place) = error("SELECT * {\n  ?s ?p ?o\n\n");
        assert!(
            message.starts_with("SPARQL syntax error at line 2, column 11: unexpected end of the text, expected one of "),
            "{message}"
        );
        assert!(message.contains("\"}\""), "{message}");
        assert_eq!(
            place.as_deref(),
            Some("Line 2:\n    ?s ?p ?o\n            ^")
        );
        let (message, _) = error("");
        assert!(
            message.contains("line 1, column 1: unexpected end of the text"),
            "{message}"
        );
        let (message, place) = error("SELECT * { ?s ?p 'abc }");
        assert_eq!(
            message,
            "SPARQL syntax error at line 1, column 18: a string that does not end"
        );
        assert!(place.is_some());
        // What is wrong before it comes first.
        let (message, _) = error("SELECT * { ?s ?p } it's");
        assert!(message.contains("column 18: unexpected \"}\""), "{message}");
    }

    #[test]
    fn updates_and_tokens_that_touch() {
        let text = "INSERT DATA { <http://a> <http://b> 1 } DELETE DATA { }";
        let error = parse_update(text, None).unwrap_err().to_string();
        assert!(
            error.contains(
                "column 41: unexpected \"DELETE\", expected one of the end of the text, \";\""
            ),
            "{error}"
        );
        for (text, column, token) in [
            ("SELECT*{?s ?p-5?o}", 16, "?o"),
            ("SELECT * { ?s ?p ?o FILTER(?o<=1 &&?s>=2||) }", 43, ")"),
            ("SELECT * { ?s ?p 'x'@en'y' }", 24, "'y'"),
            ("SELECT * { ?s ?p -5 -5 }", 21, "-5"),
        ] {
            let error = parse_query(text, None).unwrap_err().to_string();
            let start = format!("at line 1, column {column}: unexpected \"{token}\"");
            assert!(error.contains(&start), "{text}: {error}");
        }
        let text = "SELECT * { ?s ?p ?o FILTER(?o<=1&&?s>=2||) }";
        assert_eq!(parse_query(text, None).unwrap_err().place(text), None);
    }

    #[test]
    fn what_the_parser_says_in_sentences_has_no_certain_place() {
        let text = "SELECT ?x ?x { ?x ?p ?o }";
        let error = parse_query(text, None).unwrap_err();
        assert!(
            error.to_string().contains("Duplicated variable name"),
            "{error}"
        );
        assert_eq!(error.place(text), None);
        let Error::Syntax { is_certain, .. } = error else {
            panic!("{error}")
        };
        assert!(!is_certain);
    }

    /// A query that is cut off, or has a token in it that fits nowhere, is wrong there.
    #[test]
    fn a_token_that_fits_nowhere_is_found() {
        let text = "PREFIX x: <http://x/> SELECT DISTINCT ?a (COUNT(*) AS ?n) WHERE { ?a x:p/x:q* [ x:r 'b'@en , 1.5 ] . OPTIONAL { ?a ?b ?c \
                    FILTER(?c > 1 && REGEX(STR(?a), \"^x\", 'i')) } { ?a a x:T } UNION { ?a x:y (1 2) } BIND(?n + 1 AS ?z) VALUES ?v { 1 UNDEF } \
                    MINUS { GRAPH ?g { ?a ?b ?c } } } GROUP BY ?a HAVING(COUNT(*) > 1) ORDER BY DESC(?n) LIMIT 10 OFFSET 5";
        assert!(parse_query(text, None).is_ok());
        let tokens = crate::template::lexer::tokens(text).unwrap();
        for token in tokens {
            let (before, after) = text.split_at(token.start);
            // The second half of &&.
            if before.ends_with('&') {
                continue;
            }
            let wrong = format!("{before} ` {after}");
            let Err(Error::Syntax {
                position,
                is_certain,
                message,
            }) = parse_query(&wrong, None)
            else {
                panic!("{wrong}")
            };
            assert!(is_certain, "{wrong}: {message}");
            assert_eq!(
                position,
                Some((1, token.start as u32 + 2)),
                "{wrong}: {message}"
            );
        }
    }
}
