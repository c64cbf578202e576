//! The messages of a pushed join between the node that asks and the participants: what each is to do, and what it has
//! found.

use crate::exchange::MESH_BYTES;
use crate::message::VERSION;
use crate::wire::{Damaged, Reader, Result, Writer};

/// Most rows of a message that a reader believes.
pub const MAX_ROWS: usize = 1 << 24;

/// Numbers that a participant reports of each step.
pub const STEP_NUMBERS: usize = 19;

/// A participant of a join, as the others have to know it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Participant {
    /// Citus' number of the group of nodes that it is on.
    pub group: i32,
    /// How messages name the node.
    pub name: String,
    /// Where it takes connections of the others.
    pub address: String,
    /// The name under which it has exported its snapshot.
    pub snapshot: String,
}

/// The value of a parameter.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Param {
    /// No value.
    Null,
    /// One, in the form of keys.
    One(u64),
    /// Any of several.
    List(Vec<u64>),
}

/// An aggregate of the groups.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Aggregate {
    /// The number of rows.
    Rows,
    /// The number of rows in which a variable is bound.
    Bound(u16),
    /// The sum of an argument.
    Sum(u16),
    /// The number of distinct values of a variable.
    Distinct(u16),
    /// The least id of an argument.
    LeastId(u16),
    /// The greatest id.
    GreatestId(u16),
    /// The id of the first term of an argument, in the order of ORDER BY.
    FirstTerm(u16),
    /// That of the last one.
    LastTerm(u16),
}

/// What is counted and added up, by these variables.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Counting {
    /// Variables that rows are grouped by.
    pub by: Vec<u16>,
    /// The aggregates of each group.
    pub counted: Vec<Aggregate>,
    /// The arguments of sums and extremes: SQL over `$1`, `$2`, ..., and the variables that these are.
    pub arguments: Vec<(String, Vec<u16>)>,
}

/// Most variables that rows are grouped by: one bit each, and of a value that is counted once, says whether it is
/// unbound.
const MAX_GROUPED_VARIABLES: usize = 62;

impl Counting {
    /// Whether it asks only for variables that a plan with so many has. A message that was not damaged on its way may
    /// still be that of a node with other ideas.
    #[must_use]
    pub fn fits(&self, slots: u16) -> bool {
        let counted = self.counted.iter().filter_map(|counted| match counted {
            Aggregate::Bound(slot) | Aggregate::Distinct(slot) => Some(slot),
            _ => None,
        });
        let needs = self.arguments.iter().flat_map(|(_, needs)| needs);
        let mut read = self.by.iter().chain(counted).chain(needs);
        self.by.len() <= MAX_GROUPED_VARIABLES && read.all(|&slot| slot < slots)
    }

