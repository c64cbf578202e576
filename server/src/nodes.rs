//! PostgreSQL: pools of connections, one for each role and node. Nodes are asked in turn; one that is down is left out
//! until it answers.

use std::collections::{HashMap, VecDeque};
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::http::StatusCode;
use deadpool_postgres::{
    Hook, HookError, Manager, ManagerConfig, Object, Pool, PoolError, RecyclingMethod, Runtime,
    TimeoutType, Timeouts,
};
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::error::{DbError, SqlState};
use tokio_postgres::{Client, Config, NoTls};
use tokio_postgres_rustls::MakeRustlsConnect;
use tokio_rustls::rustls;

use crate::identity::Identity;
use crate::options::Options;
use crate::problem::Problem;

/// How long a connection is kept: role settings, passwords and memberships that changed take effect after that at the
/// latest.
const LIFETIME: Duration = Duration::from_secs(60);
/// How long the pools of a role that does not ask are kept.
const IDLE: Duration = Duration::from_secs(60);
/// Where PostgreSQL refuses a connection that is beyond the CONNECTION LIMIT of its role (`utils/init/miscinit.c`).
const OWN_LIMIT: &str = "InitializeSessionUserId";
/// How often nodes that are down are tried, and old connections closed.
const PERIOD: Duration = Duration::from_secs(1);
/// How often PostgreSQL looks whether the server is still there while a query runs.
const CHECK_INTERVAL: &str = "1s";
/// Longest wait for PostgreSQL to take a connection.
const CONNECT: Duration = Duration::from_secs(5);

/// The PostgreSQL servers of a cluster, any of which can answer.
pub struct Nodes {
    nodes: Vec<Node>,
    roles: Mutex<HashMap<Identity, Arc<Role>>>,
    turn: AtomicUsize,
    pool_size: usize,
    queue_timeout: Duration,
    tls: Option<MakeRustlsConnect>,
    /// When it was last looked whether any node answers, and the outcome.
    last_look: tokio::sync::Mutex<Option<(Instant, bool)>>,
}

/// A PostgreSQL server.
struct Node {
    config: Config,
    /// Host and port, for messages and metrics.
    name: String,
    up: AtomicBool,
}

/// The connections of a role: a pool for each node.
struct Role {
    pools: Vec<Pool>,
    used: Mutex<Instant>,
}

/// The state of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeState {
    /// Host and port.
    pub name: String,
    /// Whether it answered when it was last asked.
    pub up: bool,
    /// Connections that are open.
    pub connections: usize,
}

/// A connection and the TLS to cancel its query with.
pub struct Lease {
    /// The connection.
    pub client: Object,
    /// The server, by its place among the nodes.
    pub node: usize,
    /// How the server is reached.
    pub tls: Option<MakeRustlsConnect>,
}

impl Nodes {
    /// Nodes by the URIs of the options. Nobody is connected to yet.
    ///
    /// # Errors
    /// A URI that is none; a certificate authority that cannot be read.
    pub fn new(options: &Options) -> Result<Self, String> {
        let with_tls = options.postgres_ca.is_some();
        let nodes: Result<Vec<Node>, String> = options
            .postgres
            .iter()
            .map(|uri| node(uri, with_tls))
            .collect();
        let tls = options.postgres_ca.as_deref().map(crate::tls::client);
        Ok(Self {
            nodes: nodes?,
            roles: Mutex::default(),
            turn: AtomicUsize::new(0),
            pool_size: options.pool_size as usize,
            queue_timeout: options.queue_timeout,
            tls: tls.transpose()?,
            last_look: tokio::sync::Mutex::default(),
        })
    }

