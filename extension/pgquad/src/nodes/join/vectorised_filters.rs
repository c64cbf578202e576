//! Vectorised filters on ids: expressions of PostgreSQL made into those of `pgquad-filter`, and their constant parts
//! evaluated.

use super::operators::{operator, Operator};
use crate::nodes::scan::parameter;
use crate::pg::list::{list_iter, list_node};
use crate::term::{TermArg, TermOut};
use crate::{dictionary, rights};
use pgquad_btree::SIGN;
use pgquad_exec::{Bindings, Slot};
use pgquad_filter::{
    datatypes, terms_of_text, Comparison, Fixed, Ids, Intervals, SqlInteger, Terms, Test, TextIds,
    Truth, UnstoredConstants, Value,
};
use pgquad_term::{inline_id, Literal, LiteralKind, Term, TermId};
use pgrx::{pg_sys, FromDatum, IntoDatum};

/// A filter's expression as a test of ids.
pub struct VectorisedFilter {
    test: Test,
    constants: Vec<Constant>,
    /// Values of the constants in this run, once they are needed.
    fixed: Option<Vec<Fixed>>,
    /// What [`Self::pushdown_ranges`] was asked last in this run, and its answer.
    last_pushdown: Option<(usize, Vec<Option<u64>>, Intervals)>,
}

/// A part of the expression that is the same for all rows of a run.
struct Constant {
    kind: Kind,
    /// Its value, if an expression gives it.
    state: *mut pg_sys::ExprState,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Id,
    Integer,
    Term,
    Text,
    Truth,
    List,
    Languages,
    Datatypes,
}

impl VectorisedFilter {
    /// Makes a test of `expr`, whose variables are columns of the scan tuple at `places`. `None` where it does anything
    /// that is not known.
    ///
    /// # Safety
    /// `expr` is a boolean expression of the plan of the begun node `parent`, or one without subplans and `parent` is
    /// NULL.
    pub unsafe fn new(
        expr: *mut pg_sys::Expr,
        places: &[usize],
        parent: *mut pg_sys::PlanState,
    ) -> Option<Self> {
        let mut compiler = Compiler {
            relation: pg_sys::INDEX_VAR,
            places,
            parent: Some(parent),
            constants: Vec::new(),
            is_fallback: false,
        };
        // SAFETY: the caller's promise.
        let test = unsafe { compiler.test(expr.cast())? };
        Some(Self {
            test,
            constants: compiler.constants,
            fixed: None,
            last_pushdown: None,
        })
    }

    /// Whether a test can be made of a condition on the columns of `relation`.
    ///
    /// # Safety
    /// `expr` is a boolean expression of the level that is being planned.
    pub unsafe fn knows(expr: *mut pg_sys::Expr, relation: pg_sys::Index) -> bool {
        let mut compiler = Compiler {
            relation: relation as i32,
            places: &[0, 1, 2, 3],
            parent: None,
            constants: Vec::new(),
            is_fallback: false,
        };
        // SAFETY: the caller's promise.
        unsafe { compiler.test(expr.cast()).is_some() }
    }

    /// Forgets the values of constants: a new run may have others.
    pub fn restart(&mut self) {
        self.fixed = None;
        self.last_pushdown = None;
    }

    /// Tests rows for which `keep` is true, and makes it false where the test fails. Returns the rows for which ids do
    /// not tell the result.
    ///
    /// # Safety
    /// `context` is the expression context of the node.
    pub unsafe fn test(
        &mut self,
        context: *mut pg_sys::ExprContext,
        needs: &[Slot],
        rows: &Bindings,
        keep: &mut [bool],
    ) -> Vec<usize> {
        // SAFETY: the caller's promise.
        let fixed = unsafe { self.fixed(context) };
        let columns: Vec<Option<&[u64]>> = needs.iter().map(|&slot| rows.ids(slot)).collect();
        let mut unknown = Vec::new();
        self.test
            .run(&columns, &fixed, keep.len(), |row, truth| match truth {
                Truth::True => {}
                Truth::False | Truth::Null => keep[row] = false,
                Truth::Unknown if keep[row] => unknown.push(row),
                Truth::Unknown => {}
            });
        self.fixed = Some(fixed);
        unknown
    }

