//! The stores that are asked: this one over PostgreSQL's protocol, any other over HTTP.

use std::time::Duration;

use postgres::{Client, NoTls, Statement};

use crate::http::{Connection, Endpoint};
use crate::log::{Form, Query};

/// A store under measurement.
#[derive(Clone, Debug)]
pub struct Target {
    /// What reports call it.
    pub name: String,
    /// Where it is.
    pub place: Place,
}

/// How a store is reached.
#[derive(Clone, Debug)]
pub enum Place {
    /// A PostgreSQL connection string.
    Postgres(String),
    /// A SPARQL endpoint.
    Http(Endpoint),
}

impl Target {
    /// Reads `NAME=PLACE` of the command line.
    pub fn parse(
        argument: &str,
        place: impl FnOnce(&str) -> Result<Place, String>,
    ) -> Result<Self, String> {
        let (name, rest) = argument
            .split_once('=')
            .ok_or_else(|| format!("{argument}: not NAME=PLACE"))?;
        Ok(Self {
            name: name.to_owned(),
            place: place(rest)?,
        })
    }

    /// Connects, and prepares what can be prepared before the clock runs.
    pub fn connect(&self, queries: &[Query], timeout: Duration) -> Result<Session, String> {
        let failed = |error: String| format!("{}: {error}", self.name);
        Ok(match &self.place {
            Place::Postgres(settings) => Session::Postgres(
                Postgres::connect(settings, timeout).map_err(|e| failed(describe(&e)))?,
            ),
            Place::Http(endpoint) => Session::Http {
                requests: queries
                    .iter()
                    .map(|query| endpoint.request(query))
                    .collect(),
                connection: Connection::new(endpoint.clone(), timeout),
                body: Vec::new(),
            },
        })
    }
}

/// One client's connection to a store.
pub enum Session {
    /// To this store.
    Postgres(Postgres),
    /// To another.
    Http {
        /// The requests for all queries of the log.
        requests: Vec<Vec<u8>>,
        /// The connection.
        connection: Connection,
        /// The last answer.
        body: Vec<u8>,
    },
}

impl Session {
    /// Asks the query at a position of the log; the whole answer, as SPARQL JSON results or N-Triples.
    pub fn ask<R>(
        &mut self,
        position: usize,
        query: &Query,
        read: impl FnOnce(&[u8]) -> R,
    ) -> Result<R, String> {
        match self {
            Self::Postgres(postgres) => postgres.ask(query, read).map_err(|e| describe(&e)),
            Self::Http {
                requests,
                connection,
                body,
            } => {
                connection.ask(&requests[position], body)?;
                Ok(read(body))
            }
        }
    }

    /// The emptiest exchange there is, where the protocol knows one below SPARQL.
    pub fn empty_statement(&mut self) -> Result<bool, String> {
        match self {
            Self::Postgres(postgres) => postgres.empty().map(|()| true).map_err(|e| describe(&e)),
            Self::Http { .. } => Ok(false),
        }
    }
}

fn describe(error: &postgres::Error) -> String {
    error
        .as_db_error()
        .map_or_else(|| error.to_string(), |e| e.message().to_owned())
}

/// A connection to this store with its prepared statements.
pub struct Postgres {
    client: Client,
    solutions: Statement,
    construct: Statement,
    describe: Statement,
    empty: Statement,
}

impl Postgres {
    fn connect(settings: &str, timeout: Duration) -> Result<Self, postgres::Error> {
        let mut client = Client::connect(settings, NoTls)?;
        client.batch_execute(&format!("set statement_timeout = {}", timeout.as_millis()))?;
        Ok(Self {
            solutions: client.prepare("select quad.sparql_json($1)")?,
            construct: client.prepare("select quad.construct_text($1, 'nt')")?,
            describe: client.prepare("select quad.describe_text($1, 'nt')")?,
            empty: client.prepare("select ''::text")?,
            client,
        })
    }

    fn ask<R>(
        &mut self,
        query: &Query,
        read: impl FnOnce(&[u8]) -> R,
    ) -> Result<R, postgres::Error> {
        let statement = match query.form {
            Form::Select | Form::Ask => &self.solutions,
            Form::Construct => &self.construct,
            Form::Describe => &self.describe,
        };
        let row = self.client.query_one(statement, &[&query.text])?;
        Ok(read(row.get::<_, &str>(0).as_bytes()))
    }

    fn empty(&mut self) -> Result<(), postgres::Error> {
        self.client.query_one(&self.empty, &[]).map(drop)
    }
}
