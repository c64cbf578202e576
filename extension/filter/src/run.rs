//! Evaluation of expressions for the rows of a batch.

use crate::column::{Column, Truths};
use crate::expression::{Fixed, Ids, Terms, Test};
use crate::operators::Comparison;
use crate::truth::Truth;
use crate::value::Value;
use std::cmp::Ordering;

/// Rows evaluated at once: what is computed for them stays in the processor's cache.
const PIECE_ROWS: usize = 512;

/// Some rows, and the values that are the same for all.
pub(crate) struct Rows<'r> {
    /// The columns, by number; `None` where all rows are NULL.
    pub columns: Vec<Option<&'r [u64]>>,
    pub fixed: &'r [Fixed],
    pub len: usize,
}

/// Ids, one for each row.
enum IdColumn<'r> {
    Same(Option<u64>),
    Keys(&'r [u64]),
}

impl IdColumn<'_> {
    #[inline]
    fn at(&self, row: usize) -> Option<u64> {
        match self {
            Self::Same(key) => *key,
            Self::Keys(keys) => Some(keys[row]),
        }
    }

    fn test(&self, rows: usize, test: impl Fn(Option<u64>) -> Truth) -> Truths {
        match self {
            Self::Same(key) => Truths::Same(test(*key)),
            Self::Keys(keys) => {
                debug_assert_eq!(keys.len(), rows);
                Truths::Each(keys.iter().map(|&key| test(Some(key))).collect())
            }
        }
    }
}

impl Test {
    /// Evaluates the condition for `rows` rows; `emit` gets each row's number and value. A column that is `None` is
    /// NULL in all rows.
    pub fn run(
        &self,
        columns: &[Option<&[u64]>],
        fixed: &[Fixed],
        rows: usize,
        mut emit: impl FnMut(usize, Truth),
    ) {
        for first in (0..rows).step_by(PIECE_ROWS) {
            let end = rows.min(first + PIECE_ROWS);
            let piece = Rows {
                columns: columns.iter().map(|c| c.map(|c| &c[first..end])).collect(),
                fixed,
                len: end - first,
            };
            let truths = self.evaluate(&piece);
            (first..end).for_each(|row| emit(row, truths.at(row - first)));
        }
    }

    pub(crate) fn evaluate(&self, rows: &Rows<'_>) -> Truths {
        match self {
            Self::Fixed(place) => Truths::Same(match rows.fixed[*place] {
                Fixed::Truth(truth) => truth,
                _ => Truth::Unknown,
            }),
            Self::And(all) => all.iter().fold(Truths::Same(Truth::True), |so_far, test| {
                if let Truths::Same(Truth::False) = so_far {
                    return so_far;
                }
                so_far.zip(test.evaluate(rows), Truth::and)
            }),
            Self::Or(all) => all.iter().fold(Truths::Same(Truth::False), |so_far, test| {
                if let Truths::Same(Truth::True) = so_far {
                    return so_far;
                }
                so_far.zip(test.evaluate(rows), Truth::or)
            }),
            Self::Not(test) => test.evaluate(rows).map(|t| !t),
            Self::Numbers(comparison, a, b) => {
                compare_numbers(*comparison, &a.evaluate(rows), &b.evaluate(rows), rows.len)
            }
            Self::Among(ids, place) => {
                let Fixed::List(list) = &rows.fixed[*place] else {
                    return Truths::Same(Truth::Unknown);
                };
                ids.evaluate(rows)
                    .test(rows.len, |key| among(key, list.as_ref()))
            }
            Self::Terms(comparison, a, b) => {
                let (a, b) = (a.evaluate(rows), b.evaluate(rows));
                a.compare(*comparison, &b, rows.len)
            }
            Self::Integer(comparison, kind, ids, place) => {
                let Fixed::Integer(value) = rows.fixed[*place] else {
                    return Truths::Same(Truth::Unknown);
                };
                let compare = |key| kind.compare(*comparison, key, value);
                ids.evaluate(rows).test(rows.len, compare)
            }
            Self::Effective(term) => term.evaluate(rows).test(rows.len, Value::effective),
            Self::Is(kind, term) => term.evaluate(rows).test(rows.len, |value| value.is(*kind)),
            Self::TextIs(term, place) => match &rows.fixed[*place] {
                Fixed::Text(text) => {
                    let test = |value: Value| value.text_is(text);
                    term.evaluate(rows).test(rows.len, test)
                }
                Fixed::Truth(truth) => Truths::Same(*truth),
                _ => Truths::Same(Truth::Unknown),
            },
            Self::LanguageMatches(tag, range) => {
                let (tag, range) = (tag.evaluate(rows), range.evaluate(rows));
                tag.language_matches(&range, rows.len)
            }
            Self::NullId(ids) => ids
                .evaluate(rows)
                .test(rows.len, |key| Truth::of(Some(key.is_none()))),
            Self::NullTerm(term) => term.evaluate(rows).test(rows.len, Value::is_null),
            Self::NullTest(test) => test.evaluate(rows).map(Truth::is_null),
            Self::IsTrue(test) => test.evaluate(rows).map(|t| t.and(!t.is_null())),
            Self::IsFalse(test) => test.evaluate(rows).map(|t| (!t).and(!t.is_null())),
        }
    }
}

