//! Dates and times in ids. First comes a flag that tells whether there is a time zone, then the instant (in the zone
//! UTC, or the local time when there is no zone). The zone in quarters of an hour is last.

use std::cmp::Ordering;
use std::fmt::Write;

/// Flag of values with a time zone.
pub(super) const ZONED: u64 = 1 << 58;
const ZONE_BITS: u32 = 7;
/// Fourteen hours, the largest offset, in quarters of an hour.
const MAX_QUARTERS: i64 = 14 * 4;

const MINUTES_PER_DAY: i64 = 24 * 60;
const MILLIS_PER_MINUTE: i64 = 60_000;
const MINUTES_PER_QUARTER: i64 = 15;

/// Days from 0001-01-01 to a date of the proleptic Gregorian calendar.
fn days_of(year: i64, month: i64, day: i64) -> i64 {
    // Years that begin in March, so that the leap day comes last.
    let year = if month <= 2 { year - 1 } else { year };
    let month_from_march = (month + 9) % 12;
    let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    year * 365 + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) + day_of_year
        - 306
}

/// Year, month and day of a day number of [`days_of`].
fn date_of(days: i64) -> (i64, i64, i64) {
    let days = days + 306;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = (month_from_march + 2) % 12 + 1;
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    (year, month, day)
}

fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Reads fixed-width ASCII text from the front.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn number(&mut self, width: usize) -> Option<i64> {
        let (digits, rest) = self.0.split_at_checked(width)?;
        let mut value = 0;
        for digit in digits {
            if !digit.is_ascii_digit() {
                return None;
            }
            value = value * 10 + i64::from(digit - b'0');
        }
        self.0 = rest;
        Some(value)
    }

    fn skip(&mut self, byte: u8) -> Option<()> {
        self.0 = self.0.strip_prefix(&[byte])?;
        Some(())
    }

    /// `YYYY-MM-DD` with year 1 to 9999, as a day number.
    fn date(&mut self) -> Option<i64> {
        let year = self.number(4)?;
        self.skip(b'-')?;
        let month = self.number(2)?;
        self.skip(b'-')?;
        let day = self.number(2)?;
        ((1..=9999).contains(&year)
            && (1..=12).contains(&month)
            && (1..=days_in_month(year, month)).contains(&day))
        .then(|| days_of(year, month, day))
    }

    /// `hh:mm:ss` with at most three fraction digits, the last not zero, in milliseconds.
    fn time(&mut self) -> Option<i64> {
        let hour = self.number(2)?;
        self.skip(b':')?;
        let minute = self.number(2)?;
        self.skip(b':')?;
        let second = self.number(2)?;
        if hour > 23 || minute > 59 || second > 59 {
            return None;
        }
        let mut millis = 0;
        if self.skip(b'.').is_some() {
            let digits = self.0.iter().take_while(|b| b.is_ascii_digit()).count();
            if digits == 0 || digits > 3 || self.0[digits - 1] == b'0' {
                return None;
            }
            millis = self.number(digits)? * [100, 10, 1][digits - 1];
        }
        Some(((hour * 60 + minute) * 60 + second) * 1000 + millis)
    }

    /// The rest must be a zone in quarters of an hour or nothing; UTC only as `Z`.
    fn zone(mut self) -> Option<Option<i64>> {
        match self.0 {
            [] => return Some(None),
            b"Z" => return Some(Some(0)),
            _ => {}
        }
        let sign = match self.0.first()? {
            b'+' => 1,
            b'-' => -1,
            _ => return None,
        };
        self.0 = &self.0[1..];
        let hours = self.number(2)?;
        self.skip(b':')?;
        let minutes = self.number(2)?;
        let quarters = hours * 4 + minutes / MINUTES_PER_QUARTER;
        (self.0.is_empty()
            && minutes < 60
            && minutes % MINUTES_PER_QUARTER == 0
            && (1..=MAX_QUARTERS).contains(&quarters))
        .then_some(Some(sign * quarters))
    }
}

/// Puts the parts together. `per_quarter`: units of the local time in a quarter of an hour.
fn pack(local: i64, zone: Option<i64>, per_quarter: i64) -> u64 {
    let quarters = zone.unwrap_or(0);
    // The largest offset is added, so that no instant is negative.
    let instant = (local + (MAX_QUARTERS - quarters) * per_quarter) as u64;
    let flag = if zone.is_some() { ZONED } else { 0 };
    flag | instant << ZONE_BITS | (quarters + MAX_QUARTERS) as u64
}

