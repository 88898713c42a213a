import { memo, type ReactNode } from 'react'

/** Longer texts are shown as they are. */
const most = 50_000

interface Block {
  kind: 'text' | 'heading' | 'item' | 'code' | 'quote'
  lines: string[]
  /** What stands before an item of a list, and how deep it is indented. */
  mark?: string
  depth?: number
}

/**
 * The text of a message with the emphasis, lists, headings and code that models write as Markdown. Everything is
 * made of elements of the page: HTML and addresses stay text.
 */
export const Formatted = memo(function Formatted({ text }: { text: string }) {
  if (text.length > most) return <div className="text">{text}</div>
  return <div className="formatted">{blocks(text).map((b, i) => <BlockView key={i} b={b} />)}</div>
})

function blocks(text: string): Block[] {
  const out: Block[] = []
  let code: Block | undefined
  let fresh = true
  for (const line of text.split('\n')) {
    if (/^\s*```/.test(line)) {
      code = code ? undefined : { kind: 'code', lines: [] }
      if (code) out.push(code)
      fresh = true
      continue
    }
    if (code) {
      code.lines.push(line)
      continue
    }
    if (!line.trim()) {
      fresh = true
      continue
    }
    const last = out.at(-1)
    const next = blockOf(line)
    if (!fresh && next.kind === 'text' && last && ['text', 'item', 'quote'].includes(last.kind)) last.lines.push(line.trim())
    else if (!fresh && next.kind === 'quote' && last?.kind === 'quote') last.lines.push(...next.lines)
    else out.push(next)
    fresh = next.kind === 'heading'
  }
  return out
}

function blockOf(line: string): Block {
  const heading = /^#{1,6}\s+(.*)$/.exec(line)
  if (heading) return { kind: 'heading', lines: [heading[1]] }
  const item = /^(\s*)([-*+•]|\d{1,4}[.)])\s+(.*)$/.exec(line)
  if (item) return { kind: 'item', lines: [item[3]], mark: /\d/.test(item[2]) ? item[2] : '•', depth: Math.min(4, Math.floor(item[1].length / 2)) }
  const quote = /^>\s?(.*)$/.exec(line)
  if (quote) return { kind: 'quote', lines: [quote[1]] }
  return { kind: 'text', lines: [line] }
}

function BlockView({ b }: { b: Block }) {
  if (b.kind === 'code') return <pre className="code" tabIndex={0}>{b.lines.join('\n')}</pre>
  const text = b.lines.flatMap((line, i) => [i > 0 && <br key={`b${i}`} />, <span key={i}>{inline(line)}</span>])
  if (b.kind === 'item') return <div className="row item" style={{ paddingLeft: (b.depth ?? 0) * 16 }}><span className="dim">{b.mark}</span><span className="grow">{text}</span></div>
  if (b.kind === 'heading') return <p><b>{text}</b></p>
  return <p className={b.kind === 'quote' ? 'quote' : undefined}>{text}</p>
}

/** Bold, italic and code within a line. What is not closed stays as it is. */
function inline(line: string): ReactNode[] {
  const out: ReactNode[] = []
  let at = 0
  for (const m of line.matchAll(/`([^`]+)`|\*\*([^*]+(?:\*[^*]+)*)\*\*|(?<![\w*])\*([^*\s][^*]*)\*(?![\w*])/g)) {
    out.push(line.slice(at, m.index))
    at = m.index + m[0].length
    if (m[1] !== undefined) out.push(<code key={at} className="mono">{m[1]}</code>)
    else if (m[2] !== undefined) out.push(<b key={at}>{m[2]}</b>)
    else out.push(<em key={at}>{m[3]}</em>)
  }
  out.push(line.slice(at))
  return out
}
