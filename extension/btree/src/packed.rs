//! Packed runs: sorted tuples of `C` unsigned columns, stored column by column in few bits per
//! value, with random access in constant time.
//!
//! Layout: 8 bytes (tuple count, column count, byte length), then 8 bytes per column, then the frame tables and data
//! arrays. The 8 bytes of a column are offset width, frame index width, frame count, offset of the frame table, and
//! offset of the data. Offsets count from the start of the run. A value is `frames[index] + offset`, where index and
//! offset are one bit field of at most 57 bits (one unaligned load), or 64 bits. One frame is a frame of reference, and
//! one frame without offset bits is a constant. Several frames keep a column narrow that mixes far-apart value ranges,
//! such as ids of different tags.

use crate::block::BlockNo;
use crate::error::{corrupt, Result};
use crate::key::Key;
use crate::page::{Page, SPECIAL};
use std::cmp::Ordering;

/// Most tuples in a run.
pub(crate) const MAX_RUN: usize = 8192;
const MAX_FRAMES: usize = 16;
/// Widest bit field that one 8-byte load at any bit position covers.
const MAX_FIELD: u32 = 57;
/// Columns of values at most this many bits apart are sorted by means of a bit set.
const SET_BITS: u8 = 13;
/// The range of other columns is looked at in 2^8 parts before it is sorted.
const PART_BITS: u8 = 8;
const RUN_HEADER: usize = 8;
const COLUMN_HEADER: usize = 8;
/// Runs up to this length are searched by halving alone.
const SMALL_RUN: usize = 16;
/// How far the search first goes from the place it guesses.
const FIRST_STEP: usize = 6;
/// About how far the end of a range is looked for from its start, and the start of the next one from there, before the
/// search starts from a guess.
const NEAR_TUPLES: usize = 8;
/// Bytes an unpacking step may touch from the start of its 8 values: they end within the page, as
/// the special area follows every run.
const WINDOW_BYTES: usize = 72;

/// How one column is going to be stored.
#[derive(Clone, Copy)]
struct ColumnPlan {
    width: u8,
    index_bits: u8,
    count: u8,
    frames: [u64; MAX_FRAMES],
}

impl ColumnPlan {
    fn field(&self) -> usize {
        usize::from(self.width) + usize::from(self.index_bits)
    }

    fn bytes(&self, n: usize) -> usize {
        8 * usize::from(self.count) + (n * self.field()).div_ceil(8)
    }
}

/// How a run is going to be stored: the size is known before anything is written.
pub(crate) struct RunPlan<const C: usize> {
    n: usize,
    columns: [ColumnPlan; C],
}

impl<const C: usize> RunPlan<C> {
    /// Plans a run of the given columns, all of one length of at most [`MAX_RUN`].
    pub fn new(columns: [&[u64]; C], scratch: &mut Vec<u64>) -> Self {
        let n = columns[0].len();
        RunPlan {
            n,
            columns: columns.map(|c| plan_column(c, scratch)),
        }
    }

    /// Bytes that the run will take.
    pub fn bytes(&self) -> usize {
        RUN_HEADER + C * COLUMN_HEADER + self.columns.iter().map(|c| c.bytes(self.n)).sum::<usize>()
    }

    /// Writes the run at `at`, where the page holds zeroes; the caller has checked that it fits.
    pub fn write(&self, columns: [&[u64]; C], page: &mut Page, at: usize) {
        page.put_u16(at, self.n as u16);
        page.0[at + 2] = C as u8;
        page.put_u16(at + 4, self.bytes() as u16);
        let mut pos = RUN_HEADER + C * COLUMN_HEADER;
        for (c, (plan, values)) in self.columns.iter().zip(columns).enumerate() {
            let d = at + RUN_HEADER + c * COLUMN_HEADER;
            let frames = pos;
            let data = frames + 8 * usize::from(plan.count);
            page.0[d] = plan.width;
            page.0[d + 1] = plan.index_bits;
            page.0[d + 2] = plan.count;
            page.put_u16(d + 4, frames as u16);
            page.put_u16(d + 6, data as u16);
            for (i, f) in plan.frames[..usize::from(plan.count)].iter().enumerate() {
                page.put_u64(at + frames + 8 * i, *f);
            }
            write_column(plan, values, page, at + data);
            pos += plan.bytes(self.n);
        }
    }
}

