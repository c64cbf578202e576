//! The manifests of the suite.

use std::path::{Path, PathBuf};

use oxrdf::{Graph, NamedNodeRef, NamedOrBlankNodeRef, TermRef};
use oxrdfio::{RdfFormat, RdfParser};

/// IRIs of the directories that the suites have on the web; their files refer to each other relative to them.
const SPARQL_BASE: &str = "http://www.w3.org/2009/sparql/docs/tests/data-sparql11/";
const RDF_BASE: &str = "https://w3c.github.io/rdf-tests/rdf/rdf11/";

const MF: &str = "http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#";
const QT: &str = "http://www.w3.org/2001/sw/DataAccess/tests/test-query#";
const UT: &str = "http://www.w3.org/2009/sparql/tests/test-update#";
const RDF: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#";
const LABEL: &str = "http://www.w3.org/2000/01/rdf-schema#label";

/// A file of the suite.
#[derive(Clone, Debug)]
pub struct File {
    /// IRI, which is its base IRI too.
    pub iri: String,
    /// Where it is.
    pub path: PathBuf,
}

/// The graphs of a data set.
#[derive(Clone, Debug, Default)]
pub struct Data {
    /// Files of the default graph.
    pub default: Vec<File>,
    /// Name and file of each named graph.
    pub named: Vec<(String, File)>,
}

/// A test.
#[derive(Clone, Debug)]
pub struct Test {
    /// Directory of its manifest.
    pub directory: String,
    /// Its local name.
    pub name: String,
    /// Local name of its class.
    pub class: String,
    /// Query or request.
    pub action: Option<File>,
    /// What is in the store before.
    pub data: Data,
    /// Addresses of other endpoints, and what they have.
    pub services: Vec<(String, File)>,
    /// The answer to expect.
    pub result: Option<File>,
    /// What is to be in the store after an update.
    pub after: Data,
}

/// The tests of an RDF format, which are in this directory.
pub fn read_rdf(suite: &Path, directory: &str) -> Vec<Test> {
    let manifest = Manifest::parse(suite, RDF_BASE, &format!("{directory}/manifest.ttl"));
    manifest
        .list_of(manifest.root(), &format!("{MF}entries"))
        .into_iter()
        .map(|entry| manifest.test(entry, directory))
        .collect()
}

/// All tests of SPARQL, in the order of the manifests.
pub fn read_sparql(suite: &Path) -> Vec<Test> {
    let top = Manifest::parse(suite, SPARQL_BASE, "manifest-all.ttl");
    let mut tests = Vec::new();
    for include in top.list_of(top.root(), &format!("{MF}include")) {
        let TermRef::NamedNode(iri) = include else {
            panic!("an included manifest has an IRI");
        };
        let relative = iri.as_str().strip_prefix(SPARQL_BASE);
        let relative = relative.expect("within the suite");
        let manifest = Manifest::parse(suite, SPARQL_BASE, relative);
        let directory = relative.split('/').next().unwrap_or_default();
        for entry in manifest.list_of(manifest.root(), &format!("{MF}entries")) {
            tests.push(manifest.test(entry, directory));
        }
    }
    tests
}

struct Manifest {
    graph: Graph,
    iri: String,
    base: &'static str,
    suite: PathBuf,
}

impl Manifest {
    fn parse(suite: &Path, base: &'static str, relative: &str) -> Self {
        let iri = format!("{base}{relative}");
        let bytes = std::fs::read(suite.join(relative))
            .unwrap_or_else(|error| panic!("{relative}: {error}"));
        let graph = RdfParser::from_format(RdfFormat::Turtle)
            .with_base_iri(&iri)
            .expect("a valid base IRI")
            .for_slice(&bytes)
            .map(|quad| {
                quad.unwrap_or_else(|error| panic!("{relative}: {error}"))
                    .into()
            })
            .collect::<Vec<oxrdf::Triple>>();
        Self {
            graph: graph.iter().map(|t| t.as_ref()).collect(),
            iri,
            base,
            suite: suite.to_owned(),
        }
    }

