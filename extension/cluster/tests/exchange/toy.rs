//! Chains of joins over random graphs, dealt out by value.

use super::Random;
use pgquad_cluster::exchange::{Dealt, Ran, Rows, Work};
use std::convert::Infallible;

/// One pattern of the chain.
#[derive(Clone, Debug)]
struct Relation {
    /// Pairs of values.
    edges: Vec<(u64, u64)>,
    /// The column of the rows that is the first value of the pairs.
    from: usize,
    /// The second value is no new column: rows stay that have it in column 0.
    closes: bool,
    /// Participants read all of it wherever the rows are.
    everywhere: bool,
}

/// Pairs, joined with pairs, and so on.
#[derive(Clone, Debug)]
pub struct Query {
    first: Vec<(u64, u64)>,
    relations: Vec<Relation>,
}

impl Query {
    pub fn random(seed: u64, values: u64, steps: usize, edges: usize) -> Self {
        let mut random = Random(seed);
        let mut value = |end: usize| random.below(end);
        let list = |value: &mut dyn FnMut(usize) -> usize| -> Vec<(u64, u64)> {
            let pair = |_| (value(values as usize) as u64, value(values as usize) as u64);
            (0..edges).map(pair).collect()
        };
        let first = list(&mut value);
        let mut columns = 2;
        let relations = (0..steps)
            .map(|_| {
                let closes = value(4) == 0;
                let relation = Relation {
                    edges: list(&mut value),
                    from: value(columns),
                    closes,
                    everywhere: value(4) == 0,
                };
                columns += usize::from(!closes);
                relation
            })
            .collect();
        Self { first, relations }
    }

    fn extended(&self, step: usize, row: &[u64]) -> Vec<Vec<u64>> {
        let relation = &self.relations[step];
        let edges = relation.edges.iter();
        let fit = edges.filter(|edge| edge.0 == row[relation.from]);
        if relation.closes {
            let closed = fit.filter(|edge| edge.1 == row[0]);
            return closed.map(|_| row.to_vec()).collect();
        }
        fit.map(|edge| [row, &[edge.1]].concat()).collect()
    }

    /// The answer, sorted.
    pub fn nested_loops(&self) -> Vec<Vec<u64>> {
        let mut rows: Vec<Vec<u64>> = self.first.iter().map(|&(a, b)| vec![a, b]).collect();
        for step in 0..self.relations.len() {
            rows = rows
                .iter()
                .flat_map(|row| self.extended(step, row))
                .collect();
        }
        rows.sort_unstable();
        rows
    }
}

/// Which part of the data a participant has.
#[derive(Clone, Copy)]
pub struct Part {
    pub me: usize,
    pub nodes: usize,
}

impl Part {
    fn owner(self, value: u64) -> usize {
        (value.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize % self.nodes
    }
}

/// Rows that a step is to be done for.
struct Batch {
    step: usize,
    rows: Vec<Vec<u64>>,
    taken: bool,
}

/// The join of one participant.
pub struct Join<'a> {
    query: &'a Query,
    part: Part,
    /// Rows that one unit of work is about.
    unit: usize,
    stack: Vec<Batch>,
}

impl<'a> Join<'a> {
    pub fn new(query: &'a Query, part: Part, unit: usize) -> Self {
        Self {
            query,
            part,
            unit,
            stack: Vec::new(),
        }
    }

    /// Rows that have come out of a step: those whose next pairs are elsewhere go there.
    fn go_on(&mut self, step: usize, rows: Vec<Vec<u64>>, dealt: &mut Dealt) {
        let Some(relation) = self.query.relations.get(step) else {
            return;
        };
        let owner = |row: &Vec<u64>| match relation.everywhere {
            true => self.part.me,
            false => self.part.owner(row[relation.from]),
        };
        let width = rows.first().map_or(0, Vec::len);
        let column = |c: usize| rows.iter().map(|row| row[c]).collect::<Vec<u64>>();
        let columns: Vec<Vec<u64>> = (0..width).map(column).collect();
        let columns: Vec<&[u64]> = columns.iter().map(Vec::as_slice).collect();
        for to in (0..self.part.nodes).filter(|&to| to != self.part.me) {
            let there = (0..rows.len()).filter(|&row| owner(&rows[row]) == to);
            let there: Vec<u32> = there.map(|row| row as u32).collect();
            dealt.add_chosen(to, &[step as u8], &columns, &there);
        }
        let me = self.part.me;
        let here: Vec<Vec<u64>> = rows
            .iter()
            .filter(|row| owner(row) == me)
            .cloned()
            .collect();
        if !here.is_empty() {
            self.stack.push(Batch {
                step,
                rows: here,
                taken: false,
            });
        }
    }
}

impl Work for Join<'_> {
    type Result = Vec<Vec<u64>>;
    type Error = Infallible;

    fn start(&mut self, dealt: &mut Dealt) -> Result<(), Infallible> {
        let first = self.query.first.iter();
        let own = first.filter(|edge| self.part.owner(edge.0) == self.part.me);
        self.go_on(0, own.map(|edge| vec![edge.0, edge.1]).collect(), dealt);
        Ok(())
    }

    fn depth(&self, state: &[u8]) -> u32 {
        u32::from(state[0])
    }

    fn open(&self) -> usize {
        self.stack.iter().filter(|batch| batch.taken).count()
    }

    fn take(&mut self, state: &[u8], rows: Rows) -> Result<(), Infallible> {
        let row = |n: usize| rows.columns.iter().map(|column| column[n]).collect();
        let step = usize::from(state[0]);
        let below = self.stack.iter().rev().find(|batch| batch.taken);
        assert!(
            below.is_none_or(|below| below.step < step),
            "only deeper rows come on top"
        );
        self.stack.push(Batch {
            step,
            rows: (0..rows.len).map(row).collect(),
            taken: true,
        });
        Ok(())
    }

    fn run(&mut self, dealt: &mut Dealt) -> Result<Ran<Vec<Vec<u64>>>, Infallible> {
        let Some(batch) = self.stack.last_mut() else {
            return Ok(Ran::Idle);
        };
        let step = batch.step;
        let rest = batch.rows.len().saturating_sub(self.unit);
        let now = batch.rows.split_off(rest);
        if batch.rows.is_empty() && !batch.taken {
            self.stack.pop();
        } else if now.is_empty() {
            self.stack.pop();
            return Ok(Ran::More);
        }
        let out: Vec<Vec<u64>> = now
            .iter()
            .flat_map(|row| self.query.extended(step, row))
            .collect();
        if step + 1 == self.query.relations.len() {
            return Ok(if out.is_empty() {
                Ran::More
            } else {
                Ran::Result(out)
            });
        }
        self.go_on(step + 1, out, dealt);
        Ok(Ran::More)
    }
}
