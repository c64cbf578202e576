//! Declarations of well-known prefixes.

/// Well-known prefixes: those of the W3C's RDFa initial context that queries use most, Wikidata's and DBpedia's.
const WELL_KNOWN: [(&str, &str); 32] = [
    ("dbo", "http://dbpedia.org/ontology/"),
    ("dbr", "http://dbpedia.org/resource/"),
    ("dc", "http://purl.org/dc/elements/1.1/"),
    ("dcat", "http://www.w3.org/ns/dcat#"),
    ("dct", "http://purl.org/dc/terms/"),
    ("dcterms", "http://purl.org/dc/terms/"),
    ("fn", "http://www.w3.org/2005/xpath-functions#"),
    ("foaf", "http://xmlns.com/foaf/0.1/"),
    ("geof", "http://www.opengis.net/def/function/geosparql/"),
    ("org", "http://www.w3.org/ns/org#"),
    ("owl", "http://www.w3.org/2002/07/owl#"),
    ("p", "http://www.wikidata.org/prop/"),
    ("pq", "http://www.wikidata.org/prop/qualifier/"),
    ("prov", "http://www.w3.org/ns/prov#"),
    ("ps", "http://www.wikidata.org/prop/statement/"),
    ("qb", "http://purl.org/linked-data/cube#"),
    ("rdf", "http://www.w3.org/1999/02/22-rdf-syntax-ns#"),
    ("rdfs", "http://www.w3.org/2000/01/rdf-schema#"),
    ("rev", "http://purl.org/stuff/rev#"),
    ("schema", "http://schema.org/"),
    ("sf", "http://www.opengis.net/ont/sf#"),
    ("sh", "http://www.w3.org/ns/shacl#"),
    ("sioc", "http://rdfs.org/sioc/ns#"),
    ("skos", "http://www.w3.org/2004/02/skos/core#"),
    ("sosa", "http://www.w3.org/ns/sosa/"),
    ("time", "http://www.w3.org/2006/time#"),
    ("vcard", "http://www.w3.org/2006/vcard/ns#"),
    ("void", "http://rdfs.org/ns/void#"),
    ("wd", "http://www.wikidata.org/entity/"),
    ("wdt", "http://www.wikidata.org/prop/direct/"),
    ("wikibase", "http://wikiba.se/ontology#"),
    ("xsd", "http://www.w3.org/2001/XMLSchema#"),
];

/// The declaration to write for a prefix, where it is well known.
pub(crate) fn declaration(prefix: &str) -> Option<String> {
    let known = WELL_KNOWN.iter().find(|known| known.0 == prefix)?;
    Some(format!("PREFIX {prefix}: <{}>", known.1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn well_known_ones_are_sorted_and_absolute() {
        assert!(WELL_KNOWN.is_sorted());
        assert!(WELL_KNOWN.iter().all(|known| known.1.starts_with("http")));
    }
}
