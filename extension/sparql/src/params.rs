//! Constants of a query, lifted out of its SQL text.
//!
//! While SQL is being built a constant is a mark (`\u{1}<n>\u{1}`); the final text has `$n` in its place, or the
//! constant itself in a stand-alone text. No text of the user is ever part of the SQL before that.

use std::collections::HashMap;
use std::fmt::Write;

use pgquad_term::{inline_id, parse};

/// Around the number of a parameter.
const MARK: char = '\u{1}';
/// Surrounds the number of a parameter: the `bigint` that stands for its term when the term has no id.
const STAND_IN: char = '\u{2}';

/// SQL type of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ParamKind {
    /// `bigint`: the id of the term. For a term without an id it is minus the number of the parameter, which equals no
    /// id of a quad and no other constant.
    Id,
    /// `bigint`: the id of the term, which is added to the dictionary if need be.
    NewId,
    /// `bigint`: minus the number of the parameter, without a look into the dictionary: for a term that is handed out
    /// and compared with other labels only.
    Label,
    /// `quad.term`: the term itself.
    Term,
    /// `text`.
    Text,
}

/// A constant of the query: parameter `$n` of the SQL, n being its place in the list, from 1.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Param {
    /// SQL type.
    pub kind: ParamKind,
    /// N-Triples form of the term, or the text.
    pub text: String,
}

impl Param {
    /// The id, when it can be told from the term alone.
    #[must_use]
    pub fn inline_id(&self) -> Option<i64> {
        match self.kind {
            ParamKind::Id | ParamKind::NewId => inline_id_of(&self.text),
            ParamKind::Label | ParamKind::Term | ParamKind::Text => None,
        }
    }
}

pub(crate) fn inline_id_of(ntriples: &str) -> Option<i64> {
    let term = parse(ntriples).ok()?;
    inline_id(&term.as_term()).map(pgquad_term::TermId::to_i64)
}

/// The constants met so far; equal ones share a parameter.
#[derive(Default)]
pub(crate) struct Params {
    list: Vec<Param>,
    numbers: HashMap<Param, usize>,
}

impl Params {
    /// Number of the parameter with this constant.
    pub fn number(&mut self, kind: ParamKind, text: &str) -> usize {
        let param = Param {
            kind,
            text: text.to_owned(),
        };
        if let Some(number) = self.numbers.get(&param) {
            return *number;
        }
        self.list.push(param.clone());
        self.numbers.insert(param, self.list.len());
        self.list.len()
    }

    /// The constant as an SQL expression of the type of `kind`.
    pub fn sql(&mut self, kind: ParamKind, text: &str) -> String {
        mark(self.number(kind, text))
    }

    pub fn text(&self, number: usize) -> &str {
        &self.list[number - 1].text
    }

    /// The text with the parameters numbered by their first occurrence, and the list of those that occur.
    pub fn finish(&self, sql: &str) -> (String, Vec<Param>) {
        let mut used = Vec::new();
        let mut out = String::with_capacity(sql.len());
        replace_marks(sql, &mut out, |out, mark, number| {
            let place = used.iter().position(|n| *n == number).unwrap_or_else(|| {
                used.push(number);
                used.len() - 1
            });
            let _ = write!(out, "{mark}{}{mark}", place + 1);
        });
        let list = used.iter().map(|n| self.list[n - 1].clone()).collect();
        (out, list)
    }
}

/// The `bigint` that stands for the term of an id parameter when it has no id.
pub(crate) fn stand_in(number: usize) -> String {
    format!("{STAND_IN}{number}{STAND_IN}")
}

pub(crate) fn mark(number: usize) -> String {
    format!("{MARK}{number}{MARK}")
}

/// Replaces the marks by `$n`.
pub(crate) fn with_placeholders(sql: &str) -> String {
    let mut out = String::with_capacity(sql.len());
    replace_marks(sql, &mut out, |out, mark, number| {
        let sign = if mark == STAND_IN { '-' } else { '$' };
        let _ = write!(out, "{sign}{number}");
    });
    out
}

