//! Terms and ids of a distributed dictionary, kept in shared memory for all sessions of this node. So a new session
//! neither asks other nodes again for what another one knows, nor reads it again from the shards of this node.
//!
//! Only what is committed on its node gets here, and a term keeps its id for ever, so that nothing goes stale. Keys
//! name the cluster, by its secret, the database and the tables, so that another dictionary has others.

use std::cell::RefCell;
use std::mem::size_of;
use std::rc::Rc;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering::Relaxed};

use pgquad_cluster::ring_cache::{self, hash, Age, Key};
use pgquad_term::TermId;
use pgrx::pg_sys;

use super::layout::Layout;
use crate::cluster::{is_secret_known, number_of_cluster};
use crate::pg::shared_memory::Piece;
use crate::settings;

/// Pieces with a lock each: sessions that put terms in wait for each other only where they use the same one.
const PARTITIONS: usize = 16;

/// Most terms of a message that are kept, or looked up one by one. More terms are a scan, which would displace what
/// small queries ask for again.
pub const MAX_TERMS_AT_ONCE: usize = 256;

/// Part of `shared_buffers` that the cache has by itself, and at least: a cluster has no buffers for terms of other
/// nodes. Explore 10M on eight nodes with shared_buffers of 512 MB, 16 clients: 64 MB give 1.2 times the mixes of 16
/// MB, 160 MB give 1.28 times.
const PART_OF_SHARED_BUFFERS: usize = 4;
const LEAST_BYTES: usize = 8 << 20;
/// And at most: it is cleared when the server starts, used or not.
const MOST_BYTES: usize = 1 << 30;

/// Partitions have room for some terms of usual size, or there are none.
const MIN_WORDS: usize = 512;

/// Locks of the partitions, and then their memory.
#[repr(C)]
struct Shared {
    locks: [pg_sys::LWLockPadded; PARTITIONS],
}

static SHARED: AtomicPtr<Shared> = AtomicPtr::new(std::ptr::null_mut());
/// Words of memory of each partition.
static WORDS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// The first words of keys about terms and about ids, for a layout of the dictionary.
    static FIRST_WORDS: RefCell<Option<(Rc<Layout>, [u64; 2])>> = const { RefCell::new(None) };
}

/// The pieces. Only servers of a cluster have a distributed dictionary.
pub const PIECE: Piece = Piece {
    name: c"pgquad terms",
    bytes: || match words() {
        0 => 0,
        words => size_of::<Shared>() + PARTITIONS * words * size_of::<u64>(),
    },
    start: |piece, is_new| {
        let shared = piece.cast::<Shared>();
        if is_new {
            // SAFETY: nobody else has the piece yet, which begins with the locks; the name lasts as long as the server.
            unsafe {
                let tranche = pg_sys::LWLockNewTrancheId();
                pg_sys::LWLockRegisterTranche(tranche, c"PgquadTerms".as_ptr());
                for lock in &mut (*shared).locks {
                    pg_sys::LWLockInitialize(&raw mut lock.lock, tranche);
                }
            }
        }
        WORDS.store(words(), Relaxed);
        SHARED.store(shared, Relaxed);
    },
};

/// Words of memory that each partition is to have.
fn words() -> usize {
    let bytes = match usize::try_from(settings::SHARED_DICTIONARY_CACHE.get()) {
        Ok(kilobytes) => kilobytes * 1024,
        // SAFETY: a setting of the server.
        Err(_) => unsafe { pg_sys::NBuffers as usize * pg_sys::BLCKSZ as usize }
            .div_ceil(PART_OF_SHARED_BUFFERS)
            .clamp(LEAST_BYTES, MOST_BYTES),
    };
    let words = bytes / PARTITIONS / size_of::<u64>();
    match words >= MIN_WORDS && is_citus_preloaded() {
        true => words,
        false => 0,
    }
}

fn is_citus_preloaded() -> bool {
    // SAFETY: the text of a setting, or null.
    let libraries = unsafe {
        let text = pg_sys::shared_preload_libraries_string;
        match text.is_null() {
            true => return false,
            false => std::ffi::CStr::from_ptr(text).to_string_lossy(),
        }
    };
    libraries.split(',').any(|library| {
        let name = library.trim().trim_matches('"');
        name.rsplit('/').next() == Some("citus")
    })
}

/// What a record is about.
#[derive(Clone, Copy)]
enum Kind {
    Term,
    Id,
}

/// Whether what is read of shards here can be looked up and kept: there is shared memory, the dictionary is
/// distributed, and the session knows its cluster. To be called outside of the session's state: it may run a query.
pub fn is_ready() -> bool {
    if SHARED.load(Relaxed).is_null() {
        return false;
    }
    let layout = Layout::current();
    if layout.shards.is_none() || known_words(&layout).is_none() && !is_secret_known() {
        return false;
    }
    // Looks up what depends on the secret.
    first_word(Kind::Term);
    true
}