    /// Ids of the filter's variable number `column`. For all other ids the test fails, where the other variables have
    /// the values of `row`.
    ///
    /// # Safety
    /// As for [`Self::test`].
    pub unsafe fn pushdown_ranges(
        &mut self,
        context: *mut pg_sys::ExprContext,
        column: usize,
        row: &[Option<u64>],
    ) -> Intervals {
        match &self.last_pushdown {
            Some((asked, others, intervals)) if *asked == column && others == row => {
                return intervals.clone();
            }
            _ => {}
        }
        // SAFETY: the caller's promise.
        let fixed = unsafe { self.fixed(context) };
        let intervals = self.test.pushdown_ranges(column, row, &fixed);
        self.fixed = Some(fixed);
        self.last_pushdown = Some((column, row.to_vec(), intervals.clone()));
        intervals
    }

    /// The values of the constants, which are put back by whoever asks.
    unsafe fn fixed(&mut self, context: *mut pg_sys::ExprContext) -> Vec<Fixed> {
        // SAFETY: states of the begun node.
        self.fixed.take().unwrap_or_else(|| unsafe {
            let mut unstored = UnstoredConstants::default();
            let constants = self.constants.iter();
            constants
                .map(|constant| constant.evaluate(context, &mut unstored))
                .collect()
        })
    }
}

impl Constant {
    unsafe fn evaluate(
        &self,
        context: *mut pg_sys::ExprContext,
        unstored: &mut UnstoredConstants,
    ) -> Fixed {
        // SAFETY: the state was made for the node of the context, for an expression of the type that the kind stands
        // for.
        unsafe {
            match self.kind {
                Kind::Id => {
                    let value = parameter(self.state, context, pg_sys::INT8OID);
                    return Fixed::Id(match value {
                        pgquad_exec::Value::One(key) => Some(key),
                        _ => None,
                    });
                }
                Kind::Languages => return Fixed::Languages(language_tags()),
                Kind::Datatypes => {
                    let iris: Vec<Term<'_>> = datatypes().map(Term::Iri).collect();
                    let ids = dictionary::find_many(&iris).into_iter().zip(&iris);
                    let ids = ids.map(|(id, iri)| id.unwrap_or_else(|| unstored.id(iri, None)));
                    return Fixed::Datatypes(ids.collect());
                }
                Kind::Integer | Kind::Term | Kind::Text | Kind::Truth | Kind::List => {}
            }
            let mut is_null = false;
            let datum = pg_sys::ExecEvalExprSwitchContext(self.state, context, &mut is_null);
            match self.kind {
                Kind::Integer => Fixed::Integer((!is_null).then(|| {
                    let value = datum.value() as i64;
                    match pg_sys::exprType((*self.state).expr.cast()) {
                        pg_sys::INT2OID => i64::from(value as i16),
                        pg_sys::INT4OID => i64::from(value as i32),
                        _ => value,
                    }
                })),
                Kind::Term if is_null => Fixed::Term(Value::Null),
                Kind::Term => Fixed::Term(match TermArg::from_datum(datum, false) {
                    Some(term) => {
                        let term = term.term();
                        Value::of_term(&term, || {
                            dictionary::find(&term)
                                .unwrap_or_else(|| unstored.id(&term, language_of(&term)))
                        })
                    }
                    None => Value::Null,
                }),
                Kind::Text if is_null => Fixed::Truth(Truth::Null),
                Kind::Text => match TermArg::from_datum(datum, false) {
                    Some(text) => text_ids(&text.term()),
                    None => Fixed::Truth(Truth::Unknown),
                },
                Kind::List if is_null => Fixed::List(None),
                Kind::List => {
                    let members = Vec::<Option<i64>>::from_datum(datum, false).unwrap_or_default();
                    let has_null = members.contains(&None);
                    let mut keys: Vec<u64> = members.into_iter().flatten().map(key).collect();
                    keys.sort_unstable();
                    Fixed::List(Some((keys, has_null)))
                }
                _ => Fixed::Truth(Truth::of((!is_null).then(|| datum.value() != 0))),
            }
        }
    }
}

