import { lazy, Suspense, useState, type ReactNode } from 'react'
import { Button, TextInput } from '@mantine/core'
import { api, take, type Schemas } from '../api'
import { clock, cost, count, plain } from '../format'
import { Empty, Failure, Loading, RunError, Section, Status, Tabs } from '../parts/common'
import type { Message } from '../parts/MessageView'
import { SentMessages } from './CallView'
import { Stack } from '../parts/Stack'
import { href, useQuery } from '../route'
import { statusText, t } from '../strings'
import { useLoad } from '../use'

const Sides = lazy(() => import('./Sides'))
const TextDiff = lazy(() => import('../parts/TextDiff'))

/** Two runs side by side: what differs in their flows, inputs, nodes, messages and outputs. */
export default function Compare({ run, flow, suggestion }: { run: string; flow: string; suggestion: string }) {
  const [query, set] = useQuery()
  const other = query.get('with') ?? suggestion
  const sides = query.get('sides') === '1'
  const [typed, setTyped] = useState(other)
  const diff = useLoad(async (signal) => (other ? take(api.GET('/v1/runs/{run}/diff/{other}', { params: { path: { run: other, other: run } }, signal })) : undefined), [run, other])
  const others = useLoad((signal) => take(api.GET('/v1/runs', { params: { query: { flow, limit: 50 } }, signal })), [flow])
  return (
    <div className="body pad column gap">
      <form className="row wrap" onSubmit={(e) => { e.preventDefault(); set({ with: typed }) }}>
        <TextInput aria-label={t.diff.choose} placeholder={t.diff.choose} value={typed} onChange={(e) => setTyped(e.currentTarget.value)} style={{ width: 240 }} list="runs-of-flow" />
        <datalist id="runs-of-flow">{(others.data?.runs ?? []).filter((r) => r.run !== run).map((r) => <option key={r.run} value={r.run}>{`${statusText[r.status] ?? r.status}, ${clock(Date.parse(r.created))}`}</option>)}</datalist>
        <Button type="submit" variant="default" disabled={!typed}>{t.diff.title}</Button>
        <span className="grow" />
        {other && <Tabs label={t.diff.title} chosen={sides ? '1' : ''} choose={(x) => set({ sides: x })} tabs={[{ id: '', label: t.diff.differences }, { id: '1', label: t.diff.sides }]} />}
      </form>
      {!sides && diff.error && <Failure error={diff.error} />}
      {!other && <Empty art="fork" title={t.diff.choose} hint={t.diff.hint} />}
      {other && sides && <Suspense fallback={<Loading />}><Sides a={other} b={run} /></Suspense>}
      {other && !sides && !diff.data && !diff.error && <Loading />}
      {!sides && diff.data && <Suspense fallback={<Loading />}><Differences d={diff.data} /></Suspense>}
    </div>
  )
}

function Differences({ d }: { d: Schemas['DiffReport'] }) {
  return (
    <>
      <div className="two">
        <Side name={t.diff.left} s={d.a} />
        <Side name={t.diff.right} s={d.b} />
      </div>
      {d.same && <div className="good-box">{t.diff.same}</div>}
      <Entries title={t.diff.flow} list={d.flow} />
      <Entries title={t.diff.inputs} list={d.inputs} />
      <Entries title={t.diff.state} list={d.state} />
      {(d.nodes ?? []).length > 0 && (
        <Section title={t.diff.nodes}>
          <Stack list={d.nodes!} id={(n) => n.node} size={88} item={(n) => (
            <div className="value">
              <header><b>{n.node}</b><span className="grow" /><Status of={n.a || 'pending'} label={n.a ? undefined : t.diff.missing} /><span>→</span><Status of={n.b || 'pending'} label={n.b ? undefined : t.diff.missing} /></header>
              {(n.outputs ?? []).map((o) => <Pair key={o.name} entry={o} />)}
            </div>
          )} />
        </Section>
      )}
      {(d.contexts ?? []).map((c) => (
        <Section key={c.context} title={`${t.diff.contexts}: ${c.context} (${c.common} ${t.diff.common})`}>
          <div className="two">
            <Messages list={c.a as Message[] | null} />
            <Messages list={c.b as Message[] | null} />
          </div>
        </Section>
      ))}
      <Entries title={t.diff.outputs} list={d.outputs} />
    </>
  )
}

function Side({ name, s }: { name: string; s: Schemas['DiffSide'] }) {
  return (
    <div className="card">
      <div className="row"><b>{name}</b><a className="mono cut" href={href(['runs', s.run])}>{s.run}</a><span className="grow" /><Status of={s.status} /></div>
      <div className="small dim">{s.flow} · {count(s.usage.input + s.usage.output)} {t.run.tokens} · {cost(s.usage.cost)}</div>
      {s.error && <RunError error={s.error} />}
    </div>
  )
}

function Entries({ title, list }: { title: string; list: (Schemas['DiffEntry'] & { node?: string })[] | null }): ReactNode {
  if (!list?.length) return null
  return (
    <Section title={title}>
      {list.map((e, i) => <div className="value" key={i}><header><b>{[e.node, e.name].filter(Boolean).join(' · ')}</b></header><Pair entry={e} /></div>)}
    </Section>
  )
}

function Pair({ entry }: { entry: Schemas['DiffEntry'] }) {
  const a = entry.a == null ? '' : plain(entry.a)
  const b = entry.b == null ? '' : plain(entry.b)
  return <TextDiff a={a} b={b} label={entry.name} />
}

function Messages({ list }: { list: Message[] | null }) {
  return <SentMessages list={list ?? []} />
}
