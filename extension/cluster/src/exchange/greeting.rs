//! How a link begins: each end shows that it knows the secret of the cluster, without sending it.
//!
//! The end that connects says who it is and whom it wants, with a random number. The other answers with a random number
//! of its own and a keyed hash over all of it; the first checks that and answers with its own hash. The two hashes are
//! over different words, so that none can be sent back as the other.

use std::io::{self, Read, Write};

use hmac::{Hmac, Mac};
use sha2::Sha256;

use super::frame::{finish_greeting, greeting, open_greeting};
use super::link::Link;
use super::refused::Refused;
use super::seal::Seal;
use crate::wire::{Damaged, Reader};

/// Bytes of random numbers.
pub const NONCE_BYTES: usize = 32;

/// Bytes of the number of a mesh.
pub const MESH_BYTES: usize = 16;

/// Bytes of a keyed hash; a seal's key is one.
const HASH_BYTES: usize = 32;

/// Who is at the two ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ends {
    /// A random number for the participants that are linked with each other.
    pub mesh: [u8; MESH_BYTES],
    /// The participant that connects.
    pub from: u32,
    /// The participant that it connects to.
    pub to: u32,
    /// Frames are sealed: at least one of them wants it.
    pub sealed: bool,
}

type Nonce = [u8; NONCE_BYTES];

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Next {
    /// Accepting: the other end says who it is.
    Hello,
    /// Connecting: the other end's random number and hash.
    Challenge,
    /// Accepting: the other end's hash.
    Proof,
}

/// One end of a link that begins.
pub struct Greeting {
    secret: Vec<u8>,
    ends: Ends,
    own: Nonce,
    theirs: Nonce,
    /// What the end that connects has said of seals.
    wanted: bool,
    next: Next,
}

impl Greeting {
    /// The end that connects: says who it is. `ends.sealed` is what it wants.
    ///
    /// # Errors
    /// Of the stream.
    pub fn connect<S: Write>(
        link: &mut Link<S>,
        secret: &[u8],
        ends: Ends,
        nonce: Nonce,
    ) -> io::Result<Self> {
        let mut writer = greeting();
        writer.bytes(&ends.mesh);
        writer.u32(ends.from);
        writer.u32(ends.to);
        writer.u8(u8::from(ends.sealed));
        writer.bytes(&nonce);
        link.send(finish_greeting(writer))?;
        Ok(Self::new(secret, ends, nonce, Next::Challenge))
    }

    /// The end `me` that is connected to; who the other end is stays to be seen. `sealed` is what this one wants.
    #[must_use]
    pub fn accept(
        secret: &[u8],
        mesh: [u8; MESH_BYTES],
        me: u32,
        sealed: bool,
        nonce: Nonce,
    ) -> Self {
        let ends = Ends {
            mesh,
            from: u32::MAX,
            to: me,
            sealed,
        };
        Self::new(secret, ends, nonce, Next::Hello)
    }

    fn new(secret: &[u8], ends: Ends, own: Nonce, next: Next) -> Self {
        Self {
            secret: secret.to_vec(),
            ends,
            own,
            theirs: [0; NONCE_BYTES],
            wanted: ends.sealed,
            next,
        }
    }

    /// Goes on as far as it goes without waiting. Once both ends have shown who they are, the link takes all frames,
    /// and the ends are given.
    ///
    /// # Errors
    /// The link does not come to be.
    pub fn advance<S: Read + Write>(
        &mut self,
        link: &mut Link<S>,
    ) -> Result<Option<Ends>, Refused> {
        loop {
            if !link.flush()? {
                return Ok(None);
            }
            let Some(frame) = link.receive()? else {
                return Ok(None);
            };
            let mut reader = open_greeting(&frame)?;
            match self.next {
                Next::Hello => {
                    self.read_hello(&mut reader)?;
                    link.send(self.challenge())?;
                    self.next = Next::Proof;
                }
                Next::Challenge => {
                    self.theirs = array(&mut reader)?;
                    let sealed = flag(&mut reader)?;
                    if self.ends.sealed && !sealed {
                        return Err(Refused::Damaged);
                    }
                    self.ends.sealed = sealed;
                    self.check(&mut reader, "accept")?;
                    let mut writer = greeting();
                    writer.bytes(&self.hash("connect"));
                    link.send(finish_greeting(writer))?;
                    link.trust(self.seals("connect", "accept"));
                    return Ok(Some(self.ends));
                }
                Next::Proof => {
                    self.check(&mut reader, "connect")?;
                    link.trust(self.seals("accept", "connect"));
                    return Ok(Some(self.ends));
                }
            }
        }
    }

    fn read_hello(&mut self, reader: &mut Reader<'_>) -> Result<(), Refused> {
        let mesh: [u8; MESH_BYTES] = array(reader)?;
        let (from, to) = (reader.u32()?, reader.u32()?);
        self.wanted = flag(reader)?;
        self.ends.sealed |= self.wanted;
        self.theirs = array(reader)?;
        reader.end()?;
        if mesh != self.ends.mesh || to != self.ends.to {
            return Err(Refused::Stranger);
        }
        self.ends.from = from;
        Ok(())
    }

    fn challenge(&self) -> Vec<u8> {
        let mut writer = greeting();
        writer.bytes(&self.own);
        writer.u8(u8::from(self.ends.sealed));
        writer.bytes(&self.hash("accept"));
        finish_greeting(writer)
    }

    /// The keyed hash of a word, the ends and both random numbers.
    fn mac(&self, word: &str) -> Hmac<Sha256> {
        let Ok(mut mac) = <Hmac<Sha256> as Mac>::new_from_slice(&self.secret) else {
            unreachable!("a keyed hash takes keys of any length")
        };
        let (connecting, accepting) = match self.next {
            Next::Challenge => (&self.own, &self.theirs),
            Next::Hello | Next::Proof => (&self.theirs, &self.own),
        };
        mac.update(b"pgquad exchange ");
        mac.update(word.as_bytes());
        mac.update(&self.ends.mesh);
        mac.update(&self.ends.from.to_le_bytes());
        mac.update(&self.ends.to.to_le_bytes());
        mac.update(&[u8::from(self.ends.sealed), u8::from(self.wanted)]);
        mac.update(connecting);
        mac.update(accepting);
        mac
    }

    /// The seals of the frames that this end sends, and of those that it receives. None where frames are not sealed.
    fn seals(&self, own: &str, theirs: &str) -> Option<(Seal, Seal)> {
        let seal = |end: &str| Seal::new(self.hash(&format!("{end} seals")));
        self.ends.sealed.then(|| (seal(own), seal(theirs)))
    }

    fn hash(&self, word: &str) -> [u8; HASH_BYTES] {
        self.mac(word).finalize().into_bytes().into()
    }

    /// Checks the hash of the other end, in the same time whatever differs.
    fn check(&self, reader: &mut Reader<'_>, word: &str) -> Result<(), Refused> {
        let shown: [u8; HASH_BYTES] = array(reader)?;
        reader.end()?;
        let verified = self.mac(word).verify_slice(&shown);
        verified.map_err(|_| Refused::Secret)
    }
}

fn array<const N: usize>(reader: &mut Reader<'_>) -> Result<[u8; N], Damaged> {
    reader.bytes()?.try_into().map_err(|_| Damaged)
}

fn flag(reader: &mut Reader<'_>) -> Result<bool, Damaged> {
    match reader.u8()? {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(Damaged),
    }
}
