//! N-Triples and N-Quads, line by line.
//!
//! Plain lines (no escapes, language tags of the common short forms) are taken apart here. Every other line, and every
//! line with an error, goes to the complete parser. That parser decides what is right and says what is wrong.

use memchr::{memchr, memchr2, memchr3};
use oxiri::Iri;
use oxttl::{NQuadsParser, NTriplesParser, TurtleSyntaxError};
use pgquad_term::{encoded, Term, RDF_LANG_STRING};

use crate::batch::{check_length, Batch};
use crate::chunk::Chunk;
use crate::error::{ErrorKind, ReadError};
use crate::format::Format;
use crate::stream::{clean_message, QuadSink};

/// So many datatypes are remembered as valid.
const KEPT_DATATYPES: usize = 16;

/// Parses chunks of one document.
pub(crate) struct LineParser {
    format: Format,
    sink: QuadSink,
    /// Valid datatype IRIs with the beginning of the encoded literal.
    datatypes: Vec<(String, String)>,
    scratch: String,
}

/// A term as it stands in a line.
#[derive(Clone, Copy)]
enum Token<'a> {
    Iri(&'a str),
    Blank(&'a str),
    String(&'a str),
    Language(&'a str, &'a str),
    Typed(&'a str, &'a str),
}

/// What the fast path makes of a line.
enum Line<'a> {
    Empty,
    Statement {
        subject: Token<'a>,
        predicate: Token<'a>,
        object: Token<'a>,
        graph: Option<Token<'a>>,
    },
    /// The complete parser must look at it.
    Other,
}

/// Why the fast path gives up on a term.
enum Trouble {
    /// The complete parser must look at the line.
    Other,
    Error(ReadError),
}

impl From<ReadError> for Trouble {
    fn from(error: ReadError) -> Self {
        Trouble::Error(error)
    }
}

impl LineParser {
    /// A parser for N-Triples or N-Quads. Triples outside of named graphs go to `default_graph`, an IRI.
    /// With `one_graph` a named graph is an error.
    pub fn new(format: Format, default_graph: Option<String>, one_graph: bool) -> Self {
        LineParser {
            format,
            sink: QuadSink::new(default_graph, one_graph),
            datatypes: Vec::new(),
            scratch: String::new(),
        }
    }

    /// Parses the lines of a chunk.
    pub fn parse(&mut self, chunk: &Chunk) -> Result<Batch, ReadError> {
        let text = std::str::from_utf8(&chunk.bytes).map_err(|error| {
            let valid = String::from_utf8_lossy(&chunk.bytes[..error.valid_up_to()]);
            let line = valid.matches('\n').count() as u64;
            let column = valid.chars().rev().take_while(|char| *char != '\n').count() as u64;
            ReadError::new(ErrorKind::Encoding, "invalid UTF-8")
                .at_line(chunk.first_line + line)
                .at_column(column + 1)
        })?;
        let default_graph = self.sink.default_graph()?;
        let mut last_subject = None;
        let mut number = chunk.first_line;
        let mut rest = text;
        while !rest.is_empty() {
            let end = memchr(b'\n', rest.as_bytes()).map_or(rest.len(), |end| end + 1);
            let (line, after) = rest.split_at(end);
            rest = after;
            let fast = match scan(line, self.format == Format::NQuads) {
                Line::Empty => Ok(()),
                Line::Other => Err(Trouble::Other),
                Line::Statement {
                    subject,
                    predicate,
                    object,
                    graph,
                } => self.statement(
                    &mut last_subject,
                    default_graph,
                    subject,
                    predicate,
                    object,
                    graph,
                ),
            };
            match fast {
                Ok(()) => {}
                Err(Trouble::Other) => self.parse_completely(line, number)?,
                Err(Trouble::Error(error)) => return Err(error.at_line(number)),
            }
            number += 1;
        }
        Ok(self.sink.batch.finish())
    }

    fn statement<'a>(
        &mut self,
        last_subject: &mut Option<(&'a str, u32)>,
        default_graph: u32,
        subject: Token<'a>,
        predicate: Token<'a>,
        object: Token<'a>,
        graph: Option<Token<'a>>,
    ) -> Result<(), Trouble> {
        let subject = match (subject, *last_subject) {
            (Token::Iri(iri), Some((last, position))) if iri == last => position,
            (other, _) => {
                let position = self.term(other)?;
                if let Token::Iri(iri) = other {
                    *last_subject = Some((iri, position));
                }
                position
            }
        };
        let predicate = self.term(predicate)?;
        let object = self.term(object)?;
        let graph = match graph {
            // The other parser says why.
            Some(_) if self.sink.one_graph => return Err(Trouble::Other),
            Some(graph) => self.term(graph)?,
            None => default_graph,
        };
        self.sink.batch.quad([subject, predicate, object, graph]);
        Ok(())
    }

    fn term(&mut self, token: Token<'_>) -> Result<u32, Trouble> {
        let scratch = &mut self.scratch;
        scratch.clear();
        match token {
            Token::Iri(iri) => {
                scratch.push('I');
                scratch.push_str(iri);
                return self.sink.batch.term(scratch, || {
                    check_length(scratch)?;
                    Iri::parse(iri).map(drop).map_err(|_| Trouble::Other)
                });
            }
            Token::Blank(label) => {
                scratch.push('B');
                scratch.push_str(label);
            }
            Token::String(lexical) => {
                scratch.push('S');
                scratch.push_str(lexical);
            }
            Token::Language(lexical, tag) => {
                scratch.push('L');
                scratch.extend(tag.chars().map(|char| char.to_ascii_lowercase()));
                scratch.push('\0');
                scratch.push_str(lexical);
            }
            Token::Typed(lexical, datatype) => {
                match self.datatypes.iter().find(|(known, _)| known == datatype) {
                    Some((_, start)) => scratch.push_str(start),
                    None => {
                        if datatype == RDF_LANG_STRING || Iri::parse(datatype).is_err() {
                            return Err(Trouble::Other);
                        }
                        encoded::encode(&Term::typed("", datatype), scratch);
                        if self.datatypes.len() < KEPT_DATATYPES {
                            self.datatypes.push((datatype.to_owned(), scratch.clone()));
                        }
                    }
                }
                scratch.push_str(lexical);
            }
        }
        self.sink
            .batch
            .term(scratch, || check_length(scratch).map_err(Trouble::Error))
    }

    fn parse_completely(&mut self, line: &str, number: u64) -> Result<(), ReadError> {
        // Without its end, so that an error there is in this line, not in the next.
        let line = line.strip_suffix('\n').unwrap_or(line);
        let place = |error: TurtleSyntaxError| {
            let at = error.location().start;
            ReadError::new(ErrorKind::Syntax, clean_message(&error.to_string()))
                .at_line(number + at.line)
                .at_column(at.column + 1)
        };
        if self.format == Format::NQuads {
            for quad in NQuadsParser::new().for_slice(line.as_bytes()) {
                self.sink
                    .quad(quad.map_err(place)?.as_ref())
                    .map_err(|error| error.at_line(number))?;
            }
        } else {
            for triple in NTriplesParser::new().for_slice(line.as_bytes()) {
                let triple = triple.map_err(place)?;
                let quad = triple.as_ref().in_graph(oxrdf::GraphNameRef::DefaultGraph);
                self.sink
                    .quad(quad)
                    .map_err(|error| error.at_line(number))?;
            }
        }
        Ok(())
    }
}

/// The part of a line that has not been read.
struct Cursor<'a>(&'a str);

