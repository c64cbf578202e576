//! Query forms (SPARQL 1.1 section 16) to a whole SQL statement.

use spargebra::algebra::GraphPattern;
use spargebra::term::{NamedNodePattern, TermPattern, TriplePattern, Variable};
use spargebra::Query;

use crate::block::{parenthesised, Block};
use crate::column::{decode_sql, Col, Kind, FIRST_BLANK, FIRST_LITERAL};
use crate::dataset::{Dataset, Target};
use crate::error::Error;
use crate::params::{quote_identifier, with_literals, with_placeholders, Param, ParamKind};
use crate::translate::{Env, Translator};

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

/// A query as SQL.
#[derive(Clone, Debug)]
pub struct Translated {
    sql: String,
    /// Constants of the query: parameter `$1` first.
    pub params: Vec<Param>,
    /// Names of the columns of the answer: the variables of the projection, or subject, predicate, object.
    pub columns: Vec<String>,
    /// Form of the query.
    pub form: Form,
    /// The algebra, as an S-expression.
    pub algebra: String,
}

impl Translated {
    /// SQL text with the parameters `$1`, `$2`, ...
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
    let mut translator = Translator::new(
        target.table,
        base,
        Dataset::new(query.dataset(), target.default_graph),
    );
    let (form, sql, columns) = match query {
        Query::Select { pattern, .. } => {
            let (sql, columns) = translator.select(pattern)?;
            (Form::Select, sql, columns)
        }
        Query::Ask { pattern, .. } => (Form::Ask, translator.ask(pattern)?, vec!["ask".to_owned()]),
        Query::Construct {
            template, pattern, ..
        } => (
            Form::Construct,
            translator.construct(template, pattern)?,
            triple_columns(),
        ),
        Query::Describe { pattern, .. } => (
            Form::Describe,
            translator.describe(pattern)?,
            triple_columns(),
        ),
    };
    let (sql, params) = translator.params.finish(&sql);
    Ok(Translated {
        sql,
        params,
        columns,
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
    fn select(&mut self, pattern: &GraphPattern) -> Result<(String, Vec<String>), Error> {
        let rel = self.pattern(pattern, &Env::new())?;
        let (block, tail) = self.finish(rel)?;
        let mut outputs = Vec::new();
        let mut columns = Vec::new();
        for variable in projection(pattern) {
            let term = match block.vars.get(variable) {
                Some(col) => col.term_sql(&mut self.params),
                None => "NULL::quad.term".to_owned(),
            };
            outputs.push(format!("{term} AS {}", quote_identifier(variable.as_str())));
            columns.push(variable.as_str().to_owned());
        }
        let sql = format!("SELECT {}{}{tail}", outputs.join(", "), block.body());
        Ok((sql, columns))
    }

    fn ask(&mut self, pattern: &GraphPattern) -> Result<String, Error> {
        let block = self.block(pattern, &Env::new())?;
        Ok(format!(
            "SELECT EXISTS {} AS ask",
            parenthesised(&format!("SELECT 1{}", block.body()))
        ))
    }

    /// The template filled in with each solution; triples that are none (section 16.2) are left out.
    fn construct(
        &mut self,
        template: &[TriplePattern],
        pattern: &GraphPattern,
    ) -> Result<String, Error> {
        let mut block = self.block(pattern, &Env::new())?;
        if template.iter().any(has_blank_node) {
            block.row = Some("row_number() OVER ()".to_owned());
            block = self.wrap(block);
        }
        let triples: Vec<[Col; 3]> = template
            .iter()
            .filter_map(|triple| self.template(triple, &block))
            .collect();
        if triples.is_empty() {
            return Ok(
                "SELECT NULL::quad.term AS subject, NULL::quad.term AS predicate, \
                 NULL::quad.term AS object WHERE FALSE"
                    .to_owned(),
            );
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
        let outputs: Vec<String> = shapes
            .iter()
            .zip(triple_columns())
            .map(|(col, name)| format!("{} AS {name}", col.term_sql(&mut self.params)))
            .collect();
        Ok(format!(
            "SELECT {}\nFROM {} AS t",
            outputs.join(", "),
            parenthesised(&inner)
        ))
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
                    ..Col::of_term(format!("quad.fn_bnode({label}, {row})"))
                }
            }
        })
    }

    /// SQL condition: the column is bound and holds what its place in a triple takes; `None` when that is certain.
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
    fn describe(&mut self, pattern: &GraphPattern) -> Result<String, Error> {
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
            return Ok(
                "SELECT NULL::quad.term AS subject, NULL::quad.term AS predicate, \
                 NULL::quad.term AS object WHERE FALSE"
                    .to_owned(),
            );
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
        let none = std::collections::BTreeSet::new();
        let outputs: Vec<String> = ["s", "p", "o"]
            .into_iter()
            .zip(triple_columns())
            .map(|(column, name)| {
                let term = decode_sql(&format!("{d}.{column}"), &none, &mut self.params);
                format!("{term} AS {name}")
            })
            .collect();
        Ok(format!(
            "WITH RECURSIVE {walk} AS {}\nSELECT {}{}",
            parenthesised(&recursion),
            outputs.join(", "),
            Block::of_item("described".to_owned())
                .join(described, &mut self.params)
                .body_and(&[format!("{d}.s = described.n")])
        ))
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
