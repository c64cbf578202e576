//! What stands between a document in XML and the parser of RDF/XML or of SPARQL results, which take no notice of parts
//! of XML.
//!
//! Line ends and white space of attributes are normalised (XML 1.0, 2.11 and 3.3.3). Comments and processing
//! instructions are left out, and the text around them becomes one. So does text around CDATA sections. Entities are
//! expanded here, with bounds. A document that ends within an element is an error.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::{self, BufRead, Read};
use std::sync::Arc;

use memchr::{memchr, memchr2, memmem};
use pgquad_term::encoded::MAX_TERM_BYTES;
use quick_xml::events::attributes::AttrError;
use quick_xml::events::{BytesStart, Event};
use quick_xml::Reader;

use crate::chunk::MAX_LINE_BYTES;
use crate::error::{ErrorKind, ReadError};
use crate::transcode::is_known;

/// Stands for `xml:lang=""`, which the parser takes for an error: the language of a literal that has none.
pub const NO_LANGUAGE: &str = "x-pgquad-none";

/// Types of content (RDF 1.1 XML Syntax, 7.2.14); all others are read as the first (7.2.20).
const PARSE_TYPES: [&[u8]; 3] = [b"Literal", b"Resource", b"Collection"];

/// Datatype of what has the first of these.
const XML_LITERAL: &[u8] = b"http://www.w3.org/1999/02/22-rdf-syntax-ns#XMLLiteral";

/// Entities that each document has; a declaration of one says the same.
const PREDEFINED: [&[u8]; 5] = [b"lt", b"gt", b"amp", b"quot", b"apos"];

/// A document as the parser takes it.
pub struct XmlReader<R> {
    reader: Reader<Bounded<R>>,
    event: Vec<u8>,
    /// The values of entities, ready to stand in text or in an attribute.
    entities: HashMap<Vec<u8>, Vec<u8>>,
    /// So many bytes more may the values of entities have.
    entity_bytes: usize,
    out: Vec<u8>,
    /// So many bytes of `out` have been read.
    taken: usize,
    /// Bytes of text since the last tag.
    text_bytes: usize,
    /// A tag that begins an XML literal, and what stands for it where the literal is empty.
    held: Option<(Vec<u8>, Vec<u8>)>,
    /// The local name of elements in whose text the parser would leave out white space.
    kept: Option<&'static [u8]>,
    /// Whether the last tag began one.
    is_kept: bool,
    /// Elements that are open.
    depth: usize,
    /// `depth` within the property whose value is an XML literal.
    literal: Option<usize>,
    /// Whether the root element has been seen.
    rooted: bool,
    ended: bool,
}

impl<R: BufRead> XmlReader<R> {
    /// For the parser of RDF/XML. Errors while reading are [`ReadError`] within [`io::Error`].
    pub fn new(reader: R) -> Self {
        XmlReader {
            reader: Reader::from_reader(Bounded {
                inner: reader,
                left: MAX_LINE_BYTES,
            }),
            event: Vec::new(),
            entities: HashMap::new(),
            entity_bytes: MAX_TERM_BYTES,
            out: Vec::new(),
            taken: 0,
            text_bytes: 0,
            held: None,
            kept: None,
            is_kept: false,
            depth: 0,
            literal: None,
            rooted: false,
            ended: false,
        }
    }

    /// For the parser of SPARQL results, which leaves out white space around the text of a literal.
    pub fn of_results(reader: R) -> Self {
        XmlReader {
            kept: Some(b"literal"),
            ..Self::new(reader)
        }
    }

    /// Reads on to the next tag or the end of some text.
    fn step(&mut self) -> io::Result<()> {
        let mut bytes = std::mem::take(&mut self.event);
        bytes.clear();
        self.reader.get_mut().left = MAX_LINE_BYTES;
        let event = self.reader.read_event_into(&mut bytes).map_err(error);
        let done = event.and_then(|event| Ok(self.put(&event)?));
        self.event = bytes;
        done
    }

