//! Property paths.

use super::choice;
use super::terms::predicate;
use proptest::collection::vec;
use proptest::prelude::*;

/// A path of any operators. Alternatives keep duplicates (section 18.4), but the reference drops those within other
/// paths. So outside of what is repeated, which drops duplicates in any case, they are alternatives of different
/// predicates.
pub fn path() -> BoxedStrategy<String> {
    let step = |negated: BoxedStrategy<String>| {
        choice(vec![
            (4, predicate().prop_map(str::to_owned).boxed()),
            (1, predicate().prop_map(|p| format!("^{p}")).boxed()),
            (1, negated),
        ])
    };
    let one_way = any::<bool>().prop_flat_map(|inverse| negated_set(Just(inverse).boxed()));
    let mut layer = step(one_way.boxed());
    let mut repeated = step(negated_set(any::<bool>().boxed()));
    for _ in 0..2 {
        let (outside, inside) = (layer.clone(), repeated.clone());
        let common = |below: &BoxedStrategy<String>| {
            vec![
                (3, below.clone()),
                (1, infix(below.clone(), "/")),
                (1, inverse(below.clone())),
                (1, suffix(inside.clone(), "?")),
                (1, suffix(inside.clone(), "*")),
                (1, suffix(inside.clone(), "+")),
            ]
        };
        let mut arms = common(&inside);
        arms.push((1, infix(inside.clone(), "|")));
        repeated = choice(arms);
        layer = choice(common(&outside));
    }
    let alternative = Just("(:p|:q)".to_owned()).boxed();
    choice(vec![(8, layer), (1, alternative)])
}

fn inverse(part: BoxedStrategy<String>) -> BoxedStrategy<String> {
    part.prop_map(|p| format!("^({p})")).boxed()
}

fn infix(part: BoxedStrategy<String>, operator: &'static str) -> BoxedStrategy<String> {
    (part.clone(), part)
        .prop_map(move |(a, b)| format!("({a}{operator}{b})"))
        .boxed()
}

fn suffix(part: BoxedStrategy<String>, operator: &'static str) -> BoxedStrategy<String> {
    part.prop_map(move |p| format!("({p}){operator}")).boxed()
}

/// A negated property set; one of both ways is an alternative.
fn negated_set(inverse: BoxedStrategy<bool>) -> BoxedStrategy<String> {
    vec((inverse, predicate()), 1..3)
        .prop_map(|members| {
            let members: Vec<String> = members
                .into_iter()
                .map(|(inverse, p)| format!("{}{p}", if inverse { "^" } else { "" }))
                .collect();
            format!("!({})", members.join("|"))
        })
        .boxed()
}
