//! SPARQL 1.1 Graph Store HTTP Protocol.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::{FromRequest, Multipart, Request, State};
use axum::http::{header, HeaderValue, Method, StatusCode};
use axum::response::Response;

use crate::answer::Work;
use crate::app::App;
use crate::asked::Asked;
use crate::negotiate::{choose, content_type, DATASETS, GRAPHS};
use crate::precondition;
use crate::problem::{accept, Problem};
use crate::query::response;
use crate::running::About;
use crate::site;
use crate::upload::{upload, Document};

const METHODS: &str = "GET, HEAD, PUT, POST, DELETE, OPTIONS";
const WANTED: &str = "Formats are text/turtle, application/n-triples, application/rdf+xml, application/ld+json, and for all graphs application/n-quads and application/trig.";

/// What a request is about.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Target {
    /// The default graph.
    Default,
    /// A named graph.
    Graph(String),
    /// All graphs of the store.
    All,
}

impl Target {
    /// The target that `?default`, `?graph=` or the path names.
    fn of(asked: &Asked) -> Result<Self, Problem> {
        let graph = asked.fields.one("graph")?;
        let default = asked.fields.one("default")?;
        let below = asked.below.as_deref().filter(|path| !path.is_empty());
        match (graph, default, below) {
            (Some(iri), None, None) => match oxiri::Iri::parse(iri) {
                Ok(_) => Ok(Self::Graph(iri.to_owned())),
                Err(error) => Err(Problem::bad_request(format!(
                    "parameter \"graph\" is not an absolute IRI: {error}"
                ))),
            },
            (None, Some(_), None) => Ok(Self::Default),
            (None, None, Some(_)) => match &asked.url {
                Some(url) => Ok(Self::Graph(url.clone())),
                None => Err(Problem::bad_request(
                    "the request names no host, so its path is not the IRI of a graph",
                )),
            },
            (None, None, None) => Ok(Self::All),
            _ => Err(Problem::bad_request(
                "more than one graph is named: by \"graph\", \"default\" or the path",
            )),
        }
    }

    /// The graph as the functions of the extension want it.
    fn graph(&self) -> Option<&str> {
        match self {
            Self::Default => Some(""),
            Self::Graph(iri) => Some(iri),
            Self::All => None,
        }
    }

    /// A SPARQL update that empties it. The IRI has been checked: it holds nothing that ends it.
    fn clear(&self) -> String {
        match self {
            Self::Default => "CLEAR DEFAULT".to_owned(),
            Self::Graph(iri) => format!("DROP SILENT GRAPH <{iri}>"),
            Self::All => "DROP ALL".to_owned(),
        }
    }
}

/// Answers a request.
pub async fn answer(State(app): State<Arc<App>>, request: Request) -> Result<Response, Problem> {
    let (asked, body) = Asked::of(&app, request).await?;
    if !matches!(asked.method, Method::GET | Method::HEAD) {
        site::check_write(&asked.method, &asked.headers, &app.options.cors_origin)?;
        asked.identity.check_write()?;
    }
    let target = Target::of(&asked)?;
    match asked.method {
        Method::GET | Method::HEAD => read(&app, &asked, &target).await,
        Method::PUT => write(&app, &asked, target, body, true).await,
        Method::POST => write(&app, &asked, target, body, false).await,
        Method::DELETE => delete(&app, &asked, &target).await,
        _ => Err(Problem::method(METHODS)),
    }
}

/// 404 for a graph. A graph without triples is not kept.
fn no_graph(iri: &str) -> Problem {
    Problem::new(StatusCode::NOT_FOUND, format!("there is no graph <{iri}>"))
}

async fn read(app: &Arc<App>, asked: &Asked, target: &Target) -> Result<Response, Problem> {
    let offers: &[_] = if *target == Target::All {
        &DATASETS
    } else {
        &GRAPHS
    };
    let chosen =
        choose(&accept(&asked.headers), offers).ok_or_else(|| Problem::not_acceptable(offers))?;
    let mut work = Work::begin(app, &asked.identity, app.limit(&asked.fields)?).await?;
    let is_head = asked.method == Method::HEAD;
    if let Target::Graph(iri) = target {
        if !exists(&mut work, asked, iri).await? {
            work.give_back();
            return Err(no_graph(iri));
        }
    } else if is_head {
        // Whether the client may read it.
        let query = "ASK { ?s ?p ?o }";
        let _: bool = work
            .one("SELECT quad.ask($1, $2)", &[&query, &asked.store])
            .await?;
    }
    if is_head {
        work.give_back();
        // Of a length that is not known: it would be told as that of the answer to GET.
        let nothing = futures_util::stream::empty::<Result<Bytes, std::io::Error>>();
        return response(Body::from_stream(nothing), chosen);
    }
    work.start(
        "SELECT quad.graph_stream($1, $2, $3)",
        &[&target.graph(), &chosen.name, &asked.store],
    )
    .await?;
    response(work.into_body().await?, chosen)
}

