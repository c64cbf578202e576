//! Locks of the dictionary that are none of tables: of single terms, of shards, of the numbers.

use pgrx::pg_sys;

use crate::cluster::{as_superuser, lock_shards};

/// What is locked; the fourth field of the lock tag. SQL's own advisory locks have 1 and 2 there, Citus those up to 16.
#[derive(Clone, Copy)]
#[repr(u16)]
enum Class {
    Term = 0x5154,
    Shard = 0x5155,
    Numbers = 0x5156,
}

/// Makes sure that no other transaction adds the term with this hash before this one ends.
pub fn term(hash: u128) {
    acquire(Class::Term, (hash >> 64) as u64);
}

/// Makes sure that none of these shards (by Citus' numbers, ascending) is moved or split before this transaction ends.
/// Whoever moves or splits one holds Citus' lock of its metadata on every node.
pub fn against_moves(ids: &[u64]) {
    as_superuser(|| lock_shards(ids));
}

/// Makes sure that no other transaction adds to a shard (by Citus' number) before this one ends.
pub fn shard(id: u64) {
    acquire(Class::Shard, id);
}

/// A lock that does not last until the transaction ends, unless by an error.
pub struct Held(pg_sys::LOCKTAG);

impl Held {
    /// The lock of whoever sets the sequence of numbers.
    pub fn all_numbers() -> Self {
        Held(acquire(Class::Numbers, 0))
    }

    /// Gives it back.
    pub fn release(self) {
        // SAFETY: acquired in this transaction.
        unsafe { pg_sys::LockRelease(&self.0, pg_sys::ExclusiveLock as pg_sys::LOCKMODE, false) };
    }
}

/// Takes a lock of the kind that SQL's advisory locks are, released by PostgreSQL when the transaction ends.
fn acquire(class: Class, number: u64) -> pg_sys::LOCKTAG {
    // SAFETY: plain data, and a lock.
    unsafe {
        let tag = pg_sys::LOCKTAG {
            locktag_field1: pg_sys::MyDatabaseId.into(),
            locktag_field2: (number >> 32) as u32,
            locktag_field3: number as u32,
            locktag_field4: class as u16,
            locktag_type: pg_sys::LockTagType::LOCKTAG_ADVISORY as u8,
            locktag_lockmethodid: pg_sys::USER_LOCKMETHOD as u8,
        };
        let mode = pg_sys::ExclusiveLock as pg_sys::LOCKMODE;
        pg_sys::LockAcquire(&tag, mode, false, false);
        tag
    }
}
