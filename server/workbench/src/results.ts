/** Answers: read as they come, shown as a table and, where they have it in them, as plot, graph or map. */
import { send } from './api';
import { count, h } from './dom';
import { contentsOf, endpoint, label, prefixesOf } from './state';
import { numeric, read, readField, write, type Term } from './terms';

/** Most rows that are kept for the page; the rest is for a file. */
const MOST_ROWS = 10_000;
/** Rows that are drawn at once. */
const DRAWN = 200;

export interface Answer {
    columns: string[];
    rows: (Term | undefined)[][];
    /** Whether the query has more rows than are here. */
    isCut: boolean;
    /** Of ASK. */
    truth?: boolean;
    /** A graph: columns are subject, predicate, object. */
    isGraph: boolean;
}

const ACCEPT = 'text/tab-separated-values, application/n-triples;q=0.9, application/problem+json;q=0.1';

/** Runs a query. Reading stops when there are more rows than are kept, and the server's work with it. */
export async function run(query: string, name: string, signal: AbortSignal): Promise<Answer> {
    const stop = new AbortController();
    const end = (): void => {
        stop.abort();
    };
    signal.addEventListener('abort', end);
    const headers = { Accept: ACCEPT, 'Content-Type': 'application/sparql-query', 'X-Request-Id': name };
    const response = await send(endpoint('sparql'), { method: 'POST', headers, body: query, signal: stop.signal });
    const isGraph = (response.headers.get('content-type') ?? '').startsWith('application/n-triples');
    const answer: Answer = {
        columns: isGraph ? ['subject', 'predicate', 'object'] : [],
        rows: [],
        isCut: false,
        isGraph,
    };
    let isFirst = !isGraph,
        rest = '';
    const take = (line: string): void => {
        if (isFirst) {
            isFirst = false;
            if (line === 'true' || line === 'false') answer.truth = line === 'true';
            else
                answer.columns = line
                    .split('\t')
                    .map(name => name.replace(/^\?/, ''))
                    .filter(name => name !== '');
        } else if (isGraph) {
            if (line !== '') answer.rows.push(read(line).slice(0, 3));
        } else answer.rows.push(line.split('\t').slice(0, answer.columns.length).map(readField));
    };
    const decoder = new TextDecoderStream();
    const reader = response.body
        ?.pipeThrough(decoder as ReadableWritablePair<string, Uint8Array<ArrayBuffer>>)
        .getReader();
    while (reader) {
        const { done, value } = await reader.read();
        if (done) break;
        const lines = (rest + value).split('\n');
        rest = lines.pop() ?? '';
        for (const line of lines) {
            if (answer.rows.length >= MOST_ROWS) {
                answer.isCut = true;
                break;
            }
            take(line);
        }
        if (answer.isCut) {
            stop.abort();
            break;
        }
    }
    if (rest !== '') take(rest);
    signal.removeEventListener('abort', end);
    return answer;
}

/** A term with the link to its page. */
export function termNode(term: Term, prefixes: ReadonlyMap<string, string>): Node {
    const text = label(term, prefixes);
    const short = text.length > 400 ? `${text.slice(0, 400)}…` : text;
    const tag = term.language
        ? `@${term.language}`
        : term.datatype && numeric(term) === null
          ? label({ kind: 'iri', value: term.datatype }, prefixes)
          : '';
    const tagNode = tag ? h('span', { class: 'tag' }, tag) : null;
    if (term.kind === 'blank') return h('span', {}, text);
    const link = h(
        'a',
        { href: `#term=${encodeURIComponent(write(term))}`, title: write(term).slice(0, 1000) },
        short || '""',
    );
    return h(
        'span',
        {},
        term.kind === 'iri' ? link : short,
        tagNode,
        term.kind === 'literal' && term.value.length < 200
            ? h(
                  'a',
                  {
                      class: 'tag',
                      href: `#term=${encodeURIComponent(write(term))}`,
                      'aria-label': `all about ${short || 'the empty text'}`,
                  },
                  '→',
              )
            : null,
    );
}

type Kind = 'table' | 'plot' | 'graph' | 'map';

