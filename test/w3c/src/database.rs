//! The server under test.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use postgres::error::SqlState;
use postgres::types::ToSql;
use postgres::{Client, Transaction};

use crate::answer::{format_of, Row};
use crate::endpoint::{read, Endpoints};
use crate::manifest::{Data, File};
use oxrdfio::RdfFormat;
use pgquad_test_database::{connect, rows, Clients, NotATerm, QUADS};

const NAME: &str = "pgquad_w3c";

/// Connections to a database of its own.
pub struct Database {
    clients: Clients,
}

/// What a session needs to ask endpoints on the loopback interface.
pub const ENDPOINT_SETTINGS: &str =
    "SET quad.http_allowed = '127.0.0.1:*'; SET quad.http_private_networks = '127.0.0.1'";

/// Another connection to the database of the tests.
pub fn connect_to_test_database() -> Client {
    connect(NAME)
}

impl Database {
    /// A new database with the extension.
    pub fn create() -> Self {
        pgquad_test_database::create(NAME);
        Self {
            clients: Clients::new(NAME, ""),
        }
    }

    /// Removes the database.
    pub fn drop(self) {
        drop(self.clients);
        pgquad_test_database::drop(NAME);
    }

    /// Starts a transaction; it is rolled back when it goes out of scope.
    pub fn begin(&mut self) -> Session<'_> {
        let (client, loader) = self.clients.take_turn();
        Session {
            transaction: client.transaction().expect("a transaction can start"),
            loader,
            replaced: Vec::new(),
        }
    }
}

/// A transaction in which a test runs.
pub struct Session<'a> {
    transaction: Transaction<'a>,
    /// Who loads the data and commits them, on a cluster; otherwise the transaction does.
    loader: Option<&'a mut Client>,
    /// What takes the place of what in the files that are loaded.
    replaced: Vec<(String, String)>,
}

/// An error of the server, or of what it gave.
#[derive(Debug)]
pub struct Failure {
    /// SQLSTATE.
    pub code: Option<SqlState>,
    /// The message.
    pub message: String,
}

impl From<postgres::Error> for Failure {
    fn from(error: postgres::Error) -> Self {
        Self {
            code: error.code().cloned(),
            message: match error.as_db_error() {
                Some(error) => format!("{}: {}", error.code().code(), error.message()),
                None => error.to_string(),
            },
        }
    }
}

impl From<NotATerm> for Failure {
    fn from(error: NotATerm) -> Self {
        Self {
            code: None,
            message: error.0,
        }
    }
}

type Result<T> = std::result::Result<T, Failure>;

impl Session<'_> {
    /// Lets the session ask endpoints whose addresses take the place of those in the files.
    pub fn use_endpoints(&mut self, endpoints: &Endpoints) -> Result<()> {
        self.replaced.clone_from(&endpoints.replaced);
        Ok(self.transaction.batch_execute(ENDPOINT_SETTINGS)?)
    }

    /// Loads the data into the default store.
    pub fn load(&mut self, data: &Data) -> Result<()> {
        self.create_store()?;
        for file in &data.default {
            self.load_file(file, None)?;
        }
        for (name, file) in &data.named {
            self.load_file(file, Some(name))?;
        }
        Ok(())
    }

    fn load_file(&mut self, file: &File, graph: Option<&str>) -> Result<()> {
        let text = read(file, &self.replaced);
        let format = match format_of(file) {
            RdfFormat::RdfXml => "rdf",
            RdfFormat::NTriples => "nt",
            _ => "ttl",
        };
        let sql = "SELECT quad.load_text($1, $2, $3, $4)";
        self.write(sql, &[&text, &format, &graph, &file.iri])?;
        Ok(())
    }

    /// Makes the default store, where that of a cluster is not there already.
    fn create_store(&mut self) -> Result<()> {
        if self.loader.is_none() {
            self.transaction
                .execute("SELECT quad.create_store('main')", &[])?;
        }
        Ok(())
    }

    /// Runs a statement that writes and gives a number: in the transaction, or committed where there are other nodes.
    fn write(&mut self, sql: &str, parameters: &[&(dyn ToSql + Sync)]) -> Result<i64> {
        let row = match &mut self.loader {
            Some(loader) => loader.query_one(sql, parameters)?,
            None => self.transaction.query_one(sql, parameters)?,
        };
        Ok(row.get(0))
    }

    /// Loads a document into the default store.
    pub fn load_text(&mut self, text: &str, format: &str, base: &str) -> Result<i64> {
        self.create_store()?;
        let sql = "SELECT quad.load_text($1, $2, base => $3)";
        self.write(sql, &[&text, &format, &base])
    }

    /// Loads a file into the default store; the server has to be on this machine.
    pub fn load_file_of_server(&mut self, path: &Path, format: &str, base: &str) -> Result<i64> {
        let copy = std::env::temp_dir().join(format!("pgquad-w3c-{}", std::process::id()));
        let copied = std::fs::read(path).and_then(|bytes| {
            std::fs::write(&copy, bytes)?;
            std::fs::set_permissions(&copy, Permissions::from_mode(0o644))
        });
        if let Err(error) = copied {
            return Err(Failure {
                code: None,
                message: format!("{}: {error}", copy.display()),
            });
        }
        self.create_store()?;
        let sql = "SELECT quad.load($1, $2, base => $3)";
        let name = copy.to_string_lossy().into_owned();
        let loaded = self.write(sql, &[&name, &format, &base]);
        // It is only a copy.
        let _ = std::fs::remove_file(&copy);
        loaded
    }

    /// Calls a function on a request and its base IRI that gives a text.
    pub fn text(&mut self, function: &str, request: &str, base: &str) -> Result<String> {
        let sql = format!("SELECT quad.{function}($1, NULL, $2)");
        Ok(self.transaction.query_one(&sql, &[&request, &base])?.get(0))
    }

    /// Runs an update request.
    pub fn update(&mut self, request: &str, base: &str) -> Result<i64> {
        let sql = "SELECT quad.update($1, NULL, $2)";
        Ok(self.transaction.query_one(sql, &[&request, &base])?.get(0))
    }

    /// Number of rows of a statement.
    pub fn row_count(&mut self, sql: &str) -> Result<usize> {
        Ok(self.transaction.query(sql, &[])?.len())
    }

    /// The triples of a CONSTRUCT query.
    pub fn construct(&mut self, query: &str, base: &str) -> Result<Vec<Row>> {
        let sql = "SELECT quad.term_out(subject)::text, quad.term_out(predicate)::text, \
                   quad.term_out(object)::text FROM quad.construct($1, NULL, $2)";
        rows(&mut self.transaction, sql, &[&query, &base])
    }

    /// All quads of the default store; the graph last, `None` for the default graph.
    pub fn quads(&mut self) -> Result<Vec<Row>> {
        rows(&mut self.transaction, QUADS, &[])
    }
}
