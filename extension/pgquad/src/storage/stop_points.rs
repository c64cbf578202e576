//! Named stop points: where a session waits, when a test asks for it, until the test lets it go on. So a race happens
//! in the order that the test wants. Only in builds with the cargo feature `stop_points`; without it every call is
//! empty.
//!
//! `SET quad.stop_at = 'prune:7, descent:8'` makes a session wait at the point `prune` for advisory lock 7 and at
//! `descent` for advisory lock 8. The session takes the lock and gives it back. The test holds the lock in another
//! session.

#[cfg(feature = "stop_points")]
mod waiting {
    use crate::settings::STOP_AT;
    use pgrx::{pg_sys, IntoDatum};

    /// Waits if the setting names the point.
    pub fn wait(point: &str) {
        let Some(key) = STOP_AT
            .get()
            .and_then(|list| key_of(&list.to_string_lossy(), point))
        else {
            return;
        };
        // SAFETY: functions of PostgreSQL that take one bigint. Waiting with a page locked is what some tests are
        // about; interrupts are held off then.
        unsafe {
            let argument = [key.into_datum()];
            pgrx::direct_function_call::<()>(pg_sys::pg_advisory_lock_int8, &argument);
            pgrx::direct_function_call::<bool>(pg_sys::pg_advisory_unlock_int8, &argument);
        }
    }

    /// The key that the list gives for the point.
    fn key_of(list: &str, point: &str) -> Option<i64> {
        let mut pairs = list
            .split(',')
            .filter_map(|item| item.trim().split_once(':'));
        let (_, key) = pairs.find(|(name, _)| *name == point)?;
        key.parse().ok()
    }
}

/// Marks a stop point.
#[inline]
pub fn reach(point: &'static str) {
    #[cfg(feature = "stop_points")]
    waiting::wait(point);
    #[cfg(not(feature = "stop_points"))]
    let _ = point;
}
