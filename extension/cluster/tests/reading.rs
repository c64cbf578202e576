//! Reading over shards on several nodes against a list of quads: random quads, placements, ranges and sizes of answers.

use pgquad_btree::mem::{MemStore, Txns};
use pgquad_btree::{
    initial_pages, key_of, Batch, Key, Options, Order, Probe, Quad, Quads, Span, ALL_COLUMNS,
    COUNTS, FROZEN_XID, KEY_MAX, KEY_MIN, SIGN,
};
use pgquad_cluster::ahead::parts_of;
use pgquad_cluster::message::Found;
use pgquad_cluster::message::{Read, Rows};
use pgquad_cluster::reading::answer;
use pgquad_cluster::{shard_of_range, Placement, ReadAhead, Reader, Reading, Shard, Shards, Wish};
use proptest::prelude::*;
use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

/// What identifies the table of a cluster.
const TABLE: u32 = 7;

/// A cluster in one process: requests and answers go through their messages.
struct Cluster {
    placement: Placement,
    order: Order,
    trees: Vec<Quads<MemStore>>,
    txns: Txns,
    key_place: usize,
    /// Requests under way, by node.
    asked: RefCell<HashMap<i32, Vec<u8>>>,
    messages: RefCell<usize>,
    /// What has been read ahead, and the answers to requests that it has spared.
    ahead: RefCell<ReadAhead>,
    known: RefCell<HashMap<i32, Rows>>,
    /// Only shards of this node are read.
    own: bool,
}

impl Cluster {
    /// Quads distributed by column `by` into `shards` shards, that of number n on node n modulo `nodes`; this node is
    /// 0.
    fn new(quads: &BTreeSet<Quad>, order: &str, by: u8, shards: usize, nodes: i32) -> Self {
        let order: Order = order.parse().unwrap();
        let step = (1i64 << 32) / shards as i64;
        let shard = |n: usize| {
            let low = i64::from(i32::MIN) + n as i64 * step;
            let last = n + 1 == shards;
            Shard {
                id: 100 + n as u64,
                low: low as i32,
                high: if last {
                    i32::MAX
                } else {
                    (low + step - 1) as i32
                },
                group: n as i32 % nodes,
            }
        };
        let placement = Placement::new((0..shards).map(shard).collect()).unwrap();
        let mut keys: Vec<Vec<Key>> = vec![Vec::new(); shards];
        for quad in quads {
            keys[placement.shard_of(quad[usize::from(by)])].push(key_of(order, quad));
        }
        let tree = |mut keys: Vec<Key>| {
            keys.sort_unstable();
            let mut options = Options::with_orders(&[order]);
            (options.orders[0].inner_fanout, options.orders[0].leaf_quads) = (4, 4);
            let trees = Quads::open(MemStore::new(initial_pages(&options).unwrap())).unwrap();
            let build = trees
                .tree(0)
                .unwrap()
                .build(keys.into_iter(), FROZEN_XID, 0, 1.0);
            build.unwrap();
            trees
        };
        Self {
            key_place: order.position(usize::from(by)),
            placement,
            order,
            trees: keys.into_iter().map(tree).collect(),
            txns: Txns::default(),
            asked: RefCell::default(),
            messages: RefCell::new(0),
            ahead: RefCell::default(),
            known: RefCell::default(),
            own: false,
        }
    }

    /// Reads ranges of other nodes ahead.
    fn read_ahead(&self, ranges: &[(Key, Key)]) {
        for range in ranges {
            let place = shard_of_range(&self.placement, self.key_place, range);
            if let Some(place) = place.filter(|&place| !self.is_here(place)) {
                let shard = self.placement.shards()[place];
                self.ahead.borrow_mut().wish(Wish {
                    table: TABLE,
                    group: shard.group,
                    shard: shard.id,
                    order: 0,
                    range: *range,
                });
            }
        }
        let groups = self.ahead.borrow().groups();
        for group in groups {
            let wishes = self.ahead.borrow_mut().take(group);
            let message = Read::default().encode_with(&[], &parts_of(&wishes));
            let rows = self.answer_of(group, &message);
            assert!(rows.batch.is_empty() && rows.stop.is_none());
            assert!(self.ahead.borrow_mut().keep(&wishes, &rows.ahead));
        }
    }

