//! Functions that tell about terms, section 17.4.2. NULL is the error.

use pgquad_term::func::terms;
use pgquad_term::{Term, TermId};
use pgrx::prelude::*;

use super::functions::sql_functions;
use super::{value, TermArg, TermOut};
use crate::pg::error::raise;

/// isIRI.
#[pg_extern(immutable, parallel_safe)]
fn fn_isiri(term: TermArg<'_>) -> bool {
    matches!(term.term(), Term::Iri(_))
}

/// isBlank.
#[pg_extern(immutable, parallel_safe)]
fn fn_isblank(term: TermArg<'_>) -> bool {
    matches!(term.term(), Term::Blank(_))
}

/// isLiteral.
#[pg_extern(immutable, parallel_safe)]
fn fn_isliteral(term: TermArg<'_>) -> bool {
    matches!(term.term(), Term::Literal(_))
}

/// isNumeric.
#[pg_extern(immutable, parallel_safe)]
fn fn_isnumeric(term: TermArg<'_>) -> bool {
    terms::is_numeric(&term.term())
}

sql_functions! {
    /// STR.
    fn_str(term) -> TermOut = terms::str;
    /// LANG.
    fn_lang(term) -> TermOut = terms::lang;
    /// DATATYPE.
    fn_datatype(term) -> TermOut = terms::datatype;
}

/// Kind of term an id stands for: its tag, 0 IRI, 1 blank node, 2 to 12 literals.
#[pg_extern(immutable, parallel_safe)]
fn id_kind(id: i64) -> i16 {
    match TermId::from_i64(id) {
        Some(id) => id.tag().into(),
        None => raise(
            PgSqlErrorCode::ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE,
            format!("{id} is not a term id: ids are not negative"),
        ),
    }
}
