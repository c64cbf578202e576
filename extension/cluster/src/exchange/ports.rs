//! Which ports participants listen on.

use std::ops::RangeInclusive;

/// The ports that a setting names: `0` for any that is free, one port, or a range such as `20000-20999`. `None` for
/// other texts.
#[must_use]
pub fn port_range(text: &str) -> Option<RangeInclusive<u16>> {
    let number = |text: &str| text.trim().parse::<u16>().ok();
    match text.split_once('-') {
        None => number(text).map(|port| port..=port),
        Some((low, high)) => {
            let range = number(low)?..=number(high)?;
            (!range.is_empty() && *range.start() > 0).then_some(range)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::port_range;

    #[test]
    fn ranges_are_read() {
        assert_eq!(port_range("0"), Some(0..=0));
        assert_eq!(port_range(" 5000 "), Some(5000..=5000));
        assert_eq!(port_range("5000 - 5010"), Some(5000..=5010));
        for wrong in ["", "-", "5000-", "5010-5000", "0-10", "70000", "a", "1-2-3"] {
            assert_eq!(port_range(wrong), None, "{wrong}");
        }
    }
}
