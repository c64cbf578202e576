//! Plans of the SQL of SPARQL requests, kept for as long as they are wanted.
//!
//! PostgreSQL itself watches over a kept plan. The plan is made anew when a table or a function it uses has changed, or
//! when row-level security makes it depend on the role. Rights are checked at each execution.

use std::cell::Cell;
use std::ffi::{CStr, CString};
use std::ptr::NonNull;

use pgquad_sparql::ParamKind;
use pgrx::prelude::*;
use pgrx::{pg_sys, PgSqlErrorCode};

use super::joins;
use crate::nodes::scan::BindPeeking;
use crate::pg::compat;
use crate::pg::error::raise;
use crate::rights::own_statements;
use crate::settings::{
    PlanMode, ENABLE_QUAD_GROUPS, ENABLE_QUAD_JOIN, ENABLE_QUAD_SCAN, ENABLE_QUAD_WALK,
    TEMPLATE_PLANS,
};
use crate::term::TermOut;

/// Settings that a plan is made under.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Settings {
    mode: PlanMode,
    quad_scan: bool,
    quad_join: bool,
    quad_groups: bool,
    quad_walk: bool,
}

impl Settings {
    fn current() -> Self {
        Self {
            mode: TEMPLATE_PLANS.get(),
            quad_scan: ENABLE_QUAD_SCAN.get(),
            quad_join: ENABLE_QUAD_JOIN.get(),
            quad_groups: ENABLE_QUAD_GROUPS.get(),
            quad_walk: ENABLE_QUAD_WALK.get(),
        }
    }
}

/// A plan of SPI that outlives the transaction, until it is dropped. Portals that run it survive that.
pub struct Plan {
    plan: NonNull<pg_sys::_SPI_plan>,
    types: Vec<pg_sys::Oid>,
    settings: Settings,
    /// Number of the generic plan, among those that PostgreSQL made of the statement; `None`: there is none in use.
    generic: Option<i32>,
}

impl Plan {
    /// Parses a statement with parameters of these types. It is planned when it is first run.
    pub fn prepare(sql: &str, types: &[pg_sys::Oid]) -> Self {
        let sql = c_string(sql);
        let settings = Settings::current();
        let options = match settings.mode {
            PlanMode::Auto => 0,
            PlanMode::Generic => pg_sys::CURSOR_OPT_GENERIC_PLAN,
            PlanMode::Custom => pg_sys::CURSOR_OPT_CUSTOM_PLAN,
        };
        let mut types = types.to_vec();
        let plan = Spi::connect(|_| {
            let _planning = Planning::begin();
            // SAFETY: SPI is connected; the array has the length that is passed.
            unsafe {
                let plan = pg_sys::SPI_prepare_cursor(
                    sql.as_ptr(),
                    types.len() as i32,
                    types.as_mut_ptr(),
                    options as i32,
                );
                check(plan.is_null(), "prepare");
                check(pg_sys::SPI_keepplan(plan) != 0, "keep");
                plan
            }
        });
        let plan = Self {
            plan: NonNull::new(plan).expect("checked above"),
            types,
            settings,
            generic: None,
        };
        own_statements::add(plan.text());
        plan
    }

    /// Where PostgreSQL keeps the text of the statement.
    fn text(&self) -> usize {
        // SAFETY: the source lives as long as the plan.
        unsafe { (*self.source()).query_string as usize }
    }

    /// Parses a statement and plans it for all constants, expecting them to be like `values`. It settles for that plan
    /// if the joins depend on none: see [`PlanMode::Auto`].
    pub fn settle(sql: &str, types: &[pg_sys::Oid], values: &[pg_sys::Datum]) -> Self {
        let mut plan = Self::prepare(sql, types);
        if plan.settings.mode != PlanMode::Auto || !plan.settings.quad_join {
            return plan;
        }
        plan.generic = plan.plan_expecting(values);
        if plan.generic.is_none() && !values.is_empty() {
            // The cost of the plan that PostgreSQL has now is that for these values. PostgreSQL would take it for the
            // cost for all values, and weigh it against those of plans for the constants at hand.
            return Self::prepare(sql, types);
        }
        plan
    }

