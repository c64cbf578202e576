//! Requests over http(s) for SERVICE and LOAD: which servers may be asked, with bounds on time and size. Knows nothing
//! of PostgreSQL.
//!
//! * `rules`, `address`: what is allowed, decided on the name of the server and again on the address that is connected
//!   to
//! * `client`: one request, its redirects followed under the same rules
//! * `endpoint`: a query to a SPARQL endpoint
//! * `job`: the thread on which all of this runs, so that the caller can give up at any time

mod address;
mod client;
mod endpoint;
mod error;
mod job;
mod rules;

pub use client::{Client, Document, Limits, Method};
pub use endpoint::{select, Row, ROWS_AT_ONCE};
pub use error::{Error, ErrorKind};
pub use job::{Job, Step};
pub use rules::{Rules, RulesError};
