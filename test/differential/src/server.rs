//! The server under test.

use std::collections::BTreeMap;

use pgquad_test_database::{parse_term, rows, Clients, NotATerm, QUADS};
use postgres::{Client, Transaction};

use crate::answer::Row;

const NAME: &str = "pgquad_differential";

/// A statement that runs this long has failed, whatever it would give.
const TIMEOUT: &str = "SET statement_timeout = '20s'";

/// Settings that change how a query is run, and the values beside the usual ones. Those that the server does not know
/// are left out.
const SETTINGS: [(&str, &str); 2] = [
    ("quad.enable_quad_join", "off"),
    ("quad.enable_quad_scan", "off"),
];

/// Connections to a database of its own.
pub struct Database {
    clients: Clients,
    settings: Vec<(&'static str, &'static str)>,
}

/// An error of the server, with its SQLSTATE.
#[derive(Debug)]
pub struct Failure(pub String);

impl From<postgres::Error> for Failure {
    fn from(error: postgres::Error) -> Self {
        Self(match error.as_db_error() {
            Some(error) => format!("{}: {}", error.code().code(), error.message()),
            None => error.to_string(),
        })
    }
}

impl From<NotATerm> for Failure {
    fn from(error: NotATerm) -> Self {
        Self(error.0)
    }
}

type Result<T> = std::result::Result<T, Failure>;

impl Database {
    /// A new database with the extension and an empty store.
    pub fn create() -> Self {
        let mut client = pgquad_test_database::create(NAME);
        if pgquad_test_database::nodes().is_empty() {
            client
                .batch_execute("SELECT quad.create_store('main')")
                .expect("a store can be made");
        }
        let mut clients = Clients::new(NAME, TIMEOUT);
        let client = clients.any();
        let mut settings = SETTINGS.to_vec();
        settings.retain(|(name, _)| {
            client
                .query_one("SELECT current_setting($1, true) IS NOT NULL", &[name])
                .is_ok_and(|row| row.get(0))
        });
        Self { clients, settings }
    }

    /// Removes the database.
    pub fn drop(self) {
        drop(self.clients);
        pgquad_test_database::drop(NAME);
    }

    /// Starts a transaction, which is rolled back when it goes out of scope. A lost connection is made anew.
    pub fn begin(&mut self) -> Session<'_> {
        let (client, loader) = self.clients.take_turn();
        Session {
            settings: self.settings.clone(),
            transaction: client.transaction().expect("a transaction can start"),
            loader,
        }
    }
}

/// A transaction in which a case runs.
pub struct Session<'a> {
    settings: Vec<(&'static str, &'static str)>,
    transaction: Transaction<'a>,
    /// Who adds the data and commits them, on a cluster; otherwise the transaction does.
    loader: Option<&'a mut Client>,
}

impl Session<'_> {
    /// The settings that queries are to be run under.
    pub fn settings(&self) -> Vec<(&'static str, &'static str)> {
        self.settings.clone()
    }

    /// Changes a setting until the end of the transaction. One that cannot be changed is seen by what comes next.
    pub fn set(&mut self, name: &str, value: &str) {
        let _ = self
            .transaction
            .batch_execute(&format!("SET LOCAL {name} = '{value}'"));
    }

    /// Gives a setting its usual value.
    pub fn reset(&mut self, name: &str) {
        let _ = self
            .transaction
            .batch_execute(&format!("SET LOCAL {name} TO DEFAULT"));
    }

    /// Adds quads, as N-Quads, to the store.
    ///
    /// # Errors
    /// Those of the server.
    pub fn load(&mut self, nquads: &str) -> Result<()> {
        let sql = "SELECT quad.load_text($1, 'nq')";
        match &mut self.loader {
            Some(loader) => loader.execute(sql, &[&nquads])?,
            None => self.transaction.execute(sql, &[&nquads])?,
        };
        Ok(())
    }

    /// The answer to a SELECT query, in these columns.
    ///
    /// # Errors
    /// Those of the server.
    pub fn select(&mut self, query: &str, columns: &[String]) -> Result<Vec<Row>> {
        let sql = "SELECT s::text FROM quad.sparql($1) AS s";
        self.transaction
            .query(sql, &[&query])?
            .iter()
            .map(|row| {
                let json: BTreeMap<String, String> =
                    serde_json::from_str(row.get(0)).map_err(|error| Failure(error.to_string()))?;
                columns
                    .iter()
                    .map(|column| Ok(json.get(column).map(|text| parse_term(text)).transpose()?))
                    .collect()
            })
            .collect()
    }

    /// The answer to an ASK query.
    ///
    /// # Errors
    /// Those of the server.
    pub fn ask(&mut self, query: &str) -> Result<bool> {
        Ok(self
            .transaction
            .query_one("SELECT quad.ask($1)", &[&query])?
            .get(0))
    }

    /// The triples of a CONSTRUCT query.
    ///
    /// # Errors
    /// Those of the server.
    pub fn construct(&mut self, query: &str) -> Result<Vec<Row>> {
        let sql = "SELECT quad.term_out(subject)::text, quad.term_out(predicate)::text, \
                   quad.term_out(object)::text FROM quad.construct($1)";
        rows(&mut self.transaction, sql, &[&query])
    }

    /// The SQL that a query is translated to.
    ///
    /// # Errors
    /// Those of the server.
    pub fn sql(&mut self, query: &str) -> Result<String> {
        Ok(self
            .transaction
            .query_one("SELECT quad.sparql_to_sql($1)", &[&query])?
            .get(0))
    }

    /// Number of rows of the SQL that a query is translated to.
    ///
    /// # Errors
    /// Those of the server.
    pub fn count_by_sql(&mut self, query: &str) -> Result<usize> {
        let sql = self.sql(query)?;
        Ok(self.transaction.query(&sql, &[])?.len())
    }

    /// Plans a statement.
    ///
    /// # Errors
    /// Those of the server.
    pub fn explain(&mut self, sql: &str) -> Result<()> {
        self.transaction.query(&format!("EXPLAIN {sql}"), &[])?;
        Ok(())
    }

    /// Runs an update request.
    ///
    /// # Errors
    /// Those of the server.
    pub fn update(&mut self, request: &str) -> Result<()> {
        self.transaction
            .execute("SELECT quad.update($1)", &[&request])?;
        Ok(())
    }

    /// All quads of the store; the graph last, `None` for the default graph.
    ///
    /// # Errors
    /// Those of the server.
    pub fn quads(&mut self) -> Result<Vec<Row>> {
        rows(&mut self.transaction, QUADS, &[])
    }
}
