//! A query to a SPARQL endpoint (SPARQL 1.1 Protocol, query by POST of a form).

use oxrdf::{Term, Variable};
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
    let solutions = match parser.for_reader(document.body).map_err(failed)? {
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

fn read_error(url: &str, error: QueryResultsParseError) -> Error {
    match error {
        QueryResultsParseError::Io(error) => match error.downcast::<Error>() {
            Ok(error) => error,
            Err(error) => Error::new(ErrorKind::Connect, url, error.to_string()),
        },
        QueryResultsParseError::Syntax(error) => Error::new(
            ErrorKind::Answer,
            url,
            format!("the answer cannot be read: {error}"),
        ),
    }
}

fn own(term: &Term, nonce: [u8; 16]) -> TermBuf {
    match term {
        Term::NamedNode(iri) => TermBuf::iri(iri.as_str()),
        Term::BlankNode(node) => {
            bnode_for(&OurTerm::string(node.as_str()), &nonce).expect("a label is a simple literal")
        }
        Term::Literal(literal) => match literal.language() {
            Some(tag) => TermBuf::language(literal.value(), tag),
            None => OurTerm::Literal(Literal {
                lexical: literal.value(),
                kind: LiteralKind::from_datatype(literal.datatype().as_str()),
            })
            .to_buf(),
        },
    }
}
