//! The files of the workbench, which are in the binary: each as it is and packed.

use axum::body::Body;
use axum::extract::Path;
use axum::http::{header, HeaderMap, HeaderValue};
use axum::response::Response;

use crate::page;
use crate::problem::Problem;

/// A file of the workbench.
struct File {
    /// Path below the root of the server.
    path: &'static str,
    plain: &'static [u8],
    /// The same, with gzip.
    packed: &'static [u8],
}

/// All files, none where the workbench was not built.
static FILES: &[File] = include!(concat!(env!("OUT_DIR"), "/workbench.rs"));

/// What pages may do: run and show what comes from here, nothing else.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
     form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// The start page: the workbench or, where it was not built, a plain one.
pub async fn home(headers: HeaderMap) -> Response {
    match file("index.html") {
        Some(file) => respond(file, &headers, "no-cache"),
        None => protected(page::text(
            include_str!("home.html"),
            "text/html; charset=utf-8",
        )),
    }
}

/// A file below `/-/`. Its name has the digest of what is in it, so it never changes.
pub async fn asset(Path(name): Path<String>, headers: HeaderMap) -> Result<Response, Problem> {
    match file(&format!("-/{name}")) {
        Some(file) => Ok(respond(
            file,
            &headers,
            "public, max-age=31536000, immutable",
        )),
        None => Err(page::nothing().await),
    }
}

fn file(path: &str) -> Option<&'static File> {
    FILES.iter().find(|file| file.path == path)
}

fn respond(file: &'static File, request: &HeaderMap, cache: &'static str) -> Response {
    let encodings = request.get_all(header::ACCEPT_ENCODING).iter();
    let takes_gzip = encodings
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|coding| matches!(coding.trim(), "gzip"));
    let body = if takes_gzip { file.packed } else { file.plain };
    let mut response = page::text(Body::from(body), media(file.path));
    let headers = response.headers_mut();
    let mut set = |name, value| headers.insert(name, HeaderValue::from_static(value));
    if takes_gzip {
        set(header::CONTENT_ENCODING, "gzip");
    }
    set(header::VARY, "accept-encoding");
    set(header::CACHE_CONTROL, cache);
    protected(response)
}

/// With the headers that keep a page from what is not its own.
fn protected(mut response: Response) -> Response {
    let headers = response.headers_mut();
    let mut set = |name, value| headers.insert(name, HeaderValue::from_static(value));
    set(header::CONTENT_SECURITY_POLICY, POLICY);
    set(header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    set(header::REFERRER_POLICY, "no-referrer");
    response
}

fn media(path: &str) -> &'static str {
    match path.rsplit('.').next() {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("json") => "application/json",
        _ => "text/plain; charset=utf-8",
    }
}
