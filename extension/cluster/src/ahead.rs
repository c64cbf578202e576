//! Read-ahead: ranges that will be asked for soon travel with a message that goes to their node anyway, or at the same
//! time. Later reads of them take no message. It spares round trips where a query goes from pattern to pattern with few
//! rows.
//!
//! What has been read ahead is kept with the transactions of the other nodes. So all of it is of the snapshot that a
//! message would see. It is a cache: a range that is not in it is asked for.

use crate::message::{Found, Part, Read, Rows, KEYS_AHEAD, NOT_READABLE};
use crate::placement::each_once;
use pgquad_btree::{Batch, Key, Span, KEY_MAX, KEY_MIN};
use rustc_hash::{FxHashMap, FxHashSet};

/// Ranges that wait to be read ahead at most: with one of 16 bytes each they make a message of 4 kB.
const MAX_WISHES: usize = 256;
/// Keys and ranges that are kept at most (256 kB to 1 MB): a query that finds more gains little by fewer messages.
const MAX_KEPT_ENTRIES: usize = 8192;
/// Most ranges of a request that is answered from what is kept.
const MAX_ANSWERED_RANGES: usize = 1024;

/// A range of a shard of another node that will be asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wish {
    /// What identifies the table of the shard.
    pub table: u32,
    /// Citus' number of the group of the node.
    pub group: i32,
    /// Citus' number of the shard.
    pub shard: u64,
    /// The number of the order in the shard.
    pub order: u8,
    /// The range, both bounds included: all keys with the values of its first columns.
    pub range: (Key, Key),
}

impl Wish {
    fn prefix(&self) -> Prefix {
        prefix(self.table, self.order, &self.range)
    }
}

/// Table, order, number of columns that have one value, and these.
type Prefix = (u32, u8, u8, Key);

/// The prefix that a range consists of, where it is one.
fn prefix(table: u32, order: u8, (low, high): &(Key, Key)) -> Prefix {
    let bound = (0..4).take_while(|&c| low[c] == high[c]).count();
    shortened(table, order, low, bound)
}

/// Whether a range has all keys with the values of its first columns.
fn is_prefix((low, high): &(Key, Key)) -> bool {
    let bound = (0..4).take_while(|&c| low[c] == high[c]).count();
    low[bound..] == KEY_MIN[bound..] && high[bound..] == KEY_MAX[bound..]
}

fn shortened(table: u32, order: u8, key: &Key, bound: usize) -> Prefix {
    let mut values = [0; 4];
    values[..bound].copy_from_slice(&key[..bound]);
    (table, order, bound as u8, values)
}

/// What is known of a range.
enum Kept {
    /// Its keys, ascending.
    Keys(Box<[Key]>),
    /// It has more keys than are read ahead: about so many.
    Many(u64),
    /// Nothing but that it cannot be read ahead.
    Nothing,
}

impl Kept {
    fn keys(mut keys: Vec<Key>) -> Self {
        keys.sort_unstable();
        Self::Keys(keys.into())
    }
}

/// Ranges of other nodes that are to be read ahead, and those that have been.
#[derive(Default)]
pub struct ReadAhead {
    wishes: Vec<Wish>,
    /// What they are for.
    wished: FxHashSet<Prefix>,
    kept: FxHashMap<Prefix, Kept>,
    /// How many columns have one value in some range there (bit `n` = `n` columns).
    bounds: u8,
    /// Keys and ranges in there.
    size: usize,
}

impl ReadAhead {
    /// Asks for a range with the next message, unless it is known; says whether it is asked for. An entry stands for
    /// all keys with the values of its first columns, so a range that has only some of these keys is not asked for.
    pub fn wish(&mut self, wish: Wish) -> bool {
        if !is_prefix(&wish.range) {
            return false;
        }
        let at = wish.prefix();
        let has_keys = || self.keys(wish.table, wish.order, &wish.range).is_some();
        if self.kept.contains_key(&at) || has_keys() {
            return false;
        }
        if self.wished.contains(&at) {
            return true;
        }
        let has_room = self.wishes.len() < MAX_WISHES;
        if has_room {
            self.wished.insert(at);
            self.wishes.push(wish);
        }
        has_room
    }

    /// Forgets what has not been asked for.
    pub fn forget_wishes(&mut self) {
        self.wishes.clear();
        self.wished.clear();
    }

    /// The groups of nodes that are to be asked for something.
    #[must_use]
    pub fn groups(&self) -> Vec<i32> {
        each_once(self.wishes.iter().map(|wish| wish.group))
    }

    /// What a node is to be asked for, shard by shard.
    pub fn take(&mut self, group: i32) -> Vec<Wish> {
        let (mut taken, left): (Vec<_>, Vec<_>) = std::mem::take(&mut self.wishes)
            .into_iter()
            .partition(|wish| wish.group == group);
        for wish in &taken {
            self.wished.remove(&wish.prefix());
        }
        self.wishes = left;
        taken.sort_by_key(|wish| (wish.shard, wish.order));
        taken
    }

