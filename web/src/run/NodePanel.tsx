import { ActionIcon, Button, Menu } from '@mantine/core'
import { useState } from 'react'
import { api, base, take, type Schemas } from '../api/client'
import { useMay } from '../caller'
import { clock, cost, count, duration } from '../format'
import { copyText, Failure, Loading, RunError, Section, Status, Tabs } from '../parts/common'
import { Icon } from '../parts/icons'
import { QuestionForm } from '../parts/QuestionForm'
import { Content, Value, Values, type Source } from '../parts/Value'
import { phaseText, t } from '../strings'
import { useLoad } from '../use'
import { CallView } from './CallView'
import type { Live, RunNode } from './useRun'

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
}

/** Everything about a node: what it was given, what it did, and why it failed. */
export function NodePanel({ run, node, at, event, live, interrupts, tab, setTab, close, fork }: Props) {
  const may = useMay('start')
  const details = useLoad((signal) => take(api.GET('/v1/runs/{run}/node', { params: { path: { run }, query: { node: node.node, at: at || undefined } }, signal })), [run, node.node, at, node.status, node.attempts, node.ended, event && node.status === 'running' ? event : 0])
  const chosen = tab === 'calls' || tab === 'attempts' ? tab : 'values'
  const tabs = [{ id: 'values', label: t.node.values }, { id: 'calls', label: `${t.node.sent}${node.usage.calls ? ` (${node.usage.calls})` : ''}` }, { id: 'attempts', label: t.node.attempts }]
  return (
    <aside className="panel" aria-label={node.node}>
      <div className="panel-head">
        <h2 className="cut grow" title={node.node}>{node.node}</h2>
        <Status of={node.status} />
        <NodeMenu run={run} node={node} at={at} details={details.data} />
        <ActionIcon aria-label={t.node.close} onClick={close}><Icon name="close" /></ActionIcon>
      </div>
      <div className="bar"><Tabs label={node.node} tabs={tabs} chosen={chosen} choose={setTab} />
        <span className="grow" />
        {may && !at && node.started > 0 && <Button variant="default" leftSection={<Icon name="fork" />} onClick={fork}>{t.run.fork}</Button>}
      </div>
      <div className="panel-body">
        {node.error && <RunError error={node.error} />}
        {interrupts.map((i) => <div className="card" key={i.id}><QuestionForm run={run} interrupt={i} done={() => undefined} /></div>)}
        <LiveOutput node={node.node} live={live} />
        {details.error && <Failure error={details.error} retry={details.reload} />}
        {!details.data && !details.error && <Loading />}
        {details.data && chosen === 'values' && <NodeValues run={run} at={at} d={details.data} />}
        {details.data && chosen === 'calls' && <Calls run={run} node={node} />}
        {details.data && chosen === 'attempts' && <Attempts node={node} d={details.data} />}
        {details.data && chosen === 'attempts' && <Steps run={run} node={node} />}
      </div>
    </aside>
  )
}

function LiveOutput({ node, live }: { node: string; live: ReadonlyMap<string, Live> }) {
  const list = [...live].filter(([key]) => key.slice(0, key.lastIndexOf('/')) === node)
  if (list.length === 0) return null
  return (
    <Section title={t.node.live}>
      {list.map(([key, v]) => (
        <div key={key} className="code" aria-live="polite">
          {v.reasoning && <div className="dim">{v.reasoning}</div>}
          {v.text || v.stdout}
        </div>
      ))}
    </Section>
  )
}

