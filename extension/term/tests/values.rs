//! Comparison, effective boolean value, sorting and arithmetic.

use oxsdatatypes::{Decimal, Integer};
use pgquad_term::compare::{compare, effective_boolean_value, equal, less};
use pgquad_term::func::numeric;
use pgquad_term::{order, parse, sort_key, Error, Result, Term, TermBuf, Xsd};
use proptest::prelude::*;
use std::cmp::Ordering;

/// A term: N-Triples, `lexical^^local` for a datatype of XML Schema.
fn t(text: &str) -> TermBuf {
    match text.split_once("^^") {
        Some((lexical, local)) if !local.starts_with('<') => {
            let datatype = format!("http://www.w3.org/2001/XMLSchema#{local}");
            Term::typed(lexical, &datatype).to_buf()
        }
        _ => parse(text).expect(text),
    }
}

fn eq(a: &str, b: &str) -> Option<bool> {
    let (a, b) = (t(a), t(b));
    let result = equal(&a.as_term(), &b.as_term());
    assert_eq!(result, equal(&b.as_term(), &a.as_term()), "{a} {b}");
    result.ok()
}

fn lt(a: &str, b: &str) -> Option<bool> {
    less(&t(a).as_term(), &t(b).as_term()).ok()
}

#[test]
fn equality() {
    let equal = [
        ("1", "01"),
        ("1", "1.0"),
        ("1", "1e0"),
        ("1", "1^^float"),
        ("1", "1^^unsignedByte"),
        ("1.10", "1.1"),
        ("0.1", "0.1^^float"),
        ("-0.0e0", "0"),
        ("9007199254740993", "9007199254740992e0"),
        ("INF^^double", "INF^^float"),
        (
            "99999999999999999999999999",
            "99999999999999999999999999^^nonNegativeInteger",
        ),
        ("\"a\"", "\"a\""),
        ("true", "1^^boolean"),
        (
            "2020-01-01T00:00:00Z^^dateTime",
            "2020-01-01T01:00:00+01:00^^dateTime",
        ),
        (
            "2020-01-01T24:00:00^^dateTime",
            "2020-01-02T00:00:00^^dateTime",
        ),
        (
            "2020-01-01T00:00:00Z^^dateTimeStamp",
            "2020-01-01T00:00:00.0Z^^dateTime",
        ),
        ("2020-01-01Z^^date", "2020-01-01+00:00^^date"),
        ("P12M^^duration", "P1Y^^yearMonthDuration"),
        ("<http://example.org/>", "<http://example.org/>"),
        ("\"x\"^^<urn:t>", "\"x\"^^<urn:t>"),
        ("x^^integer", "x^^integer"),
    ];
    for (a, b) in equal {
        assert_eq!(eq(a, b), Some(true), "{a} {b}");
    }
    let different = [
        ("1", "2"),
        ("1", "\"1\""),
        ("1", "true"),
        ("NaN^^double", "NaN^^double"),
        ("NaN^^double", "1"),
        ("\"a\"", "\"b\""),
        ("\"a\"@en", "\"a\""),
        ("\"a\"@en", "\"a\"@fr"),
        ("\"a\"@en", "\"a\"^^<urn:t>"),
        ("<http://example.org/>", "\"http://example.org/\""),
        ("_:a", "_:b"),
        ("_:a", "1"),
        (
            "2020-01-01T00:00:00Z^^dateTime",
            "2020-01-03T00:00:00^^dateTime",
        ),
        ("2020-01-01^^date", "2020-01-01T00:00:00^^dateTime"),
        ("P1M^^duration", "P30D^^duration"),
    ];
    for (a, b) in different {
        assert_eq!(eq(a, b), Some(false), "{a} {b}");
    }
    let errors = [
        ("\"x\"^^<urn:t>", "\"y\"^^<urn:t>"),
        ("\"x\"^^<urn:t>", "\"x\""),
        ("\"x\"^^<urn:t>", "\"x\"^^<urn:u>"),
        ("x^^integer", "1"),
        ("300^^byte", "300"),
        (
            "2020-01-01T00:00:00Z^^dateTime",
            "2020-01-01T00:00:00^^dateTime",
        ),
        ("2006-08-23^^date", "2006-08-23Z^^date"),
    ];
    for (a, b) in errors {
        assert_eq!(eq(a, b), None, "{a} {b}");
    }
}

