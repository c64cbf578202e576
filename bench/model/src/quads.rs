//! Made-up quads for the steps of a join, in shards: as many keys and quads as were recorded, chained from step to
//! step.

use pgquad_btree::mem::{MemStore, Txns};
use pgquad_btree::{
    initial_pages, key_of, Batch, Key, Options, Probe, Quad, Quads, Span, FROZEN_XID, KEY_MAX,
    KEY_MIN, SIGN,
};
use pgquad_cluster::{Placement, Shard};

use crate::plan::{Join, Step, What};

/// Shards of each table: enough for the largest cluster to have two on each node.
const MIN_SHARDS: usize = 32;

/// Numbers of terms that keys are drawn from, as in a dictionary of a million quads.
const TERMS: u64 = 400_000;

/// Predicate of the first arm of a step; those of the others follow.
const PREDICATE: i64 = 1_000;

/// How many quads a hot key has, as a share of all quads of its step; 0: all keys are alike.
pub type Skew = f64;

/// Random numbers that a seed decides (splitmix64).
pub fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Shards of a table on so many nodes.
pub fn placement(nodes: usize) -> Placement {
    let shards = MIN_SHARDS.max(2 * nodes);
    let step = (1i64 << 32) / shards as i64;
    let shard = |n: usize| {
        let low = i64::from(i32::MIN) + n as i64 * step;
        let is_last = n + 1 == shards;
        Shard {
            id: 100_000 + n as u64,
            low: low as i32,
            high: if is_last {
                i32::MAX
            } else {
                (low + step - 1) as i32
            },
            group: (n % nodes) as i32,
        }
    };
    Placement::new((0..shards).map(shard).collect()).expect("ranges without gaps")
}

/// The quads of one step, in the shards of a table.
pub struct Table {
    /// The step.
    pub step: Step,
    /// The value that is looked up in it, where it does not come from a row.
    pub constant: i64,
    /// Where shards are.
    pub placement: Placement,
    /// By shard; `None`: it has no quads.
    trees: Vec<Option<Quads<MemStore>>>,
    /// What is read of a shard without quads.
    empty: Quads<MemStore>,
    txns: Txns,
}

impl Table {
    fn new(step: Step, constant: i64, quads: &[Quad], placement: Placement) -> Self {
        let order = step.order;
        let mut keys: Vec<Vec<Key>> = vec![Vec::new(); placement.shards().len()];
        for quad in quads {
            keys[placement.shard_of(quad[usize::from(step.by)])].push(key_of(order, quad));
        }
        let tree = |mut keys: Vec<Key>| {
            keys.sort_unstable();
            keys.dedup();
            let pages = initial_pages(&Options::with_orders(&[order])).expect("an order");
            let trees = Quads::open(MemStore::new(pages)).expect("an empty table");
            let built = trees
                .tree(0)
                .map(|tree| tree.build(keys.into_iter(), FROZEN_XID, 0, 1.0));
            built.expect("a tree").expect("sorted keys");
            trees
        };
        let trees = keys
            .into_iter()
            .map(|keys| (!keys.is_empty()).then(|| tree(keys)));
        Self {
            step,
            constant,
            trees: trees.collect(),
            empty: tree(Vec::new()),
            txns: Txns::default(),
            placement,
        }
    }

    /// Place of the column that rows are placed by in keys.
    pub fn key_place(&self) -> usize {
        self.step.order.position(usize::from(self.step.by))
    }

