/**
 * The plan of a query as a picture: nodes from the outside in; joins with their patterns in the order in which they
 * were first used.
 */
import { bytes, count, h, time } from './dom';
import { prefixesOf } from './state';
import { shorten } from './terms';

/** A node or pattern, as EXPLAIN (FORMAT JSON) has it. */
type Node_ = { [name: string]: unknown };

export interface Explained {
    algebra: string;
    sql: string;
    plan: { Plan: Node_; 'Planning Time'?: number; 'Execution Time'?: number }[];
}

interface Drawing {
    patterns: Map<string, string>;
    whole: number;
    isMeasured: boolean;
}

/** The picture. */
export function picture(explained: Explained): HTMLElement {
    const top = explained.plan[0];
    const whole = top?.['Execution Time'] ?? 0;
    const drawing: Drawing = {
        patterns: patternsOf(explained.sql),
        whole,
        isMeasured: top?.['Execution Time'] !== undefined,
    };
    const times =
        top && drawing.isMeasured
            ? `planned in ${time(top['Planning Time'] ?? 0)}, ran ${time(whole)}`
            : 'estimates only: Profile runs the query and measures';
    const legend = drawing.isMeasured
        ? h('div', { class: 'facts', 'aria-hidden': 'true' }, 'rows: found (green), estimated (yellow); time: blue')
        : null;
    return h(
        'div',
        { class: 'plan', role: 'group', 'aria-label': 'Plan' },
        h('p', { class: 'state' }, times),
        legend,
        top ? h('ul', {}, node(top.Plan, drawing)) : null,
        h('details', {}, h('summary', {}, 'SQL'), h('pre', { tabindex: 0 }, explained.sql)),
        h('details', {}, h('summary', {}, 'Algebra'), h('pre', { tabindex: 0 }, explained.algebra)),
    );
}

const text = (node: Node_, name: string): string | null => (typeof node[name] === 'string' ? node[name] : null);
const number = (node: Node_, name: string): number | null => (typeof node[name] === 'number' ? node[name] : null);
const nodes = (node: Node_, name: string): Node_[] => {
    const found: unknown = node[name];
    return Array.isArray(found) ? found.filter((item): item is Node_ => typeof item === 'object' && item !== null) : [];
};

/** Properties that say more of a node, as they are. */
const FACTS = [
    'Strategy',
    'Index Order',
    'Index Cond',
    'Group Key',
    'Sort Key',
    'Hash Cond',
    'Join Filter',
    'Filter',
    'Filter on Ids',
    'Rows Removed by Filter',
    'Rows Removed by Filter on Ids',
    'Rows Removed by Join Filter',
    'Sort Method',
    'Exchange',
    'Exchange Reason',
    'Exchange Bytes Received',
];

function node(plan: Node_, drawing: Drawing): HTMLElement {
    const custom = text(plan, 'Custom Plan Provider'),
        alias = text(plan, 'Alias');
    const name = custom ?? text(plan, 'Node Type') ?? '';
    const pattern = alias !== null ? drawing.patterns.get(alias) : undefined;
    const loops = number(plan, 'Actual Loops') ?? 1;
    const facts = FACTS.flatMap(name => {
        const value = plan[name];
        if (value === undefined || value === 0 || (name === 'Strategy' && value === 'Plain')) return [];
        return [h('span', {}, `${name}: ${(Array.isArray(value) ? value.join(', ') : String(value)).slice(0, 500)}`)];
    });
    const patterns = nodes(plan, 'Patterns'),
        hops = nodes(plan, 'Hops');
    const exchange = text(plan, 'Exchange');
    const children = nodes(plan, 'Plans').filter(child => !isConstant(child));
    return h(
        'li',
        {},
        h(
            'div',
            { class: custom ? 'node quad' : 'node' },
            h(
                'div',
                {},
                h('strong', {}, name),
                loops > 1 ? ` × ${count(loops)}` : '',
                ' ',
                pattern ? h('code', {}, pattern) : null,
                ' ',
                custom ? where(exchange, text(plan, 'Shards')) : null,
            ),
            figures(
                number(plan, 'Plan Rows'),
                total(plan, 'Actual Rows', loops),
                drawing.isMeasured ? (number(plan, 'Actual Total Time') ?? 0) * loops : null,
                drawing,
            ),
            drawing.isMeasured ? pages(number(plan, 'Shared Hit Blocks'), number(plan, 'Shared Read Blocks')) : null,
            h('div', { class: 'facts' }, ...facts, ...shards(plan), ...nodes(plan, 'Participants').map(participant)),
            patterns.length > 0
                ? h(
                      'ol',
                      { class: 'steps', 'aria-label': 'Patterns in their order' },
                      ...patterns.map(step => patternStep(step, exchange, drawing)),
                  )
                : null,
            hops.length > 0
                ? h(
                      'ol',
                      { class: 'steps', 'aria-label': 'Hops' },
                      ...hops.map(hop => patternStep(hop, exchange, drawing)),
                  )
                : null,
        ),
        children.length > 0 ? h('ul', {}, ...children.map(child => node(child, drawing))) : null,
    );
}

