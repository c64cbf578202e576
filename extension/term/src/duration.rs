//! Spans of time that are added to a moment.

use oxsdatatypes::{Decimal, Duration};

/// The calendar repeats itself after so many months, and days.
const CYCLE_MONTHS: i64 = 400 * 12;
const CYCLE_DAYS: i64 = 146_097;
const DAY_SECONDS: i64 = 86_400;

/// A duration that ends where this one does, wherever it begins, with at most 400 years in days. `oxsdatatypes` adds
/// the days of a duration that has months, too, month by month. `None` where it is too long.
pub(crate) fn within_cycle(duration: Duration) -> Option<Duration> {
    let months = duration
        .years()
        .checked_mul(12)?
        .checked_add(duration.months())?;
    let (cycles, days) = (duration.days() / CYCLE_DAYS, duration.days() % CYCLE_DAYS);
    if months == 0 || cycles == 0 {
        return Some(duration);
    }
    let months = cycles.checked_mul(CYCLE_MONTHS)?.checked_add(months)?;
    let whole = days * DAY_SECONDS + duration.hours() * 3600 + duration.minutes() * 60;
    let seconds = duration.seconds().checked_add(Decimal::from(whole))?;
    Duration::new(months, seconds).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use oxsdatatypes::DateTime;

    /// It ends where the long one does, from days of all kinds.
    #[test]
    fn many_days_are_years_and_days() {
        let starts = [
            "2000-02-29T01:02:03Z",
            "1899-12-31T23:59:59.5Z",
            "2020-01-31T00:00:00Z",
        ];
        let spans = [
            "P1M300000D",
            "P5Y1M146097DT1H",
            "-P3M150000DT5M0.25S",
            "P11M146096D",
            "P1M292194DT23H",
        ];
        for start in starts {
            let start: DateTime = start.parse().unwrap();
            for span in spans {
                let span: Duration = span.parse().unwrap();
                let short = within_cycle(span).unwrap();
                assert!(short.days().abs() < CYCLE_DAYS, "{short}");
                let ends = [span, short].map(|span| start.checked_add_duration(span));
                assert_eq!(ends[0], ends[1], "{start} + {span}");
            }
        }
        let endless: Duration = "P1M1000000000000000D".parse().unwrap();
        let start: DateTime = starts[0].parse().unwrap();
        let end = within_cycle(endless).and_then(|span| start.checked_add_duration(span));
        assert!(end.is_some());
    }
}
