use super::*;
use crate::feed::feed;
use crate::json;
use crate::DEFAULT_GRAPH_POSITION;

fn options(format: Format) -> Options {
    Options {
        format,
        base: None,
        graph: None,
        one_graph: false,
        threads: 3,
    }
}

#[test]
fn named_graphs_are_refused_where_there_is_to_be_one() {
    let triples = "<http://a> <http://b> <http://c> .";
    let quads = "<http://a> <http://b> <http://c> <http://g> .";
    let json = r#"{"@id": "http://g", "@graph": [{"@id": "http://a", "http://b": 1}]}"#;
    let of_one = |format| Options {
        one_graph: true,
        ..options(format)
    };
    for (format, text) in [
        (Format::NQuads, quads),
        (Format::TriG, "<http://g> { <http://a> <http://b> 1 }"),
        (Format::JsonLd, json),
    ] {
        let source = || Source::text(text.as_bytes().to_vec());
        assert_eq!(read(source(), &options(format)).unwrap().len(), 1);
        let error = read(source(), &of_one(format)).unwrap_err();
        assert!(error.to_string().contains("<http://g>"), "{error}");
    }
    let source = Source::text(triples.as_bytes().to_vec());
    assert_eq!(read(source, &of_one(Format::NQuads)).unwrap().len(), 1);
}

