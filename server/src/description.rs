//! SPARQL 1.1 Service Description of an endpoint, with VoID of what is in the store.

use std::collections::HashMap;
use std::str::FromStr;
use std::sync::Arc;

use axum::body::Body;
use axum::response::Response;
use oxrdf::vocab::{rdf, xsd};
use oxrdf::{BlankNode, Literal, NamedNode, NamedOrBlankNode, Term, Triple};
use oxrdfio::{JsonLdProfileSet, RdfFormat, RdfSerializer};

use crate::answer::Work;
use crate::app::App;
use crate::asked::Asked;
use crate::negotiate::{choose, GRAPHS};
use crate::problem::{accept, Problem};
use crate::query::response;

const SD: &str = "http://www.w3.org/ns/sparql-service-description#";
const VOID: &str = "http://rdfs.org/ns/void#";
const FORMATS: &str = "http://www.w3.org/ns/formats/";

/// Most classes, predicates and graphs that are listed, each.
const MAX_LISTED: usize = 1000;

/// A query for names with counts.
const COUNTS: &str =
    "SELECT coalesce(jsonb_agg(answer), '[]')::text FROM quad.sparql($1, $2) AS answer";
const CLASSES: &str =
    "SELECT ?x (COUNT(*) AS ?n) { ?s a ?x } GROUP BY ?x ORDER BY DESC(?n) LIMIT 1000";
const PREDICATES: &str =
    "SELECT ?x (COUNT(*) AS ?n) { ?s ?x ?o } GROUP BY ?x ORDER BY DESC(?n) LIMIT 1000";
const GRAPH_COUNTS: &str =
    "SELECT ?x (COUNT(*) AS ?n) { GRAPH ?x { ?s ?p ?o } } GROUP BY ?x ORDER BY DESC(?n) LIMIT 1000";
const TRIPLES: &str = "SELECT (COUNT(*) AS ?n) { ?s ?p ?o }";

/// Describes the endpoint to whom may read the store.
pub async fn answer(app: &Arc<App>, asked: &Asked) -> Result<Response, Problem> {
    let chosen =
        choose(&accept(&asked.headers), &GRAPHS).ok_or_else(|| Problem::not_acceptable(&GRAPHS))?;
    let url = asked
        .url
        .as_deref()
        .ok_or_else(|| Problem::bad_request("the request names no host"))?;
    let mut work = Work::begin(app, &asked.identity, app.limit(&asked.fields)?).await?;
    let triples = counts(&mut work, TRIPLES, asked).await?;
    let found = Found {
        triples: triples.first().map_or(0, |(_, count)| *count),
        classes: counts(&mut work, CLASSES, asked).await?,
        predicates: counts(&mut work, PREDICATES, asked).await?,
        graphs: counts(&mut work, GRAPH_COUNTS, asked).await?,
    };
    work.give_back();
    let format = match chosen.name {
        "nt" => RdfFormat::NTriples,
        "xml" => RdfFormat::RdfXml,
        "jsonld" => RdfFormat::JsonLd {
            profile: JsonLdProfileSet::empty(),
        },
        _ => RdfFormat::Turtle,
    };
    response(Body::from(document(url, &found, format)), chosen)
}

/// What is in a store.
struct Found {
    triples: u64,
    classes: Vec<(Option<Term>, u64)>,
    predicates: Vec<(Option<Term>, u64)>,
    graphs: Vec<(Option<Term>, u64)>,
}

async fn counts(
    work: &mut Work,
    query: &str,
    asked: &Asked,
) -> Result<Vec<(Option<Term>, u64)>, Problem> {
    let text: String = work.one(COUNTS, &[&query, &asked.store]).await?;
    let rows: Vec<HashMap<String, String>> = serde_json::from_str(&text).map_err(|error| {
        Problem::unavailable(format!("PostgreSQL's answer cannot be read: {error}"))
    })?;
    let count = |term: &Term| match term {
        Term::Literal(literal) => literal.value().parse().unwrap_or(0),
        _ => 0,
    };
    let term = |row: &HashMap<String, String>, name: &str| Term::from_str(row.get(name)?).ok();
    let row =
        |row: &HashMap<String, String>| (term(row, "x"), term(row, "n").as_ref().map_or(0, count));
    Ok(rows.iter().map(row).collect())
}

/// Writes triples; errors cannot be: memory takes them, and all predicates end like names.
struct Graph(Vec<Triple>);

impl Graph {
    fn add(&mut self, subject: &NamedOrBlankNode, predicate: &str, object: impl Into<Term>) {
        let predicate = NamedNode::new_unchecked(predicate);
        self.0.push(Triple::new(subject.clone(), predicate, object));
    }

    fn kind(&mut self, subject: &NamedOrBlankNode, kind: &str) {
        self.add(subject, rdf::TYPE.as_str(), NamedNode::new_unchecked(kind));
    }

