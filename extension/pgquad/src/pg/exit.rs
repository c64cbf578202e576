//! The end of a process in the middle of its work. A session that is terminated aborts its transaction on top of
//! whatever it was doing. The frames below are not unwound, so what they have borrowed stays borrowed and what they use
//! is still in use. A panic then would end the clean-up of PostgreSQL half-way and leave locks in shared memory. So
//! nothing of ours is cleaned up in a process that exits; its memory, files and connections go with it.

use std::ffi::c_void;

use pgrx::pg_guard;
use pgrx::pg_sys;

/// Whether the process is ending.
pub fn is_exiting() -> bool {
    // SAFETY: a variable of the backend.
    unsafe { pg_sys::proc_exit_inprogress }
}

/// Keeps a value until the current memory context goes, which drops it.
pub fn keep_in_context<T>(value: T) -> *mut T {
    let kept = Box::into_raw(Box::new(value));
    // SAFETY: the callback is allocated in the context that it belongs to, and called once.
    unsafe {
        let context = pg_sys::CurrentMemoryContext;
        let callback =
            pg_sys::MemoryContextAllocZero(context, size_of::<pg_sys::MemoryContextCallback>())
                .cast::<pg_sys::MemoryContextCallback>();
        (*callback).func = Some(drop_kept::<T>);
        (*callback).arg = kept.cast();
        pg_sys::MemoryContextRegisterResetCallback(context, callback);
    }
    kept
}

#[pg_guard]
unsafe extern "C-unwind" fn drop_kept<T>(kept: *mut c_void) {
    if !is_exiting() {
        // SAFETY: made by `keep_in_context`, whose callback runs once.
        drop(unsafe { Box::from_raw(kept.cast::<T>()) });
    }
}
