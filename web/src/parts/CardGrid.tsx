import { useViewportSize } from '@mantine/hooks'
import { type ReactNode } from 'react'
import { Stack } from './Stack'

/** The width of a card with the gap behind it, and that of the menu beside the page. */
const [card, menu] = [276, 192]

/** Cards in as many columns as fit. Of many, only those in view exist. */
export function CardGrid<T>({ list, id, item, most = Infinity }: { list: T[]; id: (x: T) => string; item: (x: T) => ReactNode; most?: number }) {
  const { width } = useViewportSize()
  const columns = Math.max(1, Math.floor((Math.min(most, width - (width > 700 ? menu : 0)) - 20) / card))
  const rows = Array.from({ length: Math.ceil(list.length / columns) }, (_, i) => list.slice(i * columns, (i + 1) * columns))
  return <Stack list={rows} id={(row) => id(row[0])} size={116} gap={12} item={(row) => <div className="cards" style={{ gridTemplateColumns: `repeat(${columns}, minmax(0, 1fr))`, height: '100%' }}>{row.map(item)}</div>} />
}
