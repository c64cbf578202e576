//! Graph patterns.

use super::expression::Expressions;
use super::path::path;
use super::query::subquery;
use super::terms::{constant, graph, iri, predicate, text_node, var, var_node};
use super::{choice, Flavour};
use crate::syntax::{write_group, Element, Group, Node, Triple, Values, Var};
use proptest::collection::vec;
use proptest::prelude::*;

/// How many groups may be inside each other.
const DEPTH: usize = 2;

/// The groups and expressions of the topmost layer.
pub struct Patterns {
    /// Groups.
    pub group: BoxedStrategy<Group>,
    /// Expressions.
    pub expressions: Expressions,
}

impl Patterns {
    /// All layers.
    pub fn new(flavour: Flavour) -> Self {
        let flat = Expressions::simple(flavour).above(flavour, None);
        let mut layer = Self {
            group: group(vec![(1, triples(flavour))], 3),
            expressions: flat.clone(),
        };
        for _ in 0..DEPTH {
            layer = layer.above(flavour, &flat);
        }
        layer
    }

    fn above(&self, flavour: Flavour, flat: &Expressions) -> Self {
        let pattern = self.group.clone().prop_map(without_minus).boxed();
        let expressions = flat.above(flavour, Some(pattern));
        let inner = || self.group.clone();
        let any = expressions.any.clone();
        let elements = vec![
            (6, triples(flavour)),
            (4, inner().prop_map(Element::Optional).boxed()),
            (2, vec(inner(), 2..4).prop_map(Element::Union).boxed()),
            (2, inner().prop_map(Element::Minus).boxed()),
            (
                4,
                expressions
                    .boolean
                    .clone()
                    .prop_map(Element::Filter)
                    .boxed(),
            ),
            (
                3,
                (any, var()).prop_map(|(e, v)| Element::Bind(e, v)).boxed(),
            ),
            (2, values(flavour).prop_map(Element::Values).boxed()),
            (2, graph_group(flavour, inner())),
            (1, inner().prop_map(Element::Nested).boxed()),
            (
                2,
                subquery(inner(), &expressions, flavour)
                    .prop_map(|s| Element::Select(Box::new(s)))
                    .boxed(),
            ),
        ];
        Self {
            group: group(elements, 4),
            expressions,
        }
    }
}

fn group(elements: Vec<(u32, BoxedStrategy<Element>)>, most: usize) -> BoxedStrategy<Group> {
    vec(choice(elements), 0..most).boxed()
}

fn graph_name() -> BoxedStrategy<Node> {
    choice(vec![(2, text_node(graph())), (3, var_node())])
}

fn triples(flavour: Flavour) -> BoxedStrategy<Element> {
    let several = (path_pattern(flavour), vec(plain_triple(flavour), 0..2))
        .prop_map(|(mut path, mut others)| {
            path.append(&mut others);
            path
        })
        .boxed();
    let plain = vec(plain_triple(flavour), 1..3).boxed();
    choice(vec![(3, plain), (1, several)])
        .prop_map(Element::Triples)
        .boxed()
}

/// GRAPH. Its group begins with a triple. For the reference, a group that reads no quad has solutions even if there is
/// no such graph, which section 18.6 of SPARQL 1.1 rules out.
fn graph_group(flavour: Flavour, group: BoxedStrategy<Group>) -> BoxedStrategy<Element> {
    (graph_name(), plain_triple(flavour), group)
        .prop_map(|(graph, triple, mut group)| {
            if let Node::Var(var) = graph {
                group = without_sight_of(var, without_minus(group));
            }
            group.insert(0, Element::Triples(vec![triple]));
            Element::Graph(graph, group)
        })
        .boxed()
}

