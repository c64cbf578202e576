//! Range pushdown: the ranges of ids outside of which a test of one column fails, for a tree to look up.

use crate::expression::{Fixed, Ids, Terms, Test};
use crate::intervals::{first_that_is_not, of_languages, Intervals};
use crate::operators::Comparison;
use crate::run::Rows;
use crate::truth::Truth;
use crate::value::Value;
use crate::SIGN;
use pgquad_term::id::{MAX_LANGUAGE_NUMBER, MAX_PAYLOAD};
use pgquad_term::{ascending_instants, ascending_numbers, tag, TermId};

impl Test {
    /// Ids (as keys) of a column with which the condition may be true, when the other columns have the values of `row`
    /// (`None`: NULL). With all other ids it is not true. Ids that may stand for a term with which it is true are
    /// inside.
    #[must_use]
    pub fn pushdown_ranges(
        &self,
        column: usize,
        row: &[Option<u64>],
        fixed: &[Fixed],
    ) -> Intervals {
        let columns = row.iter().map(|key| key.as_ref().map(std::slice::from_ref));
        let rows = Rows {
            columns: columns.collect(),
            fixed,
            len: 1,
        };
        self.possible(column, &rows)
    }

    fn possible(&self, column: usize, rows: &Rows<'_>) -> Intervals {
        match self {
            Self::And(all) => all.iter().fold(Intervals::all(), |so_far, test| {
                so_far.intersection(&test.possible(column, rows))
            }),
            // Put together at once: of thousands of alternatives, one by one would sort what is there each time.
            Self::Or(all) => Intervals::of(
                all.iter()
                    .flat_map(|test| test.possible(column, rows).0)
                    .collect(),
            ),
            Self::Terms(comparison, a, b) => {
                let decoded = |term: &Terms| *term == Terms::Decode(Ids::Column(column));
                if decoded(a) && !b.uses(column) {
                    satisfying(*comparison, b.evaluate(rows).at(0))
                } else if decoded(b) && !a.uses(column) {
                    satisfying(comparison.commuted(), a.evaluate(rows).at(0))
                } else {
                    self.possible_kinds(column, rows)
                        .unwrap_or_else(Intervals::all)
                }
            }
            Self::Integer(comparison, kind, ids, place) if *ids == Ids::Column(column) => {
                match &rows.fixed[*place] {
                    Fixed::Integer(value) => kind.possible(*comparison, *value),
                    _ => Intervals::all(),
                }
            }
            Self::TextIs(term, place) if *term == Terms::Decode(Ids::Column(column)) => {
                match &rows.fixed[*place] {
                    Fixed::Text(text) => {
                        let alone = text.ids.iter().map(|&id| (id, id));
                        let later = text.last_language..MAX_LANGUAGE_NUMBER;
                        let later = (!later.is_empty())
                            .then(|| of_languages(later.start + 1, MAX_LANGUAGE_NUMBER));
                        of_ids(alone.chain([OTHERS]).chain(later))
                    }
                    _ => Intervals::all(),
                }
            }
            _ => self
                .possible_kinds(column, rows)
                .unwrap_or_else(Intervals::all),
        }
    }

    fn uses(&self, column: usize) -> bool {
        match self {
            Self::Fixed(_) => false,
            Self::And(all) | Self::Or(all) => all.iter().any(|test| test.uses(column)),
            Self::Not(test) | Self::NullTest(test) | Self::IsTrue(test) | Self::IsFalse(test) => {
                test.uses(column)
            }
            Self::Numbers(_, a, b) => a.uses(column) || b.uses(column),
            Self::Among(ids, _) | Self::NullId(ids) | Self::Integer(_, _, ids, _) => {
                ids.uses(column)
            }
            Self::Terms(_, a, b) | Self::LanguageMatches(a, b) => a.uses(column) || b.uses(column),
            Self::Effective(term)
            | Self::Is(_, term)
            | Self::NullTerm(term)
            | Self::TextIs(term, _) => term.uses(column),
        }
    }
}