/** Shows an answer within `place`. */
export async function show(place: HTMLElement, answer: Answer, query: string): Promise<void> {
    place.replaceChildren();
    if (answer.truth !== undefined) {
        place.append(h('p', { class: 'answer' }, answer.truth ? 'Yes' : 'No'));
        return;
    }
    const prefixes = prefixesOf(await contentsOf().catch(() => null));
    const body = h('div', { id: 'answer', role: 'tabpanel', 'aria-label': 'Answer' });
    const kinds: [Kind, string][] = [
        ['table', 'Table'],
        ['plot', 'Plot'],
        ['graph', 'Graph'],
        ['map', 'Map'],
    ];
    const draw = async (kind: Kind): Promise<void> => {
        for (const tab of tabs.querySelectorAll('[role=tab]')) {
            const isIt = tab.getAttribute('data-kind') === kind;
            tab.setAttribute('aria-selected', String(isIt));
            tab.setAttribute('tabindex', isIt ? '0' : '-1');
        }
        if (kind === 'table') body.replaceChildren(table(answer, prefixes));
        else if (kind === 'plot') body.replaceChildren((await import('./plot')).plot(answer, prefixes));
        else if (kind === 'graph') body.replaceChildren((await import('./graph')).graph(answer, prefixes));
        else body.replaceChildren((await import('./map')).map(answer, prefixes));
    };
    const tabs = h(
        'div',
        { role: 'tablist', 'aria-label': 'Show as', class: 'row' },
        ...kinds.map(([kind, text]) =>
            h(
                'button',
                {
                    type: 'button',
                    role: 'tab',
                    'data-kind': kind,
                    'aria-controls': 'answer',
                    onclick: () => {
                        void draw(kind);
                    },
                },
                text,
            ),
        ),
    );
    tabs.addEventListener('keydown', event => {
        const step = event.key === 'ArrowRight' ? 1 : event.key === 'ArrowLeft' ? -1 : 0;
        const all = Array.from(tabs.querySelectorAll<HTMLElement>('[role=tab]'));
        const next = all[(all.indexOf(event.target as HTMLElement) + step + all.length) % all.length];
        if (step !== 0 && next) {
            next.focus();
            next.click();
        }
    });
    const formats: [string, string, string][] = answer.isGraph
        ? [
              ['Turtle', 'text/turtle', 'ttl'],
              ['JSON-LD', 'application/ld+json', 'jsonld'],
          ]
        : [
              ['CSV', 'text/csv', 'csv'],
              ['JSON', 'application/sparql-results+json', 'json'],
          ];
    const files = h(
        'div',
        { class: 'row' },
        ...formats.map(([text, media, end]) =>
            h(
                'button',
                {
                    type: 'button',
                    onclick: () => {
                        void download(query, media, `answer.${end}`);
                    },
                },
                text,
            ),
        ),
    );
    place.append(h('div', { class: 'row' }, tabs, h('span', { class: 'state' }, 'All rows as'), files), body);
    await draw('table');
}

async function download(query: string, media: string, name: string): Promise<void> {
    const headers = { Accept: media, 'Content-Type': 'application/sparql-query' };
    const blob = await (await send(endpoint('sparql'), { method: 'POST', headers, body: query })).blob();
    const link = h('a', { href: URL.createObjectURL(blob), download: name });
    link.click();
    setTimeout(() => {
        URL.revokeObjectURL(link.href);
    }, 60_000);
}

function table(answer: Answer, prefixes: ReadonlyMap<string, string>): HTMLElement {
    const body = h('tbody');
    const draw = (): void => {
        const from = body.rows.length;
        for (const row of answer.rows.slice(from, from + DRAWN)) {
            body.append(
                h(
                    'tr',
                    {},
                    ...answer.columns.map((_, place) => {
                        const term = row[place];
                        return h(
                            'td',
                            { class: numeric(term) === null ? null : 'number' },
                            term ? termNode(term, prefixes) : null,
                        );
                    }),
                ),
            );
        }
        const left = answer.rows.length - body.rows.length;
        more.hidden = left <= 0;
        more.textContent = `Show ${count(Math.min(left, DRAWN))} more of ${count(left)}`;
    };
    const more = h('button', { type: 'button', onclick: draw });
    draw();
    const head = h('thead', {}, h('tr', {}, ...answer.columns.map(name => h('th', { scope: 'col' }, name))));
    return h(
        'div',
        {},
        h('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Rows' }, h('table', {}, head, body)),
        h('div', { class: 'row' }, more),
    );
}