    fn count(&mut self, subject: &NamedOrBlankNode, predicate: &str, count: u64) {
        let number = Literal::new_typed_literal(count.to_string(), xsd::INTEGER);
        self.add(subject, &format!("{VOID}{predicate}"), number);
    }
}

fn document(url: &str, found: &Found, format: RdfFormat) -> Vec<u8> {
    let mut graph = Graph(Vec::new());
    let service: NamedOrBlankNode = BlankNode::default().into();
    let dataset: NamedOrBlankNode = BlankNode::default().into();
    let default: NamedOrBlankNode = BlankNode::default().into();
    let sd = |name: &str| format!("{SD}{name}");
    graph.kind(&service, &sd("Service"));
    graph.add(&service, &sd("endpoint"), NamedNode::new_unchecked(url));
    graph.add(
        &service,
        &sd("supportedLanguage"),
        NamedNode::new_unchecked(sd("SPARQL11Query")),
    );
    for name in [
        "SPARQL_Results_JSON",
        "SPARQL_Results_XML",
        "SPARQL_Results_CSV",
        "SPARQL_Results_TSV",
        "Turtle",
        "N-Triples",
        "RDF_XML",
        "JSON-LD",
    ] {
        let format = NamedNode::new_unchecked(format!("{FORMATS}{name}"));
        graph.add(&service, &sd("resultFormat"), format);
    }
    graph.add(
        &service,
        &sd("feature"),
        NamedNode::new_unchecked(sd("BasicFederatedQuery")),
    );
    graph.add(&service, &sd("defaultDataset"), Term::from(dataset.clone()));
    graph.kind(&dataset, &sd("Dataset"));
    graph.kind(&dataset, &format!("{VOID}Dataset"));
    graph.add(&dataset, &sd("defaultGraph"), Term::from(default.clone()));
    graph.kind(&default, &sd("Graph"));
    graph.kind(&default, &format!("{VOID}Dataset"));
    contents(&mut graph, &default, found);
    for (iri, count) in &found.graphs {
        let Some(Term::NamedNode(iri)) = iri else {
            continue;
        };
        let (entry, named): (NamedOrBlankNode, NamedOrBlankNode) =
            (BlankNode::default().into(), BlankNode::default().into());
        graph.add(&dataset, &sd("namedGraph"), Term::from(entry.clone()));
        graph.kind(&entry, &sd("NamedGraph"));
        graph.add(&entry, &sd("name"), iri.clone());
        graph.add(&entry, &sd("graph"), Term::from(named.clone()));
        graph.kind(&named, &sd("Graph"));
        graph.count(&named, "triples", *count);
    }
    let mut writer = RdfSerializer::from_format(format)
        .with_prefix("sd", SD)
        .and_then(|writer| writer.with_prefix("void", VOID))
        .expect("the prefixes are IRIs")
        .for_writer(Vec::new());
    for triple in &graph.0 {
        writer
            .serialize_triple(triple)
            .expect("writing to memory does not fail");
    }
    writer.finish().expect("writing to memory does not fail")
}

/// Counts of the default graph. Those of kinds are left out where there are more of them than are listed.
fn contents(graph: &mut Graph, default: &NamedOrBlankNode, found: &Found) {
    graph.count(default, "triples", found.triples);
    let kinds = [
        (
            &found.classes,
            "classes",
            "classPartition",
            "class",
            "entities",
        ),
        (
            &found.predicates,
            "properties",
            "propertyPartition",
            "property",
            "triples",
        ),
    ];
    for (names, total, partition, name, count) in kinds {
        if names.len() < MAX_LISTED {
            graph.count(default, total, names.len() as u64);
        }
        for (iri, number) in names {
            let Some(Term::NamedNode(iri)) = iri else {
                continue;
            };
            let part: NamedOrBlankNode = BlankNode::default().into();
            graph.add(
                default,
                &format!("{VOID}{partition}"),
                Term::from(part.clone()),
            );
            graph.add(&part, &format!("{VOID}{name}"), iri.clone());
            graph.count(&part, count, *number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_is_a_graph() {
        let iri = |text: &str| Some(Term::from(NamedNode::new_unchecked(text)));
        let found = Found {
            triples: 7,
            classes: vec![(iri("http://x/C"), 2)],
            predicates: vec![(iri("http://x/p"), 7)],
            graphs: vec![(iri("http://x/g"), 3)],
        };
        for format in [RdfFormat::Turtle, RdfFormat::NTriples, RdfFormat::RdfXml] {
            let text = document("http://localhost/sparql", &found, format);
            let triples = oxrdfio::RdfParser::from_format(format).for_slice(&text);
            let triples: Vec<_> = triples.collect::<Result<_, _>>().unwrap();
            let endpoint = triples
                .iter()
                .filter(|t| t.predicate.as_str().ends_with("#endpoint"));
            assert_eq!(endpoint.count(), 1, "{format}");
        }
    }
}
