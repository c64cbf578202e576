//! `quad.store_info`, `quad.verify` and `quad.range_count` of a distributed store: what its shards say, put together.

use pgrx::{pg_sys, PgSqlErrorCode};

use super::citus::{self, literal, text_array};
use super::relations::qualified_name;
use super::write::{as_writer, has_written};
use crate::catalog::distributed_store::{owner_of, Sides};
use crate::pg::error::{raise, raise_hint};

/// Most shards of a node that are asked at once, each over a connection of its own. Citus opens as many for a
/// statement. Where a table has more shards on a node, they are asked one by one.
const MAX_SHARDS_AT_ONCE: usize = 16;

/// What one order of the store is, over all shards of its table.
pub struct OrderInfo {
    /// Name of the order.
    pub name: String,
    /// Inner fanout, leaf quads, and the greatest height.
    pub shape: [i32; 3],
    /// Inner pages, leaf pages, quads, delta entries.
    pub counts: [i64; 4],
    /// Bytes per quad; `None` without quads.
    pub bytes_per_quad: Option<f64>,
    /// Mean fill of the leaves; `None` without leaves.
    pub fill: Option<f64>,
}

/// Refuses, in a transaction that has written, what asks shards over sessions of their own. These sessions would wait
/// for its locks, and nobody would notice that it waits for them.
pub fn refuse_after_writes(what: &str) {
    if has_written() {
        raise_hint(
            PgSqlErrorCode::ERRCODE_ACTIVE_SQL_TRANSACTION,
            format!("cannot {what} a distributed store in a transaction that has written to one"),
            "Its shards are asked over sessions of their own. Commit first.",
        );
    }
}

/// All orders, those by subject first.
pub fn orders(sides: Sides) -> Vec<OrderInfo> {
    refuse_after_writes("describe");
    let number = |text: &Option<String>| text.as_ref().and_then(|text| text.parse::<f64>().ok());
    [sides.by_subject, sides.by_object]
        .into_iter()
        .flat_map(|side| {
            // Every shard gives its orders as JSON; sums and means are taken here.
            let command = "SELECT json_agg(i) FROM quad.store_info(%s) AS i";
            let (_, answers): (Vec<_>, Vec<_>) = each_shard(side, command).into_iter().unzip();
            citus::rows(
                &format!(
                    include_str!("queries/orders_of_shards.sql"),
                    text_array(&answers),
                ),
                &[],
            )
        })
        .map(|row| {
            let whole = |place: usize| number(&row[place]).unwrap_or(0.0);
            OrderInfo {
                name: row[0].clone().unwrap_or_default(),
                shape: [1, 2, 3].map(|place| whole(place) as i32),
                counts: [4, 5, 6, 7].map(|place| whole(place) as i64),
                bytes_per_quad: number(&row[8]),
                fill: number(&row[9]),
            }
        })
        .collect()
}

/// What the shards have to say against themselves, and where the two tables differ.
pub fn problems(sides: Sides) -> Vec<String> {
    refuse_after_writes("verify");
    let (s, o) = (
        qualified_name(sides.by_subject),
        qualified_name(sides.by_object),
    );
    citus::as_role(owner_of(sides.by_subject), || {
        citus::with_sqlstate(|| citus::run(&format!("LOCK TABLE {s}, {o} IN SHARE MODE")));
    });
    let mut problems = Vec::new();
    for side in [sides.by_subject, sides.by_object] {
        let command = "SELECT string_agg(v, E'\\n') FROM quad.verify(%s) AS v";
        for (shard, found) in each_shard(side, command) {
            let lines = found.lines().filter(|line| !line.is_empty());
            problems.extend(lines.map(|line| format!("shard {shard}: {line}")));
        }
    }
    // A hash of each quad, added up: the order in which shards come does not matter.
    let digest = |table: &str| {
        rows_as_owner(
            sides.by_subject,
            &format!(
                "SELECT count(*)::text, coalesce(sum(hashint8extended(s, hashint8extended(p, hashint8extended(o, hashint8extended(g, 0))))::numeric), 0)::text FROM {table}"
            ),
        )
    };
    let (by_subject, by_object) = (digest(&s), digest(&o));
    if by_subject != by_object {
        let count = |rows: &[citus::TextRow]| {
            rows.first()
                .and_then(|row| row[0].clone())
                .unwrap_or_default()
        };
        problems.push(format!(
            "the tables of the store hold different quads: {s} {}, {o} {}",
            count(&by_subject),
            count(&by_object)
        ));
    }
    problems
}

/// Number of quads that match; `None` = any.
pub fn count(sides: Sides, key: [Option<i64>; 4]) -> i64 {
    // An object says which shard, where no subject does.
    let side = if key[0].is_none() && key[2].is_some() {
        sides.by_object
    } else {
        sides.by_subject
    };
    let conditions: Vec<String> = ["s", "p", "o", "g"]
        .iter()
        .zip(key)
        .filter_map(|(column, value)| value.map(|value| format!("t.{column} = '{value}'::bigint")))
        .collect();
    let conditions = if conditions.is_empty() {
        "true".to_owned()
    } else {
        conditions.join(" AND ")
    };
    let rows = rows_as_owner(
        side,
        &format!(
            "SELECT count(*)::text FROM {} AS t WHERE {conditions}",
            qualified_name(side)
        ),
    );
    let count = rows.first().and_then(|row| row[0].as_ref()?.parse().ok());
    count.unwrap_or(0)
}

/// Runs a query on every shard of a table (`%s`: its name, as a literal), each in a transaction of its own. Returns the
/// number of each shard with the text of its answer.
pub fn each_shard(side: pg_sys::Oid, command: &str) -> Vec<(String, String)> {
    let name = qualified_name(side);
    // Citus puts the name in as it is. Quotes that do not occur in it make a literal of it.
    let quotes = (0..).map(|n: u32| format!("$q{n}$"));
    let quote = quotes
        .into_iter()
        .find(|quote| !name.contains(quote.as_str()));
    let quote = quote.expect("one of all quotes does not occur");
    let sql = format!(
        "SELECT shardid::text, success::text, coalesce(result, '') FROM run_command_on_shards({}, {}, parallel := \
           (SELECT max(n) FROM (SELECT count(*) AS n FROM pg_dist_shard JOIN pg_dist_placement USING (shardid) \
              WHERE logicalrelid = {} GROUP BY groupid) AS of_node) <= {MAX_SHARDS_AT_ONCE}) ORDER BY shardid",
        literal(&name),
        literal(&command.replace("%s", &format!("{quote}%s{quote}"))),
        side.to_u32()
    );
    rows_as_owner(side, &sql)
        .into_iter()
        .map(|row| {
            let text = |place: usize| row[place].clone().unwrap_or_default();
            if text(1) != "true" {
                raise(
                    PgSqlErrorCode::ERRCODE_CONNECTION_FAILURE,
                    format!("shard {} does not answer: {}", text(0), text(2)),
                );
            }
            (text(0), text(2))
        })
        .collect()
}

fn rows_as_owner(side: pg_sys::Oid, sql: &str) -> Vec<citus::TextRow> {
    as_writer(owner_of(side), || citus::rows(sql, &[]))
}
