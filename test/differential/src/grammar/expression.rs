//! Expressions, by the type that they should have. One in a few is of another type, so that errors occur.

use super::terms::{constant, literal, var};
use super::{choice, Flavour};
use crate::syntax::{Expr, Group};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

/// The expressions of a layer.
#[derive(Clone)]
pub struct Expressions {
    /// Booleans.
    pub boolean: BoxedStrategy<Expr>,
    /// Numbers.
    pub number: BoxedStrategy<Expr>,
    /// Strings.
    pub string: BoxedStrategy<Expr>,
    /// Dates and times.
    pub moment: BoxedStrategy<Expr>,
    /// Anything.
    pub any: BoxedStrategy<Expr>,
}

const NUMBERS: [&str; 6] = ["1", "2", "0", "-3", "1.5", "0.1"];
const MOMENTS: [&str; 3] = [
    "\"2020-01-01T00:00:00Z\"^^xsd:dateTime",
    "\"2024-02-29T23:59:59.25\"^^xsd:dateTime",
    "\"2020-01-01T05:30:00+05:30\"^^xsd:dateTime",
];

fn numbers() -> BoxedStrategy<Expr> {
    atoms(&NUMBERS)
}

fn moments() -> BoxedStrategy<Expr> {
    atoms(&MOMENTS)
}

fn atoms(texts: &'static [&'static str]) -> BoxedStrategy<Expr> {
    select(texts).prop_map(Expr::Atom).boxed()
}

fn call(name: &'static str, arguments: Vec<BoxedStrategy<Expr>>) -> BoxedStrategy<Expr> {
    arguments
        .prop_map(move |list| Expr::Call(name, list))
        .boxed()
}

/// A call of one of several functions with the same arguments.
fn call_of(
    names: &'static [&'static str],
    arguments: Vec<BoxedStrategy<Expr>>,
) -> BoxedStrategy<Expr> {
    (select(names), arguments)
        .prop_map(|(name, list)| Expr::Call(name, list))
        .boxed()
}

fn infix(
    operators: &'static [&'static str],
    a: BoxedStrategy<Expr>,
    b: BoxedStrategy<Expr>,
) -> BoxedStrategy<Expr> {
    (select(operators), a, b)
        .prop_map(|(o, a, b)| Expr::Infix(o, Box::new(a), Box::new(b)))
        .boxed()
}

fn prefix(operator: &'static str, a: BoxedStrategy<Expr>) -> BoxedStrategy<Expr> {
    a.prop_map(move |a| Expr::Prefix(operator, Box::new(a)))
        .boxed()
}

impl Expressions {
    /// Variables and constants.
    pub fn simple(flavour: Flavour) -> Self {
        let variable = var().prop_map(Expr::Var).boxed();
        let with_variable =
            |weight, texts| choice(vec![(weight, variable.clone()), (1, atoms(texts))]);
        let numbers: &[&str] = match flavour {
            Flavour::Canonical => &NUMBERS,
            Flavour::Lexical => &["1", "2", "0", "-3", "1.5", "2e0", "0.1", "\"3\"^^xsd:float"],
        };
        let mut booleans = vec![
            (1, atoms(&["true", "false"])),
            (2, call("BOUND", vec![variable.clone()])),
        ];
        if flavour == Flavour::Lexical {
            booleans.push((1, variable.clone()));
        }
        Self {
            boolean: choice(booleans),
            number: with_variable(2, numbers),
            string: with_variable(
                2,
                &[
                    "\"a\"",
                    "\"b\"",
                    "\"\"",
                    "\"a\"@en",
                    "\"b\"@fr",
                    "\"a1b\"",
                    "\"\u{1d4b3}a\"",
                ],
            ),
            moment: with_variable(2, &MOMENTS),
            any: choice(vec![
                (3, variable.clone()),
                (1, literal(flavour).prop_map(Expr::Atom).boxed()),
                (1, constant(flavour).prop_map(Expr::Atom).boxed()),
            ]),
        }
    }

