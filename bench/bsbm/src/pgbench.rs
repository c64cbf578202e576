//! What the pgbench scripts need in the database. A function for each query makes its text from the random numbers
//! which the script draws. Tables know which products, offers and reviews are whose.

use std::fmt::Write;

use crate::dates::{self, day, TODAY};
use crate::model::{Model, Runs, COUNTRIES};
use crate::queries::{Mix, BUSINESS, EXPLORE};
use crate::vocabulary::{COUNTRY, INSTANCES, XSD};

/// The SQL that makes schema `bsbm`.
pub fn schema(model: &Model) -> String {
    let mut sql =
        String::from("begin;\ndrop schema if exists bsbm cascade;\ncreate schema bsbm;\n");
    for (name, runs) in [
        ("producer", &model.producers),
        ("vendor", &model.vendors),
        ("rating_site", &model.sites),
    ] {
        owners(&mut sql, name, runs);
    }
    types(&mut sql, model);
    parameters(&mut sql, model);
    for mix in [&EXPLORE, &BUSINESS] {
        queries(&mut sql, mix);
    }
    sql.push_str("commit;\nanalyze bsbm.producer, bsbm.vendor, bsbm.rating_site, bsbm.type;\n");
    sql
}

fn owners(sql: &mut String, name: &str, runs: &Runs) {
    let rows: Vec<String> = runs
        .lasts()
        .iter()
        .enumerate()
        .map(|(index, last)| format!("({},{last})", index + 1))
        .collect();
    add(
        sql,
        format_args!("create table bsbm.{name} (nr int not null, last int primary key);\n"),
    );
    add(
        sql,
        format_args!("insert into bsbm.{name} values {};\n", rows.join(",")),
    );
}

fn types(sql: &mut String, model: &Model) {
    let rows: Vec<String> = (1..=model.hierarchy.len())
        .map(|number| {
            let features: Vec<String> = model
                .hierarchy
                .features(number)
                .map(|f| f.to_string())
                .collect();
            format!(
                "({number},{},'{{{}}}')",
                model.hierarchy.get(number).level,
                features.join(",")
            )
        })
        .collect();
    sql.push_str("create table bsbm.type (nr int primary key, level int not null, features int[] not null);\n");
    add(
        sql,
        format_args!("insert into bsbm.type values {};\n", rows.join(",")),
    );
}

fn add(sql: &mut String, text: std::fmt::Arguments) {
    sql.write_fmt(text)
        .expect("writing to memory does not fail");
}

/// A function for each name of a parameter, of a random number from 0 on, which gives its value as it stands in the
/// query.
fn parameters(sql: &mut String, model: &Model) {
    let mut function = |name: &str, body: &str| {
        add(
            sql,
            format_args!("create function bsbm.{name}(r int) returns text stable parallel safe language plpgsql as $$ begin return {body}; end $$;\n"),
        );
    };
    let owned = |folder: &str, owner: &str, name: &str, count: usize| {
        format!(
            "(select '<{INSTANCES}dataFrom{folder}' || nr || '/{name}' || 1 + r % {count} || '>' from bsbm.{owner} \
             where last >= 1 + r % {count} order by last limit 1)"
        )
    };
    function(
        "product",
        &owned("Producer", "producer", "Product", model.products),
    );
    function("offer", &owned("Vendor", "vendor", "Offer", model.offers));
    function(
        "review",
        &owned("RatingSite", "rating_site", "Review", model.reviews),
    );
    let producers = model.producers.owners();
    function(
        "producer_iri",
        &format!("'<{INSTANCES}dataFromProducer' || 1 + r % {producers} || '/Producer' || 1 + r % {producers} || '>'"),
    );
    let countries: Vec<String> = COUNTRIES
        .iter()
        .flat_map(|(code, share, _)| vec![format!("'{code}'"); share / 5])
        .collect();
    function(
        "country",
        &format!(
            "'<{COUNTRY}' || (array[{}])[1 + r % {}] || '>'",
            countries.join(","),
            countries.len()
        ),
    );
    let (first, end) = model.hierarchy.leaves();
    function(
        "leaf",
        &format!(
            "'<{INSTANCES}ProductType' || {first} + r % {} || '>'",
            end - first
        ),
    );
    let levels = model.hierarchy.levels();
    for (name, top) in [("any", 0), ("lower", 1)] {
        let mut cases = String::new();
        for level in top..levels {
            let (first, end) = model.hierarchy.level(level);
            add(
                &mut cases,
                format_args!(
                    "when {level} then {first} + r / {levels} % {} ",
                    end - first
                ),
            );
        }
        function(
            &format!("{name}_type"),
            &format!(
                "'<{INSTANCES}ProductType' || case {top} + r % {} {cases}end || '>'",
                levels - top
            ),
        );
    }
    let month0 = dates::text(day(2007, 6, 20));
    function(
        "month",
        &format!("'\"' || date '{month0}' + r || '\"^^<{XSD}date>'"),
    );
    add(
        sql,
        format_args!(
            "create function bsbm.feature(leaf int, place int, r int) returns text stable parallel safe language plpgsql as $$\n\
             declare among int[] := (select features from bsbm.type where nr = {first} + leaf % {});\n\
             begin return '<{INSTANCES}ProductFeature' || among[1 + (r + place * 17) % cardinality(among)] || '>'; end $$;\n",
            end - first
        ),
    );
}

/// A function for each query: of the random numbers that its script draws, the text of the query.
fn queries(sql: &mut String, mix: &Mix) {
    for template in mix.templates {
        let mut text = format!("$q${}$q$", template.text);
        for name in template.parameters() {
            let value = match name {
                "leaf" | "product" | "offer" | "review" => format!("bsbm.{name}(r1)"),
                "feature1" | "feature2" | "feature3" => {
                    format!("bsbm.feature(r1, {}, r2)", &name[7..])
                }
                "producer" => "bsbm.producer_iri(r1)".to_owned(),
                "country" | "country2" => "bsbm.country(r2)".to_owned(),
                "country1" => "bsbm.country(r1)".to_owned(),
                "any" | "lower" => format!("bsbm.{name}_type(r1)"),
                "x" => "(1 + r3 % 500)::text".to_owned(),
                "y" => "(1 + r3 / 500 % 500)::text".to_owned(),
                "today" => format!("'\"{}T00:00:00\"^^<{XSD}dateTime>'", dates::text(TODAY)),
                "month0" | "month1" | "month2" => {
                    format!("bsbm.month(r1 % 310 + 28 * {})", &name[5..])
                }
                _ => panic!("no such parameter: {name}"),
            };
            text = format!("replace({text}, '%{name}%', {value})");
        }
        add(
            sql,
            format_args!(
                "create function bsbm.{}_{}(r1 int, r2 int default 0, r3 int default 0) returns text stable parallel safe language \
                 plpgsql as $f$ begin return {text}; end $f$;\n",
                mix.name, template.number
            ),
        );
    }
}
