//! Bytes of messages: numbers in little-endian order, lists with their lengths, columns of ids packed by frame of
//! reference.
//!
//! A reader checks every length against what is left, so that a damaged or hostile message is refused and never trusted
//! for an allocation.

use std::fmt;

/// A message that does not say what its format asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Damaged;

impl fmt::Display for Damaged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a message between nodes is damaged")
    }
}

impl std::error::Error for Damaged {}

/// Result of reading.
pub type Result<T> = std::result::Result<T, Damaged>;

/// Room of a new message in bytes: most are not longer (Explore 10M on eight nodes).
const FIRST_BYTES: usize = 256;

/// Builds a message.
pub struct Writer {
    bytes: Vec<u8>,
}

impl Default for Writer {
    fn default() -> Self {
        Self::new()
    }
}

impl Writer {
    /// An empty message.
    #[must_use]
    pub fn new() -> Self {
        Self {
            bytes: Vec::with_capacity(FIRST_BYTES),
        }
    }

    /// The message.
    #[must_use]
    pub fn finish(self) -> Vec<u8> {
        self.bytes
    }

    /// Number of bytes so far.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether nothing has been written.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Makes room for about so many bytes: a message that grows is copied again and again.
    pub fn reserve(&mut self, bytes: usize) {
        self.bytes.reserve(bytes);
    }

    /// One byte.
    pub fn u8(&mut self, value: u8) {
        self.bytes.push(value);
    }

    /// Four bytes.
    pub fn u32(&mut self, value: u32) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    /// Puts four bytes in the place of those that were written at `at`.
    ///
    /// # Panics
    /// So much has not been written.
    pub fn set_u32(&mut self, at: usize, value: u32) {
        self.bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
    }

    /// Eight bytes.
    pub fn u64(&mut self, value: u64) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    /// Sixteen bytes.
    pub fn u128(&mut self, value: u128) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    /// A length of up to 2^32 - 1, and the bytes.
    pub fn bytes(&mut self, value: &[u8]) {
        self.u32(value.len() as u32);
        self.bytes.extend_from_slice(value);
    }

    /// The same for bytes that come in pieces.
    pub fn pieces<'b>(&mut self, pieces: impl Iterator<Item = &'b [u8]> + Clone) {
        let length: usize = pieces.clone().map(<[u8]>::len).sum();
        self.u32(length as u32);
        self.bytes.reserve(length);
        pieces.for_each(|piece| self.bytes.extend_from_slice(piece));
    }

    /// Numbers as their distances from the least, in as few bytes each as the greatest distance needs (0, 1, 2, 4 or
    /// 8).
    pub fn column(&mut self, values: &[u64]) {
        self.u32(values.len() as u32);
        if values.is_empty() {
            return;
        }
        let (least, greatest) = values.iter().fold((u64::MAX, 0), |(least, greatest), &v| {
            (least.min(v), greatest.max(v))
        });
        let width = match greatest - least {
            0 => 0u8,
            1..=0xff => 1,
            0x100..=0xffff => 2,
            0x1_0000..=0xffff_ffff => 4,
            _ => 8,
        };
        self.u8(width);
        self.u64(least);
        match width {
            0 => {}
            1 => self.pack(values, |v| [(v - least) as u8]),
            2 => self.pack(values, |v| ((v - least) as u16).to_le_bytes()),
            4 => self.pack(values, |v| ((v - least) as u32).to_le_bytes()),
            _ => self.pack(values, |v| (v - least).to_le_bytes()),
        }
    }

    /// So many bytes of each value, into room that is made once.
    fn pack<const N: usize>(&mut self, values: &[u64], bytes: impl Fn(u64) -> [u8; N]) {
        let start = self.bytes.len();
        self.bytes.resize(start + N * values.len(), 0);
        let places = self.bytes[start..].chunks_exact_mut(N);
        for (place, &value) in places.zip(values) {
            place.copy_from_slice(&bytes(value));
        }
    }
}