fn unpack(payload: u64, per_quarter: i64) -> Option<(i64, Option<i64>)> {
    let quarters = (payload & ((1 << ZONE_BITS) - 1)) as i64 - MAX_QUARTERS;
    let instant = ((payload & !ZONED) >> ZONE_BITS) as i64;
    let zone = if payload & ZONED != 0 {
        Some(quarters)
    } else if quarters == 0 {
        None
    } else {
        return None;
    };
    let local = instant - (MAX_QUARTERS - quarters) * per_quarter;
    (local >= 0 && quarters <= MAX_QUARTERS).then_some((local, zone))
}

/// The order of two payloads of one tag; `None` when only one has a time zone.
#[inline]
pub(super) fn compare(a: u64, b: u64) -> Option<Ordering> {
    (a & ZONED == b & ZONED).then(|| (a >> ZONE_BITS).cmp(&(b >> ZONE_BITS)))
}

/// Whether there is a time zone, and a number that sorts as the instants do.
#[inline]
pub(super) fn ordinal(payload: u64) -> (bool, i64) {
    (payload & ZONED != 0, (payload >> ZONE_BITS) as i64)
}

fn write_date(days: i64, out: &mut String) -> Option<()> {
    let (year, month, day) = date_of(days);
    if !(1..=9999).contains(&year) {
        return None;
    }
    write!(out, "{year:04}-{month:02}-{day:02}").ok()
}

fn write_zone(zone: Option<i64>, out: &mut String) -> Option<()> {
    match zone {
        None => Some(()),
        Some(0) => out.write_char('Z').ok(),
        Some(quarters) => {
            let sign = if quarters < 0 { '-' } else { '+' };
            let minutes = quarters.abs() * MINUTES_PER_QUARTER;
            write!(out, "{sign}{:02}:{:02}", minutes / 60, minutes % 60).ok()
        }
    }
}

pub(super) fn encode_date_time(lexical: &str) -> Option<u64> {
    let mut reader = Reader(lexical.as_bytes());
    let days = reader.date()?;
    reader.skip(b'T')?;
    let local = days * MINUTES_PER_DAY * MILLIS_PER_MINUTE + reader.time()?;
    let zone = reader.zone()?;
    Some(pack(local, zone, MINUTES_PER_QUARTER * MILLIS_PER_MINUTE))
}

pub(super) fn decode_date_time(payload: u64) -> Option<String> {
    let (local, zone) = unpack(payload, MINUTES_PER_QUARTER * MILLIS_PER_MINUTE)?;
    let millis_per_day = MINUTES_PER_DAY * MILLIS_PER_MINUTE;
    let mut out = String::with_capacity(29);
    write_date(local / millis_per_day, &mut out)?;
    let millis = local % millis_per_day;
    let seconds = millis / 1000;
    write!(
        out,
        "T{:02}:{:02}:{:02}",
        seconds / 3600,
        seconds / 60 % 60,
        seconds % 60
    )
    .ok()?;
    if millis % 1000 != 0 {
        write!(out, ".{:03}", millis % 1000).ok()?;
        out.truncate(out.trim_end_matches('0').len());
    }
    write_zone(zone, &mut out)?;
    Some(out)
}

/// The parts of a payload of a date and time, in its own time zone.
pub(super) fn date_time_parts(payload: u64) -> Option<Parts> {
    let (local, _) = unpack(payload, MINUTES_PER_QUARTER * MILLIS_PER_MINUTE)?;
    let minutes = local / MILLIS_PER_MINUTE;
    let time = minutes % MINUTES_PER_DAY;
    Some(Parts {
        date: date_of(minutes / MINUTES_PER_DAY),
        time: Some((time / 60, time % 60)),
    })
}

/// The parts of a payload of a date.
pub(super) fn date_parts(payload: u64) -> Option<Parts> {
    let (local, _) = unpack(payload, MINUTES_PER_QUARTER)?;
    Some(Parts {
        date: date_of(local / MINUTES_PER_DAY),
        time: None,
    })
}

/// Parts of a moment.
pub struct Parts {
    /// Year, month, day.
    pub date: (i64, i64, i64),
    /// Hours and minutes.
    pub time: Option<(i64, i64)>,
}

pub(super) fn encode_date(lexical: &str) -> Option<u64> {
    let mut reader = Reader(lexical.as_bytes());
    let local = reader.date()? * MINUTES_PER_DAY;
    let zone = reader.zone()?;
    Some(pack(local, zone, MINUTES_PER_QUARTER))
}

pub(super) fn decode_date(payload: u64) -> Option<String> {
    let (local, zone) = unpack(payload, MINUTES_PER_QUARTER)?;
    if local % MINUTES_PER_DAY != 0 {
        return None;
    }
    let mut out = String::with_capacity(16);
    write_date(local / MINUTES_PER_DAY, &mut out)?;
    write_zone(zone, &mut out)?;
    Some(out)
}
