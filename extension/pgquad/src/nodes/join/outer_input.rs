//! Outer input, executed: the rows that a `Quad Join` takes from the plan below it, a batch at a time.

use crate::pg::ffi;
use pgquad_btree::SIGN;
use pgquad_exec::{Bindings, Column, OuterInputData, Slot};
use pgrx::pg_sys;

/// Where a column of the plan below goes.
#[derive(Clone, Copy)]
pub struct Carried {
    /// Its number there, from 0.
    pub from: usize,
    /// Its place in the scan tuple of the join.
    pub place: usize,
}

/// The plan below, and the batch of its rows that is being joined.
pub struct OuterInput {
    child: *mut pg_sys::PlanState,
    /// Columns that are keys, with the variables that they are.
    keys: Vec<(usize, Slot)>,
    carried: Vec<Carried>,
    /// The variable that numbers the rows of a batch.
    row: Slot,
    /// Whether rows without a match stay.
    keeps: bool,
    /// Of each row of the batch, the carried columns.
    values: Vec<(pg_sys::Datum, bool)>,
    /// Rows of the batch that have a NULL for a key and stay.
    loose: Vec<u64>,
    /// Holds what `values` point at.
    context: pg_sys::MemoryContext,
    /// Rows of the next batch.
    enough: usize,
    done: bool,
}

/// Memory after which a batch ends, however few its rows are: their values can be of any size. The other half of
/// `work_mem` is for the batches that the pipeline makes of them.
fn room() -> usize {
    // SAFETY: a plain setting.
    unsafe { pg_sys::work_mem as usize * 1024 / 2 }
}

impl OuterInput {
    /// A feed from a begun plan, as `data` says.
    ///
    /// # Safety
    /// The plan lives as long as the current memory context.
    pub unsafe fn new(child: *mut pg_sys::PlanState, data: OuterInputData, enough: usize) -> Self {
        let carried = data.carried.into_iter();
        let carried = carried.map(|(from, place)| Carried { from, place });
        // SAFETY: makes a context below the current one.
        let context = unsafe {
            pg_sys::AllocSetContextCreateExtended(
                pg_sys::CurrentMemoryContext,
                c"outer input of Quad Join".as_ptr(),
                pg_sys::ALLOCSET_DEFAULT_MINSIZE as usize,
                pg_sys::ALLOCSET_DEFAULT_INITSIZE as usize,
                pg_sys::ALLOCSET_DEFAULT_MAXSIZE as usize,
            )
        };
        Self {
            child,
            keys: data.keys,
            carried: carried.collect(),
            row: data.row,
            keeps: data.keeps,
            values: Vec::new(),
            loose: Vec::new(),
            context,
            enough,
            done: false,
        }
    }

    /// The variable that numbers the rows of a batch.
    pub fn row(&self) -> Slot {
        self.row
    }

