//! The SQL of a query in place of the call of `quad.query`, before the statement is planned.
//!
//! PostgreSQL does so with functions of language SQL only, so a planner hook does it here. What is put in is parsed and
//! rewritten as a statement of the calling user. Rights and policies are the user's, and the plan depends on the tables
//! that it names, as any plan.

use std::ffi::{c_char, c_void, CStr};

use pgquad_sparql::{Form, Graphs, Translated};
use pgrx::pg_sys::NodeTag::{T_CollateExpr, T_Const, T_FuncExpr, T_Query, T_RangeTblFunction};
use pgrx::prelude::*;
use pgrx::{pg_sys, FromDatum, PgSqlErrorCode};

use super::columns::{Column, Columns};
use super::conditions;
use crate::pg::compat;
use crate::pg::error::raise;
use crate::pg::ffi;
use crate::pg::guc;
use crate::pg::list::list_iter;
use crate::pg::replan;
use crate::rights::own_statements;
use crate::sparql::plan::{c_string, Planning};
use crate::sparql::translate;
use crate::term::sql_value::conversion;

static mut PREVIOUS_PLANNER: pg_sys::planner_hook_type = None;

/// Installs the hook. Called once from `_PG_init`, after the hook of `rights::mark`, which must see what this one puts
/// in.
pub fn init() {
    // SAFETY: _PG_init runs once, before any statement.
    unsafe {
        PREVIOUS_PLANNER = pg_sys::planner_hook;
        pg_sys::planner_hook = Some(plan);
    }
}

/// What has been put into a statement.
#[repr(C)]
#[derive(Clone, Copy)]
struct Inlined {
    /// Tables that are named.
    tables: i32,
    /// Policies of row-level security have been applied for the user.
    secured: bool,
    /// Hash of `quad.query` in the catalogue cache of functions.
    hash: u32,
}

/// Plans a statement. Owns nothing that an error would have to drop.
unsafe extern "C-unwind" fn plan(
    query: *mut pg_sys::Query,
    text: *const c_char,
    options: core::ffi::c_int,
    params: pg_sys::ParamListInfo,
) -> *mut pg_sys::PlannedStmt {
    // SAFETY: arguments are PostgreSQL's own and passed on; the planner may change the query, too.
    unsafe {
        let previous = PREVIOUS_PLANNER.unwrap_or(ffi::unguarded::standard_planner);
        let inlined = inline_all(query, text, params);
        if inlined.tables == 0 {
            return previous(query, text, options, params);
        }
        let level = raise_limits(inlined.tables);
        let planned = previous(query, text, options, params);
        // An error leaves that to the end of the (sub)transaction.
        pg_sys::AtEOXact_GUC(true, level);
        note(planned, inlined);
        planned
    }
}

/// Lets the planner see the patterns of queries and the tables around them as one join problem, if its limits would
/// allow that without the patterns. Gives the level of settings that ends that.
#[pg_guard]
unsafe extern "C-unwind" fn raise_limits(tables: i32) -> i32 {
    /// Most tables of one join problem, patterns included: the limit of a SPARQL statement (`Planning`). Patterns are
    /// joined by `Quad Join`, whatever their number.
    const MAX_COLLAPSE_LIMIT: i32 = 100;
    // SAFETY: the settings are integers with these names.
    unsafe {
        let level = pg_sys::NewGUCNestLevel();
        for (name, value) in [
            (c"from_collapse_limit", pg_sys::from_collapse_limit),
            (c"join_collapse_limit", pg_sys::join_collapse_limit),
        ] {
            // 1 asks for joins in the order that is written.
            if value > 1 && value < MAX_COLLAPSE_LIMIT {
                let value = c_string(&(value + tables).min(MAX_COLLAPSE_LIMIT).to_string());
                guc::set_in_level(name, value.as_ptr());
            }
        }
        level
    }
}

/// Makes a plan depend on what its queries were translated for.
#[pg_guard]
unsafe extern "C-unwind" fn note(planned: *mut pg_sys::PlannedStmt, inlined: Inlined) {
    // SAFETY: a live plan, whose memory context is the current one.
    unsafe {
        (*planned).dependsOnRole |= inlined.secured;
        replan::note_dependency(planned, inlined.hash);
    }
}

/// Puts queries into a statement.
#[pg_guard]
unsafe extern "C-unwind" fn inline_all(
    query: *mut pg_sys::Query,
    text: *const c_char,
    params: pg_sys::ParamListInfo,
) -> Inlined {
    let inlined = Inlined {
        tables: 0,
        secured: false,
        hash: 0,
    };
    let mut walk = Walk { params, inlined };
    if !own_statements::contains(query, text) {
        // SAFETY: a live query.
        unsafe { walk.query(query) }
    }
    walk.inlined
}

struct Walk {
    params: pg_sys::ParamListInfo,
    inlined: Inlined,
}

