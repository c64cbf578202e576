//! Any text either becomes SQL that is whole or gives an error; nothing panics.

use pgquad_sparql::{
    parse_query, parse_update, translate_query, translate_update, DefaultGraph, Operation, Target,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{select, Index};

/// Texts with every construct of the language.
const SEEDS: [&str; 14] = [
    "SELECT DISTINCT ?s ( COUNT ( * ) AS ?n ) { ?s ?p ?o OPTIONAL { ?o :q ?z FILTER ( ?z > 1 ) } } GROUP BY ?s HAVING ( COUNT ( ?o ) > 1 ) ORDER BY DESC ( ?n ) LIMIT 3 OFFSET 2",
    "SELECT * FROM :g FROM NAMED :h { GRAPH ?g { ?s :p* ?o MINUS { ?o ( :q | ^ :r )+ ?s } } } VALUES ( ?s ?g ) { ( :a UNDEF ) ( \"x\" :g ) }",
    "SELECT ?s ( BNODE ( \"l\" ) AS ?b ) ( IF ( ?s = :a , 1 , 1 / 0 ) AS ?i ) { { ?s :p [ :q ( 1 2.5 3e0 ) ] } UNION { ?s !( :p | ^ :q ) ?o } }",
    "SELECT ( GROUP_CONCAT ( DISTINCT ?o ; SEPARATOR = \"','\" ) AS ?c ) ( SAMPLE ( ?o ) AS ?m ) { ?s :p? ?o . BIND ( STR ( ?o ) AS ?x ) }",
    "ASK { ?s :p ?o FILTER NOT EXISTS { ?s :q ?w FILTER ( ?w IN ( ?o , \"a\"@en , 01 ) ) } }",
    "CONSTRUCT { ?s :p _:b . _:b :q ?o } { ?s :p ?o { SELECT ?o ( MAX ( ?v ) AS ?m ) { ?o :r ?v } GROUP BY ?o } }",
    "DESCRIBE ?s :a { ?s :p / :q? ?o }",
    "SELECT * { SERVICE SILENT <http://x/> { ?s ?p ?o } FILTER ( REGEX ( ?o , \"^a'b\\\\d\" , \"i\" ) && :unknown ( ?o ) ) }",
    "SELECT ( REPLACE ( ?x , \"(a)\" , \"$1\" ) AS ?y ) { VALUES ?x { \"\\u00e9'\" 'it\\'s' \"\"\"a\"b\"\"\" } }",
    "INSERT { GRAPH ?g { ?s :p _:b } } WHERE { GRAPH ?g { ?s :q ?o } }",
    "WITH :g DELETE { ?s ?p ?o } INSERT { ?s :new \"x'y\" } USING :h WHERE { ?s ?p ?o FILTER EXISTS { ?o :q* ?s } }",
    "INSERT DATA { :a :p 1 , \"b\\\\\"@en ; :q _:c . GRAPH :g { :a :b :c } } ; DELETE WHERE { ?s :p ?o }",
    "CLEAR SILENT GRAPH :g ; COPY DEFAULT TO :h ; MOVE :h TO :g ; CREATE GRAPH :i ; DROP ALL",
    "DELETE DATA { :a :p 1 } ; LOAD <http://x/> INTO GRAPH :g",
];

fn words() -> Vec<&'static str> {
    SEEDS.iter().flat_map(|seed| seed.split(' ')).collect()
}

/// Words of two texts, with some taken out, put in, or replaced.
fn text() -> impl Strategy<Value = String> {
    let change = (0..3_u8, any::<Index>(), select(words()));
    (
        select(&SEEDS[..]),
        select(&SEEDS[..]),
        any::<(Index, Index, bool)>(),
        vec(change, 0..3),
    )
        .prop_map(|(a, b, (cut, from, join), changes)| {
            let mut list: Vec<&str> = a.split(' ').collect();
            if join {
                let tail: Vec<&str> = b.split(' ').collect();
                list.truncate(cut.index(list.len()));
                list.extend(&tail[from.index(tail.len())..]);
            }
            for (kind, place, word) in changes {
                if list.is_empty() {
                    break;
                }
                let place = place.index(list.len());
                match kind {
                    0 => drop(list.remove(place)),
                    1 => list.insert(place, word),
                    _ => list[place] = word,
                }
            }
            format!("PREFIX : <http://e/> {}", list.join(" "))
        })
}

const TARGET: Target<'static> = Target {
    table: "quads",
    default_graph: DefaultGraph::Own,
    graphs: None,
    distributed: false,
};

/// The numbers of the placeholders in a text.
fn placeholders(sql: &str) -> Vec<usize> {
    sql.split('$')
        .skip(1)
        .filter_map(|rest| {
            let digits = rest.split(|c: char| !c.is_ascii_digit()).next()?;
            digits.parse().ok()
        })
        .collect()
}

/// Quotes come in pairs, and brackets outside of them too.
fn is_whole(sql: &str) -> bool {
    let (mut depth, mut quote, mut escapes) = (0_i32, None, false);
    let mut chars = sql.chars().peekable();
    let mut before = ' ';
    while let Some(c) = chars.next() {
        match (quote, c) {
            (Some('\''), '\\') if escapes => drop(chars.next()),
            (Some(q), _) if c == q => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => {
                escapes = c == '\'' && before == 'E';
                quote = Some(c);
            }
            (None, '(') => depth += 1,
            (None, ')') => depth -= 1,
            (None, _) => {}
        }
        if depth < 0 || matches!(c, '\u{1}' | '\u{2}') {
            return false;
        }
        before = c;
    }
    depth == 0 && quote.is_none()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8000))]

    #[test]
    fn queries_become_whole_sql_or_errors(text in text()) {
        if let Ok(query) = parse_query(&text, None) {
            if let Ok(translated) = translate_query(&query, TARGET) {
                let sql = translated.sql();
                let mut used = placeholders(&sql);
                used.sort_unstable();
                used.dedup();
                prop_assert_eq!(used, (1..=translated.params.len()).collect::<Vec<_>>(), "{}", sql);
                prop_assert!(is_whole(&sql), "{}", sql);
                prop_assert!(is_whole(&translated.to_standalone_sql()), "{}", translated.to_standalone_sql());
            }
        }
    }

    #[test]
    fn updates_become_whole_sql_or_errors(text in text()) {
        if let Ok(update) = parse_update(&text, None) {
            for operation in translate_update(&update, &text, TARGET).unwrap_or_default() {
                if let Operation::Run(statement) | Operation::Create { exists: statement, .. } = operation {
                    prop_assert!(is_whole(&statement.sql()), "{}", statement.sql());
                }
            }
        }
    }
}

#[test]
fn the_texts_that_are_mangled_are_right() {
    for seed in SEEDS {
        let text = format!("PREFIX : <http://e/> {seed}");
        let right = parse_query(&text, None).is_ok() || parse_update(&text, None).is_ok();
        assert!(right, "{seed}");
    }
}
