//! Lexical forms of floating point numbers.

/// The value of an `xsd:double`; `None` when the text is not in its lexical space (XSD 1.1 part 2
/// section 3.3.5).
#[must_use]
pub fn parse_double(lexical: &str) -> Option<f64> {
    match lexical {
        "INF" | "+INF" => Some(f64::INFINITY),
        "-INF" => Some(f64::NEG_INFINITY),
        "NaN" => Some(f64::NAN),
        _ if is_floating_point(lexical) => lexical.parse().ok(),
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
        _ if is_floating_point(lexical) => lexical.parse().ok(),
        _ => None,
    }
}

/// `(\+|-)?([0-9]+(\.[0-9]*)?|\.[0-9]+)([Ee](\+|-)?[0-9]+)?`. Rust's own syntax takes `inf`,
/// `infinity` and `nan` too.
fn is_floating_point(lexical: &str) -> bool {
    !lexical.is_empty()
        && lexical
            .bytes()
            .all(|b| matches!(b, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E'))
}

/// The canonical form of an `xsd:double`.
#[must_use]
pub fn format_double(value: f64) -> String {
    if value.is_infinite() {
        infinity(value.is_sign_negative())
    } else if value.is_nan() {
        "NaN".to_owned()
    } else {
        with_point(format!("{value:E}"))
    }
}

/// The canonical form of an `xsd:float`.
#[must_use]
pub fn format_float(value: f32) -> String {
    if value.is_infinite() {
        infinity(value.is_sign_negative())
    } else if value.is_nan() {
        "NaN".to_owned()
    } else {
        with_point(format!("{value:E}"))
    }
}

fn infinity(negative: bool) -> String {
    if negative { "-INF" } else { "INF" }.to_owned()
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
