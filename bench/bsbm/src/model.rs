//! Who made, sells and reviews how much: what connects the instances of a data set. All the rest of an instance follows
//! from the seed and its number.

use crate::hierarchy::Hierarchy;
use crate::random::Random;
use crate::words::Words;

const PRODUCTS_OF_PRODUCER: usize = 50;
const OFFERS_OF_PRODUCT: usize = 20;
const OFFERS_OF_VENDOR: usize = 2_000;
const REVIEWS_OF_PRODUCT: usize = 10;
const REVIEWS_OF_SITE: usize = 10_000;
const REVIEWS_OF_PERSON: usize = 20;

/// Countries with their share in percent and the language that their people write.
pub const COUNTRIES: [(&str, usize, &str); 10] = [
    ("US", 40, "en"),
    ("GB", 10, "en"),
    ("JP", 10, "ja"),
    ("CN", 10, "zh"),
    ("DE", 5, "de"),
    ("FR", 5, "fr"),
    ("ES", 5, "es"),
    ("RU", 5, "ru"),
    ("KR", 5, "ko"),
    ("AT", 5, "de"),
];

/// A random country, as an index of `COUNTRIES`.
pub fn country(random: &mut Random) -> usize {
    let mut rest = random.below(100);
    COUNTRIES
        .iter()
        .position(|(_, share, _)| {
            let here = rest < *share;
            rest = rest.wrapping_sub(*share);
            here
        })
        .expect("the shares add up to 100")
}

/// Things numbered from 1 that owners, numbered from 1 too, have in runs.
#[derive(Clone, Debug)]
pub struct Runs {
    /// The last thing of each owner; that of owner 0 is 0.
    lasts: Vec<usize>,
}

impl Runs {
    fn deal(things: usize, mut next: impl FnMut() -> usize) -> Self {
        let mut lasts = vec![0];
        let mut last = 0;
        while last < things {
            last = (last + next()).min(things);
            lasts.push(last);
        }
        Self { lasts }
    }

    /// How many owners there are.
    pub fn owners(&self) -> usize {
        self.lasts.len() - 1
    }

    /// The owner of a thing.
    pub fn owner(&self, thing: usize) -> usize {
        self.lasts.partition_point(|last| *last < thing)
    }

    /// The things of an owner.
    pub fn of(&self, owner: usize) -> std::ops::RangeInclusive<usize> {
        self.lasts[owner - 1] + 1..=self.lasts[owner]
    }

    /// The last thing of each owner, from owner 1 on.
    pub fn lasts(&self) -> &[usize] {
        &self.lasts[1..]
    }
}

/// A data set before it is written.
pub struct Model {
    /// What all else follows from.
    pub seed: u64,
    /// Number of products.
    pub products: usize,
    /// Number of offers.
    pub offers: usize,
    /// Number of reviews.
    pub reviews: usize,
    /// The product types.
    pub hierarchy: Hierarchy,
    /// Products of the producers.
    pub producers: Runs,
    /// Offers of the vendors.
    pub vendors: Runs,
    /// Reviews at the rating sites.
    pub sites: Runs,
    /// Reviews of the persons; a person writes at one site.
    pub persons: Runs,
    /// Persons at the rating sites.
    pub members: Runs,
    /// Words of labels, comments and reviews.
    pub titles: Words,
    /// Names of persons.
    pub names: Words,
}

impl Model {
    /// The data set of a scale.
    pub fn new(seed: u64, products: usize) -> Self {
        let offers = products * OFFERS_OF_PRODUCT;
        let reviews = products * REVIEWS_OF_PRODUCT;
        let counts = |kind, average| {
            let mut random = Random::new(seed, kind, 0);
            move || random.normal_count(average) + 1
        };
        let sites = Runs::deal(reviews, counts("reviews of sites", REVIEWS_OF_SITE));
        let (persons, members) = persons(seed, &sites);
        Self {
            seed,
            products,
            offers,
            reviews,
            hierarchy: Hierarchy::new(seed, products),
            producers: Runs::deal(
                products,
                counts("products of producers", PRODUCTS_OF_PRODUCER),
            ),
            vendors: Runs::deal(offers, counts("offers of vendors", OFFERS_OF_VENDOR)),
            sites,
            persons,
            members,
            titles: Words::titles(),
            names: Words::names(),
        }
    }

    /// The stream of random numbers of an instance.
    pub fn random(&self, kind: &str, number: usize) -> Random {
        Random::new(self.seed, kind, number as u64)
    }

    /// The country of a person, which decides on the language of the reviews.
    pub fn country_of_person(&self, person: usize) -> usize {
        country(&mut self.random("country of person", person))
    }
}

/// Reviews of persons, persons of sites. Some persons write nothing.
fn persons(seed: u64, sites: &Runs) -> (Runs, Runs) {
    let mut random = Random::new(seed, "reviews of persons", 0);
    let mut persons = Runs { lasts: vec![0] };
    let mut members = Runs { lasts: vec![0] };
    for end in sites.lasts() {
        let mut last = persons.lasts[persons.owners()];
        while last < *end {
            last = (last + random.normal_count(REVIEWS_OF_PERSON)).min(*end);
            persons.lasts.push(last);
        }
        members.lasts.push(persons.owners());
    }
    (persons, members)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners() {
        let runs = Runs {
            lasts: vec![0, 3, 3, 5],
        };
        assert_eq!(runs.owners(), 3);
        assert_eq!([1, 3, 4, 5].map(|thing| runs.owner(thing)), [1, 1, 3, 3]);
        assert_eq!(runs.of(1), 1..=3);
        assert!(runs.of(2).is_empty());
        assert_eq!(runs.of(3), 4..=5);
    }

    /// Numbers of the official generator for 2,785 products: 60 producers, 29 vendors, 4 sites, 1,417 persons.
    #[test]
    fn numbers() {
        let model = Model::new(1, 2785);
        assert_eq!((model.offers, model.reviews), (55_700, 27_850));
        assert!(
            (48..=64).contains(&model.producers.owners()),
            "{}",
            model.producers.owners()
        );
        assert!(
            (22..=36).contains(&model.vendors.owners()),
            "{}",
            model.vendors.owners()
        );
        assert!(
            (2..=5).contains(&model.sites.owners()),
            "{}",
            model.sites.owners()
        );
        assert!(
            (1300..=1500).contains(&model.persons.owners()),
            "{}",
            model.persons.owners()
        );
        assert_eq!(model.members.owners(), model.sites.owners());
        assert_eq!(model.persons.owner(model.reviews), model.persons.owners());
    }
}
