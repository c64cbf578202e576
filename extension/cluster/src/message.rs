//! The messages about quads: what is asked of a node, and what it answers.
//!
//! Every message starts with the version of the format, so that a node of another version is refused by name; a request
//! then says its kind. Shards go by Citus' numbers. Keys are in the column order of the shards' own trees.

use crate::wire::{Damaged, Reader, Result, Writer};
use pgquad_btree::{Batch, Filter, Key, Span, ALL_COLUMNS, COUNTS, KEY_MAX, KEY_MIN};

/// Version of all message formats. A change of any of them is a new version.
pub const VERSION: u8 = 14;

/// Most rows that one answer may have; a reader believes no more.
pub const MAX_ROWS: usize = 1 << 22;

/// Most keys of a range that is read ahead: what a message costs (80 us, on loopback) is the reading of some hundred
/// keys.
pub const KEYS_AHEAD: usize = 64;

/// Instead of the number of keys of a range that cannot be read ahead.
pub const NOT_READABLE: u64 = u64::MAX;

/// Most ranges that one shard may be asked for (64 MB); the arms of a star have fewer for the largest batch.
pub const MAX_RANGES: usize = 1 << 20;

/// What a request is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Kind {
    /// [`Read`].
    Read = 1,
    /// [`Count`]: estimates.
    Estimate = 2,
    /// [`Count`]: visible quads.
    CountVisible = 3,
    /// [`crate::groups::GroupRequest`].
    Groups = 4,
    /// [`crate::groups::ValuesRequest`].
    Values = 5,
    /// [`crate::moves::TakeShard`].
    TakeShard = 6,
    /// Nothing more; the answer is the name of the snapshot under which the session reads.
    ExportSnapshot = 7,
    /// The name of the snapshot under which the messages that follow are to be answered. It has no answer.
    ImportSnapshot = 8,
    /// The end of the transaction of the messages before. It has no answer.
    EndTransaction = 9,
    /// [`crate::groups::GroupRequest`], of which only the number of groups and that of their keys are wanted.
    CountGroups = 10,
    /// Ids of terms, terms of ids: see the dictionary.
    Dictionary = 16,
}

impl Kind {
    /// The kind with this number.
    #[must_use]
    pub fn from_number(number: u8) -> Option<Self> {
        [
            Self::Read,
            Self::Estimate,
            Self::CountVisible,
            Self::Groups,
            Self::Values,
            Self::TakeShard,
            Self::ExportSnapshot,
            Self::ImportSnapshot,
            Self::EndTransaction,
            Self::CountGroups,
            Self::Dictionary,
        ]
        .into_iter()
        .find(|kind| *kind as u8 == number)
    }

    /// Whether its messages carry keys, quads, groups or terms; the others ask for numbers only.
    #[must_use]
    pub fn is_batch(self) -> bool {
        matches!(
            self,
            Self::Read | Self::Groups | Self::Values | Self::Dictionary
        )
    }
}

/// The kind of an encoded request.
#[must_use]
pub fn kind_of(request: &[u8]) -> Option<Kind> {
    Kind::from_number(*request.get(1)?)
}

/// The start of a request.
#[must_use]
pub fn request(kind: Kind) -> Writer {
    let mut writer = Writer::new();
    writer.u8(VERSION);
    writer.u8(kind as u8);
    writer
}

/// Ranges of one shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Citus' number of the shard.
    pub shard: u64,
    /// The ranges, both bounds included.
    pub ranges: Vec<(Key, Key)>,
}

/// Asks for the quads of ranges.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Read {
    /// The number of the order in the shards.
    pub order: u8,
    /// Columns of the key that are wanted (bit `i` = column `i`), perhaps with [`COUNTS`].
    pub mask: u8,
    /// So many ranges in a row are a group ([`pgquad_btree::Probe::grouped`]); 1 where there are no groups.
    pub size: u32,
    /// Ranges of a group without which the others are not asked for.
    pub required: u64,
    /// So many rows end the answer even within a group; 0: it may end anywhere.
    pub most: u32,
    /// About so many rows are wanted at once.
    pub enough: u32,
    /// The ranges, shard by shard.
    pub parts: Vec<Part>,
    /// Ranges that will be asked for soon, shard by shard, with the number of the order in the shard.
    pub ahead: Vec<(u8, Part)>,
}

/// Where an answer stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stop {
    /// The part of the request.
    pub part: u32,
    /// The range of the part that comes next.
    pub next: u32,
    /// The key from which that range is read on, where it has been read in part.
    pub resume: Option<Key>,
    /// Within a group.
    pub begun: bool,
}

