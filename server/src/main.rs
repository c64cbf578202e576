//! `pgquad-server`: SPARQL over HTTP for the stores of a PostgreSQL server, or of the nodes of a cluster.
//!
//! A request becomes one call of a function of the extension, as the role that its credentials name; texts of clients
//! are parameters of that call. What PostgreSQL sends goes on to the client as it comes.

mod answer;
mod api;
mod app;
mod asked;
mod description;
mod files;
mod form;
mod graph_store;
mod identity;
mod listen;
mod metrics;
mod negotiate;
mod nodes;
mod options;
mod page;
mod precondition;
mod problem;
mod query;
mod repoll;
mod running;
mod site;
mod socket;
mod ticks;
mod tls;
mod update;
mod upload;

use std::process::ExitCode;

use tokio::net::TcpListener;
use tokio::signal::unix::{signal, SignalKind};
use tokio::sync::watch;

use crate::app::App;
use crate::options::Options;
use crate::tls::Certificate;

fn main() -> ExitCode {
    let options = Options::read().unwrap_or_else(|error| error.exit());
    tracing_subscriber::fmt()
        .with_max_level(options.log)
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .init();
    let runtime = tokio::runtime::Runtime::new();
    let ended = runtime
        .map_err(|error| format!("threads cannot be started: {error}"))
        .and_then(|runtime| runtime.block_on(run(options)));
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Serves until a signal comes.
async fn run(options: Options) -> Result<(), String> {
    nodes::install_cryptography();
    let certificate = match (&options.tls_cert, &options.tls_key) {
        (Some(chain), Some(key)) => Some(Certificate::read(chain, key)?),
        _ => None,
    };
    let address = options.listen;
    let app = App::new(options)?;
    let listener = TcpListener::bind(address)
        .await
        .map_err(|error| format!("cannot listen on {address}: {error}"))?;
    let address = listener.local_addr().map_err(|error| error.to_string())?;
    let scheme = if certificate.is_some() {
        "https"
    } else {
        "http"
    };
    tracing::info!("listening on {scheme}://{address}/");
    tokio::spawn(app.nodes.clone().watch());
    tokio::spawn(app.clone().forget_addresses());
    if let Some(certificate) = &certificate {
        tokio::spawn(certificate.clone().watch());
    }
    let (stop, stopped) = watch::channel(false);
    let signals = async {
        let handler = |kind| signal(kind).map_err(|error| error.to_string());
        let (mut terminate, mut interrupt) = (
            handler(SignalKind::terminate())?,
            handler(SignalKind::interrupt())?,
        );
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        tracing::info!("stopping");
        let _ = stop.send(true);
        Ok::<(), String>(())
    };
    let serving = listen::serve(app, listener, certificate, stopped);
    let (_, signalled) = tokio::join!(serving, signals);
    signalled
}
