//! Strings of at most seven bytes: zero padded, high byte first, so that ids sort as the bytes do.

const MAX_BYTES: usize = 7;

pub(super) fn encode(text: &str) -> Option<u64> {
    let bytes = text.as_bytes();
    // NUL is the padding, so a string that holds one could not be told from a shorter one.
    if bytes.len() > MAX_BYTES || bytes.contains(&0) {
        return None;
    }
    let mut padded = [0; 8];
    padded[1..=bytes.len()].copy_from_slice(bytes);
    Some(u64::from_be_bytes(padded))
}

pub(super) fn decode(payload: u64) -> Option<String> {
    let bytes = payload.to_be_bytes();
    let text = bytes[1..].split(|b| *b == 0).next()?;
    if bytes[0] != 0 || bytes[1 + text.len()..].iter().any(|b| *b != 0) {
        return None;
    }
    String::from_utf8(text.to_vec()).ok()
}
