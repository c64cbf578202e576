//! Costs and limits that choices are made by, in one place.
//!
//! Times are in *quads*: the time in which one quad is read in a row and put into a hash table. They are ratios, which
//! machines of other speeds share. `cost_measure.rs` measures them, on trees in memory: a quad is 19 ns (2026-11, AMD
//! EPYC, 32 MB of L3 cache). What PostgreSQL's buffer manager adds to a probe is not in those figures.
//!
//! A constant is *measured* where a figure stands beside it. All others are rules of thumb: chosen on the Berlin
//! benchmark and held by the test that is named above them, but by no figure. A rule of thumb that is wrong costs time,
//! never an answer. Whoever changes one measures both sides of the choice (`bench/counts`, `bench/explore`), and writes
//! the figure here.

use std::time::Duration;

// Hash join or index probe (`optimizer/hash_policy.rs`; `tests/hash_build.rs`, `tests/join_order.rs`).

/// Quads: time of one index probe where a leaf holds several of the keys. Measured in memory: 2.9 to 3.8 (keys 5 to 120
/// quads apart). The rest stands for pinning and locking a buffer, and is a rule of thumb.
pub(crate) const PROBE_COST: f64 = 8.0;
/// Quads: time of one index probe where each key is on a leaf of its own. Measured in memory: 5.8 (keys 640 apart); the
/// rest as above, once for each page.
pub(crate) const FAR_PROBE_COST: f64 = 24.0;
/// Quads: time of one index probe where quads are read from other nodes. Each quad has to be sent, which makes a table
/// dearer. Measured on three nodes: 5.2 for 1,440 probes (10,000 quads to be read otherwise), more for larger batches.
pub(crate) const REMOTE_PROBE_COST: f64 = 6.0;
/// Quads: time of reading one quad that is only counted with others of its key, for the table of a hash join. Measured
/// on the reviews of 2,785 products: 6 ns of 19.
pub(crate) const COUNTED_QUAD_COST: f64 = 0.3;
/// Quads of a key from which on those of a table are counted where they are. With fewer the rows are hardly fewer than
/// the quads.
pub(crate) const COUNTED_QUADS_PER_KEY: f64 = 4.0;
/// Keys counted to guess how many quads a key has.
pub(crate) const COUNTED_SAMPLED_KEYS: usize = 6;
/// With so many quads between neighbouring keys each key is on a leaf of its own: about the quads of a leaf.
pub(crate) const FAR_QUADS_PER_KEY: u64 = 256;
/// Quads: time of sorting one row of a batch by its key. Measured: 0.8 to 0.9 for one column; more columns take more.
pub(crate) const SORT_COST: f64 = 1.5;
/// Quads: time of looking one row up in a hash table that the processor's caches hold. Measured: 0.2 (23 kB) to 0.46
/// (220 kB to 2.6 MB).
pub(crate) const LOOKUP_COST: f64 = 0.5;
/// Quads: the same where they do not hold it. Measured: 2.95 (63 MB).
pub(crate) const UNCACHED_LOOKUP_COST: f64 = 3.0;
/// Bytes of a hash table that the processor's caches hold: below the share of a core in most L3 caches.
pub(crate) const CACHED_BYTES: f64 = 4e6;
/// Share of the time that a hash table takes to build which it has to save for keys known to be left.
pub(crate) const SAVED_PER_BUILD: f64 = 0.5;
/// After probes have taken so many times the time of a build, the table is built whatever is known of the remaining
/// keys.
pub(crate) const OVERDUE_BUILDS: f64 = 3.0;
/// [`crate::Tuning::bulk_from`] times this many rows are a large batch.
pub(crate) const LARGE_BATCH_BULKS: usize = 8;
/// Rows of a batch from which on a pattern known to have few quads is joined by hash.
pub(crate) const SMALL_TABLE_ROWS: usize = 16;
/// Keys counted to guess the size of a table for one batch.
pub(crate) const BATCH_TABLE_SAMPLED_KEYS: usize = 6;
/// Rows looked up in a table in memory to guess what a batch finds in it.
pub(crate) const TABLE_SAMPLED_ROWS: usize = 64;
/// Quads, or keys with counts, read at once into a hash table; after each such piece the memory is looked at, and the
/// work may be cancelled.
pub(crate) const READ_QUADS: usize = 4096;

// Probe or merge (`operators/index_probe.rs`; `tests/steps.rs`).

/// Quads from the first to the last key, per key, below which all of them are read in a row instead of probed for.
pub(crate) const MERGE_QUADS_PER_KEY: usize = 10;
/// Rows of a batch up to which a list of values is made one key range for each of its members.
pub(crate) const LIST_RANGES_ROWS: usize = 8;

// Sorting of a batch (`operators/sort.rs`).

/// Rows: a smaller batch is sorted by comparisons. Measured: 0.3 quads a row of 16 so, 0.8 a row of 64 by ranks.
pub(crate) const COMPARED_ROWS: usize = 32;
/// Bits of a column's spread beyond which its values are replaced by their ranks before rows are packed into one word.
pub(crate) const PACKED_COLUMN_BITS: u32 = 24;

