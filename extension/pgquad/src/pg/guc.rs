//! Settings of the storage layer and of SPARQL.

use super::error::raise;
use super::replan;
use pgquad_sparql::DefaultGraph;
use pgrx::prelude::*;
use pgrx::{GucContext, GucFlags, GucRegistry, GucSetting, PgSqlErrorCode, PostgresGucEnum};
use std::ffi::{c_char, c_void, CStr, CString};

/// Orders of a new `quad` table: `quad.orders`.
pub static ORDERS: GucSetting<Option<CString>> =
    GucSetting::<Option<CString>>::new(Some(c"spog,posg,ospg"));
/// Maximum children per inner page of a new table, one number or one per order: `quad.inner_fanout`.
pub static INNER_FANOUT: GucSetting<Option<CString>> =
    GucSetting::<Option<CString>>::new(Some(c"0"));
/// Maximum quads per leaf of a new table, one number or one per order: `quad.leaf_quads`.
pub static LEAF_QUADS: GucSetting<Option<CString>> = GucSetting::<Option<CString>>::new(Some(c"0"));
/// Whether the planner may use `Quad Scan`: `quad.enable_quad_scan`.
pub static ENABLE_QUAD_SCAN: GucSetting<bool> = GucSetting::<bool>::new(true);
/// Whether the planner may use `Quad Join`: `quad.enable_quad_join`.
pub static ENABLE_QUAD_JOIN: GucSetting<bool> = GucSetting::<bool>::new(true);
/// Whether the planner may use `Quad Groups`: `quad.enable_quad_groups`.
pub static ENABLE_QUAD_GROUPS: GucSetting<bool> = GucSetting::<bool>::new(true);
/// Whether the planner may use `Quad Walk`: `quad.enable_quad_walk`.
pub static ENABLE_QUAD_WALK: GucSetting<bool> = GucSetting::<bool>::new(true);
/// Whether a shard that moves is copied as sorted runs: `quad.move_as_sorted_runs`.
pub static MOVE_AS_SORTED_RUNS: GucSetting<bool> = GucSetting::<bool>::new(true);
/// Most rows of a batch of `Quad Join`: `quad.join_batch_size`.
pub static JOIN_BATCH_SIZE: GucSetting<i32> = GucSetting::<i32>::new(10_000);

/// Where the quads of a distributed store meet the rows that they are joined with: `quad.exchange_mode`.
pub static EXCHANGE_MODE: GucSetting<ExchangeMode> =
    GucSetting::<ExchangeMode>::new(ExchangeMode::Auto);

/// Values of `quad.exchange_mode`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, PostgresGucEnum)]
pub enum ExchangeMode {
    /// By what the join is expected to find.
    #[name = c"auto"]
    Auto,
    /// The quads come to the node that was asked.
    #[name = c"pull"]
    Pull,
    /// The rows go from node to node.
    #[name = c"push"]
    Push,
}

/// Default graph of requests that name none: `quad.default_graph`.
pub static DEFAULT_GRAPH: GucSetting<DefaultGraphSetting> =
    GucSetting::<DefaultGraphSetting>::new(DefaultGraphSetting::Default);

/// Values of `quad.default_graph`.
#[derive(Clone, Copy, Debug, PostgresGucEnum)]
pub enum DefaultGraphSetting {
    /// The default graph of the store.
    #[name = c"default"]
    Default,
    /// The merge of all graphs.
    #[name = c"union"]
    Union,
}

impl From<DefaultGraphSetting> for DefaultGraph {
    fn from(setting: DefaultGraphSetting) -> Self {
        match setting {
            DefaultGraphSetting::Default => Self::Own,
            DefaultGraphSetting::Union => Self::Union,
        }
    }
}

