import { Button } from '@mantine/core'
import { useState } from 'react'
import { api, take, WeirError, type Schemas } from '../api'
import { useMay } from '../caller'
import { ago } from '../format'
import { useChanges } from '../list'
import { Cards } from '../parts/Cards'
import { CopyMenu } from '../parts/CopyMenu'
import { Empty, Failure, LoadingRows } from '../parts/common'
import { href, useQuery } from '../route'
import { t } from '../strings'
import { useNow, usePages, useSettled } from '../use'

/** What is remembered about users beyond conversations. */
export default function Memory() {
  const [query, set] = useQuery()
  const find = query.get('find') ?? ''
  const text = useSettled(find)
  const list = usePages<Schemas['MemoryRow']>(
    async (cursor, signal) => {
      const p = await take(api.GET('/v1/memory', { params: { query: { limit: 100, text: text || undefined, cursor: cursor || undefined } }, signal }))
      return { list: p.items ?? [], next: p.next }
    },
    (m) => m.id, [text], useChanges(),
  )
  const now = useNow(true)
  const [error, setError] = useState<WeirError>()
  const items = list.data ?? []
  const forget = async (m: Schemas['MemoryRow']) => {
    if (!window.confirm(`${t.memory.forgetConfirm} ${m.key || m.text.slice(0, 60)}`)) return
    try {
      await api.DELETE('/v1/memory/{item}', { params: { path: { item: m.id } } })
      list.drop(m.id)
    } catch (e) {
      setError(e as WeirError)
    }
  }
  return (
    <>
      <div className="head">
        <h1 className="grow">{t.memory.title}</h1>
        {(items.length > 0 || find) && <input className="select search" type="search" aria-label={t.memory.find} placeholder={t.memory.find} value={find} onChange={(e) => set({ find: e.currentTarget.value })} />}
      </div>
        {error && <Failure error={error} />}
        {list.error && !(list.error.offline && list.data) && <Failure error={list.error} retry={list.reload} />}
        {!list.data && !list.error && <LoadingRows />}
        {list.data && items.length === 0 && !list.more && <Empty art="memory" title={text ? t.memory.noMatch : t.memory.empty} hint={text ? undefined : t.memory.emptyHint} />}
        {items.length > 0 && <Cards list={items} id={(m) => m.id} label={t.memory.title} card={(m) => <Item m={m} now={now} forget={() => forget(m)} />} end={list.more && <Button variant="default" onClick={list.more}>{t.state.more}</Button>} />}
        {items.length === 0 && list.more && <div className="pad center"><Button variant="default" onClick={list.more}>{t.state.more}</Button></div>}
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
