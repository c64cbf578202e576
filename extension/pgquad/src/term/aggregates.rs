//! The aggregates of section 18.5.1. A NULL or an error in a row makes SUM, AVG, MIN, MAX and GROUP_CONCAT NULL; SAMPLE
//! takes any value that is there.

use std::cmp::Ordering;

use pgquad_term::aggregate::{Extreme, GroupConcat, Sum};
use pgquad_term::number::Number;
use pgquad_term::{compare_inline, func, number_id, order, TermBuf, TermId};
use pgrx::datum::Internal;
use pgrx::prelude::*;
use pgrx::{pg_sys, PgMemoryContexts, PgSqlErrorCode};

use super::{value, TermArg, TermOut};
use crate::dictionary;
use crate::pg::error::raise;
use crate::rights;

/// Whether a function is called by the node of an aggregate, as only the executor can call it with a state.
/// `AggCheckCallContext` looks at the same, but is too dear for each row.
fn in_aggregate(fcinfo: pg_sys::FunctionCallInfo) -> bool {
    use pg_sys::NodeTag::{T_AggState, T_WindowAggState};
    // SAFETY: `fcinfo` is that of the running call; its context is NULL or a node.
    unsafe {
        let context = (*fcinfo).context;
        !context.is_null() && matches!((*context).type_, T_AggState | T_WindowAggState)
    }
}

/// The state of an aggregate, made at the first row; it lives as long as the group.
fn state<T: Default>(state: &mut Internal, fcinfo: pg_sys::FunctionCallInfo) -> &mut T {
    if !in_aggregate(fcinfo) {
        raise(
            PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            "this function is part of an aggregate and cannot be called by itself",
        );
    }
    // SAFETY: each step and final function uses one type of state, and only what follows ever makes one.
    let known = unsafe { state.get_mut::<T>() }.map(std::ptr::from_mut);
    if let Some(known) = known {
        // SAFETY: as above; the state lives as long as the group.
        return unsafe { &mut *known };
    }
    let mut context: pg_sys::MemoryContext = std::ptr::null_mut();
    // SAFETY: `fcinfo` is that of the running call, of an aggregate.
    unsafe { pg_sys::AggCheckCallContext(fcinfo, &mut context) };
    // SAFETY: each step and final function uses one type of state, and a state is only ever made here. It is allocated
    // in the context of the group, which drops it at its end.
    unsafe {
        PgMemoryContexts::For(context).switch_to(|_| {
            let state: *mut T = state.get_or_insert_default::<T>();
            &mut *state
        })
    }
}

#[pg_extern(immutable, parallel_safe)]
fn agg_sum_step(
    mut sum: Internal,
    term: Option<TermArg<'_>>,
    fcinfo: pg_sys::FunctionCallInfo,
) -> Internal {
    state::<Sum>(&mut sum, fcinfo).step(term.as_ref().map(TermArg::term).as_ref());
    sum
}

#[pg_extern(immutable, parallel_safe)]
fn agg_sum_final(mut sum: Internal, fcinfo: pg_sys::FunctionCallInfo) -> Option<TermOut> {
    total(state::<Sum>(&mut sum, fcinfo))
}

/// The number that a term is, if it is one.
///
/// # Safety
/// `datum` is a valid datum of type `quad.term`.
pub unsafe fn number_of_datum(datum: pg_sys::Datum) -> Option<Number> {
    // SAFETY: the caller's promise.
    let term = unsafe { TermArg::from_datum_unchecked(datum) };
    let number = func::numeric::number(&term.term());
    number.ok()
}

/// SUM, as a term.
pub fn total(sum: &Sum) -> Option<TermOut> {
    value(sum.sum().map(Number::to_term)).map(TermOut)
}

/// AVG, as a term.
pub fn average(sum: &Sum) -> Option<TermOut> {
    value(sum.average().map(Number::to_term)).map(TermOut)
}

/// SUM, as the id of a number that has one in any case.
pub fn sum_id(sum: &Sum) -> Option<i64> {
    value(sum.sum()).map(id_of)
}

/// AVG, as the id of a number that has one in any case.
pub fn average_id(sum: &Sum) -> Option<i64> {
    value(sum.average()).map(id_of)
}

#[pg_extern(immutable, parallel_safe)]
fn agg_avg_final(mut sum: Internal, fcinfo: pg_sys::FunctionCallInfo) -> Option<TermOut> {
    average(state::<Sum>(&mut sum, fcinfo))
}

#[pg_extern(stable, parallel_safe)]
fn agg_sum_id_step(
    mut sum: Internal,
    id: Option<i64>,
    fcinfo: pg_sys::FunctionCallInfo,
) -> Internal {
    rights::check(fcinfo, id.as_slice());
    state::<Sum>(&mut sum, fcinfo).step_number(id.and_then(dictionary::number));
    sum
}

/// The id of a sum of numbers that has one in any case.
#[pg_extern(immutable, parallel_safe)]
fn agg_sum_id_final(mut sum: Internal, fcinfo: pg_sys::FunctionCallInfo) -> Option<i64> {
    sum_id(state::<Sum>(&mut sum, fcinfo))
}

/// The id of an average of numbers that has one in any case.
#[pg_extern(immutable, parallel_safe)]
fn agg_avg_id_final(mut sum: Internal, fcinfo: pg_sys::FunctionCallInfo) -> Option<i64> {
    average_id(state::<Sum>(&mut sum, fcinfo))
}

