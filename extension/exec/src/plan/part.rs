//! Parts of tables: in a repartitioned join the number of a table may stand for the quads that this participant holds.

/// With this bit, a table's number stands for the part of the table that this participant holds by subject.
pub const BY_SUBJECT: u16 = 1 << 15;
/// The same by object.
pub const BY_OBJECT: u16 = 1 << 14;

/// The table that a number stands for, or a part of.
#[must_use]
pub fn whole(table: u16) -> u16 {
    table & !(BY_SUBJECT | BY_OBJECT)
}

/// The bit for the part of a table by a column (0 = subject, 2 = object).
pub(crate) fn part_by(column: u8) -> u16 {
    match column {
        0 => BY_SUBJECT,
        _ => BY_OBJECT,
    }
}
