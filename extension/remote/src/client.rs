//! One request: its redirects, its bounds, its errors.

use std::error::Error as _;
use std::fmt;
use std::io::{self, Read};
use std::sync::Arc;
use std::time::Duration;

use ureq::http::{header, Request, Response, StatusCode, Uri};
use ureq::tls::{parse_pem, PemItem, RootCerts, TlsConfig};
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{DefaultConnector, NextTimeout};
use ureq::{Agent, Body};

use crate::error::{Error, ErrorKind};
use crate::rules::Rules;

/// Redirects that are followed.
const MAX_REDIRECTS: usize = 5;

/// Bounds of a request.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Longest time without anything coming or going.
    pub timeout: Duration,
    /// Largest answer in bytes.
    pub bytes: u64,
    /// Certificates of authorities that vouch for servers, in PEM form; `None`: those of Mozilla.
    pub authorities: Option<Vec<u8>>,
}

/// What is sent.
#[derive(Clone, Copy, Debug)]
pub enum Method<'a> {
    /// GET.
    Get,
    /// POST of a form with one field.
    Form {
        /// Name of the field.
        name: &'a str,
        /// Its value.
        value: &'a str,
    },
}

/// Makes requests. A clone is the same client.
#[derive(Clone, Debug)]
pub struct Client {
    rules: Arc<Rules>,
    agent: Agent,
    bytes: u64,
}

/// An answer whose body is still to be read.
pub struct Document {
    /// Where it was in the end.
    pub url: String,
    /// The media type, as the server says.
    pub media_type: Option<String>,
    /// The body. Its errors are [`Error`] within [`io::Error`].
    pub body: Box<dyn Read + Send>,
}

impl Client {
    /// A client under these rules.
    ///
    /// # Errors
    /// The certificates cannot be read.
    pub fn new(rules: Rules, limits: &Limits) -> Result<Self, Error> {
        let rules = Arc::new(rules);
        let timeout = Some(limits.timeout);
        let mut tls = TlsConfig::builder();
        if let Some(pem) = &limits.authorities {
            tls = tls.root_certs(authorities(pem)?);
        }
        let config = Agent::config_builder()
            // Redirects are followed here, each under the rules; proxies of the environment would get around them.
            .max_redirects(0)
            .max_redirects_will_error(false)
            .proxy(None)
            .http_status_as_error(false)
            .user_agent(concat!("pgquad/", env!("CARGO_PKG_VERSION")))
            .tls_config(tls.build())
            .timeout_resolve(timeout)
            .timeout_connect(timeout)
            .timeout_send_request(timeout)
            .timeout_recv_response(timeout)
            .timeout_per_read(timeout)
            .timeout_per_write(timeout)
            .build();
        let resolver = CheckedResolver {
            rules: rules.clone(),
            inner: DefaultResolver::default(),
        };
        Ok(Self {
            agent: Agent::with_parts(config, DefaultConnector::default(), resolver),
            rules,
            bytes: limits.bytes,
        })
    }

    /// Ends all that this client is doing, on whatever thread.
    pub(crate) fn shut_down(&self) {
        self.agent.clone().shutdown();
    }

    /// Makes a request. `accept`: media types that are wanted.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn fetch(&self, url: &str, method: Method<'_>, accept: &str) -> Result<Document, Error> {
        let mut method = method;
        let mut uri = to_uri(url)?;
        for _ in 0..=MAX_REDIRECTS {
            self.rules.check(&uri)?;
            let response = self
                .send(&uri, method, accept)
                .map_err(|error| transport_error(&uri.to_string(), &error))?;
            let status = response.status();
            if !status.is_redirection() {
                return self.document(&uri, response);
            }
            // 303 says to get the other address, all others to send the same there.
            if status == StatusCode::SEE_OTHER {
                method = Method::Get;
            }
            uri = redirect(&uri, &response)?;
        }
        Err(Error::new(
            ErrorKind::Answer,
            url,
            format!("more than {MAX_REDIRECTS} redirects"),
        ))
    }

    fn send(
        &self,
        uri: &Uri,
        method: Method<'_>,
        accept: &str,
    ) -> Result<Response<Body>, ureq::Error> {
        let request = Request::builder().uri(uri).header(header::ACCEPT, accept);
        match method {
            Method::Get => self.agent.run(request.method("GET").body(())?),
            Method::Form { name, value } => self.agent.run(
                request
                    .method("POST")
                    .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
                    .body(format!("{}={}", form_text(name), form_text(value)))?,
            ),
        }
    }

    fn document(&self, uri: &Uri, response: Response<Body>) -> Result<Document, Error> {
        let url = uri.to_string();
        let status = response.status();
        if !status.is_success() {
            let mut said = Vec::new();
            let body = response.into_body().into_reader();
            // What the server says of the error is only of help: without it there still is the status.
            let _ = body.take(MAX_MESSAGE_BYTES).read_to_end(&mut said);
            return Err(status_error(&url, status, &said));
        }
        let media_type = response
            .headers()
            .get(header::CONTENT_TYPE)
            .and_then(|value| value.to_str().ok())
            .map(|value| {
                let end = value.find(';').unwrap_or(value.len());
                value[..end].trim().to_ascii_lowercase()
            });
        let body = response.into_body().into_reader();
        Ok(Document {
            body: Box::new(Bounded {
                inner: body,
                left: self.bytes,
                url: url.clone(),
            }),
            url,
            media_type,
        })
    }
}

/// Bytes of the message of a server that are read.
const MAX_MESSAGE_BYTES: u64 = 2000;
/// Characters of it that are shown.
const SHOWN_CHARS: usize = 200;

