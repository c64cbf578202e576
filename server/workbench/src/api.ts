/** Requests to the server, as the role that has signed in. */

/** What the server says when something is wrong. */
export class Problem extends Error {
    constructor(
        readonly status: number,
        message: string,
        readonly more: string[] = [],
        readonly line?: number,
        readonly column?: number,
    ) {
        super(message);
    }
}

/** The role that asks; kept in memory only, so that it is gone with the page. */
let authorization: string | null = null;
let askWho: (why: string) => Promise<boolean> = async () => false;

/** Takes name and password for all requests that follow; null: nobody. */
export function signIn(pair: { name: string; password: string } | null): void {
    if (!pair) {
        authorization = null;
        return;
    }
    const utf8 = new TextEncoder().encode(`${pair.name}:${pair.password}`);
    authorization = `Basic ${btoa(Array.from(utf8, byte => String.fromCharCode(byte)).join(''))}`;
}

/** Whether somebody has signed in. */
export function isSignedIn(): boolean {
    return authorization !== null;
}

/** Says how a name is asked for where the server wants one. */
export function whenUnauthorized(ask: (why: string) => Promise<boolean>): void {
    askWho = ask;
}

interface Options {
    method?: string;
    headers?: Record<string, string>;
    body?: BodyInit;
    signal?: AbortSignal | undefined;
}

/** Sends a request; the response is a good one. Its errors are `Problem`s. */
export async function send(path: string, options: Options = {}): Promise<Response> {
    for (;;) {
        const headers: Record<string, string> = { Accept: 'application/json', ...options.headers };
        if (authorization) headers['Authorization'] = authorization;
        const { signal, ...rest } = options;
        // The browser is not to add credentials of its own, nor to ask for any.
        const response = await fetch(path, { ...rest, headers, credentials: 'omit', ...(signal ? { signal } : {}) });
        if (response.ok) return response;
        const problem = await read(response);
        if (response.status === 401 && (await askWho(problem.message))) continue;
        throw problem;
    }
}

async function read(response: Response): Promise<Problem> {
    const text = await response.text();
    if ((response.headers.get('content-type') ?? '').includes('json')) {
        const { detail, explanation, hint, line, column } = JSON.parse(text) as {
            detail?: string;
            explanation?: string;
            hint?: string;
            line?: number;
            column?: number;
        };
        const more = [explanation, hint].filter((part): part is string => Boolean(part));
        return new Problem(response.status, detail ?? response.statusText, more, line, column);
    }
    const [message, ...more] = text.trim().split('\n');
    return new Problem(response.status, message || response.statusText, more);
}

/** The JSON at an address. */
export async function get<T>(path: string, signal?: AbortSignal): Promise<T> {
    return (await (await send(path, { signal })).json()) as T;
}

/** Sends JSON, gets JSON. */
export async function post<T>(path: string, body: unknown, signal?: AbortSignal): Promise<T> {
    const headers = { 'Content-Type': 'application/json' };
    return (await (await send(path, { method: 'POST', headers, body: JSON.stringify(body), signal })).json()) as T;
}

/** A name for a request that nobody guesses. */
export function requestName(): string {
    return Array.from(crypto.getRandomValues(new Uint8Array(16)), byte => byte.toString(16).padStart(2, '0')).join('');
}

/** Whether an error says that the user has cancelled. */
export function isAbort(error: unknown): boolean {
    return error instanceof DOMException && error.name === 'AbortError';
}
