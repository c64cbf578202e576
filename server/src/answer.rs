//! Rows of PostgreSQL on their way to a client. A client that goes away cancels its query.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use futures_util::{FutureExt, StreamExt, TryStreamExt};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;
use tokio_postgres::types::{FromSqlOwned, ToSql};
use tokio_postgres::{CopyInSink, RowStream};

use crate::app::App;
use crate::identity::Identity;
use crate::nodes::{cancel, Lease};
use crate::problem::Problem;
use crate::running::{About, Entry, Listed};

/// Longest wait for a transaction to be rolled back, or for a cancel request to be sent, before the connection is
/// closed.
const PATIENCE: Duration = Duration::from_secs(5);

/// A request that PostgreSQL works on. Dropped before it has ended, it is cancelled.
pub struct Work {
    app: Arc<App>,
    /// Gone once it is given back.
    lease: Option<Lease>,
    rows: Option<Pin<Box<RowStream>>>,
    deadline: Instant,
    limit: Duration,
    permit: Option<OwnedSemaphorePermit>,
    /// Its place among the requests that can be cancelled.
    listed: Option<Listed>,
    /// Whether a transaction is open.
    transaction: bool,
    /// PostgreSQL has ended the transaction's last statement with an error: there is nothing to cancel.
    failed: bool,
}

impl Work {
    /// Takes a turn and a connection.
    ///
    /// # Errors
    /// 503 when there is none in time; 401 and 403 as PostgreSQL says.
    pub async fn begin(
        app: &Arc<App>,
        identity: &Identity,
        limit: Duration,
    ) -> Result<Self, Problem> {
        Self::begin_at(app, identity, limit, None).await
    }

    /// The same at a certain node.
    ///
    /// # Errors
    /// As [`Self::begin`]; 404 for a node that is none.
    pub async fn begin_at(
        app: &Arc<App>,
        identity: &Identity,
        limit: Duration,
        node: Option<&str>,
    ) -> Result<Self, Problem> {
        let turn = app.turns.clone().acquire_owned();
        let permit = tokio::time::timeout(app.options.queue_timeout, turn)
            .await
            .map_err(|_| Problem::unavailable("the server is busy"))?
            .map_err(|_| Problem::unavailable("the server is stopping"))?;
        app.metrics.in_flight.inc();
        let mut work = Self {
            app: app.clone(),
            lease: None,
            rows: None,
            deadline: Instant::now() + limit,
            limit,
            permit: Some(permit),
            listed: None,
            transaction: false,
            failed: false,
        };
        work.lease = Some(app.nodes.connection(identity, node).await?);
        Ok(work)
    }

    /// Puts the request on the list of those that can be seen and cancelled.
    pub fn list(&mut self, about: &About<'_>) {
        if let Some(lease) = &self.lease {
            let cancel = lease.client.cancel_token();
            let node = self.app.nodes.name(lease.node).to_owned();
            let listed = self.app.running.add(about, node, cancel, lease.tls.clone());
            self.listed = Some(listed);
        }
    }

    /// Its entry in that list.
    pub fn entry(&self) -> Option<&Entry> {
        self.listed.as_ref().map(Listed::entry)
    }

    fn client(&self) -> &deadpool_postgres::Object {
        let lease = self.lease.as_ref();
        &lease.expect("it is given back at the end only").client
    }

    /// The outcome of PostgreSQL's work. After an error the connection is free, but for a transaction that has to be
    /// rolled back.
    fn outcome<T>(&mut self, outcome: Result<T, tokio_postgres::Error>) -> Result<T, Problem> {
        outcome.map_err(|error| {
            match error.as_db_error() {
                Some(_) if self.transaction => self.failed = true,
                Some(_) => self.give_back(),
                None => {}
            }
            error.into()
        })
    }

    /// The one value that a statement gives.
    ///
    /// # Errors
    /// Those of PostgreSQL; 503 when the time is over.
    pub async fn one<T: FromSqlOwned>(
        &mut self,
        sql: &str,
        params: &[&(dyn ToSql + Sync)],
    ) -> Result<T, Problem> {
        let asked = async {
            let client = self.client();
            let statement = client.prepare_cached(sql).await?;
            client.query_one(&statement, params).await
        };
        let row = self.in_time(asked).await?;
        let row = self.outcome(row)?;
        row.try_get(0).map_err(Problem::from)
    }

    /// Opens a transaction, which is rolled back unless it is committed.
    ///
    /// # Errors
    /// As [`Self::one`].
    pub async fn begin_transaction(&mut self) -> Result<(), Problem> {
        self.transaction = true;
        let begun = self
            .in_time(
                self.client()
                    .batch_execute("BEGIN ISOLATION LEVEL READ COMMITTED"),
            )
            .await?;
        self.outcome(begun)
    }

    /// Commits the transaction and gives the connection back.
    ///
    /// # Errors
    /// As [`Self::one`].
    pub async fn commit(&mut self) -> Result<(), Problem> {
        let committed = self.in_time(self.client().batch_execute("COMMIT")).await?;
        self.outcome(committed)?;
        self.give_back();
        Ok(())
    }

