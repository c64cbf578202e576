//! Requests over http(s), for SERVICE and LOAD.
//!
//! * `client`: a client under the rules of the settings: which servers may be asked, and the bounds of a request
//! * `wait`: waiting for a request that runs on a thread of its own, so that a query can be cancelled meanwhile
//! * `failure`: errors of a request as PostgreSQL errors
//! * `service`: `quad.service`, the function that SERVICE becomes
//! * `document`: LOAD

mod client;
mod document;
mod failure;
mod service;
mod wait;

pub use document::load;
