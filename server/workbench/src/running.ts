/** Requests under way, with cancel. */
import { get, post } from './api';
import { bytes, count, h, time } from './dom';
import { shown } from './problem';
import { state } from './state';
import type { View } from './view';

export interface Running {
    id: number;
    kind: string;
    role: string;
    store: string | null;
    text: string;
    name: string | null;
    node: string;
    seconds: number;
    bytes?: number;
    quads?: number | null;
    phase?: string | null;
}
interface Session {
    pid: number;
    role: string;
    client: string;
    seconds: number;
    text: string;
    waits: string | null;
    node: string;
}
interface Load {
    pid: number;
    store: string;
    path: string;
    phase: string;
    bytes_done: number;
    bytes_total: number | null;
    quads: number;
    node: string;
}

export interface Activity {
    nodes: string[];
    requests: Running[];
    sessions: Session[];
    loads: Load[];
}

/** Time between two looks, in milliseconds. */
const PERIOD = 1000;

interface Row {
    key: string;
    cells: string[];
    cancel: unknown;
}

export const view: View = place => {
    const body = h('tbody');
    const status = h('p', { class: 'state', role: 'status' });
    const problem = h('div');
    const columns = ['What', 'Role', 'Store', 'Text', 'Time', 'Progress', ''];
    place.append(
        h('h2', {}, 'Running'),
        problem,
        h(
            'div',
            { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Running' },
            h(
                'table',
                { class: 'requests' },
                h(
                    'thead',
                    {},
                    h('tr', {}, ...columns.map(name => (name ? h('th', { scope: 'col' }, name) : h('td', {})))),
                ),
                body,
            ),
        ),
        status,
    );
    let isOver = false;
    const shownRows = new Map<string, HTMLTableRowElement>();
    const cancel = async (what: unknown): Promise<void> => {
        try {
            problem.replaceChildren();
            await post('-/cancel', what);
        } catch (error) {
            problem.replaceChildren(shown(error));
        }
    };
    // Rows stay where they are while they run, so that the focus does.
    const draw = (rows: Row[]): void => {
        const keys = new Set(rows.map(row => row.key));
        for (const [key, row] of shownRows)
            if (!keys.has(key)) {
                row.remove();
                shownRows.delete(key);
            }
        for (const { key, cells, cancel: what } of rows) {
            let row = shownRows.get(key);
            if (!row) {
                row = h(
                    'tr',
                    {},
                    ...cells.map((_, place) => h('td', {}, place === 3 ? h('code') : null)),
                    h(
                        'td',
                        {},
                        state.session?.anonymous
                            ? null
                            : h(
                                  'button',
                                  {
                                      type: 'button',
                                      onclick: () => {
                                          void cancel(what);
                                      },
                                  },
                                  'Cancel',
                              ),
                    ),
                );
                shownRows.set(key, row);
                body.append(row);
            }
            cells.forEach((text, place) => {
                const cell = place === 3 ? row.cells[3]?.firstElementChild : row.cells[place];
                if (cell && cell.textContent !== text) cell.textContent = text;
            });
        }
        const told = rows.length === 0 ? 'Nothing is running.' : `${count(rows.length)} running.`;
        const more = state.session?.anonymous ? ' Sign in to cancel and to see more.' : '';
        if (status.textContent !== told + more) status.textContent = told + more;
    };
    const watch = async (): Promise<void> => {
        while (!isOver) {
            if (document.visibilityState === 'visible') {
                try {
                    const found = await get<Activity>('-/running');
                    if (!isOver) draw(rowsOf(found));
                } catch (error) {
                    problem.replaceChildren(shown(error));
                }
            }
            await new Promise(done => setTimeout(done, PERIOD));
        }
    };
    void watch();
    return () => {
        isOver = true;
    };
};

function rowsOf({ nodes, requests, sessions, loads }: Activity): Row[] {
    // Which node works is worth a word where there are several.
    const at = (what: string, node: string): string => (nodes.length > 1 ? `${what}, ${node}` : what);
    const own = requests.map(({ id, kind, role, store, text, node, seconds, bytes: done, quads, phase }): Row => ({
        key: `request ${id}`,
        cancel: { id },
        cells: [
            at(kind, node),
            role,
            store ?? '',
            text,
            time(seconds * 1000),
            kind === 'load' ? `${phase ?? 'reading'} ${bytes(done ?? 0)}, ${count(quads ?? 0)} quads` : '',
        ],
    }));
    const others = sessions.map(({ node, pid, role, client, seconds, text, waits }): Row => {
        const load = loads.find(load => load.node === node && load.pid === pid);
        const far = load
            ? `${load.phase} ${bytes(load.bytes_done)}${load.bytes_total ? ` of ${bytes(load.bytes_total)}` : ''}, ${count(load.quads)} quads`
            : (waits ?? '');
        return {
            key: `session ${node} ${pid}`,
            cancel: { node, pid },
            cells: [at(client || 'session', node), role, load?.store ?? '', text, time(seconds * 1000), far],
        };
    });
    return [...own, ...others];
}
