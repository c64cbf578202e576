//! Options: flags, environment variables and a configuration file with the same names.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{CommandFactory, Parser};

const ABOUT: &str = "SPARQL over HTTP for pgquad stores in PostgreSQL.";

const DETAILS: &str = "\
Endpoints (without /STORE: the default store of the role):
  /STORE/sparql   SPARQL 1.1 Query; without a query the service description
  /STORE/update   SPARQL 1.1 Update
  /STORE/data     Graph Store Protocol: ?default, ?graph=IRI, or a path below /STORE/data
  /health         200 while a PostgreSQL node answers, 503 otherwise
  /metrics        figures for Prometheus
  /               the workbench, for browsers

Who asks: name and password of HTTP Basic are those of a PostgreSQL role, and the request runs as that role, with its rights
and its settings (ALTER ROLE alice SET statement_timeout = '10s', SET quad.max_result_rows = 100000). Without them it
runs as --anonymous, read-only; where that is not set the answer is 401.

Every option is also an environment variable (PGQUAD_QUERY_TIMEOUT=30) and a line of the configuration file
(query-timeout = 30). A flag goes before the environment, the environment before the file.

Example:
  pgquad-server --postgres postgres://http@db1/rdf,postgres://http@db2/rdf --anonymous reader --listen 0.0.0.0:7333";

