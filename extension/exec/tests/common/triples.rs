//! Patterns written as triples.

use super::common::FLIP;
use pgquad_exec::{Bound, ColumnNumber, Comparison, Param, Pattern, Slot, Value};

/// A term of a pattern.
#[derive(Clone, Copy)]
pub enum Term {
    Var(u16),
    Is(i64),
}
use Term::{Is, Var};

pub type Triple = [Term; 3];

/// Patterns, whose constants go to `params`.
pub fn patterns(triples: &[Triple], params: &mut Vec<Value>) -> Vec<Pattern> {
    let pattern = |triple: &Triple| {
        let mut pattern = Pattern::default();
        for (column, term) in triple.iter().enumerate() {
            match term {
                Var(slot) => pattern.cells[column] = Some(Slot::new(*slot)),
                Is(value) => {
                    pattern.conditions.push(Comparison::new(
                        ColumnNumber::from_index(column),
                        Bound::Eq,
                        Param::from_index(params.len()),
                    ));
                    params.push(Value::One(*value as u64 ^ FLIP));
                }
            }
        }
        pattern
    };
    triples.iter().map(pattern).collect()
}
