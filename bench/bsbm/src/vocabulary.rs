//! IRIs of the benchmark, without their angle brackets.

/// Before the local names of instances.
pub const INSTANCES: &str = "http://www4.wiwiss.fu-berlin.de/bizer/bsbm/v01/instances/";
/// Before the local names of the benchmark's own classes and properties.
pub const BSBM: &str = "http://www4.wiwiss.fu-berlin.de/bizer/bsbm/v01/vocabulary/";
/// Before the names of countries.
pub const COUNTRY: &str = "http://downlode.org/rdf/iso-3166/countries#";
/// Before the names of XML Schema's datatypes.
pub const XSD: &str = "http://www.w3.org/2001/XMLSchema#";
/// Dublin Core.
pub const DC: &str = "http://purl.org/dc/elements/1.1/";
/// Friend of a friend.
pub const FOAF: &str = "http://xmlns.com/foaf/0.1/";
/// RDF.
pub const RDF: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#";
/// RDF Schema.
pub const RDFS: &str = "http://www.w3.org/2000/01/rdf-schema#";
/// Reviews.
pub const REV: &str = "http://purl.org/stuff/rev#";

/// The namespace of a producer's data, a vendor's, or a rating site's: whose it is, and the number.
pub fn owned(owner: &str, number: usize, name: &str, instance: usize) -> String {
    format!("{INSTANCES}dataFrom{owner}{number}/{name}{instance}")
}

/// A product of a producer.
pub fn product(producer: usize, number: usize) -> String {
    owned("Producer", producer, "Product", number)
}

/// A producer.
pub fn producer(number: usize) -> String {
    owned("Producer", number, "Producer", number)
}

/// A vendor.
pub fn vendor(number: usize) -> String {
    owned("Vendor", number, "Vendor", number)
}

/// An offer of a vendor.
pub fn offer(vendor: usize, number: usize) -> String {
    owned("Vendor", vendor, "Offer", number)
}

/// A rating site.
pub fn site(number: usize) -> String {
    owned("RatingSite", number, "RatingSite", number)
}

/// A person at a rating site.
pub fn person(site: usize, number: usize) -> String {
    owned("RatingSite", site, "Reviewer", number)
}

/// A review at a rating site.
pub fn review(site: usize, number: usize) -> String {
    owned("RatingSite", site, "Review", number)
}

/// A product type.
pub fn product_type(number: usize) -> String {
    format!("{INSTANCES}ProductType{number}")
}

/// A product feature.
pub fn feature(number: usize) -> String {
    format!("{INSTANCES}ProductFeature{number}")
}

/// A country by its code.
pub fn country(code: &str) -> String {
    format!("{COUNTRY}{code}")
}
