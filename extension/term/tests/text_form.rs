//! The N-Triples form and the compact encoding.

use pgquad_term::{
    encoded, parse, parse_prefix, term_hash, Blank, LiteralKind, Term, TermBuf, Xsd,
};
use proptest::prelude::*;

#[test]
fn reads_every_kind() {
    let cases = [
        ("<http://example.org/a>", Term::Iri("http://example.org/a")),
        (" <urn:x:\\u00E9> ", Term::Iri("urn:x:é")),
        ("_:b17", Term::Blank(Blank::Number(17))),
        ("_:b017", Term::Blank(Blank::Label("b017"))),
        ("_:x-1.y", Term::Blank(Blank::Label("x-1.y"))),
        ("\"\"", Term::string("")),
        (
            "\"a\\tb\\u00e9\\U0001F600\\\"\\\\\"",
            Term::string("a\tbé😀\"\\"),
        ),
        ("\"chat\"@FR-be", Term::language("chat", "fr-be")),
        (
            "\"1\"^^<http://www.w3.org/2001/XMLSchema#integer>",
            Term::xsd("1", Xsd::Integer),
        ),
        (
            "\"x\"^^<http://www.w3.org/2001/XMLSchema#string>",
            Term::string("x"),
        ),
        ("\"1\"^^<urn:t>", Term::typed("1", "urn:t")),
        ("true", Term::xsd("true", Xsd::Boolean)),
        ("-01", Term::xsd("-01", Xsd::Integer)),
        ("1.5", Term::xsd("1.5", Xsd::Decimal)),
        ("+.5", Term::xsd("+.5", Xsd::Decimal)),
        ("1e0", Term::xsd("1e0", Xsd::Double)),
        ("1.E-9", Term::xsd("1.E-9", Xsd::Double)),
    ];
    for (text, term) in cases {
        assert_eq!(parse(text).expect(text).as_term(), term, "{text}");
    }
}

#[test]
fn refuses_with_position() {
    let cases = [
        ("", 1, "a term is missing"),
        ("abc", 1, "this is no RDF term"),
        ("1.", 1, "this is no RDF term"),
        ("<http://example.org", 1, "not closed"),
        ("<a>", 1, "invalid IRI"),
        ("<http://a b>", 1, "invalid IRI"),
        ("\"é\\q\"", 3, "invalid escape"),
        ("\"\\uD800\"", 2, "invalid escape"),
        ("\"\\u12\"", 2, "invalid escape"),
        ("\"a", 1, "not closed"),
        ("\"a\\", 1, "not closed"),
        ("\"a\"@", 4, "invalid language tag"),
        ("\"a\"@1", 4, "invalid language tag"),
        ("\"a\"^^xsd:int", 6, "datatype must be an IRI"),
        ("\"a\"^^<int>", 6, "invalid IRI"),
        ("_:", 1, "invalid label"),
        ("_x", 1, "starts with '_:'"),
        ("\"é\" \"b\"", 4, "unexpected text"),
    ];
    for (text, position, message) in cases {
        let error = parse(text).expect_err(text);
        assert_eq!(error.position, position, "{text}: {error}");
        assert!(error.message.contains(message), "{text}: {error}");
    }
}

#[test]
fn reads_a_prefix() {
    let (term, length) = parse_prefix("_:x. rest").expect("a term");
    assert_eq!((term.as_term(), length), (Term::blank("x"), 3));
    let (term, length) = parse_prefix("\"a\"@en<urn:x>").expect("a term");
    assert_eq!((term.as_term(), length), (Term::language("a", "en"), 6));
}

#[test]
fn the_hash_never_changes() {
    let hash = |term: Term<'_>| format!("{:032x}", term_hash(&term));
    assert_eq!(hash(Term::Iri("http://example.org/")), HASH_IRI);
    assert_eq!(hash(Term::language("chat", "fr")), HASH_LANGUAGE);
    assert_eq!(hash(Term::xsd("01", Xsd::Integer)), HASH_INTEGER);
}

const HASH_IRI: &str = "d76783e1d720ae6faa42522ee3b30036";
const HASH_LANGUAGE: &str = "17956d43c3cbc98cacaee35234a195cb";
const HASH_INTEGER: &str = "3385c7a97d59915e7e75787384b76d1a";

fn term() -> impl Strategy<Value = TermBuf> {
    let text = prop_oneof![any::<String>(), "[\\x00-\\x7f]{0,9}", "[a-c\"\\\\\n]{0,5}"];
    prop_oneof![
        "[a-zé/]{0,8}".prop_map(|s| TermBuf::iri(&format!("http://example.org/{s}"))),
        (1_u64..1 << 59).prop_map(TermBuf::blank_number),
        "[a-z_][a-z0-9-]{0,5}".prop_map(|s| Term::blank(&s).to_buf()),
        text.clone().prop_map(|s| TermBuf::string(&s)),
        (text.clone(), "[a-zA-Z]{2,3}(-[a-zA-Z]{2})?").prop_map(|(s, t)| TermBuf::language(&s, &t)),
        (text.clone(), 1_u8..=29)
            .prop_map(|(s, c)| TermBuf::xsd(&s, Xsd::from_code(c).expect("a code"))),
        (text, "urn:[a-z]{1,4}").prop_map(|(s, t)| Term::typed(&s, &t).to_buf()),
    ]
}

proptest! {
    #[test]
    fn round_trip(term in term()) {
        let text = term.to_string();
        prop_assert!(!text.contains(|c: char| c.is_ascii_control()));
        prop_assert_eq!(parse(&text).expect("parses"), term);
    }

    #[test]
    fn encodings_are_distinct(a in term(), b in term()) {
        prop_assert_eq!(encoded::decode(a.as_encoded()), Some(a.as_term()));
        prop_assert_eq!(encoded::encoded_len(&a.as_term()), a.as_encoded().len());
        prop_assert_eq!(a.as_encoded() == b.as_encoded(), a.as_term() == b.as_term());
        prop_assert_eq!(a.to_string() == b.to_string(), a == b);
    }

    #[test]
    fn parsing_never_panics(text in any::<String>(), quoted in "[\"<_@^:\\\\ué>a1.-]{0,12}") {
        let _ = parse(&text);
        let _ = parse(&quoted);
    }

    #[test]
    fn decoding_never_panics(text in any::<String>(), short in "[ILTNBS\\x00-\\x1f]{0,12}") {
        for text in [text, short] {
            if let Some(term) = encoded::decode(&text) {
                let again = term.to_buf();
                prop_assert_eq!(again.as_encoded(), &text);
            }
        }
    }
}

#[test]
fn datatypes() {
    for xsd in Xsd::ALL {
        assert_eq!(
            LiteralKind::from_datatype(xsd.iri()),
            LiteralKind::Xsd(*xsd)
        );
        assert_eq!(Xsd::from_code(xsd.code()), Some(*xsd));
    }
}
