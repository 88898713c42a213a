import { ActionIcon, Button, Textarea, TextInput } from '@mantine/core'
import { useState } from 'react'
import { api, take, token, WeirError, type Schemas } from '../api'
import { useCaller, useMay } from '../caller'
import { ago } from '../format'
import { Failure, Section } from '../parts/common'
import { Icon } from '../parts/icons'
import { href } from '../route'
import { t } from '../strings'
import { useLoad } from '../use'

/** The labels of a run, each a link to the runs that have it. */
export function Labels({ run }: { run: string }) {
  const may = useMay('start')
  const labels = useLoad((signal) => take(api.GET('/v1/runs/{run}/labels', { params: { path: { run } }, signal })), [run])
  const known = useLoad(async (signal) => (may ? take(api.GET('/v1/labels', { signal })) : undefined), [run, may])
  const [text, setText] = useState('')
  const [error, setError] = useState<WeirError>()
  const list = labels.data?.labels ?? []
  const save = async (next: string[]) => {
    setError(undefined)
    try {
      await api.PUT('/v1/runs/{run}/labels', { params: { path: { run } }, body: { labels: next } })
      setText('')
      labels.reload()
    } catch (e) {
      setError(e as WeirError)
    }
  }
  if (labels.error) return <Section title={t.rate.labels}><Failure error={labels.error} retry={labels.reload} /></Section>
  if (!may && list.length === 0) return null
  const fresh = text.trim()
  return (
    <Section title={t.rate.labels}>
      <div className="row wrap">
        {list.map((x) => (
          <span key={x} className="chip label-chip">
            <a href={href(['runs'], { label: x })}>{x}</a>
            {may && <ActionIcon size={16} aria-label={`${t.rate.removeLabel} ${x}`} onClick={() => void save(list.filter((y) => y !== x))}><Icon name="close" size={12} /></ActionIcon>}
          </span>
        ))}
        {may && (
          <form className="row" onSubmit={(e) => { e.preventDefault(); if (fresh && !list.includes(fresh)) void save([...list, fresh]) }}>
            <TextInput aria-label={t.rate.addLabel} placeholder={t.rate.addLabel} value={text} onChange={(e) => setText(e.currentTarget.value)} list="labels-known" style={{ width: 128 }} />
            <datalist id="labels-known">{(known.data?.labels ?? []).filter((x) => !list.includes(x.label)).map((x) => <option key={x.label} value={x.label} />)}</datalist>
            <Button type="submit" variant="default" disabled={!fresh || list.includes(fresh)}>{t.rate.add}</Button>
          </form>
        )}
      </div>
      {error && <Failure error={error} />}
    </Section>
  )
}

type Mark = 'up' | 'down' | 'none'

/** The ratings of a run, or of the answer of a node, with a form for the caller's own. */
export function Ratings({ run, node = '' }: { run: string; node?: string }) {
  const caller = useCaller()
  const me = token() ? caller.user : 'server' // the API names the owner of the process, who has no token, so
  const may = useMay('answer')
  const list = useLoad((signal) => take(api.GET('/v1/runs/{run}/ratings', { params: { path: { run } }, signal })), [run, node])
  if (list.error) return <Section title={t.rate.rating}><Failure error={list.error} retry={list.reload} /></Section>
  if (!list.data) return null
  const here = (list.data.ratings ?? []).filter((r) => r.node === node)
  const own = here.find((r) => r.by === me)
  const others = here.filter((r) => r !== own || !may)
  if (!may && others.length === 0) return null
  return (
    <Section title={node ? t.rate.ofAnswer : t.rate.rating}>
      <div className="column gap8">
        {may && <OwnRating key={own?.at ?? ''} run={run} node={node} own={own} done={list.reload} />}
        {others.map((r) => <Rating key={r.by} r={r} />)}
        {!node && <Rated run={run} list={(list.data.ratings ?? []).filter((r) => r.node)} />}
      </div>
    </Section>
  )
}

/** The nodes of a run that were rated. */
function Rated({ run, list }: { run: string; list: Schemas['Rating'][] }) {
  if (list.length === 0) return null
  return (
    <div className="column gap4">
      {list.map((r) => <div key={r.node + r.by} className="row" style={{ alignItems: 'baseline' }}><a className="mono" href={href(['runs', run], { node: r.node })}>{r.node}</a><Rating r={r} /></div>)}
    </div>
  )
}

function Rating({ r }: { r: Schemas['Rating'] }) {
  const text = { up: t.rate.good, down: t.rate.bad, none: t.rate.noteOnly }[r.rating]
  return (
    <div className="row wrap">
      <span className="chip" data-s={{ up: 'completed', down: 'failed', none: '' }[r.rating]}>{text}</span>
      {r.note && <span className="text">{r.note}</span>}
      <span className="small dim">{[r.by, ago(Date.parse(r.at), Date.now())].filter(Boolean).join(' · ')}</span>
    </div>
  )
}

function OwnRating({ run, node, own, done }: { run: string; node: string; own?: Schemas['Rating']; done: () => void }) {
  const [note, setNote] = useState(own?.note ?? '')
  const [error, setError] = useState<WeirError>()
  const mark = own?.rating ?? 'none'
  const save = async (rating: Mark) => {
    setError(undefined)
    try {
      await api.PUT('/v1/runs/{run}/ratings', { params: { path: { run } }, body: { rating, note: note.trim(), node: node || undefined } })
      done()
    } catch (e) {
      setError(e as WeirError)
    }
  }
  const choice = (x: Mark, label: string) => <button type="button" className="chip" aria-pressed={mark === x} onClick={() => void save(mark === x ? 'none' : x)}>{label}</button>
  return (
    <form className="column gap8" aria-label={t.rate.yours} onSubmit={(e) => { e.preventDefault(); void save(mark) }}>
      <div className="row" role="group" aria-label={t.rate.rating}>{choice('up', t.rate.good)}{choice('down', t.rate.bad)}</div>
      <div className="row">
        <div className="grow"><Textarea aria-label={t.rate.note} placeholder={t.rate.note} autosize minRows={1} maxRows={6} value={note} onChange={(e) => setNote(e.currentTarget.value)} /></div>
        <Button type="submit" variant="default" disabled={note.trim() === (own?.note ?? '')}>{t.rate.saveNote}</Button>
      </div>
      {error && <Failure error={error} />}
    </form>
  )
}
