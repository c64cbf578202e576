//! `quad.construct_text` and `quad.describe_text`: graphs in the formats of RDF.

use std::fmt::Write;

use oxrdf::vocab::rdf;
use oxrdf::{GraphName, NamedNode, NamedOrBlankNode, Quad, Term};
use oxrdfio::{JsonLdProfileSet, RdfFormat, RdfSerializer, WriterQuadSerializer};
use pgquad_reader::Format;
use pgquad_sparql::{Form, Param};
use pgrx::prelude::*;
use pgrx::PgSqlErrorCode;

use super::answer::{Batch, Row};
use super::prepared::query_of_form;
use super::results::{check_size, is_of_xml, to_oxrdf, Buffer};
use crate::pg::error::{raise, raise_hint, required};

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
    let format = graph_format(format);
    let prepared = query_of_form(query, store, base, &[form, other]);
    let mut writer = GraphWriter::new(format);
    prepared.stream(|batch| {
        writer.batch(batch, &prepared.params);
        check_size(writer.len());
    });
    writer.finish()
}

/// The format of graphs with this name.
pub fn graph_format(name: &str) -> Format {
    Format::from_name(name).unwrap_or_else(|| {
        raise_hint(
            PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
            format!("format \"{name}\" is not known"),
            format!("Formats are {}.", Format::NAMES),
        )
    })
}

/// Writes rows of terms as a graph: subject, predicate, object and, where rows have four columns, the graph.
pub enum GraphWriter {
    /// N-Triples and N-Quads, which is how terms are written anyway.
    Lines(String),
    /// As `oxrdfio` does.
    Other {
        writer: Box<WriterQuadSerializer<Buffer>>,
        format: Format,
        buffer: Buffer,
        types: Types,
    },
}

/// Types of RDF/XML that are no names of elements, as `<http://x/138875005>`. The serializer names the element of a
/// subject by its type where that comes first, so they wait for another triple of it.
#[derive(Default)]
pub struct Types {
    /// The subject of the last triple.
    subject: Option<NamedOrBlankNode>,
    waiting: Vec<Quad>,
}

impl Types {
    /// What is to be written now that a triple has come.
    fn next(&mut self, quad: Quad) -> Vec<Quad> {
        let is_new = self.subject.as_ref() != Some(&quad.subject);
        if is_new {
            self.refuse_rest();
            self.subject = Some(quad.subject.clone());
        }
        let is_nameless = quad.predicate == rdf::TYPE
            && matches!(&quad.object, Term::NamedNode(class) if !ends_with_name(class.as_str()));
        if is_nameless && (is_new || !self.waiting.is_empty()) {
            self.waiting.push(quad);
            return Vec::new();
        }
        let mut due = vec![quad];
        due.append(&mut self.waiting);
        due
    }

    /// Refuses what waits for a triple that does not come.
    fn refuse_rest(&self) {
        if let Some(quad) = self.waiting.first() {
            cannot_be_written(
                Format::RdfXml,
                &format!(
                    "all that is said of {} is its type {}, which does not end with an XML name",
                    quad.subject, quad.object
                ),
            );
        }
    }
}

impl GraphWriter {
    /// Begins a document.
    pub fn new(format: Format) -> Self {
        if matches!(format, Format::NTriples | Format::NQuads) {
            return Self::Lines(String::new());
        }
        let buffer = Buffer::new(format == Format::RdfXml);
        let writer = RdfSerializer::from_format(rdf_format(format)).for_writer(buffer.clone());
        Self::Other {
            writer: Box::new(writer),
            format,
            buffer,
            types: Types::default(),
        }
    }

    /// Adds triples or quads. `params` are the parameters that the query ran with.
    pub fn batch(&mut self, batch: &Batch, params: &[Param]) {
        match self {
            Self::Lines(text) => {
                batch.read(params, |row| line(text, row));
            }
            Self::Other {
                writer,
                format,
                types,
                ..
            } => {
                let mut write = |quad: &Quad| {
                    if let Err(error) = writer.serialize_quad(quad) {
                        cannot_be_written(*format, &error.to_string());
                    }
                };
                batch.read(params, |row| {
                    let quad = quad(row);
                    if *format == Format::RdfXml {
                        check_xml(&quad);
                        types.next(quad).iter().for_each(&mut write);
                    } else {
                        write(&quad);
                    }
                });
            }
        }
    }

    /// Bytes written and not taken.
    pub fn len(&self) -> usize {
        match self {
            Self::Lines(text) => text.len(),
            Self::Other { buffer, .. } => buffer.len(),
        }
    }

    /// What has been written since the last call.
    pub fn take(&mut self) -> String {
        match self {
            Self::Lines(text) => std::mem::take(text),
            Self::Other { buffer, .. } => buffer.take(),
        }
    }

    /// The rest of the document: all of it where nothing has been taken.
    pub fn finish(self) -> String {
        match self {
            Self::Lines(text) => text,
            Self::Other {
                writer,
                format,
                buffer,
                types,
            } => {
                types.refuse_rest();
                match writer.finish() {
                    Ok(_) => buffer.take(),
                    Err(error) => cannot_be_written(format, &error.to_string()),
                }
            }
        }
    }
}

/// Writes a line of N-Triples or N-Quads. The default graph, where rows have a fourth column, is unbound.
fn line(text: &mut String, row: &Row<'_>) {
    for place in 0..row.len() {
        let written = row.term(place, |term| write!(text, "{term} "));
        if place < 3 && written.is_none() {
            no_triple();
        }
    }
    text.push_str(".\n");
}

/// Refuses what XML has no way to write: predicates that do not end like a name, some control characters.
fn check_xml(triple: &Quad) {
    let predicate = triple.predicate.as_str();
    if !ends_with_name(predicate) {
        cannot_be_written(
            Format::RdfXml,
            &format!("predicate <{predicate}> does not end with an XML name"),
        );
    }
    if let Term::Literal(literal) = &triple.object {
        if let Some(c) = literal.value().chars().find(|c| !is_of_xml(*c)) {
            cannot_be_written(
                Format::RdfXml,
                &format!("a literal contains the character U+{:04X}", c as u32),
            );
        }
    }
}

/// Whether an IRI ends with a name that an element can have.
fn ends_with_name(iri: &str) -> bool {
    let end = iri.rsplit(|c| !is_name_char(c)).next();
    end.is_some_and(|end| end.contains(is_name_start_char))
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

fn quad(row: &Row<'_>) -> Quad {
    let term = |place| row.term(place, to_oxrdf);
    let subject = match term(0) {
        Some(Term::NamedNode(iri)) => NamedOrBlankNode::from(iri),
        Some(Term::BlankNode(node)) => node.into(),
        _ => no_triple(),
    };
    let predicate: NamedNode = match term(1) {
        Some(Term::NamedNode(iri)) => iri,
        _ => no_triple(),
    };
    let object = term(2).unwrap_or_else(|| no_triple());
    let graph = match (row.len() > 3).then(|| term(3)).flatten() {
        Some(Term::NamedNode(iri)) => GraphName::from(iri),
        Some(Term::BlankNode(node)) => node.into(),
        _ => GraphName::DefaultGraph,
    };
    Quad::new(subject, predicate, object, graph)
}

fn no_triple() -> ! {
    raise(
        PgSqlErrorCode::ERRCODE_INTERNAL_ERROR,
        "a graph holds triples only",
    )
}
