//! What the participants of a pushed join find and cost, taken by the node that was asked.

use crate::cluster::connection::Participants;
use crate::cluster::damaged;
use pgquad_cluster::push::{Cost, Found};
use pgquad_cluster::wire::Damaged;
use pgquad_exec::{Bindings, Column, HashAggregation, Slot};
use std::borrow::Cow;

/// Why a join is not pushed.
pub type Refused = Cow<'static, str>;

/// Rows from the participants of a join.
pub struct Pushed {
    pub participants: Option<Participants>,
    /// Node and cost of each participant that has ended.
    pub names: Vec<String>,
}

/// What has been pushed by a node so far, for EXPLAIN.
#[derive(Default)]
pub struct Report {
    /// By participant: its node, and what it has cost.
    pub nodes: Vec<(String, Cost)>,
    /// Times that the join was pushed.
    pub times: u64,
    /// Why it was not pushed the last time.
    pub refused: Option<Refused>,
    /// Bytes that have come from participants.
    pub received: u64,
    /// Nanoseconds spent waiting for them.
    pub waited: u64,
}

impl Pushed {
    /// The next message with something found; what participants have cost goes into `report`, and the figures of their
    /// steps to `ended`.
    fn next(&mut self, report: &mut Report, ended: &mut impl FnMut(&Cost)) -> Option<Found> {
        let participants = self.participants.as_mut()?;
        while let Some((from, found)) = participants.next_message() {
            let Found::End(cost) = found else {
                return Some(found);
            };
            ended(&cost);
            report.add(&self.names[from], &cost);
        }
        self.finish(report);
        None
    }

    /// The next rows; `None` at the end.
    pub fn rows(
        &mut self,
        (slots, output): (usize, &[Slot]),
        report: &mut Report,
        mut ended: impl FnMut(&Cost),
    ) -> Option<Bindings> {
        match self.next(report, &mut ended)? {
            Found::Rows(len, columns) if columns.len() == output.len() => {
                let mut rows = Bindings {
                    len,
                    columns: vec![Column::Absent; slots],
                };
                for (&slot, column) in output.iter().zip(columns) {
                    rows.columns[slot.index()] = column.map_or(Column::Null, Column::Ids);
                }
                Some(rows)
            }
            _ => damaged(Damaged),
        }
    }

    /// Adds the groups of all participants.
    pub fn count(
        &mut self,
        mut aggregation: HashAggregation,
        report: &mut Report,
        mut ended: impl FnMut(&Cost),
    ) -> HashAggregation {
        let mut rows = 0;
        let places = aggregation.by().len() + 1;
        let mut of_all = |cost: &Cost| {
            rows += cost.answered;
            ended(cost);
        };
        while let Some(found) = self.next(report, &mut of_all) {
            match found {
                Found::Groups(_, keys, counts)
                    if keys.len() == places && counts.len() == aggregation.words() =>
                {
                    aggregation.add_groups(&keys, &counts);
                }
                _ => damaged(Damaged),
            }
        }
        aggregation.add_rows(rows);
        aggregation.finish();
        aggregation
    }

    /// Ends the work of participants that are at it, and keeps their sessions.
    pub fn finish(&mut self, report: &mut Report) {
        if let Some(participants) = self.participants.take() {
            report.received += participants.received;
            report.waited += participants.waited;
            participants.finish();
        }
    }
}

impl Report {
    fn add(&mut self, name: &str, cost: &Cost) {
        let known = self.nodes.iter().position(|node| node.0 == name);
        let at = known.unwrap_or_else(|| {
            self.nodes.push((name.to_owned(), Cost::default()));
            self.nodes.len() - 1
        });
        let sum = &mut self.nodes[at].1;
        for (sum, more) in [
            (&mut sum.answered, cost.answered),
            (&mut sum.messages, cost.messages),
            (&mut sum.bytes, cost.bytes),
            (&mut sum.rows, cost.rows),
            (&mut sum.blocked_writes, cost.blocked_writes),
            (&mut sum.blocked, cost.blocked),
            (&mut sum.waited, cost.waited),
            (&mut sum.spilled, cost.spilled),
            (&mut sum.groups_spilled, cost.groups_spilled),
        ] {
            *sum += more;
        }
    }
}
