import { ActionIcon, Button, Menu } from '@mantine/core'
import { lazy, Suspense, useState } from 'react'
import { api, newKey, take, WeirError, type Schemas } from '../api'
import { useMay } from '../caller'
import { clock, cost, count, duration } from '../format'
import { CopyItems, quoted } from '../parts/CopyMenu'
import { Failure, Loading, RunError, Section, Status, Tabs } from '../parts/common'
import { Icon } from '../parts/icons'
import { QuestionForm } from '../parts/QuestionForm'
import { Value, Values, type Source } from '../parts/Value'
import { href, useQuery } from '../route'
import { t } from '../strings'
import { useLoad } from '../use'
import { Attempts } from './Attempts'
import { BudgetForm } from './BudgetForm'
import { CallView } from './CallView'
import { Ratings } from './Feedback'
import type { Live, RunNode } from './useRun'

const Playground = lazy(() => import('./Playground'))
const StateDiff = lazy(() => import('./StateDiff'))

interface Props {
  run: string
  node: RunNode
  at: number
  event: number
  live: ReadonlyMap<string, Live>
  interrupts: Schemas['Interrupt'][]
  tab: string
  setTab: (tab: string) => void
  close: () => void
  fork: () => void
  /** Reads the run again and follows it, after a command that continues it. */
  follow: () => void
  /** The run in which the node ran, if this one shares its past. */
  sharedFrom?: string
}

/** Everything about a node: what it was given, what it did, and why it failed. */
export function NodePanel({ run, node, at, event, live, interrupts, tab, setTab, close, fork, follow, sharedFrom }: Props) {
  const may = useMay('start')
  const details = useLoad((signal) => take(api.GET('/v1/runs/{run}/node', { params: { path: { run }, query: { node: node.node, at: at || undefined } }, signal })), [run, node.node, at, node.status, node.attempts, node.ended, event && node.status === 'running' ? event : 0])
  const tabs = [
    { id: 'values', label: t.node.values }, { id: 'calls', label: t.node.sent, count: node.usage.calls },
    { id: 'state', label: t.node.stateTab, count: details.data?.state?.length ?? 0 }, { id: 'attempts', label: t.node.attempts, count: node.attempts > 1 ? node.attempts : 0 },
  ]
  const chosen = tabs.some((x) => x.id === tab) ? tab : 'values'
  return (
    <aside className="panel" aria-label={node.node}>
      <div className="panel-head">
        <h2 className="cut" title={node.node}>{node.node}</h2>
        <span className="small dim cut grow">{node.type}</span>
        <Status chip of={node.status} />
        {may && !at && node.started > 0 && <Button variant="default" leftSection={<Icon name="fork" />} onClick={fork}>{t.run.fork}</Button>}
        <NodeMenu run={run} node={node} at={at} details={details.data} />
        <ActionIcon aria-label={t.node.close} onClick={close}><Icon name="close" /></ActionIcon>
      </div>
      <Figures node={node} />
      {sharedFrom && <div className="metas"><span>{t.run.sharedHint}: <a className="mono" href={href(['runs', sharedFrom], { node: node.node })}>{sharedFrom}</a></span></div>}
      <div className="bar"><Tabs label={node.node} tabs={tabs} chosen={chosen} choose={setTab} /></div>
      <div className="panel-body" tabIndex={0} role="region" aria-label={t.node.details}>
        {node.error && <RunError error={node.error} />}
        {node.status === 'failed' && may && !at && (node.error?.code === 'budget_exceeded' ? <BudgetForm run={run} node={node.node} done={follow} /> : <RetryNode run={run} node={node.node} done={follow} />)}
        {interrupts.map((i) => <div className="ask" key={i.id}><QuestionForm run={run} interrupt={i} done={() => undefined} /></div>)}
        <LiveOutput node={node.node} live={live} />
        {details.error && <Failure error={details.error} retry={details.reload} />}
        {!details.data && !details.error && <Loading />}
        {details.data && chosen === 'values' && <NodeValues run={run} at={at} d={details.data} />}
        {details.data && chosen === 'values' && node.status === 'completed' && <Ratings run={run} node={node.node} />}
        {details.data && chosen === 'calls' && <Calls run={run} node={node} />}
        {details.data && chosen === 'state' && <Suspense fallback={<Loading />}><StateDiff run={run} node={node.node} d={details.data} /></Suspense>}
        {details.data && chosen === 'attempts' && <Attempts run={run} node={node} d={details.data} />}
      </div>
    </aside>
  )
}

function Figures({ node }: { node: RunNode }) {
  const u = node.usage
  if (!node.started) return null
  return (
    <div className="metas">
      <span><b>{duration(node.us / 1000)}</b></span>
      {u.calls > 0 && <span><b>{count(u.input)}</b> {t.node.input} · <b>{count(u.output)}</b> {t.node.output}</span>}
      {u.cached > 0 && <span><b>{count(u.cached)}</b> {t.node.cachedTokens}</span>}
      {u.cost > 0 && <span><b>{cost(u.cost)}</b></span>}
      <span title={clock(node.started)}>{clock(node.started).slice(11)}</span>
      {node.cached && <span>{t.node.cached}</span>}
    </div>
  )
}

