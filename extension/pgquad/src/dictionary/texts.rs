//! Encoded terms, one behind the other.

/// Encoded terms, one behind the other, each UTF-8.
#[derive(Default)]
pub struct Texts {
    /// The terms.
    pub bytes: Vec<u8>,
    /// Where each ends.
    pub ends: Vec<usize>,
}

impl Texts {
    /// The term at a place.
    pub fn get(&self, place: usize) -> &str {
        let start = place.checked_sub(1).map_or(0, |before| self.ends[before]);
        let text = &self.bytes[start..self.ends[place]];
        // SAFETY: the block has checked what it appended, and terms are cut where it ended.
        unsafe { std::str::from_utf8_unchecked(text) }
    }
}
