import { ActionIcon, Button } from '@mantine/core'
import { useMediaQuery } from '@mantine/hooks'
import { lazy, memo, useCallback, Suspense, useDeferredValue, useEffect, useMemo, useState, type ReactNode } from 'react'
import { api, take } from '../api'
import { clock as timeText } from '../format'
import { Failure, Loading, Tabs } from '../parts/common'
import { Icon } from '../parts/icons'
import { Values } from '../parts/Value'
import { ForkForm } from '../run/ForkForm'
import { Messages } from '../run/Messages'
import { NodePanel } from '../run/NodePanel'
import { RunHead } from '../run/RunHead'
import { RunPanel } from '../run/RunPanel'
import { TimelineView } from '../run/TimelineView'
import { ended, useRun, useShared, type RunNode, type Timeline } from '../run/useRun'
import { useQuery } from '../route'
import { t } from '../strings'
import { useLoad, useNow } from '../use'

const Compare = lazy(() => import('../run/Compare'))
const Journal = lazy(() => import('../run/Journal'))
const Graph = lazy(() => import('../run/Graph'))

/** A run: its nodes as tree with times and as graph, all showing the same moment. */
export default function RunPage({ id }: { id: string }) {
  const [query, set] = useQuery()
  const at = Number(query.get('at') ?? 0)
  const run = useRun(id, at)
  const data = run.data
  const shared = useShared(data)
  const clock = useNow(!!data && !ended(data.status) && !at)
  const now = at && data ? data.at : Math.max(clock, data?.at ?? 0)
  const narrow = useMediaQuery('(max-width: 900px)', window.innerWidth <= 900, { getInitialValueInEffect: false })
  const named = query.get('view')
  const view = named && (narrow || named !== 'overview') ? named : narrow ? 'overview' : 'timeline' // the wide page has the overview beside each view
  const shown = useDeferredValue(view) // a large graph is mounted in slices
  const [inRun, node] = [query.get('in') ?? id, query.get('node') ?? '']
  const chosen = useMemo(() => ({ run: inRun, path: node }), [inRun, node])
  const choose = useCallback((inRun: string, path: string) => set({ node: path, in: inRun === id ? '' : inRun, attempt: '' }), [set, id])
  if (!data && run.error) return <Failure error={run.error} retry={run.reload} />
  if (!data) return <Loading />
  const wide = !narrow && (shown === 'compare' || (shown === 'messages' && query.get('beside') === 'view' && !chosen.path)) // two columns need the room of the panel
  return (
    <>
      <RunHead data={data} now={now} at={at} connection={run.connection} />
      {run.connection === 'lost' && <div className="notice" role="status">{t.state.lost}</div>}
      {at > 0 && <div className="notice"><span>{t.run.past}</span><button className="link" type="button" onClick={() => set({ at: '' })}>{t.run.toLatest}</button></div>}
      <div className="bar">
        <Tabs label={t.run.overview} chosen={view} choose={(v) => set({ view: v, node: narrow ? '' : chosen.path })} tabs={tabsOf(data, narrow)} />
        <span className="grow" />
        <Jumps nodes={data.nodes ?? []} choose={(p) => choose(data.run, p)} />
        {(view === 'timeline' || view === 'split') && <input className="select search wide" type="search" placeholder={t.run.find} aria-label={t.run.find} value={query.get('find') ?? ''} onChange={(e) => set({ find: e.currentTarget.value })} />}
      </div>
      <div className="split" data-panel={wide ? 'none' : chosen.path ? 'node' : 'rest'}>
        <View view={shown} data={data} now={now} at={at} chosen={chosen} choose={choose} shared={shared} />
        {query.get('fork') && <ForkForm data={data} node={query.get('fork')!} close={() => set({ fork: '' })} />}
        {!wide && <SidePanel data={data} now={now} at={at} chosen={chosen} live={run.live} follow={run.reload} shared={shared} />}
      </div>
      <Scrubber data={data} at={at} />
    </>
  )
}

interface ViewProps {
  view: string
  data: Timeline
  now: number
  at: number
  chosen: { run: string; path: string }
  choose: (run: string, path: string) => void
  shared: ReadonlySet<string>
}

