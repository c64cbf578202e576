//! How a SPARQL variable is held by the SQL that is being built: the typing of the plan.

use std::collections::BTreeSet;

use spargebra::term::Variable;

use crate::params::{mark, stand_in, ParamKind, Params};

/// Ids below this one are IRIs (tag 0), see the crate `pgquad-term`, module `id`.
pub(crate) const FIRST_BLANK: u64 = 1 << 59;
/// Ids from [`FIRST_BLANK`] up to this one are blank nodes (tag 1), ids from here on are literals.
pub(crate) const FIRST_LITERAL: u64 = 2 << 59;

/// What is known of the terms of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// Any term.
    Any,
    /// An IRI or a blank node.
    Resource,
    /// An IRI.
    Iri,
}

/// A numeric type whose values are all in their ids, as far as they can occur.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Inlined {
    /// `xsd:integer`. Equal ids are equal values, and the order of ids is that of values.
    Integer,
    /// `xsd:decimal`, of constants.
    Decimal,
    /// `xsd:float`. The order of ids is that of ORDER BY.
    Float,
}

/// Computed values that have one term each, so that equality of values is equality of terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exact {
    /// Equal to itself only: texts, with or without language, and IRIs.
    Itself,
    /// `xsd:integer` in canonical form: equal to numbers of other types, too.
    Integer,
}

/// A variable in scope. At least one of `id` and `term` is present.
///
/// Invariant: within one query, two `id` values are equal exactly when their terms are. A constant that has no id
/// stands as minus its parameter number; `unknown` lists the constants that can stand so in this column, and only
/// those.
#[derive(Clone, Debug)]
pub(crate) struct Col {
    /// SQL expression of type `bigint`.
    pub id: Option<String>,
    /// SQL expression of type `quad.term`.
    pub term: Option<String>,
    /// Parameter numbers of the constants that may have no id.
    pub unknown: BTreeSet<usize>,
    /// Whether the variable may be unbound (SQL NULL).
    pub nullable: bool,
    /// Whether the expressions are NULL when all columns of the FROM items are: such a column can be null-extended by
    /// an outer join as it stands.
    pub strict: bool,
    /// What is known of its terms.
    pub kind: Kind,
    /// The graph (as its SQL expression) in which the terms are known to be subject or object of a quad.
    pub node_of: Option<String>,
    /// The type of all its terms, where they are numbers of ids of their own.
    pub inlined: Option<Inlined>,
    /// What is known of equality with all its terms, where they are computed.
    pub exact: Option<Exact>,
}

impl Col {
    /// A column of a quad table.
    pub fn of_quad(id: String, kind: Kind) -> Self {
        Self {
            id: Some(id),
            term: None,
            unknown: BTreeSet::new(),
            nullable: false,
            strict: true,
            kind,
            node_of: None,
            inlined: None,
            exact: None,
        }
    }

    /// The id of a computed term; an error in computing it leaves the variable unbound.
    pub fn of_computed_id(id: String, inlined: Option<Inlined>) -> Self {
        Self {
            id: Some(id),
            term: None,
            inlined,
            ..Self::of_term(String::new())
        }
    }

    /// A computed term; an error in computing it leaves the variable unbound.
    pub fn of_exact_term(term: String, exact: Exact) -> Self {
        Self {
            exact: Some(exact),
            ..Self::of_term(term)
        }
    }

    /// As [`Self::of_exact_term`], of a term of which nothing is known.
    pub fn of_term(term: String) -> Self {
        Self {
            id: None,
            term: Some(term),
            unknown: BTreeSet::new(),
            nullable: true,
            strict: false,
            kind: Kind::Any,
            node_of: None,
            inlined: None,
            exact: None,
        }
    }

    /// What terms of the column sort by in ORDER BY.
    pub fn sort_sql(&self, params: &mut Params) -> String {
        match (&self.id, self.inlined) {
            (Some(id), Some(Inlined::Integer | Inlined::Float)) => id.clone(),
            _ => self.term_sql(params),
        }
    }

    /// The id, where terms of the column are sorted by them in the order of their terms.
    pub fn sort_id(&self) -> Option<&str> {
        let id = self.id.as_deref().filter(|_| self.has_plain_id());
        id.filter(|_| self.inlined.is_none())
    }