#[test]
fn ordering_operators() {
    let cases = [
        ("1", "1.5", Some(true)),
        ("2", "1.5e0", Some(false)),
        ("1", "NaN^^double", Some(false)),
        ("NaN^^double", "1", Some(false)),
        ("-INF^^float", "-1", Some(true)),
        ("1", "170000000000000000000000.5", None),
        ("170000000000000000000000000", "1.5", Some(false)),
        ("\"a\"", "\"b\"", Some(true)),
        ("\"\u{e9}\"", "\"\u{1F600}\"", Some(true)),
        ("false", "true", Some(true)),
        (
            "2020-01-01T00:00:00Z^^dateTime",
            "2020-01-01T00:00:01Z^^dateTime",
            Some(true),
        ),
        (
            "2020-01-01T00:00:00^^dateTime",
            "2020-01-01T13:00:00Z^^dateTime",
            None,
        ),
        (
            "2020-01-01T00:00:00^^dateTime",
            "2020-01-01T14:00:00Z^^dateTime",
            None,
        ),
        (
            "2020-01-01T00:00:00^^dateTime",
            "2020-01-01T14:00:01Z^^dateTime",
            Some(true),
        ),
        (
            "2020-01-01T14:00:01Z^^dateTime",
            "2020-01-01T00:00:00^^dateTime",
            Some(false),
        ),
        (
            "2020-01-01T00:00:00Z^^dateTime",
            "2020-01-01T15:00:00^^dateTime",
            Some(true),
        ),
        ("2020-01-01^^date", "2020-01-02^^date", Some(true)),
        ("10:00:00^^time", "11:00:00^^time", Some(true)),
        ("2019^^gYear", "2020^^gYear", Some(true)),
        ("P1D^^dayTimeDuration", "PT25H^^dayTimeDuration", Some(true)),
        ("P1M^^duration", "P30D^^duration", None),
        ("P1M^^duration", "P32D^^duration", Some(true)),
        ("\"a\"@en", "\"b\"@en", Some(true)),
        ("\"b\"@en", "\"a\"@en", Some(false)),
        ("\"a\"@en", "\"b\"@fr", None),
        ("\"a\"@en", "\"b\"", None),
        ("\"a\"", "1", None),
        ("1", "true", None),
        ("2020-01-01^^date", "2020-01-01T00:00:00^^dateTime", None),
        ("<urn:a>", "<urn:b>", None),
        ("_:a", "_:b", None),
        ("\"x\"^^<urn:t>", "\"y\"^^<urn:t>", None),
    ];
    for (a, b, expected) in cases {
        assert_eq!(lt(a, b), expected, "{a} {b}");
    }
}

#[test]
fn effective_boolean_values() {
    let cases = [
        ("true", Some(true)),
        ("0^^boolean", Some(false)),
        ("maybe^^boolean", Some(false)),
        ("\"\"", Some(false)),
        ("\"false\"", Some(true)),
        ("\"\"@en", Some(false)),
        ("\"a\"@en", Some(true)),
        ("0", Some(false)),
        ("-1", Some(true)),
        ("0.00", Some(false)),
        ("0e0", Some(false)),
        ("NaN^^double", Some(false)),
        ("INF^^float", Some(true)),
        ("x^^integer", Some(false)),
        ("999^^byte", Some(false)),
        ("1000000000000000000000000000000000000000000", Some(true)),
        ("\"x\"^^<urn:t>", None),
        ("2020-01-01^^date", None),
        ("<urn:a>", None),
        ("_:a", None),
    ];
    for (text, expected) in cases {
        let result = effective_boolean_value(&t(text).as_term());
        assert_eq!(result.ok(), expected, "{text}");
    }
}

#[test]
fn sorting() {
    let sorted = [
        "_:b2",
        "_:b10",
        "_:a",
        "_:z",
        "<http://example.org/a>",
        "<http://example.org/b>",
        "-INF^^double",
        "-1",
        "0.1",
        "0.1^^float",
        "01",
        "1",
        "1.0",
        "9007199254740992",
        "9007199254740992e0",
        "9007199254740993",
        "INF^^float",
        "NaN^^double",
        "2019-12-31T23:59:59Z^^dateTime",
        "2020-01-01T00:00:00^^dateTime",
        "2020-01-01T00:00:00Z^^dateTime",
        "2020-01-01T01:00:00+01:00^^dateTime",
        "2020-01-01^^date",
        "P1D^^dayTimeDuration",
        "P1M^^duration",
        "P32D^^duration",
        "false",
        "1^^boolean",
        "true",
        "\"a\"",
        "\"a\"@de",
        "\"a\"@en",
        "\"b\"",
        "\"b\"^^<urn:t>",
        "x^^integer",
    ];
    let terms: Vec<_> = sorted.iter().map(|text| t(text)).collect();
    for (i, a) in terms.iter().enumerate() {
        for (j, b) in terms.iter().enumerate() {
            assert_eq!(order(&a.as_term(), &b.as_term()), i.cmp(&j), "{a} {b}");
            assert!(
                i > j || sort_key(&a.as_term()) <= sort_key(&b.as_term()),
                "{a} {b}"
            );
        }
    }
}

