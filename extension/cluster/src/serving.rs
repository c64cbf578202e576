//! Sessions of other nodes that one process serves together: what it looks at in what they send, and when it pays.
//!
//! Each session of another node has a process of its own here, for its rights, its settings and its transactions. Where
//! many of them are busy on few processors, most of the time goes into the change from one process to the next: a short
//! message costs 21 us where the same process has just answered another one, and 60 us where a hundred others have
//! run meanwhile (Explore 10M, eight nodes of two processors, 16 clients). So such sessions are lent to a process that
//! answers the short messages of all of them.

use crate::message::{self, Kind};

/// Bytes of what a session sends that the serving process looks at. A longer message does not begin a query there.
pub const MAX_FRAME_BYTES: usize = 64 * 1024;

/// Bytes of the longest message that PostgreSQL takes (`PQ_LARGE_MESSAGE_LIMIT` of `libpq/libpq.h`).
const MAX_MESSAGE_BYTES: usize = 0x3fff_fffe;

/// Length of a window of time in which busy sessions are counted, in milliseconds. Sixteen clients ask each of eight
/// nodes some three times in it.
pub const WINDOW_MS: u64 = 50;

/// The head of a message of PostgreSQL's protocol: its type, its length without the type.
const HEAD_BYTES: usize = 5;
/// The type of the messages of PostgreSQL's protocol that carry those of queries: CopyData.
pub const COPY_DATA: u8 = b'd';

/// What a session sends next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Frame<'a> {
    /// CopyData: its contents.
    Data(&'a [u8]),
    /// The beginning of one, with so many bytes in all where they are known.
    Incomplete(Option<usize>),
    /// Something else.
    Other,
}

impl<'a> Frame<'a> {
    /// The first message of these bytes.
    #[must_use]
    pub fn first(bytes: &'a [u8]) -> Self {
        if bytes.first().is_some_and(|&kind| kind != COPY_DATA) {
            return Self::Other;
        }
        let Some(length) = bytes.get(1..HEAD_BYTES) else {
            return Self::Incomplete(None);
        };
        let length = length.iter().fold(0, |n, &byte| n << 8 | usize::from(byte));
        if !(HEAD_BYTES - 1..MAX_MESSAGE_BYTES).contains(&length) {
            return Self::Other;
        }
        match bytes.get(HEAD_BYTES..=length) {
            Some(data) => Self::Data(data),
            None => Self::Incomplete(Some(length + 1)),
        }
    }
}

/// The length of the message that [`Frame::Data`] is of.
#[must_use]
pub fn frame_bytes(data: &[u8]) -> usize {
    HEAD_BYTES + data.len()
}

/// Appends CopyData with these contents, which have less than a gigabyte.
pub fn put_frame(into: &mut Vec<u8>, data: &[u8]) {
    put_message(into, COPY_DATA, data);
}

fn put_message(into: &mut Vec<u8>, kind: u8, body: &[u8]) {
    into.push(kind);
    into.extend(((body.len() + HEAD_BYTES - 1) as u32).to_be_bytes());
    into.extend(body);
}

/// Whether a query that begins with this request is answered soon, as far as can be told: others wait for it meanwhile.
/// Queries that count or group much begin with estimates.
#[must_use]
pub fn is_short(request: &[u8]) -> bool {
    match message::kind_of(request) {
        Some(Kind::Read) => true,
        Some(Kind::Dictionary) => crate::dictionary::is_look_up(request),
        _ => false,
    }
}

/// How many sessions have been busy of late: those of the window that goes on and those of the one before. Sixteen bits
/// each, below the number of the window.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Busy(pub u64);

impl Busy {
    const COUNT_BITS: u32 = 16;
    const MAX: u64 = (1 << Self::COUNT_BITS) - 1;

    fn window(self) -> u32 {
        (self.0 >> (2 * Self::COUNT_BITS)) as u32
    }

    fn now(self) -> u64 {
        self.0 & Self::MAX
    }

    fn before(self) -> u64 {
        self.0 >> Self::COUNT_BITS & Self::MAX
    }

    /// The same in a window, which may be a later one.
    fn moved_to(self, window: u32) -> Self {
        let before = match window.wrapping_sub(self.window()) {
            0 => return self,
            1 => self.now(),
            _ => 0,
        };
        Self(u64::from(window) << (2 * Self::COUNT_BITS) | before << Self::COUNT_BITS)
    }

    /// With one more session in a window.
    #[must_use]
    pub fn with_one_more(self, window: u32) -> Self {
        let moved = self.moved_to(window);
        Self(moved.0 + u64::from(moved.now() < Self::MAX))
    }

    /// The number of sessions: the greater one of the two windows'.
    #[must_use]
    pub fn sessions(self, window: u32) -> u32 {
        let moved = self.moved_to(window);
        moved.now().max(moved.before()) as u32
    }
}

/// How a session comes back from the serving process, between two queries.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Return {
    /// The other node has closed the connection, or got an error that ends the call.
    pub is_over: bool,
    /// The message with which it was lent has not been answered.
    pub is_unanswered: bool,
    /// Something was in the way: it is not lent again at once.
    pub is_unfit: bool,
}

