//! Filters: each is tested once, as soon as its variables are known.

use pgquad_btree::SIGN;

use crate::bindings::Bindings;
use crate::plan::layout::{bits, Layout, Scope};
use crate::plan::{Slot, SlotSet, Test};
use crate::source::Source;

/// Applies the filters of the innermost group whose variables are known, and notes in its scope that they are done.
pub(crate) fn filter<S: Source>(
    layout: &Layout,
    source: &mut S,
    rows: &mut Bindings,
    scopes: &mut [Scope],
) {
    let top = scopes.len() - 1;
    if scopes[top].filters == 0 {
        return;
    }
    let mut known = rows.known();
    known.remove_all(&never_seen(layout, rows, scopes));
    let scope = &mut scopes[top];
    for i in bits(scope.filters) {
        let (filter, needs) = &layout.groups[scope.group].filters[i];
        if rows.len == 0 || !needs.within(&known) {
            continue;
        }
        scope.filters &= !(1 << i);
        let mut keep = vec![true; rows.len];
        match filter.test {
            Test::Equal(a, b) => match (rows.ids(a), rows.ids(b)) {
                (Some(a), Some(b)) => keep
                    .iter_mut()
                    .zip(a.iter().zip(b))
                    .for_each(|(k, (a, b))| *k = a == b),
                _ => keep.fill(false),
            },
            Test::Expr(expr) => source.test(expr, &filter.needs, rows, &mut keep),
        }
        if keep.iter().any(|k| !k) {
            rows.retain(&keep);
        }
    }
}

/// Variables of an outer input that no pattern has found yet, where some are negative. Such a number is no id of a
/// term, but may stand for a term that has none: no expression is to be tested with it.
fn never_seen(layout: &Layout, rows: &Bindings, scopes: &[Scope]) -> SlotSet {
    let mut unseen = SlotSet::default();
    let is_outermost = match scopes {
        [_] => true,
        [outermost, _] => layout.groups[outermost.group].patterns.is_empty(),
        _ => false,
    };
    let top = &scopes[scopes.len() - 1];
    if !is_outermost || top.patterns == 0 {
        return unseen;
    }
    let mut seen = SlotSet::default();
    for (i, pattern) in layout.groups[top.group].patterns.iter().enumerate() {
        let is_left = top.patterns & (1 << i) != 0;
        let set = if is_left { &mut unseen } else { &mut seen };
        set.add_all(&pattern.needs);
    }
    unseen.remove_all(&seen);
    let mut negative = SlotSet::default();
    for slot in Slot::first(rows.columns.len()).filter(|slot| unseen.has(*slot)) {
        if rows
            .ids(slot)
            .is_some_and(|ids| ids.iter().any(|id| *id < SIGN))
        {
            negative.add(slot);
        }
    }
    negative
}
