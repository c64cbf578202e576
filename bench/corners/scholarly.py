#!/usr/bin/python3
"""Makes a data set of universities, people, publications and topics as N-Triples, in the shapes of LUBM, SP2Bench and
Wikidata. It has a class tree, labels in several languages, optional properties, citations with a long tail, dates and
numbers.
Usage: scholarly.py SIZE >file; about 3,500 triples for each unit of the size, the same ones each time."""

import random
import sys

NS = "http://example.org/"
RDF_TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
RDFS = "http://www.w3.org/2000/01/rdf-schema#"
XSD = "http://www.w3.org/2001/XMLSchema#"
WORDS = (
    "adaptive algebra analysis approximate architecture atlas balance basin bridge cache canal chain climate cluster "
    "coast code compact complex concurrent cost crystal data deep delta design discrete distributed dynamic early "
    "efficient energy engine estimate evidence fast field finite flow forest formal fuzzy garden general geometry "
    "global graph group harbour hidden index infinite island join kernel language large lattice learning light linear "
    "local logic map matrix measure memory method model motion native network new object ocean open optimal order "
    "parallel partial pattern planar point practical prime process proof quantum query random range rapid recursive "
    "relation river robust scalable search semantic set simple sketch smooth space sparse stable static stream "
    "structure surface survey symbolic system theory time topology trace tree uniform valley value vector view wave "
    "weak wide"
).split()
GIVEN = "Ada Alan Barbara Bertha Carl Clara David Dora Edgar Emmy Frances Georg Grace Hedy Ivan Jean Karen Leslie Margaret Niklaus Olga Paul".split()
FAMILY = "Abel Bach Codd Dijkstra Euler Floyd Gray Hopper Iverson Jones Knuth Lovelace Meyer Noether Olsen Perlis Quine Ritchie Smith Turing".split()
LANGUAGES = ["en", "de", "fr", "es", "en-GB"]


class Writer:
    def __init__(self, out):
        self.out = out

    def link(self, s, p, o):
        self.out.write(f"<{NS}{s}> <{NS}{p}> <{NS}{o}> .\n")

    def type(self, s, o):
        self.out.write(f"<{NS}{s}> {RDF_TYPE} <{NS}{o}> .\n")

    def rdfs(self, s, p, o):
        self.out.write(f"<{NS}{s}> <{RDFS}{p}> <{NS}{o}> .\n")

    def label(self, s, text, language=None):
        tag = f"@{language}" if language else ""
        self.out.write(f'<{NS}{s}> <{RDFS}label> "{text}"{tag} .\n')

    def value(self, s, p, text, datatype=None):
        kind = f"^^<{XSD}{datatype}>" if datatype else ""
        self.out.write(f'<{NS}{s}> <{NS}{p}> "{text}"{kind} .\n')


def title(rng, words):
    return " ".join(rng.choice(WORDS) for _ in range(words)).capitalize()


def date(rng, first, last):
    return f"{rng.randint(first, last)}-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}"


def classes(w):
    tree = {
        "Person": "Agent", "Organisation": "Agent", "Student": "Person", "Staff": "Person", "Professor": "Staff", "FullProfessor": "Professor",
        "AssociateProfessor": "Professor", "Lecturer": "Staff", "PhdStudent": "Student", "University": "Organisation",
        "Department": "Organisation", "Publication": "Work", "Article": "Publication", "InProceedings": "Publication", "Book": "Publication",
    }  # fmt: skip
    for child, parent in tree.items():
        w.rdfs(child, "subClassOf", parent)


def topics(w, rng, count):
    """A tree of topics, with more than one parent here and there."""
    for n in range(count):
        w.type(f"topic{n}", "Topic")
        text = title(rng, 2)
        for language in rng.sample(LANGUAGES, rng.randint(1, 4)):
            w.label(f"topic{n}", text if rng.random() < 0.4 else title(rng, 2), language)
        if n:
            w.link(f"topic{n}", "broader", f"topic{rng.randrange((n + 3) // 4)}")
            if rng.random() < 0.1:
                w.link(f"topic{n}", "broader", f"topic{rng.randrange(n)}")