    /// The term as `quad.term`.
    pub fn term_sql(&self, params: &mut Params) -> String {
        if let Some(term) = &self.term {
            return term.clone();
        }
        let id = self.id.as_deref().expect("a column has an id or a term");
        decode_sql(id, &self.unknown, params)
    }

    /// SQL condition: the variable is bound.
    pub fn bound_sql(&self) -> String {
        if self.nullable {
            format!("{} IS NOT NULL", self.any())
        } else {
            "TRUE".to_owned()
        }
    }

    /// SQL condition: the variable is unbound.
    pub fn unbound_sql(&self) -> String {
        if self.nullable {
            format!("{} IS NULL", self.any())
        } else {
            "FALSE".to_owned()
        }
    }

    /// The id or, where there is none, the term.
    pub fn any(&self) -> &str {
        self.id
            .as_deref()
            .or(self.term.as_deref())
            .expect("a column has an id or a term")
    }

    /// Whether the id is the only thing needed: it is an id of the dictionary or inlined.
    pub fn has_plain_id(&self) -> bool {
        self.id.is_some() && self.unknown.is_empty()
    }

    /// The same column under a new name, as a plain column of a derived table.
    pub fn renamed(&self, name: String) -> Self {
        let (id, term) = if self.id.is_some() {
            (Some(name), None)
        } else {
            (None, Some(name))
        };
        Self {
            id,
            term,
            strict: true,
            ..self.clone()
        }
    }

    fn preference(&self) -> u8 {
        match (&self.id, self.unknown.is_empty()) {
            (Some(_), true) => 2,
            (Some(_), false) => 1,
            (None, _) => 0,
        }
    }
}

/// The term of an id that may stand for a constant without id.
pub(crate) fn decode_sql(id: &str, unknown: &BTreeSet<usize>, params: &mut Params) -> String {
    if unknown.is_empty() {
        return format!("quad.decode({id})");
    }
    let cases: Vec<String> = unknown
        .iter()
        .map(|number| {
            let text = params.text(*number).to_owned();
            let term = params.sql(ParamKind::Term, &text);
            format!("WHEN {} THEN {term}", stand_in(*number))
        })
        .collect();
    format!(
        "(CASE WHEN {id} >= 0 THEN quad.decode({id}) ELSE CASE {id} {} END END)",
        cases.join(" ")
    )
}

/// A constant as an id, with what is known of it. `ntriples` is its N-Triples form.
pub(crate) fn constant(ntriples: &str, kind: Kind, params: &mut Params) -> Col {
    let number = params.number(ParamKind::Id, ntriples);
    let unknown = if crate::params::inline_id_of(ntriples).is_some() {
        BTreeSet::new()
    } else {
        BTreeSet::from([number])
    };
    Col {
        id: Some(mark(number)),
        term: Some(params.sql(ParamKind::Term, ntriples)),
        unknown,
        nullable: false,
        strict: false,
        kind,
        node_of: None,
        inlined: None,
        exact: None,
    }
}

/// The same for a term that is handed out and compared with other constants only: it needs no look into the dictionary.
pub(crate) fn label(ntriples: &str, kind: Kind, params: &mut Params) -> Col {
    let mut col = constant(ntriples, kind, params);
    if !col.unknown.is_empty() {
        let number = params.number(ParamKind::Label, ntriples);
        col.id = Some(mark(number));
        col.unknown = BTreeSet::from([number]);
    }
    col
}

/// The id of one column and the term of the other, where the term is looked up to compare them.
pub(crate) fn looked_up<'c>(a: &'c Col, b: &'c Col) -> Option<(&'c str, &'c str)> {
    match (&a.id, &b.id) {
        (Some(id), None) if a.unknown.is_empty() => Some((id, b.any())),
        (None, Some(id)) if b.unknown.is_empty() => Some((id, a.any())),
        _ => None,
    }
}