    fn root(&self) -> NamedOrBlankNodeRef<'_> {
        NamedNodeRef::new_unchecked(&self.iri).into()
    }

    fn objects(&self, subject: NamedOrBlankNodeRef<'_>, predicate: &str) -> Vec<TermRef<'_>> {
        self.graph
            .objects_for_subject_predicate(subject, NamedNodeRef::new_unchecked(predicate))
            .collect()
    }

    fn object(&self, subject: NamedOrBlankNodeRef<'_>, predicate: &str) -> Option<TermRef<'_>> {
        self.objects(subject, predicate).first().copied()
    }

    fn list_of(&self, subject: NamedOrBlankNodeRef<'_>, predicate: &str) -> Vec<TermRef<'_>> {
        let (first, rest) = (
            NamedNodeRef::new_unchecked("http://www.w3.org/1999/02/22-rdf-syntax-ns#first"),
            NamedNodeRef::new_unchecked("http://www.w3.org/1999/02/22-rdf-syntax-ns#rest"),
        );
        let mut items = Vec::new();
        let mut node = self
            .graph
            .object_for_subject_predicate(subject, NamedNodeRef::new_unchecked(predicate));
        while let Some(cell) = node.and_then(subject_of) {
            let Some(item) = self.graph.object_for_subject_predicate(cell, first) else {
                break;
            };
            items.push(item);
            node = self.graph.object_for_subject_predicate(cell, rest);
        }
        items
    }

    fn test(&self, entry: TermRef<'_>, directory: &str) -> Test {
        let node = subject_of(entry).expect("a test is a node");
        let class = match self.object(node, &format!("{RDF}type")) {
            Some(TermRef::NamedNode(class)) => local_name(class.as_str()),
            _ => String::new(),
        };
        let mut test = Test {
            directory: directory.to_owned(),
            name: match entry {
                TermRef::NamedNode(iri) => local_name(iri.as_str()),
                other => other.to_string(),
            },
            class,
            action: None,
            data: Data::default(),
            services: Vec::new(),
            result: None,
            after: Data::default(),
        };
        match self.object(node, &format!("{MF}action")) {
            Some(TermRef::NamedNode(iri)) => test.action = self.file(iri.into()),
            Some(TermRef::BlankNode(action)) => {
                let action = action.into();
                test.action = self
                    .object(action, &format!("{QT}query"))
                    .or_else(|| self.object(action, &format!("{UT}request")))
                    .and_then(|file| self.file(file));
                test.data = self.data(action);
                test.services = self.services(action);
            }
            _ => {}
        }
        match self.object(node, &format!("{MF}result")) {
            Some(TermRef::BlankNode(result)) => test.after = self.data(result.into()),
            Some(file) => test.result = self.file(file),
            None => {}
        }
        test
    }

    fn services(&self, action: NamedOrBlankNodeRef<'_>) -> Vec<(String, File)> {
        self.objects(action, &format!("{QT}serviceData"))
            .into_iter()
            .filter_map(subject_of)
            .filter_map(|service| {
                let endpoint = self.object(service, &format!("{QT}endpoint"))?;
                let file = self.file(self.object(service, &format!("{QT}data"))?)?;
                match endpoint {
                    TermRef::NamedNode(iri) => Some((iri.as_str().to_owned(), file)),
                    _ => None,
                }
            })
            .collect()
    }

    fn data(&self, node: NamedOrBlankNodeRef<'_>) -> Data {
        let mut data = Data::default();
        for space in [QT, UT] {
            for file in self.objects(node, &format!("{space}data")) {
                data.default.extend(self.file(file));
            }
            for graph in self.objects(node, &format!("{space}graphData")) {
                match graph {
                    TermRef::NamedNode(iri) => {
                        data.named
                            .extend(self.file(graph).map(|file| (iri.as_str().to_owned(), file)));
                    }
                    TermRef::BlankNode(described) => {
                        let described = described.into();
                        let file = self
                            .object(described, &format!("{UT}graph"))
                            .and_then(|file| self.file(file));
                        if let (Some(TermRef::Literal(name)), Some(file)) =
                            (self.object(described, LABEL), file)
                        {
                            data.named.push((name.value().to_owned(), file));
                        }
                    }
                    TermRef::Literal(_) => {}
                }
            }
        }
        data
    }

    fn file(&self, term: TermRef<'_>) -> Option<File> {
        let TermRef::NamedNode(iri) = term else {
            return None;
        };
        let relative = iri.as_str().strip_prefix(self.base)?;
        Some(File {
            iri: iri.as_str().to_owned(),
            path: self.suite.join(relative),
        })
    }
}

fn subject_of(term: TermRef<'_>) -> Option<NamedOrBlankNodeRef<'_>> {
    match term {
        TermRef::NamedNode(iri) => Some(iri.into()),
        TermRef::BlankNode(node) => Some(node.into()),
        TermRef::Literal(_) => None,
    }
}

fn local_name(iri: &str) -> String {
    iri.rsplit(['#', '/']).next().unwrap_or(iri).to_owned()
}
