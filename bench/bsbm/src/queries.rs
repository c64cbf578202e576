//! The query mixes, with parameters drawn from the data set.

use std::io::{self, Write};

use serde_json::json;

use crate::dates::{self, day, TODAY};
use crate::model::{country, Model, COUNTRIES};
use crate::random::Random;
use crate::vocabulary::{self, XSD};

/// A query with places for parameters, `%name%`; the name says what is put there (see `Parameters::value`).
pub struct Template {
    /// Its number in the specification.
    pub number: usize,
    /// Its text.
    pub text: &'static str,
}

impl Template {
    /// Names of the parameters, each once, in order of appearance.
    pub fn parameters(&self) -> Vec<&'static str> {
        let mut names: Vec<&str> = self.text.split('%').skip(1).step_by(2).collect();
        let mut seen = Vec::new();
        names.retain(|name| {
            let new = !seen.contains(name);
            seen.push(name);
            new
        });
        names
    }
}

/// A mix: templates, and the order in which they are asked.
pub struct Mix {
    /// Its name.
    pub name: &'static str,
    /// Its templates.
    pub templates: &'static [Template],
    /// Numbers of templates.
    pub order: &'static [usize],
}

macro_rules! templates {
    ($folder:literal: $($number:literal $file:literal,)*) => {
        &[$(Template {
            number: $number,
            text: include_str!(concat!("../templates/", $folder, "/", $file, ".rq")),
        },)*]
    };
}

/// A consumer looks for a product. (The specification's query 6 is in no mix since version 3.)
pub const EXPLORE: Mix = Mix {
    name: "explore",
    templates: templates! { "explore":
        1 "q01", 2 "q02", 3 "q03", 4 "q04", 5 "q05", 7 "q07", 8 "q08", 9 "q09", 10 "q10", 11 "q11", 12 "q12",
    },
    order: &[
        1, 2, 2, 3, 2, 2, 4, 2, 2, 5, 7, 7, 5, 7, 7, 8, 9, 9, 8, 9, 9, 10, 10, 11, 12,
    ],
};

/// Analysts ask about the whole shop. (Query 7 orders its thousand products to the end, so that every store takes the
/// same.)
pub const BUSINESS: Mix = Mix {
    name: "bi",
    templates: templates! { "bi":
        1 "q1", 2 "q2", 3 "q3", 4 "q4", 5 "q5", 6 "q6", 7 "q7", 8 "q8",
    },
    order: &[1, 3, 2, 2, 4, 5, 5, 6, 5, 6, 6, 7, 8, 7, 6],
};

impl Mix {
    /// A mix by its name.
    pub fn named(name: &str) -> Option<&'static Self> {
        [&EXPLORE, &BUSINESS]
            .into_iter()
            .find(|mix| mix.name == name)
    }

    /// A template by its number.
    pub fn template(&self, number: usize) -> &Template {
        let found = self.templates.iter().find(|t| t.number == number);
        found.expect("the order names templates of the mix")
    }

    /// Writes so many mixes as a log: a JSON object a line.
    pub fn write_log(
        &self,
        model: &Model,
        seed: u64,
        mixes: usize,
        out: &mut impl Write,
    ) -> io::Result<()> {
        for mix in 0..mixes {
            for (position, &number) in self.order.iter().enumerate() {
                let text = self.instance(model, seed, mix, position);
                let line = json!({"mix": mix, "pos": position, "query_nr": number, "sparql": text});
                writeln!(out, "{line}")?;
            }
        }
        out.flush()
    }

    /// The query at a position of a run of the mix.
    pub fn instance(&self, model: &Model, seed: u64, mix: usize, position: usize) -> String {
        let template = self.template(self.order[position]);
        let random = Random::new(seed, self.name, (mix * self.order.len() + position) as u64);
        let mut parameters = Parameters::draw(model, random);
        let mut text = String::new();
        for (index, part) in template.text.split('%').enumerate() {
            if index % 2 == 0 {
                text.push_str(part);
            } else {
                text.push_str(&parameters.value(part));
            }
        }
        text
    }
}

/// What a query's parameters are drawn from; the same name has the same value throughout a query.
struct Parameters<'a> {
    model: &'a Model,
    random: Random,
    drawn: Vec<(String, String)>,
    leaf: usize,
    features: Vec<usize>,
    month: i64,
}

