//! SPARQL 1.1 Update to SQL: one statement for each operation, which sees what the operations before it did.

use spargebra::algebra::{GraphPattern, GraphTarget, QueryDataset};
use spargebra::term::{
    BlankNode, GraphName, GraphNamePattern, GroundQuadPattern, GroundTermPattern, NamedNodePattern,
    NamedOrBlankNode, QuadPattern, Term, TermPattern, Variable,
};
use spargebra::{GraphUpdateOperation, Update};

use crate::block::{column_name, parenthesised, Block};
use crate::column::{Col, Kind, FIRST_BLANK, FIRST_LITERAL};
use crate::dataset::{Dataset, DefaultGraph, Target};
use crate::error::Error;
use crate::params::{with_placeholders, Param, ParamKind};
use crate::template::lexer::{tokens, Lexed, Token};
use crate::translator::{Env, Translator};

/// A quad of INSERT DATA or DELETE DATA: subject, predicate, object, graph in N-Triples form; `None` is the default
/// graph.
pub type DataQuad = ([String; 3], Option<String>);

/// An operation of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Adds quads: [`insert_data_sql`]. Blank nodes with the same label are one new node.
    InsertData(Vec<DataQuad>),
    /// Removes quads: [`delete_data_sql`].
    DeleteData(Vec<DataQuad>),
    /// Runs a statement that gives one `bigint`, the number of quads removed and added.
    Run(Statement),
    /// Fails when the statement says that the graph is there; it gives one `boolean`.
    Create {
        /// IRI of the graph in N-Triples form.
        graph: String,
        /// Says whether the graph has quads.
        exists: Statement,
    },
    /// Loads a document.
    Load {
        /// IRI of the document.
        source: String,
        /// IRI of the graph for its triples; `None`: the default graph.
        graph: Option<String>,
        /// Whether to do nothing when that fails.
        silent: bool,
    },
    /// Does nothing, as the operation asks for when there is nothing to do.
    Skip(String),
}

/// An SQL statement with parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    sql: String,
    /// Constants: parameter `$1` first.
    pub params: Vec<Param>,
}

impl Statement {
    fn new(translator: Translator<'_>, sql: &str) -> Self {
        let (sql, params) = translator.params.finish(sql);
        Self { sql, params }
    }

    /// SQL text with the parameters `$1`, `$2`, ...
    #[must_use]
    pub fn sql(&self) -> String {
        with_placeholders(&self.sql)
    }
}

/// SQL that adds quads. `$1` to `$4` are arrays of ids: subjects, predicates, objects, graphs. Gives the number of new
/// quads.
#[must_use]
pub fn insert_data_sql(table: &str) -> String {
    let quads = "SELECT DISTINCT d.s, d.p, d.o, d.g\nFROM unnest($1, $2, $3, $4) AS d(s, p, o, g)";
    format!(
        "WITH added AS {}, inserted AS {}\nSELECT count(*) FROM inserted",
        parenthesised(quads),
        parenthesised(&insert_sql(table))
    )
}

/// SQL that removes quads, with the parameters of [`insert_data_sql`]. Gives the number of quads removed.
#[must_use]
pub fn delete_data_sql(table: &str) -> String {
    let quads = "SELECT DISTINCT d.s, d.p, d.o, d.g\nFROM unnest($1, $2, $3, $4) AS d(s, p, o, g)";
    format!(
        "WITH gone AS {}, deleted AS {}\nSELECT count(*) FROM deleted",
        parenthesised(quads),
        parenthesised(&delete_sql(table, false))
    )
}

/// Inserts what is in `added` and not in the table yet.
fn insert_sql(table: &str) -> String {
    format!(
        "INSERT INTO {table} (s, p, o, g)\nSELECT a.s, a.p, a.o, a.g\nFROM added AS a\n\
         WHERE NOT EXISTS (SELECT 1 FROM {table} AS x WHERE x.s = a.s AND x.p = a.p AND x.o = a.o AND x.g = a.g)\n\
         RETURNING 1"
    )
}

