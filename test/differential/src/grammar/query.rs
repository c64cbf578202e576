//! Queries of the forms SELECT, ASK and CONSTRUCT.

use super::expression::Expressions;
use super::pattern::{values, Patterns};
use super::terms::{constant, graph, iri, predicate, text_node, var, var_node};
use super::{choice, Flavour};
use crate::syntax::{
    write_group, Element, Expr, Group, Node, Projection, Select, Triple, Values, PREFIXES,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

/// A query with its data set.
#[derive(Clone, Debug)]
pub struct Query {
    /// What it asks.
    pub shape: Shape,
    /// `FROM`.
    pub from: Vec<&'static str>,
    /// `FROM NAMED`.
    pub from_named: Vec<&'static str>,
}

/// The form of a query.
#[derive(Clone, Debug)]
pub enum Shape {
    /// SELECT.
    Select(Box<Select>),
    /// ASK.
    Ask(Group),
    /// CONSTRUCT.
    Construct(Vec<Triple>, Group),
}

impl Query {
    /// The text.
    pub fn text(&self) -> String {
        let mut out = PREFIXES.to_owned();
        let dataset = self.dataset();
        match &self.shape {
            Shape::Select(query) => query.write(&dataset, &mut out),
            Shape::Ask(group) => {
                out.push_str(&format!("ASK{dataset} "));
                write_group(group, &mut out);
            }
            Shape::Construct(template, group) => {
                out.push_str("CONSTRUCT { ");
                template.iter().for_each(|triple| triple.write(&mut out));
                out.push_str(&format!("}}{dataset} WHERE "));
                write_group(group, &mut out);
            }
        }
        out
    }

    /// The data set clause.
    fn dataset(&self) -> String {
        let from = self.from.iter().map(|graph| format!(" FROM {graph}"));
        let named = self.from_named.iter().map(|g| format!(" FROM NAMED {g}"));
        from.chain(named).collect()
    }

    /// The query without what leaves a choice of solutions: REDUCED, and a slice.
    pub fn without_choice(&self) -> Self {
        let mut query = self.clone();
        if let Shape::Select(select) = &mut query.shape {
            select.slice = None;
            if select.modifier == "REDUCED" {
                select.modifier = "";
            }
        }
        query
    }
}

/// A query.
pub fn query(flavour: Flavour) -> BoxedStrategy<Query> {
    let patterns = Patterns::new(flavour);
    let group = patterns.group.clone();
    let shape = choice(vec![
        (
            8,
            top_select(&patterns, flavour)
                .prop_map(|select| Shape::Select(Box::new(select)))
                .boxed(),
        ),
        (1, group.clone().prop_map(Shape::Ask).boxed()),
        (
            1,
            (vec(template(flavour), 1..3), group)
                .prop_map(|(t, g)| Shape::Construct(t, g))
                .boxed(),
        ),
    ]);
    // The merge of several graphs has each triple once (section 13.2), for the reference once for each graph.
    let default = choice(vec![
        (8, Just(Vec::new()).boxed()),
        (1, vec(graph(), 1).boxed()),
    ]);
    let named = choice(vec![
        (8, Just(Vec::new()).boxed()),
        (1, graph().prop_map(|g| vec![g]).boxed()),
        (1, Just(vec![":g", ":h"]).boxed()),
    ]);
    (shape, default, named)
        .prop_map(|(shape, from, from_named)| Query {
            shape,
            from,
            from_named,
        })
        .boxed()
}

/// A triple of a template; its variables may be bound to what cannot stand there.
pub fn template(flavour: Flavour) -> BoxedStrategy<Triple> {
    let blank = || Just(Node::Text("_:new".to_owned())).boxed();
    let subject = choice(vec![(4, var_node()), (1, text_node(iri())), (1, blank())]);
    let verb = choice(vec![(2, text_node(predicate())), (1, var_node())]);
    let object = choice(vec![
        (4, var_node()),
        (1, text_node(constant(flavour))),
        (1, blank()),
    ]);
    (subject, verb, object)
        .prop_map(|(s, p, o)| Triple { terms: [s, p, o] })
        .boxed()
}

fn top_select(patterns: &Patterns, flavour: Flavour) -> BoxedStrategy<Select> {
    let order = choice(vec![
        (2, Just(Vec::new()).boxed()),
        (1, vec((var(), any::<bool>()), 1..3).boxed()),
    ]);
    let slice = choice(vec![
        (5, Just(None).boxed()),
        (1, (0..4_usize, 0..6_usize).prop_map(Some).boxed()),
    ]);
    let end = choice(vec![
        (9, Just(None).boxed()),
        (1, values(flavour).prop_map(Some).boxed()),
    ]);
    (
        plain(patterns.group.clone(), &patterns.expressions, flavour, true),
        order,
        slice,
        end,
    )
        .prop_map(
            |(query, order, slice, values): (Select, _, _, Option<Values>)| {
                let mut query = Select {
                    values,
                    slice,
                    ..query
                };
                let columns = query.columns();
                query.order = order;
                query
                    .order
                    .retain(|(v, _)| columns.contains(&crate::syntax::name(*v)));
                query
            },
        )
        .boxed()
}

/// A query with aggregates or without, with no order and no slice.
fn plain(
    group: BoxedStrategy<Group>,
    expressions: &Expressions,
    flavour: Flavour,
    reduced: bool,
) -> BoxedStrategy<Select> {
    let modifiers: &[&str] = if reduced {
        &["", "DISTINCT", "REDUCED"]
    } else {
        &["", "DISTINCT"]
    };
    let items = (vec(var(), 0..4), vec(expressions.any.clone(), 0..2))
        .prop_map(|(vars, expressions)| Projection::Items(vars, expressions));
    let projection = choice(vec![
        (2, Just(Projection::Star).boxed()),
        (3, items.boxed()),
    ]);
    let simple = (select(modifiers), projection, group.clone()).prop_map(
        |(modifier, projection, pattern)| Select {
            modifier,
            projection,
            pattern,
            group_by: None,
            having: None,
            order: Vec::new(),
            slice: None,
            values: None,
        },
    );
    choice(vec![
        (3, simple.boxed()),
        (1, grouped(group, expressions, flavour)),
    ])
}

fn grouped(
    group: BoxedStrategy<Group>,
    expressions: &Expressions,
    flavour: Flavour,
) -> BoxedStrategy<Select> {
    let aggregate = aggregate(expressions, flavour);
    let having = choice(vec![
        (4, Just(None).boxed()),
        (
            1,
            (select(&[">", "<=", "="][..]), aggregate.clone())
                .prop_map(|(o, a)| Some(Expr::Infix(o, Box::new(a), Box::new(Expr::Atom("1")))))
                .boxed(),
        ),
    ]);
    (vec(var(), 0..3), vec(aggregate, 1..3), having, group)
        .prop_map(|(keys, aggregates, having, pattern)| Select {
            modifier: "",
            projection: Projection::Items(keys.clone(), aggregates),
            pattern,
            group_by: Some(keys),
            having,
            order: Vec::new(),
            slice: None,
            values: None,
        })
        .boxed()
}

/// An aggregate whose value does not depend on the order of the solutions.
///
/// An error of the argument of COUNT is no value (section 18.5.1.2), but makes the count of the reference an error:
/// COALESCE.
fn aggregate(expressions: &Expressions, flavour: Flavour) -> BoxedStrategy<Expr> {
    let of = |names: &'static [&'static str], distinct: bool, argument: BoxedStrategy<Expr>| {
        (select(names), argument)
            .prop_map(move |(name, argument)| Expr::Aggregate(name, distinct, Box::new(argument)))
            .boxed()
    };
    let valid = || {
        let default = |e| Expr::Call("COALESCE", vec![e, Expr::Atom("\"error\"")]);
        expressions.any.clone().prop_map(default).boxed()
    };
    let variable = || var().prop_map(Expr::Var).boxed();
    let number = || expressions.number.clone();
    let mut arms = vec![
        (2, Just(Expr::Atom("COUNT(*)")).boxed()),
        (1, of(&["COUNT"], false, valid())),
        (1, of(&["COUNT"], false, variable())),
        (2, of(&["SUM", "AVG"], false, number())),
    ];
    if flavour == Flavour::Canonical {
        let call = |name, argument: BoxedStrategy<Expr>| {
            argument
                .prop_map(move |argument| Expr::Call(name, vec![argument]))
                .boxed()
        };
        let string = || call("STR", expressions.any.clone());
        arms.extend([
            (1, Just(Expr::Atom("COUNT(DISTINCT *)")).boxed()),
            (1, of(&["SUM", "AVG"], true, number())),
            (1, of(&["COUNT"], true, valid())),
            (1, of(&["COUNT"], true, variable())),
            (1, of(&["MIN", "MAX"], false, call("xsd:decimal", number()))),
            (1, of(&["MIN", "MAX"], false, string())),
            (1, call("STRLEN", of(&["GROUP_CONCAT"], false, string()))),
            (1, call("STRLEN", of(&["GROUP_CONCAT"], true, string()))),
        ]);
    }
    choice(arms)
}

