import { useVirtualizer } from '@tanstack/react-virtual'
import { useRef, type ReactNode } from 'react'

/** A list of cards, of which only those in view exist. The end follows the last one. */
export function Cards<T>({ list, id, label, card, end }: { list: T[]; id: (x: T) => string; label: string; card: (x: T) => ReactNode; end?: ReactNode }) {
  const box = useRef<HTMLDivElement>(null)
  const rows = useVirtualizer({ count: list.length, getScrollElement: () => box.current, getItemKey: (i) => id(list[i]), estimateSize: () => 104, overscan: 8, gap: 8 })
  return (
    <div className="body" ref={box} tabIndex={0} role="region" aria-label={label}>
      <div className="pad narrow">
        <div style={{ height: rows.getTotalSize(), position: 'relative' }}>
          {rows.getVirtualItems().map((v) => (
            <div key={v.key} data-index={v.index} ref={rows.measureElement} style={{ position: 'absolute', top: 0, left: 0, right: 0, transform: `translateY(${v.start}px)` }}>{card(list[v.index])}</div>
          ))}
        </div>
        {end && <div className="center" style={{ paddingTop: 12 }}>{end}</div>}
      </div>
    </div>
  )
}
