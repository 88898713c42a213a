import { Button } from '@mantine/core'
import { lazy, Suspense, useEffect, useState } from 'react'
import { api, take, type Schemas } from '../api/client'
import { useMay } from '../caller'
import { Empty, Failure, Loading, Section } from '../parts/common'
import { href, useQuery, useRoute } from '../route'
import { t } from '../strings'
import { useLoad } from '../use'
import { StartRun } from './StartRun'

const Graph = lazy(() => import('../run/Graph'))
const Editor = lazy(() => import('../parts/Editor'))

/** The flows of the server. */
export default function Flows() {
  const { path } = useRoute()
  return path[1] ? <FlowPage key={path[1]} name={path[1]} /> : <List />
}

function List() {
  const list = useLoad((signal) => take(api.GET('/v1/flows', { signal })), [])
  const flows = list.data?.flows ?? []
  return (
    <>
      <div className="head"><h1>{t.flows.title}</h1></div>
      <div className="body pad">
        {list.error && <Failure error={list.error} retry={list.reload} />}
        {!list.data && !list.error && <Loading />}
        {list.data && flows.length === 0 && <Empty title={t.flows.empty} hint={t.flows.emptyHint}><div className="code">weir serve flows/</div></Empty>}
        <div className="cards">
          {flows.map((f) => (
            <a key={f.name} className="card column flow-card" href={href(['flows', f.name])}>
              <b>{f.name}</b>
              <span className="dim grow">{f.description}</span>
              <span className="small dim mono cut">{f.fingerprint.slice(0, 12)}</span>
            </a>
          ))}
        </div>
      </div>
    </>
  )
}

function FlowPage({ name }: { name: string }) {
  const [query, set] = useQuery()
  const may = useMay('start')
  const flow = useLoad((signal) => take(api.GET('/v1/flows/{flow}', { params: { path: { flow: name } }, signal })), [name])
  const [text, setText] = useState<string>()
  const source = text ?? (flow.data ? JSON.stringify(flow.data.flow, null, 2) : '')
  const checked = useValidation(source, name)
  if (flow.error) return <Failure error={flow.error} retry={flow.reload} />
  if (!flow.data) return <Loading />
  const problems = checked?.problems ?? []
  return (
    <>
      <div className="head">
        <div className="column grow"><h1>{name}</h1><span className="small dim">{flow.data.description}</span></div>
        <a href={href(['runs'], { flow: name })}>{t.nav.runs}</a>
        {may && <Button onClick={() => set({ start: name })}>{t.flows.start}</Button>}
      </div>
      <div className="bar small">
        <span className="dim">{t.flows.try}</span><span className="grow" />
        {checked && <span className="status" data-s={checked.valid ? 'completed' : 'failed'}>{checked.valid ? t.flows.valid : `${problems.length} ${t.flows.invalid}`}</span>}
        {text !== undefined && <button className="link" type="button" onClick={() => setText(undefined)}>{t.flows.reset}</button>}
      </div>
      <div className="halves">
        <div className="column">
          <Suspense fallback={<Loading />}><Editor text={source} change={setText} problems={problems} label={t.flows.source} /></Suspense>
          {problems.length > 0 && <Problems list={problems} />}
        </div>
        <div className="column wide-block">
          <Suspense fallback={<Loading />}>{checked?.layout ? <Graph layout={checked.layout} chosen="" choose={() => undefined} /> : <Graph flow={name} chosen="" choose={() => undefined} />}</Suspense>
        </div>
      </div>
      {query.get('start') && <StartRun flow={name} close={() => set({ start: '' })} />}
    </>
  )
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
          <div key={i}><span className="mono small">{p.place}</span> {p.message} {p.hint && <span className="dim">{p.hint}</span>}</div>
        ))}
      </Section>
    </div>
  )
}
