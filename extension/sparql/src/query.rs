//! Query forms (SPARQL 1.1 section 16) to a whole SQL statement.

use spargebra::algebra::GraphPattern;
use spargebra::term::{NamedNodePattern, TermPattern, TriplePattern, Variable};
use spargebra::Query;

use crate::block::{parenthesised, Block};
use crate::column::{Col, Kind, FIRST_BLANK, FIRST_LITERAL};
use crate::dataset::{Dataset, Target};
use crate::error::Error;
use crate::params::{quote_identifier, with_literals, with_placeholders, Param, ParamKind, Params};
use crate::translator::{Env, Translator};

/// Form of a query, and with it the shape of its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// One column for each variable of the projection, of type `quad.term`.
    Select,
    /// One row with one `boolean`.
    Ask,
    /// Columns subject, predicate, object; each triple once.
    Construct,
    /// As [`Self::Construct`].
    Describe,
}

/// How a column of the answer is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// A `bigint`: the id of a term, or minus the number of a parameter, whose term has no id.
    Id,
    /// A `quad.term`.
    Term,
}

/// SQL whose answer is to be decoded: a column is an id wherever there is one.
#[derive(Clone, Debug)]
pub struct Undecoded {
    sql: String,
    /// Constants of the query: parameter `$1` first.
    pub params: Vec<Param>,
    /// How the columns are read; of an answer to ASK there is only a `boolean`.
    pub outputs: Vec<Output>,
}

impl Undecoded {
    /// SQL text with the parameters `$1`, `$2`, ...
    #[must_use]
    pub fn sql(&self) -> String {
        with_placeholders(&self.sql)
    }
}

/// A query as SQL.
#[derive(Clone, Debug)]
pub struct Translated {
    sql: String,
    /// Constants of the query: parameter `$1` first.
    pub params: Vec<Param>,
    /// The same query for those who decode the answer themselves, in batches.
    pub undecoded: Undecoded,
    /// Names of the columns of the answer: the variables of the projection, or subject, predicate, object.
    pub columns: Vec<String>,
    /// Of each column, whether its terms are IRIs and blank nodes only.
    pub resources: Vec<bool>,
    /// Form of the query.
    pub form: Form,
    /// The algebra, as an S-expression.
    pub algebra: String,
}

impl Translated {
    /// SQL text with the parameters `$1`, `$2`, ..., whose answer is all of type `quad.term`.
    #[must_use]
    pub fn sql(&self) -> String {
        with_placeholders(&self.sql)
    }

    /// SQL text with the constants in it, quoted: it runs as it stands.
    #[must_use]
    pub fn to_standalone_sql(&self) -> String {
        with_literals(&self.sql, &self.params)
    }
}

/// A statement up to its list of columns, the columns, and what follows them.
struct Answer {
    before: String,
    /// The variables of the answer, `None` for one that is never bound, with the names of their columns.
    columns: Vec<(Option<Col>, String)>,
    after: String,
}

impl Answer {
    /// An answer whose columns are those of `before`.
    fn whole(before: String) -> Self {
        Self {
            before,
            columns: Vec::new(),
            after: String::new(),
        }
    }

    /// The statement with all columns as terms.
    fn decoded(&self, params: &mut Params) -> String {
        self.sql(|col| match col {
            Some(col) => col.term_sql(params),
            None => "NULL::quad.term".to_owned(),
        })
    }

    /// The statement with ids where there are any.
    fn undecoded(&self, params: &mut Params) -> String {
        self.sql(|col| match col {
            Some(Col { id: Some(id), .. }) => id.clone(),
            Some(col) => col.term_sql(params),
            None => "NULL::bigint".to_owned(),
        })
    }

    fn outputs(&self) -> Vec<Output> {
        let output = |col: &Option<Col>| match col {
            Some(Col { id: None, .. }) => Output::Term,
            _ => Output::Id,
        };
        self.columns.iter().map(|(col, _)| output(col)).collect()
    }

    fn resources(&self) -> Vec<bool> {
        let is_resource = |col: &Option<Col>| col.as_ref().is_some_and(|c| c.kind > Kind::Any);
        self.columns
            .iter()
            .map(|(col, _)| is_resource(col))
            .collect()
    }