    /// A connection of a role to the next node that is up, or to the one of this name.
    ///
    /// # Errors
    /// 404 for a name that no node has, 401 for a wrong password, 403 for a role that the server's login may not
    /// become. 503 when no node answers in time.
    pub async fn connection(
        &self,
        identity: &Identity,
        name: Option<&str>,
    ) -> Result<Lease, Problem> {
        let role = self.role(identity)?;
        let first = self.turn.fetch_add(1, Ordering::Relaxed);
        let count = self.nodes.len();
        let in_turn = (0..count).map(|place| (first + place) % count);
        let (up, down): (Vec<usize>, Vec<usize>) = in_turn
            .filter(|&place| name.is_none_or(|name| self.nodes[place].name == name))
            .partition(|&place| self.nodes[place].up.load(Ordering::Relaxed));
        if up.is_empty() && down.is_empty() {
            return Err(Problem::new(StatusCode::NOT_FOUND, "there is no such node"));
        }
        let mut problem = Problem::unavailable("no PostgreSQL node answers");
        // Before it waits for connections of one node, it tries the others that are up.
        let mut tries: VecDeque<_> = up.into_iter().map(|place| (place, false)).collect();
        let mut down = down.into_iter();
        let mut next_down = || down.next().map(|place| (place, true));
        while let Some((place, waits)) = tries.pop_front().or_else(&mut next_down) {
            let mut timeouts = role.pools[place].timeouts();
            if !waits {
                timeouts.wait = Some(Duration::ZERO);
            }
            let mut result = role.pools[place].timeout_get(&timeouts).await;
            if let Some(limit) = limit_of(&result) {
                // Connections that others left idle make room.
                self.close_idle(|other| match limit {
                    Limit::Server => true,
                    Limit::Login => identity.logs_in_as(other),
                });
                result = role.pools[place].timeout_get(&timeouts).await;
            }
            match result {
                Ok(client) => {
                    self.set_up(place, true);
                    let tls = self.tls.clone();
                    let node = place;
                    return Ok(Lease { client, node, tls });
                }
                Err(PoolError::Backend(error)) if error.as_db_error().is_some() => {
                    let starting = error.code() == Some(&SqlState::CANNOT_CONNECT_NOW);
                    if starting {
                        self.set_up(place, false);
                    }
                    // Another node may have room.
                    if starting || error.code() == Some(&SqlState::TOO_MANY_CONNECTIONS) {
                        problem = error.into();
                        continue;
                    }
                    self.forget(identity);
                    return Err(refused(error, identity));
                }
                Err(PoolError::Timeout(TimeoutType::Wait)) if !waits => {
                    tries.push_back((place, true));
                }
                Err(PoolError::Timeout(TimeoutType::Wait)) => {
                    problem = Problem::unavailable("all connections to PostgreSQL are in use");
                }
                Err(error) => {
                    tracing::debug!(node = self.nodes[place].name, %error, "a node does not answer");
                    self.set_up(place, false);
                }
            }
        }
        Err(problem)
    }

    /// Tries nodes that are down and closes connections that are old, for ever.
    pub async fn watch(self: Arc<Self>) {
        loop {
            tokio::time::sleep(PERIOD).await;
            for (place, node) in self.nodes.iter().enumerate() {
                if !node.up.load(Ordering::Relaxed) && self.answers(node).await {
                    self.set_up(place, true);
                }
            }
            let roles: Vec<Arc<Role>> = {
                let mut roles = self.roles.lock().expect("no panic holds it");
                roles.retain(|_, role| role.idle() < IDLE || Arc::strong_count(role) > 1);
                roles.values().cloned().collect()
            };
            for pool in roles.iter().flat_map(|role| &role.pools) {
                pool.retain(|_, metrics| metrics.age() < LIFETIME);
            }
        }
    }

    /// Whether any node answers, or has answered within the last second: nobody can fill PostgreSQL with connections
    /// by asking.
    pub async fn is_up(&self) -> bool {
        let mut last = self.last_look.lock().await;
        match *last {
            Some((when, up)) if when.elapsed() < PERIOD => up,
            _ => {
                let up = self.look().await;
                *last = Some((Instant::now(), up));
                up
            }
        }
    }

    /// Asks nodes in turn until one answers, and notes the outcome.
    async fn look(&self) -> bool {
        for (place, node) in self.nodes.iter().enumerate() {
            if self.answers(node).await {
                self.set_up(place, true);
                return true;
            }
            self.set_up(place, false);
        }
        false
    }

    /// Host and port of a node.
    pub fn name(&self, node: usize) -> &str {
        &self.nodes[node].name
    }

    /// What is known of the nodes.
    pub fn states(&self) -> Vec<NodeState> {
        let roles = self.roles.lock().expect("no panic holds it");
        let state = |(place, node): (usize, &Node)| NodeState {
            name: node.name.clone(),
            up: node.up.load(Ordering::Relaxed),
            connections: roles.values().map(|r| r.pools[place].status().size).sum(),
        };
        self.nodes.iter().enumerate().map(state).collect()
    }