fn write_column(plan: &ColumnPlan, values: &[u64], page: &mut Page, at: usize) {
    let field = plan.field();
    if field == 0 {
        return;
    }
    if field == 64 {
        for (i, v) in values.iter().enumerate() {
            page.put_u64(at + 8 * i, v.wrapping_sub(plan.frames[0]));
        }
        return;
    }
    let frames = &plan.frames[..usize::from(plan.count)];
    let mut bits = 0u64;
    let mut filled = 0;
    let mut pos = at;
    for &v in values {
        let index = if frames.len() == 1 {
            0
        } else {
            frames.partition_point(|f| *f <= v) - 1
        };
        let raw = ((index as u64) << plan.width) | (v - frames[index]);
        bits |= raw << filled;
        filled += field;
        if filled >= 64 {
            page.put_u64(pos, bits);
            pos += 8;
            filled -= 64;
            // `filled` bits of `raw` did not fit; a shift by the whole field never happens as filled < field.
            bits = raw >> (field - filled);
        }
    }
    let rest = filled.div_ceil(8);
    page.0[pos..pos + rest].copy_from_slice(&bits.to_le_bytes()[..rest]);
}

fn bit_width(v: u64) -> u8 {
    (64 - v.leading_zeros()) as u8
}

fn plan_column(values: &[u64], scratch: &mut Vec<u64>) -> ColumnPlan {
    let (mut min, mut max) = (u64::MAX, 0);
    for &v in values {
        min = min.min(v);
        max = max.max(v);
    }
    let mut plan = ColumnPlan {
        width: 0,
        index_bits: 0,
        count: 1,
        frames: [0; MAX_FRAMES],
    };
    if values.is_empty() {
        return plan;
    }
    plan.frames[0] = min;
    let width = bit_width(max - min);
    plan.width = if u32::from(width) > MAX_FIELD {
        64
    } else {
        width
    };
    let n = values.len();
    // Frames cannot pay when the offsets are few bits already.
    if width <= 3 || n < 8 {
        return plan;
    }
    if !distinct(values, min, width, scratch) {
        return plan;
    }
    let mut best = plan.bytes(n);
    let mut frames = [0u64; MAX_FRAMES];
    // The narrower the offsets, the more frames, until they run out. `w` is the widest of the widths not yet tried.
    let mut w = width;
    while w > 0 {
        w -= 1;
        let Some((count, spread)) = cover(scratch, w, &mut frames) else {
            break;
        };
        // The same frames do with the bits of the widest of them: no width between is better.
        w = bit_width(spread);
        let index_bits = bit_width(count as u64 - 1);
        let candidate = ColumnPlan {
            width: w,
            index_bits,
            count: count as u8,
            frames,
        };
        if candidate.field() <= MAX_FIELD as usize && candidate.bytes(n) < best {
            best = candidate.bytes(n);
            plan = candidate;
        }
        // Narrower offsets take at least as many frames: those that are still too wide then are passed over.
        let least = 8 * count + n * usize::from(index_bits) / 8;
        let room = 8 * best.saturating_sub(least) / n;
        w = w.min(room.min(64) as u8 + 1);
    }
    plan
}

/// The distinct values, ascending; false when it is clear before they are sorted that frames do not pay. `min` is the
/// least value, `width` the bits of the difference to the greatest.
fn distinct(values: &[u64], min: u64, width: u8, out: &mut Vec<u64>) -> bool {
    out.clear();
    if values.is_sorted() {
        out.extend_from_slice(values);
        out.dedup();
    } else if width <= SET_BITS {
        let mut set = [0u64; (1 << SET_BITS) / 64];
        for v in values {
            let i = (v - min) as usize;
            set[i / 64] |= 1 << (i % 64);
        }
        for (i, &word) in set[..(1usize << width).div_ceil(64)].iter().enumerate() {
            let mut word = word;
            while word != 0 {
                out.push(min + 64 * i as u64 + u64::from(word.trailing_zeros()));
                word &= word - 1;
            }
        }
    } else {
        if is_spread(values, min, width) {
            return false;
        }
        out.extend_from_slice(values);
        out.sort_unstable();
        out.dedup();
    }
    true
}

