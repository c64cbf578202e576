use super::*;
use crate::feed::feed;
use crate::json;
use crate::DEFAULT_GRAPH;

fn options(format: Format) -> Options {
    Options {
        format,
        base: None,
        graph: None,
        threads: 3,
    }
}

fn read(source: Source, options: &Options) -> Result<Vec<Vec<String>>, ReadError> {
    let mut pipeline = Pipeline::start(source, options).unwrap();
    let mut quads = Vec::new();
    loop {
        match pipeline.next(Duration::from_secs(60))? {
            Step::Batch(batch) => quads.extend(batch.quads.iter().map(|quad| {
                let terms = quad.iter().filter(|position| **position != DEFAULT_GRAPH);
                terms
                    .map(|position| batch.text(&batch.terms[*position as usize]).to_owned())
                    .collect::<Vec<_>>()
            })),
            Step::Waiting => panic!("no progress"),
            Step::End => return Ok(quads),
        }
    }
}

fn read_text(format: Format, text: &str) -> Result<Vec<Vec<String>>, ReadError> {
    read(Source::text(text.as_bytes().to_vec()), &options(format))
}

#[test]
fn longer_terms_are_compressed_ahead_once_there_are_symbols() {
    let line = |i| {
        format!("<http://a/{i}> <http://b> \"a literal of number {i} that is certainly long enough\" .\n")
    };
    let text: String = (0..200_000).map(line).collect();
    let source = Source::text(text.into_bytes());
    // One parser, so that few batches are under way when the symbols come.
    let options = Options {
        threads: 1,
        ..options(Format::NTriples)
    };
    let mut pipeline = Pipeline::start(source, &options).unwrap();
    let symbols = Arc::new(Symbols::built_in());
    let (mut ahead, mut batches) = (0, 0);
    loop {
        let batch = match pipeline.next(Duration::from_secs(60)).unwrap() {
            Step::Batch(batch) => batch,
            Step::Waiting => panic!("no progress"),
            Step::End => break,
        };
        pipeline.compress_with(7, symbols.clone());
        batches += 1;
        for term in &batch.terms {
            assert!(batch.compressed(term, 8).is_none(), "other symbols");
            let Some(found) = batch.compressed(term, 7) else {
                continue;
            };
            let mut expected = Vec::new();
            let raw = pgquad_term::block::compress(&symbols, batch.text(term), &mut expected);
            assert_eq!((found.bytes, found.raw), (&expected[..], raw));
            ahead += 1;
        }
    }
    // Not those of the first batches, which were under way already.
    assert!(
        batches > 4 && ahead > 0 && ahead < 200_000,
        "{ahead} terms of {batches} batches"
    );
}

#[test]
fn batches_come_in_document_order() {
    let text: String = (0..200_000)
        .map(|i| format!("<http://a/{i}> <http://b> \"{i}\" .\n"))
        .collect();
    let quads = read_text(Format::NTriples, &text).unwrap();
    assert_eq!(quads.len(), 200_000);
    for (index, quad) in quads.iter().enumerate() {
        assert_eq!(quad[0], format!("Ihttp://a/{index}"));
    }
}

#[test]
fn all_formats() {
    let expected = vec![vec![
        "Ihttp://a/s".to_owned(),
        "Ihttp://a/p".to_owned(),
        "Len\0x".to_owned(),
    ]];
    for (format, text) in [
        (Format::NTriples, "<http://a/s> <http://a/p> \"x\"@EN ."),
        (Format::NQuads, "<http://a/s> <http://a/p> \"x\"@en ."),
        (Format::Turtle, "@prefix a: <http://a/> . a:s a:p \"x\"@EN ."),
        (Format::TriG, "@prefix a: <http://a/> . { a:s a:p \"x\"@en }"),
        (
            Format::RdfXml,
            "<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#' xmlns:a='http://a/'>
             <rdf:Description rdf:about='http://a/s'><a:p xml:lang='en'>x</a:p></rdf:Description></rdf:RDF>",
        ),
        (Format::JsonLd, "{\"@id\": \"http://a/s\", \"http://a/p\": {\"@value\": \"x\", \"@language\": \"en\"}}"),
    ] {
        assert_eq!(read_text(format, text).unwrap(), expected, "{format}");
    }
}

#[test]
fn errors_of_all_formats_have_a_line() {
    for (format, text, line) in [
        (Format::NTriples, "# ok\n<http://a> <http://b> .\n", Some(2)),
        (Format::NQuads, "\n\n<http://a> <http://b> <c> .\n", Some(3)),
        (Format::Turtle, "@prefix a: <http://a/> .\na:s a:p ; .\n b:s a:p 1 .", Some(2)),
        (Format::TriG, "@prefix a: <http://a/> .\n{ a:s a:p }", Some(2)),
        (Format::RdfXml, "<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#'>\n\n<x></y>\n</rdf:RDF>", Some(3)),
        (Format::JsonLd, "{\n\"@id\": \n}", Some(3)),
    ] {
        let error = read_text(format, text).unwrap_err();
        assert_eq!((error.kind, error.line), (ErrorKind::Syntax, line), "{format}: {error}");
        assert!(!error.message.contains("Parser error"), "{error}");
    }
}

#[test]
fn rubbish_is_an_error_in_all_formats() {
    let rubbish: Vec<u8> = (0..100_000u32)
        .map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8)
        .collect();
    for format in [
        Format::NTriples,
        Format::NQuads,
        Format::Turtle,
        Format::TriG,
        Format::RdfXml,
        Format::JsonLd,
    ] {
        for document in [rubbish.clone(), vec![0; 1000], vec![0xff, 0xfe]] {
            let result = read(Source::text(document), &options(format));
            assert!(result.is_err(), "{format}");
        }
    }
}

