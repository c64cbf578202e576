//! Value hash join: a batch of rows is joined with a pattern's quads by a hash of the value. Equal values have equal
//! keys, whatever their ids.
//!
//! The quads are read once into a hash table that is kept for later batches. Where memory has no room for all, a part
//! of them at a time is joined with the whole batch. Equal keys do not say that values are equal: a filter does.

use crate::access::access_path::{AccessPath, Places, PushedRanges};
use crate::access::residual_predicates::{LastTriples, ResidualMask};
use crate::bindings::Bindings;
use crate::cost::READ_QUADS;
use crate::operators::hash_probe::HashProbe;
use crate::operators::hash_table::{Builder, Table};
use crate::plan::condition::Value;
use crate::plan::{ColumnNumber, SameValue, SlotSet, TableNumber};
use crate::source::{Source, ValueKey};
use crate::tuning::Tuning;
use pgquad_btree::{Batch, Key, Span};
use pgquad_cluster::Reading;
use std::rc::Rc;

/// The only key of quads that have to be compared with each row.
const EACH: u64 = 0;

/// All quads of a pattern in memory, for one column.
pub(crate) struct ValueHashTable {
    column: ColumnNumber,
    fills: Places,
    /// What filters left of the quads when they were read.
    pushed_ranges: PushedRanges,
    tables: Tables,
}

/// Quads by key, and those that have to be compared with each row.
#[derive(Clone)]
struct Tables {
    by_key: Rc<Table>,
    each: Rc<Table>,
}

impl ValueHashTable {
    /// Whether it has all quads that filters leave now.
    pub fn covers(&self, pushed_ranges: &PushedRanges) -> bool {
        self.pushed_ranges
            .iter()
            .all(|range| pushed_ranges.contains(range))
    }

    /// Bytes it takes.
    pub fn bytes(&self) -> usize {
        self.tables.by_key.bytes() + self.tables.each.bytes()
    }
}

/// Reads a pattern's quads, as many at a time as there is room for.
struct Parts {
    table: TableNumber,
    access: AccessPath,
    ranges: Vec<(Key, Key)>,
    reading: Reading,
    batch: Batch,
    spans: Vec<Span>,
    last_triples: LastTriples,
    /// Place of the column in the keys of the tree.
    place: usize,
    /// Quads that have to be compared with each row, so far.
    each: Option<Builder>,
    /// Bytes that a part may take.
    room: usize,
    most: usize,
    done: bool,
}

impl Parts {
    fn builder(&self) -> Builder {
        Builder::new(1, self.access.fills.len(), 0)
    }

    /// The next part of the quads, by key.
    fn next<S: Source>(&mut self, source: &mut S, params: &[Value]) -> Table {
        let mut part = self.builder();
        let mut each = self.each.take().unwrap_or_else(|| self.builder());
        // However little room there is, each part has some.
        loop {
            source.interrupt();
            self.done = !source.read(
                self.table,
                self.access.order,
                &mut self.reading,
                &self.ranges,
                READ_QUADS.min(self.most),
                &mut self.batch,
                &mut self.spans,
            );
            let residual_mask = ResidualMask::of_access(
                &self.access,
                &self.batch,
                &self.spans,
                params,
                &mut self.last_triples,
            );
            let columns = &self.batch.columns;
            let keys = source.value_keys(&columns[self.place]);
            let number = |key: &ValueKey| match key {
                ValueKey::Of(key) => *key,
                _ => EACH,
            };
            let numbers: Vec<u64> = keys.iter().map(number).collect();
            let fills = self.access.fills.iter();
            let values: Vec<&[u64]> = fills.map(|f| columns[f.1].as_slice()).collect();
            let len = self.batch.len();
            part.add(&[&numbers], &values, &[], len, |quad| {
                matches!(keys[quad], ValueKey::Of(_)) && residual_mask.accepts(quad)
            });
            each.add(&[&numbers], &values, &[], len, |quad| {
                keys[quad] == ValueKey::Any && residual_mask.accepts(quad)
            });
            if self.done || part.bytes() > self.room {
                break;
            }
        }
        self.each = Some(each);
        part.finish()
    }

    /// The quads that have to be compared with each row, once all have been read.
    fn each(&mut self) -> Option<Table> {
        self.each.take().map(Builder::finish)
    }
}

/// A batch of rows being joined with a pattern's quads by value.
pub(crate) struct ValueHashJoin {
    access: AccessPath,
    live: SlotSet,
    tuning: Tuning,
    /// The key of each row.
    keys: Vec<u64>,
    /// The rows, while they are in no [`HashProbe`].
    input: Bindings,
    hash_probe: Option<HashProbe>,
    /// Tables that are there already, with whether they are of quads by key.
    ready: Vec<(Rc<Table>, bool)>,
    /// Reads what is not in them.
    rest: Option<Parts>,
    /// Rows to hand out at once.
    chunk: usize,
}

