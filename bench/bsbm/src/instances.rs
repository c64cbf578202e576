//! The instances of each kind, as triples. Texts, distributions and their parameters are those of the specification.

use crate::dates::{day, TODAY};
use crate::model::{country, Model, COUNTRIES};
use crate::random::Random;
use crate::triples::{expand, numbered, typed, Properties, Triples};
use crate::vocabulary::{self, BSBM, INSTANCES};

/// Days before today in which offers and vendors were published.
const PUBLISHED_DAYS: i64 = 97;

/// Writes the instances of a data set.
pub struct Writer<'a> {
    model: &'a Model,
    properties: Properties,
}

impl<'a> Writer<'a> {
    /// A writer for a data set.
    pub fn new(model: &'a Model) -> Self {
        Self {
            model,
            properties: Properties::new(),
        }
    }

    /// Label of one to three words and a comment.
    fn described(&self, out: &mut Triples, random: &mut Random, class: &str, comment: (i64, i64)) {
        let titles = &self.model.titles;
        out.iri(&self.properties.kind, &expand(class));
        out.literal(&self.properties.label, "", |into| {
            titles.sentence(random, 1, 3, into)
        });
        out.literal(&self.properties.comment, "", |into| {
            titles.sentence(random, comment.0, comment.1, into)
        });
    }

    /// A product type.
    pub fn product_type(&self, number: usize, out: &mut Triples) {
        let mut random = self.model.random("product type", number);
        out.subject(&vocabulary::product_type(number));
        match self.model.hierarchy.get(number).parent {
            None => {
                out.iri(&self.properties.kind, &expand("bsbm:ProductType"));
                out.literal(&self.properties.label, "", |into| {
                    into.extend_from_slice(b"Thing")
                });
                out.literal(&self.properties.comment, "", |into| {
                    into.extend_from_slice(b"Every product is of this type.");
                });
            }
            Some(parent) => {
                self.described(out, &mut random, "bsbm:ProductType", (20, 50));
                out.iri(&self.properties.parent, &vocabulary::product_type(parent));
            }
        }
        self.standardized(out, &mut random);
    }

    /// A product feature.
    pub fn feature(&self, number: usize, out: &mut Triples) {
        let mut random = self.model.random("product feature", number);
        out.subject(&vocabulary::feature(number));
        self.described(out, &mut random, "bsbm:ProductFeature", (20, 50));
        self.standardized(out, &mut random);
    }

    fn standardized(&self, out: &mut Triples, random: &mut Random) {
        let institution = format!("{INSTANCES}StandardizationInstitution1");
        let date = random.between(day(2000, 6, 20), day(2000, 7, 22));
        out.published(&self.properties, &institution, date);
    }

    /// A producer.
    pub fn producer(&self, number: usize, out: &mut Triples) {
        let mut random = self.model.random("producer", number);
        let date = random.between(day(2000, 8, 20), day(2005, 7, 22));
        let homepage = format!("http://www.Producer{number}.com/");
        self.company(
            out,
            &mut random,
            "bsbm:Producer",
            &vocabulary::producer(number),
            &homepage,
            date,
        );
    }

    /// A vendor.
    pub fn vendor(&self, number: usize, out: &mut Triples) {
        let mut random = self.model.random("vendor", number);
        let date = random.between(TODAY - PUBLISHED_DAYS, TODAY - 1);
        let homepage = format!("http://www.vendor{number}.com/");
        self.company(
            out,
            &mut random,
            "bsbm:Vendor",
            &vocabulary::vendor(number),
            &homepage,
            date,
        );
    }

    fn company(
        &self,
        out: &mut Triples,
        random: &mut Random,
        class: &str,
        iri: &str,
        homepage: &str,
        date: i64,
    ) {
        out.subject(iri);
        self.described(out, random, class, (20, 50));
        out.iri(&self.properties.homepage, homepage);
        out.country(&self.properties, COUNTRIES[country(random)].0);
        out.published(&self.properties, iri, date);
    }

    /// A product.
    pub fn product(&self, number: usize, out: &mut Triples) {
        let model = self.model;
        let mut random = model.random("product", number);
        let producer = model.producers.owner(number);
        out.subject(&vocabulary::product(producer, number));
        self.described(out, &mut random, "bsbm:Product", (50, 150));
        let (first, end) = model.hierarchy.leaves();
        let leaf = first - 1 + random.normal_range(0.0, 2.0, end - first);
        for kind in model.hierarchy.path(leaf) {
            out.iri(&self.properties.kind, &vocabulary::product_type(kind));
        }
        let producer = vocabulary::producer(producer);
        out.iri(&self.properties.producer, &producer);
        let shape = Shape::draw(&mut random);
        for place in (0..6).filter(|&place| shape.numeric[place]) {
            let value = random.normal_range(0.0, 2.0, 2000) as i64;
            out.numbered_integer(&self.properties.numeric, place + 1, value);
        }
        for place in (0..6).filter(|&place| shape.textual[place]) {
            let property = numbered(&self.properties.textual, place + 1);
            out.literal(&property, &typed("string"), |into| {
                model.titles.sentence(&mut random, 3, 15, into)
            });
        }
        for feature in model.hierarchy.features(leaf) {
            if random.percent(25) {
                out.iri(&self.properties.feature, &vocabulary::feature(feature));
            }
        }
        let date = random.between(day(2000, 10, 20), day(2007, 1, 22));
        out.published(&self.properties, &producer, date);
    }

