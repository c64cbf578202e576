//! Lexical forms of floating point numbers.

/// The value of an `xsd:double`; `None` when the text is not in its lexical space (XSD 1.1 part 2
/// section 3.3.5).
#[must_use]
pub fn parse_double(lexical: &str) -> Option<f64> {
    match lexical {
        "INF" | "+INF" => Some(f64::INFINITY),
        "-INF" => Some(f64::NEG_INFINITY),
        "NaN" => Some(f64::NAN),
        _ if is_finite(lexical) => lexical.parse().ok(),
        _ => None,
    }
}

/// The value of an `xsd:float`, as [`parse_double`].
#[must_use]
pub fn parse_float(lexical: &str) -> Option<f32> {
    match lexical {
        "INF" | "+INF" => Some(f32::INFINITY),
        "-INF" => Some(f32::NEG_INFINITY),
        "NaN" => Some(f32::NAN),
        _ if is_finite(lexical) => lexical.parse().ok(),
        _ => None,
    }
}

/// Whether the text is made of the characters of a finite number. Rust's parser checks the rest;
/// its syntax differs from `(\+|-)?([0-9]+(\.[0-9]*)?|\.[0-9]+)([Ee](\+|-)?[0-9]+)?` only in the
/// words `inf`, `infinity` and `nan`.
fn is_finite(lexical: &str) -> bool {
    lexical
        .bytes()
        .all(|b| matches!(b, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E'))
}

/// The canonical form of an `xsd:double`.
#[must_use]
pub fn format_double(value: f64) -> String {
    special(value).unwrap_or_else(|| with_point(format!("{value:E}")))
}

/// The canonical form of an `xsd:float`.
#[must_use]
pub fn format_float(value: f32) -> String {
    special(f64::from(value)).unwrap_or_else(|| with_point(format!("{value:E}")))
}

/// An `xsd:double` cast to `xsd:string` (Functions and Operators section 17.1.2): plain notation
/// for magnitudes from 1e-6 to 1e6.
pub(crate) fn double_to_string(value: f64) -> String {
    if value == 0.0 || (1e-6..1e6).contains(&value.abs()) {
        value.to_string()
    } else {
        format_double(value)
    }
}

/// An `xsd:float` cast to `xsd:string`, as [`double_to_string`].
pub(crate) fn float_to_string(value: f32) -> String {
    if value == 0.0 || (1e-6..1e6).contains(&value.abs()) {
        value.to_string()
    } else {
        format_float(value)
    }
}

fn special(value: f64) -> Option<String> {
    let text = if value.is_nan() {
        "NaN"
    } else if value == f64::INFINITY {
        "INF"
    } else if value == f64::NEG_INFINITY {
        "-INF"
    } else {
        return None;
    };
    Some(text.to_owned())
}

/// `1E0` as `1.0E0`: the canonical mantissa has a digit after the point.
fn with_point(mut text: String) -> String {
    if !text.contains('.') {
        if let Some(exponent) = text.find('E') {
            text.insert_str(exponent, ".0");
        }
    }
    text
}
