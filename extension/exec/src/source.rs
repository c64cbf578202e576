//! What a pipeline reads from.

use crate::bindings::Bindings;
use crate::plan::{Argument, ColumnNumber, Expr, Slot, TableNumber};
use pgquad_btree::{Batch, Key, Order, Span};
use pgquad_cluster::{Reading, Traffic};
use pgquad_term::number::Number;

/// The key by which an id is looked up where its value has to equal another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueKey {
    /// It is equal to nothing, not even to itself.
    Never,
    /// It is equal to itself only.
    Itself,
    /// Ids of equal values have equal keys; so may others have.
    Of(u64),
    /// It has to be compared with each.
    Any,
}

/// Ranges that are about to be counted or read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Wanted {
    /// The table.
    pub table: TableNumber,
    /// Number of the order.
    pub order: usize,
    /// The ranges, both bounds included.
    pub ranges: Vec<(Key, Key)>,
}

/// A read that a later step will make: all of some ranges.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Prefetch {
    /// What is read.
    pub wanted: Wanted,
    /// The columns of the key that are read (bit `i` = column `i`), perhaps with [`pgquad_btree::COUNTS`].
    pub mask: u8,
    /// About how many quads are read at once.
    pub enough: usize,
}

/// Sorted trees of quads and expressions over rows. Methods do not return errors: a source that fails leaves by
/// unwinding.
///
/// In a repartitioned join the number of a table may stand for a part of it ([`TableNumber::part`]): the quads that
/// this participant holds by a column. They are in the table's orders that are placed by it.
pub trait Source {
    /// The orders of a table.
    fn orders(&self, table: TableNumber) -> &[Order];

    /// About how many quads an order of a table holds between two keys (inclusive); quick, whatever the number.
    fn count(&mut self, table: TableNumber, order: usize, low: &Key, high: &Key) -> u64;

    /// The same for many ranges at once; one message to each node where the quads are elsewhere.
    fn counts(&mut self, table: TableNumber, order: usize, ranges: &[(Key, Key)]) -> Vec<u64> {
        ranges
            .iter()
            .map(|(low, high)| self.count(table, order, low, high))
            .collect()
    }

    /// Whether counts may take a message to another node.
    fn is_remote(&self) -> bool {
        false
    }

    /// Whether a range of an order is counted without a message to another node.
    fn is_counted_here(&self, _table: TableNumber, _order: usize, _range: &(Key, Key)) -> bool {
        true
    }

    /// Counts what is about to be asked for: ranges of orders of tables. Several counts are then one message.
    fn count_ahead(&mut self, _wanted: &[Wanted]) {}

    /// Says which ranges of orders of whole tables will soon be read, for sources that have to ask others for them.
    /// Takes the place of what was said before.
    fn read_ahead(&mut self, _wanted: &[Wanted]) {}

    /// Asks for the first quads of later reads with the next messages to other nodes. Each of these reads begins as it
    /// is announced here, or is not made. False where it asks for nothing.
    fn prefetch(&mut self, _reads: &[Prefetch]) -> bool {
        false
    }

    /// A join begins; `hash` gives what tells it and its parameters apart. What other nodes were asked for when it ran
    /// last may be prefetched. False where it is not.
    fn begin_run(&mut self, _hash: impl FnOnce() -> u64) -> bool {
        false
    }

    /// Waits for what has been prefetched and not been used; nothing of it is under way afterwards.
    fn take_prefetched(&mut self) {}

    /// Whether a range is read without a message to another node. Only asked of sources that read ahead.
    fn is_known(&self, _table: TableNumber, _order: usize, _range: &(Key, Key)) -> bool {
        true
    }

    /// Appends the keys of a range, where there are no more than `most` and they are known without a message to another
    /// node; false otherwise. Only asked of sources that read ahead.
    fn known_keys(
        &self,
        _table: TableNumber,
        _order: usize,
        _range: &(Key, Key),
        _most: usize,
        _keys: &mut Vec<Key>,
    ) -> bool {
        false
    }

