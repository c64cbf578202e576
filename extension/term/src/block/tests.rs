use super::*;
use proptest::prelude::*;

/// Packs the terms into blocks of at most `limit` bytes.
fn pack(terms: &[String], symbols: &Symbols, limit: usize) -> Vec<Vec<u8>> {
    let mut builder = BlockBuilder::new(7, limit);
    let mut blocks = Vec::new();
    for term in terms {
        if !builder.push(symbols, term) {
            blocks.push(builder.finish());
            assert!(
                builder.push(symbols, term),
                "an empty block takes any term: {term:?}"
            );
        }
    }
    if !builder.is_empty() {
        blocks.push(builder.finish());
    }
    blocks
}

/// As [`pack`], of terms that have been compressed before.
fn pack_compressed(terms: &[String], symbols: &Symbols, limit: usize) -> Vec<Vec<u8>> {
    let mut builder = BlockBuilder::new(7, limit);
    let mut blocks = Vec::new();
    for term in terms {
        let mut bytes = Vec::new();
        let raw = compress(symbols, term, &mut bytes);
        let compressed = Compressed { bytes: &bytes, raw };
        if !builder.push_compressed(symbols, term, compressed) {
            blocks.push(builder.finish());
            assert!(builder.push_compressed(symbols, term, compressed));
        }
    }
    if !builder.is_empty() {
        blocks.push(builder.finish());
    }
    blocks
}

#[test]
fn terms_are_alike_by_their_datatype() {
    let price = |n: u32| format!("Thttp://e/usd\0{n}.25");
    let terms: Vec<String> = (0..40)
        .map(|n| match n % 4 {
            0 => price(n),
            1 => format!("Sa comment, the {n}th"),
            2 => format!("Thttp://e/eur\0{n}.25"),
            _ => format!("Ihttp://example.org/offers/{n}"),
        })
        .collect();
    let symbols = Symbols::built_in();
    let blocks = pack(&terms, &symbols, 1 << 16);
    let block = Block::open(&blocks[0], &symbols).unwrap();
    assert_eq!(block.len(), terms.len());
    for index in 0..4 {
        let alike: Vec<usize> = block.alike(index).collect();
        assert_eq!(alike, (index..40).step_by(4).collect::<Vec<_>>());
    }
    assert_eq!(block.alike(40).count(), 0);
}

fn unpack(blocks: &[Vec<u8>], symbols: &Symbols) -> Vec<String> {
    let mut terms = Vec::new();
    for bytes in blocks {
        assert_eq!(table_of(bytes), Ok(7));
        let block = Block::open(bytes, symbols).unwrap();
        for index in 0..block.len() {
            terms.push(block.get(index, symbols).unwrap());
        }
        let every_other = || (0..block.len()).step_by(2);
        let (mut text, mut ends) = (Vec::new(), Vec::new());
        let view = View::new(bytes).unwrap();
        view.append(every_other(), symbols, &mut text, &mut ends)
            .unwrap();
        assert_eq!(view.len(), block.len());
        let mut start = 0;
        for (index, &end) in every_other().zip(&ends) {
            assert_eq!(
                text[start..end],
                *block.get(index, symbols).unwrap().as_bytes()
            );
            start = end;
        }
        assert_eq!(ends.len(), every_other().count());
        let past = view.append([block.len()].into_iter(), symbols, &mut text, &mut ends);
        assert_eq!(past, Err(BlockError::NoSuchTerm(block.len())));
        assert_eq!(
            block.get(block.len(), symbols),
            Err(BlockError::NoSuchTerm(block.len()))
        );
    }
    terms
}

fn train(terms: &[String]) -> Symbols {
    let mut sampler = Sampler::default();
    for term in terms {
        sampler.offer(term);
    }
    sampler.train()
}