impl ValueHashJoin {
    /// Starts to join `rows` by value with the quads of `table` that `access` reads. `kept` are those that an earlier
    /// batch has read; what may be kept for later ones comes back. `room`: bytes for tables, asked for where quads have
    /// to be read.
    pub fn new<S: Source>(
        source: &mut S,
        (table, access, same): (TableNumber, AccessPath, SameValue),
        mut rows: Bindings,
        live: SlotSet,
        (params, tuning): (&[Value], Tuning),
        kept: Option<ValueHashTable>,
        room: impl FnOnce() -> usize,
    ) -> (Self, Option<ValueHashTable>) {
        let found = rows.ids(same.slot).map(|ids| source.value_keys(ids));
        let found = found.unwrap_or_default();
        let key = |key: &ValueKey| match key {
            ValueKey::Of(key) => Some(*key),
            _ => None,
        };
        let keep: Vec<bool> = found.iter().map(|k| key(k).is_some()).collect();
        rows.retain(&keep);
        let keys: Vec<u64> = found.iter().filter_map(key).collect();
        let mut join = Self {
            live,
            tuning,
            keys,
            input: rows,
            hash_probe: None,
            ready: Vec::new(),
            rest: None,
            chunk: 0,
            access,
        };
        let is_same = |kept: &ValueHashTable| {
            kept.column == same.column
                && kept.fills == join.access.fills
                && kept.covers(&join.access.pushed_ranges)
        };
        // The ranges of a table that is kept are fewer, or the same.
        let (pushed_ranges, tables) = match kept.filter(is_same) {
            Some(kept) => (kept.pushed_ranges, Some(kept.tables)),
            None => {
                let tables = join.read(source, table, same, params, room());
                (join.access.pushed_ranges.clone(), tables)
            }
        };
        let kept = tables.map(|tables| {
            join.ready = vec![(tables.each.clone(), false), (tables.by_key.clone(), true)];
            ValueHashTable {
                column: same.column,
                fills: join.access.fills.clone(),
                pushed_ranges,
                tables,
            }
        });
        (join, kept)
    }

    /// The tables of all quads, if there is room for them; otherwise the first part is ready, and the others are read
    /// later.
    fn read<S: Source>(
        &mut self,
        source: &mut S,
        table: TableNumber,
        same: SameValue,
        params: &[Value],
        room: usize,
    ) -> Option<Tables> {
        let access = self.access.clone();
        let place = access.permutation.position(same.column.index());
        let mut ranges = Vec::new();
        access.ranges(&self.input, 0, params, &mut ranges);
        let mut parts = Parts {
            table,
            reading: Reading::new(access.mask | 1 << place),
            ranges,
            batch: Batch::new(),
            spans: Vec::new(),
            last_triples: LastTriples::new(source.ranges_are_sorted(table)),
            place,
            each: None,
            room,
            most: self.tuning.most,
            done: false,
            access,
        };
        let first = Rc::new(parts.next(source, params));
        if parts.done && first.bytes() <= parts.room {
            let each = Rc::new(parts.each()?);
            return Some(Tables {
                by_key: first,
                each,
            });
        }
        self.ready = vec![(first, true)];
        self.rest = Some(parts);
        None
    }

    /// Bytes of the tables that are there already.
    pub fn ready_bytes(&self) -> usize {
        self.ready.iter().map(|ready| ready.0.bytes()).sum()
    }

    /// The next rows, `None` at the end.
    pub fn next<S: Source>(&mut self, source: &mut S, params: &[Value]) -> Option<Bindings> {
        loop {
            if let Some(mut hash_probe) = self.hash_probe.take() {
                if let Some(rows) = hash_probe.next() {
                    self.hash_probe = Some(hash_probe);
                    return Some(rows);
                }
                self.input = hash_probe.into_input();
            }
            let (table, by_key) = self.table(source, params)?;
            let each;
            let keys = if by_key {
                &self.keys
            } else {
                each = vec![EACH; self.keys.len()];
                &each
            };
            let input = std::mem::take(&mut self.input);
            let access = self.access.clone();
            let mut hash_probe =
                HashProbe::by(&[keys], table, access, input, self.live, self.tuning);
            hash_probe.widen(self.chunk);
            self.hash_probe = Some(hash_probe);
        }
    }

    /// The next table to join the rows with, and whether it has quads by key.
    fn table<S: Source>(&mut self, source: &mut S, params: &[Value]) -> Option<(Rc<Table>, bool)> {
        if let Some(ready) = self.ready.pop() {
            return Some(ready);
        }
        let rest = self.rest.as_mut()?;
        if !rest.done {
            return Some((Rc::new(rest.next(source, params)), true));
        }
        rest.each().map(|table| (Rc::new(table), false))
    }

    /// Hands out at least so many rows at once from now on.
    pub fn widen(&mut self, rows: usize) {
        self.chunk = rows;
        if let Some(hash_probe) = &mut self.hash_probe {
            hash_probe.widen(rows);
        }
    }

    /// The number of rows that come out for each of those that went in.
    pub fn multiplicities<S: Source>(&mut self, source: &mut S, params: &[Value]) -> Vec<u64> {
        let mut multiplicities = vec![0; self.keys.len()];
        let each = vec![EACH; self.keys.len()];
        while let Some((table, by_key)) = self.table(source, params) {
            let keys = if by_key { &self.keys } else { &each };
            let found = table.find_all(&[keys], keys.len());
            for (multiplicity, key) in multiplicities.iter_mut().zip(found) {
                *multiplicity += table.quads(key).len() as u64;
            }
        }
        multiplicities
    }

    /// Bytes of tables that are not kept.
    pub fn own_bytes(&self) -> usize {
        let rest = self.rest.as_ref();
        let hash_probe = self.hash_probe.as_ref().filter(|_| rest.is_some());
        hash_probe.map_or(0, |m| m.table().bytes())
    }
}
