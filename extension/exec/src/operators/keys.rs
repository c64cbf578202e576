//! Distinct keys of some columns, numbered as they come and found by hash.

/// Rows of `u64`s, each once, column by column.
pub(crate) struct Keys {
    /// By hash: the upper half of the hash of a key, and its number plus one; 0 = free. So a place that another key has
    /// taken is passed over without a look at that key, which is mostly not in the processor's cache.
    heads: Vec<u64>,
    shift: u32,
    columns: Vec<Vec<u64>>,
    len: usize,
}

/// No key.
pub(crate) const NONE: u32 = u32::MAX;
/// Of the finaliser of MurmurHash3: after a product alone ids collide whose distances are near a fraction of its
/// inverse.
const SPREAD: [u64; 2] = [0xff51_afd7_ed55_8ccd, 0xc4ce_b9fe_1a85_ec53];
/// Rows that are looked up together: more loads than a processor can wait for at once.
const TOGETHER: usize = 32;
/// Places (256 kB) up to which they are in the processor's cache anyway.
const NEAR_PLACES: usize = 32 * 1024;
/// The part of a hash that is kept with a key. It tells 2^32 places apart, which take 32 GB: no join has that much
/// memory.
const UPPER_HALF: u64 = (u32::MAX as u64) << 32;
/// Fewest places, as a power of two.
const FIRST_BITS: u32 = 6;

#[inline]
fn mix(hash: u64, value: u64) -> u64 {
    let mut mixed = hash.rotate_left(29) ^ value;
    for factor in SPREAD {
        mixed = (mixed ^ mixed >> 33).wrapping_mul(factor);
    }
    mixed ^ mixed >> 33
}

/// The hash of a row of `columns`.
#[inline]
pub(crate) fn hash(columns: &[&[u64]], row: usize) -> u64 {
    columns.iter().fold(0, |hash, c| mix(hash, c[row]))
}