    /// Starts a COPY from here.
    ///
    /// # Errors
    /// As [`Self::one`].
    pub async fn copy_in(&mut self, sql: &str) -> Result<CopyInSink<Bytes>, Problem> {
        let sink = self.in_time(self.client().copy_in(sql)).await?;
        self.outcome(sink)
    }

    /// The outcome of a future, within the time of the request.
    ///
    /// # Errors
    /// 503 when the time is over.
    pub async fn in_time<T>(
        &self,
        future: impl std::future::Future<Output = T>,
    ) -> Result<T, Problem> {
        let timeout = tokio::time::timeout_at(self.deadline, future).await;
        timeout.map_err(|_| Problem::timeout(self.limit))
    }

    /// Starts a statement that gives texts. It is prepared once for each connection.
    ///
    /// # Errors
    /// Those of PostgreSQL; 503 when the time is over.
    pub async fn start(
        &mut self,
        sql: &str,
        params: &[&(dyn ToSql + Sync)],
    ) -> Result<(), Problem> {
        let started = async {
            let client = self.client();
            let statement = client.prepare_cached(sql).await?;
            client.query_raw(&statement, params.iter().copied()).await
        };
        let rows = self.in_time(started).await?;
        self.rows = Some(Box::pin(self.outcome(rows)?));
        Ok(())
    }

    /// The next text; `None` at the end, when the connection is free for others.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub async fn next(&mut self) -> Result<Option<Bytes>, Problem> {
        let Some(rows) = &mut self.rows else {
            return Ok(None);
        };
        let next = tokio::time::timeout_at(self.deadline, rows.try_next()).await;
        let row = next.map_err(|_| Problem::timeout(self.limit))?;
        match row {
            Ok(Some(row)) => Ok(Some(Bytes::copy_from_slice(
                row.get::<_, &str>(0).as_bytes(),
            ))),
            Ok(None) => {
                self.give_back();
                Ok(None)
            }
            Err(error) => self.outcome(Err(error)),
        }
    }

    /// Gives the connection back, whose work is done.
    pub fn give_back(&mut self) {
        self.rows = None;
        let lease = self.lease.take();
        if self.listed.take().is_some_and(Listed::end) {
            // Somebody has cancelled it, which may arrive only now.
            if let Some(Lease { client, .. }) = lease {
                drop(deadpool_postgres::Object::take(client));
            }
        }
        self.release();
    }

    fn release(&mut self) {
        if self.permit.take().is_some() {
            self.app.metrics.in_flight.dec();
        }
    }

    /// The rest of the texts as a body. What is there at once goes without chunks.
    ///
    /// # Errors
    /// As [`Self::start`], of the first text.
    pub async fn into_body(mut self) -> Result<Body, Problem> {
        let Some(first) = self.next().await? else {
            return Ok(Body::empty());
        };
        self.app.metrics.sent_bytes.inc_by(first.len() as u64);
        match self.next().now_or_never() {
            Some(Ok(None)) => Ok(Body::from(first)),
            Some(second) => Ok(self.body([Ok(first), second.map(Option::unwrap_or_default)])),
            None => Ok(self.body([Ok(first), Ok(Bytes::new())])),
        }
    }

    /// `head`, then the rest. An error ends the connection: there is no other way to tell that an answer is not whole.
    fn body(self, head: [Result<Bytes, Problem>; 2]) -> Body {
        let rest = futures_util::stream::unfold(Some(self), |work| async {
            let mut work = work?;
            match work.next().await {
                Ok(Some(bytes)) => {
                    work.app.metrics.sent_bytes.inc_by(bytes.len() as u64);
                    Some((Ok(bytes), Some(work)))
                }
                Ok(None) => None,
                Err(problem) => Some((Err(problem), None)),
            }
        });
        let head = futures_util::stream::iter(
            head.into_iter()
                .filter(|item| !matches!(item, Ok(bytes) if bytes.is_empty())),
        );
        Body::from_stream(head.chain(rest).fuse().map(|item| {
            item.map_err(|problem| {
                tracing::warn!(problem = problem.message, "an answer is not whole");
                std::io::Error::other(problem.message)
            })
        }))
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        self.rows = None;
        self.release();
        let Some(lease) = self.lease.take() else {
            return;
        };
        let told = self.listed.take().is_some_and(Listed::end);
        if self.failed && !told {
            tokio::spawn(roll_back(lease));
        } else {
            self.app.metrics.cancelled.inc();
            tokio::spawn(end(lease));
        }
    }
}

/// Ends the transaction of a connection that does nothing, which others may have then.
async fn roll_back(Lease { client, .. }: Lease) {
    let rolled_back = tokio::time::timeout(PATIENCE, client.batch_execute("ROLLBACK")).await;
    if !matches!(rolled_back, Ok(Ok(()))) {
        drop(deadpool_postgres::Object::take(client));
    }
}

/// Cancels what a connection does and closes it. PostgreSQL does not say when a cancel request has been delivered: over
/// a connection that is used again, a late one would hit the next query.
async fn end(Lease { client, tls, .. }: Lease) {
    let told = tokio::time::timeout(PATIENCE, cancel(&client, tls)).await;
    if told.is_err() {
        tracing::warn!("a query could not be cancelled in time");
    }
    drop(deadpool_postgres::Object::take(client));
}
