//! The plan of `Quad Groups` as the executor sees it.

use super::shape::Output;
use crate::nodes::custom;
use crate::nodes::scan::compared::Compared;
use pgquad_exec::GroupsData;
use pgrx::pg_sys;

/// The plan as the executor sees it.
pub struct Decoded {
    /// The order that is read.
    pub order: usize,
    /// Columns that make the groups.
    pub depth: usize,
    /// Columns of the groups that are read.
    pub inner_depth: usize,
    /// The column that makes the groups if they are scattered over the order.
    pub scattered: Option<usize>,
    /// Whether rows are counted.
    pub counting: bool,
    /// Whether no rows make no group.
    pub grouped: bool,
    /// How many of the conditions make the key ranges; the others are tested on the way.
    pub bounds: usize,
    /// All conditions.
    pub compared: Vec<Compared>,
    /// What the scan tuple holds.
    pub outputs: Vec<Output>,
}

impl Decoded {
    /// Reads what a plan carries.
    ///
    /// # Safety
    /// `plan` is a plan of `Quad Groups`, or a copy of one.
    pub unsafe fn read(plan: *mut pg_sys::CustomScan) -> Self {
        // SAFETY: the caller's promise.
        let data: GroupsData = unsafe { custom::private_data(plan) };
        Self {
            order: data.order,
            depth: data.depth,
            inner_depth: data.inner_depth,
            scattered: data.scattered,
            counting: data.counting,
            grouped: data.grouped,
            bounds: data.bounds,
            compared: data.compared.into_iter().map(Compared::from).collect(),
            outputs: data.outputs,
        }
    }
}
