//! Random expressions over random terms give what the operators of `pgquad-term` give for the terms, or `Unknown`.

use pgquad_btree::SIGN;
use pgquad_filter::{
    datatypes, terms_of_text, Arithmetic, Comparison, Fixed, Ids, SqlInteger, TermKind, Terms,
    Test, TextIds, Truth, UnstoredConstants, Value,
};
use pgquad_term::func::{numeric, strings, terms as functions};
use pgquad_term::{compare, inline_id, LiteralKind, Term, TermBuf, TermId, Xsd};
use proptest::prelude::*;

/// A term, and its id in an imagined dictionary.
#[derive(Clone, Debug)]
struct Known {
    term: TermBuf,
    id: TermId,
}

fn known(term: TermBuf) -> Known {
    let number = pgquad_term::term_hash(&term.as_term()) as u64 & 0xffff_ffff | 1;
    let language = match term.as_term() {
        Term::Literal(literal) if literal.kind == LiteralKind::Language("fr") => 2,
        _ => 1,
    };
    let id = inline_id(&term.as_term())
        .unwrap_or_else(|| TermId::in_dictionary(&term.as_term(), number, Some(language)));
    Known { term, id }
}

fn term() -> impl Strategy<Value = Known> {
    let xsd = |text: String, xsd| TermBuf::xsd(&text, xsd);
    prop_oneof![
        8 => (-5_i64..5).prop_map(move |n| xsd(n.to_string(), Xsd::Integer)),
        2 => any::<i64>().prop_map(move |n| xsd(n.to_string(), Xsd::Integer)),
        1 => (-3_i64..3).prop_map(move |n| xsd(n.to_string(), Xsd::Int)),
        1 => (0_i64..3).prop_map(move |n| xsd(format!("0{n}"), Xsd::Integer)),
        4 => "-?[0-3](\\.[0-9]{1,3})?".prop_map(move |n| xsd(n, Xsd::Decimal)),
        1 => "[1-9]\\.[0-9]{7,9}".prop_map(move |n| xsd(n, Xsd::Decimal)),
        4 => "(-?[0-3]\\.[05]E0|NaN|INF|-INF|-0\\.0E0|1e0|1\\.1E0)".prop_map(move |n| xsd(n, Xsd::Double)),
        2 => "(-?[0-3]\\.[05]E0|NaN|INF|1\\.1E0)".prop_map(move |n| xsd(n, Xsd::Float)),
        2 => "(true|false|1)".prop_map(move |n| xsd(n, Xsd::Boolean)),
        3 => "2020-01-0[1-3]T0[0-2]:00:00(Z|\\+0[1-3]:00)?".prop_map(move |n| xsd(n, Xsd::DateTime)),
        1 => "2020-01-0[1-3]T0[0-2]:00:00\\.1234Z".prop_map(move |n| xsd(n, Xsd::DateTime)),
        1 => "2020-01-0[1-3]T0[0-2]:00:00Z".prop_map(move |n| xsd(n, Xsd::DateTimeStamp)),
        2 => "2020-01-0[1-3](Z|\\+0[1-3]:00)?".prop_map(move |n| xsd(n, Xsd::Date)),
        1 => "P[1-3]D".prop_map(move |n| xsd(n, Xsd::DayTimeDuration)),
        3 => "([ab]{0,2}|en|EN|\\*|fr)".prop_map(|text| TermBuf::string(&text)),
        1 => "[ab]{8,9}".prop_map(|text| TermBuf::string(&text)),
        2 => ("[ab]{0,2}", "(en|fr)").prop_map(|(text, tag)| TermBuf::language(&text, &tag)),
        1 => "[ab]{1,2}".prop_map(|text| Term::typed(&text, "http://example.org/t").to_buf()),
        2 => "http://example.org/[ab]".prop_map(|iri| TermBuf::iri(&iri)),
        1 => prop::sample::select(datatypes().collect::<Vec<_>>()).prop_map(TermBuf::iri),
        1 => prop::sample::select(vec![Xsd::Integer, Xsd::Decimal, Xsd::Int]).prop_map(|xsd| TermBuf::iri(xsd.iri())),
        1 => (1_u64..4).prop_map(TermBuf::blank_number),
        1 => "nonsense".prop_map(move |n| xsd(n, Xsd::Integer)),
    ]
    .prop_map(known)
}

