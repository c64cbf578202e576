/** The frame: navigation, store, who asks, the cluster's status. */
import './style.css';
import { get, isSignedIn, Problem, signIn, whenUnauthorized } from './api';
import { byId, h } from './dom';
import { forget, refresh, state } from './state';
import type { View } from './view';

const VIEWS: Record<string, () => Promise<{ view: View }>> = {
    query: () => import('./query'),
    contents: () => import('./contents'),
    term: () => import('./term'),
    load: () => import('./load'),
    running: () => import('./running'),
};

/** Time between two looks at the cluster, in milliseconds; each watches it for one second. */
const CLUSTER_PERIOD = 5000;

let leave: (() => void) | undefined;
let turn = 0;

async function show(): Promise<void> {
    const [name = '', argument = ''] = location.hash.slice(1).split('=', 2);
    const view = name in VIEWS ? name : 'query';
    const mine = (turn += 1);
    for (const link of document.querySelectorAll<HTMLAnchorElement>('nav a')) {
        if (link.dataset['view'] === view) link.setAttribute('aria-current', 'page');
        else link.removeAttribute('aria-current');
    }
    const module = await VIEWS[view]?.();
    if (mine !== turn || !module) return;
    leave?.();
    const main = byId('main');
    main.replaceChildren();
    leave = module.view(main, decodeURIComponent(argument)) ?? undefined;
}

function fillStores(): void {
    const select = byId<HTMLSelectElement>('store');
    select.replaceChildren(
        ...state.stores.map(({ store }) => h('option', { value: store, selected: store === state.store }, store)),
    );
    select.disabled = state.stores.length === 0;
    const session = state.session;
    byId('sign').textContent = isSignedIn() && session ? `${session.role}: sign out` : 'Sign in';
}

async function reload(): Promise<void> {
    forget();
    await refresh();
    fillStores();
}

/** Asks for name and password; whether they are right. */
function ask(why: string): Promise<boolean> {
    return new Promise(done => {
        const name = h('input', { name: 'name', autocomplete: 'username', required: true });
        const password = h('input', { name: 'password', type: 'password', autocomplete: 'current-password' });
        const problem = h('p', { class: 'problem', role: 'alert', hidden: true });
        const form = h(
            'form',
            { method: 'dialog' },
            h('h2', { id: 'sign-title' }, 'Sign in'),
            why ? h('p', {}, why) : null,
            h('p', { class: 'state' }, 'A role of PostgreSQL. Kept until the page is closed.'),
            h('label', {}, 'Name', name),
            h('label', {}, 'Password', password),
            problem,
            h(
                'div',
                { class: 'row' },
                h('button', { class: 'main' }, 'Sign in'),
                h(
                    'button',
                    {
                        type: 'button',
                        onclick: () => {
                            dialog.close();
                        },
                    },
                    'Cancel',
                ),
            ),
        );
        const dialog = h('dialog', { 'aria-labelledby': 'sign-title' }, form);
        let right = false;
        form.addEventListener('submit', event => {
            event.preventDefault();
            signIn({ name: name.value, password: password.value });
            // Tried without asking again where it is wrong.
            whenUnauthorized(async () => false);
            void reload()
                .then(
                    () => {
                        right = true;
                        dialog.close();
                    },
                    (error: unknown) => {
                        signIn(null);
                        problem.hidden = false;
                        problem.textContent = error instanceof Error ? error.message : String(error);
                    },
                )
                .finally(() => {
                    whenUnauthorized(ask);
                });
        });
        dialog.addEventListener('close', () => {
            dialog.remove();
            done(right);
        });
        document.body.append(dialog);
        dialog.showModal();
    });
}

/** The line of the cluster and, to be opened where there are several, those of its nodes, which stay as open as they are. */
function showCluster(place: HTMLElement, [first = '', ...nodes]: string[]): void {
    if (nodes.length === 0) {
        place.textContent = first;
        return;
    }
    let [summary, each] = [place.querySelector('summary'), place.querySelector('pre')];
    if (!summary || !each) {
        [summary, each] = [h('summary'), h('pre')];
        place.replaceChildren(h('details', {}, summary, each));
    }
    summary.textContent = first;
    each.textContent = nodes.join('\n');
}

async function watchCluster(): Promise<void> {
    for (;;) {
        const place = byId('cluster');
        if (document.visibilityState === 'visible' && state.session?.statistics) {
            try {
                const lines = await get<string[]>('-/cluster?seconds=1');
                showCluster(place, lines);
            } catch (error) {
                place.textContent = error instanceof Error ? error.message : String(error);
            }
        } else if (!state.session?.statistics) {
            place.textContent = 'Status: for members of pg_read_all_stats';
        }
        await new Promise(done => setTimeout(done, CLUSTER_PERIOD));
    }
}

async function start(): Promise<void> {
    whenUnauthorized(ask);
    const fields = new URLSearchParams(location.search);
    state.store = fields.get('store') ?? '';
    byId('store').addEventListener('change', event => {
        state.store = (event.target as HTMLSelectElement).value;
        void show();
    });
    byId('sign').addEventListener('click', () => {
        if (!isSignedIn()) {
            void ask('').then(right => {
                if (right) void show();
            });
            return;
        }
        signIn(null);
        void reload().then(show, () => {
            location.reload();
        });
    });
    addEventListener('hashchange', () => {
        void show();
    });
    addEventListener('pgquad-changed', () => {
        void reload().catch(() => undefined);
    });
    try {
        await reload();
    } catch (error) {
        const problem = error instanceof Problem ? error.message : 'the server does not answer';
        byId('main').append(h('p', { class: 'problem', role: 'alert' }, problem));
        if (!(error instanceof Problem && error.status === 401)) return;
    }
    await show();
    void watchCluster();
}

void start();
