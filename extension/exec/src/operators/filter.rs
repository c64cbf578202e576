//! Filters: each is tested once, as soon as its variables are known.

use crate::bindings::Bindings;
use crate::pipeline::Pipeline;
use crate::plan::layout::{bits, Scope};
use crate::plan::Test;
use crate::source::Source;

impl Pipeline {
    /// Applies the filters of a group whose variables are known.
    pub(crate) fn filter<S: Source>(&self, source: &mut S, rows: &mut Bindings, scope: &mut Scope) {
        if scope.filters == 0 {
            return;
        }
        let known = rows.known();
        for i in bits(scope.filters) {
            let (filter, needs) = &self.layout.groups[scope.group].filters[i];
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
}
