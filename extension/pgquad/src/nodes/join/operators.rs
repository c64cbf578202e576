//! Which functions of PostgreSQL and of this extension a filter on ids knows.

use crate::term::TermOut;
use pgquad_filter::{Arithmetic, Comparison, TermKind};
use pgrx::prelude::*;
use pgrx::{pg_sys, IntoDatum};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ffi::CStr;

/// What a function does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// Compares whole numbers.
    Numbers(Comparison),
    /// Compares whole numbers, at least one of which is no `bigint`.
    SmallerNumbers(Comparison),
    /// The value of a term as an SQL type.
    SqlValue,
    /// Compares the terms with two ids.
    Ids(Comparison),
    /// Compares two terms.
    Terms(Comparison),
    /// Two numbers, as terms.
    Arithmetic(Arithmetic),
    /// `-A`
    Negate,
    /// `+A`
    Plus,
    /// The term with an id.
    Decode,
    /// The term of a boolean.
    FromBool,
    /// The effective boolean value.
    Effective,
    /// What kind of term it is.
    Is(TermKind),
    /// LANG
    Language,
    /// DATATYPE
    Datatype,
    /// STR
    Text,
    /// langMatches
    LanguageMatches,
}

thread_local! {
    /// Functions that have been looked up, `None` for those that are not known here.
    static KNOWN: RefCell<HashMap<pg_sys::Oid, Option<Operator>>> = RefCell::new(HashMap::new());
    static WATCHING: Cell<bool> = const { Cell::new(false) };
}

/// What a function does, if that is known.
pub fn operator(function: pg_sys::Oid) -> Option<Operator> {
    if let Some(known) = KNOWN.with_borrow(|known| known.get(&function).copied()) {
        return known;
    }
    if !WATCHING.replace(true) {
        // SAFETY: the callback is a plain function that lives as long as the process; registered once.
        unsafe {
            pg_sys::CacheRegisterSyscacheCallback(
                pg_sys::SysCacheIdentifier::PROCOID as i32,
                Some(changed),
                pg_sys::Datum::from(0),
            );
        }
    }
    let found = number_operator(function)
        .or_else(|| smaller_numbers(function).map(Operator::SmallerNumbers))
        .or_else(|| term_operator(function));
    KNOWN.with_borrow_mut(|known| known.insert(function, found));
    found
}

#[pg_guard]
unsafe extern "C-unwind" fn changed(_argument: pg_sys::Datum, _cache: i32, _hash: u32) {
    KNOWN.with_borrow_mut(HashMap::clear);
}

/// Comparisons of `bigint`.
fn number_operator(function: pg_sys::Oid) -> Option<Operator> {
    Some(Operator::Numbers(match function.to_u32() {
        pg_sys::F_INT8EQ => Comparison::Eq,
        pg_sys::F_INT8NE => Comparison::Ne,
        pg_sys::F_INT8LT => Comparison::Lt,
        pg_sys::F_INT8LE => Comparison::Le,
        pg_sys::F_INT8GT => Comparison::Gt,
        pg_sys::F_INT8GE => Comparison::Ge,
        _ => return None,
    }))
}

/// Comparisons of `smallint` and `integer`, with each other and with `bigint`.
fn smaller_numbers(function: pg_sys::Oid) -> Option<Comparison> {
    use pg_sys::*;
    Some(match function.to_u32() {
        F_INT2EQ | F_INT24EQ | F_INT28EQ => Comparison::Eq,
        F_INT42EQ | F_INT4EQ | F_INT48EQ | F_INT82EQ | F_INT84EQ => Comparison::Eq,
        F_INT2NE | F_INT24NE | F_INT28NE => Comparison::Ne,
        F_INT42NE | F_INT4NE | F_INT48NE | F_INT82NE | F_INT84NE => Comparison::Ne,
        F_INT2LT | F_INT24LT | F_INT28LT => Comparison::Lt,
        F_INT42LT | F_INT4LT | F_INT48LT | F_INT82LT | F_INT84LT => Comparison::Lt,
        F_INT2LE | F_INT24LE | F_INT28LE => Comparison::Le,
        F_INT42LE | F_INT4LE | F_INT48LE | F_INT82LE | F_INT84LE => Comparison::Le,
        F_INT2GT | F_INT24GT | F_INT28GT => Comparison::Gt,
        F_INT42GT | F_INT4GT | F_INT48GT | F_INT82GT | F_INT84GT => Comparison::Gt,
        F_INT2GE | F_INT24GE | F_INT28GE => Comparison::Ge,
        F_INT42GE | F_INT4GE | F_INT48GE | F_INT82GE | F_INT84GE => Comparison::Ge,
        _ => return None,
    })
}

