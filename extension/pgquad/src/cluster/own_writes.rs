//! Reading a store that this transaction has written to. Its changes are in the transactions that Citus has open on
//! other nodes, which no session of ours sees. So such reads go through Citus: SELECTs on its tables, planned by it
//! each time.

use std::cell::RefCell;
use std::rc::Rc;

use pgquad_btree::{Batch, Filter, Groups, Key, Span, SIGN};
use pgquad_cluster::message::{Read, Rows, Stop};
use pgquad_cluster::{Placement, Shard, Shards};
use pgrx::{pg_sys, PgSqlErrorCode, Spi};

use super::citus;
use super::write::as_writer;
use crate::catalog::distributed_store::{owner_of, ORDERS};
use crate::catalog::names::table_name;
use crate::pg::error::raise;

/// Quads that are counted at most to estimate a range, some ms.
const MAX_COUNTED_QUADS: u64 = 10_000;

/// One of the tables of Citus, seen as one shard on another node.
pub struct Written {
    relid: pg_sys::Oid,
    /// Number of the order among those of the store, and in its table.
    order: usize,
    placement: Placement,
    answer: RefCell<Option<Rows>>,
}

/// Names of the columns of a quad.
const COLUMNS: [&str; 4] = ["s", "p", "o", "g"];

impl Written {
    /// Order number `order` of a store, whose table of Citus is `relid`.
    pub fn new(relid: pg_sys::Oid, order: usize) -> Self {
        let all = Shard {
            id: 0,
            low: i32::MIN,
            high: i32::MAX,
            group: 0,
        };
        Self {
            relid,
            order,
            placement: Placement::new(vec![all]).expect("one shard covers all hash values"),
            answer: RefCell::default(),
        }
    }

    /// The table's name in SQL.
    fn table(&self) -> String {
        table_name(self.relid)
    }

