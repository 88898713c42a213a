import { api, newKey, take } from '../api'
import { useMay } from '../caller'
import { cost, count } from '../format'
import { Empty, Failure, LoadingRows } from '../parts/common'
import { Spent } from '../parts/Spent'
import { AddForm, type Amounts } from '../run/BudgetForm'
import { t } from '../strings'
import { useLoad } from '../use'

/** What the rounds of a session may spend together and have spent, with a form that adds to it. */
export default function SessionBudget({ session, changes }: { session: string; changes: unknown }) {
  const may = useMay('start')
  const path = { session }
  const budget = useLoad((signal) => take(api.GET('/v1/sessions/{session}/budget', { params: { path }, signal })), [session, changes])
  if (budget.error && !budget.data) return <Failure error={budget.error} retry={budget.reload} />
  if (!budget.data) return <LoadingRows />
  const b = budget.data
  const kinds: { id: keyof Amounts; name: string; used: number; most: number; added: number; show: (n: number) => string }[] = [
    { id: 'tokens', name: t.usage.tokens_, used: b.usedTokens, most: b.maxTokens, added: b.increase.tokens, show: count },
    { id: 'calls', name: t.usage.calls_, used: b.usedCalls, most: b.maxCalls, added: b.increase.calls, show: count },
    { id: 'cost', name: t.usage.cost_, used: b.usedMicros, most: b.maxCost * 1e6, added: b.increase.cost * 1e6, show: cost },
  ]
  const limited = kinds.filter((k) => k.most > 0)
  if (limited.length === 0) return <Empty art="usage" title={t.budget.none} hint={t.budget.noneHint} />
  const send = (more: Amounts) => api.POST('/v1/sessions/{session}/budget', { params: { path, header: { 'Idempotency-Key': newKey() } }, body: more })
  return (
    <div className="pad narrow column gap">
      <div className="dim">{t.budget.ofSession}</div>
      <article className="card column gap" aria-label={t.budget.tab}>
        {limited.map((k) => (
          <div key={k.id} className="column gap4">
            <Spent name={k.name} used={k.used} most={k.most} show={k.show} />
            {k.added > 0 && <div className="small dim">{t.budget.added} {k.show(k.added)}</div>}
          </div>
        ))}
      </article>
      {may && <AddForm title={t.budget.title} hint={t.budget.sessionHint} submit={t.budget.add} of={limited.map((k) => k.id)} send={send} done={budget.reload} />}
    </div>
  )
}