impl<'a> Cursor<'a> {
    fn skip_blanks(&mut self) {
        self.0 = self.0.trim_start_matches([' ', '\t']);
    }

    fn peek(&self) -> Option<u8> {
        self.0.as_bytes().first().copied()
    }

    fn take(&mut self, length: usize) -> &'a str {
        let (taken, rest) = self.0.split_at(length);
        self.0 = rest;
        taken
    }

    /// `<...>` without escapes.
    fn iri(&mut self) -> Option<&'a str> {
        let body = self.0.strip_prefix('<')?;
        let end = memchr2(b'>', b'\\', body.as_bytes())?;
        if body.as_bytes()[end] != b'>' {
            return None;
        }
        Some(&self.take(end + 2)[1..=end])
    }

    /// `_:label` of ASCII letters, digits, and underscores, followed by a blank.
    fn blank(&mut self) -> Option<&'a str> {
        let label = self.0.strip_prefix("_:")?.as_bytes();
        let end = label
            .iter()
            .position(|byte| !byte.is_ascii_alphanumeric() && *byte != b'_')?;
        if end == 0 || !matches!(label[end], b' ' | b'\t') {
            return None;
        }
        Some(&self.take(end + 2)[2..])
    }

    fn literal(&mut self) -> Option<Token<'a>> {
        let body = self.0.strip_prefix('"')?;
        let end = memchr3(b'"', b'\\', b'\r', body.as_bytes())?;
        if body.as_bytes()[end] != b'"' {
            return None;
        }
        let lexical = &self.take(end + 2)[1..=end];
        match self.peek()? {
            b'@' => {
                self.take(1);
                let end = self
                    .0
                    .bytes()
                    .position(|byte| !byte.is_ascii_alphanumeric() && byte != b'-')?;
                let tag = self.take(end);
                is_common_tag(tag.as_bytes()).then_some(Token::Language(lexical, tag))
            }
            b'^' => {
                if !self.0.starts_with("^^<") {
                    return None;
                }
                self.take(2);
                Some(Token::Typed(lexical, self.iri()?))
            }
            _ => Some(Token::String(lexical)),
        }
    }

    fn resource(&mut self) -> Option<Token<'a>> {
        match self.peek()? {
            b'<' => self.iri().map(Token::Iri),
            _ => self.blank().map(Token::Blank),
        }
    }
}