    /// Column `place` of the key.
    fn column(&self, place: usize) -> &'static str {
        COLUMNS[usize::from(ORDERS[self.order].columns()[place])]
    }

    /// The number of quads in a range that pass the filters.
    pub fn count(&self, (low, high): (&Key, &Key), filters: &[Filter]) -> u64 {
        let conditions = self.conditions((low, high), filters);
        self.count_of(&format!(
            "SELECT pg_catalog.count(*) FROM {} t WHERE {conditions}",
            self.table()
        ))
    }

    /// About how many quads a range has; of more than [`MAX_COUNTED_QUADS`] it is not said how many more.
    pub fn estimate(&self, (low, high): (&Key, &Key)) -> u64 {
        self.count_of(&format!(
            "SELECT pg_catalog.count(*) FROM (SELECT FROM {} t WHERE {} LIMIT {MAX_COUNTED_QUADS}) q",
            self.table(),
            self.within(low, high)
        ))
    }

    fn count_of(&self, sql: &str) -> u64 {
        let mut count = 0;
        self.run(sql, |row| count = row[0] as u64, 1);
        count
    }

    /// The values of a key column in a range, ascending, with numbers of keys; at most `most` of them, above `after`.
    pub fn values(
        &self,
        column: usize,
        range: (&Key, &Key),
        filters: &[Filter],
        (after, most): (Option<u64>, usize),
        groups: &mut Groups,
    ) {
        let name = self.column(column);
        let mut conditions = self.conditions(range, filters);
        if let Some(after) = after {
            conditions += &format!(" AND t.{name} > {}", signed(after));
        }
        self.groups_by(&[name], &conditions, most, groups);
    }

    /// The groups of a range by the first `depth` columns of the key, ascending, with numbers of keys; at most `most`
    /// of them.
    pub fn groups(
        &self,
        depth: usize,
        range: (&Key, &Key),
        filters: &[Filter],
        most: usize,
        groups: &mut Groups,
    ) {
        let columns: Vec<&str> = (0..depth).map(|place| self.column(place)).collect();
        self.groups_by(&columns, &self.conditions(range, filters), most, groups);
    }

    fn groups_by(&self, columns: &[&str], conditions: &str, most: usize, groups: &mut Groups) {
        let names: Vec<String> = columns.iter().map(|column| format!("t.{column}")).collect();
        let names = names.join(", ");
        let sql = format!(
            "SELECT {names}, pg_catalog.count(*) FROM {} t WHERE {conditions} GROUP BY {names} ORDER BY {names} LIMIT {most}",
            self.table()
        );
        let depth = columns.len();
        groups.clear(depth);
        let add = |row: &[i64]| {
            let mut key = [0; 4];
            let values = key[..depth].iter_mut().zip(row);
            values.for_each(|(value, &signed)| *value = signed as u64 ^ SIGN);
            groups.push(&key, row[depth] as u64);
        };
        self.run(&sql, add, depth + 1);
    }

    /// The condition for the keys of a range that pass the filters.
    fn conditions(&self, (low, high): (&Key, &Key), filters: &[Filter]) -> String {
        let mut conditions = vec![self.within(low, high)];
        for filter in filters {
            let column = self.column(usize::from(filter.column));
            let not = if filter.outside { "NOT " } else { "" };
            let (low, high) = (signed(filter.low), signed(filter.high));
            conditions.push(format!("t.{column} {not}BETWEEN {low} AND {high}"));
        }
        conditions.join(" AND ")
    }

    /// Runs a SELECT of bigint columns as the owner of the table: so were the changes made, and Citus keeps a
    /// connection for each role. Rights on the store have been checked where the relation was named.
    fn run(&self, sql: &str, mut each: impl FnMut(&[i64]), columns: usize) {
        as_writer(owner_of(self.relid), || {
            let done = citus::with_catalog_path(|| {
                Spi::connect(|client| -> Result<(), pgrx::spi::Error> {
                    let table = client.select(sql, None, &[])?;
                    let mut row = vec![0; columns];
                    for tuple in table {
                        for (n, value) in row.iter_mut().enumerate() {
                            *value = tuple.get::<i64>(n + 1)?.unwrap_or(0);
                        }
                        each(&row);
                    }
                    Ok(())
                })
            });
            if let Err(error) = done {
                raise(PgSqlErrorCode::ERRCODE_INTERNAL_ERROR, error.to_string());
            }
        });
    }

    /// The condition for one range: equalities as far as it has them, for Citus to find the shard by.
    fn within(&self, low: &Key, high: &Key) -> String {
        let bound = (0..4).take_while(|&c| low[c] == high[c]).count();
        let equal = (0..bound).map(|c| format!("t.{} = {}", self.column(c), signed(low[c])));
        let mut conditions: Vec<String> = equal.collect();
        if bound < 4
            && !(low[bound..] == [0; 4][bound..] && high[bound..] == [u64::MAX; 4][bound..])
        {
            let list = |values: &Key| {
                let values = values[bound..].iter().map(|&v| signed(v));
                values.collect::<Vec<_>>().join(", ")
            };
            let columns: Vec<String> = (bound..4)
                .map(|c| format!("t.{}", self.column(c)))
                .collect();
            let columns = columns.join(", ");
            conditions.push(format!("ROW({columns}) >= ROW({})", list(low)));
            conditions.push(format!("ROW({columns}) <= ROW({})", list(high)));
        }
        if conditions.is_empty() {
            conditions.push("true".to_owned());
        }
        conditions.join(" AND ")
    }

    /// Answers a request.
    fn read(&self, request: &Read) -> Rows {
        let ranges: Vec<&(Key, Key)> = request.parts.iter().flat_map(|p| &p.ranges).collect();
        let columns: Vec<String> = (0..4).map(|c| format!("t.{}", self.column(c))).collect();
        let columns = columns.join(", ");
        let parts: Vec<String> = match common_prefix(&ranges) {
            Some(bound) if ranges.len() > 1 && bound > 0 => {
                let lists = (0..bound).map(|c| {
                    let values = ranges.iter().map(|r| ((r.0[c] ^ SIGN) as i64).to_string());
                    let values: Vec<String> = values.collect();
                    format!("'{{{}}}'::bigint[]", values.join(","))
                });
                let lists: Vec<String> = lists.collect();
                let names: Vec<String> = (0..bound).map(|c| format!("k{c}")).collect();
                let equal = (0..bound).map(|c| format!("t.{} = r.k{c}", self.column(c)));
                let equal: Vec<String> = equal.collect();
                vec![format!(
                    "SELECT r.n - 1, {columns} FROM {} t \
                     JOIN ROWS FROM (unnest({})) WITH ORDINALITY AS r({}, n) ON {}",
                    self.table(),
                    lists.join(", "),
                    names.join(", "),
                    equal.join(" AND ")
                )]
            }
            _ => (0..)
                .zip(&ranges)
                .map(|(n, (low, high))| {
                    format!(
                        "SELECT {n}::bigint, {columns} FROM {} t WHERE {}",
                        self.table(),
                        self.within(low, high)
                    )
                })
                .collect(),
        };
        // Whole groups come at once; the window of groups bounds them.
        let limit = (request.most == 0).then_some(request.enough as usize);
        let mut found: Vec<(u32, Key)> = Vec::new();
        for part in parts {
            let left = limit.map(|limit| limit.saturating_sub(found.len()) + 1);
            let end = left.map_or(String::new(), |left| {
                format!(" ORDER BY 1, 2, 3, 4, 5 LIMIT {left}")
            });
            let add = |row: &[i64]| {
                let key = std::array::from_fn(|c| row[c + 1] as u64 ^ SIGN);
                found.push((row[0] as u32, key));
            };
            self.run(&(part + &end), add, 5);
            if limit.is_some_and(|limit| found.len() > limit) {
                break;
            }
        }
        found.sort_unstable();
        rows_of(request, found, limit)
    }
}

