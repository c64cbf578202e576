//! Errors of the reader as PostgreSQL errors.

use pgquad_reader::{ErrorKind, Format, ReadError};
use pgrx::PgSqlErrorCode;

use crate::pg::error::raise_detail;

/// Longest message taken over from a parser, in characters: it may quote the document.
const MAX_MESSAGE: usize = 300;

/// What error messages call a document.
pub struct Document {
    /// Its format.
    pub format: Format,
    /// `File "..."` or what the document is otherwise.
    pub name: String,
}

/// Raises the error.
pub fn raise_error(document: &Document, error: &ReadError) -> ! {
    let mut detail = document.name.clone();
    if let Some(line) = error.line {
        detail.push_str(&format!(", line {line}"));
    }
    if let Some(column) = error.column {
        detail.push_str(&format!(", column {column}"));
    }
    detail.push('.');
    let mut text: String = error.message.chars().take(MAX_MESSAGE).collect();
    if text.len() < error.message.len() {
        text.push_str("...");
    }
    let format = document.format;
    let (code, message) = match error.kind {
        ErrorKind::Syntax => (
            PgSqlErrorCode::ERRCODE_INVALID_TEXT_REPRESENTATION,
            format!("invalid {format}: {text}"),
        ),
        ErrorKind::Encoding => (
            PgSqlErrorCode::ERRCODE_CHARACTER_NOT_IN_REPERTOIRE,
            format!("invalid {format}: {text}"),
        ),
        ErrorKind::TooLong => (PgSqlErrorCode::ERRCODE_PROGRAM_LIMIT_EXCEEDED, text),
        ErrorKind::Compression => (PgSqlErrorCode::ERRCODE_BAD_COPY_FILE_FORMAT, text),
        ErrorKind::Io(_) => (
            PgSqlErrorCode::ERRCODE_IO_ERROR,
            format!("could not read the document: {text}"),
        ),
        ErrorKind::Internal => (PgSqlErrorCode::ERRCODE_INTERNAL_ERROR, text),
    };
    raise_detail(code, message, detail)
}