fn arithmetic(
    op: fn(&Term<'_>, &Term<'_>) -> Result<TermBuf>,
    a: &str,
    b: &str,
) -> Option<TermBuf> {
    op(&t(a).as_term(), &t(b).as_term()).ok()
}

#[test]
fn arithmetic_operators() {
    use numeric::{add, div, mul, sub};
    type Op = fn(&Term<'_>, &Term<'_>) -> Result<TermBuf>;
    let cases: &[(Op, &str, &str, Option<&str>)] = &[
        (add, "1", "2", Some("3^^integer")),
        (add, "1^^byte", "127^^byte", Some("128^^integer")),
        (add, "1", "2.0", Some("3^^decimal")),
        (add, "0.1", "0.2", Some("0.3^^decimal")),
        (add, "1.5", "1^^float", Some("2.5E0^^float")),
        (add, "1^^float", "1e0", Some("2.0E0^^double")),
        (add, "0.1e0", "0.2e0", Some("3.0000000000000004E-1^^double")),
        (add, "\"1\"", "2", None),
        (add, "x^^integer", "2", None),
        (add, "170141183460469231731687303715884105727", "1", None),
        (sub, "1", "2", Some("-1^^integer")),
        (mul, "2", "3.50", Some("7^^decimal")),
        (
            mul,
            "0.1234567891",
            "0.1234567891",
            Some("0.015241578774881878^^decimal"),
        ),
        (mul, "100000000000", "100000000000.0", None),
        (mul, "1e308", "10", Some("INF^^double")),
        (div, "1", "2", Some("0.5^^decimal")),
        (div, "4", "2", Some("2^^decimal")),
        (div, "1", "3", Some("0.333333333333333333^^decimal")),
        (div, "-1", "3", Some("-0.333333333333333333^^decimal")),
        (div, "1", "0", None),
        (div, "1.0", "0.0", None),
        (div, "1", "0e0", Some("INF^^double")),
        (div, "0e0", "0", Some("NaN^^double")),
        (div, "100000000000000000000", "0.333333333333333333", None),
        (
            div,
            "100000000000000000000",
            "3.333333333333333333",
            Some("30000000000000000003^^decimal"),
        ),
        (
            sub,
            "2020-01-03T00:00:00Z^^dateTime",
            "2020-01-01T12:00:00Z^^dateTime",
            Some("P1DT12H^^dayTimeDuration"),
        ),
        (
            add,
            "2020-01-31^^date",
            "P1M^^yearMonthDuration",
            Some("2020-02-29^^date"),
        ),
        (
            add,
            "PT1H^^dayTimeDuration",
            "10:30:00^^time",
            Some("11:30:00^^time"),
        ),
        (
            sub,
            "P1Y^^yearMonthDuration",
            "P1M^^yearMonthDuration",
            Some("P11M^^yearMonthDuration"),
        ),
        (add, "P1Y^^duration", "P1M^^duration", None),
        (add, "2020-01-31^^date", "1", None),
    ];
    for (op, a, b, expected) in cases {
        assert_eq!(arithmetic(*op, a, b), expected.map(t), "{a} {b}");
    }
}

