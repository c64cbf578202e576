//! Passing terms between Rust and PostgreSQL.

use std::ptr::NonNull;

use pgquad_term::{encoded, Error, Result, Term, TermBuf};
use pgrx::callconv::{Arg, ArgAbi, BoxRet, FcInfo};
use pgrx::datum::{Datum, UnboxDatum};
use pgrx::nullable::Nullable;
use pgrx::pgrx_sql_entity_graph::metadata::{
    ArgumentError, ReturnsError, ReturnsRef, SqlMappingRef, SqlTranslatable, TypeOrigin,
};
use pgrx::varlena::{varatt_is_1b, varatt_is_1b_e, varatt_is_4b_u};
use pgrx::{pg_sys, set_varsize_4b, vardata_any, varsize_any_exhdr, PgSqlErrorCode};
use pgrx::{FromDatum, IntoDatum};

use crate::pg::error::raise;

/// Name of the type for the SQL generator; all Rust types of `quad.term` share it.
const TYPE_IDENT: &str = "pgquad::term::TermOut";
const SQL_NAME: &str = "quad.term";

/// An argument of type `quad.term`, borrowed from its datum (or from a detoasted copy, which is freed with it).
pub struct TermArg<'a> {
    text: &'a str,
    copy: Option<NonNull<pg_sys::varlena>>,
}

impl TermArg<'_> {
    /// The term.
    #[inline]
    pub fn term(&self) -> Term<'_> {
        match encoded::decode(self.text) {
            Some(term) => term,
            None => raise(
                PgSqlErrorCode::ERRCODE_DATA_CORRUPTED,
                "a value of type quad.term is damaged",
            ),
        }
    }

    /// The compact encoding. Equal encodings are the same term.
    #[inline]
    pub fn encoded(&self) -> &str {
        self.text
    }

    /// # Safety
    /// `datum` must be a valid, non-null datum of type `quad.term` that lives for `'a`.
    pub(super) unsafe fn from_datum_unchecked(datum: pg_sys::Datum) -> Self {
        let original: *mut pg_sys::varlena = datum.cast_mut_ptr();
        // SAFETY: the caller passes a valid varlena; detoasting returns it or a fresh palloc'd copy. A plain one is not
        // even handed over: a guarded call takes as long as most functions of terms.
        let varlena = unsafe {
            if varatt_is_4b_u(original) || (varatt_is_1b(original) && !varatt_is_1b_e(original)) {
                original
            } else {
                pg_sys::pg_detoast_datum_packed(original)
            }
        };
        // SAFETY: `varlena` is detoasted, so its header tells its length and the data follow it. They are UTF-8: the
        // only writers of this type are the input functions, which check it, and `TermOut`, which writes a `str`.
        let text = unsafe {
            let data = std::slice::from_raw_parts(
                vardata_any(varlena).cast::<u8>(),
                varsize_any_exhdr(varlena),
            );
            std::str::from_utf8_unchecked(data)
        };
        Self {
            text,
            copy: NonNull::new(varlena).filter(|copy| copy.as_ptr() != original),
        }
    }
}

impl Drop for TermArg<'_> {
    fn drop(&mut self) {
        if let Some(copy) = self.copy {
            // SAFETY: the copy was palloc'd for this value, and nothing else refers to it: `text` cannot outlive
            // `self`.
            unsafe { pg_sys::pfree(copy.as_ptr().cast()) }
        }
    }
}

/// A result of type `quad.term`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TermOut(pub TermBuf);

impl From<TermBuf> for TermOut {
    fn from(term: TermBuf) -> Self {
        Self(term)
    }
}

/// The value of an expression, or `None` (SQL NULL) for an error. A feature of SPARQL that is missing is raised
/// (0A000), and so is a text that is too long (54000), so that it is never taken for a result.
pub fn value<T>(result: Result<T>) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(error @ Error::NotSupported(_)) => raise(
            PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
            error.to_string(),
        ),
        Err(error @ Error::TooLong) => raise(
            PgSqlErrorCode::ERRCODE_PROGRAM_LIMIT_EXCEEDED,
            error.to_string(),
        ),
        Err(_) => None,
    }
}

/// A datum of an encoded term, in the current memory context.
fn datum_of(encoded: &str) -> pg_sys::Datum {
    let text = encoded.as_bytes();
    let size = pg_sys::VARHDRSZ + text.len();
    // SAFETY: palloc returns `size` writable bytes (or raises an error, also for sizes that do not fit a varlena
    // header); header and data are written into them.
    unsafe {
        let varlena: *mut pg_sys::varlena = pg_sys::palloc(size).cast();
        set_varsize_4b(varlena, size as i32);
        std::ptr::copy_nonoverlapping(
            text.as_ptr(),
            varlena.cast::<u8>().add(pg_sys::VARHDRSZ),
            text.len(),
        );
        pg_sys::Datum::from(varlena)
    }
}

/// A result of type `quad.term` that has been copied from where it was kept.
pub struct TermCopy(pg_sys::Datum);

impl TermCopy {
    /// Of an encoded term.
    pub fn of_encoded(encoded: &str) -> Self {
        Self(datum_of(encoded))
    }
}

// SAFETY: the datum was made for this very type.
unsafe impl BoxRet for TermCopy {
    unsafe fn box_into<'fcx>(self, fcinfo: &mut FcInfo<'fcx>) -> Datum<'fcx> {
        // SAFETY: a valid datum of the function's result type.
        unsafe { fcinfo.return_raw_datum(self.0) }
    }
}