    fn encode(&self, writer: &mut Writer) {
        let slots = |writer: &mut Writer, slots: &[u16]| {
            numbers(writer, slots.iter().map(|&slot| u32::from(slot)));
        };
        slots(writer, &self.by);
        writer.u32(self.counted.len() as u32);
        for counted in &self.counted {
            let (kind, of) = match counted {
                Aggregate::Rows => (0, 0),
                Aggregate::Bound(slot) => (1, *slot),
                Aggregate::Sum(argument) => (2, *argument),
                Aggregate::Distinct(slot) => (3, *slot),
                Aggregate::LeastId(argument) => (4, *argument),
                Aggregate::GreatestId(argument) => (5, *argument),
                Aggregate::FirstTerm(argument) => (6, *argument),
                Aggregate::LastTerm(argument) => (7, *argument),
            };
            writer.u8(kind);
            writer.u32(u32::from(of));
        }
        writer.u32(self.arguments.len() as u32);
        for (sql, needs) in &self.arguments {
            writer.bytes(sql.as_bytes());
            slots(writer, needs);
        }
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self> {
        let counting = Self {
            by: list(reader, 4, small)?,
            counted: list(reader, 5, |reader| {
                let (kind, of) = (reader.u8()?, small(reader)?);
                Ok(match kind {
                    0 => Aggregate::Rows,
                    1 => Aggregate::Bound(of),
                    2 => Aggregate::Sum(of),
                    3 => Aggregate::Distinct(of),
                    4 => Aggregate::LeastId(of),
                    5 => Aggregate::GreatestId(of),
                    6 => Aggregate::FirstTerm(of),
                    7 => Aggregate::LastTerm(of),
                    _ => return Err(Damaged),
                })
            })?,
            arguments: list(reader, 8, |reader| {
                Ok((text(reader)?, list(reader, 4, small)?))
            })?,
        };
        let known = |counted: &Aggregate| match counted {
            Aggregate::Rows | Aggregate::Bound(_) | Aggregate::Distinct(_) => true,
            Aggregate::Sum(argument)
            | Aggregate::LeastId(argument)
            | Aggregate::GreatestId(argument)
            | Aggregate::FirstTerm(argument)
            | Aggregate::LastTerm(argument) => usize::from(*argument) < counting.arguments.len(),
        };
        match counting.counted.iter().all(known) {
            true => Ok(counting),
            false => Err(Damaged),
        }
    }
}

/// The first byte of the state of values that are counted once, before the number of their set: no rows have come
/// farther.
const SET: u8 = u8::MAX;

/// The state in which values of a set are sent to who counts them: three bytes. States of rows that are joined are
/// longer. A query has fewer sets than a row of PostgreSQL has columns (1664).
#[must_use]
pub fn state_of_set(set: usize) -> [u8; 3] {
    let [low, high] = (set as u16).to_le_bytes();
    [SET, low, high]
}

/// The set that a state is of; `None` where it is one of rows.
#[must_use]
pub fn set_of(state: &[u8]) -> Option<usize> {
    match *state {
        [SET, low, high] => Some(usize::from(u16::from_le_bytes([low, high]))),
        _ => None,
    }
}

/// What rows are sorted by.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SortKey {
    /// Place of the variable in the answer.
    pub place: u16,
    /// By its term, not by its id.
    pub by_term: bool,
    /// The greatest comes first.
    pub descending: bool,
    /// Rows in which it is unbound come first.
    pub nulls_first: bool,
}

/// The first rows of an order.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FirstRows {
    /// How many.
    pub most: u32,
    /// The order.
    pub keys: Vec<SortKey>,
}

impl FirstRows {
    fn encode(&self, writer: &mut Writer) {
        writer.u32(self.most);
        writer.u32(self.keys.len() as u32);
        for key in &self.keys {
            writer.u32(u32::from(key.place));
            for flag in [key.by_term, key.descending, key.nulls_first] {
                writer.u8(u8::from(flag));
            }
        }
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self> {
        Ok(Self {
            most: reader.u32()?,
            keys: list(reader, 7, |reader| {
                Ok(SortKey {
                    place: small(reader)?,
                    by_term: reader.u8()? != 0,
                    descending: reader.u8()? != 0,
                    nulls_first: reader.u8()? != 0,
                })
            })?,
        })
    }
}

/// What a participant is to do.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Start {
    /// Number of the query: over the same links a later one has a greater number.
    pub query: u64,
    /// A random number for these participants: the same as long as they are the same processes and every query has come
    /// to its end.
    pub mesh: [u8; MESH_BYTES],
    /// The participant's own number in the list.
    pub me: u32,
    /// All participants.
    pub participants: Vec<Participant>,
    /// Milliseconds for which they try to be linked.
    pub patience: u32,
    /// The pattern that all start with.
    pub first: Option<u32>,
    /// The column by which its quads are shared out.
    pub column: u8,
    /// Smaller batches are joined where they are.
    pub least: u32,
    /// Bytes that are collected for a peer before they are sent; 0: adapts.
    pub batch_bytes: u64,
    /// Whether times are to be measured.
    pub timing: bool,
    /// Names that the marks of the stores have.
    pub stores: Vec<String>,
    /// Which of the stores each table of the plan is.
    pub tables: Vec<u16>,
    /// A hash of where their shards are.
    pub placement: u64,
    /// The plan, as integers.
    pub plan: Vec<i32>,
    /// Sizes of batches, in the order of the pipeline's tuning.
    pub tuning: [u64; 5],
    /// Bytes of `work_mem` in the session that asks: rows on their way have half of it.
    pub work_memory: u64,
    /// Bytes of `work_mem` times `hash_mem_multiplier`, for groups and for values that are counted once.
    pub hash_memory: u64,
    /// Values of the plan's parameters.
    pub params: Vec<Param>,
    /// The filters as SQL over `$1`, `$2`, ...: their variables.
    pub filters: Vec<String>,
    /// Set where no rows are handed out but the first ones of an order.
    pub first_rows: Option<FirstRows>,
    /// Set where rows are counted and not handed out.
    pub counting: Option<Counting>,
    /// The rows that everything starts from, where that is not one row without variables: their number, and the values
    /// of each variable that has some.
    pub rows: Option<(usize, Vec<Option<Vec<u64>>>)>,
}