    /// The ranges of a value, one for each arm; of any value where it is `None`.
    pub fn ranges(&self, value: Option<i64>) -> impl Iterator<Item = (Key, Key)> + '_ {
        (0..self.step.arms).map(move |arm| {
            let (mut low, mut high) = (KEY_MIN, KEY_MAX);
            for (place, column) in self.step.order.columns().into_iter().enumerate() {
                let bound = match column {
                    1 => Some(PREDICATE + arm as i64),
                    c if c == self.step.by => value,
                    _ => None,
                };
                let Some(bound) = bound else { break };
                (low[place], high[place]) = (bound as u64 ^ SIGN, bound as u64 ^ SIGN);
            }
            (low, high)
        })
    }

    /// Reads on in a shard, in the manner of [`Probe::read`].
    pub fn read(
        &self,
        shard: usize,
        probe: &mut Probe,
        ranges: &[(Key, Key)],
        enough: usize,
        (batch, spans): (&mut Batch, &mut Vec<Span>),
    ) -> bool {
        batch.clear(pgquad_btree::ALL_COLUMNS);
        spans.clear();
        self.append(shard, probe, ranges, enough, (batch, spans))
    }

    /// Reads on in a shard, in the manner of [`Probe::append`].
    pub fn append(
        &self,
        shard: usize,
        probe: &mut Probe,
        ranges: &[(Key, Key)],
        enough: usize,
        (batch, spans): (&mut Batch, &mut Vec<Span>),
    ) -> bool {
        let trees = self.trees[shard].as_ref().unwrap_or(&self.empty);
        let snapshot = self.txns.snapshot(&[], 1);
        let tree = trees.tree(0).expect("its only tree");
        let read = probe.append(tree, &snapshot, ranges, enough, batch, spans);
        read.expect("sound pages")
    }

    /// Place of the column with the value that the next step looks up.
    pub fn value_place(&self) -> usize {
        let column = if self.step.by == 0 { 2 } else { 0 };
        self.step.order.position(column)
    }
}

/// The tables of the steps of a join.
pub fn tables(join: &Join, nodes: usize, skew: Skew, seed: u64) -> Vec<Table> {
    let mut state = seed;
    let keys_of: Vec<Vec<i64>> = join
        .steps
        .iter()
        .map(|step| match step.what {
            What::Keys(count) => distinct(count, &mut state),
            What::Constant(_) | What::Everywhere(_) => distinct(1, &mut state),
        })
        .collect();
    let mut tables = Vec::with_capacity(join.steps.len());
    for (n, &step) in join.steps.iter().enumerate() {
        let next = keys_of.get(n + 1).map_or(&[][..], Vec::as_slice);
        let quads = quads_of(step, &keys_of[n], next, skew, &mut state);
        tables.push(Table::new(step, keys_of[n][0], &quads, placement(nodes)));
    }
    tables
}

/// So many different values of about equal size.
fn distinct(count: usize, state: &mut u64) -> Vec<i64> {
    let range = TERMS.max(4 * count as u64);
    let mut found = std::collections::BTreeSet::new();
    while found.len() < count.max(1) {
        found.insert((1i64 << 40) + (random(state) % range) as i64);
    }
    // In no order that the values tell.
    let mut values: Vec<i64> = found.into_iter().collect();
    for n in (1..values.len()).rev() {
        values.swap(n, (random(state) % (n as u64 + 1)) as usize);
    }
    values
}

/// Quads of a step: for the keys that rows of the step before have, with values that the step after looks up.
fn quads_of(step: Step, keys: &[i64], next: &[i64], skew: Skew, state: &mut u64) -> Vec<Quad> {
    let (own, other) = if step.by == 0 { (0, 2) } else { (2, 0) };
    let mut quads = Vec::new();
    let mut add = |key: i64, arm: usize| {
        let number = quads.len();
        let mut quad = [0, PREDICATE + arm as i64, 0, number as i64];
        quad[own] = key;
        quad[other] = match next.len() {
            0 => (1 << 41) + number as i64,
            len => next[number % len],
        };
        quads.push(quad);
    };
    match step.what {
        What::Keys(_) => {
            let total = step.factor * keys.len() as f64;
            let hot = (skew * total) as usize;
            (0..hot).for_each(|_| add(keys[0], step.arms - 1));
            let factor = (total - hot as f64).max(0.0) / keys.len() as f64;
            for (k, &key) in keys.iter().enumerate() {
                (0..step.arms - 1).for_each(|arm| add(key, arm));
                let until = |k: usize| (k as f64 * factor + 1e-9).floor() as usize;
                (until(k)..until(k + 1)).for_each(|_| add(key, step.arms - 1));
            }
        }
        What::Constant(count) => {
            (0..step.arms - 1).for_each(|arm| add(keys[0], arm));
            (0..count).for_each(|_| add(keys[0], step.arms - 1));
        }
        What::Everywhere(count) => {
            let range = TERMS.max(4 * count as u64);
            for _ in 0..count {
                add((1i64 << 40) + (random(state) % range) as i64, step.arms - 1);
            }
        }
    }
    quads
}
