//! Which site a browser's request comes from.
//!
//! Browsers send credentials of HTTP Basic that a user has typed on their own with every request to the server, forms
//! of other sites included.
//! Without a preflight they send only requests whose body has one of the types of forms, and the server answers no
//! preflight with Access-Control-Allow-Credentials. So these are the requests with which another site must not write.

use axum::http::{header, HeaderMap, Method, StatusCode};

use crate::negotiate::content_type;
use crate::problem::Problem;

/// Refuses a write with credentials that the page of another site may have made a browser send. `origins`: sites that
/// may. Of the methods that write, forms have POST only.
///
/// # Errors
/// 403.
pub fn check_write(
    method: &Method,
    headers: &HeaderMap,
    origins: &[String],
) -> Result<(), Problem> {
    let text = |name: &str| text_of(headers, name);
    if method != Method::POST
        || !is_of_other_site(headers)
        || !headers.contains_key(header::AUTHORIZATION)
    {
        return Ok(());
    }
    let media = text("content-type").map(|value| content_type(value).0);
    let is_form = matches!(
        media.as_deref(),
        None | Some("application/x-www-form-urlencoded" | "multipart/form-data" | "text/plain")
    );
    let origin = text("origin").unwrap_or("null");
    if !is_form || origins.iter().any(|known| known == origin) {
        return Ok(());
    }
    Err(Problem::new(
        StatusCode::FORBIDDEN,
        "a page of another site may not write with a form",
    )
    .hint("Send application/sparql-update or a document, or name the site with --cors-origin."))
}

/// Refuses what a page of another site has sent, whatever it is.
///
/// # Errors
/// 403.
pub fn check_own(headers: &HeaderMap) -> Result<(), Problem> {
    if is_of_other_site(headers) {
        return Err(Problem::new(
            StatusCode::FORBIDDEN,
            "this is for the pages of this server",
        ));
    }
    Ok(())
}

fn text_of<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// Whether a page of another site has made a browser send the request. Browsers say so where the server is reached by
/// https, or on their own machine (Fetch Metadata). Elsewhere the page's origin is compared with the host that is
/// asked.
fn is_of_other_site(headers: &HeaderMap) -> bool {
    if let Some(site) = text_of(headers, "sec-fetch-site") {
        return !matches!(site, "same-origin" | "none");
    }
    let Some(origin) = text_of(headers, "origin") else {
        return false;
    };
    let Some(asked) = text_of(headers, "host") else {
        return false;
    };
    let host = origin.split_once("://").map(|(_, host)| host);
    !host.is_some_and(|host| host.eq_ignore_ascii_case(asked))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let pair = |(name, value): &(&'static str, &'static str)| {
            (name.parse().unwrap(), value.parse().unwrap())
        };
        pairs.iter().map(pair).collect()
    }

    #[test]
    fn forms_of_other_sites_do_not_write() {
        let form = ("content-type", "application/x-www-form-urlencoded");
        let (basic, cross) = (
            ("authorization", "Basic eDo="),
            ("sec-fetch-site", "cross-site"),
        );
        let origin = ("origin", "https://good.example");
        let any = ["*".to_owned()];
        let check_write =
            |headers: &HeaderMap, origins: &[String]| check_write(&Method::POST, headers, origins);
        assert!(super::check_write(&Method::DELETE, &headers(&[basic, cross]), &any).is_ok());
        assert!(check_write(&headers(&[form, basic, cross, origin]), &any).is_err());
        assert!(check_write(&headers(&[basic, cross]), &any).is_err());
        let good = ["https://good.example".to_owned()];
        assert!(check_write(&headers(&[form, basic, cross, origin]), &good).is_ok());
        assert!(check_write(&headers(&[form, basic]), &any).is_ok());
        let update = ("content-type", "application/sparql-update");
        assert!(check_write(&headers(&[update, basic, cross]), &any).is_ok());
        let (plain, host) = (
            ("origin", "http://evil.example"),
            ("host", "db.example:7333"),
        );
        let own = ("origin", "http://db.example:7333");
        assert!(check_write(&headers(&[form, basic, plain, host]), &any).is_err());
        assert!(check_write(&headers(&[form, basic, ("origin", "null"), host]), &any).is_err());
        assert!(check_write(&headers(&[form, basic, own, host]), &any).is_ok());
        assert!(check_own(&headers(&[plain, host])).is_err());
        assert!(check_own(&headers(&[own, host])).is_ok());
        assert!(check_own(&headers(&[cross])).is_err());
        assert!(check_own(&headers(&[])).is_ok());
    }
}
