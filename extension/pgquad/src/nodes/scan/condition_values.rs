//! Values that conditions compare columns with, in the form of keys.

use pgquad_btree::SIGN;
use pgquad_exec::Value;
use pgrx::pg_sys;
use pgrx::prelude::*;

/// The value of an expression that a condition compares a column with, in the form of keys; `value_type` is an integer
/// or an array of them.
///
/// # Safety
/// `state` and `context` belong to a begun node.
pub unsafe fn parameter(
    state: *mut pg_sys::ExprState,
    context: *mut pg_sys::ExprContext,
    value_type: pg_sys::Oid,
) -> Value {
    // SAFETY: the caller's promise.
    unsafe {
        let mut is_null = false;
        let datum = pg_sys::ExecEvalExprSwitchContext(state, context, &mut is_null);
        value_of(datum, is_null, value_type)
    }
}

/// A datum that a condition compares a column with, in the form of keys.
///
/// # Safety
/// It is NULL, or of this type: an integer or an array of them.
pub unsafe fn value_of(datum: pg_sys::Datum, is_null: bool, value_type: pg_sys::Oid) -> Value {
    if is_null {
        Value::Null
    } else if let Some(value) = integer_datum(datum, value_type) {
        Value::One(value as u64 ^ SIGN)
    } else {
        // SAFETY: the caller's promise.
        Value::List(unsafe { integer_array(datum, value_type) })
    }
}

/// An integer datum of one of the types conditions can have.
pub fn integer_datum(datum: pg_sys::Datum, value_type: pg_sys::Oid) -> Option<i64> {
    Some(match value_type {
        pg_sys::INT8OID => datum.value() as i64,
        pg_sys::INT4OID => i64::from(datum.value() as i32),
        pg_sys::INT2OID => i64::from(datum.value() as i16),
        _ => return None,
    })
}

/// The non-null members of an integer array, in the sign-flipped form of the trees.
///
/// # Safety
/// `datum` is a non-null array of type `array_type`.
unsafe fn integer_array(datum: pg_sys::Datum, array_type: pg_sys::Oid) -> Vec<u64> {
    fn flipped<T: Into<i64>>(list: Option<Vec<Option<T>>>) -> Vec<u64> {
        list.unwrap_or_default()
            .into_iter()
            .flatten()
            .map(|v| v.into() as u64 ^ SIGN)
            .collect()
    }
    // SAFETY: the caller's promise.
    unsafe {
        match array_type {
            pg_sys::INT8ARRAYOID => flipped(Vec::<Option<i64>>::from_datum(datum, false)),
            pg_sys::INT4ARRAYOID => flipped(Vec::<Option<i32>>::from_datum(datum, false)),
            pg_sys::INT2ARRAYOID => flipped(Vec::<Option<i16>>::from_datum(datum, false)),
            _ => Vec::new(),
        }
    }
}
