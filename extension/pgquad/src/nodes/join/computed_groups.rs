//! Groups by computed keys. The join aggregates by the columns that the keys are computed from. Here the keys of each
//! of those groups are computed once, and groups with equal keys are put together.
//!
//! Keys are found in a hash table of PostgreSQL (`executor/execGrouping.c`), for they may be of any type. What memory
//! has no room for waits, still by columns, divided by the hashes of the keys. When the groups in memory have been
//! handed out, one part after the other is taken. A part that is too large is divided by further bits of the hashes, as
//! in `executor/nodeAgg.c`, so that a key is computed a few times at most.

use super::aggregate::is_column;
use super::batch_row::{evaluate_unguarded, mark_filled};
use super::columns::{cell_of, to_places, Cell};
use super::group_spill::{group_room, no_groups, spill_file};
use crate::dictionary::Upcoming;
use crate::pg::ffi;
use crate::pg::interrupt::interrupt;
use crate::pg::list::list_iter;
use pgquad_btree::SIGN;
use pgquad_exec::{Counted, HashAggregation, Slot};
use pgrx::pg_sys;

/// Groups by columns whose keys are computed between two looks for a cancel request.
const GROUPS_AT_ONCE: usize = 1024;
/// Groups by columns whose ids are offered to the dictionary at once: as many as a chunk of it has rows.
const OFFERED_GROUPS: usize = 16 * GROUPS_AT_ONCE;
/// Stands for the number of a group that has no room.
const NO_GROUP: u64 = u64::MAX;
/// Bits of a key's hash by which the groups that wait are divided once, and how often there are such bits.
const PART_BITS: u32 = 4;
const MOST_LEVELS: u32 = u32::BITS / PART_BITS;
/// Bytes of an entry of the hash table, of which half may be unused, and of what is kept beside it.
const ENTRY_BYTES: usize = 2 * size_of::<pg_sys::TupleHashEntryData>() + size_of::<usize>();
/// The memory for groups is shared by those by columns, those by keys, and those that wait.
pub const SHARES_OF_MEMORY: usize = 3;

/// A key of groups.
pub struct Key {
    /// The expression, over columns of the query.
    pub expr: *mut pg_sys::Node,
    /// The operator by which two keys are equal.
    pub equal: pg_sys::Oid,
}

/// Groups by keys.
pub struct ComputedGroups {
    keys: Vec<*mut pg_sys::ExprState>,
    /// The variables that they are computed from.
    by: Vec<Slot>,
    /// The place of one that an expression reads, which may need its term.
    read_by: usize,
    counted: Vec<Counted>,
    table: pg_sys::TupleHashTable,
    /// What the table points at: the places of keys in their slot, and their collations.
    _of_table: (Vec<pg_sys::AttrNumber>, Vec<pg_sys::Oid>),
    /// The columns of a group, as the expressions read them.
    column_slot: *mut pg_sys::TupleTableSlot,
    /// The keys of a group that is looked up.
    key_slot: *mut pg_sys::TupleTableSlot,
    /// The keys of a group that is handed out.
    found_slot: *mut pg_sys::TupleTableSlot,
    context: *mut pg_sys::ExprContext,
    /// Holds the keys of all groups.
    memory: pg_sys::MemoryContext,
    /// Of the query.
    query: pg_sys::MemoryContext,
    /// The keys of each group.
    tuples: Vec<pg_sys::MinimalTuple>,
    /// The aggregates of each group, by its number.
    groups: HashAggregation,
    /// Groups by columns that have had no room, with how often they have been divided.
    waiting: Vec<(u32, HashAggregation)>,
    /// Bytes that groups by columns have taken in files which are closed.
    spilled: u64,
    upcoming: Upcoming,
    /// Groups by columns so far.
    column_groups: u64,
}