/// The terms whose text a term is. STR gives strings, so that it is for others to say what comparing with anything else
/// is.
fn text_ids(text: &Term<'_>) -> Fixed {
    let Term::Literal(Literal {
        lexical,
        kind: LiteralKind::String,
    }) = text
    else {
        return Fixed::Truth(Truth::Unknown);
    };
    let mut languages = dictionary::languages();
    languages.sort_unstable();
    let tags = languages.iter().map(|(_, tag)| tag.as_str());
    let terms: Vec<Term<'_>> = terms_of_text(lexical, tags).collect();
    let mut ids: Vec<TermId> = dictionary::find_many(&terms)
        .into_iter()
        .flatten()
        .collect();
    ids.sort_unstable();
    let in_turn = languages.iter().zip(1..).take_while(|(l, n)| l.0 == *n);
    let last_language = in_turn.last().map_or(0, |(_, n)| n);
    Fixed::Text(TextIds { ids, last_language })
}

/// The number of the language of a term, if it is a language string and that has one.
fn language_of(term: &Term<'_>) -> Option<u16> {
    match term {
        Term::Literal(Literal {
            kind: LiteralKind::Language(tag),
            ..
        }) => dictionary::language_number(tag),
        _ => None,
    }
}

/// Ids of language tags by number, of those that are short strings.
fn language_tags() -> Vec<Option<TermId>> {
    let all = dictionary::languages();
    let last = all.iter().map(|l| usize::from(l.0)).max();
    let mut tags = vec![None; last.map_or(0, |last| last + 1)];
    for (number, tag) in all {
        tags[usize::from(number)] = inline_id(&Term::string(&tag));
    }
    tags
}

fn key(id: i64) -> u64 {
    id as u64 ^ SIGN
}

struct Compiler<'a> {
    /// Number of the relation that variables are columns of.
    relation: i32,
    /// Which of its columns they are.
    places: &'a [usize],
    /// The node, NULL where there is none; `None` where it is only asked whether a test can be made.
    parent: Option<*mut pg_sys::PlanState>,
    constants: Vec<Constant>,
    /// The expression stands behind the first argument of a COALESCE: for some rows, or for all, it must not be
    /// evaluated.
    is_fallback: bool,
}

