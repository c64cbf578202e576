/** An error as the page shows it. */
import { Problem } from './api';
import { h } from './dom';

export function shown(error: unknown): HTMLElement {
    const text = error instanceof Error ? error.message : String(error);
    const more = error instanceof Problem ? error.more : [];
    return h(
        'div',
        { class: 'problem', role: 'alert' },
        h('strong', {}, text),
        ...more.map(line => h('div', {}, line)),
    );
}
