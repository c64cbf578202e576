//! `quad.load`, a file of the server, and `quad.load_text`, a document in a value.

use std::fs::File;
use std::io;

use pgquad_reader::{Format, Source};
use pgrx::prelude::*;
use pgrx::{pg_sys, PgSqlErrorCode};

use super::loader::{self, Loader, Request};
use super::progress::Progress;
use super::report::Document;
use crate::pg::error::{raise, raise_hint, required};

/// Loads a file of the server and returns the number of quads that were not in the store before.
///
/// `format`: see `pgquad_reader::Format`; by default what the name of the file tells. `graph`: IRI of the graph for
/// triples outside of named graphs. `base`: IRI against which relative IRIs are resolved. `store`: by default the
/// setting `quad.store`.
#[pg_extern]
fn load(
    path: Option<&str>,
    format: default!(Option<&str>, "NULL"),
    graph: default!(Option<&str>, "NULL"),
    base: default!(Option<&str>, "NULL"),
    store: default!(Option<&str>, "NULL"),
) -> i64 {
    load_as(required("path", path), format, graph, base, store)
}

/// `quad.load` with the rights of the caller.
pub fn load_as(
    path: &str,
    format: Option<&str>,
    graph: Option<&str>,
    base: Option<&str>,
    store: Option<&str>,
) -> i64 {
    check_right();
    let format = match format {
        Some(name) => loader::format(name),
        None => Format::from_path(path).unwrap_or_else(|| {
            raise_hint(
                PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
                format!("the name of file \"{path}\" does not tell its format"),
                format!("Name the format in the call: {}.", Format::NAMES),
            )
        }),
    };
    let (file, bytes) = open(path);
    let progress = Progress::start(path, bytes);
    let document = Document {
        format,
        name: format!("File \"{path}\""),
    };
    run(
        Source::new(file, path),
        document,
        &Request {
            format,
            graph,
            one_graph: false,
            base,
            store,
        },
        progress,
    )
}

/// Loads a document and returns the number of quads that were not in the store before. The format is Turtle unless one
/// is named (every N-Triples document is Turtle too). The other arguments are as for `quad.load`.
#[pg_extern]
fn load_text(
    document: Option<&str>,
    format: default!(Option<&str>, "NULL"),
    graph: default!(Option<&str>, "NULL"),
    base: default!(Option<&str>, "NULL"),
    store: default!(Option<&str>, "NULL"),
) -> i64 {
    let text = required("document", document);
    let format = format.map_or(Format::Turtle, loader::format);
    let progress = Progress::start("(text)", Some(text.len() as u64));
    let document = Document {
        format,
        name: "Document given as text".to_owned(),
    };
    let source = Source::text(text.as_bytes().to_vec());
    run(
        source,
        document,
        &Request {
            format,
            graph,
            one_graph: false,
            base,
            store,
        },
        progress,
    )
}

fn run(source: Source, document: Document, request: &Request<'_>, progress: Progress) -> i64 {
    let mut loader = Loader::start(source, document, request, &progress);
    while loader.step(&progress) {}
    let count = loader.finish(&progress);
    progress.finish();
    count as i64
}

/// As for COPY: files of the server are not for everyone.
fn check_right() {
    // SAFETY: look-ups in the catalogue.
    let allowed = unsafe {
        pg_sys::has_privs_of_role(
            pg_sys::GetUserId(),
            pg_sys::Oid::from(pg_sys::ROLE_PG_READ_SERVER_FILES),
        )
    };
    if !allowed {
        raise_hint(
            PgSqlErrorCode::ERRCODE_INSUFFICIENT_PRIVILEGE,
            "must be superuser or have privileges of the pg_read_server_files role to load a file",
            "Anyone can load a document from the client: with COPY quad.load_stdin FROM STDIN, psql's \\copy, or quad.load_text.",
        );
    }
}

/// Opens the file and tells its size if it is an ordinary one.
fn open(path: &str) -> (File, Option<u64>) {
    let failed = |what: &str, error: &io::Error| -> ! {
        let code = match error.kind() {
            io::ErrorKind::NotFound => PgSqlErrorCode::ERRCODE_UNDEFINED_FILE,
            io::ErrorKind::PermissionDenied => PgSqlErrorCode::ERRCODE_INSUFFICIENT_PRIVILEGE,
            _ => PgSqlErrorCode::ERRCODE_IO_ERROR,
        };
        let text = error.to_string();
        let text = text.split(" (os error").next().unwrap_or_default();
        raise_hint(
            code,
            format!("could not {what} \"{path}\": {text}"),
            "quad.load reads a file of the server. To load one of the client use psql's \\copy to quad.load_stdin, or quad.load_text.",
        )
    };
    let file = File::open(path).unwrap_or_else(|error| failed("open file", &error));
    let data = file
        .metadata()
        .unwrap_or_else(|error| failed("stat file", &error));
    if data.is_dir() {
        raise(
            PgSqlErrorCode::ERRCODE_WRONG_OBJECT_TYPE,
            format!("\"{path}\" is a directory"),
        );
    }
    let bytes = data.is_file().then_some(data.len());
    (file, bytes)
}