/// The rows as an answer. One row beyond `limit` says where to go on.
fn rows_of(request: &Read, mut found: Vec<(u32, Key)>, limit: Option<usize>) -> Rows {
    let mut rows = Rows::default();
    if let Some(limit) = limit.filter(|&limit| found.len() > limit.max(1)) {
        let (next, key) = found[limit.max(1)];
        found.truncate(limit.max(1));
        // Ranges are numbered through all parts, of which there is one.
        rows.stop = Some(Stop {
            part: 0,
            next,
            resume: Some(key),
            begun: false,
        });
    }
    let mut columns: [Vec<u64>; 4] = Default::default();
    for (c, column) in columns.iter_mut().enumerate() {
        if request.mask >> c & 1 != 0 {
            column.extend(found.iter().map(|(_, key)| key[c]));
        }
    }
    for of_range in found.chunk_by(|a, b| a.0 == b.0) {
        let end = rows.spans.last().map_or(0, |span: &Span| span.end) + of_range.len() as u32;
        let range = of_range[0].0;
        rows.spans.push(Span { range, end });
    }
    rows.batch = Batch::from_columns(request.mask, columns, found.len());
    rows
}

/// The number of leading columns that each range binds to one value, all others being free; `None` where they differ.
fn common_prefix(ranges: &[&(Key, Key)]) -> Option<usize> {
    let bound = |(low, high): &(Key, Key)| {
        let bound = (0..4).take_while(|&c| low[c] == high[c]).count();
        let free =
            low[bound..].iter().all(|&v| v == 0) && high[bound..].iter().all(|&v| v == u64::MAX);
        free.then_some(bound)
    };
    let first = bound(ranges.first()?)?;
    ranges
        .iter()
        .all(|range| bound(range) == Some(first))
        .then_some(first)
}

/// A value of a key as SQL writes it.
fn signed(value: u64) -> String {
    format!("'{}'::bigint", (value ^ SIGN) as i64)
}

impl Shards for Written {
    fn placement(&self) -> &Placement {
        &self.placement
    }

    fn is_here(&self, _shard: usize) -> bool {
        false
    }

    fn key_place(&self) -> usize {
        0
    }

    fn order(&self) -> u8 {
        0
    }

    fn read_here(
        &self,
        _shard: usize,
        _probe: &mut pgquad_btree::Probe,
        _ranges: &[(Key, Key)],
        _enough: usize,
        _batch: &mut Batch,
        _spans: &mut Vec<Span>,
    ) -> bool {
        unreachable!("no shard is here")
    }

    fn send(&self, _group: i32, request: &Read) {
        let rows = self.read(request);
        self.answer.replace(Some(rows));
    }

    fn receive(&self, _group: i32) -> Rc<Rows> {
        Rc::new(self.answer.take().unwrap_or_default())
    }
}