impl Compiler<'_> {
    unsafe fn test(&mut self, node: *mut pg_sys::Node) -> Option<Test> {
        // SAFETY: an expression of a live plan; each cast follows a check of the tag.
        unsafe {
            if let Some(place) = self.constant(node, Kind::Truth) {
                return Some(Test::Fixed(place));
            }
            match (*node).type_ {
                pg_sys::NodeTag::T_BoolExpr => {
                    let connective = node.cast::<pg_sys::BoolExpr>();
                    let mut tests = Vec::new();
                    for argument in list_iter::<pg_sys::Node>((*connective).args) {
                        tests.push(self.test(argument)?);
                    }
                    Some(match (*connective).boolop {
                        pg_sys::BoolExprType::AND_EXPR => Test::And(tests),
                        pg_sys::BoolExprType::OR_EXPR => Test::Or(tests),
                        _ => Test::Not(Box::new(tests.pop()?)),
                    })
                }
                pg_sys::NodeTag::T_OpExpr => {
                    let call = node.cast::<pg_sys::OpExpr>();
                    self.call((*call).opfuncid, (*call).args)
                }
                pg_sys::NodeTag::T_FuncExpr => {
                    let call = node.cast::<pg_sys::FuncExpr>();
                    if !may_run(call) {
                        return None;
                    }
                    self.call((*call).funcid, (*call).args)
                }
                pg_sys::NodeTag::T_ScalarArrayOpExpr => {
                    let any = node.cast::<pg_sys::ScalarArrayOpExpr>();
                    let equal = (*any).opfuncid.to_u32() == pg_sys::F_INT8EQ && (*any).useOr;
                    let ids = self.ids(list_node((*any).args, 0)).filter(|_| equal)?;
                    let list = list_node((*any).args, 1);
                    Some(Test::Among(ids, self.constant(list, Kind::List)?))
                }
                pg_sys::NodeTag::T_NullTest => {
                    let test = node.cast::<pg_sys::NullTest>();
                    let inner = self.null_test((*test).arg.cast())?;
                    Some(match (*test).nulltesttype {
                        pg_sys::NullTestType::IS_NULL => inner,
                        _ => Test::Not(Box::new(inner)),
                    })
                }
                pg_sys::NodeTag::T_BooleanTest => {
                    let test = node.cast::<pg_sys::BooleanTest>();
                    let inner = Box::new(self.test((*test).arg.cast())?);
                    let not = |test| Test::Not(Box::new(test));
                    Some(match (*test).booltesttype {
                        pg_sys::BoolTestType::IS_TRUE => Test::IsTrue(inner),
                        pg_sys::BoolTestType::IS_NOT_TRUE => not(Test::IsTrue(inner)),
                        pg_sys::BoolTestType::IS_FALSE => Test::IsFalse(inner),
                        pg_sys::BoolTestType::IS_NOT_FALSE => not(Test::IsFalse(inner)),
                        pg_sys::BoolTestType::IS_UNKNOWN => Test::NullTest(inner),
                        _ => not(Test::NullTest(inner)),
                    })
                }
                _ => None,
            }
        }
    }

    unsafe fn null_test(&mut self, node: *mut pg_sys::Node) -> Option<Test> {
        // SAFETY: an expression of a live plan.
        unsafe {
            match pg_sys::exprType(node) {
                pg_sys::INT8OID => self.ids(node).map(Test::NullId),
                pg_sys::BOOLOID => self.test(node).map(|test| Test::NullTest(Box::new(test))),
                _ => self.terms(node).map(Test::NullTerm),
            }
        }
    }

    /// A call that gives a boolean.
    unsafe fn call(&mut self, function: pg_sys::Oid, args: *mut pg_sys::List) -> Option<Test> {
        // SAFETY: arguments of a call of the function, as many as it takes.
        unsafe {
            let argument = |n| list_node(args, n);
            Some(match operator(function)? {
                Operator::Numbers(comparison) => {
                    let (a, b) = (argument(0), argument(1));
                    match self.integer(comparison, a, b) {
                        Some(test) => test,
                        None => Test::Numbers(comparison, self.ids(a)?, self.ids(b)?),
                    }
                }
                Operator::SmallerNumbers(comparison) => {
                    self.integer(comparison, argument(0), argument(1))?
                }
                Operator::Ids(comparison) => Test::Terms(
                    comparison,
                    Terms::Decode(self.ids(argument(0))?),
                    Terms::Decode(self.ids(argument(1))?),
                ),
                Operator::Terms(comparison) => {
                    let (a, b) = (argument(0), argument(1));
                    let text = self.text(a, b).or_else(|| self.text(b, a));
                    match (text, comparison) {
                        (Some(same), Comparison::Eq) => same,
                        (Some(same), Comparison::Ne) => Test::Not(Box::new(same)),
                        _ => Test::Terms(comparison, self.terms(a)?, self.terms(b)?),
                    }
                }
                Operator::Effective => Test::Effective(self.terms(argument(0))?),
                Operator::Is(kind) => Test::Is(kind, self.term_or_id(argument(0))?),
                Operator::LanguageMatches => {
                    Test::LanguageMatches(self.terms(argument(0))?, self.terms(argument(1))?)
                }
                _ => return None,
            })
        }
    }

    /// A comparison of integers, one of which is the value of a term and the other the same for all rows.
    unsafe fn integer(
        &mut self,
        comparison: Comparison,
        a: *mut pg_sys::Node,
        b: *mut pg_sys::Node,
    ) -> Option<Test> {
        // SAFETY: as for `test`.
        unsafe {
            let (comparison, (kind, ids), fixed) = match self.sql_integer(a) {
                Some(value) => (comparison, value, b),
                None => (comparison.commuted(), self.sql_integer(b)?, a),
            };
            let place = self.constant(fixed, Kind::Integer)?;
            Some(Test::Integer(comparison, kind, ids, place))
        }
    }

    /// The id whose term an expression gives the value of as an SQL integer.
    unsafe fn sql_integer(&mut self, node: *mut pg_sys::Node) -> Option<(SqlInteger, Ids)> {
        // SAFETY: as for `test`.
        unsafe {
            if (*node).type_ != pg_sys::NodeTag::T_FuncExpr {
                return None;
            }
            let call = node.cast::<pg_sys::FuncExpr>();
            let kind = match (*call).funcresulttype {
                pg_sys::INT2OID => SqlInteger::SMALLINT,
                pg_sys::INT4OID => SqlInteger::INTEGER,
                pg_sys::INT8OID => SqlInteger::BIGINT,
                _ => return None,
            };
            if operator((*call).funcid) != Some(Operator::SqlValue) {
                return None;
            }
            match self.terms(list_node((*call).args, 0))? {
                Terms::Decode(ids) => Some((kind, ids)),
                _ => None,
            }
        }
    }

    /// Whether the text of a term is one that is the same for all rows.
    unsafe fn text(&mut self, node: *mut pg_sys::Node, text: *mut pg_sys::Node) -> Option<Test> {
        // SAFETY: as for `test`.
        unsafe {
            if (*node).type_ != pg_sys::NodeTag::T_FuncExpr {
                return None;
            }
            let call = node.cast::<pg_sys::FuncExpr>();
            if operator((*call).funcid) != Some(Operator::Text) {
                return None;
            }
            let term = self.term_or_id(list_node((*call).args, 0))?;
            Some(Test::TextIs(term, self.constant(text, Kind::Text)?))
        }
    }

    unsafe fn terms(&mut self, node: *mut pg_sys::Node) -> Option<Terms> {
        // SAFETY: as for `test`.
        unsafe {
            if let Some(place) = self.constant(node, Kind::Term) {
                return Some(Terms::Fixed(place));
            }
            match (*node).type_ {
                pg_sys::NodeTag::T_CoalesceExpr => self
                    .coalesce(node, |compiler, argument| compiler.terms(argument))
                    .map(Terms::Coalesce),
                pg_sys::NodeTag::T_FuncExpr => {
                    let call = node.cast::<pg_sys::FuncExpr>();
                    if !may_run(call) {
                        return None;
                    }
                    let argument = |n| list_node((*call).args, n);
                    Some(match operator((*call).funcid)? {
                        Operator::Decode => Terms::Decode(self.ids(argument(0))?),
                        Operator::FromBool => Terms::Boolean(Box::new(self.test(argument(0))?)),
                        Operator::Negate => Terms::Negated(Box::new(self.terms(argument(0))?)),
                        Operator::Language => {
                            let term = Box::new(self.term_or_id(argument(0))?);
                            Terms::Language(term, self.table(Kind::Languages))
                        }
                        Operator::Datatype => {
                            let term = Box::new(self.term_or_id(argument(0))?);
                            Terms::Datatype(term, self.table(Kind::Datatypes))
                        }
                        Operator::Plus => Terms::Plus(Box::new(self.terms(argument(0))?)),
                        Operator::Arithmetic(arithmetic) => {
                            let operands = (self.terms(argument(0))?, self.terms(argument(1))?);
                            Terms::Arithmetic(arithmetic, Box::new(operands))
                        }
                        _ => return None,
                    })
                }
                _ => None,
            }
        }
    }

    /// A term, given by itself or by its id.
    unsafe fn term_or_id(&mut self, node: *mut pg_sys::Node) -> Option<Terms> {
        // SAFETY: as for `test`.
        unsafe {
            match pg_sys::exprType(node) {
                pg_sys::INT8OID => self.ids(node).map(Terms::Decode),
                _ => self.terms(node),
            }
        }
    }

    unsafe fn ids(&mut self, node: *mut pg_sys::Node) -> Option<Ids> {
        // SAFETY: as for `test`.
        unsafe {
            match (*node).type_ {
                pg_sys::NodeTag::T_Var => {
                    let var = node.cast::<pg_sys::Var>();
                    let place = (*var).varattno as usize - 1;
                    let own = (*var).varno == self.relation;
                    let column = self.places.iter().position(|&p| own && p == place);
                    column.map(Ids::Column)
                }
                pg_sys::NodeTag::T_CoalesceExpr => self
                    .coalesce(node, |compiler, argument| compiler.ids(argument))
                    .map(Ids::Coalesce),
                _ => self.constant(node, Kind::Id).map(Ids::Fixed),
            }
        }
    }

    /// The arguments of a COALESCE.
    unsafe fn coalesce<T>(
        &mut self,
        node: *mut pg_sys::Node,
        compile: impl Fn(&mut Self, *mut pg_sys::Node) -> Option<T>,
    ) -> Option<Vec<T>> {
        let around = self.is_fallback;
        // SAFETY: the node is a COALESCE of a live plan.
        let arguments = unsafe { list_iter((*node.cast::<pg_sys::CoalesceExpr>()).args) };
        let compiled = arguments.enumerate().map(|(n, argument)| {
            self.is_fallback |= n > 0;
            compile(self, argument)
        });
        let all = compiled.collect();
        self.is_fallback = around;
        all
    }

    /// The place of a table that no expression gives.
    fn table(&mut self, kind: Kind) -> usize {
        self.constants.push(Constant {
            kind,
            state: std::ptr::null_mut(),
        });
        self.constants.len() - 1
    }

    /// The place of an expression of the type that `kind` stands for, if it is the same for all rows. It is evaluated
    /// for the first of them.
    unsafe fn constant(&mut self, node: *mut pg_sys::Node, kind: Kind) -> Option<usize> {
        // SAFETY: as for `test`.
        unsafe {
            let given = pg_sys::exprType(node);
            let wanted = match kind {
                Kind::Id => given == pg_sys::INT8OID,
                Kind::Integer => {
                    [pg_sys::INT2OID, pg_sys::INT4OID, pg_sys::INT8OID].contains(&given)
                }
                Kind::Term | Kind::Text => given == TermOut::type_oid(),
                Kind::Truth => given == pg_sys::BOOLOID,
                Kind::List => given == pg_sys::INT8ARRAYOID,
                Kind::Languages | Kind::Datatypes => return None,
            };
            // What an outer join may make NULL is a placeholder, which varies though it may have no column.
            let flags = pg_sys::PVC_INCLUDE_PLACEHOLDERS as i32;
            let varies = || {
                !pg_sys::pull_var_clause(node, flags).is_null()
                    || pg_sys::contain_volatile_functions(node)
                    || pg_sys::contain_subplans(node)
            };
            if !wanted || varies() {
                return None;
            }
            if self.is_fallback && !is_value(node) {
                return None;
            }
            let state = match self.parent {
                None => std::ptr::null_mut(),
                Some(parent) => pg_sys::ExecInitExpr(node.cast(), parent),
            };
            self.constants.push(Constant { kind, state });
            Some(self.constants.len() - 1)
        }
    }
}

/// Whether an expression is a value already: nothing can fail when it is evaluated.
unsafe fn is_value(node: *mut pg_sys::Node) -> bool {
    // SAFETY: an expression of a live plan; the cast follows a check of the tag.
    unsafe {
        match (*node).type_ {
            pg_sys::NodeTag::T_Const => true,
            pg_sys::NodeTag::T_Param => {
                let param = node.cast::<pg_sys::Param>();
                (*param).paramkind == pg_sys::ParamKind::PARAM_EXTERN
            }
            _ => false,
        }
    }
}

/// Whether a call gets no bare ids, so that nothing has to be asked when it runs.
unsafe fn may_run(call: *mut pg_sys::FuncExpr) -> bool {
    // SAFETY: a live node.
    unsafe {
        (*call).inputcollid == rights::SEEN
            || list_iter::<pg_sys::Node>((*call).args)
                .all(|argument| pg_sys::exprType(argument) != pg_sys::INT8OID)
    }
}