const View = memo(function View({ view, data, now, at, chosen, choose, shared }: ViewProps) {
  const [query] = useQuery()
  const graph = () => <Graph run={data.run} nodes={data.nodes ?? []} chosen={chosen.run === data.run ? chosen.path : ''} choose={(p) => choose(data.run, p)} />
  const timeline = () => <TimelineView data={data} now={now} find={query.get('find') ?? ''} chosen={chosen} choose={choose} shared={shared} />
  const views: Record<string, () => ReactNode> = {
    graph, timeline,
    split: () => <div className="stack"><div className="column">{timeline()}</div><div className="column">{graph()}</div></div>,
    overview: () => <RunPanel data={data} now={now} at={at} />,
    messages: () => <Messages run={data.run} at={at} event={data.event} contexts={data.contexts ?? []} />,
    compare: () => <Compare run={data.run} flow={data.flow} suggestion={data.fork?.from ?? ''} />,
    journal: () => <Journal run={data.run} events={data.events} at={at} />,
    state: () => <div className="body pad"><Values list={data.state ?? []} none={t.state.none} /></div>,
  }
  return <div className="column"><Suspense fallback={<Loading />}>{(views[view] ?? timeline)()}</Suspense></div>
})

function tabsOf(data: Timeline, narrow: boolean | undefined) {
  const messages = (data.contexts ?? []).reduce((n, c) => n + c.messages, 0)
  const tabs = [
    { id: 'timeline', label: t.run.timeline }, { id: 'graph', label: t.run.graph }, { id: 'messages', label: t.run.messages, count: messages },
    { id: 'state', label: t.run.state, count: (data.state ?? []).length }, { id: 'journal', label: t.run.journal }, { id: 'compare', label: t.run.compare },
  ]
  if (narrow) return [{ id: 'overview', label: t.run.overviewTab }, ...tabs]
  return [tabs[0], tabs[1], { id: 'split', label: t.run.split }, ...tabs.slice(2)]
}

function SidePanel({ data, now, at, chosen, live, follow, shared }: { shared: ReadonlySet<string>; data: Timeline; now: number; at: number; chosen: { run: string; path: string }; live: ReturnType<typeof useRun>['live']; follow: () => void }) {
  const [query, set] = useQuery()
  const child = useLoad(async (signal) => (chosen.run === data.run || !chosen.path ? undefined : take(api.GET('/v1/runs/{run}/timeline', { params: { path: { run: chosen.run }, query: { limit: 20000 } }, signal }))), [chosen.run, data.event])
  const source = chosen.run === data.run ? data : child.data
  const node = source?.nodes?.find((n) => n.node === chosen.path)
  useEffect(() => {
    const close = (e: KeyboardEvent) => e.key === 'Escape' && chosen.path && !document.querySelector('[role=dialog],[role=menu]') && set({ node: '', in: '', attempt: '' })
    window.addEventListener('keydown', close)
    return () => window.removeEventListener('keydown', close)
  })
  if (!chosen.path) return <RunPanel data={data} now={now} at={at} />
  if (!node) return <RunPanel data={source ?? data} now={now} at={at} />
  return (
    <NodePanel
      key={chosen.run + node.node} run={chosen.run} node={node} at={chosen.run === data.run ? at : 0} event={source!.event} live={live} tab={query.get('tab') ?? ''} setTab={(tab) => set({ tab, attempt: '' })}
      interrupts={at ? [] : (source!.interrupts ?? []).filter((i) => i.node === node.node && !['timer', 'child'].includes(i.kind))} close={() => set({ node: '', in: '', attempt: '' })} fork={() => set({ fork: node.node }, false)} follow={follow} sharedFrom={chosen.run === data.run && shared.has(node.node) ? data.fork?.from : undefined}
    />
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
  const step = (by: number) => setValue((v) => Math.min(Math.max(1, v + by), data.events))
  return (
    <div className="bar foot">
      <ActionIcon size={24} aria-label={t.run.step} disabled={value <= 1} onClick={() => step(-1)}><Icon name="back" size={14} /></ActionIcon>
      <input className="scrub" type="range" min={1} max={Math.max(data.events, 1)} value={value} aria-label={t.run.scrub} onChange={(e) => setValue(Number(e.currentTarget.value))} />
      <ActionIcon size={24} aria-label={t.run.stepOn} disabled={value >= data.events} onClick={() => step(1)}><Icon name="right" size={14} /></ActionIcon>
      <span className="small dim right" style={{ minWidth: 120 }}>{t.run.event} {value} {t.run.of} {data.events}</span>
      <span className="small dim wide">{timeText(data.at)}</span>
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
      {failed && <Button variant="subtle" onClick={() => choose(failed.node)}>{t.run.firstFailure}</Button>}
      {dear && <Button variant="subtle" onClick={() => choose(dear.node)}>{t.run.mostExpensive}</Button>}
      {!failed && slow && <Button variant="subtle" onClick={() => choose(slow.node)}>{t.run.slowest}</Button>}
    </div>
  )
}
