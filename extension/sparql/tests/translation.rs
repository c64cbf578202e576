//! SQL of typical queries. Each test pins the whole text: what PostgreSQL (and the join node above it) gets to see.

use pgquad_sparql::{parse_query, translate_query, Error, Form, Output, Translated};

fn translate(query: &str) -> Translated {
    try_translate(query).expect("the query is translated")
}

fn try_translate(query: &str) -> Result<Translated, Error> {
    let text = format!("PREFIX : <http://e/> {query}");
    translate_query(&parse_query(&text, None)?, "quads")
}

#[track_caller]
fn assert_sql(query: &str, expected: &str) {
    let sql = translate(query).sql();
    assert_eq!(sql, expected, "\n--- got\n{sql}\n");
}

#[test]
fn basic_graph_patterns_are_one_flat_list() {
    assert_sql(
        "SELECT ?x ?z { ?x :p ?y . ?y :q ?z . ?x ?r :c }",
        "SELECT quad.decode(q1.s) AS \"x\", quad.decode(q2.o) AS \"z\"
FROM quads AS q1, quads AS q2, quads AS q3
WHERE q1.g = 0
  AND q1.p = $1
  AND q1.o = q2.s
  AND q2.g = 0
  AND q2.p = $2
  AND q1.s = q3.s
  AND q3.g = 0
  AND q3.o = $3",
    );
}

#[test]
fn an_undecoded_answer_has_ids_where_there_are_any() {
    let undecoded =
        translate("SELECT ?x ?c ?l ?n { ?x :p ?y BIND(:c AS ?c) BIND(STRLEN(?y) AS ?l) }")
            .undecoded;
    assert_eq!(
        undecoded.sql(),
        "SELECT q1.s AS \"x\", $1 AS \"c\", quad.id_strlen(q1.o) AS \"l\", NULL::bigint AS \"n\"
FROM quads AS q1
WHERE q1.g = 0
  AND q1.p = $2"
    );
    use Output::{Id, Term};
    assert_eq!(undecoded.outputs, [Id, Id, Id, Id]);
    assert_eq!(undecoded.params[0].text, "<http://e/c>");
    let computed =
        translate("SELECT ?l ?k { ?x :p ?y BIND(LANG(?y) AS ?l) BIND(UCASE(LCASE(?y)) AS ?k) }");
    assert!(
        computed
            .undecoded
            .sql()
            .contains("quad.id_lang(q1.o) AS \"l\", quad.fn_ucase(quad.id_lcase(q1.o)) AS \"k\""),
        "{}",
        computed.undecoded.sql()
    );
    assert_eq!(computed.undecoded.outputs, [Term, Term]);
}

/// Each argument is translated once: twice would be 2^40 times here.
#[test]
fn functions_deep_in_each_other_are_translated_at_once() {
    let deep = || {
        for function in ["STR", "ISIRI", "LCASE"] {
            let (open, close) = (format!("{function}(").repeat(40), ")".repeat(40));
            translate(&format!("SELECT ({open}?o{close} AS ?x) {{ ?s ?p ?o }}"));
        }
    };
    // The frames of a build without optimisation are large.
    let thread = std::thread::Builder::new().stack_size(64 << 20).spawn(deep);
    thread.expect("a thread").join().expect("no panic");
}

#[test]
fn a_variable_twice_in_a_pattern_is_an_equality() {
    assert_sql(
        "SELECT ?x { ?x ?p ?x }",
        "SELECT quad.decode(q1.s) AS \"x\"
FROM quads AS q1
WHERE q1.g = 0
  AND q1.s = q1.o",
    );
}

#[test]
fn optional_joins_tables_without_subqueries() {
    assert_sql(
        "SELECT * { ?x :p ?y OPTIONAL { ?y :q ?z . ?z :r ?w FILTER(?x != ?w) OPTIONAL { ?w :s ?v } } }",
        "SELECT quad.decode(q1.s) AS \"x\", quad.decode(q1.o) AS \"y\", quad.decode(q2.o) AS \"z\", quad.decode(q3.o) AS \"w\", quad.decode(q4.o) AS \"v\"
FROM quads AS q1
  LEFT JOIN ((quads AS q2 CROSS JOIN quads AS q3)
  LEFT JOIN quads AS q4 ON q3.o = q4.s AND q4.g = 0 AND q4.p = $1) ON q1.o = q2.s AND q1.s <> q3.o AND q2.g = 0 AND q2.p = $2 AND q2.o = q3.s AND q3.g = 0 AND q3.p = $3
WHERE q1.g = 0
  AND q1.p = $4",
    );
}

#[test]
fn a_filter_of_a_nested_group_sees_only_that_group() {
    let sql = translate("SELECT * { ?x :p ?y OPTIONAL { { ?y :q ?z FILTER(?x = :a) } } }").sql();
    assert!(sql.contains("quad.eq(NULL::quad.term"), "{sql}");
}

#[test]
fn a_variable_that_may_be_unbound_is_a_compatible_binding() {
    // The patterns are connected by ?x in any case.
    assert_sql(
        "SELECT ?z { ?x :p ?y OPTIONAL { ?y :q ?z } OPTIONAL { ?x :r ?z } ?x :s ?z }",
        "SELECT quad.decode(q4.o) AS \"z\"
FROM quads AS q1
  LEFT JOIN quads AS q2 ON q1.o = q2.s AND q2.g = 0 AND q2.p = $1
  LEFT JOIN quads AS q3 ON q1.s = q3.s AND (q2.o IS NULL OR q2.o = q3.o) AND q3.g = 0 AND q3.p = $2, quads AS q4
WHERE q1.g = 0
  AND q1.p = $3
  AND q1.s = q4.s
  AND (COALESCE(q2.o, q3.o) IS NULL OR COALESCE(q2.o, q3.o) = q4.o)
  AND q4.g = 0
  AND q4.p = $4",
    );
}

