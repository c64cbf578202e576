//! EXPLAIN of `Quad Join`: the patterns in the order in which they were first used when the query has run, then the
//! filters.
//!
//! The text format has one line per pattern. The other formats (JSON, XML, YAML) have a group `Patterns` with one
//! property per figure.

use super::expression_filters::TestExpr;
use super::pushed::Report;
use super::state::QuadJoin;
use crate::nodes::custom;
use crate::pg::list::list_iter;
use pgquad_btree::Order;
use pgquad_exec::{Group, Kind, Pattern, Source, StepStats};
use pgrx::pg_sys;
use std::ffi::CStr;
use std::fmt::Write;

/// A pattern as EXPLAIN shows it.
struct Shown<'a> {
    /// How its group takes part; `None` = inner join.
    kind: Option<Kind>,
    pattern: &'a Pattern,
    /// Alias of its table in the query.
    alias: String,
    stats: StepStats,
    /// The index permutation that its last batch has read.
    order: Order,
    is_remote: bool,
}

/// Shows a node.
///
/// # Safety
/// `join` is the own part of `node`, begun; the rest is EXPLAIN's own.
pub unsafe fn explain(
    join: &QuadJoin,
    node: *mut pg_sys::CustomScanState,
    ancestors: *mut pg_sys::List,
    es: *mut pg_sys::ExplainState,
) {
    // SAFETY: the caller's promise.
    unsafe {
        let mut patterns = Vec::new();
        collect(&join.plan.root, None, &mut patterns);
        let mut shown: Vec<Shown> = patterns
            .iter()
            .enumerate()
            .map(|(n, &(kind, pattern))| {
                let stats = join.pipeline.steps()[n];
                Shown {
                    kind,
                    pattern,
                    alias: custom::relation_name(join.relations[n], es),
                    stats,
                    order: join.source.orders(pattern.table)[stats.order],
                    is_remote: !join.source.ranges_are_sorted(pattern.table),
                }
            })
            .collect();
        // What was never reached comes last.
        shown.sort_by_key(|shown| match shown.stats.turn {
            0 => u32::MAX,
            turn => turn,
        });
        if custom::is_text(es) {
            for shown in &shown {
                custom::explain_text("Pattern", &line(shown, es), es);
            }
        } else {
            custom::explain_group(c"Patterns", false, es, || {
                for shown in &shown {
                    custom::explain_group(c"Pattern", true, es, || properties(shown, es));
                }
            });
        }
        explain_filters(&join.source.tests, node, ancestors, es);
        explain_candidates(join, es);
        if (*es).analyze {
            explain_exchange(&join.report, es);
        }
    }
}

/// How many rows were left out as none of the first of an order.
unsafe fn explain_candidates(join: &QuadJoin, es: *mut pg_sys::ExplainState) {
    if let Some(candidates) = &join.candidates {
        let label = c"Rows Removed by Leading Sort Key";
        // SAFETY: EXPLAIN's own state.
        unsafe { explain_removed(label, candidates.removed, es) };
    }
}

/// How many rows something has removed, once the query has run. As PostgreSQL does, the text leaves out a zero.
unsafe fn explain_removed(label: &CStr, removed: u64, es: *mut pg_sys::ExplainState) {
    // SAFETY: EXPLAIN's own state.
    unsafe {
        if (*es).analyze && (removed > 0 || !custom::is_text(es)) {
            custom::explain_integer(label, removed as i64, es);
        }
    }
}

/// How rows and the quads of shards came together: where the join was pushed from node to node, what it has cost each
/// of them.
unsafe fn explain_exchange(report: &Report, es: *mut pg_sys::ExplainState) {
    if report.times == 0 && report.refused.is_none() {
        return;
    }
    // SAFETY: EXPLAIN's own state.
    unsafe {
        if custom::is_text(es) {
            exchange_lines(report, es);
        } else {
            exchange_properties(report, es);
        }
    }
}

unsafe fn exchange_lines(report: &Report, es: *mut pg_sys::ExplainState) {
    // SAFETY: EXPLAIN's own state.
    let shows_time = unsafe { (*es).timing };
    let time = |what: &str, nanoseconds: u64| match shows_time {
        true => format!(" {what}={:.3} ms", nanoseconds as f64 / 1e6),
        false => String::new(),
    };
    let how = match &report.refused {
        Some(why) if report.times == 0 => format!("pull ({why})"),
        _ => format!(
            "push nodes={} received={}kB{}",
            report.nodes.len(),
            report.received.div_ceil(1024),
            time("waiting", report.waited)
        ),
    };
    // SAFETY: as above.
    unsafe { custom::explain_text("Exchange", &how, es) };
    for (name, cost) in &report.nodes {
        let mut text = format!(
            "{name} rows={} pushed={} messages={} sent={}kB blocked_writes={}",
            cost.answered,
            cost.rows,
            cost.messages,
            cost.bytes.div_ceil(1024),
            cost.blocked_writes
        );
        if cost.blocked_writes > 0 {
            text += &time("blocked", cost.blocked);
        }
        if cost.spilled > 0 {
            let _ = write!(text, " spilled={}kB", cost.spilled.div_ceil(1024));
        }
        if cost.groups_spilled > 0 {
            let kilobytes = cost.groups_spilled.div_ceil(1024);
            let _ = write!(text, " groups_spilled={kilobytes}kB");
        }
        text += &time("waiting", cost.waited);
        // SAFETY: as above.
        unsafe { custom::explain_text("Participant", &text, es) };
    }
}

