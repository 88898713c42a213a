import { Button } from '@mantine/core'
import { useVirtualizer } from '@tanstack/react-virtual'
import { lazy, Suspense, useEffect, useRef, useState } from 'react'
import { api, base, take, token, type Schemas } from '../api/client'
import { ago, cost, count } from '../format'
import { useChanges } from '../list'
import { CopyMenu } from '../parts/CopyMenu'
import { Empty, Failure, Loading, Status, Tabs } from '../parts/common'
import { JsonTree } from '../parts/JsonTree'
import { href, useQuery, useRoute } from '../route'
import { t } from '../strings'
import { slow, useAgain, useLoad, useNow, usePages } from '../use'

const SessionBudget = lazy(() => import('./SessionBudget'))

/** The conversations with flows. */
export default function Sessions() {
  const { path } = useRoute()
  return path[1] ? <SessionPage key={path[1]} id={path[1]} /> : <List />
}

function List() {
  const list = usePages<Schemas['SessionRow']>(
    async (cursor, signal) => {
      const p = await take(api.GET('/v1/sessions', { params: { query: { limit: 100, cursor: cursor || undefined } }, signal }))
      return { list: p.sessions ?? [], next: p.next }
    },
    (s) => s.session, [], useChanges(),
  )
  const rows = list.data ?? []
  const box = useRef<HTMLDivElement>(null)
  const now = useNow(true)
  const v = useVirtualizer({ count: rows.length, getScrollElement: () => box.current, estimateSize: () => 36, overscan: 12 })
  return (
    <>
      <div className="head"><h1>{t.sessions.title}</h1></div>
      {list.error && !(list.error.offline && list.data) && <Failure error={list.error} retry={list.reload} />}
      {!list.data && !list.error && <Loading />}
      {list.data && rows.length === 0 && <Empty art="sessions" title={t.sessions.empty} hint={t.sessions.emptyHint} />}
      <div className="body" ref={box} hidden={rows.length === 0}>
        <div role="table" aria-label={t.sessions.title} className="runs sessions">
          <div role="row" className="grid thead">
            {[t.runs.flow, t.nav.sessions, t.runs.user].map((x) => <span role="columnheader" key={x}>{x}</span>)}
            {[t.sessions.rounds, t.sessions.messages, t.runs.tokens, t.run.cost, t.sessions.updated].map((x) => <span role="columnheader" className="right" key={x}>{x}</span>)}
          </div>
          <div role="rowgroup" style={{ height: v.getTotalSize(), position: 'relative' }}>
            {v.getVirtualItems().map((x) => {
              const s = rows[x.index]
              return (
                <a role="row" key={s.session} className="grid trow" href={href(['sessions', s.session])} style={{ position: 'absolute', top: 0, left: 0, right: 0, transform: `translateY(${x.start}px)` }}>
                  <span role="cell" className="name">{s.flow}</span><span role="cell" className="mono dim">{s.session}</span><span role="cell" className="dim">{s.user}</span>
                  <span role="cell" className="right">{s.rounds}</span><span role="cell" className="right">{s.messages}</span><span role="cell" className="right">{count(s.usage.input + s.usage.output)}</span><span role="cell" className="right">{cost(s.usage.cost)}</span><span role="cell" className="right dim">{ago(Date.parse(s.updated), now)}</span>
                </a>
              )
            })}
          </div>
        </div>
        {list.more && <div className="pad center"><Button variant="default" onClick={list.more}>{t.state.more}</Button></div>}
      </div>
    </>
  )
}

