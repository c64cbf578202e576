//! Documents on their way into a store: a COPY of pieces, as they come.

use std::pin::pin;
use std::sync::atomic::Ordering;

use bytes::{BufMut, Bytes, BytesMut};
use futures_util::{SinkExt, Stream, StreamExt};

use crate::answer::Work;
use crate::app::App;
use crate::problem::Problem;
use axum::http::StatusCode;

/// Bytes that are sent at once: few system calls, little memory.
const PIECE: usize = 64 << 10;
/// Most bytes of a row of the COPY. PostgreSQL copies a row some times, in memory that it returns to the system after
/// each larger one: rows of 64 KiB took the backend 1.9 times the system time (2026-11).
const ROW: usize = 4 << 10;
/// What a binary COPY begins with: the signature, no flags, no extension.
const HEADER: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
/// What it ends with, in the place of a number of columns.
const TRAILER: i16 = -1;

/// Settings of the COPY that follows; gives the process that runs it.
const SETTINGS: &str = "SELECT pg_backend_pid() FROM (SELECT set_config('quad.stdin_format', $1, true) || set_config('quad.stdin_graph', $2, true) || \
     set_config('quad.stdin_base', $3, true) || set_config('quad.store', COALESCE($4, current_setting('quad.store')), true) OFFSET 0) AS settings";
const COPY: &str = "COPY quad.load_stdin FROM STDIN (FORMAT binary)";

/// Where a document goes.
pub struct Document {
    /// Format, as the extension calls it.
    pub format: &'static str,
    /// Graph of its triples; empty: the default graph.
    pub graph: String,
    /// Base IRI; empty: none.
    pub base: String,
    /// Store; `None`: the default one.
    pub store: Option<String>,
}

/// Loads a document within the transaction that is open. `failed` says what an error of its stream is.
///
/// # Errors
/// Those of the stream and of PostgreSQL, 413 for what is too large, 503 when the time is over.
pub async fn upload<E>(
    app: &App,
    work: &mut Work,
    document: &Document,
    body: impl Stream<Item = Result<Bytes, E>>,
    failed: impl Fn(&E) -> Problem,
) -> Result<(), Problem> {
    let pid: i32 = work
        .one(
            SETTINGS,
            &[
                &document.format,
                &document.graph,
                &document.base,
                &document.store,
            ],
        )
        .await?;
    if let Some(entry) = work.entry() {
        entry.pid.store(pid, Ordering::Relaxed);
    }
    let mut sink = pin!(work.copy_in(COPY).await?);
    let mut rows = BytesMut::from(HEADER);
    let mut body = pin!(body);
    let mut waiting = BytesMut::new();
    let mut total = 0;
    loop {
        let next = tokio::time::timeout(app.options.stall_timeout, body.next());
        let next = work.in_time(next).await?;
        let next =
            next.map_err(|_| Problem::new(StatusCode::REQUEST_TIMEOUT, "the body stopped coming"))?;
        let ended = next.is_none();
        if let Some(bytes) = next {
            let bytes = bytes.map_err(|error| failed(&error))?;
            total += bytes.len() as u64;
            app.metrics.received_bytes.inc_by(bytes.len() as u64);
            let limit = app.options.max_upload_bytes;
            if limit > 0 && total > limit {
                return Err(Problem::new(
                    StatusCode::PAYLOAD_TOO_LARGE,
                    format!("the document is larger than {limit} bytes"),
                ));
            }
            waiting.extend_from_slice(&bytes);
        }
        if waiting.len() >= PIECE || ended && !waiting.is_empty() {
            let piece = whole_characters(&mut waiting, ended)?;
            let text = std::str::from_utf8(&piece).map_err(|_| not_utf8())?;
            put_rows(&mut rows, text);
            work.in_time(sink.as_mut().send(rows.split().freeze()))
                .await??;
            if let Some(entry) = work.entry() {
                entry.bytes.fetch_add(piece.len() as u64, Ordering::Relaxed);
            }
        }
        if ended {
            rows.put_i16(TRAILER);
            work.in_time(sink.as_mut().send(rows.split().freeze()))
                .await??;
            work.in_time(sink.as_mut().finish()).await??;
            return Ok(());
        }
    }
}

/// Adds a text as rows of a binary COPY: one column of whole characters each.
fn put_rows(rows: &mut BytesMut, mut text: &str) {
    while !text.is_empty() {
        let mut end = text.len().min(ROW);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let (row, rest) = text.split_at(end);
        rows.put_i16(1);
        rows.put_i32(row.len() as i32);
        rows.put_slice(row.as_bytes());
        text = rest;
    }
}

fn not_utf8() -> Problem {
    Problem::bad_request("the document is not UTF-8")
}

/// Takes all whole characters; all bytes at the end.
fn whole_characters(bytes: &mut BytesMut, ended: bool) -> Result<BytesMut, Problem> {
    if ended {
        return Ok(bytes.split());
    }
    let whole = match std::str::from_utf8(bytes) {
        Ok(text) => text.len(),
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        Err(_) => return Err(not_utf8()),
    };
    Ok(bytes.split_to(whole))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Buf;

    #[test]
    fn rows_are_whole_characters() {
        let text = "aä".repeat(ROW);
        let mut rows = BytesMut::new();
        put_rows(&mut rows, &text);
        let mut read = String::new();
        while !rows.is_empty() {
            assert_eq!(rows.get_i16(), 1);
            let length = rows.get_i32() as usize;
            assert!(length <= ROW);
            read.push_str(std::str::from_utf8(&rows.split_to(length)).unwrap());
        }
        assert!(read == text);
    }

    #[test]
    fn characters_are_not_cut() {
        let mut bytes = BytesMut::from(&"aä".as_bytes()[..2]);
        assert_eq!(&whole_characters(&mut bytes, false).unwrap()[..], b"a");
        assert_eq!(bytes.len(), 1);
        let mut wrong = BytesMut::from(&b"a\xffb"[..]);
        assert!(whole_characters(&mut wrong, false).is_err());
    }
}
