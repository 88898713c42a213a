import { Button } from '@mantine/core'
import { useState } from 'react'
import { api, ApiError, take, type Schemas } from '../api/client'
import { useMay } from '../caller'
import { ago } from '../format'
import { useChanges } from '../list'
import { Cards } from '../parts/Cards'
import { CopyMenu } from '../parts/CopyMenu'
import { Empty, Failure, LoadingRows } from '../parts/common'
import { href, useQuery } from '../route'
import { t } from '../strings'
import { slow, useAgain, useLoad, useNow } from '../use'

/** How many items the server lists. */
const most = 200

/** What is remembered about users beyond conversations. */
export default function Memory() {
  const [query, set] = useQuery()
  const list = useLoad((signal) => take(api.GET('/v1/memory', { params: { query: { limit: most } }, signal })), [], slow)
  useAgain(useChanges(), list.reload)
  const now = useNow(true)
  const [error, setError] = useState<ApiError>()
  const find = (query.get('find') ?? '').toLowerCase()
  const all = list.data?.items ?? []
  const items = all.filter((m) => !find || [m.key, m.text, m.user, m.kind, m.namespace].some((x) => x.toLowerCase().includes(find)))
  const forget = async (m: Schemas['MemoryRow']) => {
    if (!window.confirm(`${t.memory.forgetConfirm} ${m.key || m.text.slice(0, 60)}`)) return
    try {
      await api.DELETE('/v1/memory/{item}', { params: { path: { item: m.id } } })
      list.reload()
    } catch (e) {
      setError(e as ApiError)
    }
  }
  return (
    <>
      <div className="head">
        <h1 className="grow">{t.memory.title}</h1>
        {all.length > 0 && <input className="select search" type="search" aria-label={t.memory.find} placeholder={t.memory.find} value={query.get('find') ?? ''} onChange={(e) => set({ find: e.currentTarget.value })} />}
      </div>
        {error && <Failure error={error} />}
        {list.error && !(list.error.offline && list.data) && <Failure error={list.error} retry={list.reload} />}
        {!list.data && !list.error && <LoadingRows />}
        {list.data && items.length === 0 && <Empty art="memory" title={all.length ? t.memory.noMatch : t.memory.empty} hint={all.length ? undefined : t.memory.emptyHint} />}
        {items.length > 0 && <Cards list={items} id={(m) => m.id} label={t.memory.title} card={(m) => <Item m={m} now={now} forget={() => forget(m)} />} end={all.length >= most && <span className="dim">{t.memory.notAll}</span>} />}
    </>
  )
}

function Item({ m, now, forget }: { m: Schemas['MemoryRow']; now: number; forget: () => void }) {
  const may = useMay('start')
  return (
    <article className="card column gap4" style={{ flex: 'none' }} aria-label={m.key || m.kind}>
      <header className="row">
        <b className="cut">{m.key || m.kind}</b>
        <span className="chip">{m.kind}</span>
        {(m.tags ?? []).map((x) => <span className="chip" key={x}>{x}</span>)}
        <span className="grow" />
        {may && <Button variant="subtle" onClick={forget}>{t.memory.forget}</Button>}
        <CopyMenu label={m.key || m.kind} size={20} json={() => m} cli="weir memory list" path="v1/memory" />
      </header>
      <div className="text">{m.text}</div>
      <div className="metas">
        {(m.user || m.session) && <span>{m.user || m.session}</span>}
        {m.version > 1 && <span>{t.memory.version} {m.version}</span>}
        {m.run ? <a href={href(['runs', m.run])}>{ago(Date.parse(m.written), now)}</a> : <span>{ago(Date.parse(m.written), now)}</span>}
      </div>
    </article>
  )
}
