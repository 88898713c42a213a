import { Button } from '@mantine/core'
import { useState } from 'react'
import { api, take, WeirError } from '../api'
import { useMay } from '../caller'
import { ago, plain } from '../format'
import { Empty, Failure, Loading } from '../parts/common'
import { useQuery } from '../route'
import { t } from '../strings'
import { useLoad, useNow } from '../use'
import { FlowChanges } from './FlowChanges'
import type { LoadedFlow } from './Flows'

/** The versions of a flow that was put: the one in use, and what differs in another. */
export default function Versions({ loaded, reload }: { loaded: LoadedFlow; reload: () => void }) {
  const d = loaded.flow.deployed
  const [query, set] = useQuery()
  const now = useNow(true)
  const list = d?.versions ?? [] // the newest first
  if (!d) return <Empty art="flows" title={t.flows.filed}><div className="code">PUT /v1/flows/{loaded.flow.name}</div></Empty>
  const chosen = query.get('version') ?? list.find((v) => v.fingerprint !== d.promoted)?.fingerprint ?? ''
  return (
    <div className="contexts versions">
      <nav className="column" aria-label={t.flows.versions}>
        {list.map((v) => (
          <button key={v.fingerprint} type="button" className="context" aria-pressed={v.fingerprint === chosen} onClick={() => set({ version: v.fingerprint })}>
            <span className="column" style={{ alignItems: 'flex-start' }}>
              <span className="row"><span className="mono">{v.fingerprint.replace('sha256:', '').slice(0, 8)}</span>{v.fingerprint === d.promoted && <span className="chip" data-s="completed">{t.flows.promoted}</span>}</span>
              <span className="small dim">{[v.note, v.by && `${t.flows.by} ${v.by}`, ago(Date.parse(v.at), now)].filter(Boolean).join(' · ')}</span>
            </span>
          </button>
        ))}
      </nav>
      <div className="body pad">{chosen && <Version key={chosen} loaded={loaded} version={chosen} reload={reload} />}</div>
    </div>
  )
}

/** A version beside another one: the one in use, unless another is chosen. */
function Version({ loaded, version, reload }: { loaded: LoadedFlow; version: string; reload: () => void }) {
  const may = useMay('start')
  const now = useNow(false)
  const [query, set] = useQuery()
  const versions = loaded.flow.deployed?.versions ?? []
  const promoted = loaded.flow.deployed?.promoted ?? ''
  const others = versions.filter((v) => v.fingerprint !== version)
  const asked = query.get('with') ?? ''
  const other = (others.find((v) => v.fingerprint === asked) ?? others.find((v) => v.fingerprint === promoted) ?? others[0])?.fingerprint ?? ''
  const name = loaded.flow.name
  const [error, setError] = useState<WeirError>()
  const get = (v: string, signal: AbortSignal) => take(api.GET('/v1/flows/{flow}/versions/{version}', { params: { path: { flow: name, version: v } }, signal }))
  const pair = useLoad(async (signal) => ({ a: other ? await get(other, signal) : undefined, b: await get(version, signal) }), [version, other])
  const promote = async () => {
    try {
      await api.POST('/v1/flows/{flow}/promote', { params: { path: { flow: name }, header: { 'If-Match': loaded.tag } }, body: { version } })
      reload()
    } catch (e) {
      setError(e as WeirError)
    }
  }
  if (pair.error) return <Failure error={pair.error} retry={pair.reload} />
  if (!pair.data) return <Loading />
  const place = (v: string) => versions.findIndex((x) => x.fingerprint === v)
  const isEarlier = place(version) > place(promoted)
  return (
    <div className="column gap">
      {error && <Failure error={error} />}
      <div className="row wrap">
        {other && (
          <label className="row small">
            <span className="dim">{t.flows.compareWith}</span>
            <select className="select auto" value={other} onChange={(e) => set({ version, with: e.currentTarget.value })}>
              {others.map((v) => <option key={v.fingerprint} value={v.fingerprint}>{[v.fingerprint.replace('sha256:', '').slice(0, 8), v.fingerprint === promoted && t.flows.promoted, v.note, ago(Date.parse(v.at), now)].filter(Boolean).join(' · ')}</option>)}
            </select>
          </label>
        )}
        <span className="grow" />
        {version !== promoted && may && <Button onClick={promote}>{promoted && isEarlier ? t.flows.rollBack : t.flows.promote}</Button>}
      </div>
      {pair.data.a
        ? <FlowChanges flow={name} from={other} to={version} text={{ a: plain(pair.data.a.flow), b: plain(pair.data.b.flow) }} />
        : <div className="code" style={{ maxHeight: 'none' }} tabIndex={0}>{pair.data.b.text}</div>}
    </div>
  )
}