def people(w, rng, departments):
    """Staff, students and courses of each department; returns who publishes."""
    authors = []
    for d in range(departments):
        university = d // 10
        if d % 10 == 0:
            w.type(f"university{university}", "University")
            w.label(f"university{university}", f"University of {title(rng, 1)}", "en")
            w.value(f"university{university}", "founded", rng.randint(1400, 2000), "gYear")
            w.value(f"university{university}", "latitude", f"{rng.uniform(-60, 70):.4f}", "decimal")
            w.value(f"university{university}", "longitude", f"{rng.uniform(-180, 180):.4f}", "double")
        w.type(f"department{d}", "Department")
        w.link(f"department{d}", "partOf", f"university{university}")
        w.label(f"department{d}", f"Department of {title(rng, 1)}")
        staff = []
        for n in range(12):
            who = f"staff{d}_{n}"
            staff.append(who)
            w.type(who, rng.choice(["FullProfessor", "AssociateProfessor", "Lecturer"]))
            w.link(who, "worksFor", f"department{d}")
            if rng.random() < 0.8:
                w.link(who, "degreeFrom", f"university{rng.randrange(departments // 10 + 1)}")
            w.link(who, "teaches", f"course{d}_{n}")
            w.type(f"course{d}_{n}", "Course")
            w.label(f"course{d}_{n}", title(rng, 2), rng.choice(LANGUAGES))
        w.link(staff[0], "headOf", f"department{d}")
        students = [f"student{d}_{n}" for n in range(60)]
        for n, who in enumerate(students):
            w.type(who, "PhdStudent" if n < 15 else "Student")
            w.link(who, "memberOf", f"department{d}")
            for course in rng.sample(range(12), 3):
                w.link(who, "takes", f"course{d}_{course}")
            if n < 15:
                w.link(who, "advisor", rng.choice(staff))
        for who in staff + students:
            w.value(who, "name", f"{rng.choice(GIVEN)} {rng.choice(FAMILY)}{rng.randrange(40) or ''}")
            w.value(who, "born", date(rng, 1940, 2003), "date")
            if rng.random() < 0.6:
                w.value(who, "email", f"{who}@{rng.choice(['uni', 'mail', 'dept'])}{university}.example")
            if rng.random() < 0.1:
                w.value(who, "died", date(rng, 2005, 2020), "date")
            for _ in range(rng.choice([0, 0, 1, 2, 5])):
                w.link(who, "knows", f"student{rng.randrange(departments)}_{rng.randrange(60)}")
        authors += staff + students[:15]
    return authors


def publications(w, rng, count, authors, topic_count):
    venues = [f"journal{n}" for n in range(count // 200 + 1)] + [f"conference{n}" for n in range(count // 100 + 1)]
    for venue in venues:
        w.type(venue, "Journal" if venue.startswith("j") else "Conference")
        w.label(venue, title(rng, 3), "en")
    for n in range(count):
        paper, venue = f"paper{n}", rng.choice(venues)
        w.type(paper, "Article" if venue.startswith("j") else rng.choice(["InProceedings", "InProceedings", "Book"]))
        w.link(paper, "publishedIn", venue)
        w.value(paper, "title", title(rng, rng.randint(3, 9)))
        w.value(paper, "year", rng.randint(1980, 2022), "integer")
        w.value(paper, "issued", f"{date(rng, 1980, 2022)}T{rng.randint(0, 23):02}:00:00Z", "dateTime")
        for author in {authors[int(len(authors) * rng.random() ** 2)] for _ in range(rng.randint(1, 5))}:
            w.link(paper, "author", author)
        for topic in {int(topic_count * rng.random() ** 2) for _ in range(rng.randint(1, 3))}:
            w.link(paper, "about", f"topic{topic}")
        if rng.random() < 0.3:
            w.value(paper, "pages", rng.randint(2, 60), "integer")
        if rng.random() < 0.2:
            w.value(paper, "abstract", title(rng, rng.randint(30, 60)))
        if rng.random() < 0.5:
            w.value(paper, "doi", f"10.{rng.randint(1000, 9999)}/{n}")
        for cited in {int(n * rng.random() ** 3) for _ in range(rng.choice([0, 0, 1, 3, 8]))} if n else ():
            w.link(paper, "cites", f"paper{cited}")


def main():
    size = int(sys.argv[1])
    rng, w = random.Random(1), Writer(sys.stdout)
    classes(w)
    topics(w, rng, 20 * size)
    authors = people(w, rng, 3 * size)
    publications(w, rng, 100 * size, authors, 20 * size)


if __name__ == "__main__":
    main()