/** Tries a failed node again. */
function RetryNode({ run, node, done }: { run: string; node: string; done: () => void }) {
  const [error, setError] = useState<WeirError>()
  const [busy, setBusy] = useState(false)
  const retry = async () => {
    setBusy(true)
    try {
      await api.POST('/v1/runs/{run}/retry', { params: { path: { run }, header: { 'Idempotency-Key': newKey() } }, body: { node } })
      done()
    } catch (e) {
      setError(e as WeirError)
    } finally {
      setBusy(false)
    }
  }
  return (
    <>
      <div className="row"><Button variant="default" loading={busy} onClick={retry}>{t.run.retryNode}</Button></div>
      {error && <Failure error={error} />}
    </>
  )
}

function LiveOutput({ node, live }: { node: string; live: ReadonlyMap<string, Live> }) {
  const list = [...live].filter(([key]) => key.slice(0, key.lastIndexOf('/')) === node)
  if (list.length === 0) return null
  return (
    <Section title={t.node.live}>
      {list.map(([key, v]) => (
        <div key={key} className="code" aria-live="polite">
          {v.waits && <div style={{ color: 'var(--wait)' }}>{v.waits}</div>}
          {v.reasoning && <div className="dim">{v.reasoning}</div>}
          {v.text || v.stdout}<span className="caret" />
        </div>
      ))}
    </Section>
  )
}

function NodeValues({ run, at, d }: { run: string; at: number; d: Schemas['NodeDetails'] }) {
  const from = (part: Source['part']): Source => ({ run, node: d.node, at, part })
  return (
    <>
      {(d.waits ?? []).length > 0 && (
        <Section title={t.node.waits}>
          {d.waits!.map((w, i) => (
            <div key={i} className="card column gap4" style={{ marginBottom: 8 }}>
              <div className="text">{w.prompt}</div>
              {w.answered && <div className="small dim">{t.node.answeredBy} {w.by || t.node.somebody}</div>}
              {w.answered && <Value value={{ ...w.answer, name: t.node.answer }} source={from('waits')} index={undefined} />}
            </div>
          ))}
        </Section>
      )}
      <Section title={t.node.inputs}><Values list={d.inputs ?? []} source={from('inputs')} none={t.node.noInputs} /></Section>
      <Section title={t.node.outputs}><Values list={d.outputs ?? []} source={from('outputs')} none={t.node.noOutputs} /></Section>
      {(d.partial ?? []).map((x, i) => <Section key={i} title={t.node.partial}><div className="code">{x}</div></Section>)}
      {(d.messages ?? []).length > 0 && <Section title={t.node.messages}>{d.messages!.map((m, i) => <Value key={i} value={m} source={from('messages')} index={undefined} />)}</Section>}
      {(d.effects ?? []).length > 0 && (
        <Section title={t.node.effects}>
          {d.effects!.map((e) => (
            <div key={e.key}>
              {e.error && <RunError error={e.error} />}
              <Value value={{ ...e.result, name: e.key.slice(e.key.lastIndexOf('/') + 1) + ' · ' + duration(e.us / 1000) }} />
            </div>
          ))}
        </Section>
      )}
      {(d.metadata ?? []).length > 0 && <Section title={t.node.metadata}><Values list={d.metadata!} source={from('metadata')} none="" /></Section>}
    </>
  )
}

function Calls({ run, node }: { run: string; node: RunNode }) {
  const may = useMay('start')
  const [query, set] = useQuery()
  const calls = useLoad((signal) => take(api.GET('/v1/runs/{run}/calls', { params: { path: { run }, query: { node: node.node } }, signal })), [run, node.node, node.status, node.ended])
  const cache = useLoad((signal) => take(api.GET('/v1/runs/{run}/cache', { params: { path: { run }, query: { node: node.node } }, signal })), [run, node.node, node.status, node.ended])
  if (calls.error) return <Failure error={calls.error} />
  if (!calls.data) return <Loading />
  const list = calls.data.calls ?? []
  const playing = list.find((c) => c.call === query.get('play'))
  return (
    <>
      {playing && <Suspense fallback={null}><Playground run={run} node={node.node} call={playing} close={() => set({ play: '' })} /></Suspense>}
      {list.length === 0 && <div className="dim">{t.node.noCalls}</div>}
      {list.map((c) => <CallView key={c.call} run={run} call={c} cache={cache.data?.calls?.find((x) => x.call === c.call)} play={may ? () => set({ play: c.call }) : undefined} />)}
    </>
  )
}

function NodeMenu({ run, node, at, details }: { run: string; node: RunNode; at: number; details?: Schemas['NodeDetails'] }) {
  const [opened, setOpened] = useState(false)
  return (
    <Menu opened={opened} onChange={setOpened} position="bottom-end">
      <Menu.Target><ActionIcon aria-label={t.run.more}><Icon name="more" /></ActionIcon></Menu.Target>
      <Menu.Dropdown>
        <CopyItems json={details && (() => details)} cli={`weir show ${run} --node ${quoted(node.node)}`} path={`v1/runs/${encodeURIComponent(run)}/node?node=${encodeURIComponent(node.node)}${at ? `&at=${at}` : ''}`} />
      </Menu.Dropdown>
    </Menu>
  )
}