/** Looking up the id of a constant: there are many, and they say nothing. */
function isConstant(plan: Node_): boolean {
    return (
        text(plan, 'Node Type') === 'Result' &&
        text(plan, 'Parent Relationship') === 'InitPlan' &&
        nodes(plan, 'Plans').length === 0
    );
}

function total(plan: Node_, name: string, loops: number): number | null {
    const rows = number(plan, name);
    return rows === null ? null : rows * loops;
}

const KINDS: Record<string, string> = { Left: 'optional', Semi: 'exists', Anti: 'not exists' };
const METHODS = ['Star', 'Probe', 'Merge', 'Hash'];

function patternStep(step: Node_, exchange: string | null, drawing: Drawing): HTMLElement {
    const alias = text(step, 'Alias') ?? '';
    const kind = KINDS[text(step, 'Join Type') ?? ''];
    const used = METHODS.flatMap(method => {
        const batches = number(step, `${method} Batches`) ?? 0;
        return batches > 0 ? [`${method.toLowerCase()}${batches > 1 ? ` × ${count(batches)}` : ''}`] : [];
    });
    const isNever = drawing.isMeasured && text(step, 'Index Order') === null;
    const facts = [
        used.length > 0 ? `method ${used.join(', ')}` : null,
        fact(step, 'Index Order', 'order'),
        fact(step, 'Batches', 'batches'),
        fact(step, 'Keys', 'keys'),
        fact(step, 'Probes', 'probes'),
        fact(step, 'Pushed Rows', 'pushed rows'),
        fact(step, 'Peak Memory Usage', 'memory kB'),
    ].filter((fact): fact is string => fact !== null && fact !== '');
    return h(
        'li',
        {},
        h(
            'span',
            { class: 'title' },
            kind ? h('em', {}, `${kind} `) : null,
            h('code', {}, drawing.patterns.get(alias) ?? `${alias} ${text(step, 'Columns') ?? ''}`),
            ' ',
            isNever
                ? h('span', { class: 'badge off' }, 'never executed')
                : drawing.isMeasured
                  ? where(exchange, text(step, 'Shards'))
                  : null,
        ),
        isNever
            ? null
            : figures(number(step, 'Plan Rows'), number(step, 'Actual Rows'), number(step, 'Actual Time'), drawing),
        drawing.isMeasured && !isNever ? pages(number(step, 'Hit Blocks'), number(step, 'Read Blocks')) : null,
        h('div', { class: 'facts' }, ...facts.map(fact => h('span', {}, fact)), ...shards(step)),
    );
}

/** What reading the shards of other nodes has cost. */
function shards(plan: Node_): HTMLElement[] {
    if (text(plan, 'Shards') !== 'pull') return [];
    const sent = (number(plan, 'Shard Bytes Sent') ?? 0) + (number(plan, 'Shard Bytes Received') ?? 0);
    const waiting = number(plan, 'Shard Waiting Time');
    return [
        h(
            'span',
            {},
            `${count(number(plan, 'Shard Messages') ?? 0)} messages, ${bytes(sent)}`,
            waiting === null ? '' : `, waiting ${time(waiting)}`,
        ),
    ];
}

/** What a node has done in a join that is pushed from node to node. */
function participant(of: Node_): HTMLElement {
    const waiting = number(of, 'Waiting Time');
    return h(
        'span',
        {},
        `${text(of, 'Node') ?? ''}: ${count(number(of, 'Actual Rows') ?? 0)} rows, `,
        `${count(number(of, 'Pushed Rows') ?? 0)} pushed, ${bytes(number(of, 'Bytes Sent') ?? 0)} sent, `,
        `${count(number(of, 'Blocked Writes') ?? 0)} writes blocked`,
        waiting === null ? '' : `, waiting ${time(waiting)}`,
    );
}

