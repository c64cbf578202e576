//! Which quads a shard of a distributed store has taken of those that came to it. The shards by subject decide what is
//! inserted, and those by object do the same. A decision of their own could be another one: a quad that was there may
//! have been deleted meanwhile.

use std::fmt;

/// What became of the quads that one command brought to a shard, in the order of the shard's first tree.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// Quads that were not there before.
    pub added: u64,
    /// Number of quads that the transaction has a version of its own of now, of those after them that are left as they
    /// were, and so on in turn.
    runs: Vec<u64>,
}

impl Taken {
    /// Notes the next quads: whether the transaction has versions of its own of them now.
    pub fn push(&mut self, own: bool, count: u64) {
        if self.runs.is_empty() {
            self.runs.push(0);
        }
        // Runs at even places are of own quads.
        if (self.runs.len() % 2 == 1) != own {
            self.runs.push(0);
        }
        if let Some(last) = self.runs.last_mut() {
            *last += count;
        }
    }

    /// Notes the next quads, none of which was there.
    pub fn push_new(&mut self, count: u64) {
        self.added += count;
        self.push(true, count);
    }

    /// The number of quads.
    pub fn quads(&self) -> u64 {
        self.runs.iter().sum()
    }

    /// For each quad in turn whether the transaction has a version of its own of it.
    pub fn each(self) -> impl Iterator<Item = bool> {
        let runs = self.runs.into_iter().enumerate();
        runs.flat_map(|(n, count)| (0..count).map(move |_| n % 2 == 0))
    }

    /// Reads what `to_string` has written.
    pub fn parse(text: &str) -> Option<Self> {
        let (added, runs) = text.split_once(':')?;
        let runs = runs.split(',').filter(|run| !run.is_empty());
        Some(Self {
            added: added.parse().ok()?,
            runs: runs.map(|run| run.parse().ok()).collect::<Option<_>>()?,
        })
    }
}

impl fmt::Display for Taken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.added)?;
        self.runs.iter().try_for_each(|run| write!(f, "{run},"))
    }
}

#[cfg(test)]
mod tests {
    use super::Taken;

    #[test]
    fn gives_back_what_it_was_told() {
        for bits in 0..1_u32 << 10 {
            let told: Vec<bool> = (0..10).map(|n| bits >> n & 1 == 1).collect();
            let mut taken = Taken::default();
            for &own in &told {
                if own {
                    taken.push_new(1);
                } else {
                    taken.push(false, 1);
                }
            }
            let read = Taken::parse(&taken.to_string()).unwrap();
            assert_eq!(read, taken);
            assert_eq!(
                (read.quads(), read.added),
                (10, u64::from(bits.count_ones()))
            );
            assert_eq!(read.each().collect::<Vec<_>>(), told);
        }
    }

    #[test]
    fn refuses_what_it_has_not_written() {
        for text in ["", "1", "x:1,", "1:x,", "1:-1,"] {
            assert_eq!(Taken::parse(text), None, "{text}");
        }
        assert_eq!(Taken::parse("0:"), Some(Taken::default()));
    }
}
