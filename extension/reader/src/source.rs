//! Bytes of a document: counted, and decompressed where they are compressed.

use std::io::{self, BufReader, Chain, Cursor, Read};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use bzip2::read::MultiBzDecoder;
use flate2::read::MultiGzDecoder;

use crate::error::{ErrorKind, ReadError};

const READ_BYTES: usize = 1 << 18;

/// Where a document comes from.
pub struct Source {
    pub(crate) reader: Box<dyn Read + Send>,
    pub(crate) bytes_read: Arc<AtomicU64>,
}

impl Source {
    /// A document that is read from `reader`. Data compressed by gzip, zstd, or bzip2 (several members too) is
    /// recognized by its first bytes. If `name` ends as that of a compressed file does, other data is an error.
    pub fn new(reader: impl Read + Send + 'static, name: &str) -> Self {
        Self::opened(reader, Compression::from_path(name))
    }

    /// A document with a named compression: `gzip`, `zstd`, `bzip2`, or `none`. An empty name: its first bytes tell.
    /// `None` for a name that is none of these.
    pub fn compressed(reader: impl Read + Send + 'static, compression: &str) -> Option<Self> {
        match compression {
            "" => Some(Self::opened(reader, None)),
            "none" => Some(Self::plain(reader)),
            name => Compression::from_ending(name).map(|known| Self::opened(reader, Some(known))),
        }
    }

    fn opened(reader: impl Read + Send + 'static, expected: Option<Compression>) -> Self {
        let bytes_read = Arc::new(AtomicU64::new(0));
        let counted = Counted {
            inner: reader,
            count: bytes_read.clone(),
        };
        let opened = Opened {
            raw: Some(Box::new(counted)),
            expected,
            decoder: None,
        };
        Source {
            reader: Box::new(opened),
            bytes_read,
        }
    }

    /// A document in memory, not compressed.
    pub fn text(document: Vec<u8>) -> Self {
        Self::plain(Cursor::new(document))
    }

    /// A document that is not compressed.
    pub fn plain(reader: impl Read + Send + 'static) -> Self {
        let bytes_read = Arc::new(AtomicU64::new(0));
        let counted = Counted {
            inner: reader,
            count: bytes_read.clone(),
        };
        Source {
            reader: Box::new(counted),
            bytes_read,
        }
    }
}

impl Source {
    /// The same document, an error when it turns out to have more than so many bytes, unpacked.
    #[must_use]
    pub fn bounded(self, bytes: u64) -> Self {
        Source {
            reader: Box::new(Bounded {
                inner: self.reader,
                bytes,
                left: bytes,
            }),
            bytes_read: self.bytes_read,
        }
    }
}

impl Source {
    /// The same document without the byte order mark that some programs write before UTF-8.
    #[must_use]
    pub(crate) fn without_mark(self) -> Self {
        Source {
            reader: Box::new(Unmarked {
                inner: self.reader,
                head: None,
            }),
            bytes_read: self.bytes_read,
        }
    }
}

/// The byte order mark in UTF-8.
const MARK: &[u8] = b"\xef\xbb\xbf";

struct Unmarked<R> {
    inner: R,
    /// What has been read to look for the mark; `None` before the first read.
    head: Option<Cursor<Vec<u8>>>,
}

impl<R: Read> Read for Unmarked<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let head = match &mut self.head {
            Some(head) => head,
            none => {
                let mut head = Vec::new();
                let most = MARK.len() as u64;
                self.inner.by_ref().take(most).read_to_end(&mut head)?;
                if head == MARK {
                    head.clear();
                }
                none.insert(Cursor::new(head))
            }
        };
        match head.read(buffer)? {
            0 => self.inner.read(buffer),
            read => Ok(read),
        }
    }
}

struct Bounded<R> {
    inner: R,
    bytes: u64,
    left: u64,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        match self.left.checked_sub(read as u64) {
            Some(left) => self.left = left,
            None => {
                let message = format!("the document is larger than {} bytes", self.bytes);
                return Err(ReadError::new(ErrorKind::TooLong, message).into());
            }
        }
        Ok(read)
    }
}

struct Counted<R> {
    inner: R,
    count: Arc<AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.count.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

/// A form of compression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compression {
    Gzip,
    Zstd,
    Bzip2,
}

impl Compression {
    /// What the name of a file tells.
    pub(crate) fn from_path(path: &str) -> Option<Self> {
        let (_, ending) = path.rsplit_once('.')?;
        Self::from_ending(ending)
    }

