import { ActionIcon, Button, Menu } from '@mantine/core'
import { useMediaQuery } from '@mantine/hooks'
import { lazy, Suspense, useEffect, useMemo, useState } from 'react'
import { api, ApiError, base, requestKey, take, token } from '../api/client'
import { useMay } from '../caller'
import { cost, count, duration } from '../format'
import { copyText, Failure, Loading, Status, Tabs } from '../parts/common'
import { Icon } from '../parts/icons'
import { save, Values } from '../parts/Value'
import { ForkForm } from '../run/ForkForm'
import { Messages } from '../run/Messages'
import { NodePanel } from '../run/NodePanel'
import { RunPanel } from '../run/RunPanel'
import { TimelineView } from '../run/TimelineView'
import { ended, useRun, type RunNode, type Timeline } from '../run/useRun'
import { go, href, useQuery } from '../route'
import { t } from '../strings'
import { useLoad, useNow } from '../use'

const Compare = lazy(() => import('../run/Compare'))
const Graph = lazy(() => import('../run/Graph'))

/** A run: its nodes as tree with times and as graph, all showing the same moment. */
export default function RunPage({ id }: { id: string }) {
  const [query, set] = useQuery()
  const at = Number(query.get('at') ?? 0)
  const run = useRun(id, at)
  const data = run.data
  const now = useNow(!!data && !ended(data.status) && !at)
  const narrow = useMediaQuery('(max-width: 900px)', window.innerWidth <= 900, { getInitialValueInEffect: false })
  if (!data && run.error) return <Failure error={run.error} retry={run.reload} />
  if (!data) return <Loading />
  const view = query.get('view') ?? (narrow ? 'overview' : 'timeline')
  const chosen = { run: query.get('in') ?? data.run, path: query.get('node') ?? '' }
  const choose = (inRun: string, path: string) => set({ node: path, in: inRun === data.run ? '' : inRun, tab: query.get('tab') })
  return (
    <>
      <Head data={data} now={now} at={at} connection={run.connection} />
      <Scrubber data={data} at={at} />
      {run.connection === 'lost' && <div className="notice" role="status">{t.state.lost}</div>}
      {at > 0 && <div className="notice"><span>{t.run.past}</span><button className="link" type="button" onClick={() => set({ at: '' })}>{t.run.toLatest}</button></div>}
      <div className="bar">
        <Tabs label={t.run.overview} chosen={view} choose={(v) => set({ view: v, node: narrow ? '' : chosen.path })} tabs={narrow ? [{ id: 'overview', label: t.run.overview }, ...views] : views} />
        <span className="grow" />
        <Jumps nodes={data.nodes ?? []} choose={(p) => choose(data.run, p)} />
        <input className="select auto" type="search" placeholder={t.run.find} aria-label={t.run.find} value={query.get('find') ?? ''} onChange={(e) => set({ find: e.currentTarget.value })} />
      </div>
      <div className="split" data-panel={chosen.path ? 'node' : 'rest'}>
        <div className="column">
          <Suspense fallback={<Loading />}>
            {view === 'graph' && <Graph run={data.run} nodes={data.nodes ?? []} chosen={chosen.run === data.run ? chosen.path : ''} choose={(p) => choose(data.run, p)} />}
            {view === 'overview' && <RunPanel data={data} now={now} at={at} />}
            {view === 'messages' && <Messages run={data.run} at={at} event={data.event} contexts={data.contexts ?? []} />}
            {view === 'compare' && <Compare run={data.run} suggestion={data.fork?.from ?? ''} />}
            {view === 'state' && <div className="body pad"><Values list={data.state ?? []} none={t.state.none} /></div>}
            {view === 'timeline' && <TimelineView data={data} now={now} find={query.get('find') ?? ''} chosen={chosen} choose={choose} />}
          </Suspense>
        </div>
        {query.get('fork') && <ForkForm data={data} node={query.get('fork')!} close={() => set({ fork: '' })} />}
        <SidePanel data={data} now={now} at={at} chosen={chosen} live={run.live} />
      </div>
    </>
  )
}

const views = [{ id: 'timeline', label: t.run.timeline }, { id: 'graph', label: t.run.graph }, { id: 'messages', label: t.run.messages }, { id: 'state', label: t.run.state }, { id: 'compare', label: t.run.compare }]

function SidePanel({ data, now, at, chosen, live }: { data: Timeline; now: number; at: number; chosen: { run: string; path: string }; live: ReturnType<typeof useRun>['live'] }) {
  const [query, set] = useQuery()
  const child = useLoad(async (signal) => (chosen.run === data.run || !chosen.path ? undefined : take(api.GET('/v1/runs/{run}/timeline', { params: { path: { run: chosen.run } }, signal }))), [chosen.run, data.event])
  const source = chosen.run === data.run ? data : child.data
  const node = source?.nodes?.find((n) => n.node === chosen.path)
  useEffect(() => {
    const close = (e: KeyboardEvent) => e.key === 'Escape' && chosen.path && !document.querySelector('[role=dialog],[role=menu]') && set({ node: '', in: '' })
    window.addEventListener('keydown', close)
    return () => window.removeEventListener('keydown', close)
  })
  if (!chosen.path) return <RunPanel data={data} now={now} at={at} />
  if (!node) return <RunPanel data={source ?? data} now={now} at={at} />
  return (
    <NodePanel
      key={chosen.run + node.node} run={chosen.run} node={node} at={chosen.run === data.run ? at : 0} event={source!.event} live={live} tab={query.get('tab') ?? ''} setTab={(tab) => set({ tab })}
      interrupts={at ? [] : (source!.interrupts ?? []).filter((i) => i.node === node.node && !['timer', 'child'].includes(i.kind))} close={() => set({ node: '', in: '' })} fork={() => set({ fork: node.node }, false)}
    />
  )
}

