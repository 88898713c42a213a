import { Button, NumberInput } from '@mantine/core'
import { useState } from 'react'
import { api, newKey, WeirError } from '../api'
import { Failure } from '../parts/common'
import { t } from '../strings'

const fields = ['tokens', 'calls', 'cost'] as const
const labels = { tokens: t.usage.tokens_, calls: t.usage.calls_, cost: t.usage.cost_ }

export type Amounts = Partial<Record<(typeof fields)[number], number>>

/** Adds to the budget that a node ran out of, and continues the run. */
export function BudgetForm({ run, node, done }: { run: string; node: string; done: () => void }) {
  const send = (more: Amounts) => api.POST('/v1/runs/{run}/budget', { params: { path: { run }, header: { 'Idempotency-Key': newKey() } }, body: { node, ...more } })
  return <AddForm title={t.budget.title} hint={t.budget.hint} submit={t.budget.submit} send={send} done={done} />
}

/** A form for amounts to add to a budget. `of` are the kinds that the budget limits. */
export function AddForm({ title, hint, submit, of = [...fields], send, done }: { title: string; hint: string; submit: string; of?: (keyof Amounts)[]; send: (more: Amounts) => Promise<unknown>; done: () => void }) {
  const [more, setMore] = useState<Amounts>({})
  const [error, setError] = useState<WeirError>()
  const [busy, setBusy] = useState(false)
  const given: Amounts = Object.fromEntries(Object.entries(more).filter(([, n]) => n > 0))
  const add = async () => {
    setBusy(true)
    setError(undefined)
    try {
      await send(given)
      setMore({})
      done()
    } catch (e) {
      setError(e as WeirError)
    } finally {
      setBusy(false)
    }
  }
  return (
    <form className="ask column gap8" aria-label={title} onSubmit={(e) => { e.preventDefault(); void add() }}>
      <b>{title}</b>
      <div className="dim">{hint}</div>
      <div className="equal">{of.map((f) => <NumberInput key={f} label={labels[f]} min={0} step={f === 'cost' ? 0.1 : 1} allowDecimal={f === 'cost'} value={more[f] ?? ''} onChange={(v) => setMore((m) => ({ ...m, [f]: Number(v) || 0 }))} />)}</div>
      {error && <Failure error={error} />}
      <div><Button type="submit" loading={busy} disabled={Object.keys(given).length === 0}>{submit}</Button></div>
    </form>
  )
}
