//! Quads of a pattern in memory, found by the hash of some of their columns.

/// Quads that share their key stand side by side.
pub(crate) struct Table {
    /// By hash: number of a key plus one; 0 = free.
    heads: Vec<u32>,
    shift: u32,
    /// The distinct keys, column by column.
    keys: Vec<Vec<u64>>,
    /// First quad of each key, and the end; empty when each key has one quad.
    starts: Vec<u32>,
    /// What the quads hand on, column by column.
    values: Vec<Vec<u64>>,
    distinct: usize,
}

/// No key.
const NONE: u32 = u32::MAX;
/// Odd, with bits all over: the high bits of a product with it depend on all bits of the other factor.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
/// Places of an empty table, as a power of two.
const FIRST_BITS: u32 = 6;

#[inline]
fn mix(hash: u64, value: u64) -> u64 {
    (hash.rotate_left(29) ^ value).wrapping_mul(SPREAD)
}

impl Table {
    /// The key with these values.
    #[inline]
    fn find(&self, hash: u64, is_key: impl Fn(usize) -> bool) -> Result<u32, usize> {
        let mut place = (hash >> self.shift) as usize;
        loop {
            match self.heads[place] {
                0 => return Err(place),
                key if is_key(key as usize - 1) => return Ok(key - 1),
                _ => place = (place + 1) & (self.heads.len() - 1),
            }
        }
    }

    /// The key of each row of `columns` (as many as a key has), for [`Self::quads`].
    pub fn find_all(&self, columns: &[&[u64]], len: usize) -> Vec<u32> {
        match (columns, self.keys.as_slice()) {
            ([column], [keys]) => column
                .iter()
                .map(|&value| {
                    self.find(mix(0, value), |key| keys[key] == value)
                        .unwrap_or(NONE)
                })
                .collect(),
            _ => (0..len)
                .map(|row| {
                    let hash = columns.iter().fold(0, |hash, c| mix(hash, c[row]));
                    let is_key = |key: usize| {
                        columns
                            .iter()
                            .zip(&self.keys)
                            .all(|(c, k)| c[row] == k[key])
                    };
                    self.find(hash, is_key).unwrap_or(NONE)
                })
                .collect(),
        }
    }

    /// The quads of a key that [`Self::find_all`] has found.
    #[inline]
    pub fn quads(&self, key: u32) -> std::ops::Range<usize> {
        let at = key as usize;
        match (key, self.starts.is_empty()) {
            (NONE, _) => 0..0,
            (_, true) => at..at + 1,
            _ => self.starts[at] as usize..self.starts[at + 1] as usize,
        }
    }

    /// A column of what the quads hand on.
    pub fn values(&self, column: usize) -> &[u64] {
        &self.values[column]
    }

    /// Bytes it takes.
    pub fn bytes(&self) -> usize {
        let columns = self.keys.iter().chain(&self.values);
        8 * columns.map(Vec::len).sum::<usize>() + 4 * (self.heads.len() + self.starts.len())
    }
}

/// A table in the making.
pub(crate) struct Builder {
    table: Table,
    /// The key of each quad.
    owners: Vec<u32>,
    /// Quads came in the order of their keys so far.
    grouped: bool,
}

impl Builder {
    /// For keys and values of so many columns, and about so many quads.
    pub fn new(keys: usize, values: usize, expected: usize) -> Self {
        let columns = |n| (0..n).map(|_| Vec::with_capacity(expected)).collect();
        Self {
            table: Table {
                heads: vec![0; 1 << FIRST_BITS],
                shift: u64::BITS - FIRST_BITS,
                keys: columns(keys),
                starts: Vec::new(),
                values: columns(values),
                distinct: 0,
            },
            owners: Vec::with_capacity(expected),
            grouped: true,
        }
    }

    /// Puts quads in: `row` of each of the columns, where `accepted` says so.
    pub fn add(
        &mut self,
        keys: &[&[u64]],
        values: &[&[u64]],
        len: usize,
        accepted: impl Fn(usize) -> bool,
    ) {
        for row in (0..len).filter(|&row| accepted(row)) {
            let key = self.key(keys, row);
            self.grouped &= self.owners.last().is_none_or(|&last| last <= key);
            self.owners.push(key);
            for (column, from) in self.table.values.iter_mut().zip(values) {
                column.push(from[row]);
            }
        }
    }

