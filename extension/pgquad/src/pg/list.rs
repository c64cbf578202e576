//! Pointer lists of PostgreSQL (`nodes/pg_list.h`).

use pgrx::pg_sys;

/// Element `n` of a pointer list.
///
/// # Safety
/// `list` is a pointer list of more than `n` elements.
pub unsafe fn list_node(list: *mut pg_sys::List, n: usize) -> *mut pg_sys::Node {
    // SAFETY: the caller's promise.
    unsafe { (*(*list).elements.add(n)).ptr_value.cast() }
}

/// The elements of a pointer list (NIL is empty).
///
/// # Safety
/// `list` is NIL or a pointer list of `T` that lives while the iterator is used.
pub unsafe fn list_iter<T>(list: *mut pg_sys::List) -> impl Iterator<Item = *mut T> {
    let length = if list.is_null() {
        0
    } else {
        // SAFETY: the caller's promise.
        unsafe { (*list).length }
    };
    // SAFETY: the caller's promise; `n` is below the length.
    (0..length as usize).map(move |n| unsafe { list_node(list, n).cast::<T>() })
}
