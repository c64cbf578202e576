//! Prefetch: whole reads that are sent before the step that needs them comes. They travel with a message that goes to
//! their node anyway, or at the same time, and spare the step its round trip. Example: the first message of a join asks
//! for the build side of a later hash join.
//!
//! A node answers in the order in which it is asked. So this keeps the order of what is under way: prefetched reads,
//! and messages whose answers somebody waits for.

use crate::message::Rows;
use crate::placement::each_once;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::rc::Rc;

/// An encoded read, with Citus' number of the group of its node.
pub type Request = (i32, Vec<u8>);

/// Reads that are sent before they are needed, and their answers.
#[derive(Default)]
pub struct Prefetches {
    /// What goes with the next message to its node.
    pending: Vec<Request>,
    /// By group of nodes that a read has been sent to: what their answers will be for, in order. `None`: a message that
    /// somebody waits for.
    under_way: FxHashMap<i32, VecDeque<Option<Vec<u8>>>>,
    answered: FxHashMap<Request, Rc<Rows>>,
}

impl Prefetches {
    /// Asks for a read with the next message.
    pub fn ask(&mut self, request: Request) {
        if !self.has(&request) {
            self.pending.push(request);
        }
    }

    /// Whether a read is asked for, or its answer is here.
    #[must_use]
    pub fn has(&self, request: &Request) -> bool {
        let (group, encoded) = request;
        let mut under_way = self.under_way.get(group).into_iter().flatten();
        self.pending.contains(request)
            || under_way.any(|sent| sent.as_ref() == Some(encoded))
            || self.answered.contains_key(request)
    }

    /// The groups of nodes that something is to be sent to.
    #[must_use]
    pub fn groups_to_ask(&self) -> Vec<i32> {
        each_once(self.pending.iter().map(|request| request.0))
    }

    /// The groups of nodes that have not answered all reads.
    #[must_use]
    pub fn groups_under_way(&self) -> Vec<i32> {
        let busy = self.under_way.iter().filter(|of| !of.1.is_empty());
        each_once(busy.map(|of| *of.0))
    }

    /// What is to be sent to a node now, where the answers to so many messages are waited for.
    pub fn send(&mut self, group: i32, waiting: usize) -> Vec<Vec<u8>> {
        let (now, later): (Vec<_>, Vec<_>) = std::mem::take(&mut self.pending)
            .into_iter()
            .partition(|request| request.0 == group);
        self.pending = later;
        if now.is_empty() {
            return Vec::new();
        }
        let under_way = self.under_way.entry(group).or_default();
        if under_way.is_empty() {
            under_way.resize(waiting, None);
        }
        let requests: Vec<Vec<u8>> = now.into_iter().map(|request| request.1).collect();
        under_way.extend(requests.iter().cloned().map(Some));
        requests
    }

    /// A message has been sent whose answer somebody waits for.
    pub fn message_sent(&mut self, group: i32) {
        if let Some(under_way) = self.under_way.get_mut(&group) {
            if !under_way.is_empty() {
                under_way.push_back(None);
            }
        }
    }

    /// Whether the next answer of a node is that to a prefetched read.
    #[must_use]
    pub fn is_next(&self, group: i32) -> bool {
        let under_way = self.under_way.get(&group);
        under_way.is_some_and(|under_way| matches!(under_way.front(), Some(Some(_))))
    }

    /// Takes notice of an answer of a node. Returns the prefetched read that it is for, if it is for one.
    pub fn message_answered(&mut self, group: i32) -> Option<Request> {
        let under_way = self.under_way.get_mut(&group)?;
        let answered = under_way.pop_front()?;
        // Only messages are left: their order does not matter.
        if under_way.iter().all(Option::is_none) {
            under_way.clear();
        }
        answered.map(|encoded| (group, encoded))
    }

    /// Keeps the answer to a prefetched read.
    pub fn keep(&mut self, request: Request, rows: Rows) {
        self.answered.insert(request, Rc::new(rows));
    }

