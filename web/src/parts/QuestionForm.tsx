import { Button, Checkbox, NumberInput, Textarea, TextInput } from '@mantine/core'
import { lazy, Suspense, useId, useState, type ReactNode } from 'react'
import { api, newKey, WeirError, type Schemas } from '../api'
import { useMay } from '../caller'
import { t } from '../strings'

const FileField = lazy(() => import('./FileField').then((m) => ({ default: m.FileField })))

type Schema = { type?: string | string[]; enum?: unknown[]; properties?: Record<string, Schema>; required?: string[]; title?: string; description?: string; default?: unknown; minimum?: number; maximum?: number; oneOf?: Schema[]; anyOf?: Schema[] }

/** A question with the form for its answer: buttons for a choice, fields for an object, else a text. */
export function QuestionForm({ run, interrupt, done }: { run: string; interrupt: Schemas['Interrupt']; done: () => void }) {
  const may = useMay('answer')
  const [busy, setBusy] = useState(false)
  const [error, setError] = useState<WeirError>()
  const [key] = useState(newKey)
  const send = async (value: unknown) => {
    setBusy(true)
    setError(undefined)
    try {
      await api.POST('/v1/runs/{run}/answer', { params: { path: { run }, header: { 'Idempotency-Key': `${key}-${JSON.stringify(value)}`.slice(0, 200) } }, body: { interrupt: interrupt.id, value: value as never } })
      done()
    } catch (e) {
      setError(e as WeirError)
    } finally {
      setBusy(false)
    }
  }
  return (
    <div className="column" style={{ gap: 12 }}>
      <div className="text">{interrupt.prompt || (interrupt.kind === 'event' ? t.inbox.event : interrupt.node)}</div>
      {interrupt.due ? <div className="small dim">{new Date(interrupt.due).toLocaleString()}</div> : null}
      {may && <Fields interrupt={interrupt} busy={busy} send={send} />}
      {error && (
        <div className="error-box" role="alert">
          {error.status === 409 ? t.inbox.taken : error.message}
          {error.hint && <div className="dim">{error.hint}</div>}
        </div>
      )}
    </div>
  )
}

function Fields({ interrupt, busy, send }: { interrupt: Schemas['Interrupt']; busy: boolean; send: (v: unknown) => void }) {
  const schema = (interrupt.schema ?? {}) as Schema
  if (interrupt.kind === 'approval') return <Approval busy={busy} send={send} />
  if (interrupt.kind === 'break') return <Actions><Button loading={busy} onClick={() => send(true)}>{t.inbox.continue}</Button></Actions>
  if (schema.enum && schema.enum.length <= 8) {
    return (
      <Actions>
        {schema.enum.map((v, i) => (
          <Button key={i} variant={i === 0 ? 'filled' : 'default'} disabled={busy} onClick={() => send(v)}>{String(v)}</Button>
        ))}
      </Actions>
    )
  }
  if (schema.type === 'boolean') {
    return <Actions><Button disabled={busy} onClick={() => send(true)}>true</Button><Button variant="default" disabled={busy} onClick={() => send(false)}>false</Button></Actions>
  }
  if (schema.type === 'object' && schema.properties) return <ObjectForm schema={schema} busy={busy} send={send} />
  return <SingleForm schema={schema} busy={busy} send={send} />
}

function Actions({ children }: { children: ReactNode }) {
  return <div className="row wrap">{children}</div>
}

function Approval({ busy, send }: { busy: boolean; send: (v: unknown) => void }) {
  const [reason, setReason] = useState('')
  return (
    <>
      <TextInput label={t.inbox.reason} value={reason} onChange={(e) => setReason(e.currentTarget.value)} />
      <Actions>
        <Button disabled={busy} onClick={() => send('approve')}>{t.inbox.approve}</Button>
        <Button variant="default" disabled={busy} onClick={() => send(reason ? { approve: false, reason } : 'reject')}>{t.inbox.reject}</Button>
      </Actions>
    </>
  )
}

