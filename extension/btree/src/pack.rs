//! Distributing entries over leaf pages.

use crate::error::{Error, Result};
use crate::key::{separator, KEY_MIN};
use crate::leaf::{encode_leaf, encode_leaf_within, encoded_bytes, Entry, Scratch, CAPACITY};
use crate::page::{Frame, Page};

/// Part of the capacity that rebuilt pages may fill, the rest being left for changes to come.
pub(crate) const FILL: usize = CAPACITY / 10 * 9;

/// How to distribute.
#[derive(Clone, Copy)]
pub(crate) struct Packing {
    /// Most entries of a page (a page with the versions of one key only may have more).
    pub max: usize,
    /// Fill the pages one after the other, as ascending inserts want it, instead of evenly.
    pub ascending: bool,
    /// About how many bytes all entries take: where they are clearly too many for a page, that is not tried.
    pub bytes: usize,
}

/// Distributes entries (sorted by key) over leaf pages that together take the range of `frame`.
/// Versions of one key stay together. Links and flags of the pages are left to the caller.
///
/// # Errors
/// [`Error::TooManyVersions`] when the versions of one key do not fit in a page.
pub(crate) fn pack(
    entries: &[Entry],
    frame: &Frame,
    packing: Packing,
    scratch: &mut Scratch,
) -> Result<Vec<Box<Page>>> {
    if entries.len() <= packing.max && packing.bytes <= FILL / 4 * 5 {
        if let Some(page) = encode_leaf_within(entries, frame, FILL, scratch) {
            return Ok(vec![page]);
        }
    }
    let mut cuts = Vec::new();
    if !packing.ascending && entries.len() / 2 < packing.max {
        // Most often two halves do.
        cuts = even_cuts(entries, 2);
        if let Some(pages) = encode_cuts(entries, &cuts, frame, packing.max, scratch) {
            return Ok(pages);
        }
        cuts.clear();
    }
    let max = if packing.ascending {
        (packing.max * 9 / 10).max(1)
    } else {
        packing.max
    };
    let mut start = 0;
    let mut guess = entries.len() / 2 + 1;
    loop {
        let n = take(&entries[start..], max, guess, scratch);
        guess = n + n / 8 + 1;
        start += n;
        if start >= entries.len() {
            break;
        }
        cuts.push(start);
    }
    if !packing.ascending {
        let even = even_cuts(entries, cuts.len() + 1);
        if let Some(pages) = encode_cuts(entries, &even, frame, packing.max, scratch) {
            return Ok(pages);
        }
    }
    match encode_cuts(entries, &cuts, frame, usize::MAX, scratch) {
        Some(pages) => Ok(pages),
        None => {
            let groups = entries.chunk_by(|a, b| a.key == b.key);
            let longest = groups.max_by_key(|g| g.len()).map_or(KEY_MIN, |g| g[0].key);
            Err(Error::TooManyVersions { key: longest })
        }
    }
}

/// How many of the entries the first page takes: about as many as fill it to [`FILL`].
pub(crate) fn take(entries: &[Entry], max: usize, guess: usize, scratch: &mut Scratch) -> usize {
    let limit = entries.len().min(max);
    let (mut fits, mut fails) = (0, limit + 1);
    let mut n = guess.clamp(1, limit);
    for _ in 0..12 {
        let bytes = encoded_bytes(&entries[..n], scratch);
        if bytes <= FILL {
            fits = n;
            if n == limit || bytes >= FILL / 100 * 97 {
                break;
            }
        } else {
            fails = n;
        }
        if fits + 1 >= fails || (fits > 0 && fails - fits <= fits / 64) {
            break;
        }
        n = (n * FILL / bytes.max(1)).clamp(fits + 1, fails - 1);
    }
    key_boundary(entries, fits.max(1))
}

/// The last cut at or before `n` that separates keys, or the first one after it when the entries up to
/// `n` have one key only.
fn key_boundary(entries: &[Entry], n: usize) -> usize {
    let cuts = |i: usize| i >= entries.len() || entries[i - 1].key != entries[i].key;
    let mut cut = n;
    while cut > 0 && !cuts(cut) {
        cut -= 1;
    }
    if cut == 0 {
        cut = n;
        while !cuts(cut) {
            cut += 1;
        }
    }
    cut
}

/// Cuts into `parts` parts of about equal size, at key boundaries; fewer when there are not enough.
fn even_cuts(entries: &[Entry], parts: usize) -> Vec<usize> {
    let mut cuts = Vec::with_capacity(parts);
    let mut last = 0;
    for i in 1..parts {
        let want = entries.len() * i / parts;
        if want <= last {
            continue;
        }
        let cut = last + key_boundary(&entries[last..], want - last);
        if cut >= entries.len() {
            break;
        }
        cuts.push(cut);
        last = cut;
    }
    cuts
}

/// Encodes the parts between the cuts; `None` when one of them does not fit, or has more than `max`
/// entries of several keys.
fn encode_cuts(
    entries: &[Entry],
    cuts: &[usize],
    frame: &Frame,
    max: usize,
    scratch: &mut Scratch,
) -> Option<Vec<Box<Page>>> {
    let mut pages = Vec::with_capacity(cuts.len() + 1);
    let (mut start, mut low) = (0, frame.low);
    for i in 0..=cuts.len() {
        let end = cuts.get(i).copied().unwrap_or(entries.len());
        let part = &entries[start..end];
        if part.len() > max && part[0].key != part[part.len() - 1].key {
            return None;
        }
        let high = match cuts.get(i) {
            Some(&cut) => Some(separator(&entries[cut - 1].key, &entries[cut].key)),
            None => frame.high,
        };
        pages.push(encode_leaf(
            part,
            &Frame {
                low,
                high,
                ..*frame
            },
            scratch,
        )?);
        start = end;
        low = high.unwrap_or(low);
    }
    Some(pages)
}
