import { defaultKeymap, history, historyKeymap } from '@codemirror/commands'
import { yaml } from '@codemirror/lang-yaml'
import { linter, lintGutter, type Diagnostic, forceLinting } from '@codemirror/lint'
import { Compartment, EditorState } from '@codemirror/state'
import { EditorView, keymap, lineNumbers, highlightActiveLine } from '@codemirror/view'
import { useEffect, useRef } from 'react'
import { api, take, type Schemas } from '../api'
import { editorTheme, nonce } from './editorTheme'
import { flowHelp, type FlowSchema } from './flowHelp'

/** An editor of flow files that marks the problems the server found. */
export default function Editor({ text, change, problems, label }: { text: string; change: (text: string) => void; problems: Schemas['Mistake'][]; label: string }) {
  const box = useRef<HTMLDivElement>(null)
  const view = useRef<EditorView>(undefined)
  const found = useRef(problems)
  const changed = useRef(change)
  changed.current = change
  useEffect(() => {
    const help = new Compartment()
    view.current = new EditorView({
      parent: box.current!,
      state: EditorState.create({
        doc: text,
        extensions: [
          lineNumbers(), highlightActiveLine(), history(), keymap.of([...defaultKeymap, ...historyKeymap]), yaml(), editorTheme, EditorView.cspNonce.of(nonce()), lintGutter(), help.of([]),
          linter((v) => marks(v, found.current), { delay: 0, needsRefresh: () => true }), EditorView.contentAttributes.of({ 'aria-label': label, tabindex: '0' }),
          EditorView.updateListener.of((u) => u.docChanged && u.transactions.some((x) => x.isUserEvent('input') || x.isUserEvent('delete') || x.isUserEvent('undo') || x.isUserEvent('redo') || x.isUserEvent('move')) && changed.current(u.state.doc.toString())),
        ],
      }),
    })
    const made = view.current
    take(api.GET('/v1/schema')).then((s) => made.dispatch({ effects: help.reconfigure(flowHelp(s as FlowSchema)) }), () => undefined)
    return () => made.destroy()
  }, [])
  useEffect(() => {
    const v = view.current!
    if (v.state.doc.toString() !== text) v.dispatch({ changes: { from: 0, to: v.state.doc.length, insert: text } })
  }, [text])
  useEffect(() => {
    found.current = problems
    forceLinting(view.current!)
  }, [problems])
  return <div ref={box} className="editor" />
}

/** A place is NAME:LINE:COLUMN. */
function marks(v: EditorView, problems: Schemas['Mistake'][]): Diagnostic[] {
  return problems.map((p) => {
    const [, l, c] = /:(\d+):(\d+)$/.exec(p.place ?? '') ?? ['', '1', '1']
    const line = v.state.doc.line(Math.min(Number(l), v.state.doc.lines))
    const from = Math.min(line.from + Number(c) - 1, line.to)
    return { from, to: Math.max(from, line.to), severity: 'error', message: p.message + (p.hint ? `\n${p.hint}` : '') }
  })
}
