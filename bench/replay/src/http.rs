//! A small HTTP/1.1 client for SPARQL endpoints: one connection, one request after the other. It does no more than that
//! takes, so the measured time is the store's.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use crate::log::{Form, Query};

/// Where an endpoint is, and how to talk to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    address: String,
    path: String,
    parameters: String,
    keep_alive: bool,
}

impl Endpoint {
    /// Takes `http://host:port/path?parameters` apart. The parameters are sent with each query.
    pub fn new(url: &str, keep_alive: bool) -> Result<Self, String> {
        let rest = url
            .strip_prefix("http://")
            .ok_or_else(|| format!("{url}: only http:// is known"))?;
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let (path, parameters) = path.split_once('?').unwrap_or((path, ""));
        let port = if authority.contains(':') { "" } else { ":80" };
        Ok(Self {
            address: format!("{authority}{port}"),
            path: if path.is_empty() {
                "/".into()
            } else {
                path.into()
            },
            parameters: parameters.to_owned(),
            keep_alive,
        })
    }

    /// The whole request for a query: a form, which every endpoint understands.
    pub fn request(&self, query: &Query) -> Vec<u8> {
        let mut body = String::from("query=");
        encode(&query.text, &mut body);
        if !self.parameters.is_empty() {
            body.push('&');
            body.push_str(&self.parameters);
        }
        let accept = match query.form {
            Form::Select | Form::Ask => "application/sparql-results+json",
            Form::Construct | Form::Describe => "application/n-triples, text/plain;q=0.5",
        };
        let connection = if self.keep_alive {
            "keep-alive"
        } else {
            "close"
        };
        format!(
            "POST {} HTTP/1.1\r\nHost: {}\r\nAccept: {accept}\r\nConnection: {connection}\r\n\
             Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n\r\n{body}",
            self.path,
            self.address,
            body.len()
        )
        .into_bytes()
    }
}

fn encode(text: &str, into: &mut String) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                into.push(byte.into())
            }
            b' ' => into.push('+'),
            _ => {
                into.push('%');
                into.push(HEX[usize::from(byte >> 4)].into());
                into.push(HEX[usize::from(byte & 15)].into());
            }
        }
    }
}

/// A connection to an endpoint; made anew when the other side has closed it.
pub struct Connection {
    endpoint: Endpoint,
    timeout: Duration,
    stream: Option<BufReader<TcpStream>>,
}

impl Connection {
    /// A connection that gives up on an answer after a time.
    pub fn new(endpoint: Endpoint, timeout: Duration) -> Self {
        Self {
            endpoint,
            timeout,
            stream: None,
        }
    }

    /// Sends a request and reads the whole answer into `body`.
    pub fn ask(&mut self, request: &[u8], body: &mut Vec<u8>) -> Result<(), String> {
        let reused = self.stream.is_some();
        match self.attempt(request, body) {
            // A server may close a connection that it has kept; that is no failure of the query.
            Err(Failure::Closed) if reused => self.attempt(request, body).map_err(Failure::text),
            other => other.map_err(Failure::text),
        }
    }

    fn attempt(&mut self, request: &[u8], body: &mut Vec<u8>) -> Result<(), Failure> {
        body.clear();
        let mut stream = match self.stream.take() {
            Some(stream) => stream,
            None => self.connect()?,
        };
        if stream.get_mut().write_all(request).is_err() {
            return Err(Failure::Closed);
        }
        let head = Head::read(&mut stream)?;
        match (head.chunked, head.length) {
            (true, _) => read_chunks(&mut stream, body)?,
            (false, Some(length)) => {
                stream.by_ref().take(length).read_to_end(body)?;
            }
            (false, None) => {
                stream.read_to_end(body)?;
            }
        }
        let delimited = head.chunked || head.length.is_some();
        if self.endpoint.keep_alive && delimited && !head.closes {
            self.stream = Some(stream);
        }
        if (200..300).contains(&head.status) {
            return Ok(());
        }
        let text: String = String::from_utf8_lossy(body).chars().take(300).collect();
        Err(Failure::Refused(format!("status {}: {text}", head.status)))
    }

