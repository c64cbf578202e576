//! XML in other encodings than UTF-8: UTF-16, which every reader of XML knows (XML 1.0, 4.3.3), and ISO-8859-1.

use std::io::{self, Read};

use crate::error::{ErrorKind, ReadError};

/// Bytes of the beginning in which the XML declaration is looked for.
const HEAD_BYTES: u64 = 256;

/// Bytes that are read at once.
const READ_BYTES: u64 = 1 << 14;

/// Names of encodings that are read, in lower case.
const LATIN: [&str; 2] = ["iso-8859-1", "latin1"];
const OTHERS: [&str; 5] = ["utf-8", "us-ascii", "utf-16", "utf-16le", "utf-16be"];

/// Whether documents that name this encoding arrive in UTF-8.
pub(crate) fn is_known(encoding: &str) -> bool {
    let encoding = encoding.to_ascii_lowercase();
    LATIN.iter().chain(&OTHERS).any(|known| *known == encoding)
}

#[derive(Clone, Copy)]
enum Encoding {
    Utf8,
    Latin,
    /// How to read two bytes.
    Utf16(fn([u8; 2]) -> u16),
}

/// A document in XML, in UTF-8.
pub(crate) struct Transcoded<R> {
    inner: R,
    /// `None` before the first read.
    encoding: Option<Encoding>,
    /// Bytes that have been read and not been decoded.
    raw: Vec<u8>,
    out: Vec<u8>,
    /// So many bytes of `out` have been read.
    taken: usize,
}

impl<R: Read> Transcoded<R> {
    pub fn new(inner: R) -> Self {
        Transcoded {
            inner,
            encoding: None,
            raw: Vec::new(),
            out: Vec::new(),
            taken: 0,
        }
    }

    /// Decodes the next bytes.
    fn fill(&mut self) -> io::Result<()> {
        let first = self.encoding.is_none();
        let most = if first { HEAD_BYTES } else { READ_BYTES };
        let read = self.inner.by_ref().take(most).read_to_end(&mut self.raw)?;
        let encoding = *self.encoding.get_or_insert_with(|| encoding_of(&self.raw));
        self.out.clear();
        self.taken = 0;
        match encoding {
            Encoding::Utf8 => std::mem::swap(&mut self.out, &mut self.raw),
            Encoding::Latin => {
                let text: String = self.raw.drain(..).map(char::from).collect();
                self.out = text.into_bytes();
            }
            Encoding::Utf16(unit) => {
                let pairs = self.raw.chunks_exact(2);
                let mut units: Vec<u16> = pairs.map(|pair| unit([pair[0], pair[1]])).collect();
                // The second half of a character may still come.
                if read > 0
                    && units
                        .last()
                        .is_some_and(|last| (0xd800..0xdc00).contains(last))
                {
                    units.pop();
                }
                if read == 0 && !self.raw.is_empty() && self.raw.len() != 2 * units.len() {
                    return Err(invalid());
                }
                self.raw.drain(..2 * units.len());
                let text: Result<String, _> = char::decode_utf16(units).collect();
                let text = text.map_err(|_| invalid())?;
                let text = text
                    .strip_prefix('\u{feff}')
                    .filter(|_| first)
                    .unwrap_or(&text);
                self.out.extend_from_slice(text.as_bytes());
            }
        }
        Ok(())
    }
}

impl<R: Read> Read for Transcoded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if matches!(self.encoding, Some(Encoding::Utf8)) && self.taken == self.out.len() {
            return self.inner.read(buffer);
        }
        if self.taken == self.out.len() {
            self.fill()?;
        }
        let read = (&self.out[self.taken..]).read(buffer)?;
        self.taken += read;
        Ok(read)
    }
}

fn invalid() -> io::Error {
    ReadError::new(ErrorKind::Encoding, "invalid UTF-16").into()
}

/// What the first bytes tell (XML 1.0, appendix F).
fn encoding_of(head: &[u8]) -> Encoding {
    match head {
        [0xff, 0xfe, ..] | [b'<', 0, ..] => return Encoding::Utf16(u16::from_le_bytes),
        [0xfe, 0xff, ..] | [0, b'<', ..] => return Encoding::Utf16(u16::from_be_bytes),
        _ => {}
    }
    let text = String::from_utf8_lossy(head);
    let declared = text
        .strip_prefix("<?xml")
        .and_then(|rest| rest.split_once("?>"))
        .and_then(|(declaration, _)| declaration.split_once("encoding"))
        .and_then(|(_, value)| value.split(['"', '\'']).nth(1))
        .map(str::to_ascii_lowercase);
    match declared {
        Some(name) if LATIN.contains(&name.as_str()) => Encoding::Latin,
        _ => Encoding::Utf8,
    }
}
