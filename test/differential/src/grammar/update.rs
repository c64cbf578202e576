//! Update requests.

use super::pattern::Patterns;
use super::query::template;
use super::terms::{constant, graph, iri, predicate, text_node, var_node};
use super::{choice, Flavour};
use crate::syntax::{write_group, Group, Node, Triple, PREFIXES};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

/// A quad of a template.
#[derive(Clone, Debug)]
pub struct TemplateQuad {
    triple: Triple,
    graph: Option<Node>,
}

/// An operation.
#[derive(Clone, Debug)]
pub enum Update {
    /// `INSERT DATA` or `DELETE DATA`.
    Data(&'static str, Vec<TemplateQuad>),
    /// `DELETE WHERE`.
    DeleteWhere(Vec<TemplateQuad>),
    /// `WITH`, `DELETE`, `INSERT`, `USING`, `WHERE`.
    Modify {
        /// `WITH`.
        with: Option<&'static str>,
        /// `DELETE`.
        delete: Vec<TemplateQuad>,
        /// `INSERT`.
        insert: Vec<TemplateQuad>,
        /// `USING` or `USING NAMED`, and a graph.
        using: Vec<(&'static str, &'static str)>,
        /// The pattern.
        pattern: Group,
    },
    /// `CLEAR` or `DROP` of a target.
    Clear(&'static str, &'static str),
    /// `ADD`, `MOVE` or `COPY` from one graph to another.
    Move(&'static str, &'static str, &'static str),
}

impl Update {
    /// The text of a request of these operations.
    pub fn request(operations: &[Self]) -> String {
        let mut out = PREFIXES.to_owned();
        for operation in operations {
            operation.write(&mut out);
            out.push_str(" ;\n");
        }
        out
    }

    fn write(&self, out: &mut String) {
        match self {
            Self::Data(verb, quads) => {
                out.push_str(&format!("{verb} DATA "));
                write_quads(quads, out);
            }
            Self::DeleteWhere(quads) => {
                out.push_str("DELETE WHERE ");
                write_quads(quads, out);
            }
            Self::Modify {
                with,
                delete,
                insert,
                using,
                pattern,
            } => {
                if let Some(graph) = with {
                    out.push_str(&format!("WITH {graph} "));
                }
                if !delete.is_empty() || insert.is_empty() {
                    out.push_str("DELETE ");
                    write_quads(delete, out);
                }
                if !insert.is_empty() {
                    out.push_str("INSERT ");
                    write_quads(insert, out);
                }
                for (keyword, graph) in using {
                    out.push_str(&format!("{keyword} {graph} "));
                }
                out.push_str("WHERE ");
                write_group(pattern, out);
            }
            Self::Clear(verb, target) => out.push_str(&format!("{verb} SILENT {target}")),
            Self::Move(verb, from, to) => out.push_str(&format!("{verb} SILENT {from} TO {to}")),
        }
    }
}

fn write_quads(quads: &[TemplateQuad], out: &mut String) {
    out.push_str("{ ");
    for quad in quads {
        match &quad.graph {
            None => quad.triple.write(out),
            Some(graph) => {
                out.push_str("GRAPH ");
                graph.write(out);
                out.push_str(" { ");
                quad.triple.write(out);
                out.push_str("} ");
            }
        }
    }
    out.push_str("} ");
}

fn quads(
    triple: BoxedStrategy<Triple>,
    graph: BoxedStrategy<Node>,
    least: usize,
) -> BoxedStrategy<Vec<TemplateQuad>> {
    let graph = choice(vec![
        (2, Just(None).boxed()),
        (1, graph.prop_map(Some).boxed()),
    ]);
    vec(
        (triple, graph).prop_map(|(triple, graph)| TemplateQuad { triple, graph }),
        least..3,
    )
    .boxed()
}

/// A triple without blank nodes, with variables or without.
fn ground(flavour: Flavour, variables: bool) -> BoxedStrategy<Triple> {
    let mixed = |texts: BoxedStrategy<&'static str>| {
        let texts = text_node(texts);
        if variables {
            choice(vec![(2, var_node()), (1, texts)])
        } else {
            texts
        }
    };
    (mixed(iri()), mixed(predicate()), mixed(constant(flavour)))
        .prop_map(|(s, p, o)| Triple { terms: [s, p, o] })
        .boxed()
}

/// The operations of a request.
pub fn update(flavour: Flavour) -> BoxedStrategy<Vec<Update>> {
    let fixed = || text_node(graph());
    let any_graph = || choice(vec![(1, fixed()), (1, var_node())]);
    let data = |verb, triple| {
        quads(triple, fixed(), 1)
            .prop_map(move |q| Update::Data(verb, q))
            .boxed()
    };
    let with_blanks = (
        choice(vec![(3, text_node(iri())), (1, blank())]),
        text_node(predicate()),
        choice(vec![(3, text_node(constant(flavour))), (1, blank())]),
    )
        .prop_map(|(s, p, o)| Triple { terms: [s, p, o] })
        .boxed();
    let modify = (
        choice(vec![
            (4, Just(None).boxed()),
            (1, graph().prop_map(Some).boxed()),
        ]),
        quads(ground(flavour, true), any_graph(), 0),
        quads(template(flavour), any_graph(), 0),
        choice(vec![
            (5, Just(Vec::new()).boxed()),
            (
                1,
                // At most one USING: see the data set of queries.
                (
                    vec((Just("USING"), graph()), 0..2),
                    vec((Just("USING NAMED"), graph()), 0..2),
                )
                    .prop_map(|(using, named)| [using, named].concat())
                    .boxed(),
            ),
        ]),
        Patterns::new(flavour).group,
    )
        .prop_map(|(with, delete, insert, using, pattern)| Update::Modify {
            with,
            delete,
            insert,
            using,
            pattern,
        });
    let place = || select(&["GRAPH :g", "GRAPH :h", "DEFAULT", "GRAPH :nowhere"][..]);
    let operation = choice(vec![
        (2, data("INSERT", with_blanks)),
        (2, data("DELETE", ground(flavour, false))),
        (
            2,
            quads(ground(flavour, true), any_graph(), 1)
                .prop_map(Update::DeleteWhere)
                .boxed(),
        ),
        (8, modify.boxed()),
        (
            1,
            (
                select(&["CLEAR", "DROP"][..]),
                select(&["GRAPH :g", "DEFAULT", "NAMED", "ALL", "GRAPH :nowhere"][..]),
            )
                .prop_map(|(v, t)| Update::Clear(v, t))
                .boxed(),
        ),
        (
            2,
            (select(&["ADD", "MOVE", "COPY"][..]), place(), place())
                .prop_map(|(v, a, b)| Update::Move(v, a, b))
                .boxed(),
        ),
    ]);
    vec(operation, 1..4).boxed()
}

fn blank() -> BoxedStrategy<Node> {
    Just(Node::Text("_:new".to_owned())).boxed()
}
