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

/// The elements of a list of Oids (NIL is empty).
///
/// # Safety
/// `list` is NIL or a list of Oids.
pub unsafe fn oids_of(list: *mut pg_sys::List) -> Vec<pg_sys::Oid> {
    if list.is_null() {
        return Vec::new();
    }
    // SAFETY: the caller's promise; the numbers are below the length.
    unsafe {
        let length = (*list).length as usize;
        let oid = |n| (*(*list).elements.add(n)).oid_value;
        (0..length).map(oid).collect()
    }
}