    /// Where the carried columns go, and what they are in row `row` of the batch.
    #[inline]
    pub fn carried(&self, row: usize) -> impl Iterator<Item = (usize, pg_sys::Datum, bool)> + '_ {
        let start = row * self.carried.len();
        let values = &self.values[start..start + self.carried.len()];
        let both = self.carried.iter().zip(values);
        both.map(|(carried, &(value, null))| (carried.place, value, null))
    }

    /// The next batch, with its keys and row numbers; `None` at the end.
    ///
    /// # Safety
    /// The plan below is begun and not ended.
    pub unsafe fn next(&mut self, slots: usize, most: usize) -> Option<Bindings> {
        if self.done {
            return None;
        }
        let room = room();
        let mut full = false;
        // SAFETY: the context is this batch's own; what pointed into it is forgotten.
        unsafe {
            self.forget();
            let mut keys: Vec<Vec<u64>> = vec![Vec::new(); self.keys.len()];
            let mut numbers: Vec<u64> = Vec::new();
            let mut number = 0;
            while (number as usize) < self.enough && !full {
                let slot = ffi::exec_proc_node(self.child);
                if slot.is_null() || (*slot).tts_flags & pg_sys::TTS_FLAG_EMPTY as u16 != 0 {
                    self.done = true;
                    break;
                }
                pg_sys::slot_getallattrs(slot);
                let null = |&(column, _): &(usize, Slot)| *(*slot).tts_isnull.add(column);
                if !self.keys.iter().any(null) {
                    for (key, &(column, _)) in keys.iter_mut().zip(&self.keys) {
                        key.push((*(*slot).tts_values.add(column)).value() as u64 ^ SIGN);
                    }
                    numbers.push(number);
                } else if self.keeps {
                    self.loose.push(number);
                } else {
                    continue;
                }
                self.carry(slot);
                number += 1;
                full = self.memory() > room;
            }
            if !full {
                self.enough = (self.enough * 4).min(most);
            }
            let mut rows = Bindings {
                len: numbers.len(),
                columns: vec![Column::Absent; slots],
            };
            for (key, &(_, slot)) in keys.into_iter().zip(&self.keys) {
                rows.columns[slot.index()] = Column::Ids(key);
            }
            rows.columns[self.row.index()] = Column::Ids(numbers);
            (number > 0 || !self.done).then_some(rows)
        }
    }

    /// The rows of the batch whose keys equal nothing, if they are to stay.
    pub fn take_loose(&mut self, slots: usize) -> Option<Bindings> {
        if self.loose.is_empty() {
            return None;
        }
        let numbers = std::mem::take(&mut self.loose);
        let mut rows = Bindings {
            len: numbers.len(),
            columns: vec![Column::Null; slots],
        };
        rows.columns[self.row.index()] = Column::Ids(numbers);
        Some(rows)
    }

    /// What the carried columns of the batch take.
    fn memory(&self) -> usize {
        // SAFETY: the context is the feed's own.
        let copied = unsafe { (*self.context).mem_allocated };
        copied + self.values.len() * size_of::<(pg_sys::Datum, bool)>()
    }

    /// Keeps the carried columns of a row.
    unsafe fn carry(&mut self, slot: *mut pg_sys::TupleTableSlot) {
        // SAFETY: a filled slot; its descriptor tells how its values are passed.
        unsafe {
            let descriptor = (*slot).tts_tupleDescriptor;
            for carried in &self.carried {
                let null = *(*slot).tts_isnull.add(carried.from);
                let mut value = *(*slot).tts_values.add(carried.from);
                let attribute = (*descriptor).attrs.as_slice((*descriptor).natts as usize);
                let attribute = &attribute[carried.from];
                if !null && !attribute.attbyval {
                    let before = pg_sys::CurrentMemoryContext;
                    pg_sys::CurrentMemoryContext = self.context;
                    value = ffi::datum_copy(value, false, i32::from(attribute.attlen));
                    pg_sys::CurrentMemoryContext = before;
                }
                self.values.push((value, null));
            }
        }
    }

    unsafe fn forget(&mut self) {
        self.values.clear();
        self.loose.clear();
        // SAFETY: the context is the feed's own.
        unsafe { pg_sys::MemoryContextReset(self.context) }
    }

    /// Begins again.
    ///
    /// # Safety
    /// As for [`Self::next`]; `changed` are the parameters of the join that have changed.
    pub unsafe fn rescan(&mut self, changed: *mut pg_sys::Bitmapset, enough: usize) {
        // SAFETY: the caller's promise.
        unsafe {
            self.forget();
            if !changed.is_null() {
                pg_sys::UpdateChangedParamSet(self.child, changed);
            }
            // Otherwise the plan begins again by itself when it is next asked.
            if (*self.child).chgParam.is_null() {
                pg_sys::ExecReScan(self.child);
            }
        }
        self.enough = enough;
        self.done = false;
    }

    /// Gives up the rows of the batch.
    pub fn end(&mut self) {
        self.values = Vec::new();
        self.loose = Vec::new();
    }
}