impl Return {
    /// The message to the process of the session.
    #[must_use]
    pub fn encode(self) -> u8 {
        let bits = [self.is_over, self.is_unanswered, self.is_unfit];
        (0..)
            .zip(bits)
            .fold(0, |n, (place, bit)| n | u8::from(bit) << place)
    }

    /// What [`Self::encode`] made; `None` for anything else.
    #[must_use]
    pub fn decode(flags: u8) -> Option<Self> {
        let bit = |place: u8| flags >> place & 1 != 0;
        (flags < 8).then(|| Self {
            is_over: bit(0),
            is_unanswered: bit(1),
            is_unfit: bit(2),
        })
    }
}

/// An error of PostgreSQL's protocol.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Failure {
    /// Its SQLSTATE.
    pub code: String,
    /// What has happened.
    pub message: String,
    /// More of it.
    pub detail: Option<String>,
    /// What to do.
    pub hint: Option<String>,
}

impl Failure {
    /// Appends an ErrorResponse (PostgreSQL's documentation, "Error and Notice Message Fields").
    pub fn put(&self, into: &mut Vec<u8>) {
        let fields = [
            (b'S', Some("ERROR")),
            (b'V', Some("ERROR")),
            (b'C', Some(&*self.code)),
            (b'M', Some(&*self.message)),
            (b'D', self.detail.as_deref()),
            (b'H', self.hint.as_deref()),
        ];
        let mut body = Vec::new();
        for (kind, text) in fields {
            if let Some(text) = text {
                body.push(kind);
                body.extend(text.bytes().filter(|&byte| byte != 0));
                body.push(0);
            }
        }
        body.push(0);
        put_message(into, b'E', &body);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn frames_are_found_one_by_one(
            contents in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..50), 1..5),
            cut in any::<prop::sample::Index>(),
        ) {
            let mut bytes = Vec::new();
            contents.iter().for_each(|data| put_frame(&mut bytes, data));
            let cut = cut.index(bytes.len());
            let mut found = Vec::new();
            let mut rest = &bytes[..cut];
            while let Frame::Data(data) = Frame::first(rest) {
                found.push(data.to_vec());
                rest = &rest[frame_bytes(data)..];
            }
            prop_assert_eq!(&found[..], &contents[..found.len()]);
            let next = frame_bytes(&contents[found.len()]);
            prop_assert!(rest.len() < next);
            let known = (rest.len() >= HEAD_BYTES).then_some(next);
            prop_assert_eq!(Frame::first(rest), Frame::Incomplete(known));
        }

        #[test]
        fn busy_sessions_are_those_of_two_windows(first: u32, steps in prop::collection::vec(0u32..4, 1..60)) {
            let (mut busy, mut window, mut seen) = (Busy::default(), first, Vec::new());
            for step in steps {
                window = window.wrapping_add(step);
                busy = busy.with_one_more(window);
                seen.push(window);
                let of = |window: u32| seen.iter().filter(|&&at| at == window).count() as u32;
                prop_assert_eq!(busy.sessions(window), of(window).max(of(window.wrapping_sub(1))));
                prop_assert_eq!(busy.sessions(window.wrapping_add(1)), of(window));
                prop_assert_eq!(busy.sessions(window.wrapping_add(2)), 0);
            }
        }
    }

    #[test]
    fn what_is_no_data_or_too_long_is_left() {
        assert_eq!(Frame::first(b"X\0\0\0\x04"), Frame::Other);
        assert_eq!(Frame::first(b"d\0\0\0\x03"), Frame::Other);
        assert_eq!(Frame::first(b"d\x7f\0\0\0"), Frame::Other);
        assert_eq!(Frame::first(b"d\0\0\0\x04"), Frame::Data(b""));
        assert_eq!(Frame::first(b""), Frame::Incomplete(None));
    }

    #[test]
    fn returns_come_back() {
        for flags in 0..=u8::MAX {
            let back = Return::decode(flags);
            assert_eq!(back.map(Return::encode), (flags < 8).then_some(flags));
        }
    }

    #[test]
    fn a_failure_is_an_error_response() {
        let failure = Failure {
            code: "55000".to_owned(),
            message: "gone".to_owned(),
            hint: Some("ask\0 again".to_owned()),
            ..Failure::default()
        };
        let mut bytes = Vec::new();
        failure.put(&mut bytes);
        assert_eq!(
            bytes,
            b"E\0\0\0\x2bSERROR\0VERROR\0C55000\0Mgone\0Hask again\0\0"
        );
    }

    #[test]
    fn the_count_of_a_window_does_not_flow_over() {
        let mut busy = Busy::default();
        for _ in 0..70_000 {
            busy = busy.with_one_more(7);
        }
        assert_eq!(busy.sessions(7), 65_535);
        assert_eq!(busy.sessions(8), 65_535);
        assert_eq!(busy.with_one_more(8).sessions(9), 1);
    }
}