    /// What the node of a group answers.
    fn answer_of(&self, group: i32, message: &[u8]) -> Rows {
        let mut reader = Reader::new(message);
        reader.u8().unwrap();
        reader.u8().unwrap();
        let request = Read::decode(&mut reader).unwrap();
        let shard_of = |id: u64| (id - 100) as usize;
        for part in &request.parts {
            assert_eq!(self.placement.shards()[shard_of(part.shard)].group, group);
        }
        let mut rows = answer(&request, |part, probe, ranges, enough, batch, spans| {
            let shard = shard_of(request.parts[part].shard);
            self.read_shard(shard, probe, ranges, enough, batch, spans)
        });
        rows.ahead = Found::of(
            &request.ahead,
            |place, range, enough, batch| {
                let shard = shard_of(request.ahead[place].1.shard);
                let (probe, spans) = (&mut Probe::new(ALL_COLUMNS), &mut Vec::new());
                self.read_shard(shard, probe, &[*range], enough, batch, spans);
                true
            },
            |_, _| 0,
        );
        Rows::decode(&rows.encode()).unwrap()
    }

    fn read_shard(
        &self,
        shard: usize,
        probe: &mut Probe,
        ranges: &[(Key, Key)],
        enough: usize,
        batch: &mut Batch,
        spans: &mut Vec<Span>,
    ) -> bool {
        let snapshot = self.txns.snapshot(&[], 1);
        let tree = self.trees[shard].tree(0).unwrap();
        probe
            .read(tree, &snapshot, ranges, enough, batch, spans)
            .unwrap()
    }
}

impl Shards for Cluster {
    fn placement(&self) -> &Placement {
        &self.placement
    }

    fn is_here(&self, shard: usize) -> bool {
        self.placement.shards()[shard].group == 0
    }

    fn only_here(&self) -> bool {
        self.own
    }

    fn key_place(&self) -> usize {
        self.key_place
    }

    fn order(&self) -> u8 {
        0
    }

    fn read_here(
        &self,
        shard: usize,
        probe: &mut Probe,
        ranges: &[(Key, Key)],
        enough: usize,
        batch: &mut Batch,
        spans: &mut Vec<Span>,
    ) -> bool {
        assert!(self.is_here(shard));
        let snapshot = self.txns.snapshot(&[], 1);
        let tree = self.trees[shard].tree(0).unwrap();
        let more = probe.append(tree, &snapshot, ranges, enough, batch, spans);
        more.unwrap()
    }

    fn send(&self, group: i32, request: &Read) {
        if let Some(rows) = self.ahead.borrow().answer(TABLE, request) {
            let before = self.known.borrow_mut().insert(group, rows);
            assert!(before.is_none(), "one request at a time for each node");
            return;
        }
        *self.messages.borrow_mut() += 1;
        let before = self.asked.borrow_mut().insert(group, request.encode());
        assert!(before.is_none(), "one request at a time for each node");
    }

    fn receive(&self, group: i32) -> Rc<Rows> {
        if let Some(rows) = self.known.borrow_mut().remove(&group) {
            return Rc::new(rows);
        }
        let bytes = self.asked.borrow_mut().remove(&group).expect("a request");
        Rc::new(self.answer_of(group, &bytes))
    }
}

/// Where only shards here are read, many rows of one come without those of the next.
#[test]
fn shards_are_handed_out_one_by_one() {
    let quads: BTreeSet<Quad> = (0..9000).map(|s| [s, 1, s % 7, 0]).collect();
    let mut cluster = Cluster::new(&quads, "psog", 0, 4, 2);
    cluster.own = true;
    let (mut reading, ranges) = (Reading::new(ALL_COLUMNS), [prefix(&[1])]);
    let (mut batch, mut spans, mut found) = (Batch::new(), Vec::new(), 0);
    let mut more = true;
    while more {
        more = reading.read(&cluster, &ranges, 1500, &mut batch, &mut spans);
        let subject = |n: usize| (batch.key(n)[1] ^ SIGN) as i64;
        let shard = |n: usize| cluster.placement.shard_of(subject(n));
        assert!((0..batch.len()).all(|n| shard(n) == shard(0)));
        found += batch.len();
    }
    let here = |quad: &&Quad| cluster.is_here(cluster.placement.shard_of(quad[0]));
    assert_eq!(found, quads.iter().filter(here).count());
}

fn quads() -> impl Strategy<Value = BTreeSet<Quad>> {
    let quad = (0i64..12, 0i64..3, 0i64..8, 0i64..2).prop_map(|(s, p, o, g)| [s, p, o, g]);
    prop::collection::btree_set(quad, 0..150)
}

fn prefix(values: &[i64]) -> (Key, Key) {
    let (mut low, mut high) = (KEY_MIN, KEY_MAX);
    for (place, value) in values.iter().enumerate() {
        (low[place], high[place]) = (*value as u64 ^ SIGN, *value as u64 ^ SIGN);
    }
    (low, high)
}

