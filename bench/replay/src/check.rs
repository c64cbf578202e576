//! One pass over the log in which every store's answers are compared with those of the first one.

use std::time::Duration;

use crate::answer::Answer;
use crate::log::{Form, Query};
use crate::target::{Session, Target};

/// What came of the comparison for one store.
#[derive(Default)]
pub struct Outcome {
    /// Answers that are the same as the first store's (for the first store: that it gave at all).
    pub equal: usize,
    /// Answers that nobody compares: every store has its own idea of a description.
    pub free: usize,
    /// Position in the log, number of the template, and what differs.
    pub different: Vec<(usize, u64, String)>,
    /// Position in the log, number of the template, and the error.
    pub failed: Vec<(usize, u64, String)>,
}

/// Compares the answers to each `every`th query.
pub fn check(
    targets: &[Target],
    log: &[Query],
    every: usize,
    timeout: Duration,
) -> Result<Vec<Outcome>, String> {
    let sessions: Result<Vec<Session>, String> =
        targets.iter().map(|t| t.connect(log, timeout)).collect();
    let mut sessions = sessions?;
    let mut outcomes: Vec<Outcome> = targets.iter().map(|_| Outcome::default()).collect();
    for (position, query) in log.iter().enumerate().step_by(every) {
        let mut reference: Option<Answer> = None;
        for (index, session) in sessions.iter_mut().enumerate() {
            let answer = session
                .ask(position, query, |bytes| Answer::parse(query.form, bytes))
                .and_then(|parsed| parsed);
            let outcome = &mut outcomes[index];
            match (answer, &reference) {
                (Err(error), _) => outcome.failed.push((position, query.number, error)),
                (Ok(_), _) if query.form == Form::Describe => outcome.free += 1,
                (Ok(answer), None) => {
                    outcome.equal += 1;
                    reference = Some(answer);
                }
                (Ok(answer), Some(wanted)) => match answer.difference(wanted, query) {
                    None => outcome.equal += 1,
                    Some(text) => outcome.different.push((position, query.number, text)),
                },
            }
        }
    }
    Ok(outcomes)
}
