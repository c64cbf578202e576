//! Loose scans over shards: each shard has its groups in order, and those of equal keys are put together.

use crate::message::{Kind, VERSION};
use crate::wire::{Damaged, Reader, Result, Writer};
use pgquad_btree::{cmp, Filter, Groups, Key};
use std::collections::BTreeMap;

/// Groups of one shard, or of all shards of another node, ascending.
pub trait GroupSource {
    /// Begins to fetch the next groups, about `enough` of them; does not wait.
    fn ask(&mut self, enough: usize);

    /// The groups that were asked for; none at the end.
    fn take(&mut self, groups: &mut Groups);
}

/// Groups that a source is asked for at least.
const MIN_GROUPS: usize = 16;

struct Stream<S> {
    source: S,
    batch: Groups,
    at: usize,
    /// The group that comes next; none where groups have to be fetched, or at the end.
    head: Option<Key>,
    done: bool,
}

impl<S: GroupSource> Stream<S> {
    fn fetch(&mut self) {
        self.source.take(&mut self.batch);
        self.at = 0;
        self.done = self.batch.is_empty();
        self.head = (!self.done).then(|| self.batch.key(0));
    }

    /// The number of keys of the next group, which the stream goes beyond.
    fn pass(&mut self) -> u64 {
        let count = self.batch.counts[self.at];
        self.at += 1;
        self.head = (self.at < self.batch.len()).then(|| self.batch.key(self.at));
        count
    }

    /// Whether groups have to be fetched before it is known what comes next.
    fn is_empty(&self) -> bool {
        self.head.is_none() && !self.done
    }
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
            head: None,
            done: false,
        };
        Self {
            streams: sources.into_iter().map(stream).collect(),
            depth,
        }
    }

    /// The next groups, `enough` of them; fewer at the end, and false where there are none.
    pub fn next_batch(&mut self, enough: usize, groups: &mut Groups) -> bool {
        groups.clear(self.depth);
        let mut short = true;
        while groups.len() < enough.max(1) {
            if short {
                self.refill(enough);
            }
            let heads = self.streams.iter().filter_map(|s| s.head.as_ref());
            let Some(&least) = heads.min_by(|a, b| cmp(a, b)) else {
                break;
            };
            let mut count = 0;
            short = false;
            for stream in &mut self.streams {
                if stream.head == Some(least) {
                    count += stream.pass();
                    short |= stream.is_empty();
                }
            }
            groups.push(&least, count);
        }
        !groups.is_empty()
    }

    /// Fetches groups for the streams that have none left, from all of them at the same time. Each is asked for its
    /// share of those that are wanted: what it reads beyond what is taken is read in vain.
    fn refill(&mut self, enough: usize) {
        let live = self.streams.iter().filter(|s| !s.done).count();
        let share = enough.div_ceil(live.max(1)).max(MIN_GROUPS);
        let empty = self.streams.iter_mut().filter(|s| s.is_empty());
        empty.for_each(|stream| stream.source.ask(share));
        let empty = self.streams.iter_mut().filter(|s| s.is_empty());
        empty.for_each(Stream::fetch);
    }
}

fn write_range(writer: &mut Writer, (low, high): &(Key, Key)) {
    low.iter().chain(high).for_each(|&value| writer.u64(value));
}

fn read_range(reader: &mut Reader<'_>) -> Result<(Key, Key)> {
    let mut range = ([0; 4], [0; 4]);
    for value in range.0.iter_mut().chain(&mut range.1) {
        *value = reader.u64()?;
    }
    Ok(range)
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
    /// So many groups are wanted; fewer say that these are all.
    pub enough: u32,
    /// The range, both bounds included.
    pub range: (Key, Key),
    /// Conditions on columns of the key.
    pub filters: Vec<Filter>,
    /// Citus' numbers of the shards.
    pub shards: Vec<u64>,
}

impl GroupRequest {
    /// The message that asks for the groups.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        self.encode_as(Kind::Groups)
    }

    /// The message that asks how many groups there are, and how many keys they have. The number of keys means nothing
    /// where they are not counted; nor does `enough`.
    #[must_use]
    pub fn encode_counting(&self) -> Vec<u8> {
        self.encode_as(Kind::CountGroups)
    }

    fn encode_as(&self, kind: Kind) -> Vec<u8> {
        let mut writer = crate::message::request(kind);
        writer.u8(self.order);
        writer.u8(self.depth);
        writer.u8(u8::from(self.counting));
        writer.u32(self.enough);
        write_range(&mut writer, &self.range);
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
        request.range = read_range(reader)?;
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

/// Asks for the values of a key column that an order does not have together, with numbers of keys: the smallest of
/// them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValuesRequest {
    /// Number of the order in the shards.
    pub order: u8,
    /// The column of the key.
    pub column: u8,
    /// At most so many values are wanted; fewer say that these are all.
    pub most: u32,
    /// Values above this one only.
    pub after: Option<u64>,
    /// The range of keys, both bounds included.
    pub range: (Key, Key),
    /// Conditions on columns of the key.
    pub filters: Vec<Filter>,
    /// Citus' numbers of the shards.
    pub shards: Vec<u64>,
}

