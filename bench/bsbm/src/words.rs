//! Words to make texts of. They are made up from syllables, and are as many and as long as those in the dictionaries of
//! the official generator. So texts have the same length as there, and words and names occur as often.

use std::collections::HashSet;

use crate::random::Random;

const TITLE_WORDS: usize = 89_500;
const NAMES: usize = 88_800;

const ONSETS: [&str; 32] = [
    "b", "c", "d", "f", "g", "h", "l", "m", "n", "p", "r", "s", "t", "v", "w", "st", "tr", "pr",
    "br", "ch", "sh", "pl", "gr", "cr", "fl", "th", "qu", "sp", "k", "j", "sc", "y",
];
const VOWELS: [&str; 16] = [
    "a", "e", "i", "o", "u", "e", "a", "i", "o", "ea", "ou", "io", "ai", "ee", "y", "e",
];
const CODAS: [&str; 16] = [
    "", "", "n", "r", "l", "s", "t", "", "nt", "m", "st", "ck", "ng", "d", "ss", "p",
];
const ENDINGS: [&str; 12] = [
    "", "", "s", "s", "ed", "ing", "er", "ly", "ness", "ion", "al", "es",
];

/// A list of words, all different.
pub struct Words {
    text: String,
    ends: Vec<u32>,
}

impl Words {
    /// The words of labels, comments, reviews.
    pub fn titles() -> Self {
        let mut random = Random::new(0, "title words", 0);
        Self::distinct(TITLE_WORDS, || {
            let length = random.normal(5.6, 2.4);
            let stem = stem(&mut random, length);
            stem + ENDINGS[random.below(ENDINGS.len())]
        })
    }

    /// Given names; many are double.
    pub fn names() -> Self {
        let mut random = Random::new(0, "names", 0);
        let mut name = move || {
            let length = random.normal(5.1, 1.5);
            let stem = stem(&mut random, length);
            let double = random.percent(85);
            (stem[..1].to_uppercase() + &stem[1..], double)
        };
        Self::distinct(NAMES, move || match name() {
            (first, true) => first + "-" + &name().0,
            (only, false) => only,
        })
    }

    fn distinct(count: usize, mut make: impl FnMut() -> String) -> Self {
        let mut seen = HashSet::with_capacity(count);
        let mut words = Self {
            text: String::new(),
            ends: Vec::with_capacity(count),
        };
        while words.ends.len() < count {
            let word = make();
            if !seen.contains(&word) {
                words.text.push_str(&word);
                words.ends.push(words.text.len() as u32);
                seen.insert(word);
            }
        }
        words
    }

    fn get(&self, index: usize) -> &str {
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        &self.text[start as usize..self.ends[index] as usize]
    }

    /// Appends `from` to `to` random words with spaces between them.
    pub fn sentence(&self, random: &mut Random, from: i64, to: i64, into: &mut Vec<u8>) {
        for word in 0..random.between(from, to) {
            if word > 0 {
                into.push(b' ');
            }
            into.extend_from_slice(self.get(random.below(self.ends.len())).as_bytes());
        }
    }
}

/// Syllables until the word is about so long.
fn stem(random: &mut Random, length: f64) -> String {
    let mut word = String::new();
    loop {
        word.push_str(ONSETS[random.below(ONSETS.len())]);
        word.push_str(VOWELS[random.below(VOWELS.len())]);
        word.push_str(CODAS[random.below(CODAS.len())]);
        if word.len() as f64 >= length - 1.2 {
            return word;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean_length(words: &Words) -> f64 {
        words.text.len() as f64 / words.ends.len() as f64
    }

    /// Means of the official dictionaries: 8.8 and 12.7 letters.
    #[test]
    fn lengths() {
        let (titles, names) = (mean_length(&Words::titles()), mean_length(&Words::names()));
        assert!((titles - 8.8).abs() < 0.4, "{titles}");
        assert!((names - 12.7).abs() < 0.6, "{names}");
    }

    #[test]
    fn sentences() {
        let mut text = Vec::new();
        Words::titles().sentence(&mut Random::new(1, "test", 1), 4, 4, &mut text);
        assert_eq!(String::from_utf8(text).unwrap().split(' ').count(), 4);
    }
}
