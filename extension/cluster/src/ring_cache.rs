//! A cache in one piece of memory: records are written one after the other, and go round. The oldest are overwritten.
//! Whoever finds one that is about to be writes it again, so that what is used again and again stays (second chance).
//!
//! A piece is an array of words: where the next record begins, an index with a place for each hash of a key, and the
//! records. Positions count words from the first record ever, so that a position tells whether its record is still
//! there. A key whose place in the index is taken by another is not found any more, and asked for again: it is a cache.
//! Who shares a piece locks it: [`get`] reads, [`put`] changes.

use std::ops::Range;

/// What a record is found by. Different values of the first word are different caches in one piece.
pub type Key = [u64; 3];

/// Words before the index.
const HEAD_WORDS: usize = 1;
/// Words of a record before its bytes: the key and the number of bytes.
const RECORD_WORDS: usize = 4;
/// Words of a piece for each place of the index: a record of 40 bytes and its place.
const WORDS_A_PLACE: usize = 10;
/// A record takes at most this part of a piece, so that one does not displace all others.
const LARGEST_PART: usize = 8;

/// This part of the records is young; the others are overwritten sooner.
const YOUNG_PART: u64 = 2;

/// How long a record that was found will last.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Age {
    /// It has been written a short time ago.
    Young,
    /// It is to be put in again.
    Old,
}

