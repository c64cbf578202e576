//! SPARQL 1.1 Query Results JSON Format.
//!
//! A term is written once for each batch of new ids and copied from there on: answers repeat most of their terms.

use std::collections::HashMap;
use std::ops::Range;

use pgquad_sparql::Param;
use pgquad_term::{Blank, LiteralKind, Term};

use super::answer::{constant, Batch, Cell};
use crate::dictionary::{self, BuildHash};

/// Bytes of written terms that are kept for being copied.
const MAX_CACHED_BYTES: usize = 8 << 20;

/// Writes an answer to SELECT.
pub struct Writer {
    out: String,
    /// `"<variable>":` of each column.
    names: Vec<String>,
    /// Terms written as JSON.
    terms: String,
    /// Where they are; an empty range for the default graph, which is no value.
    places: Vec<Range<usize>>,
    /// Which of them is the term of an id.
    numbers: HashMap<i64, usize, BuildHash>,
    first: bool,
}

impl Writer {
    /// Begins an answer with these variables.
    pub fn new(variables: &[String]) -> Self {
        let mut out = String::from("{\"head\":{\"vars\":[");
        let mut names = Vec::with_capacity(variables.len());
        for (place, variable) in variables.iter().enumerate() {
            let mut name = String::with_capacity(variable.len() + 3);
            string(&mut name, variable);
            if place > 0 {
                out.push(',');
            }
            out.push_str(&name);
            name.push(':');
            names.push(name);
        }
        out.push_str("]},\"results\":{\"bindings\":[");
        Self {
            out,
            names,
            terms: String::new(),
            places: Vec::new(),
            numbers: HashMap::default(),
            first: true,
        }
    }

    /// Adds solutions. `params` are the parameters that the query ran with.
    pub fn batch(&mut self, batch: &Batch, params: &[Param]) {
        let numbers = self.learn(batch, params);
        let bytes: usize = numbers.iter().map(|&n| self.places[n].len()).sum();
        let names: usize = self.names.iter().map(|name| name.len() + 1).sum();
        self.out.reserve(bytes + (names + 3) * batch.len());
        let mut numbers = numbers.into_iter();
        for cells in batch.rows() {
            self.out.push_str(if self.first { "{" } else { ",{" });
            self.first = false;
            let mut any = false;
            for (name, cell) in self.names.iter().zip(cells) {
                let known = match cell {
                    Cell::Unbound => continue,
                    Cell::Id(_) => numbers.next().map(|number| self.places[number].clone()),
                    Cell::Computed(_) => None,
                };
                if known.as_ref().is_some_and(Range::is_empty) {
                    continue;
                }
                if any {
                    self.out.push(',');
                }
                any = true;
                self.out.push_str(name);
                match (known, cell) {
                    (Some(place), _) => self.out.push_str(&self.terms[place]),
                    (None, Cell::Computed(place)) => term(&mut self.out, &batch.computed(*place)),
                    (None, _) => {}
                }
            }
            self.out.push('}');
        }
    }

    /// Writes the terms of ids that are new. Gives the number of the term of each id of the batch.
    fn learn(&mut self, batch: &Batch, params: &[Param]) -> Vec<usize> {
        if self.terms.len() > MAX_CACHED_BYTES {
            self.terms.clear();
            self.places.clear();
            self.numbers.clear();
        }
        let mut numbers = Vec::with_capacity(batch.cells().len());
        let mut new = Vec::new();
        for cell in batch.cells() {
            if let Cell::Id(id) = cell {
                let number = *self.numbers.entry(*id).or_insert_with(|| {
                    let number = self.places.len();
                    let start = self.terms.len();
                    if *id < 0 {
                        term(&mut self.terms, &constant(*id, params).as_term());
                    } else {
                        new.push((dictionary::term_id(*id), number));
                    }
                    self.places.push(start..self.terms.len());
                    number
                });
                numbers.push(number);
            }
        }
        dictionary::for_each_term(&new, |number: usize, found| {
            let start = self.terms.len();
            term(&mut self.terms, &found.as_term());
            self.places[number] = start..self.terms.len();
        });
        numbers
    }

    /// What has been written since the last call.
    pub fn take(&mut self) -> String {
        std::mem::take(&mut self.out)
    }

    /// The rest of the answer: all of it where nothing has been taken.
    pub fn finish(mut self) -> String {
        self.out.push_str("]}}");
        self.out
    }

    /// Bytes written so far.
    pub fn len(&self) -> usize {
        self.out.len()
    }
}

fn term(out: &mut String, term: &Term<'_>) {
    match term {
        Term::Iri(iri) => {
            out.push_str("{\"type\":\"uri\",\"value\":");
            string(out, iri);
        }
        Term::Blank(blank) => {
            out.push_str("{\"type\":\"bnode\",\"value\":");
            match blank {
                Blank::Number(number) => string(out, &format!("b{number}")),
                Blank::Label(label) => string(out, label),
            }
        }
        Term::Literal(literal) => {
            out.push_str("{\"type\":\"literal\",\"value\":");
            string(out, literal.lexical);
            match literal.kind {
                LiteralKind::String => {}
                LiteralKind::Language(tag) => {
                    out.push_str(",\"xml:lang\":");
                    string(out, tag);
                }
                LiteralKind::Xsd(_) | LiteralKind::Other(_) => {
                    out.push_str(",\"datatype\":");
                    string(out, literal.kind.datatype());
                }
            }
        }
    }
    out.push('}');
}

/// A JSON string.
fn string(out: &mut String, text: &str) {
    out.push('"');
    let mut rest = text;
    while let Some(place) = first_special(rest.as_bytes()) {
        out.push_str(&rest[..place]);
        match rest.as_bytes()[place] {
            b'"' => out.push_str("\\\""),
            b'\\' => out.push_str("\\\\"),
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            control => out.push_str(&format!("\\u{control:04X}")),
        }
        rest = &rest[place + 1..];
    }
    out.push_str(rest);
    out.push('"');
}

/// The first byte that cannot stand in a JSON string as it is.
fn first_special(bytes: &[u8]) -> Option<usize> {
    // Most texts have none: many bytes are looked at together.
    const TOGETHER: usize = 32;
    let special = |byte: &u8| (*byte < b' ') | (*byte == b'"') | (*byte == b'\\');
    let any = |chunk: &[u8]| chunk.iter().fold(false, |any, byte| any | special(byte));
    let chunks = bytes.chunks_exact(TOGETHER);
    let plain = chunks.take_while(|chunk| !any(chunk)).count() * TOGETHER;
    let place = bytes[plain..].iter().position(special)?;
    Some(plain + place)
}
