//! Hash functions, section 17.4.6.

use super::simple;
use crate::error::Result;
use crate::{Term, TermBuf};
use sha2::Digest;
use std::fmt::Write;

/// Lower case hexadecimal digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        write!(out, "{byte:02x}").expect("writing to a string");
    }
    out
}

fn digest<D: Digest>(term: &Term<'_>) -> Result<TermBuf> {
    let text = simple(term)?;
    Ok(TermBuf::string(&hex(&D::digest(text.as_bytes()))))
}

/// MD5.
///
/// # Errors
/// Not a simple literal.
pub fn md5(term: &Term<'_>) -> Result<TermBuf> {
    digest::<md5::Md5>(term)
}

/// SHA1.
///
/// # Errors
/// Not a simple literal.
pub fn sha1(term: &Term<'_>) -> Result<TermBuf> {
    digest::<sha1::Sha1>(term)
}

/// SHA256.
///
/// # Errors
/// Not a simple literal.
pub fn sha256(term: &Term<'_>) -> Result<TermBuf> {
    digest::<sha2::Sha256>(term)
}

/// SHA384.
///
/// # Errors
/// Not a simple literal.
pub fn sha384(term: &Term<'_>) -> Result<TermBuf> {
    digest::<sha2::Sha384>(term)
}

/// SHA512.
///
/// # Errors
/// Not a simple literal.
pub fn sha512(term: &Term<'_>) -> Result<TermBuf> {
    digest::<sha2::Sha512>(term)
}
