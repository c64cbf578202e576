//! The cancellation point of long loops.

/// Cancellation point.
pub fn interrupt() {
    pgrx::check_for_interrupts!();
}