impl ComputedGroups {
    /// No groups yet. `slot_of` tells the variable of a column of the query.
    ///
    /// # Safety
    /// The keys are expressions of a live plan, without subplans and over columns of the query alone; the node of the
    /// plan is being begun.
    pub unsafe fn new(
        estate: *mut pg_sys::EState,
        keys: &[Key],
        counted: &[Counted],
        slot_of: impl Fn(*mut pg_sys::Node) -> Slot,
    ) -> Self {
        // SAFETY: the caller's promise; descriptors, slots and memory are the query's, and end with it.
        unsafe {
            let query = (*estate).es_query_cxt;
            let before = pg_sys::MemoryContextSwitchTo(query);
            let (mut by, mut places): (Vec<Slot>, Vec<(Cell, usize)>) = (Vec::new(), Vec::new());
            let mut read_by = None;
            for key in keys {
                for column in list_iter(pg_sys::pull_var_clause(key.expr, 0)) {
                    let slot = slot_of(column);
                    let place = by.iter().position(|&known| known == slot);
                    places.push((cell_of(column.cast()), place.unwrap_or(by.len())));
                    if !is_column(key.expr) {
                        read_by.get_or_insert(place.unwrap_or(by.len()));
                    }
                    if place.is_none() {
                        by.push(slot);
                    }
                }
            }
            let column_slot = virtual_slot(
                estate,
                &vec![(pg_sys::INT8OID, -1, pg_sys::InvalidOid); by.len()],
            );
            let types: Vec<_> = keys.iter().map(|key| type_of(key.expr)).collect();
            let key_slot = virtual_slot(estate, &types);
            let desc = (*key_slot).tts_tupleDescriptor;
            let minimal = &raw const pg_sys::TTSOpsMinimalTuple;
            let found_slot = pg_sys::ExecInitExtraTupleSlot(estate, desc, minimal);
            let context = pg_sys::CreateExprContext(estate);
            let memory = pg_sys::AllocSetContextCreateInternal(
                query,
                c"groups by computed keys".as_ptr(),
                pg_sys::ALLOCSET_DEFAULT_MINSIZE as usize,
                pg_sys::ALLOCSET_DEFAULT_INITSIZE as usize,
                pg_sys::ALLOCSET_DEFAULT_MAXSIZE as usize,
            );
            let operators: Vec<pg_sys::Oid> = keys.iter().map(|key| key.equal).collect();
            let (mut equal, mut hash) = (std::ptr::null_mut(), std::ptr::null_mut());
            let count = keys.len() as core::ffi::c_int;
            pg_sys::execTuplesHashPrepare(count, operators.as_ptr(), &mut equal, &mut hash);
            let mut numbers: Vec<_> = (1..=keys.len()).map(|n| n as pg_sys::AttrNumber).collect();
            let mut collations: Vec<_> = types.iter().map(|of_key| of_key.2).collect();
            let table = pg_sys::BuildTupleHashTableExt(
                std::ptr::null_mut(),
                desc,
                count,
                numbers.as_mut_ptr(),
                equal,
                hash,
                collations.as_mut_ptr(),
                GROUPS_AT_ONCE as core::ffi::c_long,
                0,
                query,
                memory,
                (*context).ecxt_per_tuple_memory,
                false,
            );
            let place = |column| {
                let known = places.iter().find(|known| known.0 == cell_of(column));
                known.map(|known| known.1).unwrap_or_default()
            };
            let compiled = keys.iter().map(|key| {
                let expr = to_places(key.expr, &place);
                pg_sys::ExecInitExpr(expr.cast(), std::ptr::null_mut())
            });
            let compiled = compiled.collect();
            pg_sys::MemoryContextSwitchTo(before);
            Self {
                keys: compiled,
                by,
                read_by: read_by.unwrap_or_default(),
                counted: counted.to_vec(),
                table,
                _of_table: (numbers, collations),
                column_slot,
                key_slot,
                found_slot,
                context,
                memory,
                query,
                tuples: Vec::new(),
                groups: by_number(counted),
                waiting: Vec::new(),
                spilled: 0,
                upcoming: Upcoming::new(),
                column_groups: 0,
            }
        }
    }

    /// The variables that the join is to aggregate by.
    pub fn by(&self) -> &[Slot] {
        &self.by
    }

    /// Bytes that groups by columns may take.
    pub fn room() -> usize {
        group_room() / SHARES_OF_MEMORY
    }

    /// Number of groups that can be handed out.
    pub fn len(&self) -> usize {
        self.tuples.len()
    }

    /// Groups by columns so far.
    pub fn column_groups(&self) -> u64 {
        self.column_groups
    }

    /// Bytes that groups by columns have taken in files.
    pub fn spilled(&self) -> u64 {
        let waiting = self.waiting.iter().map(|(_, part)| part.spilled());
        self.spilled + waiting.sum::<u64>()
    }

    /// The aggregates of the groups that can be handed out.
    pub fn groups(&self) -> &HashAggregation {
        &self.groups
    }

    /// The keys of a group, until [`Self::take_rest`].
    pub fn keys(&self, group: usize) -> Vec<Option<pg_sys::Datum>> {
        let slot = self.found_slot;
        // SAFETY: the slot is for these tuples, which live as long as the group; it has a place for each key.
        unsafe {
            pg_sys::ExecStoreMinimalTuple(self.tuples[group], slot, false);
            pg_sys::slot_getallattrs(slot);
            let key = |n| (!*(*slot).tts_isnull.add(n)).then(|| *(*slot).tts_values.add(n));
            (0..self.keys.len()).map(key).collect()
        }
    }