function fact(step: Node_, name: string, shown: string): string | null {
    const value = step[name];
    return value === undefined || value === 0
        ? null
        : `${shown} ${typeof value === 'number' ? count(value) : String(value)}`;
}

/** Where the work was: at the node that was asked, by asking others, or by pushing rows on. */
function where(exchange: string | null, shards: string | null): HTMLElement {
    const how = exchange === 'push'
        ? 'push'
        : shards === 'pull' || exchange === 'pull'
          ? 'pull'
          : 'here';
    return h('span', { class: `badge ${how}` }, how);
}

function pages(hit: number | null, read: number | null): HTMLElement | null {
    if (hit === null && read === null) return null;
    return h('div', { class: 'facts' }, `pages: ${count(hit ?? 0)} in memory, ${count(read ?? 0)} read`);
}

/** Bars: rows on a logarithmic scale (a tenfold is a seventh), time as a share of the whole. */
function figures(estimated: number | null, found: number | null, ms: number | null, drawing: Drawing): HTMLElement {
    const width = (rows: number): number => Math.min(1, Math.log10(rows + 1) / 7);
    const bar = (name: string, share: number, shown: string): HTMLElement[] => {
        const fill = h('span', { class: name });
        fill.style.width = `${Math.max(0, Math.min(1, share)) * 100}%`;
        return [h('span', {}, name), h('div', { class: 'bar' }, fill), h('span', {}, shown)];
    };
    const off =
        estimated !== null && found !== null ? (Math.max(estimated, found) + 1) / (Math.min(estimated, found) + 1) : 1;
    return h(
        'div',
        { class: 'bars' },
        ...(estimated !== null ? bar('estimate', width(estimated), `${count(estimated)} rows`) : []),
        ...(found !== null
            ? bar(
                  'found',
                  width(found),
                  `${count(found)} rows${off >= 10 ? ` (off by ${count(Math.round(off))}×)` : ''}`,
              )
            : []),
        ...(ms !== null && drawing.isMeasured ? bar('time', drawing.whole > 0 ? ms / drawing.whole : 0, time(ms)) : []),
    );
}

/** The triple pattern that each alias of the SQL stands for. */
export function patternsOf(sql: string): Map<string, string> {
    const prefixes = prefixesOf(null);
    const cells = new Map<string, string>();
    for (const [, cell = '', literal = ''] of sql.matchAll(
        /\b(\w+\.[spog]) = \(SELECT (?:COALESCE\()?quad\.(?:find|id_of)\(E?'((?:[^']|'')*)'::quad\.term/g,
    )) {
        const term = literal.replaceAll("''", "'");
        const iri = /^<([^>]*)>$/.exec(term)?.[1];
        const short =
            iri === undefined
                ? term.replace(/\^\^<[^>]*[#/]([^>]*)>$/, '^^$1')
                : (shorten(iri, prefixes) ?? `:${/[^/#]*$/.exec(iri)?.[0] || iri}`);
        cells.set(cell, short === 'rdf:type' ? 'a' : short);
    }
    // Cells that are equal have one variable.
    const roots = new Map<string, string>();
    const root = (cell: string): string => {
        const up = roots.get(cell);
        return up === undefined || up === cell ? cell : root(up);
    };
    for (const [, left = '', right = ''] of sql.matchAll(/\b(\w+\.[spog]) = (\w+\.[spog])\b/g))
        roots.set(root(right), root(left));
    const names = new Map<string, string>();
    for (const [, cell = '', name = ''] of sql.matchAll(/\b(\w+\.[spog])\)? AS "([^"#]+)"/g))
        names.set(root(cell), `?${name}`);
    const variable = (cell: string): string => {
        const key = root(cell);
        let name = names.get(key);
        if (name === undefined) {
            name = `?_${names.size + 1}`;
            names.set(key, name);
        }
        return name;
    };
    const aliases = new Set(Array.from(sql.matchAll(/\b(\w+)\.[spog]\b/g), ([, alias = '']) => alias));
    const tables = new Set(Array.from(sql.matchAll(/\bAS (\w+)\b/g), ([, alias = '']) => alias));
    return new Map(
        Array.from(aliases)
            .filter(alias => tables.has(alias))
            .map(alias => {
                const shown = ['s', 'p', 'o']
                    .map(column => cells.get(`${alias}.${column}`) ?? variable(`${alias}.${column}`))
                    .join(' ');
                const graph = cells.get(`${alias}.g`);
                return [alias, graph ? `GRAPH ${graph} { ${shown} }` : shown] as const;
            }),
    );
}
