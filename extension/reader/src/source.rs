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
    /// A document that is read from `reader`. Data compressed by gzip, zstd, or bzip2 (several members too) is recognized by its
    /// first bytes.
    pub fn new(reader: impl Read + Send + 'static) -> Self {
        let bytes_read = Arc::new(AtomicU64::new(0));
        let counted = Counted {
            inner: reader,
            count: bytes_read.clone(),
        };
        Source {
            reader: Box::new(Sniffing(Some(Box::new(counted)), None)),
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

type Raw = Box<dyn Read + Send>;
type Rewound = BufReader<Chain<Cursor<Vec<u8>>, Raw>>;

/// Looks at the first bytes when the first read comes, which is on the thread that reads.
struct Sniffing(Option<Raw>, Option<Decoder>);

enum Decoder {
    Plain(Chain<Cursor<Vec<u8>>, Raw>),
    Gzip(Box<MultiGzDecoder<Rewound>>),
    Zstd(Box<zstd::stream::read::Decoder<'static, Rewound>>),
    Bzip2(Box<MultiBzDecoder<Rewound>>),
}

impl Decoder {
    fn open(mut raw: Raw) -> io::Result<Self> {
        let mut head = Vec::new();
        raw.by_ref().take(10).read_to_end(&mut head)?;
        let kind = head.clone();
        let all = Cursor::new(head).chain(raw);
        let buffered = |all| BufReader::with_capacity(READ_BYTES, all);
        Ok(match kind.as_slice() {
            [0x1f, 0x8b, ..] => Decoder::Gzip(Box::new(MultiGzDecoder::new(buffered(all)))),
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Decoder::Zstd(Box::new(
                zstd::stream::read::Decoder::with_buffer(buffered(all))?,
            )),
            // The magic number is followed by the block size and by the first digits of pi, or of its root in an empty file.
            [b'B', b'Z', b'h', b'1'..=b'9', 0x31 | 0x17, ..] => {
                Decoder::Bzip2(Box::new(MultiBzDecoder::new(buffered(all))))
            }
            _ => Decoder::Plain(all),
        })
    }

    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let (result, name) = match self {
            Decoder::Plain(reader) => return reader.read(buffer),
            Decoder::Gzip(reader) => (reader.read(buffer), "gzip"),
            Decoder::Zstd(reader) => (reader.read(buffer), "zstd"),
            Decoder::Bzip2(reader) => (reader.read(buffer), "bzip2"),
        };
        result.map_err(|error| {
            // Errors of the file itself carry the code of the operating system.
            if error.raw_os_error().is_some() || error.kind() == io::ErrorKind::Interrupted {
                return error;
            }
            let message = if error.kind() == io::ErrorKind::UnexpectedEof {
                format!("{name} data ends too early")
            } else {
                format!("{name} data is damaged: {error}")
            };
            ReadError::new(ErrorKind::Compression, message).into()
        })
    }
}

impl Read for Sniffing {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if let Some(raw) = self.0.take() {
            self.1 = Some(Decoder::open(raw)?);
        }
        match &mut self.1 {
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
        Source::new(Cursor::new(bytes))
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
}