function NodeValues({ run, at, d }: { run: string; at: number; d: Schemas['NodeDetails'] }) {
  const from = (part: string): Source => ({ run, node: d.node, at, part })
  return (
    <>
      <dl className="facts">
        <dt>{t.runs.started}</dt><dd>{d.started ? clock(d.started) : '–'}</dd>
        <dt>{t.run.duration}</dt><dd>{duration(d.us / 1000)}{d.cached && <> · {t.node.cached}</>}</dd>
      </dl>
      {(d.waits ?? []).length > 0 && (
        <Section title={t.node.waits}>
          {d.waits!.map((w, i) => (
            <div key={i} className="card" style={{ padding: 12, marginBottom: 8 }}>
              <div className="text">{w.prompt}</div>
              {w.answered && <div className="small dim" style={{ margin: '4px 0' }}>{t.node.answeredBy} {w.by || 'somebody'}</div>}
              {w.answered && <Value value={{ ...w.answer, name: t.node.answer }} source={from('waits')} index={undefined} />}
            </div>
          ))}
        </Section>
      )}
      <Section title={t.node.inputs}><Values list={d.inputs ?? []} source={from('inputs')} none={t.node.noInputs} /></Section>
      <Section title={t.node.outputs}><Values list={d.outputs ?? []} source={from('outputs')} none={t.node.noOutputs} /></Section>
      {(d.partial ?? []).map((x, i) => <Section key={i} title={t.node.partial}><div className="code">{x}</div></Section>)}
      {(d.state ?? []).length > 0 && <Section title={t.node.state}><Values list={d.state!} source={from('state')} none="" /></Section>}
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
  const calls = useLoad((signal) => take(api.GET('/v1/runs/{run}/calls', { params: { path: { run }, query: { node: node.node } }, signal })), [run, node.node, node.status, node.ended])
  const cache = useLoad((signal) => take(api.GET('/v1/runs/{run}/cache', { params: { path: { run }, query: { node: node.node } }, signal })), [run, node.node, node.status, node.ended])
  if (calls.error) return <Failure error={calls.error} />
  if (!calls.data) return <Loading />
  const list = calls.data.calls ?? []
  return (
    <>
      {node.usage.calls > 0 && <UsageFacts u={node.usage} />}
      {list.length === 0 && <div className="dim">{t.node.noCalls}</div>}
      {list.map((c) => <CallView key={c.call} call={c} cache={cache.data?.calls?.find((x) => x.call === c.call)} />)}
    </>
  )
}

export function UsageFacts({ u }: { u: Schemas['Usage'] }) {
  return (
    <dl className="facts">
      <dt>{t.runs.tokens}</dt>
      <dd>{count(u.input)} {t.node.input} ({count(u.cached)} {t.node.cachedTokens}), {count(u.output)} {t.node.output} ({count(u.reasoning)} {t.node.reasoning})</dd>
      <dt>{t.run.cost}</dt>
      <dd>{cost(u.cost)}{u.estimated ? ` (${u.estimated} ${t.node.estimated})` : ''}</dd>
    </dl>
  )
}

function Attempts({ node, d }: { node: RunNode; d: Schemas['NodeDetails'] }) {
  return (
    <>
      <Section title={t.node.attempts}>
        <dl className="facts">
          {(node.phases ?? []).map((p, i) => (
            <div key={i} style={{ display: 'contents' }}>
              <dt>{t.node.attempt} {p.attempt}</dt>
              <dd>{phaseText[p.kind] ?? p.kind} · {clock(p.from)} · {p.to ? duration(p.to - p.from) : '…'}</dd>
            </div>
          ))}
        </dl>
      </Section>
      {(d.effects ?? []).filter((e) => e.error).map((e) => <Section key={e.key} title={e.key}><RunError error={e.error!} /></Section>)}
    </>
  )
}

/** The program of a code node, and each step of the agents that wrote and checked it. */
function Steps({ run, node }: { run: string; node: RunNode }) {
  const chain = useLoad((signal) => take(api.GET('/v1/runs/{run}/chain', { params: { path: { run }, query: { node: node.node } }, signal })), [run, node.node, node.status, node.ended])
  const work = (chain.data?.work ?? []).filter((w) => w.code_executed || (w.steps ?? []).length > 0)
  return work.map((w) => (
    <Section key={w.seq} title={`${t.node.attempt} ${w.attempt}: ${w.status}`}>
      {w.code_executed && <div className="code">{w.code_executed}</div>}
      {(w.steps ?? []).map((s) => (
        <div className="value" key={s.sequence} style={{ marginTop: 8 }}>
          <header><b>{s.step_number}. {s.agent_name}</b><Status of={s.status} label={s.status} /><span className="grow" /><span className="dim">{duration(s.execution_time_ms)}</span><span className="dim">{s.model_used}</span></header>
          {s.error_message && <pre>{s.error_message}</pre>}
          {s.generated_code && <pre tabIndex={0}>{s.generated_code}</pre>}
          {s.output_data != null && <Content value={s.output_data} />}
        </div>
      ))}
    </Section>
  ))
}

function NodeMenu({ run, node, at, details }: { run: string; node: RunNode; at: number; details?: Schemas['NodeDetails'] }) {
  const [opened, setOpened] = useState(false)
  const url = `${base}/v1/runs/${encodeURIComponent(run)}/node?node=${encodeURIComponent(node.node)}${at ? `&at=${at}` : ''}`
  return (
    <Menu opened={opened} onChange={setOpened}>
      <Menu.Target><ActionIcon aria-label={t.run.more}><Icon name="more" /></ActionIcon></Menu.Target>
      <Menu.Dropdown>
        <Menu.Item onClick={() => copyText(location.href)}>{t.run.copyLink}</Menu.Item>
        <Menu.Item onClick={() => copyText(JSON.stringify(details, null, 2))} disabled={!details}>{t.run.copyJson}</Menu.Item>
        <Menu.Item onClick={() => copyText(`weir show ${run} --node '${node.node}'`)}>{t.run.copyCli}</Menu.Item>
        <Menu.Item onClick={() => copyText(`curl -H "Authorization: Bearer $WEIR_TOKEN" '${url}'`)}>{t.run.copyCurl}</Menu.Item>
      </Menu.Dropdown>
    </Menu>
  )
}

