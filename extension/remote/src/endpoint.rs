//! A query to a SPARQL endpoint (SPARQL 1.1 Protocol, query by POST of a form).

use std::io::{BufReader, Read};

use oxrdf::{Term, Variable};
use pgquad_reader::{ReadError, XmlReader, NO_LANGUAGE};
use pgquad_term::func::terms::bnode_for;
use pgquad_term::{Literal, LiteralKind, Term as OurTerm, TermBuf};
use sparesults::{
    QueryResultsFormat, QueryResultsParseError, QueryResultsParser, ReaderQueryResultsParserOutput,
};

use crate::client::{Client, Method};
use crate::error::{Error, ErrorKind};

/// A solution: the terms of the variables that were asked for, in that order; `None` for an unbound one.
pub type Row = Vec<Option<TermBuf>>;

/// Solutions that are handed over at once.
pub const ROWS_AT_ONCE: usize = 256;

const ACCEPT: &str = "application/sparql-results+json, application/sparql-results+xml;q=0.9, \
                      text/tab-separated-values;q=0.5";

/// Sends a SELECT query and hands over the bindings of `variables` until told `false`. A blank node of the answer
/// becomes one that is in no other answer; `nonce` must differ between requests.
///
/// # Errors
/// See [`Error`].
pub fn select(
    client: &Client,
    endpoint: &str,
    query: &str,
    variables: &[String],
    nonce: [u8; 16],
    give: &mut dyn FnMut(Vec<Row>) -> bool,
) -> Result<(), Error> {
    let form = Method::Form {
        name: "query",
        value: query,
    };
    let document = client.fetch(endpoint, form, ACCEPT)?;
    let url = document.url;
    let media_type = document.media_type.unwrap_or_default();
    let format = result_format(&media_type).ok_or_else(|| {
        Error::new(
            ErrorKind::Answer,
            &url,
            format!("the answer is of type \"{media_type}\", not SPARQL results"),
        )
    })?;
    let failed = |error: QueryResultsParseError| read_error(&url, error);
    let parser = QueryResultsParser::from_format(format);
    let body = readable(format, document.body);
    let solutions = match parser.for_reader(body).map_err(failed)? {
        ReaderQueryResultsParserOutput::Solutions(solutions) => solutions,
        ReaderQueryResultsParserOutput::Boolean(_) => {
            return Err(Error::new(
                ErrorKind::Answer,
                &url,
                "the answer is a boolean, not solutions",
            ))
        }
    };
    let variables: Vec<Variable> = variables.iter().map(Variable::new_unchecked).collect();
    let mut rows = Vec::new();
    for solution in solutions {
        let solution = solution.map_err(failed)?;
        rows.push(
            variables
                .iter()
                .map(|variable| solution.get(variable).map(|term| own(term, nonce)))
                .collect(),
        );
        if rows.len() == ROWS_AT_ONCE && !give(std::mem::take(&mut rows)) {
            return Ok(());
        }
    }
    if !rows.is_empty() {
        give(rows);
    }
    Ok(())
}

/// The format of an answer. CSV, which does not tell terms apart, is none.
fn result_format(media_type: &str) -> Option<QueryResultsFormat> {
    QueryResultsFormat::from_media_type(media_type).filter(|f| *f != QueryResultsFormat::Csv)
}

/// The answer as its parser takes it: that of XML takes no notice of an early end, of comments, and of white space.
fn readable<'r>(format: QueryResultsFormat, body: impl Read + 'r) -> Box<dyn Read + 'r> {
    match format {
        QueryResultsFormat::Xml => Box::new(XmlReader::of_results(BufReader::new(body))),
        _ => Box::new(body),
    }
}

fn read_error(url: &str, error: QueryResultsParseError) -> Error {
    match error {
        QueryResultsParseError::Io(error) => match error.downcast::<Error>() {
            Ok(error) => error,
            Err(error) if error.get_ref().is_some_and(|inner| inner.is::<ReadError>()) => {
                unreadable(url, &error)
            }
            Err(error) => Error::new(ErrorKind::Connect, url, error.to_string()),
        },
        QueryResultsParseError::Syntax(error) => unreadable(url, &error),
    }
}

fn unreadable(url: &str, error: &dyn std::fmt::Display) -> Error {
    let message = format!("the answer cannot be read: {error}");
    Error::new(ErrorKind::Answer, url, message)
}

fn own(term: &Term, nonce: [u8; 16]) -> TermBuf {
    match term {
        Term::NamedNode(iri) => TermBuf::iri(iri.as_str()),
        Term::BlankNode(node) => {
            bnode_for(&OurTerm::string(node.as_str()), &nonce).expect("a label is a simple literal")
        }
        Term::Literal(literal) => match literal.language() {
            Some(tag) if tag != NO_LANGUAGE => TermBuf::language(literal.value(), tag),
            Some(_) => TermBuf::string(literal.value()),
            None => OurTerm::Literal(Literal {
                lexical: literal.value(),
                kind: LiteralKind::from_datatype(literal.datatype().as_str()),
            })
            .to_buf(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The texts of the answer that has this between its tags `results`.
    fn texts(results: &str) -> Result<Vec<String>, String> {
        let xml = QueryResultsFormat::Xml;
        let text = format!(
            "<?xml version='1.0'?>\n<sparql xmlns='http://www.w3.org/2005/sparql-results#'>\n\
             <head><variable name='x'/></head>\n<results>{results}"
        );
        let body = readable(xml, text.as_bytes());
        let output = QueryResultsParser::from_format(xml).for_reader(body);
        let ReaderQueryResultsParserOutput::Solutions(solutions) =
            output.map_err(|error| read_error("http://a", error).to_string())?
        else {
            return Err("a boolean".to_owned());
        };
        solutions
            .map(|solution| {
                let solution = solution.map_err(|e| read_error("http://a", e).to_string())?;
                let term = solution.get("x").map(|term| own(term, [0; 16]));
                Ok(term.map_or_else(String::new, |term| term.as_term().to_string()))
            })
            .collect()
    }

    #[test]
    fn literals_in_xml_are_whole() {
        for (literal, text) in [
            ("<literal>a<!-- c -->b</literal>", "\"ab\""),
            ("<literal>a<![CDATA[<b>]]>c</literal>", "\"a<b>c\""),
            ("<literal> a  b\n</literal>", "\" a  b\\n\""),
            ("<literal>  </literal>", "\"  \""),
            ("<literal>a\r\nb&#13;</literal>", "\"a\\nb\\r\""),
            ("<literal/>", "\"\""),
            ("<literal xml:lang=''>a</literal>", "\"a\""),
            ("<literal xml:lang='en'>a</literal>", "\"a\"@en"),
            (" <uri>http://a</uri>\n", "<http://a>"),
        ] {
            let results = format!(
                "\n<result>\n <binding name='x'>{literal}</binding></result></results></sparql>\n"
            );
            assert_eq!(texts(&results), Ok(vec![text.to_owned()]), "{literal}");
        }
    }

    #[test]
    fn an_answer_in_xml_that_is_cut_is_an_error() {
        let row = "<result><binding name='x'><literal>a</literal></binding></result>";
        let whole = format!("{row}{row}</results></sparql>");
        assert_eq!(texts(&whole).unwrap().len(), 2);
        for end in 0..whole.len() {
            let error = texts(&whole[..end]).unwrap_err();
            assert!(error.contains("the answer cannot be read"), "{error}");
        }
    }
}