impl ValuesRequest {
    /// The message.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut writer = crate::message::request(Kind::Values);
        writer.u8(self.order);
        writer.u8(self.column);
        writer.u32(self.most);
        writer.u8(u8::from(self.after.is_some()));
        writer.u64(self.after.unwrap_or(0));
        write_range(&mut writer, &self.range);
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
        let (order, column, most) = (reader.u8()?, reader.u8()?, reader.u32()?);
        let (has_after, after) = (reader.u8()? != 0, reader.u64()?);
        let range = read_range(reader)?;
        let filters = crate::message::read_filters(reader)?;
        let count = reader.count(8)?;
        let shards = (0..count).map(|_| reader.u64()).collect::<Result<_>>()?;
        reader.end()?;
        if column > 3 || most == 0 || most as usize > crate::message::MAX_ROWS {
            return Err(Damaged);
        }
        Ok(Self {
            order,
            column,
            most,
            after: has_after.then_some(after),
            range,
            filters,
            shards,
        })
    }
}

/// Values with numbers of keys, of which the smallest are kept: each with all of its keys, however many others come
/// between them.
pub struct Smallest {
    most: usize,
    after: Option<u64>,
    counts: BTreeMap<u64, u64>,
    /// The smallest value that there was no room for.
    dropped: Option<u64>,
}

impl Smallest {
    /// Keeps at most `most` values above `after`.
    #[must_use]
    pub fn new(most: usize, after: Option<u64>) -> Self {
        Self {
            most: most.max(1),
            after,
            counts: BTreeMap::new(),
            dropped: None,
        }
    }

    /// Adds keys with a value.
    pub fn add(&mut self, value: u64, keys: u64) {
        let is_wanted = self.after.is_none_or(|after| value > after)
            && self.dropped.is_none_or(|dropped| value < dropped);
        if !is_wanted {
            return;
        }
        *self.counts.entry(value).or_insert(0) += keys;
        if self.counts.len() > self.most {
            self.dropped = self.counts.pop_last().map(|(value, _)| value);
        }
    }

    /// The values, ascending, as groups of one column.
    #[must_use]
    pub fn into_groups(self) -> Groups {
        let mut groups = Groups::default();
        groups.clear(1);
        for (value, keys) in self.counts {
            groups.push(&[value, 0, 0, 0], keys);
        }
        groups
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
    reader.column(&mut groups.counts, crate::message::MAX_ROWS)?;
    for column in &mut groups.columns[..depth] {
        reader.column(column, crate::message::MAX_ROWS)?;
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

        /// All values come, a few at a time, each once and with all of its keys.
        #[test]
        fn values_are_complete(pairs in prop::collection::vec((0u64..20, 1u64..4), 0..60), most in 1u32..7) {
            let mut expected: BTreeMap<u64, u64> = BTreeMap::new();
            pairs.iter().for_each(|(value, keys)| *expected.entry(*value).or_insert(0) += keys);
            let mut request = ValuesRequest {
                order: 1, column: 3, most, after: None, range: ([0; 4], [u64::MAX; 4]), filters: Vec::new(), shards: vec![7, 9],
            };
            let mut found = Vec::new();
            loop {
                let message = request.encode();
                let mut reader = Reader::new(&message);
                reader.u8().unwrap();
                reader.u8().unwrap();
                prop_assert_eq!(&ValuesRequest::decode(&mut reader).unwrap(), &request);
                let mut smallest = Smallest::new(most as usize, request.after);
                pairs.iter().for_each(|(value, keys)| smallest.add(*value, *keys));
                let groups = smallest.into_groups();
                found.extend((0..groups.len()).map(|i| (groups.key(i)[0], groups.counts[i])));
                if groups.len() < most as usize {
                    break;
                }
                request.after = found.last().map(|last| last.0);
            }
            prop_assert_eq!(found, expected.into_iter().collect::<Vec<_>>());
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
