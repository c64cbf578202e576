//! Frames: what goes over a link.
//!
//! Four bytes say how many follow; then come the version of the format, the kind of the frame, the number of the query,
//! and the body.

use super::ending::Counts;
use super::refused::Refused;
use super::rows::Rows;
use crate::wire::{Damaged, Reader, Result, Writer};

/// Version of the frames. A change of any of them is a new version.
pub const VERSION: u8 = 1;

/// Bytes before the version: the length of what follows.
pub const LENGTH_BYTES: usize = 4;

/// Most bytes that a frame may have behind its length (a batch of the largest size, with room to spare).
pub const MAX_BYTES: usize = 256 << 20;

/// Most bytes of the text of [`Kind::Abort`] that are sent.
const MAX_ABORT_BYTES: usize = 1000;

/// What a frame is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(super) enum Kind {
    /// Rows by state.
    Rows = 1,
    /// What a participant has sent and received, while it has nothing to do.
    Report = 2,
    /// All participants are done.
    End = 3,
    /// A participant gives up.
    Abort = 4,
    /// A link begins.
    Greeting = 16,
}

impl Kind {
    fn from_number(number: u8) -> Option<Self> {
        [
            Self::Rows,
            Self::Report,
            Self::End,
            Self::Abort,
            Self::Greeting,
        ]
        .into_iter()
        .find(|kind| *kind as u8 == number)
    }
}

fn begin(kind: Kind, query: u64) -> Writer {
    let mut writer = Writer::new();
    writer.u32(0);
    writer.u8(VERSION);
    writer.u8(kind as u8);
    writer.u64(query);
    writer
}

fn finish(mut writer: Writer) -> Vec<u8> {
    let length = writer.len() - LENGTH_BYTES;
    writer.set_u32(0, length as u32);
    writer.finish()
}

/// A frame of the greeting; [`finish_greeting`] ends it.
pub(super) fn greeting() -> Writer {
    begin(Kind::Greeting, 0)
}

/// The frame.
pub(super) fn finish_greeting(writer: Writer) -> Vec<u8> {
    finish(writer)
}

/// The body of a frame of the greeting.
pub(super) fn open_greeting(frame: &[u8]) -> std::result::Result<Reader<'_>, Refused> {
    match frame.get(LENGTH_BYTES) {
        Some(&version) if version != VERSION => Err(Refused::Version(version)),
        _ => match open(frame)? {
            (Kind::Greeting, 0, reader) => Ok(reader),
            _ => Err(Refused::Damaged),
        },
    }
}

/// A frame of rows under way.
pub(super) struct Batches(Writer);

impl Batches {
    pub fn new(query: u64) -> Self {
        Self(begin(Kind::Rows, query))
    }

    /// Adds rows of one state; gives the bytes that they take.
    pub fn add(&mut self, state: &[u8], rows: &Rows) -> usize {
        let before = self.0.len();
        self.0.bytes(state);
        let at = self.0.len();
        self.0.u32(0);
        rows.write(&mut self.0);
        let length = self.0.len() - at - size_of::<u32>();
        self.0.set_u32(at, length as u32);
        self.0.len() - before
    }

    pub fn finish(self) -> Vec<u8> {
        finish(self.0)
    }
}

/// A frame of counts.
pub(super) fn of_report(query: u64, counts: &Counts) -> Vec<u8> {
    let mut writer = begin(Kind::Report, query);
    writer.column(&counts.sent);
    writer.column(&counts.received);
    finish(writer)
}

/// The frame that ends a query.
pub(super) fn of_end(query: u64) -> Vec<u8> {
    finish(begin(Kind::End, query))
}

/// The frame that gives a query up, with the reason.
pub(super) fn of_abort(query: u64, why: &str) -> Vec<u8> {
    let mut writer = begin(Kind::Abort, query);
    let mut end = why.len().min(MAX_ABORT_BYTES);
    while !why.is_char_boundary(end) {
        end -= 1;
    }
    writer.bytes(&why.as_bytes()[..end]);
    finish(writer)
}

/// A frame that has come: its kind, its query, and where its body is.
pub(super) fn open(frame: &[u8]) -> Result<(Kind, u64, Reader<'_>)> {
    let mut reader = Reader::new(frame);
    if reader.u32()? as usize + LENGTH_BYTES != frame.len() || reader.u8()? != VERSION {
        return Err(Damaged);
    }
    let kind = Kind::from_number(reader.u8()?).ok_or(Damaged)?;
    let query = reader.u64()?;
    Ok((kind, query, reader))
}

/// The number of the query that a frame belongs to.
///
/// # Errors
/// It is no frame of this version.
pub fn query_of(frame: &[u8]) -> Result<u64> {
    open(frame).map(|(_, query, _)| query)
}

/// Whether a frame carries rows.
#[must_use]
pub fn has_rows(frame: &[u8]) -> bool {
    open(frame).is_ok_and(|(kind, _, _)| kind == Kind::Rows)
}

/// The parts of the body of [`Kind::Rows`]: states and packed rows.
pub(super) fn parts<'a>(reader: &mut Reader<'a>) -> Result<Vec<(&'a [u8], &'a [u8])>> {
    let mut parts = Vec::new();
    while reader.end().is_err() {
        parts.push((reader.bytes()?, reader.bytes()?));
    }
    Ok(parts)
}

/// The body of [`Kind::Report`], for so many participants.
pub(super) fn report(reader: &mut Reader<'_>, peers: usize) -> Result<Counts> {
    let mut counts = Counts {
        sent: Vec::new(),
        received: Vec::new(),
    };
    reader.column(&mut counts.sent, peers)?;
    reader.column(&mut counts.received, peers)?;
    reader.end()?;
    if counts.sent.len() == peers && counts.received.len() == peers {
        Ok(counts)
    } else {
        Err(Damaged)
    }
}

/// The body of [`Kind::Abort`].
pub(super) fn why(reader: &mut Reader<'_>) -> Result<String> {
    let text = String::from_utf8_lossy(reader.bytes()?).into_owned();
    reader.end()?;
    Ok(text)
}
