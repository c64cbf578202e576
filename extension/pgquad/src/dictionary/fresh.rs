//! Terms that documents under way have numbered and whose ids are not in `quad.term_ids` yet. A function that makes the
//! lines of a document may ask for ids of terms, or load another document: no term gets a second id by that.

use std::cell::RefCell;
use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::rc::{Rc, Weak};

use pgquad_term::TermId;

use super::state::BuildHash;

/// Marks an id, whose highest bit is never set, as not in `quad.term_ids` yet.
pub const NOT_STORED_BIT: u64 = 1 << 63;

/// The halves of a hash. (A `u128` would be aligned to 16 bytes and make the map a third larger.)
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Key(u64, u64);

impl Key {
    pub fn new(hash: u128) -> Self {
        Key((hash >> 64) as u64, hash as u64)
    }

    pub fn value(self) -> u128 {
        u128::from(self.0) << 64 | u128::from(self.1)
    }
}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.1);
    }
}

/// Ids of the terms that a document has had so far, some with [`NOT_STORED_BIT`].
pub type Known = HashMap<Key, u64, BuildHash>;

thread_local! {
    static DOCUMENTS: RefCell<Vec<Weak<RefCell<Known>>>> = const { RefCell::new(Vec::new()) };
}

/// What a document that begins knows: nothing.
pub fn begin() -> Rc<RefCell<Known>> {
    let known = Rc::new(RefCell::new(Known::default()));
    DOCUMENTS.with_borrow_mut(|all| {
        all.retain(|document| document.strong_count() > 0);
        all.push(Rc::downgrade(&known));
    });
    known
}

/// Whether a document is within another one.
pub fn are_several() -> bool {
    DOCUMENTS.with_borrow(|all| all.iter().filter(|one| one.strong_count() > 0).count() > 1)
}

/// The id that a document under way has given to the term with this hash; not the one that is at it right now.
pub fn find(hash: u128) -> Option<TermId> {
    DOCUMENTS.with_borrow(|all| {
        let documents = all.iter().filter_map(Weak::upgrade);
        documents
            .filter_map(|known| known.try_borrow().ok()?.get(&Key::new(hash)).copied())
            .map(|id| TermId(id & !NOT_STORED_BIT))
            .next()
    })
}