/// Quads of some of the ranges that a [`Read`] asked for.
#[derive(Clone, Debug, Default)]
pub struct Rows {
    /// The quads.
    pub batch: Batch,
    /// Which range they are of; ranges are numbered through all parts of the request.
    pub spans: Vec<Span>,
    /// Where to go on; `None` at the end.
    pub stop: Option<Stop>,
    /// What has been read ahead.
    pub ahead: Found,
}

fn write_ranges(writer: &mut Writer, ranges: &[(Key, Key)]) {
    writer.u32(ranges.len() as u32);
    let bound = ranges.first().map_or(0, bound_columns);
    let prefixes = bound <= 4 && ranges.iter().all(|range| bound_columns(range) == bound);
    writer.u8(if prefixes { bound as u8 } else { FULL });
    let mut column = |value: &dyn Fn(&(Key, Key)) -> u64| {
        let values: Vec<u64> = ranges.iter().map(value).collect();
        writer.column(&values);
    };
    let places = if prefixes { bound } else { 4 };
    for place in 0..places {
        column(&|range| range.0[place]);
    }
    if !prefixes {
        for place in 0..4 {
            column(&|range| range.1[place]);
        }
    }
}

/// Instead of a number of bound columns: both keys of each range follow.
const FULL: u8 = 5;

/// The number of leading columns that have one value in a range which has all values in the others; [`FULL`] for other
/// ranges.
fn bound_columns((low, high): &(Key, Key)) -> usize {
    let bound = (0..4).take_while(|&c| low[c] == high[c]).count();
    let open = low[bound..] == KEY_MIN[bound..] && high[bound..] == KEY_MAX[bound..];
    if open {
        bound
    } else {
        usize::from(FULL)
    }
}

fn read_ranges(reader: &mut Reader<'_>) -> Result<Vec<(Key, Key)>> {
    let count = reader.u32()? as usize;
    if count > MAX_RANGES {
        return Err(Damaged);
    }
    let bound = reader.u8()?;
    let full = bound == FULL;
    if bound > FULL {
        return Err(Damaged);
    }
    let mut ranges = vec![(KEY_MIN, KEY_MAX); count];
    let mut values = Vec::new();
    let mut column = |ranges: &mut [(Key, Key)], set: &dyn Fn(&mut (Key, Key), u64)| {
        values.clear();
        reader.column(&mut values, count)?;
        if values.len() != count {
            return Err(Damaged);
        }
        for (range, &value) in ranges.iter_mut().zip(&values) {
            set(range, value);
        }
        Ok(())
    };
    for place in 0..if full { 4 } else { usize::from(bound) } {
        column(&mut ranges, &|range, value| {
            range.0[place] = value;
            if !full {
                range.1[place] = value;
            }
        })?;
    }
    if full {
        for place in 0..4 {
            column(&mut ranges, &|range, value| range.1[place] = value)?;
        }
    }
    Ok(ranges)
}

fn write_ordered_parts(writer: &mut Writer, parts: &[(u8, Part)]) {
    writer.u32(parts.len() as u32);
    for (order, part) in parts {
        writer.u8(*order);
        writer.u64(part.shard);
        write_ranges(writer, &part.ranges);
    }
}

fn read_ordered_parts(reader: &mut Reader<'_>) -> Result<Vec<(u8, Part)>> {
    let mut parts = Vec::new();
    // A part has at least its order, its shard, a number of ranges and their form.
    for _ in 0..reader.count(14)? {
        let order = reader.u8()?;
        let shard = reader.u64()?;
        let ranges = read_ranges(reader)?;
        parts.push((order, Part { shard, ranges }));
    }
    Ok(parts)
}

/// Answers to ranges that were read ahead, in the order in which they were asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// How many keys each range has. More than [`KEYS_AHEAD`]: about so many, and it was not read.
    pub counts: Vec<u64>,
    /// The keys of those that were, one after the other.
    pub keys: Vec<Key>,
}

