import { api, take, type Schemas } from '../api'
import { cost, count } from '../format'
import { CopyMenu } from '../parts/CopyMenu'
import { Empty, Failure, LoadingRows, Tabs } from '../parts/common'
import { Stack } from '../parts/Stack'
import { href, useQuery } from '../route'
import { t } from '../strings'
import { useLoad } from '../use'
import { Quotas } from './Quotas'

/** What runs have spent, by day, flow, model, user or token. */
export default function Usage() {
  const [query, set] = useQuery()
  const by = (query.get('by') ?? 'day') as 'day' | 'flow' | 'model' | 'user' | 'key'
  const days = Number(query.get('days') ?? 30)
  const list = useLoad((signal) => take(api.GET('/v1/usage', { params: { query: { by, days } }, signal })), [by, days])
  const rows = list.data?.rows ?? []
  const most = Math.max(...rows.map((r) => r.usage.cost || r.usage.input + r.usage.output || r.runs), 1)
  return (
    <>
      <div className="head"><h1 className="grow">{t.usage.title}</h1><CopyMenu label={t.usage.title} json={() => list.data} path={`v1/usage?by=${by}&days=${days}`} /></div>
      <div className="bar">
        <Tabs label={t.usage.by} chosen={by} choose={(x) => set({ by: x })} tabs={[{ id: 'day', label: t.usage.day }, { id: 'flow', label: t.usage.flow }, { id: 'model', label: t.usage.model }, { id: 'user', label: t.usage.user }, { id: 'key', label: t.usage.key }]} />
        <span className="grow" />
        <select className="select auto" aria-label={t.usage.days} value={days} onChange={(e) => set({ days: e.currentTarget.value })}>
          {[1, 7, 30, 90, 366].map((n) => <option key={n} value={n}>{n} {t.usage.days}</option>)}
        </select>
      </div>
      <div className="body" tabIndex={0} role="region" aria-label={t.usage.title}>
        {list.error && <Failure error={list.error} retry={list.reload} />}
        {!list.data && !list.error && <LoadingRows />}
        {list.data && rows.length === 0 && <Empty art="usage" title={t.usage.empty} />}
        {rows.length > 0 && (
          <div role="table" aria-label={t.usage.title} className="usage">
            <div role="row" className="grid thead">
              <span role="columnheader">{t.usage[by]}</span>
              {[t.usage.runs, t.usage.calls, t.usage.input, t.usage.cachedInput, t.usage.output, t.usage.reasoning, t.usage.cost].map((x) => <span role="columnheader" className="right" key={x}>{x}</span>)}
              <span role="columnheader"></span>
            </div>
            <Stack list={rows} id={(r) => r.name} size={36} gap={0} item={(r) => <Row name={r.name || (by === 'key' ? t.usage.noKey : by === 'model' ? t.usage.noModel : '–')} r={r} by={by} most={most} />} />
            {by !== 'model' && <Row name={t.usage.total} r={total(rows)} by="" most={0} />}
          </div>
        )}
        <Quotas />
        {list.data && !list.data.complete && <div className="notice">{t.usage.incomplete}</div>}
      </div>
    </>
  )
}

function Row({ name, r, by, most }: { name: string; r: Schemas['UsageRow']; by: string; most: number }) {
  const u = r.usage
  const share = most ? ((u.cost || u.input + u.output || r.runs) / most) * 100 : 0
  return (
    <div role="row" className="grid trow" style={{ fontWeight: by ? undefined : 600 }}>
      <span role="cell">{by === 'flow' || by === 'user' ? <a href={href(['runs'], { [by]: r.name })}>{name}</a> : name}</span>
      {[r.runs, u.calls, u.input, u.cached, u.output, u.reasoning].map((x, i) => <span role="cell" className="right" key={i}>{count(x)}</span>)}
      <span role="cell" className="right">{cost(u.cost)}</span>
      <span role="cell"><span className="lane plain" style={{ display: 'block', height: 28 }}>{share > 0 && <i style={{ left: 0, width: `${share}%` }} />}</span></span>
    </div>
  )
}

function total(rows: Schemas['UsageRow'][]): Schemas['UsageRow'] {
  const usage = { calls: 0, input: 0, cached: 0, output: 0, reasoning: 0, cost: 0 }
  let runs = 0
  for (const r of rows) {
    runs += r.runs
    for (const k of Object.keys(usage) as (keyof typeof usage)[]) usage[k] += r.usage[k]
  }
  return { name: '', runs, usage }
}
