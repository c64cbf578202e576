//! SPARQL 1.1 Query Results JSON Format.
//!
//! A term is written once for each batch of new ids and copied from there on: answers repeat most of their terms.

use std::collections::HashMap;
use std::ops::Range;

use pgquad_sparql::Param;
use pgquad_term::{Blank, LiteralKind, Term};

use super::answer::{Batch, Cell, Decoded};
use crate::dictionary::BuildHash;

/// Bytes of written terms that are kept for being copied.
const KEPT: usize = 8 << 20;

/// Writes an answer to SELECT.
pub struct Writer {
    out: Vec<u8>,
    /// `"<variable>":` of each column.
    names: Vec<Vec<u8>>,
    /// Terms written as JSON.
    terms: Vec<u8>,
    /// Where the terms of ids are; an empty range for the default graph, which is no value.
    places: HashMap<i64, Range<usize>, BuildHash>,
    first: bool,
}

impl Writer {
    /// Begins an answer with these variables.
    pub fn new(variables: &[String]) -> Self {
        let mut out = b"{\"head\":{\"vars\":[".to_vec();
        let mut names = Vec::with_capacity(variables.len());
        for (place, variable) in variables.iter().enumerate() {
            let mut name = Vec::with_capacity(variable.len() + 3);
            string(&mut name, variable);
            if place > 0 {
                out.push(b',');
            }
            out.extend_from_slice(&name);
            name.push(b':');
            names.push(name);
        }
        out.extend_from_slice(b"]},\"results\":{\"bindings\":[");
        Self {
            out,
            names,
            terms: Vec::new(),
            places: HashMap::default(),
            first: true,
        }
    }

    /// Adds solutions. `params` are the parameters that the query ran with.
    pub fn batch(&mut self, batch: &Batch, params: &[Param]) {
        self.learn(batch, params);
        for cells in batch.rows() {
            self.out
                .extend_from_slice(if self.first { b"{" } else { b",{" });
            self.first = false;
            let mut any = false;
            for (name, cell) in self.names.iter().zip(cells) {
                let known = match cell {
                    Cell::Unbound => continue,
                    Cell::Id(id) => {
                        let place = self.places.get(id).cloned().unwrap_or_default();
                        if place.is_empty() {
                            continue;
                        }
                        Some(place)
                    }
                    Cell::Computed(_) => None,
                };
                if any {
                    self.out.push(b',');
                }
                any = true;
                self.out.extend_from_slice(name);
                match (known, cell) {
                    (Some(place), _) => self.out.extend_from_slice(&self.terms[place]),
                    (None, Cell::Computed(place)) => term(&mut self.out, &batch.computed(*place)),
                    (None, _) => {}
                }
            }
            self.out.push(b'}');
        }
    }

    /// Writes the terms of ids that are new.
    fn learn(&mut self, batch: &Batch, params: &[Param]) {
        if self.terms.len() > KEPT {
            self.terms.clear();
            self.places.clear();
        }
        let mut new = Vec::new();
        for cell in batch.cells() {
            if let Cell::Id(id) = cell {
                self.places.entry(*id).or_insert_with(|| {
                    new.push(*id);
                    0..0
                });
            }
        }
        if new.is_empty() {
            return;
        }
        for (id, value) in Decoded::new(new, params).iter() {
            let start = self.terms.len();
            if let Some(value) = value {
                term(&mut self.terms, &value);
            }
            self.places.insert(id, start..self.terms.len());
        }
    }

    /// The whole answer.
    pub fn finish(mut self) -> Vec<u8> {
        self.out.extend_from_slice(b"]}}");
        self.out
    }

    /// Bytes written so far.
    pub fn len(&self) -> usize {
        self.out.len()
    }
}

fn term(out: &mut Vec<u8>, term: &Term<'_>) {
    match term {
        Term::Iri(iri) => {
            out.extend_from_slice(b"{\"type\":\"uri\",\"value\":");
            string(out, iri);
        }
        Term::Blank(blank) => {
            out.extend_from_slice(b"{\"type\":\"bnode\",\"value\":");
            match blank {
                Blank::Number(number) => string(out, &format!("b{number}")),
                Blank::Label(label) => string(out, label),
            }
        }
        Term::Literal(literal) => {
            out.extend_from_slice(b"{\"type\":\"literal\",\"value\":");
            string(out, literal.lexical);
            match literal.kind {
                LiteralKind::String => {}
                LiteralKind::Language(tag) => {
                    out.extend_from_slice(b",\"xml:lang\":");
                    string(out, tag);
                }
                LiteralKind::Xsd(_) | LiteralKind::Other(_) => {
                    out.extend_from_slice(b",\"datatype\":");
                    string(out, literal.kind.datatype());
                }
            }
        }
    }
    out.push(b'}');
}

/// A JSON string.
fn string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    let bytes = text.as_bytes();
    let mut written = 0;
    for (place, byte) in bytes.iter().enumerate() {
        if *byte >= b' ' && *byte != b'"' && *byte != b'\\' {
            continue;
        }
        out.extend_from_slice(&bytes[written..place]);
        written = place + 1;
        match byte {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            control => out.extend_from_slice(format!("\\u{control:04X}").as_bytes()),
        }
    }
    out.extend_from_slice(&bytes[written..]);
    out.push(b'"');
}