fn id_of(number: Number) -> i64 {
    number_id(number).map_or_else(
        || {
            raise(
                PgSqlErrorCode::ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE,
                "the result is no number that is in its id",
            )
        },
        TermId::to_i64,
    )
}

/// MIN and MAX of terms given by their ids, which are compared as far as they tell.
#[derive(Default)]
struct ExtremeId {
    best: Option<TermId>,
    /// The term of `best`, once it was needed.
    term: Option<TermBuf>,
    failed: bool,
}

impl ExtremeId {
    fn step(&mut self, id: Option<i64>, wanted: Ordering) {
        let Some(id) = id.map(dictionary::term_id).filter(|_| !self.failed) else {
            self.failed = true;
            return;
        };
        let Some(best) = self.best else {
            self.best = Some(id);
            return;
        };
        if id == best {
            return;
        }
        // Values that are equal to the operators may still have an order.
        match compare_inline(id, best).filter(|order| order.is_ne()) {
            Some(order) if order == wanted => (self.best, self.term) = (Some(id), None),
            Some(_) => {}
            None => self.step_by_terms(id, best, wanted),
        }
    }

    fn step_by_terms(&mut self, id: TermId, best: TermId, wanted: Ordering) {
        if self.term.is_none() {
            self.term = dictionary::decode(best);
        }
        let Some(best) = self.term.as_ref().map(TermBuf::as_term) else {
            return;
        };
        let better = dictionary::with_term(id, |term| {
            (order(term, &best) == wanted).then(|| term.to_buf())
        });
        if let Some(term) = better.flatten() {
            (self.best, self.term) = (Some(id), Some(term));
        }
    }
}

#[pg_extern(stable, parallel_safe)]
fn agg_min_id_step(
    mut extreme: Internal,
    id: Option<i64>,
    fcinfo: pg_sys::FunctionCallInfo,
) -> Internal {
    rights::check(fcinfo, id.as_slice());
    state::<ExtremeId>(&mut extreme, fcinfo).step(id, Ordering::Less);
    extreme
}

#[pg_extern(stable, parallel_safe)]
fn agg_max_id_step(
    mut extreme: Internal,
    id: Option<i64>,
    fcinfo: pg_sys::FunctionCallInfo,
) -> Internal {
    rights::check(fcinfo, id.as_slice());
    state::<ExtremeId>(&mut extreme, fcinfo).step(id, Ordering::Greater);
    extreme
}

#[pg_extern(immutable, parallel_safe)]
fn agg_extreme_id_final(mut extreme: Internal, fcinfo: pg_sys::FunctionCallInfo) -> Option<i64> {
    let extreme = state::<ExtremeId>(&mut extreme, fcinfo);
    extreme.best.filter(|_| !extreme.failed).map(TermId::to_i64)
}

#[pg_extern(immutable, parallel_safe)]
fn agg_min_step(
    mut extreme: Internal,
    term: Option<TermArg<'_>>,
    fcinfo: pg_sys::FunctionCallInfo,
) -> Internal {
    let term = term.as_ref().map(TermArg::term);
    state::<Extreme>(&mut extreme, fcinfo).step(term.as_ref(), Ordering::Less);
    extreme
}

#[pg_extern(immutable, parallel_safe)]
fn agg_max_step(
    mut extreme: Internal,
    term: Option<TermArg<'_>>,
    fcinfo: pg_sys::FunctionCallInfo,
) -> Internal {
    let term = term.as_ref().map(TermArg::term);
    state::<Extreme>(&mut extreme, fcinfo).step(term.as_ref(), Ordering::Greater);
    extreme
}

#[pg_extern(immutable, parallel_safe)]
fn agg_extreme_final(mut extreme: Internal, fcinfo: pg_sys::FunctionCallInfo) -> Option<TermOut> {
    value(state::<Extreme>(&mut extreme, fcinfo).result().cloned()).map(TermOut)
}

#[pg_extern(immutable, parallel_safe)]
fn agg_group_concat_step(
    mut concat: Internal,
    term: Option<TermArg<'_>>,
    separator: Option<&str>,
    fcinfo: pg_sys::FunctionCallInfo,
) -> Internal {
    let term = term.as_ref().map(TermArg::term);
    state::<GroupConcat>(&mut concat, fcinfo).step(term.as_ref(), separator.unwrap_or(" "));
    concat
}

#[pg_extern(immutable, parallel_safe)]
fn agg_group_concat_final(
    mut concat: Internal,
    fcinfo: pg_sys::FunctionCallInfo,
) -> Option<TermOut> {
    value(state::<GroupConcat>(&mut concat, fcinfo).result()).map(TermOut)
}

/// Keeps the first value. Being strict, it is called from the second one that is not NULL on.
#[pg_extern(immutable, parallel_safe)]
fn agg_sample_step(first: TermArg<'_>, _next: TermArg<'_>) -> TermOut {
    TermOut(first.term().to_buf())
}

// SSPACE: without it PostgreSQL takes 8 kB for each state, and sorts where a hash table of the groups would be small.
extension_sql_file!(
    "../../../../sql/term_aggregates.sql",
    name = "term_aggregates",
    requires = [
        agg_sum_step,
        agg_sum_final,
        agg_avg_final,
        agg_sum_id_step,
        agg_sum_id_final,
        agg_avg_id_final,
        agg_min_id_step,
        agg_max_id_step,
        agg_extreme_id_final,
        agg_min_step,
        agg_max_step,
        agg_extreme_final,
        agg_sample_step,
        agg_group_concat_step,
        agg_group_concat_final
    ]
);