/// Takes a message apart.
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// A reader from the start of a message.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        if count > self.rest.len() {
            return Err(Damaged);
        }
        let (taken, rest) = self.rest.split_at(count);
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        self.take(N)?.try_into().map_err(|_| Damaged)
    }

    /// One byte.
    ///
    /// # Errors
    /// The message ends before.
    pub fn u8(&mut self) -> Result<u8> {
        Ok(self.array::<1>()?[0])
    }

    /// Four bytes.
    ///
    /// # Errors
    /// The message ends before.
    pub fn u32(&mut self) -> Result<u32> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    /// Eight bytes.
    ///
    /// # Errors
    /// The message ends before.
    pub fn u64(&mut self) -> Result<u64> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    /// Sixteen bytes.
    ///
    /// # Errors
    /// The message ends before.
    pub fn u128(&mut self) -> Result<u128> {
        Ok(u128::from_le_bytes(self.array()?))
    }

    /// What [`Writer::bytes`] wrote.
    ///
    /// # Errors
    /// The message ends before.
    pub fn bytes(&mut self) -> Result<&'a [u8]> {
        let length = self.u32()? as usize;
        self.take(length)
    }

    /// A number of elements of at least `size` bytes each, which must still be there.
    ///
    /// # Errors
    /// Fewer bytes are left than so many elements take.
    pub fn count(&mut self, size: usize) -> Result<usize> {
        let count = self.u32()? as usize;
        if count.saturating_mul(size) > self.rest.len() {
            return Err(Damaged);
        }
        Ok(count)
    }

    /// What [`Writer::column`] wrote, put behind what is in `values`.
    ///
    /// # Errors
    /// The message ends before, or holds no column here. A column of equal numbers takes no bytes for each, so that at
    /// most `most` numbers are believed.
    pub fn column(&mut self, values: &mut Vec<u64>, most: usize) -> Result<()> {
        let count = self.u32()? as usize;
        if count == 0 {
            return Ok(());
        }
        if count > most {
            return Err(Damaged);
        }
        let width = usize::from(self.u8()?);
        let least = self.u64()?;
        let packed = self.take(count.checked_mul(width).ok_or(Damaged)?)?;
        values.reserve(count);
        let add = |distance: u64| least.wrapping_add(distance);
        match width {
            0 => values.resize(values.len() + count, least),
            1 => values.extend(packed.iter().map(|&d| add(u64::from(d)))),
            2 => unpack(packed, values, |d| add(u16::from_le_bytes(d).into())),
            4 => unpack(packed, values, |d| add(u32::from_le_bytes(d).into())),
            8 => unpack(packed, values, |d| add(u64::from_le_bytes(d))),
            _ => return Err(Damaged),
        }
        Ok(())
    }

    /// The message must be at its end.
    ///
    /// # Errors
    /// There is more.
    pub fn end(&self) -> Result<()> {
        if self.rest.is_empty() {
            Ok(())
        } else {
            Err(Damaged)
        }
    }
}

/// Puts the numbers of so many bytes each behind what is in `values`.
fn unpack<const N: usize>(packed: &[u8], values: &mut Vec<u64>, number: impl Fn([u8; N]) -> u64) {
    // Chunks of a constant size, so that the loop has neither calls nor checks.
    let bytes = |chunk: &[u8]| chunk.try_into().map_or([0; N], |bytes: [u8; N]| bytes);
    values.extend(packed.chunks_exact(N).map(|chunk| number(bytes(chunk))));
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn column() -> impl Strategy<Value = Vec<u64>> {
        let base = prop_oneof![Just(0u64), any::<u64>()];
        let spread = prop_oneof![
            Just(0u64),
            Just(200),
            Just(60_000),
            Just(1 << 31),
            Just(u64::MAX)
        ];
        (base, spread, prop::collection::vec(any::<u64>(), 0..50)).prop_map(
            |(base, spread, list)| {
                let within = |v: u64| {
                    if spread == u64::MAX {
                        v
                    } else {
                        v % (spread + 1)
                    }
                };
                list.into_iter()
                    .map(|v| base.saturating_add(within(v)))
                    .collect()
            },
        )
    }

    proptest! {
        #[test]
        fn columns_come_back(values in column()) {
            let mut writer = Writer::new();
            writer.column(&values);
            writer.bytes(b"end");
            let bytes = writer.finish();
            let mut reader = Reader::new(&bytes);
            let mut back = Vec::new();
            reader.column(&mut back, values.len()).unwrap();
            prop_assert_eq!(back, values);
            prop_assert_eq!(reader.bytes().unwrap(), b"end");
            prop_assert!(reader.end().is_ok());
        }

        /// A message that is cut off or damaged is refused or read as other numbers, never more than asked for.
        #[test]
        fn damage_does_no_harm(values in column(), at in any::<prop::sample::Index>(), byte in any::<u8>(), cut in any::<bool>()) {
            let mut writer = Writer::new();
            writer.column(&values);
            let mut bytes = writer.finish();
            let place = at.index(bytes.len());
            if cut { bytes.truncate(place) } else { bytes[place] = byte }
            let mut back = Vec::new();
            let _ = Reader::new(&bytes).column(&mut back, 1000);
            prop_assert!(back.len() <= 1000);
            if cut { prop_assert!(Reader::new(&bytes).column(&mut Vec::new(), 1000).is_err()) }
        }
    }
}
