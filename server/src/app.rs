//! What all requests share, and the routes.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::extract::{ConnectInfo, DefaultBodyLimit, MatchedPath, Request, State};
use axum::http::{header, HeaderMap, HeaderValue, Method, StatusCode};
use axum::middleware::{from_fn_with_state, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get, post};
use axum::Router;
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use tokio::sync::Semaphore;
use tower::ServiceBuilder;
use tower_http::compression::predicate::{Predicate, SizeAbove};
use tower_http::compression::{CompressionLayer, CompressionLevel, DefaultPredicate};
use tower_http::cors::{AllowHeaders, AllowOrigin, CorsLayer};
use tower_http::decompression::RequestDecompressionLayer;
use tower_http::map_request_body::MapRequestBodyLayer;
use tower_http::timeout::RequestBodyTimeoutLayer;

use crate::form::Fields;
use crate::identity::Identities;
use crate::listen::Peer;
use crate::metrics::Metrics;
use crate::negotiate::content_type;
use crate::nodes::Nodes;
use crate::options::Options;
use crate::problem::Problem;
use crate::running::Running;
use crate::{api, files, graph_store, page, query, update};

/// Smallest answer that is compressed, in bytes: below, the packet is one packet anyway.
const MIN_COMPRESSED_BYTES: u16 = 1024;

/// The server.
pub struct App {
    /// Its options.
    pub options: Options,
    /// PostgreSQL.
    pub nodes: Arc<Nodes>,
    /// Who may ask.
    pub identities: Identities,
    /// Turns of requests.
    pub turns: Arc<Semaphore>,
    /// Requests under way.
    pub running: Arc<Running>,
    /// Figures.
    pub metrics: Metrics,
    rate: Option<DefaultKeyedRateLimiter<std::net::IpAddr>>,
}

impl App {
    /// A server with these options.
    ///
    /// # Errors
    /// Options that cannot be.
    pub fn new(options: Options) -> Result<Arc<Self>, String> {
        let rate =
            NonZeroU32::new(options.rate).map(|rate| RateLimiter::keyed(Quota::per_second(rate)));
        Ok(Arc::new(Self {
            nodes: Arc::new(Nodes::new(&options)?),
            identities: Identities::new(options.tokens.as_deref(), options.anonymous.clone())?,
            turns: Arc::new(Semaphore::new(options.max_requests as usize)),
            running: Arc::default(),
            metrics: Metrics::default(),
            rate,
            options,
        }))
    }

    /// Forgets addresses that have not asked of late, for ever.
    pub async fn forget_addresses(self: Arc<Self>) {
        while let Some(rate) = &self.rate {
            tokio::time::sleep(Duration::from_secs(60)).await;
            rate.retain_recent();
        }
    }

    /// The longest time that a request may take.
    ///
    /// # Errors
    /// 400 for a parameter `timeout` that is no time.
    pub fn limit(&self, fields: &Fields) -> Result<Duration, Problem> {
        let Some(seconds) = fields.number::<f64>("timeout")? else {
            return Ok(self.options.query_timeout);
        };
        match Duration::try_from_secs_f64(seconds) {
            Ok(asked) if asked > Duration::ZERO => Ok(asked.min(self.options.query_timeout)),
            _ => Err(Problem::bad_request(
                "parameter \"timeout\" is not a number of seconds",
            )),
        }
    }

    /// Most rows that an answer may have.
    ///
    /// # Errors
    /// 400 for a parameter `max-rows` that is no number.
    pub fn max_rows(&self, fields: &Fields) -> Result<Option<i64>, Problem> {
        let asked = fields.number::<u32>("max-rows")?;
        let set = Some(self.options.max_rows).filter(|rows| *rows > 0);
        Ok(asked.into_iter().chain(set).min().map(i64::from))
    }

    /// The routes.
    pub fn router(self: &Arc<Self>) -> Router {
        // The workbench's own: no page of another site has to do with it.
        let own = Router::new()
            .route("/", get(files::home))
            .route("/-/session", get(api::session))
            .route("/-/stores", get(api::stores))
            .route("/-/plan", post(api::plan))
            .route("/-/running", get(api::running))
            .route("/-/cancel", post(api::cancel))
            .route("/-/cluster", get(api::cluster))
            .route("/-/{file}", get(files::asset));
        let routes = Router::new()
            .route("/health", get(page::health))
            .route("/metrics", get(page::metrics))
            .route("/sparql", any(query::answer))
            .route("/sparql/", any(query::answer))
            .route("/update", any(update::answer))
            .route("/update/", any(update::answer))
            .route("/data", any(graph_store::answer))
            .route("/data/", any(graph_store::answer))
            .route("/data/{*path}", any(graph_store::answer))
            .route("/{store}/sparql", any(query::answer))
            .route("/{store}/sparql/", any(query::answer))
            .route("/{store}/update", any(update::answer))
            .route("/{store}/update/", any(update::answer))
            .route("/{store}/data", any(graph_store::answer))
            .route("/{store}/data/", any(graph_store::answer))
            .route("/{store}/data/{*path}", any(graph_store::answer))
            .fallback(page::nothing);
        self.layered(routes)
            .layer(self.cors())
            .merge(self.layered(own))
    }