async fn exists(work: &mut Work, asked: &Asked, iri: &str) -> Result<bool, Problem> {
    let query = format!("ASK {{ GRAPH <{iri}> {{ ?s ?p ?o }} }}");
    work.one("SELECT quad.ask($1, $2)", &[&query, &asked.store])
        .await
}

async fn delete(app: &Arc<App>, asked: &Asked, target: &Target) -> Result<Response, Problem> {
    if *target == Target::All {
        return Err(Problem::bad_request("no graph is named")
            .hint("Name one with ?graph=IRI or ?default. The update DROP ALL empties a store."));
    }
    let mut work = Work::begin(app, &asked.identity, app.limit(&asked.fields)?).await?;
    if precondition::any(&asked.headers) {
        let is_there = match target {
            Target::Graph(iri) => exists(&mut work, asked, iri).await?,
            Target::Default | Target::All => true,
        };
        if let Err(problem) = precondition::check(&asked.headers, is_there) {
            work.give_back();
            return Err(problem);
        }
    }
    let changed: i64 = work
        .one(
            "SELECT quad.update($1, $2)",
            &[&target.clear(), &asked.store],
        )
        .await?;
    work.give_back();
    match target {
        Target::Graph(iri) if changed == 0 => Err(no_graph(iri)),
        _ => Ok(status(StatusCode::NO_CONTENT)),
    }
}

