//! SPARQL 1.1 Protocol, query.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{header, HeaderValue, Method};
use axum::response::Response;

use crate::answer::Work;
use crate::app::App;
use crate::asked::Asked;
use crate::description;
use crate::negotiate::{choose, Format, GRAPHS, RESULTS};
use crate::problem::{accept, Problem};
use crate::running::About;

/// What follows (`results` or `graph`), then the answer.
const SQL: &str = "SELECT quad.answer_stream($1, $2, $3, $4, $5, $6, $7, $8)";

/// Answers a query or, where there is none, describes the service.
pub async fn answer(State(app): State<Arc<App>>, request: Request) -> Result<Response, Problem> {
    let (mut asked, body) = Asked::of(&app, request).await?;
    if !matches!(asked.method, Method::GET | Method::HEAD | Method::POST) {
        return Err(Problem::method("GET, HEAD, POST, OPTIONS"));
    }
    let text = asked
        .text(&app, body, "query", "application/sparql-query")
        .await?;
    if asked.fields.has("update") {
        return Err(Problem::bad_request("this is the endpoint of queries")
            .hint("Send updates by POST to the endpoint \"update\"."));
    }
    for wrong in ["using-graph-uri", "using-named-graph-uri"] {
        if asked.fields.has(wrong) {
            return Err(
                Problem::bad_request(format!("a query has no parameter \"{wrong}\""))
                    .hint("Its graphs are default-graph-uri and named-graph-uri."),
            );
        }
    }
    let Some(text) = text else {
        if asked.method == Method::POST {
            return Err(Problem::bad_request("there is no parameter \"query\""));
        }
        return description::answer(&app, &asked).await;
    };
    run(&app, &asked, &text).await
}

async fn run(app: &Arc<App>, asked: &Asked, text: &str) -> Result<Response, Problem> {
    let accepted = accept(&asked.headers);
    let (results, graph) = (choose(&accepted, &RESULTS), choose(&accepted, &GRAPHS));
    if results.is_none() && graph.is_none() {
        return Err(Problem::not_acceptable(&[RESULTS, GRAPHS].concat()));
    }
    let default = given(asked, "default-graph-uri");
    let named = given(asked, "named-graph-uri");
    let limit = app.limit(&asked.fields)?;
    let max_rows = app.max_rows(&asked.fields)?;
    let mut work = Work::begin(app, &asked.identity, limit).await?;
    work.list(&About {
        kind: "query",
        role: asked.identity.role(),
        store: asked.store.as_deref(),
        text,
        name: asked.name(),
    });
    let name = |format: Option<&Format>| format.map(|format| format.name);
    work.start(
        SQL,
        &[
            &text,
            &name(results),
            &name(graph),
            &asked.store,
            &asked.url,
            &default,
            &named,
            &max_rows,
        ],
    )
    .await?;
    let kind = work.next().await?.unwrap_or_default();
    let chosen = if &kind[..] == b"results" {
        results
    } else {
        graph
    };
    let chosen = chosen.ok_or_else(|| Problem::not_acceptable(&[RESULTS, GRAPHS].concat()))?;
    response(work.into_body().await?, chosen)
}

/// The values of a parameter, `None` where there are none.
pub fn given(asked: &Asked, name: &str) -> Option<Vec<String>> {
    let values = asked.fields.all(name);
    (!values.is_empty()).then_some(values)
}

/// A document in a format.
pub fn response(body: Body, format: &Format) -> Result<Response, Problem> {
    let mut response = Response::new(body);
    let value = HeaderValue::from_str(&format.content_type());
    let value = value.map_err(|_| Problem::unavailable("a format has no name"))?;
    response.headers_mut().insert(header::CONTENT_TYPE, value);
    Ok(response)
}
