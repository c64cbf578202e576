//! The data set that a request reads (SPARQL 1.1 section 13).

use spargebra::algebra::QueryDataset;
use spargebra::term::NamedNode;

/// The default graph for a request that does not say what it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum DefaultGraph {
    /// The default graph of the store.
    #[default]
    Own,
    /// The merge of all graphs of the store, its default graph among them.
    Union,
}

/// What a request is translated for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Target<'a> {
    /// The quad table, quoted and schema-qualified.
    pub table: &'a str,
    /// The default graph of what the request reads.
    pub default_graph: DefaultGraph,
}

impl<'a> From<&'a str> for Target<'a> {
    /// A quad table, its default graph as the specification has it.
    fn from(table: &'a str) -> Self {
        Self {
            table,
            default_graph: DefaultGraph::Own,
        }
    }
}

/// The graphs that are the default graph of a data set.
#[derive(Clone, Debug)]
pub(crate) enum Merge {
    /// Graph 0 alone.
    Own,
    /// All graphs.
    All,
    /// Those with these names, in N-Triples form.
    Of(Vec<String>),
}

/// A data set.
#[derive(Clone, Debug)]
pub(crate) struct Dataset {
    pub default: Merge,
    /// Named graphs, in N-Triples form; `None`: all but graph 0.
    pub named: Option<Vec<String>>,
}

impl Dataset {
    /// The data set that FROM or USING clauses name, or the one of the target.
    pub fn new(named: Option<&QueryDataset>, default_graph: DefaultGraph) -> Self {
        match (named, default_graph) {
            (Some(named), _) => Self {
                default: Merge::Of(names(&named.default)),
                named: named.named.as_deref().map(names),
            },
            (None, DefaultGraph::Own) => Self {
                default: Merge::Own,
                named: None,
            },
            (None, DefaultGraph::Union) => Self {
                default: Merge::All,
                named: None,
            },
        }
    }
}

/// The names, each once, in their order: one that does not depend on how they are spelt.
fn names(iris: &[NamedNode]) -> Vec<String> {
    let mut names: Vec<String> = Vec::with_capacity(iris.len());
    for name in iris.iter().map(ToString::to_string) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}