    fn connect(&self) -> Result<BufReader<TcpStream>, Failure> {
        let stream = TcpStream::connect(&self.endpoint.address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(self.timeout))?;
        Ok(BufReader::with_capacity(1 << 16, stream))
    }
}

enum Failure {
    /// The connection ended before an answer began.
    Closed,
    Refused(String),
}

impl Failure {
    fn text(self) -> String {
        match self {
            Self::Closed => "the connection was closed".into(),
            Self::Refused(text) => text,
        }
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::Refused(error.to_string())
    }
}

/// What is needed of the status line and the headers.
struct Head {
    status: u16,
    length: Option<u64>,
    chunked: bool,
    closes: bool,
}

impl Head {
    fn read(stream: &mut impl BufRead) -> Result<Self, Failure> {
        let mut line = String::new();
        if matches!(stream.read_line(&mut line), Ok(0)) {
            return Err(Failure::Closed);
        }
        let status = line.split(' ').nth(1).and_then(|s| s.parse().ok());
        let mut head = Self {
            status: status.ok_or_else(|| Failure::Refused(format!("not HTTP: {line}")))?,
            length: None,
            chunked: false,
            closes: line.starts_with("HTTP/1.0"),
        };
        loop {
            line.clear();
            if stream.read_line(&mut line)? == 0 {
                return Err(Failure::Refused("the answer ends in its head".into()));
            }
            let Some((name, value)) = line.trim_end().split_once(':') else {
                return Ok(head);
            };
            let value = value.trim();
            match name.to_ascii_lowercase().as_str() {
                "content-length" => head.length = value.parse().ok(),
                "transfer-encoding" => head.chunked = value.eq_ignore_ascii_case("chunked"),
                "connection" => head.closes = value.eq_ignore_ascii_case("close"),
                _ => {}
            }
        }
    }
}

fn read_chunks(stream: &mut impl BufRead, body: &mut Vec<u8>) -> Result<(), Failure> {
    let mut line = String::new();
    loop {
        line.clear();
        stream.read_line(&mut line)?;
        let size = line.trim_end().split(';').next().unwrap_or_default();
        let size = u64::from_str_radix(size, 16)
            .map_err(|_| Failure::Refused(format!("not the size of a chunk: {line}")))?;
        stream.by_ref().take(size).read_to_end(body)?;
        line.clear();
        stream.read_line(&mut line)?;
        if size == 0 {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    fn query(text: &str) -> Query {
        Query {
            mix: 0,
            number: 1,
            form: Form::Ask,
            text: text.to_owned(),
        }
    }

    /// Answers one request on each of the connections with the given bytes.
    fn serve(answers: Vec<&'static [u8]>) -> (Endpoint, std::thread::JoinHandle<()>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/sparql?graph=a", listener.local_addr().unwrap());
        let server = std::thread::spawn(move || {
            for answer in answers {
                let (mut stream, _) = listener.accept().unwrap();
                let mut bytes = [0; 4096];
                let count = stream.read(&mut bytes).unwrap();
                assert!(bytes[..count].ends_with(b"query=ASK+%7B%7D&graph=a"));
                stream.write_all(answer).unwrap();
            }
        });
        (Endpoint::new(&url, true).unwrap(), server)
    }

    #[test]
    fn answers_of_every_framing() {
        let (endpoint, server) = serve(vec![
            b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\nyes",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n2\r\nye\r\n1;x\r\ns\r\n0\r\n\r\n",
            b"HTTP/1.0 200 OK\r\n\r\nyes",
            b"HTTP/1.1 400 Bad\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno",
        ]);
        let request = endpoint.request(&query("ASK {}"));
        let mut connection = Connection::new(endpoint, Duration::from_secs(5));
        let mut body = Vec::new();
        for _ in 0..3 {
            connection.ask(&request, &mut body).unwrap();
            assert_eq!(body, b"yes");
        }
        assert_eq!(
            connection.ask(&request, &mut body).unwrap_err(),
            "status 400: no"
        );
        server.join().unwrap();
    }

    #[test]
    fn urls() {
        let endpoint = Endpoint::new("http://localhost/q", true).unwrap();
        assert_eq!(
            (&*endpoint.address, &*endpoint.path),
            ("localhost:80", "/q")
        );
        assert!(Endpoint::new("https://localhost/", true).is_err());
    }
}
