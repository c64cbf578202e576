/** The page of a term: everything about it, in and out. */
import { h } from './dom';
import { shown } from './problem';
import { ask } from './query';
import { termNode } from './results';
import { contentsOf, label, prefixesOf, select } from './state';
import { read, write, type Term } from './terms';
import type { View } from './view';

/** Most statements of each kind that are shown. */
const MOST = 500;
const LABEL = 'http://www.w3.org/2000/01/rdf-schema#label';

export const view: View = (place, argument) => {
    const term = read(argument)[0];
    if (!term || term.kind === 'blank') {
        place.append(h('p', { class: 'problem', role: 'alert' }, 'This is no term that has a page.'));
        return;
    }
    const n3 = write(term),
        stop = new AbortController();
    const title = h('h2', {}, term.value);
    const body = h('div', {}, h('p', { class: 'state' }, 'asking'));
    place.append(title, h('p', {}, h('code', {}, n3)), body);
    const out = `SELECT ?p ?o ?g { { ${n3} ?p ?o } UNION { GRAPH ?g { ${n3} ?p ?o } } } LIMIT ${MOST}`;
    const into = `SELECT ?s ?p ?g { { ?s ?p ${n3} } UNION { GRAPH ?g { ?s ?p ${n3} } } } LIMIT ${MOST}`;
    const as = `SELECT ?s ?o ?g { { ?s ${n3} ?o } UNION { GRAPH ?g { ?s ${n3} ?o } } } LIMIT 20`;
    const isIri = term.kind === 'iri';
    const asked = [
        isIri ? select(out, stop.signal) : [],
        select(into, stop.signal),
        isIri ? select(as, stop.signal) : [],
    ];
    Promise.all([contentsOf().catch(() => null), ...asked])
        .then(([found, from = [], to = [], used = []]) => {
            const prefixes = prefixesOf(found ?? null);
            title.textContent = from.find(([p]) => p?.value === LABEL)?.[1]?.value ?? label(term, prefixes);
            body.replaceChildren(
                isIri ? part('Says', ['Predicate', 'Object', 'Graph'], from, prefixes, out) : '',
                part('Is said of', ['Subject', 'Predicate', 'Graph'], to, prefixes, into),
                used.length > 0 ? part('As a predicate', ['Subject', 'Object', 'Graph'], used, prefixes, as) : '',
            );
        })
        .catch((error: unknown) => {
            if (!stop.signal.aborted) body.replaceChildren(shown(error));
        });
    return () => {
        stop.abort();
    };
};

function part(
    title: string,
    columns: string[],
    rows: (Term | undefined)[][],
    prefixes: ReadonlyMap<string, string>,
    query: string,
): HTMLElement {
    const hasGraph = rows.some(row => row[2] !== undefined);
    const shownColumns = hasGraph ? columns : columns.slice(0, 2);
    const body = rows.map(row =>
        h(
            'tr',
            {},
            ...shownColumns.map((_, place) => {
                const term = row[place];
                return h('td', {}, term ? termNode(term, prefixes) : null);
            }),
        ),
    );
    return h(
        'section',
        { 'aria-label': title },
        h(
            'div',
            { class: 'row' },
            h('h3', {}, `${title} (${rows.length}${rows.length === MOST ? ' or more' : ''})`),
            h(
                'button',
                {
                    type: 'button',
                    onclick: () => {
                        ask(query.replace(/ LIMIT \d+$/, ''));
                    },
                },
                'As a query',
            ),
        ),
        rows.length === 0
            ? h('p', { class: 'state' }, 'nothing')
            : h(
                  'div',
                  { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': `${title}: rows` },
                  h(
                      'table',
                      {},
                      h('thead', {}, h('tr', {}, ...shownColumns.map(name => h('th', { scope: 'col' }, name)))),
                      h('tbody', {}, ...body),
                  ),
              ),
    );
}
