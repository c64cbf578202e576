//! SPARQL 1.1 Protocol, update.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{header, HeaderValue, Method};
use axum::response::Response;

use crate::answer::Work;
use crate::app::App;
use crate::asked::Asked;
use crate::problem::Problem;
use crate::query::given;
use crate::running::About;
use crate::site;

const SQL: &str = "SELECT quad.update($1, $2, $3, $4, $5)";

/// Runs an update and tells how many quads it has changed.
pub async fn answer(State(app): State<Arc<App>>, request: Request) -> Result<Response, Problem> {
    let (mut asked, body) = Asked::of(&app, request).await?;
    if asked.method != Method::POST {
        return Err(Problem::method("POST, OPTIONS"));
    }
    site::check_write(&asked.method, &asked.headers, &app.options.cors_origin)?;
    asked.identity.check_write()?;
    let text = asked
        .text(&app, body, "update", "application/sparql-update")
        .await?;
    if asked.fields.has("query") {
        return Err(Problem::bad_request("this is the endpoint of updates")
            .hint("Send queries to the endpoint \"sparql\"."));
    }
    let Some(text) = text else {
        return Err(Problem::bad_request("there is no parameter \"update\""));
    };
    for wrong in ["default-graph-uri", "named-graph-uri"] {
        if asked.fields.has(wrong) {
            return Err(Problem::bad_request(format!(
                "an update has no parameter \"{wrong}\""
            ))
            .hint("The graphs that its WHERE reads are using-graph-uri and using-named-graph-uri."));
        }
    }
    let using = given(&asked, "using-graph-uri");
    let named = given(&asked, "using-named-graph-uri");
    let limit = app.limit(&asked.fields)?;
    let mut work = Work::begin(&app, &asked.identity, limit).await?;
    work.list(&About {
        kind: "update",
        role: asked.identity.role(),
        store: asked.store.as_deref(),
        text: &text,
        name: asked.name(),
    });
    let changed: i64 = work
        .one(SQL, &[&text, &asked.store, &asked.url, &using, &named])
        .await?;
    work.give_back();
    let mut response = Response::new(Body::from(format!("{changed} quads changed\n")));
    let text = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, text);
    Ok(response)
}
