//! What probes of this session have found of the cardinality of patterns, for the joins that follow.

use pgquad_exec::CardinalityFeedback;
use std::cell::RefCell;

thread_local! {
    /// What probes of this session have found.
    static FEEDBACK: RefCell<CardinalityFeedback> = RefCell::new(CardinalityFeedback::new());
}

/// Runs `body` with what probes of this session have found. A filter may run a query of its own meanwhile, whose node
/// then learns for itself.
pub fn with_feedback<T>(body: impl FnOnce(&mut CardinalityFeedback) -> T) -> T {
    let mut feedback = FEEDBACK.take();
    let result = body(&mut feedback);
    FEEDBACK.set(feedback);
    result
}
