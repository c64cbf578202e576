//! The templates that this backend keeps, with their plans: the second query of a shape pays neither parsing nor
//! translation nor planning.
//!
//! All that a template depends on beside the text is part of its key, so there is nothing to invalidate. PostgreSQL
//! watches over the plans. An entry that is in use while it is thrown out lives on until its user is done.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::hash::{BuildHasher, Hash};
use std::rc::Rc;

use pgquad_sparql::{
    DefaultGraph, Form, Graphs, Output, Param, Shape, Target, Template, Translated,
};
use pgrx::guc::{GucContext, GucFlags, GucRegistry, GucSetting};
use pgrx::prelude::*;
use rustc_hash::{FxBuildHasher, FxHashMap};

use super::execute::values;
use super::plan::{type_of, Plan};
use super::{request, statements};

static SIZE: GucSetting<i32> = GucSetting::<i32>::new(200);

thread_local! {
    static CACHE: RefCell<Cache> = RefCell::new(Cache::default());
}

/// Defines the settings of this module; called once from `_PG_init`.
pub fn init() {
    GucRegistry::define_int_guc(
        c"quad.template_cache_size",
        c"Number of templates of SPARQL queries, and of plans of updates, that each session keeps.",
        c"0 translates and plans every query anew.",
        &SIZE,
        0,
        100_000,
        GucContext::Userset,
        GucFlags::default(),
    );
}

/// How many templates a session may keep.
pub fn size() -> usize {
    SIZE.get() as usize
}

/// What a query is translated to, ready to be run with its own constants.
pub struct Prepared {
    entry: Rc<Entry>,
    /// Values of the parameters.
    pub params: Vec<Param>,
}

impl Prepared {
    /// Form of the query.
    pub fn form(&self) -> Form {
        self.entry.template.translated().form
    }

    /// Names of the columns of the answer.
    pub fn columns(&self) -> &[String] {
        &self.entry.template.translated().columns
    }

    /// How the columns of the answer are read.
    pub fn outputs(&self) -> &[Output] {
        &self.entry.template.translated().undecoded.outputs
    }

    /// The plan, made if need be.
    pub fn plan(&self) -> Rc<Plan> {
        let kept = self.entry.plan.borrow().clone();
        if let Some(plan) = kept.filter(|plan| plan.is_current()) {
            return plan;
        }
        let undecoded = &self.entry.template.translated().undecoded;
        let types: Vec<_> = undecoded.params.iter().map(|p| type_of(p.kind)).collect();
        let sql = undecoded.sql();
        let plan = Rc::new(if self.entry.kept {
            Plan::settle(&sql, &types, &values(&self.params))
        } else {
            Plan::prepare(&sql, &types)
        });
        *self.entry.plan.borrow_mut() = Some(plan.clone());
        plan
    }
}

/// A template in the cache.
struct Entry {
    template: Template,
    /// The text with numbers for constants; the whole text of a query that is its own template.
    text: String,
    table: String,
    /// Whether it is in the cache, so that there will be more queries of it.
    kept: bool,
    plan: RefCell<Option<Rc<Plan>>>,
    hits: Cell<i64>,
    /// When it was last used, in queries of this backend.
    used: Cell<u64>,
}

/// What is known of a shape.
enum Known {
    Template(Rc<Entry>),
    /// Its texts have to be translated one by one.
    None(Cell<u64>),
}

impl Known {
    fn used(&self) -> &Cell<u64> {
        match self {
            Known::Template(entry) => &entry.used,
            Known::None(used) => used,
        }
    }
}

/// What a template is good for.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Key {
    table: String,
    default_graph: DefaultGraph,
    graphs: Option<Graphs>,
    base: Option<String>,
    /// The key of the shape, or a whole text.
    text: String,
    whole: bool,
}

#[derive(Default)]
struct Cache {
    templates: FxHashMap<Key, Known>,
    /// Hashes of the last whole texts that came for the first time.
    seen: VecDeque<u64>,
    clock: u64,
    hits: i64,
    misses: i64,
    evictions: i64,
}

impl Cache {
    fn get(&mut self, key: &Key) -> Option<&Known> {
        self.clock += 1;
        let known = self.templates.get(key)?;
        known.used().set(self.clock);
        Some(known)
    }

    /// Whether the key has come before. Most texts that are their own templates never come again, and would drive out
    /// those that do.
    fn is_seen(&mut self, key: &Key) -> bool {
        let hash = FxBuildHasher.hash_one(key);
        if self.seen.contains(&hash) {
            return true;
        }
        self.seen.truncate(size().saturating_sub(1));
        self.seen.push_front(hash);
        false
    }

    fn put(&mut self, key: Key, known: Known) {
        while self.templates.len() >= size().max(1) {
            let oldest = self
                .templates
                .iter()
                .min_by_key(|(_, known)| known.used().get())
                .map(|(key, _)| key.clone());
            if oldest.is_some_and(|key| self.templates.remove(&key).is_some()) {
                self.evictions += 1;
            }
        }
        known.used().set(self.clock);
        self.templates.insert(key, known);
    }
}

/// What the cache says of a query.
enum Found {
    Prepared(Prepared),
    /// Its shape has no template, or not for these constants.
    NoTemplate,
    Unknown,
}