fn numbers(writer: &mut Writer, values: impl ExactSizeIterator<Item = u32>) {
    writer.u32(values.len() as u32);
    values.for_each(|value| writer.u32(value));
}

fn text(reader: &mut Reader<'_>) -> Result<String> {
    String::from_utf8(reader.bytes()?.to_vec()).map_err(|_| Damaged)
}

fn list<T>(
    reader: &mut Reader<'_>,
    size: usize,
    mut item: impl FnMut(&mut Reader<'_>) -> Result<T>,
) -> Result<Vec<T>> {
    let count = reader.count(size)?;
    (0..count).map(|_| item(reader)).collect()
}

fn small(reader: &mut Reader<'_>) -> Result<u16> {
    u16::try_from(reader.u32()?).map_err(|_| Damaged)
}

/// So many values.
fn column(reader: &mut Reader<'_>, len: usize) -> Result<Vec<u64>> {
    let mut values = Vec::new();
    reader.column(&mut values, len.min(MAX_ROWS))?;
    (values.len() == len).then_some(values).ok_or(Damaged)
}

fn write_columns<'a>(
    writer: &mut Writer,
    len: usize,
    columns: impl ExactSizeIterator<Item = Option<&'a [u64]>>,
) {
    writer.u32(len as u32);
    writer.u32(columns.len() as u32);
    for column in columns {
        writer.u8(u8::from(column.is_some()));
        column.iter().for_each(|column| writer.column(column));
    }
}

fn read_columns(reader: &mut Reader<'_>) -> Result<(usize, Vec<Option<Vec<u64>>>)> {
    let len = reader.u32()? as usize;
    let columns = list(reader, 1, |reader| match reader.u8()? {
        0 => Ok(None),
        _ => column(reader, len).map(Some),
    })?;
    Ok((len, columns))
}

/// A number that may be missing; none of them is the greatest.
fn optional(value: Option<u32>) -> u32 {
    value.unwrap_or(u32::MAX)
}