function SessionPage({ id }: { id: string }) {
  const [query, set] = useQuery()
  const tab = query.get('tab') ?? 'rounds'
  const now = useNow(true)
  const session = useLoad((signal) => take(api.GET('/v1/sessions/{session}', { params: { path: { session: id } }, signal })), [id], slow)
  useAgain(useChanges(), session.reload)
  const rounds = useLoad((signal) => take(api.GET('/v1/runs', { params: { query: { session: id, limit: 200 } }, signal })), [id, session.data?.rounds, session.data?.run])
  if (session.error && !session.data) return <Failure error={session.error} retry={session.reload} />
  if (!session.data) return <Loading />
  const s = session.data
  return (
    <>
      <div className="head">
        <div className="column grow"><h1>{s.flow}</h1><span className="metas"><span className="mono">{id}</span><span>{s.messages} {t.messages.count}</span><span>{count(s.usage.input + s.usage.output)} {t.run.tokens}</span><span>{cost(s.usage.cost)}</span></span></div>
        <a href={href(['chat', id])}>{t.sessions.conversation}</a>
        <CopyMenu label={id} json={() => s} cli={`weir sessions show ${id}`} path={`v1/sessions/${encodeURIComponent(id)}`} />
      </div>
      <div className="bar"><Tabs label={t.sessions.title} tabs={[{ id: 'rounds', label: t.sessions.roundsTab }, { id: 'trajectory', label: t.sessions.trajectory }, { id: 'budget', label: t.budget.tab }]} chosen={tab} choose={(x) => set({ tab: x })} /></div>
      <div className="body" tabIndex={0} role="region" aria-label={t.sessions.title}>
        {tab === 'rounds' && (rounds.data?.runs ?? []).map((r) => (
          <a key={r.run} className="row trow" style={{ padding: '0 16px' }} href={href(['runs', r.run])}><Status of={r.status} quiet /><span className="mono">{r.run}</span><span className="small dim cut grow">{r.error?.message ?? r.interrupts?.[0]?.prompt}</span><span className="small wide">{count(r.usage.input + r.usage.output)} {t.run.tokens}</span><span className="small">{cost(r.usage.cost)}</span><span className="small dim">{ago(Date.parse(r.created), now)}</span></a>
        ))}
        {tab === 'budget' && <Suspense fallback={<Loading />}><SessionBudget session={id} changes={s.usage.calls} /></Suspense>}
        {tab === 'trajectory' && (rounds.data?.runs?.[0] ? <div className="pad"><Trajectory run={rounds.data.runs[0].run} /></div> : <Empty art="sessions" title={t.sessions.noTrajectory} />)}
      </div>
    </>
  )
}

interface Link { source: string; target: string; type?: string; [k: string]: unknown }
interface Graph { nodes?: { id: string; type: string; name: string; description: string; round: number; attributes?: object; attribution?: { run?: string; path?: string } }[]; links?: Link[] }

/** What an agent did and why: the drawing, and the same as a list that leads to the journal. */
function Trajectory({ run }: { run: string }) {
  const graph = useLoad(async (signal) => (await take(api.GET('/v1/runs/{run}/trajectory', { params: { path: { run } }, signal }))) as unknown as Graph, [run])
  const [query, set] = useQuery()
  const image = useImage(run)
  if (graph.error) return <Empty title={t.sessions.noTrajectory} hint={graph.error.message} />
  if (!graph.data) return <Loading />
  const text = (query.get('find') ?? '').toLowerCase()
  const type = query.get('type') ?? ''
  const all = graph.data.nodes ?? []
  const types = [...new Set(all.map((n) => n.type))].sort()
  const nodes = all.filter((n) => (!type || n.type === type) && (!text || `${n.name} ${n.description} ${n.type} ${JSON.stringify(n.attributes ?? '')}`.toLowerCase().includes(text)))
  return (
    <div className="column gap">
      {image && <div className="picture" tabIndex={0} role="region" aria-label={t.sessions.trajectory}><img src={image} alt={t.sessions.trajectory} /></div>}
      <div className="row">
        <input className="select search" type="search" aria-label={t.sessions.find} placeholder={t.sessions.find} value={query.get('find') ?? ''} onChange={(e) => set({ find: e.currentTarget.value })} />
        <select className="select auto" aria-label={t.memory.kind} value={type} onChange={(e) => set({ type: e.currentTarget.value })}><option value="">{t.sessions.anyType}</option>{types.map((x) => <option key={x}>{x}</option>)}</select>
        <span className="small dim">{nodes.length} {t.run.of} {all.length}</span>
      </div>
      {nodes.length === 0 && <Empty title={t.sessions.noTrajectory} />}
      <div className="column">{nodes.slice(0, mostShown).map((n) => <TrajectoryNode key={n.id} n={n} />)}</div>
      {nodes.length > mostShown && <div className="dim">{nodes.length - mostShown} {t.sessions.hidden}</div>}
    </div>
  )
}

const mostShown = 300

function TrajectoryNode({ n }: { n: NonNullable<Graph['nodes']>[number] }) {
  return (
    <div className="value">
      <header><span className="chip">{n.type}</span><b className="cut">{n.name}</b><span className="grow" /><span className="dim">{t.sessions.round} {n.round}</span>{n.attribution?.run && n.attribution.path && <a href={href(['runs', n.attribution.run], { node: n.attribution.path })}>{n.attribution.path}</a>}</header>
      {n.description && <pre>{n.description}</pre>}
      {n.attributes && <JsonTree value={n.attributes} />}
    </div>
  )
}

function useImage(run: string): string {
  const [url, setUrl] = useState('')
  useEffect(() => {
    let made = ''
    fetch(`${base}/v1/runs/${encodeURIComponent(run)}/trajectory.svg`, { headers: token() ? { Authorization: `Bearer ${token()}` } : {} })
      .then(async (r) => {
        if (r.ok) setUrl((made = URL.createObjectURL(await r.blob())))
      })
      .catch(() => undefined)
    return () => URL.revokeObjectURL(made)
  }, [run])
  return url
}
