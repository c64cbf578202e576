//! Extents: runs of numbers that share their upper bits. All terms of an extent are in one shard of a distributed dictionary, and no
//! block of terms reaches from one extent into the next.

/// Numbers in an extent. Small, so that the shards of a distributed dictionary together use few more numbers than they have terms (the
/// trees of quads pack ids the better the closer they are); large against the 255 terms of a block.
pub const EXTENT: u64 = 1 << 13;

/// The extent that a number belongs to.
pub fn extent_of(number: u64) -> u64 {
    number / EXTENT
}