/// Registers the settings; called once from `_PG_init`.
pub fn init() {
    GucRegistry::define_string_guc(
        c"quad.orders",
        c"Orders of a new quad table, comma separated permutations of s, p, o and g.",
        c"Read when the table is created and kept in its metapage.",
        &ORDERS,
        GucContext::Userset,
        GucFlags::default(),
    );
    GucRegistry::define_string_guc(
        c"quad.inner_fanout",
        c"Maximum children per inner page of a new quad table; one number or one per order, 0 = what fits.",
        c"Read when the table is created and kept in its metapage.",
        &INNER_FANOUT,
        GucContext::Userset,
        GucFlags::default(),
    );
    GucRegistry::define_string_guc(
        c"quad.leaf_quads",
        c"Maximum quads per leaf page of a new quad table; one number or one per order, 0 = what fits.",
        c"Read when the table is created and kept in its metapage.",
        &LEAF_QUADS,
        GucContext::Userset,
        GucFlags::default(),
    );
    // SAFETY: the hook is guarded.
    unsafe {
        GucRegistry::define_enum_guc_with_hooks(
            c"quad.default_graph",
            c"Default graph of SPARQL requests that have neither FROM nor USING clauses.",
            c"default: that of the store; union: all graphs of the store, each triple once.",
            &DEFAULT_GRAPH,
            GucContext::Userset,
            GucFlags::default(),
            None,
            Some(default_graph_changes),
            None,
        );
    }
    GucRegistry::define_bool_guc(
        c"quad.enable_quad_scan",
        c"Lets the planner use Quad Scan, the ordered range scan of quad tables.",
        c"",
        &ENABLE_QUAD_SCAN,
        GucContext::Userset,
        GucFlags::default(),
    );
    GucRegistry::define_bool_guc(
        c"quad.enable_quad_join",
        c"Lets the planner use Quad Join, the pipelined join of all quad tables of a query level.",
        c"",
        &ENABLE_QUAD_JOIN,
        GucContext::Userset,
        GucFlags::default(),
    );
    GucRegistry::define_bool_guc(
        c"quad.enable_quad_groups",
        c"Lets the planner use Quad Groups, which counts and groups quads by counts of the trees and loose scans.",
        c"",
        &ENABLE_QUAD_GROUPS,
        GucContext::Userset,
        GucFlags::default(),
    );
    GucRegistry::define_bool_guc(
        c"quad.enable_quad_walk",
        c"Lets the planner use Quad Walk, which follows quads from node to node for recursive queries.",
        c"",
        &ENABLE_QUAD_WALK,
        GucContext::Userset,
        GucFlags::default(),
    );
    GucRegistry::define_bool_guc(
        c"quad.move_as_sorted_runs",
        c"Copies a shard that moves as sorted runs instead of row by row.",
        c"Off: Citus copies its rows, which takes nearly three times the processor time.",
        &MOVE_AS_SORTED_RUNS,
        GucContext::Suset,
        GucFlags::default(),
    );
    GucRegistry::define_int_guc(
        c"quad.join_batch_size",
        c"Most rows that Quad Join takes from step to step at once.",
        c"Less where work_mem is too small for that.",
        &JOIN_BATCH_SIZE,
        1,
        1_000_000,
        GucContext::Userset,
        GucFlags::default(),
    );
    GucRegistry::define_enum_guc(
        c"quad.exchange_mode",
        c"How Quad Join brings rows and the quads of a distributed store together.",
        c"pull: the quads come to the node that was asked; push: the rows go to the nodes that hold their next quads; auto: by what is to be \
          expected.",
        &EXCHANGE_MODE,
        GucContext::Userset,
        GucFlags::default(),
    );
}

/// Sets a setting until its nesting level ends (`NewGUCNestLevel`, `AtEOXact_GUC`), as the clause SET of a function
/// does.
///
/// # Safety
/// Within a level that was opened, whose end undoes it.
pub unsafe fn set_in_level(name: &CStr, value: *const c_char) {
    // SAFETY: the caller's promise.
    unsafe { set_in_level_as(name, value, pg_sys::GucContext::PGC_USERSET) }
}

/// As [`set_in_level`], with the rights of a user or of a superuser (`PGC_SUSET`).
///
/// # Safety
/// As [`set_in_level`].
pub unsafe fn set_in_level_as(
    name: &CStr,
    value: *const c_char,
    context: pg_sys::GucContext::Type,
) {
    // SAFETY: the caller's promise; both texts are copied.
    unsafe {
        pg_sys::set_config_option(
            name.as_ptr(),
            value,
            context,
            pg_sys::GucSource::PGC_S_SESSION,
            pg_sys::GucAction::GUC_ACTION_SAVE,
            true,
            0,
            false,
        );
    }
}

/// Runs `body` with the settings in force and puts the former values back afterwards (on an error the abort of the
/// transaction does).
pub fn with_settings<T>(settings: &[(&CStr, &str)], body: impl FnOnce() -> T) -> T {
    // SAFETY: opens a nesting level of settings, closed below; names and values are NUL-terminated strings that outlive
    // the calls.
    let level = unsafe { pg_sys::NewGUCNestLevel() };
    for (name, value) in settings {
        let value = CString::new(*value).unwrap_or_else(|_| {
            raise(
                PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
                "an option must not contain a NUL character",
            )
        });
        // SAFETY: as above.
        unsafe {
            set_in_level(name, value.as_ptr());
        }
    }
    let result = body();
    // SAFETY: `level` is the level opened above.
    unsafe { pg_sys::AtEOXact_GUC(true, level) };
    result
}

#[pg_guard]
unsafe extern "C-unwind" fn default_graph_changes(_new: core::ffi::c_int, _extra: *mut c_void) {
    replan::settings_change();
}