/// Deletes the quads in `gone`. Where there is a table `added`, a quad in both stays.
fn delete_sql(table: &str, but_added: bool) -> String {
    let kept = if but_added {
        "\n  AND NOT EXISTS (SELECT 1 FROM added AS a WHERE a.s = x.s AND a.p = x.p AND a.o = x.o AND a.g = x.g)"
    } else {
        ""
    };
    format!(
        "DELETE FROM {table} AS x\nUSING gone AS r\n\
         WHERE x.s = r.s AND x.p = r.p AND x.o = r.o AND x.g = r.g{kept}\nRETURNING 1"
    )
}

/// Translates a request, which was parsed from this text.
///
/// # Errors
/// See [`Error`].
pub fn translate_update<'a>(
    update: &Update,
    text: &str,
    target: impl Into<Target<'a>>,
) -> Result<Vec<Operation>, Error> {
    let target = target.into();
    let copies = copies_in(text);
    let is_like_one = |operation: &&GraphUpdateOperation| match operation {
        GraphUpdateOperation::DeleteInsert {
            delete,
            insert,
            using,
            pattern,
        } => is_copy(delete, insert, using.as_ref(), pattern),
        _ => false,
    };
    let is_elsewhere =
        target.graphs.is_some() || matches!(target.default_graph, DefaultGraph::Union);
    if is_elsewhere && (1..update.operations.iter().filter(is_like_one).count()).contains(&copies) {
        return Err(Error::Invalid(
            "a request that copies graphs, and also inserts all triples ?s ?p ?o, cannot have its graphs named \
             beside its text, nor all graphs as its default graph"
                .to_owned(),
        ));
    }
    let base = update.base_iri.as_ref().map(|iri| iri.as_str().to_owned());
    update
        .operations
        .iter()
        .map(|operation| translate_operation(operation, copies > 0, target, base.clone()))
        .collect()
}

/// How many operations of a request copy graphs: ADD, COPY, MOVE. These words stand nowhere else.
fn copies_in(text: &str) -> usize {
    let is_copy = |lexed: &Lexed<'_>| match lexed.token {
        Token::Word(word) => ["add", "copy", "move"]
            .iter()
            .any(|copy| word.eq_ignore_ascii_case(copy)),
        _ => false,
    };
    let tokens = tokens(text).unwrap_or_default();
    tokens.iter().filter(|lexed| is_copy(lexed)).count()
}

/// Whether an operation is what the parser makes of ADD, COPY or MOVE. They are about graphs of the store, whatever
/// data set operations with WHERE are given (sections 3.2.3 to 3.2.5; SPARQL 1.1 Protocol section 2.2.3).
fn is_copy(
    delete: &[GroundQuadPattern],
    insert: &[QuadPattern],
    using: Option<&QueryDataset>,
    pattern: &GraphPattern,
) -> bool {
    let [quad] = insert else { return false };
    let named = |term: &TermPattern, name: &str| matches!(term, TermPattern::Variable(v) if v.as_str() == name);
    let predicate = |term: &NamedNodePattern| matches!(term, NamedNodePattern::Variable(v) if v.as_str() == "p");
    let inner = match pattern {
        GraphPattern::Graph {
            name: NamedNodePattern::NamedNode(_),
            inner,
        } => inner,
        other => other,
    };
    let is_all = |pattern: &GraphPattern| match pattern {
        GraphPattern::Bgp { patterns } => matches!(&patterns[..], [triple]
            if named(&triple.subject, "s") && predicate(&triple.predicate) && named(&triple.object, "o")),
        _ => false,
    };
    delete.is_empty()
        && using.is_none()
        && !matches!(quad.graph_name, GraphNamePattern::Variable(_))
        && named(&quad.subject, "s")
        && predicate(&quad.predicate)
        && named(&quad.object, "o")
        && is_all(inner)
}

