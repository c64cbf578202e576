//! Golden bytes: ids, hashes and dictionary blocks are made as they were, and what was written before is read.
//!
//! `GOLDEN=write cargo test -p pgquad-term --test golden` writes the files anew; `docs/formats.md` says when that is
//! allowed.

use pgquad_term::block::{table_of, Block, BlockBuilder, Sampler, Symbols};
use pgquad_term::{
    encoded, encoded_hash, encoded_hash_with_seed, inline_id, inline_term, parse, TermId,
};
use std::fmt::Write;

/// Terms of every kind that the dictionary or an id holds, in N-Triples form.
const TERMS: &str = r#"<http://example.org/people/ada>
<http://example.org/people/grace>
<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>
<urn:isbn:0451450523>
"a text of more than seven bytes"
"short"
""
"guten Tag"@de
"good morning"@en-GB
"zażółć gęślą jaźń"
"POINT(1 2)"^^<http://www.opengis.net/ont/geosparql#wktLiteral>
"true"^^<http://www.w3.org/2001/XMLSchema#boolean>
"-42"^^<http://www.w3.org/2001/XMLSchema#integer>
"18014398509481983"^^<http://www.w3.org/2001/XMLSchema#long>
"99999999999999999999"^^<http://www.w3.org/2001/XMLSchema#integer>
"2.50"^^<http://www.w3.org/2001/XMLSchema#decimal>
"1.0E0"^^<http://www.w3.org/2001/XMLSchema#double>
"-INF"^^<http://www.w3.org/2001/XMLSchema#float>
"2008-06-20T23:59:59.123Z"^^<http://www.w3.org/2001/XMLSchema#dateTime>
"2000-02-29+05:45"^^<http://www.w3.org/2001/XMLSchema#date>
"P1Y2M"^^<http://www.w3.org/2001/XMLSchema#duration>
"01"^^<http://www.w3.org/2001/XMLSchema#integer>"#;

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn bytes_of(hexadecimal: &str) -> Vec<u8> {
    let pairs = hexadecimal.as_bytes().chunks(2);
    let pairs = pairs.map(|pair| std::str::from_utf8(pair).expect("digits"));
    pairs
        .map(|pair| u8::from_str_radix(pair, 16).expect("a byte"))
        .collect()
}

/// Compares with the file, or writes it where the environment says so.
fn pin(name: &str, got: &str) -> String {
    let path = format!("{}/tests/golden/{name}", env!("CARGO_MANIFEST_DIR"));
    if std::env::var("GOLDEN").is_ok_and(|how| how == "write") {
        std::fs::write(&path, got).expect("a writable tree");
    }
    let pinned = std::fs::read_to_string(&path).expect("the golden file");
    for (old, new) in pinned.lines().zip(got.lines()) {
        assert_eq!(
            old, new,
            "{name}: the format has changed, see docs/formats.md"
        );
    }
    assert_eq!(
        pinned.len(),
        got.len(),
        "{name}: the format has changed, see docs/formats.md"
    );
    pinned
}

fn encoded_terms() -> Vec<String> {
    let encode = |line: &str| {
        let term = parse(line).expect("a term");
        let mut text = String::new();
        encoded::encode(&term.as_term(), &mut text);
        text
    };
    TERMS.lines().map(encode).collect()
}

#[test]
fn ids_and_hashes() {
    let mut text = String::new();
    for line in TERMS.lines() {
        let term = parse(line).expect("a term");
        let mut encoded = String::new();
        encoded::encode(&term.as_term(), &mut encoded);
        let id = inline_id(&term.as_term());
        let id = id.map_or("none".to_owned(), |id| format!("{:016x}", id.0));
        let (hash, seeded) = (encoded_hash(&encoded), encoded_hash_with_seed(&encoded, 7));
        let _ = writeln!(text, "{id} {hash:032x} {seeded:016x} {line}");
    }
    let pinned = pin("ids.txt", &text);
    // An id that was handed out before is the same term for ever.
    for line in pinned.lines() {
        let mut fields = line.splitn(4, ' ');
        let id = fields
            .next()
            .and_then(|id| u64::from_str_radix(id, 16).ok());
        let written = fields.nth(2).expect("a term");
        if let Some(term) = id.and_then(|id| inline_term(TermId(id))) {
            assert_eq!(term.to_string(), written);
        }
    }
}

/// The trained symbol tables of the file: how tables are trained is no format. They are trained anew where the file is
/// written anew.
fn trained(terms: &[String]) -> Symbols {
    if std::env::var("GOLDEN").is_ok_and(|how| how == "write") {
        let mut sampler = Sampler::default();
        terms.iter().for_each(|term| sampler.offer(term));
        return sampler.train();
    }
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/blocks.txt");
    let file = std::fs::read_to_string(file).expect("the golden file");
    let line = file.lines().nth(2).expect("trained symbol tables");
    Symbols::from_bytes(&bytes_of(line)).expect("symbol tables")
}

#[test]
fn blocks() {
    let terms = encoded_terms();
    let mut text = String::new();
    for symbols in [Symbols::built_in(), trained(&terms)] {
        let mut block = BlockBuilder::new(300, 8000);
        for term in &terms {
            assert!(block.push(&symbols, term));
        }
        let _ = writeln!(text, "{}", hexadecimal(&symbols.to_bytes()));
        let _ = writeln!(text, "{}", hexadecimal(&block.finish()));
    }
    let pinned = pin("blocks.txt", &text);
    // A block that was written before, with its symbol tables, is read.
    let lines: Vec<Vec<u8>> = pinned.lines().map(bytes_of).collect();
    for pair in lines.chunks(2) {
        let symbols = Symbols::from_bytes(&pair[0]).expect("symbol tables");
        assert_eq!(table_of(&pair[1]), Ok(300));
        let block = Block::open(&pair[1], &symbols).expect("a block");
        let read: Vec<String> = (0..block.len())
            .map(|i| block.get(i, &symbols).expect("a term"))
            .collect();
        assert_eq!(read, terms);
    }
}
