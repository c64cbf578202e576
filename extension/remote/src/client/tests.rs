//! Against servers that the tests start on the loopback interface.

use super::*;
use crate::{select, Job, Row, Step};
use pgquad_term::TermBuf;
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Instant;

const LOOPBACK: &str = "127.0.0.1";

/// Starts a server that gives what `answer` makes of each request; returns `127.0.0.1:port`.
fn server(answer: impl Fn(&str, &mut TcpStream) + Send + 'static) -> String {
    let listener = TcpListener::bind((LOOPBACK, 0)).unwrap();
    let name = listener.local_addr().unwrap().to_string();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let request = read_request(&mut stream);
            answer(&request, &mut stream);
        }
    });
    name
}

fn read_request(stream: &mut TcpStream) -> String {
    let mut request = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let read = stream.read(&mut buffer).unwrap_or(0);
        request.extend_from_slice(&buffer[..read]);
        let text = String::from_utf8_lossy(&request).into_owned();
        let whole = text.split_once("\r\n\r\n").is_some_and(|(head, body)| {
            let length = head
                .lines()
                .find_map(|line| {
                    line.to_ascii_lowercase()
                        .strip_prefix("content-length: ")?
                        .parse()
                        .ok()
                })
                .unwrap_or(0);
            body.len() >= length
        });
        if whole || read == 0 {
            return text;
        }
    }
}