fn translate_operation(
    operation: &GraphUpdateOperation,
    copies: bool,
    target: Target<'_>,
    base: Option<String>,
) -> Result<Operation, Error> {
    let table = target.table;
    let translator = || {
        let dataset = Dataset::new(None, target);
        Translator::new(target, base.clone(), dataset)
    };
    Ok(match operation {
        GraphUpdateOperation::InsertData { data } => Operation::InsertData(
            data.iter()
                .map(|q| {
                    let triple = [
                        subject_text(&q.subject),
                        q.predicate.to_string(),
                        object_text(&q.object),
                    ];
                    (triple, graph_text(&q.graph_name))
                })
                .collect(),
        ),
        GraphUpdateOperation::DeleteData { data } => Operation::DeleteData(
            data.iter()
                .map(|q| {
                    let triple = [
                        q.subject.to_string(),
                        q.predicate.to_string(),
                        q.object.to_string(),
                    ];
                    (triple, graph_text(&q.graph_name))
                })
                .collect(),
        ),
        GraphUpdateOperation::DeleteInsert {
            delete,
            insert,
            using,
            pattern,
        } => {
            let target = match copies && is_copy(delete, insert, using.as_ref(), pattern) {
                true => Target {
                    graphs: None,
                    default_graph: DefaultGraph::Own,
                    ..target
                },
                false => target,
            };
            if using.is_some() && target.graphs.is_some() {
                return Err(Error::Invalid(
                    "an update with USING or WITH cannot have its graphs named beside its text"
                        .to_owned(),
                ));
            }
            let dataset = Dataset::new(using.as_ref(), target);
            let mut translator = Translator::new(target, base.clone(), dataset);
            translator.keeps_terms = true;
            let sql = translator.modify(delete, insert, pattern)?;
            Operation::Run(Statement::new(translator, &sql))
        }
        GraphUpdateOperation::Clear { graph, .. } | GraphUpdateOperation::Drop { graph, .. } => {
            let mut translator = translator();
            let condition = match graph {
                GraphTarget::NamedNode(iri) => {
                    let id = translator.params.sql(ParamKind::Id, &iri.to_string());
                    format!("\nWHERE x.g = {id}")
                }
                GraphTarget::DefaultGraph => "\nWHERE x.g = 0".to_owned(),
                GraphTarget::NamedGraphs => "\nWHERE x.g <> 0".to_owned(),
                GraphTarget::AllGraphs => String::new(),
            };
            let delete = format!("DELETE FROM {table} AS x{condition}\nRETURNING 1");
            let sql = format!(
                "WITH deleted AS {}\nSELECT count(*) FROM deleted",
                parenthesised(&delete)
            );
            Operation::Run(Statement::new(translator, &sql))
        }
        GraphUpdateOperation::Create { silent, graph } => {
            if *silent {
                return Ok(Operation::Skip(format!("CREATE SILENT GRAPH {graph}")));
            }
            let mut translator = translator();
            let id = translator.params.sql(ParamKind::Id, &graph.to_string());
            let sql = format!("SELECT EXISTS (SELECT 1 FROM {table} AS x WHERE x.g = {id})");
            Operation::Create {
                graph: graph.to_string(),
                exists: Statement::new(translator, &sql),
            }
        }
        GraphUpdateOperation::Load {
            silent,
            source,
            destination,
        } => Operation::Load {
            source: source.as_str().to_owned(),
            graph: match destination {
                GraphName::NamedNode(iri) => Some(iri.as_str().to_owned()),
                GraphName::DefaultGraph => None,
            },
            silent: *silent,
        },
    })
}

fn subject_text(subject: &NamedOrBlankNode) -> String {
    match subject {
        NamedOrBlankNode::NamedNode(iri) => iri.to_string(),
        NamedOrBlankNode::BlankNode(node) => blank_text(node),
    }
}

