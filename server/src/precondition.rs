//! Preconditions of a write (RFC 9110, 13.1). Graphs have no entity tags. A client can ask that there is a graph
//! (`If-Match: *`), or none (`If-None-Match: *`), for example to make a graph without overwriting another.

use axum::http::header::{HeaderName, IF_MATCH, IF_NONE_MATCH};
use axum::http::{HeaderMap, StatusCode};

use crate::problem::Problem;

/// Whether a request has any.
pub fn any(headers: &HeaderMap) -> bool {
    headers.contains_key(IF_MATCH) || headers.contains_key(IF_NONE_MATCH)
}

/// Checks them for a graph that is there, or is not.
///
/// # Errors
/// 412.
pub fn check(headers: &HeaderMap, is_there: bool) -> Result<(), Problem> {
    let is_star = |name: &HeaderName| {
        let mut values = headers.get_all(name).iter();
        values.any(|value| value.as_bytes().trim_ascii() == b"*")
    };
    let failed = |message| Err(Problem::new(StatusCode::PRECONDITION_FAILED, message));
    if headers.contains_key(IF_MATCH) && !is_star(&IF_MATCH) {
        return failed("graphs have no entity tags, so none is that of If-Match");
    }
    if headers.contains_key(IF_MATCH) && !is_there {
        return failed("there is no such graph, which If-Match asks for");
    }
    if is_star(&IF_NONE_MATCH) && is_there {
        return failed("the graph is there already, which If-None-Match rules out");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(name: HeaderName, value: &str, is_there: bool) -> Option<StatusCode> {
        let mut headers = HeaderMap::new();
        headers.insert(name, value.parse().unwrap());
        assert!(any(&headers));
        check(&headers, is_there)
            .err()
            .map(|problem| problem.status)
    }

    #[test]
    fn what_is_asked_is_whether_there_is_one() {
        let failed = Some(StatusCode::PRECONDITION_FAILED);
        assert_eq!(status(IF_MATCH, "*", true), None);
        assert_eq!(status(IF_MATCH, "*", false), failed);
        assert_eq!(status(IF_MATCH, "\"tag\"", true), failed);
        assert_eq!(status(IF_NONE_MATCH, " *", true), failed);
        assert_eq!(status(IF_NONE_MATCH, "*", false), None);
        assert_eq!(status(IF_NONE_MATCH, "\"tag\"", true), None);
        assert!(!any(&HeaderMap::new()));
        assert!(check(&HeaderMap::new(), true).is_ok());
    }
}