impl Ids {
    fn evaluate<'r>(&self, rows: &Rows<'r>) -> IdColumn<'r> {
        match self {
            Self::Column(number) => match rows.columns[*number] {
                Some(keys) => IdColumn::Keys(keys),
                None => IdColumn::Same(None),
            },
            Self::Fixed(place) => IdColumn::Same(match rows.fixed[*place] {
                Fixed::Id(key) => key,
                _ => None,
            }),
            // A column is NULL in all rows or in none.
            Self::Coalesce(all) => all
                .iter()
                .map(|ids| ids.evaluate(rows))
                .find(|column| !matches!(column, IdColumn::Same(None)))
                .unwrap_or(IdColumn::Same(None)),
        }
    }
}

impl Terms {
    pub(crate) fn evaluate<'r>(&self, rows: &Rows<'r>) -> Column<'r> {
        match self {
            Self::Decode(ids) => match ids.evaluate(rows) {
                IdColumn::Same(key) => Column::Same(Value::of_key(key)),
                IdColumn::Keys(keys) => Column::Keys(keys),
            },
            Self::Fixed(place) => Column::Same(match rows.fixed[*place] {
                Fixed::Term(value) => value,
                _ => Value::Unknown,
            }),
            Self::Arithmetic(operator, operands) => {
                let (a, b) = (operands.0.evaluate(rows), operands.1.evaluate(rows));
                a.arithmetic(*operator, b, rows.len)
            }
            Self::Negated(term) => term.evaluate(rows).map(rows.len, Value::negated),
            Self::Plus(term) => term.evaluate(rows).map(rows.len, Value::plus),
            Self::Boolean(test) => match test.evaluate(rows) {
                Truths::Same(truth) => Column::Same(Value::of_truth(truth)),
                Truths::Each(truths) => {
                    Column::Values(truths.into_iter().map(Value::of_truth).collect())
                }
            },
            Self::Language(term, place) => {
                let tags = match &rows.fixed[*place] {
                    Fixed::Languages(tags) => tags.as_slice(),
                    _ => &[],
                };
                term.evaluate(rows)
                    .map(rows.len, |value| value.language(tags))
            }
            Self::Datatype(term, place) => {
                let datatypes = match &rows.fixed[*place] {
                    Fixed::Datatypes(datatypes) => datatypes.as_slice(),
                    _ => &[],
                };
                term.evaluate(rows)
                    .map(rows.len, |value| value.datatype(datatypes))
            }
            Self::Coalesce(all) => {
                let columns: Vec<Column<'_>> = all.iter().map(|t| t.evaluate(rows)).collect();
                let first = |row: usize| {
                    let mut values = columns.iter().map(|column| column.at(row));
                    values
                        .find(|value| !matches!(value, Value::Null))
                        .unwrap_or(Value::Null)
                };
                Column::Values((0..rows.len).map(first).collect())
            }
        }
    }
}

fn compare_numbers(
    comparison: Comparison,
    a: &IdColumn<'_>,
    b: &IdColumn<'_>,
    rows: usize,
) -> Truths {
    let compare = |a: Option<u64>, b: Option<u64>| {
        let order: Option<Ordering> = a.zip(b).map(|(a, b)| a.cmp(&b));
        Truth::of(order.map(|order| comparison.accepts(order)))
    };
    match (a, b) {
        (a, IdColumn::Same(b)) => a.test(rows, |a| compare(a, *b)),
        (IdColumn::Same(a), b) => b.test(rows, |b| compare(*a, b)),
        _ => Truths::Each((0..rows).map(|row| compare(a.at(row), b.at(row))).collect()),
    }
}

/// Nothing is equal to a member of an empty list, not even NULL (`ExecEvalScalarArrayOp`).
fn among(key: Option<u64>, list: Option<&(Vec<u64>, bool)>) -> Truth {
    let Some((list, has_null)) = list else {
        return Truth::Null;
    };
    if list.is_empty() && !has_null {
        return Truth::False;
    }
    let Some(key) = key else {
        return Truth::Null;
    };
    if list.binary_search(&key).is_ok() {
        Truth::True
    } else if *has_null {
        Truth::Null
    } else {
        Truth::False
    }
}
