import { Button, Modal, NumberInput, Textarea, TextInput } from '@mantine/core'
import { lazy, Suspense, useEffect, useMemo, useRef, useState } from 'react'
import { api, newKey, take, WeirError, type Schemas } from '../api'
import { cost, count } from '../format'
import { save } from '../save'
import { CopyMenu } from '../parts/CopyMenu'
import { Failure, Loading, Section, Status } from '../parts/common'
import type { Message } from '../parts/MessageView'
import { href } from '../route'
import { t } from '../strings'
import { testFile } from './testFile'

const TextDiff = lazy(() => import('../parts/TextDiff'))

interface Recorded {
  provider?: string
  model?: string
  system?: string
  messages?: Message[]
  tools?: unknown[]
  temperature?: number
  max_output?: number
}

/** Makes a recorded model call again with changes, and compares the answers. */
export default function Playground({ run, node, call, close }: { run: string; node: string; call: Schemas['CallReport']; close: () => void }) {
  const sent = (call.sent ?? {}) as Recorded
  const last = (sent.messages ?? []).findLastIndex((m) => m.role === 'user')
  const [model, setModel] = useState(`${sent.provider}/${sent.model}`)
  const [system, setSystem] = useState(sent.system ?? '')
  const [prompt, setPrompt] = useState(sent.messages?.[last]?.text ?? '')
  const [temperature, setTemperature] = useState<number | string>(sent.temperature ?? '')
  const [maxOutput, setMaxOutput] = useState<number | string>(sent.max_output || '')
  const offered = JSON.stringify(sent.tools ?? [], null, 2)
  const [tools, setTools] = useState(offered)
  const given = useMemo(() => readTools(tools), [tools])
  const [played, setPlayed] = useState<Schemas['Played']>()
  const [error, setError] = useState<WeirError>()
  const [busy, setBusy] = useState(false)
  const body = () => ({
    node, call: call.call,
    model: model !== `${sent.provider}/${sent.model}` ? model : undefined,
    system: system !== (sent.system ?? '') ? system : undefined,
    temperature: temperature === '' ? undefined : Number(temperature),
    maxOutput: maxOutput === '' ? undefined : Number(maxOutput),
    tools: tools !== offered ? given.list : undefined,
    messages: prompt !== (sent.messages?.[last]?.text ?? '') ? (sent.messages ?? []).map((m, i) => (i === last ? { ...m, text: prompt } : m)) : undefined,
  })
  const play = async () => {
    setBusy(true)
    setError(undefined)
    try {
      setPlayed(await take(api.POST('/v1/runs/{run}/playground', { params: { path: { run }, query: { wait: 60 }, header: { 'Idempotency-Key': newKey() } }, body: body() as never })))
    } catch (e) {
      setError(e as WeirError)
    } finally {
      setBusy(false)
    }
  }
  const keep = async () => {
    try {
      const { flow, text } = await testFile(run, { node, call: call.call, text: played!.text, last: last >= 0 && last === (sent.messages ?? []).length - 1 ? prompt : '', system })
      save(`${flow}.test.yaml`, text, 'application/yaml')
    } catch (e) {
      setError(e as WeirError)
    }
  }
  return (
    <Modal opened onClose={close} size={880} title={`${t.play.title}: ${call.call}`} closeButtonProps={{ 'aria-label': t.state.close }}>
      <form className="column gap" onSubmit={(e) => { e.preventDefault(); void play() }}>
        <div className="dim">{t.play.intro}</div>
        <div className="thirds">
          <TextInput label={t.start.model} value={model} onChange={(e) => setModel(e.currentTarget.value)} />
          <NumberInput label={t.play.temperature} min={0} max={2} step={0.1} value={temperature} onChange={setTemperature} />
          <NumberInput label={t.play.maxOutput} min={1} value={maxOutput} onChange={setMaxOutput} />
        </div>
        <Textarea label={t.node.system} autosize minRows={1} maxRows={8} value={system} onChange={(e) => setSystem(e.currentTarget.value)} />
        {last >= 0 && <Textarea label={t.play.prompt} description={last > 0 ? `${last} ${t.play.earlier}` : undefined} autosize minRows={2} maxRows={12} value={prompt} onChange={(e) => setPrompt(e.currentTarget.value)} />}
        <details>
          <summary>{t.play.tools} <span className="dim">{given.list?.length}</span></summary>
          <Textarea classNames={{ input: 'mono' }} aria-label={t.play.tools} description={t.play.toolsHint} error={given.mistake} autosize minRows={3} maxRows={16} value={tools} onChange={(e) => setTools(e.currentTarget.value)} />
        </details>
        {error && <Failure error={error} />}
        <div className="row"><Button type="submit" loading={busy} disabled={!!given.mistake}>{t.play.run}</Button><CopyMenu label={t.play.title} path={`v1/runs/${encodeURIComponent(run)}/playground`} body={body} /></div>
        {played && <Result key={played.run} p={played} keep={keep} />}
      </form>
    </Modal>
  )
}