#[test]
fn numeric_functions() {
    use numeric::{abs, ceil, floor, neg, pos, round};
    type Op = fn(&Term<'_>) -> Result<TermBuf>;
    let cases: &[(Op, &str, Option<&str>)] = &[
        (abs, "-1", Some("1^^integer")),
        (abs, "-5^^byte", Some("5^^integer")),
        (abs, "-1.5", Some("1.5^^decimal")),
        (abs, "-0e0", Some("0.0E0^^double")),
        (abs, "\"1\"", None),
        (round, "2.5", Some("3^^decimal")),
        (round, "-2.5", Some("-2^^decimal")),
        (round, "2.4999", Some("2^^decimal")),
        (round, "-2.5e0", Some("-2.0E0^^double")),
        (round, "-0.2e0", Some("-0.0E0^^double")),
        (round, "2.5^^float", Some("3.0E0^^float")),
        (round, "7", Some("7^^integer")),
        (ceil, "10.5", Some("11^^decimal")),
        (ceil, "-10.5", Some("-10^^decimal")),
        (floor, "10.5", Some("10^^decimal")),
        (floor, "-10.5", Some("-11^^decimal")),
        (floor, "-10.5e0", Some("-1.1E1^^double")),
        (neg, "1", Some("-1^^integer")),
        (neg, "0e0", Some("-0.0E0^^double")),
        (pos, "01^^byte", Some("1^^integer")),
        (neg, "<urn:a>", None),
    ];
    for (op, a, expected) in cases {
        assert_eq!(op(&t(a).as_term()).ok(), expected.map(t), "{a}");
    }
    let zero = numeric::div(&t("1").as_term(), &t("0").as_term());
    assert_eq!(zero, Err(Error::DivisionByZero));
}

/// Terms that are often equal in value or nearly so.
fn term() -> impl Strategy<Value = TermBuf> {
    let near = prop_oneof![
        Just(0_i64),
        Just(1 << 53),
        Just(1 << 24),
        Just(i64::MAX),
        any::<i64>().prop_map(|n| n >> 40)
    ];
    let number = (near, -2_i64..=2, 0_u8..8).prop_map(|(n, d, kind)| {
        let n = n.saturating_add(d);
        match kind {
            0 => TermBuf::xsd(&n.to_string(), Xsd::Integer),
            1 => TermBuf::xsd(&format!("0{n}"), Xsd::Long),
            2 => TermBuf::xsd(&format!("{n}.{}", d.abs()), Xsd::Decimal),
            3 => TermBuf::xsd(&format!("{n}"), Xsd::Double),
            4 => TermBuf::xsd(&format!("{n}.3"), Xsd::Float),
            5 => TermBuf::xsd(&format!("{}.3", d), Xsd::Decimal),
            6 => TermBuf::xsd(&format!("{}", 0.3 + d as f64), Xsd::Double),
            _ => TermBuf::xsd(
                ["NaN", "INF", "-INF", "-0"][d.unsigned_abs() as usize],
                Xsd::Double,
            ),
        }
    });
    let time =
        (1_u8..4, 0_u8..24, 0_usize..4, any::<bool>()).prop_map(|(day, hour, zone, date)| {
            let zone = ["", "Z", "+14:00", "-03:30"][zone];
            if date {
                TermBuf::xsd(&format!("2020-01-0{day}{zone}"), Xsd::Date)
            } else {
                TermBuf::xsd(
                    &format!("2020-01-0{day}T{hour:02}:00:00{zone}"),
                    Xsd::DateTime,
                )
            }
        });
    let duration = (0_u8..4, 0_u8..70)
        .prop_map(|(months, days)| TermBuf::xsd(&format!("P{months}M{days}D"), Xsd::Duration));
    prop_oneof![
        6 => number,
        3 => time,
        2 => duration,
        2 => "[ab]{0,2}".prop_map(|s| TermBuf::string(&s)),
        1 => ("[ab]{0,2}", "(en|de)").prop_map(|(s, l)| TermBuf::language(&s, &l)),
        1 => "(true|false|0|1|x)".prop_map(|s| TermBuf::xsd(&s, Xsd::Boolean)),
        1 => ("[ab]{0,2}", "urn:[tu]").prop_map(|(s, d)| Term::typed(&s, &d).to_buf()),
        1 => "urn:[ab]{1,2}".prop_map(|s| TermBuf::iri(&s)),
        1 => "[bx][1-9]{1,2}".prop_map(|s| Term::blank(&s).to_buf()),
    ]
}

#[test]
fn durations_that_end_together_are_not_comparable() {
    let (a, b) = (
        TermBuf::xsd("P3M7D", Xsd::Duration),
        TermBuf::xsd("P1M68D", Xsd::Duration),
    );
    let (a, b) = (a.as_term(), b.as_term());
    assert_eq!(equal(&a, &b), Ok(false));
    assert!(compare(&a, &b).is_err());
    assert_eq!(compare(&a, &a), Ok(Some(Ordering::Equal)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn the_order_is_total(a in term(), b in term(), c in term()) {
        let (a, b, c) = (a.as_term(), b.as_term(), c.as_term());
        prop_assert_eq!(order(&a, &b), order(&b, &a).reverse());
        prop_assert_eq!(order(&a, &b).is_eq(), a == b);
        if order(&a, &b).is_le() && order(&b, &c).is_le() {
            prop_assert!(order(&a, &c).is_le(), "{} {} {}", a, b, c);
        }
        if order(&a, &b).is_lt() {
            prop_assert!(sort_key(&a) <= sort_key(&b), "{} {}", a, b);
        }
    }

    #[test]
    fn the_order_agrees_with_the_operators(a in term(), b in term()) {
        let (a, b) = (a.as_term(), b.as_term());
        prop_assert_eq!(equal(&a, &b).ok(), equal(&b, &a).ok());
        match compare(&a, &b) {
            Ok(Some(Ordering::Equal)) => prop_assert_eq!(equal(&a, &b), Ok(true)),
            Ok(Some(by_value)) => {
                prop_assert_eq!(equal(&a, &b), Ok(false));
                prop_assert_eq!(order(&a, &b), by_value, "{} {}", a, b);
            }
            Ok(None) => prop_assert_eq!(equal(&a, &b), Ok(false)),
            Err(_) => {}
        }
    }

    #[test]
    fn integers_agree_with_oxsdatatypes(a in any::<i64>(), b in any::<i64>(), shift in 0_u32..63) {
        let (a, b) = (a >> shift, b >> (shift / 2));
        let (x, y) = (Integer::from(a), Integer::from(b));
        let (s, t) = (TermBuf::xsd(&a.to_string(), Xsd::Integer), TermBuf::xsd(&b.to_string(), Xsd::Int));
        let long = i32::try_from(b).is_err();
        let (s, t) = (s.as_term(), t.as_term());
        for (ours, theirs) in [
            (numeric::add(&s, &t), x.checked_add(y)),
            (numeric::sub(&s, &t), x.checked_sub(y)),
            (numeric::mul(&s, &t), x.checked_mul(y)),
        ] {
            if long {
                prop_assert_eq!(ours, Err(Error::Type));
            } else if let Some(theirs) = theirs {
                prop_assert_eq!(ours, Ok(TermBuf::xsd(&theirs.to_string(), Xsd::Integer)));
            }
        }
    }

    #[test]
    fn decimals_agree_with_oxsdatatypes(a in any::<i64>(), b in any::<i64>(), x in 0_u32..10, y in 0_u32..10) {
        let x = Decimal::new(i128::from(a >> 20), x).expect("fits");
        let y = Decimal::new(i128::from(b >> 30), y).expect("fits");
        let term = |d: Decimal| TermBuf::xsd(&d.to_string(), Xsd::Decimal);
        let (s, t) = (term(x), term(y));
        let (s, t) = (s.as_term(), t.as_term());
        prop_assert_eq!(numeric::add(&s, &t).ok(), x.checked_add(y).map(term));
        prop_assert_eq!(numeric::sub(&s, &t).ok(), x.checked_sub(y).map(term));
        prop_assert_eq!(numeric::round(&s).ok(), x.checked_round().map(term));
        prop_assert_eq!(numeric::ceil(&s).ok(), x.checked_ceil().map(term));
        prop_assert_eq!(numeric::floor(&s).ok(), x.checked_floor().map(term));
        if let Some(product) = x.checked_mul(y) {
            prop_assert_eq!(numeric::mul(&s, &t), Ok(term(product)));
        }
        if let Some(quotient) = x.checked_div(y) {
            prop_assert_eq!(numeric::div(&s, &t), Ok(term(quotient)));
        }
        prop_assert_eq!(compare(&s, &t), Ok(x.partial_cmp(&y)));
    }

    #[test]
    fn doubles_agree_with_rust(a in any::<f64>(), b in any::<f64>()) {
        let form = pgquad_term::number::format_double;
        let term = |d: f64| TermBuf::xsd(&form(d), Xsd::Double);
        let (s, t) = (term(a), term(b));
        let (s, t) = (s.as_term(), t.as_term());
        prop_assert_eq!(numeric::add(&s, &t), Ok(term(a + b)));
        prop_assert_eq!(numeric::mul(&s, &t), Ok(term(a * b)));
        prop_assert_eq!(numeric::div(&s, &t), Ok(term(a / b)));
        prop_assert_eq!(compare(&s, &t), Ok(a.partial_cmp(&b)));
    }
}
