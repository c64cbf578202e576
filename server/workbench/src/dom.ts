/** Building the page. Data only ever becomes text or the value of an attribute, never markup. */

type Child = Node | string | number | null | undefined | false;

/** Attributes of an element; functions are listeners (`onclick`), booleans are there or not. */
type Attributes = Record<string, string | number | boolean | null | undefined | ((event: never) => unknown)>;

/** An element with attributes and children. */
export function h<K extends keyof HTMLElementTagNameMap>(
    tag: K,
    attributes: Attributes = {},
    ...children: Child[]
): HTMLElementTagNameMap[K] {
    const element = document.createElement(tag);
    set(element, attributes);
    append(element, children);
    return element;
}

/** The same for SVG. */
export function svg<K extends keyof SVGElementTagNameMap>(
    tag: K,
    attributes: Attributes = {},
    ...children: Child[]
): SVGElementTagNameMap[K] {
    const element = document.createElementNS('http://www.w3.org/2000/svg', tag);
    set(element, attributes);
    append(element, children);
    return element;
}

function set(element: Element, attributes: Attributes): void {
    for (const [name, value] of Object.entries(attributes)) {
        if (typeof value === 'function') element.addEventListener(name.slice(2), value as EventListener);
        else if (value === true) element.setAttribute(name, '');
        else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, String(value));
    }
}

function append(element: Element, children: Child[]): void {
    for (const child of children) {
        if (child !== null && child !== undefined && child !== false)
            element.append(child instanceof Node ? child : String(child));
    }
}

/** An element of the page that is always there. */
export function byId<T extends HTMLElement = HTMLElement>(id: string): T {
    const element = document.getElementById(id);
    if (!element) throw new Error(`there is no #${id}`);
    return element as T;
}

const NUMBERS = new Intl.NumberFormat('en');

/** A number with separators. */
export function count(value: number): string {
    return NUMBERS.format(value);
}

/** Bytes in units. */
export function bytes(value: number): string {
    const units = ['B', 'kB', 'MB', 'GB', 'TB'];
    let unit = 0;
    while (value >= 1000 && unit < units.length - 1) {
        value /= 1000;
        unit += 1;
    }
    return `${value < 10 && unit > 0 ? value.toFixed(1) : Math.round(value)} ${units[unit] ?? ''}`;
}

/** Milliseconds in a unit that fits. */
export function time(ms: number): string {
    return ms < 10 ? `${ms.toFixed(2)} ms` : ms < 10000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`;
}
