import { api, take } from '../api/client'
import { ago } from '../format'
import { Empty, Failure, Loading } from '../parts/common'
import { href } from '../route'
import { t } from '../strings'
import { useLoad, useNow } from '../use'

/** What is remembered about users beyond conversations. */
export default function Memory() {
  const list = useLoad((signal) => take(api.GET('/v1/memory', { params: { query: { limit: 200 } }, signal })), [], 5000)
  const now = useNow(true)
  const items = list.data?.items ?? []
  return (
    <>
      <div className="head"><h1>{t.memory.title}</h1></div>
      <div className="body pad column" style={{ gap: 8 }}>
        {list.error && <Failure error={list.error} retry={list.reload} />}
        {!list.data && !list.error && <Loading />}
        {list.data && items.length === 0 && <Empty title={t.memory.empty} hint={t.memory.emptyHint} />}
        {items.map((m) => (
          <article className="value" key={m.id}>
            <header><b>{m.key || m.kind}</b><span className="dim">{m.kind}</span><span className="dim">{m.user || m.session}</span><span className="grow" />{m.run && <a href={href(['runs', m.run])}>{ago(Date.parse(m.written), now)}</a>}</header>
            <pre>{m.text}</pre>
          </article>
        ))}
      </div>
    </>
  )
}
