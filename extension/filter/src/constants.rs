//! Terms that filters know by themselves: datatypes, terms with a text, and constants that are not in the dictionary.

use pgquad_term::id::{MAX_LANGUAGE_NUMBER, MAX_LANGUAGE_STRING_NUMBER};
use pgquad_term::{inline_id, Literal, LiteralKind, Term, TermBuf, TermId, Xsd, RDF_LANG_STRING};

/// Place of `xsd:string` in [`datatypes`]; behind it, each other datatype stands in the place of its code.
pub(crate) const STRING_PLACE: usize = 0;
/// Place of `rdf:langString`, which is the last.
pub(crate) const LANG_STRING_PLACE: usize = Xsd::ALL.len() + 1;

/// The IRIs of the datatypes that ids tell.
pub fn datatypes() -> impl Iterator<Item = &'static str> {
    let string = LiteralKind::String.datatype();
    let others = Xsd::ALL.iter().map(|xsd| xsd.iri());
    std::iter::once(string)
        .chain(others)
        .chain([RDF_LANG_STRING])
}

/// The terms with this text, apart from blank nodes and from literals that only the dictionary knows. `languages` are
/// those that have numbers.
pub fn terms_of_text<'a>(
    text: &'a str,
    languages: impl Iterator<Item = &'a str>,
) -> impl Iterator<Item = Term<'a>> {
    let literal = move |kind| {
        Term::Literal(Literal {
            lexical: text,
            kind,
        })
    };
    let typed = Xsd::ALL
        .iter()
        .map(move |&xsd| literal(LiteralKind::Xsd(xsd)));
    let inlined = typed.filter(|term| inline_id(term).is_some());
    let tagged = languages.map(move |tag| literal(LiteralKind::Language(tag)));
    [Term::Iri(text), literal(LiteralKind::String)]
        .into_iter()
        .chain(inlined)
        .chain(tagged)
}

/// Terms that are not in the dictionary, and so equal to none of a row.
#[derive(Debug, Default)]
pub struct UnstoredConstants(Vec<TermBuf>);

impl UnstoredConstants {
    /// An id for the term that no other term has: the dictionary never gives out its greatest numbers. `language` is
    /// the number of its language, `None` for a language without one.
    pub fn id(&mut self, term: &Term<'_>, language: Option<u16>) -> TermId {
        let known = self.0.iter().position(|other| other.as_term() == *term);
        let place = known.unwrap_or_else(|| {
            self.0.push(term.to_buf());
            self.0.len() - 1
        });
        let number = MAX_LANGUAGE_STRING_NUMBER - place as u64;
        TermId::in_dictionary(term, number, language.or(Some(MAX_LANGUAGE_NUMBER)))
    }
}
