import { Button, NumberInput, TextInput } from '@mantine/core'
import { useState } from 'react'
import { api, take, WeirError, type Schemas } from '../api'
import { useMay } from '../caller'
import { Failure, LoadingRows, Section } from '../parts/common'
import { Spent } from '../parts/Spent'
import { t } from '../strings'
import { useLoad } from '../use'

type Quota = Schemas['QuotaRow']
type Amount = { calls: number; tokens: number; cost: number }

/** What users and tokens may spend on a day, with what they have spent; an administrator sets it. */
export function Quotas() {
  const list = useLoad((signal) => take(api.GET('/v1/quotas', { signal })), [], 5000)
  const may = useMay('admin')
  const rows = list.data?.quotas ?? []
  return (
    <div className="pad">
      <Section title={t.usage.quotas}>
        <div className="column gap">
          <div className="dim">{t.usage.quotaHint}</div>
          {list.error && <Failure error={list.error} retry={list.reload} />}
          {!list.data && !list.error && <LoadingRows />}
          {list.data && rows.length === 0 && <div className="dim">{t.usage.noQuotas}</div>}
          <div className="cards">{rows.map((q) => <Card key={q.user + q.token} q={q} />)}</div>
          {may && <Form done={list.reload} />}
        </div>
      </Section>
    </div>
  )
}

function Card({ q }: { q: Quota }) {
  const bars: [string, number, number][] = [[t.usage.calls_, q.used.calls, q.limits.calls], [t.usage.tokens_, q.used.tokens, q.limits.tokens], [t.usage.cost_, q.used.cost, q.limits.cost]]
  return (
    <article className="card column gap8" aria-label={q.user || q.token}>
      <b className="cut">{q.user === '*' ? t.usage.everyone : q.user || q.token}</b>
      {bars.filter(([, , most]) => most > 0).map(([name, used, most]) => (
        <Spent key={name} name={name} used={used} most={most} />
      ))}
    </article>
  )
}

function Form({ done }: { done: () => void }) {
  const [user, setUser] = useState('')
  const [amount, setAmount] = useState<Amount>({ calls: 0, tokens: 0, cost: 0 })
  const [error, setError] = useState<WeirError>()
  const save = async () => {
    setError(undefined)
    try {
      await api.PUT('/v1/quotas', { body: { user: user.trim(), ...amount } })
      setUser('')
      done()
    } catch (e) {
      setError(e as WeirError)
    }
  }
  const field = (key: keyof Amount, label: string) => <NumberInput key={key} label={label} min={0} value={amount[key]} onChange={(v) => setAmount((a) => ({ ...a, [key]: Number(v) || 0 }))} />
  return (
    <form className="card column gap" aria-label={t.usage.add} onSubmit={(e) => { e.preventDefault(); void save() }}>
      <b>{t.usage.add}</b>
      <div className="quarters">
        <TextInput label={t.usage.ofUser} value={user} onChange={(e) => setUser(e.currentTarget.value)} required />
        {field('calls', t.usage.calls_)}{field('tokens', t.usage.tokens_)}{field('cost', t.usage.cost_)}
      </div>
      {error && <Failure error={error} />}
      <div><Button type="submit" disabled={!user.trim()}>{t.usage.set}</Button></div>
    </form>
  )
}