/// Texts that STR is compared with.
const TEXTS: [&str; 6] = ["1", "a", "2020-01-01", "true", "http://example.org/a", ""];

/// What SQL integers are compared with, and its place.
const INTEGER: i64 = 2;
const INTEGER_PLACE: usize = TEXTS.len() + 9;

/// What a column holds: a term in every row, or NULL in all.
type Columns = Vec<Option<Vec<Known>>>;

const ROWS: usize = 5;

fn columns() -> impl Strategy<Value = Columns> {
    // Often all terms of a column are of one kind.
    let numbers = (-9_i64..9).prop_map(|n| known(TermBuf::integer(n.into())));
    let decimals = "[0-3]\\.[0-9]{1,2}".prop_map(|n| known(TermBuf::xsd(&n, Xsd::Decimal)));
    let dates = "2020-01-0[1-3]".prop_map(|n| known(TermBuf::xsd(&n, Xsd::Date)));
    let column = prop_oneof![
        prop::collection::vec(numbers, ROWS),
        prop::collection::vec(decimals, ROWS),
        prop::collection::vec(dates, ROWS),
        prop::collection::vec(term(), ROWS),
    ];
    prop::collection::vec(prop::option::weighted(0.9, column), 3)
}

/// Constants: NULL, or a term.
fn constants() -> impl Strategy<Value = Vec<Option<Known>>> {
    prop::collection::vec(prop::option::weighted(0.9, term()), 3)
}

fn comparison() -> impl Strategy<Value = Comparison> {
    use Comparison::{Eq, Ge, Gt, Le, Lt, Ne};
    prop::sample::select(vec![Eq, Ne, Lt, Le, Gt, Ge])
}

fn ids() -> impl Strategy<Value = Ids> {
    let one = prop_oneof![4 => (0..3_usize).prop_map(Ids::Column), 1 => (0..3_usize).prop_map(Ids::Fixed)];
    prop_oneof![
        5 => one.clone(),
        1 => prop::collection::vec(one, 1..3).prop_map(Ids::Coalesce),
    ]
}

fn terms() -> impl Strategy<Value = Terms> {
    let leaf = prop_oneof![
        3 => ids().prop_map(Terms::Decode),
        1 => (3..6_usize).prop_map(Terms::Fixed),
    ];
    leaf.prop_recursive(3, 12, 2, |inner| {
        use Arithmetic::{Add, Div, Mul, Sub};
        let operator = prop::sample::select(vec![Add, Sub, Mul, Div]);
        prop_oneof![
            4 => (operator, inner.clone(), inner.clone())
                .prop_map(|(o, a, b)| Terms::Arithmetic(o, Box::new((a, b)))),
            1 => inner.clone().prop_map(|t| Terms::Negated(Box::new(t))),
            1 => inner.clone().prop_map(|t| Terms::Plus(Box::new(t))),
            1 => prop::collection::vec(inner.clone(), 1..3).prop_map(Terms::Coalesce),
            1 => inner.clone().prop_map(|t| Terms::Language(Box::new(t), 7)),
            2 => inner.clone().prop_map(|t| Terms::Datatype(Box::new(t), 8)),
            1 => (comparison(), inner.clone(), inner)
                .prop_map(|(c, a, b)| Terms::Boolean(Box::new(Test::Terms(c, a, b)))),
        ]
    })
}

fn test() -> impl Strategy<Value = Test> {
    use TermKind::{Blank, Iri, Literal, Numeric};
    let kind = prop::sample::select(vec![Iri, Blank, Literal, Numeric]);
    let leaf = prop_oneof![
        8 => (comparison(), terms(), terms()).prop_map(|(c, a, b)| Test::Terms(c, a, b)),
        1 => (comparison(), ids(), ids()).prop_map(|(c, a, b)| Test::Numbers(c, a, b)),
        1 => ids().prop_map(|a| Test::Among(a, 6)),
        1 => terms().prop_map(Test::Effective),
        1 => (kind, terms()).prop_map(|(k, t)| Test::Is(k, t)),
        1 => (terms(), terms()).prop_map(|(t, r)| Test::LanguageMatches(t, r)),
        2 => (terms(), 9..TEXTS.len() + 9).prop_map(|(t, place)| Test::TextIs(t, place)),
        2 => (comparison(), ids()).prop_map(|(c, a)| Test::Integer(c, SqlInteger::INTEGER, a, INTEGER_PLACE)),
        1 => terms().prop_map(Test::NullTerm),
        1 => ids().prop_map(Test::NullId),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            2 => prop::collection::vec(inner.clone(), 1..3).prop_map(Test::And),
            2 => prop::collection::vec(inner.clone(), 1..3).prop_map(Test::Or),
            1 => inner.clone().prop_map(|t| Test::Not(Box::new(t))),
            1 => inner.clone().prop_map(|t| Test::NullTest(Box::new(t))),
            1 => inner.clone().prop_map(|t| Test::IsTrue(Box::new(t))),
            1 => inner.prop_map(|t| Test::IsFalse(Box::new(t))),
        ]
    })
}

