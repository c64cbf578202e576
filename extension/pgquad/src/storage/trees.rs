//! The trees of a table for reading, and the metapage in the relation's cache entry.

use super::buffers::RelationStore;
use super::error::fail;
use super::inner_page_cache::{self, ReadTrees};
use pgquad_btree::{InnerPageCache, Meta, Tree};
use pgrx::pg_sys;
use std::rc::Rc;

/// Forgets the metapage kept with a relation's cache entry, whose file has got other contents.
///
/// # Safety
/// `rel` is an open quad table.
pub unsafe fn forget_meta(rel: pg_sys::Relation) {
    // SAFETY: `rd_amcache` is ours, see `cached_meta`.
    unsafe {
        inner_page_cache::forget((*rel).rd_id);
        if !(*rel).rd_amcache.is_null() {
            pg_sys::pfree((*rel).rd_amcache);
            (*rel).rd_amcache = std::ptr::null_mut();
        }
    }
}

/// The trees of a relation for reading, which go by what this session remembers of their inner pages.
///
/// # Safety
/// `rel` is an open quad table with a file, and outlives the value.
pub unsafe fn trees_to_read(rel: pg_sys::Relation) -> Rc<ReadTrees> {
    // SAFETY: the caller's promise.
    unsafe {
        let store = RelationStore::new(rel);
        let meta = cached_meta(rel, &store);
        let make = |caches: &[Rc<InnerPageCache>]| {
            let tree = |(n, cache): (usize, &Rc<InnerPageCache>)| {
                let tree = Tree::new(store, meta, n).unwrap_or_else(|e| fail(e));
                tree.with_inner_page_cache(cache.clone())
            };
            let trees: Vec<_> = caches.iter().enumerate().map(tree).collect();
            ReadTrees {
                orders: trees.iter().map(|tree| tree.order()).collect(),
                trees,
            }
        };
        inner_page_cache::trees(rel, meta.orders().len(), make)
    }
}

/// One of [`trees_to_read`].
///
/// # Safety
/// `rel` is an open quad table with a file, and outlives the value.
pub unsafe fn tree_to_read(rel: pg_sys::Relation, n: usize) -> Tree<RelationStore> {
    // SAFETY: the caller's promise.
    unsafe {
        let store = RelationStore::new(rel);
        let meta = cached_meta(rel, &store);
        let tree = Tree::new(store, meta, n).unwrap_or_else(|e| fail(e));
        tree.with_inner_page_cache(inner_page_cache::of(rel, meta.orders().len())[n].clone())
    }
}

/// The metapage, from the relation's cache entry if it is there.
///
/// # Safety
/// `rel` is an open quad table with a file; the metapage is not used when invalidations may have been taken in since.
pub(super) unsafe fn cached_meta<'a>(rel: pg_sys::Relation, store: &RelationStore) -> &'a Meta {
    // SAFETY: `rd_amcache` is ours: null, or a Meta put there below, freed by the relation cache with the entry's
    // contents.
    unsafe {
        let cached = (*rel).rd_amcache.cast::<Meta>();
        if let Some(meta) = cached.as_ref() {
            return meta;
        }
        let meta = Meta::read(store).unwrap_or_else(|e| fail(e));
        let place = pg_sys::MemoryContextAlloc(pg_sys::CacheMemoryContext, size_of::<Meta>());
        place.cast::<Meta>().write(meta);
        (*rel).rd_amcache = place;
        &*place.cast::<Meta>()
    }
}
