//! What goes wrong, as a status and a text or a problem document (RFC 9457).

use std::time::Duration;

use axum::body::Body;
use axum::http::{header, HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::json;
use tokio_postgres::error::SqlState;

use crate::negotiate::{choose, Format};

/// Why a request was not answered.
#[derive(Clone, Debug)]
pub struct Problem {
    /// Status of the response.
    pub status: StatusCode,
    /// One line.
    pub message: String,
    /// More, where there is.
    pub detail: Option<Box<str>>,
    /// What to do about it.
    pub hint: Option<Box<str>>,
    /// PostgreSQL's code, where the error is its.
    pub sqlstate: Option<Box<str>>,
    /// When to try again.
    pub retry_after: Option<Duration>,
    /// Methods that the resource has.
    pub allow: Option<&'static str>,
}

impl Problem {
    /// A problem with a status.
    pub fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self {
            status,
            message: message.into(),
            detail: None,
            hint: None,
            sqlstate: None,
            retry_after: None,
            allow: None,
        }
    }

    /// 400.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }

    /// 401: there are no credentials, or wrong ones.
    pub fn unauthorized(message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, message)
            .hint("Send name and password of a PostgreSQL role (HTTP Basic), or a bearer token.")
    }

    /// 405.
    pub fn method(allow: &'static str) -> Self {
        let mut problem = Self::new(
            StatusCode::METHOD_NOT_ALLOWED,
            format!("the resource has the methods {allow}"),
        );
        problem.allow = Some(allow);
        problem
    }

    /// 406: the client takes none of these.
    pub fn not_acceptable(formats: &[Format]) -> Self {
        let mut media: Vec<&str> = formats.iter().map(|format| format.media).collect();
        media.dedup();
        Self::new(
            StatusCode::NOT_ACCEPTABLE,
            "the answer cannot be had in a format that the header Accept names",
        )
        .hint(format!("Formats are {}.", media.join(", ")))
    }

    /// 415.
    pub fn media_type(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, message).hint(hint)
    }

    /// 503: the server is busy, or PostgreSQL is not there.
    pub fn unavailable(message: impl Into<String>) -> Self {
        let mut problem = Self::new(StatusCode::SERVICE_UNAVAILABLE, message);
        problem.retry_after = Some(Duration::from_secs(1));
        problem
    }

    /// 503: the time is over.
    pub fn timeout(limit: Duration) -> Self {
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            format!(
                "the request took longer than {} s and was cancelled",
                limit.as_secs_f64()
            ),
        )
        .hint("The limit is the lower one of the server's query-timeout and the parameter timeout.")
    }

    /// With a hint.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into().into());
        self
    }

    /// Line and column that the message names: `... at line 2, column 7: ...`.
    fn position(&self) -> Option<(u32, u32)> {
        let rest = self.message.split_once(" at line ")?.1;
        let (line, rest) = rest.split_once(", column ")?;
        let end = rest.find(|c: char| !c.is_ascii_digit());
        let column = &rest[..end.unwrap_or(rest.len())];
        Some((line.parse().ok()?, column.parse().ok()?))
    }

    fn text(&self) -> String {
        let mut text = self.message.clone();
        for line in [&self.detail, &self.hint].into_iter().flatten() {
            text.push('\n');
            text.push_str(line);
        }
        text.push('\n');
        text
    }

    fn document(&self) -> String {
        let mut document = json!({
            "type": "about:blank",
            "title": self.status.canonical_reason().unwrap_or_default(),
            "status": self.status.as_u16(),
            "detail": self.message,
        });
        let more = [
            ("explanation", self.detail.as_deref()),
            ("hint", self.hint.as_deref()),
            ("sqlstate", self.sqlstate.as_deref()),
        ];
        for (name, value) in more {
            if let Some(value) = value {
                document[name] = value.into();
            }
        }
        if let Some((line, column)) = self.position() {
            document["line"] = line.into();
            document["column"] = column.into();
        }
        document.to_string()
    }

    /// The response for a client that sent these headers.
    pub fn response(&self, request: &HeaderMap) -> Response {
        const OFFERS: [Format; 4] = [
            Format {
                media: "text/plain",
                name: "text",
            },
            Format {
                media: "application/problem+json",
                name: "json",
            },
            Format {
                media: "application/json",
                name: "json",
            },
            Format {
                media: "application/sparql-results+json",
                name: "json",
            },
        ];
        let accept = accept(request);
        let (body, media) = match choose(&accept, &OFFERS) {
            Some(Format { name: "json", .. }) => (self.document(), "application/problem+json"),
            _ => (self.text(), "text/plain; charset=utf-8"),
        };
        let mut response = Response::new(Body::from(body));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media));
        if self.status == StatusCode::UNAUTHORIZED {
            let value = "Basic realm=\"pgquad\", charset=\"UTF-8\"";
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static(value));
        }
        if let Some(after) = self.retry_after {
            headers.insert(header::RETRY_AFTER, after.as_secs().max(1).into());
        }
        if let Some(allow) = self.allow {
            headers.insert(header::ALLOW, HeaderValue::from_static(allow));
        }
        response
    }
}

