//! Random numbers that are the same on every machine: xoshiro256++, seeded for each instance by itself. So an instance
//! is the same whatever was generated before it and on whatever thread.

use std::f64::consts::TAU;

use xxhash_rust::xxh3::xxh3_64_with_seed;

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub struct Random {
    state: [u64; 4],
}

impl Random {
    /// The stream of one instance: the seed of the data set, the kind of the instance and its number name it.
    pub fn new(seed: u64, kind: &str, number: u64) -> Self {
        let start =
            xxh3_64_with_seed(kind.as_bytes(), seed) ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut mixed = start;
        let state = [(); 4].map(|()| {
            mixed = mixed.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let z = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^ (z >> 31)
        });
        Self { state }
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        let s = &mut self.state;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// A number below `end`, all equally likely.
    pub fn below(&mut self, end: usize) -> usize {
        // The high half of a product of 64 bits: the bias is below 2^-32 for every size that occurs.
        ((u128::from(self.bits()) * end as u128) >> 64) as usize
    }

    /// A number from `low` to `high`, both included.
    pub fn between(&mut self, low: i64, high: i64) -> i64 {
        low + self.below((high - low + 1) as usize) as i64
    }

    /// A number in [0, 1).
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// True in so many percent of the cases.
    pub fn percent(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// A normally distributed number, by the method of Box and Muller.
    pub fn normal(&mut self, mean: f64, deviation: f64) -> f64 {
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        mean + deviation * radius * (TAU * self.unit()).cos()
    }

    /// A number from 1 to `max`: a normal distribution with deviation 1 cut to [0, limit] and stretched.
    pub fn normal_range(&mut self, mean: f64, limit: f64, max: usize) -> usize {
        loop {
            let value = self.normal(mean, 1.0);
            if (0.0..limit).contains(&value) {
                return 1 + (value / limit * max as f64) as usize;
            }
        }
    }

    /// How many there are of something, 0 or more, where `average` are usual: normal, a third of the average as
    /// deviation.
    pub fn normal_count(&mut self, average: usize) -> usize {
        loop {
            let value = self.normal(3.0, 1.0);
            if value >= 0.0 {
                return (value / 3.0 * average as f64) as usize;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_their_own() {
        let first = |seed, kind, number| Random::new(seed, kind, number).bits();
        assert_eq!(first(1, "a", 1), first(1, "a", 1));
        assert_ne!(first(1, "a", 1), first(2, "a", 1));
        assert_ne!(first(1, "a", 1), first(1, "b", 1));
        assert_ne!(first(1, "a", 1), first(1, "a", 2));
    }

    #[test]
    fn distributions() {
        let mut random = Random::new(7, "test", 0);
        let count = 100_000;
        let normals: Vec<f64> = (0..count).map(|_| random.normal(2.0, 1.0)).collect();
        let mean = normals.iter().sum::<f64>() / f64::from(count);
        let variance = normals.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / f64::from(count);
        assert!(
            (mean - 2.0).abs() < 0.02 && (variance - 1.0).abs() < 0.03,
            "{mean} {variance}"
        );
        let ranged: Vec<usize> = (0..count)
            .map(|_| random.normal_range(2.0, 4.0, 100))
            .collect();
        assert_eq!(
            (ranged.iter().min(), ranged.iter().max()),
            (Some(&1), Some(&100))
        );
        let uniform: Vec<i64> = (0..count).map(|_| random.between(3, 5)).collect();
        for value in 3..=5 {
            let share = uniform.iter().filter(|v| **v == value).count() as f64 / f64::from(count);
            assert!((share - 1.0 / 3.0).abs() < 0.01, "{share}");
        }
    }
}
