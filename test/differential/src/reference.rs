//! The engine that pgquad is compared with: `spareval`, on an `oxrdf` data set in memory.

use oxrdf::{BlankNode, Dataset, GraphName, GraphNameRef, Quad, Term, Variable};
use spareval::{DeleteInsertQuad, QueryEvaluator, QueryResults};
use spargebra::algebra::GraphTarget;
use spargebra::{GraphUpdateOperation, SparqlParser};

use crate::answer::Row;

/// The answer to a query.
#[derive(Clone, Debug)]
pub enum Answer {
    /// Of ASK.
    Boolean(bool),
    /// Of SELECT.
    Solutions {
        /// The columns.
        variables: Vec<String>,
        /// The solutions.
        rows: Vec<Row>,
    },
    /// Of CONSTRUCT.
    Triples(Vec<Row>),
}

/// Answers a query.
///
/// # Errors
/// What the parser or the engine says.
pub fn query(dataset: &Dataset, text: &str) -> Result<Answer, String> {
    let query = SparqlParser::new()
        .parse_query(text)
        .map_err(|error| error.to_string())?;
    // Without its optimizer the engine follows the algebra of the specification step by step.
    let evaluator = QueryEvaluator::new().without_optimizations();
    let results = evaluator
        .prepare(&query)
        .execute(dataset)
        .map_err(|error| error.to_string())?;
    Ok(match results {
        QueryResults::Boolean(value) => Answer::Boolean(value),
        QueryResults::Solutions(solutions) => {
            let variables: Vec<Variable> = solutions.variables().to_vec();
            let rows = solutions
                .map(|solution| {
                    let solution = solution.map_err(|error| error.to_string())?;
                    Ok(variables.iter().map(|v| solution.get(v).cloned()).collect())
                })
                .collect::<Result<_, String>>()?;
            let variables = variables.into_iter().map(Variable::into_string).collect();
            Answer::Solutions { variables, rows }
        }
        QueryResults::Graph(triples) => {
            let mut rows: Vec<Row> = Vec::new();
            for triple in triples {
                let triple = triple.map_err(|error| error.to_string())?;
                let row = vec![
                    Some(triple.subject.into()),
                    Some(triple.predicate.into()),
                    Some(triple.object),
                ];
                if !rows.contains(&row) {
                    rows.push(row);
                }
            }
            Answer::Triples(rows)
        }
    })
}

/// Runs an update request.
///
/// # Errors
/// What the parser or the engine says.
pub fn update(dataset: &mut Dataset, text: &str) -> Result<(), String> {
    let update = SparqlParser::new()
        .parse_update(text)
        .map_err(|error| error.to_string())?;
    for operation in update.operations {
        match operation {
            GraphUpdateOperation::InsertData { data } => {
                for quad in fresh(data) {
                    dataset.insert(&quad);
                }
            }
            GraphUpdateOperation::DeleteData { data } => {
                for quad in data {
                    let subject = quad.subject;
                    let object = Term::from(quad.object);
                    dataset.remove(&Quad::new(
                        subject,
                        quad.predicate,
                        object,
                        graph_name(quad.graph_name),
                    ));
                }
            }
            GraphUpdateOperation::DeleteInsert {
                delete,
                insert,
                using,
                pattern,
            } => delete_insert(dataset, delete, insert, using, &pattern)?,
            GraphUpdateOperation::Clear { graph, .. }
            | GraphUpdateOperation::Drop { graph, .. } => {
                clear(dataset, &graph);
            }
            GraphUpdateOperation::Create { .. } => {}
            GraphUpdateOperation::Load { .. } => return Err("LOAD is not compared".to_owned()),
        }
    }
    Ok(())
}

/// The quads with new blank nodes, one for each label.
fn fresh(data: Vec<spargebra::term::Quad>) -> Vec<Quad> {
    let mut made: Vec<(String, BlankNode)> = Vec::new();
    let mut node = |label: &BlankNode| match made.iter().find(|(l, _)| l == label.as_str()) {
        Some((_, node)) => node.clone(),
        None => {
            made.push((label.as_str().to_owned(), BlankNode::default()));
            made[made.len() - 1].1.clone()
        }
    };
    data.into_iter()
        .map(|quad| {
            let mut quad = Quad::new(
                quad.subject,
                quad.predicate,
                quad.object,
                graph_name(quad.graph_name),
            );
            if let oxrdf::NamedOrBlankNode::BlankNode(label) = &quad.subject {
                quad.subject = node(label).into();
            }
            if let Term::BlankNode(label) = &quad.object {
                quad.object = node(label).into();
            }
            quad
        })
        .collect()
}

fn graph_name(name: spargebra::term::GraphName) -> GraphName {
    match name {
        spargebra::term::GraphName::NamedNode(graph) => graph.into(),
        spargebra::term::GraphName::DefaultGraph => GraphName::DefaultGraph,
    }
}