    fn sql(&self, mut value: impl FnMut(Option<&Col>) -> String) -> String {
        let columns: Vec<String> = self
            .columns
            .iter()
            .map(|(col, name)| format!("{} AS {}", value(col.as_ref()), quote_identifier(name)))
            .collect();
        format!("{}{}{}", self.before, columns.join(", "), self.after)
    }
}

/// Translates a query.
///
/// # Errors
/// See [`Error`].
pub fn translate_query<'a>(
    query: &Query,
    target: impl Into<Target<'a>>,
) -> Result<Translated, Error> {
    let target = target.into();
    let base = query.base_iri().map(|iri| iri.as_str().to_owned());
    let mut translator = Translator::new(target, base, Dataset::new(query.dataset(), target));
    let (form, answer) = match query {
        Query::Select { pattern, .. } => (Form::Select, translator.select(pattern)?),
        Query::Ask { pattern, .. } => (Form::Ask, translator.ask(pattern)?),
        Query::Construct {
            template, pattern, ..
        } => (Form::Construct, translator.construct(template, pattern)?),
        Query::Describe { pattern, .. } => (Form::Describe, translator.describe(pattern)?),
    };
    let undecoded = answer.undecoded(&mut translator.params);
    let decoded = answer.decoded(&mut translator.params);
    let (undecoded, undecoded_params) = translator.params.finish(&undecoded);
    let (sql, params) = translator.params.finish(&decoded);
    Ok(Translated {
        sql,
        params,
        undecoded: Undecoded {
            sql: undecoded,
            params: undecoded_params,
            outputs: answer.outputs(),
        },
        resources: match form {
            Form::Ask => vec![false],
            _ => answer.resources(),
        },
        columns: match form {
            Form::Ask => vec!["ask".to_owned()],
            _ => answer.columns.into_iter().map(|(_, name)| name).collect(),
        },
        form,
        algebra: query.to_sse(),
    })
}

fn triple_columns() -> Vec<String> {
    ["subject", "predicate", "object"]
        .map(str::to_owned)
        .to_vec()
}