impl Found {
    /// Reads the ranges of a request. `read` appends about so many keys of a range of the part with that place, or says
    /// that the part cannot be read. That is no reason to fail: nobody may come to need it. `count` says about how many
    /// keys a range has.
    pub fn of(
        parts: &[(u8, Part)],
        mut read: impl FnMut(usize, &(Key, Key), usize, &mut Batch) -> bool,
        count: impl Fn(usize, &(Key, Key)) -> u64,
    ) -> Self {
        let (mut found, mut batch) = (Self::default(), Batch::new());
        for (place, (_, part)) in parts.iter().enumerate() {
            for range in &part.ranges {
                batch.clear(ALL_COLUMNS);
                if !read(place, range, KEYS_AHEAD + 1, &mut batch) {
                    found.counts.push(NOT_READABLE);
                    continue;
                }
                if batch.len() <= KEYS_AHEAD {
                    found.counts.push(batch.len() as u64);
                    found.keys.extend((0..batch.len()).map(|n| batch.key(n)));
                    continue;
                }
                let about = count(place, range).min(NOT_READABLE - 1);
                found.counts.push(about.max(batch.len() as u64));
            }
        }
        found
    }
}

fn read_found(reader: &mut Reader<'_>) -> Result<Found> {
    let mut counts = Vec::new();
    reader.column(&mut counts, MAX_RANGES)?;
    let mut columns: [Vec<u64>; 4] = Default::default();
    for column in &mut columns {
        reader.column(column, MAX_ROWS)?;
    }
    let len = columns[0].len();
    if columns.iter().any(|column| column.len() != len) {
        return Err(Damaged);
    }
    let key = |n: usize| columns.each_ref().map(|column| column[n]);
    let keys = (0..len).map(key).collect();
    Ok(Found { counts, keys })
}

fn write_key(writer: &mut Writer, key: &Key) {
    key.iter().for_each(|&value| writer.u64(value));
}

fn read_key(reader: &mut Reader<'_>) -> Result<Key> {
    let mut key = KEY_MIN;
    for value in &mut key {
        *value = reader.u64()?;
    }
    Ok(key)
}

impl Read {
    /// The message.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        self.encode_with(&self.parts, &self.ahead)
    }

    /// The same with other parts.
    #[must_use]
    pub fn encode_with(&self, parts: &[Part], ahead: &[(u8, Part)]) -> Vec<u8> {
        let mut writer = request(Kind::Read);
        writer.u8(self.order);
        writer.u8(self.mask);
        writer.u32(self.size);
        writer.u64(self.required);
        writer.u32(self.most);
        writer.u32(self.enough);
        writer.u32(parts.len() as u32);
        for part in parts {
            writer.u64(part.shard);
            write_ranges(&mut writer, &part.ranges);
        }
        write_ordered_parts(&mut writer, ahead);
        writer.finish()
    }

    /// The request behind version and kind.
    ///
    /// # Errors
    /// The message is damaged.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Self> {
        let mut read = Self {
            order: reader.u8()?,
            mask: reader.u8()?,
            size: reader.u32()?,
            required: reader.u64()?,
            most: reader.u32()?,
            enough: reader.u32()?,
            ..Self::default()
        };
        // A part has at least its shard, a number of ranges and their form.
        for _ in 0..reader.count(13)? {
            let shard = reader.u64()?;
            let ranges = read_ranges(reader)?;
            read.parts.push(Part { shard, ranges });
        }
        read.ahead = read_ordered_parts(reader)?;
        reader.end()?;
        Ok(read)
    }
}

impl Rows {
    /// Bytes of memory that it takes, about.
    pub(crate) fn bytes(&self) -> usize {
        let columns = self.batch.columns.iter().map(Vec::len);
        let counts = self.batch.counts.len();
        8 * (columns.sum::<usize>() + counts)
            + size_of::<Span>() * self.spans.len()
            + size_of::<Self>()
    }