fn encoded_term() -> impl Strategy<Value = String> {
    prop_oneof![
        "I(http://example.org/(a|b|c)[/#])?[a-z0-9/#:]{0,30}",
        "S\\PC{0,60}",
        "Len(-us)?\0[a-z ]{0,200}",
        "Thttp://example.org/type[0-9]{1,3}\0[0-9.]{0,20}",
        "[\u{1}-\u{1d}]\\PC{0,30}",
        Just("I".to_owned()),
        Just("S".to_owned()),
        Just("L".to_owned()),
        Just("Ix/".to_owned()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn round_trip(terms in prop::collection::vec(encoded_term(), 1..600), limit in 20usize..4000) {
        let trained = train(&terms);
        for symbols in [&Symbols::built_in(), &trained] {
            let blocks = pack(&terms, symbols, limit);
            for block in &blocks {
                prop_assert!(block.len() <= limit || Block::open(block, symbols).unwrap().len() == 1);
            }
            prop_assert_eq!(&unpack(&blocks, symbols), &terms);
            prop_assert_eq!(&pack_compressed(&terms, symbols, limit), &blocks);
            let mut kinds = Vec::new();
            for block in &blocks {
                View::new(block).unwrap().kinds(symbols, &mut kinds).unwrap();
            }
            let first = terms.iter().map(|term| term.as_bytes()[0]);
            prop_assert_eq!(kinds, first.collect::<Vec<_>>());
        }
        let restored = Symbols::from_bytes(&trained.to_bytes()).unwrap();
        prop_assert_eq!(&pack(&terms, &restored, limit), &pack(&terms, &trained, limit));
    }

    #[test]
    fn damage_is_an_error_or_other_text_but_no_panic(
        terms in prop::collection::vec(encoded_term(), 1..40),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut in any::<prop::sample::Index>(),
    ) {
        let symbols = train(&terms);
        for mut block in pack(&terms, &symbols, 2000) {
            for (at, byte) in &damage {
                let at = at.index(block.len());
                block[at] = *byte;
            }
            for bytes in [&block[..], &block[..cut.index(block.len())]] {
                let _ = table_of(bytes);
                if let Ok(view) = View::new(bytes) {
                    let _ = view.kinds(&symbols, &mut Vec::new());
                }
                if let Ok(block) = Block::open(bytes, &symbols) {
                    for index in 0..block.len() {
                        let _ = block.get(index, &symbols);
                    }
                }
            }
        }
        let mut tables = symbols.to_bytes();
        for (at, byte) in &damage {
            let at = at.index(tables.len());
            tables[at] = *byte;
        }
        let _ = Symbols::from_bytes(&tables);
        let _ = Symbols::from_bytes(&tables[..cut.index(tables.len())]);
    }
}

#[test]
fn long_terms_get_a_block_of_their_own() {
    let long = format!("S{}", "x".repeat(1 << 20));
    let noise: String = (0..100_000u32)
        .map(|i| char::from_u32(0x4e00 + i.wrapping_mul(7919) % 5000).unwrap())
        .collect();
    let terms = vec![
        "Ihttp://example.org/a".to_owned(),
        long,
        format!("S{noise}"),
        "Sb".to_owned(),
    ];
    let symbols = Symbols::built_in();
    let blocks = pack(&terms, &symbols, 2000);
    assert_eq!(blocks.len(), 4);
    assert_eq!(unpack(&blocks, &symbols), terms);
}

#[test]
fn namespaces_are_stored_once() {
    let terms: Vec<String> = (0..MAX_TERMS)
        .map(|i| format!("Ihttp://www4.wiwiss.fu-berlin.de/bizer/bsbm/v01/instances/dataFromVendor1/Offer{i}"))
        .collect();
    let symbols = train(&terms);
    let blocks = pack(&terms, &symbols, 4000);
    assert_eq!(blocks.len(), 1);
    assert!(
        blocks[0].len() < MAX_TERMS * 7,
        "{} bytes for {MAX_TERMS} terms",
        blocks[0].len()
    );
}

#[test]
fn foreign_bytes_are_refused() {
    let symbols = Symbols::built_in();
    for (bytes, error) in [
        (&[][..], BlockError::Truncated),
        (&[9, 1, 0, 0], BlockError::Version(9)),
        (&[1, 0, 0, 0], BlockError::Invalid("number of terms")),
        (&[1, 1, 0, 0, 0, 0], BlockError::Invalid("affix number")),
    ] {
        assert_eq!(Block::open(bytes, &symbols).err(), Some(error));
    }
    assert!(Symbols::from_bytes(&[2, 0, 0]).is_err());
    assert!(Symbols::from_bytes(&[1, 0, 0, 0]).is_err());
    assert!(Symbols::from_bytes(&[1, 1, 9, 0, 0]).is_err());
}
