import { Button, Modal, Textarea, TextInput } from '@mantine/core'
import { useEffect, useState } from 'react'
import { api, newKey, take, WeirError, type Schemas } from '../api'
import { plain } from '../format'
import { Failure, Loading, Section } from '../parts/common'
import { CopyMenu, quoted } from '../parts/CopyMenu'
import { go, href } from '../route'
import { t } from '../strings'
import type { Timeline } from './useRun'

/** Parses an edited value: JSON where the original was no text. */
function parsed(text: string, original: unknown): unknown {
  return typeof original === 'string' ? text : JSON.parse(text)
}

/** A fork of a run from a node, with edited inputs, and what it will reuse. */
export function ForkForm({ data, node, close }: { data: Timeline; node: string; close: () => void }) {
  const [inputs, setInputs] = useState<Record<string, string>>({})
  const [state, setState] = useState('')
  const [model, setModel] = useState('')
  const [plan, setPlan] = useState<Schemas['ForkPlan']>()
  const [error, setError] = useState<WeirError>()
  const [busy, setBusy] = useState(false)
  const editable = (data.inputs ?? []).filter((v) => v.value !== null || v.size <= 4)
  const body = () => {
    const changed: Record<string, unknown> = {}
    for (const v of editable) if (inputs[v.name] !== undefined && inputs[v.name] !== plain(v.value)) changed[v.name] = parsed(inputs[v.name], v.value)
    return { from: node, inputs: Object.keys(changed).length ? (changed as never) : undefined, state: state ? (JSON.parse(state) as never) : undefined, model: model || undefined }
  }
  useEffect(() => {
    let stopped = false
    const timer = setTimeout(async () => {
      try {
        const p = await take(api.POST('/v1/runs/{run}/fork/plan', { params: { path: { run: data.run } }, body: body() }))
        if (!stopped) {
          setPlan(p)
          setError(undefined)
        }
      } catch (e) {
        if (!stopped) setError(e instanceof WeirError ? e : new WeirError(422, { detail: String(e), code: 'request_invalid' }))
      }
    }, 200)
    return () => {
      stopped = true
      clearTimeout(timer)
    }
  }, [JSON.stringify(inputs), state, model, node])
  const submit = async () => {
    setBusy(true)
    try {
      const made = await take(api.POST('/v1/runs/{run}/fork', { params: { path: { run: data.run }, header: { 'Idempotency-Key': newKey() } }, body: body() }))
      close()
      go(href(['runs', made.run]))
    } catch (e) {
      setError(e as WeirError)
      setBusy(false)
    }
  }
  return (
    <Modal opened onClose={close} size="lg" title={`${t.fork.title}: ${node}`} closeButtonProps={{ 'aria-label': t.state.close }}>
      <form className="column gap" onSubmit={(e) => { e.preventDefault(); void submit() }}>
        <div className="dim">{t.fork.intro}</div>
        <Section title={t.fork.inputs}>
          {editable.length === 0 && <div className="dim">{t.start.noInputs}</div>}
          {editable.map((v) => (
            <Textarea key={v.name} label={v.name} autosize minRows={1} maxRows={8} value={inputs[v.name] ?? plain(v.value)} onChange={(e) => { const text = e.currentTarget.value; setInputs((x) => ({ ...x, [v.name]: text })) }} />
          ))}
        </Section>
        <Textarea label={t.fork.state} description="JSON" placeholder='{"amount": 900}' autosize minRows={1} value={state} onChange={(e) => setState(e.currentTarget.value)} />
        <TextInput label={t.start.model} description={t.fork.modelHint} value={model} onChange={(e) => setModel(e.currentTarget.value)} />
        {error && <Failure error={error} />}
        {!plan && !error && <Loading />}
        {plan && !error && <Plan plan={plan} />}
        <div className="row"><span className="grow" />{!error && <CopyMenu label={t.fork.title} cli={() => command(data.run, body())} path={`v1/runs/${encodeURIComponent(data.run)}/fork`} body={body} />}<Button type="submit" loading={busy} disabled={!!error}>{t.fork.submit}</Button></div>
      </form>
    </Modal>
  )
}

/** The command that makes the fork. */
function command(run: string, b: { from: string; inputs?: object; state?: object; model?: string }): string {
  const inputs = Object.entries(b.inputs ?? {}).map(([name, v]) => `-i ${quoted(`${name}=${typeof v === 'string' ? v.replace(/^@/, '@@') : JSON.stringify(v)}`)}`)
  const state = Object.entries(b.state ?? {}).map(([name, v]) => `--state ${quoted(`${name}=${JSON.stringify(v)}`)}`)
  return ['weir fork', run, '--from', quoted(b.from), ...inputs, ...state, ...(b.model ? ['--model', quoted(b.model)] : [])].join(' ')
}

function Plan({ plan }: { plan: Schemas['ForkPlan'] }) {
  const nodes = plan.nodes ?? []
  const reused = nodes.filter((n) => n.use === 'reused' || n.use === 'continues')
  const runs = nodes.filter((n) => n.use === 'again' || n.use === 'new' || n.use === 'ahead')
  return (
    <Section title={`${t.fork.plan} (${t.run.upTo} ${plan.at} ${t.run.of} ${plan.events})`}>
      <dl className="facts">
        <dt>{t.fork.reused}</dt><dd>{reused.map((n) => n.node).join(', ') || '–'}</dd>
        <dt>{t.fork.runs}</dt><dd>{runs.map((n) => n.node + (n.reason ? ` (${n.reason})` : '')).join(', ') || '–'}</dd>
      </dl>
    </Section>
  )
}
