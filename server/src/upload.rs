//! Documents on their way into a store: a COPY of pieces, as they come. What is compressed stays so: PostgreSQL unpacks
//! it, on a thread beside the one that loads.

use std::pin::pin;
use std::sync::atomic::Ordering;

use bytes::{BufMut, Bytes, BytesMut};
use futures_util::{SinkExt, Stream, StreamExt};

use crate::answer::Work;
use crate::app::App;
use crate::problem::Problem;
use axum::http::StatusCode;

/// Bytes that are sent at once: few system calls, little memory.
const PIECE_BYTES: usize = 64 << 10;
/// Bytes of a row of the COPY. PostgreSQL copies a row some times, in memory that it returns to the system after each
/// larger one. Rows of 64 KiB took the backend 1.9 times the system time (2026-11).
const ROW_BYTES: usize = 4 << 10;
/// What a binary COPY begins with: the signature, no flags, no extension.
const HEADER: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
/// What it ends with, in the place of a number of columns.
const TRAILER: i16 = -1;

const SETTINGS: &str = include_str!("sql/copy_settings.sql");
const COPY: &str = "COPY quad.load_stdin_bytes FROM STDIN (FORMAT binary)";
/// SQLSTATE of a document that is larger than the settings let it be, or has a line or term that is.
const TOO_LARGE: &str = "54000";

/// Where a document goes.
pub struct Document {
    /// Format, as the extension calls it.
    pub format: &'static str,
    /// Graph of its triples; empty: the default graph.
    pub graph: String,
    /// It may have named graphs.
    pub quads: bool,
    /// Base IRI; empty: none.
    pub base: String,
    /// Store; `None`: the default one.
    pub store: Option<String>,
    /// Its compression, as the extension calls it; `None`: it is not compressed.
    pub compression: Option<&'static str>,
}

/// Loads a document within the transaction that is open. `failed` says what an error of its stream is.
///
/// # Errors
/// Those of the stream and of PostgreSQL, 413 for what is too large, packed or not, 503 when the time is over.
pub async fn upload<E>(
    app: &App,
    work: &mut Work,
    document: &Document,
    body: impl Stream<Item = Result<Bytes, E>>,
    failed: impl Fn(&E) -> Problem,
) -> Result<(), Problem> {
    let limit = app.options.max_upload_bytes;
    let pid: i32 = work
        .one(
            SETTINGS,
            &[
                &document.format,
                &document.graph,
                &document.base,
                &document.store,
                &document.compression.unwrap_or("none"),
                &limit.to_string(),
                &if document.quads { "off" } else { "on" },
            ],
        )
        .await?;
    if let Some(entry) = work.entry() {
        entry.pid.store(pid, Ordering::Relaxed);
    }
    let mut sink = pin!(work.copy_in(COPY).await?);
    let mut rows = BytesMut::from(HEADER);
    let mut body = pin!(body);
    let (mut total, mut sent) = (0, 0);
    loop {
        let next = tokio::time::timeout(app.options.stall_timeout, body.next());
        let next = work.in_time(next).await?;
        let next =
            next.map_err(|_| Problem::new(StatusCode::REQUEST_TIMEOUT, "the body stopped coming"))?;
        let ended = next.is_none();
        match next {
            Some(bytes) => {
                let bytes = bytes.map_err(|error| failed(&error))?;
                total += bytes.len() as u64;
                app.metrics.received_bytes.inc_by(bytes.len() as u64);
                if limit > 0 && total > limit {
                    return Err(Problem::new(
                        StatusCode::PAYLOAD_TOO_LARGE,
                        format!("the document is larger than {limit} bytes"),
                    ));
                }
                put_rows(&mut rows, &bytes);
            }
            None => rows.put_i16(TRAILER),
        }
        if rows.len() >= PIECE_BYTES || ended {
            work.in_time(sink.as_mut().send(rows.split().freeze()))
                .await?
                .map_err(refused)?;
            if let Some(entry) = work.entry() {
                entry.bytes.fetch_add(total - sent, Ordering::Relaxed);
            }
            sent = total;
        }
        if ended {
            work.in_time(sink.as_mut().finish())
                .await?
                .map_err(refused)?;
            return Ok(());
        }
    }
}

/// What PostgreSQL says of a document.
fn refused(error: tokio_postgres::Error) -> Problem {
    let mut problem = Problem::from(error);
    if problem.sqlstate.as_deref() == Some(TOO_LARGE) {
        problem.status = StatusCode::PAYLOAD_TOO_LARGE;
    }
    problem
}

/// Adds bytes as rows of a binary COPY, one column each.
fn put_rows(rows: &mut BytesMut, bytes: &[u8]) {
    for row in bytes.chunks(ROW_BYTES) {
        rows.put_i16(1);
        rows.put_i32(row.len() as i32);
        rows.put_slice(row);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Buf;

    #[test]
    fn rows_are_the_document() {
        let document: Vec<u8> = (0..3 * ROW_BYTES + 7).map(|byte| byte as u8).collect();
        let mut rows = BytesMut::new();
        put_rows(&mut rows, &document);
        let mut read = Vec::new();
        while !rows.is_empty() {
            assert_eq!(rows.get_i16(), 1);
            let length = rows.get_i32() as usize;
            assert!(length <= ROW_BYTES);
            read.extend_from_slice(&rows.split_to(length));
        }
        assert!(read == document);
    }
}
