//! Inlined ids: lossless, and monotone in the value.

use pgquad_term::{encoded, inline_id, inline_term, tag, Blank, Term, TermId, Xsd};
use proptest::prelude::*;

fn id(lexical: &str, xsd: Xsd) -> Option<TermId> {
    let term = Term::xsd(lexical, xsd);
    let id = inline_id(&term);
    if let Some(id) = id {
        assert!(id.is_inline() && id.to_i64() >= 0);
        assert_eq!(inline_term(id).expect("decodes").as_term(), term);
    }
    id
}

#[test]
fn canonical_forms_are_inlined() {
    let tags = [
        ("true", Xsd::Boolean, tag::BOOLEAN),
        ("0", Xsd::Integer, tag::INTEGER),
        ("-7", Xsd::Byte, tag::INTEGER),
        ("18014398509481983", Xsd::Long, tag::INTEGER),
        ("-18014398509481984", Xsd::Long, tag::INTEGER),
        ("1", Xsd::PositiveInteger, tag::INTEGER),
        ("0", Xsd::Decimal, tag::DECIMAL),
        ("-0.5", Xsd::Decimal, tag::DECIMAL),
        ("2.50", Xsd::Decimal, tag::DECIMAL),
        ("36028797018.963967", Xsd::Decimal, tag::DECIMAL),
        ("1.0E0", Xsd::Double, tag::DOUBLE),
        ("-0.0E0", Xsd::Double, tag::DOUBLE),
        ("INF", Xsd::Double, tag::DOUBLE),
        ("NaN", Xsd::Double, tag::DOUBLE),
        ("1.0E-1", Xsd::Float, tag::FLOAT),
        ("-INF", Xsd::Float, tag::FLOAT),
        ("2008-06-20T00:00:00", Xsd::DateTime, tag::DATE_TIME),
        ("2008-06-20T23:59:59.123Z", Xsd::DateTime, tag::DATE_TIME),
        (
            "9999-12-31T23:59:59.999-14:00",
            Xsd::DateTime,
            tag::DATE_TIME,
        ),
        ("0001-01-01T00:00:00+14:00", Xsd::DateTime, tag::DATE_TIME),
        ("2000-02-29", Xsd::Date, tag::DATE),
        ("2000-02-29+05:45", Xsd::Date, tag::DATE),
    ];
    for (lexical, xsd, tag) in tags {
        assert_eq!(id(lexical, xsd).map(TermId::tag), Some(tag), "{lexical}");
    }
}

#[test]
fn other_forms_are_not_inlined() {
    let forms = [
        ("1", Xsd::Boolean),
        ("+1", Xsd::Integer),
        ("01", Xsd::Integer),
        ("-0", Xsd::Integer),
        ("", Xsd::Integer),
        ("-", Xsd::Integer),
        ("18014398509481984", Xsd::Integer),
        ("128", Xsd::Byte),
        ("-1", Xsd::UnsignedInt),
        ("0", Xsd::PositiveInteger),
        ("-0.0", Xsd::Decimal),
        (".5", Xsd::Decimal),
        ("5.", Xsd::Decimal),
        ("00.5", Xsd::Decimal),
        ("--5", Xsd::Decimal),
        ("36028797018.963968", Xsd::Decimal),
        ("0.1234567", Xsd::Decimal),
        ("1", Xsd::Double),
        ("1e0", Xsd::Double),
        ("1.0E-1", Xsd::Double),
        ("inf", Xsd::Double),
        ("+INF", Xsd::Float),
        ("2008-06-20T24:00:00", Xsd::DateTime),
        ("2008-06-20T00:00:00+00:00", Xsd::DateTime),
        ("2008-06-20T00:00:00+05:20", Xsd::DateTime),
        ("2008-06-20T00:00:00.10", Xsd::DateTime),
        ("2008-06-20T00:00:00.1234", Xsd::DateTime),
        ("2008-06-20T00:00:00z", Xsd::DateTime),
        ("2007-02-29", Xsd::Date),
        ("0000-01-01", Xsd::Date),
        ("10000-01-01", Xsd::Date),
        ("2008-06-20-14:15", Xsd::Date),
        ("12:00:00", Xsd::Time),
    ];
    for (lexical, xsd) in forms {
        assert_eq!(id(lexical, xsd), None, "{lexical} {xsd:?}");
    }
}