/// The same by the operators on terms.
struct Oracle<'a> {
    columns: &'a Columns,
    constants: &'a [Option<Known>],
    row: usize,
}

impl Oracle<'_> {
    fn id(&self, ids: &Ids) -> Option<&Known> {
        match ids {
            Ids::Column(number) => self.columns[*number].as_ref().map(|c| &c[self.row]),
            Ids::Fixed(place) => self.constants[*place].as_ref(),
            Ids::Coalesce(all) => all.iter().find_map(|ids| self.id(ids)),
        }
    }

    fn term(&self, terms: &Terms) -> Option<TermBuf> {
        match terms {
            Terms::Decode(ids) => self.id(ids).map(|known| known.term.clone()),
            Terms::Fixed(place) => self.constants[*place - 3].as_ref().map(|k| k.term.clone()),
            Terms::Arithmetic(operator, operands) => {
                let (a, b) = (self.term(&operands.0)?, self.term(&operands.1)?);
                let function = match operator {
                    Arithmetic::Add => numeric::add,
                    Arithmetic::Sub => numeric::sub,
                    Arithmetic::Mul => numeric::mul,
                    Arithmetic::Div => numeric::div,
                };
                function(&a.as_term(), &b.as_term()).ok()
            }
            Terms::Negated(term) => numeric::neg(&self.term(term)?.as_term()).ok(),
            Terms::Plus(term) => numeric::pos(&self.term(term)?.as_term()).ok(),
            Terms::Boolean(test) => self.test(test).map(TermBuf::boolean),
            Terms::Language(term, _) => functions::lang(&self.term(term)?.as_term()).ok(),
            Terms::Datatype(term, _) => functions::datatype(&self.term(term)?.as_term()).ok(),
            Terms::Coalesce(all) => all.iter().find_map(|term| self.term(term)),
        }
    }

    /// AND or OR, one operand with the value `decisive` being enough.
    fn decided_by(&self, tests: &[Test], decisive: bool) -> Option<bool> {
        let values: Vec<Option<bool>> = tests.iter().map(|test| self.test(test)).collect();
        if values.contains(&Some(decisive)) {
            Some(decisive)
        } else {
            (!values.contains(&None)).then_some(!decisive)
        }
    }

    fn test(&self, test: &Test) -> Option<bool> {
        match test {
            Test::Fixed(_) => unreachable!("not made here"),
            Test::And(all) => self.decided_by(all, false),
            Test::Or(all) => self.decided_by(all, true),
            Test::Not(test) => self.test(test).map(|value| !value),
            Test::Numbers(comparison, a, b) => {
                let (a, b) = (self.id(a)?, self.id(b)?);
                Some(comparison.accepts(a.id.cmp(&b.id)))
            }
            Test::Among(ids, _) => {
                let mut members = self.constants.iter().flatten().peekable();
                if members.peek().is_none() {
                    return Some(false);
                }
                let id = self.id(ids)?.id;
                Some(members.any(|member| member.id == id))
            }
            Test::Terms(comparison, a, b) => {
                let (a, b) = (self.term(a)?, self.term(b)?);
                let function = match comparison {
                    Comparison::Eq => compare::equal,
                    Comparison::Ne => compare::not_equal,
                    Comparison::Lt => compare::less,
                    Comparison::Le => compare::less_or_equal,
                    Comparison::Gt => compare::greater,
                    Comparison::Ge => compare::greater_or_equal,
                };
                function(&a.as_term(), &b.as_term()).ok()
            }
            Test::Effective(term) => {
                compare::effective_boolean_value(&self.term(term)?.as_term()).ok()
            }
            Test::Is(kind, term) => {
                let term = self.term(term)?;
                let term = term.as_term();
                Some(match kind {
                    TermKind::Iri => matches!(term, Term::Iri(_)),
                    TermKind::Blank => matches!(term, Term::Blank(_)),
                    TermKind::Literal => matches!(term, Term::Literal(_)),
                    TermKind::Numeric => functions::is_numeric(&term),
                })
            }
            Test::TextIs(term, place) => {
                let text = functions::str(&self.term(term)?.as_term()).ok()?;
                Some(text == TermBuf::string(TEXTS[place - 9]))
            }
            Test::LanguageMatches(tag, range) => {
                let (tag, range) = (self.term(tag)?, self.term(range)?);
                strings::lang_matches(&tag.as_term(), &range.as_term()).ok()
            }
            Test::Integer(comparison, _, ids, _) => {
                // What is no whole number, or too large, is an error of the SQL.
                let number = numeric::number(&self.id(ids)?.term.as_term()).ok()?;
                let whole = number.rounded_half_away().filter(|_| number.is_whole())?;
                let whole = i64::from(i32::try_from(whole).ok()?);
                Some(comparison.accepts(whole.cmp(&INTEGER)))
            }
            Test::NullId(ids) => Some(self.id(ids).is_none()),
            Test::NullTerm(term) => Some(self.term(term).is_none()),
            Test::NullTest(test) => Some(self.test(test).is_none()),
            Test::IsTrue(test) => Some(self.test(test) == Some(true)),
            Test::IsFalse(test) => Some(self.test(test) == Some(false)),
        }
    }
}

