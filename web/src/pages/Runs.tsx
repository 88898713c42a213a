import { ActionIcon, Button, Checkbox, Menu } from '@mantine/core'
import { useVirtualizer } from '@tanstack/react-virtual'
import { lazy, memo, Suspense, useMemo, useRef, useState } from 'react'
import { api, take, WeirError, type Schemas } from '../api'
import { useMay } from '../caller'
import { ago, cost, count, duration } from '../format'
import { Empty, Failure, LoadingRows, Status, Tabs } from '../parts/common'
import { Icon } from '../parts/icons'
import { href, useQuery } from '../route'
import { statusText, t } from '../strings'
import { useLoad, useNow, useSettled } from '../use'
import { isEnded, useRunList, type Filters } from '../list'
import { StartRun } from './StartRun'

const Search = lazy(() => import('./Search'))

type Row = Schemas['RunRow']
const statuses = ['', 'running', 'paused', 'failed', 'completed', 'cancelled']
const hour = 3600_000
const ranges: [string, string, number][] = [['', t.runs.anyTime, 0], ['1h', t.runs.hour, hour], ['24h', t.runs.dayRange, 24 * hour], ['7d', t.runs.week, 168 * hour], ['30d', t.runs.month, 720 * hour]]
const costs: [string, string][] = [['', t.runs.anyCost], ['0.01', `${t.runs.over} $0.01`], ['0.1', `${t.runs.over} $0.10`], ['1', `${t.runs.over} $1`], ['10', `${t.runs.over} $10`]]
const filterNames = ['status', 'flow', 'user', 'session', 'label', 'all', 'since', 'cost', 'find', 'inside']

/** The runs, the newest first, with filters that the address has. */
export function Runs() {
  const [query, set] = useQuery()
  const get = (name: string) => query.get(name) ?? ''
  const all = get('all') === '1'
  const start = get('start')
  const inside = get('inside') === '1'
  const may = useMay('start')
  const flows = useLoad((signal) => take(api.GET('/v1/flows', { signal })), [])
  const labels = useLoad((signal) => take(api.GET('/v1/labels', { signal })), [])
  const list = useRunList(useFilters(query))
  const rows = list.rows
  const filtered = filterNames.some((x) => query.get(x))
  const clear = () => set(Object.fromEntries(filterNames.map((x) => [x, ''])))
  return (
    <>
      <div className="head">
        <h1>{t.runs.title}</h1>
        <Tabs label={t.runs.status} chosen={get('status')} choose={(status) => set({ status })} tabs={statuses.map((id) => ({ id, label: id ? statusText[id] : t.runs.all_ }))} />
        <span className="grow" />
        <span className="small dim wide">{list.loaded && !inside && `${rows.length}${list.more ? '+' : ''} ${t.runs.shown}`}</span>
        <SavedViews filtered={filtered} />
        {may && <Button onClick={() => set({ start: '1' })}>{t.runs.start}</Button>}
      </div>
      <div className="bar filters" role="search" aria-label={t.runs.filters}>
        <input className="select search" type="search" aria-label={t.runs.find} placeholder={t.runs.find} value={get('find')} onChange={(e) => set({ find: e.currentTarget.value })} />
        <Choice name={t.runs.flow} value={get('flow')} choose={(flow) => set({ flow })} options={[['', t.runs.anyFlow], ...(flows.data?.flows ?? []).map((f): [string, string] => [f.name, f.name])]} />
        <Choice name={t.runs.range} value={get('since')} choose={(since) => set({ since })} options={ranges.map(([v, label]) => [v, label])} />
        <Choice name={t.runs.minCost} value={get('cost')} choose={(c) => set({ cost: c })} options={costs} />
        {(get('label') || (labels.data?.labels ?? []).length > 0) && <Choice name={t.rate.label} value={get('label')} choose={(label) => set({ label })} options={[['', t.rate.anyLabel], ...labelNames(labels.data?.labels ?? [], get('label'))]} />}
        <input key={get('user')} className="select auto" size={10} aria-label={t.runs.user} placeholder={t.runs.user} defaultValue={get('user')} onBlur={(e) => e.currentTarget.value !== get('user') && set({ user: e.currentTarget.value })} onKeyDown={(e) => e.key === 'Enter' && set({ user: e.currentTarget.value })} />
        {(get('find').length > 1 || inside) && <Checkbox label={t.runs.inside} checked={inside} onChange={(e) => set({ inside: e.currentTarget.checked ? '1' : '' })} />}
        <Checkbox label={t.runs.all} checked={all} onChange={(e) => set({ all: e.currentTarget.checked ? '1' : '' })} />
        {filtered && <Button variant="subtle" onClick={clear}>{t.runs.clear}</Button>}
      </div>
      {list.error && !(list.error.offline && list.loaded) && <Failure error={list.error} retry={list.reload} />}
      {inside && get('find').length > 1 && <Suspense fallback={<LoadingRows />}><Search text={get('find')} flow={get('flow')} status={query.getAll('status')} /></Suspense>}
      {!list.loaded && !list.error && <LoadingRows />}
      {!inside && list.loaded && rows.length === 0 && (filtered ? <Empty art="runs" title={t.runs.empty} hint={list.more ? t.runs.moreThere : t.runs.emptyHint}>{list.more && <Button variant="default" onClick={list.more}>{t.state.more}</Button>}</Empty> : <FirstRun flows={flows.data?.flows ?? []} may={may} start={(flow) => set({ start: flow })} />)}
      {!inside && rows.length > 0 && <Table rows={rows} more={list.more} />}
      {start && <StartRun flow={start === '1' ? undefined : start} close={() => set({ start: '' })} />}
    </>
  )
}