    /// A layer above this one; `group` is the pattern of EXISTS.
    pub fn above(&self, flavour: Flavour, group: Option<BoxedStrategy<Group>>) -> Self {
        let (boolean, number) = (self.booleans(flavour, group), self.numbers(flavour));
        let (string, moment) = match flavour {
            Flavour::Canonical => (self.strings(), self.moments()),
            Flavour::Lexical => (self.string.clone(), self.moment.clone()),
        };
        let mut any = vec![
            (3, self.any.clone()),
            (2, number.clone()),
            (1, boolean.clone()),
        ];
        if flavour == Flavour::Canonical {
            any.extend([
                (2, string.clone()),
                (1, moment.clone()),
                (
                    1,
                    call(
                        "IF",
                        vec![self.boolean.clone(), self.any.clone(), self.any.clone()],
                    ),
                ),
                (
                    1,
                    vec(self.any.clone(), 1..4)
                        .prop_map(|list| Expr::Call("COALESCE", list))
                        .boxed(),
                ),
                (1, call_of(&["IRI", "URI"], vec![self.string.clone()])),
                (
                    1,
                    call(
                        "STRLANG",
                        vec![self.string.clone(), atoms(&["\"en\"", "\"fr\"", "\"e n\""])],
                    ),
                ),
                (
                    1,
                    call(
                        "STRDT",
                        vec![self.string.clone(), atoms(&["xsd:string", ":dt"])],
                    ),
                ),
                (1, call("DATATYPE", vec![self.any.clone()])),
            ]);
        }
        let stray = |typed: BoxedStrategy<Expr>| choice(vec![(8, typed), (1, self.any.clone())]);
        Self {
            // The reference has no effective boolean value of a language string, section 17.2.2 has: only the flavour
            // without such strings tests anything but booleans.
            boolean: match flavour {
                Flavour::Canonical => boolean,
                Flavour::Lexical => stray(boolean),
            },
            number: stray(number),
            string: stray(string),
            moment: stray(moment),
            any: choice(any),
        }
    }

    /// Comparisons by order have a constant on one side. A comparison of any other term with itself is an error
    /// (section 17.3), but not for the reference, which also compares language strings.
    fn booleans(
        &self,
        flavour: Flavour,
        group: Option<BoxedStrategy<Group>>,
    ) -> BoxedStrategy<Expr> {
        let variable = || var().prop_map(Expr::Var).boxed();
        let equal: &[&str] = &["=", "!="];
        let order: &[&str] = &["<", "<=", ">", ">="];
        let simple = atoms(&["\"a\"", "\"b\"", "\"\"", "\"\u{e9}\""]);
        let mut arms = vec![
            (3, self.boolean.clone()),
            (3, infix(equal, self.any.clone(), self.any.clone())),
            (1, infix(equal, self.number.clone(), self.number.clone())),
            (1, infix(equal, self.moment.clone(), self.moment.clone())),
            (1, infix(equal, self.string.clone(), self.string.clone())),
            (2, infix(order, self.any.clone(), numbers())),
            (1, infix(order, numbers(), self.any.clone())),
            (1, infix(order, self.any.clone(), moments())),
            (1, infix(order, simple, self.any.clone())),
            (
                3,
                infix(&["&&", "||"], self.boolean.clone(), self.boolean.clone()),
            ),
            (2, prefix("! ", self.boolean.clone())),
            (
                2,
                call_of(
                    &["isIRI", "isBLANK", "isLITERAL", "isNUMERIC", "isURI"],
                    vec![self.any.clone()],
                ),
            ),
            (1, call("sameTerm", vec![variable(), variable()])),
            (1, self.in_list()),
        ];
        if flavour == Flavour::Canonical {
            let (string, pattern) = (
                self.string.clone(),
                atoms(&["\"a\"", "\"^a\"", "\"[0-9]+\"", "\"A.*\"", "\"(\""]),
            );
            arms.extend([
                (
                    1,
                    call("sameTerm", vec![self.any.clone(), self.any.clone()]),
                ),
                (
                    2,
                    call_of(
                        &["CONTAINS", "STRSTARTS", "STRENDS"],
                        vec![string.clone(), string.clone()],
                    ),
                ),
                (1, call("REGEX", vec![string.clone(), pattern.clone()])),
                (
                    1,
                    call(
                        "REGEX",
                        vec![
                            string.clone(),
                            pattern,
                            atoms(&["\"i\"", "\"\"", "\"s\"", "\"z\""]),
                        ],
                    ),
                ),
                (
                    1,
                    call(
                        "LANGMATCHES",
                        vec![
                            call("LANG", vec![self.any.clone()]),
                            atoms(&["\"*\"", "\"en\"", "\"EN-gb\"", "\"\""]),
                        ],
                    ),
                ),
                (
                    1,
                    call(
                        "IF",
                        vec![
                            self.boolean.clone(),
                            self.boolean.clone(),
                            self.boolean.clone(),
                        ],
                    ),
                ),
                (1, call("xsd:boolean", vec![self.any.clone()])),
                (
                    1,
                    atoms(&[
                        "isBLANK(BNODE())",
                        "isIRI(UUID())",
                        "(NOW() = NOW())",
                        "(RAND() < 1)",
                        "(STRLEN(STRUUID()) = 36)",
                    ]),
                ),
            ]);
        }
        if let Some(group) = group {
            let exists =
                (any::<bool>(), group).prop_map(|(negated, group)| Expr::Exists(negated, group));
            arms.push((4, exists.boxed()));
        }
        choice(arms)
    }

