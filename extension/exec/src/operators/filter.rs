//! Filters: each is tested once, as soon as its variables are known.

use crate::bindings::Bindings;
use crate::plan::layout::{bits, Layout, Scope};
use crate::plan::Test;
use crate::source::Source;

/// Applies the filters of a group whose variables are known, and notes in `scope` that they are done.
pub(crate) fn filter<S: Source>(
    layout: &Layout,
    source: &mut S,
    rows: &mut Bindings,
    scope: &mut Scope,
) {
    if scope.filters == 0 {
        return;
    }
    let known = rows.known();
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