impl<'a> Parameters<'a> {
    fn draw(model: &'a Model, mut random: Random) -> Self {
        let (first, end) = model.hierarchy.leaves();
        let leaf = first + random.below(end - first);
        let mut features: Vec<usize> = model.hierarchy.features(leaf).collect();
        // The first three of a shuffle are as random as all of it.
        for place in 0..features.len().min(3) {
            let other = place + random.below(features.len() - place);
            features.swap(place, other);
        }
        Self {
            model,
            leaf,
            features,
            month: day(2007, 6, 20) + random.between(0, 309),
            random,
            drawn: Vec::new(),
        }
    }

    fn value(&mut self, name: &str) -> String {
        if let Some((_, value)) = self.drawn.iter().find(|(drawn, _)| drawn == name) {
            return value.clone();
        }
        let value = self.new_value(name);
        self.drawn.push((name.to_owned(), value.clone()));
        value
    }

    fn new_value(&mut self, name: &str) -> String {
        let Self { model, random, .. } = self;
        let mut one_of = |count: usize| 1 + random.below(count);
        let iri = match name {
            "leaf" => vocabulary::product_type(self.leaf),
            "feature1" => vocabulary::feature(self.features[0]),
            "feature2" => vocabulary::feature(self.features[1]),
            "feature3" => vocabulary::feature(self.features[2]),
            "product" => {
                let number = one_of(model.products);
                vocabulary::product(model.producers.owner(number), number)
            }
            "producer" => vocabulary::producer(one_of(model.producers.owners())),
            "offer" => {
                let number = one_of(model.offers);
                vocabulary::offer(model.vendors.owner(number), number)
            }
            "review" => {
                let number = one_of(model.reviews);
                vocabulary::review(model.sites.owner(number), number)
            }
            "country" | "country1" | "country2" => {
                vocabulary::country(COUNTRIES[country(random)].0)
            }
            // A type of any level, or of any below the root; each level is as likely.
            "any" | "lower" => {
                let top = usize::from(name == "lower");
                let level = top + random.below(model.hierarchy.levels() - top);
                let (first, end) = model.hierarchy.level(level);
                vocabulary::product_type(first + random.below(end - first))
            }
            "x" | "y" => return one_of(500).to_string(),
            "today" => return format!("\"{}T00:00:00\"^^<{XSD}dateTime>", dates::text(TODAY)),
            "month0" | "month1" | "month2" => {
                let months = i64::from(name.as_bytes()[5] - b'0');
                return format!("\"{}\"^^<{XSD}date>", dates::text(self.month + 28 * months));
            }
            _ => panic!("no such parameter: {name}"),
        };
        format!("<{iri}>")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_template_is_asked_and_parses() {
        let model = Model::new(1, 284);
        for mix in [&EXPLORE, &BUSINESS] {
            for template in mix.templates {
                assert!(
                    mix.order.contains(&template.number),
                    "{} {}",
                    mix.name,
                    template.number
                );
            }
            for position in 0..mix.order.len() {
                let text = mix.instance(&model, 1, 0, position);
                assert!(!text.contains('%'), "{text}");
                spargebra::SparqlParser::new()
                    .parse_query(&text)
                    .unwrap_or_else(|e| panic!("{e}: {text}"));
            }
        }
        assert_eq!((EXPLORE.order.len(), BUSINESS.order.len()), (25, 15));
    }

    #[test]
    fn parameters_are_named_once() {
        assert_eq!(
            EXPLORE.template(3).parameters(),
            ["leaf", "feature1", "x", "y", "feature2"]
        );
        assert_eq!(EXPLORE.template(2).parameters(), ["product"]);
    }

    #[test]
    fn logs_depend_on_the_seed_alone() {
        let model = Model::new(1, 284);
        let log = |seed| {
            let mut bytes = Vec::new();
            EXPLORE.write_log(&model, seed, 2, &mut bytes).unwrap();
            bytes
        };
        assert_eq!(log(1), log(1));
        assert_ne!(log(1), log(2));
        assert_eq!(log(1).split(|b| *b == b'\n').count(), 51);
    }
}
