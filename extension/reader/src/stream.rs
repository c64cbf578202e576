//! Documents that are parsed from beginning to end by one thread: Turtle, TriG, RDF/XML, JSON-LD.

use std::io::{self, BufRead, BufReader, Read};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;

use memchr::memchr;
use oxrdf::{GraphNameRef, LiteralRef, NamedOrBlankNodeRef, QuadRef, TermRef};
use oxrdfio::{RdfParseError, RdfParser};
use pgquad_term::{encoded, Blank, Literal, LiteralKind, Term};

use crate::batch::{check_length, Batch, BatchBuilder, DEFAULT_GRAPH_POSITION};
use crate::chunk::{CHUNK_BYTES, MAX_LINE_BYTES};
use crate::error::{ErrorKind, ReadError};
use crate::format::Format;
use crate::json::JsonReader;
use crate::transcode::Transcoded;
use crate::xml::{XmlReader, NO_LANGUAGE};

/// A batch is handed over when it has so many quads.
const BATCH_QUADS: usize = 1 << 14;

/// Puts parsed quads into a batch.
pub(crate) struct QuadSink {
    pub batch: BatchBuilder,
    default_graph: Option<String>,
    /// A named graph is an error.
    pub one_graph: bool,
    scratch: String,
}

impl QuadSink {
    pub fn new(default_graph: Option<String>, one_graph: bool) -> Self {
        QuadSink {
            batch: BatchBuilder::default(),
            default_graph,
            one_graph,
            scratch: String::new(),
        }
    }

    /// Position of the graph for quads that name none.
    pub fn default_graph(&mut self) -> Result<u32, ReadError> {
        match self.default_graph.take() {
            None => Ok(DEFAULT_GRAPH_POSITION),
            Some(iri) => {
                let position = self.term(Term::Iri(&iri));
                self.default_graph = Some(iri);
                position
            }
        }
    }

    fn term(&mut self, term: Term<'_>) -> Result<u32, ReadError> {
        self.scratch.clear();
        encoded::encode(&term, &mut self.scratch);
        self.batch
            .term(&self.scratch, || check_length(&self.scratch))
    }

    /// Adds a quad.
    pub fn quad(&mut self, quad: QuadRef<'_>) -> Result<(), ReadError> {
        let subject = match quad.subject {
            NamedOrBlankNodeRef::NamedNode(node) => self.term(Term::Iri(node.as_str())),
            NamedOrBlankNodeRef::BlankNode(node) => {
                self.term(Term::Blank(Blank::Label(node.as_str())))
            }
        }?;
        let predicate = self.term(Term::Iri(quad.predicate.as_str()))?;
        let object = match quad.object {
            TermRef::NamedNode(node) => self.term(Term::Iri(node.as_str())),
            TermRef::BlankNode(node) => self.term(Term::Blank(Blank::Label(node.as_str()))),
            TermRef::Literal(literal) => self.literal(literal),
        }?;
        if self.one_graph && quad.graph_name != GraphNameRef::DefaultGraph {
            return Err(ReadError::new(
                ErrorKind::Syntax,
                format!(
                    "a document for one graph has the named graph {}",
                    quad.graph_name
                ),
            ));
        }
        let graph = match quad.graph_name {
            GraphNameRef::DefaultGraph => self.default_graph(),
            GraphNameRef::NamedNode(node) => self.term(Term::Iri(node.as_str())),
            GraphNameRef::BlankNode(node) => self.term(Term::Blank(Blank::Label(node.as_str()))),
        }?;
        self.batch.quad([subject, predicate, object, graph]);
        Ok(())
    }

    fn literal(&mut self, literal: LiteralRef<'_>) -> Result<u32, ReadError> {
        let lexical = literal.value();
        match literal.language() {
            Some(NO_LANGUAGE) => self.term(Term::Literal(Literal {
                lexical,
                kind: LiteralKind::String,
            })),
            Some(tag) => {
                let tag = tag.to_ascii_lowercase();
                self.term(Term::Literal(Literal {
                    lexical,
                    kind: LiteralKind::Language(&tag),
                }))
            }
            None => self.term(Term::typed(lexical, literal.datatype().as_str())),
        }
    }
}