#[pg_guard]
unsafe extern "C-unwind" fn visit(node: *mut pg_sys::Node, walk: *mut c_void) -> bool {
    // SAFETY: a node is cast after a look at its tag; the context is the walk that `Walk::query` has passed.
    unsafe {
        if node.is_null() {
            return false;
        }
        if (*node).type_ == T_Query {
            (*walk.cast::<Walk>()).query(node.cast());
            return false;
        }
        ffi::expression_tree_walker(node, visit, walk)
    }
}

impl Walk {
    /// Looks at a query and those within it.
    unsafe fn query(&mut self, query: *mut pg_sys::Query) {
        // SAFETY: a live query; the walk lives as long as the call.
        unsafe {
            let before = self.inlined.tables;
            ffi::query_tree_walker(query, visit, std::ptr::from_mut(self).cast());
            for entry in list_iter::<pg_sys::RangeTblEntry>((*query).rtable) {
                if (*entry).rtekind == pg_sys::RTEKind::RTE_FUNCTION {
                    self.entry(entry);
                }
            }
            if self.inlined.tables > before && !(*query).jointree.is_null() {
                conditions::offer((*query).jointree.cast());
            }
        }
    }

    /// Puts a query in place of an entry of FROM, if that is one call of `quad.query`, of constants.
    unsafe fn entry(&mut self, entry: *mut pg_sys::RangeTblEntry) {
        // SAFETY: nodes are cast after a look at their tag.
        unsafe {
            let mut functions = list_iter::<pg_sys::RangeTblFunction>((*entry).functions);
            let (Some(function), None) = (functions.next(), functions.next()) else {
                return;
            };
            debug_assert_eq!((*function).type_, T_RangeTblFunction);
            let call = (*function).funcexpr;
            if (*entry).funcordinality || (*call).type_ != T_FuncExpr {
                return;
            }
            let function_oid = (*call.cast::<pg_sys::FuncExpr>()).funcid;
            if !is_ours(call.cast()) || !compat::may_execute(function_oid) {
                return;
            }
            let Some(arguments) = Arguments::of(call, self.params) else {
                return;
            };
            let Some(translated) = arguments.translated() else {
                return;
            };
            let columns = Columns::of_function(function);
            let subquery = analysed(&statement(&translated, &columns));
            collate(subquery, &columns);
            (*entry).rtekind = pg_sys::RTEKind::RTE_SUBQUERY;
            (*entry).subquery = subquery;
            (*entry).security_barrier = false;
            (*entry).lateral = false;
            (*entry).functions = std::ptr::null_mut();
            let mut tables = 0;
            ffi::each_query(subquery, &mut |query| {
                self.inlined.secured |= (*query).hasRowSecurity;
                let entries = list_iter::<pg_sys::RangeTblEntry>((*query).rtable);
                tables += entries.filter(|&entry| compat::is_relation(entry)).count() as i32;
            });
            self.inlined.tables += tables.max(1);
            self.inlined.hash = hash(function_oid);
        }
    }
}

/// Whether a function is `quad.query`.
unsafe fn is_ours(call: *mut pg_sys::FuncExpr) -> bool {
    // SAFETY: a live node; look-ups in the catalogue of palloc'd C strings.
    unsafe {
        let function = (*call).funcid;
        if function.to_u32() < pg_sys::FirstNormalObjectId
            || (*call).funcresulttype != pg_sys::RECORDOID
        {
            return false;
        }
        let is =
            |name: *const c_char, wanted: &CStr| !name.is_null() && CStr::from_ptr(name) == wanted;
        let schema = pg_sys::get_func_namespace(function);
        is(pg_sys::get_func_name(function), c"query")
            && is(pg_sys::get_namespace_name(schema), c"quad")
    }
}

/// The hash of a function in the catalogue cache.
unsafe fn hash(function: pg_sys::Oid) -> u32 {
    let none = pg_sys::Datum::null();
    // SAFETY: computes a hash of the number.
    unsafe {
        pg_sys::GetSysCacheHashValue(
            replan::PROCEDURES,
            pg_sys::Datum::from(function),
            none,
            none,
            none,
        )
    }
}

/// The arguments of a call, checked: NULL only where it may be.
struct Arguments {
    query: String,
    store: Option<String>,
    base: Option<String>,
    graphs: Option<Graphs>,
}

