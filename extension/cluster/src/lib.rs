//! What a store on many nodes needs and PostgreSQL does not have. It finds the shard that a value belongs to, deals out
//! reads to shards, and has the messages that nodes exchange. Knows nothing of PostgreSQL. See README.md beside this
//! crate.

pub mod ahead;
pub mod deal;
pub mod dictionary;
pub mod exchange;
pub mod groups;
pub mod hash;
pub mod message;
pub mod moves;
pub mod placement;
pub mod polling;
pub mod prefetch;
pub mod push;
pub mod quad_batches;
pub mod read_cache;
pub mod read_history;
pub mod reading;
pub mod results;
pub mod ring_cache;
pub mod serving;
pub mod statement_chunks;
pub mod status;
pub mod taken;
pub mod traffic;
pub mod waiting;
pub mod wire;

pub use ahead::{ReadAhead, Wish};
pub use deal::{shard_of_range, Deal, ShardRanges};
pub use placement::{Placement, Shard, SortedKeys};
pub use polling::Polling;
pub use prefetch::Prefetches;
pub use read_cache::ReadCache;
pub use read_history::ReadHistory;
pub use reading::{Reading, Shards};
pub use statement_chunks::statement_chunks;
pub use traffic::Traffic;
pub use waiting::{Mark, Waiting};
pub use wire::{Damaged, Reader, Writer};
