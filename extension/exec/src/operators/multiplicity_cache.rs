//! Multiplicity cache: the number of quads for each key of a last pattern, kept from batch to batch where rows are only
//! counted.
//!
//! Example: 10,000 reviews of 50 products look up 50 multiplicities.

use crate::access::access_path::Places;
use crate::bindings::Bindings;
use crate::cost::MULTIPLICITY_TRIAL_BULKS;
use crate::operators::keys::Keys;
use crate::plan::SlotSet;

/// Keys with the number of quads of each.
#[derive(Default)]
pub(crate) struct MultiplicityCache {
    /// Variables that are the key, with their places in the order read.
    known: Places,
    keys: Option<Keys>,
    quads: Vec<u64>,
    /// Rows that have come in.
    rows: usize,
    /// It does not pay, or there is no room for it.
    given_up: bool,
}

impl MultiplicityCache {
    /// Bytes they take.
    pub fn bytes(&self) -> usize {
        self.keys.as_ref().map_or(0, Keys::bytes) + 8 * self.quads.len()
    }

    /// Whether it did not pay, or had no room.
    pub fn is_given_up(&self) -> bool {
        self.given_up
    }

    /// Remembers nothing from now on.
    pub fn give_up(&mut self) {
        *self = Self {
            given_up: true,
            ..Self::default()
        };
    }

    /// The number of quads for each of `rows` by the variables of `known`; `count` is asked for rows with keys that are
    /// new.
    pub fn multiplicities(
        &mut self,
        known: &Places,
        rows: &Bindings,
        count: impl FnOnce(Bindings) -> Vec<u64>,
    ) -> Vec<u64> {
        if self.known != *known {
            *self = Self {
                known: known.clone(),
                ..Self::default()
            };
        }
        let columns: Vec<&[u64]> = known.iter().filter_map(|k| rows.ids(k.0)).collect();
        let keys = self.keys.get_or_insert_with(|| Keys::new(columns.len(), 0));
        let mut next = keys.len();
        let numbers = keys.find_or_add_all(&columns, rows.len);
        let mut new = Vec::new();
        for (row, &number) in numbers.iter().enumerate() {
            if number as usize == next {
                new.push(row as u32);
                next += 1;
            }
        }
        if !new.is_empty() {
            let known: SlotSet = known.iter().map(|k| k.0).collect();
            self.quads.extend(count(rows.gather(&new, &known)));
        }
        self.rows += rows.len;
        numbers.iter().map(|&n| self.quads[n as usize]).collect()
    }

    /// Whether enough rows have come to see that keys seldom come again. [`crate::Tuning::bulk_from`] is `bulk`.
    pub fn is_seldom_met(&self, bulk: usize) -> bool {
        let keys = self.keys.as_ref().map_or(0, Keys::len);
        self.rows > MULTIPLICITY_TRIAL_BULKS * bulk && 2 * keys > self.rows
    }
}
