//! Property paths (SPARQL 1.1 section 9 and 18.4): patterns where the path is of fixed length, WITH RECURSIVE where it
//! is not.

use std::collections::BTreeSet;
use std::rc::Rc;

use spargebra::algebra::PropertyPathExpression as Path;
use spargebra::term::{NamedNode, TermPattern, Variable};

use crate::block::{parenthesised, Block};
use crate::column::{constant, Col, Kind, Vars};
use crate::error::Error;
use crate::node::{Node, Predicate};
use crate::pattern_properties::is_flat;
use crate::translator::{Env, Graph, Translator};

/// Whether the path is flat, or one of its ends is known before it is evaluated.
pub(crate) fn is_anchored(
    subject: &TermPattern,
    path: &Path,
    object: &TermPattern,
    env: &Env,
) -> bool {
    let known = |node: Node| match node {
        Node::Constant(_) => true,
        Node::Variable(v) => known_id(&v, env).is_some(),
    };
    is_flat(path) || known(Node::from(subject)) || known(Node::from(object))
}

/// A certainly bound id of the variable from outside the path, and whether the variable stands for a constant (EXISTS).
fn known_id(variable: &Variable, env: &Env) -> Option<(Col, bool)> {
    let usable = |vars: &Vars| {
        vars.get(variable)
            .filter(|c| !c.nullable && c.id.is_some())
            .cloned()
    };
    match usable(&env.outer) {
        Some(col) => Some((col, true)),
        None => usable(&env.sideways).map(|col| (col, false)),
    }
}

/// Where a walk starts.
struct Start {
    col: Col,
    /// Whether the start is a term of the query, which a path of length zero matches even if the graph does not know
    /// it.
    constant: bool,
    /// Whether its expression belongs to a FROM entry beside the path.
    lateral: bool,
}

/// How often the step of a path is repeated.
#[derive(Clone, Copy, PartialEq)]
enum Repeat {
    ZeroOrOne,
    ZeroOrMore,
    OneOrMore,
}

