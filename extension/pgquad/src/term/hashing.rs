//! Hash functions, section 17.4.6. NULL is the error.

use pgquad_term::func::digest;
use pgrx::prelude::*;

use super::{value, TermArg, TermOut};

macro_rules! digests {
    ($($(#[$doc:meta])* $name:ident = $function:path;)*) => {$(
        $(#[$doc])*
        #[pg_extern(immutable, parallel_safe)]
        fn $name(term: TermArg<'_>) -> Option<TermOut> {
            value($function(&term.term())).map(TermOut)
        }
    )*};
}

digests! {
    /// MD5.
    fn_md5 = digest::md5;
    /// SHA1.
    fn_sha1 = digest::sha1;
    /// SHA256.
    fn_sha256 = digest::sha256;
    /// SHA384.
    fn_sha384 = digest::sha384;
    /// SHA512.
    fn_sha512 = digest::sha512;
}
