//! Hash functions, section 17.4.6. NULL is the error.

use pgquad_term::func::digest;
use pgrx::prelude::*;

use super::functions::sql_functions;
use super::{value, TermArg, TermOut};

sql_functions! {
    /// MD5.
    fn_md5(term) -> TermOut = digest::md5;
    /// SHA1.
    fn_sha1(term) -> TermOut = digest::sha1;
    /// SHA256.
    fn_sha256(term) -> TermOut = digest::sha256;
    /// SHA384.
    fn_sha384(term) -> TermOut = digest::sha384;
    /// SHA512.
    fn_sha512(term) -> TermOut = digest::sha512;
}
