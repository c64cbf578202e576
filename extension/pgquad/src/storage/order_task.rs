//! A task with one order of a table, and what comes out of it.

use super::error::fail;
use super::snapshot::PgSnapshot;
use super::table::Table;
use pgquad_btree::VacuumStats;
use pgrx::pg_sys;

/// What is done with an order.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Task {
    /// Check its invariants.
    Verify,
    /// Prune and freeze its leaves, and take empty pages out.
    Vacuum,
}

/// Bytes for the problems that are found in an order; there may be more of them than find room.
const PROBLEM_BYTES: usize = 4 * 1024;

/// What has come out of a task with one order. It lies in shared memory.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct OrderReport {
    pub vacuumed: VacuumStats,
    pub visible: u64,
    pub digest: u128,
    /// Problems, each ended by a line feed.
    text: [u8; PROBLEM_BYTES],
    length: usize,
}

impl Default for OrderReport {
    fn default() -> Self {
        Self {
            vacuumed: VacuumStats::default(),
            visible: 0,
            digest: 0,
            text: [0; PROBLEM_BYTES],
            length: 0,
        }
    }
}

impl OrderReport {
    /// Adds a problem if there is room.
    fn note(&mut self, problem: &str) {
        let end = self.length + problem.len() + 1;
        if let Some(room) = self.text.get_mut(self.length..end) {
            room[..problem.len()].copy_from_slice(problem.as_bytes());
            room[problem.len()] = b'\n';
            self.length = end;
        }
    }

    /// The problems, one a line.
    pub fn problems(&self) -> impl Iterator<Item = String> + '_ {
        String::from_utf8_lossy(&self.text[..self.length])
            .lines()
            .map(str::to_owned)
            .collect::<Vec<_>>()
            .into_iter()
    }
}

impl Table {
    /// Does a task with order `n`.
    pub fn work_on(&self, task: Task, n: usize) -> OrderReport {
        match task {
            Task::Verify => self.verify_order(n),
            Task::Vacuum => OrderReport {
                vacuumed: self
                    .tree(n)
                    .vacuum(&self.status)
                    .unwrap_or_else(|e| fail(e)),
                ..OrderReport::default()
            },
        }
    }

    fn verify_order(&self, n: usize) -> OrderReport {
        // SAFETY: functions run with an active snapshot; parallel workers have that of their leader.
        let snapshot = unsafe { PgSnapshot::new(self.rel, pg_sys::GetActiveSnapshot()) };
        let found = self.tree(n).verify(&snapshot).unwrap_or_else(|e| fail(e));
        let mut report = OrderReport {
            visible: found.visible,
            digest: found.digest,
            ..OrderReport::default()
        };
        for problem in &found.problems {
            report.note(&problem.to_string());
        }
        report
    }
}