fn known_words(layout: &Rc<Layout>) -> Option<[u64; 2]> {
    FIRST_WORDS.with_borrow(|words| {
        let words = words.as_ref();
        words.and_then(|(of, words)| Rc::ptr_eq(of, layout).then_some(*words))
    })
}

/// The first word of keys of a kind: a hash of the cluster, the database, the tables of the dictionary, and the kind.
fn first_word(kind: Kind) -> u64 {
    let layout = Layout::current();
    let words = known_words(&layout).unwrap_or_else(|| {
        // SAFETY: plain session state.
        let database = unsafe { pg_sys::MyDatabaseId }.to_u32();
        let tables = u64::from(database) << 32 | u64::from(layout.number());
        let cluster = number_of_cluster();
        let words = [Kind::Term, Kind::Id].map(|kind| hash(&[cluster, tables, kind as u64]));
        FIRST_WORDS.set(Some((layout, words)));
        words
    });
    words[kind as usize]
}

/// Runs `body` on the partition of a key, under its lock; `None` where there is no shared memory.
fn with_partition<T>(
    key: &Key,
    mode: pg_sys::LWLockMode::Type,
    body: impl FnOnce(*mut u64, usize) -> T,
) -> Option<T> {
    let shared = SHARED.load(Relaxed);
    if shared.is_null() {
        return None;
    }
    let (words, partition) = (WORDS.load(Relaxed), (hash(key) >> 60) as usize % PARTITIONS);
    // SAFETY: the piece has the locks and then so many words for each partition, and lasts as long as the server. The
    // lock is released by PostgreSQL where `body` raises an error.
    unsafe {
        let lock = &raw mut (*shared).locks[partition].lock;
        let memory = shared.add(1).cast::<u64>().add(partition * words);
        pg_sys::LWLockAcquire(lock, mode);
        let result = body(memory, words);
        pg_sys::LWLockRelease(lock);
        Some(result)
    }
}

fn get(key: &Key, found: &mut Vec<u8>) -> bool {
    found.clear();
    let age = with_partition(key, pg_sys::LWLockMode::LW_SHARED, |memory, words| {
        // SAFETY: the partition; nobody changes it while its lock is held.
        let memory = unsafe { std::slice::from_raw_parts(memory, words) };
        ring_cache::get(memory, key, found)
    });
    let age = age.flatten();
    if age == Some(Age::Old) {
        put(key, found);
    }
    age.is_some()
}

fn put(key: &Key, bytes: &[u8]) {
    with_partition(key, pg_sys::LWLockMode::LW_EXCLUSIVE, |memory, words| {
        // SAFETY: the partition; nobody else uses it while its lock is held.
        let memory = unsafe { std::slice::from_raw_parts_mut(memory, words) };
        ring_cache::put(memory, key, bytes);
    });
}

/// Calls `each` with the place of each number whose term is kept, and the term in its encoded form. Returns the places
/// of the others.
pub fn terms(numbers: &[u64], mut each: impl FnMut(usize, &str)) -> Vec<usize> {
    let places = 0..numbers.len();
    if numbers.len() > MAX_TERMS_AT_ONCE || SHARED.load(Relaxed).is_null() {
        return places.collect();
    }
    let (first, mut found) = (first_word(Kind::Term), Vec::new());
    let is_missing = |&place: &usize| {
        if get(&[first, numbers[place], 0], &mut found) {
            if let Ok(text) = std::str::from_utf8(&found) {
                each(place, text);
                return false;
            }
        }
        true
    };
    places.filter(is_missing).collect()
}

/// Keeps a term that is committed.
pub fn keep_term(number: u64, text: &str) {
    if !SHARED.load(Relaxed).is_null() {
        put(&[first_word(Kind::Term), number, 0], text.as_bytes());
    }
}

fn id_key(first: u64, hash: u128) -> Key {
    [first, (hash >> 64) as u64, hash as u64]
}

/// Calls `each` with the places whose hash of a term has an id in the cache, and returns the others.
pub fn ids(places: Vec<usize>, hashes: &[u128], mut each: impl FnMut(usize, TermId)) -> Vec<usize> {
    if places.len() > MAX_TERMS_AT_ONCE || places.is_empty() || SHARED.load(Relaxed).is_null() {
        return places;
    }
    let (first, mut found) = (first_word(Kind::Id), Vec::new());
    let is_missing = |&place: &usize| {
        if get(&id_key(first, hashes[place]), &mut found) {
            if let Ok(id) = <[u8; 8]>::try_from(&found[..]) {
                each(place, TermId(u64::from_ne_bytes(id)));
                return false;
            }
        }
        true
    };
    places.into_iter().filter(is_missing).collect()
}

/// Keeps the id of a term with this hash, which is committed.
pub fn keep_id(hash: u128, id: TermId) {
    if !SHARED.load(Relaxed).is_null() {
        put(&id_key(first_word(Kind::Id), hash), &id.0.to_ne_bytes());
    }
}
