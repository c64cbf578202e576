//! Loose scans over shards: each shard has its groups in order, and those of equal keys are put together.

use crate::message::{Kind, VERSION};
use crate::wire::{Damaged, Reader, Result, Writer};
use pgquad_btree::{Filter, Groups, Key};

/// Groups of one shard, or of all shards of another node, ascending.
pub trait GroupSource {
    /// Begins to fetch the next groups, about `enough` of them; does not wait.
    fn ask(&mut self, enough: usize);

    /// The groups that were asked for; none at the end.
    fn take(&mut self, groups: &mut Groups);
}

struct Stream<S> {
    source: S,
    batch: Groups,
    at: usize,
    done: bool,
}

/// The groups of several sources as one ascending sequence.
pub struct Merge<S> {
    streams: Vec<Stream<S>>,
    depth: usize,
}

impl<S: GroupSource> Merge<S> {
    /// Puts groups of so many columns together.
    #[must_use]
    pub fn new(sources: Vec<S>, depth: usize) -> Self {
        let stream = |source| Stream {
            source,
            batch: Groups::default(),
            at: 0,
            done: false,
        };
        Self {
            streams: sources.into_iter().map(stream).collect(),
            depth,
        }
    }

    /// The next groups, about `enough`; false at the end, with no groups.
    pub fn next_batch(&mut self, enough: usize, groups: &mut Groups) -> bool {
        groups.clear(self.depth);
        while groups.len() < enough.max(1) {
            self.refill(enough);
            let heads = self.streams.iter().filter(|s| !s.done);
            let Some(least) = heads.map(|s| s.batch.key(s.at)).min() else {
                break;
            };
            let mut count = 0;
            for stream in self.streams.iter_mut().filter(|s| !s.done) {
                if stream.batch.key(stream.at) == least {
                    count += stream.batch.counts[stream.at];
                    stream.at += 1;
                }
            }
            groups.push(&least, count);
        }
        !groups.is_empty()
    }

    /// Fetches groups for the streams that have none left, from all of them at the same time.
    fn refill(&mut self, enough: usize) {
        let is_empty = |s: &&mut Stream<S>| !s.done && s.at >= s.batch.len();
        let empty = self.streams.iter_mut().filter(is_empty);
        empty.for_each(|stream| stream.source.ask(enough));
        for stream in self.streams.iter_mut().filter(is_empty) {
            stream.source.take(&mut stream.batch);
            stream.at = 0;
            stream.done = stream.batch.is_empty();
        }
    }
}

/// Asks for the groups of a key range in shards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupRequest {
    /// Number of the order in the shards.
    pub order: u8,
    /// Columns that make the groups, from the first.
    pub depth: u8,
    /// Keys of groups are counted.
    pub counting: bool,
    /// About so many groups are wanted.
    pub enough: u32,
    /// The range, both bounds included.
    pub range: (Key, Key),
    /// Conditions on columns of the key.
    pub filters: Vec<Filter>,
    /// Citus' numbers of the shards.
    pub shards: Vec<u64>,
}

impl GroupRequest {
    /// The message.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut writer = crate::message::request(Kind::Groups);
        writer.u8(self.order);
        writer.u8(self.depth);
        writer.u8(u8::from(self.counting));
        writer.u32(self.enough);
        for value in self.range.0.iter().chain(&self.range.1) {
            writer.u64(*value);
        }
        crate::message::write_filters(&mut writer, &self.filters);
        writer.u32(self.shards.len() as u32);
        self.shards.iter().for_each(|&shard| writer.u64(shard));
        writer.finish()
    }

    /// The request behind version and kind.
    ///
    /// # Errors
    /// The message is damaged.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Self> {
        let mut request = Self {
            order: reader.u8()?,
            depth: reader.u8()?,
            counting: reader.u8()? != 0,
            enough: reader.u32()?,
            range: ([0; 4], [0; 4]),
            filters: Vec::new(),
            shards: Vec::new(),
        };
        let (low, high) = &mut request.range;
        for value in low.iter_mut().chain(high) {
            *value = reader.u64()?;
        }
        request.filters = crate::message::read_filters(reader)?;
        for _ in 0..reader.count(8)? {
            request.shards.push(reader.u64()?);
        }
        reader.end()?;
        if (1..=4).contains(&request.depth) {
            Ok(request)
        } else {
            Err(Damaged)
        }
    }

    /// The same request for what comes after a group; `None` where nothing can.
    #[must_use]
    pub fn after(mut self, group: &Key) -> Option<Self> {
        let depth = usize::from(self.depth);
        let mut next = *group;
        next[depth..].fill(0);
        let place = (0..depth).rev().find(|&c| next[c] < u64::MAX)?;
        next[place] += 1;
        next[place + 1..].fill(0);
        self.range.0 = next;
        (next <= self.range.1).then_some(self)
    }
}

