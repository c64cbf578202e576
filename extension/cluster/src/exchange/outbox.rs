//! Rows that are dealt out to peers, collected until they are worth a frame.

use super::frame::Batches;
use super::rows::Rows;
use super::stats::StateStats;

/// The least size of a batch in bytes, where it adapts.
pub const MIN_BATCH_BYTES: usize = 8 << 10;

/// The greatest size of a batch in bytes, fixed or adapted.
pub const MAX_BATCH_BYTES: usize = 64 << 20;

/// Where an adapting size begins, in bytes.
const FIRST_BATCH_BYTES: usize = 32 << 10;

/// Where an adapting size ends, in bytes.
const MAX_ADAPTED_BYTES: usize = 4 << 20;

/// Bytes that may wait for a busy link beyond a full batch, where batches are smaller. The work goes on meanwhile. A
/// large batch is slack enough by itself, and memory counts.
const SLACK_BYTES: usize = 256 << 10;

/// The size of batches on one link, in bytes of rows before they are packed.
#[derive(Clone, Copy, Debug)]
pub(super) struct BatchSize {
    pub bytes: usize,
    fixed: bool,
}

impl BatchSize {
    /// A fixed size; 0: one that adapts.
    fn new(bytes: usize) -> Self {
        Self {
            bytes: match bytes {
                0 => FIRST_BATCH_BYTES,
                bytes => bytes.min(MAX_BATCH_BYTES),
            },
            fixed: bytes != 0,
        }
    }

    /// A full batch has gone without waiting for the link.
    pub fn grow(&mut self) {
        if !self.fixed {
            self.bytes = (self.bytes * 2).min(MAX_ADAPTED_BYTES);
        }
    }

    /// A full batch has to wait for the link.
    pub fn shrink(&mut self) {
        if !self.fixed {
            self.bytes = (self.bytes / 2).max(MIN_BATCH_BYTES);
        }
    }
}

/// Rows for one peer.
struct Outbox {
    /// Rows by state.
    parts: Vec<(usize, Rows)>,
    bytes: usize,
    size: BatchSize,
}

impl Outbox {
    /// The rows of the state that has most, not more than a batch: a unit of work may deal many batches at once.
    fn take_largest(&mut self) -> Option<(usize, Rows)> {
        let bytes = |part: &(usize, Rows)| part.1.bytes();
        let at = (0..self.parts.len()).max_by_key(|&at| bytes(&self.parts[at]))?;
        let (state, rows) = &mut self.parts[at];
        let most = self
            .size
            .bytes
            .div_ceil(Rows::bytes_of(1, rows.columns.len()));
        if rows.len > most {
            return Some((*state, rows.split_off(rows.len - most)));
        }
        Some(self.parts.swap_remove(at))
    }
}

/// What a participant has dealt out and not sent.
pub struct Dealt {
    me: usize,
    outboxes: Vec<Outbox>,
    /// All states that rows have been dealt in; few.
    states: Vec<(Vec<u8>, StateStats)>,
}

impl Dealt {
    pub(super) fn new(me: usize, peers: usize, batch_bytes: usize) -> Self {
        let outbox = || Outbox {
            parts: Vec::new(),
            bytes: 0,
            size: BatchSize::new(batch_bytes),
        };
        Self {
            me,
            outboxes: std::iter::repeat_with(outbox).take(peers).collect(),
            states: Vec::new(),
        }
    }

    /// The number of this participant.
    #[must_use]
    pub fn me(&self) -> usize {
        self.me
    }

    /// Number of participants, this one included.
    #[must_use]
    pub fn peers(&self) -> usize {
        self.outboxes.len()
    }

    /// Deals rows to another participant, which goes on with them in `state`.
    ///
    /// # Panics
    /// `to` is no other participant, or other rows of the state have other columns.
    pub fn add(&mut self, to: usize, state: &[u8], rows: Rows) {
        let columns = rows.columns.len();
        self.part(to, state, rows.len, columns, |part| {
            if part.len == 0 {
                *part = rows;
            } else {
                part.extend(&rows, 0, rows.len);
            }
        });
    }

    /// Deals the rows with these numbers, as [`Self::add`].
    ///
    /// # Panics
    /// As [`Self::add`]; a row is not in the columns.
    pub fn add_chosen(&mut self, to: usize, state: &[u8], columns: &[&[u64]], rows: &[u32]) {
        self.part(to, state, rows.len(), columns.len(), |part| {
            for (to, from) in part.columns.iter_mut().zip(columns) {
                to.extend(rows.iter().map(|&row| from[row as usize]));
            }
            part.len += rows.len();
        });
    }

