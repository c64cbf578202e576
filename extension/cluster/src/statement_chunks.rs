//! What goes into one statement of Citus about some quads. It gives the whole list to every shard that one of them is
//! in. So a statement costs as much as its shards times its quads, besides what each statement costs.

use std::ops::Range;

/// Chunks of quads that are sorted by shard, for a statement each. `of_shards` has the number of quads of one shard
/// after the other. A chunk has at most `most` quads. Quads of several shards share one only where that gives all its
/// shards together at most `spared` quads that are none of theirs: so many cost about as much as another statement.
#[must_use]
pub fn statement_chunks(of_shards: &[usize], most: usize, spared: usize) -> Vec<Range<usize>> {
    let most = most.max(1);
    let mut chunks: Vec<Range<usize>> = Vec::new();
    // Shards of the last chunk, if it may get another one.
    let mut shared = 0;
    let mut start = 0;
    for &count in of_shards.iter().filter(|&&count| count > 0) {
        let end = start + count;
        // Each shard gets the quads of all others.
        let fits = |chunk: &Range<usize>| {
            let together = chunk.len() + count;
            shared > 0 && together <= most && together * shared <= spared
        };
        match chunks.last_mut() {
            Some(last) if fits(last) => {
                last.end = end;
                shared += 1;
            }
            _ => {
                let starts = (start..end).step_by(most);
                chunks.extend(starts.map(|from| from..end.min(from + most)));
                shared = usize::from(count <= most);
            }
        }
        start = end;
    }
    chunks
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn few_quads_of_many_shards_share_a_statement() {
        let ends = |of_shards: &[usize]| -> Vec<usize> {
            let chunks = statement_chunks(of_shards, 100, 250).into_iter();
            chunks.map(|chunk| chunk.end).collect()
        };
        assert_eq!(ends(&[1, 1, 0, 1, 1]), [4]);
        assert_eq!(ends(&[90, 80, 70]), [90, 170, 240]);
        assert_eq!(ends(&[250]), [100, 200, 250]);
        assert_eq!(ends(&[]), [] as [usize; 0]);
    }

    proptest! {
        #[test]
        fn all_quads_are_in_one_chunk(
            of_shards in prop::collection::vec(0usize..40, 0..20),
            most in 1usize..50,
            spared in 0usize..200,
        ) {
            let chunks = statement_chunks(&of_shards, most, spared);
            let mut next = 0;
            for chunk in &chunks {
                prop_assert_eq!(chunk.start, next);
                prop_assert!(!chunk.is_empty() && chunk.len() <= most);
                next = chunk.end;
                let mut start = 0;
                let mut shards = 0;
                for &count in &of_shards {
                    shards += usize::from(count > 0 && start < chunk.end && start + count > chunk.start);
                    start += count;
                }
                let strange = chunk.len() * (shards - 1);
                prop_assert!(strange <= spared, "{shards} shards, {} quads", chunk.len());
            }
            prop_assert_eq!(next, of_shards.iter().sum::<usize>());
        }
    }
}
