//! Which shards a read of key ranges concerns.

use crate::placement::Placement;
use pgquad_btree::{Key, SIGN};

/// The column of a table by which its rows are placed, seen from an order: for the order posg and a table that is distributed by object
/// it is column 1 of the key.
#[must_use]
pub fn key_column_place(columns: &[u8; 4], column: u8) -> usize {
    columns.iter().position(|&c| c == column).unwrap_or(0)
}

/// The shard that holds all quads of a range, where there is one: the range has one value in the column by which rows are placed
/// (column `place` of the key), and so in all before it.
#[inline]
#[must_use]
pub fn shard_of_range(placement: &Placement, place: usize, range: &(Key, Key)) -> Option<usize> {
    let (low, high) = range;
    (low[..=place] == high[..=place]).then(|| placement.shard_of((low[place] ^ SIGN) as i64))
}

/// Ranges that one shard is to be asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardRanges {
    /// The place of the shard in [`Placement::shards`].
    pub shard: usize,
    /// The ranges, in the order of the list that was dealt out.
    pub ranges: Vec<(Key, Key)>,
    /// The number of each in that list.
    pub numbers: Vec<u32>,
}

/// A list of ranges dealt out to shards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deal {
    /// The shards that are concerned, ascending.
    pub shards: Vec<ShardRanges>,
    /// Each group of ranges is with one shard as a whole.
    pub aligned: bool,
}

impl Deal {
    /// Deals out `ranges`, numbered from `first` on, of which each `size` in a row are a group. A range that may have quads in any
    /// shard goes to all of them.
    #[must_use]
    pub fn new(
        placement: &Placement,
        place: usize,
        ranges: &[(Key, Key)],
        first: usize,
        size: usize,
    ) -> Self {
        let count = placement.shards().len();
        let mut lists: Vec<Option<ShardRanges>> = vec![None; count];
        let mut add = |shard: usize, n: usize| {
            let list = lists[shard].get_or_insert_with(|| ShardRanges {
                shard,
                ranges: Vec::new(),
                numbers: Vec::new(),
            });
            list.ranges.push(ranges[n]);
            list.numbers.push((first + n) as u32);
        };
        let mut aligned = true;
        let mut of_group = None;
        for (n, range) in ranges.iter().enumerate() {
            let shard = shard_of_range(placement, place, range);
            match shard {
                Some(shard) => add(shard, n),
                None => (0..count).for_each(|shard| add(shard, n)),
            }
            if n.is_multiple_of(size) {
                of_group = shard;
            }
            aligned &= shard.is_some() && shard == of_group;
        }
        Self {
            shards: lists.into_iter().flatten().collect(),
            aligned: aligned || size == 1,
        }
    }
}