/// A subquery. One with a slice is over distinct IRIs, whose order is total (section 15.1).
pub fn subquery(
    group: BoxedStrategy<Group>,
    expressions: &Expressions,
    flavour: Flavour,
) -> BoxedStrategy<Select> {
    let sliced = (group.clone(), var(), any::<bool>(), 0..3_usize, 0..4_usize).prop_map(
        |(mut pattern, var, descending, offset, limit)| {
            let is_iri = Expr::Call("isIRI", vec![Expr::Var(var)]);
            pattern.push(Element::Filter(is_iri));
            Select {
                modifier: "DISTINCT",
                projection: Projection::Items(vec![var], Vec::new()),
                pattern,
                group_by: None,
                having: None,
                order: vec![(var, descending)],
                slice: Some((offset, limit)),
                values: None,
            }
        },
    );
    let with_values = (
        plain(group, expressions, flavour, false),
        choice(vec![
            (6, Just(None).boxed()),
            (1, values(flavour).prop_map(Some).boxed()),
        ]),
    )
        .prop_map(|(query, values)| Select { values, ..query });
    choice(vec![(4, with_values.boxed()), (1, sliced.boxed())])
}

/// Whether the query computes terms, rather than only finding them.
pub fn computes(query: &Query) -> bool {
    match &query.shape {
        Shape::Select(select) => select_computes(select),
        Shape::Ask(group) | Shape::Construct(_, group) => group_computes(group),
    }
}

fn select_computes(select: &Select) -> bool {
    let Select {
        projection,
        pattern,
        ..
    } = select;
    let named = matches!(projection, Projection::Items(_, named) if !named.is_empty());
    named || group_computes(pattern)
}

fn group_computes(group: &Group) -> bool {
    group.iter().any(|element| match element {
        Element::Bind(..) => true,
        Element::Triples(_) | Element::Minus(_) | Element::Filter(_) | Element::Values(_) => false,
        Element::Optional(group) | Element::Graph(_, group) | Element::Nested(group) => {
            group_computes(group)
        }
        Element::Union(groups) => groups.iter().any(group_computes),
        Element::Select(select) => select_computes(select),
    })
}
