//! A Bloom filter of hashes: a set that never says "no" of a hash that it has been given, and may say "perhaps" of any
//! other.
//!
//! Split into blocks of one cache line each (Putze, Sanders, Singler, 2007), so that a question costs one access to
//! memory.

/// Bits of a block: a cache line.
const BLOCK_BITS: u32 = 512;
const WORDS: usize = BLOCK_BITS as usize / 64;
/// Bits of a block that each hash sets: about the best for 8 to 10 bits per hash.
const PROBES: u32 = 6;

/// A set of hashes of fixed size.
pub struct Bloom {
    blocks: Vec<[u64; WORDS]>,
}

impl Bloom {
    /// An empty filter of about `bytes`, at least one block. With 10 bits for each hash it says "perhaps" wrongly about
    /// once in a hundred times.
    pub fn new(bytes: usize) -> Self {
        let blocks = (bytes * 8 / BLOCK_BITS as usize).max(1);
        Bloom {
            blocks: vec![[0; WORDS]; blocks],
        }
    }

    /// The block of a hash, and the places of its bits, nine bits each.
    fn place(&self, hash: u128) -> (usize, u64) {
        let block = ((hash >> 64) * self.blocks.len() as u128) >> 64;
        (block as usize, hash as u64)
    }

    fn bits(places: u64) -> impl Iterator<Item = (usize, u64)> {
        (0..PROBES).map(move |probe| {
            let bit = (places >> (9 * probe)) as u32 % BLOCK_BITS;
            ((bit / 64) as usize, 1 << (bit % 64))
        })
    }

    /// Adds a well-mixed hash.
    pub fn insert(&mut self, hash: u128) {
        let (block, places) = self.place(hash);
        for (word, bit) in Self::bits(places) {
            self.blocks[block][word] |= bit;
        }
    }

    /// Whether the hash may have been added; `false` is certain.
    pub fn may_contain(&self, hash: u128) -> bool {
        let (block, places) = self.place(hash);
        Self::bits(places).all(|(word, bit)| self.blocks[block][word] & bit != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encoded_hash;

    #[test]
    fn what_was_added_is_found_and_little_else() {
        let hash = |n: u32| encoded_hash(&format!("term {n}"));
        let added = 100_000;
        let mut filter = Bloom::new(added as usize * 10 / 8);
        (0..added).for_each(|n| filter.insert(hash(n)));
        assert!((0..added).all(|n| filter.may_contain(hash(n))));
        let wrong = (added..2 * added)
            .filter(|n| filter.may_contain(hash(*n)))
            .count();
        assert!(wrong < added as usize / 50, "{wrong} of {added}");
    }

    #[test]
    fn the_smallest_filter_works() {
        let mut filter = Bloom::new(0);
        assert!(!filter.may_contain(7));
        filter.insert(7);
        assert!(filter.may_contain(7));
    }
}