impl Ids {
    pub(crate) fn uses(&self, column: usize) -> bool {
        match self {
            Self::Column(number) => *number == column,
            Self::Fixed(_) => false,
            Self::Coalesce(all) => all.iter().any(|ids| ids.uses(column)),
        }
    }
}

impl Terms {
    fn uses(&self, column: usize) -> bool {
        match self {
            Self::Decode(ids) => ids.uses(column),
            Self::Fixed(_) => false,
            Self::Arithmetic(_, operands) => operands.0.uses(column) || operands.1.uses(column),
            Self::Negated(term)
            | Self::Plus(term)
            | Self::Language(term, _)
            | Self::Datatype(term, _) => term.uses(column),
            Self::Boolean(test) => test.uses(column),
            Self::Coalesce(all) => all.iter().any(|term| term.uses(column)),
        }
    }
}

/// Ids of terms for which the comparison with a value holds, and of terms that only the dictionary can compare.
fn satisfying(comparison: Comparison, value: Value) -> Intervals {
    let id = match value {
        Value::Null => return Intervals::none(),
        Value::Unknown => return Intervals::all(),
        Value::Number(_) => None,
        Value::Id(id) => Some(id),
    };
    if comparison == Comparison::Ne {
        return Intervals::all();
    }
    let runs = match id.map(TermId::tag) {
        None | Some(tag::INTEGER | tag::DECIMAL | tag::DOUBLE | tag::FLOAT) => ascending_numbers(),
        Some(tag @ (tag::DATE_TIME | tag::DATE)) => ascending_instants(tag),
        Some(tag::LANG_STRING) if comparison != Comparison::Eq => {
            let language = id.and_then(TermId::language_number).unwrap_or(0);
            return of_ids([OTHERS, of_languages(language, language)].into_iter());
        }
        _ => return Intervals::all(),
    };
    let mut ranges: Vec<(TermId, TermId)> = Vec::with_capacity(runs.len() + 1);
    ranges.push(OTHERS);
    let compare = |comparison, id| Value::Id(TermId(id)).compare(comparison, value);
    // In each run, terms below the value come first, then those that are equal, then those above. Where either begins:
    let begin =
        |(low, high), below| first_that_is_not(low, high, |id| compare(below, id) == Truth::True);
    // The integer types differ by nothing but where their run begins.
    let mut integers: Option<(u64, u64)> = None;
    for (low, high) in runs {
        // Of instants with and without time zone.
        if compare(Comparison::Lt, low) == Truth::Unknown {
            ranges.push((TermId(low), TermId(high)));
            continue;
        }
        let (from, to) = match integers {
            Some((from, to)) if TermId(low).tag() == tag::INTEGER => (low + from, low + to),
            _ => match comparison {
                Comparison::Lt => (low, begin((low, high), Comparison::Lt)),
                Comparison::Le => (low, begin((low, high), Comparison::Le)),
                Comparison::Ge => (begin((low, high), Comparison::Lt), high + 1),
                Comparison::Gt => (begin((low, high), Comparison::Le), high + 1),
                Comparison::Eq => {
                    let from = begin((low, high), Comparison::Lt);
                    (from, begin((from, high), Comparison::Le))
                }
                Comparison::Ne => (low, high + 1),
            },
        };
        integers = Some((from - low, to - low));
        if from < to {
            ranges.push((TermId(from), TermId(to - 1)));
        }
    }
    of_ids(ranges.into_iter())
}

/// Literals of which only the dictionary tells more.
const OTHERS: (TermId, TermId) = (
    TermId::new(tag::OTHER, 0),
    TermId::new(tag::OTHER, MAX_PAYLOAD),
);

/// Ranges of ids as ranges of keys.
fn of_ids(ranges: impl Iterator<Item = (TermId, TermId)>) -> Intervals {
    Intervals::of(ranges.map(|(a, b)| (a.0 ^ SIGN, b.0 ^ SIGN)).collect())
}
