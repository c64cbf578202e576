/**
 * Answers with numbers as bars (names on the left) or, where the first column is a number or a time too, as points and
 * a line.
 */
import { count, h, svg } from './dom';
import type { Answer } from './results';
import { label } from './state';
import { numeric, type Term } from './terms';

const MOST_BARS = 100;
const MOST_POINTS = 5000;
const WIDTH = 800,
    LEFT = 180,
    ROW = 22;

/** A number or, of a date, its milliseconds. */
function measure(term: Term | undefined): number | null {
    const number = numeric(term);
    if (number !== null || term?.kind !== 'literal' || !/#(?:date|dateTime|gYearMonth)$/.test(term.datatype ?? ''))
        return number;
    const ms = Date.parse(term.value);
    return Number.isNaN(ms) ? null : ms;
}

const isTime = (term: Term | undefined): boolean => numeric(term) === null && measure(term) !== null;

/** The plot. */
export function plot(answer: Answer, prefixes: ReadonlyMap<string, string>): HTMLElement {
    const all = answer.columns.map((_, place) => place);
    const measured = all.filter(
        place =>
            answer.rows.some(row => measure(row[place]) !== null) &&
            answer.rows.every(row => row[place] === undefined || measure(row[place]) !== null),
    );
    const values = measured.filter(place => answer.rows.some(row => numeric(row[place]) !== null));
    if (values.length === 0) return h('p', { class: 'state' }, 'A plot needs a column of numbers.');
    const [across, up] = [measured[0], values.find(place => place !== measured[0])];
    if (across === 0 && up !== undefined) return points(answer, across, up);
    return bars(
        answer,
        all.find(place => !measured.includes(place)),
        values[0] ?? 0,
        prefixes,
    );
}

function bars(
    answer: Answer,
    names: number | undefined,
    place: number,
    prefixes: ReadonlyMap<string, string>,
): HTMLElement {
    const rows = answer.rows.slice(0, MOST_BARS);
    const numbers = rows.map(row => numeric(row[place]) ?? 0);
    const low = Math.min(0, ...numbers),
        high = Math.max(0, ...numbers),
        span = high - low || 1;
    const x = (value: number): number => LEFT + ((value - low) / span) * (WIDTH - LEFT - 90);
    const items = rows.map((row, index) => {
        const term = names === undefined ? undefined : row[names],
            value = numbers[index] ?? 0,
            y = index * ROW;
        const name = term ? label(term, prefixes) : String(index + 1);
        return svg(
            'g',
            {},
            svg(
                'text',
                { x: LEFT - 6, y: y + 15, 'text-anchor': 'end' },
                name.length > 26 ? `${name.slice(0, 25)}…` : name,
            ),
            svg('rect', {
                class: 'mark',
                x: Math.min(x(0), x(value)),
                y: y + 3,
                width: Math.abs(x(value) - x(0)),
                height: ROW - 6,
            }),
            svg('text', { x: Math.max(x(0), x(value)) + 4, y: y + 15, class: 'soft' }, count(value)),
        );
    });
    const title = `${answer.columns[place] ?? ''} of ${rows.length} rows`;
    return h(
        'div',
        {},
        cut(answer.rows.length, MOST_BARS),
        svg(
            'svg',
            { class: 'figure', viewBox: `0 0 ${WIDTH} ${rows.length * ROW + 6}`, role: 'img', 'aria-label': title },
            ...items,
        ) as unknown as HTMLElement,
    );
}

function points(answer: Answer, across: number, up: number): HTMLElement {
    const rows = answer.rows.slice(0, MOST_POINTS);
    const found = rows.flatMap(row => {
        const x = measure(row[across]),
            y = numeric(row[up]);
        return x === null || y === null ? [] : [{ x, y }];
    });
    const range = (values: number[]): [number, number] => {
        const low = values.reduce((a, b) => Math.min(a, b), Infinity),
            high = values.reduce((a, b) => Math.max(a, b), -Infinity);
        return low === high ? [low - 1, high + 1] : [low, high];
    };
    const [left, right] = range(found.map(point => point.x)),
        [low, high] = range(found.map(point => point.y));
    const x = (value: number): number => 70 + ((value - left) / (right - left)) * 710;
    const y = (value: number): number => 370 - ((value - low) / (high - low)) * 350;
    const shownX = (value: number): string =>
        isTime(rows[0]?.[across]) ? new Date(value).toISOString().slice(0, 10) : String(Number(value.toPrecision(5)));
    const ticks = [0, 0.25, 0.5, 0.75, 1];
    const title = `${answer.columns[up] ?? ''} by ${answer.columns[across] ?? ''}, ${found.length} points`;
    const line = [...found]
        .sort((a, b) => a.x - b.x)
        .map(point => `${x(point.x).toFixed(1)},${y(point.y).toFixed(1)}`)
        .join(' ');
    return h(
        'div',
        {},
        cut(answer.rows.length, MOST_POINTS),
        svg(
            'svg',
            { class: 'figure', viewBox: '0 0 800 400', role: 'img', 'aria-label': title },
            ...ticks.flatMap(part => {
                const value = left + part * (right - left),
                    number = low + part * (high - low);
                return [
                    svg('line', { class: 'axis', x1: 70, x2: 780, y1: y(number), y2: y(number) }),
                    svg(
                        'text',
                        { class: 'soft', x: 64, y: y(number) + 4, 'text-anchor': 'end' },
                        String(Number(number.toPrecision(4))),
                    ),
                    svg('text', { class: 'soft', x: x(value), y: 390, 'text-anchor': 'middle' }, shownX(value)),
                ];
            }),
            svg('polyline', { class: 'curve', points: line }),
            ...(found.length <= 500
                ? found.map(point => svg('circle', { class: 'mark', cx: x(point.x), cy: y(point.y), r: 3 }))
                : []),
        ) as unknown as HTMLElement,
    );
}

function cut(rows: number, most: number): HTMLElement | null {
    return rows > most ? h('p', { class: 'state' }, `The first ${count(most)} of ${count(rows)} rows.`) : null;
}