/// The same with a property for each figure, and a list of the participants.
unsafe fn exchange_properties(report: &Report, es: *mut pg_sys::ExplainState) {
    // SAFETY: EXPLAIN's own state.
    unsafe {
        let waiting = |label: &CStr, nanoseconds: u64| {
            if (*es).timing {
                custom::explain_milliseconds(label, nanoseconds, es);
            }
        };
        if report.times == 0 {
            custom::explain_text("Exchange", "pull", es);
            if let Some(why) = &report.refused {
                custom::explain_text("Exchange Reason", why, es);
            }
            return;
        }
        custom::explain_text("Exchange", "push", es);
        custom::explain_integer(c"Exchange Bytes Received", report.received as i64, es);
        waiting(c"Exchange Waiting Time", report.waited);
        custom::explain_group(c"Participants", false, es, || {
            for (name, cost) in &report.nodes {
                custom::explain_group(c"Participant", true, es, || {
                    custom::explain_text("Node", name, es);
                    let counts = [
                        (c"Actual Rows", cost.answered),
                        (c"Pushed Rows", cost.rows),
                        (c"Messages", cost.messages),
                        (c"Bytes Sent", cost.bytes),
                        (c"Blocked Writes", cost.blocked_writes),
                        (c"Bytes Spilled", cost.spilled),
                        (c"Group Bytes Spilled", cost.groups_spilled),
                    ];
                    for (label, value) in counts {
                        custom::explain_integer(label, value as i64, es);
                    }
                    waiting(c"Blocked Write Time", cost.blocked);
                    waiting(c"Waiting Time", cost.waited);
                });
            }
        });
    }
}

/// The filters: those that are tested on ids, and those that PostgreSQL evaluates; with the rows that each kind has
/// removed.
unsafe fn explain_filters(
    tests: &[TestExpr],
    node: *mut pg_sys::CustomScanState,
    ancestors: *mut pg_sys::List,
    es: *mut pg_sys::ExplainState,
) {
    // SAFETY: arguments are those of `explain`; behind the values of the parameters, the plan has the filters'
    // expressions.
    unsafe {
        let plan = (*node).ss.ps.plan.cast::<pg_sys::CustomScan>();
        let exprs: Vec<*mut pg_sys::Node> = list_iter((*plan).custom_exprs).collect();
        let filters = &exprs[exprs.len() - tests.len()..];
        let shown = custom::deparse(node, filters, ancestors, es);
        // EXPLAIN itself shows as `Filter` what is tested on the rows that come out.
        let evaluated = match (*plan).scan.plan.qual.is_null() {
            true => ("Filter", c"Rows Removed by Filter"),
            false => ("Join Filter", c"Rows Removed by Join Filter"),
        };
        let on_ids = ("Filter on Ids", c"Rows Removed by Filter on Ids");
        for ((label, removed_label), is_on_ids) in [(on_ids, true), (evaluated, false)] {
            let of_kind = || {
                let pairs = tests.iter().zip(&shown);
                pairs.filter(|(test, _)| test.vectorised.is_some() == is_on_ids)
            };
            let conditions: Vec<&str> = of_kind().map(|(_, text)| text.as_str()).collect();
            if conditions.is_empty() {
                continue;
            }
            custom::explain_text(label, &conditions.join(" AND "), es);
            let removed: u64 = of_kind().map(|(test, _)| test.removed).sum();
            explain_removed(removed_label, removed, es);
        }
    }
}

/// The patterns in the order of the steps, each with how its group takes part.
fn collect<'a>(group: &'a Group, kind: Option<Kind>, out: &mut Vec<(Option<Kind>, &'a Pattern)>) {
    out.extend(group.patterns.iter().map(|p| (kind, p)));
    for child in &group.children {
        collect(&child.group, Some(child.kind), out);
    }
}

