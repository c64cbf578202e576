/** Loading files: how far it is says the server, which says what PostgreSQL has taken. */
import { get, isAbort, requestName, send } from './api';
import { bytes, count, h, time } from './dom';
import { shown } from './problem';
import type { Activity } from './running';
import { endpoint, state } from './state';
import type { View } from './view';

const MEDIA: Record<string, string> = {
    ttl: 'text/turtle',
    nt: 'application/n-triples',
    nq: 'application/n-quads',
    trig: 'application/trig',
    rdf: 'application/rdf+xml',
    xml: 'application/rdf+xml',
    owl: 'application/rdf+xml',
    jsonld: 'application/ld+json',
};
const ENCODINGS: Record<string, string> = { gz: 'gzip', zst: 'zstd' };
/** Time between two looks at the progress, in milliseconds. */
const PERIOD = 300;

/** What a file is, by its name. */
export function kindOf(name: string): { media: string; encoding: string | null } | null {
    const parts = name.toLowerCase().split('.');
    const encoding = ENCODINGS[parts[parts.length - 1] ?? ''] ?? null;
    const media = MEDIA[parts[parts.length - (encoding ? 2 : 1)] ?? ''];
    return media ? { media, encoding } : null;
}

export const view: View = place => {
    const graph = h('input', {
        name: 'graph',
        placeholder: 'the default graph',
        size: 36,
        'aria-describedby': 'graph-hint',
    });
    const input = h('input', {
        type: 'file',
        multiple: true,
        'aria-label': 'Files',
        onchange: () => {
            take(input.files);
            input.value = '';
        },
    });
    const drop = h(
        'div',
        { class: 'drop' },
        h('p', {}, 'Drop files here, or choose them:'),
        input,
        h(
            'p',
            { class: 'state' },
            `${Object.keys(MEDIA)
                .map(end => `.${end}`)
                .join(' ')}, each also .gz or .zst`,
        ),
    );
    const loads = h('div', { 'aria-label': 'Loads', role: 'group' });
    place.append(
        h('h2', {}, `Load into store ${state.store}`),
        h(
            'div',
            { class: 'row' },
            h('label', {}, 'Graph ', graph),
            h('span', { class: 'state', id: 'graph-hint' }, 'N-Quads and TriG name graphs themselves'),
        ),
        drop,
        loads,
    );
    const take = (files: FileList | null | undefined): void => {
        for (const file of files ?? []) void load(file, graph.value.trim(), loads);
    };
    const over = (event: DragEvent): void => {
        event.preventDefault();
        drop.classList.toggle('over', event.type === 'dragover');
    };
    place.addEventListener('dragover', over);
    place.addEventListener('dragleave', over);
    place.addEventListener('drop', event => {
        over(event);
        take(event.dataTransfer?.files);
    });
};

async function load(file: File, graph: string, loads: HTMLElement): Promise<void> {
    const status = h('p', { class: 'state', role: 'status' }, 'starting');
    const bar = h('progress', { max: 1, 'aria-label': `Progress of ${file.name}` });
    const stop = new AbortController();
    const cancel = h(
        'button',
        {
            type: 'button',
            onclick: () => {
                stop.abort();
            },
        },
        'Cancel',
    );
    const box = h(
        'div',
        { class: 'load', role: 'group', 'aria-label': `Load of ${file.name}` },
        h('div', { class: 'row' }, h('strong', {}, file.name), h('span', { class: 'state' }, bytes(file.size)), cancel),
        bar,
        status,
    );
    loads.prepend(box);
    const kind = kindOf(file.name);
    const end = (): void => {
        cancel.remove();
        bar.remove();
    };
    if (!kind) {
        end();
        status.replaceWith(shown(new Error(`${file.name}: the ending of the name tells no format`)));
        return;
    }
    const isQuads = kind.media === 'application/n-quads' || kind.media === 'application/trig';
    const where = isQuads ? '' : graph ? `?graph=${encodeURIComponent(graph)}` : '?default';
    const name = requestName(),
        total = file.size,
        started = performance.now();
    const headers: Record<string, string> = { 'Content-Type': kind.media, 'X-Request-Id': name };
    if (kind.encoding) headers['Content-Encoding'] = kind.encoding;
    let last = { bytes: 0, quads: 0 },
        isOver = false;
    const watch = async (): Promise<void> => {
        while (!isOver) {
            await new Promise(done => setTimeout(done, PERIOD));
            const activity = await get<Activity>('-/running').catch(() => null);
            const mine = activity?.requests.find(request => request.name === name);
            if (isOver || !mine) continue;
            last = { bytes: mine.bytes ?? 0, quads: mine.quads ?? last.quads };
            const isReading = !mine.phase || mine.phase === 'reading';
            if (last.bytes <= total && isReading) bar.value = total === 0 ? 1 : last.bytes / total;
            else bar.removeAttribute('value');
            status.textContent = `${mine.phase ?? 'reading'}: ${bytes(last.bytes)} of ${bytes(total)}, ${count(last.quads)} quads, ${time(performance.now() - started)}`;
        }
    };
    void watch();
    try {
        await send(`${endpoint('data')}${where}`, { method: 'POST', headers, body: file, signal: stop.signal });
        status.textContent = `loaded in ${time(performance.now() - started)}`;
        dispatchEvent(new Event('pgquad-changed'));
    } catch (error) {
        if (isAbort(error)) status.textContent = 'cancelled: nothing of it is in the store';
        else {
            status.textContent = 'failed: nothing of it is in the store';
            box.append(shown(error));
        }
    } finally {
        isOver = true;
        end();
    }
}
