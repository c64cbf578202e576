//! What the next step reads: which patterns it takes, and whether that needs a message.

use crate::bindings::Bindings;
use crate::optimizer::join_order::Next;
use crate::optimizer::read_ahead;
use crate::optimizer::star_planning::MemberKind;
use crate::plan::layout::{bits, PatternInfo, Scope};
use crate::plan::query::Query;
use crate::source::{Source, Wanted};

/// What is worth reading with the quads of the next step, where that needs a message: `None` where it does not.
pub(crate) fn wanted_with<S: Source>(
    query: &Query,
    source: &S,
    rows: &Bindings,
    scopes: &[Scope],
    next: &Next,
) -> Option<Vec<Wanted>> {
    let (patterns, children) = match next {
        Next::Pattern(i, _) => (1 << i, 0),
        // It asks for itself, step by step.
        Next::Child(_) => return Some(Vec::new()),
        Next::Star(parts) => {
            let parts = parts.list.iter().map(|part| &part.what);
            parts.fold((0, 0), |(patterns, children), part| match part {
                MemberKind::Pattern(i, _) => (patterns | 1 << i, children),
                MemberKind::Optional(c) => (patterns, children | 1 << c),
            })
        }
    };
    let groups = &query.layout.groups;
    let group = &groups[scopes.last()?.group];
    let is_known = |info: &PatternInfo| read_ahead::is_known(query, source, rows, info);
    let inner = |c: usize| &groups[group.children[c].group].patterns;
    let needs_none = bits(patterns).all(|i| is_known(&group.patterns[i]))
        && bits(children).all(|c| inner(c).iter().all(is_known));
    (!needs_none).then(|| read_ahead::wanted(query, source, rows, scopes, (patterns, children)))
}
