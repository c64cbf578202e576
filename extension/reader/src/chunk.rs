//! Cuts a document into chunks of whole lines.

use std::io::{self, Read};

use memchr::{memchr_iter, memrchr};

use crate::error::{ErrorKind, ReadError};

/// Bytes of a chunk, but for a line that is longer.
pub const CHUNK_BYTES: usize = 1 << 21;

/// Longest line.
pub const MAX_LINE_BYTES: usize = 1 << 24;

/// Some whole lines of a document.
pub struct Chunk {
    /// Number of the first line, from 1.
    pub first_line: u64,
    /// The lines with their ends. The last line of the document may have none.
    pub bytes: Vec<u8>,
}

/// Reads chunks.
pub struct Chunks<R> {
    reader: R,
    /// The beginning of a line whose end has not been read yet.
    rest: Vec<u8>,
    line: u64,
    done: bool,
}

impl<R: Read> Chunks<R> {
    pub fn new(reader: R) -> Self {
        Chunks {
            reader,
            rest: Vec::new(),
            line: 1,
            done: false,
        }
    }

    /// The next chunk; `None` at the end.
    pub fn next(&mut self) -> Result<Option<Chunk>, ReadError> {
        let mut bytes = std::mem::take(&mut self.rest);
        bytes.reserve(CHUNK_BYTES.saturating_sub(bytes.len()));
        let mut cut = None;
        while !self.done {
            let searched = bytes.len();
            self.fill(&mut bytes)?;
            cut = memrchr(b'\n', &bytes[searched..]).map(|at| searched + at + 1);
            if cut.is_some() {
                break;
            }
            if bytes.len() > MAX_LINE_BYTES {
                let message = format!("line is longer than {MAX_LINE_BYTES} bytes");
                return Err(ReadError::new(ErrorKind::TooLong, message).at_line(self.line));
            }
        }
        if !self.done {
            if let Some(cut) = cut {
                self.rest = bytes.split_off(cut);
            }
        }
        if bytes.is_empty() {
            return Ok(None);
        }
        let first_line = self.line;
        self.line += memchr_iter(b'\n', &bytes).count() as u64;
        Ok(Some(Chunk { first_line, bytes }))
    }

    /// Reads up to the next multiple of a chunk, or to the end.
    fn fill(&mut self, bytes: &mut Vec<u8>) -> Result<(), ReadError> {
        let goal = (bytes.len() / CHUNK_BYTES + 1) * CHUNK_BYTES;
        let start = bytes.len();
        let missing = (goal - start) as u64;
        let read = loop {
            match self.reader.by_ref().take(missing).read_to_end(bytes) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => break other?,
            }
        };
        self.done = (read as u64) < missing;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunks(text: &[u8]) -> Result<Vec<(u64, Vec<u8>)>, ReadError> {
        let mut chunks = Chunks::new(text);
        let mut out = Vec::new();
        while let Some(chunk) = chunks.next()? {
            out.push((chunk.first_line, chunk.bytes));
        }
        Ok(out)
    }

    #[test]
    fn chunks_are_whole_lines_and_make_up_the_document() {
        let lines: String = (0..600_000).map(|i| format!("line {i}\n")).collect();
        for text in [
            lines.clone(),
            format!("{lines}without end"),
            String::new(),
            "\n".into(),
            "x".into(),
        ] {
            let chunks = chunks(text.as_bytes()).unwrap();
            let mut line = 1;
            for (index, (first_line, bytes)) in chunks.iter().enumerate() {
                assert_eq!(*first_line, line);
                assert!(index == chunks.len() - 1 || bytes.ends_with(b"\n"));
                assert!(bytes.len() <= CHUNK_BYTES);
                line += memchr_iter(b'\n', bytes).count() as u64;
            }
            let all: Vec<u8> = chunks.into_iter().flat_map(|(_, bytes)| bytes).collect();
            assert_eq!(all, text.as_bytes());
        }
    }

    #[test]
    fn lines_longer_than_a_chunk_are_kept_whole_up_to_the_limit() {
        let long = "x".repeat(3 * CHUNK_BYTES);
        let text = format!("a\n{long}\nb\n");
        let found = chunks(text.as_bytes()).unwrap();
        assert_eq!(found.len(), 2);
        assert_eq!(found[1].0, 2);
        assert_eq!(found[1].1.len(), long.len() + 3);

        let too_long = format!("a\n{}", "x".repeat(MAX_LINE_BYTES + 2 * CHUNK_BYTES));
        let error = chunks(too_long.as_bytes()).unwrap_err();
        assert_eq!((error.kind, error.line), (ErrorKind::TooLong, Some(2)));
    }
}