impl IntoDatum for TermOut {
    fn into_datum(self) -> Option<pg_sys::Datum> {
        Some(datum_of(self.0.as_encoded()))
    }

    fn type_oid() -> pg_sys::Oid {
        // By way of the catalogue cache: arrays ask for each value, and parsing the name takes as long as making one.
        // SAFETY: look-ups by names that end with NUL.
        unsafe {
            let schema = pg_sys::get_namespace_oid(c"quad".as_ptr(), false);
            pg_sys::GetSysCacheOid(
                pg_sys::SysCacheIdentifier::TYPENAMENSP as i32,
                pg_sys::Anum_pg_type_oid as pg_sys::AttrNumber,
                pg_sys::Datum::from(c"term".as_ptr()),
                pg_sys::Datum::from(schema),
                pg_sys::Datum::null(),
                pg_sys::Datum::null(),
            )
        }
    }
}

impl FromDatum for TermOut {
    unsafe fn from_polymorphic_datum(
        datum: pg_sys::Datum,
        is_null: bool,
        _typoid: pg_sys::Oid,
    ) -> Option<Self> {
        if is_null {
            return None;
        }
        // SAFETY: the caller passes a datum of this type.
        let argument = unsafe { TermArg::from_datum_unchecked(datum) };
        Some(Self(argument.term().to_buf()))
    }
}

// SAFETY: the datum is made by `into_datum` for this very type.
unsafe impl BoxRet for TermOut {
    unsafe fn box_into<'fcx>(self, fcinfo: &mut FcInfo<'fcx>) -> Datum<'fcx> {
        match self.into_datum() {
            // SAFETY: a valid datum of the function's result type.
            Some(datum) => unsafe { fcinfo.return_raw_datum(datum) },
            None => fcinfo.return_null(),
        }
    }
}

// SAFETY: arguments of functions declared with `quad.term` are valid datums of it for the time of the call.
unsafe impl<'fcx> ArgAbi<'fcx> for TermArg<'fcx> {
    unsafe fn unbox_arg_unchecked(arg: Arg<'_, 'fcx>) -> Self {
        // SAFETY: the caller vouches for a non-null argument of this type.
        unsafe { arg.unbox_arg_using_from_datum() }.expect("the argument is not null")
    }

    unsafe fn unbox_nullable_arg(arg: Arg<'_, 'fcx>) -> Nullable<Self> {
        // SAFETY: the caller vouches for an argument of this type.
        unsafe { arg.unbox_arg_using_from_datum() }.into()
    }
}

impl FromDatum for TermArg<'_> {
    unsafe fn from_polymorphic_datum(
        datum: pg_sys::Datum,
        is_null: bool,
        _typoid: pg_sys::Oid,
    ) -> Option<Self> {
        // SAFETY: the caller passes a datum of this type that lives long enough.
        (!is_null).then(|| unsafe { Self::from_datum_unchecked(datum) })
    }
}

// SAFETY: elements of arrays of `quad.term` are valid datums of it and live as long as the array.
unsafe impl UnboxDatum for TermArg<'_> {
    type As<'src>
        = TermArg<'src>
    where
        Self: 'src;

    unsafe fn unbox<'src>(datum: Datum<'src>) -> TermArg<'src>
    where
        Self: 'src,
    {
        // SAFETY: the caller passes a datum of this type that lives for `'src`.
        unsafe { TermArg::from_datum_unchecked(datum.sans_lifetime()) }
    }
}

// SAFETY: the type `quad.term` is made by this extension, see `io`.
unsafe impl SqlTranslatable for TermArg<'_> {
    const TYPE_IDENT: &'static str = TYPE_IDENT;
    const TYPE_ORIGIN: TypeOrigin = TypeOrigin::ThisExtension;
    const ARGUMENT_SQL: std::result::Result<SqlMappingRef, ArgumentError> =
        Ok(SqlMappingRef::literal(SQL_NAME));
    const RETURN_SQL: std::result::Result<ReturnsRef, ReturnsError> =
        Ok(ReturnsRef::One(SqlMappingRef::literal(SQL_NAME)));
}

// SAFETY: the type `quad.term` is made by this extension, see `io`.
unsafe impl SqlTranslatable for TermOut {
    const TYPE_IDENT: &'static str = TYPE_IDENT;
    const TYPE_ORIGIN: TypeOrigin = TypeOrigin::ThisExtension;
    const ARGUMENT_SQL: std::result::Result<SqlMappingRef, ArgumentError> =
        Ok(SqlMappingRef::literal(SQL_NAME));
    const RETURN_SQL: std::result::Result<ReturnsRef, ReturnsError> =
        Ok(ReturnsRef::One(SqlMappingRef::literal(SQL_NAME)));
}

// SAFETY: the type `quad.term` is made by this extension, see `io`.
unsafe impl SqlTranslatable for TermCopy {
    const TYPE_IDENT: &'static str = TYPE_IDENT;
    const TYPE_ORIGIN: TypeOrigin = TypeOrigin::ThisExtension;
    const ARGUMENT_SQL: std::result::Result<SqlMappingRef, ArgumentError> =
        Ok(SqlMappingRef::literal(SQL_NAME));
    const RETURN_SQL: std::result::Result<ReturnsRef, ReturnsError> =
        Ok(ReturnsRef::One(SqlMappingRef::literal(SQL_NAME)));
}
