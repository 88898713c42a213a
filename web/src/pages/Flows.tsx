import { Button } from '@mantine/core'
import { lazy, Suspense, useEffect, useState } from 'react'
import { api, take, WeirError, type Schemas } from '../api'
import { useMay } from '../caller'
import { CardGrid } from '../parts/CardGrid'
import { CopyMenu } from '../parts/CopyMenu'
import { Empty, Failure, Loading, LoadingRows, Section, Tabs } from '../parts/common'
import { href, useQuery, useRoute } from '../route'
import { t } from '../strings'
import { useLoad } from '../use'
import { StartRun } from './StartRun'

const Graph = lazy(() => import('../run/Graph'))
const Editor = lazy(() => import('../parts/Editor'))
const FlowTests = lazy(() => import('./FlowTests'))
const FlowAccess = lazy(() => import('./FlowAccess'))
const Versions = lazy(() => import('./Versions'))

/** The flows of the server. */
export default function Flows() {
  const { path } = useRoute()
  return path[1] ? <FlowPage key={path[1]} name={path[1]} /> : <List />
}

function List() {
  const list = useLoad((signal) => take(api.GET('/v1/flows', { signal })), [])
  const [query, set] = useQuery()
  const find = (query.get('find') ?? '').toLowerCase()
  const all = list.data?.flows ?? []
  const flows = find ? all.filter((f) => `${f.name} ${f.description}`.toLowerCase().includes(find)) : all
  return (
    <>
      <div className="head">
        <h1 className="grow">{t.flows.title}</h1>
        {all.length > 0 && <input className="select search" type="search" aria-label={t.flows.find} placeholder={t.flows.find} value={query.get('find') ?? ''} onChange={(e) => set({ find: e.currentTarget.value })} />}
      </div>
      <div className="body column">
        {list.error && <Failure error={list.error} retry={list.reload} />}
        {!list.data && !list.error && <LoadingRows />}
        {all.length > 0 && flows.length === 0 && <Empty art="search" title={t.flows.noMatch} />}
        {list.data && all.length === 0 && <Empty art="flows" title={t.flows.empty} hint={t.flows.emptyHint}><div className="code">weir serve flows/</div></Empty>}
        <div className="pad">
          <CardGrid list={flows} id={(f) => f.name} item={(f) => (
            <a key={f.name} className="card column flow-card" href={href(['flows', f.name])}>
              <span className="row"><b className="grow cut">{f.name}</b>{f.paused && <span className="chip" data-s="paused">{t.flows.paused}</span>}</span>
              <span className="dim grow">{f.description}</span>
              <span className="metas">{f.model && <span>{f.model}</span>}<span className="mono">{f.fingerprint.replace(/^sha256:/, '').slice(0, 8)}</span></span>
            </a>
          )} />
        </div>
      </div>
    </>
  )
}

/** A flow with the tag that its changes name. */
export interface LoadedFlow {
  flow: Schemas['FlowDetails']
  tag: string
}

function FlowPage({ name }: { name: string }) {
  const [query, set] = useQuery()
  const may = useMay('start')
  const loaded = useLoad(async (signal): Promise<LoadedFlow> => {
    const r = await api.GET('/v1/flows/{flow}', { params: { path: { flow: name } }, signal })
    return { flow: r.data!, tag: r.response.headers.get('ETag') ?? '' }
  }, [name])
  const [text, setText] = useState<string>()
  if (loaded.error) return <Failure error={loaded.error} retry={loaded.reload} />
  if (!loaded.data) return <Loading />
  const { flow } = loaded.data
  const tab = query.get('tab') ?? 'source'
  const versions = flow.deployed?.versions ?? []
  return (
    <>
      <div className="head">
        <div className="column grow"><span className="row"><h1 className="cut">{name}</h1>{flow.paused && <span className="chip" data-s="paused">{t.flows.paused}</span>}</span><span className="small dim">{flow.description}</span></div>
        <a href={href(['runs'], { flow: name })}>{t.nav.runs}</a>
        {may && flow.deployed && <PauseFlow loaded={loaded.data} done={loaded.reload} />}
        {may && <Button onClick={() => set({ start: name })}>{t.flows.start}</Button>}
        <CopyMenu label={name} json={() => flow.flow} path={`v1/flows/${encodeURIComponent(name)}`} />
      </div>
      <div className="bar">
        <Tabs label={t.flows.title} chosen={tab} choose={(x) => set({ tab: x })} tabs={[{ id: 'source', label: t.flows.check }, { id: 'tests', label: t.tests.title }, { id: 'versions', label: t.flows.versions, count: versions.length }, { id: 'access', label: t.access.title }]} />
      </div>
      {tab === 'versions' && <Suspense fallback={<Loading />}><Versions loaded={loaded.data} reload={loaded.reload} /></Suspense>}
      {tab === 'access' && <Suspense fallback={<Loading />}><FlowAccess loaded={loaded.data} reload={loaded.reload} /></Suspense>}
      {tab === 'tests' && <Suspense fallback={<Loading />}><FlowTests flow={name} /></Suspense>}
      {!['versions', 'tests', 'access'].includes(tab) && <Source name={name} loaded={loaded.data} text={text} setText={setText} saved={() => { setText(undefined); loaded.reload() }} />}
      {query.get('start') && <StartRun flow={name} close={() => set({ start: '' })} />}
    </>
  )
}

