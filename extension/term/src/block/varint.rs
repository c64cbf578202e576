//! Little-endian base 128 numbers.

use super::error::BlockError;

/// Appends `value`.
pub(super) fn write(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Reads a number and moves the cursor behind it.
pub(super) fn read(cursor: &mut &[u8]) -> Result<u64, BlockError> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = cursor.split_first().ok_or(BlockError::Truncated)?;
        *cursor = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err(BlockError::Invalid("number"))
}
