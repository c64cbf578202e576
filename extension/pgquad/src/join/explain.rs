//! EXPLAIN of `Quad Join`: one line per pattern, in the order in which they were first used when the query has run.

use super::exec::QuadJoin;
use crate::custom;
use crate::scan::conditions::list_iter;
use pgquad_exec::{Group, Kind, Pattern, Source, StepStats};
use pgrx::pg_sys;
use pgrx::prelude::*;
use std::ffi::CString;
use std::fmt::Write;

/// The ExplainCustomScan callback.
#[pg_guard]
pub unsafe extern "C-unwind" fn explain(
    node: *mut pg_sys::CustomScanState,
    ancestors: *mut pg_sys::List,
    es: *mut pg_sys::ExplainState,
) {
    // SAFETY: EXPLAIN passes a begun node of ours and its own state.
    unsafe {
        let join = &*custom::own::<QuadJoin, _>(node);
        let mut patterns = Vec::new();
        collect(&join.plan.root, "", &mut patterns);
        let mut steps: Vec<(StepStats, String)> = Vec::new();
        for (n, (kind, pattern)) in patterns.iter().enumerate() {
            let stats = join.pipeline.steps()[n];
            let orders = join.source.orders(pattern.table);
            let mut line = format!(
                "{kind}{} ({})",
                custom::relation_name(join.relations[n], es),
                shape(pattern)
            );
            if (*es).analyze {
                describe(
                    &mut line,
                    &stats,
                    &orders[stats.order],
                    (*es).timing,
                    (*es).buffers,
                );
                if !join.source.is_ordered(pattern.table) && stats.turn > 0 {
                    line += &custom::traffic(&stats.traffic, (*es).timing);
                }
            }
            steps.push((stats, line));
        }
        // What was never reached comes last.
        steps.sort_by_key(|(stats, _)| {
            if stats.turn == 0 {
                u32::MAX
            } else {
                stats.turn
            }
        });
        let mut lines = std::ptr::null_mut();
        for (_, line) in steps {
            let line = CString::new(line).unwrap_or_default();
            lines = pg_sys::lappend(lines, pg_sys::pstrdup(line.as_ptr()).cast());
        }
        if (*es).format == pg_sys::ExplainFormat::EXPLAIN_FORMAT_TEXT {
            let mut cell = 0;
            while cell < pg_sys::list_length(lines) {
                pg_sys::ExplainPropertyText(
                    c"Pattern".as_ptr(),
                    pg_sys::list_nth(lines, cell).cast(),
                    es,
                );
                cell += 1;
            }
        } else {
            pg_sys::ExplainPropertyList(c"Patterns".as_ptr(), lines, es);
        }
        explain_tests(node, ancestors, es);
    }
}

/// The filters: those that are tested on ids, and those that PostgreSQL evaluates.
unsafe fn explain_tests(
    node: *mut pg_sys::CustomScanState,
    ancestors: *mut pg_sys::List,
    es: *mut pg_sys::ExplainState,
) {
    // SAFETY: arguments are those of `explain`; behind the values of the parameters, the plan has the filters' expressions.
    unsafe {
        let tests = &(*custom::own::<QuadJoin, _>(node)).source.tests;
        let plan = (*node).ss.ps.plan.cast::<pg_sys::CustomScan>();
        let exprs: Vec<*mut pg_sys::Node> = list_iter((*plan).custom_exprs).collect();
        let filters = &exprs[exprs.len() - tests.len()..];
        let shown = custom::deparse(node, filters, ancestors, es);
        for (label, on_ids) in [("Tested on Ids", true), ("Tested", false)] {
            let tested: Vec<&str> = tests
                .iter()
                .zip(&shown)
                .filter(|(test, _)| test.vectorised.is_some() == on_ids)
                .map(|(_, text)| text.as_str())
                .collect();
            if !tested.is_empty() {
                custom::explain_text(label, &tested.join(" AND "), es);
            }
        }
    }
}

/// The patterns in the order of the steps, each with how its group takes part.
fn collect<'a>(group: &'a Group, kind: &'static str, out: &mut Vec<(&'static str, &'a Pattern)>) {
    out.extend(group.patterns.iter().map(|p| (kind, p)));
    for child in &group.children {
        let kind = match child.kind {
            Kind::Left => "optional ",
            Kind::Semi => "exists ",
            Kind::Anti => "not exists ",
        };
        collect(&child.group, kind, out);
    }
}

/// The columns with what they hold: `$` a parameter, `?n` a variable, `_` anything.
fn shape(pattern: &Pattern) -> String {
    let mut text = String::new();
    for column in 0..4u8 {
        if column > 0 {
            text.push(' ');
        }
        let compared = pattern.conditions.iter().any(|c| c.0 == column);
        match pattern.cells[usize::from(column)] {
            Some(slot) => {
                let _ = write!(text, "?{slot}{}", if compared { "$" } else { "" });
            }
            None => text.push(if compared { '$' } else { '_' }),
        }
    }
    text
}

fn describe(line: &mut String, stats: &StepStats, order: &[u8; 4], timing: bool, buffers: bool) {
    if stats.turn == 0 {
        line.push_str(": never reached");
        return;
    }
    let letters: String = order
        .iter()
        .map(|&c| char::from(b"spog"[usize::from(c & 3)]))
        .collect();
    let _ = write!(
        line,
        ": order={letters} by={} estimate={:.0} rows={} batches={} keys={} probes={}",
        kinds(stats),
        stats.estimate,
        stats.rows,
        stats.batches,
        stats.keys,
        stats.probes
    );
    if stats.memory > 0 {
        let _ = write!(line, " memory={}kB", stats.memory.div_ceil(1024));
    }
    if buffers {
        let _ = write!(line, " hit={} read={}", stats.hit, stats.read);
    }
    if timing {
        let _ = write!(line, " time={:.3} ms", stats.time as f64 / 1e6);
    }
}

/// The kinds of steps that were taken, with the number of batches where there are several.
fn kinds(stats: &StepStats) -> String {
    let probed = stats.batches - stats.starred - stats.hashed - stats.merged;
    let all = [
        ("star", stats.starred),
        ("probe", probed),
        ("merge", stats.merged),
        ("hash", stats.hashed),
    ];
    let taken: Vec<_> = all.iter().filter(|kind| kind.1 > 0).collect();
    match taken.as_slice() {
        [(name, _)] => String::from(*name),
        many => {
            let named: Vec<String> = many.iter().map(|(name, n)| format!("{name}:{n}")).collect();
            named.join(",")
        }
    }
}
