//! The W3C result formats: `quad.sparql_json`, `quad.sparql_xml`, `quad.sparql_csv`, `quad.sparql_tsv`.

use std::cell::RefCell;
use std::io::{self, Write};
use std::rc::Rc;

use oxrdf::{BlankNode, Literal, NamedNode, Variable};
use pgquad_sparql::{Form, Param};
use pgquad_term::{LiteralKind, Term};
use pgrx::prelude::*;
use pgrx::PgSqlErrorCode;
use sparesults::{QueryResultsFormat, QueryResultsSerializer, WriterSolutionsSerializer};

use super::answer::Batch;
use super::json;
use super::prepared::query_of_form;
use super::query::run_ask;
use crate::pg::error::{raise, raise_hint, required};

macro_rules! format_function {
    ($name:ident, $format:ident, $doc:literal) => {
        #[doc = $doc]
        #[pg_extern(stable)]
        fn $name(
            query: Option<&str>,
            store: default!(Option<&str>, "NULL"),
            base: default!(Option<&str>, "NULL"),
        ) -> String {
            let query = required("query", query);
            serialize(query, store, base, QueryResultsFormat::$format)
        }
    };
}

format_function!(
    sparql_json,
    Json,
    "Answers a SELECT or ASK query in SPARQL 1.1 Query Results JSON Format."
);
format_function!(
    sparql_xml,
    Xml,
    "Answers a SELECT or ASK query in SPARQL Query Results XML Format."
);
format_function!(
    sparql_csv,
    Csv,
    "Answers a SELECT query in SPARQL 1.1 Query Results CSV Format."
);
format_function!(
    sparql_tsv,
    Tsv,
    "Answers a SELECT query in SPARQL 1.1 Query Results TSV Format."
);

fn serialize(
    query: &str,
    store: Option<&str>,
    base: Option<&str>,
    format: QueryResultsFormat,
) -> String {
    let prepared = query_of_form(query, store, base, &[Form::Select, Form::Ask]);
    if prepared.form() == Form::Ask {
        return boolean(format, run_ask(&prepared));
    }
    let mut writer = SolutionsWriter::new(format, prepared.columns());
    prepared.stream(|batch| {
        writer.batch(batch, &prepared.params);
        check_size(writer.len());
    });
    writer.finish()
}

/// The answer to ASK as a document.
pub fn boolean(format: QueryResultsFormat, answer: bool) -> String {
    let bytes = QueryResultsSerializer::from_format(format)
        .serialize_boolean_to_writer(Vec::new(), answer)
        .expect("writing to memory does not fail");
    text(bytes)
}

/// Writes the answer to a SELECT query, batch by batch.
pub enum SolutionsWriter {
    /// With the written terms kept.
    Json(json::Writer),
    /// As `sparesults` does.
    Other {
        writer: Box<WriterSolutionsSerializer<Buffer>>,
        variables: Vec<Variable>,
        buffer: Buffer,
        /// IRIs are written as strings are, which is quoted where they have commas.
        is_csv: bool,
    },
}

impl SolutionsWriter {
    /// Begins an answer with these variables.
    pub fn new(format: QueryResultsFormat, variables: &[String]) -> Self {
        if format == QueryResultsFormat::Json {
            return Self::Json(json::Writer::new(variables));
        }
        let variables: Vec<Variable> = variables.iter().map(Variable::new_unchecked).collect();
        let buffer = Buffer::new(format == QueryResultsFormat::Xml);
        let writer = QueryResultsSerializer::from_format(format)
            .serialize_solutions_to_writer(buffer.clone(), variables.clone())
            .expect("writing to memory does not fail");
        Self::Other {
            writer: Box::new(writer),
            variables,
            buffer,
            is_csv: format == QueryResultsFormat::Csv,
        }
    }

