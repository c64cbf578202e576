//! When the symbol tables of a document are trained anew.

use pgquad_term::block::{Sampler, Symbols};

/// New text that is held back to train symbol tables from.
pub const TRAINING_BYTES: usize = 1 << 22;
/// No symbol tables are trained from less text.
pub const MIN_TRAINING_BYTES: usize = 1 << 16;
/// The next look at the symbol tables comes when the text has grown by this factor.
pub const TRAINING_GROWTH: usize = 8;

/// Whether new symbol tables suit a sample better than those in use: by a twentieth.
pub fn is_better(sampler: &Sampler, trained: &Symbols, known: &Symbols) -> bool {
    sampler.cost(trained) * 20 < sampler.cost(known) * 19
}
