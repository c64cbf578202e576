//! What PostgreSQL's catalogue says of quad tables and distributed stores. See README.md beside this file.

pub mod access_method;
pub mod distributed_store;
pub mod names;
pub mod policies;