/// The values of the headers Accept.
pub fn accept(headers: &HeaderMap) -> Vec<&str> {
    let values = headers.get_all(header::ACCEPT).iter();
    values.filter_map(|value| value.to_str().ok()).collect()
}

impl IntoResponse for Problem {
    /// Leaves the body to the layer that knows what the client accepts.
    fn into_response(self) -> Response {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = self.status;
        response.extensions_mut().insert(self);
        response
    }
}

impl From<tokio_postgres::Error> for Problem {
    fn from(error: tokio_postgres::Error) -> Self {
        let Some(error) = error.as_db_error() else {
            return Self::unavailable(format!("the connection to PostgreSQL failed: {error}"));
        };
        let mut problem = Self::new(status_of(error.code()), error.message());
        problem.detail = error.detail().map(Into::into);
        problem.hint = error.hint().map(Into::into);
        problem.sqlstate = Some(error.code().code().into());
        if problem.status == StatusCode::SERVICE_UNAVAILABLE {
            problem.retry_after = Some(Duration::from_secs(1));
        }
        problem
    }
}

/// The status that an SQLSTATE stands for.
fn status_of(code: &SqlState) -> StatusCode {
    match code.code() {
        "42501" | "25006" => StatusCode::FORBIDDEN,
        "42P01" => StatusCode::NOT_FOUND,
        "42809" | "22P05" => StatusCode::NOT_ACCEPTABLE,
        "0A000" => StatusCode::NOT_IMPLEMENTED,
        "42710" | "40001" | "40P01" | "23505" => StatusCode::CONFLICT,
        "57014" | "55P03" => StatusCode::SERVICE_UNAVAILABLE,
        "54000" => StatusCode::UNPROCESSABLE_ENTITY,
        code => match &code[..2] {
            "22" | "23" | "42" | "54" => StatusCode::BAD_REQUEST,
            "28" => StatusCode::UNAUTHORIZED,
            "08" | "53" | "57" => StatusCode::SERVICE_UNAVAILABLE,
            "38" => StatusCode::BAD_GATEWAY,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_and_column_of_a_syntax_error() {
        let problem =
            Problem::bad_request("SPARQL syntax error at line 2, column 17: expected one of \"a\"");
        assert_eq!(problem.position(), Some((2, 17)));
        assert_eq!(Problem::bad_request("something at line x").position(), None);
        let document: serde_json::Value = serde_json::from_str(&problem.document()).unwrap();
        assert_eq!(document["column"], 17);
    }

    #[test]
    fn the_form_is_what_the_client_takes() {
        let media = |accept: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT, HeaderValue::from_static(accept));
            let response = Problem::bad_request("no").response(&headers);
            response.headers()[header::CONTENT_TYPE]
                .to_str()
                .unwrap()
                .to_owned()
        };
        assert_eq!(
            media("application/sparql-results+json"),
            "application/problem+json"
        );
        assert_eq!(media("text/csv"), "text/plain; charset=utf-8");
        assert_eq!(media("*/*"), "text/plain; charset=utf-8");
    }
}
