//! Terms and predicates of triple patterns.

use spargebra::term::{NamedNodePattern, TermPattern, Variable};

/// A term of a pattern.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Node {
    /// A constant in N-Triples form, and whether it is an IRI.
    Constant(String),
    /// A variable, or a blank node, which is a variable that only its group can name.
    Variable(Variable),
}

impl From<&TermPattern> for Node {
    fn from(term: &TermPattern) -> Self {
        match term {
            TermPattern::NamedNode(iri) => Self::Constant(iri.to_string()),
            TermPattern::Literal(literal) => Self::Constant(literal.to_string()),
            TermPattern::BlankNode(node) => {
                Self::Variable(Variable::new_unchecked(format!("_:{}", node.as_str())))
            }
            TermPattern::Variable(variable) => Self::Variable(variable.clone()),
        }
    }
}

impl From<&NamedNodePattern> for Node {
    fn from(term: &NamedNodePattern) -> Self {
        match term {
            NamedNodePattern::NamedNode(iri) => Self::Constant(iri.to_string()),
            NamedNodePattern::Variable(variable) => Self::Variable(variable.clone()),
        }
    }
}

/// What the predicate of a pattern may be.
pub(crate) enum Predicate<'a> {
    Node(Node),
    /// One of these IRIs, in N-Triples form.
    OneOf(&'a [String]),
    /// None of these.
    NoneOf(&'a [String]),
}
