//! The data set that a request reads (SPARQL 1.1 section 13).

use spargebra::algebra::QueryDataset;
use spargebra::term::NamedNode;

use crate::error::Error;

/// The default graph for a request that does not say what it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum DefaultGraph {
    /// The default graph of the store.
    #[default]
    Own,
    /// The merge of all graphs of the store, its default graph among them.
    Union,
}

/// The data set that comes with a request instead of standing in it (SPARQL 1.1 Protocol section 2.1.4 and 2.2.3). It
/// takes the place of the FROM clauses of a query; an update must not have USING or WITH besides.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Graphs {
    /// IRIs of the graphs whose merge is the default graph, in N-Triples form.
    default: Vec<String>,
    /// IRIs of the named graphs, in N-Triples form.
    named: Vec<String>,
}

impl Graphs {
    /// The data set of these graphs.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a name that is no absolute IRI.
    pub fn new(default: &[String], named: &[String]) -> Result<Self, Error> {
        let iri = |text: &String| match NamedNode::new(text) {
            Ok(iri) => Ok(iri),
            Err(error) => Err(Error::Invalid(format!(
                "\"{text}\" is not an absolute IRI of a graph: {error}"
            ))),
        };
        let of = |texts: &[String]| -> Result<Vec<String>, Error> {
            let iris: Vec<NamedNode> = texts.iter().map(iri).collect::<Result<_, _>>()?;
            Ok(names(&iris))
        };
        Ok(Self {
            default: of(default)?,
            named: of(named)?,
        })
    }
}

/// What a request is translated for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Target<'a> {
    /// The quad table, quoted and schema-qualified.
    pub table: &'a str,
    /// The default graph of what the request reads.
    pub default_graph: DefaultGraph,
    /// The data set that was asked for beside the text.
    pub graphs: Option<&'a Graphs>,
    /// Quads may be on other nodes, where looking one up is a message.
    pub distributed: bool,
}

impl<'a> From<&'a str> for Target<'a> {
    /// A quad table, its default graph as the specification has it.
    fn from(table: &'a str) -> Self {
        Self {
            table,
            default_graph: DefaultGraph::Own,
            graphs: None,
            distributed: false,
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
    /// The data set that was asked for beside the text, the one that FROM or USING clauses name, or all of the target.
    pub fn new(named: Option<&QueryDataset>, target: Target<'_>) -> Self {
        if let Some(graphs) = target.graphs {
            return Self {
                default: Merge::Of(graphs.default.clone()),
                named: Some(graphs.named.clone()),
            };
        }
        match (named, target.default_graph) {
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
