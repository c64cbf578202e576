//! Casts of terms to `xsd:float`. They are remembered, as reading a term costs far more.
//!
//! Joins come to terms in no order of their numbers. So the block of each would be opened, and most of it forgotten
//! before the next of its terms is wanted. When a block is opened for the second time in a transaction, all of its
//! terms with the datatype of the one that is wanted are cast.

use pgquad_term::number_pages::NumberPages;
use rustc_hash::{FxBuildHasher, FxHashSet};

/// Blocks that are remembered to have been opened: 1 MB.
const MAX_OPENED_BLOCKS: usize = 1 << 15;
/// The bits that stand for an error: a NaN that no cast gives.
const FAILED: u32 = 0x7fc0_0bad;
/// The numbers of texts that are cast are marked, to differ from the same terms as they are.
const TEXT_BIT: u64 = 1 << 63;

/// What is cast to a float.
#[derive(Clone, Copy)]
pub enum Cast {
    /// The term.
    Term,
    /// Its lexical form, or IRI.
    Text,
}

impl Cast {
    fn key(self, number: u64) -> u64 {
        match self {
            Self::Term => number,
            Self::Text => number | TEXT_BIT,
        }
    }
}

/// Casts that a session remembers.
#[derive(Default)]
pub struct Casts {
    /// Bits of floats, or [`FAILED`].
    floats: NumberPages<FxBuildHasher>,
    /// The keys of the first numbers of blocks that have been opened for one cast each.
    opened: FxHashSet<u64>,
}

impl Casts {
    /// Changes the bytes that may be used.
    pub fn set_limit(&mut self, bytes: usize) {
        self.floats.set_limit(bytes);
    }

    /// Forgets what is beyond `bytes`.
    pub fn trim(&mut self, bytes: usize) {
        self.floats.trim(bytes);
        self.opened = FxHashSet::default();
    }

    /// The cast of the term with this number, if it is remembered; `Some(None)` is an error of the cast.
    pub fn get(&mut self, cast: Cast, number: u64) -> Option<Option<f32>> {
        self.floats.get(cast.key(number)).map(float_of_bits)
    }

    /// Remembers a cast.
    pub fn put(&mut self, cast: Cast, number: u64, float: Option<f32>) {
        self.floats.put(cast.key(number), bits(float));
    }

    /// Notes that the block whose first term has this number is opened for a cast; whether it has been before.
    pub fn is_opened_again(&mut self, cast: Cast, first: u64) -> bool {
        let first = cast.key(first);
        if self.opened.len() >= MAX_OPENED_BLOCKS {
            self.opened.clear();
        }
        // The third time is a first time again: what was remembered has been forgotten since.
        let again = self.opened.remove(&first);
        if !again {
            self.opened.insert(first);
        }
        again
    }
}

fn bits(float: Option<f32>) -> u32 {
    match float {
        None => FAILED,
        Some(float) if float.is_nan() => f32::NAN.to_bits(),
        Some(float) => float.to_bits(),
    }
}

fn float_of_bits(bits: u32) -> Option<f32> {
    (bits != FAILED).then(|| f32::from_bits(bits))
}