impl Translator<'_> {
    fn select(&mut self, pattern: &GraphPattern) -> Result<Answer, Error> {
        let rel = self.pattern(pattern, &Env::new())?;
        let (block, tail) = self.finish(rel)?;
        let columns = projection(pattern).iter().map(|variable| {
            let col = block.vars.get(variable).cloned();
            (col, variable.as_str().to_owned())
        });
        Ok(Answer {
            before: "SELECT ".to_owned(),
            columns: columns.collect(),
            after: format!("{}{tail}", block.body()),
        })
    }

    fn ask(&mut self, pattern: &GraphPattern) -> Result<Answer, Error> {
        let block = self.block(pattern, &Env::new())?;
        Ok(Answer::whole(format!(
            "SELECT EXISTS {} AS ask",
            parenthesised(&format!("SELECT 1{}", block.body()))
        )))
    }

    /// The template filled in with each solution; triples that are none (section 16.2) are left out.
    fn construct(
        &mut self,
        template: &[TriplePattern],
        pattern: &GraphPattern,
    ) -> Result<Answer, Error> {
        let mut block = self.block(pattern, &Env::new())?;
        if template.iter().any(has_blank_node) {
            block = self.numbered(block);
        }
        let mut triples: Vec<[Col; 3]> = template
            .iter()
            .filter_map(|triple| self.template(triple, &block))
            .collect();
        self.label_constants(template, &mut triples);
        if triples.is_empty() {
            return Ok(no_triples());
        }
        let shapes: Vec<Col> = (0..3)
            .map(|place| position_shape(&triples, place))
            .collect();
        let rows: Vec<String> = triples
            .iter()
            .map(|triple| {
                let values: Vec<String> = triple
                    .iter()
                    .zip(&shapes)
                    .map(|(col, shape)| {
                        if shape.id.is_some() {
                            col.any().to_owned()
                        } else {
                            col.term_sql(&mut self.params)
                        }
                    })
                    .collect();
                format!("({})", values.join(", "))
            })
            .collect();
        let shapes: Vec<Col> = shapes
            .into_iter()
            .zip(["t.s", "t.p", "t.o"])
            .map(|(shape, name)| shape.renamed(name.to_owned()))
            .collect();
        let conditions: Vec<String> = [Kind::Resource, Kind::Iri, Kind::Any]
            .into_iter()
            .zip(&shapes)
            .filter_map(|(wanted, col)| self.is_of_kind(col, wanted))
            .collect();
        let filled = format!("LATERAL (VALUES {}) AS t(s, p, o)", rows.join(", "));
        let inner = format!(
            "SELECT DISTINCT t.s, t.p, t.o{}",
            block
                .join(Block::of_item(filled), &mut self.params)
                .body_and(&conditions)
        );
        Ok(Answer {
            before: "SELECT ".to_owned(),
            columns: shapes.into_iter().map(Some).zip(triple_columns()).collect(),
            after: format!("\nFROM {} AS t", parenthesised(&inner)),
        })
    }

    /// Where all triples have a constant in a place, nothing but their texts tells the values apart: none is looked up.
    fn label_constants(&mut self, template: &[TriplePattern], triples: &mut [[Col; 3]]) {
        for place in 0..3 {
            let constants: Option<Vec<(String, Kind)>> =
                template.iter().map(|t| constant_at(t, place)).collect();
            let Some(constants) = constants.filter(|all| all.len() == triples.len()) else {
                continue;
            };
            for (triple, (text, kind)) in triples.iter_mut().zip(constants) {
                triple[place] = crate::column::label(&text, kind, &mut self.params);
            }
        }
    }

    /// The columns of a triple of the template; `None` when a variable of it is never bound.
    fn template(&mut self, triple: &TriplePattern, block: &Block) -> Option<[Col; 3]> {
        let predicate = match &triple.predicate {
            NamedNodePattern::NamedNode(iri) => TermPattern::NamedNode(iri.clone()),
            NamedNodePattern::Variable(variable) => TermPattern::Variable(variable.clone()),
        };
        Some([
            self.template_term(&triple.subject, block)?,
            self.template_term(&predicate, block)?,
            self.template_term(&triple.object, block)?,
        ])
    }

    /// The column of a term of a template. A blank node is a new one for each solution.
    pub fn template_term(&mut self, term: &TermPattern, block: &Block) -> Option<Col> {
        Some(match term {
            TermPattern::Variable(variable) => block.vars.get(variable)?.clone(),
            TermPattern::NamedNode(iri) => {
                crate::column::constant(&iri.to_string(), Kind::Iri, &mut self.params)
            }
            TermPattern::Literal(literal) => {
                crate::column::constant(&literal.to_string(), Kind::Any, &mut self.params)
            }
            TermPattern::BlankNode(node) => {
                let label = spargebra::term::Literal::new_simple_literal(node.as_str());
                let label = self.params.sql(ParamKind::Term, &label.to_string());
                let row = block.row.as_deref().unwrap_or("0");
                Col {
                    nullable: false,
                    kind: Kind::Resource,
                    // Not the nodes of BNODE() with the same label.
                    ..Col::of_term(format!("quad.fn_bnode({label}, -1 - {row})"))
                }
            }
        })
    }

    /// SQL condition: the column is bound and holds a term that its place in a triple allows. `None` when that is
    /// certain.
    pub fn is_of_kind(&mut self, col: &Col, wanted: Kind) -> Option<String> {
        let mut tests = Vec::new();
        if col.nullable {
            tests.push(col.bound_sql());
        }
        if col.kind < wanted {
            let test = match (&col.id, wanted) {
                (Some(id), Kind::Iri) if col.unknown.is_empty() => format!("{id} < {FIRST_BLANK}"),
                (Some(id), Kind::Resource) if col.unknown.is_empty() => {
                    format!("{id} < {FIRST_LITERAL}")
                }
                (_, Kind::Iri) => format!("quad.fn_isiri({})", col.term_sql(&mut self.params)),
                _ => format!("NOT quad.fn_isliteral({})", col.term_sql(&mut self.params)),
            };
            tests.push(test);
        }
        if tests.is_empty() {
            return None;
        }
        Some(tests.join(" AND "))
    }

    /// Concise bounded description: the triples of the resource, and those of the blank nodes they lead to.
    fn describe(&mut self, pattern: &GraphPattern) -> Result<Answer, Error> {
        let env = Env::new();
        let block = self.block(pattern, &env)?;
        let resources: Vec<String> = projection(pattern)
            .iter()
            .filter_map(|variable| block.vars.get(variable))
            .map(|col| match &col.id {
                Some(id) => id.clone(),
                None => format!("quad.find({})", col.any()),
            })
            .map(|id| format!("({id})"))
            .collect();
        if resources.is_empty() {
            return Ok(no_triples());
        }
        let named = Block::of_item(format!("LATERAL (VALUES {}) AS t(n)", resources.join(", ")));
        let start = block.join(named, &mut self.params);
        let (quads, q) = self.quads(&env);
        let (described, d) = self.quads(&env);
        let walk = "described(n)";
        let recursion = format!(
            "SELECT t.n{}\nUNION\nSELECT {q}.o{}",
            start.body(),
            Block::of_item("described".to_owned())
                .join(quads, &mut self.params)
                .body_and(&[
                    format!("{q}.s = described.n"),
                    format!("{q}.o >= {FIRST_BLANK}"),
                    format!("{q}.o < {FIRST_LITERAL}"),
                ])
        );
        let columns = ["s", "p", "o"]
            .map(|column| Some(Col::of_quad(format!("{d}.{column}"), Kind::Any)))
            .into_iter()
            .zip(triple_columns());
        Ok(Answer {
            before: format!(
                "WITH RECURSIVE {walk} AS {}\nSELECT ",
                parenthesised(&recursion)
            ),
            columns: columns.collect(),
            after: Block::of_item("described".to_owned())
                .join(described, &mut self.params)
                .body_and(&[format!("{d}.s = described.n")]),
        })
    }
}