    fn put(&mut self, event: &Event<'_>) -> Result<(), ReadError> {
        let start = self.out.len();
        match event {
            Event::Start(tag) => {
                self.release(false);
                self.open(tag, false)?;
                self.depth += 1;
            }
            Event::Empty(tag) => {
                self.release(false);
                self.open(tag, true)?;
            }
            Event::End(tag) => {
                self.release(true);
                if self.literal == Some(self.depth) {
                    self.literal = None;
                }
                self.depth -= 1;
                self.out.extend_from_slice(b"</");
                self.out.extend_from_slice(tag);
                self.out.push(b'>');
            }
            Event::Text(text) => {
                self.release(false);
                let text = normal_line_ends(text);
                expand(&text, &self.entities, &mut self.out, MAX_LINE_BYTES)?;
            }
            Event::CData(text) => {
                self.release(false);
                escape(&normal_line_ends(text), &mut self.out);
            }
            Event::Decl(declaration) => {
                let named = declaration.encoding().and_then(Result::ok);
                let is_known = |name: &[u8]| std::str::from_utf8(name).is_ok_and(is_known);
                // The parser tells of encodings that are not read.
                if !named.is_none_or(|name| is_known(&name)) {
                    self.out.extend_from_slice(b"<?");
                    self.out.extend_from_slice(declaration);
                    self.out.extend_from_slice(b"?>");
                }
            }
            Event::DocType(content) => self.declare(content)?,
            Event::Comment(_) | Event::PI(_) => {}
            Event::Eof if self.depth > 0 => {
                return Err(syntax("the document ends within an element"));
            }
            Event::Eof if !self.rooted => {
                return Err(syntax("the document has no element"));
            }
            Event::Eof => self.ended = true,
        }
        match event {
            Event::Text(_) | Event::CData(_) => {
                if self.is_kept {
                    keep_space(&mut self.out, start);
                }
                self.text_bytes += self.out.len() - start;
                if self.text_bytes > MAX_LINE_BYTES {
                    return Err(too_long());
                }
            }
            Event::Start(tag) => {
                self.text_bytes = 0;
                self.is_kept = Some(tag.local_name().as_ref()) == self.kept;
            }
            Event::Empty(_) | Event::End(_) => {
                self.text_bytes = 0;
                self.is_kept = false;
            }
            _ => {}
        }
        Ok(())
    }

    /// Puts out the tag that was held back.
    fn release(&mut self, is_empty: bool) {
        if let Some((tag, of_empty)) = self.held.take() {
            self.out
                .extend_from_slice(if is_empty { &of_empty } else { &tag });
        }
    }

    /// Puts out a tag, or holds it back.
    fn open(&mut self, tag: &BytesStart<'_>, is_empty: bool) -> Result<(), ReadError> {
        if self.depth == 0 && std::mem::replace(&mut self.rooted, true) {
            return Err(syntax("there is an element after the root element"));
        }
        let mut text = vec![b'<'];
        text.extend_from_slice(tag.name().as_ref());
        let mut of_empty = None;
        for attribute in tag.attributes() {
            let attribute = attribute.map_err(|error: AttrError| {
                syntax(format!("error while parsing attribute: {error}"))
            })?;
            let (prefix, name) = match attribute.key.decompose() {
                (name, Some(prefix)) => (prefix.into_inner(), name.into_inner()),
                (name, None) => (&b""[..], name.into_inner()),
            };
            let mut value: Cow<'_, [u8]> = attribute.value.clone();
            if self.literal.is_none() && !prefix.is_empty() {
                if (prefix, name) == (b"xml", b"lang") && value.trim_ascii().is_empty() {
                    value = Cow::Borrowed(NO_LANGUAGE.as_bytes());
                }
                if name == b"parseType" {
                    if !PARSE_TYPES.contains(&&*value) {
                        value = Cow::Borrowed(PARSE_TYPES[0]);
                    }
                    if *value == *PARSE_TYPES[0] {
                        let mut typed = text.clone();
                        let key = [prefix, b":datatype"].concat();
                        put_attribute(&mut typed, &key, XML_LITERAL);
                        of_empty = Some(typed);
                    }
                }
            }
            let mut expanded = Vec::new();
            expand(&value, &self.entities, &mut expanded, MAX_LINE_BYTES)?;
            let value = in_attribute(&expanded);
            put_attribute(&mut text, attribute.key.as_ref(), &value);
            if let Some(of_empty) = of_empty.as_mut().filter(|_| name != b"parseType") {
                put_attribute(of_empty, attribute.key.as_ref(), &value);
            }
            if text.len() > MAX_LINE_BYTES {
                return Err(too_long());
            }
        }
        let end: &[u8] = if is_empty { b"/>" } else { b">" };
        text.extend_from_slice(end);
        match of_empty {
            Some(mut of_empty) => {
                of_empty.extend_from_slice(end);
                if is_empty {
                    self.out.append(&mut of_empty);
                } else {
                    self.literal = Some(self.depth + 1);
                    self.held = Some((text, of_empty));
                }
            }
            None => self.out.append(&mut text),
        }
        Ok(())
    }