/// The group without MINUS. Within EXISTS and GRAPH with a variable, the reference has the variables of what is around
/// on both sides of MINUS. So the two sides always share one. Section 18.5 counts those of the two patterns.
fn without_minus(group: Group) -> Group {
    let inner = without_minus;
    group
        .into_iter()
        .filter(|element| !matches!(element, Element::Minus(_)))
        .map(|element| match element {
            Element::Optional(group) => Element::Optional(inner(group)),
            Element::Union(groups) => Element::Union(groups.into_iter().map(inner).collect()),
            Element::Graph(graph, group) => Element::Graph(graph, inner(group)),
            Element::Nested(group) => Element::Nested(inner(group)),
            Element::Select(select) => Element::Select(Box::new(crate::syntax::Select {
                pattern: inner(select.pattern),
                ..*select
            })),
            other => other,
        })
        .collect()
}

/// The group without expressions that mention the variable of a GRAPH around: section 18.6 binds it after the group,
/// the reference before.
fn without_sight_of(var: Var, group: Group) -> Group {
    let inner = |group| without_sight_of(var, group);
    let sigil = format!("?{}", crate::syntax::name(var));
    let mentions = |element: &Element| {
        let mut text = String::new();
        write_group(&vec![element.clone()], &mut text);
        text.contains(&sigil)
    };
    group
        .into_iter()
        .filter(|element| match element {
            Element::Filter(_) | Element::Bind(..) | Element::Select(_) => !mentions(element),
            _ => true,
        })
        .map(|element| match element {
            Element::Optional(group) => Element::Optional(inner(group)),
            Element::Union(groups) => Element::Union(groups.into_iter().map(inner).collect()),
            Element::Graph(graph, group) => Element::Graph(graph, inner(group)),
            Element::Nested(group) => Element::Nested(inner(group)),
            other => other,
        })
        .collect()
}

fn subject() -> BoxedStrategy<Node> {
    choice(vec![(5, var_node()), (2, text_node(iri()))])
}

fn object(flavour: Flavour) -> BoxedStrategy<Node> {
    choice(vec![(5, var_node()), (2, text_node(constant(flavour)))])
}

/// A triple pattern.
fn plain_triple(flavour: Flavour) -> BoxedStrategy<Triple> {
    let verb = choice(vec![(3, text_node(predicate())), (1, var_node())]);
    (subject(), verb, object(flavour))
        .prop_map(|(s, p, o)| Triple { terms: [s, p, o] })
        .boxed()
}

/// A path pattern. A constant at its end matches a path of length zero even if it is not in the graph (section 18.4),
/// but not for the reference. Hence there is a triple with each constant beside such a path.
fn path_pattern(flavour: Flavour) -> BoxedStrategy<Vec<Triple>> {
    (subject(), path(), object(flavour), var_node(), var_node())
        .prop_map(|(s, mut path, o, x, y)| {
            // With one variable at both ends the reference drops the duplicates of alternatives.
            if matches!((&s, &o), (Node::Var(a), Node::Var(b)) if a == b) {
                path = path.replace("(:p|:q)", ":p");
            }
            let mut triples = Vec::new();
            if path.contains(['?', '*']) {
                let beside = |terms| Triple { terms };
                if let Node::Text(_) = s {
                    triples.push(beside([s.clone(), x.clone(), y.clone()]));
                }
                if let Node::Text(_) = o {
                    triples.push(beside([x, y, o.clone()]));
                }
            }
            triples.insert(
                0,
                Triple {
                    terms: [s, Node::Text(path), o],
                },
            );
            triples
        })
        .boxed()
}

/// An inline table of one or two variables.
pub fn values(flavour: Flavour) -> BoxedStrategy<Values> {
    let cell = || {
        choice(vec![
            (4, constant(flavour).prop_map(Some).boxed()),
            (1, Just(None).boxed()),
        ])
    };
    let first_two: BoxedStrategy<(Var, bool)> = (var(), any::<bool>()).boxed();
    (first_two, vec((cell(), cell()), 0..4))
        .prop_map(|((first, single), rows)| Values {
            vars: if single {
                vec![first]
            } else {
                vec![first, (first + 1) % crate::syntax::VARS]
            },
            rows: rows
                .into_iter()
                .map(|(a, b)| if single { vec![a] } else { vec![a, b] })
                .collect(),
        })
        .boxed()
}
