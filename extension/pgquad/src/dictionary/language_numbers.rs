//! Numbers of language tags where another node may have to be asked for them, or to give new ones.

use pgquad_term::{encoded, LiteralKind, Term};
use pgrx::pg_sys;

use super::state::{with_state, State};
use super::{layout::Layout, remote};

/// What `find` gives. A node that has no copy of the table asks another one for it when there is nothing.
pub fn look_up<T>(find: impl Fn(&mut State) -> Option<T>) -> Option<T> {
    let found = with_state(&find);
    if found.is_some() || Layout::current().tables.languages != pg_sys::InvalidOid {
        return found;
    }
    ask();
    with_state(find)
}

/// Takes in the numbers that another node knows.
pub fn ask() {
    let all = remote::languages();
    with_state(|state| state.languages.note(all));
}

/// The numbers of the languages of encoded terms in a distributed dictionary. New languages get numbers while there are
/// numbers left, after a call of `before_asking`. 0 for a term without a language.
pub fn numbers_or_add<'a>(
    terms: impl Iterator<Item = &'a str> + Clone,
    before_asking: impl FnOnce(),
) -> Vec<u16> {
    let tags = terms.map(tag_of);
    let mut missing: Vec<&str> = Vec::new();
    for tag in tags.clone().flatten() {
        let known = |state: &mut State| match state.languages.is_full() {
            true => Some(0),
            false => state.languages.find(&state.layout.tables, tag),
        };
        if !missing.contains(&tag) && look_up(known).is_none() {
            missing.push(tag);
        }
    }
    if !missing.is_empty() {
        before_asking();
        let added = remote::add_languages(&missing);
        with_state(|state| state.languages.note(added));
    }
    with_state(|state| {
        let number = |tag: &str| state.languages.known_number(tag);
        tags.map(|tag| tag.and_then(number).unwrap_or(0)).collect()
    })
}

/// The language tag of an encoded term.
fn tag_of(text: &str) -> Option<&str> {
    match encoded::decode(text)? {
        Term::Literal(literal) => match literal.kind {
            LiteralKind::Language(tag) => Some(tag),
            _ => None,
        },
        _ => None,
    }
}
