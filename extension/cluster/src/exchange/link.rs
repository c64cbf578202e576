//! One end of a link: frames over any non-blocking stream.

use std::io::{self, ErrorKind, Read, Write};

use super::frame::{query_of, LENGTH_BYTES, MAX_BYTES};
use super::seal::Seal;

/// Bytes read at once; longer frames are read to where they stay.
const READ_BYTES: usize = 64 << 10;

/// Most bytes of a frame before the other end has shown who it is.
const MAX_GREETING_BYTES: usize = 256;

/// Frames over a stream, which must not block.
pub struct Link<S> {
    stream: S,
    /// The frame that is being sent, and how much of it the stream has.
    out: Vec<u8>,
    sent: usize,
    /// What was read and belongs to no frame yet.
    buffer: Box<[u8]>,
    from: usize,
    to: usize,
    /// The frame that is being read, once its length is known, and how much of it is there.
    frame: Vec<u8>,
    have: usize,
    /// Most bytes that are believed of a frame.
    most: usize,
    /// A frame of a later query than the present one.
    held: Option<Vec<u8>>,
    /// Where frames are sealed: what is sent, what comes.
    seals: Option<(Seal, Seal)>,
}

impl<S> Link<S> {
    /// A link that believes short frames only, until both ends have shown who they are.
    pub fn new(stream: S) -> Self {
        Self {
            stream,
            out: Vec::new(),
            sent: 0,
            buffer: vec![0; READ_BYTES].into_boxed_slice(),
            from: 0,
            to: 0,
            frame: Vec::new(),
            have: 0,
            most: MAX_GREETING_BYTES,
            held: None,
            seals: None,
        }
    }

    /// The other end has shown who it is: frames may have any length. From now on they are sealed, where there are
    /// seals.
    pub(super) fn trust(&mut self, seals: Option<(Seal, Seal)>) {
        self.most = MAX_BYTES;
        self.seals = seals;
    }

    /// The stream.
    pub fn stream(&self) -> &S {
        &self.stream
    }

    /// Whether a frame of a later query waits: nothing is read before that begins.
    pub fn is_held(&self) -> bool {
        self.held.is_some()
    }

    /// Whether all that was sent has been given to the stream.
    pub fn is_flushed(&self) -> bool {
        self.sent == self.out.len()
    }
}

impl<S: Write> Link<S> {
    /// Gives the stream what it takes of the frame being sent; whether that is all.
    ///
    /// # Errors
    /// Of the stream.
    pub fn flush(&mut self) -> io::Result<bool> {
        while self.sent < self.out.len() {
            match self.stream.write(&self.out[self.sent..]) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(count) => self.sent += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        self.out = Vec::new();
        self.sent = 0;
        Ok(true)
    }

    /// Begins to send a frame; the last one must have been given to the stream.
    ///
    /// # Errors
    /// Of the stream.
    pub fn send(&mut self, mut frame: Vec<u8>) -> io::Result<()> {
        debug_assert!(self.is_flushed());
        if let Some((seal, _)) = &mut self.seals {
            seal.seal(&mut frame)?;
        }
        self.out = frame;
        self.sent = 0;
        self.flush().map(|_| ())
    }
}

impl<S: Read> Link<S> {
    /// The next frame, if all of it is there.
    ///
    /// # Errors
    /// Of the stream; its end; a length that no frame has.
    pub fn receive(&mut self) -> io::Result<Option<Vec<u8>>> {
        loop {
            if self.frame.is_empty() {
                if self.to - self.from < LENGTH_BYTES {
                    if !self.fill()? {
                        return Ok(None);
                    }
                    continue;
                }
                self.begin_frame()?;
            }
            let ready = (self.to - self.from).min(self.frame.len() - self.have);
            self.frame[self.have..self.have + ready]
                .copy_from_slice(&self.buffer[self.from..self.from + ready]);
            self.have += ready;
            self.from += ready;
            let lacks = self.frame.len() - self.have;
            if lacks == 0 {
                self.have = 0;
                let mut frame = std::mem::take(&mut self.frame);
                if let Some((_, seal)) = &mut self.seals {
                    seal.open(&mut frame)?;
                }
                return Ok(Some(frame));
            }
            let read = if lacks < READ_BYTES {
                self.fill()?
            } else {
                let count = read(&mut self.stream, &mut self.frame[self.have..])?;
                self.have += count.unwrap_or(0);
                count.is_some()
            };
            if !read {
                return Ok(None);
            }
        }
    }

    /// The next frame of a query. Those of queries before it are dropped; one of a later query waits for its turn.
    ///
    /// # Errors
    /// As [`Self::receive`]; a frame of another version.
    pub fn receive_of(&mut self, query: u64) -> io::Result<Option<Vec<u8>>> {
        loop {
            let frame = match self.held.take() {
                Some(frame) => frame,
                None => match self.receive()? {
                    Some(frame) => frame,
                    None => return Ok(None),
                },
            };
            let of =
                query_of(&frame).map_err(|error| io::Error::new(ErrorKind::InvalidData, error))?;
            match of.cmp(&query) {
                std::cmp::Ordering::Less => {}
                std::cmp::Ordering::Equal => return Ok(Some(frame)),
                std::cmp::Ordering::Greater => {
                    self.held = Some(frame);
                    return Ok(None);
                }
            }
        }
    }

    /// Makes room for the frame whose length has been read.
    fn begin_frame(&mut self) -> io::Result<()> {
        let mut length = [0; LENGTH_BYTES];
        length.copy_from_slice(&self.buffer[self.from..self.from + LENGTH_BYTES]);
        let length = u32::from_le_bytes(length) as usize;
        if length == 0 || length > self.most {
            let error = format!("a frame says that it has {length} bytes");
            return Err(io::Error::new(ErrorKind::InvalidData, error));
        }
        self.frame = vec![0; LENGTH_BYTES + length];
        self.have = 0;
        Ok(())
    }

    /// Reads into the buffer; false where nothing is there.
    fn fill(&mut self) -> io::Result<bool> {
        self.buffer.copy_within(self.from..self.to, 0);
        self.to -= self.from;
        self.from = 0;
        let count = read(&mut self.stream, &mut self.buffer[self.to..])?;
        self.to += count.unwrap_or(0);
        Ok(count.is_some())
    }
}

/// Bytes read; `None` where nothing is there.
fn read(stream: &mut impl Read, bytes: &mut [u8]) -> io::Result<Option<usize>> {
    loop {
        match stream.read(bytes) {
            Ok(0) => {
                let error = "the other end has closed the connection";
                return Err(io::Error::new(ErrorKind::UnexpectedEof, error));
            }
            Ok(count) => return Ok(Some(count)),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
            Err(error) => return Err(error),
        }
    }
}
