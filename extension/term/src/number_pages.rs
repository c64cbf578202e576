//! Small values of dictionary terms, by the number of the term.
//!
//! Terms that came one after the other have numbers one after the other, and so have the prices or ratings among them.
//! So values of neighbouring numbers share a page: a bit for each number that has one, and the values. Where every
//! sixth term has one, a value takes 8 bytes; in a hash map it takes 28.
//!
//! Pages are bounded in memory by a [`Cache`].

use crate::cache::Cache;
use std::hash::BuildHasher;

/// Numbers of a page.
const PAGE_NUMBERS: u64 = 128;
/// Bytes of a page without its values, with the overhead of the map and of the allocation.
const PAGE_BYTES: usize = 80;

/// The values of some neighbouring numbers.
#[derive(Default)]
struct Page {
    /// A bit for each number that has a value.
    present: [u64; (PAGE_NUMBERS / 64) as usize],
    /// The values, by number.
    values: Box<[u32]>,
}

impl Page {
    /// How many numbers below `place` have a value, and whether it has one.
    fn find(&self, place: usize) -> (usize, bool) {
        let (word, bit) = (place / 64, 1 << (place % 64));
        let below = self.present[..word].iter().map(|word| word.count_ones());
        let here = (self.present[word] & (bit - 1)).count_ones();
        let rank = below.sum::<u32>() + here;
        (rank as usize, self.present[word] & bit != 0)
    }

    fn get(&self, place: usize) -> Option<u32> {
        let (rank, is_present) = self.find(place);
        is_present.then(|| self.values[rank])
    }

    fn put(&mut self, place: usize, value: u32) {
        let (rank, is_present) = self.find(place);
        if is_present {
            self.values[rank] = value;
            return;
        }
        self.present[place / 64] |= 1 << (place % 64);
        let (before, behind) = self.values.split_at(rank);
        self.values = [before, &[value], behind].concat().into_boxed_slice();
    }

    fn bytes(&self) -> usize {
        PAGE_BYTES + size_of_val(&*self.values)
    }
}

/// A map from numbers to values of at most about `limit` bytes.
pub struct NumberPages<S> {
    pages: Cache<u64, Page, S>,
}

impl<S: BuildHasher + Default> Default for NumberPages<S> {
    fn default() -> Self {
        Self {
            pages: Cache::new(0),
        }
    }
}

impl<S: BuildHasher + Default> NumberPages<S> {
    /// Changes the limit; what is too much goes with the coming insertions.
    pub fn set_limit(&mut self, limit: usize) {
        self.pages.set_limit(limit);
    }

    /// The value of a number.
    pub fn get(&mut self, number: u64) -> Option<u32> {
        let (page, place) = split(number);
        self.pages.look(&page, Page::bytes)?.get(place)
    }

    /// Gives a number a value.
    pub fn put(&mut self, number: u64, value: u32) {
        let (number, place) = split(number);
        let known = self.pages.remove(&number, Page::bytes);
        let mut page = known.unwrap_or_default();
        page.put(place, value);
        let bytes = page.bytes();
        self.pages.put(number, page, bytes);
    }

    /// Forgets what is beyond `bytes`.
    pub fn trim(&mut self, bytes: usize) {
        self.pages.trim(bytes, Page::bytes);
    }

    /// About the bytes that all pages take.
    pub fn bytes(&self) -> usize {
        self.pages.bytes()
    }
}

/// The page of a number, and its place there.
fn split(number: u64) -> (u64, usize) {
    let place = number % PAGE_NUMBERS;
    (number / PAGE_NUMBERS, place as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::hash_map::RandomState;
    use std::collections::HashMap;

    #[derive(Clone, Debug)]
    enum Step {
        Put(u64, u32),
        Get(u64),
        Trim(usize),
        Limit(usize),
        Clear,
    }

    fn step() -> impl Strategy<Value = Step> {
        let number = || prop_oneof![0u64..600, (0u64..3).prop_map(|n| n << 62 | 5)];
        prop_oneof![
            8 => (number(), any::<u32>()).prop_map(|(number, value)| Step::Put(number, value)),
            8 => number().prop_map(Step::Get),
            1 => (0usize..2000).prop_map(Step::Trim),
            1 => (0usize..4000).prop_map(Step::Limit),
            1 => Just(Step::Clear),
        ]
    }

    proptest! {
        /// What is found is what was put last; memory stays within the limit.
        #[test]
        fn finds_what_was_put_last(steps in prop::collection::vec(step(), 0..400)) {
            let mut pages = NumberPages::<RandomState>::default();
            let mut model = HashMap::new();
            let mut most = 0;
            for step in steps {
                match step {
                    Step::Put(number, value) => {
                        pages.put(number, value);
                        model.insert(number, value);
                        prop_assert_eq!(pages.get(number), Some(value));
                    }
                    Step::Get(number) => {
                        let found = pages.get(number);
                        prop_assert!(found.is_none() || found == model.get(&number).copied());
                    }
                    Step::Trim(bytes) => {
                        pages.trim(bytes);
                        prop_assert!(pages.bytes() <= bytes);
                    }
                    Step::Limit(limit) => {
                        pages.set_limit(limit);
                        most = most.max(limit);
                    }
                    Step::Clear => {
                        pages.trim(0);
                        prop_assert_eq!(pages.bytes(), 0);
                        model.clear();
                    }
                }
                // A page that is larger than a generation is kept alone.
                let alone = 2 * (PAGE_BYTES + 4 * PAGE_NUMBERS as usize);
                prop_assert!(pages.bytes() <= most + alone);
            }
        }
    }

    #[test]
    fn keeps_all_within_the_limit() {
        let mut pages = NumberPages::<RandomState>::default();
        pages.set_limit(1 << 20);
        for number in (0..60_000).step_by(6) {
            pages.put(number, number as u32);
        }
        assert!((0..60_000)
            .step_by(6)
            .all(|number| pages.get(number) == Some(number as u32)));
        assert_eq!(pages.get(1), None);
        // Seven or eight bytes each.
        assert!(pages.bytes() < 8 * 10_000 + 4096, "{}", pages.bytes());
    }
}