/// An answer of groups.
#[must_use]
pub fn encode_groups(groups: &Groups, depth: usize) -> Vec<u8> {
    let mut writer = Writer::new();
    writer.u8(VERSION);
    writer.u8(depth as u8);
    writer.column(&groups.counts);
    groups.columns[..depth]
        .iter()
        .for_each(|column| writer.column(column));
    writer.finish()
}

/// What [`encode_groups`] wrote.
///
/// # Errors
/// The message is damaged.
pub fn decode_groups(bytes: &[u8], depth: usize, groups: &mut Groups) -> Result<()> {
    let mut reader = Reader::new(bytes);
    if reader.u8()? != VERSION || usize::from(reader.u8()?) != depth {
        return Err(Damaged);
    }
    groups.clear(depth);
    reader.column(&mut groups.counts, crate::message::MOST_ROWS)?;
    for column in &mut groups.columns[..depth] {
        reader.column(column, crate::message::MOST_ROWS)?;
        if column.len() != groups.counts.len() {
            return Err(Damaged);
        }
    }
    reader.end()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    /// Groups from a list, a few at a time.
    struct Listed {
        rest: Vec<(Key, u64)>,
        asked: usize,
    }

    impl GroupSource for Listed {
        fn ask(&mut self, enough: usize) {
            self.asked = enough;
        }

        fn take(&mut self, groups: &mut Groups) {
            groups.clear(2);
            for (key, count) in self.rest.drain(..self.asked.min(self.rest.len())) {
                groups.push(&key, count);
            }
        }
    }

    proptest! {
        /// Equal groups of several shards are one, and all come in order, through their messages.
        #[test]
        fn groups_are_put_together(
            shards in prop::collection::vec(prop::collection::btree_map((0u64..5, 0u64..5), 1u64..9, 0..12), 0..6),
            enough in 1usize..7,
        ) {
            let mut all: BTreeMap<Key, u64> = BTreeMap::new();
            let mut sources = Vec::new();
            for shard in shards {
                let rest: Vec<(Key, u64)> = shard.into_iter().map(|((a, b), n)| ([a, b, 0, 0], n)).collect();
                rest.iter().for_each(|(key, n)| *all.entry(*key).or_insert(0) += n);
                sources.push(Listed { rest, asked: 0 });
            }
            let mut merge = Merge::new(sources, 2);
            let (mut groups, mut found) = (Groups::default(), Vec::new());
            while merge.next_batch(enough, &mut groups) {
                let mut read = Groups::default();
                decode_groups(&encode_groups(&groups, 2), 2, &mut read).unwrap();
                found.extend((0..read.len()).map(|i| (read.key(i), read.counts[i])));
            }
            prop_assert_eq!(found, all.into_iter().collect::<Vec<_>>());
        }

        /// What comes after a group is the least key that is in no group so far.
        #[test]
        fn requests_go_on(group in prop::array::uniform4(prop_oneof![0u64..3, Just(u64::MAX)]), depth in 1u8..5) {
            let request = GroupRequest {
                order: 0, depth, counting: true, enough: 1, range: ([0; 4], [u64::MAX; 4]), filters: Vec::new(), shards: vec![7],
            };
            let places = usize::from(depth);
            match request.clone().after(&group) {
                Some(next) => {
                    prop_assert!(next.range.0[..places] > group[..places]);
                    let message = next.encode();
                    let mut reader = Reader::new(&message);
                    reader.u8().unwrap();
                    reader.u8().unwrap();
                    prop_assert_eq!(GroupRequest::decode(&mut reader).unwrap(), next);
                }
                None => prop_assert!(group[..places].iter().all(|&v| v == u64::MAX)),
            }
        }
    }
}