#[test]
fn a_variable_that_may_be_unbound_makes_two_joins() {
    assert_sql(
        "SELECT ?x ?z { ?x :p ?y OPTIONAL { ?y :q ?z } ?w :s ?z }",
        "SELECT quad.decode(t2.\"x\") AS \"x\", quad.decode(t2.\"z\") AS \"z\"
FROM (
  SELECT q1.s AS \"x\", q1.o AS \"y\", q2.o AS \"z\", q3.s AS \"w\"
  FROM quads AS q1, quads AS q2, quads AS q3
  WHERE q1.g = 0
    AND q1.p = $1
    AND q1.o = q2.s
    AND q2.g = 0
    AND q2.p = $2
    AND q2.o = q3.o
    AND q3.g = 0
    AND q3.p = $3
  UNION ALL
  SELECT t1.\"x\" AS \"x\", t1.\"y\" AS \"y\", q6.o AS \"z\", q6.s AS \"w\"
  FROM (
    SELECT q4.s AS \"x\", q4.o AS \"y\"
    FROM quads AS q4
    WHERE q4.g = 0
      AND q4.p = $1
      AND NOT EXISTS (
      SELECT 1
      FROM quads AS q5
      WHERE q5.g = 0
        AND q4.o = q5.s
        AND q5.p = $2
    )
    OFFSET 0
  ) AS t1, quads AS q6
  WHERE q6.g = 0
    AND q6.p = $3
) AS t2",
    );
    // So does one that an optional group is matched by.
    let sql = translate("SELECT * { ?x :p ?y OPTIONAL { ?y :q ?z } OPTIONAL { ?z :r ?w } }").sql();
    assert!(!sql.contains(" OR "), "{sql}");
    assert_eq!(sql.matches("UNION ALL").count(), 1, "{sql}");
}

#[test]
fn a_computed_variable_makes_two_joins() {
    let bind = "?x :p ?y BIND(IRI(CONCAT(STR(?y), 'z')) AS ?z)";
    for query in [
        format!("SELECT * {{ {bind} ?z :q ?w }}"),
        format!("SELECT * {{ {bind} OPTIONAL {{ ?z :q ?w }} }}"),
        format!("SELECT * {{ {bind} FILTER EXISTS {{ ?z :q ?w }} }}"),
        format!("SELECT * {{ {bind} FILTER NOT EXISTS {{ ?z :q ?w }} }}"),
        format!("SELECT * {{ {{ SELECT ?z {{ {bind} }} }} GRAPH ?g {{ ?z :q ?w }} }}"),
        format!("SELECT * {{ GRAPH ?g {{ {bind} ?z :q ?w }} }}"),
        format!("SELECT * {{ GRAPH ?g {{ {bind} OPTIONAL {{ ?z :q ?w }} }} }}"),
        format!("SELECT * {{ GRAPH ?g {{ {bind} FILTER EXISTS {{ ?z :q ?w }} }} }}"),
        "SELECT * { { SELECT (IRI(MAX(?y)) AS ?z) { ?x :p ?y } GROUP BY ?x } ?z :q ?w }".to_owned(),
    ] {
        let sql = translate(&query).sql();
        assert!(!sql.contains(" OR "), "{sql}");
        assert_eq!(sql.matches("UNION ALL").count(), 1, "{sql}");
    }
    // What is looked up is bound: nothing computes it once more to see that.
    let sql = translate(&format!("SELECT * {{ {bind} ?z :q ?w }}")).sql();
    assert_eq!(sql.matches("IS NOT NULL").count(), 0, "{sql}");
    // So it does with OPTIONALs in a row, and the next one is joined with those who have no match.
    let sql = translate(&format!(
        "SELECT * {{ {bind} OPTIONAL {{ ?z :q ?a }} OPTIONAL {{ ?z :r ?b }} OPTIONAL {{ ?z :s ?c }} }}"
    ));
    assert!(!sql.sql().contains(" OR "), "{}", sql.sql());
    // What is never unbound makes one join.
    for query in [
        "SELECT * { ?x :p ?y BIND(?y AS ?z) ?z :q ?w }",
        "SELECT * { { SELECT (MAX(?y) AS ?z) { ?x :p ?y } GROUP BY ?x } ?z :q ?w }",
        "SELECT * { { SELECT (SAMPLE(?y) AS ?z) { ?x :p ?y } GROUP BY ?x } ?z :q ?w }",
        "SELECT * { ?x :p ?y OPTIONAL { ?y :r ?z } FILTER(BOUND(?z)) FILTER EXISTS { ?z :q ?w } }",
    ] {
        let sql = translate(query).sql();
        assert!(!sql.contains(" OR ") && !sql.contains("UNION"), "{sql}");
    }
    // What may differ each time is computed once, and so are joins of joins of joins.
    for query in [
        "SELECT * { ?x :p ?y BIND(IRI(CONCAT(STR(?y), STR(RAND()))) AS ?z) ?z :q ?w }",
        "SELECT * { { SELECT (IRI(?y) AS ?z) { ?x :p ?y } LIMIT 9 } ?z :q ?w }",
    ] {
        assert!(!translate(query).sql().contains("UNION"), "{query}");
    }
    let chain: String = (0..12)
        .map(|n| format!("BIND(IRI(STR(?v{n})) AS ?b{n}) ?b{n} :p ?v{} ", n + 1))
        .collect();
    let sql = translate(&format!("SELECT * {{ ?x :p ?v0 {chain} }}")).sql();
    assert!(sql.len() < 40_000, "{}", sql.len());
}