/// The options of the server.
#[derive(Clone, Debug, Parser)]
#[command(name = "pgquad-server", version, about = ABOUT, after_help = DETAILS, args_override_self = true)]
pub struct Options {
    /// Configuration file (TOML): the long names of these options and their values
    #[arg(long, env = "PGQUAD_CONFIG", value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// PostgreSQL: one URI for each node of the cluster, separated by commas; nodes are asked in turn
    #[arg(
        long,
        env = "PGQUAD_POSTGRES",
        value_name = "URI[,URI..]",
        value_delimiter = ',',
        required = true,
        hide_env_values = true
    )]
    pub postgres: Vec<String>,

    /// Certificate authority (PEM) that PostgreSQL's certificates are checked against; turns TLS to PostgreSQL on
    #[arg(long, env = "PGQUAD_POSTGRES_CA", value_name = "FILE")]
    pub postgres_ca: Option<PathBuf>,

    /// Address and port to listen on
    #[arg(
        long,
        env = "PGQUAD_LISTEN",
        value_name = "ADDR",
        default_value = "127.0.0.1:7333"
    )]
    pub listen: SocketAddr,

    /// URL that clients know the server by, where a proxy stands before it; by default the Host header of the request
    /// tells
    #[arg(long, env = "PGQUAD_PUBLIC_URL", value_name = "URL")]
    pub public_url: Option<String>,

    /// Role of requests without credentials; they are read-only. Unset: they get 401
    #[arg(long, env = "PGQUAD_ANONYMOUS", value_name = "ROLE")]
    pub anonymous: Option<String>,

    /// File of bearer tokens: a line TOKEN ROLE for each. The role of --postgres has to be a member of these roles
    #[arg(long, env = "PGQUAD_TOKENS", value_name = "FILE")]
    pub tokens: Option<PathBuf>,

    /// Certificate chain (PEM) for TLS; read again when the file changes
    #[arg(
        long,
        env = "PGQUAD_TLS_CERT",
        value_name = "FILE",
        requires = "tls_key"
    )]
    pub tls_cert: Option<PathBuf>,

    /// Private key (PEM) for TLS
    #[arg(
        long,
        env = "PGQUAD_TLS_KEY",
        value_name = "FILE",
        requires = "tls_cert"
    )]
    pub tls_key: Option<PathBuf>,

    /// Most connections to each PostgreSQL node for each role
    #[arg(long, env = "PGQUAD_POOL_SIZE", value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub pool_size: u32,

    /// Most requests that are worked on at once; others wait
    #[arg(long, env = "PGQUAD_MAX_REQUESTS", value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub max_requests: u32,

    /// Longest wait of a request for its turn, and for a PostgreSQL connection; then 503
    #[arg(long, env = "PGQUAD_QUEUE_TIMEOUT", value_name = "SECONDS", default_value = "10", value_parser = seconds)]
    pub queue_timeout: Duration,

    /// Most client connections; others wait to be accepted
    #[arg(long, env = "PGQUAD_MAX_CLIENTS", value_name = "N", default_value_t = 4096, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub max_clients: u32,

    /// Longest time for a query or an update, answer included; ?timeout=SECONDS of a request asks for less
    #[arg(long, env = "PGQUAD_QUERY_TIMEOUT", value_name = "SECONDS", default_value = "600", value_parser = seconds)]
    pub query_timeout: Duration,

    /// Most rows of an answer, 0: any number; ?max-rows=N of a request asks for less
    #[arg(long, env = "PGQUAD_MAX_ROWS", value_name = "N", default_value_t = 0)]
    pub max_rows: u32,

    /// Largest query or update text
    #[arg(
        long,
        env = "PGQUAD_MAX_QUERY_BYTES",
        value_name = "BYTES",
        default_value_t = 1 << 20
    )]
    pub max_query_bytes: usize,

    /// Largest document that is uploaded, unpacked; 0: any size
    #[arg(
        long,
        env = "PGQUAD_MAX_UPLOAD_BYTES",
        value_name = "BYTES",
        default_value_t = 0
    )]
    pub max_upload_bytes: u64,

    /// Largest head of a request
    #[arg(long, env = "PGQUAD_MAX_HEADER_BYTES", value_name = "BYTES", default_value_t = 64 << 10, value_parser = header_bytes)]
    pub max_header_bytes: usize,

    /// Longest time for the head of a request, and for an idle connection
    #[arg(long, env = "PGQUAD_HEADER_TIMEOUT", value_name = "SECONDS", default_value = "30", value_parser = seconds)]
    pub header_timeout: Duration,

    /// Longest time in which a client neither sends anything of a body nor takes anything of an answer
    #[arg(long, env = "PGQUAD_STALL_TIMEOUT", value_name = "SECONDS", default_value = "30", value_parser = seconds)]
    pub stall_timeout: Duration,

    /// Requests per second from one address, 0: any number; more get 429
    #[arg(long, env = "PGQUAD_RATE", value_name = "N", default_value_t = 0)]
    pub rate: u32,

    /// Origins whose pages may ask from a browser: "*" for all, or a list separated by commas
    #[arg(
        long,
        env = "PGQUAD_CORS_ORIGIN",
        value_name = "ORIGIN",
        value_delimiter = ',',
        default_value = "*"
    )]
    pub cors_origin: Vec<String>,

    /// Least important messages of the log: error, warn (requests that failed with 5xx), info, debug (all requests)
    #[arg(long, env = "PGQUAD_LOG", value_name = "LEVEL", default_value = "info")]
    pub log: tracing::Level,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text
        .parse()
        .map_err(|_| "not a number of seconds".to_owned())?;
    match Duration::try_from_secs_f64(seconds) {
        Ok(duration) if duration >= Duration::from_millis(1) => Ok(duration),
        _ => Err("must be a number of seconds, at least 0.001".to_owned()),
    }
}

/// hyper's smallest buffer is 8 KiB.
fn header_bytes(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(bytes) if bytes >= 8192 => Ok(bytes),
        _ => Err("must be a number of bytes, at least 8192".to_owned()),
    }
}

impl Options {
    /// The options of this process.
    ///
    /// # Errors
    /// What is wrong with them, or the help that was asked for.
    pub fn read() -> Result<Self, clap::Error> {
        Self::of(std::env::args_os().collect())
    }

