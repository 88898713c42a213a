import { useVirtualizer } from '@tanstack/react-virtual'
import { useMemo, useRef, useState } from 'react'

interface Line {
  path: string
  depth: number
  name: string
  value: unknown
  opens: boolean
}

/** JSON as a tree of lines, of which only the visible ones exist. */
export function JsonTree({ value }: { value: object }) {
  const [open, setOpen] = useState<Record<string, boolean>>({})
  const lines = useMemo(() => flatten(value, open), [value, open])
  const box = useRef<HTMLDivElement>(null)
  const rows = useVirtualizer({ count: lines.length, getScrollElement: () => box.current, estimateSize: () => 20, overscan: 10 })
  const height = Math.min(320, lines.length * 20 + 8)
  return (
    <div ref={box} className="mono" style={{ height, overflow: 'auto', padding: '4px 0' }} tabIndex={0} role="group" aria-label="JSON">
      <div style={{ height: rows.getTotalSize(), position: 'relative' }}>
        {rows.getVirtualItems().map((r) => {
          const x = lines[r.index]
          return (
            <div key={x.path} className="row" style={{ position: 'absolute', top: 0, transform: `translateY(${r.start}px)`, height: 20, paddingLeft: 8 + x.depth * 16, gap: 4, width: '100%' }}>
              {x.opens ? (
                <button className="twist" style={{ width: 16, height: 16 }} type="button" aria-expanded={isOpen(open, x)} aria-label={x.name || 'value'} onClick={() => setOpen((o) => ({ ...o, [x.path]: !isOpen(o, x) }))}>
                  {isOpen(open, x) ? '▾' : '▸'}
                </button>
              ) : (
                <span style={{ width: 16, flex: 'none' }} />
              )}
              {x.name && <span style={{ color: 'var(--run)', flex: 'none' }}>{x.name}:</span>}
              <span className="cut" title={x.opens ? undefined : summary(x.value)}>
                {summary(x.value)}
              </span>
            </div>
          )
        })}
      </div>
    </div>
  )
}

function isOpen(open: Record<string, boolean>, x: Line): boolean {
  return open[x.path] ?? x.depth < 1
}

function flatten(value: unknown, open: Record<string, boolean>): Line[] {
  const out: Line[] = []
  const add = (name: string, v: unknown, path: string, depth: number) => {
    const opens = typeof v === 'object' && v !== null && Object.keys(v).length > 0
    const line = { path, depth, name, value: v, opens }
    out.push(line)
    if (opens && isOpen(open, line)) for (const [k, x] of Object.entries(v as object)) add(k, x, `${path}/${k}`, depth + 1)
  }
  if (typeof value === 'object' && value !== null) for (const [k, x] of Object.entries(value)) add(k, x, `/${k}`, 0)
  if (out.length === 0) add('', value, '', 0)
  return out
}

function summary(v: unknown): string {
  if (Array.isArray(v)) return v.length ? `[${v.length}]` : '[]'
  if (typeof v === 'object' && v !== null) return Object.keys(v).length ? `{${Object.keys(v).slice(0, 4).join(', ')}${Object.keys(v).length > 4 ? ', …' : ''}}` : '{}'
  const s = JSON.stringify(v)
  return s.length > 2000 ? s.slice(0, 2000) + '…' : s
}