    /// Whether the quads of a range come in the order of their keys. Those of a table on many nodes do not.
    fn ranges_are_sorted(&self, _table: TableNumber) -> bool {
        true
    }

    /// The shard that has the quads of all these keys in a part of a table, and how many shards the part has. `None`
    /// where there are several such shards. Only asked for parts, with at least one key.
    fn only_shard(&self, _part: TableNumber, _keys: &[u64]) -> Option<(usize, usize)> {
        None
    }

    /// Reads on in many ranges of an order, in the manner of [`pgquad_btree::Probe::read`].
    #[allow(clippy::too_many_arguments)]
    fn read(
        &mut self,
        table: TableNumber,
        order: usize,
        reading: &mut Reading,
        ranges: &[(Key, Key)],
        enough: usize,
        batch: &mut Batch,
        spans: &mut Vec<Span>,
    ) -> bool;

    /// Tests expression `expr` on the rows of a batch for which `keep` is still true, and makes it false where the test
    /// fails.
    /// `needs` are the variables of the filter.
    fn test(&mut self, expr: Expr, needs: &[Slot], rows: &Bindings, keep: &mut [bool]);

    /// The numbers that argument `argument` of an aggregation has in those rows of a batch that are `wanted`; `None` is
    /// an error. `needs` are the variables that it is computed from.
    fn numbers(
        &mut self,
        _argument: Argument,
        _needs: &[Slot],
        rows: &Bindings,
        _wanted: &[bool],
    ) -> Vec<Option<Number>> {
        vec![None; rows.len]
    }

    /// The values that argument `argument` of an aggregation has in those rows of a batch that are `wanted`, in the
    /// form of keys; `None` is none. `needs` are the variables that it is computed from.
    fn values(
        &mut self,
        _argument: Argument,
        _needs: &[Slot],
        rows: &Bindings,
        _wanted: &[bool],
    ) -> Vec<Option<u64>> {
        vec![None; rows.len]
    }

    /// Ascending, disjoint, inclusive ranges of values of variable number `unknown` of `needs`. Outside of them the
    /// test fails, when the other variables have the values of `row` (`None`: unbound). `None` where there are no such
    /// ranges.
    fn pushdown_ranges(
        &mut self,
        _expr: Expr,
        _needs: &[Slot],
        _unknown: usize,
        _row: &[Option<u64>],
    ) -> Option<Vec<(u64, u64)>> {
        None
    }

    /// The keys by which these ids are looked up where values have to be equal.
    fn value_keys(&mut self, ids: &[u64]) -> Vec<ValueKey> {
        vec![ValueKey::Itself; ids.len()]
    }

    /// The column, subject or object, by whose values the quads of an order are placed on the participants of a
    /// repartitioned join.
    /// `None` where there are no others. Only asked for whole tables.
    fn placed_by(&self, _table: TableNumber, _order: usize) -> Option<ColumnNumber> {
        None
    }

    /// The participant that holds the quads with each of these values in the column that they are placed by.
    fn holders(&mut self, _table: TableNumber, _column: ColumnNumber, values: &[u64]) -> Vec<u16> {
        vec![0; values.len()]
    }

    /// The number that an order of a part of a table has in the whole.
    fn whole_order(&self, _table: TableNumber, order: usize) -> usize {
        order
    }

    /// A point at which the work may be cancelled.
    fn interrupt(&mut self);

    /// A clock for measurements, in nanoseconds; 0 when nobody asks for them.
    fn clock(&self) -> u64 {
        0
    }

    /// What has gone over the wire so far, for measurements.
    fn traffic(&self) -> Traffic {
        Traffic::default()
    }

    /// Pages found in memory and pages read so far, for measurements.
    fn pages(&self) -> (u64, u64) {
        (0, 0)
    }
}