    /// Takes all groups by columns, whose rows have all been counted, and gives them up.
    pub fn take_all(&mut self, all: HashAggregation) {
        self.column_groups += self.take_parts(0, all);
    }

    /// Takes what had no room, once the groups before it have been handed out; false if there is nothing.
    pub fn take_rest(&mut self) -> bool {
        self.restart();
        let Some((level, mut part)) = self.waiting.pop() else {
            return false;
        };
        part.finish();
        self.take_parts(level, part);
        true
    }

    /// Takes all groups by columns of an aggregation that has been divided `level` times. How many there were.
    fn take_parts(&mut self, level: u32, mut all: HashAggregation) -> u64 {
        let mut taken = 0;
        let mut parts: Vec<Option<HashAggregation>> = (0..1 << PART_BITS).map(|_| None).collect();
        loop {
            taken += all.len() as u64;
            // Terms with neighbouring ids lie in one block of the dictionary.
            let order = all.order_by(self.read_by);
            for offered in order.chunks(OFFERED_GROUPS) {
                let ids = |place| {
                    let numbers = offered.iter().map(|&n| n as usize);
                    numbers.filter_map(|n| all.value(n, place)).collect()
                };
                let columns = || (0..self.by.len()).map(ids).collect();
                self.upcoming.batch(offered.len(), columns);
                for some in offered.chunks(GROUPS_AT_ONCE) {
                    let (columns, counts) = all.groups_at(some);
                    self.take(level, columns, counts, &mut parts);
                }
            }
            if !all.next_part() {
                break;
            }
        }
        self.upcoming.withdraw();
        self.give_up(all);
        let parts = parts.into_iter().flatten().map(|part| (level + 1, part));
        self.waiting.extend(parts);
        taken
    }

    fn give_up(&mut self, part: HashAggregation) {
        self.spilled += part.spilled();
        part.close();
    }

    /// Forgets the groups that have been handed out.
    fn restart(&mut self) {
        self.upcoming.withdraw();
        self.tuples.clear();
        self.groups = by_number(&self.counted);
        // SAFETY: the table's own memory, and a slot of this node.
        unsafe {
            pg_sys::ExecClearTuple(self.found_slot);
            pg_sys::ResetTupleHashTable(self.table);
            pg_sys::MemoryContextReset(self.memory);
        }
    }

    /// Forgets all groups.
    pub fn close(&mut self) {
        for (_, part) in std::mem::take(&mut self.waiting) {
            self.give_up(part);
        }
        self.restart();
    }

    /// Adds some groups by columns, in the form of [`HashAggregation::groups`]. Those that have no room go to `parts`,
    /// by bits of the hash of their key.
    fn take(
        &mut self,
        level: u32,
        columns: Vec<Vec<u64>>,
        counts: Vec<Vec<u64>>,
        parts: &mut [Option<HashAggregation>],
    ) {
        interrupt();
        // What has been divided by all bits of the hashes cannot be divided any more.
        let room = match level < MOST_LEVELS {
            true => Self::room(),
            false => usize::MAX,
        };
        let (numbers, hashes) = self.numbers_of(&columns, room);
        let unbound = vec![0; numbers.len()];
        if !numbers.contains(&NO_GROUP) {
            return self.groups.add_groups(&[numbers, unbound], &counts);
        }
        let has_room = |row: &usize| numbers[*row] != NO_GROUP;
        let (found, rest): (Vec<usize>, Vec<usize>) = (0..numbers.len()).partition(has_room);
        let found_numbers = [numbers, unbound];
        self.groups
            .add_groups(&chosen(&found_numbers, &found), &chosen(&counts, &found));
        let mut of_parts: Vec<Vec<usize>> = vec![Vec::new(); parts.len()];
        // The hash table goes by the lowest bits, which are the last ones here.
        let shift = u32::BITS - PART_BITS * (level + 1);
        for row in rest {
            of_parts[(hashes[row] >> shift) as usize % parts.len()].push(row);
        }
        let room = Self::room() >> PART_BITS;
        for (number, rows) in of_parts.iter().enumerate().filter(|(_, r)| !r.is_empty()) {
            let (by, counted, query) = (&self.by, &self.counted, self.query);
            let part = parts[number].get_or_insert_with(|| {
                no_groups(by.clone(), counted.clone()).within(room, &mut || spill_file(query))
            });
            part.add_groups(&chosen(&columns, rows), &chosen(&counts, rows));
        }
    }

