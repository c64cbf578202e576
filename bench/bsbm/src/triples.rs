//! Writing N-Triples into memory.

use crate::vocabulary::{BSBM, DC, FOAF, RDF, RDFS, REV, XSD};
use crate::{dates, vocabulary};

/// Properties and classes, by the prefixes that everyone uses for them.
pub fn expand(name: &str) -> String {
    let (prefix, local) = name.split_once(':').expect("a prefixed name");
    let namespace = match prefix {
        "bsbm" => BSBM,
        "dc" => DC,
        "foaf" => FOAF,
        "rdf" => RDF,
        "rdfs" => RDFS,
        "rev" => REV,
        _ => panic!("unknown prefix {prefix}"),
    };
    format!("{namespace}{local}")
}

/// Properties as they stand between subject and object, ready to be copied.
macro_rules! properties {
    ($($field:ident = $name:literal,)*) => {
        /// The properties of the data.
        pub struct Properties {
            $(#[doc = $name] pub $field: Vec<u8>,)*
        }

        impl Properties {
            /// All of them.
            pub fn new() -> Self {
                Self { $($field: format!("> <{}> ", expand($name)).into_bytes(),)* }
            }
        }
    };
}

properties! {
    kind = "rdf:type",
    label = "rdfs:label",
    comment = "rdfs:comment",
    parent = "rdfs:subClassOf",
    publisher = "dc:publisher",
    date = "dc:date",
    title = "dc:title",
    homepage = "foaf:homepage",
    name = "foaf:name",
    mailbox = "foaf:mbox_sha1sum",
    country = "bsbm:country",
    producer = "bsbm:producer",
    feature = "bsbm:productFeature",
    numeric = "bsbm:productPropertyNumeric",
    textual = "bsbm:productPropertyTextual",
    product = "bsbm:product",
    vendor = "bsbm:vendor",
    price = "bsbm:price",
    valid_from = "bsbm:validFrom",
    valid_to = "bsbm:validTo",
    delivery_days = "bsbm:deliveryDays",
    web_page = "bsbm:offerWebpage",
    review_for = "bsbm:reviewFor",
    review_date = "bsbm:reviewDate",
    reviewer = "rev:reviewer",
    text = "rev:text",
    rating = "bsbm:rating",
}

impl Default for Properties {
    fn default() -> Self {
        Self::new()
    }
}

/// Triples of one subject after the other.
#[derive(Default)]
pub struct Triples {
    bytes: Vec<u8>,
    subject: Vec<u8>,
}

impl Triples {
    /// The lines.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// What the next triples are about.
    pub fn subject(&mut self, iri: &str) {
        self.subject.clear();
        self.subject.push(b'<');
        self.subject.extend_from_slice(iri.as_bytes());
    }

    fn start(&mut self, property: &[u8]) {
        self.bytes.extend_from_slice(&self.subject);
        self.bytes.extend_from_slice(property);
    }

    /// A triple with an IRI as object.
    pub fn iri(&mut self, property: &[u8], iri: &str) {
        self.start(property);
        self.bytes.push(b'<');
        self.bytes.extend_from_slice(iri.as_bytes());
        self.bytes.extend_from_slice(b"> .\n");
    }

    /// A triple with a literal as object; `write` appends what is between the quotes. `end` is what follows them: a
    /// datatype, a language or nothing.
    pub fn literal(&mut self, property: &[u8], end: &str, write: impl FnOnce(&mut Vec<u8>)) {
        self.start(property);
        self.bytes.push(b'"');
        write(&mut self.bytes);
        self.bytes.push(b'"');
        self.bytes.extend_from_slice(end.as_bytes());
        self.bytes.extend_from_slice(b" .\n");
    }

    /// A triple with an integer as object, its property ending in a number (`bsbm:rating` and 3).
    pub fn numbered_integer(&mut self, property: &[u8], number: usize, value: i64) {
        self.literal(&numbered(property, number), &typed("integer"), |into| {
            into.extend_from_slice(value.to_string().as_bytes());
        });
    }

    /// A triple with an integer as object.
    pub fn integer(&mut self, property: &[u8], value: i64) {
        self.literal(property, &typed("integer"), |into| {
            into.extend_from_slice(value.to_string().as_bytes())
        });
    }

    /// A triple with an `xsd:date` as object.
    pub fn date(&mut self, property: &[u8], day: i64) {
        self.literal(property, &typed("date"), |into| dates::write(day, into));
    }

    /// A triple with an `xsd:dateTime` as object, midnight of a day.
    pub fn date_time(&mut self, property: &[u8], day: i64) {
        self.literal(property, &typed("dateTime"), |into| {
            dates::write(day, into);
            into.extend_from_slice(b"T00:00:00");
        });
    }

    /// Country, publisher, and date of publishing, which most instances end with.
    pub fn published(&mut self, properties: &Properties, publisher: &str, day: i64) {
        self.iri(&properties.publisher, publisher);
        self.date(&properties.date, day);
    }

    /// The country, by its code.
    pub fn country(&mut self, properties: &Properties, code: &str) {
        self.iri(&properties.country, &vocabulary::country(code));
    }
}

/// A property that ends in a number.
pub fn numbered(property: &[u8], number: usize) -> Vec<u8> {
    let name = &property[..property.len() - 2];
    [name, number.to_string().as_bytes(), b"> "].concat()
}

/// The end of a literal of one of XML Schema's datatypes.
pub fn typed(name: &str) -> String {
    format!("^^<{XSD}{name}>")
}
