//! Answers of any size, piece by piece: `quad.sparql_json_stream` and its kin, `quad.answer_stream`,
//! `quad.graph_stream`.
//!
//! In the list of columns of a SELECT (`SELECT quad.sparql_tsv_stream(..)`) PostgreSQL asks for the pieces one by one.
//! So neither the backend nor a client that reads them as they come holds more than one. In FROM it keeps all of them
//! first. The rows of the query come from a cursor, whose sorts and hashes are bounded by `work_mem`.

use pgquad_reader::Format;
use pgquad_sparql::{Form, Graphs, Param};
use pgrx::prelude::*;
use pgrx::PgSqlErrorCode;
use sparesults::QueryResultsFormat;

use super::answer::Batch;
use super::execute::Cursor;
use super::graph_text::{graph_format, GraphWriter};
use super::prepared::{own_query, query_of_any_form, Prepared};
use super::query::run_ask;
use super::results::{boolean, SolutionsWriter};
use super::translate::{graphs, name_of};
use crate::pg::error::{raise_hint, required};
use crate::settings;

/// Bytes that make a piece: some writes to a socket, and little beside a batch of decoded rows.
const PIECE_BYTES: usize = 64 << 10;

/// What writes the rows.
enum Writer {
    Solutions(SolutionsWriter),
    Graph(GraphWriter),
}

impl Writer {
    fn batch(&mut self, batch: &Batch, params: &[Param]) {
        match self {
            Self::Solutions(writer) => writer.batch(batch, params),
            Self::Graph(writer) => writer.batch(batch, params),
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::Solutions(writer) => writer.len(),
            Self::Graph(writer) => writer.len(),
        }
    }

    fn take(&mut self) -> String {
        match self {
            Self::Solutions(writer) => writer.take(),
            Self::Graph(writer) => writer.take(),
        }
    }

    fn finish(self) -> String {
        match self {
            Self::Solutions(writer) => writer.finish(),
            Self::Graph(writer) => writer.finish(),
        }
    }
}

/// The pieces of an answer.
enum Pieces {
    /// There is one, or there is none any more.
    Whole(Option<String>),
    Running {
        cursor: Cursor,
        writer: Box<Writer>,
        rows: RowLimit,
    },
}

impl Pieces {
    fn of_query(prepared: Prepared, format: AnswerFormat, rows: RowLimit) -> Self {
        let writer = match format {
            AnswerFormat::Solutions(format) => {
                if prepared.form() == Form::Ask {
                    return Self::Whole(Some(boolean(format, run_ask(&prepared))));
                }
                Writer::Solutions(SolutionsWriter::new(format, prepared.columns()))
            }
            AnswerFormat::Graph(format) => Writer::Graph(GraphWriter::new(format)),
        };
        Self::Running {
            cursor: Cursor::open(prepared),
            writer: Box::new(writer),
            rows,
        }
    }
}

impl Iterator for Pieces {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        let (cursor, writer, rows) = match self {
            Self::Whole(piece) => return piece.take(),
            Self::Running {
                cursor,
                writer,
                rows,
            } => (cursor, writer, rows),
        };
        let mut more = true;
        while more && writer.len() < PIECE_BYTES {
            more = cursor
                .fetch_batch(|batch, params| {
                    rows.take(batch.len());
                    writer.batch(batch, params);
                })
                .is_some();
        }
        if more {
            return Some(writer.take());
        }
        match std::mem::replace(self, Self::Whole(None)) {
            Self::Running { writer, .. } => Some(writer.finish()),
            Self::Whole(piece) => piece,
        }
    }
}

/// How many rows an answer may still have.
struct RowLimit {
    limit: Option<u64>,
    rows: u64,
}

impl RowLimit {
    /// The lower one of the setting and of what the caller asks for.
    fn new(asked: Option<i64>) -> Self {
        let asked = asked.map(|rows| {
            u64::try_from(rows).unwrap_or_else(|_| {
                raise_hint(
                    PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
                    "max_rows must not be negative",
                    "NULL is for any number of rows.",
                )
            })
        });
        let set = u64::try_from(settings::MAX_RESULT_ROWS.get())
            .ok()
            .filter(|rows| *rows > 0);
        Self {
            limit: set.into_iter().chain(asked).min(),
            rows: 0,
        }
    }