    fn in_list(&self) -> BoxedStrategy<Expr> {
        (self.any.clone(), any::<bool>(), vec(self.any.clone(), 1..4))
            .prop_map(|(a, negated, list)| Expr::In(Box::new(a), negated, list))
            .boxed()
    }

    fn numbers(&self, flavour: Flavour) -> BoxedStrategy<Expr> {
        let mut arms = vec![
            (2, self.number.clone()),
            (
                2,
                infix(&["+", "*"], self.number.clone(), self.number.clone()),
            ),
            // Differences of times, which pgquad has beyond SPARQL 1.1, are none of the reference.
            (1, infix(&["-"], self.number.clone(), numbers())),
            (1, infix(&["-"], numbers(), self.number.clone())),
            // The reference cannot divide zero by a decimal that is no integer.
            (
                1,
                infix(&["/"], self.number.clone(), atoms(&["1", "2", "0", "-3"])),
            ),
            (1, prefix("- ", self.number.clone())),
            (1, prefix("+ ", self.number.clone())),
            (
                2,
                call_of(
                    &["ABS", "ROUND", "CEIL", "FLOOR"],
                    vec![self.number.clone()],
                ),
            ),
        ];
        if flavour == Flavour::Canonical {
            arms.extend([
                (1, call("STRLEN", vec![self.string.clone()])),
                (
                    1,
                    call_of(
                        &["YEAR", "MONTH", "DAY", "HOURS", "MINUTES", "SECONDS"],
                        vec![self.moment.clone()],
                    ),
                ),
            ]);
        }
        let casts: &[&str] = match flavour {
            Flavour::Canonical => &["xsd:integer", "xsd:decimal"],
            Flavour::Lexical => &["xsd:integer", "xsd:decimal", "xsd:double", "xsd:float"],
        };
        arms.push((1, call_of(casts, vec![self.any.clone()])));
        choice(arms)
    }

    fn strings(&self) -> BoxedStrategy<Expr> {
        let (string, number) = (self.string.clone(), self.number.clone());
        let arms = vec![
            (2, string.clone()),
            (3, call("STR", vec![self.any.clone()])),
            (1, call("LANG", vec![self.any.clone()])),
            (
                1,
                call_of(&["UCASE", "LCASE", "ENCODE_FOR_URI"], vec![string.clone()]),
            ),
            (1, call("SUBSTR", vec![string.clone(), number.clone()])),
            (
                1,
                call("SUBSTR", vec![string.clone(), number.clone(), number]),
            ),
            (
                2,
                call_of(
                    &["STRBEFORE", "STRAFTER"],
                    vec![string.clone(), string.clone()],
                ),
            ),
            (
                1,
                vec(string.clone(), 0..4)
                    .prop_map(|list| Expr::Call("CONCAT", list))
                    .boxed(),
            ),
            (
                1,
                call(
                    "REPLACE",
                    vec![
                        string.clone(),
                        atoms(&["\"a\"", "\"(b)|(a)\"", "\"A\""]),
                        atoms(&["\"z\"", "\"[$1]\"", "\"\""]),
                    ],
                ),
            ),
            (
                1,
                call(
                    "REPLACE",
                    vec![
                        string.clone(),
                        atoms(&["\"A\""]),
                        atoms(&["\"z\""]),
                        atoms(&["\"i\""]),
                    ],
                ),
            ),
            (
                1,
                call_of(&["MD5", "SHA1", "SHA256", "SHA384", "SHA512"], vec![string]),
            ),
            (1, call("TZ", vec![self.moment.clone()])),
            (
                1,
                call("STR", vec![call("TIMEZONE", vec![self.moment.clone()])]),
            ),
        ];
        choice(arms)
    }

    fn moments(&self) -> BoxedStrategy<Expr> {
        choice(vec![
            (4, self.moment.clone()),
            (1, call("xsd:dateTime", vec![self.any.clone()])),
        ])
    }
}