/// Parses a document and hands over batches until `deliver` says `false` or `stop` is set.
pub(crate) fn parse(
    format: Format,
    base: Option<&str>,
    (default_graph, one_graph): (Option<String>, bool),
    reader: impl Read,
    stop: &AtomicBool,
    mut deliver: impl FnMut(Batch) -> bool,
) -> Result<(), ReadError> {
    let mut parser = RdfParser::from_format(format.parser_format());
    if let Some(base) = base {
        parser = parser.with_base_iri(base).map_err(|error| {
            ReadError::new(
                ErrorKind::Syntax,
                format!("invalid base IRI \"{base}\": {error}"),
            )
        })?;
    }
    let line = Arc::new(AtomicU64::new(0));
    let reader: Box<dyn Read + '_> = match format {
        Format::RdfXml => Box::new(Transcoded::new(reader)),
        _ => Box::new(reader),
    };
    let lines = LineReader {
        inner: BufReader::with_capacity(1 << 16, reader),
        line: line.clone(),
        at_start: true,
        whole: format != Format::RdfXml,
    };
    let reader: Box<dyn Read + '_> = match format {
        Format::RdfXml => Box::new(XmlReader::new(BufReader::new(lines))),
        Format::JsonLd => Box::new(JsonReader::new(lines)),
        _ => Box::new(lines),
    };
    let mut sink = QuadSink::new(default_graph, one_graph);
    for quad in parser.for_reader(reader) {
        if stop.load(Ordering::Relaxed) {
            return Ok(());
        }
        let near =
            || Some(line.load(Ordering::Relaxed).max(1)).filter(|_| format == Format::RdfXml);
        let quad = quad.map_err(|error| place(error, near()))?;
        sink.quad(quad.as_ref()).map_err(|error| ReadError {
            line: near(),
            ..error
        })?;
        let full = sink.batch.len() >= BATCH_QUADS || sink.batch.text_bytes() >= CHUNK_BYTES;
        if full && !deliver(sink.batch.finish()) {
            return Ok(());
        }
    }
    deliver(sink.batch.finish());
    Ok(())
}

/// An error of the parser with its place, or the line read last where the parser names none.
fn place(error: RdfParseError, last_line: Option<u64>) -> ReadError {
    match error {
        RdfParseError::Io(error) if error.kind() == io::ErrorKind::OutOfMemory => {
            let message = format!("token is longer than {MAX_LINE_BYTES} bytes");
            ReadError::new(ErrorKind::TooLong, message)
        }
        RdfParseError::Io(error) => {
            let error = ReadError::from(error);
            ReadError {
                line: error.line.or(last_line),
                ..error
            }
        }
        RdfParseError::Syntax(error) => {
            let plain = ReadError::new(ErrorKind::Syntax, clean_message(&error.to_string()));
            match error.location() {
                Some(at) => plain
                    .at_line(at.start.line + 1)
                    .at_column(at.start.column + 1),
                None => ReadError {
                    line: last_line,
                    ..plain
                },
            }
        }
    }
}

/// The message without the place that the parsers put in front of it.
pub(crate) fn clean_message(message: &str) -> &str {
    match message
        .strip_prefix("Parser error ")
        .and_then(|rest| rest.split_once(": "))
    {
        Some((_, message)) => message,
        None => message,
    }
}

/// Counts lines. The parser of RDF/XML names no place for an error: given one line at a time, it is in
/// the line read last.
struct LineReader<R> {
    inner: BufReader<R>,
    /// Number of the line read last.
    line: Arc<AtomicU64>,
    at_start: bool,
    whole: bool,
}

impl<R: Read> Read for LineReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.whole {
            return self.inner.read(buffer);
        }
        let available = self.inner.fill_buf()?;
        let end = memchr(b'\n', available).map(|end| end + 1);
        let length = end.unwrap_or(available.len()).min(buffer.len());
        buffer[..length].copy_from_slice(&available[..length]);
        if self.at_start && length > 0 {
            self.line.fetch_add(1, Ordering::Relaxed);
        }
        if length > 0 {
            self.at_start = end == Some(length);
        }
        self.inner.consume(length);
        Ok(length)
    }
}
