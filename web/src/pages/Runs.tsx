import { Button, Checkbox } from '@mantine/core'
import { useVirtualizer } from '@tanstack/react-virtual'
import { useEffect, useRef, useState } from 'react'
import { api, take, type Schemas } from '../api/client'
import { useMay } from '../caller'
import { ago, cost, count, duration } from '../format'
import { Empty, Failure, Loading, Status } from '../parts/common'
import { href, useQuery } from '../route'
import { statusText, t } from '../strings'
import { useLoad, useNow } from '../use'
import { StartRun } from './StartRun'

type Row = Schemas['RunRow']
const statuses = ['running', 'paused', 'completed', 'failed', 'cancelled', 'pending']
const columns = 'minmax(200px, 2fr) minmax(96px, 1fr) minmax(150px, 1fr) minmax(80px, 1fr) 96px 80px 88px 80px'

/** The runs, the newest first, with filters that the address has. */
export function Runs() {
  const [query, set] = useQuery()
  const status = query.getAll('status')
  const flow = query.get('flow') ?? ''
  const user = query.get('user') ?? ''
  const session = query.get('session') ?? ''
  const all = query.get('all') === '1'
  const start = query.get('start')
  const filters = { status, flow, user, session, all }
  const may = useMay('start')
  const flows = useLoad((signal) => take(api.GET('/v1/flows', { signal })), [])
  const page = (cursor: string, signal?: AbortSignal) =>
    take(api.GET('/v1/runs', { params: { query: { status, flow: flow || undefined, user: user || undefined, session: session || undefined, all: all || undefined, cursor: cursor || undefined, limit: 100 } }, signal }))
  const first = useLoad((signal) => page('', signal), [JSON.stringify(filters)], 2000)
  const [rest, setRest] = useState<{ rows: Row[]; next: string }>()
  useEffect(() => setRest(undefined), [JSON.stringify(filters)])
  const head = first.data?.runs ?? []
  const known = new Set(head.map((r) => r.run))
  const rows = [...head, ...(rest?.rows ?? []).filter((r) => !known.has(r.run))]
  const next = rest ? rest.next : (first.data?.next ?? '')
  const more = async () => {
    const p = await page(next)
    setRest((r) => ({ rows: [...(r?.rows ?? []), ...(p.runs ?? [])], next: p.next }))
  }
  const filtered = status.length > 0 || flow || user || session || all
  return (
    <>
      <div className="head">
        <h1 className="grow">{t.runs.title}</h1>
        {may && <Button onClick={() => set({ start: '1' })}>{t.runs.start}</Button>}
      </div>
      <div className="bar" role="search" aria-label={t.runs.filters}>
        <select className="select auto" aria-label={t.runs.status} value={status[0] ?? ''} onChange={(e) => set({ status: e.currentTarget.value })}>
          <option value="">{t.runs.anyStatus}</option>
          {statuses.map((s) => <option key={s} value={s}>{statusText[s]}</option>)}
        </select>
        <select className="select auto" aria-label={t.runs.flow} value={flow} onChange={(e) => set({ flow: e.currentTarget.value })}>
          <option value="">{t.runs.anyFlow}</option>
          {(flows.data?.flows ?? []).map((f) => <option key={f.name}>{f.name}</option>)}
        </select>
        <input className="select auto" aria-label={t.runs.user} placeholder={t.runs.user} defaultValue={user} onBlur={(e) => set({ user: e.currentTarget.value })} onKeyDown={(e) => e.key === 'Enter' && set({ user: e.currentTarget.value })} />
        <Checkbox label={t.runs.failedOnly} checked={status[0] === 'failed'} onChange={(e) => set({ status: e.currentTarget.checked ? 'failed' : '' })} />
        <Checkbox label={t.runs.all} checked={all} onChange={(e) => set({ all: e.currentTarget.checked ? '1' : '' })} />
        {filtered && <Button variant="subtle" onClick={() => set({ status: '', flow: '', user: '', session: '', all: '' })}>{t.runs.clear}</Button>}
      </div>
      {first.error && <Failure error={first.error} retry={first.reload} />}
      {!first.data && first.loading && <Loading />}
      {first.data && rows.length === 0 && (filtered
        ? <Empty title={t.runs.empty} hint={t.runs.emptyHint} />
        : <Empty title={t.runs.none} hint={t.runs.noneHint}><div className="code">weir run FLOW.yaml</div></Empty>)}
      {rows.length > 0 && <Table rows={rows} more={next ? more : undefined} />}
      {start && <StartRun flow={start === '1' ? undefined : start} close={() => set({ start: '' })} />}
    </>
  )
}

function Table({ rows, more }: { rows: Row[]; more?: () => void }) {
  const box = useRef<HTMLDivElement>(null)
  const now = useNow(true)
  const list = useVirtualizer({ count: rows.length, getScrollElement: () => box.current, estimateSize: () => 36, overscan: 12 })
  return (
    <div className="body" ref={box}>
      <div role="table" aria-label={t.runs.title} aria-rowcount={rows.length} className="runs">
        <div role="row" className="grid thead" style={{ gridTemplateColumns: columns }}>
          {[t.runs.run, t.runs.flow, t.runs.status, t.runs.user].map((x) => <span role="columnheader" key={x}>{x}</span>)}
          {[t.runs.started, t.runs.duration, t.runs.tokens, t.runs.cost].map((x) => <span role="columnheader" className="right" key={x}>{x}</span>)}
        </div>
        <div role="rowgroup" style={{ height: list.getTotalSize(), position: 'relative' }}>
          {list.getVirtualItems().map((v) => <RunRow key={rows[v.index].run} row={rows[v.index]} top={v.start} now={now} />)}
        </div>
      </div>
      {more && <div className="pad" style={{ textAlign: 'center' }}><Button variant="default" onClick={more}>{t.state.more}</Button></div>}
    </div>
  )
}

function RunRow({ row, top, now }: { row: Row; top: number; now: number }) {
  const created = Date.parse(row.created)
  const ended = ['completed', 'failed', 'cancelled'].includes(row.status)
  const questions = (row.interrupts ?? []).length
  return (
    <a role="row" className="grid trow" href={href(['runs', row.run])} style={{ gridTemplateColumns: columns, position: 'absolute', top: 0, left: 0, right: 0, transform: `translateY(${top}px)` }}>
      <span role="cell" className="mono" title={row.run}>{row.run}</span>
      <span role="cell" title={row.flow}>{row.flow}</span>
      <span role="cell">
        <Status of={row.status} />
        {questions > 0 && <span className="badge" style={{ marginLeft: 8 }} title={t.runs.waits}>{questions}</span>}
        {row.error && <span className="small mono dim" style={{ marginLeft: 8 }}>{row.error.code}</span>}
      </span>
      <span role="cell" className="dim">{row.user}</span>
      <span role="cell" className="right dim" title={row.created}>{ago(created, now)}</span>
      <span role="cell" className="right">{duration((ended ? Date.parse(row.updated) : Math.max(now, created)) - created)}</span>
      <span role="cell" className="right">{row.usage.calls ? count(row.usage.input + row.usage.output) : '–'}</span>
      <span role="cell" className="right">{cost(row.usage.cost)}</span>
    </a>
  )
}