/// SQL condition: both are bound to the same term. NULL (not true) when one is unbound.
pub(crate) fn same_sql(a: &Col, b: &Col, params: &mut Params) -> String {
    if let Some((id, term)) = looked_up(a, b) {
        return format!("{id} = quad.find({term})");
    }
    match (&a.id, &b.id) {
        (Some(x), Some(y)) => format!("{x} = {y}"),
        _ => format!(
            "{} OPERATOR(quad.=) {}",
            a.term_sql(params),
            b.term_sql(params)
        ),
    }
}

/// SQL condition: the bindings are compatible (SPARQL 1.1 section 18.3): the same, or one of them unbound.
pub(crate) fn compatible_sql(a: &Col, b: &Col, params: &mut Params) -> String {
    let mut alternatives = Vec::new();
    if a.nullable {
        alternatives.push(a.unbound_sql());
    }
    if b.nullable {
        alternatives.push(b.unbound_sql());
    }
    let same = same_sql(a, b, params);
    if alternatives.is_empty() {
        return same;
    }
    alternatives.push(same);
    format!("({})", alternatives.join(" OR "))
}

/// The variable in the merge of two compatible solutions.
pub(crate) fn merged(a: &Col, b: &Col, params: &mut Params) -> Col {
    match (a.nullable, b.nullable) {
        (false, false) => {
            let (chosen, other) = if b.preference() > a.preference() {
                (b, a)
            } else {
                (a, b)
            };
            Col {
                kind: chosen.kind.max(other.kind),
                node_of: chosen.node_of.clone().or_else(|| other.node_of.clone()),
                inlined: chosen.inlined.or(other.inlined),
                exact: chosen.exact.or(other.exact),
                ..chosen.clone()
            }
        }
        (false, true) => a.clone(),
        (true, false) => b.clone(),
        (true, true) => coalesced(a, b, params),
    }
}

/// `a` where it is bound, else `b`.
pub(crate) fn coalesced(a: &Col, b: &Col, params: &mut Params) -> Col {
    let (id, term, unknown) = match (&a.id, &b.id) {
        (Some(x), Some(y)) => (
            Some(format!("COALESCE({x}, {y})")),
            None,
            &a.unknown | &b.unknown,
        ),
        _ => (
            None,
            Some(format!(
                "COALESCE({}, {})",
                a.term_sql(params),
                b.term_sql(params)
            )),
            BTreeSet::new(),
        ),
    };
    Col {
        id,
        term,
        unknown,
        nullable: a.nullable && b.nullable,
        strict: a.strict && b.strict,
        kind: a.kind.min(b.kind),
        node_of: match (&a.node_of, &b.node_of) {
            (Some(x), Some(y)) if x == y => Some(x.clone()),
            _ => None,
        },
        inlined: a.inlined.filter(|_| a.inlined == b.inlined),
        exact: a.exact.filter(|_| a.exact == b.exact),
    }
}

/// Variables in scope, in order of first sight.
#[derive(Clone, Debug, Default)]
pub(crate) struct Vars(Vec<(Variable, Col)>);

impl Vars {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn get(&self, variable: &Variable) -> Option<&Col> {
        self.0.iter().find(|(v, _)| v == variable).map(|(_, c)| c)
    }

    pub fn get_mut(&mut self, variable: &Variable) -> Option<&mut Col> {
        self.0
            .iter_mut()
            .find(|(v, _)| v == variable)
            .map(|(_, c)| c)
    }

    /// Adds the variable, or replaces it.
    pub fn set(&mut self, variable: Variable, col: Col) {
        match self.get_mut(&variable) {
            Some(old) => *old = col,
            None => self.0.push((variable, col)),
        }
    }

    pub fn remove(&mut self, variable: &Variable) -> Option<Col> {
        let place = self.0.iter().position(|(v, _)| v == variable)?;
        Some(self.0.remove(place).1)
    }

    pub fn retain(&mut self, mut keep: impl FnMut(&Variable) -> bool) {
        self.0.retain(|(v, _)| keep(v));
    }

    pub fn iter(&self) -> impl Iterator<Item = &(Variable, Col)> {
        self.0.iter()
    }
}

impl IntoIterator for Vars {
    type Item = (Variable, Col);
    type IntoIter = std::vec::IntoIter<(Variable, Col)>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}