/// `en`, `deu`, `en-US`: tags of which no check is needed.
fn is_common_tag(tag: &[u8]) -> bool {
    let letters = |part: &[u8]| part.iter().all(u8::is_ascii_alphabetic);
    match tag.len() {
        2 | 3 => letters(tag),
        5 => letters(&tag[..2]) && tag[2] == b'-' && letters(&tag[3..]),
        _ => false,
    }
}

fn scan(line: &str, graph_allowed: bool) -> Line<'_> {
    let mut cursor = Cursor(line);
    cursor.skip_blanks();
    if matches!(cursor.peek(), None | Some(b'\n' | b'#')) || cursor.0 == "\r\n" {
        // A carriage return ends a line too, and with it a comment.
        return if cursor.0.trim_end().contains('\r') {
            Line::Other
        } else {
            Line::Empty
        };
    }
    scan_statement(&mut cursor, graph_allowed).unwrap_or(Line::Other)
}

fn scan_statement<'a>(cursor: &mut Cursor<'a>, graph_allowed: bool) -> Option<Line<'a>> {
    let subject = cursor.resource()?;
    cursor.skip_blanks();
    let predicate = Token::Iri(cursor.iri()?);
    cursor.skip_blanks();
    let object = match cursor.peek()? {
        b'"' => cursor.literal()?,
        _ => cursor.resource()?,
    };
    cursor.skip_blanks();
    let graph = if graph_allowed && cursor.peek()? != b'.' {
        Some(cursor.resource()?)
    } else {
        None
    };
    cursor.skip_blanks();
    let rest = cursor.0.strip_prefix('.')?;
    rest.trim_end_matches(['\n', '\r', ' ', '\t'])
        .is_empty()
        .then_some(Line::Statement {
            subject,
            predicate,
            object,
            graph,
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::DEFAULT_GRAPH_POSITION;
    use proptest::prelude::*;

    /// Statements as text, with the terms in their encoded form.
    fn quads(batch: &Batch) -> Vec<Vec<String>> {
        batch
            .quads
            .iter()
            .map(|quad| {
                quad.iter()
                    .filter(|position| **position != DEFAULT_GRAPH_POSITION)
                    .map(|position| batch.text(&batch.terms[*position as usize]).to_owned())
                    .collect()
            })
            .collect()
    }

    fn parse(format: Format, text: &str) -> Result<Vec<Vec<String>>, ReadError> {
        let chunk = Chunk {
            first_line: 1,
            bytes: text.as_bytes().to_vec(),
        };
        LineParser::new(format, None, false)
            .parse(&chunk)
            .map(|batch| quads(&batch))
    }

    /// What the complete parser says of every line.
    fn parse_reference(format: Format, text: &str) -> Result<Vec<Vec<String>>, ReadError> {
        let mut parser = LineParser::new(format, None, false);
        for (index, line) in text.split_inclusive('\n').enumerate() {
            parser.parse_completely(line, index as u64 + 1)?;
        }
        Ok(quads(&parser.sink.batch.finish()))
    }

    fn line() -> impl Strategy<Value = String> {
        let iri = prop_oneof![
            Just("<http://a/b>".to_owned()),
            Just("<http://a/\\u00e9>".to_owned()),
            "<http://[a-z]{1,3}(:[0-9a]{1,3})?/[a-z %#?\\[é]{0,4}>",
            "<[a-z:]{0,5}>",
        ];
        let blank = "_:[a-z0-9_.:-]{0,4}";
        let literal = prop_oneof![
            "\"[a-zé ]{0,5}(\\\\[nt\"x])?[\r]?\"(@[a-zA-Z0-9-]{1,7})?",
            Just("\"1\"^^<http://www.w3.org/2001/XMLSchema#integer>".to_owned()),
            Just("\"1\"^^<http://www.w3.org/1999/02/22-rdf-syntax-ns#langString>".to_owned()),
            Just("\"1\"^^<rel>".to_owned()),
            Just("\"x\"^^<http://www.w3.org/2001/XMLSchema#string>".to_owned()),
        ];
        let term = prop_oneof![3 => iri, 1 => blank, 2 => literal];
        let space = prop_oneof![Just(" "), Just(""), Just("\t"), Just("  ")];
        let end = prop_oneof![
            8 => Just("."), 1 => Just(""), 1 => Just(". # comment"), 1 => Just("..") , 1 => Just(" . "), 1 => Just(".\r")
        ];
        (prop::collection::vec((term, space), 0..5), end).prop_map(|(terms, end)| {
            let mut line: String = terms
                .into_iter()
                .map(|(term, space)| term + space)
                .collect();
            line.push_str(end);
            line
        })
    }

    proptest! {
        #[test]
        fn the_fast_path_agrees_with_the_complete_parser(
            lines in prop::collection::vec(prop_oneof![4 => line(), 1 => Just(String::new()), 1 => Just("# x".to_owned()), 1 => "\\PC{0,9}"], 0..4),
            last in prop_oneof![Just("\n"), Just("")],
        ) {
            let text = lines.join("\n") + last;
            for format in [Format::NTriples, Format::NQuads] {
                prop_assert_eq!(parse(format, &text), parse_reference(format, &text), "{:?}", text);
            }
        }
    }

    #[test]
    fn errors_say_line_and_column() {
        let text = "<http://a> <http://b> <http://c> .\n\n<http://a> <http://b c> <http://c> .\n";
        let error = parse(Format::NTriples, text).unwrap_err();
        assert_eq!((error.kind, error.line), (ErrorKind::Syntax, Some(3)));
        assert!(error.column.is_some());

        let error =
            parse(Format::NTriples, "<http://a> <http://b> \"x\" <http://g> .").unwrap_err();
        assert_eq!(error.line, Some(1));
        assert_eq!(
            parse(Format::NQuads, "<http://a> <http://b> \"x\" <http://g> .")
                .unwrap()
                .len(),
            1
        );

        let mut bytes = b"<http://a> <http://b> <http://c> .\n<http://\xc3\xa9".to_vec();
        bytes.push(0xff);
        let chunk = Chunk {
            first_line: 10,
            bytes,
        };
        let error = LineParser::new(Format::NTriples, None, false)
            .parse(&chunk)
            .map(drop)
            .unwrap_err();
        assert_eq!(
            (error.kind, error.line, error.column),
            (ErrorKind::Encoding, Some(11), Some(10))
        );
    }

    #[test]
    fn an_empty_iri_is_an_error_on_the_first_line_too() {
        for text in [
            "<> <http://a> <http://b> .",
            "<http://a> <> <http://b> .",
            "<http://a> <http://b> <> .",
        ] {
            let error = parse(Format::NTriples, text).unwrap_err();
            assert_eq!((error.kind, error.line), (ErrorKind::Syntax, Some(1)));
        }
    }

    #[test]
    fn terms_that_are_too_long_are_an_error() {
        for (start, end) in [("\"", "\""), ("<http://", ">"), ("\"\\n", "\"@en")] {
            let text = format!(
                "<http://a> <http://b> {start}{}{end} .",
                "x".repeat(1 << 20)
            );
            let error = parse(Format::NTriples, &text).unwrap_err();
            assert_eq!((error.kind, error.line), (ErrorKind::TooLong, Some(1)));
        }
    }

    #[test]
    fn triples_go_to_the_default_graph_given() {
        let text = "<http://a> <http://b> \"x\" .\n<http://a> <http://b> \"\\n\" .\n<http://a> <http://b> \"x\" <http://h> .";
        let chunk = Chunk {
            first_line: 1,
            bytes: text.as_bytes().to_vec(),
        };
        let batch = LineParser::new(Format::NQuads, Some("http://g".to_owned()), false)
            .parse(&chunk)
            .unwrap();
        let graphs: Vec<String> = quads(&batch)
            .into_iter()
            .map(|quad| quad[3].clone())
            .collect();
        assert_eq!(graphs, ["Ihttp://g", "Ihttp://g", "Ihttp://h"]);
    }
}
