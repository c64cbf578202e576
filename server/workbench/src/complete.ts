/** Completion: prefixes, classes and predicates by what is in the store, variables, SPARQL's words. */
import {
    insertCompletionText,
    pickedCompletion,
    type Completion,
    type CompletionContext,
    type CompletionResult,
} from '@codemirror/autocomplete';
import type { EditorView } from '@codemirror/view';
import { count } from './dom';
import { contentsOf, prefixesOf, type Contents, type Counted } from './state';
import { shorten } from './terms';

const WORDS = `
  SELECT WHERE PREFIX BASE ASK CONSTRUCT DESCRIBE DISTINCT REDUCED FROM NAMED GRAPH OPTIONAL UNION MINUS FILTER
  BIND VALUES SERVICE EXISTS ORDER GROUP HAVING LIMIT OFFSET ASC DESC COUNT SUM AVG MIN MAX SAMPLE GROUP_CONCAT
  SEPARATOR AS IN NOT STR LANG DATATYPE BOUND IRI BNODE RAND ABS CEIL FLOOR ROUND CONCAT STRLEN UCASE LCASE
  ENCODE_FOR_URI CONTAINS STRSTARTS STRENDS STRBEFORE STRAFTER YEAR MONTH DAY HOURS MINUTES SECONDS TZ NOW UUID
  STRUUID MD5 SHA1 SHA256 COALESCE IF STRLANG STRDT sameTerm isIRI isBLANK isLITERAL isNUMERIC REGEX SUBSTR
  REPLACE langMatches
`
  .trim()
  .split(/\s+/);

/** Where the cursor is in a triple pattern. */
type Slot = 'subject' | 'predicate' | 'object' | 'class' | 'none';

const TOKEN =
    /#[^\n]*|<[^<>"{}|^`\\\s]*>|"""[^]*?"""|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|[?$]\w+|@[A-Za-z-]+|\^\^|[{}()[\].;,]|[^\s{}()[\];,<>"']+/g;

/** Reads the text before the cursor, without the word that is being written. */
export function slotOf(text: string): Slot {
    let slot: Slot = 'none',
        depth = 0,
        round = 0;
    for (const [token] of text.matchAll(TOKEN)) {
        if (token.startsWith('#')) continue;
        if (token === '(') {
            round += 1;
            continue;
        }
        if (token === ')') {
            round = Math.max(0, round - 1);
            continue;
        }
        if (round > 0) continue;
        if (token === '{') {
            depth += 1;
            slot = 'subject';
            continue;
        }
        if (token === '}') {
            depth = Math.max(0, depth - 1);
            slot = depth > 0 ? 'subject' : 'none';
            continue;
        }
        if (depth === 0) continue;
        if (token === '.') slot = 'subject';
        else if (token === ';' || token === '[') slot = 'predicate';
        else if (token === ',') slot = slot === 'none' ? 'object' : slot;
        else if (token === ']') slot = 'predicate';
        else if (/^(?:optional|union|minus|filter|bind|values|service|silent|exists|not|distinct|graph)$/i.test(token))
            slot = 'subject';
        else if (token === '^^' || token.startsWith('@')) continue;
        else if (slot === 'subject') slot = 'predicate';
        else if (slot === 'predicate') slot = token === 'a' || /(?:#type>|rdf:type)$/.test(token) ? 'class' : 'object';
        else if (slot === 'object' || slot === 'class') slot = 'none';
    }
    return slot;
}

/** The prefixes that the query declares, by namespace. */
export function declared(text: string): Map<string, string> {
    return new Map(
        Array.from(text.matchAll(/\bPREFIX\s+([\w.-]*):\s*<([^>]*)>/gi), ([, prefix = '', space = '']) => [
            space,
            prefix,
        ]),
    );
}

/** What CodeMirror asks. */
export async function complete(context: CompletionContext): Promise<CompletionResult | null> {
    const line = context.state.doc.lineAt(context.pos);
    const before = line.text.slice(0, context.pos - line.from);
    const word = /[?$]?[\w:.-]*$/.exec(before)?.[0] ?? '';
    if (!word && !context.explicit) return null;
    const from = context.pos - word.length,
        text = context.state.doc.toString();
    if (/^[?$]/.test(word)) return { from, options: variables(text, word), validFor: /^[?$]\w*$/ };
    // A store that cannot be counted is no reason not to complete words.
    const found = await contentsOf().catch(() => null);
    const prefixes = prefixesOf(found);
    if (/\bPREFIX\s+[\w.-]*$/i.test(before)) return { from, options: namespaces(prefixes), validFor: /^[\w.-]*$/ };
    const own = declared(text);
    for (const [space, prefix] of own) prefixes.set(space, prefix);
    const slot = slotOf(context.state.sliceDoc(0, from));
    return { from, options: options(slot, found, prefixes, own, text), validFor: /^[\w:.-]*$/ };
}

function options(
    slot: Slot,
    found: Contents | null,
    prefixes: Map<string, string>,
    own: Map<string, string>,
    text: string,
): Completion[] {
    const words = WORDS.map((label): Completion => ({ label, type: 'keyword', boost: -50 }));
    if (slot === 'predicate')
        return [{ label: 'a', detail: 'rdf:type', boost: 99 }, ...names(found?.predicates, prefixes, own)];
    if (slot === 'class') return names(found?.classes, prefixes, own);
    return [...words, ...variables(text, ''), ...(slot === 'object' ? names(found?.classes, prefixes, own) : [])];
}

/** Names by how often they are there. */
function names(counted: Counted[] | undefined, prefixes: Map<string, string>, own: Map<string, string>): Completion[] {
    return (counted ?? []).map(({ iri, count: number }, place, all) => {
        const label = shorten(iri, prefixes) ?? `<${iri}>`;
        return {
            label,
            detail: count(number),
            boost: Math.round(40 - (40 * place) / all.length),
            apply: inserting(label, iri, own),
        };
    });
}

/** Puts the name in and, where its prefix is not declared yet, the prefix on top. */
function inserting(label: string, iri: string, own: Map<string, string>): NonNullable<Completion['apply']> {
    const colon = label.startsWith('<') ? -1 : label.indexOf(':');
    const space = colon < 0 ? '' : iri.slice(0, iri.length - (label.length - colon - 1));
    if (!space || own.has(space)) return label;
    return (view: EditorView, completion: Completion, from: number, to: number) => {
        const head = `PREFIX ${label.slice(0, colon)}: <${space}>\n`;
        view.dispatch({
            ...insertCompletionText(view.state, label, from, to),
            changes: [
                { from: 0, insert: head },
                { from, to, insert: label },
            ],
            selection: { anchor: head.length + from + label.length },
            annotations: pickedCompletion.of(completion),
        });
    };
}

function namespaces(prefixes: Map<string, string>): Completion[] {
    return Array.from(prefixes, ([space, prefix]) => ({
        label: prefix,
        detail: space,
        apply: `${prefix}: <${space}>\n`,
    }));
}

function variables(text: string, current: string): Completion[] {
    const all = new Set(Array.from(text.matchAll(/[?$]\w+/g), ([name]) => name));
    all.delete(current);
    return Array.from(all, label => ({ label, type: 'variable', boost: 10 }));
}