#[test]
fn relative_iris_need_a_base() {
    let text = "<s> <p> <o> .";
    assert!(read_text(Format::Turtle, text).is_err());
    let with_base = Options {
        base: Some("http://a/".to_owned()),
        ..options(Format::Turtle)
    };
    let quads = read(Source::text(text.into()), &with_base).unwrap();
    assert_eq!(quads, [["Ihttp://a/s", "Ihttp://a/p", "Ihttp://a/o"]]);
    let bad_base = Options {
        base: Some("no IRI".to_owned()),
        ..options(Format::Turtle)
    };
    assert!(read(Source::text(text.into()), &bad_base).is_err());
}

#[test]
fn a_feed_is_read_as_it_comes() {
    for format in [Format::NTriples, Format::Turtle] {
        let (mut feed, reader) = feed();
        let mut pipeline = Pipeline::start(Source::plain(reader), &options(format)).unwrap();
        let mut count = 0;
        let mut take = |pipeline: &mut Pipeline, timeout| match pipeline.next(timeout).unwrap() {
            Step::Batch(batch) => {
                count += batch.quads.len();
                true
            }
            Step::Waiting => true,
            Step::End => false,
        };
        for i in 0..100_000 {
            feed.push(
                format!(
                    "<http://a/{i}> <http://b> \"{i}\" .
"
                )
                .as_bytes(),
            );
            while feed.is_due() && !feed.flush() {
                take(&mut pipeline, Duration::from_millis(1));
            }
        }
        while !feed.flush() {
            take(&mut pipeline, Duration::from_millis(1));
        }
        drop(feed);
        while take(&mut pipeline, Duration::from_secs(60)) {}
        assert_eq!(count, 100_000);
    }
}

#[test]
fn a_dropped_pipeline_ends_its_threads() {
    let text: String = (0..1_000_000)
        .map(|i| format!("<http://a/{i}> <http://b> \"{i}\" .\n"))
        .collect();
    let source = Source::text(text.into_bytes());
    let bytes = source.bytes_read.clone();
    let mut pipeline = Pipeline::start(source, &options(Format::NTriples)).unwrap();
    assert!(matches!(
        pipeline.next(Duration::from_secs(60)),
        Ok(Step::Batch(_))
    ));
    drop(pipeline);
    // The source is dropped by the reader when it ends.
    for _ in 0..6000 {
        if Arc::strong_count(&bytes) == 1 {
            return;
        }
        thread::sleep(Duration::from_millis(10));
    }
    panic!("the reader is still running");
}

#[test]
fn a_byte_order_mark_is_no_part_of_a_document() {
    for (format, text) in [
        (Format::NTriples, "<http://a> <http://b> \"\u{feff}x\" ."),
        (Format::NQuads, "<http://a> <http://b> \"\u{feff}x\" .\n"),
        (Format::Turtle, "<http://a> <http://b> \"\u{feff}x\" ."),
        (Format::TriG, "{ <http://a> <http://b> \"\u{feff}x\" }"),
        (Format::JsonLd, "{\"@id\": \"http://a\", \"http://b\": \"\u{feff}x\"}"),
        (
            Format::RdfXml,
            "<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#'>
             <rdf:Description rdf:about='http://a'><b xmlns='http://'>\u{feff}x</b></rdf:Description></rdf:RDF>",
        ),
    ] {
        let quads = read_text(format, &format!("\u{feff}{text}")).unwrap();
        assert_eq!(quads, [["Ihttp://a", "Ihttp://b", "S\u{feff}x"]], "{format}");
    }
    for text in ["", "\u{feff}", "\u{feff}\n"] {
        assert!(read_text(Format::Turtle, text).unwrap().is_empty());
        assert!(read_text(Format::NTriples, text).unwrap().is_empty());
    }
    let twice = "\u{feff}\u{feff}<http://a> <http://b> <http://c> .";
    assert!(read_text(Format::NTriples, twice).is_err());
}

#[test]
fn deeply_nested_json_is_an_error() {
    let nested = |open: &str, inner: &str, close: &str, depth: usize| {
        let text = format!(
            "{{\"http://p\": {}{inner}{}}}",
            open.repeat(depth),
            close.repeat(depth)
        );
        read_text(Format::JsonLd, &text)
            .map(drop)
            .map_err(|error| error.kind)
    };
    for (open, inner, close, levels) in [
        ("{\"http://p\": ", "1", "}", 1),
        ("[", "1", "]", 1),
        ("{\"@list\": [", "1", "]}", 2),
        ("{\"@set\": ", "1", "}", 1),
        ("{\"@graph\": ", "{}", "}", 1),
        (
            "{\"@reverse\": {\"http://r\": ",
            "{\"@id\": \"http://a\"}",
            "}}",
            2,
        ),
        ("{\"@context\": {\"p\": ", "\"http://p\"", "}}", 2),
    ] {
        let most = (json::MAX_NESTING - 2) / levels;
        let within = nested(open, inner, close, most);
        assert_ne!(within, Err(ErrorKind::TooLong), "{open}");
        for depth in [most + 2, 100_000] {
            assert_eq!(
                nested(open, inner, close, depth),
                Err(ErrorKind::TooLong),
                "{open}"
            );
        }
    }
    let brackets = format!("{{\"http://p\": \"\\\"{}\"}}", "{[".repeat(1000));
    assert_eq!(read_text(Format::JsonLd, &brackets).unwrap().len(), 1);
}