    /// Takes the entities of a document type declaration.
    fn declare(&mut self, content: &[u8]) -> Result<(), ReadError> {
        let mut rest = match memchr(b'[', content) {
            Some(start) => &content[start + 1..],
            None => return Ok(()),
        };
        while let Some(start) = memchr(b'<', rest) {
            rest = &rest[start..];
            if let Some(comment) = rest.strip_prefix(b"<!--") {
                rest = after(comment, b"-->");
                continue;
            }
            if let Some(instruction) = rest.strip_prefix(b"<?") {
                rest = after(instruction, b"?>");
                continue;
            }
            let end = markup_end(rest);
            if let Some(declaration) = rest[..end].strip_prefix(b"<!ENTITY") {
                self.declare_entity(declaration)?;
            }
            rest = &rest[end..];
        }
        Ok(())
    }

    /// Takes an entity, unless it is one of another file or of the declaration itself. The first of a name counts.
    fn declare_entity(&mut self, declaration: &[u8]) -> Result<(), ReadError> {
        let declaration = declaration.trim_ascii();
        let end = declaration
            .iter()
            .position(u8::is_ascii_whitespace)
            .unwrap_or(declaration.len());
        let (name, value) = (&declaration[..end], declaration[end..].trim_ascii());
        let Some(quote @ (b'"' | b'\'')) = value.first() else {
            return Ok(());
        };
        let value = &value[1..];
        let Some(end) = memchr(*quote, value) else {
            return Ok(());
        };
        if PREDEFINED.contains(&name) || self.entities.contains_key(name) {
            return Ok(());
        }
        let mut expanded = Vec::new();
        let value = normal_line_ends(&value[..end]);
        expand(&value, &self.entities, &mut expanded, self.entity_bytes)?;
        self.entity_bytes -= expanded.len();
        let mut quoted = Vec::with_capacity(expanded.len());
        for byte in expanded {
            put_quoted(byte, &mut quoted);
        }
        self.entities.insert(name.to_vec(), quoted);
        Ok(())
    }
}

impl<R: BufRead> Read for XmlReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.taken == self.out.len() && !self.ended {
            self.out.clear();
            self.taken = 0;
            self.step()?;
        }
        let read = (&self.out[self.taken..]).read(buffer)?;
        self.taken += read;
        Ok(read)
    }
}

/// Ends with an error where more bytes are read than are left for the text or tag that is being read.
struct Bounded<R> {
    inner: R,
    left: usize,
}

impl<R: BufRead> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.inner.read(buffer)
    }
}

impl<R: BufRead> BufRead for Bounded<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.left == 0 {
            return Err(too_long().into());
        }
        self.inner.fill_buf()
    }

    fn consume(&mut self, amount: usize) {
        self.left = self.left.saturating_sub(amount);
        self.inner.consume(amount);
    }
}

fn syntax(message: impl Into<String>) -> ReadError {
    ReadError::new(ErrorKind::Syntax, message)
}

fn too_long() -> ReadError {
    let message = format!("token is longer than {MAX_LINE_BYTES} bytes");
    ReadError::new(ErrorKind::TooLong, message)
}

fn error(error: quick_xml::Error) -> io::Error {
    match error {
        quick_xml::Error::Io(error) => Arc::try_unwrap(error)
            .unwrap_or_else(|error| io::Error::new(error.kind(), error.to_string())),
        other => syntax(other.to_string()).into(),
    }
}

