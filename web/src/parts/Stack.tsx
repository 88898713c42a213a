import { useVirtualizer } from '@tanstack/react-virtual'
import { useLayoutEffect, useRef, useState, type ReactNode } from 'react'

/** How many items are drawn without measuring what is in view. */
const few = 40

/** Items below each other in a part of a page that scrolls as a whole. Of a long list only those in view exist. */
export function Stack<T>({ list, id, item, size, gap = 8 }: { list: T[]; id: (x: T) => string; item: (x: T) => ReactNode; size: number; gap?: number }) {
  if (list.length <= few) return <div className="column" style={{ gap }}>{list.map((x) => <div key={id(x)}>{item(x)}</div>)}</div>
  return <Long list={list} id={id} item={item} size={size} gap={gap} />
}

function Long<T>({ list, id, item, size, gap }: { list: T[]; id: (x: T) => string; item: (x: T) => ReactNode; size: number; gap: number }) {
  const top = useRef<HTMLDivElement>(null)
  const [from, setFrom] = useState(0)
  const box = () => top.current?.closest<HTMLElement>('.body, .panel-body, nav') ?? null
  useLayoutEffect(() => {
    const b = box()
    if (b && top.current) setFrom(top.current.getBoundingClientRect().top - b.getBoundingClientRect().top + b.scrollTop)
  }, [list.length])
  const rows = useVirtualizer({ count: list.length, getScrollElement: box, getItemKey: (i) => id(list[i]), estimateSize: () => size, overscan: 8, gap, scrollMargin: from })
  return (
    <div ref={top} style={{ height: rows.getTotalSize(), position: 'relative', flex: 'none' }}>
      {rows.getVirtualItems().map((v) => (
        <div key={v.key} data-index={v.index} ref={rows.measureElement} style={{ position: 'absolute', top: 0, left: 0, right: 0, transform: `translateY(${v.start - from}px)` }}>{item(list[v.index])}</div>
      ))}
    </div>
  )
}
