//! The data compared with those that the official generator made of the same scale: `bsbm/bsbm-1m.nt.gz` of the shared
//! test data. Where that file is missing, they are compared with what is known of its small sister.

use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use oxrdfio::{RdfFormat, RdfParser};
use pgquad_bsbm::data;
use pgquad_bsbm::model::Model;

/// What is compared of a data set.
#[derive(Default)]
struct Statistics {
    triples: usize,
    by_predicate: BTreeMap<String, usize>,
    terms: HashSet<u128>,
    literals: usize,
    literal_bytes: usize,
    bytes: usize,
}

impl Statistics {
    fn of(lines: impl Read) -> Self {
        let mut found = Self::default();
        for line in BufReader::with_capacity(1 << 20, lines).lines() {
            let line = line.unwrap();
            found.bytes += line.len() + 1;
            let triple = line
                .strip_suffix(" .")
                .expect("a triple ends in a full stop");
            let mut parts = triple.splitn(3, ' ');
            let [subject, predicate, object] = [(); 3].map(|()| parts.next().expect("three terms"));
            found.triples += 1;
            *found.by_predicate.entry(predicate.to_owned()).or_default() += 1;
            if object.starts_with('"') {
                found.literals += 1;
                found.literal_bytes += object.len();
            }
            for term in [subject, predicate, object] {
                found
                    .terms
                    .insert(xxhash_rust::xxh3::xxh3_128(term.as_bytes()));
            }
        }
        found
    }

    fn generated(products: usize) -> Self {
        let mut bytes = Vec::new();
        let triples = data::write(&Model::new(1, products), &mut bytes).unwrap();
        let found = Self::of(&bytes[..]);
        assert_eq!(found.triples, triples);
        found
    }
}

fn assert_close(what: &str, ours: usize, official: usize, tolerance: f64) {
    let ratio = ours as f64 / official as f64;
    assert!(
        (1.0 - tolerance..=1.0 + tolerance).contains(&ratio),
        "{what}: {ours}, official {official}"
    );
}

fn shared(name: &str) -> Option<PathBuf> {
    let folder = std::env::var_os("PGQUAD_SHARED").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared"),
        PathBuf::from,
    );
    Some(folder.join("bsbm").join(name)).filter(|path| path.exists())
}

/// Compares with a file, predicate by predicate. Rare things (a producer's country) vary with the seed.
fn compare(name: &str, products: usize) {
    let Some(path) = shared(name) else {
        println!("SKIPPED: there is no ../shared/bsbm/{name}");
        return;
    };
    let official = Statistics::of(GzDecoder::new(File::open(path).unwrap()));
    let ours = Statistics::generated(products);
    assert_close("triples", ours.triples, official.triples, 0.02);
    assert_close("bytes", ours.bytes, official.bytes, 0.03);
    assert_close(
        "distinct terms",
        ours.terms.len(),
        official.terms.len(),
        0.03,
    );
    assert_close("literals", ours.literals, official.literals, 0.01);
    assert_close(
        "bytes of literals",
        ours.literal_bytes,
        official.literal_bytes,
        0.04,
    );
    assert!(ours.by_predicate.keys().eq(official.by_predicate.keys()));
    for (predicate, count) in &official.by_predicate {
        let tolerance = 0.01 + 2.5 / (*count as f64).sqrt();
        // Features depend on the few draws of how many each type has.
        let tolerance = if predicate.contains("productFeature") {
            0.15
        } else {
            tolerance
        };
        assert_close(
            predicate,
            ours.by_predicate[predicate],
            *count,
            tolerance.max(0.03),
        );
    }
}

#[test]
fn a_hundred_thousand_triples() {
    compare("bsbm-100k.nt.gz", 284);
}

#[test]
fn a_million_triples() {
    compare("bsbm-1m.nt.gz", 2785);
}

/// Ratios of the specification, at a scale that takes no time.
#[test]
fn ratios() {
    let found = Statistics::generated(100);
    let of = |name: &str| {
        found
            .by_predicate
            .iter()
            .filter(|(p, _)| p.contains(name))
            .map(|(_, c)| c)
            .sum::<usize>()
    };
    assert_eq!((of("/vendor>"), of("reviewFor")), (2000, 1000));
    assert_eq!(of("productPropertyNumeric1"), 100);
    assert_close("ratings", of("rating"), 2800, 0.05);
    assert_close("triples", found.triples, 100 * 388, 0.1);
}

#[test]
fn the_lines_are_n_triples() {
    let mut bytes = Vec::new();
    let triples = data::write(&Model::new(3, 50), &mut bytes).unwrap();
    let parsed = RdfParser::from_format(RdfFormat::NTriples)
        .for_slice(&bytes)
        .map(Result::unwrap);
    assert_eq!(parsed.collect::<HashSet<_>>().len(), triples);
}

#[test]
fn the_same_seed_gives_the_same_data() {
    let data = |seed, products| {
        let mut bytes = Vec::new();
        data::write(&Model::new(seed, products), &mut bytes).unwrap();
        bytes
    };
    assert!(data(1, 60) == data(1, 60));
    assert!(data(1, 60) != data(2, 60));
}