    /// Keeps the answers to wishes; false where they do not fit together.
    #[must_use]
    pub fn keep(&mut self, wishes: &[Wish], found: &Found) -> bool {
        let read = |count: u64| usize::try_from(count).ok().filter(|&n| n <= KEYS_AHEAD);
        let all: usize = found.counts.iter().filter_map(|&count| read(count)).sum();
        if found.counts.len() != wishes.len() || all != found.keys.len() {
            return false;
        }
        self.make_room(all + wishes.len());
        let mut rest = &found.keys[..];
        for (wish, &count) in wishes.iter().zip(&found.counts) {
            let kept = match (read(count), count) {
                (Some(count), _) => {
                    let (keys, after) = rest.split_at(count);
                    rest = after;
                    Kept::keys(keys.to_vec())
                }
                (None, NOT_READABLE) => Kept::Nothing,
                (None, count) => Kept::Many(count),
            };
            self.insert(wish.prefix(), kept);
        }
        true
    }

    fn insert(&mut self, at: Prefix, kept: Kept) {
        self.size += 1 + match &kept {
            Kept::Keys(keys) => keys.len(),
            Kept::Many(_) | Kept::Nothing => 0,
        };
        self.bounds |= 1 << at.2;
        self.kept.insert(at, kept);
    }

    /// Keeps the keys of a range that were read on this node, in any order.
    pub fn keep_keys(&mut self, table: u32, order: u8, range: &(Key, Key), keys: Vec<Key>) {
        if is_prefix(range) {
            self.make_room(1 + keys.len());
            self.insert(prefix(table, order, range), Kept::keys(keys));
        }
    }

    /// Keeps that a range of this node has more keys than are read ahead: at least so many.
    pub fn keep_count(&mut self, table: u32, order: u8, range: &(Key, Key), count: u64) {
        if is_prefix(range) {
            self.make_room(1);
            self.insert(prefix(table, order, range), Kept::Many(count));
        }
    }

    fn make_room(&mut self, entries: usize) {
        if self.size + entries > MAX_KEPT_ENTRIES {
            self.kept.clear();
            (self.bounds, self.size) = (0, 0);
        }
    }

    /// About how many keys a range has, where that is known.
    #[must_use]
    pub fn count(&self, table: u32, order: u8, range: &(Key, Key)) -> Option<u64> {
        if self.kept.is_empty() {
            return None;
        }
        if let Some(keys) = self.keys(table, order, range) {
            return Some(keys.len() as u64);
        }
        match self.kept.get(&prefix(table, order, range)) {
            Some(Kept::Many(count)) if is_prefix(range) => Some(*count),
            _ => None,
        }
    }

    /// The keys of a range, where they are kept.
    #[must_use]
    pub fn keys(&self, table: u32, order: u8, range: &(Key, Key)) -> Option<&[Key]> {
        let (low, high) = range;
        let bound = prefix(table, order, range).2;
        let is_there = |bound: &usize| self.bounds >> bound & 1 == 1;
        let mut bounds = (1..=usize::from(bound)).rev().filter(is_there);
        bounds.find_map(|bound| {
            let at = shortened(table, order, low, bound);
            let Kept::Keys(keys) = self.kept.get(&at)? else {
                return None;
            };
            let from = keys.partition_point(|key| key < low);
            let to = keys.partition_point(|key| key <= high);
            Some(&keys[from..to])
        })
    }

    /// Whether all that a request asks for is among these wishes, or kept.
    #[must_use]
    pub fn covers(&self, table: u32, request: &Read, wishes: &[Wish]) -> bool {
        let mut ranges = request.parts.iter().flat_map(|part| &part.ranges);
        ranges.all(|range| {
            let is_wished = |wish: &Wish| {
                (wish.table, wish.order) == (table, request.order)
                    && wish.range.0 <= range.0
                    && range.1 <= wish.range.1
            };
            wishes.iter().any(is_wished) || self.keys(table, request.order, range).is_some()
        })
    }

    /// Whether the next messages will bring all that a request asks for, or it is kept.
    #[must_use]
    pub fn is_wished(&self, table: u32, request: &Read) -> bool {
        self.covers(table, request, &self.wishes)
    }