fn status_error(url: &str, status: StatusCode, said: &[u8]) -> Error {
    let text = String::from_utf8_lossy(said);
    let line = text
        .lines()
        .map(str::trim)
        .find(|line| !line.is_empty() && !line.starts_with('<'))
        .unwrap_or_default();
    let shown: String = line
        .chars()
        .filter(|c| !c.is_control())
        .take(SHOWN_CHARS)
        .collect();
    let mut message = format!("the server answers {status}");
    if !shown.is_empty() {
        message.push_str(&format!(": {shown}"));
    }
    Error::new(ErrorKind::Status(status.as_u16()), url, message)
}

fn authorities(pem: &[u8]) -> Result<RootCerts, Error> {
    let failed = |message: String| Error::new(ErrorKind::Internal, "", message);
    let mut certificates = Vec::new();
    for item in parse_pem(pem) {
        if let PemItem::Certificate(certificate) = item.map_err(|e| failed(e.to_string()))? {
            certificates.push(certificate);
        }
    }
    if certificates.is_empty() {
        return Err(failed("there is no certificate in the file".to_owned()));
    }
    Ok(RootCerts::from(certificates))
}

/// The address that an IRI is, its other characters percent-encoded; without fragment.
fn to_uri(url: &str) -> Result<Uri, Error> {
    let bad = |message: String| Error::new(ErrorKind::Address, url, message);
    oxiri::Iri::parse(url).map_err(|error| bad(format!("not an absolute IRI: {error}")))?;
    let whole = url.split('#').next().unwrap_or_default();
    let mut text = String::with_capacity(whole.len());
    for byte in whole.bytes() {
        if byte.is_ascii() {
            text.push(byte.into());
        } else {
            text.push_str(&format!("%{byte:02X}"));
        }
    }
    text.parse()
        .map_err(|error| bad(format!("not a web address: {error}")))
}

fn redirect(from: &Uri, response: &Response<Body>) -> Result<Uri, Error> {
    let url = from.to_string();
    let failed = |message: &str| Error::new(ErrorKind::Answer, &url, message);
    let location = response
        .headers()
        .get(header::LOCATION)
        .and_then(|value| value.to_str().ok())
        .ok_or_else(|| failed("the server redirects without saying where to"))?;
    let base = oxiri::Iri::parse(url.as_str()).map_err(|_| failed("not an absolute IRI"))?;
    let target = oxiri::IriRef::parse(location)
        .and_then(|location| base.resolve(&location))
        .map_err(|_| failed("the server redirects to what is not an address"))?;
    to_uri(target.as_str())
}

/// Text within a form (`application/x-www-form-urlencoded`).
fn form_text(text: &str) -> String {
    let mut out = String::with_capacity(text.len() * 2);
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'*' => {
                out.push(byte.into());
            }
            b' ' => out.push('+'),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

/// Resolves names and gives only addresses that may be connected to. The connection is made to these very addresses, so
/// a name that changes its meaning gains nothing.
#[derive(Debug)]
struct CheckedResolver {
    rules: Arc<Rules>,
    inner: DefaultResolver,
}

/// All addresses of a server were refused.
#[derive(Debug)]
struct PrivateAddress(std::net::IpAddr);

impl fmt::Display for PrivateAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the server has the address {}, which is not a public one",
            self.0
        )
    }
}

impl std::error::Error for PrivateAddress {}

impl Resolver for CheckedResolver {
    fn resolve(
        &self,
        uri: &Uri,
        config: &ureq::config::Config,
        timeout: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, ureq::Error> {
        let found = self.inner.resolve(uri, config, timeout)?;
        let mut allowed = self.empty();
        for address in found.iter() {
            if self.rules.allow_address(address.ip()) {
                allowed.push(*address);
            }
        }
        if allowed.is_empty() {
            return Err(ureq::Error::Other(Box::new(PrivateAddress(found[0].ip()))));
        }
        Ok(allowed)
    }
}

/// An error of the connection.
fn transport_error(url: &str, error: &ureq::Error) -> Error {
    let (kind, message) = match error {
        ureq::Error::Other(other) if other.is::<PrivateAddress>() => {
            (ErrorKind::PrivateAddress, other.to_string())
        }
        ureq::Error::Timeout(_) => (ErrorKind::Timeout, "no answer in time".to_owned()),
        ureq::Error::HostNotFound => (ErrorKind::Connect, "there is no such server".to_owned()),
        ureq::Error::Io(error) => match error.kind() {
            io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => {
                (ErrorKind::Timeout, "no answer in time".to_owned())
            }
            _ => (ErrorKind::Connect, plain(error)),
        },
        ureq::Error::Rustls(_) | ureq::Error::Tls(_) => (
            ErrorKind::Connect,
            format!("no secure connection: {}", chain(error)),
        ),
        other => (ErrorKind::Answer, chain(other)),
    };
    Error::new(kind, url, message)
}

/// The message without the number that the operating system gives it.
fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error")
        .next()
        .unwrap_or_default()
        .to_owned()
}

fn chain(error: &ureq::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        text.push_str(&format!(": {inner}"));
        source = inner.source();
    }
    text
}

/// A body that must not be larger than allowed.
struct Bounded<R> {
    inner: R,
    left: u64,
    url: String,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self
            .inner
            .read(buffer)
            .map_err(|error| io::Error::other(transport_error(&self.url, &error.into())))?;
        match self.left.checked_sub(read as u64) {
            Some(left) => self.left = left,
            None => {
                return Err(io::Error::other(Error::new(
                    ErrorKind::TooLarge,
                    &self.url,
                    "the answer is larger than allowed",
                )))
            }
        }
        Ok(read)
    }
}

#[cfg(test)]
mod tests;