/** The labels to choose from, among them the one of the address, which no run may have. */
function labelNames(list: Schemas['LabelCount'][], chosen: string): [string, string][] {
  const names = list.map((x) => x.label)
  return (chosen && !names.includes(chosen) ? [chosen, ...names] : names).map((x) => [x, x])
}

function Choice({ name, value, options, choose }: { name: string; value: string; options: [string, string][]; choose: (v: string) => void }) {
  return (
    <select className="select auto" aria-label={name} value={value} onChange={(e) => choose(e.currentTarget.value)}>
      {options.map(([v, label]) => <option key={v} value={v}>{label}</option>)}
    </select>
  )
}

/** The filters of the address in the form of the API. */
function useFilters(query: URLSearchParams): Filters {
  const find = query.get('find') ?? ''
  const settled = useSettled(find)
  const text = find && settled // a filter that was removed is not waited for: the list would be that of another address
  const range = query.get('since')
  const since = useMemo(() => {
    const length = ranges.find(([v]) => v === range)?.[2]
    return length ? new Date(Date.now() - length).toISOString() : undefined
  }, [range])
  const get = (name: string) => query.get(name) || undefined
  return {
    status: query.getAll('status').filter(Boolean), flow: get('flow'), user: get('user'), session: get('session'), label: get('label'), all: query.get('all') === '1' || undefined,
    since, minCost: Number(query.get('cost')) || undefined, text: text || undefined,
  }
}

/** Views are filters with a name, which the server keeps for the user. */
function SavedViews({ filtered }: { filtered: boolean }) {
  const [query] = useQuery()
  const list = useLoad((signal) => take(api.GET('/v1/filters', { signal })), [])
  const [error, setError] = useState<WeirError>()
  const views = (list.data?.filters ?? []).filter((f) => f.of === 'runs')
  const change = async (f: () => Promise<unknown>) => {
    try {
      await f()
      setError(undefined)
    } catch (e) {
      setError(e as WeirError)
    }
    list.reload()
  }
  const save = () => {
    const name = window.prompt(t.runs.viewName)?.trim()
    const kept = new URLSearchParams([...query].filter(([k, v]) => v && filterNames.includes(k))).toString()
    if (name) void change(() => api.PUT('/v1/filters/{filter}', { params: { path: { filter: name } }, body: { of: 'runs', query: { address: kept } } }))
  }
  if (views.length === 0 && !filtered) return null
  return (
    <Menu position="bottom-end">
      <Menu.Target><Button variant="default">{t.runs.saved}</Button></Menu.Target>
      <Menu.Dropdown>
        {error && <div className="error-box">{error.message}</div>}
        {views.map((v) => (
          <div className="row" key={v.name}>
            <Menu.Item component="a" href={`#/runs?${(v.query as { address?: string }).address ?? ''}`}>{v.name}</Menu.Item>
            <span className="grow" />
            <ActionIcon size={20} aria-label={`${t.runs.forget} ${v.name}`} onClick={() => change(() => api.DELETE('/v1/filters/{filter}', { params: { path: { filter: v.name } } }))}><Icon name="close" size={12} /></ActionIcon>
          </div>
        ))}
        {filtered && <Menu.Item onClick={save}>{t.runs.save}</Menu.Item>}
      </Menu.Dropdown>
    </Menu>
  )
}

