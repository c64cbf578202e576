//! Equality of values as a key.
//!
//! `?a = ?b` compares values: numbers of different types may be equal. Only IRIs, blank nodes and their like are equal to nothing but
//! themselves, so a pattern can be probed by such a condition when it has no other terms in that column.

use crate::access::Bound;
use crate::bindings::Bindings;
use crate::order::Access;
use crate::pipeline::Pipeline;
use crate::plan::{Pattern, SlotSet};
use crate::source::Source;
use pgquad_btree::Batch;
use pgquad_cluster::Reading;

impl Pipeline {
    /// Lets patterns use the variables that a column has to equal in value as keys, where the quads of the pattern allow it.
    pub(crate) fn key_by_value<S: Source>(&mut self, source: &mut S) {
        for group in 0..self.layout.groups.len() {
            for at in 0..self.layout.groups[group].patterns.len() {
                let pattern = &self.layout.groups[group].patterns[at].pattern;
                if pattern.values.is_empty() {
                    continue;
                }
                let mut linked = pattern.clone();
                for (column, slot, from) in pattern.values.clone() {
                    let link = (column, slot);
                    linked.links.retain(|l| *l != link);
                    if !self.any_from(source, pattern, column, from) {
                        linked.links.push(link);
                    }
                }
                let info = &mut self.layout.groups[group].patterns[at];
                info.needs = linked.needs();
                info.pattern = linked;
            }
        }
    }

    /// Whether the pattern may have a quad whose `column` is at or above a parameter.
    fn any_from<S: Source>(
        &self,
        source: &mut S,
        pattern: &Pattern,
        column: u8,
        from: u16,
    ) -> bool {
        let one_row = Bindings::one_row(self.slots);
        let mut above = pattern.clone();
        above.links.clear();
        above.conditions.push((column, Bound::Ge, from));
        let none = SlotSet::default();
        let access = Access::new(&above, source.orders(above.table), &one_row, &none);
        let mut ranges = Vec::new();
        access.ranges(&one_row, 0, &self.params, &mut ranges);
        let (mut batch, mut spans) = (Batch::new(), Vec::new());
        let mut reading = Reading::new(access.mask);
        loop {
            let more = source.read(
                above.table,
                access.order,
                &mut reading,
                &ranges,
                1,
                &mut batch,
                &mut spans,
            );
            if !batch.is_empty() || !more {
                return !batch.is_empty();
            }
        }
    }
}
