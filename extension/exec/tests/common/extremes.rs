//! Extremes of values.

use pgquad_exec::{Argument, Counted, Extreme};

/// An order of terms that is none of their ids.
pub fn term_order(a: u64, b: u64) -> std::cmp::Ordering {
    let mixed = |id: u64| (id.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 7, id);
    mixed(a).cmp(&mixed(b))
}

/// All extremes of argument 0.
pub const EXTREMES: [Counted; 4] = [
    Counted::Extreme(Argument::new(0), Extreme::LeastId),
    Counted::Extreme(Argument::new(0), Extreme::GreatestId),
    Counted::Extreme(Argument::new(0), Extreme::FirstTerm),
    Counted::Extreme(Argument::new(0), Extreme::LastTerm),
];

/// What [`EXTREMES`] are of some values.
pub fn extremes_of(values: &[Option<u64>]) -> [Option<u64>; 4] {
    let ids = values.iter().flatten().copied();
    let mut terms: Vec<u64> = ids.clone().collect();
    terms.sort_by(|&a, &b| term_order(a, b));
    let terms = Some(terms).filter(|terms| terms.len() == values.len());
    let first = terms.as_ref().and_then(|terms| terms.first().copied());
    let last = terms.as_ref().and_then(|terms| terms.last().copied());
    [ids.clone().min(), ids.max(), first, last]
}