/// Places 0 to 2: the constants' ids; 3 to 5: their terms; 6: a list of their ids; 7: language tags; 8: datatypes; from
/// 9: texts; then an SQL integer.
fn fixed(constants: &[Option<Known>]) -> Vec<Fixed> {
    let key = |known: &Known| known.id.0 ^ SIGN;
    let mut list: Vec<u64> = constants.iter().flatten().map(key).collect();
    list.sort_unstable();
    let ids = constants.iter().map(|c| Fixed::Id(c.as_ref().map(key)));
    let terms = constants.iter().map(|constant| {
        Fixed::Term(match constant {
            None => Value::Null,
            Some(known) => Value::of_term(&known.term.as_term(), || known.id),
        })
    });
    // The language of number 2 is one that is not known yet.
    let texts = TEXTS.iter().map(|text| {
        let terms = terms_of_text(text, std::iter::once("en"));
        let mut ids: Vec<TermId> = terms.map(|term| known(term.to_buf()).id).collect();
        ids.sort_unstable();
        Fixed::Text(TextIds {
            ids,
            last_language: 1,
        })
    });
    ids.chain(terms)
        .chain([
            Fixed::List(Some((list, false))),
            Fixed::Languages(vec![None, inline_id(&Term::string("en"))]),
            Fixed::Datatypes(datatypes().map(|iri| known(TermBuf::iri(iri)).id).collect()),
        ])
        .chain(texts)
        .chain([Fixed::Integer(Some(INTEGER))])
        .collect()
}