impl Arguments {
    /// The values that the arguments have in this plan: constants, what comes of constants, and parameters of a plan
    /// for their values. `None` where they are known only when the statement runs, or are for the function to refuse.
    unsafe fn of(call: *mut pg_sys::Node, params: pg_sys::ParamListInfo) -> Option<Self> {
        // SAFETY: the copy is of the current memory context; the planner's node lives as long as the call that reads
        // it. The defaults of arguments are put in and the order of named ones is set right by the simplification.
        let constants: Vec<*mut pg_sys::Const> = unsafe {
            let mut global = pg_sys::PlannerGlobal {
                type_: pg_sys::NodeTag::T_PlannerGlobal,
                boundParams: params,
                ..Default::default()
            };
            let mut root = pg_sys::PlannerInfo {
                type_: pg_sys::NodeTag::T_PlannerInfo,
                glob: &mut global,
                ..Default::default()
            };
            let copy = pg_sys::copyObjectImpl(call.cast()).cast();
            let call = pg_sys::eval_const_expressions(&mut root, copy);
            if (*call).type_ != T_FuncExpr {
                return None;
            }
            let arguments = list_iter::<pg_sys::Node>((*call.cast::<pg_sys::FuncExpr>()).args);
            let constant = |node: *mut pg_sys::Node| {
                ((*node).type_ == T_Const).then(|| node.cast::<pg_sys::Const>())
            };
            arguments.map(constant).collect::<Option<_>>()?
        };
        let [query, store, base, default_graphs, named_graphs] = constants.try_into().ok()?;
        // SAFETY: the constants have the types of the arguments: three texts and two arrays of texts.
        unsafe {
            let text =
                |c: *mut pg_sys::Const| String::from_datum((*c).constvalue, (*c).constisnull);
            let texts = |c: *mut pg_sys::Const| {
                Vec::<Option<String>>::from_datum((*c).constvalue, (*c).constisnull)
            };
            Some(Self {
                query: text(query)?,
                store: text(store),
                base: text(base),
                graphs: translate::graphs(texts(default_graphs), texts(named_graphs)),
            })
        }
    }

    /// The query, translated. `None` where the store is not there yet: the first write makes it, and a plan would not
    /// notice that.
    fn translated(&self) -> Option<Translated> {
        let (store, base) = (self.store.as_deref(), self.base.as_deref());
        translate::query_of_existing(&self.query, store, base, self.graphs.as_ref())
    }
}

/// The SQL of a query with the columns that the caller wants.
fn statement(translated: &Translated, columns: &Columns) -> String {
    let places = columns.places(&translated.columns);
    let ask = translated.form == Form::Ask;
    let outputs: Vec<String> = columns
        .0
        .iter()
        .zip(places)
        .map(|(column, place)| {
            let source = pgrx::spi::quote_identifier(&translated.columns[place]);
            let value = match (ask, column.oid) {
                (true, pg_sys::BOOLOID) => format!("v.{source}"),
                (true, _) => of_term(
                    column,
                    &format!("quad.term_from_boolean(v.{source})"),
                    false,
                ),
                (false, _) => of_term(column, &format!("v.{source}"), translated.resources[place]),
            };
            format!("{value} AS {}", pgrx::spi::quote_identifier(&column.name))
        })
        .collect();
    format!(
        "SELECT {}\nFROM (\n{}\n) AS v",
        outputs.join(", "),
        translated.to_standalone_sql()
    )
}

/// SQL that gives a term as the value of a column.
fn of_term(column: &Column, term: &str, resource: bool) -> String {
    conversion(term, column.oid, column.typmod, &column.name, resource)
}

/// A statement after parse analysis and rewriting.
fn analysed(sql: &str) -> *mut pg_sys::Query {
    let text = c_string(sql);
    let _planning = Planning::begin();
    // SAFETY: within the planning of a statement. The text is copied into the memory context, with which the trees go
    // that may point to it.
    unsafe {
        let text = pg_sys::pstrdup(text.as_ptr());
        let raw = pg_sys::list_nth(pg_sys::pg_parse_query(text), 0);
        let none = std::ptr::null_mut();
        let queries =
            pg_sys::pg_analyze_and_rewrite_fixedparams(raw.cast(), text, none, 0, none.cast());
        pg_sys::list_nth(queries, 0).cast()
    }
}

/// Gives columns the collations that they were asked for with. Raises an internal error where their types are others.
unsafe fn collate(subquery: *mut pg_sys::Query, columns: &Columns) {
    // SAFETY: a live query; what is made is of the current memory context, in which it was made, too.
    unsafe {
        let entries = list_iter::<pg_sys::TargetEntry>((*subquery).targetList);
        let mut shown = entries.filter(|entry| !(**entry).resjunk);
        for column in &columns.0 {
            let entry = shown.next().filter(|entry| {
                let expression = (**entry).expr.cast();
                pg_sys::exprType(expression) == column.oid
            });
            let Some(entry) = entry else {
                raise(
                    PgSqlErrorCode::ERRCODE_INTERNAL_ERROR,
                    "the SQL of a query does not have the types that it was made for",
                )
            };
            if pg_sys::exprCollation((*entry).expr.cast()) != column.collation {
                let mut node = PgBox::<pg_sys::CollateExpr>::alloc_node(T_CollateExpr);
                node.arg = (*entry).expr;
                node.collOid = column.collation;
                node.location = -1;
                (*entry).expr = node.into_pg().cast();
            }
        }
    }
}
