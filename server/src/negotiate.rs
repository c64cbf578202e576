//! Content negotiation (RFC 9110 section 12.5.1) between the formats that the extension writes.

/// A format that can be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    /// Media type, in lower case.
    pub media: &'static str,
    /// What the functions of the extension call it.
    pub name: &'static str,
}

impl Format {
    /// The value of the header Content-Type. All formats are UTF-8; those whose default is another one say so.
    pub fn content_type(self) -> String {
        if self.media.starts_with("text/") {
            format!("{}; charset=utf-8", self.media)
        } else {
            self.media.to_owned()
        }
    }
}

const fn format(media: &'static str, name: &'static str) -> Format {
    Format { media, name }
}

/// Results of SELECT and ASK; the first is for clients that take anything.
pub const RESULTS: [Format; 8] = [
    format("application/sparql-results+json", "json"),
    format("application/sparql-results+xml", "xml"),
    format("text/csv", "csv"),
    format("text/tab-separated-values", "tsv"),
    format("application/json", "json"),
    format("application/xml", "xml"),
    format("text/xml", "xml"),
    format("text/plain", "tsv"),
];

/// Graphs.
pub const GRAPHS: [Format; 8] = [
    format("text/turtle", "turtle"),
    format("application/n-triples", "nt"),
    format("application/rdf+xml", "xml"),
    format("application/ld+json", "jsonld"),
    format("application/x-turtle", "turtle"),
    format("text/plain", "nt"),
    format("application/xml", "xml"),
    format("application/json", "jsonld"),
];

/// All graphs of a store.
pub const DATASETS: [Format; 2] = [
    format("application/n-quads", "nquads"),
    format("application/trig", "trig"),
];

/// A range of media types with its quality in thousandths.
#[derive(Debug, PartialEq, Eq)]
struct Range {
    kind: String,
    subtype: String,
    quality: u16,
}

/// The format that a client likes best of `offers`, which are in the order of the server's own liking; `None` when it
/// takes none of them. `accept`: the values of all headers Accept. What is no media range in them is passed over.
pub fn choose<'a>(accept: &[&str], offers: &'a [Format]) -> Option<&'a Format> {
    let ranges: Vec<Range> = accept
        .iter()
        .flat_map(|value| value.split(','))
        .filter_map(range)
        .collect();
    if ranges.is_empty() {
        return offers.first();
    }
    let mut best: Option<(&Format, u16)> = None;
    for offer in offers {
        let quality = quality(offer, &ranges);
        if quality > best.map_or(0, |(_, quality)| quality) {
            best = Some((offer, quality));
        }
    }
    best.map(|(offer, _)| offer)
}

/// The quality of a format: that of the most specific range it is in.
fn quality(offer: &Format, ranges: &[Range]) -> u16 {
    let (kind, subtype) = offer.media.split_once('/').unwrap_or((offer.media, ""));
    let fit = |range: &&Range| {
        (range.kind == "*" || range.kind == kind)
            && (range.subtype == "*" || range.subtype == subtype)
    };
    let specific = |range: &&Range| (range.kind != "*", range.subtype != "*", range.quality);
    let found = ranges.iter().filter(fit).max_by_key(specific);
    found.map_or(0, |range| range.quality)
}

fn range(text: &str) -> Option<Range> {
    let mut parts = text.split(';');
    let (kind, subtype) = parts.next()?.trim().split_once('/')?;
    let token = |text: &str| {
        !text.is_empty()
            && text
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
    };
    if !token(kind) || !token(subtype) {
        return None;
    }
    let mut quality = 1000;
    for part in parts {
        if let Some((name, value)) = part.split_once('=') {
            if name.trim().eq_ignore_ascii_case("q") {
                let value: f32 = value.trim().parse().ok()?;
                if !(0.0..=1.0).contains(&value) {
                    return None;
                }
                quality = (value * 1000.0).round() as u16;
            }
        }
    }
    Some(Range {
        kind: kind.to_ascii_lowercase(),
        subtype: subtype.to_ascii_lowercase(),
        quality,
    })
}

/// The media type of a header Content-Type, in lower case, and its charset where it has one.
pub fn content_type(value: &str) -> (String, Option<String>) {
    let mut parts = value.split(';');
    let media = parts.next().unwrap_or_default().trim().to_ascii_lowercase();
    let charset = parts
        .filter_map(|part| part.split_once('='))
        .find(|(name, _)| name.trim().eq_ignore_ascii_case("charset"));
    let charset = charset.map(|(_, value)| value.trim().trim_matches('"').to_ascii_lowercase());
    (media, charset)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn media(accept: &[&str], offers: &[Format]) -> Option<&'static str> {
        choose(accept, offers).map(|format| format.media)
    }

    #[test]
    fn the_best_quality_wins() {
        let json = Some("application/sparql-results+json");
        assert_eq!(media(&[], &RESULTS), json);
        assert_eq!(media(&["*/*"], &RESULTS), json);
        assert_eq!(
            media(
                &["text/csv;q=0.5, application/sparql-results+xml"],
                &RESULTS
            ),
            Some("application/sparql-results+xml")
        );
        assert_eq!(
            media(
                &["text/csv;q=0.5", "application/sparql-results+xml;q=0.2"],
                &RESULTS
            ),
            Some("text/csv")
        );
        assert_eq!(media(&["TEXT/CSV"], &RESULTS), Some("text/csv"));
        assert_eq!(media(&["text/*"], &RESULTS), Some("text/csv"));
        assert_eq!(media(&["image/png"], &RESULTS), None);
        assert_eq!(
            media(&["image/png, */*;q=0.1"], &GRAPHS),
            Some("text/turtle")
        );
    }

    #[test]
    fn the_most_specific_range_counts() {
        assert_eq!(
            media(
                &["text/*;q=0.9, text/csv;q=0.1, application/sparql-results+json;q=0.5"],
                &RESULTS
            ),
            Some("text/tab-separated-values")
        );
        assert_eq!(
            media(&["*/*, application/sparql-results+json;q=0"], &RESULTS),
            Some("application/sparql-results+xml")
        );
    }

    #[test]
    fn what_is_no_range_is_passed_over() {
        assert_eq!(
            media(
                &["nonsense, ;;q=1, text/csv;q=abc, a/b/c, text/turtle;q=0.1"],
                &GRAPHS
            ),
            Some("text/turtle")
        );
        assert_eq!(media(&["\u{1}"], &GRAPHS), Some("text/turtle"));
    }

    #[test]
    fn charsets() {
        assert_eq!(
            content_type("Text/Turtle; charset=\"UTF-8\""),
            ("text/turtle".to_owned(), Some("utf-8".to_owned()))
        );
        assert_eq!(
            content_type("text/turtle"),
            ("text/turtle".to_owned(), None)
        );
    }
}