#[test]
fn blank_nodes_and_iris() {
    let blank = Term::Blank(Blank::Number(17));
    let id = inline_id(&blank).expect("inlined");
    assert_eq!((id.tag(), id.payload()), (tag::BLANK, 17));
    assert_eq!(inline_term(id).expect("decodes").to_string(), "_:b17");
    assert_eq!(inline_id(&Term::blank("x")), None);
    assert_eq!(inline_id(&Term::Iri("http://example.org/")), None);
    assert_eq!(inline_term(TermId::DEFAULT_GRAPH), None);
    assert_eq!(TermId::DEFAULT_GRAPH.dictionary_number(), None);
}

#[test]
fn dictionary_ids() {
    let iri = TermId::in_dictionary(&Term::Iri("http://example.org/"), 5, None);
    assert_eq!(iri, TermId(5));
    let text = Term::language("chat", "fr");
    let known = TermId::in_dictionary(&text, 9, Some(4095));
    assert_eq!(known.tag(), tag::LANG_STRING);
    assert_eq!(known.language_number(), Some(4095));
    assert_eq!(known.dictionary_number(), Some(9));
    let rare = TermId::in_dictionary(&text, 9, None);
    assert_eq!((rare.tag(), rare.payload()), (tag::OTHER, 9));
    assert!(known.to_i64() > 0);
    assert_eq!(TermId::from_i64(known.to_i64()), Some(known));
    assert_eq!(TermId::from_i64(-1), None);
}

/// The first byte of a term's encoded form tells as much as the term.
#[test]
fn dictionary_ids_of_kinds() {
    let terms = [
        Term::Iri("http://example.org/"),
        Term::blank("x"),
        Term::string("more than seven bytes"),
        Term::language("chat", "fr"),
        Term::xsd("1e400", Xsd::Double),
        Term::typed("x", "http://example.org/type"),
    ];
    for term in terms {
        let mut text = String::new();
        encoded::encode(&term, &mut text);
        for language in [None, Some(4095)] {
            let id = TermId::of_kind(text.as_bytes()[0], 9, language);
            assert_eq!(id, Some(TermId::in_dictionary(&term, 9, language)));
        }
    }
    assert_eq!(TermId::of_kind(b'x', 9, None), None);
    assert_eq!(TermId::of_kind(0, 9, None), None);
}

/// Asserts that a smaller value has a smaller id.
fn monotone(a: &str, b: &str, xsd: Xsd, order: std::cmp::Ordering) -> Result<(), TestCaseError> {
    if let (Some(x), Some(y)) = (id(a, xsd), id(b, xsd)) {
        if order.is_ne() {
            prop_assert_eq!(x.cmp(&y), order, "{} {}", a, b);
        }
        prop_assert_eq!(x == y, a == b);
    }
    Ok(())
}

fn decimal_text((scaled, digits): (i64, u32)) -> (i128, String) {
    let one = 10_i64.pow(digits);
    let sign = if scaled < 0 { "-" } else { "" };
    let magnitude = scaled.abs();
    let text = if digits == 0 {
        format!("{scaled}")
    } else {
        let width = digits as usize;
        format!("{sign}{}.{:0width$}", magnitude / one, magnitude % one)
    };
    (i128::from(scaled) * 10_i128.pow(6 - digits), text)
}

fn date_time_text(parts: (u16, u8, u8, u32, u16, i64)) -> String {
    let (year, month, day, second, millis, quarters) = parts;
    let mut text = format!(
        "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}",
        second / 3600,
        second / 60 % 60,
        second % 60
    );
    if millis != 0 {
        text += format!(".{millis:03}").trim_end_matches('0');
    }
    text + &zone_text(quarters)
}

fn zone_text(quarters: i64) -> String {
    match quarters {
        57 => String::new(),
        0 => "Z".to_owned(),
        _ => format!(
            "{}{:02}:{:02}",
            if quarters < 0 { '-' } else { '+' },
            quarters.abs() / 4,
            quarters.abs() % 4 * 15
        ),
    }
}

prop_compose! {
    fn date_time()(year in 1_u16..=9999, month in 1_u8..=12, day in 1_u8..=28, second in 0_u32..86400,
                   millis in prop_oneof![Just(0_u16), 0_u16..1000], quarters in -56_i64..=57)
        -> (u16, u8, u8, u32, u16, i64) {
        (year, month, day, second, millis, quarters)
    }
}

