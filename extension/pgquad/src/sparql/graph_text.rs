//! `quad.construct_text` and `quad.describe_text`: graphs in the formats of RDF.

use std::fmt::Write;

use oxrdf::{NamedNode, NamedOrBlankNode, Term, Triple};
use oxrdfio::{JsonLdProfileSet, RdfFormat, RdfSerializer};
use pgquad_reader::Format;
use pgquad_sparql::Form;
use pgrx::prelude::*;
use pgrx::PgSqlErrorCode;

use super::answer::Row;
use super::cache::Prepared;
use super::request::query_of_form;
use super::results::{check_size, to_oxrdf};
use crate::error::{raise, raise_hint, required};

/// Answers a CONSTRUCT query with a document: `turtle`, `nt`, `xml` (RDF/XML), `jsonld`, or a format of quads.
#[pg_extern(stable)]
fn construct_text(
    query: Option<&str>,
    format: default!(Option<&str>, "'turtle'"),
    store: default!(Option<&str>, "NULL"),
    base: default!(Option<&str>, "NULL"),
) -> String {
    let query = required("query", query);
    let format = required("format", format);
    serialize(query, format, store, base, Form::Construct, Form::Describe)
}

/// Answers a DESCRIBE query with a document, in the formats of `quad.construct_text`.
#[pg_extern(stable)]
fn describe_text(
    query: Option<&str>,
    format: default!(Option<&str>, "'turtle'"),
    store: default!(Option<&str>, "NULL"),
    base: default!(Option<&str>, "NULL"),
) -> String {
    let query = required("query", query);
    let format = required("format", format);
    serialize(query, format, store, base, Form::Describe, Form::Construct)
}

fn serialize(
    query: &str,
    format: &str,
    store: Option<&str>,
    base: Option<&str>,
    form: Form,
    other: Form,
) -> String {
    let format = Format::from_name(format).unwrap_or_else(|| {
        raise_hint(
            PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
            format!("format \"{format}\" is not known"),
            format!("Formats are {}.", Format::NAMES),
        )
    });
    let prepared = query_of_form(query, store, base, &[form, other]);
    if format == Format::NTriples {
        return n_triples(&prepared);
    }
    let mut writer = RdfSerializer::from_format(rdf_format(format)).for_writer(Vec::new());
    prepared.stream(|batch| {
        batch.read(&prepared.params, |row| {
            let triple = triple(row);
            if format == Format::RdfXml {
                check_xml(&triple);
            }
            if let Err(error) = writer.serialize_triple(&triple) {
                cannot_be_written(format, &error.to_string());
            }
        });
    });
    match writer.finish() {
        Ok(bytes) => String::from_utf8(bytes).expect("the formats are UTF-8"),
        Err(error) => cannot_be_written(format, &error.to_string()),
    }
}

/// The graph of a query as N-Triples, which is how terms are written anyway.
fn n_triples(prepared: &Prepared) -> String {
    let mut text = String::new();
    prepared.stream(|batch| {
        batch.read(&prepared.params, |row| {
            for place in 0..3 {
                let written = row.term(place, |term| write!(text, "{term} "));
                written
                    .expect("a triple is whole")
                    .expect("writing to memory does not fail");
            }
            text.push_str(".\n");
        });
        check_size(text.len());
    });
    text
}

/// Refuses what XML has no way to write: predicates that do not end like a name, some control characters.
fn check_xml(triple: &Triple) {
    let predicate = triple.predicate.as_str();
    let end = predicate.rsplit(|c| !is_name_char(c)).next();
    if !end.is_some_and(|end| end.contains(is_name_start_char)) {
        cannot_be_written(
            Format::RdfXml,
            &format!("predicate <{predicate}> does not end with an XML name"),
        );
    }
    if let Term::Literal(literal) = &triple.object {
        let control =
            |c: char| c < ' ' && !"\t\n\r".contains(c) || matches!(c, '\u{fffe}' | '\u{ffff}');
        if let Some(c) = literal.value().chars().find(|c| control(*c)) {
            cannot_be_written(
                Format::RdfXml,
                &format!("a literal contains the character U+{:04X}", c as u32),
            );
        }
    }
}

/// NCNameStartChar of Namespaces in XML.
fn is_name_start_char(c: char) -> bool {
    matches!(c,
        'A'..='Z' | '_' | 'a'..='z' | '\u{c0}'..='\u{d6}' | '\u{d8}'..='\u{f6}' | '\u{f8}'..='\u{2ff}'
        | '\u{370}'..='\u{37d}' | '\u{37f}'..='\u{1fff}' | '\u{200c}'..='\u{200d}' | '\u{2070}'..='\u{218f}'
        | '\u{2c00}'..='\u{2fef}' | '\u{3001}'..='\u{d7ff}' | '\u{f900}'..='\u{fdcf}'
        | '\u{fdf0}'..='\u{fffd}' | '\u{10000}'..='\u{effff}')
}

/// NCNameChar of Namespaces in XML.
fn is_name_char(c: char) -> bool {
    is_name_start_char(c)
        || matches!(c, '-' | '.' | '0'..='9' | '\u{b7}' | '\u{300}'..='\u{36f}' | '\u{203f}'..='\u{2040}')
}

fn cannot_be_written(format: Format, why: &str) -> ! {
    raise(
        PgSqlErrorCode::ERRCODE_UNTRANSLATABLE_CHARACTER,
        format!("the graph cannot be written as {format}: {why}"),
    )
}

fn rdf_format(format: Format) -> RdfFormat {
    match format {
        Format::NTriples => RdfFormat::NTriples,
        Format::NQuads => RdfFormat::NQuads,
        Format::Turtle => RdfFormat::Turtle,
        Format::TriG => RdfFormat::TriG,
        Format::RdfXml => RdfFormat::RdfXml,
        Format::JsonLd => RdfFormat::JsonLd {
            profile: JsonLdProfileSet::empty(),
        },
    }
}

fn triple(row: &Row<'_>) -> Triple {
    let term = |place| row.term(place, to_oxrdf).expect("a triple is whole");
    let subject = match term(0) {
        Term::NamedNode(iri) => NamedOrBlankNode::from(iri),
        Term::BlankNode(node) => node.into(),
        Term::Literal(_) => no_triple(),
    };
    let predicate: NamedNode = match term(1) {
        Term::NamedNode(iri) => iri,
        _ => no_triple(),
    };
    Triple::new(subject, predicate, term(2))
}

fn no_triple() -> ! {
    raise(
        PgSqlErrorCode::ERRCODE_INTERNAL_ERROR,
        "a graph holds triples only",
    )
}