impl Keys {
    /// None yet, of so many columns, with room for about so many.
    pub fn new(columns: usize, expected: usize) -> Self {
        let bits = (expected * 4 / 3 + 1)
            .next_power_of_two()
            .trailing_zeros()
            .max(FIRST_BITS);
        Self {
            heads: vec![0; 1 << bits],
            shift: u64::BITS - bits,
            columns: (0..columns).map(|_| Vec::with_capacity(expected)).collect(),
            len: 0,
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// The values of all keys in a column.
    pub fn column(&self, column: usize) -> &[u64] {
        &self.columns[column]
    }

    /// Bytes they take.
    pub fn bytes(&self) -> usize {
        8 * (self.columns.len() * self.len + self.heads.len())
    }

    /// Gives back what was set aside for more keys.
    pub fn shrink(&mut self) {
        self.columns.iter_mut().for_each(Vec::shrink_to_fit);
    }

    /// The number of the key with this hash for which `is_key` holds, or else the place for it.
    #[inline]
    fn find(&self, hash: u64, is_key: impl Fn(usize) -> bool) -> Result<u32, usize> {
        let mut place = (hash >> self.shift) as usize;
        loop {
            let head = self.heads[place];
            if head == 0 {
                return Err(place);
            }
            if (head ^ hash) & UPPER_HALF == 0 {
                let key = head as u32 - 1;
                if is_key(key as usize) {
                    return Ok(key);
                }
            }
            place = (place + 1) & (self.heads.len() - 1);
        }
    }

    /// Whether a row of `columns` is key number `key`.
    #[inline]
    pub fn is(&self, key: u32, columns: &[&[u64]], row: usize) -> bool {
        let mut pairs = columns.iter().zip(&self.columns);
        pairs.all(|(asked, own)| asked[row] == own[key as usize])
    }

    /// The number of each row of `columns`, [`NONE`] where there is no such key.
    pub fn find_all(&self, columns: &[&[u64]], len: usize) -> Vec<u32> {
        let find = |hash: u64, row: usize| {
            let is_key = |key| self.is(key as u32, columns, row);
            self.find(hash, is_key).unwrap_or(NONE)
        };
        if !self.is_far() {
            return (0..len).map(|row| find(hash(columns, row), row)).collect();
        }
        let mut found = Vec::with_capacity(len);
        for start in (0..len).step_by(TOGETHER) {
            let rows = start..len.min(start + TOGETHER);
            let hashes = self.approach(columns, &rows);
            found.extend(rows.zip(hashes).map(|(row, hash)| find(hash, row)));
        }
        found
    }

    /// The number of each row of `columns`; those that are not there are put in.
    pub fn find_or_add_all(&mut self, columns: &[&[u64]], len: usize) -> Vec<u32> {
        let mut found = Vec::with_capacity(len);
        while found.len() < len {
            let start = found.len();
            if !self.is_far() {
                found.push(self.find_or_add(hash(columns, start), columns, start));
                continue;
            }
            let rows = start..len.min(start + TOGETHER);
            let hashes = self.approach(columns, &rows);
            let numbers = rows
                .zip(hashes)
                .map(|(row, hash)| self.find_or_add(hash, columns, row));
            found.extend(numbers);
        }
        found
    }

    /// Whether places are mostly not in the processor's cache.
    fn is_far(&self) -> bool {
        self.heads.len() > NEAR_PLACES
    }

    /// The hashes of some rows of `columns`. It reads their places, so that the processor waits for many of them at
    /// once: what follows goes one way or another by what is in each.
    fn approach(&self, columns: &[&[u64]], rows: &std::ops::Range<usize>) -> [u64; TOGETHER] {
        let mut hashes = [0; TOGETHER];
        for column in columns {
            for (hash, &value) in hashes.iter_mut().zip(&column[rows.clone()]) {
                *hash = mix(*hash, value);
            }
        }
        let places = hashes.iter().take(rows.len());
        let read = places.fold(0, |read, hash| {
            read ^ self.heads[(hash >> self.shift) as usize]
        });
        std::hint::black_box(read);
        hashes
    }

    /// The number of a row of `columns`, whose hash this is; put in if it is not there.
    #[inline]
    pub fn find_or_add(&mut self, hash: u64, columns: &[&[u64]], row: usize) -> u32 {
        match self.find(hash, |key| self.is(key as u32, columns, row)) {
            Ok(key) => key,
            Err(place) => {
                for (own, from) in self.columns.iter_mut().zip(columns) {
                    own.push(from[row]);
                }
                self.len += 1;
                self.heads[place] = hash & UPPER_HALF | self.len as u64;
                if self.len * 4 > self.heads.len() * 3 {
                    self.grow();
                }
                self.len as u32 - 1
            }
        }
    }

    /// Doubles the places. Which one a key gets is in its head.
    fn grow(&mut self) {
        self.shift -= 1;
        let places = self.heads.len() * 2;
        let before = std::mem::replace(&mut self.heads, vec![0; places]);
        for head in before.into_iter().filter(|&head| head != 0) {
            let mut place = (head >> self.shift) as usize;
            while self.heads[place] != 0 {
                place = (place + 1) & (places - 1);
            }
            self.heads[place] = head;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_at_equal_distances_do_not_collide() {
        // Integers, decimals that are whole hundreds, and the distance that the golden ratio likes least.
        let distances = [1, 144, 1_000_000, 100_000_000, 800_000_000, 20_365_011_074];
        for distance in distances {
            let values: Vec<u64> = (0..6000).map(|i| 3 << 61 | (i * distance)).collect();
            let mut keys = Keys::new(1, values.len());
            for row in 0..values.len() {
                keys.find_or_add(hash(&[&values], row), &[&values], row);
            }
            let looked: usize = (0..values.len())
                .map(|row| {
                    let first = (hash(&[&values], row) >> keys.shift) as usize;
                    let is_of_row = |place: &usize| {
                        keys.heads[place & (keys.heads.len() - 1)] as u32 == row as u32 + 1
                    };
                    (first..).position(|place| is_of_row(&place)).unwrap_or(0) + 1
                })
                .sum();
            let each = looked as f64 / values.len() as f64;
            assert!(each < 3.0, "{each} slots a key, {distance} apart");
        }
    }

    #[test]
    fn many_rows_are_found_together_as_one_by_one() {
        let many = 3 * NEAR_PLACES;
        let of_rows = |times: u64| -> Vec<u64> {
            (0..many as u64)
                .map(|row| row * times % (NEAR_PLACES as u64 + 7))
                .collect()
        };
        let (first, second) = (of_rows(1), of_rows(5));
        let columns: [&[u64]; 2] = [&first, &second];
        let (mut together, mut one_by_one) = (Keys::new(2, 0), Keys::new(2, 0));
        // The last rows come again.
        let half = many / 2;
        let halves = columns.map(|column| &column[..half]);
        together.find_or_add_all(&halves, half);
        assert!(together.is_far());
        let numbers = together.find_or_add_all(&columns, many);
        let expected: Vec<u32> = (0..many)
            .map(|row| one_by_one.find_or_add(hash(&columns, row), &columns, row))
            .collect();
        assert_eq!(numbers, expected);
        assert_eq!(together.len(), one_by_one.len());
        assert_eq!(together.find_all(&columns, many), expected);
        let others: Vec<u64> = second.iter().map(|value| value + 1).collect();
        let found = together.find_all(&[&first, &others], many);
        let known: std::collections::HashSet<(u64, u64)> =
            first.iter().copied().zip(second.iter().copied()).collect();
        for (row, number) in found.into_iter().enumerate() {
            assert_eq!(
                number != NONE,
                known.contains(&(first[row], others[row])),
                "row {row}"
            );
        }
    }
}