    /// Routes with what is done with all requests.
    fn layered(self: &Arc<Self>, routes: Router<Arc<Self>>) -> Router {
        let routes = routes
            .method_not_allowed_fallback(page::method)
            .with_state(self.clone());
        let predicate = DefaultPredicate::new().and(SizeAbove::new(MIN_COMPRESSED_BYTES));
        let unpacked = ServiceBuilder::new()
            .layer(RequestBodyTimeoutLayer::new(self.options.stall_timeout))
            .layer(RequestDecompressionLayer::new())
            .layer(MapRequestBodyLayer::new(Body::new));
        routes
            .layer(DefaultBodyLimit::disable())
            .layer(unpacked)
            .layer(from_fn_with_state(self.clone(), watched))
            .layer(
                CompressionLayer::new()
                    .quality(CompressionLevel::Fastest)
                    .compress_when(predicate),
            )
    }

    fn cors(&self) -> CorsLayer {
        let origins = &self.options.cors_origin;
        let origin = if origins.iter().any(|origin| origin == "*") {
            AllowOrigin::any()
        } else {
            AllowOrigin::list(origins.iter().filter_map(|origin| origin.parse().ok()))
        };
        CorsLayer::new()
            .allow_origin(origin)
            .allow_methods([
                Method::GET,
                Method::HEAD,
                Method::POST,
                Method::PUT,
                Method::DELETE,
                Method::OPTIONS,
            ])
            .allow_headers(AllowHeaders::mirror_request())
            .expose_headers([header::LOCATION, header::RETRY_AFTER])
            .max_age(Duration::from_secs(3600))
    }
}

/// Counts and logs requests, holds addresses to their rate, and writes what went wrong in a form that the client takes.
async fn watched(
    State(app): State<Arc<App>>,
    ConnectInfo(peer): ConnectInfo<Peer>,
    mut request: Request,
    next: Next,
) -> Response {
    let started = Instant::now();
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let endpoint = endpoint(&path);
    let accept: HeaderMap = request
        .headers()
        .get_all(header::ACCEPT)
        .iter()
        .map(|value| (header::ACCEPT, value.clone()))
        .collect();
    let allowed = app
        .rate
        .as_ref()
        .is_none_or(|rate| rate.check_key(&peer.0.ip()).is_ok());
    name_encoding(request.headers_mut());
    if endpoint == "data" {
        leave_packed(&mut request);
    }
    let mut response = if allowed {
        next.run(request).await
    } else {
        let mut problem = Problem::new(
            StatusCode::TOO_MANY_REQUESTS,
            "too many requests from this address",
        );
        problem.retry_after = Some(Duration::from_secs(1));
        problem.into_response()
    };
    let mut problem = response.extensions_mut().remove::<Problem>();
    if problem.is_none() && response.status() == StatusCode::UNSUPPORTED_MEDIA_TYPE {
        // The layer that unpacks bodies says no more than that.
        problem = Some(Problem::media_type(
            "the encoding of the body is not known",
            "Encodings are gzip and zstd.",
        ));
    }
    let mut why = None;
    if let Some(problem) = problem {
        let extensions = std::mem::take(response.extensions_mut());
        response = problem.response(&accept);
        *response.extensions_mut() = extensions;
        why = Some(problem.message);
    }
    if matches!(endpoint, "sparql" | "data") {
        let vary = HeaderValue::from_static("accept");
        response.headers_mut().append(header::VARY, vary);
    }
    let (status, time) = (response.status().as_u16(), started.elapsed());
    app.metrics.request(endpoint, status, time);
    let ms = time.as_secs_f64() * 1000.0;
    if status >= 500 {
        tracing::warn!(%method, path, status, ms, peer = %peer.0, why, "request failed");
    } else {
        tracing::debug!(%method, path, status, ms, peer = %peer.0, "request");
    }
    response
}