    fn set_up(&self, place: usize, up: bool) {
        let node = &self.nodes[place];
        if node.up.swap(up, Ordering::Relaxed) != up {
            tracing::warn!(node = node.name, up, "the state of a node has changed");
        }
    }

    /// Whether a server takes connections. One that refuses the server's own login is there all the same.
    async fn answers(&self, node: &Node) -> bool {
        match tokio::time::timeout(CONNECT, connect(&node.config, self.tls.clone())).await {
            Ok(Ok(_)) => true,
            Ok(Err(error)) => error
                .code()
                .is_some_and(|code| *code != SqlState::CANNOT_CONNECT_NOW),
            Err(_) => false,
        }
    }

    /// The pools of a role, made if need be. Pools connect when they are first asked.
    fn role(&self, identity: &Identity) -> Result<Arc<Role>, Problem> {
        let mut roles = self.roles.lock().expect("no panic holds it");
        if let Some(role) = roles.get(identity) {
            *role.used.lock().expect("no panic holds it") = Instant::now();
            return Ok(role.clone());
        }
        let pools: Result<Vec<Pool>, Problem> = self
            .nodes
            .iter()
            .map(|node| self.pool(node, identity))
            .collect();
        let role = Arc::new(Role {
            pools: pools?,
            used: Mutex::new(Instant::now()),
        });
        roles.insert(identity.clone(), role.clone());
        Ok(role)
    }

    fn pool(&self, node: &Node, identity: &Identity) -> Result<Pool, Problem> {
        let mut config = node.config.clone();
        match identity {
            Identity::Login { role, password } => {
                config.user(role).password(password);
            }
            Identity::Token(role) => {
                config.options(options_of(&node.config, &[("role", role)]));
            }
            Identity::Anonymous(role) => {
                let settings = [
                    ("role", role.as_str()),
                    ("default_transaction_read_only", "on"),
                ];
                config.options(options_of(&node.config, &settings));
            }
        }
        let recycling = ManagerConfig {
            recycling_method: RecyclingMethod::Fast,
        };
        let manager = match &self.tls {
            Some(tls) => Manager::from_config(config, tls.clone(), recycling),
            None => Manager::from_config(config, NoTls, recycling),
        };
        // One that is never idle when they are looked through is closed, too.
        let is_young = Hook::sync_fn(|_, metrics| match metrics.age() < LIFETIME {
            true => Ok(()),
            false => Err(HookError::message("it is old")),
        });
        Pool::builder(manager)
            .max_size(self.pool_size)
            .pre_recycle(is_young)
            .timeouts(Timeouts {
                wait: Some(self.queue_timeout),
                create: Some(CONNECT),
                recycle: Some(CONNECT),
            })
            .runtime(Runtime::Tokio1)
            .build()
            .map_err(|error| Problem::unavailable(error.to_string()))
    }

    /// Forgets the pools of a role that could not log in: wrong passwords leave nothing behind.
    fn forget(&self, identity: &Identity) {
        self.roles
            .lock()
            .expect("no panic holds it")
            .remove(identity);
    }

    fn close_idle(&self, is_meant: impl Fn(&Identity) -> bool) {
        let roles = self.roles.lock().expect("no panic holds it");
        let meant = roles.iter().filter(|(identity, _)| is_meant(identity));
        for pool in meant.flat_map(|(_, role)| &role.pools) {
            pool.retain(|_, _| false);
        }
    }
}

impl Role {
    fn idle(&self) -> Duration {
        self.used.lock().expect("no panic holds it").elapsed()
    }
}

/// Asks PostgreSQL to cancel the query that a connection runs; returns when the request is sent, which is before it is
/// delivered.
pub async fn cancel(client: &Client, tls: Option<MakeRustlsConnect>) {
    let token = client.cancel_token();
    let told = match tls {
        Some(tls) => token.cancel_query(tls).await,
        None => token.cancel_query(NoTls).await,
    };
    if let Err(error) = told {
        tracing::warn!(%error, "a query could not be cancelled");
    }
}

async fn connect(
    config: &Config,
    tls: Option<MakeRustlsConnect>,
) -> Result<Client, tokio_postgres::Error> {
    match tls {
        Some(tls) => {
            let (client, connection) = config.connect(tls).await?;
            tokio::spawn(connection);
            Ok(client)
        }
        None => {
            let (client, connection) = config.connect(NoTls).await?;
            tokio::spawn(connection);
            Ok(client)
        }
    }
}