impl Start {
    /// The message.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::new();
        writer.u8(VERSION);
        writer.u64(self.query);
        writer.bytes(&self.mesh);
        writer.u32(self.me);
        writer.u32(self.participants.len() as u32);
        for participant in &self.participants {
            writer.u32(participant.group as u32);
            writer.bytes(participant.name.as_bytes());
            writer.bytes(participant.address.as_bytes());
            writer.bytes(participant.snapshot.as_bytes());
        }
        writer.u32(self.patience);
        writer.u32(optional(self.first));
        writer.u8(self.column);
        writer.u32(self.least);
        writer.u64(self.batch_bytes);
        writer.u8(u8::from(self.timing));
        writer.u32(self.stores.len() as u32);
        for store in &self.stores {
            writer.bytes(store.as_bytes());
        }
        numbers(&mut writer, self.tables.iter().map(|&t| u32::from(t)));
        writer.u64(self.placement);
        numbers(&mut writer, self.plan.iter().map(|&word| word as u32));
        self.tuning.iter().for_each(|&size| writer.u64(size));
        writer.u64(self.work_memory);
        writer.u64(self.hash_memory);
        writer.u32(self.params.len() as u32);
        for param in &self.params {
            match param {
                Param::Null => writer.u8(0),
                Param::One(value) => {
                    writer.u8(1);
                    writer.u64(*value);
                }
                Param::List(list) => {
                    writer.u8(2);
                    writer.column(list);
                }
            }
        }
        writer.u32(self.filters.len() as u32);
        for filter in &self.filters {
            writer.bytes(filter.as_bytes());
        }
        writer.u8(u8::from(self.first_rows.is_some()));
        if let Some(first_rows) = &self.first_rows {
            first_rows.encode(&mut writer);
        }
        writer.u8(u8::from(self.counting.is_some()));
        if let Some(counting) = &self.counting {
            counting.encode(&mut writer);
        }
        writer.u8(u8::from(self.rows.is_some()));
        if let Some((len, columns)) = &self.rows {
            write_columns(&mut writer, *len, columns.iter().map(Option::as_deref));
        }
        writer.finish()
    }

    /// What [`Self::encode`] wrote, behind the version.
    ///
    /// # Errors
    /// The message is damaged.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Self> {
        let query = reader.u64()?;
        let mesh = reader.bytes()?.try_into().map_err(|_| Damaged)?;
        let me = reader.u32()?;
        let participants = list(reader, 16, |reader| {
            Ok(Participant {
                group: reader.u32()? as i32,
                name: text(reader)?,
                address: text(reader)?,
                snapshot: text(reader)?,
            })
        })?;
        if me as usize >= participants.len() {
            return Err(Damaged);
        }
        let start = Self {
            query,
            mesh,
            me,
            participants,
            patience: reader.u32()?,
            first: Some(reader.u32()?).filter(|&first| first != u32::MAX),
            column: reader.u8()?,
            least: reader.u32()?,
            batch_bytes: reader.u64()?,
            timing: reader.u8()? != 0,
            stores: list(reader, 4, text)?,
            tables: list(reader, 4, small)?,
            placement: reader.u64()?,
            plan: list(reader, 4, |reader| Ok(reader.u32()? as i32))?,
            tuning: [
                reader.u64()?,
                reader.u64()?,
                reader.u64()?,
                reader.u64()?,
                reader.u64()?,
            ],
            work_memory: reader.u64()?,
            hash_memory: reader.u64()?,
            params: list(reader, 1, |reader| {
                Ok(match reader.u8()? {
                    0 => Param::Null,
                    1 => Param::One(reader.u64()?),
                    2 => {
                        let mut values = Vec::new();
                        reader.column(&mut values, MAX_ROWS)?;
                        Param::List(values)
                    }
                    _ => return Err(Damaged),
                })
            })?,
            filters: list(reader, 4, text)?,
            first_rows: match reader.u8()? {
                0 => None,
                _ => Some(FirstRows::decode(reader)?),
            },
            counting: match reader.u8()? {
                0 => None,
                _ => Some(Counting::decode(reader)?),
            },
            rows: match reader.u8()? {
                0 => None,
                _ => Some(read_columns(reader)?),
            },
        };
        reader.end()?;
        let stores = start.stores.len();
        if start
            .tables
            .iter()
            .any(|&table| usize::from(table) >= stores)
        {
            return Err(Damaged);
        }
        Ok(start)
    }
}

/// What a participant has cost.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Cost {
    /// Of each step, in the order of its statistics.
    pub steps: Vec<[u64; STEP_NUMBERS]>,
    /// Of each filter, the rows that it has removed.
    pub removed: Vec<u64>,
    /// Rows handed out or counted.
    pub answered: u64,
    /// Frames of rows sent to others.
    pub messages: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// Rows in them.
    pub rows: u64,
    /// Times that rows had to wait for a link.
    pub blocked_writes: u64,
    /// Nanoseconds in which they did.
    pub blocked: u64,
    /// Nanoseconds in which there was nothing to do but to wait for others.
    pub waited: u64,
    /// Bytes of rows that were written to a file.
    pub spilled: u64,
    /// Bytes of groups, and of values counted once, that were written to files.
    pub groups_spilled: u64,
}

/// What a participant gives to the node that asks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Found {
    /// The first message of one that has its links to all others.
    Linked,
    /// The only message of one that has not: nothing has been read.
    Unlinked {
        /// The participant that it has no link to.
        peer: u32,
        /// What the network says.
        why: String,
        /// The peer has given up, for a reason that others know.
        closed: bool,
    },
    /// Rows: how many, and of each variable of the answer the values, or that it is unbound in all.
    Rows(usize, Vec<Option<Vec<u64>>>),
    /// Groups: how many, the variables of each and behind them, bit by bit, which are unbound, and the words of their
    /// aggregates.
    Groups(usize, Vec<Vec<u64>>, Vec<Vec<u64>>),
    /// The last message.
    End(Box<Cost>),
}

