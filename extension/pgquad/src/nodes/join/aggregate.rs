//! The aggregates that `Quad Count` knows, and what they are computed from.

use crate::nodes::counts::{COUNT_ROWS, COUNT_VALUES};
use crate::pg::list::list_iter;
use crate::rights::SEEN;
use pgquad_exec::Extreme;
use pgquad_term::aggregate::SUM_WORDS;
use pgrx::pg_sys;

/// `max(bigint)` (`pg_proc.dat`).
const GREATEST_ID: pg_sys::Oid = pg_sys::Oid::from_u32(2115);
/// `min(bigint)` (`pg_proc.dat`).
const MIN_ID: pg_sys::Oid = pg_sys::Oid::from_u32(2131);

/// Whether an expression is a column of this level's quads.
///
/// # Safety
/// A live node, or NULL.
pub unsafe fn is_column(expr: *mut pg_sys::Node) -> bool {
    // SAFETY: a live node, cast after its tag was checked. All relations of a `Quad Join` are quad tables, whose
    // columns are these.
    unsafe {
        if expr.is_null() || (*expr).type_ != pg_sys::NodeTag::T_Var {
            return false;
        }
        let var = expr.cast::<pg_sys::Var>();
        (*var).varlevelsup == 0 && (1..=4).contains(&(*var).varattno)
    }
}

/// Whether an expression can be evaluated where the rows of a `Quad Join` are aggregated. It has to be over columns of
/// this level's quads alone, and to give the same result for the same columns.
///
/// # Safety
/// A live node, or NULL.
pub unsafe fn is_of_columns(expr: *mut pg_sys::Node) -> bool {
    // SAFETY: a live expression.
    unsafe {
        let flags = pg_sys::PVC_INCLUDE_AGGREGATES
            | pg_sys::PVC_INCLUDE_WINDOWFUNCS
            | pg_sys::PVC_INCLUDE_PLACEHOLDERS;
        !expr.is_null()
            && !pg_sys::contain_volatile_functions(expr)
            && !pg_sys::contain_subplans(expr)
            && list_iter(pg_sys::pull_var_clause(expr, flags as i32)).all(|part| is_column(part))
    }
}

/// What the node makes of its rows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Aggregate {
    /// Their number, or how many have a value in a column.
    Count,
    /// The number of distinct values in a column.
    CountDistinct,
    /// The least or greatest id, or the first or last term, as an id.
    Extreme(Extreme),
    /// The sum of numbers, as a term.
    Sum,
    /// The average.
    Average,
    /// The sum, as an id.
    SumId,
    /// The average, as an id.
    AverageId,
}

impl Aggregate {
    /// Bytes that a group has of it.
    pub fn bytes(self) -> f64 {
        let words = match self {
            Self::Count | Self::CountDistinct => 1,
            Self::Extreme(_) => 2,
            Self::Sum | Self::Average | Self::SumId | Self::AverageId => SUM_WORDS,
        };
        8.0 * words as f64
    }

    /// What an aggregate is, if it is one that the node knows.
    ///
    /// # Safety
    /// `aggregate` is a live node.
    pub unsafe fn of(aggregate: *mut pg_sys::Aggref) -> Option<Self> {
        // SAFETY: the caller's promise.
        unsafe {
            let plain = (*aggregate).aggfilter.is_null()
                && (*aggregate).aggorder.is_null()
                && (*aggregate).agglevelsup == 0;
            if !plain {
                return None;
            }
            let is_distinct = !(*aggregate).aggdistinct.is_null();
            let id = |extreme| is_of_columns(argument(aggregate)).then_some(Self::Extreme(extreme));
            match (*aggregate).aggfnoid {
                COUNT_VALUES if is_distinct => {
                    is_column(argument(aggregate)).then_some(Self::CountDistinct)
                }
                _ if is_distinct => None,
                COUNT_ROWS => (*aggregate).aggstar.then_some(Self::Count),
                COUNT_VALUES => is_column(argument(aggregate)).then_some(Self::Count),
                MIN_ID => id(Extreme::LeastId),
                GREATEST_ID => id(Extreme::GreatestId),
                _ => Self::of_values(aggregate),
            }
        }
    }

    /// An aggregate of this extension that takes ids, or terms that are computed.
    unsafe fn of_values(aggregate: *mut pg_sys::Aggref) -> Option<Self> {
        // SAFETY: a live node; look-ups in the catalogue.
        unsafe {
            let schema = pg_sys::get_namespace_oid(c"quad".as_ptr(), true);
            let argument = argument(aggregate);
            if pg_sys::get_func_namespace((*aggregate).aggfnoid) != schema
                || !is_of_columns(argument)
            {
                return None;
            }
            let takes_ids = pg_sys::exprType(argument) == pg_sys::INT8OID;
            // Ids that nobody has found to come from this statement's quads are checked by the aggregate's own
            // function, row by row.
            if takes_ids && (*aggregate).inputcollid != SEEN {
                return None;
            }
            let name = pg_sys::get_func_name((*aggregate).aggfnoid);
            match std::ffi::CStr::from_ptr(name).to_bytes() {
                b"agg_sum" => Some(Self::Sum),
                b"agg_avg" => Some(Self::Average),
                _ if !takes_ids => None,
                b"agg_sum_float" => Some(Self::SumId),
                b"agg_avg_float" => Some(Self::AverageId),
                b"agg_min" => Some(Self::Extreme(Extreme::FirstTerm)),
                b"agg_max" => Some(Self::Extreme(Extreme::LastTerm)),
                _ => None,
            }
        }
    }
}

/// What an aggregate of one argument counts, NULL for `count(*)`.
///
/// # Safety
/// `aggregate` is a live node.
pub unsafe fn argument(aggregate: *mut pg_sys::Aggref) -> *mut pg_sys::Node {
    // SAFETY: the caller's promise.
    unsafe {
        let mut arguments = list_iter::<pg_sys::TargetEntry>((*aggregate).args);
        let first = arguments.next();
        first.map_or(std::ptr::null_mut(), |entry| (*entry).expr.cast())
    }
}