function SingleForm({ schema, busy, send }: { schema: Schema; busy: boolean; send: (v: unknown) => void }) {
  const [value, setValue] = useState('')
  const number = schema.type === 'integer' || schema.type === 'number'
  const text = !schema.type || schema.type === 'string'
  const submit = () => {
    if (number) return send(Number(value))
    if (text) return send(value)
    try {
      send(JSON.parse(value))
    } catch {
      send(value)
    }
  }
  return (
    <form className="column" style={{ gap: 8 }} onSubmit={(e) => { e.preventDefault(); submit() }}>
      {number ? (
        <NumberInput label={t.inbox.answer} value={value} min={schema.minimum} max={schema.maximum} allowDecimal={schema.type === 'number'} onChange={(v) => setValue(String(v))} />
      ) : (
        <Textarea label={text ? t.inbox.answer : t.inbox.json} value={value} autosize minRows={2} maxRows={10} onChange={(e) => setValue(e.currentTarget.value)} />
      )}
      <Actions><Button type="submit" loading={busy} disabled={value === ''}>{t.inbox.submit}</Button></Actions>
    </form>
  )
}

function ObjectForm({ schema, busy, send }: { schema: Schema; busy: boolean; send: (v: unknown) => void }) {
  const [value, setValue] = useState<Record<string, unknown>>({})
  return (
    <form className="column" style={{ gap: 8 }} onSubmit={(e) => { e.preventDefault(); send(value) }}>
      <SchemaFields schema={schema} value={value} change={setValue} />
      <Actions><Button type="submit" loading={busy}>{t.inbox.submit}</Button></Actions>
    </form>
  )
}

/** The fields of an object's properties. Files are uploaded; what has no field of its own is entered as JSON. */
export function SchemaFields({ schema, types, value, change }: { schema: Schema; types?: Record<string, string>; value: Record<string, unknown>; change: (v: Record<string, unknown>) => void }) {
  return (
    <>
      {Object.entries(schema.properties ?? {}).map(([name, s]) => {
        const required = schema.required?.includes(name) ?? false
        const set = (v: unknown) => {
          const next = { ...value }
          if (v === undefined || v === '') delete next[name]
          else next[name] = v
          change(next)
        }
        const type = types?.[name]
        if (type === 'file' || type === 'message') return <Suspense key={name} fallback={null}><FileField label={s.title ?? name} description={s.description} required={required} message={type === 'message'} change={set} /></Suspense>
        return <SchemaField key={name} name={name} schema={s} required={required} value={value[name]} change={set} />
      })}
    </>
  )
}

function SchemaField({ name, schema, required, value, change }: { name: string; schema: Schema; required: boolean; value: unknown; change: (v: unknown) => void }) {
  const id = useId()
  const [raw, setRaw] = useState<string>()
  const common = { id, label: schema.title ?? name, description: schema.description, required, withAsterisk: required }
  if (schema.type === 'boolean') return <Checkbox id={id} label={common.label} description={schema.description} checked={value === true} onChange={(e) => change(e.currentTarget.checked)} />
  if (schema.type === 'integer' || schema.type === 'number') return <NumberInput {...common} value={(value as number) ?? ''} allowDecimal={schema.type === 'number'} onChange={(v) => change(v === '' ? undefined : Number(v))} />
  if (schema.enum) {
    return (
      <div>
        <label htmlFor={id} className="small">{common.label}</label>
        <select id={id} className="select" required={required} value={value === undefined ? '' : String(value)} onChange={(e) => change(schema.enum!.find((x) => String(x) === e.currentTarget.value))}>
          <option value=""></option>
          {schema.enum.map((x, i) => <option key={i}>{String(x)}</option>)}
        </select>
      </div>
    )
  }
  if (schema.type === 'string') return <Textarea {...common} autosize minRows={1} maxRows={10} value={(value as string) ?? ''} onChange={(e) => change(e.currentTarget.value)} />
  const text = raw ?? (value === undefined ? '' : JSON.stringify(value))
  return (
    <Textarea {...common} autosize minRows={1} maxRows={10} value={text} description={schema.description ?? 'JSON'}
      onChange={(e) => {
        setRaw(e.currentTarget.value)
        try {
          change(e.currentTarget.value === '' ? undefined : JSON.parse(e.currentTarget.value))
        } catch {
          change(e.currentTarget.value)
        }
      }} />
  )
}
