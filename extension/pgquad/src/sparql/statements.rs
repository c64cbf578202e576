//! Plans of the statements of updates, by their SQL: requests that differ in their constants only have the same.

use std::cell::{Cell, RefCell};
use std::collections::hash_map::RandomState;
use std::rc::Rc;

use pgquad_sparql::{Shape, Statement};
use pgquad_term::cache::Cache;
use pgrx::pg_sys;

use super::plan::{type_of, Plan};
use super::template_cache;

type Key = (String, Vec<pg_sys::Oid>);

thread_local! {
    static PLANS: RefCell<Cache<Key, Rc<Plan>, RandomState>> = RefCell::new(Cache::new(0));
    static HITS: Cell<i64> = const { Cell::new(0) };
}

/// The plan of a statement of an update.
pub fn plan_of(statement: &Statement) -> Rc<Plan> {
    let types = statement.params.iter().map(|p| type_of(p.kind)).collect();
    plan(statement.sql(), types)
}

/// The plan of an SQL text with parameters of these types.
pub fn plan(sql: String, types: Vec<pg_sys::Oid>) -> Rc<Plan> {
    let size = template_cache::size();
    if size == 0 || sql.len() > Shape::MAX_TEXT_BYTES {
        return Rc::new(Plan::prepare(&sql, &types));
    }
    let key = (sql, types);
    let kept = PLANS.with_borrow_mut(|plans| plans.get(&key, |_| 1));
    if let Some(plan) = kept.filter(|plan| plan.is_current()) {
        HITS.set(HITS.get() + 1);
        return plan;
    }
    let plan = Rc::new(Plan::settle(&key.0, &key.1, &[]));
    PLANS.with_borrow_mut(|plans| {
        // The limit is that of two generations.
        plans.set_limit(2 * size);
        plans.put(key, plan.clone(), 1);
    });
    plan
}

/// How many plans are kept, and how often one of them was found.
pub fn counts() -> (i64, i64) {
    (PLANS.with_borrow(Cache::len) as i64, HITS.get())
}

/// Forgets all plans.
pub fn reset() {
    PLANS.with_borrow_mut(Cache::clear);
    HITS.set(0);
}