fn write_rows<'a>(
    writer: &mut Writer,
    len: usize,
    columns: impl ExactSizeIterator<Item = Option<&'a [u64]>>,
) {
    writer.u8(0);
    write_columns(writer, len, columns);
}

impl Found {
    /// Whether it is the last message of its participant.
    #[must_use]
    pub fn is_last(&self) -> bool {
        matches!(self, Self::End(_) | Self::Unlinked { .. })
    }

    /// The message of [`Found::Rows`] with these columns.
    #[must_use]
    pub fn encode_rows<'a>(
        len: usize,
        columns: impl ExactSizeIterator<Item = Option<&'a [u64]>>,
    ) -> Vec<u8> {
        let mut writer = Writer::new();
        write_rows(&mut writer, len, columns);
        writer.finish()
    }

    /// The message.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::new();
        match self {
            Self::Linked => writer.u8(3),
            Self::Unlinked { peer, why, closed } => {
                writer.u8(4);
                writer.u32(*peer);
                writer.bytes(why.as_bytes());
                writer.u8(u8::from(*closed));
            }
            Self::Rows(len, columns) => {
                let columns = columns.iter().map(Option::as_deref);
                write_rows(&mut writer, *len, columns);
            }
            Self::Groups(len, keys, counts) => {
                writer.u8(1);
                writer.u32(*len as u32);
                for columns in [keys, counts] {
                    writer.u32(columns.len() as u32);
                    columns.iter().for_each(|column| writer.column(column));
                }
            }
            Self::End(cost) => {
                writer.u8(2);
                writer.u32(cost.steps.len() as u32);
                let numbers = cost.steps.iter().flatten();
                numbers.for_each(|&number| writer.u64(number));
                writer.u32(cost.removed.len() as u32);
                cost.removed.iter().for_each(|&rows| writer.u64(rows));
                for number in [
                    cost.answered,
                    cost.messages,
                    cost.bytes,
                    cost.rows,
                    cost.blocked_writes,
                    cost.blocked,
                    cost.waited,
                    cost.spilled,
                    cost.groups_spilled,
                ] {
                    writer.u64(number);
                }
            }
        }
        writer.finish()
    }

    /// What [`Self::encode`] wrote.
    ///
    /// # Errors
    /// The message is damaged.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let mut reader = Reader::new(bytes);
        let found = match reader.u8()? {
            0 => {
                let (len, columns) = read_columns(&mut reader)?;
                Self::Rows(len, columns)
            }
            1 => {
                let len = reader.u32()? as usize;
                let keys = list(&mut reader, 4, |reader| column(reader, len))?;
                let counts = list(&mut reader, 4, |reader| column(reader, len))?;
                Self::Groups(len, keys, counts)
            }
            2 => {
                let steps = list(&mut reader, 8 * STEP_NUMBERS, |reader| {
                    let mut step = [0; STEP_NUMBERS];
                    for number in &mut step {
                        *number = reader.u64()?;
                    }
                    Ok(step)
                })?;
                Self::End(Box::new(Cost {
                    steps,
                    removed: list(&mut reader, 8, |reader| reader.u64())?,
                    answered: reader.u64()?,
                    messages: reader.u64()?,
                    bytes: reader.u64()?,
                    rows: reader.u64()?,
                    blocked_writes: reader.u64()?,
                    blocked: reader.u64()?,
                    waited: reader.u64()?,
                    spilled: reader.u64()?,
                    groups_spilled: reader.u64()?,
                }))
            }
            3 => Self::Linked,
            4 => Self::Unlinked {
                peer: reader.u32()?,
                why: text(&mut reader)?,
                closed: reader.u8()? != 0,
            },
            _ => return Err(Damaged),
        };
        reader.end()?;
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn start() -> Start {
        let participant = |n: u16| Participant {
            group: i32::from(n),
            name: format!("node{n}:5432"),
            address: format!("127.0.0.1:{}", 6000 + n),
            snapshot: "00000003-0000001B-1".to_owned(),
        };
        Start {
            query: 7,
            mesh: [8; MESH_BYTES],
            me: 1,
            participants: (0..3).map(participant).collect(),
            patience: 3000,
            first: Some(2),
            column: 2,
            least: 4,
            batch_bytes: 1 << 20,
            timing: true,
            stores: vec!["films".to_owned()],
            tables: vec![0, 0, 0],
            placement: 99,
            plan: vec![-1, 0, 5],
            tuning: [1, 2, 3, 4, 5],
            work_memory: 4 << 20,
            hash_memory: 8 << 20,
            params: vec![Param::One(3), Param::Null, Param::List(vec![1, 9])],
            filters: vec!["quad.eq($1, $2)".to_owned()],
            first_rows: Some(FirstRows {
                most: 10,
                keys: vec![SortKey {
                    place: 1,
                    by_term: true,
                    descending: false,
                    nulls_first: true,
                }],
            }),
            counting: Some(Counting {
                by: vec![3],
                counted: vec![
                    Aggregate::Rows,
                    Aggregate::Bound(2),
                    Aggregate::Sum(0),
                    Aggregate::Distinct(2),
                    Aggregate::LeastId(0),
                    Aggregate::GreatestId(0),
                    Aggregate::FirstTerm(0),
                    Aggregate::LastTerm(0),
                ],
                arguments: vec![("quad.cast_float($1)".to_owned(), vec![4])],
            }),
            rows: Some((2, vec![None, Some(vec![4, 5])])),
        }
    }

    #[test]
    fn messages_come_back() {
        for start in [
            start(),
            Start {
                first: None,
                first_rows: None,
                counting: None,
                rows: None,
                ..start()
            },
        ] {
            let bytes = start.encode();
            assert_eq!(bytes[0], VERSION);
            assert_eq!(Start::decode(&mut Reader::new(&bytes[1..])), Ok(start));
        }
        let cost = Cost {
            steps: vec![[3; STEP_NUMBERS]],
            waited: 9,
            removed: vec![1, 2],
            groups_spilled: 8,
            ..Cost::default()
        };
        for found in [
            Found::Linked,
            Found::Unlinked {
                peer: 2,
                why: "timeout".to_owned(),
                closed: false,
            },
            Found::Rows(2, vec![Some(vec![1, 2]), None]),
            Found::Rows(3, Vec::new()),
            Found::Groups(2, vec![vec![5, 6], vec![0, 1]], vec![vec![7, 8]]),
            Found::End(Box::new(cost)),
        ] {
            assert_eq!(Found::decode(&found.encode()), Ok(found));
        }
    }

    #[test]
    fn sets_are_told_apart() {
        for set in [0, 255, 256, 1663] {
            assert_eq!(set_of(&state_of_set(set)), Some(set));
        }
        assert_eq!(set_of(&[0, 1, 2]), None);
        assert_eq!(set_of(&[SET, 1]), None);
    }

    #[test]
    fn variables_that_a_plan_does_not_have_are_noticed() {
        let counting = start().counting.unwrap();
        assert!(counting.fits(5));
        for slots in [0, 2, 3, 4] {
            assert!(!counting.fits(slots), "{slots}");
        }
        let by = |columns| Counting {
            by: vec![0; columns],
            ..Counting::default()
        };
        assert!(by(62).fits(1));
        assert!(!by(63).fits(1));
    }

    #[test]
    fn tables_of_no_store_are_refused() {
        let mut start = start();
        start.tables.push(1);
        assert_eq!(
            Start::decode(&mut Reader::new(&start.encode()[1..])),
            Err(Damaged)
        );
    }

    proptest! {
        #[test]
        fn damage_is_noticed(at in 0usize..400, byte: u8, cut in 0usize..400) {
            let mut bytes = start().encode();
            let at = 1 + at % (bytes.len() - 1);
            bytes[at] = byte;
            let _ = Start::decode(&mut Reader::new(&bytes[1..]));
            bytes.truncate(1 + cut % (bytes.len() - 1));
            prop_assert_eq!(Start::decode(&mut Reader::new(&bytes[1..])), Err(Damaged));
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            let _ = Found::decode(&bytes);
        }
    }
}
