//! Templates: translations that serve every query of the same shape.
//!
//! A translation depends on a constant of its query only in two ways. One is its kind (IRI; datatype or language of a
//! literal; whether its id holds all of it). The other is which other constants it equals. [`Shape`] takes the
//! constants out of a text and keeps just that. A template is found out, not assumed. The text is translated with
//! markers in the place of its constants; the parameters that hold markers are those that the constants go to. The
//! outcome must be the translation of the text itself. Where it is not, as where a constant ends up in no parameter,
//! the text is its own template.

mod constant;
pub(crate) mod lexer;
mod marker;
mod position;
mod shape;
#[cfg(test)]
mod tests;

pub use shape::Shape;

use crate::error::Error;
use crate::params::{Param, ParamKind};
use crate::query::Translated;

/// Where the value of a parameter comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    /// It is the same for all queries of the template.
    Fixed,
    /// The constant at this place of the shape.
    Constant(usize),
}

/// A translated query into which other constants can be put.
#[derive(Debug)]
pub struct Template {
    translated: Translated,
    sources: Vec<Source>,
}

impl Template {
    /// The template of a query that only its own text has.
    #[must_use]
    pub fn of_one(translated: Translated) -> Self {
        let sources = vec![Source::Fixed; translated.undecoded.params.len()];
        Self {
            translated,
            sources,
        }
    }

    /// The template of the queries of a shape, given one of them as text and translated; `None` when there is none.
    pub fn of_shape(
        shape: &Shape,
        own: &Translated,
        translate: impl FnOnce(&str) -> Result<Translated, Error>,
    ) -> Option<Self> {
        let (markers, text) = shape.marked()?;
        let marked = translate(&text).ok()?;
        if own.undecoded.sql() != marked.undecoded.sql()
            || own.columns != marked.columns
            || own.form != marked.form
        {
            return None;
        }
        let sources = sources(
            shape,
            &markers,
            &own.undecoded.params,
            &marked.undecoded.params,
        )?;
        let template = Self {
            translated: own.clone(),
            sources,
        };
        // Some other constant of the text may be equal to one that was taken out.
        template.params(shape.constants()).map(|_| template)
    }

    /// The translation of the first query of the template. Its undecoded SQL, columns and form are those of all.
    #[must_use]
    pub fn translated(&self) -> &Translated {
        &self.translated
    }

    /// The parameters of the undecoded SQL for these constants of the shape. `None` when one of them equals a constant
    /// of the template itself: the translation would be another one.
    #[must_use]
    pub fn params(&self, constants: &[String]) -> Option<Vec<Param>> {
        self.translated
            .undecoded
            .params
            .iter()
            .zip(&self.sources)
            .map(|(param, source)| match source {
                Source::Constant(place) => Some(Param {
                    kind: param.kind,
                    text: constants[*place].clone(),
                }),
                Source::Fixed
                    if param.kind != ParamKind::Text && constants.contains(&param.text) =>
                {
                    None
                }
                Source::Fixed => Some(param.clone()),
            })
            .collect()
    }
}

/// Compares the parameters of a text with those of the same text with markers.
fn sources(
    shape: &Shape,
    markers: &[String],
    own: &[Param],
    marked: &[Param],
) -> Option<Vec<Source>> {
    if own.len() != marked.len() {
        return None;
    }
    let sources: Vec<Source> = own
        .iter()
        .zip(marked)
        .map(|(own, marked)| {
            if own.kind != marked.kind {
                return None;
            }
            if own.text == marked.text {
                return Some(Source::Fixed);
            }
            let place = markers.iter().position(|marker| *marker == marked.text)?;
            (own.kind != ParamKind::Text && shape.constants()[place] == own.text)
                .then_some(Source::Constant(place))
        })
        .collect::<Option<_>>()?;
    let all_used = (0..markers.len()).all(|place| sources.contains(&Source::Constant(place)));
    all_used.then_some(sources)
}
