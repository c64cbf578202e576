//! Merging sorted sources by a tree of losers (Knuth, volume 3, 5.4.1): one comparison per level and key.

use std::io;

use pgquad_btree::{Key, KEY_MAX};

/// Ascending keys.
pub trait Source {
    /// The next key; `None` at the end, or when an error stands in the way.
    fn next(&mut self) -> Option<Key>;

    /// The error that ended the source, if one did.
    fn take_error(&mut self) -> Option<io::Error>;
}

/// The keys of all sources in ascending order, each once.
pub struct Merge<S> {
    sources: Vec<S>,
    /// The next key of each source; the greatest one for those that have ended.
    heads: Vec<Key>,
    ended: Vec<bool>,
    /// The source that lost at each inner node; at 0 the one that won.
    losers: Vec<usize>,
    last: Option<Key>,
}

impl<S: Source> Merge<S> {
    /// A merge of these sources.
    pub fn new(mut sources: Vec<S>) -> Self {
        let first: Vec<Option<Key>> = sources.iter_mut().map(Source::next).collect();
        let mut merge = Merge {
            heads: first.iter().map(|key| key.unwrap_or(KEY_MAX)).collect(),
            ended: first.iter().map(Option::is_none).collect(),
            losers: vec![0; sources.len().max(1)],
            sources,
            last: None,
        };
        if !merge.sources.is_empty() {
            merge.losers[0] = merge.play(1);
        }
        merge
    }

    /// The error that ended one of the sources, if one did. To be asked at the end: the keys are not all there then.
    pub fn take_error(&mut self) -> Option<io::Error> {
        self.sources.iter_mut().find_map(Source::take_error)
    }

    #[inline]
    fn is_before(&self, a: usize, b: usize) -> bool {
        (&self.heads[a], self.ended[a]) < (&self.heads[b], self.ended[b])
    }

    /// Plays all games below a node; returns the winner. Sources are the nodes behind the inner ones.
    fn play(&mut self, node: usize) -> usize {
        let count = self.sources.len();
        if node >= count {
            return node - count;
        }
        let (left, right) = (self.play(2 * node), self.play(2 * node + 1));
        let (winner, loser) = if self.is_before(right, left) {
            (right, left)
        } else {
            (left, right)
        };
        self.losers[node] = loser;
        winner
    }

    /// Takes the least key of all, and plays the games of its source again.
    #[inline]
    fn take(&mut self) -> Option<Key> {
        let mut winner = *self.losers.first()?;
        if *self.ended.get(winner)? {
            return None;
        }
        let key = self.heads[winner];
        match self.sources[winner].next() {
            Some(next) => self.heads[winner] = next,
            None => {
                self.heads[winner] = KEY_MAX;
                self.ended[winner] = true;
            }
        }
        let mut node = (winner + self.sources.len()) / 2;
        while node > 0 {
            if self.is_before(self.losers[node], winner) {
                std::mem::swap(&mut self.losers[node], &mut winner);
            }
            node /= 2;
        }
        self.losers[0] = winner;
        Some(key)
    }
}

impl<S: Source> Iterator for Merge<S> {
    type Item = Key;

    #[inline]
    fn next(&mut self) -> Option<Key> {
        loop {
            let key = self.take()?;
            if self.last != Some(key) {
                self.last = Some(key);
                return Some(key);
            }
        }
    }
}