/// A pattern in the text format.
unsafe fn line(shown: &Shown, es: *mut pg_sys::ExplainState) -> String {
    let kind = match shown.kind {
        None => "",
        Some(Kind::Left) => "optional ",
        Some(Kind::Semi) => "exists ",
        Some(Kind::Anti) => "not exists ",
    };
    let of = if shown.pattern.triples {
        "triples of "
    } else {
        ""
    };
    let mut line = format!("{kind}{of}{} ({})", shown.alias, shape(shown.pattern));
    // SAFETY: EXPLAIN's own state.
    let (analyze, timing, buffers) = unsafe { ((*es).analyze, (*es).timing, (*es).buffers) };
    if !analyze {
        return line;
    }
    let stats = &shown.stats;
    if stats.turn == 0 {
        line.push_str(": never executed");
        return line;
    }
    let _ = write!(
        line,
        ": index_order={} method={} estimate={:.0} rows={} batches={} keys={} probes={}",
        shown.order,
        methods(stats),
        stats.estimate,
        stats.rows,
        stats.batches,
        stats.keys,
        stats.probes
    );
    if stats.dealt > 0 {
        let _ = write!(line, " pushed={}", stats.dealt);
    }
    if stats.memory > 0 {
        let _ = write!(line, " memory={}kB", stats.memory.div_ceil(1024));
    }
    if buffers {
        let _ = write!(line, " hit={} read={}", stats.hit, stats.read);
    }
    if timing {
        let _ = write!(line, " time={:.3} ms", stats.time as f64 / 1e6);
    }
    if shown.is_remote {
        line += &custom::traffic(&stats.traffic, timing);
    }
    line
}

/// A pattern in the formats that programs read.
unsafe fn properties(shown: &Shown, es: *mut pg_sys::ExplainState) {
    let kind = match shown.kind {
        None => "Inner",
        Some(Kind::Left) => "Left",
        Some(Kind::Semi) => "Semi",
        Some(Kind::Anti) => "Anti",
    };
    // SAFETY: the state that EXPLAIN passes.
    unsafe {
        custom::explain_text("Alias", &shown.alias, es);
        custom::explain_text("Columns", &shape(shown.pattern), es);
        custom::explain_text("Join Type", kind, es);
        if shown.pattern.triples {
            custom::explain_text("Read", "triples", es);
        }
        if !(*es).analyze {
            return;
        }
        let stats = &shown.stats;
        if stats.turn > 0 {
            custom::explain_text("Index Order", &shown.order.to_string(), es);
            custom::explain_integer(c"Plan Rows", stats.estimate as i64, es);
        }
        let counts = [
            (c"Actual Rows", stats.rows),
            (c"Batches", stats.batches),
            (c"Star Batches", stats.starred),
            (c"Probe Batches", probed(stats)),
            (c"Merge Batches", stats.merged),
            (c"Hash Batches", stats.hashed),
            (c"Keys", stats.keys),
            (c"Probes", stats.probes),
            (c"Peak Memory Usage", stats.memory.div_ceil(1024)),
        ];
        for (label, value) in counts {
            custom::explain_integer(label, value as i64, es);
        }
        if (*es).buffers {
            custom::explain_integer(c"Hit Blocks", stats.hit as i64, es);
            custom::explain_integer(c"Read Blocks", stats.read as i64, es);
        }
        if (*es).timing {
            custom::explain_milliseconds(c"Actual Time", stats.time, es);
        }
        if shown.is_remote {
            custom::explain_integer(c"Pushed Rows", stats.dealt as i64, es);
            custom::explain_traffic(&stats.traffic, es);
        }
    }
}

/// The columns with what they hold: `$` a parameter, `?n` a variable, `_` anything.
fn shape(pattern: &Pattern) -> String {
    let mut text = String::new();
    for (column, cell) in pattern.cells.iter().enumerate() {
        if column > 0 {
            text.push(' ');
        }
        let compared = pattern
            .conditions
            .iter()
            .any(|c| c.column.index() == column);
        match cell {
            Some(slot) => {
                let _ = write!(
                    text,
                    "?{}{}",
                    slot.number(),
                    if compared { "$" } else { "" }
                );
            }
            None => text.push(if compared { '$' } else { '_' }),
        }
    }
    text
}

/// Batches that probed the index key by key.
fn probed(stats: &StepStats) -> u64 {
    stats.batches - stats.starred - stats.hashed - stats.merged
}

/// The join methods that were used, with the number of batches where there are several.
fn methods(stats: &StepStats) -> String {
    let all = [
        ("star", stats.starred),
        ("probe", probed(stats)),
        ("merge", stats.merged),
        ("hash", stats.hashed),
    ];
    let used: Vec<_> = all.iter().filter(|method| method.1 > 0).collect();
    match used.as_slice() {
        [(name, _)] => String::from(*name),
        many => {
            let named: Vec<String> = many.iter().map(|(name, n)| format!("{name}:{n}")).collect();
            named.join(",")
        }
    }
}
