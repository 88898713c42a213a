import { Button } from '@mantine/core'
import { useVirtualizer } from '@tanstack/react-virtual'
import { useRef, type ReactNode } from 'react'
import { t } from '../strings'

interface Column {
  name: string
  right?: boolean
}

/** A table of which only the rows in view exist. Each row is a link; its cells come from `cells`. */
export function Rows<T>({ label, kind, columns, list, id, to, cells, chosen, more }: {
  label: string
  /** The class that has the widths of the columns. */
  kind: string
  columns: Column[]
  list: T[]
  id: (x: T) => string
  to: (x: T) => string
  cells: (x: T) => ReactNode[]
  /** The id of the row whose details are shown. */
  chosen?: string
  more?: () => Promise<void>
}) {
  const box = useRef<HTMLDivElement>(null)
  const rows = useVirtualizer({ count: list.length, getScrollElement: () => box.current, getItemKey: (i) => id(list[i]), estimateSize: () => 36, overscan: 12 })
  return (
    <div className="body" ref={box}>
      <div role="table" aria-label={label} aria-rowcount={list.length} className={kind}>
        <div role="row" className="grid thead">{columns.map((c) => <span role="columnheader" className={c.right ? 'right' : undefined} key={c.name}>{c.name}</span>)}</div>
        <div role="rowgroup" style={{ height: rows.getTotalSize(), position: 'relative' }}>
          {rows.getVirtualItems().map((v) => (
            <a role="row" key={v.key} className="grid trow" href={to(list[v.index])} aria-current={chosen === v.key || undefined} style={{ position: 'absolute', top: 0, left: 0, right: 0, transform: `translateY(${v.start}px)` }}>
              {cells(list[v.index]).map((x, i) => <span role="cell" className={columns[i].right ? 'right' : undefined} key={i}>{x}</span>)}
            </a>
          ))}
        </div>
      </div>
      {more && <div className="pad center"><Button variant="default" onClick={more}>{t.state.more}</Button></div>}
    </div>
  )
}
