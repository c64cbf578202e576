/**
 * Answers with places on a map: points of WKT, or columns (or predicates) of latitude and longitude. The outline is
 * Natural Earth's, from the binary.
 */
import { feature } from 'topojson-client';
import type { Topology } from 'topojson-specification';
import world from 'world-atlas/land-110m.json';
import { count, h, svg } from './dom';
import type { Answer } from './results';
import { label } from './state';
import { numeric, write, type Term } from './terms';

interface Point {
    longitude: number;
    latitude: number;
    name: Term | undefined;
}

const WKT = /^\s*(?:<[^>]*>\s*)?POINT\s*Z?\s*\(\s*(-?[\d.eE+-]+)\s+(-?[\d.eE+-]+)/i;
const LATITUDE = /(?:^|[#/])(?:lat|latitude)$/i,
    LONGITUDE = /(?:^|[#/])(?:long|lon|lng|longitude)$/i;
const MOST = 5000;

/** The map. */
export function map(answer: Answer, prefixes: ReadonlyMap<string, string>): HTMLElement {
    const points = (answer.isGraph ? ofGraph(answer) : ofRows(answer))
        .filter(({ longitude, latitude }) => Math.abs(longitude) <= 180 && Math.abs(latitude) <= 90)
        .slice(0, MOST);
    if (points.length === 0)
        return h('p', { class: 'state' }, 'A map needs points (geo:wktLiteral) or columns lat and long.');
    const whole = '-180 -90 360 180';
    const view = svg('svg', { class: 'figure', viewBox: whole, role: 'group', 'aria-label': 'Map' });
    const draw = (box: string): void => {
        view.setAttribute('viewBox', box);
        const radius = Number(box.split(' ')[2]) / 150;
        view.replaceChildren(
            svg('path', { class: 'land', d: outline(), 'stroke-width': radius / 4 }),
            ...points.map(({ longitude, latitude, name }) => {
                const mark = svg(
                    'circle',
                    { class: 'mark', cx: longitude, cy: -latitude, r: radius },
                    svg('title', {}, name ? label(name, prefixes) : `${latitude}, ${longitude}`),
                );
                return name?.kind === 'iri'
                    ? svg(
                          'a',
                          { href: `#term=${encodeURIComponent(write(name))}`, 'aria-label': label(name, prefixes) },
                          mark,
                      )
                    : mark;
            }),
        );
    };
    draw(fit(points));
    return h(
        'div',
        {},
        h(
            'div',
            { class: 'row' },
            h(
                'button',
                {
                    type: 'button',
                    onclick: () => {
                        draw(fit(points));
                    },
                },
                'All points',
            ),
            h(
                'button',
                {
                    type: 'button',
                    onclick: () => {
                        draw(whole);
                    },
                },
                'World',
            ),
            h('span', { class: 'state' }, `${count(points.length)} points`),
        ),
        view as unknown as HTMLElement,
    );
}

function ofRows({ columns, rows }: Answer): Point[] {
    const latitude = columns.findIndex(name => LATITUDE.test(name)),
        longitude = columns.findIndex(name => LONGITUDE.test(name));
    return rows.flatMap(row => {
        const name =
            row.find(term => term?.kind === 'iri') ??
            row.find(term => term && numeric(term) === null && !WKT.test(term.value));
        const wkt = row.map(term => (term ? WKT.exec(term.value) : null)).find(Boolean);
        if (wkt) return [{ longitude: Number(wkt[1]), latitude: Number(wkt[2]), name }];
        const [x, y] = [numeric(row[longitude]), numeric(row[latitude])];
        return x === null || y === null ? [] : [{ longitude: x, latitude: y, name }];
    });
}

function ofGraph({ rows }: Answer): Point[] {
    const found = new Map<string, { name: Term; x?: number; y?: number }>();
    for (const [subject, predicate, object] of rows) {
        if (!subject || !predicate || !object) continue;
        const entry = found.get(subject.value) ?? { name: subject };
        found.set(subject.value, entry);
        const wkt = WKT.exec(object.value),
            number = numeric(object);
        if (wkt) {
            entry.x = Number(wkt[1]);
            entry.y = Number(wkt[2]);
        } else if (number !== null && LATITUDE.test(predicate.value)) entry.y = number;
        else if (number !== null && LONGITUDE.test(predicate.value)) entry.x = number;
    }
    return [...found.values()].flatMap(({ name, x, y }) =>
        x === undefined || y === undefined ? [] : [{ name, longitude: x, latitude: y }],
    );
}

/** A box around the points, twice as wide as high. */
function fit(points: Point[]): string {
    const xs = points.map(point => point.longitude),
        ys = points.map(point => -point.latitude);
    const [left, right, top, bottom] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
    const width = Math.min(360, Math.max((right - left) * 1.2, (bottom - top) * 2.4, 4));
    return `${(left + right) / 2 - width / 2} ${(top + bottom) / 2 - width / 4} ${width} ${width / 2}`;
}

/** The outline of the land as a path of SVG, in degrees. */
function outline(): string {
    const topology = world as unknown as Topology;
    const land = topology.objects['land'];
    if (!land) return '';
    const found = feature(topology, land);
    const features = found.type === 'FeatureCollection' ? found.features : [found];
    const polygons = features.flatMap(({ geometry }) =>
        geometry.type === 'MultiPolygon'
            ? geometry.coordinates
            : geometry.type === 'Polygon'
              ? [geometry.coordinates]
              : [],
    );
    return polygons
        .flat()
        .map(ring =>
            ring
                .map(([x = 0, y = 0], place) => {
                    // What crosses the date line begins anew on its other side.
                    const isFar = Math.abs(x - (ring[place - 1]?.[0] ?? x)) > 180;
                    return `${place === 0 || isFar ? 'M' : 'L'}${x.toFixed(1)},${(-y).toFixed(1)}`;
                })
                .join(''),
        )
        .join('');
}