    /// The message.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::new();
        writer.u8(VERSION);
        match &self.stop {
            None => writer.u8(0),
            Some(stop) => {
                writer.u8(1 + u8::from(stop.begun) + 2 * u8::from(stop.resume.is_some()));
                writer.u32(stop.part);
                writer.u32(stop.next);
                if let Some(key) = &stop.resume {
                    write_key(&mut writer, key);
                }
            }
        }
        let spans = &self.spans;
        writer.column(&spans.iter().map(|s| u64::from(s.range)).collect::<Vec<_>>());
        writer.column(&spans.iter().map(|s| u64::from(s.end)).collect::<Vec<_>>());
        writer.u8(self.batch.mask());
        writer.u32(self.batch.len() as u32);
        for (c, column) in self.batch.columns.iter().enumerate() {
            if self.batch.mask() >> c & 1 != 0 {
                writer.column(column);
            }
        }
        if self.batch.mask() & COUNTS != 0 {
            writer.column(&self.batch.counts);
        }
        writer.column(&self.ahead.counts);
        for c in 0..4 {
            let column: Vec<u64> = self.ahead.keys.iter().map(|key| key[c]).collect();
            writer.column(&column);
        }
        writer.finish()
    }

    /// The answer in a message.
    ///
    /// # Errors
    /// The message is damaged.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let mut reader = Reader::new(bytes);
        if reader.u8()? != VERSION {
            return Err(Damaged);
        }
        let stop = match reader.u8()? {
            0 => None,
            bits @ 1..=4 => Some(Stop {
                begun: (bits - 1) & 1 != 0,
                part: reader.u32()?,
                next: reader.u32()?,
                resume: if (bits - 1) & 2 != 0 {
                    Some(read_key(&mut reader)?)
                } else {
                    None
                },
            }),
            _ => return Err(Damaged),
        };
        let (mut numbers, mut ends) = (Vec::new(), Vec::new());
        reader.column(&mut numbers, MAX_ROWS)?;
        reader.column(&mut ends, MAX_ROWS)?;
        let mask = reader.u8()?;
        let len = reader.u32()? as usize;
        let mut columns: [Vec<u64>; 4] = Default::default();
        for (c, column) in columns.iter_mut().enumerate() {
            if mask >> c & 1 != 0 {
                reader.column(column, MAX_ROWS)?;
                if column.len() != len {
                    return Err(Damaged);
                }
            }
        }
        let batch = match mask & COUNTS {
            0 => Batch::from_columns(mask, columns, len),
            _ => {
                let mut counts = Vec::new();
                reader.column(&mut counts, MAX_ROWS)?;
                if counts.len() != len {
                    return Err(Damaged);
                }
                Batch::from_counted(mask, columns, counts)
            }
        };
        let ahead = read_found(&mut reader)?;
        reader.end()?;
        let sound = numbers.len() == ends.len()
            && ends.is_sorted()
            && ends.last().map_or(len == 0, |&end| end == len as u64);
        if !sound {
            return Err(Damaged);
        }
        let span = |(&range, &end): (&u64, &u64)| Span {
            range: range as u32,
            end: end as u32,
        };
        Ok(Self {
            batch,
            spans: numbers.iter().zip(&ends).map(span).collect(),
            stop,
            ahead,
        })
    }
}

/// Conditions on columns of the key.
pub(crate) fn write_filters(writer: &mut Writer, filters: &[Filter]) {
    writer.u32(filters.len() as u32);
    for filter in filters {
        writer.u8(filter.column);
        writer.u64(filter.low);
        writer.u64(filter.high);
        writer.u8(u8::from(filter.outside));
    }
}

/// What [`write_filters`] wrote.
pub(crate) fn read_filters(reader: &mut Reader<'_>) -> Result<Vec<Filter>> {
    let mut filters = Vec::new();
    for _ in 0..reader.count(18)? {
        let column = reader.u8()?;
        if column > 3 {
            return Err(Damaged);
        }
        filters.push(Filter {
            column,
            low: reader.u64()?,
            high: reader.u64()?,
            outside: reader.u8()? != 0,
        });
    }
    Ok(filters)
}

/// Asks how many quads ranges have: a number for each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Count {
    /// Conditions on columns of the key; none for estimates.
    pub filters: Vec<Filter>,
    /// The ranges, shard by shard, with the number of the order in the shard.
    pub parts: Vec<(u8, Part)>,
}

impl Count {
    /// The message: for estimates, or of what is visible.
    #[must_use]
    pub fn encode(&self, kind: Kind) -> Vec<u8> {
        let mut writer = request(kind);
        write_filters(&mut writer, &self.filters);
        write_ordered_parts(&mut writer, &self.parts);
        writer.finish()
    }

    /// The request behind version and kind.
    ///
    /// # Errors
    /// The message is damaged.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Self> {
        let count = Self {
            filters: read_filters(reader)?,
            parts: read_ordered_parts(reader)?,
        };
        reader.end()?;
        Ok(count)
    }
}

/// An answer of numbers.
#[must_use]
pub fn encode_numbers(numbers: &[u64]) -> Vec<u8> {
    let mut writer = Writer::new();
    writer.u8(VERSION);
    writer.column(numbers);
    writer.finish()
}

/// What [`encode_numbers`] wrote, `count` of them.
///
/// # Errors
/// The message is damaged.
pub fn decode_numbers(bytes: &[u8], count: usize) -> Result<Vec<u64>> {
    let mut reader = Reader::new(bytes);
    if reader.u8()? != VERSION {
        return Err(Damaged);
    }
    let mut numbers = Vec::new();
    reader.column(&mut numbers, count)?;
    reader.end()?;
    if numbers.len() == count {
        Ok(numbers)
    } else {
        Err(Damaged)
    }
}
