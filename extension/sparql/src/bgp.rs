//! Basic graph patterns: one quad table entry of the FROM list for each triple pattern.

use spargebra::term::TriplePattern;

use crate::block::Block;
use crate::column::{Col, Kind};
use crate::dataset::Merge;
use crate::error::Error;
use crate::node::{Node, Predicate};
use crate::params::ParamKind;
use crate::translator::{Env, Graph, Translator};

impl Translator<'_> {
    pub fn bgp(&mut self, patterns: &[TriplePattern], env: &Env) -> Result<Block, Error> {
        let mut block = Block::default();
        for pattern in patterns {
            let quad = self.quad_pattern(
                &Node::from(&pattern.subject),
                &Predicate::Node(Node::from(&pattern.predicate)),
                &Node::from(&pattern.object),
                env,
            );
            block = block.join(quad, &mut self.params);
        }
        Ok(block)
    }

    /// The quads of the active graph that match.
    pub fn quad_pattern(
        &mut self,
        subject: &Node,
        predicate: &Predicate<'_>,
        object: &Node,
        env: &Env,
    ) -> Block {
        let (mut block, alias) = self.quads(env);
        let node_of = self.graph_key(env);
        let end = |column: &str, kind| Col {
            node_of: node_of.clone(),
            ..Col::of_quad(format!("{alias}.{column}"), kind)
        };
        self.position(&mut block, subject, end("s", Kind::Resource), env);
        let p = Col::of_quad(format!("{alias}.p"), Kind::Iri);
        match predicate {
            Predicate::Node(node) => self.position(&mut block, node, p, env),
            Predicate::OneOf(iris) => {
                let condition = self.is_one_of(p.any(), iris);
                block.add_condition(condition);
            }
            Predicate::NoneOf(iris) => {
                for iri in *iris {
                    let id = self.params.sql(ParamKind::Id, iri);
                    block.add_condition(format!("{} <> {id}", p.any()));
                }
            }
        }
        self.position(&mut block, object, end("o", Kind::Any), env);
        block
    }

    fn position(&mut self, block: &mut Block, node: &Node, col: Col, env: &Env) {
        match node {
            Node::Constant(text) => {
                let id = self.params.sql(ParamKind::Id, text);
                block.add_condition(format!("{} = {id}", col.any()));
            }
            Node::Variable(variable) => self.bind(block, variable, col, env),
        }
    }

    /// All quads of the active graph, and the alias that has their columns.
    pub fn quads(&mut self, env: &Env) -> (Block, String) {
        let alias = self.quad_alias();
        let table = self.table;
        let plain = Block::of_item(format!("{table} AS {alias}"));
        let g = format!("{alias}.g");
        let mut block = plain;
        match &env.graph {
            Graph::Fixed(id) | Graph::OfSolution(id) => {
                block.add_condition(format!("{g} = {id}"));
            }
            Graph::Each(variable) => {
                self.bind(&mut block, variable, Col::of_quad(g, Kind::Iri), env);
            }
            Graph::Default => match self.dataset.default.clone() {
                Merge::Own => block.add_condition(format!("{g} = 0")),
                Merge::All => block.add_condition(first_of_triple(table, &alias, "")),
                Merge::Of(graphs) if graphs.len() < 2 => {
                    let condition = self.is_one_of(&g, &graphs);
                    block.add_condition(condition);
                }
                Merge::Of(graphs) => {
                    let condition = self.is_one_of(&g, &graphs);
                    block.add_condition(condition);
                    let same = format!(" AND {}", self.is_one_of("gx.g", &graphs));
                    block.add_condition(first_of_triple(table, &alias, &same));
                }
            },
        }
        (block, alias)
    }

    /// A name of the active graph that tells it from any other within the query, where it is a single one.
    pub fn graph_key(&mut self, env: &Env) -> Option<String> {
        match &env.graph {
            Graph::Default => Some("default".to_owned()),
            Graph::Fixed(id) | Graph::OfSolution(id) => Some(id.clone()),
            Graph::Each(_) => None,
        }
    }
}

/// The merge of graphs has each triple once: of its quads that are in them, the one in the first graph stands for it.
/// Nodes of the executor know this condition (`pgquad/src/nodes/triples.rs`).
fn first_of_triple(table: &str, alias: &str, of_graphs: &str) -> String {
    format!(
        "NOT EXISTS (SELECT 1 FROM {table} AS gx WHERE gx.s = {alias}.s AND gx.p = {alias}.p \
         AND gx.o = {alias}.o AND gx.g < {alias}.g{of_graphs})"
    )
}
