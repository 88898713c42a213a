import { lazy, Suspense, useEffect, useState } from 'react'
import { api, raw, take, type Schemas } from '../api'
import { ago, cost, count, duration } from '../format'
import { isEnded, useChanges, useRunList, type RunList } from '../list'
import { CopyMenu } from '../parts/CopyMenu'
import { Empty, Failure, Loading, LoadingRows, Status, Tabs } from '../parts/common'
import { JsonTree } from '../parts/JsonTree'
import { Rows } from '../parts/Rows'
import { Stack } from '../parts/Stack'
import { Title } from '../parts/Title'
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
  const now = useNow(true)
  return (
    <>
      <div className="head"><h1>{t.sessions.title}</h1></div>
      {list.error && !(list.error.offline && list.data) && <Failure error={list.error} retry={list.reload} />}
      {!list.data && !list.error && <LoadingRows />}
      {list.data && rows.length === 0 && <Empty art="sessions" title={t.sessions.empty} hint={t.sessions.emptyHint} />}
      {rows.length > 0 && (
        <Rows
          label={t.sessions.title} kind="runs sessions" columns={columns} list={rows} id={(s) => s.session} to={(s) => href(['sessions', s.session])} more={list.more}
          cells={(s) => [
            <><span className="name">{s.title || s.flow}</span>{s.title && <span className="dim"> · {s.flow}</span>}</>, <span className="mono dim">{s.session}</span>, <span className="dim">{s.user}</span>,
            s.rounds, s.messages, count(s.usage.input + s.usage.output), cost(s.usage.cost), <span className="dim">{ago(Date.parse(s.updated), now)}</span>,
          ]}
        />
      )}
    </>
  )
}

const columns = [...[t.sessions.conversation, t.sessions.session, t.runs.user].map((name) => ({ name })), ...[t.sessions.rounds, t.sessions.messages, t.runs.tokens, t.run.cost, t.sessions.updated].map((name) => ({ name, right: true }))]

function SessionPage({ id }: { id: string }) {
  const [query, set] = useQuery()
  const tab = query.get('tab') ?? 'rounds'
  const now = useNow(true)
  const session = useLoad((signal) => take(api.GET('/v1/sessions/{session}', { params: { path: { session: id } }, signal })), [id], slow)
  useAgain(useChanges(), session.reload)
  const rounds = useRunList({ session: id })
  if (session.error && !session.data) return <Failure error={session.error} retry={session.reload} />
  if (!session.data) return <Loading />
  const s = session.data
  return (
    <>
      <div className="head">
        <div className="column grow"><Title session={id} title={s.title} flow={s.flow} done={session.reload} /><span className="metas"><span className="mono">{id}</span><span>{s.messages} {t.messages.count}</span><span>{count(s.usage.input + s.usage.output)} {t.run.tokens}</span><span>{cost(s.usage.cost)}</span></span></div>
        <a href={href(['chat', id])}>{t.sessions.conversation}</a>
        <CopyMenu label={id} json={() => s} cli={`weir sessions show ${id}`} path={`v1/sessions/${encodeURIComponent(id)}`} />
      </div>
      <div className="bar"><Tabs label={t.sessions.title} tabs={[{ id: 'rounds', label: t.sessions.roundsTab }, { id: 'trajectory', label: t.sessions.trajectory }, { id: 'budget', label: t.budget.tab }]} chosen={tab} choose={(x) => set({ tab: x })} /></div>
      {tab === 'rounds' && <Rounds list={rounds} now={now} />}
      {tab !== 'rounds' && (
        <div className="body" tabIndex={0} role="region" aria-label={t.sessions.title}>
          {tab === 'budget' && <Suspense fallback={<Loading />}><SessionBudget session={id} changes={s.usage.calls} /></Suspense>}
          {tab === 'trajectory' && (rounds.rows[0] ? <div className="pad"><Trajectory run={rounds.rows[0].run} /></div> : rounds.loaded ? <Empty art="sessions" title={t.sessions.noTrajectory} /> : <Loading />)}
        </div>
      )}
    </>
  )
}

const roundColumns = [...['', t.runs.run, t.runs.detail].map((name) => ({ name })), ...[t.runs.tokens, t.run.cost, t.runs.duration, t.runs.started].map((name) => ({ name, right: true }))]

/** The rounds of a session, the newest first, as they change. */
function Rounds({ list, now }: { list: RunList; now: number }) {
  if (list.error && !(list.error.offline && list.loaded)) return <Failure error={list.error} retry={list.reload} />
  if (!list.loaded) return <LoadingRows />
  if (list.rows.length === 0) return <Empty art="sessions" title={t.sessions.noRounds} />
  return (
    <Rows
      label={t.sessions.roundsTab} kind="rounds" columns={roundColumns} list={list.rows} id={(r) => r.run} to={(r) => href(['runs', r.run])} more={list.more}
      cells={(r) => [
        <Status of={r.status} quiet />, <span className="mono">{r.run}</span>, <span className="dim">{r.error?.message ?? r.interrupts?.[0]?.prompt}</span>,
        count(r.usage.input + r.usage.output), cost(r.usage.cost), duration((isEnded(r) ? Date.parse(r.updated) : Math.max(now, Date.parse(r.created))) - Date.parse(r.created)), <span className="dim">{ago(Date.parse(r.created), now)}</span>,
      ]}
    />
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
      <Stack list={nodes} id={(n) => n.id} size={96} item={(n) => <TrajectoryNode n={n} />} />
    </div>
  )
}

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
    raw(api.GET('/v1/runs/{run}/trajectory.svg', { params: { path: { run } }, parseAs: 'stream' }))
      .then(async (r) => setUrl((made = URL.createObjectURL(await r.blob()))))
      .catch(() => undefined)
    return () => URL.revokeObjectURL(made)
  }, [run])
  return url
}