    /// Plans the statement for all constants and makes that its only plan, unless PostgreSQL's joins have a part in the
    /// order of its patterns. Gives the number of the plan in this case.
    fn plan_expecting(&self, values: &[pg_sys::Datum]) -> Option<i32> {
        let whole = |(value, kind): (&pg_sys::Datum, &pg_sys::Oid)| {
            (*kind == pg_sys::INT8OID).then(|| value.value() as i64)
        };
        let _expecting = BindPeeking::begin(values.iter().zip(&self.types).map(whole).collect());
        Spi::connect(|_| {
            let _planning = Planning::begin();
            // SAFETY: SPI is connected. The plan has one statement, so there is a cached plan of it, which is held
            // while its statements are looked at. The options are read at each execution.
            unsafe {
                let cached = pg_sys::SPI_plan_get_cached_plan(self.plan.as_ptr());
                check(cached.is_null(), "plan");
                let settles = !joins::order_patterns((*cached).stmt_list);
                pg_sys::ReleaseCachedPlan(cached, pg_sys::CurrentResourceOwner);
                let source = self.source();
                settles.then(|| {
                    (*source).cursor_options |= pg_sys::CURSOR_OPT_GENERIC_PLAN as i32;
                    (*source).generation
                })
            }
        })
    }

    /// Whether it is the plan that would be made now. A generic plan has to be chosen anew when PostgreSQL has dropped
    /// it or is about to. A successor that PostgreSQL makes alone would expect no values, and might order patterns.
    pub fn is_current(&self) -> bool {
        self.settings == Settings::current()
            && self.generic.is_none_or(|number| self.is_in_force(number))
    }

    /// Whether the next execution takes the plan for all constants of this number.
    fn is_in_force(&self, number: i32) -> bool {
        // SAFETY: the source lives as long as the plan, and holds its plan for all constants if it has one.
        unsafe {
            let source = &*self.source();
            let Some(plan) = source.gplan.as_ref() else {
                return false;
            };
            let user = pg_sys::GetUserId();
            let rows_secured_alike =
                source.rewriteRoleId == user && source.rewriteRowSecurity == pg_sys::row_security;
            source.is_valid
                && plan.is_valid
                && source.generation == number
                && (!plan.dependsOnRole || plan.planRoleId == user)
                && (!source.dependsOnRLS || rows_secured_alike)
        }
    }

    /// Starts the statement, with SPI connected, and gives its portal.
    pub fn open(&self, values: &mut [pg_sys::Datum]) -> pg_sys::Portal {
        let _planning = Planning::begin();
        // SAFETY: SPI is connected; there is a value for each parameter and none is NULL. The portal keeps the plan and
        // copies the values.
        unsafe {
            pg_sys::SPI_cursor_open(
                std::ptr::null(),
                self.plan.as_ptr(),
                values.as_mut_ptr(),
                std::ptr::null(),
                true,
            )
        }
    }

    /// Runs the EXPLAIN of a query, with SPI connected. It plans and runs that query, and then gives its rows.
    pub fn explain(&self, values: &mut [pg_sys::Datum]) {
        let _planning = Planning::begin();
        // SAFETY: SPI is connected; there is a value for each parameter and none is NULL.
        let status = unsafe {
            pg_sys::SPI_execute_plan(
                self.plan.as_ptr(),
                values.as_mut_ptr(),
                std::ptr::null(),
                false,
                0,
            )
        };
        check(status < 0, "execute");
    }

    /// Runs a statement to its end, with SPI connected and [`Planning`] begun. Its rows go to `destination`.
    pub fn run_into(
        &self,
        values: &[pg_sys::Datum],
        read_only: bool,
        destination: *mut pg_sys::DestReceiver,
    ) {
        // SAFETY: SPI is connected; the list has a place for each parameter, and there is a value for each. The caller
        // passes a destination that lives until the end of the call.
        let status = unsafe {
            let params = pg_sys::makeParamList(self.types.len() as i32);
            let places = (*params).params.as_mut_slice(self.types.len());
            for ((place, value), ptype) in places.iter_mut().zip(values).zip(&self.types) {
                *place = pg_sys::ParamExternData {
                    value: *value,
                    isnull: false,
                    pflags: pg_sys::PARAM_FLAG_CONST as u16,
                    ptype: *ptype,
                };
            }
            let options = pg_sys::SPIExecuteOptions {
                params,
                read_only,
                must_return_tuples: true,
                dest: destination,
                ..Default::default()
            };
            pg_sys::SPI_execute_plan_extended(self.plan.as_ptr(), &options)
        };
        check(status < 0, "execute");
    }

    /// How often the statement was planned for all constants and for those at hand.
    pub fn counts(&self) -> (i64, i64) {
        // SAFETY: the source lives as long as the plan.
        unsafe {
            let source = self.source();
            ((*source).num_generic_plans, (*source).num_custom_plans)
        }
    }

