/** Answers as a graph: triples of CONSTRUCT and DESCRIBE; of SELECT, each row as a path through its columns. */
import {
    forceCenter,
    forceCollide,
    forceLink,
    forceManyBody,
    forceSimulation,
    type SimulationLinkDatum,
    type SimulationNodeDatum,
} from 'd3-force';
import { count, h, svg } from './dom';
import type { Answer } from './results';
import { label } from './state';
import { write, type Term } from './terms';

/** Most nodes that are drawn: more cannot be told apart. */
const MOST = 150;
const STEPS = 300;
/** Width of the smallest picture, in units of the layout. */
const SMALLEST = 760;

interface Place extends SimulationNodeDatum {
    term: Term;
}
interface Edge extends SimulationLinkDatum<Place> {
    name: string;
}

/** The graph. */
export function graph(answer: Answer, prefixes: ReadonlyMap<string, string>): HTMLElement {
    const places = new Map<string, Place>(),
        edges: Edge[] = [];
    let isCut = false;
    const place = (term: Term): Place | null => {
        const key = write(term);
        const known = places.get(key);
        if (known) return known;
        if (places.size >= MOST) {
            isCut = true;
            return null;
        }
        const made: Place = { term };
        places.set(key, made);
        return made;
    };
    const join = (from: Term | undefined, to: Term | undefined, name: string): void => {
        if (!from || !to) return;
        const source = place(from),
            target = place(to);
        if (source && target && source !== target) edges.push({ source, target, name });
    };
    for (const row of answer.rows) {
        if (answer.isGraph) join(row[0], row[2], row[1] ? label(row[1], prefixes) : '');
        else
            for (let column = 1; column < answer.columns.length; column += 1)
                join(row[column - 1], row[column], answer.columns[column] ?? '');
    }
    const nodes = [...places.values()];
    if (nodes.length === 0) return h('p', { class: 'state' }, 'A graph needs rows with two terms or more.');
    forceSimulation(nodes)
        .force('link', forceLink<Place, Edge>(edges).distance(110))
        .force('charge', forceManyBody().strength(-180))
        .force('centre', forceCenter(0, 0))
        .force('apart', forceCollide(18))
        .stop()
        .tick(STEPS);
    const xs = nodes.map(node => node.x ?? 0),
        ys = nodes.map(node => node.y ?? 0);
    const [left, right, top, bottom] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
    // A small graph is not blown up.
    const width = Math.max(right - left + 240, SMALLEST),
        height = bottom - top + 80;
    const box = `${(left + right - width) / 2 + 40} ${top - 40} ${width} ${height}`;
    const short = (text: string): string => (text.length > 24 ? `${text.slice(0, 23)}…` : text);
    const at = (end: Edge['source']): Place => end as Place;
    return h(
        'div',
        {},
        h(
            'p',
            { class: 'state' },
            `${count(nodes.length)} terms, ${count(edges.length)} links${isCut ? '; the rest has no room' : ''}`,
        ),
        svg(
            'svg',
            { class: 'figure', viewBox: box, role: 'group', 'aria-label': 'Graph of the answer' },
            ...edges.map(edge =>
                svg(
                    'line',
                    {
                        class: 'edge',
                        x1: at(edge.source).x,
                        y1: at(edge.source).y,
                        x2: at(edge.target).x,
                        y2: at(edge.target).y,
                    },
                    svg('title', {}, edge.name),
                ),
            ),
            ...(edges.length <= 80
                ? edges.map(edge =>
                      svg(
                          'text',
                          {
                              class: 'soft',
                              'text-anchor': 'middle',
                              x: ((at(edge.source).x ?? 0) + (at(edge.target).x ?? 0)) / 2,
                              y: ((at(edge.source).y ?? 0) + (at(edge.target).y ?? 0)) / 2,
                          },
                          short(edge.name),
                      ),
                  )
                : []),
            ...nodes.map(node => {
                const mark = svg('circle', {
                    class: 'mark',
                    cx: node.x,
                    cy: node.y,
                    r: node.term.kind === 'literal' ? 3 : 6,
                });
                const name = svg(
                    'text',
                    { x: (node.x ?? 0) + 8, y: (node.y ?? 0) + 4 },
                    short(label(node.term, prefixes)),
                );
                return node.term.kind === 'iri'
                    ? svg('a', { href: `#term=${encodeURIComponent(write(node.term))}` }, mark, name)
                    : svg('g', {}, mark, name);
            }),
        ) as unknown as HTMLElement,
    );
}