fn read(source: Source, options: &Options) -> Result<Vec<Vec<String>>, ReadError> {
    let mut pipeline = Pipeline::start(source, options).unwrap();
    let mut quads = Vec::new();
    loop {
        match pipeline.next(Duration::from_secs(60))? {
            Step::Batch(batch) => quads.extend(batch.quads.iter().map(|quad| {
                let terms = quad
                    .iter()
                    .filter(|position| **position != DEFAULT_GRAPH_POSITION);
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

/// The objects of the properties of `http://a` in a document of RDF/XML, encoded, in their order.
fn objects(prolog: &str, properties: &str) -> Result<Vec<String>, ReadError> {
    let text = format!(
        "{prolog}<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#' xmlns:x='http://x/'>\n\
         <rdf:Description rdf:about='http://a'>{properties}</rdf:Description></rdf:RDF>"
    );
    let quads = read_text(Format::RdfXml, &text)?;
    Ok(quads.into_iter().map(|quad| quad[2].clone()).collect())
}

#[test]
fn xml_text_is_one_whatever_is_within() {
    for (property, object) in [
        ("<x:p>a<!-- no -->b</x:p>", "Sab"),
        ("<x:p>a<![CDATA[<b>&]]>c</x:p>", "Sa<b>&c"),
        ("<x:p><![CDATA[a]]><![CDATA[b]]></x:p>", "Sab"),
        ("<x:p>1<?pi?>2</x:p>", "S12"),
        ("<x:p><!-- no --></x:p>", "S"),
        (
            "<x:p> <!-- no --> <rdf:Description rdf:about='http://t'/> <!-- no --> </x:p>",
            "Ihttp://t",
        ),
    ] {
        assert_eq!(objects("", property).unwrap()[0], object, "{property}");
    }
}

#[test]
fn xml_white_space_is_normalised() {
    for (property, object) in [
        ("<x:p>a\r\nb\rc\nd\te&#13;</x:p>", "Sa\nb\nc\nd\te\r"),
        ("<x:p><![CDATA[a\r\nb]]></x:p>", "Sa\nb"),
        (
            "<x:p><rdf:Description x:q='a\r\nb\tc&#10;d\re\nf'/></x:p>",
            "Sa b c\nd e f",
        ),
    ] {
        assert!(
            objects("", property).unwrap().contains(&object.to_owned()),
            "{property}"
        );
    }
}

#[test]
fn xml_that_is_cut_is_an_error() {
    let whole = "<?xml version='1.0'?>\n<!DOCTYPE rdf:RDF [<!ENTITY x 'y'>]>\n<!-- c -->\
        <rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#' xmlns:x='http://x/'>\
        <rdf:Description rdf:about='http://a'><x:p>1</x:p><x:p rdf:parseType='Literal'><b/></x:p>\
        <x:p><x:T/></x:p><x:q/></rdf:Description></rdf:RDF>";
    assert_eq!(read_text(Format::RdfXml, whole).unwrap().len(), 5);
    for end in 0..whole.len() {
        let error = read_text(Format::RdfXml, &whole[..end]).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Syntax, "{}: {error}", &whole[..end]);
    }
    for more in ["<x/>", "x", "<!-- "] {
        assert!(
            read_text(Format::RdfXml, &format!("{whole}{more}")).is_err(),
            "{more}"
        );
    }
    let padded = format!("{whole}\n<!-- c --><?pi?>\n");
    assert_eq!(read_text(Format::RdfXml, &padded).unwrap().len(), 5);
}

#[test]
fn xml_entities_are_expanded() {
    let prolog = "<!DOCTYPE rdf:RDF [\n<!-- <!ENTITY x \"no\"> --><!ELEMENT x ANY>\n<!ENTITY x 'http://x/'>\
        <!ENTITY x 'no'><!ENTITY y \"&x;y\"><!ENTITY q '\"'><!ENTITY lt '&#38;#60;'><!ENTITY f SYSTEM 'file:///f'>\
        <!ENTITY % p 'x'> ]>\n";
    for (property, object) in [
        ("<x:p rdf:resource='&y;z'/>", "Ihttp://x/yz"),
        ("<x:p>&y;&lt;&amp;y;&q;</x:p>", "Shttp://x/y<&y;\""),
        ("<x:p><rdf:Description x:q='&q;'/></x:p>", "S\""),
    ] {
        let found = objects(prolog, property).unwrap();
        assert!(found.contains(&object.to_owned()), "{found:?}");
    }
    let literal = "<x:p rdf:parseType='Literal'><b k='&x;'>&x;</b></x:p>";
    let found = objects(prolog, literal).unwrap().concat();
    assert!(
        found.contains("k=\"http://x/\"") && found.ends_with(">http://x/</b>"),
        "{found}"
    );
    for unknown in ["&z;", "&f;", "&p;", "&;", "& y;"] {
        let error = objects(prolog, &format!("<x:p>{unknown}</x:p>")).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Syntax, "{unknown}");
    }
}

#[test]
fn xml_entities_are_bounded() {
    let mut bomb = "<!DOCTYPE rdf:RDF [<!ENTITY e0 \"0123456789\">".to_owned();
    for level in 1..12 {
        let value = format!("&e{};", level - 1).repeat(10);
        bomb.push_str(&format!("<!ENTITY e{level} \"{value}\">"));
    }
    bomb.push_str("]>");
    let error = objects(&bomb, "<x:p>&e11;</x:p>").unwrap_err();
    assert_eq!(error.kind, ErrorKind::TooLong, "{error}");
    let long = format!(
        "<!DOCTYPE rdf:RDF [<!ENTITY e \"{}\">]>",
        "x".repeat(100_000)
    );
    for property in [
        format!("<x:p>{}</x:p>", "&e;".repeat(10_000)),
        format!("<x:p x:q='{}'/>", "&e;".repeat(10_000)),
        format!("<x:p>{}</x:p>", "&e;<!-- -->".repeat(10_000)),
        format!(
            "<x:p {}/>",
            (0..10_000)
                .map(|i| format!("x:q{i}='&e;' "))
                .collect::<String>()
        ),
    ] {
        let error = objects(&long, &property).unwrap_err();
        assert_eq!(error.kind, ErrorKind::TooLong, "{error}");
    }
}

#[test]
fn xml_tokens_are_bounded() {
    let endless = |start: &str| {
        let text = format!(
            "<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#'>{start}{}",
            "x".repeat(17 << 20)
        );
        read_text(Format::RdfXml, &text).unwrap_err().kind
    };
    for start in ["", "<x ", "<x y='", "<!-- ", "<![CDATA[", "<?"] {
        assert_eq!(endless(start), ErrorKind::TooLong, "{start}");
    }
}

#[test]
fn xml_literals_and_languages() {
    const XML: &str = "Thttp://www.w3.org/1999/02/22-rdf-syntax-ns#XMLLiteral\0";
    let literal = |property: &str| {
        let found = objects("", property).unwrap();
        assert_eq!(found.len(), 1, "{property}");
        found[0].clone()
    };
    let empty = [
        literal("<x:p rdf:parseType='Literal'/>"),
        literal("<x:p rdf:parseType='Literal'></x:p>"),
        literal("<x:p rdf:parseType='Literal'><!-- c --></x:p>"),
    ];
    for empty in empty {
        assert_eq!(empty, XML);
    }
    assert_eq!(
        literal("<x:p rdf:parseType='Literal'>a</x:p>"),
        format!("{XML}a")
    );
    assert_eq!(
        literal("<x:p rdf:parseType='daml:x'>a</x:p>"),
        format!("{XML}a")
    );
    let quoted =
        literal("<x:p rdf:parseType='Literal'><b k='\"' rdf:parseType='x' xml:lang=''/></x:p>");
    assert!(
        quoted.contains("k=\"&quot;\"") && quoted.contains("parseType=\"x\" xml:lang=\"\""),
        "{quoted}"
    );
    assert_eq!(literal("<x:p xml:lang='de'>a</x:p>"), "Lde\0a");
    assert_eq!(literal("<x:p xml:lang=''>a</x:p>"), "Sa");
    let outer = "<x:p><rdf:Description xml:lang='de'><x:q xml:lang=''>a</x:q><x:q>b</x:q></rdf:Description></x:p>";
    let mut found = objects("", outer).unwrap();
    found.sort();
    assert_eq!(found[1..], ["Lde\0b", "Sa"]);
}

#[test]
fn xml_in_other_encodings() {
    let text = |encoding: &str| {
        format!(
            "<?xml version='1.0' encoding='{encoding}'?>\n\
             <rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#' xmlns:x='http://x/'>\n\
             <rdf:Description rdf:about='http://a'>{}</rdf:Description></rdf:RDF>",
            "<x:p>Ärger, é</x:p>".repeat(5000)
        )
    };
    let object = |document: Vec<u8>| {
        let quads = read(Source::text(document), &options(Format::RdfXml))?;
        assert_eq!(quads.len(), 5000);
        Ok::<_, ReadError>(quads[4999][2].clone())
    };
    let latin = |encoding: &str| text(encoding).chars().map(|c| c as u8).collect::<Vec<u8>>();
    let wide = |mark: &str, smile: &str, bytes: fn(u16) -> [u8; 2]| {
        let text = mark.to_owned() + &text("UTF-16").replace("é", smile);
        text.encode_utf16().flat_map(bytes).collect::<Vec<u8>>()
    };
    for encoding in ["iso-8859-1", "ISO-8859-1", "latin1"] {
        assert_eq!(object(latin(encoding)).unwrap(), "SÄrger, é", "{encoding}");
    }
    for encoding in ["utf-8", "UTF-8", "us-ascii"] {
        assert_eq!(
            object(text(encoding).into_bytes()).unwrap(),
            "SÄrger, é",
            "{encoding}"
        );
    }
    for mark in ["\u{feff}", ""] {
        for bytes in [u16::to_le_bytes, u16::to_be_bytes] {
            for padding in ["😀", "x😀"] {
                let found = object(wide(mark, padding, bytes)).unwrap();
                assert_eq!(found, format!("SÄrger, {padding}"));
            }
            let mut cut = wide(mark, "é", bytes);
            cut.pop();
            assert_eq!(object(cut).unwrap_err().kind, ErrorKind::Encoding);
        }
    }
    let half: Vec<u8> = wide("", "é", u16::to_le_bytes);
    let broken = [&half[..100], &[0, 0xdc], &half[100..]].concat();
    assert_eq!(object(broken).unwrap_err().kind, ErrorKind::Encoding);
    for other in ["windows-1252", "koi8-r"] {
        assert_eq!(
            object(text(other).into_bytes()).unwrap_err().kind,
            ErrorKind::Syntax
        );
    }
    assert!(object(latin("utf-8")).is_err());
}
