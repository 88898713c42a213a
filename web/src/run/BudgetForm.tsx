import { Button, NumberInput } from '@mantine/core'
import { useState } from 'react'
import { api, ApiError, requestKey } from '../api/client'
import { Failure } from '../parts/common'
import { t } from '../strings'

const fields = ['tokens', 'calls', 'cost'] as const
const labels = { tokens: t.usage.tokens_, calls: t.usage.calls_, cost: t.usage.cost_ }

/** Adds to the budget that a node ran out of, and continues the run. */
export function BudgetForm({ run, node, done }: { run: string; node: string; done: () => void }) {
  const [more, setMore] = useState<Partial<Record<(typeof fields)[number], number>>>({})
  const [error, setError] = useState<ApiError>()
  const [busy, setBusy] = useState(false)
  const given = Object.fromEntries(Object.entries(more).filter(([, n]) => n > 0))
  const add = async () => {
    setBusy(true)
    setError(undefined)
    try {
      await api.POST('/v1/runs/{run}/budget', { params: { path: { run }, header: { 'Idempotency-Key': requestKey() } }, body: { node, ...given } })
      done()
    } catch (e) {
      setError(e as ApiError)
    } finally {
      setBusy(false)
    }
  }
  return (
    <form className="ask column gap8" aria-label={t.budget.title} onSubmit={(e) => { e.preventDefault(); void add() }}>
      <b>{t.budget.title}</b>
      <div className="dim">{t.budget.hint}</div>
      <div className="equal">{fields.map((f) => <NumberInput key={f} label={labels[f]} min={0} step={f === 'cost' ? 0.1 : 1} allowDecimal={f === 'cost'} value={more[f] ?? ''} onChange={(v) => setMore((m) => ({ ...m, [f]: Number(v) || 0 }))} />)}</div>
      {error && <Failure error={error} />}
      <div><Button type="submit" loading={busy} disabled={Object.keys(given).length === 0}>{t.budget.submit}</Button></div>
    </form>
  )
}