    fn take(&mut self, rows: usize) {
        self.rows += rows as u64;
        if let Some(limit) = self.limit.filter(|limit| self.rows > *limit) {
            raise_hint(
                PgSqlErrorCode::ERRCODE_PROGRAM_LIMIT_EXCEEDED,
                format!("the answer has more than {limit} rows"),
                "Add a LIMIT to the query, or raise the limit: setting quad.max_result_rows and argument max_rows.",
            );
        }
    }
}

/// The format of an answer.
#[derive(Clone, Copy)]
enum AnswerFormat {
    Solutions(QueryResultsFormat),
    Graph(Format),
}

/// Whether the answer to a query of this form is a table of solutions or a boolean, not a graph.
fn has_solutions(form: Form) -> bool {
    matches!(form, Form::Select | Form::Ask)
}

/// The pieces of the answer to a query of these forms.
fn stream(
    query: &str,
    store: Option<&str>,
    base: Option<&str>,
    graphs: Option<&Graphs>,
    max_rows: Option<i64>,
    format: AnswerFormat,
) -> SetOfIterator<'static, String> {
    let prepared = query_of_any_form(query, store, base, graphs);
    let solutions = has_solutions(prepared.form());
    if solutions != matches!(format, AnswerFormat::Solutions(_)) {
        raise_hint(
            PgSqlErrorCode::ERRCODE_WRONG_OBJECT_TYPE,
            format!(
                "a query of the form {} has no such result",
                name_of(prepared.form())
            ),
            if solutions {
                "Call quad.sparql_json_stream or its kin."
            } else {
                "Call quad.construct_stream or quad.describe_stream."
            },
        );
    }
    SetOfIterator::new(Pieces::of_query(prepared, format, RowLimit::new(max_rows)))
}

macro_rules! solutions_function {
    ($name:ident, $format:ident, $doc:literal) => {
        #[doc = $doc]
        ///
        /// `default_graphs`, `named_graphs`: the data set, in the place of what FROM and FROM NAMED say. `max_rows`: an
        /// error when there are more, as with the setting `quad.max_result_rows`.
        #[pg_extern(stable)]
        fn $name(
            query: Option<&str>,
            store: default!(Option<&str>, "NULL"),
            base: default!(Option<&str>, "NULL"),
            default_graphs: default!(Option<Vec<Option<String>>>, "NULL"),
            named_graphs: default!(Option<Vec<Option<String>>>, "NULL"),
            max_rows: default!(Option<i64>, "NULL"),
        ) -> SetOfIterator<'static, String> {
            let query = required("query", query);
            let graphs = graphs(default_graphs, named_graphs);
            let format = AnswerFormat::Solutions(QueryResultsFormat::$format);
            stream(query, store, base, graphs.as_ref(), max_rows, format)
        }
    };
}

solutions_function!(
    sparql_json_stream,
    Json,
    "Answers a SELECT or ASK query in SPARQL 1.1 Query Results JSON Format, in pieces."
);
solutions_function!(
    sparql_xml_stream,
    Xml,
    "Answers a SELECT or ASK query in SPARQL Query Results XML Format, in pieces."
);
solutions_function!(
    sparql_csv_stream,
    Csv,
    "Answers a SELECT query in SPARQL 1.1 Query Results CSV Format, in pieces."
);
solutions_function!(
    sparql_tsv_stream,
    Tsv,
    "Answers a SELECT query in SPARQL 1.1 Query Results TSV Format, in pieces."
);

macro_rules! graph_function {
    ($name:ident, $doc:literal) => {
        #[doc = $doc]
        ///
        /// Formats are those of `quad.construct_text`, the other arguments those of `quad.sparql_json_stream`.
        #[pg_extern(stable)]
        fn $name(
            query: Option<&str>,
            format: default!(Option<&str>, "'turtle'"),
            store: default!(Option<&str>, "NULL"),
            base: default!(Option<&str>, "NULL"),
            default_graphs: default!(Option<Vec<Option<String>>>, "NULL"),
            named_graphs: default!(Option<Vec<Option<String>>>, "NULL"),
            max_rows: default!(Option<i64>, "NULL"),
        ) -> SetOfIterator<'static, String> {
            let query = required("query", query);
            let format = AnswerFormat::Graph(graph_format(required("format", format)));
            let graphs = graphs(default_graphs, named_graphs);
            stream(query, store, base, graphs.as_ref(), max_rows, format)
        }
    };
}

