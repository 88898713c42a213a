import { Button } from '@mantine/core'
import { useEffect, useState } from 'react'
import { api, take, WeirError, type Schemas } from '../api'
import { ago } from '../format'
import { Empty, Failure, Loading, Status } from '../parts/common'
import { Stack } from '../parts/Stack'
import { href } from '../route'
import { t } from '../strings'

type Found = Schemas['FoundRun']

/** Runs whose journals have a text, each with the places. The server reads for some seconds at a time. */
export default function Search({ text, flow, status }: { text: string; flow: string; status: string[] }) {
  const [state, setState] = useState<{ runs: Found[]; next: string; scanned: number }>()
  const [error, setError] = useState<WeirError>()
  const [busy, setBusy] = useState(false)
  const read = async (cursor: string, signal?: AbortSignal) => {
    setBusy(true)
    try {
      const r = await take(api.GET('/v1/search', { params: { query: { text, flow: flow || undefined, status, cursor: cursor || undefined } }, signal }))
      setState((s) => ({ runs: [...(cursor ? (s?.runs ?? []) : []), ...(r.runs ?? [])], next: r.next, scanned: (cursor ? (s?.scanned ?? 0) : 0) + r.scanned }))
      setError(undefined)
    } catch (e) {
      if (!signal?.aborted) setError(e as WeirError)
    } finally {
      if (!signal?.aborted) setBusy(false)
    }
  }
  useEffect(() => {
    const stop = new AbortController()
    setState(undefined)
    const timer = setTimeout(() => void read('', stop.signal), 300)
    return () => {
      clearTimeout(timer)
      stop.abort()
    }
  }, [text, flow, status.join()])
  if (error) return <Failure error={error} retry={() => read('')} />
  if (!state) return <Loading />
  return (
    <div className="body" tabIndex={0} role="region" aria-label={t.runs.inside}>
      {state.runs.length === 0 && <Empty art="search" title={t.runs.noHits} />}
      <Stack list={state.runs} id={(x) => x.run.run} size={96} gap={0} item={({ run, hits }) => (
        <article className="hit" aria-label={run.run}>
          <a className="row" href={href(['runs', run.run])}><Status of={run.status} quiet /><b>{run.flow}</b><span className="mono dim">{run.run}</span><span className="grow" /><span className="small dim">{ago(Date.parse(run.created), Date.now())}</span></a>
          {(hits ?? []).map((h, i) => (
            <a key={i} className="row small" href={href(['runs', run.run], { node: h.node, at: h.node ? undefined : h.event })}><span className="mono dim cut hit-place">{h.node || h.type}</span><span className="cut">{marked(h.excerpt, text)}</span></a>
          ))}
        </article>
      )} />
      <div className="pad row"><span className="small dim">{state.scanned} {t.runs.scanned}</span>{state.next && <Button variant="default" loading={busy} onClick={() => read(state.next)}>{t.runs.readMore}</Button>}</div>
    </div>
  )
}

/** An excerpt with the text that was found. */
function marked(excerpt: string, text: string) {
  const at = excerpt.toLowerCase().indexOf(text.toLowerCase())
  if (at < 0) return excerpt
  return <>{excerpt.slice(0, at)}<mark>{excerpt.slice(at, at + text.length)}</mark>{excerpt.slice(at + text.length)}</>
}