    /// Adds solutions. `params` are the parameters that the query ran with.
    pub fn batch(&mut self, batch: &Batch, params: &[Param]) {
        match self {
            Self::Json(writer) => writer.batch(batch, params),
            Self::Other {
                writer,
                variables,
                buffer,
                is_csv,
            } => {
                batch.read(params, |row| {
                    let to_term = |term: &Term<'_>| match to_oxrdf(term) {
                        oxrdf::Term::NamedNode(iri) if *is_csv => {
                            oxrdf::Literal::from(iri.as_str()).into()
                        }
                        term => term,
                    };
                    let terms: Vec<(usize, oxrdf::Term)> = (0..variables.len())
                        .filter_map(|place| Some((place, row.term(place, to_term)?)))
                        .collect();
                    for (_, term) in terms.iter().filter(|_| buffer.is_xml) {
                        check_xml(term);
                    }
                    writer
                        .serialize(terms.iter().map(|(place, term)| (&variables[*place], term)))
                        .expect("writing to memory does not fail");
                });
            }
        }
    }

    /// Bytes written and not taken.
    pub fn len(&self) -> usize {
        match self {
            Self::Json(writer) => writer.len(),
            Self::Other { buffer, .. } => buffer.len(),
        }
    }

    /// What has been written since the last call.
    pub fn take(&mut self) -> String {
        match self {
            Self::Json(writer) => writer.take(),
            Self::Other { buffer, .. } => buffer.take(),
        }
    }

    /// The rest of the answer: all of it where nothing has been taken.
    pub fn finish(self) -> String {
        match self {
            Self::Json(writer) => writer.finish(),
            Self::Other { writer, buffer, .. } => {
                writer.finish().expect("writing to memory does not fail");
                buffer.take()
            }
        }
    }
}

/// Refuses a literal that XML has no way to write.
fn check_xml(term: &oxrdf::Term) {
    let oxrdf::Term::Literal(literal) = term else {
        return;
    };
    if let Some(c) = literal.value().chars().find(|c| !is_of_xml(*c)) {
        raise(
            PgSqlErrorCode::ERRCODE_UNTRANSLATABLE_CHARACTER,
            format!(
                "the answer cannot be written as XML: a literal contains the character U+{:04X}",
                c as u32
            ),
        );
    }
}

/// Whether XML 1.0 has the character.
pub fn is_of_xml(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | ' '..='\u{fffd}' | '\u{10000}'..)
}

/// Bytes that a serializer has written, to be taken while it goes on.
#[derive(Clone)]
pub struct Buffer {
    bytes: Rc<RefCell<Vec<u8>>>,
    is_xml: bool,
}

impl Buffer {
    /// An empty one; `is_xml`: for a document in XML.
    pub fn new(is_xml: bool) -> Self {
        Self {
            bytes: Rc::default(),
            is_xml,
        }
    }

    /// Bytes that wait.
    pub fn len(&self) -> usize {
        self.bytes.borrow().len()
    }

    /// Takes the bytes, which are whole characters: serializers write strings.
    pub fn take(&self) -> String {
        let text = text(self.bytes.take());
        // Serializers leave carriage returns of literals as they are, and readers of XML take those for newlines.
        if self.is_xml && text.contains('\r') {
            return text.replace('\r', "&#13;");
        }
        text
    }
}

impl Write for Buffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Refuses an answer that no value of PostgreSQL can hold.
pub fn check_size(bytes: usize) {
    const LARGEST: usize = (1 << 30) - 1024;
    if bytes > LARGEST {
        raise_hint(
            PgSqlErrorCode::ERRCODE_PROGRAM_LIMIT_EXCEEDED,
            "the answer is larger than 1 GB",
            "quad.sparql, quad.construct and quad.describe give it row by row, quad.sparql_json_stream and its kin piece by piece.",
        );
    }
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).expect("the formats are UTF-8")
}

/// The term for the serializers.
pub fn to_oxrdf(term: &Term<'_>) -> oxrdf::Term {
    match *term {
        Term::Iri(iri) => NamedNode::new_unchecked(iri).into(),
        // Written `_:<label>`.
        Term::Blank(_) => BlankNode::new_unchecked(&term.to_string()[2..]).into(),
        Term::Literal(literal) => match literal.kind {
            LiteralKind::String => Literal::new_simple_literal(literal.lexical).into(),
            LiteralKind::Language(tag) => {
                Literal::new_language_tagged_literal_unchecked(literal.lexical, tag).into()
            }
            LiteralKind::Xsd(_) | LiteralKind::Other(_) => Literal::new_typed_literal(
                literal.lexical,
                NamedNode::new_unchecked(literal.kind.datatype()),
            )
            .into(),
        },
    }
}
