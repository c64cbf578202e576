//! Trees in memory as a source of quads, shared by the test programs.

use pgquad_btree::mem::{MemStore, Txns};
use pgquad_btree::{
    initial_pages, key_of, Batch, Key, Options, Order, Quad, Quads, Snapshot, Span, FROZEN_XID,
};
use pgquad_cluster::Reading;
use pgquad_exec::{Argument, Bindings, Expr, Slot, Source, TableNumber, ValueKey};
use pgquad_term::number::Number;

/// Variables by their numbers; some of the programs have none.
#[allow(dead_code)]
pub fn slots<const N: usize>(numbers: [u16; N]) -> Vec<Slot> {
    numbers.map(Slot::new).to_vec()
}

/// The sign bit, by which keys differ from quads.
pub const FLIP: u64 = 1 << 63;

/// Tables of frozen quads.
pub struct Trees {
    /// Trees and orders of each table.
    pub tables: Vec<(Quads<MemStore>, Vec<Order>)>,
    /// Quads that have been read.
    pub read: usize,
    /// Takes the quads for those of another node.
    pub remote: bool,
    txns: Txns,
}

impl Trees {
    /// Builds the tables in these orders, with next to nothing in a leaf.
    pub fn new(tables: &[Vec<Quad>], orders: &[&str]) -> Self {
        let orders: Vec<Order> = orders.iter().map(|o| o.parse().unwrap()).collect();
        let tables = tables.iter().map(|quads| {
            let mut options = Options::with_orders(&orders);
            for o in &mut options.orders {
                (o.inner_fanout, o.leaf_quads) = (4, 4);
            }
            let trees = Quads::open(MemStore::new(initial_pages(&options).unwrap())).unwrap();
            for (n, order) in orders.iter().enumerate() {
                let mut keys: Vec<Key> = quads.iter().map(|q| key_of(*order, q)).collect();
                keys.sort_unstable();
                keys.dedup();
                trees
                    .tree(n)
                    .unwrap()
                    .build(keys.into_iter(), FROZEN_XID, 0, 1.0)
                    .unwrap();
            }
            (trees, orders.clone())
        });
        Self {
            tables: tables.collect(),
            read: 0,
            remote: false,
            txns: Txns::default(),
        }
    }

    /// What sees all quads.
    #[allow(dead_code)]
    pub fn snapshot(&self) -> impl Snapshot {
        self.txns.snapshot(&[], 1)
    }
}

/// What ids are looked up by where values have to be equal. 1 and 2 have the same value, 3 compares with 1 only (and
/// itself), 4 with nothing.
pub fn value_key(id: u64) -> ValueKey {
    match id - FLIP {
        1 | 2 => ValueKey::Of(7),
        3 => ValueKey::Any,
        4 => ValueKey::Never,
        _ => ValueKey::Itself,
    }
}

fn same_value(a: u64, b: u64) -> bool {
    match (a.min(b) - FLIP, a.max(b) - FLIP) {
        (4, 4) => false,
        (1, 2 | 3) => true,
        (a, b) => a == b,
    }
}

/// Expression 0: the value is odd. Expression 1: the first variable is unbound or not above the second. Expression 2:
/// both have the same value.
pub fn holds(expr: Expr, values: &[Option<u64>]) -> bool {
    match expr.number() {
        0 => values[0].is_some_and(|v| v & 1 == 1),
        2 => matches!(values[..], [Some(a), Some(b)] if same_value(a, b)),
        _ => values[0].is_none() || values[0] <= values[1],
    }
}

/// The number that a value stands for in sums.
pub fn number_of(value: u64) -> Number {
    Number::Integer(i128::from((value ^ FLIP) as i64))
}

impl Source for Trees {
    fn numbers(
        &mut self,
        _argument: Argument,
        needs: &[Slot],
        rows: &Bindings,
        wanted: &[bool],
    ) -> Vec<Option<Number>> {
        let ids = rows.ids(needs[0]);
        let number = |row: usize| ids.filter(|_| wanted[row]).map(|ids| number_of(ids[row]));
        (0..rows.len).map(number).collect()
    }

    fn values(
        &mut self,
        _argument: Argument,
        needs: &[Slot],
        rows: &Bindings,
        wanted: &[bool],
    ) -> Vec<Option<u64>> {
        let ids = rows.ids(needs[0]);
        let value = |row: usize| ids.filter(|_| wanted[row]).map(|ids| ids[row]);
        (0..rows.len).map(value).collect()
    }

    fn orders(&self, table: TableNumber) -> &[Order] {
        &self.tables[table.index()].1
    }

    fn is_remote(&self) -> bool {
        self.remote
    }

    fn count(&mut self, table: TableNumber, order: usize, low: &Key, high: &Key) -> u64 {
        self.tables[table.index()]
            .0
            .tree(order)
            .unwrap()
            .range_count(low, high)
            .unwrap()
    }

    fn read(
        &mut self,
        table: TableNumber,
        order: usize,
        reading: &mut Reading,
        ranges: &[(Key, Key)],
        enough: usize,
        batch: &mut Batch,
        spans: &mut Vec<Span>,
    ) -> bool {
        let tree = self.tables[table.index()].0.tree(order).unwrap();
        let snapshot = self.txns.snapshot(&[], 1);
        let more = reading
            .local()
            .read(tree, &snapshot, ranges, enough, batch, spans);
        self.read += batch.len();
        more.unwrap()
    }

    fn test(&mut self, expr: Expr, needs: &[Slot], rows: &Bindings, keep: &mut [bool]) {
        for (row, keep) in keep.iter_mut().enumerate() {
            let values: Vec<Option<u64>> = needs
                .iter()
                .map(|&s| rows.ids(s).map(|ids| ids[row]))
                .collect();
            *keep = *keep && holds(expr, &values);
        }
    }

    fn pushdown_ranges(
        &mut self,
        expr: Expr,
        _needs: &[Slot],
        unknown: usize,
        row: &[Option<u64>],
    ) -> Option<Vec<(u64, u64)>> {
        let mut row = row.to_vec();
        let mut passes = |value: u64| {
            row[unknown] = Some(value);
            holds(expr, &row)
        };
        // More than there is in the tables of random tests; the others have no such filters.
        let values = (FLIP..FLIP + 8).filter(|&value| passes(value));
        Some(values.map(|value| (value, value)).collect())
    }

    fn value_keys(&mut self, ids: &[u64]) -> Vec<ValueKey> {
        ids.iter().map(|&id| value_key(id)).collect()
    }

    fn interrupt(&mut self) {}
}