// Star joins (`optimizer/star_planning.rs`, `operators/star_join.rs`; `tests/steps.rs`).

/// Quads: time of probing for an arm after the first one, which is a [`PROBE_COST`]. Measured: 3.05.
pub(crate) const NEXT_ARM_COST: f64 = 3.0;
/// Quads for each row that all arms but the last may have together.
pub(crate) const STAR_QUADS_PER_ROW: f64 = 4.0;
/// Quads for each row that the last arm may have.
pub(crate) const STAR_LAST_ARM_QUADS_PER_ROW: f64 = 64.0;
/// Rows of a batch up to which a star is read to the end before filters are tested.
pub(crate) const STAR_UNTESTED_ROWS: usize = 16;
/// The same where each step is a message to every other node: 80 us of processor time, for which a node probes for some
/// hundred keys. Nor does a smaller batch make a hash table of a pattern that could be an arm.
pub(crate) const REMOTE_STAR_UNTESTED_ROWS: usize = 1024;
/// Quads from the first to the last key, per key and arm, below which all of them are read in a row.
pub(crate) const STAR_MERGE_QUADS_PER_KEY: f64 = 5.0;
/// Keys of one range where all quads between them are read.
pub(crate) const STAR_MERGED_KEYS: usize = 32;
/// Quads for each arm of each of those keys that a batch has room for.
pub(crate) const STAR_MERGED_QUADS_PER_KEY: usize = 32;
/// A gap between two of those keys so many times as wide as the average one is not read.
pub(crate) const STAR_WIDE_GAP: u64 = 32;
/// So many of these gaps, the first ones, have their quads counted to see what is left.
pub(crate) const STAR_MAX_COUNTED_GAPS: usize = 16;
/// Most full batches that one row may become in a star. Beyond that the patterns are joined one by one, as filters may
/// be tested in between.
pub(crate) const STAR_MOST_BATCHES_PER_ROW: usize = 16;

// Join order and estimates (`optimizer/join_order.rs`, `optimizer/estimates.rs`; `tests/join_order.rs`).

/// Share of rows that a filter leaves, for want of better knowledge: between PostgreSQL's 1/3 for `<` and 1.
pub(crate) const FILTER_SELECTIVITY: f64 = 0.5;
/// Quads of a pattern for each row up to which it is joined without a look at what filters leave of others.
pub(crate) const FEW_QUADS_PER_ROW: f64 = 32.0;
/// Rows of a batch from which on its best patterns are sampled anew instead of judged by earlier queries.
pub(crate) const CLOSE_LOOK_ROWS: usize = 1000;
/// Patterns that are then sampled.
pub(crate) const CLOSE_LOOK_PATTERNS: usize = 3;
/// Rows in and out of all steps from which on other first patterns are looked at: about a millisecond.
pub(crate) const LOOKAHEAD_ROWS: f64 = 4000.0;
/// Quads of the first pattern from which on these rows are estimated.
pub(crate) const LOOKAHEAD_START_ROWS: f64 = 64.0;
/// Quads and counts of keys that looking at other first patterns may take, as a share of these rows.
pub(crate) const LOOKAHEAD_READ_SHARE: f64 = 0.125;
/// The same for one of them, at most.
pub(crate) const MAX_LOOKAHEAD_READ: usize = 4096;
/// Rows in and out of all steps for which one key is counted of a pattern that follows. Where the rows are many, all of
/// its keys are counted: one of them may have most of the quads.
pub(crate) const LOOKAHEAD_ROWS_PER_KEY: f64 = 128.0;
/// Share of the rows that another first pattern has to have left: figures are of the past.
pub(crate) const LOOKAHEAD_GAIN: f64 = 0.5;
/// Rows that the next pattern makes from which on it is chosen by what it leads to.
pub(crate) const LOOKAHEAD_NEXT_ROWS: f64 = 64.0;
/// Quads of a pattern for each row from which on it waits for patterns that leave fewer rows.
pub(crate) const LOOKAHEAD_MULTIPLIES: f64 = 1.5;
/// Patterns of a chain. Each of them is chosen among all that are left.
pub(crate) const MAX_CHAIN: usize = 4;
/// Patterns of a group up to which chains are looked at.
pub(crate) const MAX_CHAINED_PATTERNS: u32 = 16;
/// Keys counted for an estimate.
pub(crate) const SAMPLED_KEYS: usize = 3;
/// Keys counted for an estimate of a large batch.
pub(crate) const CLOSELY_SAMPLED_KEYS: usize = 12;
/// Rows of a batch that are looked at for one whose quads are on this node, for each sampled key: 50 ns each, where a
/// message takes 80 us. With shards on eight nodes one in 5,000 such stretches has none.
pub(crate) const NEAR_SAMPLE_ROWS: usize = 64;
/// Ranges counted where one key has many; they stand for the others.
pub(crate) const COUNTED_RANGES: usize = 8;
/// Quads of a subject and predicate that are believed without a count: few subjects have more.
pub(crate) const SMALL_SUBJECT_QUADS: f64 = 4.0;
/// Quads of a subject and predicate of which nothing else is known.
pub(crate) const TYPICAL_SUBJECT_QUADS: f64 = 2.0;
/// Quads expected for a key that binds subject, predicate and object.
pub(crate) const BOUND_TRIPLE_QUADS: f64 = 0.5;
/// Share of a pattern's quads that have the value of a row.
pub(crate) const SAME_VALUE_SELECTIVITY: f64 = 0.005;
/// Cost of a quad that is in memory already, as a share of one that has to be looked up.
pub(crate) const IN_MEMORY_COST_SHARE: f64 = 0.9;
/// Key ranges that filters may leave to a variable; more are tested instead of looked up.
pub(crate) const MAX_PUSHED_RANGES: usize = 64;
/// Different values of a batch that are joined one by one, so that filters tell the ranges of equal ones.
pub(crate) const MAX_SINGLE_VALUES: usize = 4;