/** Reads the text of the tools. */
function readTools(text: string): { list?: unknown[]; mistake?: string } {
  try {
    const list: unknown = JSON.parse(text || '[]')
    const valid = Array.isArray(list) && list.every((x) => typeof x === 'object' && x !== null && typeof (x as { name?: unknown }).name === 'string')
    return valid ? { list } : { mistake: t.play.toolsHint }
  } catch (e) {
    return { mistake: (e as Error).message }
  }
}

type Call = NonNullable<Schemas['Played']['calls']>[number]

/** The answer that was played, beside the recorded one. Calls of tools wait for the outputs that a person gives. */
function Result({ p, keep }: { p: Schemas['Played']; keep: () => void }) {
  const [now, setNow] = useState({ status: p.status, text: p.text, calls: p.calls ?? [], usage: p.usage })
  const waiting = useRef(0)
  waiting.current = now.calls.length
  // A run that waits for outputs nobody will give would stay in the inbox.
  useEffect(() => () => void (waiting.current > 0 && api.POST('/v1/runs/{run}/cancel', { params: { path: { run: p.run } }, body: {} }).catch(() => undefined)), [p.run])
  const give = async (outputs: string[]) => {
    const calls = now.calls
    let report: Schemas['RunReport'] | undefined
    for (const [i, call] of calls.entries()) {
      const wait = i === calls.length - 1 ? 60 : 0
      report = await take(api.POST('/v1/runs/{run}/answer', { params: { path: { run: p.run }, query: { wait }, header: { 'Idempotency-Key': newKey() } }, body: { interrupt: call.interrupt, value: outputs[i] } }))
    }
    if (report) setNow({ status: report.status, text: textOf(report), calls: callsOf(report), usage: report.usage })
  }
  const recorded = (p.recorded ?? {}) as { message?: Message; usage?: Schemas['Usage'] }
  const figures = (u?: Partial<Schemas['Usage']> | null) => (u ? `${count((u.input ?? 0) + (u.output ?? 0))} ${t.run.tokens} · ${cost(u.cost ?? 0)}` : '')
  return (
    <Section title={t.play.result} action={<a href={href(['runs', p.run])}>{t.inbox.showRun}</a>}>
      <div className="sides-head small dim"><span>{t.play.recorded} {figures(recorded.usage)}</span><span className="row"><Status of={now.status} /> {figures(now.usage)}</span></div>
      <div className="value" style={{ marginTop: 4 }}><Suspense fallback={<Loading />}><TextDiff a={recorded.message?.text ?? ''} b={now.text} label={t.play.result} /></Suspense></div>
      <div className="row wrap" style={{ marginTop: 8 }}><Button variant="default" disabled={now.status !== 'completed' || (p.calls ?? []).length > 0} onClick={keep}>{t.play.keep}</Button><span className="small dim">{t.play.keepHint}</span></div>
      {now.calls.length > 0 && <Outputs key={now.calls[0].id} calls={now.calls} give={give} />}
    </Section>
  )
}

/** Fields for the outputs of the calls that a model made. */
function Outputs({ calls, give }: { calls: Call[]; give: (outputs: string[]) => Promise<void> }) {
  const [outputs, setOutputs] = useState(calls.map(() => ''))
  const [busy, setBusy] = useState(false)
  const [error, setError] = useState<WeirError>()
  const submit = async () => {
    setBusy(true)
    setError(undefined)
    await give(outputs).catch((e: WeirError) => setError(e))
    setBusy(false)
  }
  return (
    <div className="column gap8" style={{ marginTop: 12 }}>
      <div className="dim">{t.play.callsHint}</div>
      {calls.map((c, i) => (
        <Textarea
          key={c.id} label={<><b>{c.name}</b><span className="mono">({c.arguments})</span></>} aria-label={`${t.play.output} ${c.name}`} autosize minRows={1} maxRows={8} value={outputs[i]}
          onChange={(e) => setOutputs(outputs.with(i, e.currentTarget.value))}
        />
      ))}
      {error && <Failure error={error} />}
      <div><Button variant="default" loading={busy} onClick={() => void submit()}>{t.play.give}</Button></div>
    </div>
  )
}

const textOf = (r: Schemas['RunReport']) => String((r.outputs as { answer?: unknown } | null)?.answer ?? '')

/** The calls among the questions of a run. */
function callsOf(r: Schemas['RunReport']): Call[] {
  return (r.interrupts ?? []).flatMap((q) => {
    const call = (q.schema as { anyOf?: { 'x-weir-client-call'?: Omit<Call, 'interrupt'> }[] } | null)?.anyOf?.[0]?.['x-weir-client-call']
    return call ? { ...call, interrupt: q.id } : []
  })
}