/// Functions of this extension, by name and types of arguments.
fn term_operator(function: pg_sys::Oid) -> Option<Operator> {
    let (mut types, mut count) = (std::ptr::null_mut(), 0);
    // SAFETY: look-ups in the catalogue, whose results are palloc'd; the types are as many as it says.
    let (name, types) = unsafe {
        let schema = pg_sys::get_namespace_oid(c"quad".as_ptr(), true);
        let name = pg_sys::get_func_name(function);
        if name.is_null() || pg_sys::get_func_namespace(function) != schema {
            return None;
        }
        pg_sys::get_func_signature(function, &mut types, &mut count);
        let types = (0..count as usize).map(|n| *types.add(n));
        (
            CStr::from_ptr(name).to_str().ok()?,
            types.collect::<Vec<_>>(),
        )
    };
    let all = |wanted: pg_sys::Oid| types.iter().all(|&given| given == wanted);
    if all(pg_sys::INT8OID) {
        return match (name, types.len()) {
            ("decode", 1) => Some(Operator::Decode),
            ("id_lang", 1) => Some(Operator::Language),
            ("id_datatype", 1) => Some(Operator::Datatype),
            ("id_str", 1) => Some(Operator::Text),
            ("id_isnumeric", 1) => Some(Operator::Is(TermKind::Numeric)),
            (_, 2) => comparison(name).map(Operator::Ids),
            _ => None,
        };
    }
    if name == "from_bool" && types == [pg_sys::BOOLOID] {
        return Some(Operator::FromBool);
    }
    if name == "term_value" && types.len() == 4 {
        return Some(Operator::SqlValue);
    }
    if !all(TermOut::type_oid()) {
        return None;
    }
    match types.len() {
        1 => Some(match name {
            "neg" => Operator::Negate,
            "pos" => Operator::Plus,
            "ebv" => Operator::Effective,
            "fn_lang" => Operator::Language,
            "fn_datatype" => Operator::Datatype,
            "fn_str" => Operator::Text,
            "fn_isiri" => Operator::Is(TermKind::Iri),
            "fn_isblank" => Operator::Is(TermKind::Blank),
            "fn_isliteral" => Operator::Is(TermKind::Literal),
            "fn_isnumeric" => Operator::Is(TermKind::Numeric),
            _ => return None,
        }),
        2 => comparison(name).map(Operator::Terms).or(match name {
            "add" => Some(Operator::Arithmetic(Arithmetic::Add)),
            "sub" => Some(Operator::Arithmetic(Arithmetic::Sub)),
            "mul" => Some(Operator::Arithmetic(Arithmetic::Mul)),
            "div" => Some(Operator::Arithmetic(Arithmetic::Div)),
            "fn_langmatches" => Some(Operator::LanguageMatches),
            _ => None,
        }),
        _ => None,
    }
}

fn comparison(name: &str) -> Option<Comparison> {
    Some(match name {
        "eq" => Comparison::Eq,
        "ne" => Comparison::Ne,
        "lt" => Comparison::Lt,
        "le" => Comparison::Le,
        "gt" => Comparison::Gt,
        "ge" => Comparison::Ge,
        _ => return None,
    })
}