fn object_text(object: &Term) -> String {
    match object {
        Term::BlankNode(node) => blank_text(node),
        other => other.to_string(),
    }
}

/// A label that is never that of a node of the database (`_:b<number>`): blank nodes of a request are new ones.
fn blank_text(node: &BlankNode) -> String {
    format!("_:new_{}", node.as_str())
}

fn graph_text(graph: &GraphName) -> Option<String> {
    match graph {
        GraphName::NamedNode(iri) => Some(iri.to_string()),
        GraphName::DefaultGraph => None,
    }
}

/// The terms of a quad template.
struct Template {
    triple: [TermPattern; 3],
    /// `None`: the default graph.
    graph: Option<TermPattern>,
}

impl From<&QuadPattern> for Template {
    fn from(quad: &QuadPattern) -> Self {
        Self {
            triple: [
                quad.subject.clone(),
                named(&quad.predicate),
                quad.object.clone(),
            ],
            graph: graph_term(&quad.graph_name),
        }
    }
}

impl From<&GroundQuadPattern> for Template {
    fn from(quad: &GroundQuadPattern) -> Self {
        Self {
            triple: [
                ground(&quad.subject),
                named(&quad.predicate),
                ground(&quad.object),
            ],
            graph: graph_term(&quad.graph_name),
        }
    }
}

fn named(term: &NamedNodePattern) -> TermPattern {
    match term {
        NamedNodePattern::NamedNode(iri) => TermPattern::NamedNode(iri.clone()),
        NamedNodePattern::Variable(variable) => TermPattern::Variable(variable.clone()),
    }
}

fn ground(term: &GroundTermPattern) -> TermPattern {
    match term {
        GroundTermPattern::NamedNode(iri) => TermPattern::NamedNode(iri.clone()),
        GroundTermPattern::Literal(literal) => TermPattern::Literal(literal.clone()),
        GroundTermPattern::Variable(variable) => TermPattern::Variable(variable.clone()),
    }
}

fn graph_term(graph: &GraphNamePattern) -> Option<TermPattern> {
    match graph {
        GraphNamePattern::NamedNode(iri) => Some(TermPattern::NamedNode(iri.clone())),
        GraphNamePattern::DefaultGraph => None,
        GraphNamePattern::Variable(variable) => Some(TermPattern::Variable(variable.clone())),
    }
}

/// What a template is filled in for.
#[derive(Clone, Copy, PartialEq)]
enum Purpose {
    /// Terms without id match nothing.
    Delete,
    /// Terms without id get one.
    Insert,
}

