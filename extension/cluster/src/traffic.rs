//! What goes over the wire.

use std::ops::{AddAssign, Sub};

/// Messages and bytes that went to other nodes and came back.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Traffic {
    /// Messages sent.
    pub messages: u64,
    /// Bytes sent.
    pub sent: u64,
    /// Bytes received.
    pub received: u64,
    /// Nanoseconds spent waiting for answers.
    pub waited: u64,
}

impl AddAssign for Traffic {
    fn add_assign(&mut self, other: Self) {
        self.messages += other.messages;
        self.sent += other.sent;
        self.received += other.received;
        self.waited += other.waited;
    }
}

impl Sub for Traffic {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self {
            messages: self.messages - other.messages,
            sent: self.sent - other.sent,
            received: self.received - other.received,
            waited: self.waited - other.waited,
        }
    }
}