#[test]
fn joins_with_a_union_are_distributed_over_its_branches() {
    assert_sql(
        "SELECT ?n { ?x :p :c { ?x :q ?y . ?y :r ?n } UNION { ?x :s ?n } }",
        "SELECT quad.decode(t1.\"n\") AS \"n\"
FROM (
  SELECT q1.s AS \"x\", q2.o AS \"y\", q3.o AS \"n\"
  FROM quads AS q1, quads AS q2, quads AS q3
  WHERE q1.g = 0
    AND q1.p = $1
    AND q1.o = $2
    AND q1.s = q2.s
    AND q2.g = 0
    AND q2.p = $3
    AND q2.o = q3.s
    AND q3.g = 0
    AND q3.p = $4
  UNION ALL
  SELECT q4.s AS \"x\", NULL::bigint AS \"y\", q5.o AS \"n\"
  FROM quads AS q4, quads AS q5
  WHERE q4.g = 0
    AND q4.p = $1
    AND q4.o = $2
    AND q4.s = q5.s
    AND q5.g = 0
    AND q5.p = $5
) AS t1",
    );
    // What shares no variable with the union is not copied.
    let sql = translate("SELECT * { ?a :p :c { ?x :q ?y } UNION { ?x :s ?n } }").sql();
    assert_eq!(sql.matches("quads AS").count(), 3, "{sql}");
    // What an optional union leaves without a match has one in no branch.
    let sql = translate("SELECT * { ?x :p :c OPTIONAL { { ?x :q ?y } UNION { ?x :s ?n } } }").sql();
    assert_eq!(sql.matches("UNION ALL").count(), 2, "{sql}");
    assert_eq!(sql.matches("NOT EXISTS").count(), 2, "{sql}");
    assert!(!sql.contains("JOIN"), "{sql}");
    // Nothing matches a union when nothing matches any of its branches.
    for test in [
        "MINUS { { ?x :q ?y } UNION { ?x :s ?n } }",
        "FILTER NOT EXISTS { { ?x :q ?y } UNION { ?x :s ?n } }",
    ] {
        let sql = translate(&format!("SELECT * {{ ?x :p :c {test} }}")).sql();
        assert_eq!(sql.matches("NOT EXISTS").count(), 2, "{sql}");
        assert!(!sql.contains("UNION"), "{sql}");
    }
}

#[test]
fn a_computed_variable_in_an_optional_group_is_unbound_with_it() {
    let sql = translate("SELECT * { ?x :p ?y OPTIONAL { ?y :q ?z BIND(1 AS ?one) } }").sql();
    assert!(
        sql.contains("LEFT JOIN (\n  SELECT q2.s AS \"y\", q2.o AS \"z\", $"),
        "{sql}"
    );
}

#[test]
fn union_is_union_all_of_ids() {
    assert_sql(
        "SELECT ?x ?y { { ?x :p ?y } UNION { ?x :q :c } }",
        "SELECT quad.decode(t1.\"x\") AS \"x\", quad.decode(t1.\"y\") AS \"y\"
FROM (
  SELECT q1.s AS \"x\", q1.o AS \"y\"
  FROM quads AS q1
  WHERE q1.g = 0
    AND q1.p = $1
  UNION ALL
  SELECT q2.s AS \"x\", NULL::bigint AS \"y\"
  FROM quads AS q2
  WHERE q2.g = 0
    AND q2.p = $2
    AND q2.o = $3
) AS t1",
    );
}

#[test]
fn a_union_of_one_pattern_with_several_predicates_is_one_pattern() {
    assert_sql(
        "SELECT ?x ?y { { ?x :p ?y } UNION { ?x :q ?y } UNION { ?x :r ?y } }",
        "SELECT quad.decode(q1.s) AS \"x\", quad.decode(q1.o) AS \"y\"
FROM quads AS q1
WHERE q1.g = 0
  AND q1.p IN ($1, $2, $3)",
    );
    for other in [
        "{ ?x :p ?y } UNION { ?x :p ?y }",
        "{ ?x :p ?y } UNION { ?y :q ?x }",
        "{ ?x :p ?y } UNION { ?x ?q ?y }",
    ] {
        let sql = translate(&format!("SELECT ?x ?y {{ {other} }}")).sql();
        assert!(sql.contains("UNION ALL"), "{sql}");
    }
}

#[test]
fn order_and_limit_decode_no_more_than_needed() {
    assert_sql(
        "SELECT DISTINCT ?x { ?x :p ?y } ORDER BY DESC(?x) LIMIT 3 OFFSET 2",
        "SELECT quad.decode(t1.\"x\") AS \"x\"
FROM (
  SELECT DISTINCT q1.s AS \"x\"
  FROM quads AS q1
  WHERE q1.g = 0
    AND q1.p = $1
) AS t1
ORDER BY t1.\"x\" USING OPERATOR(quad.>#) NULLS LAST
LIMIT 3
OFFSET 2",
    );
    let all = translate("SELECT ?x { ?x :p ?y } ORDER BY ?x").sql();
    assert!(
        all.ends_with("ORDER BY quad.decode(q1.s) NULLS FIRST"),
        "{all}"
    );
    let many = translate("SELECT ?x { ?x :p ?y } ORDER BY ?x LIMIT 10 OFFSET 1000").sql();
    assert!(
        many.contains("ORDER BY quad.decode(q1.s) NULLS FIRST"),
        "{many}"
    );
}

#[test]
fn computed_terms_are_made_distinct_before_they_are_counted() {
    assert_sql(
        "SELECT ?x (COUNT(DISTINCT LANG(?y)) AS ?n) { ?x :p ?y } GROUP BY ?x",
        "SELECT quad.decode(t2.\"x\") AS \"x\", quad.decode(t2.\"#1\") AS \"n\"
FROM (
  SELECT t1.\"x\" AS \"x\", quad.int_id(count(t1.\"#1\")) AS \"#1\"
  FROM (
    SELECT DISTINCT q1.s AS \"x\", quad.id_lang(q1.o) AS \"#1\"
    FROM quads AS q1
    WHERE q1.g = 0
      AND q1.p = $1
  ) AS t1
  GROUP BY 1
) AS t2",
    );
}

#[test]
fn distinct_under_another_order_keeps_the_first() {
    let sql = translate("SELECT DISTINCT ?x { ?x :p ?y } ORDER BY ?y").sql();
    assert!(
        sql.contains("SELECT DISTINCT ON (q1.s) q1.s AS \"x\", quad.decode(q1.o) AS \"#key0\""),
        "{sql}"
    );
    assert!(sql.ends_with("ORDER BY t1.\"#key0\" NULLS FIRST"), "{sql}");
}

