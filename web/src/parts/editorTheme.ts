import { HighlightStyle, syntaxHighlighting } from '@codemirror/language'
import { EditorView } from '@codemirror/view'
import { tags } from '@lezer/highlight'

export const nonce = () => document.querySelector<HTMLMetaElement>('meta[name=nonce]')?.content ?? ''

const theme = EditorView.theme({
  '&': { fontSize: '12px', backgroundColor: 'var(--page)', color: 'var(--text)', height: '100%' },
  '.cm-content': { fontFamily: 'var(--mantine-font-family-monospace)', caretColor: 'var(--text)', lineHeight: '20px' },
  '.cm-gutters': { backgroundColor: 'var(--soft)', color: 'var(--dim)', border: 'none' },
  '.cm-activeLine, .cm-activeLineGutter': { backgroundColor: 'var(--hover)' },
  '.cm-cursor': { borderLeftColor: 'var(--text)' },
  '.cm-tooltip': { backgroundColor: 'var(--page)', color: 'var(--text)', border: '1px solid var(--line)' },
  '.cm-help': { padding: '4px 8px', maxWidth: '360px', fontFamily: 'var(--mantine-font-family)', whiteSpace: 'pre-wrap' },
  '.cm-tooltip-autocomplete > ul': { fontFamily: 'var(--mantine-font-family-monospace)' },
  '.cm-tooltip-autocomplete > ul > li[aria-selected]': { backgroundColor: 'var(--chosen)', color: 'var(--text)' },
  '.cm-completionIcon': { display: 'none' },
  '.cm-panels': { backgroundColor: 'var(--soft)', color: 'var(--text)' },
  '&.cm-focused .cm-selectionBackground, .cm-selectionBackground': { backgroundColor: 'var(--chosen)' },
  '.cm-changedLine': { backgroundColor: 'transparent' },
  '&.cm-merge-a .cm-changedText, .cm-deletedText': { background: 'var(--bad-bg)' },
  '&.cm-merge-b .cm-changedText': { background: 'var(--ok-bg)' },
})

const colours = HighlightStyle.define([
  { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: 'var(--run)' },
  { tag: [tags.string, tags.special(tags.string)], color: 'var(--ok)' },
  { tag: [tags.number, tags.bool, tags.null, tags.keyword], color: 'var(--wait)' },
  { tag: tags.comment, color: 'var(--dim)' },
])

export const editorTheme = [theme, syntaxHighlighting(colours)]
