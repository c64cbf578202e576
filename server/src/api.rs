//! What the workbench asks beside SPARQL: stores, plans, requests under way. Everything runs as the role of the
//! request.

use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{header, HeaderValue, StatusCode};
use axum::response::Response;
use serde_json::{json, Value};

use crate::answer::Work;
use crate::app::App;
use crate::asked::Asked;
use crate::identity::Identity;
use crate::page;
use crate::problem::Problem;
use crate::running::{About, Entry};
use crate::site;

const SESSION: &str = include_str!("sql/session.sql");
const STORES: &str = include_str!("sql/stores.sql");
const PLAN: &str = "SELECT quad.explain_json($1, $2, $3, $4)";
const ACTIVITY: &str = include_str!("sql/activity.sql");
const MAY_CANCEL: &str = include_str!("sql/may_cancel.sql");
const CLUSTER: &str =
    "SELECT coalesce(json_agg(line), '[]')::text FROM quad.cluster_status($1) AS line";

/// Longest time that the cluster is watched for one answer, in seconds.
const MAX_WATCHED_SECONDS: f64 = 10.0;

/// Longest wait for a node to tell what it does: one that hangs does not hide the others.
const STATUS_TIMEOUT: Duration = Duration::from_secs(2);

/// Who asks.
pub async fn session(State(app): State<Arc<App>>, request: Request) -> Result<Response, Problem> {
    let (asked, _) = Asked::of(&app, request).await?;
    let text: String = one(&app, &asked, SESSION, &[]).await?;
    let mut session = parsed(&text)?;
    session["anonymous"] = matches!(asked.identity, Identity::Anonymous(_)).into();
    session["version"] = env!("CARGO_PKG_VERSION").into();
    session["nodes"] = app.nodes.states().len().into();
    Ok(document(session.to_string()))
}

/// The stores.
pub async fn stores(State(app): State<Arc<App>>, request: Request) -> Result<Response, Problem> {
    let (asked, _) = Asked::of(&app, request).await?;
    one(&app, &asked, STORES, &[]).await.map(document)
}

/// What becomes of a query; body: `{"query", "store", "base", "analyze"}`.
pub async fn plan(State(app): State<Arc<App>>, request: Request) -> Result<Response, Problem> {
    let (asked, body) = read(&app, request).await?;
    let text = |name: &str| body[name].as_str();
    let Some(query) = text("query") else {
        return Err(Problem::bad_request("there is no \"query\""));
    };
    let analyze = body["analyze"].as_bool().unwrap_or_default();
    let limit = app.limit(&asked.fields)?;
    let mut work = Work::begin(&app, &asked.identity, limit).await?;
    work.list(&About {
        kind: "query",
        role: asked.identity.role(),
        store: text("store"),
        text: query,
        name: asked.name(),
    });
    let plan: String = work
        .one(PLAN, &[&query, &text("store"), &text("base"), &analyze])
        .await?;
    work.give_back();
    Ok(document(plan))
}

/// What is under way: requests to this server and other sessions of all nodes that answer.
pub async fn running(State(app): State<Arc<App>>, request: Request) -> Result<Response, Problem> {
    let (asked, _) = Asked::of(&app, request).await?;
    let entries = app.running.list();
    let roles: Vec<&str> = entries.iter().map(|entry| &entry.role[..]).collect();
    let mut nodes = app.nodes.states();
    if nodes.iter().any(|node| node.up) {
        nodes.retain(|node| node.up);
    }
    let asked_nodes = nodes.iter().map(|node| {
        let (app, asked, roles) = (&app, &asked, &roles);
        async move {
            let told = activity(app, asked, &node.name, roles);
            let told = tokio::time::timeout(STATUS_TIMEOUT, told).await;
            told.unwrap_or_else(|_| Err(Problem::timeout(STATUS_TIMEOUT)))
        }
    });
    let answers = futures_util::future::join_all(asked_nodes).await;
    let mut activities: Vec<(&str, Value)> = Vec::new();
    let mut failure = None;
    for (node, answer) in nodes.iter().zip(answers) {
        match answer {
            Ok(activity) => activities.push((&node.name, activity)),
            Err(problem) => failure = Some(problem),
        }
    }
    let Some((_, first)) = activities.first() else {
        return Err(failure.unwrap_or_else(|| Problem::unavailable("no PostgreSQL node answers")));
    };
    // Roles are the same on all nodes of a cluster.
    let visible = first["visible"].clone();
    let loads = of_all(&activities, "loads");
    let shown = entries.iter().enumerate();
    let shown = shown.filter(|(place, _)| visible[place] == true);
    let requests: Vec<Value> = shown.map(|(_, entry)| shown_entry(entry, &loads)).collect();
    let is_own = |load: &Value| entries.iter().any(|entry| is_load_of(load, entry));
    let others: Vec<&Value> = loads.iter().filter(|load| !is_own(load)).collect();
    let names: Vec<&str> = activities.iter().map(|(node, _)| *node).collect();
    let answer = json!({
        "nodes": names, "requests": requests, "sessions": of_all(&activities, "sessions"), "loads": others,
    });
    Ok(document(answer.to_string()))
}

/// What is under way on a node.
async fn activity(
    app: &Arc<App>,
    asked: &Asked,
    node: &str,
    roles: &[&str],
) -> Result<Value, Problem> {
    let limit = app.limit(&asked.fields)?;
    let mut work = Work::begin_at(app, &asked.identity, limit, Some(node)).await?;
    let text: String = work.one(ACTIVITY, &[&roles]).await?;
    work.give_back();
    parsed(&text)
}