/// The answer without triples.
fn no_triples() -> Answer {
    Answer {
        before: "SELECT ".to_owned(),
        columns: triple_columns()
            .into_iter()
            .map(|name| (None, name))
            .collect(),
        after: " WHERE FALSE".to_owned(),
    }
}

/// The constant in a place of a triple of a template, as [`Translator::template_term`] has it.
fn constant_at(triple: &TriplePattern, place: usize) -> Option<(String, Kind)> {
    let of_term = |term: &TermPattern| match term {
        TermPattern::NamedNode(iri) => Some((iri.to_string(), Kind::Iri)),
        TermPattern::Literal(literal) => Some((literal.to_string(), Kind::Any)),
        _ => None,
    };
    match (place, &triple.predicate) {
        (0, _) => of_term(&triple.subject),
        (1, NamedNodePattern::NamedNode(iri)) => Some((iri.to_string(), Kind::Iri)),
        (1, NamedNodePattern::Variable(_)) => None,
        _ => of_term(&triple.object),
    }
}

fn has_blank_node(triple: &TriplePattern) -> bool {
    [&triple.subject, &triple.object]
        .iter()
        .any(|term| matches!(term, TermPattern::BlankNode(_)))
}

/// How one position of all triples of a template is held.
fn position_shape(triples: &[[Col; 3]], place: usize) -> Col {
    let mut shape = triples[0][place].clone();
    for triple in &triples[1..] {
        let col = &triple[place];
        shape.unknown = &shape.unknown | &col.unknown;
        shape.nullable |= col.nullable;
        shape.kind = shape.kind.min(col.kind);
        if shape.inlined != col.inlined {
            shape.inlined = None;
        }
        if shape.exact != col.exact {
            shape.exact = None;
        }
        if col.id.is_none() {
            shape.id = None;
        }
    }
    if shape.id.is_none() {
        shape.term.get_or_insert_default();
        shape.unknown.clear();
    }
    shape
}

/// Variables of the projection, in its order.
fn projection(pattern: &GraphPattern) -> &[Variable] {
    match pattern {
        GraphPattern::Project { variables, .. } => variables,
        GraphPattern::Distinct { inner }
        | GraphPattern::Reduced { inner }
        | GraphPattern::Slice { inner, .. }
        | GraphPattern::OrderBy { inner, .. } => projection(inner),
        _ => &[],
    }
}