impl Translator<'_> {
    /// The solutions of a path pattern.
    pub fn path(
        &mut self,
        subject: &TermPattern,
        path: &Path,
        object: &TermPattern,
        env: &Env,
    ) -> Result<Block, Error> {
        self.path_between(&Node::from(subject), path, &Node::from(object), env)
    }

    fn path_between(
        &mut self,
        subject: &Node,
        path: &Path,
        object: &Node,
        env: &Env,
    ) -> Result<Block, Error> {
        Ok(match path {
            Path::NamedNode(iri) => {
                let predicate = Predicate::Node(Node::Constant(iri.to_string()));
                self.quad_pattern(subject, &predicate, object, env)
            }
            Path::NegatedPropertySet(iris) => {
                let iris: Vec<String> = iris.iter().map(ToString::to_string).collect();
                self.quad_pattern(subject, &Predicate::NoneOf(&iris), object, env)
            }
            Path::Reverse(inner) => self.path_between(object, inner, subject, env)?,
            Path::Sequence(a, b) => self.sequence(subject, a, b, object, env)?,
            Path::Alternative(..) => {
                if let Some(iris) = distinct_predicates(path) {
                    self.quad_pattern(subject, &Predicate::OneOf(&iris), object, env)
                } else {
                    let mut branches = Vec::new();
                    alternatives(path, &mut branches);
                    let blocks = branches
                        .into_iter()
                        .map(|branch| self.path_between(subject, branch, object, env))
                        .collect::<Result<Vec<_>, _>>()?;
                    self.union_of(blocks)
                }
            }
            Path::ZeroOrOne(inner) => {
                self.repeated(subject, inner, object, Repeat::ZeroOrOne, env)?
            }
            Path::ZeroOrMore(inner) => {
                self.repeated(subject, inner, object, Repeat::ZeroOrMore, env)?
            }
            Path::OneOrMore(inner) => {
                self.repeated(subject, inner, object, Repeat::OneOrMore, env)?
            }
        })
    }

    /// Both parts, joined in the middle; the part whose other end is known comes first and gives the other one its
    /// start.
    fn sequence(
        &mut self,
        subject: &Node,
        a: &Path,
        b: &Path,
        object: &Node,
        env: &Env,
    ) -> Result<Block, Error> {
        let middle = self.hidden("m");
        let node = Node::Variable(middle.clone());
        let known = |n: &Node| match n {
            Node::Constant(_) => true,
            Node::Variable(v) => known_id(v, env).is_some(),
        };
        let backwards = !is_flat(a) && (is_flat(b) || (!known(subject) && known(object)));
        let order = if backwards {
            [(&node, b, object), (subject, a, &node)]
        } else {
            [(subject, a, &node), (&node, b, object)]
        };
        let mut block = Block::default();
        let mut starts = env.starts.clone();
        for (n, (from, path, to)) in order.into_iter().enumerate() {
            let mut inner = env.clone();
            for (variable, col) in block.vars.iter() {
                inner.sideways.set(variable.clone(), col.clone());
            }
            inner.starts = starts.take();
            let next = self.path_between(from, path, to, &inner)?;
            block = block.join(next, &mut self.params);
            if n == 0 && is_flat(path) && env.outer.is_empty() && !block.lateral {
                starts = self.starts_behind(env, &block);
            }
        }
        block.vars.remove(&middle);
        Ok(block)
    }

    /// The starts of the second part of a path: the ends of the first part, for the known solutions beside it.
    fn starts_behind(&mut self, env: &Env, first: &Block) -> Option<Rc<Block>> {
        let joined = match &env.starts {
            Some(starts) => starts
                .as_ref()
                .clone()
                .join(first.clone(), &mut self.params),
            None if env.sideways.is_empty() => first.clone(),
            None => return None,
        };
        Some(Rc::new(joined))
    }

    fn repeated(
        &mut self,
        subject: &Node,
        step: &Path,
        object: &Node,
        repeat: Repeat,
        env: &Env,
    ) -> Result<Block, Error> {
        // A start that is the same for all solutions is walked from once, one that they bring along for each of them.
        // In EXISTS, a variable from outside stands for another constant with each solution. So the term at the other
        // end is the better start, unless its walk is in another graph with each solution, too.
        let is_term = |node: &Node| matches!(node, Node::Constant(_));
        let same_graph = !matches!(env.graph, Graph::OfSolution(_));
        let object_first = is_term(object) && !is_term(subject) && same_graph;
        let forward = self.start(subject, env).filter(|_| !object_first);
        if let Some(start) = forward.as_ref().filter(|start| !start.lateral) {
            return self.walk(subject, start, step, object, repeat, env);
        }
        let backward = self.start(object, env);
        if let Some(start) = backward.filter(|start| forward.is_none() || !start.lateral) {
            let step = Path::Reverse(Box::new(step.clone()));
            return self.walk(object, &start, &step, subject, repeat, env);
        }
        match forward {
            Some(start) => self.walk(subject, &start, step, object, repeat, env),
            None => self.all_pairs(subject, step, object, repeat, env),
        }
    }

    fn start(&mut self, node: &Node, env: &Env) -> Option<Start> {
        match node {
            Node::Constant(text) => {
                let kind = if text.starts_with('<') {
                    Kind::Iri
                } else {
                    Kind::Any
                };
                Some(Start {
                    col: constant(text, kind, &mut self.params),
                    constant: true,
                    lateral: false,
                })
            }
            Node::Variable(variable) => known_id(variable, env).map(|(col, constant)| Start {
                col,
                constant,
                lateral: !constant,
            }),
        }
    }

    /// What can be reached from a known start (ALP of section 18.4: each node once for each start).
    fn walk(
        &mut self,
        from: &Node,
        start: &Start,
        step: &Path,
        to: &Node,
        repeat: Repeat,
        env: &Env,
    ) -> Result<Block, Error> {
        let alias = self.alias();
        // Elsewhere a look-up is a message.
        let looks_up = !self.distributed;
        let together = self.starts(from, start, &alias, env);
        let start_id = match &together {
            Some((_, id)) => id.clone(),
            None => start.col.any().to_owned(),
        };
        let together = together.map(|found| found.0);
        // Of walks from many starts each row has its own.
        let (own, owns) = match together {
            Some(_) => (format!("{start_id} AS a, "), format!("{alias}_walk.a, ")),
            None => Default::default(),
        };
        let starts = together.clone().unwrap_or_default();
        let key = self.graph_key(env);
        // A variable has to be a node of the graph, even for a path of length zero.
        let guard = if start.constant || (key.is_some() && start.col.node_of == key) {
            Vec::new()
        } else {
            vec![self.is_node(&start_id, env)]
        };
        let zero = format!("SELECT {own}{start_id} AS n{}", starts.body_and(&guard));
        let (first, end) = self.step(&start_id, step, looks_up, env)?;
        let first = starts.join(first, &mut self.params);
        let guard = if is_flat(step) { Vec::new() } else { guard };
        let first = format!("SELECT {own}{end} AS n{}", first.body_and(&guard));
        let body = match repeat {
            Repeat::ZeroOrOne => format!("{zero}\nUNION\n{first}"),
            Repeat::ZeroOrMore | Repeat::OneOrMore => {
                let walk = format!("{alias}_walk");
                let (next, end) = self.step(&format!("{walk}.n"), step, looks_up, env)?;
                let next = Block::of_item(walk.clone()).join(next, &mut self.params);
                let first = if repeat == Repeat::ZeroOrMore {
                    zero
                } else {
                    first
                };
                let columns = if owns.is_empty() { "n" } else { "a, n" };
                format!(
                    "WITH RECURSIVE {walk}({columns}) AS {}\nSELECT {owns}{walk}.n FROM {walk}",
                    parenthesised(&format!(
                        "{first}\nUNION\nSELECT {owns}{end} AS n{}",
                        next.body()
                    ))
                )
            }
        };
        let mut block = if together.is_some() {
            Block::of_item(format!("{} AS {alias}(a, b)", parenthesised(&body)))
        } else {
            let keyword = if start.lateral { "LATERAL " } else { "" };
            let body = format!(
                "SELECT {start_id} AS a, walked.n AS b\nFROM {} AS walked(n)",
                parenthesised(&body)
            );
            Block::of_item(format!("{keyword}{} AS {alias}", parenthesised(&body)))
        };
        block.lateral = start.lateral && together.is_none();
        if let Node::Variable(variable) = from {
            let col = start.col.renamed(format!("{alias}.a"));
            self.bind(&mut block, variable, col, env);
        }
        // Otherwise the walk can end where it starts, on a term that the graph need not have.
        let ends_on_quads = repeat == Repeat::OneOrMore && is_flat(step);
        let end = Col {
            id: Some(format!("{alias}.b")),
            term: None,
            nullable: false,
            strict: true,
            unknown: if ends_on_quads {
                BTreeSet::new()
            } else {
                start.col.unknown.clone()
            },
            kind: Kind::Any,
            inlined: None,
            exact: None,
            node_of: if ends_on_quads { key } else { None },
        };
        self.end(&mut block, to, end, env);
        Ok(block)
    }

    /// All starts of a walk as a block, and the id of a start in it, where solutions beside the path bring them along.
    fn starts(
        &mut self,
        from: &Node,
        start: &Start,
        alias: &str,
        env: &Env,
    ) -> Option<(Block, String)> {
        let Node::Variable(variable) = from else {
            return None;
        };
        let starts = env.starts.as_ref().filter(|_| start.lateral)?;
        let id = starts.vars.get(variable)?.id.as_ref()?;
        let body = starts.connected_with(id).body();
        let body = format!("SELECT DISTINCT {id} AS a{body}");
        let name = format!("{alias}_start");
        let block = Block::of_item(format!("{} AS {name}", parenthesised(&body)));
        Some((block, format!("{name}.a")))
    }

    /// Ties the end of a path to its node.
    fn end(&mut self, block: &mut Block, node: &Node, col: Col, env: &Env) {
        match node {
            Node::Constant(text) => {
                let id = constant(text, Kind::Any, &mut self.params);
                block.add_condition(format!("{} = {}", col.any(), id.any()));
            }
            Node::Variable(variable) => self.bind(block, variable, col, env),
        }
    }

    /// One step from an id, and the id of its end.
    /// `looks_up`: few ids are gone on from, each once.
    fn step(
        &mut self,
        start: &str,
        step: &Path,
        looks_up: bool,
        env: &Env,
    ) -> Result<(Block, String), Error> {
        let (from, to) = (self.hidden("a"), self.hidden("b"));
        let mut inner = env.without_sideways();
        // What a step reaches is a node of the graph; the start of the walk itself is checked where it counts.
        let col = Col {
            strict: false,
            node_of: self.graph_key(env),
            ..Col::of_quad(start.to_owned(), Kind::Any)
        };
        inner.sideways.set(from.clone(), col.clone());
        let mut tied = Block::default();
        tied.vars.set(from.clone(), col);
        let mut blocks = Vec::new();
        for branch in branches(step) {
            let block = self.path_between(
                &Node::Variable(from.clone()),
                &branch,
                &Node::Variable(to.clone()),
                &inner,
            )?;
            blocks.push(block);
        }
        let block = if blocks.len() == 1 {
            tied.join(blocks.remove(0), &mut self.params)
        } else if looks_up {
            // Each branch looks up what starts there. A join with all of them reads them whole in each round.
            let mut each = Vec::new();
            for block in blocks {
                let mut branch = tied.clone().join(block, &mut self.params);
                branch.lateral = true;
                each.push(branch);
            }
            self.union_of(each)
        } else {
            let union = self.union_of(blocks);
            tied.join(union, &mut self.params)
        };
        let end = block
            .vars
            .get(&to)
            .map(|c| c.any().to_owned())
            .expect("a path binds its ends");
        Ok((block, end))
    }

    /// SQL condition: the id is subject or object of a quad of the active graph.
    fn is_node(&mut self, id: &str, env: &Env) -> String {
        let mut tests = Vec::new();
        for column in ["s", "o"] {
            let (block, alias) = self.quads(&env.clone());
            let tied = format!("{alias}.{column} = {id}");
            tests.push(format!("EXISTS (SELECT 1{})", block.body_and(&[tied])));
        }
        format!("({})", tests.join(" OR "))
    }

    /// All pairs of nodes that the path connects, when neither end is known.
    fn all_pairs(
        &mut self,
        subject: &Node,
        step: &Path,
        object: &Node,
        repeat: Repeat,
        env: &Env,
    ) -> Result<Block, Error> {
        let (from, to) = (self.hidden("a"), self.hidden("b"));
        let inner = env.without_sideways();
        let block = self.path_between(
            &Node::Variable(from.clone()),
            step,
            &Node::Variable(to.clone()),
            &inner,
        )?;
        let id = |v: &Variable| {
            block
                .vars
                .get(v)
                .map(|c| c.any().to_owned())
                .expect("a path binds its ends")
        };
        let single = format!(
            "SELECT {} AS a, {} AS b{}",
            id(&from),
            id(&to),
            block.body()
        );
        let alias = self.alias();
        let walk = format!("{alias}_walk");
        let mut body = match repeat {
            Repeat::ZeroOrOne => single,
            Repeat::ZeroOrMore | Repeat::OneOrMore => {
                let (block, end) = self.step(&format!("{walk}.b"), step, false, env)?;
                let table = Block::of_item(walk.clone());
                let joined = table.join(block, &mut self.params);
                format!(
                    "WITH RECURSIVE {walk}(a, b) AS {}\nSELECT {walk}.a, {walk}.b FROM {walk}",
                    parenthesised(&format!(
                        "{single}\nUNION\nSELECT {walk}.a, {end} AS b{}",
                        joined.body()
                    ))
                )
            }
        };
        if repeat != Repeat::OneOrMore {
            for column in ["s", "o"] {
                let (block, q) = self.quads(env);
                body = format!(
                    "{}\nUNION\nSELECT {q}.{column} AS a, {q}.{column} AS b{}",
                    if body.starts_with("WITH") {
                        parenthesised(&body)
                    } else {
                        body
                    },
                    block.body()
                );
            }
        }
        let mut pairs = Block::of_item(format!("{} AS {alias}(a, b)", parenthesised(&body)));
        let key = self.graph_key(env);
        let end = |column: &str| Col {
            node_of: key.clone(),
            ..Col::of_quad(format!("{alias}.{column}"), Kind::Any)
        };
        self.end(&mut pairs, subject, end("a"), env);
        self.end(&mut pairs, object, end("b"), env);
        Ok(pairs)
    }
}

