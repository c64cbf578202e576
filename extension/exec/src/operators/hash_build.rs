//! The build side of a hash join: quads are read into a table in memory, within limits. PostgreSQL's counterpart is
//! `executor/nodeHash.c`.

use crate::access::access_path::AccessPath;
use crate::access::residual_predicates::{LastTriples, ResidualMask};
use crate::cost::READ_QUADS;
use crate::operators::hash_table::{Builder, Table};
use crate::plan::condition::Value;
use crate::plan::Slot;
use crate::source::Source;
use pgquad_btree::{Batch, Key, COUNTS};
use pgquad_cluster::Reading;

/// What may be read into a table: about how many rows (quads, or keys with counts) are expected, and how many, in how
/// many bytes, are too many.
pub(crate) struct Limits {
    pub expected: usize,
    pub quads: usize,
    pub bytes: usize,
}

/// The columns of the key that are read for a table.
pub(crate) fn build_mask(access: &AccessPath) -> u8 {
    access
        .known
        .iter()
        .fold(access.mask, |mask, k| mask | 1 << k.1)
}

/// Whether a read of these columns counts quads that are equal in them.
pub(crate) fn is_counted(mask: u8) -> bool {
    mask & COUNTS != 0
}

/// Reads the quads of `ranges` into a table; `None` when they are beyond the limits.
pub(crate) fn read_table<S: Source>(
    source: &mut S,
    access: &AccessPath,
    ranges: &[(Key, Key)],
    limits: &Limits,
    params: &[Value],
    most: usize,
) -> Option<Table> {
    let mut reading = Reading::new(build_mask(access));
    let (mut batch, mut spans) = (Batch::new(), Vec::new());
    let mut builder = Builder::new(access.known.len(), access.fills.len(), limits.expected);
    let (mut read, mut last_triples) =
        (0, LastTriples::new(source.ranges_are_sorted(access.table)));
    loop {
        source.interrupt();
        let more = source.read(
            access.table,
            access.order,
            &mut reading,
            ranges,
            READ_QUADS.min(most),
            &mut batch,
            &mut spans,
        );
        let residual_mask =
            ResidualMask::of_access(access, &batch, &spans, params, &mut last_triples);
        let column = |at: &(Slot, usize)| batch.columns[at.1].as_slice();
        let keys: Vec<&[u64]> = access.known.iter().map(column).collect();
        let values: Vec<&[u64]> = access.fills.iter().map(column).collect();
        builder.add(&keys, &values, &batch.counts, batch.len(), |row| {
            residual_mask.accepts(row)
        });
        read += batch.len();
        if builder.bytes() > limits.bytes || read > limits.quads || builder.is_full() {
            return None;
        }
        if !more {
            return Some(builder.finish());
        }
    }
}
