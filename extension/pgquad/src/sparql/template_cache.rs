//! The templates that this backend keeps, with their plans: the second query of a shape pays neither parsing nor
//! translation nor planning.
//!
//! All that a template depends on beside the text is part of its key, so there is nothing to invalidate. PostgreSQL
//! watches over the plans. An entry that is in use while it is thrown out lives on until its user is done.

use crate::settings;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::hash::{BuildHasher, Hash};
use std::rc::Rc;

use pgquad_sparql::{DefaultGraph, Form, Graphs, Param, Shape, Target, Template, Translated};
use rustc_hash::{FxBuildHasher, FxHashMap};

use super::parameters::values;
use super::plan::{type_of, Plan};
use super::translate::{translate, try_translate};

thread_local! {
    static CACHE: RefCell<Cache> = RefCell::new(Cache::default());
}

/// How many templates a session may keep.
pub fn size() -> usize {
    settings::TEMPLATE_CACHE_SIZE.get() as usize
}

/// A template with its plan. Most are in the cache.
pub struct Entry {
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

impl Entry {
    /// What the template was made of.
    pub fn translated(&self) -> &Translated {
        self.template.translated()
    }

    /// The plan, made if need be; the parameters of the query at hand say what to expect.
    pub fn plan(&self, params: &[Param]) -> Rc<Plan> {
        let kept = self.plan.borrow().clone();
        if let Some(plan) = kept.filter(|plan| plan.is_current()) {
            return plan;
        }
        let undecoded = &self.translated().undecoded;
        let types: Vec<_> = undecoded.params.iter().map(|p| type_of(p.kind)).collect();
        let sql = undecoded.sql();
        let plan = Rc::new(if self.kept {
            Plan::settle(&sql, &types, &values(params))
        } else {
            Plan::prepare(&sql, &types)
        });
        *self.plan.borrow_mut() = Some(plan.clone());
        plan
    }
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
    distributed: bool,
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

/// A template and the values that its parameters have in a query.
pub type Filled = (Rc<Entry>, Vec<Param>);

/// What the cache says of a query.
enum Found {
    Filled(Filled),
    /// Its shape has no template, or not for these constants.
    NoTemplate,
    Unknown,
}

/// The template of a query, from the cache or made anew. Raises the errors of [`translate()`].
pub fn template_of(text: &str, target: Target<'_>, base: Option<&str>) -> Filled {
    if size() == 0 || text.len() > Shape::MAX_TEXT_BYTES {
        return alone(translate(text, target, base), text, target, false);
    }
    let key = |text: &str, whole| Key {
        table: target.table.to_owned(),
        default_graph: target.default_graph,
        graphs: target.graphs.cloned(),
        distributed: target.distributed,
        base: base.map(str::to_owned),
        text: text.to_owned(),
        whole,
    };
    let mut translated = None;
    if let Some(shape) = Shape::of(text) {
        let key = key(shape.key(), false);
        match find(&key, |template| template.params(shape.constants())) {
            Found::Filled(filled) => return filled,
            Found::NoTemplate => {}
            Found::Unknown => {
                let own = translate(text, target, base);
                let template =
                    Template::of_shape(&shape, &own, |text| try_translate(text, target, base));
                if let Some(template) = template {
                    let entry = entry(template, shape.readable(), target, true);
                    keep(key, Known::Template(entry.clone()));
                    let params = own.undecoded.params;
                    return (entry, params);
                }
                keep(key, Known::None(Cell::new(0)));
                translated = Some(own);
            }
        }
    }
    let key = key(text, true);
    if let Found::Filled(found) = find(&key, |t| Some(t.translated().undecoded.params.clone())) {
        return found;
    }
    let translated = translated.unwrap_or_else(|| translate(text, target, base));
    let again = CACHE.with_borrow_mut(|cache| cache.is_seen(&key));
    let filled = alone(translated, text, target, again);
    if again {
        keep(key, Known::Template(filled.0.clone()));
    }
    filled
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
        Found::Filled((entry, params))
    })
}

fn keep(key: Key, known: Known) {
    CACHE.with_borrow_mut(|cache| {
        cache.misses += i64::from(matches!(known, Known::Template(_)));
        cache.put(key, known);
    });
}

/// A query that is its own template. `kept`: it will be in the cache.
fn alone(translated: Translated, text: &str, target: Target<'_>, kept: bool) -> Filled {
    let params = translated.undecoded.params.clone();
    let entry = entry(Template::of_one(translated), text.to_owned(), target, kept);
    (entry, params)
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

/// A template as the view of the cache shows it.
pub struct Listed {
    pub form: Form,
    pub table: String,
    pub text: String,
    pub hits: i64,
    /// How often its SQL took a plan for all constants, and one for those at hand.
    pub plans: (i64, i64),
}

/// The templates of this session, the last used first.
pub fn listed() -> Vec<Listed> {
    let mut rows: Vec<_> = CACHE.with_borrow(|cache| {
        let entries = cache.templates.values().filter_map(|known| match known {
            Known::Template(entry) => Some(entry),
            Known::None(_) => None,
        });
        entries
            .map(|entry| {
                let plan = entry.plan.borrow();
                let row = Listed {
                    form: entry.translated().form,
                    table: entry.table.clone(),
                    text: entry.text.clone(),
                    hits: entry.hits.get(),
                    plans: plan.as_ref().map_or((0, 0), |plan| plan.counts()),
                };
                (entry.used.get(), row)
            })
            .collect()
    });
    rows.sort_by_key(|(used, _)| std::cmp::Reverse(*used));
    rows.into_iter().map(|(_, row)| row).collect()
}

/// What the cache did in this session.
pub struct Counts {
    pub templates: i64,
    pub hits: i64,
    pub misses: i64,
    pub evictions: i64,
}

/// The counters of this session.
pub fn counts() -> Counts {
    CACHE.with_borrow(|cache| {
        let templates = cache.templates.values();
        let templates = templates.filter(|known| matches!(known, Known::Template(_)));
        Counts {
            templates: templates.count() as i64,
            hits: cache.hits,
            misses: cache.misses,
            evictions: cache.evictions,
        }
    })
}

/// Forgets all templates of this session and sets its counters to zero.
pub fn reset() {
    CACHE.take();
}