/// Hash of a key, for its place in a piece and for the choice of a piece.
#[must_use]
pub fn hash(key: &Key) -> u64 {
    key.iter().fold(0x51_7cc1_b727_220a, |hash: u64, word| {
        let mixed = (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed ^ (mixed >> 29)
    })
}

/// Where the parts of a piece of so many words are: places of the index, words for records.
fn parts(words: usize) -> (usize, usize) {
    let places = words.saturating_sub(HEAD_WORDS) / WORDS_A_PLACE;
    (places, words.saturating_sub(HEAD_WORDS + places))
}

/// The place of a key in the index; it has at least one.
fn place(key: &Key, places: usize) -> usize {
    HEAD_WORDS + (hash(key) % places as u64) as usize
}

/// `count` words of the records from word `position` of all ever written on: those up to the end of the memory, and
/// those that go on at its beginning. There are no more than there are words for records.
fn split(records: usize, position: u64, count: usize) -> (Range<usize>, Range<usize>) {
    let start = (position % records as u64) as usize;
    let end = records.min(start + count);
    (start..end, 0..count - (end - start))
}

/// Up to eight bytes as a word, filled up with zeros.
fn word_of(bytes: &[u8]) -> u64 {
    let mut word = [0; size_of::<u64>()];
    word[..bytes.len()].copy_from_slice(bytes);
    u64::from_ne_bytes(word)
}

/// Copies bytes, whole words of them, from word `position` of all ever written on. One slice after the other: the
/// compiler makes wide copies of these loops, not of one over both.
fn read(of_records: &[u64], position: u64, bytes: &mut [u8]) {
    let (before, after) = split(of_records.len(), position, bytes.len() / size_of::<u64>());
    let (first, second) = bytes.split_at_mut(before.len() * size_of::<u64>());
    for (into, words) in [(first, before), (second, after)] {
        into.chunks_exact_mut(size_of::<u64>())
            .zip(&of_records[words])
            .for_each(|(place, word)| place.copy_from_slice(&word.to_ne_bytes()));
    }
}

/// Writes bytes from word `position` of all ever written on. The last word is filled up with zeros.
fn write(of_records: &mut [u64], position: u64, bytes: &[u8]) {
    let words = bytes.len().div_ceil(size_of::<u64>());
    let (before, after) = split(of_records.len(), position, words);
    let (first, second) = bytes.split_at(bytes.len().min(before.len() * size_of::<u64>()));
    for (part, part_bytes) in [(before, first), (after, second)] {
        let chunks = part_bytes.chunks_exact(size_of::<u64>());
        let (into, rest) = (&mut of_records[part], chunks.remainder());
        into.iter_mut()
            .zip(chunks)
            .for_each(|(place, chunk)| *place = word_of(chunk));
        if let Some(last) = into.last_mut().filter(|_| !rest.is_empty()) {
            *last = word_of(rest);
        }
    }
}

/// Appends the bytes that are kept under a key; `None` where there are none.
#[must_use]
pub fn get(memory: &[u64], key: &Key, found: &mut Vec<u8>) -> Option<Age> {
    let (places, records) = parts(memory.len());
    if places == 0 {
        return None;
    }
    // Zero: no record.
    let position = memory[place(key, places)].checked_sub(1)?;
    let since = memory[0].checked_sub(position)?;
    if !(1..=records as u64).contains(&since) {
        return None;
    }
    let of_records = &memory[memory.len() - records..];
    let mut head = [[0; size_of::<u64>()]; RECORD_WORDS];
    read(of_records, position, head.as_flattened_mut());
    let head = head.map(u64::from_ne_bytes);
    if head[..key.len()] != key[..] {
        return None;
    }
    let bytes = head[key.len()] as usize;
    // A record that is not sound is none: the memory is shared with other processes.
    if bytes > records / LARGEST_PART * size_of::<u64>() {
        return None;
    }
    let start = found.len();
    let count = bytes.div_ceil(size_of::<u64>());
    found.resize(start + count * size_of::<u64>(), 0);
    let at = position.wrapping_add(RECORD_WORDS as u64);
    read(of_records, at, &mut found[start..]);
    found.truncate(start + bytes);
    let is_old = since > records as u64 / YOUNG_PART;
    Some(if is_old { Age::Old } else { Age::Young })
}

/// Keeps bytes under a key, which stands for the same bytes for ever. Too many of them are not kept.
pub fn put(memory: &mut [u64], key: &Key, bytes: &[u8]) {
    let (places, records) = parts(memory.len());
    let words = RECORD_WORDS + bytes.len().div_ceil(size_of::<u64>());
    if places == 0 || words > records / LARGEST_PART {
        return;
    }
    let (first, start) = (memory.len() - records, memory[0]);
    let of_records = &mut memory[first..];
    let mut head = [0; RECORD_WORDS];
    head[..key.len()].copy_from_slice(key);
    head[key.len()] = bytes.len() as u64;
    write(of_records, start, head.map(u64::to_ne_bytes).as_flattened());
    write(of_records, start.wrapping_add(RECORD_WORDS as u64), bytes);
    memory[0] = start.wrapping_add(words as u64);
    memory[place(key, places)] = start.wrapping_add(1);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn value_of(key: u64) -> Vec<u8> {
        (0..key % 90).map(|n| (n ^ key) as u8).collect()
    }

    proptest! {
        /// A value that is found has been put in, and the value that was put in last is found.
        #[test]
        fn finds_nothing_else(words in 0_usize..3000, keys in prop::collection::vec((0_u64..60, 0_u64..3), 0..300)) {
            let mut memory = vec![0; words];
            for (n, of) in &keys {
                let key = [*of, *n, n ^ of];
                let mut found = b"before".to_vec();
                let value = value_of(n + of);
                if get(&memory, &key, &mut found).is_some() {
                    prop_assert_eq!(&found[6..], &value[..]);
                }
                prop_assert_eq!(&found[..6], b"before");
                put(&mut memory, &key, &value);
                found.clear();
                let is_kept = get(&memory, &key, &mut found).is_some();
                prop_assert!(!is_kept || found == value);
                prop_assert!(is_kept || words < 300);
            }
        }

        /// Whatever is in the memory, nothing panics.
        #[test]
        fn survives_other_contents(
            mut memory in prop::collection::vec(any::<u64>(), 0..400),
            key in any::<Key>(),
            value in prop::collection::vec(any::<u8>(), 0..60),
        ) {
            let mut found = Vec::new();
            let _ = get(&memory, &key, &mut found);
            put(&mut memory, &key, &value);
        }
    }

    #[test]
    fn the_oldest_are_overwritten() {
        let mut memory = vec![0; 1000];
        for n in 0..1000 {
            put(&mut memory, &[1, n, 0], &n.to_ne_bytes());
        }
        let mut found = Vec::new();
        let kept = (0..1000)
            .filter(|&n| get(&memory, &[1, n, 0], &mut found).is_some())
            .count();
        assert!((50..=180).contains(&kept), "{kept}");
        assert_eq!(get(&memory, &[1, 999, 0], &mut found), Some(Age::Young));
        assert_eq!(get(&memory, &[1, 0, 0], &mut found), None);
        assert_eq!(get(&memory, &[2, 999, 0], &mut found), None);
    }

    #[test]
    fn what_is_used_stays() {
        let mut memory = vec![0; 1000];
        let (used, unused) = ([1, 0, 0], [1, 1, 0]);
        put(&mut memory, &used, b"used");
        put(&mut memory, &unused, b"unused");
        let (mut found, mut written_again) = (Vec::new(), 0);
        for n in 2..2000 {
            put(&mut memory, &[1, n, 0], &n.to_ne_bytes());
            found.clear();
            match get(&memory, &used, &mut found) {
                Some(Age::Young) => {}
                Some(Age::Old) => {
                    written_again += 1;
                    put(&mut memory, &used, &found);
                }
                // Another key has its place in the index.
                None => put(&mut memory, &used, b"used"),
            }
        }
        assert!((10..=60).contains(&written_again), "{written_again}");
        assert!(get(&memory, &used, &mut found).is_some());
        assert_eq!(get(&memory, &unused, &mut found), None);
    }
}