/// A node by its URI. `with_tls`: nothing is sent to it in the clear, but over a socket of this machine.
fn node(uri: &str, with_tls: bool) -> Result<Node, String> {
    // The URI may hold a password: it is not repeated.
    let mut config = Config::from_str(uri)
        .map_err(|error| format!("a URI of --postgres is not right: {error}"))?;
    config
        .application_name("pgquad-server")
        .connect_timeout(CONNECT);
    // A query ends with the server that asked it, however that ends.
    config.options(options_of(
        &config,
        &[("client_connection_check_interval", CHECK_INTERVAL)],
    ));
    let is_tcp = |host: &Host| matches!(host, Host::Tcp(_));
    if with_tls && config.get_hosts().iter().all(is_tcp) && config.get_ssl_mode() == SslMode::Prefer
    {
        config.ssl_mode(SslMode::Require);
    }
    let host = match config.get_hosts().first() {
        Some(Host::Tcp(host)) => host.clone(),
        Some(Host::Unix(path)) => path.display().to_string(),
        None => return Err("a URI of --postgres names no host".to_owned()),
    };
    let port = config.get_ports().first().copied().unwrap_or(5432);
    Ok(Node {
        config,
        name: format!("{host}:{port}"),
        up: AtomicBool::new(true),
    })
}

/// The start-up options of a connection with these settings besides.
fn options_of(config: &Config, settings: &[(&str, &str)]) -> String {
    let mut options = config.get_options().unwrap_or_default().to_owned();
    for (name, value) in settings {
        // Blanks end an option; a backslash takes their meaning away.
        let mut escaped = String::with_capacity(value.len());
        for c in value.chars() {
            if c == '\\' || c.is_ascii_whitespace() {
                escaped.push('\\');
            }
            escaped.push(c);
        }
        options.push_str(&format!(" -c {name}={escaped}"));
    }
    options
}

/// Whose connections are too many.
#[derive(Clone, Copy)]
enum Limit {
    /// All of the server or the database.
    Server,
    /// Those of one role that logs in.
    Login,
}

fn limit_of(result: &Result<Object, PoolError>) -> Option<Limit> {
    let Err(PoolError::Backend(error)) = result else {
        return None;
    };
    let is_limit = error.code() == Some(&SqlState::TOO_MANY_CONNECTIONS);
    let routine = error.as_db_error().and_then(DbError::routine);
    is_limit.then(|| match routine == Some(OWN_LIMIT) {
        true => Limit::Login,
        false => Limit::Server,
    })
}

/// Why PostgreSQL did not take a role.
fn refused(error: tokio_postgres::Error, identity: &Identity) -> Problem {
    let code = error
        .code()
        .map(|code| code.code().to_owned())
        .unwrap_or_default();
    match identity {
        // What exactly is wrong is nobody's business who has no password.
        Identity::Login { .. } if code.starts_with("28") => {
            Problem::unauthorized("PostgreSQL does not take this name and password")
        }
        Identity::Token(role) | Identity::Anonymous(role) if !code.starts_with("53") => {
            tracing::error!(role, %error, "the server's login cannot become a role");
            Problem::unavailable(format!("the server cannot ask as role \"{role}\""))
                .hint("GRANT the role to the role of --postgres; the log of the server says more.")
        }
        _ => error.into(),
    }
}

/// Makes rustls' cryptography the one of this process.
pub fn install_cryptography() {
    // An error says that it is installed already.
    let _ = rustls::crypto::ring::default_provider().install_default();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blanks_do_not_end_an_option() {
        let config = Config::from_str("postgres://a@b/c?options=-c%20x%3D1").unwrap();
        let options = options_of(&config, &[("role", "a b\\c -c role=postgres")]);
        assert_eq!(options, "-c x=1 -c role=a\\ b\\\\c\\ -c\\ role=postgres");
    }

    #[test]
    fn a_uri_that_is_none_is_not_repeated() {
        let error = node("postgres://u:secret@h:x/d", false).err().unwrap();
        assert!(!error.contains("secret"), "{error}");
    }

    #[test]
    fn an_authority_means_tls() {
        let mode = |uri, tls| node(uri, tls).unwrap().config.get_ssl_mode();
        assert!(mode("postgres://u@h/d", true) == SslMode::Require);
        assert!(mode("postgres://u@h/d", false) == SslMode::Prefer);
        assert!(mode("postgres://u@%2Ftmp/d", true) == SslMode::Prefer);
    }
}
