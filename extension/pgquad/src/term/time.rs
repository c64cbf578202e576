//! Functions on dates and times, section 17.4.5. NULL is the error.

use pgquad_term::func::time;
use pgrx::pg_sys;
use pgrx::prelude::*;

use super::casts::unix_micros;
use super::{value, TermArg, TermOut};

macro_rules! parts {
    ($($(#[$doc:meta])* $name:ident = $function:path;)*) => {$(
        $(#[$doc])*
        #[pg_extern(immutable, parallel_safe)]
        fn $name(term: TermArg<'_>) -> Option<TermOut> {
            value($function(&term.term())).map(TermOut)
        }
    )*};
}

parts! {
    /// YEAR.
    fn_year = time::year;
    /// MONTH.
    fn_month = time::month;
    /// DAY.
    fn_day = time::day;
    /// HOURS.
    fn_hours = time::hours;
    /// MINUTES.
    fn_minutes = time::minutes;
    /// SECONDS.
    fn_seconds = time::seconds;
    /// TIMEZONE.
    fn_timezone = time::timezone;
    /// TZ.
    fn_tz = time::tz;
}

/// NOW: when the transaction began, in UTC.
#[pg_extern(stable, parallel_safe)]
fn fn_now() -> Option<TermOut> {
    // SAFETY: reads this backend's own state; within a function call there is a transaction.
    let now = unsafe { pg_sys::GetCurrentTransactionStartTimestamp() };
    value(time::from_unix_micros(unix_micros(now))).map(TermOut)
}
