//! SPARQL endpoints on the loopback interface, which answer from stores of the database under test.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

use postgres::Client;

use crate::database::{connect_to_test_database, ENDPOINT_SETTINGS};
use crate::manifest::File;

/// The endpoints of a test. Their stores are dropped with them.
pub struct Endpoints {
    admin: Client,
    stores: Vec<String>,
    /// What takes the place of what in the files of the test: the addresses of the endpoints.
    pub replaced: Vec<(String, String)>,
}

/// An endpoint that the suite uses because there is none.
const NOBODY: &str = "http://invalid.endpoint.org/sparql";

impl Endpoints {
    /// Starts an endpoint for each address, with these data.
    pub fn start(services: &[(String, File)]) -> Self {
        let mut admin = connect_to_test_database();
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port is free");
        let here = listener.local_addr().expect("it is bound");
        // Nobody listens at a port that has been given back.
        let closed = TcpListener::bind(("127.0.0.1", 0))
            .and_then(|l| l.local_addr())
            .expect("a port is free");
        let mut stores = Vec::new();
        let mut replaced = vec![(NOBODY.to_owned(), format!("http://{closed}/sparql"))];
        for (iri, _) in services {
            let store = format!("endpoint_{}", stores.len());
            replaced.push((iri.clone(), format!("http://{here}/{store}")));
            stores.push(store);
        }
        for (store, (_, file)) in stores.iter().zip(services) {
            let text = read(file, &replaced);
            admin
                .execute("SELECT quad.create_store($1)", &[store])
                .and_then(|_| {
                    let load = "SELECT quad.load_text($1, 'ttl', base => $2, store => $3)";
                    admin.execute(load, &[&text, &file.iri, store])
                })
                .unwrap_or_else(|error| panic!("{}: {error}", file.iri));
        }
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                // An endpoint may be asked by another one that is answering.
                thread::spawn(move || serve(stream));
            }
        });
        Self {
            admin,
            stores,
            replaced,
        }
    }
}

impl Drop for Endpoints {
    fn drop(&mut self) {
        for store in &self.stores {
            if let Err(error) = self.admin.execute("SELECT quad.drop_store($1)", &[store]) {
                eprintln!("store {store} stays: {error}");
            }
        }
    }
}

/// The text of a file with the addresses of the endpoints in it.
pub fn read(file: &File, replaced: &[(String, String)]) -> String {
    let mut text =
        std::fs::read_to_string(&file.path).unwrap_or_else(|e| panic!("{}: {e}", file.iri));
    for (from, to) in replaced {
        text = text.replace(from, to);
    }
    text
}

/// Answers one request: a POST of a form with the field `query` to `/<store>`.
fn serve(mut stream: TcpStream) {
    let request = read_request(&mut stream);
    let (head, body) = request.split_once("\r\n\r\n").unwrap_or((&request, ""));
    let store = head
        .strip_prefix("POST /")
        .and_then(|rest| rest.split(' ').next());
    let query = body.strip_prefix("query=").map(decoded);
    let (status, media_type, answer) = match (store, query) {
        (Some(store), Some(query)) => match answer(store, &query) {
            Ok(json) => ("200 OK", "application/sparql-results+json", json),
            Err(error) => ("500 Internal Server Error", "text/plain", error),
        },
        _ => ("400 Bad Request", "text/plain", "not a query".to_owned()),
    };
    // A client that has gone needs no answer.
    let _ = write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: {media_type}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{answer}",
        answer.len()
    );
}

fn answer(store: &str, query: &str) -> Result<String, String> {
    let mut client = connect_to_test_database();
    client
        .batch_execute(ENDPOINT_SETTINGS)
        .and_then(|()| client.query_one("SELECT quad.sparql_json($1, $2)", &[&query, &store]))
        .map(|row| row.get(0))
        .map_err(|error| match error.as_db_error() {
            Some(error) => error.message().to_owned(),
            None => error.to_string(),
        })
}

fn read_request(stream: &mut TcpStream) -> String {
    let mut request = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let read = stream.read(&mut buffer).unwrap_or(0);
        request.extend_from_slice(&buffer[..read]);
        let text = String::from_utf8_lossy(&request).into_owned();
        let whole = text.split_once("\r\n\r\n").is_some_and(|(head, body)| {
            let length = head.lines().find_map(|line| {
                let line = line.to_ascii_lowercase();
                line.strip_prefix("content-length:")?.trim().parse().ok()
            });
            body.len() >= length.unwrap_or(0)
        });
        if whole || read == 0 {
            return text;
        }
    }
}

/// Text out of a form.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        rest = tail;
        match (first, tail) {
            (b'+', _) => bytes.push(b' '),
            (b'%', [a, b, tail @ ..]) => {
                let digits = [*a, *b];
                let digits = std::str::from_utf8(&digits).unwrap_or_default();
                bytes.push(u8::from_str_radix(digits, 16).unwrap_or(b'?'));
                rest = tail;
            }
            _ => bytes.push(*first),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
