//! What this backend remembers of the dictionary, and when it must forget.

use std::cell::{Cell, RefCell};
use std::hash::{BuildHasherDefault, Hasher};
use std::rc::Rc;

use crate::pg::exit::is_exiting;
use crate::settings;
use pgquad_term::cache::Cache;
use pgquad_term::{TermBuf, TermId};
use pgrx::pg_sys;
use pgrx::prelude::*;

use super::absent;
use super::ahead::{self, Ahead};
use super::blocks::BlockCache;
use super::casts::Casts;
use super::distribute;
use super::languages::Languages;
use super::layout::{self, Layout};
use super::numbers::Numbers;
use super::symbol_tables::SymbolTables;

thread_local! {
    static STATE: RefCell<Option<State>> = const { RefCell::new(None) };
    /// Whether this transaction has added to the dictionary, so that the state may hold what an abort takes back.
    static WROTE: Cell<bool> = const { Cell::new(false) };
    /// Locks on single terms that this transaction has taken.
    static TERM_LOCKS: Cell<usize> = const { Cell::new(0) };
    static GENERATION: Cell<u64> = const { Cell::new(0) };
}

/// Hashes of terms are hashes already.
#[derive(Default)]
pub struct HashOfHash(u64);

impl Hasher for HashOfHash {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, _bytes: &[u8]) {
        unreachable!("only numbers are hashed");
    }
    fn write_u128(&mut self, hash: u128) {
        self.0 = hash as u64;
    }
    fn write_u64(&mut self, number: u64) {
        self.0 = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

/// Builder of [`HashOfHash`].
pub type BuildHash = BuildHasherDefault<HashOfHash>;

/// What is remembered.
pub struct State {
    /// Where the tables are that everything below was read from.
    pub layout: Rc<Layout>,
    /// Ids by hash of the term.
    pub ids: Cache<u128, TermId, BuildHash>,
    /// Ids by hash of the N-Triples text.
    pub written: Cache<u128, TermId, BuildHash>,
    /// Terms decoded ahead.
    pub ahead: Ahead,
    /// Terms by dictionary number.
    pub terms: Cache<u64, TermBuf, BuildHash>,
    /// Casts of terms.
    pub casts: Casts,
    /// Blocks of terms.
    pub blocks: BlockCache,
    /// Symbol tables.
    pub symbols: SymbolTables,
    /// Language tags.
    pub languages: Languages,
    /// Numbers in stock.
    pub numbers: Numbers,
    /// Terms that this session has added, aborted or not.
    pub added: u64,
    /// Another one whenever what was read from the tables is forgotten.
    pub generation: u64,
}

/// The part of the session's memory for what is read that casts may keep beyond the transaction, one in so many. Until
/// then `work_mem` comes to it: a query over many values wants each repeatedly.
const CASTS_PART: usize = 5;

/// Bytes that a cached id takes, with the overhead of the map.
pub const ID_BYTES: usize = 48;

/// Bytes that a cached term takes, with the overhead of the map.
pub fn term_bytes(term: &TermBuf) -> usize {
    term.as_encoded().len() + 64
}

impl State {
    fn new(layout: Rc<Layout>) -> Self {
        State {
            layout,
            ids: Cache::new(0),
            written: Cache::new(0),
            ahead: Ahead::default(),
            terms: Cache::new(0),
            casts: Casts::default(),
            blocks: BlockCache::default(),
            symbols: SymbolTables::default(),
            languages: Languages::default(),
            numbers: Numbers::default(),
            added: 0,
            generation: next_generation(),
        }
    }

    /// Forgets what was read from the tables; the numbers in stock stay.
    fn forget(&mut self) {
        self.ids.clear();
        self.written.clear();
        self.ahead = Ahead::default();
        self.terms.clear();
        self.casts = Casts::default();
        self.blocks = BlockCache::default();
        self.symbols = SymbolTables::default();
        self.languages = Languages::default();
        self.generation = next_generation();
    }
}

/// A number that no generation had before; 0 is none.
fn next_generation() -> u64 {
    GENERATION.set(GENERATION.get() + 1);
    GENERATION.get()
}

/// Watches the end of transactions; called once from `_PG_init`.
pub fn init() {
    // SAFETY: the callbacks are plain functions that live as long as the process.
    unsafe {
        pg_sys::RegisterXactCallback(Some(at_transaction_end), std::ptr::null_mut());
        pg_sys::RegisterSubXactCallback(Some(at_subtransaction_end), std::ptr::null_mut());
    }
}

/// Calls `body` with the state of this backend, which holds nothing that is not in the tables now.
pub fn with_state<T>(body: impl FnOnce(&mut State) -> T) -> T {
    let layout = Layout::current();
    let limit = settings::DICTIONARY_CACHE.get() as usize * 1024;
    STATE.with_borrow_mut(|state| {
        let state = match state {
            Some(state) if Rc::ptr_eq(&state.layout, &layout) => state,
            Some(state) if state.layout.is_of_same_dictionary(&layout) => {
                state.layout = layout;
                state
            }
            _ => state.insert(State::new(layout)),
        };
        state.ids.set_limit(limit / 10);
        state.written.set_limit(limit / 10);
        // SAFETY: a setting of PostgreSQL, in KB.
        let work_mem = unsafe { pg_sys::work_mem } as usize * 1024;
        state.casts.set_limit(limit / CASTS_PART + work_mem);
        // Terms that came one after the other share a block, and are asked for together. In a distributed dictionary
        // they are in as many blocks as there are shards, or on other nodes. Explore over ten million triples, eight
        // shards on one node, one client: 1.4 times the mixes of (1, 2).
        let (terms, blocks) = match state.layout.shards.is_some() {
            true => (2, 1),
            false => (1, 2),
        };
        state.terms.set_limit(limit / 5 * terms);
        state.blocks.set_limit(limit / 5 * blocks);
        body(state)
    })
}

/// To be called before the first change of a table of the dictionary.
pub fn will_write() {
    WROTE.set(true);
}

/// Counts `count` more locks on single terms and returns how many there are now in this transaction.
pub fn count_term_locks(count: usize) -> usize {
    TERM_LOCKS.set(TERM_LOCKS.get() + count);
    TERM_LOCKS.get()
}

fn forget_if_written() {
    if WROTE.get() {
        STATE.with(|state| {
            // It is borrowed only when the process exits in the middle of a call.
            if let Ok(mut state) = state.try_borrow_mut() {
                if let Some(state) = state.as_mut() {
                    state.forget();
                }
            }
        });
    }
}

fn trim_casts() {
    let bytes = settings::DICTIONARY_CACHE.get() as usize * 1024 / CASTS_PART;
    STATE.with(|state| {
        // As above.
        if let Ok(Some(state)) = state.try_borrow_mut().as_deref_mut() {
            state.casts.trim(bytes);
        }
    });
}

#[pg_guard]
unsafe extern "C-unwind" fn at_transaction_end(
    event: pg_sys::XactEvent::Type,
    _argument: *mut std::ffi::c_void,
) {
    use pg_sys::XactEvent::{
        XACT_EVENT_ABORT, XACT_EVENT_COMMIT, XACT_EVENT_PARALLEL_ABORT, XACT_EVENT_PARALLEL_COMMIT,
        XACT_EVENT_PREPARE,
    };
    if is_exiting() {
        return;
    }
    match event {
        XACT_EVENT_ABORT | XACT_EVENT_PARALLEL_ABORT | XACT_EVENT_PREPARE => forget_if_written(),
        XACT_EVENT_COMMIT | XACT_EVENT_PARALLEL_COMMIT => {}
        _ => return,
    }
    WROTE.set(false);
    TERM_LOCKS.set(0);
    trim_casts();
    layout::forget_locks();
    // Whoever made an offer may have failed before it was withdrawn.
    ahead::offer(Vec::new());
    absent::forget_all();
    distribute::at_transaction_end();
}

#[pg_guard]
unsafe extern "C-unwind" fn at_subtransaction_end(
    event: pg_sys::SubXactEvent::Type,
    subtransaction: pg_sys::SubTransactionId,
    _parent: pg_sys::SubTransactionId,
    _argument: *mut std::ffi::c_void,
) {
    if event == pg_sys::SubXactEvent::SUBXACT_EVENT_ABORT_SUB && !is_exiting() {
        forget_if_written();
        absent::forget_all();
        layout::forget_locks();
        distribute::forget_subtransaction(subtransaction);
    }
}