    /// What PostgreSQL's plan cache has of the statement.
    fn source(&self) -> *mut pg_sys::CachedPlanSource {
        // SAFETY: the plan is kept; its list holds one source for each statement, and there is one statement.
        unsafe {
            let sources = pg_sys::SPI_plan_get_plan_sources(self.plan.as_ptr());
            pg_sys::list_nth(sources, 0).cast()
        }
    }
}

impl Drop for Plan {
    fn drop(&mut self) {
        // SAFETY: kept in `prepare`, freed only here. A process that exits frees its memory as a whole.
        unsafe {
            if !pg_sys::proc_exit_inprogress {
                own_statements::remove(self.text());
                pg_sys::SPI_freeplan(self.plan.as_ptr());
            }
        }
    }
}

/// The SQL type of a parameter.
pub fn type_of(kind: ParamKind) -> pg_sys::Oid {
    match kind {
        ParamKind::Id | ParamKind::NewId | ParamKind::Label => pg_sys::INT8OID,
        ParamKind::Term => TermOut::type_oid(),
        ParamKind::Text => pg_sys::TEXTOID,
    }
}

/// Settings in force while a statement is parsed and planned. Operators are those of PostgreSQL whatever the path of
/// the caller, and the planner sees all patterns of a group as one join problem.
///
/// They are set without the machinery of SET, which costs more than all else that a small query does.
pub struct Planning {
    path: compat::CatalogPath,
    join_collapse_limit: i32,
    from_collapse_limit: i32,
    jit_above_cost: f64,
}

/// Times its cost that a statement has to have for JIT. Compiling one takes 50 to 150 ms. What it spends its time in
/// are nodes and functions of this extension, which PostgreSQL cannot compile. Measured (release build, 2026-11):
/// groups by STRLEN, a filter by CONTAINS(LCASE()) and sums over parts of dates, of 150,000 to 300,000 literals. They
/// ran 4 % faster at best, 13 % slower at worst. Ten times the default of 100,000 is some seconds of work.
const JIT_FACTOR: f64 = 10.0;

thread_local! {
    /// How many [`Planning`]s are in force.
    static NESTED: Cell<u32> = const { Cell::new(0) };
}

impl Planning {
    /// Puts the settings in force until the value is dropped, after an error too.
    pub fn begin() -> Self {
        // SAFETY: within a transaction; the limits are plain variables of this process.
        unsafe {
            let saved = Self {
                path: compat::CatalogPath::push(),
                join_collapse_limit: pg_sys::join_collapse_limit,
                from_collapse_limit: pg_sys::from_collapse_limit,
                jit_above_cost: pg_sys::jit_above_cost,
            };
            // Settings may nest: a function that asks may be called by a query that does. Below zero, there is no JIT.
            if NESTED.get() == 0 {
                pg_sys::jit_above_cost *= JIT_FACTOR;
            }
            NESTED.set(NESTED.get() + 1);
            pg_sys::join_collapse_limit = 100;
            pg_sys::from_collapse_limit = 100;
            saved
        }
    }
}

impl Drop for Planning {
    fn drop(&mut self) {
        // SAFETY: puts back what `begin` has found.
        unsafe {
            pg_sys::join_collapse_limit = self.join_collapse_limit;
            pg_sys::from_collapse_limit = self.from_collapse_limit;
            pg_sys::jit_above_cost = self.jit_above_cost;
            NESTED.set(NESTED.get() - 1);
            // After an error the end of the transaction takes the path away.
            if !std::thread::panicking() {
                self.path.pop();
            }
        }
    }
}

/// SQL text for PostgreSQL.
pub fn c_string(sql: &str) -> CString {
    CString::new(sql).unwrap_or_else(|_| {
        raise(
            PgSqlErrorCode::ERRCODE_CHARACTER_NOT_IN_REPERTOIRE,
            "the request contains a NUL character",
        )
    })
}

/// Raises an error when SPI has failed without one.
pub fn check(failed: bool, what: &str) {
    if failed {
        raise(
            PgSqlErrorCode::ERRCODE_INTERNAL_ERROR,
            format!("SPI could not {what} the SQL of a SPARQL request"),
        );
    }
}

/// Name of a portal.
pub fn name_of(portal: pg_sys::Portal) -> CString {
    // SAFETY: an open portal has a name.
    unsafe { CStr::from_ptr((*portal).name).to_owned() }
}