impl Translator<'_> {
    /// DELETE/INSERT WHERE (section 3.1.3): both templates are filled in from the same solutions, the quads of the one
    /// go, then those of the other come. As one statement all parts see the same state of the table, and no quad is in
    /// both of the changes.
    fn modify(
        &mut self,
        delete: &[GroundQuadPattern],
        insert: &[QuadPattern],
        pattern: &GraphPattern,
    ) -> Result<String, Error> {
        let delete: Vec<Template> = delete.iter().map(Template::from).collect();
        let insert: Vec<Template> = insert.iter().map(Template::from).collect();
        let block = self.block(pattern, &Env::new())?;
        let solutions = self.solutions(&block, &delete, &insert);
        let gone = self.fill(&delete, &solutions, Purpose::Delete);
        let added = self.fill(&insert, &solutions, Purpose::Insert);

        let mut tables = vec![format!(
            "solutions AS MATERIALIZED {}",
            parenthesised(&solutions.sql)
        )];
        let mut counts = Vec::new();
        if let Some(added) = &added {
            tables.push(format!("added AS MATERIALIZED {}", parenthesised(added)));
        }
        if let Some(gone) = gone {
            tables.push(format!("gone AS MATERIALIZED {}", parenthesised(&gone)));
            let delete = delete_sql(self.table, added.is_some());
            tables.push(format!("deleted AS {}", parenthesised(&delete)));
            counts.push("(SELECT count(*) FROM deleted)");
        }
        if added.is_some() {
            tables.push(format!(
                "inserted AS {}",
                parenthesised(&insert_sql(self.table))
            ));
            counts.push("(SELECT count(*) FROM inserted)");
        }
        if counts.is_empty() {
            return Ok("SELECT 0::bigint".to_owned());
        }
        Ok(format!(
            "WITH {}\nSELECT {}",
            tables.join(", "),
            counts.join(" + ")
        ))
    }

    /// The solutions as ids: every variable of a template, and a new blank node for each one of the insert template.
    fn solutions(&mut self, block: &Block, delete: &[Template], insert: &[Template]) -> Solutions {
        let mut solutions = Solutions::default();
        let mut outputs = Vec::new();
        let inserted: Vec<&TermPattern> = insert.iter().flat_map(Template::terms).collect();
        for template in delete.iter().chain(insert) {
            for term in template.terms() {
                let variable = match term {
                    TermPattern::Variable(variable) => variable.clone(),
                    TermPattern::BlankNode(node) => {
                        Variable::new_unchecked(format!("_:{}", node.as_str()))
                    }
                    TermPattern::NamedNode(_) | TermPattern::Literal(_) => continue,
                };
                if solutions.columns.iter().any(|(v, _)| *v == variable) {
                    continue;
                }
                let (id, col) = if let TermPattern::BlankNode(_) = term {
                    let col = Col::of_quad(String::new(), Kind::Resource);
                    ("quad.encode(quad.fn_bnode())".to_owned(), col)
                } else {
                    let Some(col) = block.vars.get(&variable) else {
                        continue;
                    };
                    let needs_id = inserted.contains(&term);
                    (self.id_for(col, needs_id), col.clone())
                };
                let name = column_name(&variable, outputs.len());
                outputs.push(format!("{id} AS {name}"));
                let col = Col {
                    id: Some(format!("s.{name}")),
                    term: None,
                    nullable: col.nullable || col.id.is_none() || !col.unknown.is_empty(),
                    ..col
                };
                solutions.columns.push((variable, col));
            }
        }
        if outputs.is_empty() {
            outputs.push("0 AS \"#unit\"".to_owned());
        }
        solutions.sql = format!("SELECT {}{}", outputs.join(", "), block.body());
        solutions
    }

    /// The id of a variable; a term that has none gets one if it may be inserted.
    fn id_for(&mut self, col: &Col, needs_id: bool) -> String {
        match &col.id {
            Some(id) if col.unknown.is_empty() || !needs_id => id.clone(),
            Some(id) => {
                let term = col.term_sql(&mut self.params);
                format!("CASE WHEN {id} >= 0 THEN {id} ELSE quad.encode({term}) END")
            }
            None if needs_id => format!("quad.encode({})", col.any()),
            None => format!("quad.find({})", col.any()),
        }
    }

    /// `SELECT` of the quads that the templates give; `None` when there can be none.
    fn fill(
        &mut self,
        templates: &[Template],
        solutions: &Solutions,
        purpose: Purpose,
    ) -> Option<String> {
        let mut rows = Vec::new();
        let mut needed = [Kind::Iri; 4];
        let mut nullable = [false; 4];
        for template in templates {
            let mut values = Vec::new();
            for (place, term) in template.terms().enumerate() {
                let (value, kind, null) = match term {
                    TermPattern::NamedNode(iri) => (
                        self.constant_id(&iri.to_string(), purpose),
                        Kind::Iri,
                        false,
                    ),
                    TermPattern::Literal(literal) => (
                        self.constant_id(&literal.to_string(), purpose),
                        Kind::Any,
                        false,
                    ),
                    TermPattern::Variable(variable) => match solutions.get(variable) {
                        Some(col) => (col.any().to_owned(), col.kind, col.nullable),
                        None => break,
                    },
                    TermPattern::BlankNode(node) => {
                        let variable = Variable::new_unchecked(format!("_:{}", node.as_str()));
                        let col = solutions.get(&variable).expect("made for every blank node");
                        (col.any().to_owned(), Kind::Resource, false)
                    }
                };
                needed[place] = needed[place].min(kind);
                nullable[place] |= null;
                values.push(value);
            }
            if values.len() == 3 && template.graph.is_none() {
                values.push("0".to_owned());
            }
            // A variable that is never bound leaves the template without quads.
            if values.len() == 4 {
                rows.push(format!("({})", values.join(", ")));
            }
        }
        if rows.is_empty() {
            return None;
        }
        let mut conditions = Vec::new();
        let wanted = [Kind::Resource, Kind::Iri, Kind::Any, Kind::Iri];
        for (place, column) in ["s", "p", "o", "g"].into_iter().enumerate() {
            if nullable[place] {
                conditions.push(format!("v.{column} IS NOT NULL"));
            }
            if purpose == Purpose::Insert && needed[place] < wanted[place] {
                let limit = if wanted[place] == Kind::Iri {
                    FIRST_BLANK
                } else {
                    FIRST_LITERAL
                };
                conditions.push(format!("v.{column} < {limit}"));
            }
        }
        let body = Block::of_item("solutions AS s".to_owned())
            .join(
                Block::of_item(format!(
                    "LATERAL (VALUES {}) AS v(s, p, o, g)",
                    rows.join(", ")
                )),
                &mut self.params,
            )
            .body_and(&conditions);
        Some(format!("SELECT DISTINCT v.s, v.p, v.o, v.g{body}"))
    }

    fn constant_id(&mut self, text: &str, purpose: Purpose) -> String {
        let kind = match purpose {
            Purpose::Delete => ParamKind::Id,
            Purpose::Insert => ParamKind::NewId,
        };
        self.params.sql(kind, text)
    }
}

