/** The view that asks: editor, examples, answer, plan. */
import { isAbort, post, Problem, requestName } from './api';
import { count, h, time } from './dom';
import { editor, type Editor } from './editor';
import { shown } from './problem';
import { run, show, type Answer } from './results';
import { contentsOf, state } from './state';
import type { View } from './view';

const SOLAR = 'http://example.org/solar/';

const OF_SOLAR: [string, string][] = [
    [
        'Planets and their radius',
        `PREFIX : <${SOLAR}>\nSELECT ?planet ?radius {\n  ?planet a :Planet ; :radius ?radius\n} ORDER BY DESC(?radius)`,
    ],
    [
        'Moons of each planet',
        `PREFIX : <${SOLAR}>\nSELECT ?planet (COUNT(?moon) AS ?moons) {\n  ?moon a :Moon ; :orbits ?planet\n} GROUP BY ?planet ORDER BY DESC(?moons)`,
    ],
    ['Everything about Io', `DESCRIBE <${SOLAR}Io>`],
];

const OF_ANY: [string, string][] = [
    [
        'Classes',
        'SELECT ?class (COUNT(*) AS ?things) {\n  ?thing a ?class\n} GROUP BY ?class ORDER BY DESC(?things) LIMIT 100',
    ],
    [
        'Predicates',
        'SELECT ?predicate (COUNT(*) AS ?triples) {\n  ?s ?predicate ?o\n} GROUP BY ?predicate ORDER BY DESC(?triples) LIMIT 100',
    ],
    ['Some triples', 'SELECT * {\n  ?s ?p ?o\n} LIMIT 100'],
];

/** What is in the editor outlives the view. */
let text: string | null = null;
/** A query that another view wants to be run. */
let wanted: string | null = null;

/** Goes to the editor with a query and runs it. */
export function ask(query: string): void {
    wanted = query;
    if (location.hash === '#query' || location.hash === '') dispatchEvent(new HashChangeEvent('hashchange'));
    else location.hash = '#query';
}

export const view: View = place => {
    const fields = new URLSearchParams(location.search);
    const fromAddress = text === null ? fields.get('query') : null;
    text = wanted ?? text ?? fromAddress ?? OF_ANY[0]?.[1] ?? '';
    const host = h('div', { class: 'editor' });
    const runButton = h(
        'button',
        {
            type: 'button',
            class: 'main',
            title: 'Ctrl+Enter',
            onclick: () => {
                void start('run');
            },
        },
        'Run',
    );
    const planButton = h(
        'button',
        {
            type: 'button',
            title: 'How it would be run',
            onclick: () => {
                void start('plan');
            },
        },
        'Plan',
    );
    const profileButton = h(
        'button',
        {
            type: 'button',
            title: 'Run it and show what it did',
            onclick: () => {
                void start('profile');
            },
        },
        'Profile',
    );
    const cancelButton = h(
        'button',
        {
            type: 'button',
            disabled: true,
            onclick: () => {
                running?.abort();
            },
        },
        'Cancel',
    );
    const status = h('span', { class: 'state', role: 'status', id: 'status' });
    const examples = h('div', { class: 'row examples' });
    const answer = h('section', { 'aria-label': 'Answer' });
    place.append(
        h('h2', { class: 'hidden' }, 'Query'),
        examples,
        host,
        h('div', { class: 'row' }, runButton, cancelButton, planButton, profileButton, status),
        answer,
    );
    const edit: Editor = editor(host, text, () => {
        void start('run');
    });
    let running: AbortController | null = null;

    const start = async (what: 'run' | 'plan' | 'profile'): Promise<void> => {
        running?.abort();
        const mine = (running = new AbortController());
        const query = (text = edit.text());
        edit.mark();
        answer.replaceChildren();
        cancelButton.disabled = false;
        status.textContent = 'running';
        const started = performance.now();
        try {
            if (what === 'run') {
                const found = await run(query, requestName(), mine.signal);
                status.textContent = told(found, performance.now() - started);
                await show(answer, found, query);
            } else {
                const found = await post<import('./plan').Explained>(
                    '-/plan',
                    { query, store: state.store || null, analyze: what === 'profile' },
                    mine.signal,
                );
                status.textContent = `${what}, ${time(performance.now() - started)}`;
                answer.replaceChildren((await import('./plan')).picture(found));
            }
        } catch (error) {
            if (running !== mine) return;
            if (mine.signal.aborted && (isAbort(error) || mine.signal.reason === error)) {
                status.textContent = `cancelled after ${time(performance.now() - started)}`;
            } else {
                status.textContent = 'error';
                answer.replaceChildren(shown(error));
                if (error instanceof Problem) edit.mark(error.message, error.line, error.column);
            }
        } finally {
            if (running === mine) {
                cancelButton.disabled = true;
                running = null;
            }
        }
    };

    void contentsOf()
        .catch(() => null)
        .then(found => {
            const isSolar = found?.predicates.some(({ iri }) => iri.startsWith(SOLAR)) ?? false;
            examples.replaceChildren(
                h('span', { class: 'state' }, 'Examples:'),
                ...(isSolar ? OF_SOLAR : OF_ANY).map(([name, query]) =>
                    h(
                        'button',
                        {
                            type: 'button',
                            onclick: () => {
                                edit.set(query);
                                void start('run');
                            },
                        },
                        name,
                    ),
                ),
            );
        });
    if (wanted !== null || fromAddress !== null) {
        wanted = null;
        void start('run');
    }
    return () => {
        text = edit.text();
        running?.abort();
    };
};

function told(found: Answer, ms: number): string {
    const rows =
        found.truth !== undefined
            ? 'answer'
            : `${found.isCut ? 'the first ' : ''}${count(found.rows.length)} ${found.rows.length === 1 ? 'row' : 'rows'}`;
    return `${rows}, ${time(ms)}`;
}
