//! Functions on dates and times, section 17.4.5. NULL is the error.

use pgquad_term::func::time;
use pgrx::pg_sys;
use pgrx::prelude::*;

use super::casts::unix_micros;
use super::functions::sql_functions;
use super::{value, TermArg, TermOut};

sql_functions! {
    /// YEAR.
    fn_year(term) -> TermOut = time::year;
    /// MONTH.
    fn_month(term) -> TermOut = time::month;
    /// DAY.
    fn_day(term) -> TermOut = time::day;
    /// HOURS.
    fn_hours(term) -> TermOut = time::hours;
    /// MINUTES.
    fn_minutes(term) -> TermOut = time::minutes;
    /// SECONDS.
    fn_seconds(term) -> TermOut = time::seconds;
    /// TIMEZONE.
    fn_timezone(term) -> TermOut = time::timezone;
    /// TZ.
    fn_tz(term) -> TermOut = time::tz;
}

/// NOW: when the transaction began, in UTC.
#[pg_extern(stable, parallel_safe)]
fn fn_now() -> Option<TermOut> {
    // SAFETY: reads this backend's own state; within a function call there is a transaction.
    let now = unsafe { pg_sys::GetCurrentTransactionStartTimestamp() };
    value(time::from_unix_micros(unix_micros(now))).map(TermOut)
}
