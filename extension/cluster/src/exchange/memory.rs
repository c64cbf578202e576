//! Participants in one process: a transport for tests and models.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::transport::{Lost, Transport};

/// One direction of a link.
#[derive(Default)]
struct Channel {
    frames: VecDeque<Vec<u8>>,
    bytes: usize,
    closed: bool,
}

struct Network {
    peers: usize,
    /// Bytes on a channel from which on it takes nothing.
    room: usize,
    /// By sender and receiver.
    channels: Mutex<Vec<Channel>>,
    changed: Condvar,
    began: Instant,
}

impl Network {
    fn lock(&self) -> MutexGuard<'_, Vec<Channel>> {
        self.channels.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One participant's end of the links.
pub struct Member {
    me: usize,
    /// Whom to ask next for frames.
    turn: usize,
    network: Arc<Network>,
}

/// The ends of links between `peers` participants. A channel holds frames of up to `room` bytes, and the frame that
/// goes beyond.
#[must_use]
pub fn network(peers: usize, room: usize) -> Vec<Member> {
    let channels = std::iter::repeat_with(Channel::default).take(peers * peers);
    let network = Arc::new(Network {
        peers,
        room,
        channels: Mutex::new(channels.collect()),
        changed: Condvar::new(),
        began: Instant::now(),
    });
    let member = |me| Member {
        me,
        turn: 0,
        network: network.clone(),
    };
    (0..peers).map(member).collect()
}

impl Member {
    fn channel(&self, from: usize, to: usize) -> usize {
        from * self.network.peers + to
    }

    fn lost(peer: usize) -> Lost {
        Lost {
            peer,
            why: "the link was closed".to_owned(),
            closed: true,
        }
    }

    /// What can be received: the sender, where a frame or the end of the link has come.
    fn ready(&self, channels: &[Channel]) -> Option<usize> {
        let peers = self.network.peers;
        let order = (0..peers).map(|n| (self.turn + n) % peers);
        order.filter(|&from| from != self.me).find(|&from| {
            let channel = &channels[self.channel(from, self.me)];
            channel.closed || !channel.frames.is_empty()
        })
    }

    fn has_room(&self, channels: &[Channel], to: usize) -> bool {
        let channel = &channels[self.channel(self.me, to)];
        channel.closed || channel.bytes < self.network.room
    }
}

impl Transport for Member {
    fn peers(&self) -> usize {
        self.network.peers
    }

    fn me(&self) -> usize {
        self.me
    }

    fn takes(&mut self, to: usize) -> Result<bool, Lost> {
        let channels = self.network.lock();
        if channels[self.channel(self.me, to)].closed {
            return Err(Self::lost(to));
        }
        Ok(self.has_room(&channels, to))
    }

    fn send(&mut self, to: usize, frame: Vec<u8>) -> Result<(), Lost> {
        let mut channels = self.network.lock();
        let channel = &mut channels[self.channel(self.me, to)];
        if channel.closed {
            return Err(Self::lost(to));
        }
        channel.bytes += frame.len();
        channel.frames.push_back(frame);
        self.network.changed.notify_all();
        Ok(())
    }

    fn receive(&mut self) -> Result<Option<(usize, Vec<u8>)>, Lost> {
        let mut channels = self.network.lock();
        let Some(from) = self.ready(&channels) else {
            return Ok(None);
        };
        self.turn = from + 1;
        let channel = &mut channels[self.channel(from, self.me)];
        let Some(frame) = channel.frames.pop_front() else {
            return Err(Self::lost(from));
        };
        channel.bytes -= frame.len();
        self.network.changed.notify_all();
        Ok(Some((from, frame)))
    }

    fn wait(&mut self, writable: &[usize]) -> Result<(), Lost> {
        let mut channels = self.network.lock();
        while self.ready(&channels).is_none()
            && !writable.iter().any(|&to| self.has_room(&channels, to))
        {
            let waited = self.network.changed.wait(channels);
            channels = waited.unwrap_or_else(PoisonError::into_inner);
        }
        Ok(())
    }

    fn close(&mut self, peer: usize) {
        let mut channels = self.network.lock();
        for (from, to) in [(self.me, peer), (peer, self.me)] {
            channels[self.channel(from, to)].closed = true;
        }
        self.network.changed.notify_all();
    }

    fn now(&self) -> u64 {
        self.network.began.elapsed().as_nanos() as u64
    }
}
