//! Threads besides the backend's own. No code of PostgreSQL runs on them.

/// Calls `body` with all signals blocked, so that the threads it starts never handle one meant for the backend.
pub fn with_signals_blocked<T>(body: impl FnOnce() -> T) -> T {
    // SAFETY: plain calls of the C library with initialized sets.
    unsafe {
        let mut all = std::mem::zeroed::<libc::sigset_t>();
        let mut before = std::mem::zeroed::<libc::sigset_t>();
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
        let result = body();
        libc::pthread_sigmask(libc::SIG_SETMASK, &before, std::ptr::null_mut());
        result
    }
}
