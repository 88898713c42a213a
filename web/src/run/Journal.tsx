import { useVirtualizer } from '@tanstack/react-virtual'
import { useEffect, useRef, useState } from 'react'
import { api, take, WeirError } from '../api'
import { clock } from '../format'
import { Empty, Failure } from '../parts/common'
import { CopyMenu } from '../parts/CopyMenu'
import { JsonTree } from '../parts/JsonTree'
import { href, useQuery } from '../route'
import { t } from '../strings'

interface Event {
  number: number
  at: number
  type: string
  node?: string
  key?: string
  scope?: string
  [member: string]: unknown
}

const page = 200

/** The events of a run. Those in view are loaded, in pages. The address names the one that is open. */
export default function Journal({ run, events, at }: { run: string; events: number; at: number }) {
  const [query, set] = useQuery()
  const chosen = Number(query.get('event') ?? 0)
  const box = useRef<HTMLDivElement>(null)
  const list = useVirtualizer({ count: events, getScrollElement: () => box.current, estimateSize: () => 28, overscan: 12 })
  const items = list.getVirtualItems()
  const { get, error, reload } = usePagesOf(run, events, items.at(0)?.index ?? 0, items.at(-1)?.index ?? 0)
  const open = chosen ? get(chosen) : undefined
  useEffect(() => {
    if (chosen) list.scrollToIndex(chosen - 1, { align: 'auto' }) // again when the event is there, which takes a part of the height
  }, [chosen, !!open])
  if (error) return <Failure error={error} retry={reload} />
  if (events === 0) return <Empty title={t.run.noNodes} />
  return (
    <>
      <div className="body" ref={box} tabIndex={0} role="region" aria-label={t.run.journal}>
        <div role="table" aria-label={t.run.journal} aria-rowcount={events} className="journal">
          <div role="row" className="grid thead">{[t.run.event, t.run.time, t.run.kind, t.run.node].map((x) => <span role="columnheader" key={x}>{x}</span>)}</div>
          <div role="rowgroup" style={{ height: list.getTotalSize(), position: 'relative' }}>
            {items.map((v) => <Line key={v.index} e={get(v.index + 1)} number={v.index + 1} top={v.start} chosen={chosen === v.index + 1} past={at > 0 && v.index >= at} to={href(['runs', run], Object.fromEntries([...query, ['event', v.index + 1]]))} />)}
          </div>
        </div>
      </div>
      {open && (
        <section className="event" aria-label={`${t.run.event} ${chosen}`}>
          <div className="bar small">
            <b>{chosen}</b><span className="mono cut">{open.type}</span><span className="grow" />
            <button className="link" type="button" onClick={() => set({ at: chosen })}>{t.run.asOf}</button>
            <CopyMenu label={`${t.run.event} ${chosen}`} size={20} json={() => open} path={`v1/runs/${encodeURIComponent(run)}/events?after=${chosen - 1}&limit=1`} cli={`weir show ${run} --events`} />
          </div>
          <JsonTree value={open} />
        </section>
      )}
    </>
  )
}

function Line({ e, number, top, chosen, past, to }: { e?: Event; number: number; top: number; chosen: boolean; past: boolean; to: string }) {
  return (
    <a role="row" aria-selected={chosen} data-past={past} className="grid trow" href={to} style={{ position: 'absolute', top: 0, left: 0, right: 0, transform: `translateY(${top}px)` }}>
      <span role="cell" className="dim">{number}</span>
      <span role="cell" className="dim">{e ? clock(e.at).slice(11) : '…'}</span>
      <span role="cell" className="mono">{e?.type}</span>
      <span role="cell" className="cut">{e && (e.node ?? e.key ?? e.scope ?? '')}</span>
    </a>
  )
}

/** The events of the pages that are in view, and of those that were. */
function usePagesOf(run: string, events: number, first: number, last: number) {
  const [pages, setPages] = useState<ReadonlyMap<number, Event[]>>(new Map())
  const [error, setError] = useState<WeirError>()
  const [turn, setTurn] = useState(0)
  const [from, to] = [Math.floor(first / page), Math.floor(last / page)]
  useEffect(() => {
    const stop = new AbortController()
    const load = async (n: number) => {
      const known = pages.get(n)
      if (known && known.length >= Math.min(page, events - n * page)) return
      const r = await take(api.GET('/v1/runs/{run}/events', { params: { path: { run }, query: { after: n * page, limit: page } }, signal: stop.signal }))
      if (!stop.signal.aborted) setPages((p) => new Map(p).set(n, (r.events ?? []) as unknown as Event[]))
    }
    setError(undefined)
    for (const n of new Set([from, to])) load(n).catch((e: WeirError) => !stop.signal.aborted && setError(e))
    return () => stop.abort()
  }, [run, events, from, to, turn])
  const get = (number: number) => pages.get(Math.floor((number - 1) / page))?.find((e) => e.number === number)
  return { get, error, reload: () => setTurn((n) => n + 1) }
}