/** The source of a flow beside its drawing. A change is checked as it is typed, and can be kept as a version. */
function Source({ name, loaded, text, setText, saved }: { name: string; loaded: LoadedFlow; text?: string; setText: (text?: string) => void; saved: () => void }) {
  const may = useMay('start')
  const source = text ?? (loaded.flow.text || (loaded.flow.flow ? JSON.stringify(loaded.flow.flow, null, 2) : ''))
  const checked = useValidation(source, name)
  const problems = checked?.problems ?? []
  const [error, setError] = useState<WeirError>()
  const isFile = !loaded.flow.deployed
  const save = async () => {
    const note = window.prompt(t.flows.saveHint)
    if (note === null) return
    try {
      await api.PUT('/v1/flows/{flow}', { params: { path: { flow: name }, header: { 'If-Match': loaded.tag } }, body: { flow: source, note } })
      saved()
    } catch (e) {
      setError(e as WeirError)
    }
  }
  return (
    <>
      <div className="bar small" style={{ minHeight: 36 }}>
        {checked && <span className="chip" data-s={checked.valid ? 'completed' : 'failed'}>{checked.valid ? t.flows.valid : `${problems.length} ${t.flows.invalid}`}</span>}
        <span className="dim cut grow">{isFile ? t.flows.try : ''}</span>
        {text !== undefined && <button className="link" type="button" onClick={() => setText(undefined)}>{t.flows.reset}</button>}
        {may && !isFile && text !== undefined && <Button disabled={!checked?.valid} onClick={save}>{t.flows.save}</Button>}
      </div>
      {error && <Failure error={error} />}
      <div className="halves">
        <div className="column">
          <Suspense fallback={<Loading />}><Editor text={source} change={setText} problems={problems} label={t.flows.source} /></Suspense>
          {problems.length > 0 && <Problems list={problems} />}
        </div>
        <div className="column wide-block">
          <Suspense fallback={<Loading />}>{checked?.layout ? <Graph layout={checked.layout} chosen="" choose={() => undefined} /> : <Graph flow={name} chosen="" choose={() => undefined} />}</Suspense>
        </div>
      </div>
    </>
  )
}

function PauseFlow({ loaded, done }: { loaded: LoadedFlow; done: () => void }) {
  const { name, paused } = loaded.flow
  const change = async () => {
    await api.POST('/v1/flows/{flow}/pause', { params: { path: { flow: name }, header: { 'If-Match': loaded.tag } }, body: { paused: !paused } })
    done()
  }
  return <Button variant="default" onClick={change}>{paused ? t.flows.unpause : t.flows.pause}</Button>
}

/** Validates a text on the server when it has not changed for a moment. The last drawing stays until there is another. */
function useValidation(text: string, name: string): Schemas['Validation'] | undefined {
  const [result, setResult] = useState<Schemas['Validation']>()
  useEffect(() => {
    if (!text) return
    const stop = new AbortController()
    const timer = setTimeout(() => {
      take(api.POST('/v1/flows/validate', { body: { flow: text, name }, signal: stop.signal }))
        .then((r) => setResult((old) => ({ ...r, layout: r.layout ?? old?.layout })))
        .catch(() => undefined)
    }, 250)
    return () => {
      stop.abort()
      clearTimeout(timer)
    }
  }, [text, name])
  return result
}

function Problems({ list }: { list: Schemas['Mistake'][] }) {
  return (
    <div className="problems">
      <Section title={t.flows.problem}>
        {list.map((p, i) => (
          <div key={i}><span className="mono">{p.place}</span> {p.message} {p.hint && <span className="dim">{p.hint}</span>}</div>
        ))}
      </Section>
    </div>
  )
}
