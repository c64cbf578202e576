//! The whole data set as a stream of N-Triples, made on all processors and written in order.

use std::io::{self, Write};
use std::ops::RangeInclusive;

use rayon::prelude::*;

use crate::instances::Writer;
use crate::model::Model;
use crate::triples::Triples;

/// Instances that are made in one piece.
const PIECE_INSTANCES: usize = 2_000;
/// Persons that are made in one piece, each with about twenty reviews.
const PIECE_PERSONS: usize = 100;
/// Pieces of each processor that are made before any is written.
const PIECES_AHEAD: usize = 4;

#[derive(Clone, Copy)]
enum Kind {
    ProductType,
    Feature,
    Producer,
    Product,
    Vendor,
    Offer,
    /// With the reviews that the person wrote.
    Person,
}

/// Writes all triples of a data set; returns how many there are.
pub fn write(model: &Model, out: &mut impl Write) -> io::Result<usize> {
    let writer = Writer::new(model);
    let pieces = pieces(model);
    let mut triples = 0;
    for batch in pieces.chunks(PIECES_AHEAD * rayon::current_num_threads()) {
        let made: Vec<(Vec<u8>, usize)> = batch
            .par_iter()
            .map(|(kind, range)| {
                let bytes = piece(&writer, *kind, range.clone());
                let lines = bytes.iter().filter(|byte| **byte == b'\n').count();
                (bytes, lines)
            })
            .collect();
        for (bytes, lines) in made {
            out.write_all(&bytes)?;
            triples += lines;
        }
    }
    out.flush()?;
    Ok(triples)
}

/// Everything in order: types, features, then each producer, vendor and rating site with what belongs to it.
fn pieces(model: &Model) -> Vec<(Kind, RangeInclusive<usize>)> {
    let mut pieces = Vec::new();
    let mut add = |kind, range: RangeInclusive<usize>| {
        let size = if matches!(kind, Kind::Person) {
            PIECE_PERSONS
        } else {
            PIECE_INSTANCES
        };
        pieces.extend(
            range
                .clone()
                .step_by(size)
                .map(|first| (kind, first..=(first + size - 1).min(*range.end()))),
        );
    };
    add(Kind::ProductType, 1..=model.hierarchy.len());
    add(Kind::Feature, 1..=model.hierarchy.feature_count());
    for producer in 1..=model.producers.owners() {
        add(Kind::Producer, producer..=producer);
        add(Kind::Product, model.producers.of(producer));
    }
    for vendor in 1..=model.vendors.owners() {
        add(Kind::Vendor, vendor..=vendor);
        add(Kind::Offer, model.vendors.of(vendor));
    }
    for site in 1..=model.sites.owners() {
        add(Kind::Person, model.members.of(site));
    }
    pieces
}

fn piece(writer: &Writer, kind: Kind, range: RangeInclusive<usize>) -> Vec<u8> {
    let mut out = Triples::default();
    for number in range {
        match kind {
            Kind::ProductType => writer.product_type(number, &mut out),
            Kind::Feature => writer.feature(number, &mut out),
            Kind::Producer => writer.producer(number, &mut out),
            Kind::Product => writer.product(number, &mut out),
            Kind::Vendor => writer.vendor(number, &mut out),
            Kind::Offer => writer.offer(number, &mut out),
            Kind::Person => writer.person(number, &mut out),
        }
    }
    out.into_bytes()
}
