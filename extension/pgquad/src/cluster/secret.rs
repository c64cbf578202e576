//! The secret by which nodes know each other. A session that asks for quads proves with it that a backend with this
//! extension speaks, and not a user who has found the function. It is one row of a Citus reference table that nobody
//! but superusers may read.

use std::cell::RefCell;

use hmac::{Hmac, Mac};
use pgrx::prelude::*;
use pgrx::{pg_sys, PgSqlErrorCode, Spi};
use sha2::Sha256;

use super::nodes::as_superuser;
use super::{catalogue, map};
use crate::pg::error::{raise, raise_hint};
use crate::term::random_bytes;

extension_sql_file!(
    "../../../../sql/cluster_secret.sql",
    name = "cluster_secret"
);

/// Bytes of the secret.
const SECRET_BYTES: usize = 32;

/// The database, and the table of the secret: the extension that is made anew has another one.
type Place = (pg_sys::Oid, pg_sys::Oid);

thread_local! {
    static SECRET: RefCell<Option<(Place, Vec<u8>)>> = const { RefCell::new(None) };
}

fn place() -> Place {
    // SAFETY: this session's database; look-ups by name.
    unsafe {
        let schema = pg_sys::get_namespace_oid(c"quad".as_ptr(), true);
        let table = pg_sys::get_relname_relid(c"cluster_secret".as_ptr(), schema);
        (pg_sys::MyDatabaseId, table)
    }
}

/// Makes the secret and has Citus keep it on every node, where that has not been done.
pub fn ensure() {
    as_superuser(|| {
        if is_there() {
            return;
        }
        let secret: [u8; SECRET_BYTES] = random_bytes();
        let run = |sql: &str, arguments: &[pgrx::datum::DatumWithOid]| {
            if let Err(error) = Spi::run_with_args(sql, arguments) {
                raise(PgSqlErrorCode::ERRCODE_INTERNAL_ERROR, error.to_string());
            }
        };
        run(
            "SELECT pg_catalog.create_reference_table('quad.cluster_secret') \
             WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_dist_partition \
               WHERE logicalrelid OPERATOR(pg_catalog.=) 'quad.cluster_secret'::pg_catalog.regclass)",
            &[],
        );
        run(
            "INSERT INTO quad.cluster_secret VALUES (1, $1) ON CONFLICT DO NOTHING",
            &[secret.to_vec().into()],
        );
    });
}

/// The key by which participants of a join prove themselves to each other. It is made from the secret, so nothing that
/// is computed with it tells anything about the tokens of sessions.
pub fn exchange_key() -> Vec<u8> {
    let mut mac = keyed();
    mac.update(b"pgquad exchange");
    mac.finalize().into_bytes().to_vec()
}

/// A number made from the secret. It tells this cluster from others that the node may have belonged to.
pub fn number_of_cluster() -> u64 {
    let mut mac = keyed();
    mac.update(b"pgquad cluster");
    let bytes = mac.finalize().into_bytes();
    bytes
        .iter()
        .take(8)
        .fold(0, |number, &byte| number << 8 | u64::from(byte))
}

/// Whether this node has the secret: the cluster has had a distributed store.
pub fn is_there() -> bool {
    !stored().is_empty()
}

/// Whether this session knows the secret, or finds it. It does not look for it beside parallel workers.
pub fn is_known() -> bool {
    // SAFETY: plain session state.
    let is_parallel = unsafe { pg_sys::IsInParallelMode() };
    let of = SECRET.with_borrow(|known| known.as_ref().map(|(of, _)| *of));
    of == Some(place()) || !is_parallel && is_there()
}

/// The rows of the table, from this node's copy of it, without Citus. A query of Citus would bind the transaction to
/// what Citus can do after it has read a shard here. Nor is one allowed within a task of Citus, in which the node that
/// has a shard proves itself to others.
fn stored() -> Vec<Vec<u8>> {
    let (_, table) = place();
    let copy = match map::local_copy(table) {
        pg_sys::InvalidOid => table,
        copy => copy,
    };
    let mut found = Vec::new();
    catalogue::CatalogueSnapshot::take().each_row_of(copy, None, |row| {
        found.push(row.get(c"secret").unwrap_or_default());
    });
    found
}

/// What a session of `role` shows: a keyed hash of the format's version and the role.
pub fn token(role: &str) -> Vec<u8> {
    let mut mac = keyed();
    mac.update(&[pgquad_cluster::message::VERSION]);
    mac.update(role.as_bytes());
    mac.finalize().into_bytes().to_vec()
}

/// A hash keyed by the secret.
fn keyed() -> Hmac<Sha256> {
    with_secret(|secret| {
        <Hmac<Sha256> as Mac>::new_from_slice(secret).unwrap_or_else(|_| {
            raise(
                PgSqlErrorCode::ERRCODE_DATA_CORRUPTED,
                "the secret of the cluster is damaged",
            )
        })
    })
}

/// Whether a token is the one that a session of `role` shows. Takes the same time whatever differs.
pub fn is_token(role: &str, shown: &[u8]) -> bool {
    let expected = token(role);
    let differs = expected.iter().zip(shown).fold(0, |d, (a, b)| d | (a ^ b));
    expected.len() == shown.len() && differs == 0
}

fn with_secret<T>(body: impl FnOnce(&[u8]) -> T) -> T {
    let place = place();
    let known = SECRET.with_borrow(|known| known.clone());
    let secret = match known.filter(|(of, _)| *of == place) {
        Some((_, secret)) => secret,
        None => {
            let secret = stored().into_iter().next().unwrap_or_else(|| {
                raise_hint(
                    PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                    "this node does not know the secret of the cluster",
                    "It is made with the first distributed store, and comes to new nodes with the reference tables of \
                     Citus: SELECT replicate_reference_tables() on the coordinator.",
                )
            });
            SECRET.set(Some((place, secret.clone())));
            secret
        }
    };
    body(&secret)
}
