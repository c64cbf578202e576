//! Joining a batch of rows with a pattern's quads by a key of the value: equal values have equal keys, whatever their ids.
//!
//! The quads are read once into a hash table that is kept for later batches. Where memory has no room for all, a part of them at a time
//! is joined with the whole batch. Equal keys do not say that values are equal: a filter does.

use crate::access::Value;
use crate::bindings::Bindings;
use crate::checks::Checked;
use crate::joining::Joining;
use crate::matching::Matching;
use crate::order::{Access, Places};
use crate::pipeline::{Pipeline, Tuning};
use crate::plan::{SameValue, SlotSet};
use crate::source::{Source, ValueKey};
use crate::table::{Builder, Table};
use pgquad_btree::{Batch, Key, Span};
use pgquad_cluster::Reading;
use std::rc::Rc;

/// Quads read at once.
const READ: usize = 4096;
/// The only key of quads that have to be compared with each row.
const EACH: u64 = 0;

/// All quads of a pattern in memory, for one column.
pub(crate) struct KeptByValue {
    column: u8,
    fills: Places,
    tables: Tables,
}

/// Quads by key, and those that have to be compared with each row.
#[derive(Clone)]
struct Tables {
    by_key: Rc<Table>,
    each: Rc<Table>,
}

impl KeptByValue {
    /// Bytes it takes.
    pub fn bytes(&self) -> usize {
        self.tables.by_key.bytes() + self.tables.each.bytes()
    }
}

/// Reads a pattern's quads, as many at a time as there is room for.
struct Parts {
    table: u16,
    access: Access,
    ranges: Vec<(Key, Key)>,
    reading: Reading,
    batch: Batch,
    spans: Vec<Span>,
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
                READ.min(self.most),
                &mut self.batch,
                &mut self.spans,
            );
            let checked = Checked::new(&self.access.checks, &self.batch, params);
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
            part.add(&[&numbers], &values, len, |quad| {
                matches!(keys[quad], ValueKey::Of(_)) && checked.accepts(quad)
            });
            each.add(&[&numbers], &values, len, |quad| {
                keys[quad] == ValueKey::Any && checked.accepts(quad)
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
pub(crate) struct Keyed {
    access: Access,
    live: SlotSet,
    tuning: Tuning,
    /// The key of each row.
    keys: Vec<u64>,
    /// The rows, while they are in no [`Matching`].
    input: Bindings,
    matching: Option<Matching>,
    /// Tables that are there already, with whether they are of quads by key.
    ready: Vec<(Rc<Table>, bool)>,
    /// Reads what is not in them.
    rest: Option<Parts>,
    /// Rows to hand out at once.
    chunk: usize,
}

impl Keyed {
    /// The next rows, `None` at the end.
    pub fn next<S: Source>(&mut self, source: &mut S, params: &[Value]) -> Option<Bindings> {
        loop {
            if let Some(mut matching) = self.matching.take() {
                if let Some(rows) = matching.next() {
                    self.matching = Some(matching);
                    return Some(rows);
                }
                self.input = matching.into_input();
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
            let mut matching = Matching::by(&[keys], table, access, input, self.live, self.tuning);
            matching.widen(self.chunk);
            self.matching = Some(matching);
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
        if let Some(matching) = &mut self.matching {
            matching.widen(rows);
        }
    }

    /// The number of rows that come out for each of those that went in.
    pub fn weigh<S: Source>(&mut self, source: &mut S, params: &[Value]) -> Vec<u64> {
        let mut weights = vec![0; self.keys.len()];
        let each = vec![EACH; self.keys.len()];
        while let Some((table, by_key)) = self.table(source, params) {
            let keys = if by_key { &self.keys } else { &each };
            let found = table.find_all(&[keys], keys.len());
            for (weight, key) in weights.iter_mut().zip(found) {
                *weight += table.quads(key).len() as u64;
            }
        }
        weights
    }

    /// Bytes of tables that are not kept.
    pub fn own_bytes(&self) -> usize {
        let rest = self.rest.as_ref();
        let matching = self.matching.as_ref().filter(|_| rest.is_some());
        matching.map_or(0, |m| m.table().bytes())
    }
}

impl Pipeline {
    /// The step that joins `rows` with pattern `i` of a group by value, reading the quads with `access`.
    pub(crate) fn join_by_value<S: Source>(
        &mut self,
        source: &mut S,
        (group, i): (usize, usize),
        same: SameValue,
        access: Access,
        mut rows: Bindings,
        live: SlotSet,
    ) -> Joining {
        let info = &self.layout.groups[group].patterns[i];
        let (step, table) = (info.step, info.pattern.table);
        let found = rows.ids(same.slot).map(|ids| source.value_keys(ids));
        let found = found.unwrap_or_default();
        let key = |key: &ValueKey| match key {
            ValueKey::Of(key) => Some(*key),
            _ => None,
        };
        let keep: Vec<bool> = found.iter().map(|k| key(k).is_some()).collect();
        rows.retain(&keep);
        let keys: Vec<u64> = found.iter().filter_map(key).collect();
        let mut keyed = Keyed {
            live,
            tuning: self.tuning,
            keys,
            input: rows,
            matching: None,
            ready: Vec::new(),
            rest: None,
            chunk: 0,
            access,
        };
        let kept = self.held[step]
            .by_value
            .take()
            .filter(|kept| kept.column == same.column && kept.fills == keyed.access.fills);
        let tables = match kept {
            Some(kept) => Some(kept.tables),
            None => self.read_by_value(source, (step, table), same, &mut keyed),
        };
        if let Some(tables) = tables {
            keyed.ready = vec![(tables.each.clone(), false), (tables.by_key.clone(), true)];
            self.held[step].by_value = Some(KeptByValue {
                column: same.column,
                fills: keyed.access.fills.clone(),
                tables,
            });
        }
        let stats = &mut self.steps[step];
        stats.batches += 1;
        stats.hashed += 1;
        let bytes = self.held[step]
            .by_value
            .as_ref()
            .map_or(0, KeptByValue::bytes);
        let ready = keyed
            .ready
            .iter()
            .map(|ready| ready.0.bytes())
            .sum::<usize>();
        stats.memory = stats.memory.max(bytes.max(ready) as u64);
        Joining::Keyed(Box::new(keyed))
    }

    /// The tables of all quads, if there is room for them; otherwise `keyed` has the first part, and reads on.
    fn read_by_value<S: Source>(
        &mut self,
        source: &mut S,
        (step, table): (usize, u16),
        same: SameValue,
        keyed: &mut Keyed,
    ) -> Option<Tables> {
        let access = keyed.access.clone();
        let place = access.columns.iter().position(|&c| c == same.column)?;
        let mut ranges = Vec::new();
        access.ranges(&keyed.input, 0, &self.params, &mut ranges);
        let mut parts = Parts {
            table,
            reading: Reading::new(access.mask | 1 << place),
            ranges,
            batch: Batch::new(),
            spans: Vec::new(),
            place,
            each: None,
            room: self.room(Some(step)),
            most: self.tuning.most,
            done: false,
            access,
        };
        let first = Rc::new(parts.next(source, &self.params));
        if parts.done && first.bytes() <= parts.room {
            let each = Rc::new(parts.each()?);
            return Some(Tables {
                by_key: first,
                each,
            });
        }
        keyed.ready = vec![(first, true)];
        keyed.rest = Some(parts);
        None
    }
}
