//! The aggregates of section 18.5.1. A NULL or an error in a row makes SUM, AVG, MIN, MAX and GROUP_CONCAT NULL; SAMPLE takes any value
//! that is there.

use std::cmp::Ordering;

use pgquad_term::aggregate::{Extreme, GroupConcat, Sum};
use pgrx::datum::Internal;
use pgrx::prelude::*;
use pgrx::{pg_sys, PgMemoryContexts, PgSqlErrorCode};

use super::{value, TermArg, TermOut};
use crate::error::raise;

/// The state of an aggregate, made at the first row; it lives as long as the group.
fn state<T: Default>(state: &mut Internal, fcinfo: pg_sys::FunctionCallInfo) -> &mut T {
    let mut context: pg_sys::MemoryContext = std::ptr::null_mut();
    // SAFETY: `fcinfo` is that of the running call.
    if unsafe { pg_sys::AggCheckCallContext(fcinfo, &mut context) } == 0 {
        raise(
            PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            "this function is part of an aggregate and cannot be called by itself",
        );
    }
    // SAFETY: each step and final function uses one type of state, and a state is only ever made here. It is allocated in the
    // context of the group, which drops it at its end.
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
    value(state::<Sum>(&mut sum, fcinfo).sum()).map(TermOut)
}

#[pg_extern(immutable, parallel_safe)]
fn agg_avg_final(mut sum: Internal, fcinfo: pg_sys::FunctionCallInfo) -> Option<TermOut> {
    value(state::<Sum>(&mut sum, fcinfo).average()).map(TermOut)
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

extension_sql!(
    r#"
CREATE AGGREGATE quad.agg_sum(quad.term) (
    SFUNC = quad.agg_sum_step, STYPE = internal, FINALFUNC = quad.agg_sum_final, PARALLEL = SAFE
);
CREATE AGGREGATE quad.agg_avg(quad.term) (
    SFUNC = quad.agg_sum_step, STYPE = internal, FINALFUNC = quad.agg_avg_final, PARALLEL = SAFE
);
CREATE AGGREGATE quad.agg_min(quad.term) (
    SFUNC = quad.agg_min_step, STYPE = internal, FINALFUNC = quad.agg_extreme_final, PARALLEL = SAFE
);
CREATE AGGREGATE quad.agg_max(quad.term) (
    SFUNC = quad.agg_max_step, STYPE = internal, FINALFUNC = quad.agg_extreme_final, PARALLEL = SAFE
);
CREATE AGGREGATE quad.agg_sample(quad.term) (
    SFUNC = quad.agg_sample_step, STYPE = quad.term, PARALLEL = SAFE
);
CREATE AGGREGATE quad.agg_group_concat(quad.term, text) (
    SFUNC = quad.agg_group_concat_step, STYPE = internal, FINALFUNC = quad.agg_group_concat_final, PARALLEL = SAFE
);
"#,
    name = "term_aggregates",
    requires = [
        agg_sum_step,
        agg_sum_final,
        agg_avg_final,
        agg_min_step,
        agg_max_step,
        agg_extreme_final,
        agg_sample_step,
        agg_group_concat_step,
        agg_group_concat_final
    ]
);
