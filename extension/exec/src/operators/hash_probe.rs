//! The probe side of a hash join: a batch of rows is joined with quads that a table in memory holds.

use crate::access::access_path::AccessPath;
use crate::bindings::{Bindings, Column};
use crate::operators::hash_table::Table;
use crate::plan::SlotSet;
use crate::tuning::Tuning;
use std::rc::Rc;

/// A batch of rows being joined with a table of a pattern's quads.
pub(crate) struct HashProbe {
    table: Rc<Table>,
    access: AccessPath,
    input: Bindings,
    live: SlotSet,
    /// The table's key of each row.
    keys: Vec<u32>,
    /// Number of all rows that come out.
    pub count: usize,
    /// Where to go on: row of the input, place among the quads of its key.
    row: usize,
    quad: usize,
    /// Rows to hand out at once; grows from batch to batch.
    chunk: usize,
    most: usize,
    pairs: (Vec<u32>, Vec<u32>),
}

impl HashProbe {
    /// Starts to join `input` with a table that was read with `access`; its keys are the variables known to the rows.
    pub fn new(
        table: Rc<Table>,
        access: AccessPath,
        input: Bindings,
        live: SlotSet,
        tuning: Tuning,
    ) -> Self {
        let columns: Vec<&[u64]> = access.known.iter().filter_map(|k| input.ids(k.0)).collect();
        let keys = table.find_all(&columns, input.len);
        Self::found(keys, table, access, input, live, tuning)
    }

    /// The same for rows that have these keys.
    pub fn by(
        keys: &[&[u64]],
        table: Rc<Table>,
        access: AccessPath,
        input: Bindings,
        live: SlotSet,
        tuning: Tuning,
    ) -> Self {
        let keys = table.find_all(keys, input.len);
        Self::found(keys, table, access, input, live, tuning)
    }

    fn found(
        keys: Vec<u32>,
        table: Rc<Table>,
        access: AccessPath,
        input: Bindings,
        live: SlotSet,
        Tuning { first, most, .. }: Tuning,
    ) -> Self {
        Self {
            count: keys.iter().map(|&key| table.quads(key).len()).sum(),
            keys,
            table,
            access,
            chunk: first.max(input.len).clamp(1, most.max(1)),
            most: most.max(1),
            input,
            live,
            row: 0,
            quad: 0,
            pairs: Default::default(),
        }
    }

    /// The rows that went in.
    pub fn into_input(self) -> Bindings {
        self.input
    }

    /// Hands out at least so many rows at once from now on, within the size of batches.
    pub fn widen(&mut self, rows: usize) {
        self.chunk = self.chunk.max(rows).min(self.most);
    }

    /// Number of rows looked up.
    pub fn rows(&self) -> usize {
        self.keys.len()
    }

    /// The table.
    pub fn table(&self) -> &Rc<Table> {
        &self.table
    }

    /// Which part of the rows has been joined.
    pub fn done(&self) -> f64 {
        self.row as f64 / self.keys.len() as f64
    }

    /// The number of quads for each row of the input.
    pub fn multiplicities(&self) -> Vec<u64> {
        let quads = self.keys.iter().map(|&key| self.table.quads(key).len());
        quads.map(|n| n as u64).collect()
    }

    /// The next rows, `None` at the end.
    pub fn next(&mut self) -> Option<Bindings> {
        self.pair();
        if self.pairs.0.is_empty() {
            return None;
        }
        self.chunk = (self.chunk * 4).min(self.most);
        let mut rows = self.input.gather(&self.pairs.0, &self.live);
        for (n, &(slot, _)) in self.access.fills.iter().enumerate() {
            let values = self.table.values(n);
            let ids = self.pairs.1.iter().map(|&q| values[q as usize]).collect();
            rows.columns[slot.index()] = Column::Ids(ids);
        }
        Some(rows)
    }

    /// Pairs rows with quads, a chunk of them.
    fn pair(&mut self) {
        let (rows, quads) = &mut self.pairs;
        rows.clear();
        quads.clear();
        while let Some(&key) = self.keys.get(self.row) {
            let all = self.table.quads(key);
            let from = all.start + self.quad;
            let to = all.end.min(from + self.chunk - rows.len());
            rows.resize(rows.len() + to - from, self.row as u32);
            quads.extend(from as u32..to as u32);
            if rows.len() >= self.chunk && to < all.end {
                self.quad = to - all.start;
                return;
            }
            self.quad = 0;
            self.row += 1;
        }
    }
}
