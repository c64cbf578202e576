//! Conditions that ask only what kind of term a column holds. They are true of whole ranges of ids.

use crate::expression::{Fixed, Ids, Terms, Test};
use crate::intervals::{of_languages, Intervals};
use crate::run::Rows;
use crate::truth::Truth;
use crate::SIGN;
use pgquad_term::id::{MAX_LANGUAGE_NUMBER, MAX_PAYLOAD};
use pgquad_term::{ascending_numbers, tag, TermId};

impl Test {
    /// Ids (as keys) with which the condition may be true, if it asks nothing of the column but its kind.
    pub(crate) fn possible_kinds(&self, column: usize, rows: &Rows<'_>) -> Option<Intervals> {
        if !self.asks_kinds(column) {
            return None;
        }
        let ranges = kinds(rows.fixed).into_iter().filter(|(_, high)| {
            let key = [*high];
            let mut columns = rows.columns.clone();
            columns[column] = Some(&key);
            let rows = Rows {
                columns,
                fixed: rows.fixed,
                len: 1,
            };
            matches!(self.evaluate(&rows).at(0), Truth::True | Truth::Unknown)
        });
        Some(Intervals::of(ranges.collect()))
    }

    fn asks_kinds(&self, column: usize) -> bool {
        match self {
            Self::Fixed(_) => true,
            Self::And(all) | Self::Or(all) => all.iter().all(|test| test.asks_kinds(column)),
            Self::Not(test) | Self::NullTest(test) | Self::IsTrue(test) | Self::IsFalse(test) => {
                test.asks_kinds(column)
            }
            Self::Numbers(_, a, b) => !a.uses(column) && !b.uses(column),
            Self::Among(ids, _) | Self::NullId(ids) | Self::Integer(_, _, ids, _) => {
                !ids.uses(column)
            }
            Self::Terms(_, a, b) | Self::LanguageMatches(a, b) => {
                a.asks_kinds(column) && b.asks_kinds(column)
            }
            Self::Is(_, term) => is_column(term, column) || term.asks_kinds(column),
            Self::Effective(term) | Self::NullTerm(term) | Self::TextIs(term, _) => {
                term.asks_kinds(column)
            }
        }
    }
}

impl Terms {
    fn asks_kinds(&self, column: usize) -> bool {
        match self {
            Self::Decode(ids) => !ids.uses(column),
            Self::Fixed(_) => true,
            Self::Arithmetic(_, operands) => {
                operands.0.asks_kinds(column) && operands.1.asks_kinds(column)
            }
            Self::Negated(term) | Self::Plus(term) => term.asks_kinds(column),
            Self::Language(term, _) | Self::Datatype(term, _) => {
                is_column(term, column) || term.asks_kinds(column)
            }
            Self::Boolean(test) => test.asks_kinds(column),
            Self::Coalesce(all) => all.iter().all(|term| term.asks_kinds(column)),
        }
    }
}

fn is_column(term: &Terms, column: usize) -> bool {
    *term == Terms::Decode(Ids::Column(column))
}

/// Ranges of keys that hold all ids; what tests of kinds say of one id of a range they say of all.
fn kinds(fixed: &[Fixed]) -> Vec<(u64, u64)> {
    let of_tag = |tag| (TermId::new(tag, 0), TermId::new(tag, MAX_PAYLOAD));
    // The default graph is no term, but has the place of an IRI.
    let none = TermId::DEFAULT_GRAPH;
    let mut ranges = vec![(none, none), (TermId(none.0 + 1), of_tag(tag::IRI).1)];
    let others = tag::BLANK..=tag::SHORT_STRING;
    let others = others.filter(|&tag| tag != tag::LANG_STRING && tag != tag::INTEGER);
    ranges.extend(others.map(of_tag));
    let numbers = ascending_numbers().into_iter();
    let numbers = numbers.map(|(low, high)| (TermId(low), TermId(high)));
    ranges.extend(numbers.filter(|(low, _)| low.tag() == tag::INTEGER));
    let languages = fixed.iter().map(|value| match value {
        Fixed::Languages(tags) => tags.len(),
        _ => 0,
    });
    let last = MAX_LANGUAGE_NUMBER;
    let known = languages.max().unwrap_or(0).min(usize::from(last)) as u16;
    ranges.extend((0..known).map(|language| of_languages(language, language)));
    ranges.push(of_languages(known, last));
    let key = |id: TermId| id.0 ^ SIGN;
    ranges.iter().map(|&(a, b)| (key(a), key(b))).collect()
}
