//! The executor's state of `Quad Join`.

use super::candidates::Candidates;
use super::outer_input::OuterInput;
use super::parameters::Parameter;
use super::pushed::{Pushed, Report};
use super::source::NodeSource;
use crate::dictionary::Upcoming;
use pgquad_cluster::push::Start;
use pgquad_exec::{Bindings, FirstRowsData, Pipeline, Plan, RowIdentityData, Tuning, Value};
use pgrx::pg_sys;

/// The node's own part, in the executor's per-query context.
pub struct QuadJoin {
    /// The plan, decoded.
    pub plan: Plan,
    /// The join under way.
    pub pipeline: Pipeline,
    /// Range table index of each step's relation.
    pub relations: Vec<i32>,
    /// What it reads from.
    pub source: NodeSource,
    /// The relation of each of its readers.
    pub relids: Vec<pg_sys::Oid>,
    pub(super) params: Vec<Parameter>,
    /// Place in the scan tuple of each variable of the answer.
    pub(super) output: Vec<usize>,
    /// The relations whose rows are told apart, each with the identity of its latest row.
    pub(super) identities: Vec<(RowIdentityData, pg_sys::ItemPointerData)>,
    pub(super) tuning: Tuning,
    /// Where the rows come from that everything starts with, if it is not from one empty row.
    pub(super) outer_input: Option<OuterInput>,
    /// What the participants find, where the join is pushed from node to node.
    pub(super) pushed: Option<Pushed>,
    /// Perhaps only the first few rows will be asked for.
    pub(super) limited: bool,
    /// The first rows of an order that are wanted, where that is not all.
    pub(super) first_rows: Option<FirstRowsData>,
    /// Which rows can be among them.
    pub(super) candidates: Option<Candidates>,
    /// The message that starts participants for rows from the plan below, where the join is pushed for these rows.
    pub(super) for_fed_rows: Option<(Start, Vec<i32>)>,
    /// What that has cost.
    pub report: Report,
    /// Values of the parameters.
    pub(super) values: Vec<Value>,
    pub(super) started: bool,
    /// The pipeline has begun with these parameters.
    pub is_begun: bool,
    pub(super) rows: Bindings,
    pub(super) at: usize,
    /// Rows of the batch from below that come behind those that are joined first.
    pub(super) behind: Option<Bindings>,
    /// What the dictionary is told of the rows to come.
    pub(super) upcoming: Upcoming,
}
