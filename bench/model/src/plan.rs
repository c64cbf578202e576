//! Recorded queries: the steps of their joins, with what each looked up and found.

use pgquad_btree::Order;
use serde_json::Value;

/// A query of a mix.
#[derive(Clone, Debug)]
pub struct Query {
    /// `explore` or `bi`.
    pub mix: String,
    /// Number of its template.
    pub template: String,
    /// How often the mix asks it.
    pub weight: u64,
    /// Its joins.
    pub joins: Vec<Join>,
    /// What real nodes took.
    pub measured: Vec<Measured>,
}

/// What real nodes took for a query.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// How many they were.
    pub nodes: usize,
    /// How their joins ran: `pull` or `push`.
    pub way: String,
    /// Milliseconds.
    pub ms: f64,
    /// Messages about quads that all nodes sent.
    pub messages: f64,
    /// Bytes of them.
    pub bytes: f64,
}

/// A join.
#[derive(Clone, Debug)]
pub struct Join {
    /// How often it ran.
    pub loops: u64,
    /// Groups that its rows were counted by; `None`: the rows themselves are wanted.
    pub groups: Option<usize>,
    /// What it did, one after the other.
    pub steps: Vec<Step>,
}

/// A step of a join.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// The table that is read is placed by subject (0) or object (2).
    pub by: u8,
    /// The order that is read.
    pub order: Order,
    /// What is looked up in it.
    pub what: What,
    /// Patterns that are looked up together for a key (a star).
    pub arms: usize,
    /// Rows that come out for each that goes in.
    pub factor: f64,
}

/// What a step looks up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum What {
    /// So many distinct values of a variable.
    Keys(usize),
    /// One key that the query names, with so many quads.
    Constant(usize),
    /// A range of all shards, with so many quads: read whole.
    Everywhere(usize),
}

/// Bytes of a row in the build side of a hash join.
const BUILD_ROW_BYTES: u64 = 24;

/// All queries of a recording.
///
/// # Errors
/// What is missing.
pub fn read(recorded: &Value) -> Result<Vec<Query>, String> {
    let queries = recorded["queries"].as_array().ok_or("no queries")?;
    queries.iter().map(query).collect()
}

fn query(value: &Value) -> Result<Query, String> {
    let joins = value["joins"].as_array().ok_or("a query without joins")?;
    let mut measured = Vec::new();
    for (name, ways) in value["nodes"].as_object().ok_or("nothing measured")? {
        let nodes = name.parse().map_err(|_| "a number of nodes")?;
        for (way, found) in ways.as_object().ok_or("nodes without ways")? {
            measured.push(measured_way(nodes, way, found));
        }
    }
    Ok(Query {
        mix: value["mix"].as_str().unwrap_or_default().to_owned(),
        template: value["query"].as_str().unwrap_or_default().to_owned(),
        weight: value["weight"].as_u64().unwrap_or(1),
        joins: joins.iter().map(join).collect::<Result<_, String>>()?,
        measured,
    })
}

/// Messages about quads are pulled ones and pushed ones: a pushed query may pull in part.
fn measured_way(nodes: usize, way: &str, found: &Value) -> Measured {
    let number = |value: &Value| value.as_f64().unwrap_or(0.0);
    let sent = |what: &str| {
        let of = |kind: &str| number(&found["sent"][kind][what]);
        of("pull") + of("push")
    };
    Measured {
        nodes,
        way: way.to_owned(),
        ms: number(&found["ms"]),
        messages: sent("messages"),
        bytes: sent("bytes"),
    }
}

fn join(value: &Value) -> Result<Join, String> {
    let found = value["steps"].as_array().ok_or("a join without steps")?;
    // What is recorded of steps is the sum over all runs of the join.
    let loops = value["loops"].as_u64().unwrap_or(1).max(1);
    let mut steps: Vec<Step> = Vec::new();
    let mut bound: Vec<&str> = Vec::new();
    // Rows before the step, and key of the star that it may go on.
    let (mut before, mut star): (f64, Option<&str>) = (1.0, None);
    for step in found {
        let text = |name: &str| step[name].as_str().unwrap_or_default();
        let number = |name: &str| step[name].as_u64().unwrap_or(0);
        let terms: Vec<&str> = text("terms").split_whitespace().collect();
        let order: Order = text("order").parse().map_err(|_| "an order that is none")?;
        let by = if order.position(0) < 2 { 0 } else { 2 };
        let key = *terms
            .get(usize::from(by))
            .ok_or("a pattern of four terms")?;
        let rows = number("rows") as f64 / loops as f64;
        let factor = rows / before.max(1.0);
        let same_star = text("by") == "star" && star == Some(key);
        star = (text("by") == "star").then_some(key);
        if let (true, Some(last)) = (same_star, steps.last_mut()) {
            last.arms += 1;
            last.factor *= factor;
        } else {
            let quads = (rows as usize).max(1);
            let what = if text("by").contains("hash") {
                let built = (number("memory") * 1024 / BUILD_ROW_BYTES) as usize;
                What::Everywhere(built.max(1))
            } else if key == "$" {
                What::Constant(quads)
            } else if bound.contains(&key) {
                What::Keys((number("keys") / loops).max(1) as usize)
            } else {
                What::Everywhere(quads)
            };
            let arms = 1;
            steps.push(Step {
                by,
                order,
                what,
                arms,
                factor,
            });
        }
        bound.extend(terms.iter().filter(|term| term.starts_with('?')));
        before = rows;
    }
    Ok(Join {
        loops,
        groups: value["groups"].as_u64().map(|groups| groups as usize),
        steps,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recorded_join() {
        let recorded = serde_json::json!({"loops": 1, "steps": [
            {"terms": "?0 $ $ $", "order": "posg", "by": "probe", "rows": 8, "keys": 1},
            {"terms": "?0 $ ?1 $", "order": "spog", "by": "star", "rows": 8, "keys": 8},
            {"terms": "?0 $ ?2 $", "order": "spog", "by": "star", "rows": 4, "keys": 8},
            {"terms": "?3 $ ?2 $", "order": "posg", "by": "probe", "rows": 40, "keys": 2},
            {"terms": "?3 $ ?4 $", "order": "posg", "by": "hash", "rows": 40, "keys": 0, "memory": 24},
        ]});
        let join = join(&recorded).unwrap();
        let whats: Vec<What> = join.steps.iter().map(|step| step.what).collect();
        let expected = [
            What::Constant(8),
            What::Keys(8),
            What::Keys(2),
            What::Everywhere(1024),
        ];
        assert_eq!(whats, expected);
        let shapes: Vec<_> = join
            .steps
            .iter()
            .map(|s| (s.by, s.arms, s.factor))
            .collect();
        assert_eq!(
            shapes,
            [(2, 1, 8.0), (0, 2, 0.5), (2, 1, 10.0), (2, 1, 1.0)]
        );
    }
}
