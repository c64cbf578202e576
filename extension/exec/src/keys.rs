//! Distinct keys of some columns, numbered as they come and found by hash.

/// Rows of `u64`s, each once, column by column.
pub(crate) struct Keys {
    /// By hash: number of a key plus one; 0 = free.
    heads: Vec<u32>,
    shift: u32,
    columns: Vec<Vec<u64>>,
    len: usize,
}

/// No key.
pub(crate) const NONE: u32 = u32::MAX;
/// Odd, with bits all over: the high bits of a product with it depend on all bits of the other factor.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
/// Places when there are no keys yet, as a power of two.
const FIRST_BITS: u32 = 6;

#[inline]
fn mix(hash: u64, value: u64) -> u64 {
    (hash.rotate_left(29) ^ value).wrapping_mul(SPREAD)
}

/// The hash of a row of `columns`.
#[inline]
pub(crate) fn hash(columns: &[&[u64]], row: usize) -> u64 {
    columns.iter().fold(0, |hash, c| mix(hash, c[row]))
}

impl Keys {
    /// None yet, of so many columns, with room for about so many.
    pub fn new(columns: usize, expected: usize) -> Self {
        Self {
            heads: vec![0; 1 << FIRST_BITS],
            shift: u64::BITS - FIRST_BITS,
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
        8 * self.columns.len() * self.len + 4 * self.heads.len()
    }

    /// Gives back what was set aside for more keys.
    pub fn shrink(&mut self) {
        self.columns.iter_mut().for_each(Vec::shrink_to_fit);
    }

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

    /// Whether a row of `columns` is key number `key`.
    #[inline]
    pub fn is(&self, key: u32, columns: &[&[u64]], row: usize) -> bool {
        let mut pairs = columns.iter().zip(&self.columns);
        pairs.all(|(asked, own)| asked[row] == own[key as usize])
    }

    /// The number of each row of `columns`, [`NONE`] where there is no such key.
    pub fn find_all(&self, columns: &[&[u64]], len: usize) -> Vec<u32> {
        match (columns, self.columns.as_slice()) {
            ([column], [own]) => column
                .iter()
                .map(|&value| {
                    let found = self.find(mix(0, value), |key| own[key] == value);
                    found.unwrap_or(NONE)
                })
                .collect(),
            _ => (0..len)
                .map(|row| {
                    let is_key = |key| self.is(key as u32, columns, row);
                    self.find(hash(columns, row), is_key).unwrap_or(NONE)
                })
                .collect(),
        }
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
                self.heads[place] = self.len as u32;
                if self.len * 4 > self.heads.len() * 3 {
                    self.grow();
                }
                self.len as u32 - 1
            }
        }
    }

    fn grow(&mut self) {
        self.shift -= 1;
        let places = self.heads.len() * 2;
        self.heads.clear();
        self.heads.resize(places, 0);
        for key in 0..self.len {
            let hash = self.columns.iter().fold(0, |hash, c| mix(hash, c[key]));
            if let Err(place) = self.find(hash, |_| false) {
                self.heads[place] = key as u32 + 1;
            }
        }
    }
}
