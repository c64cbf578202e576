/** What all views share: who asks, which store, what is in it. */
import { get, send } from './api';
import { KNOWN, namespace, readField, numeric, shorten, write, type Term } from './terms';

export interface Session {
    role: string;
    store: string;
    database: string;
    postgres: string;
    statistics: boolean;
    anonymous: boolean;
    version: string;
    nodes: number;
}

export interface Store {
    store: string;
    distributed: boolean;
    shards: number | null;
    quads: number | null;
    bytes: number | null;
    readable: boolean;
    writable: boolean;
}

/** A class, predicate or graph and how often it is there. */
export interface Counted {
    iri: string;
    count: number;
}

export interface Contents {
    classes: Counted[];
    predicates: Counted[];
    graphs: Counted[];
    named: boolean;
}

export const state = {
    session: null as Session | null,
    stores: [] as Store[],
    /** The store that is worked with; '' where there is none. */
    store: '',
};

const contents = new Map<string, Promise<Contents>>();

/** The path of an endpoint of the store. */
export function endpoint(name: 'sparql' | 'update' | 'data'): string {
    return state.store ? `${encodeURIComponent(state.store)}/${name}` : name;
}

/** Asks who asks and which stores there are. */
export async function refresh(): Promise<void> {
    state.session = await get<Session>('-/session');
    state.stores = (await get<Store[]>('-/stores')).filter(store => store.readable);
    const there = (name: string): boolean => state.stores.some(store => store.store === name);
    if (!there(state.store)) {
        const main = state.session.store;
        const filled = state.stores.find(store => (store.quads ?? 0) > 0)?.store ?? state.stores[0]?.store ?? '';
        const usual = state.stores.find(store => store.store === main);
        state.store = usual && (usual.quads ?? 0) > 0 ? main : filled;
    }
}

/** Forgets what was in the stores. */
export function forget(): void {
    contents.clear();
}

/** The rows of a query. Errors are `Problem`s. */
export async function select(query: string, signal?: AbortSignal): Promise<(Term | undefined)[][]> {
    const headers = {
        Accept: 'text/tab-separated-values, application/problem+json;q=0.5',
        'Content-Type': 'application/sparql-query',
    };
    const text = await (await send(endpoint('sparql'), { method: 'POST', headers, body: query, signal })).text();
    return text
        .split('\n')
        .slice(1)
        .filter((line, place, all) => line !== '' || place < all.length - 1)
        .map(line => line.split('\t').map(readField));
}

async function counts(pattern: string): Promise<Counted[]> {
    const rows = await select(`SELECT ?x (COUNT(*) AS ?n) { ${pattern} } GROUP BY ?x ORDER BY DESC(?n) LIMIT 1000`);
    return rows.flatMap(([term, number]) =>
        term?.kind === 'iri' ? [{ iri: term.value, count: numeric(number) ?? 0 }] : [],
    );
}

/** What is in the store, asked once. */
export function contentsOf(): Promise<Contents> {
    const store = state.store;
    let found = contents.get(store);
    if (!found) {
        found = count();
        found.catch(() => contents.delete(store));
        contents.set(store, found);
    }
    return found;
}

async function count(): Promise<Contents> {
    const graphs = await counts('GRAPH ?x { ?s ?p ?o }');
    const predicates = await counts('?s ?x ?o');
    // A store whose default graph is empty has all in named ones.
    if (predicates.length === 0 && graphs.length > 0) {
        return {
            graphs,
            predicates: await counts('GRAPH ?g { ?s ?x ?o }'),
            classes: await counts('GRAPH ?g { ?s a ?x }'),
            named: true,
        };
    }
    return { graphs, predicates, classes: await counts('?s a ?x'), named: false };
}

/** Prefixes by namespace: the known ones and names for those of the store. */
export function prefixesOf(found: Contents | null): Map<string, string> {
    const spaces = new Map(Object.entries(KNOWN).map(([prefix, space]) => [space, prefix] as const));
    const taken = new Set(spaces.values());
    for (const { iri } of [...(found?.predicates ?? []), ...(found?.classes ?? [])]) {
        const space = namespace(iri);
        if (!space || spaces.has(space)) continue;
        const word =
            space
                .split(/[/#:]/)
                .filter(part => /^[A-Za-z][A-Za-z0-9-]*$/.test(part))
                .pop()
                ?.toLowerCase() ?? 'ns';
        let prefix = word;
        for (let number = 2; taken.has(prefix); number += 1) prefix = `${word}${number}`;
        taken.add(prefix);
        spaces.set(space, prefix);
    }
    return spaces;
}

/** The text that stands for a term on the page. */
export function label(term: Term, prefixes: ReadonlyMap<string, string>): string {
    if (term.kind === 'iri') return shorten(term.value, prefixes) ?? write(term);
    return term.value;
}
