//! Requests over http(s), for SERVICE and LOAD.
//!
//! * `settings`: which servers may be asked, and the bounds of a request; for superusers only
//! * `wait`: waiting for a request that runs on a thread of its own, so that a query can be cancelled meanwhile
//! * `failure`: errors of a request as PostgreSQL errors
//! * `service`: `quad.service`, the function that SERVICE becomes
//! * `document`: LOAD

mod document;
mod failure;
mod service;
mod settings;
mod wait;

pub use document::load;

/// Settings; called once from `_PG_init`.
pub fn init() {
    settings::init();
}
