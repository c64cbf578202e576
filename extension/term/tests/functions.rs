//! The functions of sections 17.4 and 17.5 and the aggregates.

use pgquad_term::aggregate::{Extreme, GroupConcat, Sum};
use pgquad_term::func::regex::{regex, replace, PatternCache};
use pgquad_term::func::{cast, digest, strings, terms, time};
use pgquad_term::number::Number;
use pgquad_term::{parse, Error, Result, Term, TermBuf, Xsd};
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

type Unary = fn(&Term<'_>) -> Result<TermBuf>;
type Binary<T> = fn(&Term<'_>, &Term<'_>) -> Result<T>;

fn check_unary(function: Unary, cases: &[(&str, Option<&str>)]) {
    for (argument, expected) in cases {
        let result = function(&t(argument).as_term());
        assert_eq!(result.ok(), expected.map(t), "{argument}");
    }
}

fn check_binary(function: Binary<TermBuf>, cases: &[(&str, &str, Option<&str>)]) {
    for (a, b, expected) in cases {
        let result = function(&t(a).as_term(), &t(b).as_term());
        assert_eq!(result.ok(), expected.map(t), "{a} {b}");
    }
}

fn check_test(function: Binary<bool>, cases: &[(&str, &str, Option<bool>)]) {
    for (a, b, expected) in cases {
        let result = function(&t(a).as_term(), &t(b).as_term());
        assert_eq!(result.ok(), *expected, "{a} {b}");
    }
}

#[test]
fn accessors() {
    check_unary(
        terms::str,
        &[
            ("<urn:a>", Some("\"urn:a\"")),
            ("\"a\"@en", Some("\"a\"")),
            ("01^^integer", Some("\"01\"")),
            ("_:a", None),
        ],
    );
    check_unary(
        terms::lang,
        &[
            ("\"a\"@EN-us", Some("\"en-us\"")),
            ("1", Some("\"\"")),
            ("<urn:a>", None),
        ],
    );
    check_unary(
        terms::datatype,
        &[
            ("\"a\"", Some("<http://www.w3.org/2001/XMLSchema#string>")),
            (
                "\"a\"@en",
                Some("<http://www.w3.org/1999/02/22-rdf-syntax-ns#langString>"),
            ),
            ("1", Some("<http://www.w3.org/2001/XMLSchema#integer>")),
            ("\"a\"^^<urn:t>", Some("<urn:t>")),
            ("<urn:a>", None),
            ("_:a", None),
        ],
    );
    for (text, expected) in [
        ("1", true),
        ("1.5e3", true),
        ("255^^unsignedByte", true),
        ("256^^unsignedByte", false),
        ("x^^integer", false),
        ("\"1\"", false),
        ("<urn:a>", false),
        ("123456789012345678901234567890123456789012", true),
        ("1234567890123456789012345678901234567890.5", true),
        (
            "-123456789012345678901234567890123456789012^^nonNegativeInteger",
            false,
        ),
        ("123456789012345678901234567890123456789012^^long", false),
    ] {
        assert_eq!(terms::is_numeric(&t(text).as_term()), expected, "{text}");
    }
}

#[test]
fn constructors() {
    for (text, base, expected) in [
        ("<urn:a>", "", Some("<urn:a>")),
        ("\"http://a/b\"", "", Some("<http://a/b>")),
        ("\"b\"", "http://a/x/y", Some("<http://a/x/b>")),
        ("\"../b#c\"", "http://a/x/y/z", Some("<http://a/x/b#c>")),
        ("\"\"", "http://a/x", Some("<http://a/x>")),
        ("\"b\"", "", None),
        ("\"b c\"", "http://a/", None),
        ("\"a\"@en", "http://a/", None),
        ("_:a", "http://a/", None),
    ] {
        let result = terms::iri(&t(text).as_term(), base);
        assert_eq!(result.ok(), expected.map(t), "{text}");
    }
    let integer = "<http://www.w3.org/2001/XMLSchema#integer>";
    check_binary(
        terms::strdt,
        &[
            ("\"1\"", integer, Some("1")),
            (
                "\"1\"",
                "<http://www.w3.org/2001/XMLSchema#string>",
                Some("\"1\""),
            ),
            ("\"1\"@en", integer, None),
            ("1", integer, None),
            ("\"1\"", "\"x\"", None),
            (
                "\"1\"",
                "<http://www.w3.org/1999/02/22-rdf-syntax-ns#langString>",
                None,
            ),
        ],
    );
    check_binary(
        terms::strlang,
        &[
            ("\"a\"", "\"EN\"", Some("\"a\"@en")),
            ("\"a\"", "\"\"", None),
            ("\"a\"", "\"e n\"", None),
            ("\"a\"@en", "\"fr\"", None),
            ("1", "\"fr\"", None),
        ],
    );
    assert_eq!(
        terms::uuid([0xff; 16]),
        t("<urn:uuid:ffffffff-ffff-4fff-bfff-ffffffffffff>")
    );
    assert_eq!(
        terms::struuid([0; 16]),
        t("\"00000000-0000-4000-8000-000000000000\"")
    );
    let label = |text: &str, solution: u8| terms::bnode_for(&t(text).as_term(), &[solution; 16]);
    assert_eq!(label("\"a\"", 1), label("\"a\"", 1));
    assert_ne!(label("\"a\"", 1), label("\"a\"", 2));
    assert_ne!(label("\"a\"", 1), label("\"b\"", 1));
    assert_eq!(label("\"a\"@en", 1), Err(Error::Type));
}

#[test]
fn string_functions() {
    check_unary(
        strings::strlen,
        &[
            ("\"chat\"", Some("4")),
            ("\"食べ物😀\"@ja", Some("4")),
            ("\"\"", Some("0")),
            ("4", None),
            ("<urn:a>", None),
        ],
    );
    check_unary(
        strings::ucase,
        &[("\"straße\"@de", Some("\"STRASSE\"@de")), ("1", None)],
    );
    check_unary(
        strings::lcase,
        &[("\"ÀB\"", Some("\"àb\"")), ("true", None)],
    );
    check_unary(
        strings::encode_for_uri,
        &[
            (
                "\"Los Angeles~_-.é/\"@en",
                Some("\"Los%20Angeles~_-.%C3%A9%2F\""),
            ),
            ("1", None),
        ],
    );
    let substr = |text: &str, start: &str, length: Option<&str>| {
        let length = length.map(t);
        let length = length.as_ref().map(TermBuf::as_term);
        strings::substr(&t(text).as_term(), &t(start).as_term(), length.as_ref()).ok()
    };
    for (text, start, length, expected) in [
        ("\"foobar\"", "4", None, Some("\"bar\"")),
        ("\"foobar\"@en", "4", Some("1"), Some("\"b\"@en")),
        ("\"食べ物\"", "2", Some("1"), Some("\"べ\"")),
        ("\"foobar\"", "0", Some("3"), Some("\"fo\"")),
        ("\"foobar\"", "-5", Some("8"), Some("\"fo\"")),
        ("\"foobar\"", "-5", None, Some("\"foobar\"")),
        ("\"foobar\"", "9", None, Some("\"\"")),
        ("\"foobar\"", "2", Some("-1"), Some("\"\"")),
        (
            "\"foobar\"",
            "2",
            Some("99999999999999999999"),
            Some("\"oobar\""),
        ),
        ("\"foobar\"", "2.0", None, None),
        ("\"foobar\"", "\"2\"", None, None),
        ("1234", "2", None, None),
    ] {
        assert_eq!(
            substr(text, start, length),
            expected.map(t),
            "{text} {start}"
        );
    }
    check_test(
        strings::strstarts,
        &[
            ("\"foobar\"", "\"foo\"", Some(true)),
            ("\"foobar\"@en", "\"foo\"", Some(true)),
            ("\"foobar\"@en", "\"foo\"@en", Some(true)),
            ("\"foobar\"@en", "\"foo\"@fr", None),
            ("\"foobar\"", "\"foo\"@en", None),
            ("\"foobar\"", "1", None),
        ],
    );
    check_test(
        strings::strends,
        &[
            ("\"foobar\"", "\"bar\"", Some(true)),
            ("\"foobar\"", "\"foo\"", Some(false)),
        ],
    );
    check_test(
        strings::contains,
        &[
            ("\"foobar\"", "\"ob\"", Some(true)),
            ("\"foobar\"", "\"\"", Some(true)),
        ],
    );
    check_binary(
        strings::strbefore,
        &[
            ("\"abc\"", "\"b\"", Some("\"a\"")),
            ("\"abc\"@en", "\"bc\"", Some("\"a\"@en")),
            ("\"abc\"@en", "\"b\"@cy", None),
            ("\"abc\"", "\"xyz\"", Some("\"\"")),
            ("\"abc\"@en", "\"z\"@en", Some("\"\"")),
            ("\"abc\"@en", "\"z\"", Some("\"\"")),
            ("\"abc\"@en", "\"\"@en", Some("\"\"@en")),
            ("\"abc\"@en", "\"\"", Some("\"\"@en")),
        ],
    );
    check_binary(
        strings::strafter,
        &[
            ("\"abc\"", "\"b\"", Some("\"c\"")),
            ("\"abc\"@en", "\"ab\"", Some("\"c\"@en")),
            ("\"abc\"", "\"xyz\"", Some("\"\"")),
            ("\"abc\"@en", "\"z\"@en", Some("\"\"")),
            ("\"abc\"@en", "\"\"", Some("\"abc\"@en")),
            ("\"abc\"", "\"b\"@en", None),
        ],
    );
    let concat = |texts: &[&str]| {
        let terms: Vec<_> = texts.iter().map(|text| t(text)).collect();
        strings::concat(terms.iter().map(TermBuf::as_term)).ok()
    };
    assert_eq!(concat(&[]), Some(t("\"\"")));
    assert_eq!(concat(&["\"a\"@en", "\"b\"@en"]), Some(t("\"ab\"@en")));
    assert_eq!(concat(&["\"a\"@en", "\"b\"@fr"]), Some(t("\"ab\"")));
    assert_eq!(
        concat(&["\"a\"@en", "\"b\"", "\"c\"@en"]),
        Some(t("\"abc\""))
    );
    assert_eq!(concat(&["\"a\"", "1"]), None);
    check_test(
        strings::lang_matches,
        &[
            ("\"en-US\"", "\"EN\"", Some(true)),
            ("\"en-us\"", "\"en-u\"", Some(false)),
            ("\"en\"", "\"en-us\"", Some(false)),
            ("\"en\"", "\"*\"", Some(true)),
            ("\"\"", "\"*\"", Some(false)),
            ("\"-x\"", "\"\"", Some(false)),
            ("\"en\"@en", "\"en\"", None),
            ("\"en\"", "<urn:a>", None),
        ],
    );
}

#[test]
fn digests() {
    check_unary(
        digest::md5,
        &[
            ("\"abc\"", Some("\"900150983cd24fb0d6963f7d28e17f72\"")),
            ("\"食べ物\"", Some("\"e7ada485d13b1decf628c9211bc3a97b\"")),
            ("\"abc\"@en", None),
            ("1", None),
        ],
    );
    check_unary(
        digest::sha1,
        &[(
            "\"abc\"",
            Some("\"a9993e364706816aba3e25717850c26c9cd0d89d\""),
        )],
    );
    check_unary(
        digest::sha256,
        &[(
            "\"abc\"",
            Some("\"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad\""),
        )],
    );
    let length = |text: TermBuf| strings::text_of(&text.as_term()).map(str::len);
    assert_eq!(
        digest::sha384(&t("\"\"").as_term()).and_then(length),
        Ok(96)
    );
    assert_eq!(
        digest::sha512(&t("\"\"").as_term()).and_then(length),
        Ok(128)
    );
}

#[test]
fn dates_and_times() {
    let moment = "2011-01-10T14:45:13.815-05:00^^dateTime";
    let functions: &[(Unary, &str)] = &[
        (time::year, "2011"),
        (time::month, "1"),
        (time::day, "10"),
        (time::hours, "14"),
        (time::minutes, "45"),
        (time::seconds, "13.815"),
        (time::timezone, "-PT5H^^dayTimeDuration"),
        (time::tz, "\"-05:00\""),
    ];
    for (function, expected) in functions {
        check_unary(
            *function,
            &[
                (moment, Some(expected)),
                ("x^^dateTime", None),
                ("\"a\"", None),
            ],
        );
    }
    check_unary(
        time::tz,
        &[
            ("2011-01-10T14:45:13Z^^dateTime", Some("\"Z\"")),
            ("2011-01-10T14:45:13+00:00^^dateTime", Some("\"+00:00\"")),
            ("2011-01-10T14:45:13^^dateTime", Some("\"\"")),
        ],
    );
    check_unary(
        time::timezone,
        &[
            (
                "2011-01-10T14:45:13Z^^dateTime",
                Some("PT0S^^dayTimeDuration"),
            ),
            ("2011-01-10T14:45:13^^dateTime", None),
        ],
    );
    check_unary(
        time::seconds,
        &[("2011-01-10T14:45:13Z^^dateTime", Some("13^^decimal"))],
    );
    check_unary(
        time::year,
        &[("-0044-03-15^^date", Some("-44")), ("10:00:00^^time", None)],
    );
    check_unary(
        time::hours,
        &[("10:00:00^^time", Some("10")), ("2011-01-10^^date", None)],
    );
    assert_eq!(
        time::from_unix_micros(1_600_000_000_500_000),
        Ok(t("2020-09-13T12:26:40.5Z^^dateTime"))
    );
    assert_eq!(time::from_unix_days(-719_528), Ok(t("0000-01-01^^date")));
    assert_eq!(time::from_unix_days(18_321), Ok(t("2020-02-29^^date")));
    let micros = |text: &str| time::unix_micros(&t(text).as_term()).ok();
    let moment = "2020-09-13T14:26:40.5000005+02:00^^dateTime";
    assert_eq!(micros(moment), Some((1_600_000_000_500_001, true)));
    assert_eq!(
        micros("1969-12-31T23:59:59.5^^dateTime"),
        Some((-500_000, false))
    );
    assert_eq!(micros("1969-12-31^^date"), None);
    let parts = |text: &str| time::date_parts(&t(text).as_term()).ok();
    assert_eq!(parts("-0044-03-15+05:00^^date"), Some((-44, 3, 15)));
    assert_eq!(
        parts("2020-01-01T00:00:00+14:00^^dateTime"),
        Some((2020, 1, 1))
    );
    assert_eq!(parts("12:00:00^^time"), None);
}

#[test]
fn regular_expressions() {
    let mut cache = PatternCache::default();
    let mut matches = |text: &str, pattern: &str, flags: &str| {
        let (text, pattern) = (TermBuf::string(text), TermBuf::string(pattern));
        let flags = TermBuf::string(flags);
        regex(
            &mut cache,
            &text.as_term(),
            &pattern.as_term(),
            Some(&flags.as_term()),
        )
    };
    let yes = [
        ("alice", "^ali", ""),
        ("ALICE", "^ali", "i"),
        // The flag is about characters, not about properties.
        ("A", "^\\p{Lu}$", "i"),
        ("a", "^\\P{Lu}$", "i"),
        ("a\nb", "^b$", "m"),
        ("a\nb", "a.b", "s"),
        ("ab", "a b", "x"),
        ("a b", "a[ ]b", "x"),
        ("aab", "a{2, 3} b", "x"),
        ("a.b*c", ".b*", "q"),
        ("A.B*C", ".b*", "iq"),
        ("aaa", "^a{2,}$", ""),
        ("aXb", "a\\p{Lu}b", ""),
        ("x_1", "^\\i\\c+$", ""),
        ("bcd", "^[a-z-[aeiou]]+$", ""),
        ("3-", "^[^a-z-[12]]+$", ""),
        ("a-b", "^[a\\-b]+$", ""),
        ("a-b", "^[ab-]+$", ""),
        ("[&&]", "^[\\[\\]&&]+$", ""),
        ("a~~b", "^[a~~b]+$", ""),
        ("٣", "^\\d$", ""),
        ("naïve", "^\\w+$", ""),
        ("foo bar", "\\bbar", ""),
        ("ab", "(?:a|x)b", ""),
        ("a#b", "a#b", "x"),
        ("", "^$", ""),
        ("a/b", "a/b", ""),
    ];
    for (text, pattern, flags) in yes {
        assert_eq!(matches(text, pattern, flags), Ok(true), "{pattern} {flags}");
    }
    let no = [
        ("alice", "ALI", ""),
        ("a\nb", "a.b", ""),
        ("a\rb", "a.b", ""),
        ("a\nb", "^b", ""),
        ("a\n", "a$", ""),
        ("a\u{a0}b", "a\\sb", ""),
        ("a_b", "^\\w+$", ""),
        ("aei", "[a-z-[aeiou]]", ""),
        ("b", "[^b]", ""),
    ];
    for (text, pattern, flags) in no {
        assert_eq!(
            matches(text, pattern, flags),
            Ok(false),
            "{pattern} {flags}"
        );
    }
    let malformed = [
        ("(", ""),
        (")", ""),
        ("[", ""),
        ("[]", ""),
        ("[z-a]", ""),
        ("a**", ""),
        ("+", ""),
        ("a{,2}", ""),
        ("a{2", ""),
        ("a{3,2}", ""),
        ("\\", ""),
        ("\\A", ""),
        ("\\x41", ""),
        ("(?i)a", ""),
        ("(?P<n>a)", ""),
        ("[[:alpha:]]", ""),
        ("\\p{Greek}", ""),
        ("a", "z"),
    ];
    for (pattern, flags) in malformed {
        let result = matches("", pattern, flags);
        assert!(
            matches!(result, Err(Error::Argument(_))),
            "{pattern} {result:?}"
        );
    }
    for pattern in ["(a)\\1", "\\p{IsBasicLatin}"] {
        let result = matches("", pattern, "");
        assert!(
            matches!(result, Err(Error::NotSupported(_))),
            "{pattern} {result:?}"
        );
    }
    let a = TermBuf::string("a");
    let one = t("1");
    let result = regex(&mut cache, &one.as_term(), &a.as_term(), None);
    assert_eq!(result, Err(Error::Type));
}

#[test]
fn replacing() {
    let mut cache = PatternCache::default();
    let cases = [
        ("\"abcd\"", "b", "Z", "", Some("\"aZcd\"")),
        ("\"abab\"@en", "B", "Z", "i", Some("\"aZaZ\"@en")),
        (
            "\"abab\"",
            "(ab)|(a)",
            "[1=$1][2=$2]",
            "",
            Some("\"[1=ab][2=][1=ab][2=]\""),
        ),
        (
            "\"abcd\"",
            "(ab)|(a)",
            "[1=$1][2=$2]",
            "",
            Some("\"[1=ab][2=]cd\""),
        ),
        ("\"ab\"", "(a)", "$12", "", Some("\"a2b\"")),
        ("\"ab\"", "a", "$0$0$3", "", Some("\"aab\"")),
        ("\"ab\"", "a", "\\$1\\\\", "", Some("\"$1\\\\b\"")),
        ("\"a.b\"", ".", "$1", "q", Some("\"a$1b\"")),
        ("\"abracadabra\"", "a.*?a", "*", "", Some("\"*c*bra\"")),
        ("\"ab\"", "a", "$", "", None),
        ("\"ab\"", "a", "\\n", "", None),
        ("\"ab\"", "x*", "y", "", None),
        ("<urn:a>", "a", "b", "", None),
    ];
    for (text, pattern, replacement, flags, expected) in cases {
        let (pattern, replacement) = (TermBuf::string(pattern), TermBuf::string(replacement));
        let flags = TermBuf::string(flags);
        let result = replace(
            &mut cache,
            &t(text).as_term(),
            &pattern.as_term(),
            &replacement.as_term(),
            Some(&flags.as_term()),
        );
        assert_eq!(result.ok(), expected.map(t), "{text}");
    }
}

#[test]
fn casts() {
    check_unary(
        cast::to_string,
        &[
            ("<urn:a>", Some("\"urn:a\"")),
            ("\" a \"", Some("\" a \"")),
            ("1.0", Some("\"1\"")),
            ("01", Some("\"1\"")),
            ("0E1", Some("\"0\"")),
            ("-7.875^^float", Some("\"-7.875\"")),
            ("0.000001e0", Some("\"0.000001\"")),
            ("123456e0", Some("\"123456\"")),
            ("1234567e0", Some("\"1.234567E6\"")),
            ("0^^boolean", Some("\"false\"")),
            (
                "2002-10-10T17:00:00.0Z^^dateTime",
                Some("\"2002-10-10T17:00:00Z\""),
            ),
            ("P12M^^yearMonthDuration", Some("\"P1Y\"")),
            ("x^^integer", None),
            ("\"a\"@en", None),
            ("\"a\"^^<urn:t>", None),
            ("_:a", None),
        ],
    );
    let cases = [
        ("\" 13 \"", Xsd::Integer, Some("13")),
        ("\"13.0\"", Xsd::Integer, None),
        ("\"+13\"", Xsd::Integer, Some("13")),
        ("-7.875", Xsd::Integer, Some("-7")),
        ("-7.875e0", Xsd::Integer, Some("-7")),
        ("INF^^double", Xsd::Integer, None),
        ("1e40", Xsd::Integer, None),
        ("true", Xsd::Integer, Some("1")),
        ("<urn:1>", Xsd::Integer, None),
        ("\"1\"@en", Xsd::Integer, None),
        ("300", Xsd::Byte, None),
        ("\"300\"", Xsd::Short, Some("300^^short")),
        ("\"+33.3300\"", Xsd::Decimal, Some("33.33")),
        ("\"1e0\"", Xsd::Decimal, None),
        ("1.25e0", Xsd::Decimal, Some("1.25")),
        ("1e30", Xsd::Decimal, None),
        ("1", Xsd::Decimal, Some("1^^decimal")),
        ("\"-10.2E3\"", Xsd::Double, Some("-1.02E4^^double")),
        ("0.1", Xsd::Float, Some("1.0E-1^^float")),
        (
            "0.1^^float",
            Xsd::Double,
            Some("1.0000000149011612E-1^^double"),
        ),
        ("\"INF\"", Xsd::Float, Some("INF^^float")),
        ("\"infinity\"", Xsd::Float, None),
        ("\"1\"", Xsd::Boolean, Some("true")),
        ("\"yes\"", Xsd::Boolean, None),
        ("NaN^^double", Xsd::Boolean, Some("false")),
        ("2.5", Xsd::Boolean, Some("true")),
        ("x^^boolean", Xsd::Boolean, None),
        ("2020-01-01^^date", Xsd::Boolean, None),
        (
            "\"2002-10-10T17:00:00Z\"",
            Xsd::DateTime,
            Some("2002-10-10T17:00:00Z^^dateTime"),
        ),
        ("\"2002-10-10\"", Xsd::DateTime, None),
        (
            "2002-10-10^^date",
            Xsd::DateTime,
            Some("2002-10-10T00:00:00^^dateTime"),
        ),
        (
            "2002-10-10T17:00:00Z^^dateTime",
            Xsd::Date,
            Some("2002-10-10Z^^date"),
        ),
        (
            "2002-10-10T17:00:00Z^^dateTime",
            Xsd::Time,
            Some("17:00:00Z^^time"),
        ),
        (
            "2002-10-10T17:00:00Z^^dateTime",
            Xsd::GYear,
            Some("2002Z^^gYear"),
        ),
        ("2002-10-10T17:00:00^^dateTime", Xsd::DateTimeStamp, None),
        ("17:00:00^^time", Xsd::Date, None),
        (
            "P1Y2M3DT4H^^duration",
            Xsd::YearMonthDuration,
            Some("P1Y2M^^yearMonthDuration"),
        ),
        (
            "P1Y2M3DT4H^^duration",
            Xsd::DayTimeDuration,
            Some("P3DT4H^^dayTimeDuration"),
        ),
        ("\"P3D\"", Xsd::Duration, Some("P3D^^duration")),
        ("1", Xsd::Date, None),
    ];
    for (text, target, expected) in cases {
        let result = cast::to_xsd(&t(text).as_term(), target);
        assert_eq!(result.ok(), expected.map(t), "{text} {target:?}");
    }
}

#[test]
fn sums() {
    let sum = |texts: &[&str]| {
        let mut sum = Sum::default();
        for text in texts {
            sum.step(Some(&t(text).as_term()));
        }
        (
            sum.sum().map(Number::to_term).ok(),
            sum.average().map(Number::to_term).ok(),
        )
    };
    assert_eq!(sum(&[]), (Some(t("0")), Some(t("0"))));
    assert_eq!(sum(&["1", "2", "3"]), (Some(t("6")), Some(t("2^^decimal"))));
    assert_eq!(
        sum(&["1.0", "2.2", "3.5"]),
        (Some(t("6.7")), Some(t("2.233333333333333333")))
    );
    assert_eq!(
        sum(&["2E-1", "0.2"]),
        (Some(t("4.0E-1^^double")), Some(t("2.0E-1^^double")))
    );
    assert_eq!(sum(&["1", "\"2\"", "3"]), (None, None));
    let mut unbound = Sum::default();
    unbound.step(None);
    assert_eq!(
        (
            unbound.sum().map(Number::to_term),
            unbound.average().map(Number::to_term)
        ),
        (Err(Error::Type), Err(Error::Type))
    );
}

#[test]
fn extremes_and_concatenation() {
    let extreme = |texts: &[&str], wanted| {
        let mut extreme = Extreme::default();
        for text in texts {
            let term = Some(*text).filter(|text| *text != "unbound").map(t);
            extreme.step(term.as_ref().map(TermBuf::as_term).as_ref(), wanted);
        }
        extreme.result().ok().cloned()
    };
    assert_eq!(
        extreme(&["1", "_:b2", "3"], Ordering::Less),
        Some(t("_:b2"))
    );
    assert_eq!(
        extreme(&["1", "2.5", "2"], Ordering::Greater),
        Some(t("2.5"))
    );
    assert_eq!(
        extreme(&["1", "\"a\"", "<urn:a>"], Ordering::Greater),
        Some(t("\"a\""))
    );
    assert_eq!(extreme(&[], Ordering::Less), None);
    assert_eq!(extreme(&["1", "unbound", "2"], Ordering::Less), None);

    let concat = |texts: &[&str]| {
        let mut concat = GroupConcat::default();
        for text in texts {
            concat.step(Some(&t(text).as_term()), ", ");
        }
        concat.result().ok()
    };
    assert_eq!(concat(&[]), Some(t("\"\"")));
    assert_eq!(
        concat(&["\"\"", "\"a\"@en", "1", "<urn:a>"]),
        Some(t("\", a, 1, urn:a\""))
    );
    assert_eq!(concat(&["\"a\"", "_:b", "\"c\""]), None);
}

/// What ids tell of dates and times is what their lexical forms say.
#[test]
fn parts_of_inlined_moments() {
    use pgquad_term::{inline_id, inline_parts};
    use time::Part::{Day, Hours, Minutes, Month, Year};
    let moments = [
        "2020-02-29T23:59:59.999Z^^dateTime",
        "0001-01-01T00:00:00^^dateTime",
        "9999-12-31T01:30:00-14:00^^dateTime",
        "2000-03-01T00:05:00+13:45^^dateTime",
        "1900-02-28^^date",
        "2024-12-31+14:00^^date",
    ];
    for text in moments {
        let term = t(text);
        let id = inline_id(&term.as_term()).expect(text);
        for part in [Year, Month, Day, Hours, Minutes] {
            let told = time::inline_part(id, part).expect(text);
            assert_eq!(
                told.ok(),
                time::part(&term.as_term(), part).ok(),
                "{text} {part:?}"
            );
        }
    }
    for text in ["10:00:00^^time", "1", "\"2020\"", "<urn:a>"] {
        assert!(inline_id(&t(text).as_term())
            .and_then(inline_parts)
            .is_none());
    }
}