graph_function!(
    construct_stream,
    "Answers a CONSTRUCT query with a document in pieces."
);
graph_function!(
    describe_stream,
    "Answers a DESCRIBE query with a document in pieces."
);

/// Answers a query of any form in pieces, in one round trip for a server that does not parse queries itself. The first
/// row tells what follows. It is `results` for SELECT and ASK, in the format that the argument of this name says
/// (`json`, `xml`, `csv`, `tsv`). It is `graph` for CONSTRUCT and DESCRIBE (formats as in `quad.construct_text`). NULL
/// for one of them refuses queries of these forms (42809). The other arguments are those of `quad.sparql_json_stream`.
#[pg_extern(stable)]
#[allow(clippy::too_many_arguments)]
fn answer_stream(
    query: Option<&str>,
    results: default!(Option<&str>, "'json'"),
    graph: default!(Option<&str>, "'turtle'"),
    store: default!(Option<&str>, "NULL"),
    base: default!(Option<&str>, "NULL"),
    default_graphs: default!(Option<Vec<Option<String>>>, "NULL"),
    named_graphs: default!(Option<Vec<Option<String>>>, "NULL"),
    max_rows: default!(Option<i64>, "NULL"),
) -> SetOfIterator<'static, String> {
    let query = required("query", query);
    let graphs = graphs(default_graphs, named_graphs);
    let prepared = query_of_any_form(query, store, base, graphs.as_ref());
    let form = prepared.form();
    let solutions = has_solutions(form);
    let Some(name) = (if solutions { results } else { graph }) else {
        raise_hint(
            PgSqlErrorCode::ERRCODE_WRONG_OBJECT_TYPE,
            format!("a query of the form {} has no such result", name_of(form)),
            if solutions {
                "SELECT and ASK have results in JSON, XML, CSV and TSV."
            } else {
                "CONSTRUCT and DESCRIBE have graphs: Turtle, N-Triples, RDF/XML, JSON-LD."
            },
        )
    };
    let format = if solutions {
        AnswerFormat::Solutions(results_format(name))
    } else {
        AnswerFormat::Graph(graph_format(name))
    };
    let pieces = Pieces::of_query(prepared, format, RowLimit::new(max_rows));
    let kind = if solutions { "results" } else { "graph" };
    SetOfIterator::new(std::iter::once(kind.to_owned()).chain(pieces))
}

/// The format of results with this name.
fn results_format(name: &str) -> QueryResultsFormat {
    match name {
        "json" => QueryResultsFormat::Json,
        "xml" => QueryResultsFormat::Xml,
        "csv" => QueryResultsFormat::Csv,
        "tsv" => QueryResultsFormat::Tsv,
        _ => raise_hint(
            PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
            format!("format \"{name}\" of results is not known"),
            "Formats of results are json, xml, csv and tsv.",
        ),
    }
}

/// A graph of a store as a document in pieces. `graph`: its IRI; the empty string stands for the default graph. NULL is
/// for all graphs, in a format that can hold them: `nquads` or `trig`. Nothing comes of a graph without triples but
/// what the format begins and ends with.
#[pg_extern(stable)]
fn graph_stream(
    graph: Option<&str>,
    format: default!(Option<&str>, "'turtle'"),
    store: default!(Option<&str>, "NULL"),
) -> SetOfIterator<'static, String> {
    let format = graph_format(required("format", format));
    let query = match graph {
        Some("") => "SELECT ?s ?p ?o { ?s ?p ?o }".to_owned(),
        Some(iri) => {
            let iri = oxrdf::NamedNode::new(iri).unwrap_or_else(|error| {
                raise_hint(
                    PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
                    format!("\"{iri}\" is not an absolute IRI of a graph: {error}"),
                    "The empty string stands for the default graph.",
                )
            });
            format!("SELECT ?s ?p ?o {{ GRAPH {iri} {{ ?s ?p ?o }} }}")
        }
        None if matches!(format, Format::NQuads | Format::TriG) => {
            "SELECT ?s ?p ?o ?g { { ?s ?p ?o } UNION { GRAPH ?g { ?s ?p ?o } } }".to_owned()
        }
        None => raise_hint(
            PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
            format!("{format} cannot hold more than one graph"),
            "Formats of quads are nquads and trig.",
        ),
    };
    let prepared = own_query(&query, store);
    SetOfIterator::new(Pieces::of_query(
        prepared,
        AnswerFormat::Graph(format),
        RowLimit::new(None),
    ))
}