    /// The answer to a request from what is kept, where all of it is.
    #[must_use]
    pub fn answer(&self, table: u32, request: &Read) -> Option<Rows> {
        if self.kept.is_empty() {
            return None;
        }
        let ranges = request.parts.iter().map(|part| part.ranges.len());
        if ranges.sum::<usize>() > MAX_ANSWERED_RANGES {
            return None;
        }
        let size = request.size.max(1) as usize;
        let (mut rows, mut first) = (Rows::default(), 0);
        let mut columns: [Vec<u64>; 4] = Default::default();
        let mut len = 0;
        for part in &request.parts {
            let (mut left_out, mut of_group) = (0, 0);
            for (n, range) in part.ranges.iter().enumerate() {
                let keys = self.keys(table, request.order, range)?;
                if n % size == 0 {
                    (left_out, of_group) = (0, 0);
                }
                if n < left_out {
                    continue;
                }
                let place = n % size;
                if keys.is_empty() {
                    // As a probe does: without one that is required the rest of the group is not asked for.
                    if place < 64 && request.required >> place & 1 == 1 {
                        left_out = n - place + size;
                    }
                    continue;
                }
                of_group += keys.len();
                if request.most > 0 && of_group >= request.most as usize {
                    return None;
                }
                for (c, column) in columns.iter_mut().enumerate() {
                    if request.mask >> c & 1 != 0 {
                        column.extend(keys.iter().map(|key| key[c]));
                    }
                }
                len += keys.len();
                rows.spans.push(Span {
                    range: (first + n) as u32,
                    end: len as u32,
                });
            }
            first += part.ranges.len();
        }
        rows.batch = Batch::from_columns(request.mask, columns, len);
        Some(rows)
    }
}

