//! Constants that stand for those of a text while its template is made.

use pgquad_term::number::format_double;

use super::constant::Kind;
use crate::params::inline_id_of;

const XSD: &str = "http://www.w3.org/2001/XMLSchema#";

/// N-Triples text of the marker of the constant at `place`: of the same kind as the constant, and different from every
/// other marker. `None` where no such text is known.
pub(super) fn marker(kind: &Kind, place: usize) -> Option<String> {
    let text = match kind {
        Kind::Iri => format!("<x-pgquad:constant/{place}>"),
        Kind::Literal {
            suffix,
            inline: false,
        } => format!("\"pgquad constant {place}\"{suffix}"),
        Kind::Literal {
            suffix,
            inline: true,
        } => format!("\"{}\"{suffix}", short(suffix, place)?),
    };
    (inline_id_of(&text).is_some() == kind.is_inline()).then_some(text)
}

/// A lexical form that is short enough for an id.
fn short(suffix: &str, place: usize) -> Option<String> {
    if suffix.is_empty() {
        return Some(format!("~q{place}"));
    }
    let datatype = suffix
        .strip_prefix("^^<")?
        .strip_suffix('>')?
        .strip_prefix(XSD)?;
    let year = 2100 + place;
    Some(match datatype {
        "double" => format_double((7_300_000 + place) as f64),
        "decimal" => format!("{}.5", 7_300_000 + place),
        "dateTime" => format!("{year}-07-13T07:13:07"),
        "date" => format!("{year}-07-13"),
        _ => (7_300_000 + place).to_string(),
    })
}