function Head({ data, now, at, connection }: { data: Timeline; now: number; at: number; connection: string }) {
  const may = useMay('start')
  const [error, setError] = useState<ApiError>()
  const active = !ended(data.status)
  const command = async (f: () => Promise<unknown>) => {
    setError(undefined)
    try {
      await f()
    } catch (e) {
      setError(e as ApiError)
    }
  }
  const params = () => ({ path: { run: data.run }, header: { 'Idempotency-Key': requestKey() } })
  const rerun = () => command(async () => go(href(['runs', (await take(api.POST('/v1/runs/{run}/rerun', { params: params(), body: {} }))).run])))
  return (
    <div className="head">
      <a href={href(['runs'])} aria-label={t.runs.title}><Icon name="back" /></a>
      <div className="column grow">
        <div className="row"><h1 className="cut">{data.flow}</h1><Status of={data.stopped && active ? 'stopped' : data.status} />{active && !at && <span className="small dim">{connection === 'live' ? t.state.live : ''}</span>}</div>
        <div className="row small dim wrap">
          <span className="mono cut">{data.run}</span>
          <span>{duration((active && !at ? now : data.at) - data.started)}</span>
          <span>{count(data.usage.input + data.usage.output)} {t.run.tokens}</span>
          <span>{cost(data.usage.cost)}</span>
        </div>
      </div>
      {error && <div className="error-box" role="alert">{error.message} {error.hint}</div>}
      {may && data.stopped && active && <Button onClick={() => command(() => api.POST('/v1/runs/{run}/resume', { params: params() }))}>{t.run.resume}</Button>}
      {may && active && <Button variant="default" onClick={() => window.confirm(t.run.cancelConfirm) && command(() => api.POST('/v1/runs/{run}/cancel', { params: params(), body: {} }))}>{t.run.cancel}</Button>}
      {may && !active && !data.parent && <Button variant="default" onClick={rerun}>{t.run.rerun}</Button>}
      <RunMenu run={data.run} />
    </div>
  )
}

function RunMenu({ run }: { run: string }) {
  const download = async () => {
    const r = await fetch(`${base}/v1/runs/${encodeURIComponent(run)}/export`, { headers: token() ? { Authorization: `Bearer ${token()}` } : {} })
    if (r.ok) save(`${run}.weir`, await r.text(), 'application/x-ndjson')
  }
  const verify = async () => {
    const r = await take(api.GET('/v1/runs/{run}/verify', { params: { path: { run } } }))
    window.alert((r!.findings ?? []).length === 0 ? t.run.verified : t.run.notVerified)
  }
  return (
    <Menu>
      <Menu.Target><ActionIcon aria-label={t.run.more}><Icon name="more" /></ActionIcon></Menu.Target>
      <Menu.Dropdown>
        <Menu.Item onClick={() => copyText(location.href)}>{t.run.copyLink}</Menu.Item>
        <Menu.Item onClick={() => copyText(`weir show ${run}`)}>{t.run.copyCli}</Menu.Item>
        <Menu.Item onClick={() => copyText(`curl -H "Authorization: Bearer $WEIR_TOKEN" '${base}/v1/runs/${run}'`)}>{t.run.copyCurl}</Menu.Item>
        <Menu.Item onClick={download}>{t.run.export}</Menu.Item>
        <Menu.Item onClick={verify}>{t.run.verify}</Menu.Item>
      </Menu.Dropdown>
    </Menu>
  )
}

/** Moves the whole page through the journal. */
function Scrubber({ data, at }: { data: Timeline; at: number }) {
  const [, set] = useQuery()
  const [value, setValue] = useState(at || data.events)
  useEffect(() => setValue(at || data.events), [at, data.events])
  useEffect(() => {
    const wanted = value >= data.events ? 0 : value
    if (wanted === at) return
    const timer = setTimeout(() => set({ at: wanted || '' }), 120)
    return () => clearTimeout(timer)
  }, [value])
  return (
    <div className="bar">
      <span className="small dim">{t.run.event} {value} {t.run.of} {data.events}</span>
      <input className="scrub" type="range" min={1} max={Math.max(data.events, 1)} value={value} aria-label={t.run.scrub} onChange={(e) => setValue(Number(e.currentTarget.value))} />
    </div>
  )
}

/** Jumps to what people look for first. */
function Jumps({ nodes, choose }: { nodes: RunNode[]; choose: (path: string) => void }) {
  const [failed, dear, slow] = useMemo(() => {
    const failures = nodes.filter((n) => n.status === 'failed').sort((a, b) => (a.ended || Infinity) - (b.ended || Infinity))
    const by = (f: (n: RunNode) => number) => nodes.reduce<RunNode | undefined>((m, n) => (f(n) > (m ? f(m) : 0) ? n : m), undefined)
    return [failures[0], by((n) => n.usage.cost), by((n) => (n.phases?.some((p) => p.kind === 'body' || p.kind === 'child') ? 0 : n.us))]
  }, [nodes])
  return (
    <div className="row wide">
      {failed && <button className="link" type="button" onClick={() => choose(failed.node)}>{t.run.firstFailure}</button>}
      {dear && <button className="link" type="button" onClick={() => choose(dear.node)}>{t.run.mostExpensive}</button>}
      {!failed && slow && <button className="link" type="button" onClick={() => choose(slow.node)}>{t.run.slowest}</button>}
    </div>
  )
}
