//! The expressions that filters are made of. Ids are in the unsigned form of keys: the sign bit of the `bigint` is
//! flipped.

use crate::operators::{Arithmetic, Comparison, TermKind, TextIds};
use crate::sql_integers::SqlInteger;
use crate::truth::Truth;
use crate::value::Value;
use pgquad_term::TermId;

/// Number of a value that is the same for all rows of a run, see [`Fixed`].
pub type Place = usize;

/// An expression of type `bigint`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ids {
    /// A column of the rows, by number.
    Column(usize),
    /// The same for all rows.
    Fixed(Place),
    /// The first that is not NULL.
    Coalesce(Vec<Ids>),
}

/// An expression of type `quad.term`. An error is NULL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Terms {
    /// The term with an id; none has that of the default graph.
    Decode(Ids),
    /// The same for all rows.
    Fixed(Place),
    /// Two numbers.
    Arithmetic(Arithmetic, Box<(Terms, Terms)>),
    /// `-A`
    Negated(Box<Terms>),
    /// `+A`
    Plus(Box<Terms>),
    /// A truth value as `xsd:boolean`.
    Boolean(Box<Test>),
    /// LANG, with the place of the language tags.
    Language(Box<Terms>, Place),
    /// DATATYPE, with the place of the datatypes.
    Datatype(Box<Terms>, Place),
    /// The first that is not NULL.
    Coalesce(Vec<Terms>),
}

/// An expression of type `boolean`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Test {
    /// The same for all rows.
    Fixed(Place),
    /// All of them.
    And(Vec<Test>),
    /// One of them.
    Or(Vec<Test>),
    /// NOT.
    Not(Box<Test>),
    /// Comparison of ids as whole numbers.
    Numbers(Comparison, Ids, Ids),
    /// Whether an id is one of a fixed list.
    Among(Ids, Place),
    /// SPARQL's comparison of terms.
    Terms(Comparison, Terms, Terms),
    /// The value of the term with an id as an SQL integer, compared with the [`Fixed::Integer`] of the place.
    Integer(Comparison, SqlInteger, Ids, Place),
    /// The effective boolean value.
    Effective(Terms),
    /// What kind of term it is.
    Is(TermKind, Terms),
    /// STR of the term is a text; the place has the [`Fixed::Text`].
    TextIs(Terms, Place),
    /// langMatches: a language tag, a language range.
    LanguageMatches(Terms, Terms),
    /// The id is NULL.
    NullId(Ids),
    /// The term is NULL.
    NullTerm(Terms),
    /// The condition is NULL.
    NullTest(Box<Test>),
    /// The condition is true, and not NULL.
    IsTrue(Box<Test>),
    /// The condition is false, and not NULL.
    IsFalse(Box<Test>),
}

/// A value that is the same for all rows of a run.
#[derive(Clone, Debug)]
pub enum Fixed {
    /// An id, `None` for NULL.
    Id(Option<u64>),
    /// An SQL integer, `None` for NULL.
    Integer(Option<i64>),
    /// A term.
    Term(Value),
    /// A truth value.
    Truth(Truth),
    /// A sorted list of ids, and whether it holds NULL too; `None` when the list itself is NULL.
    List(Option<(Vec<u64>, bool)>),
    /// The language tags by number, as ids of strings.
    Languages(Vec<Option<TermId>>),
    /// The ids of [`crate::datatypes`].
    Datatypes(Vec<TermId>),
    /// Terms whose text is the same.
    Text(TextIds),
}