/// Whether values, as those of a hash are, lie all over their range of `width` bits (more than [`PART_BITS`]), so that
/// no frames make the fields narrower.
fn is_spread(values: &[u64], min: u64, width: u8) -> bool {
    let mut parts = [0u64; (1 << PART_BITS) / 64];
    for v in values {
        let part = ((v - min) >> (width - PART_BITS)) as usize;
        parts[part / 64] |= 1 << (part % 64);
    }
    let touched: u32 = parts.iter().map(|word| word.count_ones()).sum();
    // 2^b frames of w bits are worth it when b + w is less than the width, and fits in a field. They cover no more than
    // 2^(b + w) values, which are so many whole parts. Each frame begins in the midst of a part, and so touches one
    // more than that, or two where it is smaller than a part.
    let covered_bits = u32::from(width - 1).min(MAX_FIELD);
    let whole = 1 << (covered_bits + u32::from(PART_BITS) - u32::from(width));
    touched as usize > MAX_FRAMES.max(whole) + MAX_FRAMES
}

/// The fewest frames of `width` offset bits that cover the sorted values, with the largest offset there is in one of
/// them, or `None` when more than [`MAX_FRAMES`] are needed.
fn cover(sorted: &[u64], width: u8, frames: &mut [u64; MAX_FRAMES]) -> Option<(usize, u64)> {
    let reach = (1u64 << width) - 1;
    let (mut count, mut spread) = (0, 0);
    let mut rest = sorted;
    while let Some(&first) = rest.first() {
        if count == MAX_FRAMES {
            return None;
        }
        frames[count] = first;
        count += 1;
        let last = first.saturating_add(reach);
        let (covered, after) = rest.split_at(rest.partition_point(|v| *v <= last));
        spread = spread.max(covered[covered.len() - 1] - first);
        rest = after;
    }
    frames[count..].fill(0);
    Some((count, spread))
}

/// Where and how a column is stored: offsets are absolute in the page.
#[derive(Clone, Copy)]
struct Column {
    data: usize,
    frames: usize,
    field: u32,
    width: u32,
    last_frame: usize,
    index_mask: u64,
    offset_mask: u64,
    field_mask: u64,
}

/// A run in a page, checked so far that no access leaves the page.
#[derive(Clone, Copy)]
pub(crate) struct Run<'a, const C: usize> {
    page: &'a Page,
    n: usize,
    end: usize,
    columns: [Column; C],
}

fn low_bits(n: u32) -> u64 {
    if n >= 64 {
        u64::MAX
    } else {
        (1 << n) - 1
    }
}