fn keys(columns: &Columns) -> Vec<Option<Vec<u64>>> {
    columns
        .iter()
        .map(|c| {
            c.as_ref()
                .map(|c| c.iter().map(|k| k.id.0 ^ SIGN).collect())
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn agrees_with_the_operators(test in test(), columns in columns(), constants in constants()) {
        let keys = keys(&columns);
        let slices: Vec<Option<&[u64]>> = keys.iter().map(|k| k.as_deref()).collect();
        let fixed = fixed(&constants);
        let mut given = Vec::new();
        test.run(&slices, &fixed, ROWS, |row, truth| given.push((row, truth)));
        prop_assert_eq!(given.len(), ROWS);
        for (row, truth) in given {
            let oracle = Oracle { columns: &columns, constants: &constants, row };
            if truth != Truth::Unknown {
                prop_assert_eq!(truth, Truth::of(oracle.test(&test)));
            }
            for column in 0..columns.len() {
                let Some(rows) = &keys[column] else { continue };
                let others: Vec<Option<u64>> = keys.iter().map(|k| k.as_ref().map(|k| k[row])).collect();
                let possible = test.pushdown_ranges(column, &others, &fixed);
                if oracle.test(&test) == Some(true) {
                    let inside = |&(low, high): &(u64, u64)| low <= rows[row] && rows[row] <= high;
                    prop_assert!(possible.ranges().iter().any(inside));
                }
            }
        }
    }

    /// What the ids tell is not left to others.
    #[test]
    fn numbers_are_always_told(a in -9_i64..9, b in -9_i64..9, c in -9_i64..9) {
        let integer = |n: i64| known(TermBuf::integer(n.into()));
        let columns = [[integer(a).id.0 ^ SIGN], [integer(b).id.0 ^ SIGN]];
        let slices = [Some(&columns[0][..]), Some(&columns[1][..])];
        let constant = known(TermBuf::xsd(&format!("{c}.5"), Xsd::Decimal));
        let fixed = [Fixed::Term(Value::of_term(&constant.term.as_term(), || constant.id))];
        let decode = |n| Terms::Decode(Ids::Column(n));
        let sum = Terms::Arithmetic(Arithmetic::Add, Box::new((decode(1), Terms::Fixed(0))));
        let test = Test::Terms(Comparison::Lt, decode(0), sum);
        let limit = if c < 0 { c as f64 - 0.5 } else { c as f64 + 0.5 };
        test.run(&slices, &fixed, 1, |_, truth| {
            assert_eq!(truth, Truth::of(Some((a as f64) < b as f64 + limit)));
        });
    }
}

#[test]
fn ranges_are_narrow() {
    let fixed = [Fixed::Term(Value::Id(
        inline_id(&TermBuf::integer(5).as_term()).unwrap(),
    ))];
    let test = Test::Terms(
        Comparison::Lt,
        Terms::Decode(Ids::Column(0)),
        Terms::Fixed(0),
    );
    let possible = test.pushdown_ranges(0, &[None], &fixed);
    let has = |term: TermBuf| {
        let key = known(term).id.0 ^ SIGN;
        possible.ranges().iter().any(|r| r.0 <= key && key <= r.1)
    };
    assert!(has(TermBuf::integer(4)));
    assert!(!has(TermBuf::integer(5)));
    assert!(has(TermBuf::xsd("4.9", Xsd::Decimal)));
    assert!(!has(TermBuf::xsd("5.0", Xsd::Decimal)));
    assert!(has(TermBuf::xsd("-INF", Xsd::Double)));
    assert!(!has(TermBuf::xsd("NaN", Xsd::Double)));
    assert!(!has(TermBuf::string("a")));
    assert!(!has(TermBuf::iri("http://example.org/")));
    // A literal of which the dictionary tells more.
    assert!(has(TermBuf::xsd("07", Xsd::Integer)));
}

/// Terms of other kinds than what is asked for are left out.
#[test]
fn ranges_of_kinds() {
    let ids: Vec<TermId> = datatypes().map(|iri| known(TermBuf::iri(iri)).id).collect();
    let fixed = [
        Fixed::Datatypes(ids),
        Fixed::Term(Value::Id(known(TermBuf::iri(Xsd::Integer.iri())).id)),
        Fixed::Languages(vec![None, inline_id(&Term::string("en"))]),
        Fixed::Term(Value::Id(inline_id(&Term::string("en")).unwrap())),
    ];
    let column = || Box::new(Terms::Decode(Ids::Column(0)));
    let equals = |term, place| Test::Terms(Comparison::Eq, term, Terms::Fixed(place));
    let possible = |test: Test, term: TermBuf| {
        let key = known(term).id.0 ^ SIGN;
        let ranges = test.pushdown_ranges(0, &[None], &fixed);
        ranges.ranges().iter().any(|r| r.0 <= key && key <= r.1)
    };
    let integer = || equals(Terms::Datatype(column(), 0), 1);
    assert!(possible(integer(), TermBuf::integer(4)));
    assert!(!possible(integer(), TermBuf::xsd("4", Xsd::Int)));
    assert!(!possible(integer(), TermBuf::string("4")));
    assert!(!possible(integer(), TermBuf::iri("http://example.org/")));
    // A literal of which the dictionary tells more.
    assert!(possible(integer(), TermBuf::xsd("04", Xsd::Integer)));
    let english = || equals(Terms::Language(column(), 2), 3);
    assert!(possible(english(), TermBuf::language("a", "en")));
    assert!(!possible(english(), TermBuf::string("a")));
    let not_iri = || Test::Not(Box::new(Test::Is(TermKind::Iri, *column())));
    assert!(!possible(not_iri(), TermBuf::iri("http://example.org/")));
    assert!(possible(not_iri(), TermBuf::string("a")));
}

/// Terms that the dictionary does not have are as different as others.
#[test]
fn strangers_differ() {
    let mut unstored = UnstoredConstants::default();
    let (a, b) = (
        Term::Iri("http://example.org/a"),
        Term::Iri("http://example.org/b"),
    );
    let ids = [&a, &b, &a].map(|term| Value::of_term(term, || unstored.id(term, None)));
    assert_eq!(ids[0].compare(Comparison::Eq, ids[1]), Truth::False);
    assert_eq!(ids[0].compare(Comparison::Eq, ids[2]), Truth::True);
}

/// Strings of one language compare by their text, which only the dictionary tells; of two languages, they do not
/// compare.
#[test]
fn language_strings_compare_within_a_language() {
    let mut unstored = UnstoredConstants::default();
    let limit = Term::language("B", "en");
    let constant = Value::of_term(&limit, || unstored.id(&limit, Some(1)));
    let of = |text, tag| known(TermBuf::language(text, tag)).id;
    let less = |a, b| Value::Id(a).compare(Comparison::Lt, b);
    assert_eq!(less(of("a", "en"), constant), Truth::Unknown);
    assert_eq!(less(of("a", "fr"), constant), Truth::Null);
    assert_eq!(less(of("a", "en"), Value::Id(of("a", "en"))), Truth::False);
    let test = Test::Terms(
        Comparison::Lt,
        Terms::Decode(Ids::Column(0)),
        Terms::Fixed(0),
    );
    let possible = test.pushdown_ranges(0, &[None], &[Fixed::Term(constant)]);
    let has = |id: TermId| {
        let key = id.0 ^ SIGN;
        possible.ranges().iter().any(|r| r.0 <= key && key <= r.1)
    };
    assert!(has(of("a", "en")));
    assert!(!has(of("a", "fr")));
    assert!(!has(known(TermBuf::string("a")).id));
    // A string in a language that has no number.
    assert!(has(known(
        Term::typed("a", "http://example.org/t").to_buf()
    )
    .id));
}

#[test]
fn the_default_graph_is_no_term() {
    let kind = Test::Is(TermKind::Iri, Terms::Decode(Ids::Column(0)));
    let fixed = [Fixed::Datatypes(
        datatypes().map(|iri| known(TermBuf::iri(iri)).id).collect(),
    )];
    let datatype = Terms::Datatype(Box::new(Terms::Decode(Ids::Column(0))), 0);
    for test in [Test::NullTest(Box::new(kind)), Test::NullTerm(datatype)] {
        test.run(&[Some(&[SIGN])], &fixed, 1, |_, truth| {
            assert_eq!(truth, Truth::True)
        });
        let possible = test.pushdown_ranges(0, &[None], &fixed);
        assert!(possible
            .ranges()
            .iter()
            .any(|&(low, high)| low <= SIGN && SIGN <= high));
    }
}

#[test]
fn thousands_of_alternatives_are_put_together_at_once() {
    let column = || Terms::Decode(Ids::Column(0));
    let number = |n: usize| inline_id(&Term::typed(&n.to_string(), Xsd::Integer.iri())).unwrap();
    let fixed: Vec<Fixed> = (0..5000)
        .map(|n| Fixed::Term(Value::Id(number(2 * n))))
        .collect();
    let equal = |place| Test::Terms(Comparison::Eq, column(), Terms::Fixed(place));
    let test = Test::Or((0..fixed.len()).map(equal).collect());
    let started = std::time::Instant::now();
    let possible = test.pushdown_ranges(0, &[None], &fixed);
    // One by one took minutes.
    assert!(started.elapsed() < std::time::Duration::from_secs(20));
    for n in 0..fixed.len() {
        let key = number(n).0 ^ SIGN;
        let found = possible
            .ranges()
            .iter()
            .any(|&(low, high)| low <= key && key <= high);
        assert_eq!(found, n % 2 == 0, "{n}");
    }
}
