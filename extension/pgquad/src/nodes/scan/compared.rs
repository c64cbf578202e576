//! Conditions as the plan carries them, and the filters that they become.

use super::condition_values::parameter;
use super::conditions::Condition;
use crate::pg::error::raise_hint;
use pgquad_btree::{Filter, Key, Order};
use pgquad_exec::{key_ranges, most_ranges, Bound, ConditionData, Oid, Value};
use pgrx::{pg_sys, PgSqlErrorCode};

/// A condition: column, kind of bound, type of the value.
#[derive(Clone, Copy)]
pub struct Compared {
    /// The column of the table.
    pub column: usize,
    /// The kind of bound.
    pub bound: Bound,
    /// `<>` instead of what the bound says.
    pub unequal: bool,
    /// Type of the value.
    pub value_type: pg_sys::Oid,
}

impl From<ConditionData> for Compared {
    fn from(data: ConditionData) -> Self {
        Self {
            column: data.column,
            bound: data.bound,
            unequal: data.unequal,
            value_type: pg_sys::Oid::from(data.value_type.0),
        }
    }
}

impl Condition {
    /// What the plan carries of it.
    pub fn data(&self, unequal: bool) -> ConditionData {
        ConditionData {
            column: self.column,
            bound: self.bound,
            unequal,
            value_type: Oid(self.value_type.to_u32()),
        }
    }
}

impl Compared {
    /// The condition as a filter on keys of an order; `None` when nothing can pass.
    pub fn filter(&self, order: Order, value: &Value) -> Option<Filter> {
        let Value::One(value) = *value else {
            return None;
        };
        let (low, high) = match self.bound {
            Bound::Eq | Bound::Any | Bound::Within => (value, value),
            Bound::Lt => (0, value.checked_sub(1)?),
            Bound::Le => (0, value),
            Bound::Ge => (value, u64::MAX),
            Bound::Gt => (value.checked_add(1)?, u64::MAX),
        };
        Some(Filter {
            column: order.position(self.column) as u8,
            low,
            high,
            outside: self.unequal,
        })
    }
}

/// Most key ranges that the lists of a table's conditions may make together, 64 bytes each.
const MAX_RANGES: usize = 1 << 22;

/// The key ranges of an order for conditions with these values, all of which it uses. An error where lists make too
/// many of them: three lists of a thousand values make as many as there are combinations.
pub fn ranges_of(order: Order, conditions: &[(usize, Bound, Value)]) -> Vec<(Key, Key)> {
    let most = most_ranges(conditions.iter().map(|condition| &condition.2));
    if most > MAX_RANGES {
        raise_hint(
            PgSqlErrorCode::ERRCODE_PROGRAM_LIMIT_EXCEEDED,
            format!("the lists of the conditions on a quad table make {most} ranges of keys, more than {MAX_RANGES}"),
            "Join with the values of the longest list instead, as in JOIN unnest(..) AS v ON v = s.",
        );
    }
    key_ranges(order, conditions)
}

/// The key ranges that `bounds` and the first `bounding` of the conditions make of an order, and the filters that the
/// other conditions are. There is no range where nothing can pass.
///
/// # Safety
/// The expressions and the context belong to a begun node.
pub unsafe fn evaluate<'a>(
    mut bounds: Vec<(usize, Bound, Value)>,
    conditions: impl Iterator<Item = (&'a Compared, *mut pg_sys::ExprState)>,
    bounding: usize,
    order: Order,
    context: *mut pg_sys::ExprContext,
) -> (Vec<(Key, Key)>, Vec<Filter>) {
    let mut filters = Vec::new();
    let mut possible = true;
    for (n, (compared, expr)) in conditions.enumerate() {
        // SAFETY: the caller's promise.
        let value = unsafe { parameter(expr, context, compared.value_type) };
        if n < bounding {
            bounds.push((compared.column, compared.bound, value));
        } else {
            let filter = compared.filter(order, &value);
            possible &= filter.is_some();
            filters.extend(filter);
        }
    }
    let ranges = match possible {
        true => ranges_of(order, &bounds),
        false => Vec::new(),
    };
    (ranges, filters)
}