/// The first place in `lo..hi` that does not come before what is looked for, by halving.
#[inline]
fn halve(mut lo: usize, mut hi: usize, is_before: impl Fn(usize) -> bool) -> usize {
    while lo < hi {
        let mid = lo + (hi - lo) / 2;
        if is_before(mid) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    lo
}

impl<'a, const C: usize> Run<'a, C> {
    /// Opens the run at `at`, which is in front of the special area.
    pub fn open(page: &'a Page, at: usize, block: BlockNo) -> Result<Self> {
        let n = usize::from(page.u16(at));
        let end = at + usize::from(page.u16(at + 4));
        if usize::from(page.0[at + 2]) != C || n > MAX_RUN || end > SPECIAL {
            return corrupt(block, "bad packed run");
        }
        let mut columns = [Column {
            data: 0,
            frames: 0,
            field: 0,
            width: 0,
            last_frame: 0,
            index_mask: 0,
            offset_mask: 0,
            field_mask: 0,
        }; C];
        for (c, column) in columns.iter_mut().enumerate() {
            let d = at + RUN_HEADER + c * COLUMN_HEADER;
            // All of it at once: leaves are opened all the time.
            let header = page.u64(d).to_le_bytes();
            let (width, index_bits) = (u32::from(header[0]), u32::from(header[1]));
            let frames = at + usize::from(u16::from_le_bytes([header[4], header[5]]));
            let data = at + usize::from(u16::from_le_bytes([header[6], header[7]]));
            let field = width + index_bits;
            if index_bits > 4
                || (field > MAX_FIELD && (field != 64 || index_bits != 0))
                || frames + 8 > end.max(at)
                || data + (n * field as usize).div_ceil(8) > end
                || data < at
            {
                return corrupt(block, "bad column in a packed run");
            }
            // With fewer than 2^index_bits frames the table reads on into the data: harmless, as a
            // frame table of 16 entries always ends before the page does.
            *column = Column {
                data,
                frames,
                field,
                width,
                last_frame: usize::from(header[2]).clamp(1, 1 << index_bits) - 1,
                index_mask: low_bits(index_bits),
                offset_mask: low_bits(width),
                field_mask: low_bits(field),
            };
            if frames + 8 * MAX_FRAMES > SPECIAL + WINDOW_BYTES && index_bits > 0 {
                return corrupt(block, "frame table outside the run");
            }
        }
        Ok(Run {
            page,
            n,
            end,
            columns,
        })
    }

    /// Number of tuples.
    #[inline]
    pub fn len(&self) -> usize {
        self.n
    }

    /// The first byte behind the run.
    pub fn end(&self) -> usize {
        self.end
    }

    /// Value `i` of column `c`.
    #[inline]
    pub fn get(&self, c: usize, i: usize) -> u64 {
        debug_assert!(i < self.n);
        let col = &self.columns[c];
        if col.field == 0 {
            return self.page.u64(col.frames);
        }
        let raw = self.raw(col, i);
        let index = (raw.wrapping_shr(col.width) & col.index_mask) as usize;
        self.page
            .u64(col.frames + 8 * index)
            .wrapping_add(raw & col.offset_mask)
    }

    /// The value of column `c` if the run stores one for all tuples.
    #[inline]
    pub fn constant(&self, c: usize) -> Option<u64> {
        let col = &self.columns[c];
        (col.field == 0).then(|| self.page.u64(col.frames))
    }

    /// The first four columns of tuple `i`.
    #[inline]
    pub fn key(&self, i: usize) -> Key {
        [
            self.get(0, i),
            self.get(1, i),
            self.get(2, i),
            self.get(3, i),
        ]
    }

    /// Compares the first four columns of tuple `i` with `key`.
    #[inline]
    pub fn cmp(&self, i: usize, key: &Key) -> Ordering {
        self.cmp_from(0, i, key)
    }

    /// [`Run::cmp`] where the columns before `first` are known to be equal.
    #[inline]
    fn cmp_from(&self, first: usize, i: usize, key: &Key) -> Ordering {
        for (c, k) in key.iter().enumerate().skip(first) {
            let v = self.get(c, i);
            if v != *k {
                return if v < *k {
                    Ordering::Less
                } else {
                    Ordering::Greater
                };
            }
        }
        Ordering::Equal
    }

    /// The first tuple at or after `from` whose key is not less than `key`.
    #[inline]
    pub fn lower_bound(&self, key: &Key, from: usize) -> usize {
        self.bound(from, key, |run, c, i| {
            run.cmp_from(c, i, key) == Ordering::Less
        })
    }

    /// The first tuple at or after `from` whose key is greater than `key`.
    #[inline]
    pub fn upper_bound(&self, key: &Key, from: usize) -> usize {
        self.bound(from, key, |run, c, i| {
            run.cmp_from(c, i, key) != Ordering::Greater
        })
    }

    /// [`Run::lower_bound`] from 0 where that is likely to be close to `at`.
    #[inline]
    pub fn lower_bound_near(&self, key: &Key, at: usize) -> usize {
        let is_before = |i: usize| self.cmp(i, key) == Ordering::Less;
        let (mut lo, mut hi) = (0, self.n);
        let mut step = 1;
        if at < self.n && is_before(at) {
            lo = at + 1;
            while lo + step <= hi {
                if !is_before(lo + step - 1) {
                    hi = lo + step - 1;
                    break;
                }
                lo += step;
                step *= 2;
            }
        } else {
            hi = at.min(self.n);
            while lo + step <= hi {
                if is_before(hi - step) {
                    lo = hi - step + 1;
                    break;
                }
                hi -= step;
                step *= 2;
            }
        }
        halve(lo, hi, is_before)
    }

    /// [`Run::lower_bound`] where that is likely to be close to `from`: longer and longer steps from there, and after
    /// one of [`NEAR_TUPLES`] a guess.
    #[inline]
    pub fn lower_bound_behind(&self, key: &Key, from: usize) -> usize {
        let first = match self.constant_columns(key) {
            Ok(first) => first,
            Err(Ordering::Less) => return self.n.max(from),
            Err(_) => return from,
        };
        let is_before = |i: usize| self.cmp_from(first, i, key) == Ordering::Less;
        let (mut lo, mut step) = (from, 1);
        let hi = loop {
            let at = lo + step - 1;
            if at >= self.n {
                break self.n;
            }
            if !is_before(at) {
                break at;
            }
            lo = at + 1;
            step = lo - from;
            if step > NEAR_TUPLES {
                return self.lower_bound(key, lo);
            }
        };
        halve(lo, hi, is_before)
    }

    /// [`Run::upper_bound`] where that is likely to be close to `from`.
    #[inline]
    pub fn upper_bound_near(&self, key: &Key, from: usize) -> usize {
        let mut step = 1;
        let mut at = from;
        while at < self.n && step <= NEAR_TUPLES {
            if self.cmp(at, key) == Ordering::Greater {
                // Up to the one looked at before, they are not greater.
                return (at - step / 2 + 1..at)
                    .find(|&i| self.cmp(i, key) == Ordering::Greater)
                    .unwrap_or(at);
            }
            at += step;
            step *= 2;
        }
        self.upper_bound(key, (at - step / 2 + 1).min(self.n))
    }

    /// How many of the first columns have the value of `key` in all tuples; or how all tuples compare with `key`.
    #[inline]
    fn constant_columns(&self, key: &Key) -> std::result::Result<usize, Ordering> {
        for (c, k) in key.iter().enumerate() {
            match self.constant(c) {
                None => return Ok(c),
                Some(v) if v == *k => {}
                Some(v) => return Err(v.cmp(k)),
            }
        }
        Ok(key.len())
    }

    /// The first tuple at or after `from` that does not come before `key`. Keys spread evenly more often than not, so
    /// the search starts where the key would then be and gallops from there. That touches fewer cache lines than
    /// halving, and takes at most twice the steps.
    #[inline]
    fn bound(&self, from: usize, key: &Key, before: impl Fn(&Self, usize, usize) -> bool) -> usize {
        let (mut lo, mut hi) = (from, self.n);
        // Columns that are the same in the whole run are compared once.
        let mut first = 0;
        if hi.saturating_sub(lo) > SMALL_RUN {
            for (c, k) in key.iter().enumerate() {
                if self.columns[c].field == 0 {
                    let v = self.page.u64(self.columns[c].frames);
                    if v != *k {
                        return if v < *k { hi } else { lo };
                    }
                    first = c + 1;
                    continue;
                }
                let guess = self.guess(c, *k, lo, hi);
                let mut step = FIRST_STEP;
                if before(self, first, guess) {
                    lo = guess + 1;
                    while lo + step < hi {
                        if !before(self, first, lo + step) {
                            hi = lo + step;
                            break;
                        }
                        lo += step + 1;
                        step *= 4;
                    }
                } else {
                    hi = guess;
                    while lo + step < hi {
                        if before(self, first, hi - step) {
                            lo = hi - step + 1;
                            break;
                        }
                        hi -= step;
                        step *= 4;
                    }
                }
                break;
            }
        }
        halve(lo, hi, |i| before(self, first, i))
    }

    /// Where in `lo..hi` the value `k` of column `c`, which ascends, would be if the bit fields of the
    /// column were spread evenly.
    #[inline]
    fn guess(&self, c: usize, k: u64, lo: usize, hi: usize) -> usize {
        let col = &self.columns[c];
        let mut frame = 0;
        while frame < col.last_frame && self.page.u64(col.frames + 8 * (frame + 1)) <= k {
            frame += 1;
        }
        let offset = k
            .saturating_sub(self.page.u64(col.frames + 8 * frame))
            .min(col.offset_mask);
        let want = ((frame as u64).wrapping_shl(col.width) | offset) as f64;
        let (first, last) = (self.raw(col, lo) as f64, self.raw(col, hi - 1) as f64);
        if want <= first || last <= first {
            return lo;
        }
        lo + ((want - first) / (last - first) * (hi - 1 - lo) as f64).min((hi - 1 - lo) as f64)
            as usize
    }

    /// The bit field of value `i` of a column.
    #[inline]
    fn raw(&self, col: &Column, i: usize) -> u64 {
        let bit = i * col.field as usize;
        (self.page.u64(col.data + (bit >> 3)) >> (bit & 7)) & col.field_mask
    }

    /// Appends values `lo..hi` of column `c` to `out`.
    pub fn unpack(&self, c: usize, lo: usize, hi: usize, out: &mut Vec<u64>) {
        let hi = hi.min(self.n);
        if lo >= hi {
            return;
        }
        let col = &self.columns[c];
        let base = self.page.u64(col.frames);
        if col.field == 0 {
            out.resize(out.len() + hi - lo, base);
            return;
        }
        let start = out.len();
        let (first, last) = (lo / 8, hi.div_ceil(8));
        // Whole groups of 8 are unpacked; what lies outside lo..hi is cut off afterwards.
        out.resize(start + 8 * (last - first), 0);
        let data = &self.page.0[col.data + first * col.field as usize..];
        let groups = &mut out[start..];
        let add = if col.index_mask == 0 { base } else { 0 };
        UNPACK[col.field as usize](data, groups, add);
        if col.index_mask != 0 {
            let mut frames = [0u64; MAX_FRAMES];
            for (i, f) in frames.iter_mut().enumerate() {
                *f = self.page.u64(col.frames + 8 * i);
            }
            for v in groups {
                let frame = frames[(*v >> col.width) as usize & (MAX_FRAMES - 1)];
                *v = frame.wrapping_add(*v & col.offset_mask);
            }
        }
        let skip = lo - 8 * first;
        if skip > 0 {
            out.copy_within(start + skip..start + skip + (hi - lo), start);
        }
        out.truncate(start + hi - lo);
    }

    /// All values of column `c`.
    pub fn column(&self, c: usize) -> Vec<u64> {
        let mut out = Vec::with_capacity(self.n + 8);
        self.unpack(c, 0, self.n, &mut out);
        out
    }
}

type Unpack = fn(&[u8], &mut [u64], u64);

/// Unpacks groups of 8 fields of `W` bits (`W` bytes a group) and adds `base` to each.
fn unpack_groups<const W: usize>(data: &[u8], out: &mut [u64], base: u64) {
    let mask = low_bits(W as u32);
    for (g, group) in out.chunks_exact_mut(8).enumerate() {
        let Some(src) = data
            .get(g * W..)
            .and_then(|d| d.first_chunk::<WINDOW_BYTES>())
        else {
            unpack_end::<W>(data, g, group, base);
            continue;
        };
        for (j, v) in group.iter_mut().enumerate() {
            let bit = j * W;
            let mut b = [0; 8];
            b.copy_from_slice(&src[bit / 8..bit / 8 + 8]);
            *v = ((u64::from_le_bytes(b) >> (bit % 8)) & mask).wrapping_add(base);
        }
    }
}

/// A group whose window would leave the page (only the surplus of a last group can lie there).
#[cold]
fn unpack_end<const W: usize>(data: &[u8], g: usize, group: &mut [u64], base: u64) {
    for (j, v) in group.iter_mut().enumerate() {
        let bit = j * W;
        let Some(src) = data
            .get(g * W + bit / 8..)
            .and_then(|d| d.first_chunk::<8>())
        else {
            break;
        };
        *v = ((u64::from_le_bytes(*src) >> (bit % 8)) & low_bits(W as u32)).wrapping_add(base);
    }
}

macro_rules! unpack_table {
    ($($w:literal)*) => { [$(unpack_groups::<$w>),*] };
}

/// Unpackers by field width. Widths 58 to 63 do not occur ([`Run::open`] refuses them).
static UNPACK: [Unpack; 65] = unpack_table!(
    0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31
    32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57
    64 64 64 64 64 64 64);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::HEADER;
    use proptest::prelude::*;

    fn check(columns: &[Vec<u64>; 4]) {
        let refs = [
            &columns[0][..],
            &columns[1][..],
            &columns[2][..],
            &columns[3][..],
        ];
        let plan = RunPlan::new(refs, &mut Vec::new());
        if HEADER + plan.bytes() > SPECIAL {
            return;
        }
        let mut page = Page::zeroed();
        plan.write(refs, &mut page, HEADER);
        // What follows the run must not show through.
        page.0[HEADER + plan.bytes()..].fill(0xa5);
        let run = Run::<4>::open(&page, HEADER, 0).unwrap();
        assert_eq!(run.end(), HEADER + plan.bytes());
        let n = columns[0].len();
        assert_eq!(run.len(), n);
        for (c, values) in columns.iter().enumerate() {
            for (i, v) in values.iter().enumerate() {
                assert_eq!(run.get(c, i), *v);
            }
            for (lo, hi) in [(0, n), (n / 3, n - n / 4), (n / 2, n / 2), (1.min(n), n)] {
                let mut out = vec![7];
                run.unpack(c, lo, hi, &mut out);
                assert_eq!(out[0], 7);
                assert_eq!(&out[1..], &values[lo..hi.max(lo)]);
            }
        }
    }

    /// Values as they come in pages: few far-apart clusters, or anything.
    fn column(n: usize) -> impl Strategy<Value = Vec<u64>> {
        let cluster = (prop::collection::vec(any::<u64>(), 1..20), 0u32..60).prop_flat_map(
            move |(bases, bits)| {
                prop::collection::vec((any::<prop::sample::Index>(), any::<u64>()), n).prop_map(
                    move |picks| {
                        picks
                            .iter()
                            .map(|(i, off)| i.get(&bases).saturating_add(off & low_bits(bits)))
                            .collect()
                    },
                )
            },
        );
        prop_oneof![
            3 => cluster,
            1 => prop::collection::vec(any::<u64>(), n),
            1 => any::<u64>().prop_map(move |v| vec![v; n]),
            1 => prop::collection::vec(prop_oneof![Just(0), Just(u64::MAX), Just(1 << 63)], n),
        ]
    }

    /// Every width tried, and the one that takes the fewest bytes chosen, the widest of several.
    fn plan_of_all_widths(values: &[u64]) -> (usize, u8, Vec<u64>) {
        let mut sorted = values.to_vec();
        sorted.sort_unstable();
        sorted.dedup();
        let (first, last) = (sorted[0], sorted[sorted.len() - 1]);
        let width = bit_width(last - first);
        let field = if width > 57 { 64 } else { width };
        let bytes =
            |field: u8, frames: usize| 8 * frames + (values.len() * usize::from(field)).div_ceil(8);
        let mut best = (bytes(field, 1), field, vec![first]);
        if width <= 3 || values.len() < 8 {
            return best;
        }
        for w in (0..width).rev() {
            let mut frames = Vec::new();
            for &v in &sorted {
                if frames.last().is_none_or(|first| v - first >= 1 << w) {
                    frames.push(v);
                }
            }
            let field = w + bit_width(frames.len() as u64 - 1);
            let size = bytes(field, frames.len());
            if frames.len() <= 16 && field <= 57 && size < best.0 {
                best = (size, w, frames);
            }
        }
        best
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 200 }))]
        #[test]
        fn plans_are_the_best_of_all_widths(
            values in (1usize..600).prop_flat_map(column),
            shift in 0u32..64,
        ) {
            let mut values: Vec<u64> = values.into_iter().map(|v| v >> shift).collect();
            for _ in 0..2 {
                let plan = plan_column(&values, &mut Vec::new());
                let (bytes, width, frames) = plan_of_all_widths(&values);
                prop_assert_eq!(plan.bytes(values.len()), bytes);
                prop_assert_eq!(plan.width, width);
                prop_assert_eq!(&plan.frames[..usize::from(plan.count)], frames);
                values.sort_unstable();
            }
        }

        #[test]
        fn codec_round_trip(
            columns in (0usize..300).prop_flat_map(|n| [column(n), column(n), column(n), column(n)])
        ) {
            check(&columns);
        }

        #[test]
        fn codec_bounds(keys in prop::collection::btree_set([0u64..4, 0..4, 0..4, 0..4], 1..60), probe in [0u64..4, 0..4, 0..4, 0..4]) {
            let keys: Vec<Key> = keys.into_iter().collect();
            let columns: [Vec<u64>; 4] = std::array::from_fn(|c| keys.iter().map(|k| k[c]).collect());
            let refs = [&columns[0][..], &columns[1][..], &columns[2][..], &columns[3][..]];
            let mut page = Page::zeroed();
            RunPlan::new(refs, &mut Vec::new()).write(refs, &mut page, HEADER);
            let run = Run::<4>::open(&page, HEADER, 0).unwrap();
            prop_assert_eq!(run.lower_bound(&probe, 0), keys.partition_point(|k| *k < probe));
            prop_assert_eq!(run.upper_bound(&probe, 0), keys.partition_point(|k| *k <= probe));
            for at in 0..keys.len() + 2 {
                prop_assert_eq!(run.lower_bound_near(&probe, at), keys.partition_point(|k| *k < probe));
            }
            for from in 0..=keys.len() {
                let expected = from + keys[from..].partition_point(|k| *k <= probe);
                prop_assert_eq!(run.upper_bound_near(&probe, from), expected);
                let expected = from + keys[from..].partition_point(|k| *k < probe);
                prop_assert_eq!(run.lower_bound(&probe, from), expected);
                prop_assert_eq!(run.lower_bound_behind(&probe, from), expected);
            }
        }

        #[test]
        fn codec_bounds_of_wide_keys(
            columns in (1usize..200).prop_flat_map(|n| [column(n), column(n), column(n), column(n)]),
            probes in prop::collection::vec((any::<prop::sample::Index>(), 0usize..4, -1i64..2), 20),
        ) {
            let mut keys: Vec<Key> =
                (0..columns[0].len()).map(|i| std::array::from_fn(|c| columns[c][i])).collect();
            keys.sort_unstable();
            let columns: [Vec<u64>; 4] = std::array::from_fn(|c| keys.iter().map(|k| k[c]).collect());
            let refs = [&columns[0][..], &columns[1][..], &columns[2][..], &columns[3][..]];
            let mut page = Page::zeroed();
            RunPlan::new(refs, &mut Vec::new()).write(refs, &mut page, HEADER);
            let run = Run::<4>::open(&page, HEADER, 0).unwrap();
            for (i, c, delta) in probes {
                let mut probe = *i.get(&keys);
                probe[c] = probe[c].wrapping_add_signed(delta);
                prop_assert_eq!(run.lower_bound(&probe, 0), keys.partition_point(|k| *k < probe));
                prop_assert_eq!(run.upper_bound(&probe, 0), keys.partition_point(|k| *k <= probe));
                let from = i.index(keys.len());
                let expected = from + keys[from..].partition_point(|k| *k <= probe);
                prop_assert_eq!(run.upper_bound(&probe, from), expected);
                prop_assert_eq!(run.upper_bound_near(&probe, from), expected);
                let expected = from + keys[from..].partition_point(|k| *k < probe);
                prop_assert_eq!(run.lower_bound_behind(&probe, from), expected);
            }
        }

        #[test]
        fn codec_garbage_is_safe(bytes in prop::collection::vec(any::<u8>(), 64), fill: u8) {
            let mut page = Page::zeroed();
            page.0.fill(fill);
            page.0[HEADER..HEADER + 64].copy_from_slice(&bytes);
            page.0[HEADER + 2] = 4;
            page.put_u16(HEADER, page.u16(HEADER) & 0x3ff);
            page.put_u16(HEADER + 4, page.u16(HEADER + 4) & 0x1fff);
            for c in 0..4 {
                page.0[HEADER + 8 + 8 * c] &= 0x1f;
                page.0[HEADER + 9 + 8 * c] &= 7;
            }
            if let Ok(run) = Run::<4>::open(&page, HEADER, 0) {
                for c in 0..4 {
                    let all = run.column(c);
                    for (i, v) in all.iter().enumerate() {
                        prop_assert_eq!(run.get(c, i), *v);
                    }
                }
            }
        }
    }

    #[test]
    fn codec_every_width() {
        for w in 0..=64u32 {
            let values: Vec<u64> = (0..101u64)
                .map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) & low_bits(w))
                .chain([0, low_bits(w)])
                .collect();
            check(&[values.clone(), values.clone(), values.clone(), values]);
        }
    }

    #[test]
    fn mixed_tags_stay_narrow() {
        let values: Vec<u64> = (0..400u64).map(|i| ((i % 5) << 59) | (1000 + i)).collect();
        let plan = RunPlan::new([&values, &values, &values, &values], &mut Vec::new());
        // 3 bits of frame index and 9 of offset.
        assert!(plan.bytes() < 4 * (400 * 12 / 8 + 16 * 8) + 40);
    }
}