impl Template {
    fn terms(&self) -> impl Iterator<Item = &TermPattern> {
        self.triple.iter().chain(&self.graph)
    }
}

/// The CTE of the solutions and its columns.
#[derive(Default)]
struct Solutions {
    sql: String,
    columns: Vec<(Variable, Col)>,
}

impl Solutions {
    fn get(&self, variable: &Variable) -> Option<&Col> {
        self.columns
            .iter()
            .find(|(v, _)| v == variable)
            .map(|(_, c)| c)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_copy_graphs_are_counted() {
        for (text, count) in [
            ("MOVE <a:b> TO <a:c>; copy silent default to <a:d>", 2),
            ("PREFIX add: <http://x/add/> INSERT DATA { add:copy add:move 'add' }", 0),
            ("INSERT { GRAPH <http://x/copy> { ?s ?p ?o } } WHERE { ?s ?p ?o }", 0),
            ("# add\nINSERT DATA { <a:b> <a:c> \"\"\"MOVE \" ADD\"\"\"@copy }", 0),
            ("DELETE { ?add ?p $copy } WHERE { ?add ?p $copy FILTER(?a < ?b && ?b > ?c) _:move ?p ?q }", 0),
            ("ADD<a:b>TO<a:c>;MOVE DEFAULT TO <a:b> # move", 2),
            ("INSERT DATA { <a:b> <a:c> 'it\\'s add' } ; ADD <a:b> TO <a:c>", 1),
            ("PREFIX add-x: <a:> PREFIX move.log: <b:> INSERT DATA { add-x:a move.log:b 1 }", 0),
            ("INSERT DATA { <a:b> <a:c> x:it\\'s , x:a\\#b , x:a\\,add } ; COPY <a:b> TO <a:c>", 1),
        ] {
            assert_eq!(copies_in(text), count, "{text}");
        }
    }
}
