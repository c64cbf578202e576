//! Dates as days since 1970-01-01.

/// The day on which the shop's clock stands still: 2008-06-20.
pub const TODAY: i64 = day(2008, 6, 20);

/// The number of a day.
pub const fn day(year: i64, month: i64, day: i64) -> i64 {
    // Years that begin in March, so that the leap day comes last; eras of 400 years.
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// Year, month, day of a day's number.
pub const fn civil(day: i64) -> (i64, i64, i64) {
    let shifted = day + 719_468;
    let era = shifted.div_euclid(146_097);
    let of_era = shifted.rem_euclid(146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (
        year + era * 400 + if month <= 2 { 1 } else { 0 },
        month,
        day,
    )
}

/// Appends `YYYY-MM-DD`.
pub fn write(number: i64, into: &mut Vec<u8>) {
    let (year, month, day) = civil(number);
    let two = |n: i64| [b'0' + (n / 10) as u8, b'0' + (n % 10) as u8];
    into.extend_from_slice(&two(year / 100));
    into.extend_from_slice(&two(year % 100));
    into.push(b'-');
    into.extend_from_slice(&two(month));
    into.push(b'-');
    into.extend_from_slice(&two(day));
}

/// `YYYY-MM-DD`.
pub fn text(number: i64) -> String {
    let mut bytes = Vec::new();
    write(number, &mut bytes);
    String::from_utf8(bytes).expect("digits")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_and_back() {
        assert_eq!(day(1970, 1, 1), 0);
        assert_eq!(day(2000, 2, 29) + 1, day(2000, 3, 1));
        for number in -1000..30_000 {
            let (y, m, d) = civil(number);
            assert_eq!(day(y, m, d), number);
        }
        assert_eq!(text(TODAY), "2008-06-20");
    }
}
