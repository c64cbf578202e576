//! Affixes: what terms have in common at their beginning, and the symbol table for the rest.

/// Namespaces shorter than this are not split off: the affix would cost more than it saves.
const MIN_NAMESPACE: usize = 8;

/// Which of the two tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Table {
    Iri,
    Literal,
}

/// Splits an encoded term into its affix and the rest. The affix is the kind with the namespace of an IRI, with the
/// language tag, or with the datatype. A namespace ends at the last `/`, `#` or `:` that is not the last byte.
pub(super) fn split(encoded: &str) -> (&str, &str) {
    let bytes = encoded.as_bytes();
    let end = match bytes.first() {
        Some(b'I') => bytes[..bytes.len() - 1]
            .iter()
            .rposition(|byte| matches!(byte, b'/' | b'#' | b':'))
            .map(|last| last + 1)
            .filter(|end| *end >= MIN_NAMESPACE)
            .unwrap_or(1),
        Some(b'L' | b'T') => memchr::memchr(0, bytes).map_or(1, |nul| nul + 1),
        Some(_) => 1,
        None => 0,
    };
    // The first character may take more than one byte only in text that is no encoded term.
    encoded.split_at_checked(end).unwrap_or(("", encoded))
}

/// Symbol table for the rest of a term with this affix.
pub(super) fn table_for(affix: &[u8]) -> Table {
    if affix.first() == Some(&b'I') {
        Table::Iri
    } else {
        Table::Literal
    }
}
