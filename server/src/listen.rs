//! Client connections: accepted, counted, held to their times, served.

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::response::Response;
use axum::Router;
use http_body::Body as _;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::Version;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{watch, OwnedSemaphorePermit, Semaphore};
use tokio_io_timeout::TimeoutStream;
use tower::ServiceExt;

use crate::app::App;
use crate::repoll::repolled;
use crate::socket::{Socket, Watch, LOOK};
use crate::ticks::Ticks;
use crate::tls::Certificate;

/// The address of a client, and whether it came by TLS.
#[derive(Clone, Copy, Debug)]
pub struct Peer(pub SocketAddr, pub bool);

/// Serves clients until `stop` changes, then lets requests end.
pub async fn serve(
    app: Arc<App>,
    listener: TcpListener,
    certificate: Option<Arc<Certificate>>,
    mut stop: watch::Receiver<bool>,
) {
    let router = app.router();
    let most = app.options.max_clients;
    let places = Arc::new(Semaphore::new(most as usize));
    let ticks = Arc::new(Ticks::new(LOOK));
    let clock = ticks.clone();
    tokio::spawn(async move { clock.run().await });
    loop {
        let Ok(place) = places.clone().acquire_owned().await else {
            break;
        };
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stop.changed() => break,
        };
        let (stream, address) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                // Most often there are no file descriptors left for a while.
                tracing::warn!(%error, "a client could not be accepted");
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
                continue;
            }
        };
        let client = Client {
            app: app.clone(),
            router: router.clone(),
            ticks: ticks.clone(),
            address,
            stop: stop.clone(),
            _place: place,
        };
        tokio::spawn(repolled(client.serve(stream, certificate.clone())));
    }
    drop(listener);
    // All places are free again when the last client is gone.
    let all = places.acquire_many_owned(most);
    let _ = tokio::time::timeout(app.options.queue_timeout, all).await;
}

/// A client connection.
struct Client {
    app: Arc<App>,
    router: Router,
    ticks: Arc<Ticks>,
    address: SocketAddr,
    stop: watch::Receiver<bool>,
    _place: OwnedSemaphorePermit,
}

impl Client {
    async fn serve(mut self, stream: TcpStream, certificate: Option<Arc<Certificate>>) {
        self.app.metrics.clients.inc();
        let _ = stream.set_nodelay(true);
        let stream = Socket::new(stream);
        let watch = stream.watch(self.ticks.clone());
        match certificate {
            None => self.http(stream, watch, false).await,
            Some(certificate) => {
                let shaken = certificate.acceptor().accept(stream);
                let limit = self.app.options.header_timeout;
                match tokio::time::timeout(limit, shaken).await {
                    Ok(Ok(stream)) => self.http(stream, watch, true).await,
                    Ok(Err(error)) => tracing::debug!(%error, "a client speaks no TLS"),
                    Err(_) => tracing::debug!("a client did not finish its TLS handshake"),
                }
            }
        }
        self.app.metrics.clients.dec();
    }

    async fn http(
        &mut self,
        stream: impl AsyncRead + AsyncWrite + Send + 'static,
        watch: Watch,
        secure: bool,
    ) {
        let options = &self.app.options;
        let mut stream = TimeoutStream::new(stream);
        // A client that takes nothing of its answer holds a backend.
        stream.set_write_timeout(Some(options.stall_timeout));
        let router = self.router.clone();
        let peer = Peer(self.address, secure);
        let watched = watch.clone();
        let service = service_fn(move |mut request: hyper::Request<Incoming>| {
            request.extensions_mut().insert(ConnectInfo(peer));
            let ends_with_connection = request.version() == Version::HTTP_10;
            answered(
                router.clone().oneshot(request),
                watched.clone(),
                ends_with_connection,
            )
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(options.header_timeout)
            .max_buf_size(options.max_header_bytes)
            .serve_connection(TokioIo::new(Box::pin(stream)), service);
        let mut connection = std::pin::pin!(connection);
        let ended = tokio::select! {
            ended = connection.as_mut() => ended,
            _ = self.stop.changed() => {
                connection.as_mut().graceful_shutdown();
                tokio::select! {
                    ended = connection => ended,
                    () = watch.gone() => return,
                }
            }
            // hyper sees a client go only where it has nothing of it to read: not behind a request that was sent ahead.
            () = watch.gone() => return,
        };
        if let Err(error) = ended {
            tracing::debug!(%error, peer = %self.address, "a connection has ended");
        }
    }
}

/// The answer to a request, whose client is looked at until the last of it is sent. In HTTP/1.0 the answer ends with
/// the connection, so that one which is cut has to end otherwise.
async fn answered(
    answer: impl Future<Output = Result<Response, Infallible>>,
    watch: Watch,
    ends_with_connection: bool,
) -> Result<Response, Infallible> {
    let response = watch.watched(answer).await?;
    if response.body().size_hint().exact().is_some() {
        return Ok(response);
    }
    let working = watch.working();
    Ok(response.map(|body| {
        let body = body.map_frame(move |frame| {
            let _until_the_end = &working;
            frame
        });
        Body::new(body.map_err(move |error| {
            if ends_with_connection {
                watch.reset();
            }
            error
        }))
    }))
}
