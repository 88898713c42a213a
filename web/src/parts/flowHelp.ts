import { autocompletion, type Completion, type CompletionContext, type CompletionResult } from '@codemirror/autocomplete'
import type { Text } from '@codemirror/state'
import { hoverTooltip } from '@codemirror/view'

/** The JSON Schema of flow files, as far as it is read here. */
export interface FlowSchema {
  $ref?: string
  $defs?: Record<string, FlowSchema> & { settings?: Record<string, FlowSchema> }
  description?: string
  properties?: Record<string, FlowSchema>
  additionalProperties?: FlowSchema | boolean
  anyOf?: FlowSchema[]
  items?: FlowSchema
  enum?: unknown[]
}

interface Place {
  /** The keys above the place, from the outermost on. */
  path: string[]
  /** The node type that the closest node names. */
  type: string
}

const keyOf = (line: string) => /^\s*(?:- )?["']?([\w.-]+)["']?\s*:/.exec(line)?.[1]
const indentOf = (line: string) => /^\s*/.exec(line)![0].length

/** Where a line is in the file, by the indents of the lines above it: both forms of flow files are indented. */
function placeOf(doc: Text, number: number, indent: number): Place {
  const path: string[] = []
  let type = ''
  let below = indent
  for (let n = number - 1; n >= 1 && below > 0; n--) {
    const line = doc.line(n).text
    const key = keyOf(line)
    const at = indentOf(line)
    if (!line.trim() || at >= below) {
      if (!type && key === 'type' && at === below) type = typeIn(line)
      continue
    }
    below = at
    if (key) path.unshift(key)
    if (!type) type = typeIn(line)
  }
  if (!type) type = typeBelow(doc, number, path)
  return { path, type }
}

const typeIn = (line: string) => /["']?\btype["']?\s*:\s*["']?(\w+)/.exec(line)?.[1] ?? ''

/** The type of the node around a line, where it is written behind the line. */
function typeBelow(doc: Text, number: number, path: string[]): string {
  const name = path[path.lastIndexOf('nodes') + 1]
  if (!name) return ''
  for (let n = number; n >= 1; n--) {
    if (keyOf(doc.line(n).text) !== name) continue
    const indent = indentOf(doc.line(n).text)
    for (let m = n; m <= doc.lines && (m === n || indentOf(doc.line(m).text) > indent); m++) {
      const found = typeIn(doc.line(m).text)
      if (found) return found
    }
  }
  return ''
}

/** The part of the schema for a place. */
function at(root: FlowSchema, place: Place): FlowSchema | undefined {
  let s: FlowSchema | undefined = root
  for (const [i, key] of place.path.entries()) {
    s = deref(root, s)
    if (key === 'with' && place.path[i - 2] === 'nodes') s = root.$defs?.settings?.[place.type]
    else s = child(root, s, key)
  }
  return deref(root, s)
}

function child(root: FlowSchema, s: FlowSchema | undefined, key: string): FlowSchema | undefined {
  for (const x of [s, ...(s?.anyOf ?? [])].map((y) => deref(root, y))) {
    const found = x?.properties?.[key] ?? (typeof x?.additionalProperties === 'object' ? x.additionalProperties : undefined)
    if (found) return found
  }
  return undefined
}

function deref(root: FlowSchema, s: FlowSchema | undefined): FlowSchema | undefined {
  if (!s?.$ref) return s
  return s.$ref.replace('#/', '').split('/').reduce<unknown>((x, k) => (x as Record<string, unknown> | undefined)?.[k], root) as FlowSchema | undefined
}

function properties(root: FlowSchema, s: FlowSchema | undefined): Record<string, FlowSchema> {
  return Object.assign({}, ...[s, ...(s?.anyOf ?? [])].map((x) => deref(root, x)?.properties ?? {})) as Record<string, FlowSchema>
}

function values(root: FlowSchema, s: FlowSchema | undefined): string[] {
  return [s, ...(s?.anyOf ?? [])].flatMap((x) => deref(root, x)?.enum ?? []).map(String)
}

function complete(root: FlowSchema, c: CompletionContext): CompletionResult | null {
  const line = c.state.doc.lineAt(c.pos)
  const before = line.text.slice(0, c.pos - line.from)
  const word = c.matchBefore(/[\w.-]*/)!
  if (!c.explicit && word.from === word.to) return null
  const indent = indentOf(line.text)
  const place = placeOf(c.state.doc, line.number, indent)
  const value = /["']?([\w.-]+)["']?\s*:\s*["']?[\w.-]*$/.exec(before)
  if (value) {
    const options = value[1] === 'type' ? typesOf(root) : values(root, child(root, at(root, place), value[1])).map((label): Completion => ({ label, type: 'enum' }))
    return options.length ? { from: word.from, options, validFor: /^[\w.-]*$/ } : null
  }
  const known = properties(root, at(root, place))
  const options = Object.entries(known).map(([label, s]): Completion => ({ label, type: 'property', info: deref(root, s)?.description, apply: before.includes('"') ? label : label + ': ' }))
  return options.length ? { from: word.from, options, validFor: /^[\w.-]*$/ } : null
}

function typesOf(root: FlowSchema): Completion[] {
  return Object.entries(root.$defs?.settings ?? {}).map(([label, s]) => ({ label, type: 'class', info: s.description }))
}

/** What the schema says of the key or the node type under a position. */
function describe(root: FlowSchema, doc: Text, pos: number): { text: string; from: number; to: number } | undefined {
  const line = doc.lineAt(pos)
  for (const m of line.text.matchAll(/[\w.-]+/g)) {
    const [from, to] = [line.from + m.index, line.from + m.index + m[0].length]
    if (pos < from || pos > to) continue
    const rest = line.text.slice(m.index + m[0].length)
    const isKey = /^["']?\s*:/.test(rest)
    const place = placeOf(doc, line.number, indentOf(line.text))
    const text = isKey ? deref(root, child(root, at(root, place), m[0]))?.description : root.$defs?.settings?.[m[0]]?.description
    if (text) return { text, from, to }
  }
  return undefined
}

/** Completion and explanations of keys, values and node types, by the schema of flow files. */
export function flowHelp(schema: FlowSchema) {
  return [
    autocompletion({ override: [(c) => complete(schema, c)] }),
    hoverTooltip((view, pos) => {
      const found = describe(schema, view.state.doc, pos)
      if (!found) return null
      return {
        pos: found.from, end: found.to, above: true,
        create: () => {
          const dom = document.createElement('div')
          dom.className = 'cm-help'
          dom.textContent = found.text
          return { dom }
        },
      }
    }),
  ]
}
