/** RDF terms: reading them from N-Triples and TSV, and showing them. */

export interface Term {
    kind: 'iri' | 'literal' | 'blank';
    value: string;
    datatype?: string;
    language?: string;
}

const XSD = 'http://www.w3.org/2001/XMLSchema#';

/** Prefixes that everybody knows; the store's own namespaces come to them. */
export const KNOWN: Record<string, string> = {
    rdf: 'http://www.w3.org/1999/02/22-rdf-syntax-ns#',
    rdfs: 'http://www.w3.org/2000/01/rdf-schema#',
    owl: 'http://www.w3.org/2002/07/owl#',
    xsd: XSD,
    skos: 'http://www.w3.org/2004/02/skos/core#',
    foaf: 'http://xmlns.com/foaf/0.1/',
    dc: 'http://purl.org/dc/elements/1.1/',
    dcterms: 'http://purl.org/dc/terms/',
    schema: 'http://schema.org/',
    geo: 'http://www.w3.org/2003/01/geo/wgs84_pos#',
    geosparql: 'http://www.opengis.net/ont/geosparql#',
    rev: 'http://purl.org/stuff/rev#',
    void: 'http://rdfs.org/ns/void#',
    prov: 'http://www.w3.org/ns/prov#',
    sh: 'http://www.w3.org/ns/shacl#',
    bsbm: 'http://www4.wiwiss.fu-berlin.de/bizer/bsbm/v01/vocabulary/',
    wd: 'http://www.wikidata.org/entity/',
    wdt: 'http://www.wikidata.org/prop/direct/',
    dbo: 'http://dbpedia.org/ontology/',
    dbr: 'http://dbpedia.org/resource/',
};

const TERM = /\s*(?:<([^>]*)>|(_:[^\s]+)|"((?:[^"\\]|\\.)*)"(?:@([A-Za-z0-9-]+)|\^\^<([^>]*)>)?|([^\s<"]+))/y;
const ESCAPES: Record<string, string> = { t: '\t', b: '\b', n: '\n', r: '\r', f: '\f', '"': '"', "'": "'", '\\': '\\' };

function unescape(text: string): string {
    return text.replace(
        /\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))/g,
        (whole, short: string, long: string, one: string) =>
            one !== undefined ? (ESCAPES[one] ?? whole) : String.fromCodePoint(parseInt(short ?? long, 16)),
    );
}

/** The terms of a text, one after the other. */
export function read(text: string): Term[] {
    const terms: Term[] = [];
    TERM.lastIndex = 0;
    for (let match = TERM.exec(text); match; match = TERM.exec(text)) {
        const [, iri, blank, literal, language, datatype, bare] = match;
        if (iri !== undefined) terms.push({ kind: 'iri', value: unescape(iri) });
        else if (blank !== undefined) terms.push({ kind: 'blank', value: blank });
        else if (literal !== undefined) {
            terms.push({
                kind: 'literal',
                value: unescape(literal),
                ...(language ? { language } : {}),
                ...(datatype ? { datatype } : {}),
            });
        } else if (bare !== undefined && bare !== '.') terms.push(number(bare));
    }
    return terms;
}

/** Numbers stand without quotes in TSV. */
function number(text: string): Term {
    const datatype =
        text === 'true' || text === 'false'
            ? 'boolean'
            : /^[+-]?\d+$/.test(text)
              ? 'integer'
              : /e/i.test(text)
                ? 'double'
                : 'decimal';
    return { kind: 'literal', value: text, datatype: XSD + datatype };
}

/** A field of a TSV result; undefined: unbound. */
export function readField(field: string): Term | undefined {
    return field === '' ? undefined : read(field)[0];
}

/** The term as N-Triples and SPARQL write it. */
export function write(term: Term): string {
    if (term.kind === 'iri') return `<${term.value}>`;
    if (term.kind === 'blank') return term.value;
    const text = term.value.replace(
        /["\\\n\r\t]/g,
        c => ({ '"': '\\"', '\\': '\\\\', '\n': '\\n', '\r': '\\r', '\t': '\\t' })[c] ?? c,
    );
    return `"${text}"${term.language ? `@${term.language}` : term.datatype ? `^^<${term.datatype}>` : ''}`;
}

/** The namespace of an IRI: up to the last `#`, `/` or `:`. */
export function namespace(iri: string): string {
    return iri.slice(0, Math.max(iri.lastIndexOf('#'), iri.lastIndexOf('/'), iri.lastIndexOf(':')) + 1);
}

const LOCAL = /^[\p{L}\p{N}_](?:[\p{L}\p{N}_.-]*[\p{L}\p{N}_-])?$/u;

/** `prefix:name` where one of the prefixes fits; null otherwise. */
export function shorten(iri: string, prefixes: ReadonlyMap<string, string>): string | null {
    const space = namespace(iri),
        local = iri.slice(space.length);
    const prefix = prefixes.get(space);
    return prefix !== undefined && LOCAL.test(local) ? `${prefix}:${local}` : null;
}

/** A number where the term is one. */
export function numeric(term: Term | undefined): number | null {
    if (term?.kind !== 'literal' || term.value.trim() === '') return null;
    const value = Number(term.value);
    return Number.isFinite(value) ? value : null;
}
