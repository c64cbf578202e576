//! What stands between a document in JSON and the parser of JSON-LD, which calls itself for each level of nesting.

use std::io::{self, Read};

use crate::error::{ErrorKind, ReadError};

/// Most objects and arrays within each other.
pub(crate) const MAX_NESTING: usize = 500;

/// A document whose nesting is bounded.
pub(crate) struct JsonReader<R> {
    inner: R,
    depth: usize,
    place: Place,
}

/// Where the next byte stands.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    Outside,
    String,
    /// After a backslash in a string.
    Escape,
}

impl<R: Read> JsonReader<R> {
    pub fn new(inner: R) -> Self {
        JsonReader {
            inner,
            depth: 0,
            place: Place::Outside,
        }
    }
}

impl<R: Read> Read for JsonReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        for byte in &buffer[..read] {
            self.place = match (self.place, byte) {
                (Place::Outside, b'"') | (Place::Escape, _) => Place::String,
                (Place::String, b'"') => Place::Outside,
                (Place::String, b'\\') => Place::Escape,
                (place, _) => place,
            };
            match byte {
                b'{' | b'[' if self.place == Place::Outside => self.depth += 1,
                b'}' | b']' if self.place == Place::Outside => {
                    self.depth = self.depth.saturating_sub(1);
                }
                _ => {}
            }
            if self.depth > MAX_NESTING {
                let message =
                    format!("there are more than {MAX_NESTING} objects and arrays in each other");
                return Err(ReadError::new(ErrorKind::TooLong, message).into());
            }
        }
        Ok(read)
    }
}
