//! RDF formats and their names.

use std::fmt;

use oxrdfio::{JsonLdProfileSet, RdfFormat};

use crate::source::Compression;

/// A format of RDF documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// N-Triples.
    NTriples,
    /// N-Quads.
    NQuads,
    /// Turtle.
    Turtle,
    /// TriG.
    TriG,
    /// RDF/XML.
    RdfXml,
    /// JSON-LD 1.0/1.1.
    JsonLd,
}

impl Format {
    /// The names that [`Format::from_name`] is meant to be given.
    pub const NAMES: &str = "nt, nquads, turtle, trig, xml, jsonld";

    /// The format with this name, file ending, or media type, whatever the case of its letters.
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name.to_ascii_lowercase().as_str() {
            "nt" | "ntriples" | "n-triples" | "application/n-triples" => Format::NTriples,
            "nq" | "nquads" | "n-quads" | "application/n-quads" => Format::NQuads,
            "ttl" | "turtle" | "text/turtle" => Format::Turtle,
            "trig" | "application/trig" => Format::TriG,
            "xml" | "rdf" | "rdfxml" | "rdf/xml" | "owl" | "application/rdf+xml" => Format::RdfXml,
            "jsonld" | "json-ld" | "json" | "application/ld+json" => Format::JsonLd,
            _ => return None,
        })
    }

    /// The format that the name of a file tells, e.g. `data.nt.gz`.
    pub fn from_path(path: &str) -> Option<Self> {
        let name = path.rsplit(['/', '\\']).next()?;
        let name = match Compression::from_path(name) {
            Some(_) => name.rsplit_once('.')?.0,
            None => name,
        };
        Format::from_name(name.rsplit_once('.')?.1)
    }

    /// Whether each line can be parsed by itself.
    pub(crate) fn is_line_based(self) -> bool {
        matches!(self, Format::NTriples | Format::NQuads)
    }

    pub(crate) fn parser_format(self) -> RdfFormat {
        match self {
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
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Format::NTriples => "N-Triples",
            Format::NQuads => "N-Quads",
            Format::Turtle => "Turtle",
            Format::TriG => "TriG",
            Format::RdfXml => "RDF/XML",
            Format::JsonLd => "JSON-LD",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_the_format() {
        for (path, format) in [
            ("/data/a.nt", Some(Format::NTriples)),
            ("a.b.NT.gz", Some(Format::NTriples)),
            ("x.ttl.bz2", Some(Format::Turtle)),
            ("x.nq.zst", Some(Format::NQuads)),
            ("dir.nt/x.trig", Some(Format::TriG)),
            ("x.rdf", Some(Format::RdfXml)),
            ("x.jsonld", Some(Format::JsonLd)),
            ("nt", None),
            ("dir.nt/x", None),
            ("x.gz", None),
            ("nt.gz", None),
            ("x.txt", None),
            ("", None),
        ] {
            assert_eq!(Format::from_path(path), format, "{path}");
        }
    }
}
