//! Format of the log records that hold deltas. PostgreSQL leaves the upper four bits of a record's byte `xl_info` to
//! the resource manager: they say the format, so that it costs no byte.

/// The format that this version writes and reads. A change of deltas, or of the encoder of pages, needs the next one
/// (`docs/formats.md`).
pub const RECORD_FORMAT: u8 = 0;

/// The bits of `xl_info` that are PostgreSQL's own.
const OWN_BITS: u32 = 4;

/// The byte `xl_info` of a record.
#[must_use]
pub const fn record_info() -> u8 {
    RECORD_FORMAT << OWN_BITS
}

/// The format of a record with this `xl_info`, where this version does not read it.
#[must_use]
pub const fn unreadable_format(info: u8) -> Option<u8> {
    let format = info >> OWN_BITS;
    if format == RECORD_FORMAT {
        None
    } else {
        Some(format)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_of_other_formats_are_refused() {
        for own in 0..1 << OWN_BITS {
            assert_eq!(unreadable_format(record_info() | own), None);
            assert_eq!(
                unreadable_format(record_info().wrapping_add(0x30) | own),
                Some(RECORD_FORMAT + 3)
            );
        }
    }

    /// Pinned as the golden bytes are: a record of a released version is read for ever, or refused by its number.
    #[test]
    fn records_are_of_format_0() {
        assert_eq!(record_info(), 0);
    }
}