    fn of(arguments: Vec<OsString>) -> Result<Self, clap::Error> {
        let Some(file) = config_file(&arguments) else {
            return Self::try_parse_from(arguments);
        };
        let mut all = vec![arguments.first().cloned().unwrap_or_default()];
        all.extend(flags_of_file(Path::new(&file))?);
        all.extend(arguments.into_iter().skip(1));
        Self::try_parse_from(all)
    }
}

/// The configuration file that flags or the environment name.
fn config_file(arguments: &[OsString]) -> Option<OsString> {
    let mut found = std::env::var_os("PGQUAD_CONFIG");
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let text = argument.to_string_lossy();
        if text == "--config" {
            found = rest.next().cloned();
        } else if let Some(value) = text.strip_prefix("--config=") {
            found = Some(value.into());
        }
    }
    found
}

/// The options of a configuration file as flags, but for those that the environment sets.
fn flags_of_file(path: &Path) -> Result<Vec<OsString>, clap::Error> {
    let mut command = Options::command();
    let mut wrong = |what: String| {
        command.error(
            clap::error::ErrorKind::InvalidValue,
            format!("configuration file {}: {what}", path.display()),
        )
    };
    let text = std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
    let table: toml::Table = text
        .parse()
        .map_err(|error: toml::de::Error| wrong(error.to_string()))?;
    let known: Vec<String> = Options::command()
        .get_arguments()
        .filter_map(|argument| argument.get_long().map(str::to_owned))
        .collect();
    let mut flags = Vec::new();
    for (key, value) in table {
        if !known.contains(&key) || key == "config" {
            return Err(wrong(format!("there is no option \"{key}\"")));
        }
        let variable = format!("PGQUAD_{}", key.to_uppercase().replace('-', "_"));
        if std::env::var_os(variable).is_some() {
            continue;
        }
        let value = match value {
            toml::Value::String(text) => text,
            toml::Value::Integer(number) => number.to_string(),
            toml::Value::Float(number) => number.to_string(),
            toml::Value::Array(items) => {
                let texts = items.iter().map(|item| item.as_str().map(str::to_owned));
                let texts: Option<Vec<String>> = texts.collect();
                texts
                    .ok_or_else(|| wrong(format!("\"{key}\" is a list of strings")))?
                    .join(",")
            }
            _ => return Err(wrong(format!("\"{key}\" is a string or a number"))),
        };
        flags.push(format!("--{key}={value}").into());
    }
    Ok(flags)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(arguments: &[&str]) -> Result<Options, clap::Error> {
        let name = std::iter::once(&"pgquad-server");
        Options::of(name.chain(arguments).map(OsString::from).collect())
    }

    #[test]
    fn the_command_is_sound() {
        Options::command().debug_assert();
    }

    #[test]
    fn flags_go_before_the_file() {
        let path = std::env::temp_dir().join(format!("pgquad-options-{}.toml", std::process::id()));
        let text = "postgres = [\"postgres://a/x\", \"postgres://b/x\"]\npool-size = 3\nquery-timeout = 2.5\n";
        std::fs::write(&path, text).unwrap();
        let config = format!("--config={}", path.display());
        let options = read(&[&config, "--pool-size", "5"]).unwrap();
        assert_eq!(options.pool_size, 5);
        assert_eq!(options.query_timeout, Duration::from_millis(2500));
        assert_eq!(options.postgres.len(), 2);
        std::fs::write(&path, "no-such-option = 1\n").unwrap();
        let error = read(&[&config]).unwrap_err().to_string();
        assert!(error.contains("no-such-option"), "{error}");
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn wrong_values_are_refused() {
        for wrong in [
            "--pool-size=0",
            "--query-timeout=-1",
            "--query-timeout=x",
            "--listen=nowhere",
            "--max-header-bytes=1",
        ] {
            assert!(
                read(&["--postgres=postgres://a/x", wrong]).is_err(),
                "{wrong}"
            );
        }
        assert!(read(&[]).is_err(), "postgres is needed");
    }
}