    #[inline]
    fn key(&mut self, columns: &[&[u64]], row: usize) -> u32 {
        let table = &mut self.table;
        let hash = columns.iter().fold(0, |hash, c| mix(hash, c[row]));
        let is_key = |key: usize| {
            columns
                .iter()
                .zip(&table.keys)
                .all(|(c, k)| c[row] == k[key])
        };
        match table.find(hash, is_key) {
            Ok(key) => key,
            Err(place) => {
                for (column, from) in table.keys.iter_mut().zip(columns) {
                    column.push(from[row]);
                }
                table.distinct += 1;
                table.heads[place] = table.distinct as u32;
                let key = table.distinct as u32 - 1;
                if table.distinct * 4 > table.heads.len() * 3 {
                    self.grow();
                }
                key
            }
        }
    }

    fn grow(&mut self) {
        let table = &mut self.table;
        table.shift -= 1;
        let len = table.heads.len() * 2;
        table.heads.clear();
        table.heads.resize(len, 0);
        for key in 0..table.distinct {
            let hash = table.keys.iter().fold(0, |hash, c| mix(hash, c[key]));
            if let Err(place) = table.find(hash, |_| false) {
                table.heads[place] = key as u32 + 1;
            }
        }
    }

    /// Bytes it takes so far.
    pub fn bytes(&self) -> usize {
        self.table.bytes() + 4 * self.owners.len()
    }

    /// The table, with quads sorted by key.
    pub fn finish(mut self) -> Table {
        let table = &mut self.table;
        let len = self.owners.len();
        if table.distinct < len {
            let mut starts = vec![0u32; table.distinct + 1];
            for &key in &self.owners {
                starts[key as usize + 1] += 1;
            }
            for key in 0..table.distinct {
                starts[key + 1] += starts[key];
            }
            if !self.grouped {
                for column in &mut table.values {
                    let mut next = starts.clone();
                    let mut sorted = vec![0; len];
                    for (&key, &value) in self.owners.iter().zip(column.iter()) {
                        let place = &mut next[key as usize];
                        sorted[*place as usize] = value;
                        *place += 1;
                    }
                    *column = sorted;
                }
            }
            table.starts = starts;
        }
        let columns = table.keys.iter_mut().chain(&mut table.values);
        columns.for_each(Vec::shrink_to_fit);
        self.table
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn finds_all_quads_of_a_key(
            quads in prop::collection::vec((0u64..40, 0u64..4, any::<u64>()).prop_map(<[u64; 3]>::from), 0..300),
            keys in 1usize..3,
            sorted: bool,
        ) {
            let mut quads = quads;
            if sorted {
                quads.sort_unstable();
            }
            let column = |c: usize| quads.iter().map(|q| q[c]).collect::<Vec<_>>();
            let columns = [column(0), column(1), column(2)];
            let key_columns: Vec<&[u64]> = columns[..keys].iter().map(Vec::as_slice).collect();
            let mut builder = Builder::new(keys, 1, 100);
            let accepted = |row: usize| columns[2][row] & 7 != 0;
            builder.add(&key_columns, &[&columns[2]], quads.len(), accepted);
            let table = builder.finish();
            let asked: Vec<[u64; 2]> = (0..42).flat_map(|a| (0..5).map(move |b| [a, b])).collect();
            let asked_columns: Vec<Vec<u64>> = (0..keys).map(|c| asked.iter().map(|a| a[c]).collect()).collect();
            let slices: Vec<&[u64]> = asked_columns.iter().map(Vec::as_slice).collect();
            for (key, asked) in table.find_all(&slices, asked.len()).into_iter().zip(&asked) {
                let mut found: Vec<u64> = table.quads(key).map(|q| table.values(0)[q]).collect();
                let mut expected: Vec<u64> = quads
                    .iter()
                    .filter(|q| q[..keys] == asked[..keys] && q[2] & 7 != 0)
                    .map(|q| q[2])
                    .collect();
                found.sort_unstable();
                expected.sort_unstable();
                prop_assert_eq!(found, expected);
            }
        }
    }
}