proptest! {
    #[test]
    fn integers(a in any::<i64>(), b in any::<i64>(), shift in 0_u32..64, code in 2_u8..=14) {
        let xsd = Xsd::from_code(code).expect("an integer type");
        let (a, b) = (a >> shift, b >> shift);
        monotone(&a.to_string(), &b.to_string(), xsd, a.cmp(&b))?;
        let fits = xsd.admits(i128::from(a)) && a.unsigned_abs() < 1 << 54;
        prop_assert!(!fits || id(&a.to_string(), xsd).is_some());
    }

    #[test]
    fn decimals(a in (-1_i64 << 56..1 << 56, 0_u32..=6), b in (-1_i64 << 56..1 << 56, 0_u32..=6), shift in 0_u32..56) {
        let (a, x) = decimal_text((a.0 >> shift, a.1));
        let (b, y) = decimal_text((b.0 >> shift, b.1));
        monotone(&x, &y, Xsd::Decimal, a.cmp(&b))?;
        let negative_zero = a == 0 && x.starts_with('-');
        prop_assert_eq!(a.abs() < 1 << 55 && !negative_zero, id(&x, Xsd::Decimal).is_some(), "{}", x);
    }

    #[test]
    fn doubles(a in any::<f64>(), b in any::<f64>()) {
        let (a, b) = (f64::from(a as f32), f64::from_bits(b.to_bits() & !31));
        let form = pgquad_term::number::format_double;
        prop_assert!(id(&form(a), Xsd::Double).is_some() && id(&form(b), Xsd::Double).is_some());
        if let Some(order) = a.partial_cmp(&b) {
            monotone(&form(a), &form(b), Xsd::Double, order)?;
        }
    }

    #[test]
    fn floats(a in any::<f32>(), b in any::<f32>()) {
        let form = pgquad_term::number::format_float;
        prop_assert!(id(&form(a), Xsd::Float).is_some());
        if let Some(order) = a.partial_cmp(&b) {
            monotone(&form(a), &form(b), Xsd::Float, order)?;
        }
    }

    #[test]
    fn date_times(a in date_time(), b in date_time()) {
        use oxsdatatypes::DateTime;
        let (x, y) = (date_time_text(a), date_time_text(b));
        prop_assert!(id(&x, Xsd::DateTime).is_some(), "{}", x);
        let value = |text: &str| text.parse::<DateTime>().expect("a dateTime");
        if (a.5 == 57) == (b.5 == 57) {
            let order = value(&x).partial_cmp(&value(&y)).expect("comparable");
            monotone(&x, &y, Xsd::DateTime, order)?;
        }
    }

    #[test]
    fn dates(a in date_time(), b in date_time()) {
        use oxsdatatypes::Date;
        let text = |p: (u16, u8, u8, u32, u16, i64)| {
            format!("{:04}-{:02}-{:02}{}", p.0, p.1, p.2, zone_text(p.5))
        };
        let (x, y) = (text(a), text(b));
        prop_assert!(id(&x, Xsd::Date).is_some(), "{}", x);
        let value = |text: &str| text.parse::<Date>().expect("a date");
        if (a.5 == 57) == (b.5 == 57) {
            let order = value(&x).partial_cmp(&value(&y)).expect("comparable");
            monotone(&x, &y, Xsd::Date, order)?;
        }
    }

    #[test]
    fn strings(a in "\\PC{0,8}", b in "[a-c]{0,8}") {
        for text in [&a, &b] {
            let id = inline_id(&Term::string(text));
            prop_assert_eq!(id.is_some(), text.len() <= 7);
            if let Some(id) = id {
                let decoded = inline_term(id).expect("decodes");
                prop_assert_eq!(decoded.as_term(), Term::string(text));
            }
        }
        if let (Some(x), Some(y)) = (inline_id(&Term::string(&a)), inline_id(&Term::string(&b))) {
            prop_assert_eq!(x.cmp(&y), a.cmp(&b));
        }
    }

    /// Whatever an id decodes to encodes to that id: no two ids for one term.
    #[test]
    fn no_id_twice(tag in 5_u8..=12, payload in any::<u64>(), shift in 0_u32..59) {
        let id = TermId::new(tag, payload >> shift);
        if let Some(term) = inline_term(id) {
            prop_assert_eq!(inline_id(&term.as_term()), Some(id), "{}", term);
        }
    }
}
