//! What has come and waits for its turn: packed rows by state, in memory as long as there is room, then in a file.

use std::collections::VecDeque;

use super::rows::Rows;
use super::spill::{Packed, Run, SpillFile, Spilled};
use crate::wire::{Damaged, Reader};

/// Rows of one state.
struct Waiting {
    state: Vec<u8>,
    depth: u32,
    packed: VecDeque<Packed>,
    /// Bytes of `packed`.
    bytes: usize,
    runs: Vec<Run>,
    /// Rows that have been unpacked, from this number on.
    unpacked: Option<(Rows, usize)>,
}

impl Waiting {
    fn is_empty(&self) -> bool {
        self.packed.is_empty() && self.runs.is_empty() && self.unpacked.is_none()
    }
}

/// Rows whose turn it is.
pub struct Ready<'a> {
    /// How deep their state is.
    pub depth: u32,
    /// What is left to do for them.
    pub state: &'a [u8],
    /// The rows.
    pub rows: Rows,
}

/// All that waits. States stay when their rows are gone; there are few.
pub struct Inbox {
    waiting: Vec<Waiting>,
    bytes: usize,
    /// The most that `bytes` has been.
    most: usize,
    memory: usize,
    spill: Option<Spilled>,
}

impl Inbox {
    /// Nothing; up to `memory` bytes are held.
    pub fn new(memory: usize, file: Option<Box<dyn SpillFile>>) -> Self {
        Self {
            waiting: Vec::new(),
            bytes: 0,
            most: 0,
            memory,
            spill: file.map(Spilled::new),
        }
    }

    /// Bytes that were written to the file.
    pub fn spilled(&self) -> u64 {
        self.spill.as_ref().map_or(0, |spill| spill.bytes)
    }

    /// The most bytes that were held in memory.
    pub fn most(&self) -> usize {
        self.most
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.iter().all(Waiting::is_empty)
    }

    /// Adds packed rows; `depth` says how deep a state is.
    pub fn add(&mut self, from: usize, state: &[u8], bytes: &[u8], depth: impl Fn(&[u8]) -> u32) {
        let known = self.waiting.iter().position(|w| w.state == state);
        let at = known.unwrap_or_else(|| {
            self.waiting.push(Waiting {
                state: state.to_vec(),
                depth: depth(state),
                packed: VecDeque::new(),
                bytes: 0,
                runs: Vec::new(),
                unpacked: None,
            });
            self.waiting.len() - 1
        });
        let waiting = &mut self.waiting[at];
        waiting.bytes += bytes.len();
        self.bytes += bytes.len();
        let bytes = bytes.to_vec();
        waiting.packed.push_back(Packed { from, bytes });
        self.most = self.most.max(self.bytes);
        if self.bytes > self.memory {
            self.make_room();
        }
    }

    /// Writes the state that holds most to the file: it is not among those that are taken first, or not much waits.
    fn make_room(&mut self) {
        let Some(spill) = &mut self.spill else {
            return;
        };
        let Some(waiting) = self.waiting.iter_mut().max_by_key(|w| w.bytes) else {
            return;
        };
        let run = spill.write(std::mem::take(&mut waiting.packed).into_iter());
        waiting.runs.push(run);
        self.bytes -= waiting.bytes;
        waiting.bytes = 0;
    }

    /// Up to `most` rows of the deepest state that is deeper than `than`.
    ///
    /// # Errors
    /// What this participant has sent cannot be read.
    pub fn next(&mut self, than: Option<u32>, most: usize) -> Result<Option<Ready<'_>>, usize> {
        let all = self.waiting.iter_mut().filter(|w| !w.is_empty());
        let fit = all.filter(|w| than.is_none_or(|than| w.depth > than));
        let Some(waiting) = fit.max_by_key(|w| w.depth) else {
            return Ok(None);
        };
        let mut rows: Option<Rows> = None;
        while rows.as_ref().map_or(0, |rows| rows.len) < most {
            if waiting.unpacked.is_none() {
                let Some(packed) = waiting.next_packed(&mut self.spill, &mut self.bytes) else {
                    break;
                };
                let from = packed.from;
                waiting.unpacked = Some((unpack(&packed).map_err(|Damaged| from)?, 0));
                let columns = |rows: &Rows| rows.columns.len();
                let unpacked = waiting.unpacked.as_ref().map(|(rows, _)| columns(rows));
                if rows.is_some() && rows.as_ref().map(columns) != unpacked {
                    return Err(from);
                }
            }
            waiting.hand_out(&mut rows, most);
        }
        let (depth, state) = (waiting.depth, &waiting.state[..]);
        Ok(rows.map(|rows| Ready { depth, state, rows }))
    }
}

impl Waiting {
    fn next_packed(&mut self, spill: &mut Option<Spilled>, held: &mut usize) -> Option<Packed> {
        if let Some(packed) = self.packed.pop_front() {
            self.bytes -= packed.bytes.len();
            *held -= packed.bytes.len();
            return Some(packed);
        }
        let spill = spill.as_mut()?;
        while let Some(run) = self.runs.last_mut() {
            if let Some(packed) = spill.read(run) {
                return Some(packed);
            }
            self.runs.pop();
        }
        None
    }

    /// Moves unpacked rows behind those in `rows`, until there are `most`.
    fn hand_out(&mut self, rows: &mut Option<Rows>, most: usize) {
        let Some((unpacked, at)) = &mut self.unpacked else {
            return;
        };
        let room = most - rows.as_ref().map_or(0, |rows| rows.len);
        if *at == 0 && unpacked.len <= room && rows.is_none() {
            *rows = self.unpacked.take().map(|(unpacked, _)| unpacked);
            return;
        }
        let end = unpacked.len.min(*at + room);
        let rows = rows.get_or_insert_with(|| Rows::new(unpacked.columns.len()));
        rows.extend(unpacked, *at, end);
        *at = end;
        if end == unpacked.len {
            self.unpacked = None;
        }
    }
}

fn unpack(packed: &Packed) -> Result<Rows, Damaged> {
    let mut reader = Reader::new(&packed.bytes);
    let rows = Rows::read(&mut reader)?;
    reader.end()?;
    if rows.len == 0 {
        return Err(Damaged);
    }
    Ok(rows)
}