/// Everything that a reading finds, as (range, key); `until_begun`: it ends at a group that is too large.
fn read_all(
    cluster: &Cluster,
    reading: &mut Reading,
    ranges: &[(Key, Key)],
    enough: usize,
    until_begun: bool,
) -> Vec<(u32, Key)> {
    let (mut batch, mut spans, mut found) = (Batch::new(), Vec::new(), Vec::new());
    for round in 0.. {
        assert!(round < 10_000, "the reading ends");
        let more = reading.read(cluster, ranges, enough, &mut batch, &mut spans);
        let mut at = 0;
        for span in &spans {
            found.extend((at..span.end as usize).map(|row| (span.range, batch.key(row))));
            at = span.end as usize;
        }
        assert_eq!(at, batch.len());
        if !more || (until_begun && reading.place().1) {
            break;
        }
    }
    found
}

fn expected(cluster: &Cluster, quads: &BTreeSet<Quad>, ranges: &[(Key, Key)]) -> Vec<(u32, Key)> {
    let keys: Vec<Key> = quads
        .iter()
        .map(|quad| key_of(cluster.order, quad))
        .collect();
    let of = |(n, (low, high)): (u32, &(Key, Key))| {
        let within = keys.iter().filter(move |key| low <= key && *key <= high);
        within.map(move |key| (n, *key)).collect::<Vec<_>>()
    };
    (0..).zip(ranges).flat_map(of).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Every quad of every range comes once, whatever the placement and the sizes of answers.
    #[test]
    fn ranges_are_read_once(
        quads in quads(),
        (order, by) in prop_oneof![Just(("spog", 0u8)), Just(("psog", 0)), Just(("ospg", 2)), Just(("posg", 2))],
        shards in 1usize..9,
        nodes in 1i32..5,
        prefixes in prop::collection::btree_set(prop::collection::vec(0i64..8, 0..4), 0..20),
        ahead in prop::collection::btree_set(prop::collection::vec(0i64..8, 1..4), 0..12),
        enough in 1usize..60,
    ) {
        let cluster = Cluster::new(&quads, order, by, shards, nodes);
        cluster.read_ahead(&ahead.iter().map(|p| prefix(p)).collect::<Vec<_>>());
        let ranges: Vec<(Key, Key)> = prefixes.iter().map(|p| prefix(p)).collect();
        let mut reading = Reading::new(ALL_COLUMNS);
        let mut found = read_all(&cluster, &mut reading, &ranges, enough, false);
        found.sort_unstable();
        let mut all = expected(&cluster, &quads, &ranges);
        all.sort_unstable();
        prop_assert_eq!(found, all);
    }

    /// Rows with counts stand for the quads of all shards, whoever has counted them.
    #[test]
    fn counted_rows_stand_for_all_quads(
        quads in quads(),
        (order, by) in prop_oneof![Just(("spog", 0u8)), Just(("psog", 0)), Just(("ospg", 2)), Just(("posg", 2))],
        shards in 1usize..9,
        nodes in 1i32..5,
        prefixes in prop::collection::btree_set(prop::collection::vec(0i64..8, 0..3), 0..12),
        ahead in prop::collection::btree_set(prop::collection::vec(0i64..8, 1..4), 0..12),
        enough in 1usize..60,
        mask in 0u8..16,
    ) {
        let cluster = Cluster::new(&quads, order, by, shards, nodes);
        cluster.read_ahead(&ahead.iter().map(|p| prefix(p)).collect::<Vec<_>>());
        let ranges: Vec<(Key, Key)> = prefixes.iter().map(|p| prefix(p)).collect();
        let mut reading = Reading::new(mask | COUNTS);
        let (mut batch, mut spans) = (Batch::new(), Vec::new());
        let (mut found, mut more) = (Vec::new(), true);
        while more {
            more = reading.read(&cluster, &ranges, enough, &mut batch, &mut spans);
            let mut row = 0;
            for span in &spans {
                for i in row..span.end as usize {
                    let key = (span.range, batch.key(i));
                    found.extend(std::iter::repeat_n(key, batch.counts[i] as usize));
                }
                row = span.end as usize;
            }
            prop_assert_eq!((row, batch.counts.len()), (batch.len(), batch.len()));
        }
        found.sort_unstable();
        let of_mask = |(range, key): (u32, Key)| -> (u32, Key) {
            (range, std::array::from_fn(|c| if mask >> c & 1 == 0 { 0 } else { key[c] }))
        };
        let mut all: Vec<(u32, Key)> =
            expected(&cluster, &quads, &ranges).into_iter().map(of_mask).collect();
        all.sort_unstable();
        prop_assert_eq!(found, all);
    }

    /// Groups come whole and in order; one that is too large ends the list before it.
    #[test]
    fn groups_come_in_order(
        quads in quads(),
        (order, by) in prop_oneof![Just(("spog", 0u8)), Just(("posg", 2))],
        shards in 1usize..9,
        nodes in 1i32..5,
        keys in prop::collection::btree_set(0i64..12, 0..12),
        arms in prop::collection::vec(0i64..3, 1..4),
        required in 0u64..8,
        ahead in prop::collection::btree_set(prop::collection::vec(0i64..12, 1..3), 0..20),
        enough in 1usize..40,
        most in 20usize..200,
    ) {
        let cluster = Cluster::new(&quads, order, by, shards, nodes);
        cluster.read_ahead(&ahead.iter().map(|p| prefix(p)).collect::<Vec<_>>());
        let group = |key: &i64| arms.iter().map(|arm| prefix(&[*key, *arm])).collect::<Vec<_>>();
        let ranges: Vec<(Key, Key)> = keys.iter().flat_map(group).collect();
        let mut reading = Reading::grouped(ALL_COLUMNS, arms.len(), required, most);
        let found = read_all(&cluster, &mut reading, &ranges, enough, true);
        prop_assert!(found.is_sorted(), "spans ascend");
        let (place, begun) = reading.place();
        let end = if begun { place * arms.len() } else { ranges.len() };
        let all = expected(&cluster, &quads, &ranges);
        for group in 0..end / arms.len() {
            let of = |list: &[(u32, Key)]| -> Vec<(u32, Key)> {
                list.iter().copied().filter(|f| f.0 as usize / arms.len() == group).collect()
            };
            let (mine, theirs) = (of(&found), of(&all));
            let is_missing = (0..arms.len()).any(|arm| {
                let range = (group * arms.len() + arm) as u32;
                required >> arm & 1 == 1 && !theirs.iter().any(|f| f.0 == range)
            });
            if !is_missing {
                prop_assert_eq!(mine, theirs);
            }
        }
    }

    /// One shard of this node is read in the order of its keys, without a message, whatever others have of the ranges.
    #[test]
    fn a_shard_is_read_alone(
        quads in quads(),
        (shards, nodes) in (1usize..9, 1i32..5),
        (low, high) in (0i64..12, 0i64..12),
        enough in 1usize..40,
    ) {
        let cluster = Cluster::new(&quads, "spog", 0, shards, nodes);
        for shard in (0..shards).filter(|&shard| cluster.is_here(shard)) {
            let ranges = [(prefix(&[low]).0, prefix(&[high]).1)];
            let mut reading = Reading::grouped(ALL_COLUMNS, 1, 0, 1000).in_shard(shard);
            let found = read_all(&cluster, &mut reading, &ranges, enough, true);
            let in_shard = quads.iter().filter(|quad| cluster.placement.shard_of(quad[0]) == shard);
            let all = expected(&cluster, &in_shard.copied().collect(), &ranges);
            prop_assert_eq!(found, all);
        }
        prop_assert_eq!(*cluster.messages.borrow(), 0);
    }

    /// One message to each node and call, where the answer has room for all.
    #[test]
    fn one_message_to_each_node(quads in quads(), shards in 1usize..9, nodes in 1i32..5) {
        let cluster = Cluster::new(&quads, "spog", 0, shards, nodes);
        let ranges: Vec<(Key, Key)> = (0..12).map(|s| prefix(&[s])).collect();
        let mut reading = Reading::new(ALL_COLUMNS);
        read_all(&cluster, &mut reading, &ranges, 1000, false);
        prop_assert!(*cluster.messages.borrow() < nodes as usize);
    }

    /// What is known takes no message.
    #[test]
    fn what_is_read_ahead_takes_no_message(quads in quads(), shards in 1usize..9, nodes in 1i32..5) {
        let cluster = Cluster::new(&quads, "spog", 0, shards, nodes);
        let ranges: Vec<(Key, Key)> = (0..12).map(|s| prefix(&[s])).collect();
        cluster.read_ahead(&ranges);
        let narrower: Vec<(Key, Key)> = (0..12).map(|s| prefix(&[s, s % 3])).collect();
        for ranges in [ranges, narrower] {
            let mut found = read_all(&cluster, &mut Reading::new(ALL_COLUMNS), &ranges, 1000, false);
            found.sort_unstable();
            prop_assert_eq!(found, expected(&cluster, &quads, &ranges));
        }
        prop_assert_eq!(*cluster.messages.borrow(), 0);
    }
}
