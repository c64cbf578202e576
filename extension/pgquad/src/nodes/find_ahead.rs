//! Terms that expressions of a node compute, looked up for many rows at once: in a distributed dictionary each term by
//! itself is a message.
//!
//! Example: `BIND(IRI(CONCAT(STR(?a), "0")) AS ?b)`, where `?b` is joined. The scan that has `?a`, or a filter of the
//! join that has both, computes `quad.find(quad.fn_iri(..))` for each row. Before that, these arguments are evaluated
//! for the next rows, and their terms are looked up together. `quad.find` then finds what is cached, or known to be
//! absent.

use crate::dictionary::{find_ahead, lookup_hash, LookedUp};
use crate::pg::ffi;
use crate::pg::interrupt::interrupt;
use crate::pg::list::list_iter;
use crate::term::TermArg;
use pgrx::datum::FromDatum;
use pgrx::pg_sys;
use pgrx::pg_sys::NodeTag::*;
use pgrx::prelude::*;
use std::cell::OnceCell;
use std::ffi::{c_void, CStr};

/// Rows whose terms are looked up first. Each time there are more: perhaps few rows are asked for.
const FIRST_ROWS: usize = 64;
/// Rows whose terms are looked up together, at most.
pub const MOST_ROWS: usize = 4096;
/// How much more than the time before are looked up.
const GROWTH_FACTOR: usize = 4;

/// The calls of `quad.find` in expressions of a node.
pub struct FindAhead {
    /// Their arguments.
    arguments: Vec<*mut pg_sys::ExprState>,
    /// The columns of the node's slot that the arguments are computed from, in ascending order.
    columns: Vec<usize>,
    looked_up: LookedUp,
    /// Rows to look up the next time.
    rows: usize,
    /// Rows of the batch before this one have been looked up.
    pub until: usize,
}

impl FindAhead {
    /// The calls in expressions, or lists of them, whose variables are columns of one slot.
    ///
    /// # Safety
    /// The expressions are of the plan of the node `state`, which begins. It may be null where there are no subplans
    /// and no parameters.
    pub unsafe fn new(expressions: &[*mut pg_sys::Node], state: *mut pg_sys::PlanState) -> Self {
        let mut calls = Calls {
            has_params: has_params(state),
            ..Calls::default()
        };
        let mut columns = Vec::new();
        // SAFETY: expressions of a live plan. Only calls that depend on nothing but the row are evaluated.
        let arguments = unsafe {
            for &expression in expressions {
                collect(expression, (&raw mut calls).cast::<c_void>());
            }
            for &argument in &calls.arguments {
                for var in list_iter::<pg_sys::Var>(pg_sys::pull_var_clause(argument.cast(), 0)) {
                    columns.extend(usize::try_from((*var).varattno - 1));
                }
            }
            let all = calls.arguments.iter();
            all.map(|&argument| pg_sys::ExecInitExpr(argument.cast(), state))
                .collect()
        };
        columns.sort_unstable();
        columns.dedup();
        Self {
            arguments,
            columns,
            looked_up: LookedUp::default(),
            rows: FIRST_ROWS,
            until: usize::MAX,
        }
    }

    /// The same, where all rows of a batch are needed.
    pub fn of_whole_batches(mut self) -> Self {
        self.rows = MOST_ROWS;
        self
    }

    /// The columns of the slot that the calls need, if it saves messages to look their terms up together.
    pub fn columns(&self) -> Option<&[usize]> {
        let saves_messages = !self.arguments.is_empty() && LookedUp::saves_messages();
        saves_messages.then_some(&self.columns)
    }

    /// Begins with the rows of a batch.
    pub fn begin_batch(&mut self) {
        self.until = self.columns().map_or(usize::MAX, |_| 0);
    }

    /// Looks up the terms of the next rows, of `rows` in all. `fill` puts one of them into the node's slot.
    ///
    /// # Safety
    /// `context` is the node's, whose slot `fill` fills; nothing in its memory for a row is needed any more.
    pub unsafe fn look_up(
        &mut self,
        slot: *mut pg_sys::TupleTableSlot,
        context: *mut pg_sys::ExprContext,
        rows: usize,
        mut fill: impl FnMut(usize),
    ) {
        let from = self.until;
        self.until = rows.min(from.saturating_add(self.rows));
        self.rows = (self.rows * GROWTH_FACTOR).min(MOST_ROWS);
        let mut hashes = Vec::new();
        for row in from..self.until {
            interrupt();
            fill(row);
            // SAFETY: the caller's promise; the arguments are of type quad.term.
            unsafe {
                pg_sys::MemoryContextReset((*context).ecxt_per_tuple_memory);
                (*context).ecxt_scantuple = slot;
                for &argument in &self.arguments {
                    let mut is_null = false;
                    let value = pg_sys::ExecEvalExprSwitchContext(argument, context, &mut is_null);
                    let term = TermArg::from_datum(value, is_null);
                    hashes.extend(term.and_then(|term| lookup_hash(&term.term())));
                }
            }
        }
        hashes.sort_unstable();
        hashes.dedup();
        find_ahead(&self.looked_up, &hashes);
    }