    /// The numbers of the groups of some groups by columns; [`NO_GROUP`] for a new one, where all take `room` bytes.
    /// Also the hashes of their keys.
    fn numbers_of(&mut self, columns: &[Vec<u64>], room: usize) -> (Vec<u64>, Vec<u32>) {
        let (values, unbound) = columns.split_at(self.by.len());
        let rows = unbound[0].len();
        let (mut numbers, mut hashes) = (vec![NO_GROUP; rows], vec![0; rows]);
        let beside = size_of::<u64>() * self.groups.words() + ENTRY_BYTES;
        let (column_slot, key_slot) = (self.column_slot, self.key_slot);
        let (context, table, all) = (self.context, self.table, self.memory);
        let (keys, tuples) = (&self.keys, &mut self.tuples);
        // SAFETY: the slots have room for all columns and keys. One guard serves all rows, as for filters: nothing
        // inside owns memory, and what may fail is called straight.
        unsafe {
            let memory = (*context).ecxt_per_tuple_memory;
            pg_sys::ffi::pg_guard_ffi_boundary(|| {
                (*context).ecxt_scantuple = column_slot;
                mark_filled(column_slot);
                mark_filled(key_slot);
                for row in 0..rows {
                    for (place, column) in values.iter().enumerate() {
                        *(*column_slot).tts_isnull.add(place) = unbound[0][row] >> place & 1 == 1;
                        *(*column_slot).tts_values.add(place) =
                            pg_sys::Datum::from(column[row] ^ SIGN);
                    }
                    for (place, &key) in keys.iter().enumerate() {
                        let value = evaluate_unguarded(key, context);
                        *(*key_slot).tts_isnull.add(place) = value.is_none();
                        *(*key_slot).tts_values.add(place) =
                            value.unwrap_or(pg_sys::Datum::from(0));
                    }
                    let bytes = (*all).mem_allocated + beside * tuples.len();
                    let mut is_new = false;
                    let may_be_new = match tuples.is_empty() || bytes <= room {
                        true => &raw mut is_new,
                        false => std::ptr::null_mut(),
                    };
                    let hash = &raw mut hashes[row];
                    let entry = ffi::look_up_group_unguarded(table, key_slot, may_be_new, hash);
                    if is_new {
                        // The place for what is kept with a group holds its number.
                        (*entry).additional = std::ptr::without_provenance_mut(tuples.len());
                        tuples.push((*entry).firstTuple);
                    }
                    if !entry.is_null() {
                        numbers[row] = (*entry).additional.addr() as u64;
                    }
                    pg_sys::MemoryContextReset(memory);
                }
            });
        }
        (numbers, hashes)
    }
}

/// Some rows of columns.
fn chosen(columns: &[Vec<u64>], rows: &[usize]) -> Vec<Vec<u64>> {
    let of_rows = |column: &Vec<u64>| rows.iter().map(|&row| column[row]).collect();
    columns.iter().map(of_rows).collect()
}

/// No groups, by their numbers.
fn by_number(counted: &[Counted]) -> HashAggregation {
    no_groups(vec![Slot::from_index(0)], counted.to_vec())
}

/// Type, modifier and collation of an expression.
unsafe fn type_of(expr: *mut pg_sys::Node) -> (pg_sys::Oid, i32, pg_sys::Oid) {
    // SAFETY: a live expression.
    unsafe {
        let (of_type, modifier) = (pg_sys::exprType(expr), pg_sys::exprTypmod(expr));
        (of_type, modifier, pg_sys::exprCollation(expr))
    }
}

/// A virtual slot of a query for columns of these types.
unsafe fn virtual_slot(
    estate: *mut pg_sys::EState,
    types: &[(pg_sys::Oid, i32, pg_sys::Oid)],
) -> *mut pg_sys::TupleTableSlot {
    // SAFETY: a live query, whose memory is the current one.
    unsafe {
        let desc = pg_sys::CreateTemplateTupleDesc(types.len() as core::ffi::c_int);
        for (n, &(of_type, modifier, collation)) in (1..).zip(types) {
            pg_sys::TupleDescInitEntry(desc, n, std::ptr::null(), of_type, modifier, 0);
            pg_sys::TupleDescInitEntryCollation(desc, n, collation);
        }
        pg_sys::ExecInitExtraTupleSlot(estate, desc, &raw const pg_sys::TTSOpsVirtual)
    }
}