/** What a server without runs shows: its flows, each to be started. */
function FirstRun({ flows, may, start }: { flows: Schemas['FlowRow'][]; may: boolean; start: (flow: string) => void }) {
  return (
    <div className="body">
      <div style={{ minHeight: 200, display: 'flex' }}><Empty art="flows" title={t.runs.none} hint={t.runs.noneHint}><div className="code">weir run FLOW.yaml</div></Empty></div>
      {may && flows.length > 0 && (
        <div className="pad cards narrow" style={{ maxWidth: 960 }}>
          {flows.map((f) => (
            <article className="card column gap8" key={f.name}>
              <b>{f.name}</b><div className="dim grow">{f.description}</div>
              <div><Button variant="default" onClick={() => start(f.name)}>{t.flows.start}</Button></div>
            </article>
          ))}
        </div>
      )}
    </div>
  )
}

function Table({ rows, more }: { rows: Row[]; more?: () => void }) {
  const box = useRef<HTMLDivElement>(null)
  const now = useNow(true)
  const list = useVirtualizer({ count: rows.length, getScrollElement: () => box.current, estimateSize: () => 36, overscan: 12 })
  return (
    <div className="body" ref={box}>
      <div role="table" aria-label={t.runs.title} aria-rowcount={rows.length} className="runs">
        <div role="row" className="grid thead">
          <span role="columnheader"><span className="unseen">{t.runs.status}</span></span>
          {[t.runs.flow, t.runs.run, t.runs.detail, t.runs.user].map((x) => <span role="columnheader" key={x}>{x}</span>)}
          {[t.runs.tokens, t.runs.cost, t.runs.duration, t.runs.started].map((x) => <span role="columnheader" className="right" key={x}>{x}</span>)}
        </div>
        <div role="rowgroup" style={{ height: list.getTotalSize(), position: 'relative' }}>
          {list.getVirtualItems().map((v) => <RunRow key={rows[v.index].run} row={rows[v.index]} top={v.start} now={timeOf(rows[v.index], now)} />)}
        </div>
      </div>
      {more && <div className="pad" style={{ textAlign: 'center' }}><Button variant="default" onClick={more}>{t.state.more}</Button></div>}
    </div>
  )
}

/** The time by which a row is drawn: rows that are older and have ended are drawn once a minute. */
function timeOf(r: Row, now: number): number {
  return isEnded(r) && now - Date.parse(r.created) > 60_000 ? Math.floor(now / 60_000) * 60_000 + 59_999 : now
}

const RunRow = memo(function RunRow({ row, top, now }: { row: Row; top: number; now: number }) {
  const created = Date.parse(row.created)
  const questions = row.interrupts ?? []
  return (
    <a role="row" className="grid trow" href={href(['runs', row.run])} style={{ position: 'absolute', top: 0, left: 0, right: 0, transform: `translateY(${top}px)` }}>
      <span role="cell"><Status of={row.status} quiet /></span>
      <span role="cell" className="name" title={row.flow}>{row.flow}</span>
      <span role="cell" className="mono dim" title={row.run}>{row.run}</span>
      <span role="cell" className="dim">
        {row.error ? <><span className="mono" style={{ color: 'var(--bad)' }}>{row.error.code}</span> {row.error.message}</> : questions.length > 0 ? <>{questions.length > 1 && <span className="badge" style={{ marginRight: 8 }}>{questions.length}</span>}<span style={{ color: 'var(--wait)' }}>{questions[0].prompt || t.runs.waits}</span></> : row.origin}
      </span>
      <span role="cell" className="dim">{row.user}</span>
      <span role="cell" className="right">{row.usage.calls ? count(row.usage.input + row.usage.output) : <span className="dim">–</span>}</span>
      <span role="cell" className="right">{cost(row.usage.cost)}</span>
      <span role="cell" className="right">{duration((isEnded(row) ? Date.parse(row.updated) : Math.max(now, created)) - created)}</span>
      <span role="cell" className="right dim" title={row.created}>{ago(created, now)}</span>
    </a>
  )
})
