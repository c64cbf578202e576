//! A template filled in is the translation of the text itself, whatever the constants are.

use proptest::prelude::*;

use super::{Shape, Template};
use crate::{parse_query, translate_query, Error, Translated};

fn translate(text: &str) -> Result<Translated, Error> {
    translate_query(&parse_query(text, None)?, "quads")
}

fn template(text: &str) -> Option<Template> {
    let shape = Shape::of(text)?;
    Template::of_shape(&shape, &translate(text).ok()?, translate)
}

/// Queries with places for constants, `@0` and on.
const QUERIES: [&str; 20] = [
    "SELECT * { ?x :p @0 . ?x ?q @1 }",
    "SELECT * { ?x :p ?y FILTER(?y > @0 && ?y < @1) FILTER(?y != @0) }",
    "SELECT * { ?x :p ?y FILTER(?y = @0 || sameTerm(?y, @1) || !(?x = @2)) }",
    "SELECT ?y { ?x ?p @0 BIND(IF(?x = @1, @2, @3) AS ?y) }",
    "SELECT * { VALUES ?x { @0 @1 @2 } ?x :p ?y }",
    "SELECT * { VALUES (?x ?y) { (@0 @1) (UNDEF @2) } OPTIONAL { ?x :p ?y } }",
    "SELECT * { ?x :p (@0 @1) }",
    "SELECT * { ?x :p* @0 . ?x (:q|:r)/:s+ @1 }",
    "SELECT (COUNT(DISTINCT ?y) AS ?n) (SUM(?y + @0) AS ?m) { ?x :p ?y } GROUP BY ?x HAVING(SUM(?y + @1) > @2)",
    "SELECT ?x { ?x :p ?y FILTER(?y IN (@0, @1, @2)) } ORDER BY (?y = @3) LIMIT 10 OFFSET 2",
    "ASK { { ?x :p @0 } UNION { ?x :q @1 } MINUS { ?x :r @0 } }",
    "SELECT * { ?x :p ?y FILTER NOT EXISTS { ?y :q @0 FILTER(?x = @1) } }",
    "CONSTRUCT { ?x :p @0 . ?x :q @1 } { ?x :r @2 }",
    "SELECT * { ?x :p ?y FILTER(regex(str(?y), @0, \"i\") && CONCAT(STR(@1), @2) = ?y) }",
    "SELECT * { ?x :p ?y BIND(COALESCE(?z, @0) AS ?a) BIND(@1 AS ?b) FILTER(?a = ?b) }",
    "SELECT * { ?x :p ?y FILTER(@0) FILTER(!@1 || ?y) }",
    "SELECT * { ?x :p @0 , -5 , true FILTER(?x = -5 || xsd:integer(@1) > 0) }",
    "SELECT * { ?x :p @0 { SELECT (MAX(?z) AS ?m) { ?x :q ?z , @1 } } }",
    "SELECT (GROUP_CONCAT(?y ; separator=\", \") AS ?all) { ?x :p ?y FILTER(?y > @0) }",
    "SELECT * { ?x a @0 . @1 a ?y . ?y rdf:type @0 }",
];

const QUERIES_OF_IRIS: [&str; 6] = [
    "SELECT * FROM @0 FROM @1 FROM NAMED @2 { ?x :p ?y GRAPH @3 { ?y :q ?z } }",
    "SELECT * { GRAPH @0 { ?x :p @1 } GRAPH ?g { ?x :q @0 } }",
    "DESCRIBE @0 @1 ?x { ?x :p @2 }",
    "SELECT * { @0 :p ?x . @1 :q/:r ?x . ?x :s* @0 }",
    "SELECT * { ?x :p ?y FILTER(?x = @0 || isIRI(@1)) BIND(@2 AS ?z) FILTER(?z = ?x) }",
    "SELECT * { ?x a :C , @0 . @1 :p ?y }",
];

fn fill(query: &str, constants: &[String]) -> String {
    let mut text = format!(
        "PREFIX : <http://e/> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> \
         PREFIX rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> {query}"
    );
    for (place, constant) in constants.iter().enumerate() {
        text = text.replace(&format!("@{place}"), constant);
    }
    text
}

fn iri() -> impl Strategy<Value = String> {
    prop_oneof![
        "[pqa-c]".prop_map(|name| format!(":{name}")),
        "[pqa-c]".prop_map(|name| format!("<http://e/{name}>")),
        Just("rdf:type".to_owned()),
        Just("rdf:nil".to_owned()),
        Just("<relative>".to_owned()),
    ]
}