    /// What the ending of a name, or the name of the compression, tells.
    fn from_ending(ending: &str) -> Option<Self> {
        match ending.to_ascii_lowercase().as_str() {
            "gz" | "gzip" => Some(Compression::Gzip),
            "zst" | "zstd" => Some(Compression::Zstd),
            "bz2" | "bzip2" => Some(Compression::Bzip2),
            _ => None,
        }
    }

    /// What the first bytes tell.
    fn from_head(head: &[u8]) -> Option<Self> {
        match head {
            [0x1f, 0x8b, ..] => Some(Compression::Gzip),
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Some(Compression::Zstd),
            // The magic number is followed by the block size and by the first digits of pi, or of
            // its root in an empty file.
            [b'B', b'Z', b'h', b'1'..=b'9', 0x31 | 0x17, ..] => Some(Compression::Bzip2),
            _ => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Compression::Gzip => "gzip",
            Compression::Zstd => "zstd",
            Compression::Bzip2 => "bzip2",
        }
    }
}

type Raw = Box<dyn Read + Send>;
type Rewound = BufReader<Chain<Cursor<Vec<u8>>, Raw>>;

/// A file that may be compressed. Its first bytes are looked at when the first read comes, which is
/// on the thread that reads.
struct Opened {
    raw: Option<Raw>,
    expected: Option<Compression>,
    decoder: Option<Decoder>,
}

enum Decoder {
    Plain(Chain<Cursor<Vec<u8>>, Raw>),
    Gzip(Box<MultiGzDecoder<Rewound>>),
    Zstd(Box<zstd::stream::read::Decoder<'static, Rewound>>),
    Bzip2(Box<MultiBzDecoder<Rewound>>),
}

impl Decoder {
    fn open(mut raw: Raw, expected: Option<Compression>) -> io::Result<Self> {
        let mut head = Vec::new();
        raw.by_ref().take(10).read_to_end(&mut head)?;
        let found = Compression::from_head(&head);
        if let Some(expected) = expected.filter(|expected| found != Some(*expected)) {
            let message = format!("the data is not in {} format", expected.name());
            return Err(ReadError::new(ErrorKind::Compression, message).into());
        }
        let all = Cursor::new(head).chain(raw);
        let buffered = |all| BufReader::with_capacity(READ_BYTES, all);
        Ok(match found {
            None => Decoder::Plain(all),
            Some(Compression::Gzip) => Decoder::Gzip(Box::new(MultiGzDecoder::new(buffered(all)))),
            Some(Compression::Zstd) => Decoder::Zstd(Box::new(
                zstd::stream::read::Decoder::with_buffer(buffered(all))?,
            )),
            Some(Compression::Bzip2) => {
                Decoder::Bzip2(Box::new(MultiBzDecoder::new(buffered(all))))
            }
        })
    }

    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let (result, compression) = match self {
            Decoder::Plain(reader) => return reader.read(buffer),
            Decoder::Gzip(reader) => (reader.read(buffer), Compression::Gzip),
            Decoder::Zstd(reader) => (reader.read(buffer), Compression::Zstd),
            Decoder::Bzip2(reader) => (reader.read(buffer), Compression::Bzip2),
        };
        result.map_err(|error| {
            // Errors of the file itself carry the code of the operating system.
            if error.raw_os_error().is_some() || error.kind() == io::ErrorKind::Interrupted {
                return error;
            }
            let name = compression.name();
            let message = if error.kind() == io::ErrorKind::UnexpectedEof {
                format!("{name} data ends too early")
            } else {
                format!("{name} data is damaged")
            };
            ReadError::new(ErrorKind::Compression, message).into()
        })
    }
}

