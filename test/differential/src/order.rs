//! Whether an answer is in the order that it was asked for, as far as section 15.1 of SPARQL 1.1 says.

use std::cmp::Ordering;

use oxrdf::vocab::xsd;
use oxrdf::Term;

use crate::answer::Row;

/// The first two neighbours that are the wrong way round. A key is the place of a column and whether it is descending.
pub fn disorder<'r>(rows: &'r [Row], keys: &[(usize, bool)]) -> Option<(&'r Row, &'r Row)> {
    rows.windows(2)
        .map(|pair| (&pair[0], &pair[1]))
        .find(|(a, b)| wrong(a, b, keys))
}

fn wrong(a: &Row, b: &Row, keys: &[(usize, bool)]) -> bool {
    for (column, descending) in keys {
        let (x, y) = (a[*column].as_ref(), b[*column].as_ref());
        let order = if *descending {
            compare(y, x)
        } else {
            compare(x, y)
        };
        match order {
            Some(Ordering::Equal) => {}
            Some(order) => return order == Ordering::Greater,
            // The specification leaves it open, and with it all that the further keys could say.
            None => return false,
        }
    }
    false
}

fn rank(term: Option<&Term>) -> u8 {
    match term {
        None => 0,
        Some(Term::BlankNode(_)) => 1,
        Some(Term::NamedNode(_)) => 2,
        Some(Term::Literal(_)) => 3,
    }
}

/// The order of two terms, `None` where it is not defined.
fn compare(a: Option<&Term>, b: Option<&Term>) -> Option<Ordering> {
    match (a, b) {
        (Some(Term::NamedNode(a)), Some(Term::NamedNode(b))) => Some(a.as_str().cmp(b.as_str())),
        (Some(Term::Literal(a)), Some(Term::Literal(b))) => {
            if a == b {
                return Some(Ordering::Equal);
            }
            let kinds = [a, b].map(|l| l.datatype());
            if kinds.iter().all(|kind| *kind == xsd::STRING) {
                return Some(a.value().cmp(b.value()));
            }
            let numeric = [xsd::INTEGER, xsd::DECIMAL, xsd::DOUBLE];
            if kinds.iter().all(|kind| numeric.contains(kind)) {
                let number = |text: &str| text.parse::<f64>().ok();
                return number(a.value())?.partial_cmp(&number(b.value())?);
            }
            None
        }
        (Some(Term::BlankNode(a)), Some(Term::BlankNode(b))) if a != b => None,
        _ => Some(rank(a).cmp(&rank(b))),
    }
}