/// A query, translated or from the cache. Raises the errors of [`request::translate`].
pub fn prepare(text: &str, target: Target<'_>, base: Option<&str>) -> Prepared {
    if size() == 0 || text.len() > Shape::LONGEST {
        return alone(request::translate(text, target, base), text, target, false);
    }
    let key = |text: &str, whole| Key {
        table: target.table.to_owned(),
        default_graph: target.default_graph,
        graphs: target.graphs.cloned(),
        base: base.map(str::to_owned),
        text: text.to_owned(),
        whole,
    };
    let mut translated = None;
    if let Some(shape) = Shape::of(text) {
        let key = key(shape.key(), false);
        match find(&key, |template| template.params(shape.constants())) {
            Found::Prepared(prepared) => return prepared,
            Found::NoTemplate => {}
            Found::Unknown => {
                let own = request::translate(text, target, base);
                let template = Template::of_shape(&shape, &own, |text| {
                    request::try_translate(text, target, base)
                });
                if let Some(template) = template {
                    let entry = entry(template, shape.readable(), target, true);
                    keep(key, Known::Template(entry.clone()));
                    let params = own.undecoded.params;
                    return Prepared { entry, params };
                }
                keep(key, Known::None(Cell::new(0)));
                translated = Some(own);
            }
        }
    }
    let key = key(text, true);
    if let Found::Prepared(found) = find(&key, |t| Some(t.translated().undecoded.params.clone())) {
        return found;
    }
    let translated = translated.unwrap_or_else(|| request::translate(text, target, base));
    let again = CACHE.with_borrow_mut(|cache| cache.is_seen(&key));
    let prepared = alone(translated, text, target, again);
    if again {
        keep(key, Known::Template(prepared.entry.clone()));
    }
    prepared
}

/// Looks a template up and fills it in.
fn find(key: &Key, params: impl FnOnce(&Template) -> Option<Vec<Param>>) -> Found {
    CACHE.with_borrow_mut(|cache| {
        let entry = match cache.get(key) {
            None => return Found::Unknown,
            Some(Known::None(_)) => return Found::NoTemplate,
            Some(Known::Template(entry)) => entry.clone(),
        };
        let Some(params) = params(&entry.template) else {
            return Found::NoTemplate;
        };
        entry.hits.set(entry.hits.get() + 1);
        cache.hits += 1;
        Found::Prepared(Prepared { entry, params })
    })
}

fn keep(key: Key, known: Known) {
    CACHE.with_borrow_mut(|cache| {
        cache.misses += i64::from(matches!(known, Known::Template(_)));
        cache.put(key, known);
    });
}

/// A query that is its own template. `kept`: it will be in the cache.
fn alone(translated: Translated, text: &str, target: Target<'_>, kept: bool) -> Prepared {
    let params = translated.undecoded.params.clone();
    let entry = entry(Template::of_one(translated), text.to_owned(), target, kept);
    Prepared { entry, params }
}

fn entry(template: Template, text: String, target: Target<'_>, kept: bool) -> Rc<Entry> {
    Rc::new(Entry {
        template,
        text,
        table: target.table.to_owned(),
        kept,
        plan: RefCell::new(None),
        hits: Cell::new(0),
        used: Cell::new(0),
    })
}

/// The templates that this session keeps, the last used first. A template is the text of its queries with `$1`, `$2`,
/// ... for the constants that may differ; a text without them stands for itself. `hits` counts the queries that found
/// it; the last two columns say how often its SQL took a plan for all constants and one for those at hand.
#[pg_extern(volatile)]
#[allow(clippy::type_complexity)]
fn template_cache() -> TableIterator<
    'static,
    (
        name!(kind, String),
        name!(store, String),
        name!(template, String),
        name!(hits, i64),
        name!(generic_plans, i64),
        name!(custom_plans, i64),
    ),
> {
    let mut rows: Vec<_> = CACHE.with_borrow(|cache| {
        let entries = cache.templates.values().filter_map(|known| match known {
            Known::Template(entry) => Some(entry),
            Known::None(_) => None,
        });
        entries
            .map(|entry| {
                let plan = entry.plan.borrow();
                let (generic, custom) = plan.as_ref().map_or((0, 0), |plan| plan.counts());
                let row = (
                    request::name_of(entry.template.translated().form).to_owned(),
                    entry.table.clone(),
                    entry.text.clone(),
                    entry.hits.get(),
                    generic,
                    custom,
                );
                (entry.used.get(), row)
            })
            .collect()
    });
    rows.sort_by_key(|(used, _)| std::cmp::Reverse(*used));
    TableIterator::new(rows.into_iter().map(|(_, row)| row))
}

/// What the cache of templates did in this session. It counts queries that found their template, queries that made one,
/// and templates that gave way to others. It also counts plans of updates that are kept, and how often one was found.
#[pg_extern(volatile)]
fn template_cache_stats() -> TableIterator<
    'static,
    (
        name!(templates, i64),
        name!(hits, i64),
        name!(misses, i64),
        name!(evictions, i64),
        name!(update_plans, i64),
        name!(update_hits, i64),
    ),
> {
    TableIterator::once(CACHE.with_borrow(|cache| {
        let templates = cache.templates.values();
        let templates = templates.filter(|known| matches!(known, Known::Template(_)));
        let (update_plans, update_hits) = statements::counts();
        (
            templates.count() as i64,
            cache.hits,
            cache.misses,
            cache.evictions,
            update_plans,
            update_hits,
        )
    }))
}

/// Forgets all templates of this session and sets its counters to zero.
#[pg_extern(volatile)]
fn template_cache_reset() {
    CACHE.take();
    statements::reset();
}