fn constant() -> impl Strategy<Value = String> {
    prop_oneof![
        2 => iri(),
        2 => "(0|[1-9]?[1-9]|05|-?3)",
        1 => "[0-2]\\.(5|0)(e1)?",
        1 => "\"[a-c]{0,2}\"(@en|@de)?",
        1 => "'''a (long )?text'''",
        1 => "(true|false|\"true\"|\"true\"\\^\\^xsd:boolean|'false'@en)",
        1 => "\"200[4-6]-01-01T00:00:00Z\"\\^\\^xsd:dateTime",
        1 => "\"200[4-6]-01-01\"\\^\\^xsd:date",
        1 => "\"[0-9x]\"\\^\\^(xsd:integer|xsd:int|:type|xsd:string|xsd:float)",
    ]
}

/// Two fillings, which are equal in some places.
fn fillings(one: impl Strategy<Value = String> + Clone) -> impl Strategy<Value = [Vec<String>; 2]> {
    let other = one.clone();
    (
        prop::collection::vec(one, 4),
        prop::collection::vec((other, any::<bool>()), 4),
    )
        .prop_map(|(first, changes)| {
            let second = first
                .iter()
                .zip(changes)
                .map(|(old, (new, change))| if change { new } else { old.clone() })
                .collect();
            [first, second]
        })
}

fn check(query: &str, [first, second]: &[Vec<String>; 2]) -> Result<(), TestCaseError> {
    let (first, second) = (fill(query, first), fill(query, second));
    let Some(template) = template(&first) else {
        return Ok(());
    };
    let (Some(a), Some(b)) = (Shape::of(&first), Shape::of(&second)) else {
        return Ok(());
    };
    if a.key() != b.key() {
        return Ok(());
    }
    let Some(params) = template.params(b.constants()) else {
        return Ok(());
    };
    let own = translate(&second).map_err(|e| TestCaseError::fail(format!("{second}\n{e}")))?;
    let kept = template.translated();
    prop_assert_eq!(
        kept.undecoded.sql(),
        own.undecoded.sql(),
        "{}\n{}",
        first,
        second
    );
    prop_assert_eq!(&kept.undecoded.outputs, &own.undecoded.outputs);
    prop_assert_eq!(&kept.columns, &own.columns);
    prop_assert_eq!(params, own.undecoded.params, "{}\n{}", first, second);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn filled_in_it_is_the_translation(query in prop::sample::select(&QUERIES[..]), filling in fillings(constant().boxed())) {
        check(query, &filling)?;
    }

    #[test]
    fn with_iris_it_is_the_translation(query in prop::sample::select(&QUERIES_OF_IRIS[..]), filling in fillings(iri().boxed())) {
        check(query, &filling)?;
    }
}

#[test]
fn common_queries_have_templates() {
    let constants = ["5", "6", "7", "8"].map(str::to_owned);
    let iris = ["<a:a>", "<a:b>", "<a:c>", "<a:d>"].map(str::to_owned);
    for query in QUERIES {
        // A list cannot begin with a number that is not written as one. A named graph cannot be left out, and a subject
        // is no number.
        let constants = if query.contains("@1 a") {
            &iris
        } else {
            &constants
        };
        let filled = fill(query, constants);
        let own = query.contains("-5");
        assert_eq!(template(&filled).is_none(), own, "{filled}");
    }
    for query in &QUERIES_OF_IRIS[1..] {
        assert!(template(&fill(query, &iris)).is_some(), "{query}");
    }
}

#[test]
fn a_constant_that_the_template_has_already_makes_another_query() {
    let first = template("SELECT * { ?x <a:p> <a:a> }").expect("a template");
    assert!(first.params(&["<a:b>".to_owned()]).is_some());
    assert!(first.params(&["<a:p>".to_owned()]).is_none());
    assert!(template("SELECT * { ?x <a:p> <a:p> }").is_none());
}

#[test]
fn constants_that_vanish_make_no_template() {
    assert!(template("SELECT * FROM NAMED <a:a> { GRAPH <a:b> { ?x ?p ?y } }").is_none());
    assert!(template("SELECT ?x { ?x ?p ?y BIND(<a:b> AS ?z) }").is_none());
}