    /// The answers that have come and were not taken. What has not been sent is no longer asked for.
    pub fn take_all(&mut self) -> impl Iterator<Item = (Request, Rc<Rows>)> {
        self.pending.clear();
        std::mem::take(&mut self.answered).into_iter()
    }

    /// The answer to a read, where it has come. It is handed out once.
    pub fn take(&mut self, request: &Request) -> Option<Rc<Rows>> {
        self.answered.remove(request)
    }

    /// Forgets what has not been answered: nobody waits for it any more.
    pub fn abandon(&mut self) {
        self.pending.clear();
        self.under_way.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pgquad_btree::Batch;

    fn rows(len: usize) -> Rows {
        Rows {
            batch: Batch::from_columns(1, [vec![7; len], Vec::new(), Vec::new(), Vec::new()], len),
            ..Rows::default()
        }
    }

    /// Takes the next answer; whether it was for a message.
    fn answer(prefetches: &mut Prefetches, group: i32, len: usize) -> bool {
        let is_prefetched = prefetches.is_next(group);
        let request = prefetches.message_answered(group);
        assert_eq!(request.is_some(), is_prefetched);
        if let Some(request) = request {
            prefetches.keep(request, rows(len));
        }
        !is_prefetched
    }

    #[test]
    fn answers_come_in_the_order_of_what_was_sent() {
        let mut prefetches = Prefetches::default();
        let [first, second, other] = [(1, vec![1]), (1, vec![2]), (2, vec![1])];
        for request in [&first, &second, &other, &first] {
            prefetches.ask(request.clone());
        }
        assert_eq!(prefetches.groups_to_ask(), [1, 2]);
        // A message is waited for already, and another one follows.
        assert_eq!(prefetches.send(1, 1), [vec![1], vec![2]]);
        prefetches.message_sent(1);
        prefetches.ask(first.clone());
        assert_eq!(prefetches.groups_to_ask(), [2]);
        assert_eq!(prefetches.groups_under_way(), [1]);
        let order: Vec<bool> = (0..4).map(|len| answer(&mut prefetches, 1, len)).collect();
        assert_eq!(order, [true, false, false, true]);
        assert!(prefetches.groups_under_way().is_empty());
        assert_eq!(prefetches.take(&first).map(|r| r.batch.len()), Some(1));
        assert_eq!(prefetches.take(&second).map(|r| r.batch.len()), Some(2));
        assert!(prefetches.take(&first).is_none() && !prefetches.has(&first));
        assert!(prefetches.has(&other));
        assert_eq!(prefetches.send(2, 0), [vec![1]]);
        answer(&mut prefetches, 2, 7);
        prefetches.ask((2, vec![3]));
        let left: Vec<_> = prefetches
            .take_all()
            .map(|(of, rows)| (of, rows.batch.len()))
            .collect();
        assert_eq!(left, [(other, 7)]);
        assert!(prefetches.groups_to_ask().is_empty());
    }

    #[test]
    fn messages_without_reads_are_not_remembered() {
        let mut prefetches = Prefetches::default();
        prefetches.message_sent(1);
        assert!(answer(&mut prefetches, 1, 0));
        prefetches.ask((1, vec![1]));
        assert_eq!(prefetches.send(1, 0), [vec![1]]);
        assert!(!answer(&mut prefetches, 1, 5));
        // The next one is for whatever is asked next.
        prefetches.message_sent(1);
        assert!(!prefetches.is_next(1));
    }

    #[test]
    fn what_is_abandoned_is_not_waited_for() {
        let mut prefetches = Prefetches::default();
        prefetches.ask((1, vec![1]));
        prefetches.send(1, 0);
        prefetches.ask((2, vec![1]));
        prefetches.abandon();
        assert_eq!(prefetches.take_all().count(), 0);
        assert!(prefetches.groups_to_ask().is_empty() && prefetches.groups_under_way().is_empty());
        assert!(!prefetches.is_next(1) && !prefetches.has(&(1, vec![1])));
    }
}
