//! Which rows of a `Quad Join` can be among the first of an order (ORDER BY .. LIMIT). The others are not handed out,
//! so nobody reads their terms to compare them.

use super::outer_input::OuterInput;
use pgquad_btree::SIGN;
use pgquad_exec::{Bindings, LeadingKey, LeadingKeyData, Plan};

/// The leading key of the order, executed.
pub struct Candidates {
    /// The key's place in the scan tuple.
    place: usize,
    key: LeadingKey,
    /// Rows that were left out.
    pub removed: u64,
}

impl Candidates {
    pub fn new(data: &LeadingKeyData) -> Self {
        Self {
            place: data.place,
            key: LeadingKey::new(data.most, data.descending, data.nulls_first),
            removed: 0,
        }
    }

    /// Forgets the rows so far: the join starts anew.
    pub fn restart(&mut self) {
        self.key.restart();
    }

    /// Leaves out rows of a batch that are none of the first. `output`: the place in the scan tuple of each variable of
    /// the plan's answer.
    pub fn thin(
        &mut self,
        rows: &mut Bindings,
        (plan, output): (&Plan, &[usize]),
        outer_input: Option<&OuterInput>,
    ) {
        let Some(values) = values(self.place, rows, (plan, output), outer_input) else {
            return;
        };
        if let Some(kept) = self.key.candidates(&values) {
            let before = rows.len;
            rows.retain(&kept);
            self.removed += (before - rows.len) as u64;
        }
    }
}

/// What the rows of a batch have at a place of the scan tuple; `None` where the join does not fill it.
fn values(
    place: usize,
    rows: &Bindings,
    (plan, output): (&Plan, &[usize]),
    outer_input: Option<&OuterInput>,
) -> Option<Vec<Option<i64>>> {
    if let Some(at) = output.iter().position(|&known| known == place) {
        let ids = rows.ids(plan.output[at]);
        return Some(match ids {
            Some(ids) => ids.iter().map(|&id| Some((id ^ SIGN) as i64)).collect(),
            None => vec![None; rows.len],
        });
    }
    let outer_input = outer_input?;
    let numbers = rows.ids(outer_input.row())?;
    let value = |&number: &u64| {
        let mut carried = outer_input.carried(number as usize);
        let (_, value, null) = carried.find(|&(known, ..)| known == place)?;
        Some((!null).then(|| value.value() as i64))
    };
    numbers.iter().map(value).collect()
}