// Read-ahead (`optimizer/read_ahead.rs`).

/// Most rows of a batch whose next quads are read ahead: a message of a few keys costs as much as some hundred quads.
/// Measured on eight nodes, Explore query 7, where one product in seven has more than 32 offers: 14.8 messages instead
/// of 16.4 with 32 rows, and 0.93 of the time.
pub(crate) const READ_AHEAD_ROWS: usize = 64;
/// Ranges that are read ahead of a step, at most.
pub(crate) const READ_AHEAD_RANGES: usize = 256;

// Repartitioning (`pipeline/repartition.rs`).

/// Quads that are read and tested in the time in which a row is given to another participant. Chosen between what was
/// measured of 10M quads on three nodes: 7 ns to read and test one, 0.2 us to move a row.
pub(crate) const MOVED_ROW_COST: f64 = 16.0;

// Prefetch of hash build sides (`optimizer/prefetch.rs`).

/// Quads of a build side that is prefetched, at most: a wrong guess costs the nodes and the wire their reading (0.2 us
/// a quad, 5 bytes), a right one saves a round trip.
pub(crate) const MAX_PREFETCHED_QUADS: f64 = 8192.0;
/// The same where quads are counted on their nodes, which takes 6 ns each.
pub(crate) const MAX_PREFETCHED_COUNTED_QUADS: f64 = 65_536.0;
/// Plans whose build sides, or first patterns, are remembered; beyond it all are forgotten.
pub(crate) const MAX_PLANS_REMEMBERED: usize = 1000;

// Cardinality feedback (`optimizer/cardinality_feedback.rs`).

/// Age from which on a figure is measured anew: tables change.
pub(crate) const FEEDBACK_LIFETIME: Duration = Duration::from_secs(20);
/// Age from which on a figure is not even a hint for patterns further on.
pub(crate) const FEEDBACK_MEMORY: Duration = Duration::from_secs(600);
/// Figures kept, more than any workload has predicates; beyond it all are forgotten.
pub(crate) const MAX_FEEDBACK_FIGURES: usize = 20_000;
/// Probes from which on old ones lose weight against new ones.
pub(crate) const FEEDBACK_PROBES: f64 = 100_000.0;

// Semi-joins and duplicates (`operators/incremental_semi_join.rs`, `operators/distinct.rs`;
// `tests/incremental_semi_join.rs`).

/// Rows that are worth a round of their own.
pub(crate) const ROUND_ROWS: usize = 100;
/// The same where quads are read from other nodes, and a round is a message to each. Measured on three nodes with first
/// batches of as many rows, NOT EXISTS of Business Intelligence query 7: 8 messages instead of 19, 1.03 ms instead of
/// 1.39 for the query.
pub(crate) const REMOTE_ROUND_ROWS: usize = 400;
/// Rows for each row outside that go on in the first round, at least.
pub(crate) const FIRST_ROUND_SHARE: usize = 2;
/// Times as many rows for each row outside in the next round.
pub(crate) const ROUND_GROWTH: usize = 2;
/// Share of its outer rows that a round has to decide. Where it decides fewer, all waiting rows go on at once.
pub(crate) const ROUND_DECIDED_SHARE: f64 = 0.125;
/// Rows for each row outside that are asked of a step at once, so that there are some of all.
pub(crate) const ROUND_ROWS_PER_OUTER_ROW: f64 = 32.0;
/// Rows tested for duplicates before it is judged whether that pays.
pub(crate) const DISTINCT_TRIAL_ROWS: usize = 4096;
/// Share of the tested rows that have to be duplicates for it to pay.
pub(crate) const DISTINCT_DROPPED_SHARE: f64 = 0.05;
/// Batches of rows that are remembered for a step.
pub(crate) const DISTINCT_BATCHES: usize = 4;

// Aggregation (`operators/hash_aggregation.rs`, `operators/multiplicity_cache.rs`; `tests/hash_aggregation.rs`).

/// Groups that are kept in memory however little room there is.
pub(crate) const MIN_GROUPS_IN_MEMORY: usize = 64;
/// [`crate::Tuning::bulk_from`] times this many rows tell whether the keys of a multiplicity cache come again.
pub(crate) const MULTIPLICITY_TRIAL_BULKS: usize = 64;