fn delete_insert(
    dataset: &mut Dataset,
    delete: Vec<spargebra::term::GroundQuadPattern>,
    insert: Vec<spargebra::term::QuadPattern>,
    using: Option<spargebra::algebra::QueryDataset>,
    pattern: &spargebra::algebra::GraphPattern,
) -> Result<(), String> {
    let evaluator = QueryEvaluator::new().without_optimizations();
    let changes = evaluator
        .prepare_delete_insert(delete, insert, None, using, pattern)
        .execute(&*dataset)
        .map_err(|error| error.to_string())?
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| error.to_string())?;
    // All that goes goes first (SPARQL 1.1 Update, section 3.1.3).
    for change in &changes {
        if let DeleteInsertQuad::Delete(quad) = change {
            dataset.remove(quad);
        }
    }
    for change in &changes {
        if let DeleteInsertQuad::Insert(quad) = change {
            // Graphs are named by IRIs (SPARQL 1.1, section 13.1), also by blank nodes for the engine.
            if !quad.graph_name.is_blank_node() {
                dataset.insert(quad);
            }
        }
    }
    Ok(())
}

/// The data set with the merge of all its graphs for a default graph.
pub fn merged(mut dataset: Dataset) -> Dataset {
    let quads: Vec<Quad> = dataset.iter().map(|quad| quad.into_owned()).collect();
    for quad in quads {
        let merged = Quad::new(
            quad.subject,
            quad.predicate,
            quad.object,
            GraphName::DefaultGraph,
        );
        dataset.insert(&merged);
    }
    dataset
}

fn clear(dataset: &mut Dataset, target: &GraphTarget) {
    let gone: Vec<Quad> = dataset
        .iter()
        .filter(|quad| match target {
            GraphTarget::NamedNode(graph) => {
                quad.graph_name == GraphNameRef::NamedNode(graph.as_ref())
            }
            GraphTarget::DefaultGraph => quad.graph_name.is_default_graph(),
            GraphTarget::NamedGraphs => !quad.graph_name.is_default_graph(),
            GraphTarget::AllGraphs => true,
        })
        .map(oxrdf::QuadRef::into_owned)
        .collect();
    for quad in &gone {
        dataset.remove(quad);
    }
}

/// All quads; the graph last, `None` for the default graph.
pub fn quads(dataset: &Dataset) -> Vec<Row> {
    dataset
        .iter()
        .map(|quad| {
            let quad = quad.into_owned();
            vec![
                Some(quad.subject.into()),
                Some(quad.predicate.into()),
                Some(quad.object),
                match quad.graph_name {
                    GraphName::NamedNode(graph) => Some(graph.into()),
                    GraphName::BlankNode(graph) => Some(graph.into()),
                    GraphName::DefaultGraph => None,
                },
            ]
        })
        .collect()
}

/// The data of a case.
pub fn dataset(quads: &[crate::grammar::Quad]) -> Dataset {
    quads
        .iter()
        .map(|quad| {
            let [s, p, o] = quad.triple.map(expand);
            let graph = quad.graph.map(expand);
            let term = |text: String| {
                text.parse::<Term>()
                    .unwrap_or_else(|error| panic!("not a term: {text}: {error}"))
            };
            let subject = match term(s) {
                Term::NamedNode(node) => node.into(),
                Term::BlankNode(node) => oxrdf::NamedOrBlankNode::from(node),
                Term::Literal(literal) => panic!("a subject is no literal: {literal}"),
            };
            let iri = |text: String| match term(text) {
                Term::NamedNode(node) => node,
                other => panic!("not an IRI: {other}"),
            };
            Quad {
                subject,
                predicate: iri(p),
                object: term(o),
                graph_name: graph.map_or(GraphName::DefaultGraph, |g| GraphName::from(iri(g))),
            }
        })
        .collect()
}

/// A term of the grammar in N-Triples form.
fn expand(text: &str) -> String {
    const XSD: &str = "http://www.w3.org/2001/XMLSchema#";
    if let Some(local) = text.strip_prefix(':') {
        return format!("<http://e/{local}>");
    }
    if let Some((value, local)) = text.split_once("^^xsd:") {
        return format!("{value}^^<{XSD}{local}>");
    }
    if let Some((value, local)) = text.split_once("^^:") {
        return format!("{value}^^<http://e/{local}>");
    }
    if text == "true" || text == "false" {
        return format!("\"{text}\"^^<{XSD}boolean>");
    }
    if text.parse::<i64>().is_ok() {
        return format!("\"{text}\"^^<{XSD}integer>");
    }
    text.to_owned()
}

/// The term as the reference writes it once it has computed with it.
pub fn canonical(term: &Term) -> Term {
    spareval::ExpressionTerm::from(term.clone()).into()
}
