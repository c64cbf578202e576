//! The W3C result formats: `quad.sparql_json`, `quad.sparql_xml`, `quad.sparql_csv`, `quad.sparql_tsv`.

use oxrdf::{BlankNode, Literal, NamedNode, Variable};
use pgquad_sparql::Form;
use pgquad_term::{LiteralKind, Term};
use pgrx::prelude::*;
use pgrx::PgSqlErrorCode;
use sparesults::{QueryResultsFormat, QueryResultsSerializer};

use super::json;
use super::query::run_ask;
use super::request::query_of_form;
use crate::error::{raise_hint, required};

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
    let serializer = QueryResultsSerializer::from_format(format);
    if prepared.form() == Form::Ask {
        let bytes = serializer
            .serialize_boolean_to_writer(Vec::new(), run_ask(&prepared))
            .expect("writing to memory does not fail");
        return text(bytes);
    }
    if format == QueryResultsFormat::Json {
        let mut writer = json::Writer::new(prepared.columns());
        prepared.stream(|batch| {
            writer.batch(batch, &prepared.params);
            check_size(writer.len());
        });
        return writer.finish();
    }
    let variables: Vec<Variable> = prepared
        .columns()
        .iter()
        .map(Variable::new_unchecked)
        .collect();
    let mut writer = serializer
        .serialize_solutions_to_writer(Vec::new(), variables.clone())
        .expect("writing to memory does not fail");
    prepared.stream(|batch| {
        batch.read(&prepared.params, |row| {
            let terms: Vec<(usize, oxrdf::Term)> = (0..variables.len())
                .filter_map(|place| Some((place, row.term(place, to_oxrdf)?)))
                .collect();
            writer
                .serialize(terms.iter().map(|(place, term)| (&variables[*place], term)))
                .expect("writing to memory does not fail");
        });
    });
    text(writer.finish().expect("writing to memory does not fail"))
}

/// Refuses an answer that no value of PostgreSQL can hold.
pub fn check_size(bytes: usize) {
    const LARGEST: usize = (1 << 30) - 1024;
    if bytes > LARGEST {
        raise_hint(
            PgSqlErrorCode::ERRCODE_PROGRAM_LIMIT_EXCEEDED,
            "the answer is larger than 1 GB",
            "quad.sparql, quad.construct and quad.describe give it row by row.",
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
