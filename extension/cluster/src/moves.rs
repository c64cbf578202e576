//! The move of a shard: the node that gets it reads it from the node that has it, every order as one sorted run.

use std::collections::VecDeque;

use crate::message::{request, Kind, Part, Read, Rows};
use crate::wire::{Damaged, Reader, Result};
use pgquad_btree::{Key, Order, ALL_COLUMNS, KEY_MAX, KEY_MIN};

/// Quads in an answer: 64k take half a megabyte, and a message costs a thousandth of reading and building them.
const ANSWER_QUADS: u32 = 64 * 1024;

/// Tells a node to fill its relation of a shard from another node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TakeShard {
    /// Citus' number of the shard.
    pub shard: u64,
    /// Citus' number of the group of the node that has it.
    pub from: i32,
    /// Schema and name of the relation, which is empty.
    pub relation: [String; 2],
    /// The orders that it has there.
    pub orders: Vec<Order>,
}

impl TakeShard {
    /// The message.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut writer = request(Kind::TakeShard);
        writer.u64(self.shard);
        writer.u32(self.from as u32);
        for name in &self.relation {
            writer.bytes(name.as_bytes());
        }
        writer.u32(self.orders.len() as u32);
        for column in self.orders.iter().flat_map(Order::columns) {
            writer.u8(column);
        }
        writer.finish()
    }

    /// The request behind version and kind.
    ///
    /// # Errors
    /// The message is damaged.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Self> {
        let (shard, from) = (reader.u64()?, reader.u32()? as i32);
        let name = |reader: &mut Reader<'_>| {
            let text = std::str::from_utf8(reader.bytes()?).map_err(|_| Damaged)?;
            Ok(text.to_owned())
        };
        let relation = [name(reader)?, name(reader)?];
        let mut orders = Vec::new();
        for _ in 0..reader.count(4)? {
            let columns = [reader.u8()?, reader.u8()?, reader.u8()?, reader.u8()?];
            orders.push(Order::new(columns).map_err(|_| Damaged)?);
        }
        reader.end()?;
        Ok(Self {
            shard,
            from,
            relation,
            orders,
        })
    }
}

/// Reads all orders of a shard side by side. A session answers in the order of its requests. While the keys of one
/// order are built into their tree, the other node reads the keys of the other orders.
pub struct Runs {
    /// Requests that have been sent, the oldest first.
    waiting: VecDeque<Read>,
}

impl Runs {
    /// Begins; all of [`Self::requests`] are to be sent.
    #[must_use]
    pub fn new(shard: u64, orders: usize) -> Self {
        let read = |order| Read {
            order: order as u8,
            mask: ALL_COLUMNS,
            size: 1,
            enough: ANSWER_QUADS,
            parts: vec![Part {
                shard,
                ranges: vec![(KEY_MIN, KEY_MAX)],
            }],
            ..Read::default()
        };
        Self {
            waiting: (0..orders).map(read).collect(),
        }
    }

    /// The requests that have not been answered.
    pub fn requests(&self) -> impl Iterator<Item = &Read> {
        self.waiting.iter()
    }

    /// Whether all orders have been read.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Takes the next answer: the number of an order, its next keys, and the request that is to be sent now, if there
    /// is more of it.
    ///
    /// # Errors
    /// The answer is not one to the request.
    pub fn take(&mut self, rows: &Rows) -> Result<(usize, Vec<Key>, Option<&Read>)> {
        let mut read = self.waiting.pop_front().ok_or(Damaged)?;
        if rows.batch.mask() != ALL_COLUMNS {
            return Err(Damaged);
        }
        let order = usize::from(read.order);
        let keys = (0..rows.batch.len()).map(|i| rows.batch.key(i)).collect();
        let Some(stop) = &rows.stop else {
            return Ok((order, keys, None));
        };
        let range = read.parts.first_mut().and_then(|p| p.ranges.first_mut());
        let (Some(resume), Some(range)) = (stop.resume, range) else {
            return Err(Damaged);
        };
        range.0 = resume;
        self.waiting.push_back(read);
        Ok((order, keys, self.waiting.back()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Stop;
    use pgquad_btree::Batch;

    #[test]
    fn a_message() {
        let take = TakeShard {
            shard: 102_008,
            from: 2,
            relation: ["quad_shards".to_owned(), "films \"s\"_102008".to_owned()],
            orders: vec![Order::SPOG, Order::PSOG],
        };
        let message = take.encode();
        let read = |bytes: &[u8]| TakeShard::decode(&mut Reader::new(bytes.get(2..)?)).ok();
        assert_eq!(read(&message), Some(take));
        for length in 0..message.len() {
            assert_eq!(read(&message[..length]), None);
        }
        // No order has a column twice.
        let mut message = message;
        *message.last_mut().unwrap() = 0;
        assert_eq!(read(&message), None);
    }

    fn rows(keys: &[Key], resume: Option<Key>) -> Rows {
        let columns = std::array::from_fn(|c| keys.iter().map(|key| key[c]).collect());
        let stop = |key| Stop {
            part: 0,
            next: 0,
            resume: Some(key),
            begun: false,
        };
        Rows {
            batch: Batch::from_columns(ALL_COLUMNS, columns, keys.len()),
            spans: Vec::new(),
            stop: resume.map(stop),
            ..Rows::default()
        }
    }

    #[test]
    fn orders_are_read_side_by_side() {
        let mut runs = Runs::new(7, 2);
        assert_eq!(runs.requests().count(), 2);
        let (first, second) = ([1, 0, 0, 0], [2, 0, 0, 0]);
        let (order, keys, next) = runs.take(&rows(&[first], Some(second))).unwrap();
        assert_eq!((order, keys), (0, vec![first]));
        assert_eq!(next.unwrap().parts[0].ranges, [(second, KEY_MAX)]);
        let (order, _, next) = runs.take(&rows(&[second], None)).unwrap();
        assert!(order == 1 && next.is_none() && !runs.is_done());
        let (order, keys, next) = runs.take(&rows(&[second], None)).unwrap();
        assert!(order == 0 && keys == [second] && next.is_none() && runs.is_done());
        assert!(runs.take(&rows(&[], None)).is_err());
    }
}