    /// An offer.
    pub fn offer(&self, number: usize, out: &mut Triples) {
        let model = self.model;
        let mut random = model.random("offer", number);
        let vendor = model.vendors.owner(number);
        let iri = vocabulary::offer(vendor, number);
        let product = random.normal_range(2.0, 4.0, model.products);
        let vendor = vocabulary::vendor(vendor);
        let date = random.between(TODAY - PUBLISHED_DAYS, TODAY - 1);
        out.subject(&iri);
        out.iri(&self.properties.kind, &expand("bsbm:Offer"));
        out.iri(
            &self.properties.product,
            &vocabulary::product(model.producers.owner(product), product),
        );
        out.iri(&self.properties.vendor, &vendor);
        let cents = random.between(500, 1_000_000);
        out.literal(&self.properties.price, &format!("^^<{BSBM}USD>"), |into| {
            into.extend_from_slice(format!("{}.{:02}", cents / 100, cents % 100).as_bytes());
        });
        out.date_time(&self.properties.valid_from, date - random.between(0, 90));
        out.date_time(&self.properties.valid_to, date + random.between(7, 90));
        out.integer(
            &self.properties.delivery_days,
            random.normal_range(2.0, 14.2, 21) as i64,
        );
        out.iri(&self.properties.web_page, &format!("{iri}/"));
        out.published(&self.properties, &vendor, date);
    }

    /// A person and the reviews that the person wrote.
    pub fn person(&self, number: usize, out: &mut Triples) {
        let model = self.model;
        let mut random = model.random("person", number);
        let site = model.members.owner(number);
        out.subject(&vocabulary::person(site, number));
        out.iri(&self.properties.kind, &expand("foaf:Person"));
        out.literal(&self.properties.name, "", |into| {
            model.names.sentence(&mut random, 1, 1, into)
        });
        out.literal(&self.properties.mailbox, "", |into| {
            let digest = format!(
                "{:016x}{:016x}{:08x}",
                random.bits(),
                random.bits(),
                random.bits() as u32
            );
            into.extend_from_slice(digest.as_bytes());
        });
        out.country(
            &self.properties,
            COUNTRIES[model.country_of_person(number)].0,
        );
        let date = random.between(TODAY, day(2008, 9, 22));
        out.published(&self.properties, &vocabulary::site(site), date);
        for review in model.persons.of(number) {
            self.review(review, site, number, out);
        }
    }

    fn review(&self, number: usize, site: usize, person: usize, out: &mut Triples) {
        let model = self.model;
        let mut random = model.random("review", number);
        let product = random.normal_range(2.0, 4.0, model.products);
        let date = random.between(TODAY - 365, TODAY - 1);
        out.subject(&vocabulary::review(site, number));
        out.iri(&self.properties.kind, &expand("rev:Review"));
        out.iri(
            &self.properties.review_for,
            &vocabulary::product(model.producers.owner(product), product),
        );
        out.iri(&self.properties.reviewer, &vocabulary::person(site, person));
        out.date_time(&self.properties.review_date, date);
        out.literal(&self.properties.title, "", |into| {
            model.titles.sentence(&mut random, 4, 15, into)
        });
        let language = COUNTRIES[model.country_of_person(person)].2;
        out.literal(&self.properties.text, &format!("@{language}"), |into| {
            model.titles.sentence(&mut random, 50, 200, into);
        });
        for rating in 1..=4 {
            if random.percent(70) {
                out.numbered_integer(&self.properties.rating, rating, random.between(1, 10));
            }
        }
        out.published(
            &self.properties,
            &vocabulary::site(site),
            random.between(date, TODAY - 1),
        );
    }
}

/// Which of the six numeric and six textual properties a product has.
struct Shape {
    numeric: [bool; 6],
    textual: [bool; 6],
}

impl Shape {
    fn draw(random: &mut Random) -> Self {
        let kind = random.below(100);
        let mut side = || {
            let mut has = [true, true, true, false, false, false];
            match kind {
                // Two in five have the first five properties.
                0..40 => (has[3], has[4]) = (true, true),
                // One in five has some of them.
                40..60 => (has[3], has[4]) = (random.percent(50), random.percent(25)),
                // Two in five may have the last.
                _ => (has[4], has[5]) = (random.percent(25), random.percent(50)),
            }
            has
        };
        Self {
            numeric: side(),
            textual: side(),
        }
    }
}
