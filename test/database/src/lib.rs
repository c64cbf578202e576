//! What the test programs in Rust share: a database of their own on the server of `PGHOST`, `PGPORT`, `PGUSER`, `PGPASSWORD`, and
//! answers as terms.

use oxrdf::Term;
use postgres::types::ToSql;
use postgres::{Client, Config, NoTls, Transaction};

/// A row of an answer; `None` = unbound.
pub type Row = Vec<Option<Term>>;

/// All quads of the default store as terms; the graph last, NULL for the default graph.
pub const QUADS: &str =
    "SELECT quad.term_out(quad.decode(s))::text, quad.term_out(quad.decode(p))::text, \
     quad.term_out(quad.decode(o))::text, quad.term_out(quad.decode(g))::text \
     FROM quad_stores.main";

/// Connects to a database.
///
/// # Panics
/// When the server cannot be reached.
pub fn connect(name: &str) -> Client {
    let variable =
        |name: &str, default: &str| std::env::var(name).unwrap_or_else(|_| default.to_owned());
    let port = variable("PGPORT", "5432");
    let mut config = Config::new();
    config
        .host(&variable("PGHOST", "127.0.0.1"))
        .port(port.parse().expect("PGPORT is a number"))
        .user(&variable("PGUSER", "postgres"))
        .dbname(name);
    if let Ok(password) = std::env::var("PGPASSWORD") {
        config.password(password);
    }
    config
        .connect(NoTls)
        .unwrap_or_else(|error| panic!("cannot connect to database {name}: {error}"))
}

/// Makes a database with the extension, in place of one that an earlier run left behind, and connects to it.
///
/// # Panics
/// When that cannot be done.
pub fn create(name: &str) -> Client {
    drop(name);
    connect("postgres")
        .batch_execute(&format!(
            "CREATE DATABASE {name} TEMPLATE template0 ENCODING 'UTF8'"
        ))
        .expect("a database can be made");
    let mut client = connect(name);
    client
        .batch_execute("CREATE EXTENSION pgquad")
        .expect("the extension can be made");
    client
}

/// Removes a database, whoever is connected to it.
///
/// # Panics
/// When that cannot be done.
pub fn drop(name: &str) {
    connect("postgres")
        .batch_execute(&format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)"))
        .expect("the database can be dropped");
}

/// The rows of a statement whose columns are terms as text.
///
/// # Errors
/// Those of the server, and texts that are not terms.
pub fn rows<E: From<postgres::Error> + From<NotATerm>>(
    transaction: &mut Transaction<'_>,
    sql: &str,
    parameters: &[&(dyn ToSql + Sync)],
) -> Result<Vec<Row>, E> {
    let mut answer = Vec::new();
    for row in transaction.query(sql, parameters)? {
        let terms = (0..row.len()).map(|place| {
            let text: Option<String> = row.get(place);
            text.map(|text| parse_term(&text)).transpose()
        });
        answer.push(terms.collect::<Result<Row, NotATerm>>()?);
    }
    Ok(answer)
}

/// A text that should have been a term.
#[derive(Debug)]
pub struct NotATerm(pub String);

/// The term that a text is in N-Triples.
///
/// # Errors
/// The text is not a term.
pub fn parse_term(text: &str) -> Result<Term, NotATerm> {
    text.parse()
        .map_err(|error| NotATerm(format!("not a term: {text}: {error}")))
}
