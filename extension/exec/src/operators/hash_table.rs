//! Hash table of the quads of a pattern, by some of their columns.

use crate::operators::keys::{Keys, NONE};

/// Quads that share their key stand side by side. Those that hand nothing on have only numbers.
pub(crate) struct Table {
    keys: Keys,
    /// First quad of each key, and the end; empty when each key has one quad.
    starts: Vec<u32>,
    /// What the quads hand on, column by column.
    values: Vec<Vec<u64>>,
}

impl Table {
    /// The key of each row of `columns` (as many as a key has), for [`Self::quads`].
    pub fn find_all(&self, columns: &[&[u64]], len: usize) -> Vec<u32> {
        self.keys.find_all(columns, len)
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

    /// Number of keys.
    pub fn keys(&self) -> usize {
        self.keys.len()
    }

    /// A column of what the quads hand on.
    pub fn values(&self, column: usize) -> &[u64] {
        &self.values[column]
    }

    /// Bytes it takes.
    pub fn bytes(&self) -> usize {
        let values = 8 * self.values.iter().map(Vec::len).sum::<usize>();
        self.keys.bytes() + values + 4 * self.starts.len()
    }
}

/// A table in the making.
pub(crate) struct Builder {
    table: Table,
    /// The key of each row that was put in.
    owners: Vec<u32>,
    /// How many quads each of these rows stands for, where they are counted; empty otherwise.
    counts: Vec<u64>,
    /// Number of all quads.
    quads: u64,
    /// Rows came in the order of their keys so far.
    grouped: bool,
}

impl Builder {
    /// For keys and values of so many columns, and about so many quads.
    pub fn new(keys: usize, values: usize, expected: usize) -> Self {
        Self {
            table: Table {
                keys: Keys::new(keys, expected),
                starts: Vec::new(),
                values: (0..values).map(|_| Vec::with_capacity(expected)).collect(),
            },
            owners: Vec::with_capacity(expected),
            counts: Vec::new(),
            quads: 0,
            grouped: true,
        }
    }

    /// Puts quads in: those rows of the columns that are accepted. Without `counts` each row is a quad; with them rows
    /// hand nothing on.
    pub fn add(
        &mut self,
        keys: &[&[u64]],
        values: &[&[u64]],
        counts: &[u64],
        len: usize,
        accepted: impl Fn(usize) -> bool,
    ) {
        let table = &mut self.table;
        let rows: Vec<usize> = (0..len).filter(|&row| accepted(row)).collect();
        let owners = match rows.len() == len {
            true => table.keys.find_or_add_all(keys, len),
            false => {
                let chosen: Vec<Vec<u64>> = keys
                    .iter()
                    .map(|column| rows.iter().map(|&row| column[row]).collect())
                    .collect();
                let chosen: Vec<&[u64]> = chosen.iter().map(Vec::as_slice).collect();
                table.keys.find_or_add_all(&chosen, rows.len())
            }
        };
        let last = self.owners.last();
        self.grouped &= last.into_iter().chain(&owners).is_sorted();
        self.owners.extend(owners);
        match counts.is_empty() {
            true => self.quads += rows.len() as u64,
            false => {
                let counts = rows.iter().map(|&row| counts[row]);
                self.quads = counts.clone().fold(self.quads, u64::saturating_add);
                self.counts.extend(counts);
            }
        }
        for (column, from) in table.values.iter_mut().zip(values) {
            column.extend(rows.iter().map(|&row| from[row]));
        }
    }

    /// Bytes it takes so far.
    pub fn bytes(&self) -> usize {
        self.table.bytes() + 4 * self.owners.len() + 8 * self.counts.len()
    }

    /// Whether there are more quads than a table can number.
    pub fn is_full(&self) -> bool {
        self.quads > u64::from(u32::MAX)
    }

    /// The table, with quads sorted by key.
    pub fn finish(mut self) -> Table {
        let table = &mut self.table;
        let (len, distinct) = (self.owners.len(), table.keys.len());
        if (distinct as u64) < self.quads {
            let mut starts = vec![0u32; distinct + 1];
            match self.counts.is_empty() {
                true => {
                    let owners = self.owners.iter();
                    owners.for_each(|&key| starts[key as usize + 1] += 1);
                }
                false => {
                    let counted = self.owners.iter().zip(&self.counts);
                    counted.for_each(|(&key, &count)| starts[key as usize + 1] += count as u32);
                }
            }
            for key in 0..distinct {
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
        table.keys.shrink();
        table.values.iter_mut().for_each(Vec::shrink_to_fit);
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
            builder.add(&key_columns, &[&columns[2]], &[], quads.len(), accepted);
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

        #[test]
        fn counts_the_quads_of_a_key(
            pieces in prop::collection::vec(prop::collection::vec((0u64..40, 1u64..5), 0..60), 0..4),
        ) {
            let mut builder = Builder::new(1, 0, 10);
            let accepted = |key: u64| !key.is_multiple_of(7);
            for piece in &pieces {
                let (keys, counts): (Vec<u64>, Vec<u64>) = piece.iter().copied().unzip();
                builder.add(&[&keys], &[], &counts, keys.len(), |row| accepted(keys[row]));
            }
            let table = builder.finish();
            let asked: Vec<u64> = (0..42).collect();
            for (key, asked) in table.find_all(&[&asked], asked.len()).into_iter().zip(&asked) {
                let all = pieces.iter().flatten().filter(|(key, _)| key == asked && accepted(*key));
                prop_assert_eq!(table.quads(key).len() as u64, all.map(|(_, count)| count).sum::<u64>());
            }
        }
    }
}