/// Replaces the marks by the constants, quoted.
pub(crate) fn with_literals(sql: &str, params: &[Param]) -> String {
    let mut out = String::with_capacity(sql.len() * 2);
    replace_marks(sql, &mut out, |out, mark, number| {
        let param = &params[number - 1];
        let literal = quote_literal(&param.text);
        let _ = match (mark, param.kind, param.inline_id()) {
            (STAND_IN, ..) => write!(out, "-{number}"),
            (_, _, Some(id)) => write!(out, "{id}::bigint"),
            (_, ParamKind::Id, None) => write!(
                out,
                "(SELECT COALESCE(quad.find({literal}::quad.term), -{number}))"
            ),
            (_, ParamKind::NewId, None) => write!(out, "quad.encode({literal}::quad.term)"),
            (_, ParamKind::Label, None) => write!(out, "(-{number})::bigint"),
            (_, ParamKind::Term, None) => write!(out, "{literal}::quad.term"),
            (_, ParamKind::Text, None) => write!(out, "{literal}::text"),
        };
    });
    out
}

fn replace_marks(sql: &str, out: &mut String, mut put: impl FnMut(&mut String, char, usize)) {
    let mut rest = sql;
    while let Some((start, mark)) = rest
        .char_indices()
        .find(|(_, c)| matches!(*c, MARK | STAND_IN))
    {
        out.push_str(&rest[..start]);
        let after = &rest[start + 1..];
        let end = after.find(mark).expect("marks come in pairs");
        put(
            out,
            mark,
            after[..end].parse().expect("a mark holds a number"),
        );
        rest = &after[end + 1..];
    }
    out.push_str(rest);
}

/// SQL literal of a text, right under any setting of `standard_conforming_strings`.
pub(crate) fn quote_literal(text: &str) -> String {
    let quoted = text.replace('\'', "''");
    if quoted.contains('\\') {
        format!(" E'{}'", quoted.replace('\\', "\\\\"))
    } else {
        format!("'{quoted}'")
    }
}

/// Quoted SQL identifier.
pub(crate) fn quote_identifier(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_constants_share_a_parameter() {
        let mut params = Params::default();
        let a = params.sql(ParamKind::Id, "<http://a>");
        assert_eq!(params.sql(ParamKind::Id, "<http://a>"), a);
        assert_ne!(params.sql(ParamKind::Term, "<http://a>"), a);
        assert_eq!(with_placeholders(&format!("x = {a}")), "x = $1");
    }

    #[test]
    fn parameters_that_do_not_occur_are_dropped() {
        let mut params = Params::default();
        params.sql(ParamKind::Id, "<http://unused>");
        let number = params.number(ParamKind::Id, "<http://used>");
        let sql = format!("{} = {}", stand_in(number), mark(number));
        let (sql, list) = params.finish(&sql);
        assert_eq!(with_placeholders(&sql), "-1 = $1");
        assert_eq!(list[0].text, "<http://used>");
        assert_eq!(list.len(), 1);
    }

    #[test]
    fn literals_are_quoted() {
        let mut params = Params::default();
        let sql = [
            params.sql(ParamKind::Id, "<http://a/'>"),
            params.sql(ParamKind::Term, "\"a\\n\""),
            params.sql(
                ParamKind::Id,
                "\"1\"^^<http://www.w3.org/2001/XMLSchema#boolean>",
            ),
            params.sql(
                ParamKind::Id,
                "\"true\"^^<http://www.w3.org/2001/XMLSchema#boolean>",
            ),
            params.sql(ParamKind::Text, "$1"),
        ]
        .join(" | ");
        let id = inline_id_of("\"true\"^^<http://www.w3.org/2001/XMLSchema#boolean>").unwrap();
        assert_eq!(
            with_literals(&sql, &params.finish(&sql).1),
            format!(
                "(SELECT COALESCE(quad.find('<http://a/''>'::quad.term), -1)) |  E'\"a\\\\n\"'::quad.term | \
                 (SELECT COALESCE(quad.find('\"1\"^^<http://www.w3.org/2001/XMLSchema#boolean>'::quad.term), -3)) | \
                 {id}::bigint | '$1'::text"
            )
        );
    }
}
