//! The parts of a request that all endpoints of a store look at.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{ConnectInfo, FromRequestParts, MatchedPath, RawPathParams, Request};
use axum::http::{header, HeaderMap, Method, StatusCode};

use crate::app::{store_of, url_of, App, Packed};
use crate::form::{checked, Fields};
use crate::identity::Identity;
use crate::listen::Peer;
use crate::negotiate::content_type;
use crate::problem::Problem;

/// Longest name of a request that is kept, in bytes.
const LONGEST_NAME: usize = 64;

/// A request to a store.
pub struct Asked {
    /// Method.
    pub method: Method,
    /// All headers.
    pub headers: HeaderMap,
    /// Who asks.
    pub identity: Identity,
    /// The store; `None`: the default one.
    pub store: Option<String>,
    /// Fields of the query string.
    pub fields: Fields,
    /// URL without the query string; `None` where the client names no host.
    pub url: Option<String>,
    /// What follows `/data/` in the path.
    pub below: Option<String>,
    /// How the body is compressed that comes as it was sent.
    pub packed: Option<&'static str>,
}

impl Asked {
    /// Takes a request apart.
    ///
    /// # Errors
    /// 400 and 401.
    pub async fn of(app: &Arc<App>, request: Request) -> Result<(Self, Body), Problem> {
        let (mut parts, body) = request.into_parts();
        let identity = app.identities.of(&parts.headers)?;
        let malformed = |_| Problem::bad_request("the path is not UTF-8");
        let matched = MatchedPath::from_request_parts(&mut parts, &())
            .await
            .map_err(|_| Problem::new(StatusCode::NOT_FOUND, "there is no such resource"))?;
        let params = RawPathParams::from_request_parts(&mut parts, &())
            .await
            .map_err(malformed)?;
        let params: Vec<(String, String)> = params
            .iter()
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        for (_, value) in &params {
            checked(value.clone())?;
        }
        let peer = parts.extensions.get::<ConnectInfo<Peer>>();
        let secure = peer.is_some_and(|peer| peer.0 .1);
        let below = params.iter().find(|(name, _)| name == "path");
        let asked = Self {
            identity,
            store: store_of(&matched, &params),
            fields: Fields::read(parts.uri.query().unwrap_or_default().as_bytes())?,
            url: url_of(app, &parts.headers, parts.uri.path(), secure),
            below: below.map(|(_, value)| value.clone()),
            packed: parts.extensions.get::<Packed>().map(|packed| packed.0),
            method: parts.method,
            headers: parts.headers,
        };
        Ok((asked, body))
    }

    /// What the client calls the request (header X-Request-Id).
    pub fn name(&self) -> Option<&str> {
        let name = self.headers.get("x-request-id")?.to_str().ok()?;
        (name.len() <= LONGEST_NAME).then_some(name)
    }

    /// Media type and charset of the body.
    ///
    /// # Errors
    /// 415 where there is none, or one that is not UTF-8.
    pub fn media_type(&self, wanted: &str) -> Result<String, Problem> {
        let value = self.headers.get(header::CONTENT_TYPE);
        let value = value.and_then(|value| value.to_str().ok());
        let Some(value) = value else {
            return Err(Problem::media_type(
                "the type of the body is not said",
                wanted,
            ));
        };
        let (media, charset) = content_type(value);
        match charset.as_deref() {
            None | Some("utf-8" | "utf8" | "us-ascii") => Ok(media),
            Some(other) => Err(Problem::media_type(
                format!("the charset \"{other}\" is not known"),
                "Send UTF-8.",
            )),
        }
    }

    /// The text of a request of the SPARQL protocol, in the field `name` or the body, with all its fields. `None`
    /// without one.
    ///
    /// # Errors
    /// 400, 405, 413 and 415.
    pub async fn text(
        &mut self,
        app: &App,
        body: Body,
        name: &str,
        direct: &str,
    ) -> Result<Option<String>, Problem> {
        if self.method != Method::POST {
            return Ok(self.fields.one(name)?.map(str::to_owned));
        }
        let wanted = format!(
            "Send {direct}, or application/x-www-form-urlencoded with the field \"{name}\"."
        );
        let media = self.media_type(&wanted)?;
        let is_form = media == "application/x-www-form-urlencoded";
        if !is_form && media != direct {
            return Err(Problem::media_type(
                format!("the type \"{media}\" is not known here"),
                wanted,
            ));
        }
        let limit = app.options.max_query_bytes;
        let bytes = axum::body::to_bytes(body, limit).await.map_err(|error| {
            body_problem(&error).unwrap_or_else(|| {
                Problem::new(
                    StatusCode::PAYLOAD_TOO_LARGE,
                    format!("the body is larger than {limit} bytes, or did not come whole"),
                )
            })
        })?;
        if is_form {
            self.fields.extend(Fields::read(&bytes)?);
            return Ok(self.fields.one(name)?.map(str::to_owned));
        }
        if self.fields.has(name) {
            return Err(Problem::bad_request(format!(
                "there is a body and a parameter \"{name}\""
            )));
        }
        let text = String::from_utf8(bytes.into())
            .map_err(|_| Problem::bad_request("the body is not UTF-8"))?;
        checked(text).map(Some)
    }
}

/// The problem with a body that did not come whole, where it is the client's fault.
pub fn body_problem(error: &axum::Error) -> Option<Problem> {
    let text = error.to_string();
    let mut source: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = source {
        if error.is::<tower_http::timeout::TimeoutError>() {
            return Some(Problem::new(
                StatusCode::REQUEST_TIMEOUT,
                "the body stopped coming",
            ));
        }
        if error.is::<std::io::Error>() {
            return Some(Problem::bad_request(format!(
                "the body cannot be read: {text}"
            )));
        }
        source = error.source();
    }
    None
}
