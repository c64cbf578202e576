//! The state of a translation, and what surrounds the pattern at hand. Patterns, expressions, paths and query forms are
//! translated by methods of their own files, which call each other as the algebra nests.

use std::rc::Rc;

use spargebra::term::Variable;

use crate::block::Block;
use crate::column::Vars;
use crate::dataset::{Dataset, Target};
use crate::params::Params;

/// The active graph.
#[derive(Clone, Debug)]
pub(crate) enum Graph {
    /// The default graph of the data set.
    Default,
    /// The named graph with this id (an SQL expression).
    Fixed(String),
    /// The named graph that the solution at hand has (an SQL expression).
    OfSolution(String),
    /// Each named graph in turn: every pattern binds this hidden variable to its graph.
    Each(Variable),
}

/// What surrounds the pattern that is being translated.
#[derive(Clone, Debug)]
pub(crate) struct Env {
    pub graph: Graph,
    /// Variables of the solution that an EXISTS pattern is tested on; they stand for constants.
    pub outer: Vars,
    /// Variables of FROM entries before this pattern that it will be joined with on equality: recursive paths start
    /// from them.
    pub sideways: Vars,
    /// Those entries, where reading them once more gives the same solutions: paths start from all of them at once.
    pub starts: Option<Rc<Block>>,
}

impl Env {
    pub fn new() -> Self {
        Self {
            graph: Graph::Default,
            outer: Vars::default(),
            sideways: Vars::default(),
            starts: None,
        }
    }

    pub fn without_sideways(&self) -> Self {
        Self {
            sideways: Vars::default(),
            starts: None,
            ..self.clone()
        }
    }

    /// The environment of a pattern that is joined with a block: what it sees of the block. `plain`: the block can
    /// stand in several places.
    pub fn beside(&self, block: &Block, plain: bool) -> Self {
        let mut env = self.clone();
        for (variable, col) in block.vars.iter() {
            env.sideways.set(variable.clone(), col.clone());
        }
        let alone = self.sideways.is_empty() && self.outer.is_empty() && !block.lateral;
        env.starts = (plain && alone).then(|| Rc::new(block.clone()));
        env
    }
}

/// A translation under way.
pub(crate) struct Translator<'a> {
    pub params: Params,
    /// Quoted, schema-qualified name of the quad table.
    pub table: &'a str,
    /// Looking up a quad may be a message.
    pub distributed: bool,
    /// Base IRI of the query, for IRI().
    pub base: Option<String>,
    pub dataset: Dataset,
    /// Whether the terms of the solutions will be stored.
    pub keeps_terms: bool,
    aliases: usize,
    quads: usize,
    hidden: usize,
    /// Groups whose solutions have numbers.
    numbered: u64,
}

impl<'a> Translator<'a> {
    pub fn new(target: Target<'a>, base: Option<String>, dataset: Dataset) -> Self {
        Self {
            params: Params::default(),
            table: target.table,
            distributed: target.distributed,
            base,
            dataset,
            keeps_terms: false,
            aliases: 0,
            quads: 0,
            hidden: 0,
            numbered: 0,
        }
    }

    /// A new alias for a derived table.
    pub fn alias(&mut self) -> String {
        self.aliases += 1;
        format!("t{}", self.aliases)
    }

    /// A new alias for the quad table.
    pub fn quad_alias(&mut self) -> String {
        self.quads += 1;
        format!("q{}", self.quads)
    }

    /// A new variable that no query can name.
    pub fn hidden(&mut self, prefix: &str) -> Variable {
        self.hidden += 1;
        Variable::new_unchecked(format!("#{prefix}{}", self.hidden))
    }

    /// The block as a derived table.
    pub fn wrap(&mut self, block: Block) -> Block {
        let alias = self.alias();
        block.derived(&alias, false, "")
    }

    /// The block with a number for each solution.
    pub fn numbered(&mut self, mut block: Block) -> Block {
        if block.row.is_none() {
            // Solutions of different groups have different numbers: BNODE("a") of each is a node of its own.
            block.row = Some(match self.numbered {
                0 => "row_number() OVER ()".to_owned(),
                groups => format!("row_number() OVER () + {}", groups << 40),
            });
            self.numbered += 1;
            block = self.wrap(block);
        }
        block
    }
}