#[test]
fn filters_compare_ids_where_values_need_not_be_known() {
    assert_sql(
        "SELECT ?x { ?x :p ?y FILTER(?x = :a || ?y = :b || ?y != :c) FILTER(?y > 5 && isIRI(?y)) FILTER(?y = \"a long string\") }",
        "SELECT quad.decode(q1.s) AS \"x\"
FROM quads AS q1
WHERE q1.g = 0
  AND q1.p = $1
  AND ((q1.s = $2 OR q1.o = $3) OR q1.o <> $4)
  AND quad.gt(q1.o, $5)
  AND q1.o < 576460752303423488
  AND q1.o = $6",
    );
    let sql = translate("SELECT ?x { ?x :p ?y FILTER(!(?y = \"a long string\")) }").sql();
    assert!(sql.contains("quad.ne(quad.decode(q1.o), $2)"), "{sql}");
}

#[test]
fn minus_needs_a_shared_bound_variable() {
    assert_sql(
        "SELECT ?x { ?x :p ?y MINUS { ?x :q ?z } MINUS { ?a :q ?b } }",
        "SELECT quad.decode(q1.s) AS \"x\"
FROM quads AS q1
WHERE q1.g = 0
  AND q1.p = $1
  AND NOT EXISTS (
  SELECT 1
  FROM quads AS q2
  WHERE q2.g = 0
    AND q2.p = $2
    AND q1.s = q2.s
)",
    );
    let sql = translate("SELECT ?x { ?x :p ?y OPTIONAL { ?y :q ?z } MINUS { ?u :r ?z } }").sql();
    assert!(
        sql.ends_with("\n    AND q3.p = $3\n    AND q2.o = q3.o\n)"),
        "{sql}"
    );
}

#[test]
fn exists_is_correlated() {
    assert_sql(
        "SELECT ?x { ?x :p ?y FILTER NOT EXISTS { ?y :q ?z FILTER(?z < ?x) } }",
        "SELECT quad.decode(q1.s) AS \"x\"
FROM quads AS q1
WHERE q1.g = 0
  AND q1.p = $1
  AND NOT EXISTS (
  SELECT 1
  FROM quads AS q2
  WHERE q2.g = 0
    AND q1.o = q2.s
    AND q2.p = $2
    AND quad.lt(q2.o, q1.s)
)",
    );
}

#[test]
fn a_graph_variable_is_the_graph_column() {
    assert_sql(
        "SELECT ?g ?x { GRAPH ?g { ?x :p ?y . ?y :q ?g } }",
        "SELECT quad.decode(q2.o) AS \"g\", quad.decode(q1.s) AS \"x\"
FROM quads AS q1, quads AS q2
WHERE q1.p = $1
  AND q1.g = q2.g
  AND q1.o = q2.s
  AND q2.p = $2
  AND q1.g <> 0
  AND q2.o = q1.g",
    );
}

#[test]
fn graphs_are_taken_one_by_one_where_a_part_does_not_read_them() {
    let sql = translate("SELECT * { GRAPH ?g { SELECT (COUNT(*) AS ?n) { ?x :p ?y } } }").sql();
    assert!(
        sql.contains("(SELECT DISTINCT gx.g FROM quads AS gx WHERE gx.g <> 0) AS t1"),
        "{sql}"
    );
    assert!(sql.contains("q1.g = t1.g"), "{sql}");
}

#[test]
fn data_set_clauses_choose_the_graphs() {
    let sql =
        translate("SELECT * FROM :a FROM :b FROM NAMED :c { ?x :p ?y GRAPH ?g { ?y :q ?z } }")
            .sql();
    assert!(
        sql.contains(
            "q1.g IN ($1, $2)
  AND NOT EXISTS (SELECT 1 FROM quads AS gx WHERE gx.s = q1.s AND gx.p = q1.p AND gx.o = q1.o AND gx.g < q1.g AND gx.g IN ($1, $2))"
        ),
        "{sql}"
    );
    assert!(sql.contains("q2.g = $"), "{sql}");
    let sql = translate("SELECT * FROM NAMED :c { ?x :p ?y }").sql();
    assert!(sql.contains("WHERE FALSE"), "{sql}");
}