/// The predicates of an alternative of different IRIs, in N-Triples form: no quad matches two of them.
fn distinct_predicates(path: &Path) -> Option<Vec<String>> {
    let mut branches = Vec::new();
    alternatives(path, &mut branches);
    let mut iris = Vec::new();
    for branch in branches {
        let Path::NamedNode(iri) = branch else {
            return None;
        };
        let iri = iri.to_string();
        if iris.contains(&iri) {
            return None;
        }
        iris.push(iri);
    }
    Some(iris)
}

/// The alternatives of a step, of which only the set of ends matters. Predicates of one direction are one.
fn branches(step: &Path) -> Vec<Path> {
    let (mut ways, mut others) = ([Vec::new(), Vec::new()], Vec::new());
    collect_branches(step, false, &mut ways, &mut others);
    let [forward, backward] = ways.map(|iris| {
        let mut paths = iris.into_iter().map(Path::NamedNode);
        let first = paths.next()?;
        Some(paths.fold(first, |all, path| {
            Path::Alternative(Box::new(all), Box::new(path))
        }))
    });
    let backward = backward.map(|path| Path::Reverse(Box::new(path)));
    forward.into_iter().chain(backward).chain(others).collect()
}

fn collect_branches(
    path: &Path,
    is_reversed: bool,
    ways: &mut [Vec<NamedNode>; 2],
    others: &mut Vec<Path>,
) {
    match path {
        Path::NamedNode(iri) => {
            let way = &mut ways[usize::from(is_reversed)];
            if !way.contains(iri) {
                way.push(iri.clone());
            }
        }
        Path::Reverse(inner) => collect_branches(inner, !is_reversed, ways, others),
        Path::Alternative(a, b) => {
            collect_branches(a, is_reversed, ways, others);
            collect_branches(b, is_reversed, ways, others);
        }
        other if is_reversed => others.push(Path::Reverse(Box::new(other.clone()))),
        other => others.push(other.clone()),
    }
}

fn alternatives<'p>(path: &'p Path, branches: &mut Vec<&'p Path>) {
    match path {
        Path::Alternative(a, b) => {
            alternatives(a, branches);
            alternatives(b, branches);
        }
        other => branches.push(other),
    }
}
