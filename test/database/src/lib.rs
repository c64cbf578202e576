//! What the test programs in Rust share: a database of their own on the server of `PGHOST`, `PGPORT`, `PGUSER`,
//! `PGPASSWORD`, and answers as terms.

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

/// Ports of the nodes of a cluster on this machine, the coordinator first, from `PGQUAD_NODES` (separated by commas).
/// Without it there is one server.
pub fn nodes() -> Vec<u16> {
    let ports = std::env::var("PGQUAD_NODES").unwrap_or_default();
    let ports = ports.split(',').filter(|port| !port.is_empty());
    ports
        .map(|port| port.parse().expect("PGQUAD_NODES has ports"))
        .collect()
}

/// Connects to a database of the server, or of the coordinator.
///
/// # Panics
/// When the server cannot be reached.
pub fn connect(name: &str) -> Client {
    let port = nodes().first().copied().unwrap_or_else(|| {
        let port = std::env::var("PGPORT").unwrap_or_else(|_| "5432".to_owned());
        port.parse().expect("PGPORT is a number")
    });
    connect_to(name, port)
}

fn connect_to(name: &str, port: u16) -> Client {
    let variable =
        |name: &str, default: &str| std::env::var(name).unwrap_or_else(|_| default.to_owned());
    let mut config = Config::new();
    config
        .host(&variable("PGHOST", "127.0.0.1"))
        .port(port)
        .user(&variable("PGUSER", "postgres"))
        .dbname(name);
    if let Ok(password) = std::env::var("PGPASSWORD") {
        config.password(password);
    }
    config
        .connect(NoTls)
        .unwrap_or_else(|error| panic!("cannot connect to database {name}: {error}"))
}

/// Makes a database with the extension, in place of one that an earlier run left behind, and connects to it. On a
/// cluster the database is made on every node, and has an empty store `main` that is distributed.
///
/// # Panics
/// When that cannot be done.
pub fn create(name: &str) -> Client {
    drop(name);
    let nodes = nodes();
    for &port in &nodes {
        let new = format!("CREATE DATABASE {name} TEMPLATE template0 ENCODING 'UTF8'");
        let done = connect_to("postgres", port).batch_execute(&new);
        done.expect("a database can be made");
        let done = connect_to(name, port).batch_execute("CREATE EXTENSION citus");
        done.expect("Citus can be made");
    }
    if nodes.is_empty() {
        let new = format!("CREATE DATABASE {name} TEMPLATE template0 ENCODING 'UTF8'");
        let done = connect("postgres").batch_execute(&new);
        done.expect("a database can be made");
    }
    let mut client = connect(name);
    if let Some((coordinator, workers)) = nodes.split_first() {
        let mut set_up = format!("SELECT citus_set_coordinator_host('127.0.0.1', {coordinator});");
        for worker in workers {
            set_up += &format!("SELECT citus_add_node('127.0.0.1', {worker});");
        }
        set_up += &format!(
            "SELECT citus_set_node_property('127.0.0.1', {coordinator}, 'shouldhaveshards', true)"
        );
        client
            .batch_execute(&set_up)
            .expect("a cluster can be made");
    }
    client
        .batch_execute("CREATE EXTENSION pgquad")
        .expect("the extension can be made");
    if !nodes.is_empty() {
        let store = "SELECT quad.create_store('main', distributed => true, shards => 4)";
        client
            .batch_execute(store)
            .expect("a distributed store can be made");
    }
    client
}

/// Removes a database, whoever is connected to it.
///
/// # Panics
/// When that cannot be done.
pub fn drop(name: &str) {
    let sql = format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)");
    // Workers first: the coordinator's daemons talk to them.
    for &port in nodes().iter().rev() {
        let done = connect_to("postgres", port).batch_execute(&sql);
        done.expect("the database can be dropped");
    }
    if nodes().is_empty() {
        let done = connect("postgres").batch_execute(&sql);
        done.expect("the database can be dropped");
    }
}

/// Connections to a database of [`create`], one for each node, which are asked in turn.
pub struct Clients {
    name: &'static str,
    set_up: &'static str,
    ports: Vec<u16>,
    clients: Vec<Client>,
    /// On a cluster, who writes the data of a test and commits them.
    loader: Option<Client>,
    turn: usize,
}

impl Clients {
    /// Connects to the database; `set_up` is run on each connection.
    ///
    /// # Panics
    /// When a node cannot be reached.
    pub fn new(name: &'static str, set_up: &'static str) -> Self {
        let ports = nodes();
        let mut all = Self {
            name,
            set_up,
            clients: Vec::new(),
            loader: (!ports.is_empty()).then(|| connect(name)),
            ports,
            turn: 0,
        };
        all.clients = (0..all.ports.len().max(1)).map(|n| all.client(n)).collect();
        all
    }

    fn client(&self, n: usize) -> Client {
        let mut client = match self.ports.get(n) {
            Some(&port) => connect_to(self.name, port),
            None => connect(self.name),
        };
        client.batch_execute(self.set_up).expect("settings");
        client
    }

    /// The connection that is asked next, made anew where it was lost, and the one that writes the data of the test. On
    /// a cluster that is a connection to another node, which finds the store empty. Otherwise the test writes them
    /// itself, in its transaction.
    ///
    /// # Panics
    /// When a node cannot be reached.
    pub fn take_turn(&mut self) -> (&mut Client, Option<&mut Client>) {
        self.turn = (self.turn + 1) % self.clients.len();
        if self.clients[self.turn].is_closed() {
            self.clients[self.turn] = self.client(self.turn);
        }
        if let Some(loader) = &mut self.loader {
            let done = loader.batch_execute("TRUNCATE quad_stores.main");
            done.expect("the store can be emptied");
        }
        (&mut self.clients[self.turn], self.loader.as_mut())
    }

    /// One of the connections.
    pub fn any(&mut self) -> &mut Client {
        &mut self.clients[0]
    }
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
