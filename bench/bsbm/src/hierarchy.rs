//! The tree of product types, and the features that each type allows its products.

use crate::random::Random;

/// A product type. Types are numbered from 1, the root, level by level.
#[derive(Clone, Debug)]
pub struct ProductType {
    /// Number of the type above; `None` for the root.
    pub parent: Option<usize>,
    /// Steps from the root.
    pub level: usize,
    /// First of its features, and the one after its last; the root has none.
    pub features: (usize, usize),
}

/// All product types.
#[derive(Clone, Debug)]
pub struct Hierarchy {
    types: Vec<ProductType>,
    /// Number of the first type of each level, and the number after the last type.
    levels: Vec<usize>,
}

impl Hierarchy {
    /// The tree for so many products: deeper and broader with the logarithm of their number.
    pub fn new(seed: u64, products: usize) -> Self {
        let branching = branching(products);
        let mut types = vec![ProductType {
            parent: None,
            level: 0,
            features: (1, 1),
        }];
        let mut levels = vec![1];
        for (level, children) in branching.iter().enumerate() {
            let parents = levels[level]..=types.len();
            levels.push(types.len() + 1);
            for parent in parents {
                types.extend((0..*children).map(|_| ProductType {
                    parent: Some(parent),
                    level: level + 1,
                    features: (0, 0),
                }));
            }
        }
        levels.push(types.len() + 1);
        let depth = branching.len();
        let ranges = feature_ranges(depth);
        let mut random = Random::new(seed, "features of types", 0);
        let mut next = 1;
        for kind in types.iter_mut().skip(1) {
            // The inner types take the range of the level below them, the leaves that of their own.
            let (low, high) = ranges[if kind.level == depth {
                depth - 1
            } else {
                kind.level
            }];
            let end = next + random.between(low, high) as usize;
            kind.features = (next, end);
            next = end;
        }
        Self { types, levels }
    }

    /// How many types there are.
    pub fn len(&self) -> usize {
        self.types.len()
    }

    /// A tree has at least its root.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// A type by its number.
    pub fn get(&self, number: usize) -> &ProductType {
        &self.types[number - 1]
    }

    /// How many levels there are, the root's included.
    pub fn levels(&self) -> usize {
        self.levels.len() - 1
    }

    /// Numbers of the first type of a level and of the first after it.
    pub fn level(&self, level: usize) -> (usize, usize) {
        (self.levels[level], self.levels[level + 1])
    }

    /// Numbers of the first leaf and of the one after the last.
    pub fn leaves(&self) -> (usize, usize) {
        self.level(self.levels() - 1)
    }

    /// A type and those above it, the root last.
    pub fn path(&self, number: usize) -> impl Iterator<Item = usize> + '_ {
        std::iter::successors(Some(number), |&n| self.get(n).parent)
    }

    /// The features that products of a type may have: its own and those of the types above.
    pub fn features(&self, number: usize) -> impl Iterator<Item = usize> + '_ {
        self.path(number).flat_map(|n| {
            let (first, end) = self.get(n).features;
            first..end
        })
    }

    /// How many features there are.
    pub fn feature_count(&self) -> usize {
        self.types.last().map_or(0, |leaf| leaf.features.1 - 1)
    }
}

/// Children of a type on each level.
fn branching(products: usize) -> Vec<usize> {
    let log = (products.max(10) as f64).log10();
    let depth = (log / 2.0).round() as usize + 1;
    let mut branching = vec![8; depth];
    branching[0] = 2 * log.round() as usize;
    if depth > 1 {
        branching[depth - 1] = [2, 4, 8][(log * 1.5 + 1.0).round() as usize % 3];
    }
    branching
}

/// Least and greatest number of features of a type, for each level below the root. Together a path has 40 to 80.
fn feature_ranges(depth: usize) -> Vec<(i64, i64)> {
    let sum = (depth * (depth + 1) / 2 - 1) as i64;
    (1..=depth as i64)
        .map(|level| {
            if level == 1 {
                (5, 5)
            } else {
                (35 * level / sum, 75 * level / sum)
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Products, children on each level, types in all.
    #[test]
    fn shapes() {
        for (products, children, types) in [
            (100, vec![4, 4], 21),
            (284, vec![4, 8], 37),
            (2785, vec![6, 8, 2], 151),
            (28_480, vec![8, 8, 8], 585),
            (284_826, vec![10, 8, 8, 2], 2011),
        ] {
            assert_eq!(branching(products), children, "{products}");
            assert_eq!(Hierarchy::new(1, products).len(), types, "{products}");
        }
    }

    #[test]
    fn levels_and_paths() {
        let tree = Hierarchy::new(1, 2785);
        assert_eq!(
            (tree.levels(), tree.level(0), tree.level(1)),
            (4, (1, 2), (2, 8))
        );
        assert_eq!(tree.leaves(), (56, 152));
        assert_eq!(tree.path(151).collect::<Vec<_>>(), [151, 55, 7, 1]);
        for leaf in 56..152 {
            let features = tree.features(leaf).count();
            assert!((40..=125).contains(&features), "{features}");
        }
        assert_eq!(tree.get(2).features.0, 1);
    }
}
