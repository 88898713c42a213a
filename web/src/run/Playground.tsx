import { Button, Modal, NumberInput, Textarea, TextInput } from '@mantine/core'
import { lazy, Suspense, useState } from 'react'
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
  const [played, setPlayed] = useState<Schemas['Played']>()
  const [error, setError] = useState<WeirError>()
  const [busy, setBusy] = useState(false)
  const body = () => ({
    node, call: call.call,
    model: model !== `${sent.provider}/${sent.model}` ? model : undefined,
    system: system !== (sent.system ?? '') ? system : undefined,
    temperature: temperature === '' ? undefined : Number(temperature),
    maxOutput: maxOutput === '' ? undefined : Number(maxOutput),
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
        {error && <Failure error={error} />}
        <div className="row"><Button type="submit" loading={busy}>{t.play.run}</Button><CopyMenu label={t.play.title} path={`v1/runs/${encodeURIComponent(run)}/playground`} body={body} /></div>
        {played && <Result p={played} keep={keep} />}
      </form>
    </Modal>
  )
}

function Result({ p, keep }: { p: Schemas['Played']; keep: () => void }) {
  const recorded = (p.recorded ?? {}) as { message?: Message; usage?: Schemas['Usage'] }
  const figures = (u?: Partial<Schemas['Usage']> | null) => (u ? `${count((u.input ?? 0) + (u.output ?? 0))} ${t.run.tokens} · ${cost(u.cost ?? 0)}` : '')
  return (
    <Section title={t.play.result} action={<a href={href(['runs', p.run])}>{t.inbox.showRun}</a>}>
      <div className="sides-head small dim"><span>{t.play.recorded} {figures(recorded.usage)}</span><span className="row"><Status of={p.status} /> {figures(p.usage)}</span></div>
      <div className="value" style={{ marginTop: 4 }}><Suspense fallback={<Loading />}><TextDiff a={recorded.message?.text ?? ''} b={p.text} label={t.play.result} /></Suspense></div>
      <div className="row wrap" style={{ marginTop: 8 }}><Button variant="default" disabled={p.status !== 'completed'} onClick={keep}>{t.play.keep}</Button><span className="small dim">{t.play.keepHint}</span></div>
      {(p.leftOut ?? []).length > 0 && <div className="small dim">{t.play.leftOut} {p.leftOut!.join(', ')}</div>}
    </Section>
  )
}
