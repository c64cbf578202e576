//! Query logs: one JSON object a line, `{"mix", "pos", "query_nr", "sparql"}`, plain or `.gz`.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use flate2::read::GzDecoder;
use serde_json::Value;

/// What a query asks for, and so what its answer looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Solutions.
    Select,
    /// Yes or no.
    Ask,
    /// Triples that a template makes.
    Construct,
    /// Triples that the store chooses.
    Describe,
}

/// A query of the log.
#[derive(Clone, Debug)]
pub struct Query {
    /// Which run of the mix it belongs to.
    pub mix: u64,
    /// Number of its template.
    pub number: u64,
    /// Its form.
    pub form: Form,
    /// Its text.
    pub text: String,
}

/// Reads a log.
pub fn read(path: &Path) -> Result<Vec<Query>, String> {
    let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let file = File::open(path).map_err(|e| failed(&e))?;
    let reader: Box<dyn Read> = if path.extension().is_some_and(|e| e == "gz") {
        Box::new(GzDecoder::new(file))
    } else {
        Box::new(file)
    };
    let mut queries = Vec::new();
    for (number, line) in BufReader::new(reader).lines().enumerate() {
        let line = line.map_err(|e| failed(&e))?;
        queries.push(query(&line).map_err(|e| failed(&format!("line {}: {e}", number + 1)))?);
    }
    if queries.is_empty() {
        return Err(failed(&"there are no queries"));
    }
    Ok(queries)
}

fn query(line: &str) -> Result<Query, String> {
    let value: Value = serde_json::from_str(line).map_err(|e| e.to_string())?;
    let field = |name: &str| value.get(name).ok_or_else(|| format!("no \"{name}\""));
    let number = |name: &str| {
        field(name)?
            .as_u64()
            .ok_or_else(|| format!("\"{name}\" is no number"))
    };
    let text = field("sparql")?.as_str().ok_or("\"sparql\" is no text")?;
    Ok(Query {
        mix: number("mix")?,
        number: number("query_nr")?,
        form: form(text).ok_or("neither SELECT nor ASK, CONSTRUCT, DESCRIBE")?,
        text: text.to_owned(),
    })
}

/// The first keyword that tells the form; names of prefixes and IRIs before it do not count.
fn form(text: &str) -> Option<Form> {
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c == '<' || c == '#' || c.is_ascii_alphabetic()) {
        rest = &rest[start..];
        let length = match rest.as_bytes()[0] {
            b'<' => rest.find('>').map_or(rest.len(), |end| end + 1),
            b'#' => rest.find('\n').unwrap_or(rest.len()),
            _ => {
                let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && !"-_:".contains(c));
                end.unwrap_or(rest.len())
            }
        };
        match rest[..length].to_ascii_uppercase().as_str() {
            "SELECT" => return Some(Form::Select),
            "ASK" => return Some(Form::Ask),
            "CONSTRUCT" => return Some(Form::Construct),
            "DESCRIBE" => return Some(Form::Describe),
            _ => rest = &rest[length..],
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms() {
        let cases = [
            ("SELECT * WHERE { }", Some(Form::Select)),
            (
                "PREFIX ask: <http://select/construct>\n# describe\nASK{}",
                Some(Form::Ask),
            ),
            (
                "prefix a-select: <x> construct { } where { }",
                Some(Form::Construct),
            ),
            ("DESCRIBE ?x WHERE { }", Some(Form::Describe)),
            ("PREFIX a: <b>", None),
        ];
        for (text, expected) in cases {
            assert_eq!(form(text), expected, "{text}");
        }
    }

    #[test]
    fn lines() {
        let found = query(r#"{"mix": 3, "pos": 1, "query_nr": 5, "sparql": "ASK {}"}"#).unwrap();
        assert_eq!((found.mix, found.number, found.form), (3, 5, Form::Ask));
        assert!(query(r#"{"mix": 3, "sparql": "ASK {}"}"#).is_err());
    }
}