impl Read for Opened {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if let Some(raw) = self.raw.take() {
            self.decoder = Some(Decoder::open(raw, self.expected)?);
        }
        match &mut self.decoder {
            Some(decoder) => decoder.read(buffer),
            // The first read has failed.
            None => Ok(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn read(bytes: Vec<u8>) -> Result<Vec<u8>, ReadError> {
        let mut out = Vec::new();
        Source::new(Cursor::new(bytes), "x")
            .reader
            .read_to_end(&mut out)?;
        Ok(out)
    }

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    fn bzip2(text: &[u8]) -> Vec<u8> {
        let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn compressed_data_of_several_members() {
        let zstd = |text: &[u8]| zstd::encode_all(text, 1).unwrap();
        for members in [
            [gzip(b"one "), gzip(b"two")],
            [bzip2(b"one "), bzip2(b"two")],
            [zstd(b"one "), zstd(b"two")],
            [b"one ".to_vec(), b"two".to_vec()],
        ] {
            assert_eq!(read(members.concat()).unwrap(), b"one two");
        }
        for empty in [gzip(b""), bzip2(b""), zstd(b""), Vec::new()] {
            assert_eq!(read(empty).unwrap(), b"");
        }
    }

    #[test]
    fn cut_or_damaged_data_is_an_error() {
        let text: Vec<u8> = (0..20_000u32)
            .flat_map(|i| (i.wrapping_mul(2_654_435_761)).to_le_bytes())
            .collect();
        for whole in [
            gzip(&text),
            bzip2(&text),
            zstd::encode_all(&text[..], 1).unwrap(),
        ] {
            let error = read(whole[..whole.len() / 2].to_vec()).unwrap_err();
            assert_eq!(error.kind, ErrorKind::Compression, "{error}");
        }
        let mut damaged = gzip(&text);
        let middle = damaged.len() / 2;
        damaged[middle..middle + 100].fill(0x55);
        assert_eq!(read(damaged).unwrap_err().kind, ErrorKind::Compression);
    }

    #[test]
    fn data_cut_anywhere_is_an_error() {
        let text: Vec<u8> = (0..200u8).flat_map(|i| [i, b' ', i / 2]).collect();
        let zstd = |checksum: bool| {
            let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 3).unwrap();
            encoder.include_checksum(checksum).unwrap();
            encoder.write_all(&text).unwrap();
            encoder.finish().unwrap()
        };
        for (name, whole) in [
            ("x.gz", gzip(&text)),
            ("x.bz2", bzip2(&text)),
            ("x.zst", zstd(false)),
            ("x.zst", zstd(true)),
        ] {
            for twice in [false, true] {
                let start = if twice { whole.clone() } else { Vec::new() };
                for end in 0..whole.len() {
                    if twice && end == 0 {
                        continue;
                    }
                    let cut = [&start[..], &whole[..end]].concat();
                    let mut reader = Source::new(Cursor::new(cut), name).reader;
                    let read = reader.read_to_end(&mut Vec::new());
                    let error = read.map_err(|error| ReadError::from(error).kind);
                    assert_eq!(error, Err(ErrorKind::Compression), "{name} {twice} {end}");
                }
            }
        }
    }

    #[test]
    fn a_bound_counts_unpacked_bytes() {
        let read = |bytes: Vec<u8>, bound| {
            let mut out = Vec::new();
            let source = Source::new(Cursor::new(bytes), "x").bounded(bound);
            let read = { source.reader }.read_to_end(&mut out);
            read.map_err(|error| ReadError::from(error).kind)
        };
        let text = [b'x'; 10_000];
        assert_eq!(read(gzip(&text), 10_000), Ok(10_000));
        assert_eq!(read(gzip(&text), 9_999), Err(ErrorKind::TooLong));
        assert_eq!(read(text.to_vec(), 9_999), Err(ErrorKind::TooLong));
    }

    #[test]
    fn what_somebody_says_of_the_compression_is_taken_seriously() {
        let read = |bytes: Vec<u8>, compression| {
            let mut out = Vec::new();
            let mut source = Source::compressed(Cursor::new(bytes), compression)?;
            let read = source.reader.read_to_end(&mut out);
            Some(
                read.map(|_| out)
                    .map_err(|error| ReadError::from(error).kind),
            )
        };
        for (compression, bytes) in [
            ("gzip", gzip(b"x")),
            ("bzip2", bzip2(b"x")),
            ("none", b"x".to_vec()),
            ("", gzip(b"x")),
            ("", b"x".to_vec()),
        ] {
            assert_eq!(
                read(bytes, compression),
                Some(Ok(b"x".to_vec())),
                "{compression}"
            );
        }
        assert_eq!(read(gzip(b"x"), "none"), Some(Ok(gzip(b"x"))));
        assert_eq!(read(gzip(b"x"), "zstd"), Some(Err(ErrorKind::Compression)));
        assert_eq!(
            read(b"x".to_vec(), "gzip"),
            Some(Err(ErrorKind::Compression))
        );
        assert_eq!(read(Vec::new(), "deflate"), None);
    }

    #[test]
    fn the_name_of_a_compressed_file_is_taken_seriously() {
        for name in ["x.gz", "x.nt.zst", "x.BZ2"] {
            for content in [&b"plain"[..], b""] {
                let mut reader = Source::new(content, name).reader;
                let error = ReadError::from(reader.read_to_end(&mut Vec::new()).unwrap_err());
                assert_eq!(error.kind, ErrorKind::Compression, "{name}");
            }
        }
        let mut out = Vec::new();
        let mut reader = Source::new(Cursor::new(gzip(b"x")), "a.nt.gz").reader;
        reader.read_to_end(&mut out).unwrap();
        assert_eq!(out, b"x");
    }
}