/// The members of a list that each node gives, each with its node.
fn of_all(activities: &[(&str, Value)], list: &str) -> Vec<Value> {
    let lists = activities.iter().map(|(node, activity)| {
        let members = activity[list].as_array().cloned().unwrap_or_default();
        members.into_iter().map(|mut member| {
            member["node"] = (*node).into();
            member
        })
    });
    lists.flatten().collect()
}

/// Whether a load is that of a request.
fn is_load_of(load: &Value, entry: &Entry) -> bool {
    load["node"] == entry.node && load["pid"] == entry.pid.load(Ordering::Relaxed)
}

/// A request as it is shown. Loads say how far they are.
fn shown_entry(entry: &Entry, loads: &[Value]) -> Value {
    let started = entry.started.duration_since(UNIX_EPOCH).unwrap_or_default();
    let seconds = entry.started.elapsed().unwrap_or_default();
    let mut shown = json!({
        "id": entry.id, "kind": entry.kind, "role": entry.role, "store": entry.store,
        "text": entry.text, "name": entry.name, "node": entry.node, "started": started.as_secs_f64(), "seconds": seconds.as_secs_f64(),
    });
    if entry.kind == "load" {
        let load = loads.iter().find(|load| is_load_of(load, entry));
        shown["bytes"] = entry.bytes.load(Ordering::Relaxed).into();
        shown["quads"] = load.map(|load| load["quads"].clone()).unwrap_or_default();
        shown["phase"] = load.map(|load| load["phase"].clone()).unwrap_or_default();
    }
    shown
}

/// Cancels a request of this server, `{"id"}`, or the query of another session, `{"node", "pid"}`. Not for anonymous
/// ones.
pub async fn cancel(State(app): State<Arc<App>>, request: Request) -> Result<Response, Problem> {
    let (asked, body) = read(&app, request).await?;
    if matches!(asked.identity, Identity::Anonymous(_)) {
        return Err(Problem::new(
            StatusCode::FORBIDDEN,
            "requests are cancelled by who has a name",
        )
        .hint("A client cancels a request of its own by closing its connection."));
    }
    let cancelled = if let Some(id) = body["id"].as_u64() {
        let entry = app.running.list().into_iter().find(|entry| entry.id == id);
        match entry {
            None => false,
            Some(entry) => {
                let may: bool = one(&app, &asked, MAY_CANCEL, &[&entry.role]).await?;
                if !may {
                    return Err(Problem::new(
                        StatusCode::FORBIDDEN,
                        format!("the request runs as role \"{}\"", entry.role),
                    )
                    .hint("Members of that role and of pg_signal_backend may cancel it."));
                }
                app.running.cancel(id).await
            }
        }
    } else {
        let pid = body["pid"].as_i64().and_then(|pid| i32::try_from(pid).ok());
        let (Some(pid), Some(node)) = (pid, body["node"].as_str()) else {
            return Err(Problem::bad_request("what to cancel is not said")
                .hint("Send {\"id\": ..} or {\"node\": .., \"pid\": ..}."));
        };
        let limit = app.limit(&asked.fields)?;
        let mut work = Work::begin_at(&app, &asked.identity, limit, Some(node)).await?;
        let done: bool = work.one("SELECT pg_cancel_backend($1)", &[&pid]).await?;
        work.give_back();
        done
    };
    Ok(document(json!({ "cancelled": cancelled }).to_string()))
}

/// The status lines of the cluster, for those who may read statistics.
pub async fn cluster(State(app): State<Arc<App>>, request: Request) -> Result<Response, Problem> {
    let (asked, _) = Asked::of(&app, request).await?;
    let seconds = asked.fields.number::<f64>("seconds")?.unwrap_or(1.0);
    if !(0.0..=MAX_WATCHED_SECONDS).contains(&seconds) {
        return Err(Problem::bad_request(format!(
            "parameter \"seconds\" is not between 0 and {MAX_WATCHED_SECONDS}"
        )));
    }
    one(&app, &asked, CLUSTER, &[&seconds]).await.map(document)
}

async fn one<T: tokio_postgres::types::FromSqlOwned>(
    app: &Arc<App>,
    asked: &Asked,
    sql: &str,
    params: &[&(dyn tokio_postgres::types::ToSql + Sync)],
) -> Result<T, Problem> {
    let mut work = Work::begin(app, &asked.identity, app.limit(&asked.fields)?).await?;
    let value = work.one(sql, params).await?;
    work.give_back();
    Ok(value)
}

/// A request whose body is JSON, which no form of another site sends.
async fn read(app: &Arc<App>, request: Request) -> Result<(Asked, Value), Problem> {
    let (asked, body) = Asked::of(app, request).await?;
    site::check_own(&asked.headers)?;
    let media = asked.media_type("Send application/json.")?;
    if media != "application/json" {
        return Err(Problem::media_type(
            format!("the type \"{media}\" is not known here"),
            "Send application/json.",
        ));
    }
    let limit = app.options.max_query_bytes;
    let bytes = axum::body::to_bytes(body, limit).await.map_err(|_| {
        Problem::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            format!("the body is larger than {limit} bytes, or did not come whole"),
        )
    })?;
    let body = serde_json::from_slice(&bytes)
        .map_err(|error| Problem::bad_request(format!("the body is not JSON: {error}")))?;
    Ok((asked, body))
}

fn parsed(text: &str) -> Result<Value, Problem> {
    serde_json::from_str(text).map_err(|error| {
        Problem::unavailable(format!("PostgreSQL's answer cannot be read: {error}"))
    })
}

fn document(text: String) -> Response {
    let mut response = page::text(Body::from(text), "application/json");
    let no = HeaderValue::from_static("no-store");
    response.headers_mut().insert(header::CACHE_CONTROL, no);
    response
}