    /// Forgets what has been looked up.
    pub fn forget(&mut self) {
        self.looked_up.forget();
        self.until = usize::MAX;
    }
}

/// What is found in expressions.
#[derive(Default)]
struct Calls {
    /// The schema of this extension, once it has been looked up: most scans call no function.
    schema: OnceCell<pg_sys::Oid>,
    arguments: Vec<*mut pg_sys::Node>,
    /// Values of parameters are there, and need not be asked for: PL/pgSQL makes them when they are wanted, which fails
    /// for a field of a record without a value.
    has_params: bool,
}

impl Calls {
    /// Whether a function is one of this extension.
    fn is_ours(&self, function: pg_sys::Oid) -> bool {
        // SAFETY: look-ups in the catalogue.
        unsafe {
            let look_up = || pg_sys::get_namespace_oid(c"quad".as_ptr(), true);
            pg_sys::get_func_namespace(function) == *self.schema.get_or_init(look_up)
        }
    }

    /// Whether a function is `quad.find`.
    fn is_find(&self, function: pg_sys::Oid) -> bool {
        // SAFETY: a look-up in the catalogue; the name is a string that the current memory context owns.
        self.is_ours(function)
            && unsafe {
                let name = pg_sys::get_func_name(function);
                !name.is_null() && CStr::from_ptr(name) == c"find"
            }
    }
}

/// Whether the values of the parameters of a query are there.
unsafe fn has_params(state: *mut pg_sys::PlanState) -> bool {
    // SAFETY: a node that begins, or null.
    unsafe {
        let params = match state.is_null() {
            true => return false,
            false => (*(*state).state).es_param_list_info,
        };
        !params.is_null() && (*params).paramFetch.is_none() && (*params).paramCompile.is_none()
    }
}

/// Collects the arguments of calls of `quad.find` that depend on the row.
#[pg_guard]
unsafe extern "C-unwind" fn collect(node: *mut pg_sys::Node, context: *mut c_void) -> bool {
    // SAFETY: nodes are cast after a look at their tag; the context is that of `FindAhead::new`.
    unsafe {
        if node.is_null() {
            return false;
        }
        let calls = &mut *context.cast::<Calls>();
        if (*node).type_ == T_FuncExpr {
            let call = node.cast::<pg_sys::FuncExpr>();
            let argument = (*call).args.cast::<pg_sys::Node>();
            if calls.is_find((*call).funcid) {
                let is_of_row = pg_sys::contain_var_clause(argument);
                if is_of_row && !is_unsafe(argument, context) {
                    let argument = pg_sys::list_nth((*call).args, 0);
                    calls.arguments.push(argument.cast());
                }
                return false;
            }
        }
        ffi::expression_tree_walker(node, collect, context)
    }
}

/// Whether an expression may do more than compute a term of the row, or fail: it is evaluated for rows that filters
/// leave out, too.
#[pg_guard]
unsafe extern "C-unwind" fn is_unsafe(node: *mut pg_sys::Node, context: *mut c_void) -> bool {
    // SAFETY: nodes are cast after a look at their tag; the context is that of `FindAhead::new`.
    unsafe {
        if node.is_null() {
            return false;
        }
        let calls = &*context.cast::<Calls>();
        match (*node).type_ {
            T_List | T_Var | T_Const | T_ArrayExpr | T_RelabelType | T_CoalesceExpr
            | T_CaseExpr | T_CaseWhen | T_BoolExpr | T_NullTest => {}
            T_Param => {
                let kind = (*node.cast::<pg_sys::Param>()).paramkind;
                if kind != pg_sys::ParamKind::PARAM_EXTERN || !calls.has_params {
                    return true;
                }
            }
            T_FuncExpr => {
                let function = (*node.cast::<pg_sys::FuncExpr>()).funcid;
                if !calls.is_ours(function)
                    || pg_sys::func_volatile(function) as u8 == pg_sys::PROVOLATILE_VOLATILE
                {
                    return true;
                }
            }
            _ => return true,
        }
        ffi::expression_tree_walker(node, is_unsafe, context)
    }
}
