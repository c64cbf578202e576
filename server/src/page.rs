//! What is not a store: the start page, health, figures.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{header, HeaderValue, StatusCode};
use axum::response::Response;

use crate::app::App;
use crate::problem::Problem;

/// Whether PostgreSQL answers.
pub async fn health(State(app): State<Arc<App>>) -> Result<Response, Problem> {
    if app.nodes.is_up().await {
        Ok(text("ok\n", "text/plain; charset=utf-8"))
    } else {
        Err(Problem::unavailable("no PostgreSQL node answers"))
    }
}

/// Figures for Prometheus.
pub async fn metrics(State(app): State<Arc<App>>) -> Response {
    let figures = app.metrics.text(&app.nodes.states());
    text(figures, "text/plain; version=0.0.4; charset=utf-8")
}

/// 404.
pub async fn nothing() -> Problem {
    Problem::new(StatusCode::NOT_FOUND, "there is no such resource")
        .hint("Endpoints are /sparql, /update, /data, and the same below the name of a store.")
}

/// 405.
pub async fn method() -> Problem {
    Problem::method("GET, HEAD, OPTIONS")
}

/// A response with a body of this type.
pub fn text(body: impl Into<Body>, media: &'static str) -> Response {
    let mut response = Response::new(body.into());
    let value = HeaderValue::from_static(media);
    response.headers_mut().insert(header::CONTENT_TYPE, value);
    response
}