    /// Lets `add` put so many rows to those of a peer and state.
    fn part(
        &mut self,
        to: usize,
        state: &[u8],
        len: usize,
        columns: usize,
        add: impl FnOnce(&mut Rows),
    ) {
        assert!(to != self.me, "rows that stay here are not dealt");
        if len == 0 {
            return;
        }
        let known = self.states.iter().position(|(known, _)| known == state);
        let state = known.unwrap_or_else(|| {
            self.states.push((state.to_vec(), StateStats::default()));
            self.states.len() - 1
        });
        let outbox = &mut self.outboxes[to];
        let part = outbox.parts.iter().position(|(of, _)| *of == state);
        let part = part.unwrap_or_else(|| {
            outbox.parts.push((state, Rows::new(columns)));
            outbox.parts.len() - 1
        });
        let part = &mut outbox.parts[part].1;
        assert!(
            part.columns.len() == columns,
            "rows of one state have the same columns"
        );
        part.reserve(len);
        add(part);
        outbox.bytes += Rows::bytes_of(len, columns);
    }

    /// Whether a frame for this peer is due.
    pub(super) fn is_full(&self, to: usize) -> bool {
        let outbox = &self.outboxes[to];
        outbox.bytes >= outbox.size.bytes
    }

    /// Whether so much is dealt to this peer that nothing more must be added.
    pub(super) fn is_overfull(&self, to: usize) -> bool {
        let outbox = &self.outboxes[to];
        let full = outbox.size.bytes;
        outbox.bytes >= full.max(SLACK_BYTES).min(2 * full)
    }

    /// Whether nothing is dealt to this peer.
    pub(super) fn is_empty(&self, to: usize) -> bool {
        self.outboxes[to].parts.is_empty()
    }

    /// The size of batches for this peer.
    pub(super) fn size(&mut self, to: usize) -> &mut BatchSize {
        &mut self.outboxes[to].size
    }

    /// The size of batches for this peer, in bytes.
    pub(super) fn batch_bytes(&self, to: usize) -> usize {
        self.outboxes[to].size.bytes
    }

    /// Bytes of rows that wait to be sent.
    pub(super) fn bytes(&self) -> usize {
        self.outboxes.iter().map(|outbox| outbox.bytes).sum()
    }

    /// A frame for a peer, and how many rows are in it: of the state that has most, where the outbox is full, or all.
    pub(super) fn cut(&mut self, to: usize, query: u64) -> (Vec<u8>, u64) {
        let full = self.is_full(to);
        let outbox = &mut self.outboxes[to];
        let parts = if full {
            outbox.take_largest().into_iter().collect()
        } else {
            std::mem::take(&mut outbox.parts)
        };
        let mut frame = Batches::new(query);
        let mut sent = 0;
        for (state, rows) in &parts {
            outbox.bytes -= rows.bytes();
            sent += rows.len as u64;
            let (state, stats) = &mut self.states[*state];
            stats.rows += rows.len as u64;
            stats.batches += 1;
            stats.bytes += frame.add(state, rows) as u64;
        }
        (frame.finish(), sent)
    }

    /// What was sent, by state.
    pub(super) fn states(&self) -> &[(Vec<u8>, StateStats)] {
        &self.states
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(len: usize) -> Rows {
        Rows {
            len,
            columns: vec![(0..len as u64).collect(); 2],
        }
    }

    #[test]
    fn a_size_adapts_within_its_bounds_unless_it_is_fixed() {
        let mut size = BatchSize::new(0);
        assert_eq!(size.bytes, FIRST_BATCH_BYTES);
        (0..20).for_each(|_| size.grow());
        assert_eq!(size.bytes, MAX_ADAPTED_BYTES);
        (0..20).for_each(|_| size.shrink());
        assert_eq!(size.bytes, MIN_BATCH_BYTES);
        let mut size = BatchSize::new(1000);
        size.grow();
        size.shrink();
        assert_eq!(size.bytes, 1000);
        assert_eq!(BatchSize::new(usize::MAX).bytes, MAX_BATCH_BYTES);
    }

    #[test]
    fn a_full_outbox_sends_the_state_with_most_rows_and_another_all() {
        let mut dealt = Dealt::new(0, 2, 16 * 100);
        dealt.add(1, b"few", rows(30));
        dealt.add(1, b"many", rows(60));
        assert!(!dealt.is_full(1));
        assert_eq!(dealt.cut(1, 1).1, 90);
        assert!(dealt.is_empty(1));
        dealt.add(1, b"few", rows(30));
        dealt.add(1, b"many", rows(60));
        dealt.add_chosen(1, b"many", &[&[7], &[8]], &[0; 15]);
        assert!(dealt.is_full(1) && !dealt.is_overfull(1));
        assert_eq!(dealt.cut(1, 1).1, 75);
        assert_eq!(dealt.bytes(), 30 * 16);
        assert_eq!(dealt.cut(1, 1).1, 30);
        assert!(dealt.is_empty(1));
        assert_eq!(dealt.bytes(), 0);
    }

    #[test]
    fn what_is_dealt_at_once_is_sent_in_batches() {
        let mut dealt = Dealt::new(0, 2, 16 * 100);
        dealt.add(1, b"", rows(205));
        assert!(dealt.is_overfull(1));
        assert_eq!([(); 3].map(|()| dealt.cut(1, 1).1), [100, 100, 5]);
        assert!(dealt.is_empty(1));
    }
}
