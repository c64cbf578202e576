/** What is in the store: classes, predicates, graphs with counts. */
import { bytes, count, h } from './dom';
import { shown } from './problem';
import { ask } from './query';
import { contentsOf, prefixesOf, state, type Counted } from './state';
import { shorten } from './terms';
import type { View } from './view';

export const view: View = place => {
    const store = state.stores.find(store => store.store === state.store);
    const facts = store
        ? [
              store.quads === null ? null : `${count(store.quads)} quads`,
              store.bytes === null ? null : bytes(store.bytes),
              store.distributed ? `${count(store.shards ?? 0)} shards` : 'one node',
          ]
              .filter(Boolean)
              .join(', ')
        : '';
    const body = h('div', { class: 'columns' }, h('p', { class: 'state' }, 'counting'));
    place.append(h('h2', {}, `Store ${state.store}`), h('p', { class: 'state' }, facts), body);
    const mine = state.store;
    contentsOf()
        .then(found => {
            if (mine !== state.store) return;
            const prefixes = prefixesOf(found);
            const inGraphs = (pattern: string): string => (found.named ? `GRAPH ?g { ${pattern} }` : pattern);
            body.replaceChildren(
                list(
                    'Classes',
                    found.classes,
                    prefixes,
                    iri => `SELECT ?thing {\n  ${inGraphs(`?thing a <${iri}>`)}\n} LIMIT 100`,
                ),
                list(
                    'Predicates',
                    found.predicates,
                    prefixes,
                    iri => `SELECT ?s ?o {\n  ${inGraphs(`?s <${iri}> ?o`)}\n} LIMIT 100`,
                ),
                list(
                    'Named graphs',
                    found.graphs,
                    prefixes,
                    iri => `SELECT ?s ?p ?o {\n  GRAPH <${iri}> { ?s ?p ?o }\n} LIMIT 100`,
                ),
            );
        })
        .catch((error: unknown) => {
            body.replaceChildren(shown(error));
        });
};

function list(
    title: string,
    counted: Counted[],
    prefixes: ReadonlyMap<string, string>,
    query: (iri: string) => string,
): HTMLElement {
    const items = counted.map(({ iri, count: number }) =>
        h(
            'li',
            {},
            h(
                'button',
                {
                    type: 'button',
                    class: 'link',
                    title: iri,
                    onclick: () => {
                        ask(query(iri));
                    },
                },
                shorten(iri, prefixes) ?? `<${iri}>`,
            ),
            h('span', { class: 'number' }, count(number)),
            h('a', { href: `#term=${encodeURIComponent(`<${iri}>`)}`, 'aria-label': `all about ${iri}` }, 'about'),
        ),
    );
    const id = `list-${title.replace(/\W/g, '')}`;
    return h(
        'section',
        { 'aria-labelledby': id },
        h('h3', { id }, `${title} (${count(counted.length)}${counted.length === 1000 ? ' or more' : ''})`),
        items.length > 0
            ? h('ul', { class: 'list', tabindex: 0, 'aria-labelledby': id }, ...items)
            : h('p', { class: 'state' }, 'none'),
    );
}
