import { MergeView } from '@codemirror/merge'
import { EditorState } from '@codemirror/state'
import { EditorView } from '@codemirror/view'
import { useEffect, useRef } from 'react'
import { editorTheme, nonce } from './editorTheme'

/** Two texts side by side, with what differs marked. */
export default function TextDiff({ a, b, label }: { a: string; b: string; label: string }) {
  const box = useRef<HTMLDivElement>(null)
  useEffect(() => {
    const extensions = [EditorView.editable.of(false), EditorState.readOnly.of(true), EditorView.lineWrapping, editorTheme, EditorView.cspNonce.of(nonce()), EditorView.contentAttributes.of({ 'aria-label': label, tabindex: '0' })]
    const view = new MergeView({ a: { doc: a, extensions }, b: { doc: b, extensions }, parent: box.current!, gutter: false, collapseUnchanged: { margin: 3, minSize: 6 } })
    return () => view.destroy()
  }, [a, b, label])
  return <div ref={box} className="diff" />
}