/// PUT (`replace`) and POST.
async fn write(
    app: &Arc<App>,
    asked: &Asked,
    target: Target,
    body: Body,
    replace: bool,
) -> Result<Response, Problem> {
    let media = asked.media_type(WANTED)?;
    let multipart = media == "multipart/form-data";
    let quads = is_quads(&media);
    if target == Target::All && !quads && (replace || multipart) {
        return Err(Problem::bad_request("no graph is named")
            .hint("Name one with ?graph=IRI or ?default, or send quads."));
    }
    if target != Target::All && quads {
        return Err(Problem::media_type(
            "a graph holds triples, not quads",
            WANTED,
        ));
    }
    if !multipart {
        format_of(&media)?;
    }
    let mut work = Work::begin(app, &asked.identity, app.limit(&asked.fields)?).await?;
    work.list(&About {
        kind: "load",
        role: asked.identity.role(),
        store: asked.store.as_deref(),
        text: target.graph().unwrap_or_default(),
        name: asked.name(),
    });
    work.begin_transaction().await?;
    let conditions = [header::IF_MATCH, header::IF_NONE_MATCH];
    if replace
        || conditions
            .iter()
            .any(|name| asked.headers.contains_key(name))
    {
        // Of two requests that replace a graph, or make it where it is not there, the second one finds what the first
        // one has made. Otherwise the graph would be the merge of both.
        let name = format!(
            "{}\n{}",
            asked.store.as_deref().unwrap_or_default(),
            target.graph().unwrap_or_default()
        );
        let _: String = work
            .one(
                "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))::text",
                &[&name],
            )
            .await?;
    }
    let there: bool = work
        .one(
            "SELECT $1::text IS NULL OR to_regclass(format('quad_stores.%I', $1)) IS NOT NULL",
            &[&asked.store],
        )
        .await?;
    if !there {
        let store = asked.store.as_deref().unwrap_or_default();
        return Err(Problem::new(
            StatusCode::NOT_FOUND,
            format!("store \"{store}\" does not exist"),
        ));
    }
    let mut target = target;
    let mut location = None;
    if target == Target::All && !quads {
        // POST of triples to the store itself makes a new graph.
        let name: String = work.one("SELECT gen_random_uuid()::text", &[]).await?;
        let url = asked.url.as_deref().ok_or_else(|| {
            Problem::bad_request("the request names no host, so a new graph has no IRI")
        })?;
        let iri = format!("{}/{name}", url.trim_end_matches('/'));
        location = Some(iri.clone());
        target = Target::Graph(iri);
    }
    let mut is_new = location.is_some();
    if let (Target::Graph(iri), false) = (&target, is_new) {
        is_new = !exists(&mut work, asked, iri).await?;
    }
    precondition::check(&asked.headers, !is_new)?;
    if replace {
        let _: i64 = work
            .one(
                "SELECT quad.update($1, $2)",
                &[&target.clear(), &asked.store],
            )
            .await?;
    }
    let document = |media: &str| -> Result<Document, Problem> {
        Ok(Document {
            format: format_of(media)?,
            graph: target.graph().unwrap_or_default().to_owned(),
            quads: is_quads(media),
            base: base_of(&target, asked),
            store: asked.store.clone(),
            compression: asked.packed,
        })
    };
    if multipart {
        let mut request = Request::new(body);
        *request.headers_mut() = asked.headers.clone();
        let malformed = |error: &dyn std::fmt::Display| {
            Problem::bad_request(format!("the body is not multipart/form-data: {error}"))
        };
        let mut parts = Multipart::from_request(request, &())
            .await
            .map_err(|e| malformed(&e))?;
        while let Some(part) = parts.next_field().await.map_err(|e| malformed(&e))? {
            let media = part.content_type().map(|value| content_type(value).0);
            // curl says application/xml of a name that ends in .xml.
            let is_known = media
                .as_deref()
                .is_some_and(|media| format_of(media).is_ok());
            let of_name = part.file_name().and_then(media_of_name).map(str::to_owned);
            let said = media.filter(|media| media != "application/octet-stream");
            let media = match is_known {
                true => said,
                false => of_name.or(said),
            };
            let Some(media) = media else {
                return Err(Problem::media_type(
                    "neither the type nor the file name of a part says its format",
                    WANTED,
                ));
            };
            if is_quads(&media) {
                return Err(Problem::media_type(
                    "a graph holds triples, not quads",
                    WANTED,
                ));
            }
            upload(app, &mut work, &document(&media)?, part, |error| {
                malformed(error)
            })
            .await?;
        }
    } else {
        let document = document(&media)?;
        upload(
            app,
            &mut work,
            &document,
            body.into_data_stream(),
            |error: &axum::Error| {
                crate::asked::body_problem(error)
                    .unwrap_or_else(|| Problem::bad_request("the body did not come whole"))
            },
        )
        .await?;
    }
    work.commit().await?;
    let mut response = status(if is_new {
        StatusCode::CREATED
    } else {
        StatusCode::NO_CONTENT
    });
    if let Some(location) = location.and_then(|iri| HeaderValue::from_str(&iri).ok()) {
        response.headers_mut().insert(header::LOCATION, location);
    }
    Ok(response)
}

/// Relative IRIs of a document are relative to its graph or, in the default graph, to the request.
fn base_of(target: &Target, asked: &Asked) -> String {
    match target {
        Target::Graph(iri) => iri.clone(),
        Target::Default | Target::All => asked.url.clone().unwrap_or_default(),
    }
}

/// The type that the name of a file tells, for parts of a form: browsers and curl know few types.
fn media_of_name(name: &str) -> Option<&'static str> {
    let (_, ending) = name.rsplit_once('.')?;
    Some(match ending.to_ascii_lowercase().as_str() {
        "ttl" => "text/turtle",
        "nt" => "application/n-triples",
        "rdf" | "owl" | "xml" => "application/rdf+xml",
        "jsonld" | "json" => "application/ld+json",
        "nq" => "application/n-quads",
        "trig" => "application/trig",
        _ => return None,
    })
}

fn is_quads(media: &str) -> bool {
    DATASETS.iter().any(|format| format.media == media)
}

fn format_of(media: &str) -> Result<&'static str, Problem> {
    let known = GRAPHS[..5].iter().chain(&DATASETS);
    let found = known.clone().find(|format| format.media == media);
    found.map(|format| format.name).ok_or_else(|| {
        Problem::media_type(format!("the type \"{media}\" is not known here"), WANTED)
    })
}

fn status(status: StatusCode) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}