#[test]
fn values_are_ids_that_may_be_unknown() {
    assert_sql(
        "SELECT ?x ?y { VALUES ?x { :a :b } ?x :p ?y }",
        "SELECT quad.decode(q1.s) AS \"x\", quad.decode(q1.o) AS \"y\"
FROM quads AS q1
WHERE q1.g = 0
  AND q1.p = $1
  AND q1.s IN ($2, $3)",
    );
    let sql = translate("SELECT * { VALUES (?x ?y) { (:a :b) (:c :b) } ?x :p ?y }").sql();
    let condition = "AND q1.s IN ($2, $3)
  AND q1.o = $4
  AND ((q1.s = $2 AND q1.o = $4) OR (q1.s = $3 AND q1.o = $4))";
    assert!(sql.ends_with(condition), "{sql}");
    // Rows that come twice, or bind a variable that nothing else does, are joined.
    for values in ["?x { :a :a }", "(?x ?l) { (:a 1) (:b 2) }"] {
        let sql = translate(&format!("SELECT * {{ VALUES {values} ?x :p ?y }}")).sql();
        assert!(sql.contains("(VALUES ("), "{sql}");
    }
    // Rows that leave a variable open are looked up by the others.
    assert_sql(
        "SELECT ?x ?y { VALUES (?x ?y) { (:a UNDEF) (UNDEF :b) (UNDEF :c) } ?x :p ?y }",
        "SELECT quad.decode(t1.\"x\") AS \"x\", quad.decode(t1.\"y\") AS \"y\"
FROM (
  SELECT q1.s AS \"x\", q1.o AS \"y\"
  FROM quads AS q1
  WHERE $1 = q1.s
    AND q1.g = 0
    AND q1.p = $2
  UNION ALL
  SELECT q2.s AS \"x\", q2.o AS \"y\"
  FROM quads AS q2
  WHERE q2.g = 0
    AND q2.p = $2
    AND q2.o IN ($3, $4)
) AS t1",
    );
    // On their own they keep terms that the dictionary does not know.
    assert_sql(
        "SELECT ?x { VALUES ?x { :a :b } }",
        "SELECT (CASE WHEN t1.\"x\" >= 0 THEN quad.decode(t1.\"x\") ELSE CASE t1.\"x\" WHEN -1 THEN $2 WHEN -3 THEN $4 END END) AS \"x\"
FROM (VALUES ($1), ($3)) AS t1(\"x\")",
    );
}

#[test]
fn bindings_are_pushed_down_into_groups_and_duplicates() {
    let set = "(
    SELECT DISTINCT q2.o AS \"x\"";
    for subquery in [
        "{ SELECT ?x (COUNT(*) AS ?n) { ?y :p ?x } GROUP BY ?x }",
        "{ SELECT ?x (COUNT(*) AS ?n) { ?y :p ?x } GROUP BY ?x HAVING(COUNT(*) > 1) }",
        "{ SELECT DISTINCT ?x ?y { ?y :p ?x } }",
        "OPTIONAL { SELECT ?x (SUM(?y) AS ?n) { ?y :p ?x } GROUP BY ?x }",
        "OPTIONAL { SELECT DISTINCT ?x ?y { ?y :p ?x OPTIONAL { ?y :q ?z } } }",
    ] {
        let sql = translate(&format!("SELECT * {{ :a :knows ?x {subquery} }}")).sql();
        let found = sql.matches("SELECT DISTINCT").count();
        let expected = 1 + usize::from(subquery.contains("DISTINCT"));
        assert_eq!(found, expected, "{sql}\n{set}");
    }
    // Where it would change the groups, is of no key, is unbound in some, or has little to select by.
    for query in [
        ":a :knows ?x { SELECT ?x (COUNT(*) AS ?n) { ?y :p ?x } GROUP BY ?x LIMIT 5 }",
        ":a :knows ?n { SELECT ?x (COUNT(*) AS ?n) { ?y :p ?x } GROUP BY ?x }",
        ":a :knows ?y { SELECT ?x (COUNT(?y) AS ?n) { ?y :p ?x } GROUP BY ?x }",
        ":a :knows ?x { SELECT ?x (COUNT(*) AS ?n) { ?y :p ?z OPTIONAL { ?y :q ?x } } GROUP BY ?x }",
        "?z :knows ?x { SELECT ?x (COUNT(*) AS ?n) { ?y :p ?x } GROUP BY ?x }",
        "?x a :Person { SELECT ?x (COUNT(*) AS ?n) { ?y :p ?x } GROUP BY ?x }",
        ":a :knows ?x { SELECT ?x (COUNT(*) AS ?n) { :b :p ?x } GROUP BY ?x }",
    ] {
        let sql = translate(&format!("SELECT * {{ {query} }}")).sql();
        assert!(!sql.contains("SELECT DISTINCT"), "{query}\n{sql}");
    }
}

#[test]
fn keys_computed_from_one_value_are_computed_once_for_each() {
    assert_sql(
        "SELECT ?k (COUNT(*) AS ?n) { ?x :p ?y } GROUP BY (FLOOR(?y / 10) AS ?k)",
        "SELECT t2.\"k\" AS \"k\", t2.\"#1\" AS \"n\"
FROM (
  SELECT quad.fn_floor(quad.div(quad.decode(t1.\"y\"), $1)) AS \"k\", quad.agg_sum(t1.\"#1\") AS \"#1\"
  FROM (
    SELECT q1.o AS \"y\", quad.int_id(count(*)) AS \"#1\"
    FROM quads AS q1
    WHERE q1.g = 0
      AND q1.p = $2
    GROUP BY 1
  ) AS t1
  GROUP BY 1
) AS t2",
    );
    let pre = |query: &str| translate(query).sql().matches("GROUP BY 1").count() == 2;
    let keyed = |select: &str, pattern: &str| {
        pre(&format!(
            "SELECT ?k {select} {{ {pattern} }} GROUP BY (?y * 2 AS ?k)"
        ))
    };
    assert!(keyed(
        "(COUNT(?y) AS ?n) (MAX(?y) AS ?m) (COUNT(DISTINCT ?y) AS ?d)",
        "?x :p ?y FILTER(?y > 3)"
    ));
    assert!(keyed("(COUNT(?x) AS ?n)", "?x :p ?y"));
    assert!(pre(
        "SELECT ?k (COUNT(?x) AS ?n) { ?x :p ?y } GROUP BY (YEAR(?y) AS ?k)"
    ));
    assert!(keyed("(COUNT(?p) AS ?n)", "?x ?p ?y"));
    // There are few predicates.
    let by_predicate = |pattern: &str| {
        pre(&format!(
            "SELECT ?k (COUNT(*) AS ?n) {{ {pattern} }} GROUP BY ?k"
        ))
    };
    assert!(by_predicate("?x ?p ?y BIND(STR(?p) AS ?k)"));
    assert!(by_predicate(":x ?p ?y BIND(STRLEN(STR(?p)) AS ?k)"));
    assert!(!by_predicate("?x ?k ?y FILTER(?k != :a)"));
    assert!(!by_predicate("?x ?p ?y BIND(STR(?p) AS ?k) FILTER(?y > 3)"));
    assert!(!by_predicate("?x ?p ?y BIND(STR(?x) AS ?k)"));
    // What depends on more than the value and the number of solutions.
    assert!(!keyed("(COUNT(DISTINCT ?x) AS ?n)", "?x :p ?y"));
    assert!(!keyed("(COUNT(?k) AS ?n)", "?x :p ?y"));
    assert!(!keyed("(COUNT(DISTINCT *) AS ?n)", "?x :p ?y"));
    assert!(!keyed("(SUM(?y) AS ?n)", "?x :p ?y"));
    assert!(!keyed("(COUNT(*) AS ?n)", "?x :p ?y FILTER(?x != :a)"));
    assert!(!keyed("(COUNT(*) AS ?n)", "?x :p ?y ; :q ?z"));
    assert!(!keyed("(COUNT(*) AS ?n)", "GRAPH ?g { ?x :p ?y }"));
    assert!(!pre(
        "SELECT ?k (COUNT(*) AS ?n) { ?x :p ?y } GROUP BY ?x (?y * 2 AS ?k)"
    ));
    // The id tells the key.
    assert!(!pre(
        "SELECT ?k (COUNT(*) AS ?n) { ?x :p ?y } GROUP BY (LANG(?y) AS ?k)"
    ));
}

#[test]
fn computed_integers_and_bound_texts_are_compared_as_terms() {
    let equal = |query: &str| {
        let sql = translate(&format!("SELECT * {{ ?a :p ?x . ?b :q ?y {query} }}")).sql();
        sql.contains("OPERATOR(quad.=)")
    };
    assert!(equal("FILTER(YEAR(?x) - 1 = STRLEN(?y) * 2)"));
    assert!(equal(
        "BIND(YEAR(?x) - 1 AS ?i) BIND(MONTH(?y) + 1 AS ?j) FILTER(?i = ?j)"
    ));
    assert!(equal("BIND(LCASE(?x) AS ?i) FILTER(?i = UCASE(?y))"));
    let sql = translate("SELECT * { ?a :p ?x . ?b :q ?y FILTER(YEAR(?x) - 5 = YEAR(?y)) }").sql();
    assert!(
        sql.contains("quad.id_year(q2.o) = quad.find(quad.sub("),
        "{sql}"
    );
    // These may be equal to terms of other types.
    assert!(!equal("FILTER(YEAR(?x) / 2 = STRLEN(?y) * 2)"));
    assert!(!equal("FILTER(?x + 1 = ?y + 1)"));
    assert!(!equal("BIND(YEAR(?x) - 1 AS ?i) FILTER(?i = ?y)"));
}

#[test]
fn long_chains_of_optionals_are_taken_apart() {
    let chain: String = (0..10)
        .map(|n| format!("OPTIONAL {{ ?x :p{n} ?y{n} }} "))
        .collect();
    let sql = translate(&format!("SELECT * {{ ?x :p ?y {chain} ?y4 :q ?z }}")).sql();
    assert!(!sql.contains("IS NULL OR"), "{sql}");
    // Not so where each is joined on what the one before may leave unbound: the joins would double each time.
    let chain: String = (0..60)
        .map(|n| format!("OPTIONAL {{ ?y{n} :p ?y{} }} ", n + 1))
        .collect();
    let sql = translate(&format!("SELECT * {{ ?x :p ?y0 {chain} }}")).sql();
    assert!(sql.len() < 100_000, "{}", sql.len());
}

#[test]
fn aggregates_group_by_ids() {
    let sql = translate(
        "SELECT ?x (COUNT(DISTINCT ?y) AS ?n) (SUM(?y) AS ?s) { ?x :p ?y } GROUP BY ?x HAVING(COUNT(DISTINCT ?y) > 1)",
    )
    .sql();
    assert_eq!(
        sql,
        "SELECT quad.decode(t1.\"x\") AS \"x\", quad.decode(t1.\"#1\") AS \"n\", t1.\"#2\" AS \"s\"
FROM (
  SELECT q1.s AS \"x\", quad.int_id(count(DISTINCT q1.o)) AS \"#1\", quad.agg_sum(q1.o) AS \"#2\"
  FROM quads AS q1
  WHERE q1.g = 0
    AND q1.p = $1
  GROUP BY 1
) AS t1
WHERE t1.\"#1\" > $2",
        "\n--- got\n{sql}\n"
    );
}

#[test]
fn counts_are_numbers_that_are_compared_and_sorted_as_ids() {
    let sql = translate(
        "SELECT ?x ?n { { SELECT ?x (COUNT(*) AS ?n) { ?x :p ?y } GROUP BY ?x } \
         { SELECT (MAX(?m) AS ?most) { { SELECT (COUNT(*) AS ?m) { ?x :p ?y } GROUP BY ?x } } } \
         FILTER(?n = ?most) } ORDER BY DESC(?n)",
    )
    .sql();
    assert!(sql.contains("SELECT max(t2.\"#1\") AS"), "{sql}");
    assert!(sql.contains("WHERE t1.\"#1\" = t3.\"#0\""), "{sql}");
    assert!(sql.ends_with("ORDER BY t1.\"#1\" DESC NULLS LAST"), "{sql}");
}

#[test]
fn floats_of_ids_are_ids() {
    assert_sql(
        "SELECT (AVG(<http://www.w3.org/2001/XMLSchema#float>(STR(?y))) AS ?a) { ?x :p ?y }",
        "SELECT quad.decode(t1.\"#0\") AS \"a\"
FROM (
  SELECT quad.agg_avg_float(quad.cast_float_of_str(q1.o)) AS \"#0\"
  FROM quads AS q1
  WHERE q1.g = 0
    AND q1.p = $1
) AS t1",
    );
}

#[test]
fn arithmetic_with_a_float_stays_with_ids() {
    let sql = translate(
        "SELECT ?x { ?x :p ?y } GROUP BY ?x \
         HAVING(AVG(<http://www.w3.org/2001/XMLSchema#float>(?y)) > MIN(<http://www.w3.org/2001/XMLSchema#float>(?y)) * 1.5)",
    )
    .sql();
    assert!(
        sql.contains("quad.gt(t1.\"#1\", quad.mul_float(t1.\"#2\", $2))"),
        "{sql}"
    );
    let sql = translate(
        "SELECT (<http://www.w3.org/2001/XMLSchema#float>(?y) * 1.5e0 AS ?z) { ?x :p ?y }",
    )
    .sql();
    assert!(sql.contains("quad.mul(quad.decode("), "{sql}");
}

#[test]
fn fixed_paths_are_patterns() {
    assert_sql(
        "SELECT ?x ?y { ?x (:p|:q)/^:r ?y . ?y !(:s|^:t) :c }",
        "SELECT quad.decode(q2.s) AS \"x\", quad.decode(q1.s) AS \"y\"
FROM quads AS q1, quads AS q2, (
  SELECT q3.s AS \"y\"
  FROM quads AS q3
  WHERE q3.g = 0
    AND q3.p <> $1
    AND q3.o = $2
  UNION ALL
  SELECT q4.o AS \"y\"
  FROM quads AS q4
  WHERE q4.g = 0
    AND q4.s = $2
    AND q4.p <> $3
) AS t1
WHERE q1.g = 0
  AND q1.p = $4
  AND q1.o = q2.o
  AND q2.g = 0
  AND q2.p IN ($5, $6)
  AND q1.s = t1.\"y\"",
    );
}

#[test]
fn what_is_not_connected_with_a_start_does_not_multiply_the_starts() {
    let sql = translate("SELECT * { ?x :type :C . ?x :parent+ ?y . ?y :type :D }").sql();
    let starts = "SELECT DISTINCT q1.s AS a
      FROM quads AS q1
      WHERE";
    assert!(sql.contains(starts), "{sql}");
}

#[test]
fn a_branch_of_a_step_is_all_predicates_of_a_direction_and_looks_up_its_start() {
    let sql = translate("SELECT * { :a (:p|^:q|:r|^:s)* ?y }").sql();
    assert_eq!(sql.matches("UNION ALL").count(), 1, "{sql}");
    assert!(sql.contains("p IN ($3, $4)"), "{sql}");
    assert!(sql.contains("FROM t1_walk, LATERAL ("), "{sql}");
    assert_eq!(sql.matches("t1_walk.n = q").count(), 2, "{sql}");
    let sql = translate("SELECT * { :a (^:p|^:q)* ?y }").sql();
    assert!(!sql.contains("UNION ALL"), "{sql}");
    assert!(sql.contains("SELECT q2.s AS n"), "{sql}");
}

#[test]
fn a_walk_starts_from_the_end_that_is_known() {
    let sql = translate("SELECT * { ?x :p+ ?y . ?y :q :c }").sql();
    // All starts are one frontier, of which each row keeps its own start.
    assert!(
        sql.contains(
            "WITH RECURSIVE t1_walk(a, n) AS (
    SELECT t1_start.a AS a, q2.s AS n
    FROM (
      SELECT DISTINCT q1.s AS a
      FROM quads AS q1
      WHERE q1.g = 0
        AND q1.p = $1
        AND q1.o = $2
    ) AS t1_start, quads AS q2
    WHERE t1_start.a = q2.o"
        ),
        "{sql}"
    );
    assert!(sql.ends_with("AND q1.s = t1.a"), "{sql}");
    assert!(!sql.contains("LATERAL"), "{sql}");
    // The second part of a path starts from what the first one reaches.
    let sql = translate("SELECT * { ?x :r/:p* ?y }").sql();
    assert!(sql.contains("SELECT DISTINCT q1.o AS a"), "{sql}");
    // What cannot be read once more starts walks of its own.
    let sql = translate("SELECT * { { SELECT ?y { ?y :q ?z } LIMIT 3 } ?x :p+ ?y }").sql();
    assert!(
        sql.contains("LATERAL (\n  SELECT t1.\"y\" AS a, walked.n AS b"),
        "{sql}"
    );
    let sql = translate("SELECT * { :a :p* ?y }").sql();
    assert!(sql.contains("SELECT $1 AS n\n      UNION"), "{sql}");
    // The constant is reached by the path of length zero, known to the dictionary or not.
    assert!(sql.contains("WHEN -1 THEN $2"), "{sql}");
}

#[test]
fn equal_queries_have_equal_sql_up_to_constants() {
    let query = |c: &str| {
        translate(&format!(
            "SELECT (COUNT(*) AS ?n) {{ ?x :p [ :q {c} ] ; :r/:s ?y FILTER(?y > 3) }} GROUP BY ?x ORDER BY DESC(?n)"
        ))
    };
    assert_eq!(query(":a").sql(), query(":b").sql());
    assert_ne!(query(":a").params, query(":b").params);
}

#[test]
fn constants_cannot_leave_their_literals() {
    let sql = translate("SELECT * { ?x :p \"a'; DROP TABLE quads; --\\\\\" BIND(\"$1\" AS ?y) }")
        .to_standalone_sql();
    assert!(
        sql.contains("quad.find( E'\"a''; DROP TABLE quads; --\\\\\\\\\"'::quad.term)"),
        "{sql}"
    );
    assert!(sql.contains("'\"$1\"'::quad.term"), "{sql}");
}

#[test]
fn construct_gives_each_triple_once() {
    let translated = translate("CONSTRUCT { ?y :inverse ?x } { ?x :p ?y }");
    assert_eq!(translated.form, Form::Construct);
    assert_eq!(
        translated.sql(),
        "SELECT quad.decode(t.s) AS \"subject\", (CASE WHEN t.p >= 0 THEN quad.decode(t.p) ELSE CASE t.p WHEN -1 THEN $2 END END) AS \"predicate\", quad.decode(t.o) AS \"object\"
FROM (
  SELECT DISTINCT t.s, t.p, t.o
  FROM quads AS q1, LATERAL (VALUES (q1.o, $1, q1.s)) AS t(s, p, o)
  WHERE q1.g = 0
    AND q1.p = $3
    AND t.s < 1152921504606846976
) AS t"
    );
}

#[test]
fn constants_of_a_template_are_labels_where_no_variable_stands() {
    use pgquad_sparql::ParamKind::{Id, Label};
    let kinds = |query: &str| {
        let params = translate(query).undecoded.params;
        let of = |text: &str| {
            let found = params.iter().filter(|param| param.text == text);
            found.map(|param| param.kind).collect::<Vec<_>>()
        };
        (of("<http://e/p>"), of("<http://e/c>"))
    };
    assert_eq!(
        kinds("CONSTRUCT { :c :x ?y } { ?x :p ?y }"),
        (vec![Id], vec![Label])
    );
    // A constant of the pattern is an id there.
    assert_eq!(
        kinds("CONSTRUCT { :c :p ?y } { ?x :p ?y }"),
        (vec![Label, Id], vec![Label])
    );
    // A variable beside it may be bound to the same term.
    assert_eq!(
        kinds("CONSTRUCT { :c ?q ?y . ?x :p ?y } { ?x ?q ?y }"),
        (vec![Id], vec![Id])
    );
}

#[test]
fn describe_follows_blank_nodes() {
    let translated = translate("DESCRIBE ?x { ?x :p :c }");
    assert_eq!(translated.form, Form::Describe);
    let sql = translated.sql();
    assert!(sql.starts_with("WITH RECURSIVE described(n) AS ("), "{sql}");
    assert!(
        sql.contains("AND q2.o >= 576460752303423488\n    AND q2.o < 1152921504606846976"),
        "{sql}"
    );
}

#[test]
fn service_is_a_call_whose_rows_are_joined() {
    assert_sql(
        "SELECT ?x ?n { ?x :p ?y SERVICE <http://s> { ?y :name ?n OPTIONAL { ?y :age ?a } } }",
        "SELECT quad.decode(q1.s) AS \"x\", t1.b[2] AS \"n\"
FROM quads AS q1, quad.service($1, $2, ARRAY[$3, $4, $5]::text[], false, false) AS t1(b)
WHERE q1.g = 0
  AND q1.p = $6
  AND q1.o = quad.find(t1.b[1])",
    );
}

#[test]
fn an_endpoint_that_a_variable_names_is_asked_once() {
    assert_sql(
        "SELECT ?n { SERVICE ?e { ?s :name ?n } ?x :at ?e }",
        "SELECT t4.\"#b\"[2] AS \"n\"
FROM (
  WITH t1 AS MATERIALIZED (
    SELECT q1.s AS \"x\", q1.o AS \"e\"
    FROM quads AS q1
    WHERE q1.g = 0
      AND q1.p = $1
  ), t3(e, b) AS MATERIALIZED (
    SELECT t2.e, s.b
    FROM (SELECT DISTINCT t1.\"e\" AS e FROM t1) AS t2, LATERAL quad.service(quad.decode(t2.e), $2, ARRAY[$3, $4]::text[], false, false) AS s(b)
  )
  SELECT t1.*, t3.b AS \"#b\"
  FROM t1, t3
  WHERE t1.\"e\" = t3.e
) AS t4",
    );
    assert!(matches!(
        try_translate("SELECT * { SERVICE ?e { ?s ?p ?o } }"),
        Err(Error::Invalid(_))
    ));
}

#[test]
fn a_call_of_an_unknown_function_is_an_error_of_evaluation() {
    assert_sql(
        "SELECT (:f(?z) AS ?v) { ?x :p ?z FILTER(:f(?z) || ?z = :a) }",
        "SELECT NULL::quad.term AS \"v\"
FROM quads AS q1
WHERE q1.g = 0
  AND q1.p = $1
  AND (NULL::boolean OR q1.o = $2)",
    );
}

#[test]
fn a_key_of_group_by_counts_once() {
    assert_sql(
        "SELECT ?x (COUNT(*) AS ?n) { ?x :p ?y } GROUP BY ?x ?x",
        "SELECT quad.decode(t1.\"x\") AS \"x\", quad.decode(t1.\"#1\") AS \"n\"
FROM (
  SELECT q1.s AS \"x\", quad.int_id(count(*)) AS \"#1\"
  FROM quads AS q1
  WHERE q1.g = 0
    AND q1.p = $1
  GROUP BY 1
) AS t1",
    );
}

#[test]
fn an_aggregate_over_an_outer_variable_is_one_of_its_own_query() {
    let sql = translate(
        "SELECT * { ?x :p ?y FILTER EXISTS { SELECT ?y { } GROUP BY ?y HAVING (COUNT(?y) > 0) } }",
    )
    .sql();
    assert!(sql.contains("count(t1.\"#0\")"), "{sql}");
}

#[test]
fn syntax_errors_have_a_position() {
    let Err(Error::Syntax { position, .. }) = parse_query("SELECT *\n{ ?x ?y }", None) else {
        panic!("not an error");
    };
    assert_eq!(position, Some((2, 9)));
    assert!(matches!(
        parse_query("SELECT * {}", Some("no base")),
        Err(Error::Base(_))
    ));
}

#[test]
fn equality_of_computed_values_is_one_that_can_be_joined_by() {
    let condition = |filter: &str| {
        let query = format!("SELECT * {{ ?a :p ?x . ?b :q ?y FILTER({filter}) }}");
        let sql = translate(&query).sql();
        sql.lines()
            .last()
            .unwrap_or_default()
            .trim_start_matches("  AND ")
            .to_owned()
    };
    assert_eq!(
        condition("LCASE(STR(?x)) = STR(?y)"),
        "quad.fn_lcase(quad.id_str(q1.o)) OPERATOR(quad.=) quad.id_str(q2.o)"
    );
    assert_eq!(
        condition("YEAR(?x) = MONTH(?y)"),
        "quad.id_year(q1.o) = quad.id_month(q2.o)"
    );
    // A text is equal to itself only, so that its id is looked for.
    assert_eq!(
        condition("?x = STR(?y)"),
        "q1.o = quad.find(quad.id_str(q2.o))"
    );
    // 2000 may be a double.
    assert_eq!(
        condition("?x = YEAR(?y)"),
        "quad.eq(q1.o, quad.id_year(q2.o))"
    );
    // An error must stay one where something is made of it.
    assert_eq!(
        condition("!(STR(?x) = STR(?y))"),
        "quad.ne(quad.id_str(q1.o), quad.id_str(q2.o))"
    );
    assert_eq!(
        condition("STR(?x) = \"a\""),
        "quad.eq(quad.id_str(q1.o), $3)"
    );
}