/// Wishes as parts of a request, in their order.
#[must_use]
pub fn parts_of(wishes: &[Wish]) -> Vec<(u8, Part)> {
    let same = |a: &Wish, b: &Wish| (a.shard, a.order) == (b.shard, b.order);
    let part = |of_shard: &[Wish]| {
        let ranges = of_shard.iter().map(|wish| wish.range).collect();
        let shard = of_shard[0].shard;
        (of_shard[0].order, Part { shard, ranges })
    };
    wishes.chunk_by(same).map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pgquad_btree::ALL_COLUMNS;

    fn range(values: &[u64]) -> (Key, Key) {
        let (mut low, mut high) = (KEY_MIN, KEY_MAX);
        low[..values.len()].copy_from_slice(values);
        high[..values.len()].copy_from_slice(values);
        (low, high)
    }

    fn wish(shard: u64, values: &[u64]) -> Wish {
        Wish {
            table: 7,
            group: 1,
            shard,
            order: 0,
            range: range(values),
        }
    }

    fn request(size: u32, required: u64, ranges: &[&[u64]]) -> Read {
        Read {
            mask: 0b0100,
            size,
            required,
            most: if size > 1 { 100 } else { 0 },
            enough: 100,
            parts: vec![Part {
                shard: 5,
                ranges: ranges.iter().map(|values| range(values)).collect(),
            }],
            ..Read::default()
        }
    }

    /// Subject 1 with predicates 10 (objects 3, 4) and 11 (none), subject 2 with predicate 10 (object 9).
    fn known() -> ReadAhead {
        let mut ahead = ReadAhead::default();
        let wishes = [wish(5, &[1, 10]), wish(5, &[1, 11]), wish(5, &[2, 10])];
        assert!(wishes.iter().all(|wish| ahead.wish(wish.clone())));
        // Once is enough.
        assert!(ahead.wish(wishes[0].clone()));
        assert_eq!(ahead.groups(), [1]);
        let taken = ahead.take(1);
        assert_eq!(taken, wishes);
        let found = Found {
            counts: vec![2, 0, 1],
            keys: vec![[1, 10, 3, 0], [1, 10, 4, 0], [2, 10, 9, 0]],
        };
        assert!(ahead.keep(&taken, &found));
        ahead
    }

    /// An entry for subject 1 has all of its quads. So a range with some of them does not stand for it.
    #[test]
    fn parts_of_prefixes_are_not_asked_for() {
        let mut ahead = ReadAhead::default();
        let mut some = wish(5, &[1]);
        some.range.1[1] = 10;
        ahead.wish(some.clone());
        (some.range.0[1], some.range.1[1]) = (10, KEY_MAX[1]);
        ahead.wish(some);
        assert!(ahead.groups().is_empty());
        ahead.wish(wish(5, &[1]));
        assert_eq!(ahead.groups(), [1]);
    }

    #[test]
    fn what_is_kept_answers() {
        let ahead = known();
        let rows = ahead
            .answer(7, &request(1, 0, &[&[1, 10], &[1, 11], &[2, 10]]))
            .unwrap();
        assert_eq!(rows.batch.columns[2], [3, 4, 9]);
        let spans: Vec<(u32, u32)> = rows.spans.iter().map(|s| (s.range, s.end)).collect();
        assert_eq!(spans, [(0, 2), (2, 3)]);
        assert!(rows.stop.is_none());
        // A part of a range that is kept; the same of another table, and more than is kept.
        let part = ahead.answer(7, &request(1, 0, &[&[1, 10, 4]])).unwrap();
        assert_eq!(part.batch.columns[2], [4]);
        assert!(ahead.answer(8, &request(1, 0, &[&[1, 10]])).is_none());
        assert!(ahead.answer(7, &request(1, 0, &[&[1]])).is_none());
        assert!(ahead
            .answer(7, &request(1, 0, &[&[1, 10], &[3, 10]]))
            .is_none());
    }

    #[test]
    fn groups_end_at_a_required_range_without_keys() {
        let groups = request(2, 0b01, &[&[1, 11], &[1, 10], &[2, 10], &[1, 11]]);
        let rows = known().answer(7, &groups).unwrap();
        let spans: Vec<(u32, u32)> = rows.spans.iter().map(|s| (s.range, s.end)).collect();
        assert_eq!(spans, [(2, 1)]);
    }

    #[test]
    fn large_ranges_are_asked_for() {
        let mut ahead = ReadAhead::default();
        let large = wish(5, &[1, 10]);
        let found = Found {
            counts: vec![KEYS_AHEAD as u64 + 1],
            keys: Vec::new(),
        };
        assert!(ahead.keep(std::slice::from_ref(&large), &found));
        assert!(ahead.answer(7, &request(1, 0, &[&[1, 10]])).is_none());
        // It is not asked for ahead again.
        assert!(!ahead.wish(large));
        assert!(ahead.groups().is_empty());
    }

    #[test]
    fn sizes_of_ranges_are_known() {
        let mut ahead = known();
        let count = |ahead: &ReadAhead, values: &[u64]| ahead.count(7, 0, &range(values));
        assert_eq!(count(&ahead, &[1, 10]), Some(2));
        assert_eq!(count(&ahead, &[1, 10, 4]), Some(1));
        assert_eq!(count(&ahead, &[1, 11]), Some(0));
        assert_eq!(count(&ahead, &[1]), None);
        assert_eq!(ahead.count(8, 0, &range(&[1, 10])), None);
        let wishes = [wish(5, &[3]), wish(5, &[4])];
        let found = Found {
            counts: vec![5000, NOT_READABLE],
            keys: Vec::new(),
        };
        assert!(ahead.keep(&wishes, &found));
        assert_eq!(count(&ahead, &[3]), Some(5000));
        // Of its parts nothing is known, nor of what could not be read.
        assert_eq!(count(&ahead, &[3, 10]), None);
        assert_eq!(count(&ahead, &[4]), None);
        ahead.keep_keys(7, 0, &range(&[9, 1]), vec![[9, 1, 7, 0], [9, 1, 5, 0]]);
        let kept = ahead.keys(7, 0, &range(&[9, 1]));
        assert_eq!(kept, Some(&[[9, 1, 5, 0], [9, 1, 7, 0]][..]));
    }

    #[test]
    fn answers_that_do_not_fit_are_refused() {
        let found = Found {
            counts: vec![1],
            keys: vec![[1, 10, 3, 0]],
        };
        let mut ahead = ReadAhead::default();
        assert!(!ahead.keep(&[], &found));
        let two = [wish(5, &[1, 10]), wish(5, &[1, 11])];
        assert!(!ahead.keep(&two, &found));
        let missing = Found {
            counts: vec![2],
            ..found
        };
        assert!(!ahead.keep(&two[..1], &missing));
    }

    #[test]
    fn wishes_cover_requests() {
        let ahead = known();
        let wishes = [wish(5, &[3])];
        assert!(ahead.covers(7, &request(1, 0, &[&[3], &[3, 10], &[1, 10]]), &wishes));
        assert!(!ahead.covers(7, &request(1, 0, &[&[4]]), &wishes));
        assert!(!ahead.covers(8, &request(1, 0, &[&[3]]), &wishes));
    }

    #[test]
    fn ranges_are_read_up_to_the_limit_or_counted() {
        let wishes = [wish(5, &[1]), wish(5, &[2]), wish(6, &[3]), wish(7, &[4])];
        let parts = parts_of(&wishes);
        assert_eq!(parts.len(), 3);
        let read = |place: usize, range: &(Key, Key), enough: usize, batch: &mut Batch| {
            let keys = if range.0[0] == 2 { enough } else { place + 1 };
            let columns = [
                vec![range.0[0]; keys],
                vec![9; keys],
                vec![0; keys],
                vec![0; keys],
            ];
            batch.append(&Batch::from_columns(ALL_COLUMNS, columns, keys), 0..keys);
            range.0[0] != 4
        };
        let found = Found::of(&parts, read, |place, range| {
            assert_eq!((place, range.0[0]), (0, 2));
            700
        });
        assert_eq!(found.counts, [1, 700, 2, NOT_READABLE]);
        assert_eq!(found.keys.len(), 3);
    }
}
