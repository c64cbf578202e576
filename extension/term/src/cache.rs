//! A bounded map that forgets what was not used lately.
//!
//! Two generations: an entry that is put in or found goes to the young one. When the young one is full it becomes the
//! old one, and the former old one is dropped. So an entry survives at least as many bytes of other entries as one
//! generation holds, at the cost of a hash map.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash};

/// A map of at most about `limit` bytes, as the caller counts them.
pub struct Cache<K, V, S> {
    young: HashMap<K, V, S>,
    old: HashMap<K, V, S>,
    young_bytes: usize,
    old_bytes: usize,
    limit: usize,
}

impl<K: Hash + Eq, V, S: BuildHasher + Default> Cache<K, V, S> {
    /// An empty cache of at most about `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Cache {
            young: HashMap::default(),
            old: HashMap::default(),
            young_bytes: 0,
            old_bytes: 0,
            limit,
        }
    }

    /// Changes the limit; what is too much goes with the coming insertions.
    pub fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
    }

    /// A copy of the value of `key`; `bytes` is what [`Cache::put`] was or would be told.
    pub fn get(&mut self, key: &K, bytes: impl FnOnce(&V) -> usize) -> Option<V>
    where
        V: Clone,
    {
        self.look(key, bytes).cloned()
    }

    /// The value of `key`; `bytes` is what [`Cache::put`] was or would be told.
    pub fn look(&mut self, key: &K, bytes: impl FnOnce(&V) -> usize) -> Option<&V> {
        if !self.young.contains_key(key) {
            let (key, value) = self.old.remove_entry(key)?;
            let size = bytes(&value);
            self.old_bytes = self.old_bytes.saturating_sub(size);
            self.put(key, value, size);
        }
        self.young.get(key)
    }

    /// Takes out the value of `key`; `bytes` is what [`Cache::put`] was told.
    pub fn remove(&mut self, key: &K, bytes: impl FnOnce(&V) -> usize) -> Option<V> {
        let (from, left) = match self.young.remove(key) {
            Some(value) => (value, &mut self.young_bytes),
            None => (self.old.remove(key)?, &mut self.old_bytes),
        };
        *left = left.saturating_sub(bytes(&from));
        Some(from)
    }

    /// Forgets what is beyond `limit` bytes; `bytes` is what [`Cache::put`] was told.
    pub fn trim(&mut self, limit: usize, bytes: impl Fn(&V) -> usize) {
        if self.bytes() <= limit {
            return;
        }
        let mut left = limit;
        for entries in [&mut self.young, &mut self.old] {
            entries.retain(|_, value| {
                let size = bytes(value);
                let fits = size <= left;
                left -= if fits { size } else { 0 };
                fits
            });
            entries.shrink_to_fit();
        }
        let sum = |entries: &HashMap<K, V, S>| entries.values().map(&bytes).sum();
        (self.young_bytes, self.old_bytes) = (sum(&self.young), sum(&self.old));
    }

    /// Bytes of all entries, as the caller counts them.
    pub fn bytes(&self) -> usize {
        self.young_bytes + self.old_bytes
    }

    /// Puts in an entry that takes `bytes` bytes.
    pub fn put(&mut self, key: K, value: V, bytes: usize) {
        if self.young_bytes.saturating_add(bytes) > self.limit / 2 && !self.young.is_empty() {
            self.old = std::mem::take(&mut self.young);
            self.old_bytes = std::mem::take(&mut self.young_bytes);
        }
        self.young_bytes += bytes;
        self.young.insert(key, value);
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.young = HashMap::default();
        self.old = HashMap::default();
        (self.young_bytes, self.old_bytes) = (0, 0);
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.young.len() + self.old.len()
    }

    /// Whether nothing is cached.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::hash_map::RandomState;

    #[test]
    fn keeps_what_is_used_and_forgets_the_rest() {
        let mut cache: Cache<u32, u32, RandomState> = Cache::new(100);
        for key in 0..1000 {
            cache.put(key, key + 1, 1);
            assert_eq!(cache.get(&7.min(key), |_| 1), Some(7.min(key) + 1));
            assert!(cache.len() <= 101);
        }
        assert_eq!(cache.get(&3, |_| 1), None);
        assert_eq!(cache.get(&999, |_| 1), Some(1000));
        cache.clear();
        assert!(cache.is_empty());
    }

    #[test]
    fn an_entry_larger_than_the_limit_is_kept_alone() {
        let mut cache: Cache<u32, u32, RandomState> = Cache::new(10);
        cache.put(1, 1, 1000);
        cache.put(2, 2, 1000);
        cache.put(3, 3, 1000);
        assert!(cache.len() <= 2);
        assert_eq!(cache.get(&3, |_| 1000), Some(3));
    }
}
