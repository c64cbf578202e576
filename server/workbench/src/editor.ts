/** The editor of queries: CodeMirror 6 with SPARQL's words, completion from the store and marks for errors. */
import { autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap } from '@codemirror/autocomplete';
import { defaultKeymap, history, historyKeymap } from '@codemirror/commands';
import { bracketMatching, HighlightStyle, indentUnit, StreamLanguage, syntaxHighlighting } from '@codemirror/language';
import { sparql } from '@codemirror/legacy-modes/mode/sparql';
import { lintGutter, setDiagnostics } from '@codemirror/lint';
import { EditorState, Prec } from '@codemirror/state';
import { drawSelection, EditorView, highlightActiveLine, keymap, lineNumbers } from '@codemirror/view';
import { tags } from '@lezer/highlight';
import { complete } from './complete';

const COLOURS = HighlightStyle.define([
    { tag: tags.keyword, color: 'light-dark(#7a1fa2, #d6a6ff)' },
    { tag: [tags.variableName, tags.special(tags.variableName)], color: 'light-dark(#0b57b0, #8fc1ff)' },
    { tag: tags.string, color: 'light-dark(#8a3800, #ffb780)' },
    { tag: [tags.atom, tags.labelName, tags.typeName], color: 'light-dark(#0b6050, #74d6bd)' },
    { tag: tags.comment, color: 'light-dark(#59616e, #9aa4b2)' },
    { tag: tags.number, color: 'light-dark(#8a3800, #ffb780)' },
]);

const LOOK = EditorView.theme({
    '&': { fontSize: '14px', backgroundColor: 'var(--page)', color: 'var(--text)' },
    '.cm-content': { fontFamily: 'ui-monospace, monospace', minHeight: '9rem', caretColor: 'var(--text)' },
    '.cm-scroller': { maxHeight: '45vh', overflow: 'auto' },
    '.cm-gutters': { backgroundColor: 'var(--panel)', color: 'var(--soft)', borderRight: '1px solid var(--line)' },
    '.cm-activeLine, .cm-activeLineGutter': { backgroundColor: 'color-mix(in srgb, var(--line) 25%, transparent)' },
    '.cm-cursor': { borderLeftColor: 'var(--text)' },
    '&.cm-focused .cm-selectionBackground, .cm-selectionBackground': {
        backgroundColor: 'color-mix(in srgb, var(--accent) 30%, transparent) !important',
    },
    '&.cm-focused': { outline: '2px solid var(--accent)' },
    '.cm-tooltip': {
        backgroundColor: 'var(--panel)',
        color: 'var(--text)',
        border: '1px solid var(--line)',
        maxWidth: '92vw',
    },
    '.cm-tooltip-autocomplete > ul > li[aria-selected]': {
        backgroundColor: 'var(--accent)',
        color: 'var(--on-accent)',
    },
    '.cm-completionDetail': { fontStyle: 'normal', float: 'right', paddingLeft: '1em' },
});

export interface Editor {
    text(): string;
    set(text: string): void;
    focus(): void;
    /** Marks a place, line and column from 1; undefined: none. */
    mark(message?: string, line?: number, column?: number): void;
}

/**
 * An editor within `host`. It is in a shadow tree, whose styles are objects, so that the page's policy needs no
 * exception for styles in the markup.
 */
export function editor(host: HTMLElement, text: string, run: () => void): Editor {
    const root = host.attachShadow({ mode: 'open' });
    const view: EditorView = new EditorView({
        root,
        parent: root,
        state: EditorState.create({
            doc: text,
            extensions: [
                Prec.highest(
                    keymap.of([
                        {
                            key: 'Mod-Enter',
                            run: () => {
                                run();
                                return true;
                            },
                        },
                    ]),
                ),
                lineNumbers(),
                history(),
                drawSelection(),
                highlightActiveLine(),
                bracketMatching(),
                closeBrackets(),
                indentUnit.of('  '),
                StreamLanguage.define(sparql),
                syntaxHighlighting(COLOURS),
                lintGutter(),
                autocompletion({ override: [complete], activateOnTyping: true, icons: false }),
                keymap.of([...closeBracketsKeymap, ...completionKeymap, ...defaultKeymap, ...historyKeymap]),
                EditorView.lineWrapping,
                LOOK,
                EditorView.contentAttributes.of({ 'aria-label': 'Query', spellcheck: 'false', autocapitalize: 'off' }),
                EditorView.updateListener.of(update => {
                    if (update.docChanged)
                        queueMicrotask(() => {
                            view.dispatch(setDiagnostics(view.state, []));
                        });
                }),
            ],
        }),
    });
    return {
        text: () => view.state.doc.toString(),
        set(text) {
            view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: text } });
        },
        focus: () => {
            view.focus();
        },
        mark(message, line, column) {
            const { doc } = view.state;
            if (message === undefined || line === undefined) {
                view.dispatch(setDiagnostics(view.state, []));
                return;
            }
            const place = doc.line(Math.max(1, Math.min(line, doc.lines)));
            const from = Math.min(place.from + Math.max(0, (column ?? 1) - 1), place.to);
            const word = /^[^\s{}()<>.;,]+/.exec(doc.sliceString(from, place.to))?.[0].length ?? 1;
            const to = Math.min(from + word, doc.length);
            view.dispatch(
                setDiagnostics(view.state, [
                    { from: from === to ? Math.max(0, from - 1) : from, to, severity: 'error', message },
                ]),
            );
            view.dispatch({ selection: { anchor: from }, scrollIntoView: true });
        },
    };
}