fn reply(stream: &mut TcpStream, status: &str, headers: &str, body: &str) {
    let _ = write!(
        stream,
        "HTTP/1.1 {status}\r\n{headers}Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
}

fn client(servers: &str, networks: &str, timeout_ms: u64, bytes: u64) -> Client {
    let limits = Limits {
        timeout: Duration::from_millis(timeout_ms),
        bytes,
        authorities: None,
    };
    Client::new(Rules::parse(servers, networks).unwrap(), &limits).unwrap()
}

fn local() -> Client {
    client("127.0.0.1:*", LOOPBACK, 60_000, 1_000)
}

fn body(document: Result<Document, Error>) -> String {
    let mut text = String::new();
    document.unwrap().body.read_to_string(&mut text).unwrap();
    text
}

fn kind(document: Result<Document, Error>) -> ErrorKind {
    document.err().unwrap().kind
}

#[test]
fn a_document_and_its_type() {
    let name = server(|request, stream| {
        assert!(request.contains("accept: text/turtle\r\n"), "{request}");
        reply(
            stream,
            "200 OK",
            "Content-Type: Text/Turtle; charset=utf-8\r\n",
            request,
        );
    });
    let url = format!("http://{name}/a/ä?b=c d#frag");
    assert_eq!(
        kind(local().fetch(&url, Method::Get, "")),
        ErrorKind::Address
    );
    let url = format!("http://{name}/a/ä?b=c#frag");
    let document = local().fetch(&url, Method::Get, "text/turtle").unwrap();
    assert_eq!(document.media_type.as_deref(), Some("text/turtle"));
    assert_eq!(document.url, format!("http://{name}/a/%C3%A4?b=c"));
    assert!(body(Ok(document)).starts_with("GET /a/%C3%A4?b=c HTTP/1.1\r\n"));
}

#[test]
fn servers_that_are_not_allowed_are_not_asked() {
    let name = server(|_, stream| reply(stream, "200 OK", "", "secret"));
    let url = format!("http://{name}/");
    let get = |client: Client| kind(client.fetch(&url, Method::Get, "*/*"));
    assert_eq!(get(client("", "", 1000, 1000)), ErrorKind::NotAllowed);
    assert_eq!(
        get(client("127.0.0.1", LOOPBACK, 1000, 1000)),
        ErrorKind::NotAllowed
    );
    assert_eq!(
        get(client("*:*", "", 1000, 1000)),
        ErrorKind::PrivateAddress
    );
    // Other ways to write the same address, and a name for it.
    let port = name.rsplit(':').next().unwrap();
    for host in [
        "localhost",
        "127.1",
        "2130706433",
        "0x7f000001",
        "[::ffff:127.0.0.1]",
        "0.0.0.0",
    ] {
        let url = format!("http://{host}:{port}/");
        let refused = kind(client("*:*", "", 1000, 1000).fetch(&url, Method::Get, "*/*"));
        assert!(
            matches!(refused, ErrorKind::PrivateAddress | ErrorKind::Connect),
            "{host}: {refused:?}"
        );
    }
    assert_eq!(body(local().fetch(&url, Method::Get, "*/*")), "secret");
}

#[test]
fn redirects_follow_the_rules() {
    let end = server(|request, stream| reply(stream, "200 OK", "", request));
    let target = end.clone();
    let name = server(move |request, stream| {
        let path = request.split(' ').nth(1).unwrap();
        let location = match path {
            "/see" | "/moved" => format!("http://{target}/end"),
            "/name" => format!("http://localhost:{}/", target.rsplit(':').next().unwrap()),
            "/file" => "file:///etc/passwd".to_owned(),
            "/relative" => "/see".to_owned(),
            _ => "/loop".to_owned(),
        };
        let status = if path == "/moved" {
            "307 Moved"
        } else {
            "303 See Other"
        };
        reply(stream, status, &format!("Location: {location}\r\n"), "");
    });
    let get = |path: &str| local().fetch(&format!("http://{name}/{path}"), Method::Get, "*/*");
    assert!(body(get("see")).starts_with("GET /end"));
    assert!(body(get("relative")).starts_with("GET /end"));
    assert_eq!(kind(get("name")), ErrorKind::NotAllowed);
    assert_eq!(kind(get("file")), ErrorKind::Address);
    assert_eq!(kind(get("loop")), ErrorKind::Answer);
    let form = Method::Form {
        name: "query",
        value: "ASK {} #ä&",
    };
    let post = |path: &str| body(local().fetch(&format!("http://{name}/{path}"), form, "*/*"));
    assert!(post("see").starts_with("GET /end"));
    let moved = post("moved");
    assert!(moved.starts_with("POST /end"), "{moved}");
    assert!(moved.ends_with("query=ASK+%7B%7D+%23%C3%A4%26"), "{moved}");
}

#[test]
fn statuses_sizes_and_times_are_bounded() {
    let name = server(|request, stream| {
        let path = request.split(' ').nth(1).unwrap();
        match path {
            "/missing" => reply(stream, "404 Not Found", "", "<html>\nno such thing\u{7}\n"),
            "/large" => reply(stream, "200 OK", "", &"x".repeat(1001)),
            "/exact" => reply(stream, "200 OK", "", &"x".repeat(1000)),
            "/cut" => {
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf");
            }
            "/nonsense" => {
                let _ = stream.write_all(b"220 ready\r\n");
            }
            _ => thread::sleep(Duration::from_secs(2)),
        }
    });
    let get = |path: &str| local().fetch(&format!("http://{name}/{path}"), Method::Get, "*/*");
    let missing = get("missing").err().unwrap();
    assert_eq!(missing.kind, ErrorKind::Status(404));
    assert_eq!(
        missing.to_string(),
        format!("<http://{name}/missing>: the server answers 404 Not Found: no such thing")
    );
    let read = |path: &str| {
        let mut text = String::new();
        let error = get(path).unwrap().body.read_to_string(&mut text).err();
        error.map(|e| e.downcast::<Error>().unwrap().kind)
    };
    assert_eq!(read("exact"), None);
    assert_eq!(read("large"), Some(ErrorKind::TooLarge));
    assert_eq!(read("cut"), Some(ErrorKind::Connect));
    assert_eq!(kind(get("nonsense")), ErrorKind::Answer);
    let hasty = client("127.0.0.1:*", LOOPBACK, 100, 1000);
    let slow = hasty.fetch(&format!("http://{name}/slow"), Method::Get, "*/*");
    assert_eq!(kind(slow), ErrorKind::Timeout);
    let closed = TcpListener::bind((LOOPBACK, 0))
        .unwrap()
        .local_addr()
        .unwrap();
    let refused = local().fetch(&format!("http://{closed}/"), Method::Get, "*/*");
    assert_eq!(kind(refused), ErrorKind::Connect);
}

fn rows(name: &str) -> Result<Vec<Row>, Error> {
    let mut all = Vec::new();
    let variables = ["b".to_owned(), "a".to_owned(), "c".to_owned()];
    let url = format!("http://{name}/");
    select(
        &local(),
        &url,
        "SELECT * {}",
        &variables,
        [7; 16],
        &mut |rows| {
            all.extend(rows);
            true
        },
    )?;
    Ok(all)
}

#[test]
fn solutions_of_an_endpoint() {
    let name = server(|request, stream| {
        assert!(request.ends_with("query=SELECT+*+%7B%7D"), "{request}");
        let body = "?a\t?b\n<http://x>\t_:n\n\t_:n\n\"x\"@EN\t1\n";
        reply(
            stream,
            "200 OK",
            "Content-Type: text/tab-separated-values\r\n",
            body,
        );
    });
    let shown: Vec<Vec<String>> = rows(&name)
        .unwrap()
        .iter()
        .map(|row| {
            let shown =
                |t: &Option<TermBuf>| t.as_ref().map_or("-".into(), |t| t.as_term().to_string());
            row.iter().map(shown).collect()
        })
        .collect();
    let node = &shown[0][0];
    assert!(node.starts_with("_:s"), "{node}");
    assert_eq!(shown[0][1..], ["<http://x>", "-"]);
    assert_eq!(shown[1][..], [node, "-", "-"]);
    assert_eq!(shown[2][1..], ["\"x\"@en", "-"]);
}

#[test]
fn answers_that_are_no_solutions() {
    for (media_type, body) in [
        ("text/html", "<html/>"),
        ("text/csv", "a,b\n1,2\n"),
        ("application/sparql-results+json", "{\"boolean\": true}"),
        (
            "application/sparql-results+json",
            "{\"head\": {}, \"results\": {\"bindings\": [5]}}",
        ),
        ("application/sparql-results+xml", "<sparql>"),
    ] {
        let name = server(move |_, stream| {
            reply(
                stream,
                "200 OK",
                &format!("Content-Type: {media_type}\r\n"),
                body,
            );
        });
        let error = rows(&name).err().unwrap();
        assert_eq!(error.kind, ErrorKind::Answer, "{body}: {error}");
        assert!(error.url.contains(&name));
    }
}

#[test]
fn a_job_that_is_dropped_ends_its_connection() {
    let (sent, closed) = std::sync::mpsc::channel();
    let name = server(move |_, stream| {
        let begun = Instant::now();
        let _ = stream.read(&mut [0; 1]);
        let _ = sent.send(begun.elapsed());
    });
    let url = format!("http://{name}/");
    let mut job = Job::start(local(), move |client, give: &mut dyn FnMut(()) -> bool| {
        client.fetch(&url, Method::Get, "*/*")?;
        give(());
        Ok(())
    })
    .unwrap();
    assert!(matches!(
        job.next(Duration::from_millis(100)),
        Ok(Step::Waiting)
    ));
    drop(job);
    // Before the client's own limit, on a busy machine too.
    assert!(closed.recv_timeout(Duration::from_secs(30)).unwrap() < Duration::from_secs(30));
}

#[test]
fn a_job_that_panics_is_an_error() {
    let mut job = Job::<()>::start(local(), |_, _| panic!("on purpose")).unwrap();
    let error = job.next(Duration::from_secs(60)).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Internal);
    assert!(matches!(job.next(Duration::ZERO), Ok(Step::End)));
}
