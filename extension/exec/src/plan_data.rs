//! Private data of plan nodes: what the planner tells the executor, for each kind of custom scan node. Example: a `Quad
//! Walk` of pairs whose second column changes carries `arity = 2, at = 1`, in the list `2 2 1`: the version, then the
//! fields.

use crate::operators::first_rows::SortKey;
use crate::plan::condition::Bound;
use crate::plan::words::{DecodeError, Oid, Reader, Words};
use crate::plan::{Plan, Slot};

/// Version of the encodings below: the first integer of each. `docs/formats.md` says when it is raised.
const VERSION: i32 = 3;

/// The private data of one kind of plan node.
pub trait PlanData: Words {
    /// As integers, which PostgreSQL copies with the plan.
    fn encode(&self) -> Vec<i32> {
        let mut out = vec![VERSION];
        self.write(&mut out);
        out
    }

    /// What [`Self::encode`] made.
    ///
    /// # Errors
    /// [`DecodeError`] when the list is damaged, or of another version.
    fn decode(words: &[i32]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(words);
        if reader.word()? != VERSION {
            return Err(DecodeError);
        }
        let data = Self::read(&mut reader)?;
        reader.end()?;
        Ok(data)
    }
}

/// Structures that are written field by field, in this order.
macro_rules! fields {
    ($($(#[$doc:meta])* $name:ident { $($(#[$of_field:meta])* $field:ident: $kind:ty,)* })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $name {
            $($(#[$of_field])* pub $field: $kind,)*
        }

        impl Words for $name {
            fn write(&self, out: &mut Vec<i32>) {
                $(self.$field.write(out);)*
            }

            fn read(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
                Ok(Self { $($field: Words::read(from)?,)* })
            }
        }
    )*};
}

fields! {
    /// A condition; its value is an expression of the plan.
    ConditionData {
        /// Column of the table (0 = s .. 3 = g).
        column: usize,
        /// How the value bounds it.
        bound: Bound,
        /// `<>` instead of what the bound says.
        unequal: bool,
        /// Type of the value.
        value_type: Oid,
    }

    /// `Quad Scan`.
    ScanData {
        /// Order that is read, by its number in the table.
        order: usize,
        /// Another one that may turn out to be cheaper when the values are known.
        second: Option<usize>,
        /// Whether rows get identities.
        needs_tid: bool,
        /// Columns that are asked for: bit `n` is column `n`.
        needed: usize,
        /// Whether the order is read from its end.
        backward: bool,
        /// Conditions that make the key ranges.
        bounds: Vec<ConditionData>,
    }

    /// `Quad Groups`.
    GroupsData {
        /// The order that is read.
        order: usize,
        /// Columns that make the groups.
        depth: usize,
        /// Columns of the groups that are read.
        inner_depth: usize,
        /// The column that makes the groups if they are scattered over the order.
        scattered: Option<usize>,
        /// Whether rows are counted.
        counting: bool,
        /// Whether no rows make no group.
        grouped: bool,
        /// How many of the conditions make the key ranges; the others are tested on the way.
        bounds: usize,
        /// All conditions.
        compared: Vec<ConditionData>,
        /// What the scan tuple holds.
        outputs: Vec<GroupOutput>,
    }

    /// `Quad Walk`, the transitive closure.
    WalkData {
        /// Columns of a row, 1 or 2.
        arity: usize,
        /// The column that the walk changes.
        at: usize,
    }

    /// A quad of a step.
    HopData {
        /// Place of its relation among those of the node; none where it is of a member of a UNION ALL.
        relation: Option<usize>,
        /// Its table.
        table: Oid,
        /// The column where the walk comes from.
        from: usize,
        /// The column where it goes.
        to: usize,
        /// The order that is read.
        order: usize,
        /// How many of the conditions make the key ranges, together with the column that the walk comes from.
        bounds: usize,
        /// All conditions.
        compared: Vec<ConditionData>,
    }

    /// `Quad Step`, the recursive term below a walk.
    StepData {
        /// The chains of quads that lead on.
        branches: Vec<Vec<HopData>>,
    }

    /// What a `Quad Join` takes from the plan below it.
    OuterInputData {
        /// The variable that numbers the rows of a batch.
        row: Slot,
        /// Whether rows without a match stay.
        keeps: bool,
        /// Columns that are keys, with the variables that they are.
        keys: Vec<(usize, Slot)>,
        /// Columns that go into the scan tuple, with their places there.
        carried: Vec<(usize, usize)>,
    }

    /// `Quad Count`.
    CountData {
        /// The operator by which each key is equal; none where all keys are columns.
        equal: Vec<Oid>,
    }

    /// A relation whose rows are told apart, since DELETE, UPDATE or MERGE changes them.
    RowIdentityData {
        /// The place of its `ctid` in `custom_scan_tlist`.
        place: usize,
        /// The places of s, p, o and g of the row there; none where rows are only looked for.
        columns: Vec<usize>,
    }

    /// The first rows of an order.
    FirstRowsData {
        /// How many.
        most: usize,
        /// The order.
        keys: Vec<SortKey>,
    }

    /// The leading key of an order of which only the first rows are wanted: a whole number.
    LeadingKeyData {
        /// How many rows.
        most: usize,
        /// The column's place in `custom_scan_tlist`.
        place: usize,
        /// The greatest value comes first.
        descending: bool,
        /// Rows without a value come first.
        nulls_first: bool,
    }

    /// `Quad Join`.
    JoinData {
        /// The patterns, and how they hang together.
        plan: Plan,
        /// For each variable of the answer, its place in `custom_scan_tlist`.
        output: Vec<usize>,
        /// Type of each parameter.
        param_types: Vec<Oid>,
        /// For each filter, the places of its variables in `custom_scan_tlist`.
        tests: Vec<Vec<usize>>,
        /// For each step, the place of its relation in `tables`.
        relations: Vec<usize>,
        /// Places of the quad tables among the relations of the node.
        tables: Vec<usize>,
        /// What is taken from a plan below.
        outer_input: Option<OuterInputData>,
        /// The relations whose rows are told apart.
        identities: Vec<RowIdentityData>,
        /// Whether perhaps only the first few rows will be asked for.
        limited: bool,
        /// The first rows of an order, where no others are wanted of the join.
        first_rows: Option<FirstRowsData>,
        /// What shows of a row that it is none of the first.
        leading_key: Option<LeadingKeyData>,
    }
}

impl PlanData for ScanData {}
impl PlanData for GroupsData {}
impl PlanData for WalkData {}
impl PlanData for StepData {}
impl PlanData for JoinData {}
impl PlanData for CountData {}

/// What an output of a `Quad Groups` is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GroupOutput {
    /// A column of the table.
    Column(usize),
    /// The number of rows.
    Rows,
    /// The number of distinct values of the one column.
    Distinct,
}

/// The column, or -1 for rows, -2 for distinct values.
impl Words for GroupOutput {
    fn write(&self, out: &mut Vec<i32>) {
        out.push(match self {
            Self::Column(column) => *column as i32,
            Self::Rows => -1,
            Self::Distinct => -2,
        });
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(match from.word()? {
            -1 => Self::Rows,
            -2 => Self::Distinct,
            column => Self::Column(usize::try_from(column).map_err(|_| DecodeError)?),
        })
    }
}

/// The place, then bits: by term 1, descending 2, unbound first 4.
impl Words for SortKey {
    fn write(&self, out: &mut Vec<i32>) {
        self.place.write(out);
        let bits = [self.by_term, self.descending, self.nulls_first];
        out.push((0..).zip(bits).map(|(n, bit)| i32::from(bit) << n).sum());
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let place = usize::read(from)?;
        let bits = from.word()?;
        if !(0..8).contains(&bits) {
            return Err(DecodeError);
        }
        Ok(Self {
            place,
            by_term: bits & 1 != 0,
            descending: bits & 2 != 0,
            nulls_first: bits & 4 != 0,
        })
    }
}
