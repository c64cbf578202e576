//! LOAD: a document of the web, or a file of the server, into a store.

use std::io::{self, Read};
use std::sync::{Arc, Mutex};

use pgquad_reader::{Format, Source};
use pgquad_remote::{Document, Error, Job, Method};
use pgrx::PgSqlErrorCode;

use super::failure::raise_failure;
use super::{client, wait};
use crate::load::{self, Loader, Progress, Request};
use crate::pg::error::{raise, raise_hint};

const ACCEPT: &str = "text/turtle, application/n-triples, application/n-quads, application/trig, \
                      application/rdf+xml;q=0.9, application/ld+json;q=0.8, */*;q=0.1";

/// Loads the document at an IRI; triples outside of named graphs go to `graph`. Gives the number of new quads.
pub fn load(source: &str, graph: Option<&str>, store: Option<&str>) -> i64 {
    if source.starts_with("file:") {
        let path = path_of_file(source);
        return load::load_as(&path, None, graph, Some(source), store);
    }
    let url = source.to_owned();
    let mut job: Job<Document> = wait::start(client::client(), move |client, give| {
        give(client.fetch(&url, Method::Get, ACCEPT)?);
        Ok(())
    });
    let document = match wait::next(&mut job) {
        Ok(document) => document.expect("a job gives a document or an error"),
        Err(error) => raise_failure("LOAD", &error),
    };
    // The job stays until the end of the load: dropping it closes the connection.
    read(document, graph, store)
}

fn read(document: Document, graph: Option<&str>, store: Option<&str>) -> i64 {
    let path = path_of_url(&document.url);
    let format = format_of(&document, path);
    let failure = Arc::new(Mutex::new(None));
    let body = Body {
        inner: document.body,
        failure: failure.clone(),
    };
    let source = Source::new(body, path).bounded(client::max_bytes());
    let request = Request {
        format,
        graph,
        one_graph: false,
        base: Some(&document.url),
        store,
    };
    let named = || load::Document {
        format,
        name: format!("Document <{}>", document.url),
    };
    let progress = Progress::start(&document.url, None);
    let mut loader = Loader::start(source, named(), &request, &progress);
    loop {
        match loader.try_step(&progress) {
            Ok(true) => {}
            Ok(false) => break,
            Err(error) => {
                if let Some(failure) = failure.lock().ok().and_then(|mut f| f.take()) {
                    raise_failure("LOAD", &failure);
                }
                load::raise_error(&named(), &error)
            }
        }
    }
    let count = loader.finish(&progress);
    progress.finish();
    count as i64
}

/// A body that keeps the error it ends with: the parsers pass on only its text.
struct Body {
    inner: Box<dyn Read + Send>,
    failure: Arc<Mutex<Option<Error>>>,
}

impl Read for Body {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.inner.read(buffer).inspect_err(|error| {
            let known = error.get_ref().and_then(|e| e.downcast_ref::<Error>());
            if let (Some(error), Ok(mut failure)) = (known, self.failure.lock()) {
                *failure = Some(error.clone());
            }
        })
    }
}

/// What the media type says, or the name where the type says nothing.
fn format_of(document: &Document, path: &str) -> Format {
    let media_type = document.media_type.as_deref().unwrap_or_default();
    Format::from_name(media_type)
        .or_else(|| Format::from_path(path))
        .unwrap_or_else(|| {
            raise_hint(
                PgSqlErrorCode::ERRCODE_PROTOCOL_VIOLATION,
                format!(
                    "LOAD <{}>: the document is of type \"{media_type}\", which is no format of RDF",
                    document.url
                ),
                "Where the type says nothing the name of the document has to end like .ttl, .nt, .nq, .trig, .rdf or .jsonld.",
            )
        })
}

/// The path within an http address.
fn path_of_url(url: &str) -> &str {
    url.split(['?', '#']).next().unwrap_or_default()
}

/// The path that a `file:` IRI names.
fn path_of_file(iri: &str) -> String {
    let refuse = || -> ! {
        raise(
            PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
            format!("LOAD <{iri}>: not the name of a file, as in file:///data/file.ttl"),
        )
    };
    let rest = iri.strip_prefix("file:").unwrap_or_default();
    let path = match rest.strip_prefix("//") {
        Some(named) => named.strip_prefix("localhost").unwrap_or(named),
        None => rest,
    };
    if !path.starts_with('/') || path.contains(['?', '#']) {
        refuse();
    }
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.as_bytes();
    while let [first, tail @ ..] = rest {
        let hex = (*first == b'%')
            .then(|| std::str::from_utf8(tail.get(..2)?).ok())
            .flatten()
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match hex {
            Some(byte) => {
                bytes.push(byte);
                rest = &tail[2..];
            }
            None => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    match String::from_utf8(bytes) {
        Ok(path) if !path.contains('\0') => path,
        _ => refuse(),
    }
}