/// Writes white space from a place on as references, which parsers keep.
fn keep_space(text: &mut Vec<u8>, start: usize) {
    for byte in text.split_off(start) {
        match byte {
            b' ' | b'\t' | b'\n' => text.extend_from_slice(format!("&#{byte};").as_bytes()),
            other => text.push(other),
        }
    }
}

/// What follows the first place of `end`.
fn after<'a>(text: &'a [u8], end: &[u8]) -> &'a [u8] {
    memmem::find(text, end).map_or(&[], |at| &text[at + end.len()..])
}

/// Where the declaration ends that `text` begins with: after the first `>` that is not quoted.
fn markup_end(text: &[u8]) -> usize {
    let mut quote = None;
    for (at, byte) in text.iter().enumerate() {
        match (quote, byte) {
            (None, b'>') => return at + 1,
            (None, b'"' | b'\'') => quote = Some(*byte),
            (Some(open), byte) if open == *byte => quote = None,
            _ => {}
        }
    }
    text.len()
}

/// The text with one newline for each end of a line.
fn normal_line_ends(text: &[u8]) -> Cow<'_, [u8]> {
    if memchr(b'\r', text).is_none() {
        return Cow::Borrowed(text);
    }
    let mut normal = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = memchr(b'\r', rest) {
        normal.extend_from_slice(&rest[..at]);
        normal.push(b'\n');
        rest = &rest[at + 1..];
        rest = rest.strip_prefix(b"\n").unwrap_or(rest);
    }
    normal.extend_from_slice(rest);
    Cow::Owned(normal)
}

/// The value of an attribute with a space for each character of white space, and without quotes that would end it.
fn in_attribute(value: &[u8]) -> Cow<'_, [u8]> {
    let is_special = |byte: &u8| matches!(byte, b'\r' | b'\n' | b'\t' | b'"' | b'<');
    if !value.iter().any(is_special) {
        return Cow::Borrowed(value);
    }
    let mut out = Vec::with_capacity(value.len());
    for byte in normal_line_ends(value).iter() {
        match byte {
            b'\n' | b'\t' => out.push(b' '),
            other => put_quoted(*other, &mut out),
        }
    }
    Cow::Owned(out)
}

/// Adds a byte of text that markup and quotes are no part of.
fn put_quoted(byte: u8, out: &mut Vec<u8>) {
    match byte {
        b'"' => out.extend_from_slice(b"&quot;"),
        b'<' => out.extend_from_slice(b"&lt;"),
        other => out.push(other),
    }
}

/// Adds the text with the values of its entities; those that are not known stay, for the parser to tell of.
fn expand(
    text: &[u8],
    entities: &HashMap<Vec<u8>, Vec<u8>>,
    out: &mut Vec<u8>,
    most: usize,
) -> Result<(), ReadError> {
    let most = out.len() + most;
    let mut rest = text;
    while let Some(at) = memchr(b'&', rest).filter(|_| !entities.is_empty()) {
        out.extend_from_slice(&rest[..at]);
        rest = &rest[at..];
        let end = memchr2(b';', b' ', rest).unwrap_or(0);
        let value = rest.get(1..end).and_then(|name| entities.get(name));
        match value {
            Some(value) => {
                out.extend_from_slice(value);
                rest = &rest[end + 1..];
            }
            None => {
                out.push(b'&');
                rest = &rest[1..];
            }
        }
        if out.len() > most {
            break;
        }
    }
    if out.len() + rest.len() > most {
        let message = format!("entities make more than {most} bytes of text");
        return Err(ReadError::new(ErrorKind::TooLong, message));
    }
    out.extend_from_slice(rest);
    Ok(())
}

/// Adds characters as text.
fn escape(text: &[u8], out: &mut Vec<u8>) {
    for byte in text {
        match byte {
            b'&' => out.extend_from_slice(b"&amp;"),
            b'<' => out.extend_from_slice(b"&lt;"),
            b'>' => out.extend_from_slice(b"&gt;"),
            other => out.push(*other),
        }
    }
}

fn put_attribute(tag: &mut Vec<u8>, key: &[u8], value: &[u8]) {
    tag.push(b' ');
    tag.extend_from_slice(key);
    tag.extend_from_slice(b"=\"");
    tag.extend_from_slice(value);
    tag.push(b'"');
}