/// Writes the encoding of the body as the layer that unpacks it knows it: in lower case (RFC 9110, 8.4.1), and not
/// `x-gzip`.
fn name_encoding(headers: &mut HeaderMap) {
    let Some(value) = headers.get_mut(header::CONTENT_ENCODING) else {
        return;
    };
    let name = value.to_str().unwrap_or_default().to_ascii_lowercase();
    let name = if name == "x-gzip" { "gzip" } else { &name };
    if let Ok(known) = HeaderValue::from_str(name) {
        *value = known;
    }
}

/// How the body of a request is compressed that is left so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packed(pub &'static str);

/// Takes a document from the layer that unpacks bodies: PostgreSQL unpacks it. The parts of a form come unpacked.
fn leave_packed(request: &mut Request) {
    let headers = request.headers();
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let is_form = text(header::CONTENT_TYPE)
        .is_some_and(|value| content_type(value).0 == "multipart/form-data");
    let is_one = headers.get_all(header::CONTENT_ENCODING).iter().count() == 1;
    let known = ["gzip", "zstd"].into_iter();
    let packed = known
        .filter(|_| is_one && !is_form)
        .find(|name| text(header::CONTENT_ENCODING) == Some(name));
    if let Some(name) = packed {
        request.headers_mut().remove(header::CONTENT_ENCODING);
        request.extensions_mut().insert(Packed(name));
    }
}

/// What a path leads to, for the figures: there are few of them whatever clients ask.
fn endpoint(path: &str) -> &'static str {
    let mut parts = path.trim_end_matches('/').split('/').skip(1);
    let (first, second) = (parts.next().unwrap_or_default(), parts.next());
    const NAMES: [&str; 3] = ["sparql", "update", "data"];
    let known = |part: &str| NAMES.into_iter().find(|name| *name == part);
    match (first, second) {
        ("", None) => "home",
        ("health", None) => "health",
        ("metrics", None) => "metrics",
        ("-", Some(_)) => "workbench",
        (first, second) => known(first).or_else(|| known(second?)).unwrap_or("other"),
    }
}

/// The store that a path names, `None` for the default one.
pub fn store_of(matched: &MatchedPath, params: &[(String, String)]) -> Option<String> {
    let named = matched.as_str().starts_with("/{store}");
    let store = params.iter().find(|(name, _)| name == "store");
    store.filter(|_| named).map(|(_, store)| store.clone())
}

/// The URL of a request as its client knows it, without the query string; `None` without a host.
pub fn url_of(app: &App, headers: &HeaderMap, path: &str, secure: bool) -> Option<String> {
    let url = match &app.options.public_url {
        Some(public) => format!("{}{path}", public.trim_end_matches('/')),
        None => {
            let host = headers.get(header::HOST)?.to_str().ok()?;
            let scheme = if secure { "https" } else { "http" };
            format!("{scheme}://{host}{path}")
        }
    };
    oxiri::Iri::parse(url).ok().map(oxiri::Iri::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodings_have_one_name() {
        for (sent, known) in [
            ("GZIP", "gzip"),
            ("X-Gzip", "gzip"),
            ("zstd", "zstd"),
            ("br", "br"),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static(sent));
            name_encoding(&mut headers);
            assert_eq!(headers[header::CONTENT_ENCODING], known);
        }
    }

    #[test]
    fn documents_stay_packed_and_forms_do_not() {
        let packed = |media: &str, encodings: &[&str]| {
            let mut request = Request::new(Body::empty());
            let headers = request.headers_mut();
            headers.insert(header::CONTENT_TYPE, media.parse().unwrap());
            for encoding in encodings {
                headers.append(header::CONTENT_ENCODING, encoding.parse().unwrap());
            }
            leave_packed(&mut request);
            let is_left = request.headers().contains_key(header::CONTENT_ENCODING);
            (request.extensions().get::<Packed>().copied(), is_left)
        };
        assert_eq!(
            packed("text/turtle", &["zstd"]),
            (Some(Packed("zstd")), false)
        );
        assert_eq!(packed("text/turtle", &["br"]), (None, true));
        assert_eq!(packed("text/turtle", &["gzip", "gzip"]), (None, true));
        assert_eq!(packed("text/turtle", &[]), (None, false));
        assert_eq!(
            packed("Multipart/form-data; boundary=b", &["gzip"]),
            (None, true)
        );
    }

    #[test]
    fn endpoints_of_paths() {
        for (path, name) in [
            ("/", "home"),
            ("/sparql", "sparql"),
            ("/sparql/", "sparql"),
            ("/people/sparql", "sparql"),
            ("/people/data/x/y", "data"),
            ("/data/x", "data"),
            ("/health", "health"),
            ("/-/running", "workbench"),
            ("/a/b", "other"),
        ] {
            assert_eq!(endpoint(path), name, "{path}");
        }
    }
}
